//! Tuples into columns.
//!
//! ```text
//!   per tuple:   walk once, up to the last column wanted, and note where each value lies on the page (walk.rs)
//!   per column:  choose the loop for its layout once, then append the page's values in that loop
//! ```
//!
//! No allocation and no choice by type happens per tuple. (A compressed value is copied off its page.)

use arrow_array::builder::LargeBinaryBuilder;
use stegodon_format::heap_tuple::HeapTupleRef;
use stegodon_format::ids::{AttrNumber, OffsetNumber, Tid};
use stegodon_format::varlena::{VARHDRSZ, Varlena};
use stegodon_types::column::ColumnBuilder;
use stegodon_types::{Datum, Layout, ValueRef};

use crate::columns::{Columns, Packed, Toasted};
use crate::desc::TupleDesc;
use crate::error::{Error, Result};
use crate::page::HeapPage;
use crate::plain::{self, Plain};
use crate::walk::{Place, Walk};

/// The columns that every table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemColumn {
    /// Where the tuple lies.
    Ctid,
    /// Who inserted it, as stored, also where it is frozen.
    Xmin,
    /// By which command.
    Cmin,
    /// Who deleted or locked it, as stored.
    Xmax,
    /// By which command.
    Cmax,
    /// The table.
    Tableoid,
}

impl SystemColumn {
    /// The system column with this number.
    pub const fn from_number(number: AttrNumber) -> Option<Self> {
        match number.0 {
            -1 => Some(Self::Ctid),
            -2 => Some(Self::Xmin),
            -3 => Some(Self::Cmin),
            -4 => Some(Self::Xmax),
            -5 => Some(Self::Cmax),
            -6 => Some(Self::Tableoid),
            _ => None,
        }
    }

    /// The form of its values.
    pub const fn layout(self) -> Layout {
        match self {
            Self::Ctid => Layout::Fixed(6),
            _ => Layout::UInt32,
        }
    }
}

#[derive(Clone, Debug)]
enum Wanted {
    /// A stored column: its index, its form, and what older tuples have.
    Stored {
        index: usize,
        layout: Layout,
        missing: Option<Datum>,
    },
    System(SystemColumn),
    /// A dropped column: NULL.
    Null(Layout),
}

/// Reads given columns of a relation's tuples. Made once per scan.
#[derive(Clone, Debug)]
pub struct Deformer {
    desc: TupleDesc,
    wanted: Vec<Wanted>,
    walk: Walk,
    /// Where all stored columns wanted are numbers at known positions.
    plain: Option<Plain>,
}

impl Deformer {
    /// A reader of the columns `wanted`, by number; negative numbers are system columns.
    pub fn new(desc: &TupleDesc, wanted: &[AttrNumber]) -> Result<Self> {
        let wanted: Vec<Wanted> = wanted.iter().map(|&number| want(desc, number)).collect::<Result<_>>()?;
        let stored = wanted.iter().enumerate().filter_map(|(at, wanted)| match wanted {
            Wanted::Stored { index, .. } => Some((*index, at)),
            Wanted::System(_) | Wanted::Null(_) => None,
        });
        let (attrs, stored) = (desc.layout().attrs(), stored.collect::<Vec<_>>());
        let numbers = wanted.iter().all(|w| match w {
            Wanted::Stored { layout, .. } => !matches!(layout, Layout::Bytes | Layout::Name | Layout::Fixed(_)),
            Wanted::System(_) | Wanted::Null(_) => true,
        });
        let plain = if numbers { Plain::new(attrs, &stored, wanted.len()) } else { None };
        let walk = Walk::new(attrs, stored, wanted.len());
        Ok(Self { desc: desc.clone(), wanted, walk, plain })
    }

    /// The relation's columns.
    pub fn desc(&self) -> &TupleDesc {
        &self.desc
    }

    /// The forms of the columns wanted, in that order.
    pub fn layouts(&self) -> impl Iterator<Item = Layout> + '_ {
        self.wanted.iter().map(|wanted| match wanted {
            Wanted::Stored { layout, .. } | Wanted::Null(layout) => *layout,
            Wanted::System(column) => column.layout(),
        })
    }

    /// Whether it reads no column.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Appends one row for each of the page's tuples at `offsets`. After an error the columns must not be used.
    pub fn deform(&self, page: &HeapPage<'_>, offsets: &[OffsetNumber], columns: &mut Columns) -> Result<()> {
        if columns.builders.len() != self.wanted.len() {
            return Err(Error::Internal("columns of another deformer"));
        }
        if self.wanted.is_empty() {
            columns.rows += offsets.len();
            return Ok(());
        }
        let bytes: &[u8] = page.page().bytes();
        let plain = self.plain.as_ref().filter(|plain| plain.starts(page, offsets, &mut columns.starts));
        if plain.is_none() {
            self.walk.find(page, offsets, &mut columns.places)?;
        }
        let Columns { builders, rows, toasted, packed, places, starts, .. } = columns;
        for (column, (wanted, builder)) in self.wanted.iter().zip(builders.iter_mut()).enumerate() {
            match wanted {
                Wanted::Null(_) => offsets.iter().for_each(|_| builder.append_null()),
                Wanted::System(system) => self.append_system(*system, page, offsets, builder)?,
                Wanted::Stored { layout, missing, .. } => {
                    if let Some(position) = plain.and_then(|plain| plain.position(column)) {
                        if plain::append(builder, bytes, starts, position) {
                            continue;
                        }
                        return Err(Error::Internal("a plain column is no number"));
                    }
                    let places = places.get(column * offsets.len()..).unwrap_or(&[]);
                    let places = places.get(..offsets.len()).unwrap_or(places);
                    let batch = Batch { page, offsets, bytes, places, missing: missing.as_ref() };
                    batch.append(*layout, builder, &mut Later { row: *rows, column, toasted, packed })?;
                }
            }
        }
        *rows += offsets.len();
        Ok(())
    }

    fn append_system(
        &self,
        column: SystemColumn,
        page: &HeapPage<'_>,
        offsets: &[OffsetNumber],
        builder: &mut ColumnBuilder,
    ) -> Result<()> {
        match (column, builder) {
            (SystemColumn::Ctid, ColumnBuilder::Fixed(builder)) => {
                for &offset in offsets {
                    let tid = Tid::new(page.block(), offset).to_bytes();
                    builder.append_value(tid).map_err(|_| Error::Internal("ctid in a column of another size"))?;
                }
                Ok(())
            }
            (SystemColumn::Tableoid, ColumnBuilder::UInt32(builder)) => {
                builder.append_value_n(self.desc.oid().0, offsets.len());
                Ok(())
            }
            (SystemColumn::Xmin, ColumnBuilder::UInt32(builder)) => {
                append_words(page, offsets, builder, |tuple| tuple.raw_xmin().0)
            }
            (SystemColumn::Xmax, ColumnBuilder::UInt32(builder)) => {
                append_words(page, offsets, builder, |tuple| tuple.raw_xmax().0)
            }
            (SystemColumn::Cmin | SystemColumn::Cmax, ColumnBuilder::UInt32(builder)) => {
                append_words(page, offsets, builder, |tuple| tuple.raw_cid().0)
            }
            _ => Err(Error::Internal("a system column in a column of another layout")),
        }
    }
}

fn append_words(
    page: &HeapPage<'_>,
    offsets: &[OffsetNumber],
    builder: &mut arrow_array::builder::UInt32Builder,
    word: impl Fn(HeapTupleRef<'_>) -> u32,
) -> Result<()> {
    for &offset in offsets {
        builder.append_value(word(page.tuple(offset)?));
    }
    Ok(())
}

fn want(desc: &TupleDesc, number: AttrNumber) -> Result<Wanted> {
    if number.0 <= 0 {
        let no_such = Error::Internal("a whole-row reference or an unknown system column is no stored column");
        return SystemColumn::from_number(number).map(Wanted::System).ok_or(no_such);
    }
    let index = number.0 as usize - 1;
    let attr = desc.attrs().get(index).ok_or(Error::Internal("a column number beyond the relation's last"))?;
    if attr.dropped {
        return Ok(Wanted::Null(attr.layout.unwrap_or(Layout::Bytes)));
    }
    match attr.layout {
        Some(layout) => Ok(Wanted::Stored { index, layout, missing: attr.missing.clone() }),
        None => Err(Error::UnsupportedColumn { column: attr.name.clone(), type_oid: attr.type_oid.0 }),
    }
}

/// Where values go that are completed later, and of which rows and column they are.
struct Later<'a> {
    /// The batch's row that the page's first row is.
    row: usize,
    column: usize,
    toasted: &'a mut Vec<Toasted>,
    packed: &'a mut Vec<Packed>,
}

/// The values of one column on one page.
struct Batch<'a> {
    page: &'a HeapPage<'a>,
    offsets: &'a [OffsetNumber],
    bytes: &'a [u8],
    places: &'a [Place],
    missing: Option<&'a Datum>,
}

macro_rules! fixed {
    ($batch:expr, $builder:expr, $missing:ident, $raw:ident => $value:expr) => {{
        let missing = match $batch.missing {
            None => None,
            Some(Datum::$missing(value)) => Some(*value),
            Some(_) => return Err(Error::Internal("a missing value is not of its column's layout")),
        };
        for place in $batch.places {
            match *place {
                Place::NULL => $builder.append_null(),
                Place::MISSING => $builder.append_option(missing),
                place => {
                    let Some($raw) = $batch.bytes.get(place.start()..).and_then(<[u8]>::first_chunk) else {
                        return Err(Error::Internal("a value beyond its page"));
                    };
                    $builder.append_value($value);
                }
            }
        }
    }};
}

impl Batch<'_> {
    fn append(&self, layout: Layout, builder: &mut ColumnBuilder, later: &mut Later<'_>) -> Result<()> {
        match builder {
            ColumnBuilder::Bool(b) => fixed!(self, b, Bool, raw => u8::from_le_bytes(*raw) != 0),
            ColumnBuilder::Char(b) => fixed!(self, b, Char, raw => u8::from_le_bytes(*raw)),
            ColumnBuilder::Int16(b) => fixed!(self, b, Int16, raw => i16::from_le_bytes(*raw)),
            ColumnBuilder::Int32(b) => fixed!(self, b, Int32, raw => i32::from_le_bytes(*raw)),
            ColumnBuilder::UInt32(b) => fixed!(self, b, UInt32, raw => u32::from_le_bytes(*raw)),
            ColumnBuilder::Int64(b) => fixed!(self, b, Int64, raw => i64::from_le_bytes(*raw)),
            ColumnBuilder::UInt64(b) => fixed!(self, b, UInt64, raw => u64::from_le_bytes(*raw)),
            ColumnBuilder::Float32(b) => fixed!(self, b, Float32, raw => f32::from_le_bytes(*raw)),
            ColumnBuilder::Float64(b) => fixed!(self, b, Float64, raw => f64::from_le_bytes(*raw)),
            ColumnBuilder::Fixed(b) => {
                let missing = self.missing_bytes()?;
                let wrong = |_| Error::Internal("a value is not of its column's length");
                for place in self.places {
                    match self.value(*place, missing)? {
                        Some(value) => b.append_value(value).map_err(wrong)?,
                        None => b.append_null(),
                    }
                }
            }
            ColumnBuilder::Bytes(b) if layout == Layout::Name => {
                let missing = self.missing_bytes()?;
                for place in self.places {
                    b.append_option(self.value(*place, missing)?.map(until_nul));
                }
            }
            ColumnBuilder::Bytes(b) => self.append_varlena(b, later)?,
        }
        Ok(())
    }

    fn append_varlena(&self, builder: &mut LargeBinaryBuilder, later: &mut Later<'_>) -> Result<()> {
        let missing = self.missing_bytes()?;
        for (at, place) in self.places.iter().enumerate() {
            let stored = match *place {
                Place::NULL => {
                    builder.append_null();
                    continue;
                }
                Place::MISSING => {
                    builder.append_option(missing);
                    continue;
                }
                place => self.value(place, None)?.unwrap_or(&[]),
            };
            // The two plain forms at once: the walk has taken the length from the header, so it is right.
            match stored {
                [first, payload @ ..] if first & 1 == 1 && *first != 1 => {
                    builder.append_value(payload);
                    continue;
                }
                [first, _, _, _, payload @ ..] if first.trailing_zeros() >= 2 => {
                    builder.append_value(payload);
                    continue;
                }
                _ => {}
            }
            let offset = self.offsets.get(at).copied().unwrap_or_default();
            let (row, column) = (later.row + at, later.column);
            // An empty value stands for one that is completed later.
            match Varlena::parse_exact(stored).map_err(|why| self.page.bad_tuple(offset, why))? {
                Varlena::Inline(payload) => builder.append_value(payload),
                Varlena::Compressed(_) => {
                    builder.append_value([]);
                    let stored = stored.get(VARHDRSZ..).unwrap_or(&[]).into();
                    later.packed.push(Packed { row, column, tid: Tid::new(self.page.block(), offset), stored });
                }
                Varlena::External(pointer) => {
                    builder.append_value([]);
                    later.toasted.push(Toasted { row, column, pointer });
                }
            }
        }
        Ok(())
    }

    fn missing_bytes(&self) -> Result<Option<&[u8]>> {
        match self.missing.map(Datum::as_ref) {
            None => Ok(None),
            Some(ValueRef::Bytes(bytes)) => Ok(Some(bytes)),
            Some(_) => Err(Error::Internal("a missing value is not of its column's layout")),
        }
    }

    fn value<'v>(&'v self, place: Place, missing: Option<&'v [u8]>) -> Result<Option<&'v [u8]>> {
        match place {
            Place::NULL => Ok(None),
            Place::MISSING => Ok(missing),
            place => {
                let value = self.bytes.get(place.start()..place.start() + place.len());
                value.map(Some).ok_or(Error::Internal("a value beyond its page"))
            }
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(bytes)
}
