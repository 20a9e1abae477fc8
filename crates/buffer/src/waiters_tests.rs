#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::atomic::AtomicU32;
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waiter, polled by hand.
struct Sleeper {
    place: Option<Place>,
    bell: Arc<Bell>,
}

impl Sleeper {
    fn new() -> Self {
        Self { place: None, bell: Arc::default() }
    }

    fn arm(&mut self, waiters: &Waiters) -> Turn {
        let waker = Waker::from(Arc::clone(&self.bell));
        waiters.arm(&mut self.place, &Context::from_waker(&waker))
    }

    fn woken(&self) -> usize {
        self.bell.0.swap(0, Ordering::SeqCst)
    }
}

/// Without a watchdog, so that nothing happens by itself.
fn unwatched() -> Waiters {
    let waiters = Waiters::new();
    waiters.0.queue.lock().watched = true;
    waiters
}

const LOOK: Turn = Turn::Try { reserve: false };

#[test]
fn frames_go_to_those_who_came_first() {
    let waiters = unwatched();
    let mut sleepers: Vec<Sleeper> = (0..4).map(|_| Sleeper::new()).collect();
    let turns: Vec<Turn> = sleepers.iter_mut().map(|sleeper| sleeper.arm(&waiters)).collect();
    assert_eq!(turns, [LOOK, Turn::Sleep, Turn::Sleep, Turn::Sleep], "only the oldest looks");
    waiters.frame_is_free();
    assert_eq!(sleepers.iter().map(Sleeper::woken).collect::<Vec<_>>(), [1, 0, 0, 0]);
    // Another frame, before the first was polled: the second's turn.
    waiters.frame_is_free();
    assert_eq!(sleepers.iter().map(Sleeper::woken).collect::<Vec<_>>(), [0, 1, 0, 0]);
    assert_eq!((sleepers[0].arm(&waiters), sleepers[1].arm(&waiters)), (LOOK, LOOK));
    // The first got its frame: another may be there.
    sleepers[0].place = None;
    assert_eq!(sleepers.iter().map(Sleeper::woken).collect::<Vec<_>>(), [0, 1, 0, 0]);
    assert_eq!(sleepers[2].arm(&waiters), Turn::Sleep);
    assert!(waiters.starving());
}

#[test]
fn who_gives_up_hands_its_wake_up_on_and_leaves_nothing() {
    let waiters = unwatched();
    let mut sleepers: Vec<Sleeper> = (0..3).map(|_| Sleeper::new()).collect();
    for sleeper in &mut sleepers {
        assert_ne!(sleeper.arm(&waiters), Turn::Fail);
    }
    waiters.frame_is_free();
    assert_eq!(sleepers[0].woken(), 1);
    sleepers[0].place = None;
    assert_eq!((sleepers[1].woken(), sleepers[1].arm(&waiters)), (1, LOOK));
    for sleeper in &mut sleepers {
        sleeper.place = None;
    }
    assert_eq!((waiters.len(), waiters.starving()), (0, false));
}

/// Many threads and a few permits: each waits as the pool's readers do. A lost wake-up would be healed by the watchdog only, so
/// there is none here.
#[test]
fn no_wake_up_is_lost_between_threads() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 3000;
    let waiters = unwatched();
    let free = AtomicU32::new(2);
    let take = || free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (waiters, free) = (&waiters, &free);
            scope.spawn(move || {
                let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
                let cx = Context::from_waker(&waker);
                for round in 0..ROUNDS {
                    let mut place = None;
                    let mut got = !waiters.starving() && take();
                    while !got {
                        match waiters.arm(&mut place, &cx) {
                            Turn::Try { .. } if take() => got = true,
                            Turn::Fail => panic!("nobody fails without the watchdog"),
                            // Now and then somebody loses interest.
                            _ if (round + thread) % 7 == 0 => break,
                            _ => std::thread::park(),
                        }
                    }
                    drop(place);
                    if got {
                        free.fetch_add(1, Ordering::SeqCst);
                        waiters.frame_is_free();
                    }
                }
            });
        }
    });
    assert_eq!((free.load(Ordering::SeqCst), waiters.len(), waiters.starving()), (2, 0, false));
}

#[test]
fn the_watchdog_opens_the_reserve_and_then_fails_the_oldest() {
    let waiters = Waiters::new();
    let mut sleepers = [Sleeper::new(), Sleeper::new()];
    for sleeper in &mut sleepers {
        assert_ne!(sleeper.arm(&waiters), Turn::Fail);
    }
    let start = Instant::now();
    while sleepers[1].arm(&waiters) != (Turn::Try { reserve: true }) {
        std::thread::sleep(TICK / 4);
        assert!(start.elapsed() < STUCK_AFTER, "the reserve is opened");
    }
    // As long as the pins that are held do not come back, newcomers do not wait for it.
    let mut third = Sleeper::new();
    assert_eq!(third.arm(&waiters), Turn::Try { reserve: true });
    third.place = None;
    while sleepers[0].arm(&waiters) != Turn::Fail {
        std::thread::sleep(TICK);
        assert!(start.elapsed() < 4 * STUCK_AFTER, "waiting ends");
    }
    assert!(start.elapsed() >= STUCK_AFTER);
    waiters.frame_is_free();
    assert_eq!(Sleeper::new().arm(&waiters), Turn::Sleep, "a pin came back: first the frames, in turn");
}
