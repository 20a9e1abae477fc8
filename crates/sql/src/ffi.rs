//! The one call into pg_query's C library that its Rust crate does not offer whole: parsing *with* the error's position.
#![allow(unsafe_code, reason = "pg_query drops the cursor position of a syntax error; this is its own call, repeated")]

use std::ffi::{CStr, CString, c_char, c_int};

use pg_query::protobuf::ParseResult;
use prost::Message;

#[repr(C)]
struct PgQueryError {
    message: *mut c_char,
    funcname: *mut c_char,
    filename: *mut c_char,
    lineno: c_int,
    cursorpos: c_int,
    context: *mut c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct PgQueryProtobuf {
    len: usize,
    data: *mut c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct PgQueryProtobufParseResult {
    parse_tree: PgQueryProtobuf,
    stderr_buffer: *mut c_char,
    error: *mut PgQueryError,
}

unsafe extern "C" {
    fn pg_query_parse_protobuf(input: *const c_char) -> PgQueryProtobufParseResult;
    fn pg_query_free_protobuf_parse_result(result: PgQueryProtobufParseResult);
}

/// Why a text was not parsed.
pub enum ParseFailure {
    /// The grammar's error: its message, and its position in characters from 1 (0 for none).
    Syntax { message: String, position: u32 },
    /// The tree could not be decoded.
    Decode(String),
}

/// Parses a text that holds no NUL.
pub fn parse(sql: &CString) -> Result<ParseResult, ParseFailure> {
    // SAFETY: `sql` is a C string that lives until after the call. The result is freed exactly once, below, after its
    // last use; its tree is `len` bytes at `data`, and its error, where there is one, has a C string as message.
    unsafe {
        let result = pg_query_parse_protobuf(sql.as_ptr());
        let parsed = match result.error.as_ref() {
            Some(error) => Err(ParseFailure::Syntax {
                message: CStr::from_ptr(error.message).to_string_lossy().into_owned(),
                position: u32::try_from(error.cursorpos).unwrap_or(0),
            }),
            None if result.parse_tree.data.is_null() => Ok(ParseResult::default()),
            None => {
                let tree = std::slice::from_raw_parts(result.parse_tree.data.cast::<u8>(), result.parse_tree.len);
                ParseResult::decode(tree).map_err(|e| ParseFailure::Decode(e.to_string()))
            }
        };
        pg_query_free_protobuf_parse_result(result);
        parsed
    }
}
