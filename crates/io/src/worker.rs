//! Reads on a few threads that do nothing else.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::method::IoMethod;
use crate::request::ReadRequest;

/// How many requests may wait for a worker; one more is carried out by whoever submits it, as PostgreSQL does.
pub const QUEUE_REQUESTS_MAX: usize = 1024;

#[derive(Debug, Default)]
struct Queue {
    requests: VecDeque<ReadRequest>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signalled for each request, and for all when the queue closes.
    wanted: Condvar,
}

/// A pool of threads that read. Dropping it carries out what is queued and ends the threads.
#[derive(Debug)]
pub struct WorkerMethod {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerMethod {
    /// Starts `workers` threads (at least one).
    pub fn new(workers: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut method = Self { shared, threads: Vec::new() };
        for number in 0..workers.max(1) {
            let shared = Arc::clone(&method.shared);
            let thread =
                std::thread::Builder::new().name(format!("io worker {number}")).spawn(move || work(&shared))?;
            method.threads.push(thread); // on an error above, Drop ends those already started
        }
        Ok(method)
    }
}

fn work(shared: &Shared) {
    let mut queue = shared.queue.lock();
    loop {
        if let Some(request) = queue.requests.pop_front() {
            drop(queue);
            request.run();
            queue = shared.queue.lock();
        } else if queue.closed {
            return;
        } else {
            shared.wanted.wait(&mut queue);
        }
    }
}

impl IoMethod for WorkerMethod {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn submit(&self, request: ReadRequest) {
        let mut queue = self.shared.queue.lock();
        if queue.requests.len() >= QUEUE_REQUESTS_MAX {
            drop(queue);
            request.run();
            return;
        }
        queue.requests.push_back(request);
        drop(queue);
        self.shared.wanted.notify_one();
    }
}

impl Drop for WorkerMethod {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.wanted.notify_all();
        let this = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // The last owner may be a completion that runs on a worker: that thread ends by itself.
            if thread.thread().id() != this && thread.join().is_err() {
                tracing::error!("an I/O worker has panicked");
            }
        }
    }
}
