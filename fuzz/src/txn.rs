//! A directory's transaction records, and what they say of a tuple.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};

use stegodon_format::heap_tuple::HeapTupleRef;
use stegodon_format::ids::{MultiXactId, Oid, Xid};
use stegodon_io::DataDirectory;
use stegodon_txn::{Transactions, VisibilityChecker};

use crate::input::Input;

/// The first 296 bytes of the demo cluster's control file.
const CONTROL: &[u8; 296] = include_bytes!("../seeds/pg_control");

/// The directory is reused: one process runs one input at a time.
static DIRECTORY: LazyLock<Mutex<PathBuf>> = LazyLock::new(|| {
    let memory = std::path::Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = parent.join(format!("stegodon-fuzz-{}", std::process::id()));
    for sub in ["global", "pg_xact", "pg_multixact/offsets", "pg_multixact/members", "pg_twophase"] {
        std::fs::create_dir_all(directory.join(sub)).unwrap();
    }
    std::fs::write(directory.join("PG_VERSION"), "18\n").unwrap();
    Mutex::new(directory)
});

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub fn run(data: &[u8]) {
    let directory = DIRECTORY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut input = Input(data);
    let mut control = *CONTROL;
    // nextXid, nextMulti, nextMultiOffset, oldestXid, oldestMulti of the checkpoint.
    for at in [64, 76, 80, 84, 92] {
        put(&mut control, at, u32::from(input.u16()));
    }
    for _ in 0..input.u8() % 4 {
        let at = usize::from(input.u16()) % control.len();
        control[at] = input.u8();
    }
    let crc = crc32c::crc32c(&control[..292]);
    put(&mut control, 292, crc);
    std::fs::write(directory.join("global/pg_control"), control).unwrap();
    for name in ["pg_xact/0000", "pg_multixact/offsets/0000", "pg_multixact/members/0000"] {
        let (len, fill) = (usize::from(input.u16()), input.u8());
        let mut bytes = input.bytes(len).to_vec();
        bytes.resize(bytes.len().next_multiple_of(8192) * usize::from(fill % 2) + bytes.len() % 8192, fill);
        std::fs::write(directory.join(name), bytes).unwrap();
    }
    let xid = u32::from(input.u8());
    let two_phase = directory.join(format!("pg_twophase/{xid:016X}"));
    let len = usize::from(input.u16());
    let mut state = input.bytes(len).to_vec();
    if state.len() >= 16 {
        let (len, at) = (state.len() as u32, state.len() - 4);
        put(&mut state, 0, 0x57F9_4534);
        put(&mut state, 4, len);
        put(&mut state, 8, xid);
        let crc = crc32c::crc32c(&state[..at]);
        put(&mut state, at, crc);
    }
    std::fs::write(&two_phase, state).unwrap();
    look(&directory, input);
    std::fs::remove_file(two_phase).unwrap();
}

fn look(directory: &std::path::Path, mut input: Input<'_>) {
    let Ok(directory) = DataDirectory::open(directory) else { return };
    let Ok(transactions) = Transactions::open(&directory, directory.control()) else { return };
    let transactions = Arc::new(transactions);
    for prepared in transactions.prepared().iter() {
        let _ = prepared.exclusively_locked_relations().count();
    }
    let _ = transactions.prepared().exclusive_lock(Oid(5), Oid(16384)).is_some();
    let mut checker = VisibilityChecker::new(Arc::clone(&transactions), Arc::new(transactions.snapshot()));
    for number in [0, 1, 2, 3, 100, u32::from(input.u16()), input.u32(), u32::MAX] {
        let _ = transactions.log().status(Xid(number));
        if let Ok(members) = transactions.multixacts().members(MultiXactId(number)) {
            let _ = members.take_while(Result::is_ok).count();
        }
        let _ = transactions.multixacts().update_xid(MultiXactId(number));
    }
    while !input.is_empty() {
        if let Ok(tuple) = HeapTupleRef::parse(input.bytes(24)) {
            let _ = checker.check(tuple);
        }
    }
}
