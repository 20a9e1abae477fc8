//! The pool's memory: one mapping, aligned to pages of the machine, touched only where frames are used.

use std::ptr::NonNull;

use stegodon_format::page::BLCKSZ;

use crate::error::{Error, Result};

pub(crate) struct FrameMemory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; who may touch which frame when is the pool's protocol.
unsafe impl Send for FrameMemory {}
// SAFETY: as above; `FrameMemory` itself hands out addresses only.
unsafe impl Sync for FrameMemory {}

impl FrameMemory {
    pub(crate) fn new(frames: usize) -> Result<Self> {
        let bytes = frames.checked_mul(BLCKSZ).filter(|&bytes| bytes > 0).ok_or(Error::Memory { bytes: usize::MAX })?;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use. It is not
        // `alloc_zeroed` because that writes to every page where the alignment is more than malloc's own.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast::<libc::c_void>() != libc::MAP_FAILED => Ok(Self { base, bytes }),
            _ => Err(Error::Memory { bytes }),
        }
    }

    /// The address of a frame; 4096-aligned, because 8192 divides every frame's offset and the mapping is.
    pub(crate) fn frame(&self, frame: u32) -> NonNull<u8> {
        let offset = frame as usize * BLCKSZ;
        assert!(offset < self.bytes, "frame {frame} lies within the pool");
        // SAFETY: the offset was just checked to lie within the mapping.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for FrameMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody uses it: pins and reads in flight hold the pool alive.
        let result = unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert_eq!(result, 0, "the pool's mapping can be unmapped");
    }
}
