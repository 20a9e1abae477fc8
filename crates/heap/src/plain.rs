//! The quick way through a page: tuples without nulls up to the last column wanted, all of whose columns until then are of
//! fixed length, so that their positions are known.
//!
//! ```text
//!   line pointer ─▸ header: no such null, enough attributes ─▸ start of the values      (once a tuple)
//!   start + a column's position ─▸ value, side by side with its neighbours', appended as one run   (once a column)
//! ```
//!
//! What costs time here is waiting for each tuple's cache line. The loop over tuples is short and the loads in it do not
//! depend on one another, so that the processor has many of them on their way at once. Anything out of the ordinary sends
//! the whole page the careful way ([`crate::walk`]), which also says what is wrong with a damaged one.

use stegodon_format::attr::AttrLayout;
use stegodon_format::heap_tuple::{HEAP_TUPLE_HEADER_SIZE, Infomask, Infomask2, MAX_TUPLE_ATTRIBUTES};
use stegodon_format::ids::OffsetNumber;
use stegodon_format::page::ItemId;
use stegodon_types::column::ColumnBuilder;

use crate::page::HeapPage;

/// Most tuples that a heap page holds (`MaxHeapTuplesPerPage`).
const TUPLES_MAX: usize = 291;

/// Columns at known positions.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    /// By column wanted: where its values start in a tuple's; `None` for a system column.
    positions: Vec<Option<usize>>,
    /// How many attributes a tuple must have, and how many bytes of values.
    natts: u16,
    end: usize,
}

impl Plain {
    /// The columns `wanted` of tuples of this layout: (index in the tuple, which of `columns` it is). `None` where one of them
    /// has no known position.
    pub(crate) fn new(attrs: &[AttrLayout], wanted: &[(usize, usize)], columns: usize) -> Option<Self> {
        let natts = wanted.iter().map(|(index, _)| index + 1).max()?;
        let mut positions = vec![None; columns];
        let mut end = 0_usize;
        for (index, attr) in attrs.iter().enumerate().take(natts) {
            let len = usize::try_from(attr.len).ok().filter(|len| *len > 0)?;
            let start = end.next_multiple_of(usize::from(attr.align));
            for (_, column) in wanted.iter().filter(|(i, _)| *i == index) {
                *positions.get_mut(*column)? = Some(start);
            }
            end = start + len;
        }
        Some(Self { positions, natts: u16::try_from(natts).ok()?, end })
    }

    /// Where column `column`'s values start in a tuple's.
    pub(crate) fn position(&self, column: usize) -> Option<usize> {
        self.positions.get(column).copied().flatten()
    }

    /// Replaces `starts` by where the values of the tuples at `offsets` start in the page. False where a tuple is not plain.
    #[allow(clippy::needless_bitwise_bool, reason = "nine branches a tuple would be guessed one by one")]
    pub(crate) fn starts(&self, page: &HeapPage<'_>, offsets: &[OffsetNumber], starts: &mut Vec<u32>) -> bool {
        const INFOMASK2: usize = 18;
        const NOT_PLAIN: u16 = Infomask::HASOID_OLD | Infomask::MOVED;
        starts.clear();
        let page = page.page();
        let (bytes, pointers) = (page.bytes(), page.line_pointers());
        let (upper, special) = (usize::from(page.upper()), usize::from(page.special_offset()));
        for &offset in offsets {
            let Some(raw) = usize::from(offset.0).checked_sub(1).and_then(|i| pointers.get(i)) else { return false };
            let id = ItemId(u32::from_le_bytes(*raw));
            let (item, len) = (usize::from(id.offset()), usize::from(id.len()));
            let Some(words) = bytes.get(item + INFOMASK2..).and_then(<[u8]>::first_chunk::<5>) else { return false };
            let [natts_low, natts_high, mask_low, mask_high, hoff] = *words;
            let natts = u16::from_le_bytes([natts_low, natts_high]) & Infomask2::NATTS_MASK;
            let mask = u16::from_le_bytes([mask_low, mask_high]);
            let hoff = usize::from(hoff);
            let plain = id.is_normal()
                & (item >= upper)
                & (item + len <= special)
                & (mask & NOT_PLAIN == 0)
                & (natts >= self.natts)
                & (natts <= MAX_TUPLE_ATTRIBUTES)
                & (hoff >= HEAP_TUPLE_HEADER_SIZE)
                & (hoff % 8 == 0)
                & (hoff + self.end <= len);
            if !plain || (mask & Infomask::HASNULL != 0 && !self.not_null(bytes, item, hoff)) {
                return false;
            }
            starts.push((item + hoff) as u32);
        }
        true
    }

    /// Whether a tuple's null bitmap says that it has all attributes that matter. A set bit says so.
    fn not_null(&self, bytes: &[u8], item: usize, hoff: usize) -> bool {
        let (whole, rest) = (usize::from(self.natts / 8), u32::from(self.natts % 8));
        let mask = (1_u8 << rest) - 1;
        let bitmap = bytes.get(item + HEAP_TUPLE_HEADER_SIZE..item + hoff).unwrap_or(&[]);
        let (Some(full), last) = (bitmap.get(..whole), bitmap.get(whole)) else { return false };
        full.iter().all(|byte| *byte == u8::MAX) && (mask == 0 || last.is_some_and(|byte| byte & mask == mask))
    }
}

macro_rules! run {
    ($builder:expr, $bytes:expr, $starts:expr, $position:expr, $zero:expr, $raw:ident => $value:expr) => {{
        let mut values = [$zero; TUPLES_MAX];
        for chunk in $starts.chunks(TUPLES_MAX) {
            for (slot, start) in values.iter_mut().zip(chunk) {
                let Some($raw) = $bytes.get(*start as usize + $position..).and_then(<[u8]>::first_chunk) else {
                    return false;
                };
                *slot = $value;
            }
            $builder.append_slice(values.get(..chunk.len()).unwrap_or(&[]));
        }
        true
    }};
}

/// Appends the values at `position` of each tuple. False where the column's form is not one of numbers; nothing is appended
/// then.
pub(crate) fn append(builder: &mut ColumnBuilder, bytes: &[u8], starts: &[u32], position: usize) -> bool {
    match builder {
        ColumnBuilder::Bool(b) => run!(b, bytes, starts, position, false, raw => u8::from_le_bytes(*raw) != 0),
        ColumnBuilder::Char(b) => run!(b, bytes, starts, position, 0, raw => u8::from_le_bytes(*raw)),
        ColumnBuilder::Int16(b) => run!(b, bytes, starts, position, 0, raw => i16::from_le_bytes(*raw)),
        ColumnBuilder::Int32(b) => run!(b, bytes, starts, position, 0, raw => i32::from_le_bytes(*raw)),
        ColumnBuilder::UInt32(b) => run!(b, bytes, starts, position, 0, raw => u32::from_le_bytes(*raw)),
        ColumnBuilder::Int64(b) => run!(b, bytes, starts, position, 0, raw => i64::from_le_bytes(*raw)),
        ColumnBuilder::UInt64(b) => run!(b, bytes, starts, position, 0, raw => u64::from_le_bytes(*raw)),
        ColumnBuilder::Float32(b) => run!(b, bytes, starts, position, 0.0, raw => f32::from_le_bytes(*raw)),
        ColumnBuilder::Float64(b) => run!(b, bytes, starts, position, 0.0, raw => f64::from_le_bytes(*raw)),
        ColumnBuilder::Fixed(_) | ColumnBuilder::Bytes(_) => false,
    }
}
