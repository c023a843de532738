use std::collections::VecDeque;

use wakescope_core::random::Random;

use super::*;

const START: MonoNs = MonoNs(1_000_000);
const INTERVAL: SpanNs = SpanNs(1_000_000);

/// What a simulated machine does with the byte that it gets as so-many-th.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// Answers after so long.
    Answers(u64),
    /// Answers after so long with another byte, this far from the right one.
    Errs(u64, u8),
    /// Nothing.
    Ignores,
    /// The line takes no byte.
    Blocks,
    /// The line is closed.
    Closes,
}

/// A line in simulated time: it keeps the order of answers.
struct Simulated<F> {
    now: u64,
    sent: u64,
    does: F,
    coming: VecDeque<(u64, u8)>,
    /// How many bytes were accepted as answers.
    accepted: usize,
}

impl<F: FnMut(u64) -> Does> Simulated<F> {
    fn new(does: F) -> Self {
        Self { now: 0, sent: 0, does, coming: VecDeque::new(), accepted: 0 }
    }

    fn come(&mut self, after: u64, byte: u8) {
        let least = self.coming.back().map_or(0, |last| last.0);
        self.coming.push_back(((self.now + after).max(least), byte));
    }
}

impl<F: FnMut(u64) -> Does> Wire for Simulated<F> {
    fn send(&mut self, byte: u8) -> io::Result<Option<MonoNs>> {
        let at = MonoNs(self.now);
        let does = (self.does)(self.sent);
        self.sent += 1;
        let answer = AnsweredBy::Responder.answer(byte);
        match does {
            Does::Answers(after) => self.come(after, answer),
            Does::Errs(after, by) => self.come(after, answer.wrapping_sub(by)),
            Does::Ignores => {}
            Does::Blocks => return Ok(None),
            Does::Closes => return Err(closed()),
        }
        Ok(Some(at))
    }

    fn receive(&mut self, until: MonoNs, into: &mut [u8]) -> io::Result<(MonoNs, usize)> {
        let next = self.coming.front().map_or(u64::MAX, |next| next.0);
        self.now = self.now.max(next.min(until.0));
        let mut count = 0;
        while count < into.len() && self.coming.front().is_some_and(|next| next.0 <= self.now) {
            into[count] = self.coming.pop_front().map_or(0, |next| next.1);
            count += 1;
        }
        Ok((MonoNs(self.now), count))
    }

    fn accept(&mut self, _: usize) {
        self.accepted += 1;
    }
}

/// All round trips of `points` bytes, and what was seen beside them.
fn run(points: u64, does: impl FnMut(u64) -> Does) -> (Vec<u64>, LineSeen, Waited) {
    let stop = Stop::default();
    let mut trips = RoundTrips::new(Simulated::new(does), AnsweredBy::Responder, &stop);
    trips.begin(Grid { start: START, interval: INTERVAL, points });
    let mut took = Vec::new();
    loop {
        match trips.wait() {
            Waited::Woken(Wakeup { due, woken, missed }) => {
                assert_eq!(missed, 0);
                took.push(woken.since(due).0);
            }
            other => {
                // No stray byte is taken for an answer by the line either.
                assert_eq!(trips.wire().accepted, took.len());
                return (took, trips.beside().line.unwrap(), other);
            }
        }
    }
}

#[track_caller]
fn check(points: u64, does: impl FnMut(u64) -> Does, want: &[u64], seen: [u64; 3]) {
    let (took, got, ended) = run(points, does);
    assert_eq!(took, want);
    assert_eq!([got.unanswered, got.stray, got.left_out], seen, "{got:?}");
    assert_eq!((ended, got.fault), (Waited::Done, None));
}

#[test]
fn every_byte_is_a_round_trip_or_is_counted() {
    use Does::{Answers, Blocks, Errs, Ignores};
    let usual = Answers(40_000);
    let but = |at: u64, does: Does| move |number| if number == at { does } else { usual };
    check(5, |_| usual, &[40_000; 5], [0, 0, 0]);
    // A lost byte is known to be lost as soon as a later one is answered, or a second after the last one.
    check(5, but(2, Ignores), &[40_000; 4], [1, 0, 0]);
    check(5, but(4, Ignores), &[40_000; 4], [1, 0, 0]);
    check(5, but(2, Errs(9, 1)), &[40_000; 4], [1, 1, 0]);
    check(5, but(2, Errs(9, 200)), &[40_000; 4], [1, 1, 0]);
    check(5, but(2, Blocks), &[40_000; 4], [0, 0, 1]);
    // A stall is seen by every byte that is sent while it lasts: no point is left out.
    let stall = |number| if number == 0 { Answers(4_500_000) } else { usual };
    check(6, stall, &[4_500_000, 3_500_000, 2_500_000, 1_500_000, 500_000, 40_000], [0, 0, 0]);
}

#[test]
fn numbers_begin_anew_after_256_bytes() {
    check(1_000, |_| Does::Answers(40_000), &[40_000; 1_000], [0, 0, 0]);
    // Always some on their way.
    check(1_000, |_| Does::Answers(90_500_000), &[90_500_000; 1_000], [0, 0, 0]);
}

#[test]
fn late_answers_are_never_taken_for_those_of_later_bytes() {
    // One byte's answer takes seconds, and the line keeps the order: all behind it are as late.
    for (stall_ms, probing) in [(1_500, 1), (3_700, 3), (8_200, 8)] {
        let does =
            |number| Does::Answers(if number == 300 { stall_ms * 1_000_000 } else { 40_000 });
        let (took, seen, ended) = run(12_000, does);
        assert_eq!(ended, Waited::Done);
        // Each answer is that of its own byte, so the round trips are as long as the stall was.
        assert_eq!((seen.unanswered, seen.stray), (0, 0), "{stall_ms}");
        assert_eq!(took.len() as u64 + seen.left_out, 12_000, "{stall_ms}");
        let held_up: Vec<u64> = (0..128).map(|ms| (stall_ms - ms) * 1_000_000).collect();
        assert_eq!(took[300..428], held_up, "{stall_ms}");
        // Of the bytes that were sent meanwhile to see whether anything answers, one a second:
        let late = took[428..].iter().filter(|&&ns| ns != 40_000).count();
        assert_eq!(late, probing, "{stall_ms}");
        assert!(took[428..].iter().all(|&ns| (40_000..=stall_ms * 1_000_000).contains(&ns)));
    }
}

/// A target that stalled for 1.25 s had a "largest round trip" of 233 ms, with 101 bytes unanswered.
#[test]
fn a_stall_of_more_than_a_second_is_as_long_as_it_was() {
    let stop = Stop::default();
    let does = |number| Does::Answers(if number == 50 { 1_250_000_000 } else { 40_000 });
    let mut trips = RoundTrips::new(Simulated::new(does), AnsweredBy::Responder, &stop);
    trips.begin(Grid { start: START, interval: SpanNs(10_000_000), points: 500 });
    let mut longest = SpanNs(0);
    while let Waited::Woken(Wakeup { due, woken, .. }) = trips.wait() {
        longest = longest.max(woken.since(due));
    }
    assert_eq!(longest, SpanNs(1_250_000_000));
    let seen = trips.beside().line.unwrap();
    assert_eq!((seen.unanswered, seen.stray), (0, 0), "{seen:?}");
}

#[test]
fn a_run_waits_for_the_last_answers_and_no_longer_than_a_second() {
    // The first byte is lost, the second is answered late, and the last two never are.
    let does = |number| match number {
        1 => Does::Answers(900_000_000),
        0 | 3 | 4 => Does::Ignores,
        _ => Does::Answers(40_000),
    };
    check(5, does, &[900_000_000, 899_000_000], [3, 0, 0]);
}

#[test]
fn a_line_without_answers_ends_the_run_and_so_does_one_that_is_closed() {
    for (does, want) in [
        (Does::Ignores, "nothing answers any more"),
        (Does::Closes, "its other end was closed, or its device is gone"),
    ] {
        let (took, seen, ended) =
            run(u64::MAX, |number| if number < 50 { Does::Answers(9) } else { does });
        assert_eq!((took.len(), ended), (50, Waited::Stopped));
        assert_eq!(seen.fault.as_deref(), Some(want));
    }
    let (_, seen, _) = run(u64::MAX, |_| Does::Ignores);
    assert!(seen.unanswered > 128 && seen.unanswered < 256, "{seen:?}");
}

#[test]
fn whatever_happens_each_point_counts_once() {
    let seed = 7;
    let mut random = Random::new(seed);
    for round in 0..200 {
        let points = 1 + random.number() % 2_000;
        let (took, seen, ended) = run(points, |_| match random.number() % 40 {
            0 => Does::Ignores,
            1 => Does::Errs(random.number() % 3_000_000, random.number().to_le_bytes()[0].max(1)),
            2 => Does::Blocks,
            3 => Does::Answers(random.number() % 2_000_000_000),
            _ => Does::Answers(random.number() % 900_000),
        });
        let text = format!("seed {seed}, round {round}: {seen:?}");
        assert_eq!(ended, Waited::Done, "{text}");
        let all = took.len() as u64 + seen.unanswered + seen.left_out;
        assert_eq!(all, points, "{text}");
    }
}

#[test]
fn a_line_on_which_bytes_never_end_can_be_stopped() {
    struct Flood(u64, std::sync::Arc<Stop>);
    impl Wire for Flood {
        fn send(&mut self, _: u8) -> io::Result<Option<MonoNs>> {
            Ok(Some(MonoNs(self.0)))
        }
        fn receive(&mut self, _: MonoNs, into: &mut [u8]) -> io::Result<(MonoNs, usize)> {
            self.0 += 1_000;
            if self.0 > 20_000_000 {
                self.1.at(MonoNs(self.0));
            }
            into.fill(0);
            Ok((MonoNs(self.0), into.len()))
        }
    }
    let stop = std::sync::Arc::new(Stop::default());
    let wire = Flood(0, stop.clone());
    let mut trips = RoundTrips::new(wire, AnsweredBy::Responder, &stop);
    trips.begin(Grid { start: START, interval: INTERVAL, points: u64::MAX });
    assert_eq!(trips.wait(), Waited::Stopped);
    assert!(trips.beside().line.unwrap().stray > 1_000);
}
