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
use crate::common::episodes::stored;
use crate::common::following::{can_follow, explained};
use crate::common::measured::allowed_cpus;

const LENDER: u8 = 60;
const FOLLOWED: u8 = 40;
/// The owner of the lock runs for so long in each round, while the others wait.
const HELD: SpanNs = SpanNs(2_000_000);
const PAUSE: SpanNs = SpanNs(10_000_000);

/// Three threads on one CPU. In each round an ordinary one takes a lock and wakes the two others. The first of
/// these waits for the lock, and so lends its priority to the owner; the second, of a priority between them,
/// waits for the owner. No clock decides who comes first, so that a busy machine changes nothing.
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
        let (lend, lends) = woken(cpu, LENDER, {
            let mutex = Arc::clone(&mutex);
            move || {
                lock(&mutex, Scope::Private).unwrap();
                unlock(&mutex, Scope::Private).unwrap();
            }
        });
        let (wake, waits) = woken(cpu, FOLLOWED, || {});
        let followed = waits.1;
        let (owns, owner) = started(cpu, {
            let ends = Arc::clone(&ends);
            move || {
                while !ends.load(Ordering::Relaxed) {
                    lock(&mutex, Scope::Private).unwrap();
                    // The one that is woken is ahead of this thread, which goes on once that one waits for the lock.
                    lend.send(()).unwrap();
                    wake.send(()).unwrap();
                    let end = clock::now().after(HELD);
                    while clock::now() < end {}
                    unlock(&mutex, Scope::Private).unwrap();
                    clock::sleep_until(clock::now().after(PAUSE)).unwrap();
                }
            }
        });
        Self { ends, threads: vec![owns, lends.0, waits.0], owner, followed }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// A thread on `cpu`, and its number.
fn started(cpu: u32, work: impl FnOnce() + Send + 'static) -> (JoinHandle<()>, u32) {
    let (tell, number) = channel();
    let handle = std::thread::spawn(move || {
        set_affinity(&[cpu]).unwrap();
        tell.send(this_thread().number()).unwrap();
        work();
    });
    (handle, number.recv().unwrap())
}

/// A thread of this priority that does `work` each time that it is woken, until nobody can wake it any more.
fn woken(
    cpu: u32,
    priority: u8,
    work: impl Fn() + Send + 'static,
) -> (Sender<()>, (JoinHandle<()>, u32)) {
    let (wake, woken) = channel();
    let thread = started(cpu, move || {
        set_schedule(Schedule::Fifo { priority }).unwrap();
        woken.iter().for_each(|()| work());
    });
    (wake, thread)
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
