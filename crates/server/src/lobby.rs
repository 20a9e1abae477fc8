//! Connections that have not said yet who they are: how many there may be, and which goes when there are too many.
//!
//! A connection costs its maker nothing until it has to show something, and `authentication_timeout` is long. So the number is
//! bounded, and when it is reached the oldest one from wherever most of them come is closed: whoever opens many loses them,
//! others do not notice.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::auth::Peer;

/// Whom connections are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    User(u32),
    V4(u32),
    /// The first half of an address: the second is its owner's to choose.
    V6(u64),
}

impl Origin {
    fn of(peer: Peer) -> Self {
        match peer {
            Peer::Local { uid } => Origin::User(uid),
            Peer::Remote { ip } => match ip.to_canonical() {
                IpAddr::V4(ip) => Origin::V4(ip.to_bits()),
                IpAddr::V6(ip) => Origin::V6((ip.to_bits() >> 64) as u64),
            },
        }
    }
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// By arrival. A connection's task is known only once it has been started.
    all: BTreeMap<u64, (Origin, Option<AbortHandle>)>,
    counts: HashMap<Origin, usize>,
}

impl Waiting {
    fn leave(&mut self, number: u64) -> Option<AbortHandle> {
        let (origin, task) = self.all.remove(&number)?;
        if let Some(count) = self.counts.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&origin);
            }
        }
        task
    }
}

/// Those that wait.
#[derive(Clone, Debug)]
pub(crate) struct Lobby {
    max: usize,
    waiting: Arc<Mutex<Waiting>>,
}

/// A place among them, given back when dropped.
pub(crate) struct Place {
    lobby: Lobby,
    number: u64,
}

impl Lobby {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, waiting: Arc::default() }
    }

    /// Lets a connection in, and another out if there are too many.
    pub(crate) fn enter(&self, peer: Peer) -> Place {
        let origin = Origin::of(peer);
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        *waiting.counts.entry(origin).or_default() += 1;
        waiting.all.insert(number, (origin, None));
        if waiting.all.len() > self.max {
            let most = waiting.counts.iter().max_by_key(|(_, count)| **count).map(|(origin, _)| *origin);
            let oldest = waiting.all.iter().find(|(_, (origin, _))| Some(*origin) == most).map(|(number, _)| *number);
            if let Some(task) = oldest.and_then(|number| waiting.leave(number)) {
                task.abort();
            }
        }
        Place { lobby: self.clone(), number }
    }

    /// Says which task a place's connection has.
    pub(crate) fn serves(&self, number: u64, task: AbortHandle) {
        if let Some((_, place)) = self.waiting.lock().all.get_mut(&number) {
            *place = Some(task);
        }
    }
}

impl Place {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lobby.waiting.lock().leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn who_comes_most_often_goes_first() {
        let lobby = Lobby::new(10);
        let enter = |host: u8| {
            let peer = Peer::Remote { ip: IpAddr::from([203, 0, 113, host]) };
            let place = lobby.enter(peer);
            let number = place.number();
            let task = tokio::spawn(async move {
                let _place = place;
                std::future::pending::<()>().await;
            });
            lobby.serves(number, task.abort_handle());
            task
        };
        let quiet = enter(1);
        let crowd: Vec<_> = (0..100).map(|_| enter(2)).collect();
        let late = enter(3);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!quiet.is_finished() && !late.is_finished());
        let alive = crowd.iter().filter(|task| !task.is_finished()).count();
        assert_eq!(alive, 8);
        assert!(crowd.iter().rev().take(8).all(|task| !task.is_finished()));
        assert_eq!(lobby.waiting.lock().all.len(), 10);
        drop((quiet, late));
    }
}
