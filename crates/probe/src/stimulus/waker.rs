//! Wakeups by another thread, the waker, through a [`Channel`].
//!
//! The waker sleeps from point to point of a grid. At each it reads the clock, which is when the wakeup
//! is due, and wakes the probe. So its own lateness does not count, and what the wakeup takes begins
//! with the waker's call.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use wakescope_core::plan::Between;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::pipe::pipe;
use wakescope_sys::sched::{self, Schedule, ThreadId};
use wakescope_sys::shared::Answers;
use wakescope_sys::signal::ThreadHandle;

use super::channel::{Channel, Slept};
use super::{Beside, Grid, WaitForStimulus, Waited, Wakeup};
use crate::stop::Stop;
use exchange::{Exchange, State};

pub mod exchange;
mod waking;

/// Before there is one.
const NO_GRID: Grid = Grid { start: MonoNs(0), interval: SpanNs(0), points: 0 };

/// The waker needs little stack.
const STACK_BYTES: usize = 64 << 10;

/// Where a waker runs, and how.
#[derive(Clone, Copy, Debug)]
pub struct WakerPlace {
    /// The CPU that it is bound to.
    pub cpu: u32,
    /// The schedule that it runs under.
    pub schedule: Schedule,
    /// Whether it is a process of its own.
    pub between: Between,
}

/// Where a probe's answers go, for whoever follows it from the kernel.
#[derive(Default)]
pub struct Followed {
    /// The probe's.
    pub answers: Option<Answers>,
    /// Where its waker announces when each wakeup is due.
    pub announcements: Option<Answers>,
    /// Whether the waker is to set a timer before each call, which looks where the CPU is if the wakeup
    /// is late. It only sees the waker's CPU.
    pub watches: bool,
}

/// The probe's side of a channel that a waker wakes it through.
pub struct WakerWakeups<'a, C> {
    exchange: Exchange,
    channel: Arc<C>,
    stop: &'a Stop,
    answers: Option<Answers>,
    grid: Grid,
    /// Points of the grid that are accounted for: wakeups, those that they missed, and those that found the
    /// probe awake.
    accounted: u64,
    /// How often the probe had slept when it was last asked.
    sleeps: u64,
    awake: Awake,
    /// Where the waker is given its grids.
    grids: File,
    waker_id: ThreadId,
    /// `None` only while the waker is ended.
    waker: Option<ThreadHandle<()>>,
}

/// The books on points of the grid at which nobody was woken: each counts once.
///
/// The probe tells by the time how many it missed. The waker counted them as well: as points at which it
/// found the probe awake, or, if it was late itself, as points that it skipped.
#[derive(Clone, Copy, Debug, Default)]
struct Awake {
    /// How many points at which the probe was awake are in the books.
    found: u64,
    /// Those of them that no late wakeup swallowed.
    unmissed: u64,
    /// Those that a late wakeup swallowed, and at which nobody looked: the waker skipped them.
    missed_unseen: u64,
}

impl Awake {
    /// Enters what the waker has `found` in all, after a wait in which the probe `missed` so many points.
    #[inline]
    fn tell(&mut self, found: u64, missed: u64) {
        let seen = found.saturating_sub(self.found);
        self.found = found;
        self.unmissed += seen.saturating_sub(missed);
        self.missed_unseen += missed.saturating_sub(seen);
    }
}

impl<'a, C: Channel> WakerWakeups<'a, C> {
    /// Starts a waker in `place` for the calling thread. Waits end once `stop` is set.
    pub fn start(place: WakerPlace, stop: &'a Stop, followed: Followed) -> io::Result<Self> {
        let exchange = Exchange::of_this_thread(place.between)?;
        let channel = Arc::new(C::open(&exchange)?);
        let (orders, grids) = pipe()?;
        let (say_ready, ready) = sync_channel(1);
        let Followed { answers, announcements, watches } = followed;
        let waking = waking::Waking {
            exchange: exchange.clone(),
            channel: Arc::clone(&channel),
            orders,
            announcements,
            watches,
            cpu: place.cpu,
        };
        let thread = std::thread::Builder::new()
            .name(format!("wakescope-w/{}", place.cpu))
            .stack_size(STACK_BYTES)
            .spawn(move || waking.live(&place, &say_ready))?;
        let mut this = Self {
            exchange,
            channel,
            stop,
            answers,
            grid: NO_GRID,
            accounted: 0,
            sleeps: 0,
            awake: Awake::default(),
            grids,
            waker_id: sched::this_thread(),
            waker: Some(ThreadHandle::new(thread)),
        };
        // An error drops it, which ends the waker.
        this.waker_id = ready.recv().map_err(|_| io::Error::other("the waker thread ended"))??;
        Ok(this)
    }
}

impl<C: Channel> WaitForStimulus for WakerWakeups<'_, C> {
    fn begin(&mut self, grid: Grid) {
        (self.grid, self.accounted) = (grid, 0);
        self.exchange.begin();
        self.awake = Awake::default();
        self.has_slept();
        // Whoever reads it can only have ended with the waker, which the exchange tells.
        let _ = self.grids.write_all(&waking::to_bytes(grid));
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        let ended = self.exchange.ended();
        // Between two wakeups.
        self.awake.tell(self.exchange.found_awake(), 0);
        if let Some(ended) = ended {
            return ended;
        }
        self.exchange.offer();
        let waited = self.sleep();
        self.enter(waited);
        waited
    }

    #[inline]
    fn period(&self) -> SpanNs {
        self.grid.interval
    }

    fn waker(&self) -> Option<ThreadId> {
        Some(self.waker_id)
    }

    fn beside(&self) -> Beside {
        // What the waker finds after the last wait is none of it.
        let Awake { unmissed: awake, missed_unseen, .. } = self.awake;
        let skipped = match self.stop.time() {
            // The waker counts what it was late for when it comes to run, which may be after the end.
            Some(end) => self.grid.passed(end).saturating_sub(self.accounted + awake),
            None => self.exchange.skipped().saturating_sub(missed_unseen),
        };
        Beside { skipped, awake, waker_moved: self.exchange.moved(), ..Beside::default() }
    }
}

impl<C: Channel> WakerWakeups<'_, C> {
    #[inline]
    fn sleep(&mut self) -> Waited {
        loop {
            match self.channel.sleep(&self.exchange) {
                Slept::Woken => {}
                Slept::WasWokenBefore => return Waited::NotAsleep,
                Slept::Interrupted if self.stop.is_set() => {
                    let is_due = self.exchange.state() == State::Woken;
                    if !is_due || !self.has_slept() {
                        return Waited::Stopped;
                    }
                    // The waker is held up in its call: the wakeup is as late as the end of the run finds it.
                    return Waited::Woken(self.woken_at(clock::now()));
                }
                // It was woken meanwhile, as the next sleep will tell.
                Slept::Interrupted
                    if !C::KEEPS_WAKEUPS && self.exchange.state() == State::Woken =>
                {
                    continue;
                }
                Slept::Interrupted => match self.exchange.ended_in_sleep() {
                    Some(ended) => return ended,
                    None => continue,
                },
                Slept::Failed(cause) => {
                    return Waited::Lost(cause.into());
                }
            }
            let woken = clock::now();
            self.channel.after_wakeup(&self.exchange);
            match self.exchange.state() {
                // The kernel may wake a thread that nobody woke.
                State::Waiting => {}
                State::Woken if self.has_slept() => return Waited::Woken(self.woken_at(woken)),
                State::Woken => return Waited::NotAsleep,
            }
        }
    }

    /// Enters into the books how a wait ended.
    #[inline]
    fn enter(&mut self, waited: Waited) {
        let (points, missed) = match waited {
            Waited::Woken(Wakeup { due, missed, .. }) if self.stop.is_before(due) => (0, missed),
            Waited::Woken(Wakeup { due, missed, .. }) => {
                (1 + self.stop.cut_missed(missed, due, self.grid.interval), missed)
            }
            Waited::NotAsleep => (1, 0),
            Waited::Done | Waited::Stopped | Waited::Lost(_) => (0, 0),
        };
        self.accounted += points;
        self.awake.tell(self.exchange.found_awake(), missed);
    }

    /// Whether the probe has slept since it was last asked, which is asked after each wakeup: however
    /// long the way to its sleep took, the kernel knows whether it came there. In between it does
    /// nothing that sleeps, unless it has to go home to its CPU.
    #[inline]
    fn has_slept(&mut self) -> bool {
        // This call cannot fail; without an answer, a probe that returned is taken to have slept.
        let Ok(sleeps) = sched::sleeps() else { return true };
        std::mem::replace(&mut self.sleeps, sleeps) != sleeps
    }

    #[inline]
    fn woken_at(&mut self, woken: MonoNs) -> Wakeup {
        let due = self.exchange.due();
        if let Some(answers) = &mut self.answers {
            answers.put(due.0, woken.0);
        }
        let interval_ns = self.grid.interval.0;
        // The waker finds the probe awake at these. After the last point it calls no more.
        let missed = match woken.since(due).0 < interval_ns {
            true => 0,
            false => woken.min(self.grid.last()).since(due).0 / interval_ns,
        };
        Wakeup { due, woken, missed }
    }
}

impl<C> Drop for WakerWakeups<'_, C> {
    fn drop(&mut self) {
        self.exchange.stop();
        if let Some(thread) = self.waker.take() {
            let _ = thread.end();
        }
    }
}

#[cfg(test)]
mod tests;
