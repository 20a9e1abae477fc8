//! Requests are carried out, and end exactly once, under every method.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::sync::Arc;
use std::sync::mpsc;

use common::{Fixture, SEGMENT_BYTES, locator};
use stegodon_format::ids::{BlockNumber, Fork};
use stegodon_format::page::Page;
use stegodon_io::fault::{Fault, FaultMethod, HeldMethod};
use stegodon_io::{Error, FramePtr, IoMethod, Outcome, ReadRequest, RelationFiles, SyncMethod, WorkerMethod};

/// Submits one request into pages of its own and waits for its end.
fn read(method: &dyn IoMethod, relation: &RelationFiles, first: u32, blocks: usize) -> (Outcome, Vec<Page>) {
    let mut pages = vec![Page::zeroed(); blocks];
    let frames = pages.iter_mut().map(FramePtr::of_page).collect();
    let (sender, receiver) = mpsc::channel();
    let done = move |outcome| sender.send(outcome).unwrap();
    // SAFETY: `pages` is not touched before the outcome was received.
    let request = unsafe { ReadRequest::new(relation.clone(), Fork::Main, BlockNumber(first), frames, Box::new(done)) };
    method.submit(request);
    method.flush();
    let outcome = receiver.recv().unwrap();
    assert!(receiver.recv().is_err(), "a completion is called once");
    (outcome, pages)
}

#[test]
fn every_method_reads_runs_also_over_the_end_of_a_segment() {
    let fixture = Fixture::new();
    fixture.file("base/5/3", SEGMENT_BYTES, &[131_070, 131_071]);
    fixture.file("base/5/3.1", 2 * 8192, &[1]);
    let relation = fixture.open().relation(locator(3));
    let methods: [Arc<dyn IoMethod>; 3] = [
        Arc::new(SyncMethod),
        Arc::new(WorkerMethod::new(2).unwrap()),
        Arc::new(FaultMethod::new(Arc::new(SyncMethod))),
    ];
    for method in methods {
        let (outcome, pages) = read(&*method, &relation, 131_070, 4);
        assert_eq!(outcome, Outcome { blocks: 4, error: None }, "{}", method.name());
        assert_eq!(pages.iter().map(|page| page.bytes()[5]).collect::<Vec<_>>(), [254, 255, 0, 1]);
    }
}

#[test]
fn blocks_before_the_end_of_the_file_are_read_though_the_request_fails() {
    let fixture = Fixture::new();
    fixture.file("base/5/1", 3 * 8192 + 10, &[1, 2]);
    let relation = fixture.open().relation(locator(1));
    let (outcome, pages) = read(&SyncMethod, &relation, 1, 4);
    assert_eq!(outcome.blocks, 2);
    assert_eq!(
        outcome.error.unwrap().to_string(),
        "could not read blocks 3..4 in file \"base/5/1\": read only 0 of 16384 bytes"
    );
    assert_eq!((pages[0].bytes()[0], pages[1].bytes()[8191]), (1, 2));
}

#[test]
fn a_worker_pool_ends_every_request_before_it_is_gone() {
    let fixture = Fixture::new();
    fixture.file("base/5/1", 100 * 8192, &(0..100).collect::<Vec<_>>());
    let relation = fixture.open().relation(locator(1));
    let mut pages = vec![Page::zeroed(); 100];
    let (sender, receiver) = mpsc::channel();
    let method = WorkerMethod::new(3).unwrap();
    for (block, page) in pages.iter_mut().enumerate() {
        let sender = sender.clone();
        let done = move |outcome: Outcome| sender.send(outcome).unwrap();
        let frames = vec![FramePtr::of_page(page)];
        let block = BlockNumber(block as u32);
        // SAFETY: `pages` is not touched before the method, and with it every request, has ended.
        method.submit(unsafe { ReadRequest::new(relation.clone(), Fork::Main, block, frames, Box::new(done)) });
    }
    drop(method);
    drop(sender);
    assert_eq!(receiver.iter().filter(|outcome| outcome.error.is_none()).count(), 100);
    assert!(pages.iter().enumerate().all(|(block, page)| page.bytes() == &[block as u8; 8192]));
}

#[test]
fn faults_are_injected_once() {
    let fixture = Fixture::new();
    fixture.file("base/5/1", 8 * 8192, &[2, 3]);
    let relation = fixture.open().relation(locator(1));
    let method = FaultMethod::new(Arc::new(SyncMethod));
    method.inject(BlockNumber(3), Fault::Errno(5));
    let (outcome, _) = read(&method, &relation, 2, 4);
    assert_eq!(
        (outcome.blocks, outcome.error.unwrap().to_string()),
        (0, "could not read blocks 2..5 in file \"base/5/1\": Input/output error".to_owned())
    );
    method.inject(BlockNumber(4), Fault::EndsBefore);
    let (outcome, pages) = read(&method, &relation, 2, 4);
    assert_eq!((outcome.blocks, pages[1].bytes()[0], outcome.error.is_some()), (2, 3, true));
    method.inject(BlockNumber(2), Fault::Dropped);
    let (outcome, _) = read(&method, &relation, 2, 4);
    assert_eq!(outcome.error, Some(Error::Abandoned { path: "base/5/1".to_owned(), block: 2 }));
    assert_eq!(read(&method, &relation, 2, 4).0.error, None);
}

#[test]
fn a_held_request_ends_when_released() {
    let fixture = Fixture::new();
    fixture.file("base/5/1", 8 * 8192, &[]);
    let relation = fixture.open().relation(locator(1));
    let method = Arc::new(HeldMethod::default());
    let other = Arc::clone(&method);
    let reader = std::thread::spawn(move || read(&*other, &relation, 2, 3).0);
    while method.in_flight() != [(BlockNumber(2), 3)] {
        std::thread::yield_now();
    }
    method.release(false);
    assert_eq!(reader.join().unwrap().blocks, 3);
}
