//! A hit neither allocates nor waits.
#![allow(clippy::unwrap_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Fixture, MAIN, pool};
use stegodon_format::ids::BlockNumber;
use stegodon_io::SyncMethod;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_hit_does_not_allocate() {
    let fixture = Fixture::new();
    let relation = fixture.relation(1, 8);
    let pool = pool(16, SyncMethod);
    let pass = || {
        for block in 0..8 {
            let page = pool.read(&relation, MAIN, BlockNumber(block)).wait().unwrap();
            assert_eq!(page.latch_shared().view().lower(), 24);
        }
    };
    pass();
    pass();
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    pass();
    assert_eq!(ALLOCATIONS.load(Ordering::SeqCst), before);
}
