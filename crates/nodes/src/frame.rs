//! The bits of a window's frame: `FRAMEOPTION_*` of PostgreSQL's `parsenodes.h`, as grammar and stored views give them.
//!
//! ```
//! use stegodon_nodes::frame;
//! // RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, which is what no frame clause means.
//! assert_eq!(frame::DEFAULTS, frame::RANGE | frame::START_UNBOUNDED_PRECEDING | frame::END_CURRENT_ROW);
//! ```

/// A frame clause was written.
pub const NON_DEFAULT: u32 = 0x1;
/// `RANGE`.
pub const RANGE: u32 = 0x2;
/// `ROWS`.
pub const ROWS: u32 = 0x4;
/// `GROUPS`.
pub const GROUPS: u32 = 0x8;
/// `BETWEEN` was written.
pub const BETWEEN: u32 = 0x10;
/// It starts with the partition.
pub const START_UNBOUNDED_PRECEDING: u32 = 0x20;
/// It ends before the partition: an error of the grammar.
pub const END_UNBOUNDED_PRECEDING: u32 = 0x40;
/// It starts after the partition: an error of the grammar.
pub const START_UNBOUNDED_FOLLOWING: u32 = 0x80;
/// It ends with the partition.
pub const END_UNBOUNDED_FOLLOWING: u32 = 0x100;
/// It starts at the current row (or its first peer).
pub const START_CURRENT_ROW: u32 = 0x200;
/// It ends at the current row (or its last peer).
pub const END_CURRENT_ROW: u32 = 0x400;
/// It starts an offset before the current row.
pub const START_OFFSET_PRECEDING: u32 = 0x800;
/// It ends an offset before the current row.
pub const END_OFFSET_PRECEDING: u32 = 0x1000;
/// It starts an offset after the current row.
pub const START_OFFSET_FOLLOWING: u32 = 0x2000;
/// It ends an offset after the current row.
pub const END_OFFSET_FOLLOWING: u32 = 0x4000;
/// `EXCLUDE CURRENT ROW`.
pub const EXCLUDE_CURRENT_ROW: u32 = 0x8000;
/// `EXCLUDE GROUP`.
pub const EXCLUDE_GROUP: u32 = 0x10000;
/// `EXCLUDE TIES`.
pub const EXCLUDE_TIES: u32 = 0x20000;
/// No frame clause.
pub const DEFAULTS: u32 = RANGE | START_UNBOUNDED_PRECEDING | END_CURRENT_ROW;
