//! A thread that is moved between CPUs while it sleeps.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use wakescope_core::units::SpanNs;
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::sched::{affinity, set_affinity, set_affinity_of, this_thread};
use wakescope_testing::skip;

/// The name of the thread.
pub(crate) const NAME: &str = "sleeps-in-queue";

/// How long it sleeps at a time, and how often it is moved.
const SLEEP: SpanNs = SpanNs(80_000_000);
const BETWEEN_MOVES: SpanNs = SpanNs(500_000);

/// It runs for once to nine times this span before it sleeps, in turn.
///
/// One that has run more than its share stays in its queue. Whether it has depends on slices, ticks and all else that
/// runs: beside 0 to 12 busy threads a third of these spans were too long, but none of always 4.3 ms (6.18).
const SHORTEST_RUN: SpanNs = SpanNs(600_000);

/// The thread, those that keep its CPUs busy, and the one that moves it.
pub(crate) struct MovedSleeper {
    ends: Arc<AtomicBool>,
    others: Vec<JoinHandle<()>>,
    sleeper: JoinHandle<SpanNs>,
}

impl MovedSleeper {
    /// Starts them, or says why there cannot be any.
    pub(crate) fn start() -> Result<Self, String> {
        let [first, .., last] = affinity().unwrap()[..] else {
            return Err("it takes two CPUs".into());
        };
        let ends = Arc::new(AtomicBool::new(false));
        let (tell, told) = channel();
        let until = Arc::clone(&ends);
        let sleep = move || {
            let (mut awake, mut woken) = (SpanNs(0), clock::now());
            tell.send(this_thread()).unwrap();
            for times in (1..=9).cycle() {
                if until.load(Ordering::Relaxed) {
                    break;
                }
                let ran = clock::read(Clock::ThreadCpu) + times * SHORTEST_RUN.0;
                while clock::read(Clock::ThreadCpu) < ran {}
                let now = clock::now();
                awake = SpanNs(awake.0 + now.since(woken).0);
                woken = now.after(SLEEP);
                clock::sleep_until(woken).unwrap();
            }
            SpanNs(awake.0 + clock::now().since(woken).0)
        };
        let sleeper = Builder::new().name(NAME.into()).spawn(sleep).unwrap();
        let sleeper_id = told.recv().unwrap();
        let mut others: Vec<_> = [first, last].map(|cpu| hog(cpu, Arc::clone(&ends))).into();
        let until = Arc::clone(&ends);
        others.push(std::thread::spawn(move || {
            for cpu in [first, last].into_iter().cycle() {
                if until.load(Ordering::Relaxed) {
                    return;
                }
                set_affinity_of(sleeper_id, &[cpu]).unwrap();
                clock::sleep_until(clock::now().after(BETWEEN_MOVES)).unwrap();
            }
        }));
        Ok(Self { ends, others, sleeper })
    }

    /// Ends them. For how long the thread was awake: it ran or waited.
    pub(crate) fn end(self) -> SpanNs {
        self.ends.store(true, Ordering::Relaxed);
        self.others.into_iter().for_each(|thread| thread.join().unwrap());
        self.sleeper.join().unwrap()
    }
}

/// Keeps a CPU busy.
fn hog(cpu: u32, ends: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        set_affinity(&[cpu]).unwrap();
        while !ends.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    })
}

/// Checks that `tells`, which watches such a thread, tells its sleep from its waits where this kernel does not. It may
/// say why that cannot be tried: then `test` is skipped.
///
/// Beside other work a thread may not have run more than its share, and then does not stay in its queue. So it is tried
/// five times.
#[track_caller]
pub(crate) fn check_sleep_is_told(test: &str, tells: impl Fn() -> Result<bool, String>) {
    for _ in 0..5 {
        match tells() {
            Err(why) => return skip(test, &why),
            Ok(is_told) if is_told == sleeps_in_queues() => return,
            Ok(_) => {}
        }
    }
    panic!("none of five tries told sleep from waits");
}

/// Whether tasks of this kernel may stay in a queue when they sleep (`sched_delayed`): since 6.12.
fn sleeps_in_queues() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    [(); 2].map(|()| numbers.next().unwrap().unwrap()) >= [6, 12]
}
