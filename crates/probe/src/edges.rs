//! Two lines of a GPIO chip, on which edges are sent and answered as bytes are on a serial line.
//!
//! An edge carries no number: only whether it rises or falls. So at most two are on their way at a time, the
//! second only once the answer of the first is overdue, and the level of what comes tells which one it answers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wakescope_core::line::{AnsweredBy, Attachment, EdgeWaits, GpioLines, Line};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::gpio::{Chip, EDGES, Edge, Input, Output};
use wakescope_sys::poll::wait_readable;
use wakescope_sys::time_namespace::check_clock;

use crate::line::{LineError, PATIENCE, Port};
use crate::stimulus::line::{Bounds, Wire};

/// One edge may be on its way, and a second one once its answer is overdue. The levels of successive edges differ, so
/// a late answer cannot be mistaken for that of the next edge. It could be mistaken for that of the one after, which
/// has the same level: so the sender gives up after two edges in a row without an answer.
const OF_EDGES: Bounds = Bounds { most_on_their_way: 1, give_up: 2 };

/// Nothing came for so long before the first edge is sent.
const QUIET: SpanNs = SpanNs(10_000_000);

/// Two lines of a chip that this process has for itself. Both are given back when it is dropped.
pub struct EdgeLine {
    /// The line edges go out on.
    pub(crate) out: Output,
    /// The line they come in on.
    pub(crate) into: Input,
    /// The name of both.
    pub path: PathBuf,
    /// How it is attached.
    pub line: Line,
    /// The byte that the last edge stands for.
    sent: u8,
    /// How long each of the edges that came last had waited.
    waited: [SpanNs; EDGES],
    waits: EdgeWaits,
}

impl EdgeLine {
    /// Takes the two lines, low first, which is where a sender's edges begin.
    pub fn open(lines: GpioLines<'_>) -> Result<Self, LineError> {
        Self::open_at(lines, |_| Ok(false))
    }

    /// Takes the two lines to answer on: the one that edges go out on is the inverse of the other.
    pub fn open_to_answer(lines: GpioLines<'_>) -> Result<Self, LineError> {
        Self::open_at(lines, |into| into.is_high().map(|is_high| !is_high))
    }

    fn open_at(
        GpioLines { chip: name, out, into }: GpioLines<'_>,
        level: impl Fn(&Input) -> io::Result<bool>,
    ) -> Result<Self, LineError> {
        check_clock()?;
        let path = fs::canonicalize(name).map_err(|e| LineError::Open(name.into(), e))?;
        let no_chip = || LineError::NotAChip(path.clone(), out, into);
        if !is_chip(&path) {
            return Err(no_chip());
        }
        let chip = Chip::open(&path).map_err(|e| LineError::Open(path.clone(), e))?;
        let count = chip.line_count().map_err(|e| LineError::Open(path.clone(), e))?;
        if out.max(into) >= count {
            return Err(no_chip());
        }
        let refused = |line| {
            let (path, chip) = (path.clone(), &chip);
            move |e: io::Error| match (e.kind(), chip.user_of(line)) {
                (io::ErrorKind::ResourceBusy, Ok(by)) => {
                    LineError::GpioBusy(path, line, by.unwrap_or_default())
                }
                _ => LineError::Gpio(path, line, e),
            }
        };
        let input = chip.input(into).map_err(refused(into))?;
        let is_high = level(&input).map_err(refused(into))?;
        let output = chip.output(out, is_high).map_err(refused(out))?;
        let line = Line { attachment: Attachment::Gpio, ..Line::default() };
        let path = format!("{}:{out}:{into}", path.display()).into();
        let (waited, waits) = ([SpanNs(0); EDGES], EdgeWaits::default());
        Ok(Self { out: output, into: input, path, line, sent: 0, waited, waits })
    }

    /// Finds out what answers at the other end. It takes some two seconds at most.
    pub(crate) fn greet(&mut self) -> Result<(), LineError> {
        let failed = |path: &Path, e| LineError::Failed(path.to_owned(), e);
        let deadline = clock::now().after(PATIENCE);
        // Edges from when the lines were set up, on this side and the other.
        while clock::now() < deadline
            && !self
                .edges_until(clock::now().after(QUIET))
                .map_err(|e| failed(&self.path, e))?
                .is_empty()
        {}
        let mut known = None;
        let mut others = 0_u32;
        // It was low. The first byte is 0, whose edge falls.
        for is_high in [true, false, true] {
            self.out.set(is_high).map_err(|e| failed(&self.path, e))?;
            while known.is_none_or(|(_, level)| level != is_high) {
                let edges = self.edges_until(deadline).map_err(|e| failed(&self.path, e))?;
                if edges.is_empty() {
                    return Err(match others {
                        0 => LineError::NoAnswer(self.path.clone()),
                        _ => LineError::OtherBytes(self.path.clone()),
                    });
                }
                for edge in edges {
                    let by = if edge.is_high == is_high {
                        AnsweredBy::Echo
                    } else {
                        AnsweredBy::Responder
                    };
                    match known {
                        Some((before, _)) if before != by => others += 1,
                        _ => known = Some((by, is_high)),
                    }
                }
            }
        }
        self.line.answered_by = known.map(|(by, _)| by).unwrap_or_default();
        Ok(())
    }

    /// The edges that come until `until`; none if none do.
    fn edges_until(&mut self, until: MonoNs) -> io::Result<Vec<Edge>> {
        let mut edges = [Edge::default(); EDGES];
        loop {
            let left = until.since(clock::now());
            if left.0 == 0 {
                return Ok(Vec::new());
            }
            if wait_readable(self.into.file(), left)? {
                let count = self.into.read(&mut edges)?;
                return Ok(edges[..count].to_vec());
            }
        }
    }
}

impl Wire for EdgeLine {
    #[inline]
    fn send(&mut self, byte: u8) -> io::Result<Option<MonoNs>> {
        let at = clock::now();
        self.out.set(is_high(byte))?;
        self.sent = byte;
        Ok(Some(at))
    }

    #[inline]
    fn receive(&mut self, until: MonoNs, into: &mut [u8]) -> io::Result<(MonoNs, usize)> {
        let is_there = wait_readable(self.into.file(), until.since(clock::now()))?;
        let at = clock::now();
        if !is_there {
            return Ok((at, 0));
        }
        let mut edges = [Edge::default(); EDGES];
        let count = self.into.read(&mut edges)?.min(into.len());
        for ((byte, waited), edge) in into.iter_mut().zip(&mut self.waited).zip(&edges[..count]) {
            *byte = byte_of(self.line.answered_by, self.sent, edge.is_high);
            *waited = at.since(edge.at);
        }
        Ok((at, count))
    }

    #[inline]
    fn accept(&mut self, place: usize) {
        self.waits.add(self.waited[place]);
    }

    fn bounds(&self) -> Bounds {
        OF_EDGES
    }

    fn own_wakeup(&self) -> Option<EdgeWaits> {
        Some(self.waits)
    }

    fn forget_own_wakeup(&mut self) {
        self.waits = EdgeWaits::default();
    }
}

/// The level that a byte stands for. From one to the next it changes, so each is an edge.
fn is_high(byte: u8) -> bool {
    byte & 1 != 0
}

/// The byte that an edge stands for which came after `sent`: its answer if the level is right, and else that of
/// the edge before, which is late if it is still on its way.
fn byte_of(answered_by: AnsweredBy, sent: u8, level: bool) -> u8 {
    let answer = answered_by.answer(sent);
    if is_high(answer) == level { answer } else { answered_by.answer(sent.wrapping_sub(1)) }
}

/// Whether a path is that of a chip, as the kernel lists them: opening has effects on other devices.
fn is_chip(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    Path::new("/sys/bus/gpio/devices").join(name).exists()
}

/// A line of either kind.
pub enum AnyLine {
    /// A serial line, which carries bytes.
    Bytes(Port),
    /// Lines of a GPIO chip, which carry edges.
    Edges(EdgeLine),
}

impl AnyLine {
    /// How it is attached.
    pub fn line(&self) -> &Line {
        match self {
            Self::Bytes(port) => &port.line,
            Self::Edges(edges) => &edges.line,
        }
    }

    /// Its name, without links.
    pub fn path(&self) -> &Path {
        match self {
            Self::Bytes(port) => &port.path,
            Self::Edges(edges) => &edges.path,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use wakescope_core::random::Random;

    use super::*;
    use crate::stimulus::line::RoundTrips;
    use crate::stimulus::{Grid, WaitForStimulus, Waited};
    use crate::stop::Stop;

    #[test]
    fn an_edge_of_the_right_level_is_the_answer_of_the_last_one_and_another_that_of_the_one_before()
    {
        for by in [AnsweredBy::Responder, AnsweredBy::Echo] {
            for sent in 0..=u8::MAX {
                assert_ne!(is_high(sent), is_high(sent.wrapping_add(1)), "each is an edge");
                let level = is_high(sent) == (by == AnsweredBy::Echo);
                assert_eq!(by.answer(byte_of(by, sent, level)), sent);
                let other = by.answer(byte_of(by, sent, !level));
                assert_eq!(other.wrapping_add(1), sent);
            }
        }
    }

    /// Two lines in simulated time, of which only levels come back: in order, some late, some never.
    struct Simulated {
        now: u64,
        sent: u8,
        random: Random,
        coming: VecDeque<(u64, u8)>,
        /// When each edge was sent, and the one that the last answer came from.
        sent_at: [u64; 256],
        came_from: u8,
    }

    impl Wire for Simulated {
        fn send(&mut self, byte: u8) -> io::Result<Option<MonoNs>> {
            self.sent = byte;
            self.sent_at[usize::from(byte)] = self.now;
            if self.random.below(5) > 0 {
                let after = 1_000 + self.random.below(1_500_000_000) as u64;
                let least = self.coming.back().map_or(0, |last| last.0 + 1);
                self.coming.push_back(((self.now + after).max(least), byte));
            }
            Ok(Some(MonoNs(self.now)))
        }

        fn receive(&mut self, until: MonoNs, into: &mut [u8]) -> io::Result<(MonoNs, usize)> {
            let next = self.coming.front().map_or(u64::MAX, |next| next.0);
            self.now = self.now.max(next.min(until.0));
            if next > self.now {
                return Ok((MonoNs(self.now), 0));
            }
            let (_, byte) = self.coming.pop_front().unwrap();
            let by = AnsweredBy::Responder;
            into[0] = byte_of(by, self.sent, is_high(by.answer(byte)));
            self.came_from = byte;
            Ok((MonoNs(self.now), 1))
        }

        fn bounds(&self) -> Bounds {
            OF_EDGES
        }
    }

    #[test]
    fn a_late_answer_is_never_taken_for_that_of_a_later_edge() {
        let stop = Stop::default();
        let (mut answered, mut unanswered, mut late) = (0, 0, 0);
        for seed in 0..300 {
            let (random, coming) = (Random::new(seed), VecDeque::new());
            let sent_at = [0; 256];
            let wire = Simulated { now: 0, sent: 0, random, coming, sent_at, came_from: 0 };
            let mut trips = RoundTrips::new(wire, AnsweredBy::Responder, &stop);
            let (start, interval) = (MonoNs(1_000_000), SpanNs(200_000_000));
            trips.begin(Grid { start, interval, points: 200 });
            let mut here = 0;
            while let Waited::Woken(wakeup) = trips.wait() {
                let Simulated { sent_at, came_from, .. } = trips.wire();
                let own = sent_at[usize::from(*came_from)];
                assert_eq!(wakeup.due.0, own, "seed {seed}: another edge's answer, {wakeup:?}");
                here += 1;
                late += u64::from(wakeup.woken.since(wakeup.due).0 > 1_000_000_000);
            }
            let seen = trips.beside().line.unwrap();
            // Unless nothing answers any more, each point counts once.
            if seen.fault.is_none() {
                assert_eq!(here + seen.unanswered + seen.left_out, 200, "seed {seed}: {seen:?}");
            }
            (answered, unanswered) = (answered + here, unanswered + seen.unanswered);
        }
        assert!(answered > 500 && unanswered > 300, "{answered}, {unanswered}");
        assert!(late > 100, "{late}");
    }

    #[test]
    fn what_is_no_chip_is_refused() {
        let open = |chip| EdgeLine::open(GpioLines { chip, out: 1, into: 2 });
        let text = open("/dev/null").err().unwrap().to_string();
        assert_eq!(text, "/dev/null is no GPIO chip with the lines 1 and 2");
        let text = open("/nowhere").err().unwrap().to_string();
        assert!(text.starts_with("cannot open the line /nowhere: No such file"), "{text}");
    }
}
