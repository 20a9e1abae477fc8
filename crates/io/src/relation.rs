//! One relation's files: lengths, segments, and reading runs of blocks out of them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use stegodon_format::ids::{BlockNumber, Fork, RelFileLocator};
use stegodon_format::page::{BLCKSZ, Page};

use crate::directory::DataDirectory;
use crate::error::{Errno, Error, Result};
use crate::file_cache::SegmentKey;
use crate::request::{FramePtr, Outcome, RUN_BLOCKS_MAX};

/// The files of one relation. Cheap to clone; opens files as they are needed, through the directory's cache.
#[derive(Clone, Debug)]
pub struct RelationFiles {
    directory: Arc<DataDirectory>,
    locator: RelFileLocator,
}

impl RelationFiles {
    pub(crate) fn new(directory: Arc<DataDirectory>, locator: RelFileLocator) -> Self {
        Self { directory, locator }
    }

    /// What names the files.
    pub fn locator(&self) -> RelFileLocator {
        self.locator
    }

    /// The directory that they lie in.
    pub fn directory(&self) -> &Arc<DataDirectory> {
        &self.directory
    }

    /// The path of a fork's first segment, relative to the data directory: how messages name the relation.
    pub fn path(&self, fork: Fork) -> String {
        self.segment_path(fork, 0)
    }

    fn segment_path(&self, fork: Fork, segment: u32) -> String {
        self.directory.relation_path(self.locator, fork, segment)
    }

    fn segment(&self, fork: Fork, segment: u32) -> Result<Arc<File>> {
        let key = SegmentKey { locator: self.locator, fork, segment };
        let open = || File::open(self.directory.path().join(self.segment_path(fork, segment)));
        self.directory
            .files
            .get(key, open)
            .map_err(|error| Error::Open { path: self.segment_path(fork, segment), errno: Errno::from(&error) })
    }

    fn segment_len_blocks(&self, fork: Fork, segment: u32, file: &File) -> Result<u32> {
        let stat_error =
            |error: io::Error| Error::Stat { path: self.segment_path(fork, segment), errno: Errno::from(&error) };
        // A block that is there only in part does not count, as in PostgreSQL.
        let blocks = file.metadata().map_err(stat_error)?.len() / BLCKSZ as u64;
        if blocks > u64::from(self.directory.segment_blocks()) {
            return Err(Error::SegmentTooBig { path: self.segment_path(fork, segment), blocks });
        }
        Ok(blocks as u32)
    }

    /// Whether the fork exists.
    pub fn exists(&self, fork: Fork) -> Result<bool> {
        match self.segment(fork, 0) {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The fork's length in blocks: full segments up to the first that is not full, which ends the relation whatever
    /// files follow it.
    pub fn nblocks(&self, fork: Fork) -> Result<u32> {
        let full = self.directory.segment_blocks();
        let mut segment = 0u32;
        loop {
            let file = match self.segment(fork, segment) {
                Ok(file) => file,
                Err(error) if error.is_not_found() && segment > 0 => return Ok(segment.saturating_mul(full)),
                Err(error) => return Err(error),
            };
            let blocks = self.segment_len_blocks(fork, segment, &file)?;
            if blocks < full {
                return Ok(segment.saturating_mul(full).saturating_add(blocks));
            }
            segment = segment.saturating_add(1);
            if segment > u32::MAX / full {
                return Ok(u32::MAX);
            }
        }
    }

    /// The fork's length in blocks, 0 where the fork does not exist.
    pub fn nblocks_or_zero(&self, fork: Fork) -> Result<u32> {
        match self.nblocks(fork) {
            Err(error) if error.is_not_found() => Ok(0),
            other => other,
        }
    }

    /// How many blocks can be read from `block` in one system call: up to the segment's end.
    pub fn run_blocks_max(&self, block: BlockNumber) -> u32 {
        let full = self.directory.segment_blocks();
        (full - block.0 % full).min(RUN_BLOCKS_MAX as u32)
    }

    /// Forgets the open files, after the relation's files were replaced or removed.
    pub fn close(&self) {
        self.directory.files.forget(self.locator);
    }

    /// Reads one block on the calling thread, past every cache of ours.
    pub fn read_block(&self, fork: Fork, block: BlockNumber, page: &mut Page) -> Result<()> {
        let frame = FramePtr::of_page(page);
        // SAFETY: the frame is borrowed exclusively for the length of this call.
        let outcome = unsafe { self.read_run(fork, block, &[frame]) };
        outcome.error.map_or(Ok(()), Err)
    }

    /// Reads the run of blocks that starts at `first` into `frames`, one block each, on the calling thread. It may cross
    /// segments. Frames before [`Outcome::blocks`] are filled; the others hold anything.
    ///
    /// # Safety
    /// Each frame must be writable for 8192 bytes, and nobody else may read or write it until this returns.
    pub(crate) unsafe fn read_run(&self, fork: Fork, first: BlockNumber, frames: &[FramePtr]) -> Outcome {
        let full = self.directory.segment_blocks();
        let mut done = 0usize;
        while done < frames.len() {
            let Some(block) = u32::try_from(done).ok().and_then(|done| first.0.checked_add(done)) else {
                return Outcome::failed(done, self.beyond_the_end(fork, first));
            };
            let in_segment = (full - block % full) as usize;
            let part = frames.get(done..).unwrap_or(&[]);
            let part = part.get(..in_segment.min(RUN_BLOCKS_MAX)).unwrap_or(part);
            let file = match self.segment_for(fork, BlockNumber(block)) {
                Ok(file) => file,
                Err(error) => return Outcome::failed(done, error),
            };
            // SAFETY: handed on from the caller.
            let (bytes, errno) = unsafe { read_exact_vectored(&file, u64::from(block % full) * BLCKSZ as u64, part) };
            done += bytes / BLCKSZ;
            if bytes < part.len() * BLCKSZ {
                // As PostgreSQL, which reads the rest of a run again on its own before it complains, and names the relation's
                // first file, not the segment.
                let (first, left) = (block + (bytes / BLCKSZ) as u32, part.len() - bytes / BLCKSZ);
                let (path, last) = (self.path(fork), block + part.len() as u32 - 1);
                let error = match errno {
                    Some(errno) => Error::Read { path, first, last, errno },
                    None => Error::ShortRead { path, first, last, read: 0, wanted: left * BLCKSZ },
                };
                return Outcome::failed(done, error);
            }
        }
        Outcome { blocks: done, error: None }
    }

    fn beyond_the_end(&self, fork: Fork, first: BlockNumber) -> Error {
        Error::ShortRead { path: self.path(fork), first: first.0, last: u32::MAX, read: 0, wanted: BLCKSZ }
    }

    /// The segment that holds `block`. Segments before it must be full, else what is left of the relation in later ones
    /// (after a truncation) would be read as if it were there.
    fn segment_for(&self, fork: Fork, block: BlockNumber) -> Result<Arc<File>> {
        let full = self.directory.segment_blocks();
        let wanted = block.0 / full;
        if wanted > 0 {
            let before = self.segment(fork, wanted - 1)?;
            let blocks = self.segment_len_blocks(fork, wanted - 1, &before)?;
            if blocks < full {
                let path = self.segment_path(fork, wanted);
                return Err(Error::PreviousSegmentShort { path, block: block.0, blocks: u64::from(blocks) });
            }
        }
        self.segment(fork, wanted)
    }
}

/// Fills `frames` from `offset` on; returns the bytes read and the error that stopped it, `None` at the end of the file.
///
/// # Safety
/// Each frame must be writable for 8192 bytes, and nobody else may read or write it until this returns.
unsafe fn read_exact_vectored(file: &File, offset: u64, frames: &[FramePtr]) -> (usize, Option<Errno>) {
    read_exact_with(frames, |vectors, read| {
        let (count, offset) = (vectors.len() as libc::c_int, (offset + read as u64) as libc::off_t);
        // SAFETY: the vectors describe the parts of the caller's frames that are not filled yet, which the caller lets us
        // write; the descriptor is open as long as `file` is borrowed.
        let result = unsafe { libc::preadv(file.as_raw_fd(), vectors.as_ptr(), count, offset) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    })
}

/// Calls `read` with what is left to be filled, and with how much is, until nothing is left, it returns 0 or fails.
fn read_exact_with(
    frames: &[FramePtr],
    mut read_some: impl FnMut(&[libc::iovec], usize) -> io::Result<usize>,
) -> (usize, Option<Errno>) {
    let wanted = frames.len() * BLCKSZ;
    let mut read = 0usize;
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; RUN_BLOCKS_MAX];
    while read < wanted {
        let skip = read % BLCKSZ;
        let mut count = 0usize;
        let rest = frames.iter().skip(read / BLCKSZ);
        for (vector, frame) in vectors.iter_mut().zip(rest) {
            let skip = if count == 0 { skip } else { 0 };
            // The pointer stays inside the frame: skip < BLCKSZ.
            vector.iov_base = frame.as_ptr().wrapping_add(skip).cast();
            vector.iov_len = BLCKSZ - skip;
            count += 1;
        }
        match read_some(vectors.get(..count).unwrap_or(&[]), read) {
            Ok(0) => return (read, None),
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (read, Some(Errno::from(&error))),
        }
    }
    (read, None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

    use std::collections::VecDeque;

    use super::*;

    /// What the system may answer: so many bytes, or an error.
    fn script(results: &[std::result::Result<usize, i32>], blocks: usize) -> (usize, Option<Errno>) {
        let mut pages = vec![Page::zeroed(); blocks];
        let frames: Vec<FramePtr> = pages.iter_mut().map(FramePtr::of_page).collect();
        let start: Vec<usize> = frames.iter().map(|frame| frame.as_ptr() as usize).collect();
        let mut results: VecDeque<_> = results.iter().copied().collect();
        let outcome = read_exact_with(&frames, |vectors, read| {
            let left: usize = vectors.iter().map(|vector| vector.iov_len).sum();
            assert_eq!(left, blocks * BLCKSZ - read, "all that is left is asked for");
            assert_eq!(vectors[0].iov_base as usize, start[read / BLCKSZ] + read % BLCKSZ, "from where it ended");
            results.pop_front().unwrap().map_err(io::Error::from_raw_os_error)
        });
        assert!(results.is_empty(), "nothing is left to ask");
        outcome
    }

    #[test]
    fn reading_goes_on_after_interruptions_and_short_results() {
        let (eintr, eio) = (Err(libc::EINTR), Err(libc::EIO));
        assert_eq!(script(&[Ok(16384)], 2), (16384, None));
        assert_eq!(script(&[eintr, Ok(1), eintr, eintr, Ok(8191), Ok(8190), Ok(2)], 2), (16384, None));
        assert_eq!(script(&[Ok(8200), Ok(0)], 2), (8200, None), "the file's end");
        assert_eq!(script(&[eintr, Ok(8200), eio], 2), (8200, Some(Errno(libc::EIO))));
        assert_eq!(script(&[eio], 1), (0, Some(Errno(libc::EIO))));
    }
}
