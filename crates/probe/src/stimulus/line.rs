//! Round trips over a line: a byte out, the answer of another machine in. Over lines of a GPIO chip, edges
//! take the place of bytes.
//!
//! Bytes go out on a grid whether or not earlier ones were answered, as the edges of a function generator
//! do: a stall of the other machine is seen by every byte that is sent meanwhile, for a second. Then bytes go
//! out one a second, until an answer comes. Each byte is the next number modulo 256. So an answer that comes
//! late is known as that byte's, and since the line keeps their order, it tells which bytes before it got none.

use std::io::{self, Read, Write};

use wakescope_core::line::{AnsweredBy, EdgeWaits};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::poll::wait_readable;

use super::{Beside, Grid, WaitForStimulus, Waited, Wakeup};
use crate::line::{Port, closed, closed_or, is_passing};
use crate::stop::Stop;

/// After so long without an answer, no more bytes are sent than are needed to see whether anything answers.
const PATIENCE: SpanNs = SpanNs(1_000_000_000);

/// How many bytes may be without an answer.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// So many may be on their way before the first of them is overdue.
    pub most_on_their_way: u8,
    /// If all on their way are overdue so many times in a row, nothing answers any more. With those on their
    /// way they are fewer than there are numbers: so a late answer is never taken for that of a later byte.
    pub give_up: u8,
}

/// Those of bytes, which carry numbers.
const OF_BYTES: Bounds = Bounds { most_on_their_way: 128, give_up: 10 };

/// The way that bytes go: a line, or a simulation of one in tests.
pub trait Wire {
    /// Sends a byte, and returns the time read before; `None` if the line takes none now.
    fn send(&mut self, byte: u8) -> io::Result<Option<MonoNs>>;
    /// Waits until `until`, or less, for bytes, and returns the time read first thing after the wait and how
    /// many came. None come in a wait that a signal ends.
    fn receive(&mut self, until: MonoNs, into: &mut [u8]) -> io::Result<(MonoNs, usize)>;
    /// How many bytes may be without an answer.
    fn bounds(&self) -> Bounds {
        OF_BYTES
    }
    /// Takes note that the byte in that place, of those received last, was the answer of one on its way.
    fn accept(&mut self, _place: usize) {}
    /// How long it took to run after answers came, by the kernel's stamps; `None` where it makes none.
    fn own_wakeup(&self) -> Option<EdgeWaits> {
        None
    }
    /// Forgets that, before a run begins.
    fn forget_own_wakeup(&mut self) {}
}

/// What was seen on a line beside answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineSeen {
    /// Bytes that got no answer.
    pub unanswered: u64,
    /// Received bytes that answer nothing.
    pub stray: u64,
    /// Points of the grid at which no byte was sent.
    pub left_out: u64,
    /// How long it took to run after answers came, where that is known.
    pub own_wakeup: Option<EdgeWaits>,
    /// Why the line cannot be used any more, if so.
    pub fault: Option<String>,
}

/// Bytes sent over a line and their answers.
pub struct RoundTrips<'a, W> {
    wire: W,
    bounds: Bounds,
    answered_by: AnsweredBy,
    stop: &'a Stop,
    next: MonoNs,
    interval: SpanNs,
    left: u64,
    /// When each byte was sent.
    sent: [MonoNs; 256],
    /// The number of the oldest byte on its way, and how many are.
    oldest: u8,
    on_their_way: u8,
    /// How many of these, the oldest first, got no answer within the patience.
    overdue: u8,
    /// How often all of them were overdue since the last answer.
    silences: u8,
    received: [u8; 64],
    /// Of these, those that were not looked at yet.
    unread: std::ops::Range<usize>,
    received_at: MonoNs,
    seen: LineSeen,
}

impl<'a, W: Wire> RoundTrips<'a, W> {
    /// Round trips over `wire`, whose other end answers as `answered_by`. Waits end once `stop` is set.
    pub fn new(wire: W, answered_by: AnsweredBy, stop: &'a Stop) -> Self {
        Self {
            bounds: wire.bounds(),
            wire,
            answered_by,
            stop,
            next: MonoNs(0),
            interval: SpanNs(1),
            left: 0,
            sent: [MonoNs(0); 256],
            oldest: 0,
            on_their_way: 0,
            overdue: 0,
            silences: 0,
            received: [0; 64],
            unread: 0..0,
            received_at: MonoNs(0),
            seen: LineSeen::default(),
        }
    }

    /// The way that its bytes go.
    #[cfg(test)]
    pub(crate) fn wire(&self) -> &W {
        &self.wire
    }

    /// The first answer among the bytes that were received and not looked at.
    #[inline]
    fn next_answer(&mut self) -> Option<Wakeup> {
        for at in self.unread.by_ref() {
            let number = self.answered_by.answer(self.received[at]);
            let before = number.wrapping_sub(self.oldest);
            if before >= self.on_their_way {
                self.seen.stray += 1;
                continue;
            }
            // A line keeps the order: older ones get no answer any more.
            self.seen.unanswered += u64::from(before);
            self.oldest = number.wrapping_add(1);
            self.on_their_way -= before + 1;
            self.overdue = self.overdue.saturating_sub(before + 1);
            self.silences = 0;
            self.wire.accept(at);
            let due = self.sent[usize::from(number)];
            return Some(Wakeup { due, woken: self.received_at, missed: 0 });
        }
        None
    }

    /// Whether a byte may be sent. While an answer is overdue, only one that is not may be on its way.
    fn may_send(&self) -> bool {
        let is_late = self.overdue > 0 || self.silences > 0;
        let most = if is_late { self.overdue + 1 } else { self.bounds.most_on_their_way };
        self.left > 0 && self.on_their_way < most
    }

    /// When the next answer is overdue; `None` if all are, or none is waited for.
    fn patience_ends(&self) -> Option<MonoNs> {
        let next = self.oldest.wrapping_add(self.overdue);
        let is_waited_for = self.overdue < self.on_their_way;
        is_waited_for.then(|| self.sent[usize::from(next)].after(PATIENCE))
    }

    fn next_event(&self) -> MonoNs {
        match (self.may_send(), self.patience_ends()) {
            (true, Some(end)) => self.next.min(end),
            (false, Some(end)) => end,
            (_, None) => self.next,
        }
    }

    /// Does what is due by `now`.
    fn act(&mut self, now: MonoNs) -> io::Result<()> {
        while self.patience_ends().is_some_and(|end| now >= end) {
            self.overdue += 1;
            if self.overdue == self.on_their_way {
                self.silences += 1;
                self.check_answers()?;
            }
        }
        if self.may_send() && now >= self.next { self.send_due(now) } else { Ok(()) }
    }

    /// Fails if nothing answers any more, or so little that numbers would come again.
    fn check_answers(&mut self) -> io::Result<()> {
        let Bounds { most_on_their_way, give_up } = self.bounds;
        if self.silences < give_up && self.on_their_way + 1 < most_on_their_way + give_up {
            return Ok(());
        }
        self.wait_no_more();
        Err(io::Error::new(io::ErrorKind::TimedOut, "nothing answers any more"))
    }

    /// Counts the bytes on their way as bytes without an answer. One that comes later answers nothing.
    fn wait_no_more(&mut self) {
        self.seen.unanswered += u64::from(self.on_their_way);
        self.oldest = self.oldest.wrapping_add(self.on_their_way);
        (self.on_their_way, self.overdue) = (0, 0);
    }

    /// Sends the byte of the latest point up to `now`, and leaves out those before.
    fn send_due(&mut self, now: MonoNs) -> io::Result<()> {
        let passed = (now.since(self.next).0 / self.interval.0).min(self.left - 1);
        self.seen.left_out += passed;
        self.left -= passed + 1;
        self.next = self.next.after(SpanNs((passed + 1).saturating_mul(self.interval.0)));
        let number = self.oldest.wrapping_add(self.on_their_way);
        match self.wire.send(number)? {
            Some(at) => {
                self.sent[usize::from(number)] = at;
                self.on_their_way += 1;
            }
            None => self.seen.left_out += 1,
        }
        Ok(())
    }

    /// The run ended at `at`: the points that were passed over by then are left out. Answers to bytes that are
    /// on their way still count.
    fn send_no_more(&mut self, at: MonoNs) {
        let passed = at.since(self.next).0 / self.interval.0.max(1);
        self.seen.left_out += passed.min(self.left);
        self.left = 0;
    }

    #[cold]
    fn fail(&mut self, e: &io::Error) -> Waited {
        self.seen.fault = Some(e.to_string());
        Waited::Stopped
    }
}

impl<W: Wire> WaitForStimulus for RoundTrips<'_, W> {
    fn begin(&mut self, grid: Grid) {
        (self.next, self.interval, self.left) = (grid.start, grid.interval, grid.points);
        self.interval.0 = self.interval.0.max(1);
        // What went wrong before is not the run's, but for a line that is gone.
        self.seen = LineSeen { fault: self.seen.fault.take(), ..LineSeen::default() };
        self.wire.forget_own_wakeup();
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        if self.seen.fault.is_some() {
            return Waited::Stopped;
        }
        loop {
            if let Some(answer) = self.next_answer() {
                return Waited::Woken(answer);
            }
            if let Some(stopped) = self.stop.time() {
                self.send_no_more(stopped);
            }
            if self.left == 0 && self.overdue == self.on_their_way {
                self.wait_no_more();
                return if self.stop.is_set() { Waited::Stopped } else { Waited::Done };
            }
            let until = self.next_event();
            // Also while bytes come without end.
            if self.received_at >= until {
                match self.act(self.received_at) {
                    Ok(()) => continue,
                    Err(e) => return self.fail(&e),
                }
            }
            match self.wire.receive(until, &mut self.received) {
                Ok((at, count)) => (self.received_at, self.unread) = (at, 0..count),
                Err(e) if is_passing(&e) => {}
                Err(e) => return self.fail(&e),
            }
        }
    }

    #[inline]
    fn period(&self) -> SpanNs {
        self.interval
    }

    fn beside(&self) -> Beside {
        let own_wakeup = self.wire.own_wakeup();
        Beside { line: Some(LineSeen { own_wakeup, ..self.seen.clone() }), ..Beside::default() }
    }
}

impl Wire for Port {
    #[inline]
    fn send(&mut self, byte: u8) -> io::Result<Option<MonoNs>> {
        let at = clock::now();
        match self.file.write(&[byte]) {
            Ok(1) => Ok(Some(at)),
            Ok(_) => Ok(None),
            Err(e) if is_passing(&e) => Ok(None),
            Err(e) => Err(closed_or(e)),
        }
    }

    #[inline]
    fn receive(&mut self, until: MonoNs, into: &mut [u8]) -> io::Result<(MonoNs, usize)> {
        let mut from = self.answers();
        let is_there = wait_readable(from, until.since(clock::now()))?;
        let at = clock::now();
        if !is_there {
            return Ok((at, 0));
        }
        match from.read(into) {
            Ok(0) => Err(closed()),
            Ok(count) => Ok((at, count)),
            Err(e) => Err(closed_or(e)),
        }
    }
}

#[cfg(test)]
mod tests;
