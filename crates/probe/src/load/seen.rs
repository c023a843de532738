//! What a load's parent has heard of it, and what that makes in the end.

use wakescope_core::run::LoadResult;
use wakescope_core::starvation::Stall;
use wakescope_core::units::MonoNs;

use super::Spec;
use super::progress::Progress;
use super::report::{Reading, Report};

/// How a load is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whether it can go on.
    pub alive: bool,
    /// Whether its set-up is done.
    pub ready: bool,
    /// Units of work done since it was ready, as far as heard.
    pub work: u64,
    /// When it was last heard of.
    pub heard_at: Option<MonoNs>,
    /// When it was first heard that it had done as much as `work`. See [`Spec::counts_work`].
    pub work_grew_at: Option<MonoNs>,
    /// Why it cannot go on; empty otherwise.
    pub fault: String,
    /// The last line that its command said before it ended; empty if there is none.
    pub last_words: String,
}

/// What the keeper has told so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) ready: Option<Reading>,
    pub(super) last: Option<Reading>,
    pub(super) grew_at: Option<MonoNs>,
    pub(super) fault: Option<String>,
    pub(super) last_words: Option<String>,
    pub(super) remedy: Option<String>,
    pub(super) not_saved: Option<String>,
    /// What it leaves out, and why.
    pub(super) omissions: Vec<(String, String)>,
    /// Marks that were requested, and the numbers of those that bound the window.
    pub(super) marks: u32,
    pub(super) begin_mark: Option<u32>,
    pub(super) end_mark: Option<u32>,
    /// When the window was asked to begin.
    pub(super) begin_asked: Option<MonoNs>,
    pub(super) begin: Option<Reading>,
    pub(super) end: Option<Reading>,
    /// Marks of the time in which the loads run alone, and their answers: its beginning, when all loads are
    /// set up, its middle, and its end, before the first probe starts.
    pub(super) alone_marks: Vec<u32>,
    pub(super) alone: Vec<Reading>,
    /// From the beginning of the window to its end, or from the end of the set-up where there is none.
    progress: Option<Progress>,
}

impl Seen {
    /// Takes a report into account.
    pub(super) fn take(&mut self, report: Report) {
        let had_ended = self.end.is_some();
        let reading = match report {
            Report::Fault(fault) => {
                // The first is the cause, what follows are consequences.
                self.fault.get_or_insert(fault);
                return;
            }
            Report::LastWords(words) => {
                self.last_words.get_or_insert(words);
                return;
            }
            Report::Remedy(remedy) => {
                self.remedy.get_or_insert(remedy);
                return;
            }
            Report::NotSaved(cause) => {
                self.not_saved.get_or_insert(cause);
                return;
            }
            Report::Omission(part, reason) => {
                if self.omissions.len() < MOST_OMISSIONS {
                    self.omissions.push((part, reason));
                }
                return;
            }
            Report::HeldUp(span) => {
                if let Some(progress) = self.progress.as_mut().filter(|_| !had_ended) {
                    progress.add_held_up(span);
                }
                return;
            }
            Report::Ready(reading) => {
                self.ready = Some(reading);
                self.progress = Some(Progress::from(reading));
                reading
            }
            Report::Beat(reading) => reading,
            Report::Mark(number, reading) => {
                if self.begin_mark == Some(number) {
                    self.begin = Some(reading);
                    let asked = self.begin_asked.unwrap_or(reading.at);
                    self.progress = Some(Progress::begin(asked, reading));
                }
                if self.alone_marks.contains(&number) {
                    self.alone.push(reading);
                }
                if self.end_mark == Some(number) {
                    self.end = Some(reading);
                }
                reading
            }
        };
        if let Some(progress) = self.progress.as_mut().filter(|_| !had_ended) {
            progress.add(reading);
        }
        if self.last.is_none_or(|last| reading.work > last.work) {
            self.grew_at = Some(reading.at);
        }
        self.last = Some(reading);
    }

    /// Notes that the keeper said what it cannot mean.
    pub(super) fn object(&mut self) {
        self.fault.get_or_insert_with(|| "its reports cannot be read".into());
    }

    /// What the load did in the measured window.
    pub(super) fn result(&self, spec: &Spec, status: &Status) -> LoadResult {
        if !spec.counts_work() {
            // What a program says of its work is up to a second old: too old for a rate.
            let in_window = window(self.begin.or(self.ready), self.end.or(self.last));
            let text = spec.is_told_work().then(|| in_window.map_or(0, |(work, _)| work));
            let (begin, end) = (self.begin.or(self.ready), self.end.or(self.last));
            return LoadResult {
                name: spec.to_string(),
                window_ns: length(begin, end),
                work: text.unwrap_or(status.work),
                unit: spec.unit().into(),
                alive: status.alive,
                fault: status.fault.clone(),
                last_words: status.last_words.clone(),
                ..Default::default()
            };
        }
        // What was marked, as far as there was an answer. Work of a load that answered neither mark may all
        // be from before the window.
        let is_silent = self.begin_mark.is_some() && self.end.is_none();
        let begin = self.begin.or(self.ready.filter(|_| !is_silent));
        let end = self.end.or(self.last);
        let (work, per_second) = window(begin, end).unwrap_or_default();
        let (before_per_second, before_steady) = self.before();
        LoadResult {
            name: spec.to_string(),
            work,
            incomplete: self.end.is_none(),
            unit: spec.unit().into(),
            per_second,
            before_per_second,
            before_steady,
            alive: status.alive,
            fault: status.fault.clone(),
            last_words: status.last_words.clone(),
            // That is not known before its work has ended.
            not_saved: None,
            window_ns: length(begin, end),
            stall: self.stall(spec),
        }
    }
}

impl Seen {
    /// Work per second before the probes, and whether it was the same in both halves of that time. The
    /// second half counts: in the first, caches may still be cold. Probes already run for a warm-up before the
    /// window, so where they are, the time up to it says nothing.
    fn before(&self) -> (Option<f64>, Option<bool>) {
        let rate = |begin, end| window(begin, end).map(|(_, per_second)| per_second);
        if self.begin.is_none() {
            return (None, None);
        }
        match self.alone.as_slice() {
            &[first, middle, end] => {
                let halves = (rate(Some(first), Some(middle)), rate(Some(middle), Some(end)));
                let (Some(early), Some(late)) = halves else { return (None, None) };
                let is_steady = early.min(late) * STEADY >= early.max(late);
                (Some(late), Some(is_steady && late > 0.0))
            }
            [] => (rate(self.ready, self.begin), None),
            _ => (None, None),
        }
    }

    /// How long the load did nothing in the window.
    fn stall(&self, spec: &Spec) -> Stall {
        let parts = self.alone.windows(2).map(|pair| window(Some(pair[0]), Some(pair[1])));
        let rates = parts.map(|part| part.map_or(0.0, |(_, per_second)| per_second));
        // A load that did nothing in a part of that time works now and then, or was held up there too.
        let least = rates.reduce(f64::min).filter(|&rate| rate > 0.0);
        self.progress.as_ref().map(|p| p.stall(least, spec.at_once())).unwrap_or_default()
    }
}

/// No load has more parts than this.
const MOST_OMISSIONS: usize = 16;

/// Rates of which one is at most so many times the other are the same: halves of a second of file-move,
/// which moves some dozen files in it, differ by less.
const STEADY: f64 = 1.25;

/// The time between two readings, ns; 0 if one is missing.
fn length(begin: Option<Reading>, end: Option<Reading>) -> u64 {
    begin.zip(end).map_or(0, |(begin, end)| end.at.since(begin.at).0)
}

/// Work and work per second between two readings; `None` if one is missing or no time passed.
fn window(begin: Option<Reading>, end: Option<Reading>) -> Option<(u64, f64)> {
    let (begin, end) = (begin?, end?);
    let work = end.work.saturating_sub(begin.work);
    let span = end.at.since(begin.at);
    (span.0 > 0).then(|| (work, work as f64 * 1e9 / span.0 as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::units::SpanNs;

    const S: u64 = 1_000_000_000;

    fn reading(s: u64, work: u64) -> Reading {
        Reading { at: MonoNs(s * S), work }
    }

    /// The result after `reports`, with marks number 2 and 3 as the bounds of the window.
    fn result(spec: &Spec, reports: &[Report]) -> LoadResult {
        let mut seen = Seen { begin_mark: Some(2), end_mark: Some(3), ..Default::default() };
        reports.iter().cloned().for_each(|report| seen.take(report));
        let fault = seen.fault.clone().unwrap_or_default();
        let (work, alive) = (seen.last.map_or(0, |r| r.work), fault.is_empty());
        let (heard_at, work_grew_at) = (None, seen.grew_at);
        let last_words = seen.last_words.clone().unwrap_or_default();
        let status = Status { alive, ready: true, work, heard_at, work_grew_at, fault, last_words };
        seen.result(spec, &status)
    }

    #[track_caller]
    fn check(reports: &[Report], work: u64, per_second: f64, before: Option<f64>) {
        let got = result(&"find".parse().unwrap(), reports);
        assert_eq!((got.work, got.per_second), (work, per_second), "{reports:?}");
        assert_eq!(got.before_per_second, before, "{reports:?}");
    }

    #[test]
    fn the_window_is_between_the_marks() {
        use Report::{Beat, Fault, Mark, Ready};
        let ready = Ready(reading(10, 0));
        let begin = Mark(2, reading(12, 100));
        let end = Mark(3, reading(16, 500));
        check(&[], 0, 0.0, None);
        check(&[ready.clone(), begin.clone(), end.clone()], 400, 100.0, Some(50.0));
        // An earlier mark was overridden, later beats are outside.
        let early = Mark(1, reading(11, 10));
        let late = Beat(reading(17, 9999));
        check(&[ready.clone(), early, begin.clone(), end.clone(), late], 400, 100.0, Some(50.0));
        // Dead in the window: what was heard last is its end.
        let beat = Beat(reading(14, 300));
        let fault = Fault("x".into());
        check(&[ready.clone(), begin.clone(), beat, fault], 200, 100.0, Some(50.0));
        // Without a mark, all of it counts.
        check(&[ready.clone(), end.clone()], 500, 500.0 / 6.0, None);
        // Readings that cannot be.
        check(&[ready.clone(), Mark(3, reading(10, 7))], 0, 0.0, None);
        check(&[Ready(reading(20, 600)), begin, end], 400, 100.0, None);
    }

    #[test]
    fn what_was_before_is_the_second_half_if_both_are_alike() {
        use Report::{Mark, Ready};
        for (first, middle, end, want) in [
            (0, 100, 200, (Some(100.0), Some(true))),
            (500, 590, 700, (Some(110.0), Some(true))),
            // Still warming up, or slowed down.
            (0, 40, 140, (Some(100.0), Some(false))),
            (0, 100, 140, (Some(40.0), Some(false))),
            // Nothing was done: of that, no share can be kept.
            (0, 0, 0, (Some(0.0), Some(false))),
        ] {
            let mut seen = Seen {
                begin_mark: Some(4),
                end_mark: Some(5),
                alone_marks: vec![1, 2, 3],
                ..Default::default()
            };
            // From 13 s on, probes that are warming up leave it no CPU.
            let alone = [(1, 11, first), (2, 12, middle), (3, 13, end)];
            let marks = [&alone[..], &[(4, 15, end), (5, 16, 10_000)]].concat();
            seen.take(Ready(reading(10, 0)));
            marks.iter().for_each(|&(n, s, work)| seen.take(Mark(n, reading(s, work))));
            assert_eq!(seen.before(), want, "{marks:?}");
        }
    }

    #[test]
    fn a_stall_of_the_window_is_told_with_how_fast_the_load_is_otherwise() {
        use Report::{Beat, HeldUp, Mark, Ready};
        let stall = |name: &str, middle, reports: &[Report]| {
            let mut seen = Seen {
                begin_mark: Some(4),
                end_mark: Some(5),
                alone_marks: vec![1, 2, 3],
                ..Default::default()
            };
            seen.take(Ready(reading(8, 0)));
            // Probes that are warming up leave it no CPU from 11 s on.
            let alone = [(1, reading(9, 0)), (2, reading(10, middle)), (3, reading(11, 300))];
            alone.iter().for_each(|&(n, at)| seen.take(Mark(n, at)));
            seen.take(Mark(4, reading(13, 300)));
            reports.iter().cloned().for_each(|report| seen.take(report));
            let stall = seen.stall(&name.parse().unwrap());
            (stall.longest_ns, stall.of_ns, stall.pieces_per_second)
        };
        let stalled = [Beat(reading(14, 400)), Beat(reading(17, 400)), Mark(5, reading(17, 400))];
        assert_eq!(stall("find", 100, &stalled), (3 * S, 4 * S, 100.0));
        // A port takes many bytes at once, and then none.
        assert_eq!(stall("serial:ttyS0", 100, &stalled), (3 * S, 4 * S, 100.0 / 4096.0));
        // Where threads wait for each other, each pause of one is a longer one of another.
        assert_eq!(stall("hackbench", 100, &stalled), (3 * S, 4 * S, 100.0));
        assert!(stall("hackbench@1%", 100, &stalled).2 < 1e-9);
        assert_eq!(stall("find@1%", 100, &stalled), (3 * S, 4 * S, 100.0));
        // In a second before, it did nothing: its speed is that of the window.
        assert_eq!(stall("find", 0, &stalled), (3 * S, 4 * S, 100.0));
        // What comes after the end mark is no part of it.
        let late = [&stalled[..], &[Beat(reading(90, 400))]].concat();
        assert_eq!(stall("find", 100, &late), (3 * S, 4 * S, 100.0));
        let held_up = |reports: &[Report]| {
            let mut seen = Seen { begin_mark: Some(1), end_mark: Some(2), ..Default::default() };
            seen.take(Ready(reading(10, 0)));
            reports.iter().cloned().for_each(|report| seen.take(report));
            seen.stall(&"find".parse().unwrap()).held_up_ns
        };
        let before = [HeldUp(SpanNs(S)), Mark(1, reading(11, 0))];
        let within = [HeldUp(SpanNs(S)), Beat(reading(13, 9)), HeldUp(SpanNs(S))];
        let after = [Mark(2, reading(15, 99)), HeldUp(SpanNs(S)), Beat(reading(16, 999))];
        assert_eq!(held_up(&[&before[..], &within, &after].concat()), 2 * S);
        let steady: Vec<_> = (14..18).map(|s| Beat(reading(s, s * 100))).collect();
        // These beats come late by half a second each.
        assert_eq!(stall("find", 100, &steady).0, S / 2);
    }

    #[test]
    fn the_first_fault_is_the_one_that_is_told() {
        let faults = ["disk full", "file missing"].map(|f| Report::Fault(f.into()));
        let got = result(&"cpu".parse().unwrap(), &faults);
        assert_eq!((got.alive, got.fault.as_str()), (false, "disk full"));
    }

    #[test]
    fn work_of_a_load_that_died_is_what_it_reported_last() {
        use Report::{Beat, Fault, Mark, Ready};
        let (begin, beat) = (Mark(2, reading(12, 100)), Beat(reading(14, 300)));
        for (reports, work, incomplete) in [
            (vec![begin.clone(), beat.clone(), Beat(reading(16, 500))], 400, true),
            // It was never heard of in the window, or not known to be in it.
            (vec![begin.clone()], 0, true),
            (vec![beat.clone()], 0, true),
            (vec![begin, beat, Mark(3, reading(16, 500))], 400, false),
        ] {
            let ready = [Ready(reading(10, 0))];
            let reports = [&ready[..], &reports, &[Fault("x".into())]].concat();
            let got = result(&"cpu".parse().unwrap(), &reports);
            assert_eq!((got.work, got.incomplete), (work, incomplete), "{reports:?}");
        }
    }

    #[test]
    fn a_command_is_one_start_and_no_rate() {
        let spec: Spec = "exec:x".parse().unwrap();
        let got = result(&spec, &[Report::Ready(reading(1, 1)), Report::Beat(reading(2, 1))]);
        assert_eq!((got.work, got.unit.as_str(), got.per_second), (1, "starts", 0.0));
        assert!(got.alive);
    }

    #[test]
    fn what_a_program_says_of_its_work_is_of_the_window_and_makes_no_rate() {
        let spec: Spec = "dbench".parse().unwrap();
        let reports = [
            Report::Ready(reading(1, 0)),
            Report::Mark(2, reading(2, 50)),
            Report::Mark(3, reading(4, 350)),
        ];
        let got = result(&spec, &reports);
        assert_eq!((got.work, got.unit.as_str(), got.per_second), (300, "operations", 0.0));
        assert_eq!(got.before_per_second, None);
    }

    #[test]
    fn what_a_command_said_is_told_and_not_stored() {
        let reports = ["words", "fault"].map(|kind| format!("{kind} secret").parse().unwrap());
        let [words, _] = reports.clone();
        let fault = Report::Fault("the command ended with exit status 2".into());
        let got = result(&"exec:x".parse().unwrap(), &[words, fault]);
        assert_eq!(got.last_words, "secret");
        assert!(!serde_json::to_string(&got).unwrap().contains("secret"));
        let text = got.fault_with_last_words();
        assert_eq!(text, "the command ended with exit status 2: secret");
    }

    #[test]
    fn growth_is_noticed() {
        let mut seen = Seen::default();
        for (s, work, grew) in [(1, 0, 1), (2, 0, 1), (3, 5, 3), (4, 5, 3), (5, 6, 5)] {
            seen.take(Report::Beat(reading(s, work)));
            assert_eq!(seen.grew_at, Some(MonoNs(grew * S)), "at {s} s");
        }
    }
}
