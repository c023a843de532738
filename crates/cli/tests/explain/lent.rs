//! Priorities that a thread is lent by one that waits for its lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use wakescope_core::explain::What;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::condition::{lock, unlock};
use wakescope_sys::futex::Scope;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule, this_thread};

use crate::common::bench::Test;
use crate::common::following::{can_follow, explained};
use crate::common::measured::allowed_cpus;
use crate::episodes::stored;

const LENDER: u8 = 60;
const FOLLOWED: u8 = 40;
const ROUND: SpanNs = SpanNs(10_000_000);
/// The owner of the lock runs for so long in each round, and the others wake in the midst of that.
const HELD: SpanNs = SpanNs(4_000_000);
const LENDS: SpanNs = SpanNs(1_000_000);
const WAKES: SpanNs = SpanNs(2_000_000);

/// Three threads on one CPU. In each round an ordinary one takes a lock; a real-time one waits for it, and so
/// lends it its priority; and one of a priority between them wakes up, and waits for the owner.
struct Inversion {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    owner: u32,
    followed: u32,
}

impl Inversion {
    fn start(cpu: u32) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let mutex = Arc::new(AtomicU32::new(0));
        let first = clock::now().after(ROUND);
        let (tell, number) = channel();
        let thread = |schedule: Option<Schedule>, offset: SpanNs, round: fn(&AtomicU32)| {
            let (ends, mutex) = (Arc::clone(&ends), Arc::clone(&mutex));
            let tell: Sender<u32> = tell.clone();
            let handle = std::thread::spawn(move || {
                set_affinity(&[cpu]).unwrap();
                schedule.map_or(Ok(()), set_schedule).unwrap();
                tell.send(this_thread().number()).unwrap();
                let mut due = first.after(offset);
                while !ends.load(Ordering::Relaxed) {
                    clock::sleep_until(due).unwrap();
                    round(&mutex);
                    due = due.after(ROUND).max(clock::now());
                }
            });
            (handle, number.recv().unwrap())
        };
        let (owns, owner) = thread(None, SpanNs(0), |mutex| {
            lock(mutex, Scope::Private).unwrap();
            let end = clock::now().after(HELD);
            while clock::now() < end {}
            unlock(mutex, Scope::Private).unwrap();
        });
        let (lends, _) = thread(Some(Schedule::Fifo { priority: LENDER }), LENDS, |mutex| {
            lock(mutex, Scope::Private).unwrap();
            unlock(mutex, Scope::Private).unwrap();
        });
        let (waits, followed) = thread(Some(Schedule::Fifo { priority: FOLLOWED }), WAKES, |_| {});
        Self { ends, threads: vec![owns, lends, waits], owner, followed }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// Who had the priority of another one until it gave its lock back is no ordinary task for all that time.
#[test]
fn a_priority_that_is_given_back_is_seen() {
    if !can_follow("a_priority_that_is_given_back_is_seen") {
        return;
    }
    let test = Test::new("lent");
    let inversion = Inversion::start(*allowed_cpus().last().unwrap());
    let (owner, tid) = (inversion.owner, inversion.followed.to_string());
    let args = ["--pid", &tid, "--duration", "3s", "--above", "500us", "--out", "run"];
    let ended = explained(&test, &args);
    inversion.end();
    let lent_to = |what: &What| match what {
        What::Deboost(task) => Some((task.pid, 99 - task.prio)),
        _ => None,
    };
    let episodes = stored(&test.dir.join("run"));
    let events = episodes.iter().filter_map(|(_, episode)| episode.as_ref().ok());
    let mut given_back = events.flat_map(|episode| &episode.wakeup.events);
    let want = (owner, i32::from(LENDER));
    assert!(given_back.any(|event| lent_to(&event.what) == Some(want)), "{want:?}: {ended:?}");
}
