//! The waker's side.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use wakescope_core::plan::Between;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::process::fork;
use wakescope_sys::sched::{self, ThreadId};
use wakescope_sys::shared::Answers;
use wakescope_sys::timer_file::TimerFile;

use super::WakerPlace;
use super::exchange::{Exchange, State};
use crate::stimulus::Grid;
use crate::stimulus::channel::Channel;
use crate::stimulus::place::{Cpu, Place};

/// A grid on its way to the waker.
type Bytes = [u8; 3 * size_of::<u64>()];

/// How a grid is sent.
pub(super) fn to_bytes(grid: Grid) -> Bytes {
    let mut bytes = [0; size_of::<Bytes>()];
    let numbers = [grid.start.0, grid.interval.0, grid.points];
    for (place, number) in bytes.chunks_exact_mut(size_of::<u64>()).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

fn from_bytes(bytes: Bytes) -> Grid {
    let mut numbers = [0; 3];
    for (number, place) in numbers.iter_mut().zip(bytes.chunks_exact(size_of::<u64>())) {
        *number = u64::from_ne_bytes(place.try_into().unwrap_or_default());
    }
    let [start, interval, points] = numbers;
    Grid { start: MonoNs(start), interval: SpanNs(interval), points }
}

/// What a waker needs. As it may be a process that was forked, it neither allocates nor prints.
pub(super) struct Waking<C> {
    pub(super) exchange: Exchange,
    pub(super) channel: Arc<C>,
    /// Where grids come from.
    pub(super) orders: File,
    pub(super) announcements: Option<Answers>,
    pub(super) watches: bool,
    /// The CPU that the waker is bound to.
    pub(super) cpu: u32,
}

impl<C: Channel> Waking<C> {
    /// The whole life of the waker's thread, which is the waker or keeps its process.
    pub(super) fn live(&self, place: &WakerPlace, say_ready: &SyncSender<io::Result<ThreadId>>) {
        let prepared =
            sched::set_affinity(&[place.cpu]).and_then(|()| sched::set_schedule(place.schedule));
        // Real-time threads have no slack; for others 1 ns is the least that can be set.
        let _ = sched::set_timer_slack(SpanNs(1));
        let failed = prepared.is_err();
        if failed || place.between == Between::Threads {
            let _ = say_ready.send(prepared.map(|()| sched::this_thread()));
            if !failed {
                self.obey();
            }
            return;
        }
        // It has the place, the schedule and the slack of this thread, and dies with it.
        match fork(&mut || self.obey()) {
            Err(e) => drop(say_ready.send(Err(e))),
            Ok(mut child) => {
                let _ = say_ready.send(Ok(child.thread()));
                while !self.exchange.is_stopped() {
                    if child.wait_interruptibly().is_some() {
                        return self.exchange.lose_waker();
                    }
                }
                child.kill();
                child.wait();
            }
        }
    }

    /// Wakes the probe on each grid that comes.
    fn obey(&self) {
        self.exchange.become_waker();
        // Only whoever follows the probe has a use for it.
        let watched = self.announcements.as_ref().filter(|_| self.watches);
        let watchdog = watched.and_then(|_| TimerFile::new().ok());
        let mut place = Cpu::new(Some(self.cpu));
        while !self.exchange.is_stopped() {
            let mut bytes = [0; size_of::<Bytes>()];
            match (&self.orders).read(&mut bytes) {
                Ok(length) if length == bytes.len() => {
                    self.wake_on(from_bytes(bytes), watchdog.as_ref(), &mut place);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // A grid is written as a whole.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Wakes the probe at each point of `grid`, from the waker's CPU.
    pub(super) fn wake_on(&self, grid: Grid, watchdog: Option<&TimerFile>, place: &mut impl Place) {
        let Grid { start: mut at, interval, points: mut left } = grid;
        while left > 0 && !self.exchange.is_stopped() {
            self.watch(at, watchdog);
            if clock::sleep_until(at).is_err() {
                continue;
            }
            // Before the clock is read: the way home is no part of a wakeup.
            if !self.is_at_home(place) {
                return self.exchange.lose_cpu(self.cpu);
            }
            let now = clock::now();
            match self.exchange.state() {
                State::Waiting => {
                    if let Err(cause) = self.wake(now) {
                        return self.exchange.fail(cause.raw_os_error().unwrap_or(0));
                    }
                }
                State::Woken => self.exchange.find_awake(),
            }
            let late_ns = now.since(at).0;
            let skipped = (late_ns / interval.0.max(1)).min(left - 1);
            self.exchange.skip(skipped);
            left -= skipped + 1;
            at = at.after(SpanNs((skipped + 1).saturating_mul(interval.0)));
        }
        // The last call may have been made elsewhere.
        self.is_at_home(place);
        self.exchange.end(|| self.channel.before_interrupt(&self.exchange));
    }

    /// Whether the waker is on its CPU, or could be brought back to it, which is counted.
    #[inline]
    fn is_at_home(&self, place: &mut impl Place) -> bool {
        if place.is_home() {
            return true;
        }
        self.exchange.count_move();
        place.go_home()
    }

    fn watch(&self, at: MonoNs, watchdog: Option<&TimerFile>) {
        let (Some(watchdog), Some(announcements)) = (watchdog, &self.announcements) else { return };
        let patience = announcements.patience();
        if patience > 0 {
            // Without it less is seen, and the wakeup is as late.
            let _ = watchdog.arm(at.after(SpanNs(patience)));
        }
    }

    /// Wakes the probe, at `due`, which was read just before.
    pub(super) fn wake(&self, due: MonoNs) -> io::Result<()> {
        if let Some(announcements) = &self.announcements {
            announcements.announce(due.0);
        }
        self.exchange.set_woken(due);
        match self.channel.wake(&self.exchange) {
            // The waker never waits for room: the probe still sleeps, and is woken another time.
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                self.exchange.offer();
                self.exchange.skip(1);
                Ok(())
            }
            other => other,
        }
    }
}
