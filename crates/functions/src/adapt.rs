//! Adaptors: from a Rust function on values to a kernel over columns.
//!
//! `map1`, `map2`, `map3`, `map4` are strict: a row with a NULL argument is NULL and the function is not called. They
//! compile to one loop per function; nothing is dispatched or allocated per row. `write1` … append a byte string in
//! place. `opt1` … are for functions that see NULLs.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, NullBuffer, NullBufferBuilder, ScalarBuffer};
use stegodon_types::{SqlError, SqlResult};

use crate::column::{ByteBuilder, booleans};
use crate::{Call, Column};

/// A Rust type that a column's values are read as.
pub trait Arg<'a>: Copy {
    /// The column, downcast.
    type Values: Copy;
    /// Downcasts.
    fn values(array: &'a ArrayRef) -> SqlResult<Self::Values>;
    /// The value at a row that is not NULL.
    fn at(values: Self::Values, row: usize) -> Self;
}

fn wrong() -> SqlError {
    SqlError::internal("an argument is not of its layout")
}

macro_rules! primitive {
    ($($native:ty: $arrow:ty,)*) => {$(
        impl<'a> Arg<'a> for $native {
            type Values = &'a [$native];
            fn values(array: &'a ArrayRef) -> SqlResult<Self::Values> {
                Ok(array.as_any().downcast_ref::<PrimitiveArray<$arrow>>().ok_or_else(wrong)?.values())
            }
            #[inline]
            fn at(values: Self::Values, row: usize) -> Self {
                values.get(row).copied().unwrap_or_default()
            }
        }
        impl Ret for $native {
            type Builder = Vec<$native>;
            fn builder(rows: usize) -> Self::Builder {
                Vec::with_capacity(rows)
            }
            #[inline]
            fn push(self, to: &mut Self::Builder) -> bool {
                to.push(self);
                true
            }
            #[inline]
            fn push_null(to: &mut Self::Builder) {
                to.push(Default::default());
            }
            fn finish(from: Self::Builder, nulls: Option<NullBuffer>) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::new(ScalarBuffer::from(from), nulls))
            }
        }
    )*};
}

/// A Rust type that a column is built of.
pub trait Ret: Sized {
    /// The column being built.
    type Builder;
    /// An empty column with room.
    fn builder(rows: usize) -> Self::Builder;
    /// Appends; false where the value is NULL.
    fn push(self, to: &mut Self::Builder) -> bool;
    /// Appends a NULL's place.
    fn push_null(to: &mut Self::Builder);
    /// The column.
    fn finish(from: Self::Builder, nulls: Option<NullBuffer>) -> ArrayRef;
}

primitive! {
    i16: Int16Type,
    i32: Int32Type,
    i64: Int64Type,
    u8: UInt8Type,
    u32: UInt32Type,
    u64: UInt64Type,
    f32: Float32Type,
    f64: Float64Type,
}

impl<'a> Arg<'a> for bool {
    type Values = &'a BooleanArray;
    fn values(array: &'a ArrayRef) -> SqlResult<Self::Values> {
        array.as_any().downcast_ref::<BooleanArray>().ok_or_else(wrong)
    }
    #[inline]
    fn at(values: Self::Values, row: usize) -> Self {
        values.value(row)
    }
}

impl Ret for bool {
    type Builder = BooleanBufferBuilder;
    fn builder(rows: usize) -> Self::Builder {
        BooleanBufferBuilder::new(rows)
    }
    #[inline]
    fn push(self, to: &mut Self::Builder) -> bool {
        to.append(self);
        true
    }
    #[inline]
    fn push_null(to: &mut Self::Builder) {
        to.append(false);
    }
    fn finish(mut from: Self::Builder, nulls: Option<NullBuffer>) -> ArrayRef {
        booleans(from.finish(), nulls)
    }
}

impl<R: Ret> Ret for Option<R> {
    type Builder = R::Builder;
    fn builder(rows: usize) -> Self::Builder {
        R::builder(rows)
    }
    #[inline]
    fn push(self, to: &mut Self::Builder) -> bool {
        if let Some(v) = self {
            v.push(to)
        } else {
            R::push_null(to);
            false
        }
    }
    #[inline]
    fn push_null(to: &mut Self::Builder) {
        R::push_null(to);
    }
    fn finish(from: Self::Builder, nulls: Option<NullBuffer>) -> ArrayRef {
        R::finish(from, nulls)
    }
}

/// A column of byte strings.
#[derive(Clone, Copy)]
pub enum Bytes<'a> {
    /// Of any length.
    Large(&'a LargeBinaryArray),
    /// Of one length.
    Fixed(&'a FixedSizeBinaryArray),
}

impl<'a> Arg<'a> for &'a [u8] {
    type Values = Bytes<'a>;
    fn values(array: &'a ArrayRef) -> SqlResult<Self::Values> {
        let any = array.as_any();
        if let Some(a) = any.downcast_ref::<LargeBinaryArray>() {
            return Ok(Bytes::Large(a));
        }
        any.downcast_ref::<FixedSizeBinaryArray>().map(Bytes::Fixed).ok_or_else(wrong)
    }
    #[inline]
    fn at(values: Self::Values, row: usize) -> Self {
        match values {
            Bytes::Large(a) => a.value(row),
            Bytes::Fixed(a) => a.value(row),
        }
    }
}

/// One argument's values.
pub struct Values<'a, A: Arg<'a>> {
    values: A::Values,
    constant: bool,
}

impl<'a, A: Arg<'a>> Values<'a, A> {
    /// Argument `n` of a call.
    pub fn of(call: &Call<'a>, n: usize) -> SqlResult<Self> {
        let column = argument(call, n)?;
        Ok(Self { values: A::values(column.array())?, constant: column.is_const() })
    }

    /// The value at a row that is not NULL.
    #[inline]
    pub fn at(&self, row: usize) -> A {
        A::at(self.values, if self.constant { 0 } else { row })
    }
}

/// Argument `n` of a call.
pub fn argument<'a>(call: &Call<'a>, n: usize) -> SqlResult<&'a Column> {
    call.args.get(n).ok_or_else(|| SqlError::internal("a function was called with too few arguments"))
}

/// The rows where a strict function is NULL: `Err` where every row is.
pub(crate) enum Strict {
    /// Some rows, or none.
    Rows(Option<NullBuffer>),
    /// All rows.
    All,
}

/// Which rows have a NULL argument.
pub(crate) fn strict_nulls(args: &[Column]) -> Strict {
    let mut nulls: Option<NullBuffer> = None;
    for arg in args {
        match arg {
            Column::Const(a) if a.is_null(0) => return Strict::All,
            Column::Const(_) => {}
            Column::Array(a) => nulls = NullBuffer::union(nulls.as_ref(), a.nulls()),
        }
    }
    Strict::Rows(nulls.filter(|n| n.null_count() > 0))
}

/// The result's shape: constant where every argument is.
pub(crate) fn shape(call: &Call<'_>, array: ArrayRef) -> Column {
    if call.rows == 1 && call.args.iter().all(Column::is_const) { Column::Const(array) } else { Column::Array(array) }
}

#[inline]
fn run<R: Ret>(call: &Call<'_>, mut f: impl FnMut(usize) -> SqlResult<R>) -> SqlResult<Column> {
    let nulls = match strict_nulls(call.args) {
        Strict::All => return Ok(Column::null(call.info.layout)),
        Strict::Rows(nulls) => nulls,
    };
    let mut out = R::builder(call.rows);
    let mut valid = NullBufferBuilder::new(call.rows);
    match &nulls {
        None => {
            for row in 0..call.rows {
                let v = f(row)?;
                valid.append(v.push(&mut out));
            }
        }
        Some(nulls) => {
            for row in 0..call.rows {
                if nulls.is_valid(row) {
                    let v = f(row)?;
                    valid.append(v.push(&mut out));
                } else {
                    R::push_null(&mut out);
                    valid.append_null();
                }
            }
        }
    }
    Ok(shape(call, R::finish(out, valid.finish())))
}

/// A strict function of a row, for kernels that read their arguments themselves.
pub fn map_rows<R: Ret>(call: &Call<'_>, f: impl FnMut(usize) -> SqlResult<R>) -> SqlResult<Column> {
    run(call, f)
}

/// Whether a written value stays, or is NULL.
pub trait Written {
    /// True where it stays.
    fn keep(self) -> bool;
}
impl Written for () {
    #[inline]
    fn keep(self) -> bool {
        true
    }
}
impl Written for bool {
    #[inline]
    fn keep(self) -> bool {
        self
    }
}

#[inline]
fn run_write<W: Written>(call: &Call<'_>, mut f: impl FnMut(usize, &mut Vec<u8>) -> SqlResult<W>) -> SqlResult<Column> {
    let nulls = match strict_nulls(call.args) {
        Strict::All => return Ok(Column::null(call.info.layout)),
        Strict::Rows(nulls) => nulls,
    };
    let mut out = ByteBuilder::new(call.info.layout, call.rows, 0);
    for row in 0..call.rows {
        if nulls.as_ref().is_none_or(|n| n.is_valid(row)) && f(row, out.buffer())?.keep() {
            out.end_value();
        } else {
            out.end_null();
        }
    }
    Ok(shape(call, out.finish()?))
}

/// A strict function of any number of arguments, which reads them by row and appends a byte string.
pub(crate) fn rows_write<W: Written>(
    call: &Call<'_>,
    f: impl FnMut(usize, &mut Vec<u8>) -> SqlResult<W>,
) -> SqlResult<Column> {
    run_write(call, f)
}

macro_rules! maps {
    ($($map:ident $write:ident $opt:ident $opt_write:ident ($($a:ident $v:ident $n:tt),*);)*) => {$(
        /// A strict function of this many arguments.
        #[allow(clippy::too_many_arguments)]
        pub fn $map<'a, $($a: Arg<'a>,)* R: Ret>(call: &Call<'a>, f: impl Fn($($a),*) -> SqlResult<R>) -> SqlResult<Column> {
            if let Strict::All = strict_nulls(call.args) {
                return Ok(Column::null(call.info.layout));
            }
            $(let $v = Values::<$a>::of(call, $n)?;)*
            run(call, |_row| f($($v.at(_row)),*))
        }

        /// A strict function of this many arguments that appends a byte string.
        pub fn $write<'a, $($a: Arg<'a>,)* W: Written>(
            call: &Call<'a>,
            f: impl Fn($($a,)* &mut Vec<u8>) -> SqlResult<W>,
        ) -> SqlResult<Column> {
            if let Strict::All = strict_nulls(call.args) {
                return Ok(Column::null(call.info.layout));
            }
            $(let $v = Values::<$a>::of(call, $n)?;)*
            run_write(call, |_row, out| f($($v.at(_row),)* out))
        }

        /// A function of this many arguments that sees NULLs.
        pub fn $opt<'a, $($a: Arg<'a>,)* R: Ret>(
            call: &Call<'a>,
            f: impl Fn($(Option<$a>),*) -> SqlResult<R>,
        ) -> SqlResult<Column> {
            $(let $v = Values::<$a>::of(call, $n)?;)*
            let mut out = R::builder(call.rows);
            let mut valid = NullBufferBuilder::new(call.rows);
            for _row in 0..call.rows {
                let v = f($((!argument(call, $n)?.is_null(_row)).then(|| $v.at(_row))),*)?;
                valid.append(v.push(&mut out));
            }
            Ok(shape(call, R::finish(out, valid.finish())))
        }

        /// A function of this many arguments that sees NULLs and appends a byte string; false for NULL.
        pub fn $opt_write<'a, $($a: Arg<'a>,)* W: Written>(
            call: &Call<'a>,
            f: impl Fn($(Option<$a>,)* &mut Vec<u8>) -> SqlResult<W>,
        ) -> SqlResult<Column> {
            $(let $v = Values::<$a>::of(call, $n)?;)*
            let mut out = ByteBuilder::new(call.info.layout, call.rows, 0);
            for _row in 0..call.rows {
                let keep = f($((!argument(call, $n)?.is_null(_row)).then(|| $v.at(_row)),)* out.buffer())?;
                if keep.keep() {
                    out.end_value();
                } else {
                    out.end_null();
                }
            }
            Ok(shape(call, out.finish()?))
        }
    )*};
}

maps! {
    map1 write1 opt1 opt_write1 (A a 0);
    map2 write2 opt2 opt_write2 (A a 0, B b 1);
    map3 write3 opt3 opt_write3 (A a 0, B b 1, C c 2);
    map4 write4 opt4 opt_write4 (A a 0, B b 1, C c 2, D d 3);
    map5 write5 opt5 opt_write5 (A a 0, B b 1, C c 2, D d 3, E e 4);
    map6 write6 opt6 opt_write6 (A a 0, B b 1, C c 2, D d 3, E e 4, F g 5);
}

/// A comparison of two numbers, packed into bits. Computed under NULLs too, where it is masked.
#[inline]
pub fn compare2<'a, A, B>(call: &Call<'a>, f: impl Fn(A, B) -> bool) -> SqlResult<Column>
where
    A: Arg<'a>,
    B: Arg<'a>,
{
    let nulls = match strict_nulls(call.args) {
        Strict::All => return Ok(Column::null(call.info.layout)),
        Strict::Rows(nulls) => nulls,
    };
    let (left, right) = (argument(call, 0)?, argument(call, 1)?);
    let (a, b) = (A::values(left.array())?, B::values(right.array())?);
    let values = match (left.is_const(), right.is_const()) {
        (false, false) => BooleanBuffer::collect_bool(call.rows, |i| f(A::at(a, i), B::at(b, i))),
        (false, true) => {
            let b = B::at(b, 0);
            BooleanBuffer::collect_bool(call.rows, |i| f(A::at(a, i), b))
        }
        (true, false) => {
            let a = A::at(a, 0);
            BooleanBuffer::collect_bool(call.rows, |i| f(a, B::at(b, i)))
        }
        (true, true) => BooleanBuffer::collect_bool(1, |_| f(A::at(a, 0), B::at(b, 0))),
    };
    let array = booleans(values, nulls);
    Ok(if left.is_const() && right.is_const() { Column::Const(array) } else { Column::Array(array) })
}

/// Arithmetic that can overflow: `f` gives the wrapped value and whether it overflowed. One branch-free loop; where any
/// row overflowed, a second look finds whether a row that is not NULL did.
#[inline]
pub fn overflowing2<'a, A, B, R>(
    call: &Call<'a>,
    f: impl Fn(A, B) -> (R::Native, bool),
    error: fn() -> SqlError,
) -> SqlResult<Column>
where
    A: Arg<'a>,
    B: Arg<'a>,
    R: ArrowPrimitiveType,
    R::Native: ArrowNativeType,
{
    let nulls = match strict_nulls(call.args) {
        Strict::All => return Ok(Column::null(call.info.layout)),
        Strict::Rows(nulls) => nulls,
    };
    let (left, right) = (argument(call, 0)?, argument(call, 1)?);
    let (a, b) = (A::values(left.array())?, B::values(right.array())?);
    let mut overflowed = false;
    let mut out = |r: (R::Native, bool)| {
        overflowed |= r.1;
        r.0
    };
    let values: Vec<R::Native> = match (left.is_const(), right.is_const()) {
        (false, false) => (0..call.rows).map(|i| out(f(A::at(a, i), B::at(b, i)))).collect(),
        (false, true) => {
            let b = B::at(b, 0);
            (0..call.rows).map(|i| out(f(A::at(a, i), b))).collect()
        }
        (true, false) => {
            let a = A::at(a, 0);
            (0..call.rows).map(|i| out(f(a, B::at(b, i)))).collect()
        }
        (true, true) => vec![out(f(A::at(a, 0), B::at(b, 0)))],
    };
    if overflowed {
        let (va, vb) = (Values::<A>::of(call, 0)?, Values::<B>::of(call, 1)?);
        for row in 0..values.len() {
            if nulls.as_ref().is_none_or(|n| n.is_valid(row)) && f(va.at(row), vb.at(row)).1 {
                return Err(error());
            }
        }
    }
    let array: ArrayRef = Arc::new(PrimitiveArray::<R>::new(ScalarBuffer::from(values), nulls));
    Ok(if left.is_const() && right.is_const() { Column::Const(array) } else { Column::Array(array) })
}
