//! The pool's memory: one mapping, aligned to pages of the machine, touched only where frames are used.

use std::ptr::NonNull;

use stegodon_format::page::BLCKSZ;

use crate::error::{Error, Result};

/// What a huge page of the machine holds. In small ones, a scan that finds every page in the pool spends a third of its time
/// looking up addresses.
const HUGE_PAGE: usize = 2 << 20;

pub(crate) struct FrameMemory {
    /// The first frame.
    base: NonNull<u8>,
    bytes: usize,
    /// What was mapped: it begins before the first frame where that had to be aligned.
    mapping: NonNull<u8>,
    mapped_bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; who may touch which frame when is the pool's protocol.
unsafe impl Send for FrameMemory {}
// SAFETY: as above; `FrameMemory` itself hands out addresses only.
unsafe impl Sync for FrameMemory {}

impl FrameMemory {
    /// Memory for `frames` frames, in huge pages, and behind them for `reserve` frames in small ones.
    pub(crate) fn new(frames: usize, reserve: usize) -> Result<Self> {
        let too_much = Error::Memory { bytes: usize::MAX };
        let bytes = frames.checked_add(reserve).and_then(|all| all.checked_mul(BLCKSZ)).filter(|&bytes| bytes > 0);
        let bytes = bytes.ok_or(too_much)?;
        // A small pool must not cost more than its size: whole huge pages only.
        let huge_bytes = frames * BLCKSZ / HUGE_PAGE * HUGE_PAGE;
        let slack = if huge_bytes > 0 { HUGE_PAGE } else { 0 };
        let mapped_bytes = bytes.checked_add(slack).ok_or(Error::Memory { bytes })?;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use. It is not
        // `alloc_zeroed` because that writes to every page where the alignment is more than malloc's own.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let mapping = match NonNull::new(mapping.cast::<u8>()) {
            Some(mapping) if mapping.as_ptr().cast::<libc::c_void>() != libc::MAP_FAILED => mapping,
            _ => return Err(Error::Memory { bytes }),
        };
        let lead = if slack > 0 { mapping.as_ptr().align_offset(HUGE_PAGE).min(slack) } else { 0 };
        // SAFETY: the lead is at most the slack that was mapped on top of the frames.
        let base = unsafe { mapping.add(lead) };
        if slack > 0 {
            // SAFETY: advice about a range that was just mapped. Where the kernel does not take it, nothing changes.
            unsafe { libc::madvise(base.as_ptr().cast(), huge_bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(Self { base, bytes, mapping, mapped_bytes })
    }

    /// The address of a frame; 4096-aligned, because 8192 divides every frame's offset and the mapping is.
    pub(crate) fn frame(&self, frame: u32) -> NonNull<u8> {
        let offset = frame as usize * BLCKSZ;
        assert!(offset < self.bytes, "frame {frame} lies within the pool");
        // SAFETY: the offset was just checked to lie within the mapping.
        unsafe { self.base.add(offset) }
    }
}

impl FrameMemory {
    /// Asks for the cache lines of a frame that lie in `lines`, bytes from its start.
    pub(crate) fn prefetch(&self, frame: u32, lines: std::ops::Range<usize>) {
        const LINE: usize = 64;
        debug_assert!(lines.end <= BLCKSZ, "a frame's lines");
        #[cfg(target_arch = "x86_64")]
        {
            let frame = self.frame(frame).as_ptr();
            for at in (lines.start / LINE * LINE..lines.end.min(BLCKSZ)).step_by(LINE) {
                // SAFETY: a prefetch reads nothing as far as the program can tell and cannot fault; the address lies within
                // the frame.
                unsafe {
                    std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(frame.add(at).cast());
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (frame, lines, LINE);
    }
}

impl Drop for FrameMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody uses it: pins and reads in flight hold the pool alive.
        let result = unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped_bytes) };
        debug_assert_eq!(result, 0, "the pool's mapping can be unmapped");
    }
}
