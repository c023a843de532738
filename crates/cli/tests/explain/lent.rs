//! Priorities that a thread is lent by one that waits for its lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use wakescope_core::explain::{Cause, Culprit, Evidence, Wakeup, What};
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::condition::{lock, unlock};
use wakescope_sys::futex::Scope;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule, this_thread};

use crate::common::bench::Test;
use crate::common::episodes::stored;
use crate::common::following::{can_follow, explained, other_cpu};
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
                    spin_for(HELD);
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

/// What is said of all waits, too. No wakeup is so late that it is explained, so nothing else says who took the
/// longest.
#[test]
fn a_wait_beside_a_task_with_a_lent_priority_is_of_one_that_comes_first() {
    if !can_follow("a_wait_beside_a_task_with_a_lent_priority_is_of_one_that_comes_first") {
        return;
    }
    let test = Test::new("lent-waits");
    // On a machine that is busy otherwise, another task can take the longest.
    let followed = (0..4).map(|i| {
        let inversion = Inversion::start(*allowed_cpus().last().unwrap());
        let (owner, tid) = (inversion.owner, inversion.followed.to_string());
        let out = format!("run-{i}");
        let args = ["--pid", &tid, "--duration", "2s", "--above", "1h", "--out", &out];
        let (run, text) = explained(&test, &args);
        inversion.end();
        let waits = run.explanation.unwrap().waits.unwrap();
        let longest = waits.kinds.iter().filter_map(|row| row.worst.as_ref());
        let is_owner =
            |culprit: &Culprit| matches!(culprit, Culprit::Task(task) if task.pid == Some(owner));
        let of_owner = longest.filter(|worst| is_owner(&worst.culprit));
        (of_owner.map(|worst| worst.cause).collect::<Vec<Cause>>(), text)
    });
    let found = followed.into_iter().find(|(causes, _)| !causes.is_empty());
    let (causes, text) = found.expect("the owner of the lock took none of the longest waits");
    assert!(causes.iter().all(|&cause| cause == Cause::HigherPriorityTask), "{causes:?}: {text}");
}

const OWNER: u8 = 10;
const HOG: u8 = 50;

/// An owner of a lock waits for its CPU behind a hog, which is more urgent. After a while a thread on another CPU waits
/// for the lock, and lends its priority to the owner, which comes before the hog then.
fn lent_while_it_waits(cpu: u32, lenders: u32) -> Inversion {
    let ends = Arc::new(AtomicBool::new(false));
    let mutex = Arc::new(AtomicU32::new(0));
    let has_run = Arc::new(AtomicBool::new(false));
    let (lend, lends) = woken(lenders, LENDER, {
        let mutex = Arc::clone(&mutex);
        move || {
            spin_for(HELD);
            lock(&mutex, Scope::Private).unwrap();
            unlock(&mutex, Scope::Private).unwrap();
        }
    });
    let (wake, sleeps) = channel();
    let (begin, begins) = channel();
    let (owns, owner) = started(cpu, {
        let (has_run, ends) = (Arc::clone(&has_run), Arc::clone(&ends));
        move || {
            set_schedule(Schedule::Fifo { priority: OWNER }).unwrap();
            while !ends.load(Ordering::Relaxed) {
                lock(&mutex, Scope::Private).unwrap();
                begin.send(()).unwrap();
                sleeps.recv().unwrap();
                has_run.store(true, Ordering::Relaxed);
                unlock(&mutex, Scope::Private).unwrap();
                clock::sleep_until(clock::now().after(PAUSE)).unwrap();
            }
        }
    });
    let (hogs, _) = started(cpu, move || {
        set_schedule(Schedule::Fifo { priority: HOG }).unwrap();
        for () in begins {
            // By then the owner sleeps. A round in which it does not has no wakeup.
            clock::sleep_until(clock::now().after(PAUSE)).unwrap();
            has_run.store(false, Ordering::Relaxed);
            wake.send(()).unwrap();
            lend.send(()).unwrap();
            while !has_run.load(Ordering::Relaxed) {}
        }
    });
    Inversion { ends, threads: vec![owns, lends.0, hogs], owner, followed: owner }
}

fn spin_for(span: SpanNs) {
    let end = clock::now().after(span);
    while clock::now() < end {}
}

/// By the end of its wait a real-time task has the priority that it was lent. Who had the CPU before that is more
/// urgent than it was, and less than it is.
#[test]
fn a_real_time_task_is_known_without_the_priority_that_it_was_lent() {
    const NAME: &str = "a_real_time_task_is_known_without_the_priority_that_it_was_lent";
    let Some(cpu) = other_cpu(NAME) else { return };
    let lenders = allowed_cpus().into_iter().find(|&other| other != cpu).unwrap();
    let test = Test::new("lent-while-waiting");
    let inversion = lent_while_it_waits(cpu, lenders);
    let tid = inversion.followed.to_string();
    let args = ["--pid", &tid, "--duration", "3s", "--above", "500us", "--out", "run"];
    let ended = explained(&test, &args);
    inversion.end();
    let episodes = stored(&test.dir.join("run"));
    let is_lent = |wakeup: &Wakeup| {
        let prio = |priority: u8| 99 - i32::from(priority);
        (wakeup.task.prio, wakeup.normal_prio) == (prio(LENDER), Some(prio(OWNER)))
    };
    let lent: Vec<_> = episodes
        .iter()
        .filter_map(|(_, episode)| episode.as_ref().ok())
        .filter(|episode| is_lent(&episode.wakeup))
        .map(|episode| (episode.blame[0].cause, episode.blame[0].evidence))
        .collect();
    let of_hog = (Cause::HigherPriorityTask, Evidence::Bound);
    assert!(lent.contains(&of_hog), "{lent:?}: {}", ended.1);
}
