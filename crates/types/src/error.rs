//! SQLSTATEs and the one error that reaches a client.

use std::fmt;

macro_rules! sqlstates {
    ($($name:ident = $code:literal,)*) => {
        /// The SQLSTATEs that Stegodon reports, named as in PostgreSQL's `errcodes.txt`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the code is the documentation")]
        pub enum SqlState { $($name,)* }

        impl SqlState {
            /// The five characters sent to the client.
            pub const fn code(self) -> &'static str {
                match self { $(SqlState::$name => $code,)* }
            }
        }
    };
}

sqlstates! {
    SuccessfulCompletion = "00000",
    Warning = "01000",
    NoData = "02000",
    ConnectionException = "08000",
    ProtocolViolation = "08P01",
    FeatureNotSupported = "0A000",
    CardinalityViolation = "21000",
    DataException = "22000",
    StringDataRightTruncation = "22001",
    NullValueNoIndicatorParameter = "22002",
    NumericValueOutOfRange = "22003",
    NullValueNotAllowed = "22004",
    InvalidDatetimeFormat = "22007",
    DatetimeFieldOverflow = "22008",
    InvalidTimeZoneDisplacementValue = "22009",
    DivisionByZero = "22012",
    IntervalFieldOverflow = "22015",
    InvalidCharacterValueForCast = "22018",
    InvalidEscapeCharacter = "22019",
    InvalidRegularExpression = "2201B",
    InvalidArgumentForLogarithm = "2201E",
    InvalidArgumentForPowerFunction = "2201F",
    InvalidArgumentForWidthBucket = "2201G",
    InvalidPrecedingOrFollowingSize = "22013",
    InvalidArgumentForNtile = "22014",
    InvalidArgumentForNthValue = "22016",
    InvalidRowCountInLimitClause = "2201W",
    InvalidRowCountInResultOffsetClause = "2201X",
    CharacterNotInRepertoire = "22021",
    InvalidParameterValue = "22023",
    InvalidEscapeSequence = "22025",
    SubstringError = "22011",
    ArraySubscriptError = "2202E",
    StringDataLengthMismatch = "22026",
    InvalidTextRepresentation = "22P02",
    InvalidBinaryRepresentation = "22P03",
    UntranslatableCharacter = "22P05",
    InvalidJsonText = "22032",
    DuplicateJsonObjectKeyValue = "22030",
    IntegrityConstraintViolation = "23000",
    NotNullViolation = "23502",
    CheckViolation = "23514",
    InvalidCursorState = "24000",
    InvalidTransactionState = "25000",
    ActiveSqlTransaction = "25001",
    ReadOnlySqlTransaction = "25006",
    NoActiveSqlTransaction = "25P01",
    InFailedSqlTransaction = "25P02",
    InvalidSqlStatementName = "26000",
    InvalidAuthorizationSpecification = "28000",
    InvalidPassword = "28P01",
    InvalidCursorName = "34000",
    InvalidCatalogName = "3D000",
    InvalidSchemaName = "3F000",
    InvalidSavepointSpecification = "3B001",
    SerializationFailure = "40001",
    DeadlockDetected = "40P01",
    SyntaxError = "42601",
    InsufficientPrivilege = "42501",
    CannotCoerce = "42846",
    GroupingError = "42803",
    WindowingError = "42P20",
    InvalidRecursion = "42P19",
    InvalidForeignKey = "42830",
    InvalidName = "42602",
    NameTooLong = "42622",
    ReservedName = "42939",
    DatatypeMismatch = "42804",
    IndeterminateDatatype = "42P18",
    CollationMismatch = "42P21",
    IndeterminateCollation = "42P22",
    WrongObjectType = "42809",
    GeneratedAlways = "428C9",
    UndefinedColumn = "42703",
    UndefinedFunction = "42883",
    UndefinedTable = "42P01",
    UndefinedParameter = "42P02",
    UndefinedObject = "42704",
    DuplicateColumn = "42701",
    DuplicateCursor = "42P03",
    DuplicatePreparedStatement = "42P05",
    DuplicateAlias = "42712",
    DuplicateObject = "42710",
    AmbiguousColumn = "42702",
    AmbiguousFunction = "42725",
    AmbiguousParameter = "42P08",
    AmbiguousAlias = "42P09",
    InvalidColumnReference = "42P10",
    InvalidColumnDefinition = "42611",
    InvalidCursorDefinition = "42P11",
    InvalidTableDefinition = "42P16",
    InvalidObjectDefinition = "42P17",
    InsufficientResources = "53000",
    DiskFull = "53100",
    OutOfMemory = "53200",
    TooManyConnections = "53300",
    ConfigurationLimitExceeded = "53400",
    ProgramLimitExceeded = "54000",
    StatementTooComplex = "54001",
    TooManyColumns = "54011",
    TooManyArguments = "54023",
    ObjectNotInPrerequisiteState = "55000",
    ObjectInUse = "55006",
    CantChangeRuntimeParam = "55P02",
    LockNotAvailable = "55P03",
    OperatorIntervention = "57000",
    QueryCanceled = "57014",
    AdminShutdown = "57P01",
    CrashShutdown = "57P02",
    CannotConnectNow = "57P03",
    SystemError = "58000",
    IoError = "58030",
    UndefinedFile = "58P01",
    ConfigFileError = "F0000",
    InternalError = "XX000",
    DataCorrupted = "XX001",
    IndexCorrupted = "XX002",
}

/// An error as a client sees it. Every crate's own error turns into this at one place, its `error.rs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// What kind of error.
    pub state: SqlState,
    /// The primary message, in PostgreSQL's words where PostgreSQL has one.
    pub message: String,
    /// More about this very case.
    pub detail: Option<String>,
    /// What the user might do.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1.
    pub position: Option<u32>,
}

impl SqlError {
    /// An error without detail, hint or position.
    pub fn new(state: SqlState, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), detail: None, hint: None, position: None }
    }

    /// What we do not know to answer as PostgreSQL does: `0A000`, naming the thing.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(SqlState::FeatureNotSupported, format!("{what} is not supported by Stegodon yet"))
    }

    /// A broken invariant of ours, `XX000`: reported, never a panic.
    pub fn internal(what: impl fmt::Display) -> Self {
        Self::new(SqlState::InternalError, format!("internal error: {what}"))
    }

    /// Adds a detail.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a position (characters from 1) unless there is one already.
    pub fn at(mut self, position: u32) -> Self {
        self.position.get_or_insert(position);
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.state.code(), self.message)
    }
}

impl std::error::Error for SqlError {}

/// Damage is `XX001`; what the format could hold but we refuse is `0A000`.
impl From<stegodon_format::Error> for SqlError {
    fn from(error: stegodon_format::Error) -> Self {
        use stegodon_format::Error;
        let state = match error {
            Error::Unsupported(what) => return Self::unsupported(what),
            Error::UnsupportedVersion(_) => SqlState::FeatureNotSupported,
            Error::TooLarge { .. } => SqlState::ProgramLimitExceeded,
            _ => SqlState::DataCorrupted,
        };
        Self::new(state, error.to_string())
    }
}

/// The result of everything that can fail towards a client.
pub type SqlResult<T> = Result<T, SqlError>;
