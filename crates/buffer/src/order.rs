//! Checks of the lock order in debug builds; nothing in release builds.
//!
//! ```text
//!   content latch  ──▸  partition of the table  ──▸  a frame's list of waiters
//! ```
//!
//! A thread takes locks only in this direction: it may hold latches while it asks for another page, and it never latches,
//! nor takes a second partition, while it holds a partition. It latches a frame at most once. Among the latches of several
//! frames the order is the access method's (nbtree: left to right, child to parent).

#[cfg(debug_assertions)]
mod checked {
    use std::cell::{Cell, RefCell};

    thread_local! {
        static LATCHES: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
        static PARTITIONS: Cell<u32> = const { Cell::new(0) };
    }

    /// A latch of this thread, for as long as it is held.
    pub(crate) struct Latched(usize);

    impl Latched {
        pub(crate) fn new(frame: usize) -> Self {
            PARTITIONS.with(|n| assert_eq!(n.get(), 0, "no latch is taken while a partition is locked"));
            LATCHES.with_borrow_mut(|held| {
                assert!(!held.contains(&frame), "a thread latches a frame at most once");
                held.push(frame);
            });
            Self(frame)
        }
    }

    impl Drop for Latched {
        fn drop(&mut self) {
            LATCHES.with_borrow_mut(|held| {
                if let Some(at) = held.iter().rposition(|&frame| frame == self.0) {
                    held.swap_remove(at);
                }
            });
        }
    }

    /// A partition lock of this thread, for as long as it is held.
    pub(crate) struct Partitioned(());

    impl Partitioned {
        pub(crate) fn new() -> Self {
            PARTITIONS.with(|n| {
                assert_eq!(n.get(), 0, "a thread locks one partition at a time");
                n.set(1);
            });
            Self(())
        }
    }

    impl Drop for Partitioned {
        fn drop(&mut self) {
            PARTITIONS.with(|n| n.set(0));
        }
    }
}

#[cfg(not(debug_assertions))]
mod checked {
    pub(crate) struct Latched;

    impl Latched {
        pub(crate) fn new(_frame: usize) -> Self {
            Self
        }
    }

    pub(crate) struct Partitioned;

    impl Partitioned {
        pub(crate) fn new() -> Self {
            Self
        }
    }
}

pub(crate) use checked::{Latched, Partitioned};
