//! Wakeups by another thread, through a futex.
//!
//! A waker thread sleeps from point to point of a grid. At each it reads the clock, which is when the
//! wakeup is due, and wakes the probe. So its own lateness does not count, and what the wakeup takes
//! begins with the waker's system call.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::sched::{self, Schedule};
use wakescope_sys::shared::Answers;
use wakescope_sys::signal::ThreadHandle;
use wakescope_sys::timer_file::TimerFile;
use wakescope_sys::{clock, futex};

use super::{Grid, Stimulus, Waited, Wakeup};

/// The probe waits, or is about to.
const WAITING: u32 = 0;
/// The waker has woken the probe, which has not yet returned to wait again.
const WOKEN: u32 = 1;
/// There are no more wakeups.
const OVER: u32 = 2;

/// The waker needs little stack.
const STACK_BYTES: usize = 64 << 10;

/// Where a waker runs, and how.
pub struct WakerPlace {
    /// The CPU that it is bound to.
    pub cpu: u32,
    /// The schedule that it runs under.
    pub schedule: Schedule,
}

/// What the probe and its waker share.
struct Exchange {
    /// The futex.
    word: AtomicU32,
    /// When the wakeup was due that was made last.
    due: AtomicU64,
    /// Points of the grid without a wakeup, since the waker was late itself.
    skipped: AtomicU64,
    stop: AtomicBool,
}

/// The probe's side of a futex that a waker thread wakes it by.
pub struct FutexWakeups<'a> {
    exchange: Arc<Exchange>,
    stop: &'a AtomicBool,
    /// Where answers go, for whoever follows the thread from the kernel.
    answers: Option<Answers>,
    interval: SpanNs,
    /// `None` only while the waker is ended.
    waker: Option<(Sender<Grid>, ThreadHandle<()>)>,
}

impl<'a> FutexWakeups<'a> {
    /// Starts a waker in `place`. Waits end once `stop` is set. Whoever follows the probe gets its
    /// `answers` and, through `announcements`, when each wakeup is due.
    pub fn start(
        place: WakerPlace,
        stop: &'a AtomicBool,
        answers: Option<Answers>,
        announcements: Option<Answers>,
    ) -> io::Result<Self> {
        let exchange = Arc::new(Exchange {
            word: AtomicU32::new(WOKEN),
            due: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let (begin, grids) = channel();
        let (say_ready, ready) = sync_channel(1);
        let theirs = Arc::clone(&exchange);
        let thread = std::thread::Builder::new()
            .name(format!("wakescope-w/{}", place.cpu))
            .stack_size(STACK_BYTES)
            .spawn(move || live(&place, &theirs, announcements, &say_ready, &grids))?;
        let waker = Some((begin, ThreadHandle::new(thread)));
        let this = Self { exchange, stop, answers, interval: SpanNs(0), waker };
        ready.recv().map_err(|_| io::Error::other("the waker thread ended"))??;
        Ok(this)
    }
}

impl Stimulus for FutexWakeups<'_> {
    fn begin(&mut self, grid: Grid) {
        self.interval = grid.interval;
        self.exchange.skipped.store(0, Ordering::Relaxed);
        // Not waiting yet: a waker that is ahead of the probe finds nobody to wake.
        self.exchange.word.store(WOKEN, Ordering::Release);
        if let Some((begin, _)) = &self.waker {
            // It can only have ended if it was told to.
            let _ = begin.send(grid);
        }
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        self.exchange.offer();
        self.sleep()
    }

    #[inline]
    fn period(&self) -> SpanNs {
        self.interval
    }

    fn skipped(&self) -> u64 {
        self.exchange.skipped.load(Ordering::Relaxed)
    }
}

impl Exchange {
    /// The probe waits from now on, unless there are no more wakeups.
    #[inline]
    fn offer(&self) {
        let _ = self.word.compare_exchange(WOKEN, WAITING, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl FutexWakeups<'_> {
    #[inline]
    fn sleep(&mut self) -> Waited {
        let word = &self.exchange.word;
        loop {
            match futex::wait(word, WAITING) {
                futex::Waited::Woken => {}
                // The word had changed before the thread could sleep.
                futex::Waited::Changed if word.load(Ordering::Acquire) == OVER => {
                    return Waited::Done;
                }
                futex::Waited::Changed => return Waited::NotAsleep,
                futex::Waited::Interrupted if self.stop.load(Ordering::Relaxed) => {
                    return Waited::Stopped;
                }
                futex::Waited::Interrupted => continue,
            }
            let woken = clock::now();
            match word.load(Ordering::Acquire) {
                // The kernel may wake a thread that nobody woke.
                WAITING => {}
                OVER => return Waited::Done,
                _ => return self.woken_at(woken),
            }
        }
    }

    #[inline]
    fn woken_at(&mut self, woken: MonoNs) -> Waited {
        let due = MonoNs(self.exchange.due.load(Ordering::Acquire));
        if let Some(answers) = &mut self.answers {
            answers.put(due.0, woken.0);
        }
        let (late_ns, interval_ns) = (woken.since(due).0, self.interval.0);
        // The waker finds the probe awake at these.
        let missed = if late_ns < interval_ns { 0 } else { late_ns / interval_ns };
        Waited::Woken(Wakeup { due, woken, missed })
    }
}

impl Drop for FutexWakeups<'_> {
    fn drop(&mut self) {
        self.exchange.stop.store(true, Ordering::Relaxed);
        if let Some((begin, thread)) = self.waker.take() {
            // It waits for a grid, or for a point of one.
            drop(begin);
            let _ = thread.end();
        }
    }
}

/// The waker's whole life.
fn live(
    place: &WakerPlace,
    exchange: &Exchange,
    announcements: Option<Answers>,
    say_ready: &SyncSender<io::Result<()>>,
    grids: &Receiver<Grid>,
) {
    let prepared =
        sched::set_affinity(&[place.cpu]).and_then(|()| sched::set_schedule(place.schedule));
    // Real-time threads have no slack; for others 1 ns is the least that can be set.
    let _ = sched::set_timer_slack(SpanNs(1));
    let failed = prepared.is_err();
    let _ = say_ready.send(prepared);
    if failed {
        return;
    }
    // Only whoever follows the probe has a use for it.
    let watchdog = announcements.as_ref().and_then(|_| TimerFile::new().ok());
    while let Ok(grid) = grids.recv() {
        wake_on(grid, exchange, announcements.as_ref(), watchdog.as_ref());
    }
}

/// Wakes the probe at each point of `grid`.
fn wake_on(
    grid: Grid,
    exchange: &Exchange,
    announcements: Option<&Answers>,
    watchdog: Option<&TimerFile>,
) {
    let Grid { start: mut at, interval, points: mut left } = grid;
    while left > 0 && !exchange.stop.load(Ordering::Relaxed) {
        if let (Some(watchdog), Some(announcements)) = (watchdog, announcements) {
            let patience = announcements.patience();
            if patience > 0 {
                // Without it less is seen, and the wakeup is as late.
                let _ = watchdog.arm(at.after(SpanNs(patience)));
            }
        }
        if clock::sleep_until(at).is_err() {
            continue;
        }
        let due = clock::now();
        if exchange.word.load(Ordering::Acquire) == WAITING {
            wake(exchange, announcements);
        }
        let late_ns = due.since(at).0;
        let skipped = (late_ns / interval.0.max(1)).min(left - 1);
        exchange.skipped.fetch_add(skipped, Ordering::Relaxed);
        left -= skipped + 1;
        at = at.after(SpanNs((skipped + 1).saturating_mul(interval.0)));
    }
    end(exchange);
}

/// Tells the probe that there are no more wakeups, once it has returned from the last one: that must
/// not be lost, however late it is.
fn end(exchange: &Exchange) {
    const PAUSE: SpanNs = SpanNs(1_000_000);
    let Exchange { word, stop, .. } = exchange;
    while word.compare_exchange(WAITING, OVER, Ordering::AcqRel, Ordering::Acquire).is_err() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let _ = clock::sleep_until(clock::now().after(PAUSE));
    }
    let _ = futex::wake_one(word);
}

/// Wakes the probe. The time of that is read here, as late as can be.
fn wake(exchange: &Exchange, announcements: Option<&Answers>) {
    let due = clock::now().0;
    exchange.due.store(due, Ordering::Release);
    if let Some(announcements) = announcements {
        announcements.announce(due);
    }
    exchange.word.store(WOKEN, Ordering::Release);
    // That nobody slept yet, the probe finds for itself.
    let _ = futex::wake_one(&exchange.word);
}

#[cfg(test)]
mod tests;
