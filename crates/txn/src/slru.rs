//! One directory of fixed-size entries, in memory as far as it was asked for.
//!
//! ```text
//!   groups ──▸ [ ○ ○ ● ○ … ]            one per 256 segments
//!                    │
//!                    ▼
//!                  [ ○ ● ○ ● … ]        one per segment: its bytes, read whole at first use (at most 256 KiB)
//! ```
//!
//! What is filled stays, so a page that is in memory is found without a lock. Right for a directory that nobody writes;
//! a live one will replace the whole.

use std::sync::{Arc, OnceLock};

use stegodon_format::page::BLCKSZ;
use stegodon_format::slru;
use stegodon_io::DataDirectory;

use crate::error::{Error, Result};

const SEGMENTS_PER_GROUP: usize = 256;

type Segment = OnceLock<Box<[u8]>>;
type Group = OnceLock<Box<[Segment]>>;

/// The pages of one such directory.
pub struct Slru {
    data_directory: Arc<DataDirectory>,
    directory: &'static str,
    groups: Box<[Group]>,
}

impl Slru {
    /// `directory` of the data directory, with pages numbered up to `last_page`.
    pub fn new(data_directory: Arc<DataDirectory>, directory: &'static str, last_page: u32) -> Self {
        let segments = (last_page / slru::PAGES_PER_SEGMENT) as usize + 1;
        let groups = (0..segments.div_ceil(SEGMENTS_PER_GROUP)).map(|_| Group::new()).collect();
        Self { data_directory, directory, groups }
    }

    /// A page. `number` is the transaction or multixact that it is wanted for, for messages.
    pub fn page(&self, page: u32, number: u32) -> Result<&[u8; BLCKSZ]> {
        let segment_number = (page / slru::PAGES_PER_SEGMENT) as usize;
        let Some(group) = self.groups.get(segment_number / SEGMENTS_PER_GROUP) else {
            return Err(self.missing(page, number, "the page cannot exist."));
        };
        let group = group.get_or_init(|| (0..SEGMENTS_PER_GROUP).map(|_| Segment::new()).collect());
        let Some(cell) = group.get(segment_number % SEGMENTS_PER_GROUP) else {
            return Err(self.missing(page, number, "the page cannot exist."));
        };
        let segment = if let Some(segment) = cell.get() {
            segment
        } else {
            let bytes = self.read(page, number)?;
            // Another thread may have been first: its bytes are the same.
            cell.get_or_init(|| bytes)
        };
        let (pages, _) = segment.as_chunks::<BLCKSZ>();
        match pages.get((page % slru::PAGES_PER_SEGMENT) as usize) {
            Some(bytes) => Ok(bytes),
            None => Err(self.short(page, number)),
        }
    }

    fn path(&self, page: u32) -> String {
        format!("{}/{}", self.directory, slru::segment_name(page))
    }

    #[cold]
    fn read(&self, page: u32, number: u32) -> Result<Box<[u8]>> {
        match self.data_directory.read_file(&self.path(page)) {
            Ok(mut bytes) => {
                bytes.truncate(slru::SEGMENT_SIZE);
                Ok(bytes.into())
            }
            Err(stegodon_io::Error::Open { path, errno }) => Err(Error::NoStatus {
                number,
                detail: format!("Could not open file \"{path}\": {errno}."),
                missing: errno.0 == NO_SUCH_FILE,
            }),
            Err(error) => Err(error.into()),
        }
    }

    #[cold]
    fn short(&self, page: u32, number: u32) -> Error {
        let (path, offset) = (self.path(page), slru::offset_in_segment(page));
        let detail = format!("Could not read from file \"{path}\" at offset {offset}: read too few bytes.");
        Error::NoStatus { number, detail, missing: false }
    }

    #[cold]
    fn missing(&self, page: u32, number: u32, why: &str) -> Error {
        let detail = format!("Could not open file \"{}\": {why}", self.path(page));
        Error::NoStatus { number, detail, missing: true }
    }
}

/// `ENOENT`, the same on every Unix.
const NO_SUCH_FILE: i32 = 2;
