//! An allocator that ends the process at an allocation that no input of a fuzzer's size can justify.

use std::alloc::{GlobalAlloc, Layout, System};

/// The largest allocation that an input may cause, in bytes.
pub const ALLOCATION_BYTES_MAX: usize = 256 << 20;

/// The system's allocator with that bound.
pub struct Bounded;

fn check(size: usize) {
    if size > ALLOCATION_BYTES_MAX {
        eprintln!("an allocation of {size} bytes");
        // The fuzzer catches the signal and keeps the input.
        std::process::abort();
    }
}

// SAFETY: all calls are passed on unchanged.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        check(new_size);
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
