//! Limits: `--fail-above 100us`, `--fail-above p99.9=50us`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::finding::{Severity, Validity, Verdict};
use crate::percentile::Percentile;
use crate::units::{SpanNs, counted, grouped, one_or_many};

/// An upper limit on the maximum or on a percentile of the lateness per expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The percentile held to it; `None` for the maximum.
    pub percentile: Option<Percentile>,
    /// The largest value allowed.
    pub above: SpanNs,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ≤ {}", self.name(), self.above)
    }
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.parse::<Percentile>().is_ok() {
            return Err(format!("`{text}` needs a time; write {text}=100us"));
        }
        let (what, span) = text.split_once('=').unwrap_or(("max", text));
        let percentile = match what.trim() {
            "max" => None,
            other => Some(other.parse()?),
        };
        let above = span.parse().map_err(|e: crate::units::SpanError| e.to_string())?;
        if above == SpanNs(0) {
            return Err("every run exceeds a limit of 0; write a time, as in 100us".into());
        }
        Ok(Self { percentile, above })
    }
}

/// How a run stands to a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Within the limit.
    Pass,
    /// The run does not allow a judgement.
    #[default]
    Inconclusive,
    /// Above the limit.
    Fail,
}

/// A limit, what was observed, and the judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The limit in words: `p99.9 ≤ 100 µs`.
    pub limit: String,
    /// The limit's value.
    pub limit_ns: u64,
    /// The value held to it; `None` if the samples do not carry it, or only bounds are known.
    pub observed_ns: Option<u64>,
    /// The judgement.
    pub outcome: Outcome,
    /// Why there is no judgement, or the bounds that it rests on; empty otherwise.
    pub reason: String,
}

impl Judgement {
    /// What contradicts it in a run with these expiries, if anything does. `limit` is the one of the plan.
    pub(crate) fn fault(&self, limit: Option<&Limit>, expiries: &Distribution) -> Option<String> {
        let Self { limit_ns, outcome, .. } = *self;
        if let Some(other) = limit.filter(|limit| limit.above.0 != limit_ns) {
            return Some(format!(
                "limit_ns is {limit_ns}, but the plan has {}",
                other.as_argument()
            ));
        }
        let words = limit.map(Limit::to_string).filter(|words| *words != self.limit);
        if let Some(words) = words {
            return Some(format!("limit is `{}`, but the plan has `{words}`", self.limit));
        }
        let observed_ns = self.observed_ns?;
        let is_other = match outcome {
            Outcome::Pass => observed_ns > limit_ns,
            Outcome::Fail => observed_ns <= limit_ns,
            Outcome::Inconclusive => false,
        };
        if is_other {
            return Some(format!(
                "outcome is {outcome:?}, but observed_ns is {observed_ns} and limit_ns {limit_ns}"
            ));
        }
        let has = limit?.figure(expiries).filter(|&has| has != observed_ns)?;
        Some(format!("observed_ns is {observed_ns}, but its threads have {has}"))
    }
}

/// The measurer of a run's samples. It decides which findings mean that some latencies are in no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredBy {
    /// Probes, which record each of their wakeups, also those that a tracer does not follow.
    Probes,
    /// The tracer alone: the wakeups are those of other threads.
    Tracer,
    /// Another program, whose file was imported.
    OtherProgram,
}

/// The code of a finding that leaves open how late wakeups were that are in no figure, and the reason that a limit
/// gives. Only a warning does: as notes they are few.
type Doubt = (&'static str, &'static str);

/// Those of all runs.
const DOUBTS: [Doubt; 9] = [
    ("late-waker", "too many wakeup calls were left out, because the waker was late"),
    ("not-asleep", "too many wakeup calls found the probe awake, and woke nobody"),
    ("line-left-out", "too many points of the grid passed without a byte"),
    ("line-unanswered", "bytes or edges that were sent over the line got no answer"),
    ("line-stray", "bytes or edges came over the line that answer nothing"),
    ("line-lost", CUT_SHORT),
    ("cpu-lost", CUT_SHORT),
    ("waker-lost", CUT_SHORT),
    ("card-lost", CUT_SHORT),
];

const CUT_SHORT: &str = "the run was cut short";

impl MeasuredBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Probes, Self::Tracer, Self::OtherProgram];

    /// The doubts of these runs alone.
    fn doubts(self) -> &'static [Doubt] {
        match self {
            Self::Probes => &[],
            Self::Tracer => &[
                (
                    "not-followed",
                    "too many wakeups were not followed, and their latency is unknown",
                ),
                ("missed-switches", "the begin or end of too many waits was missed"),
                ("waits-not-followed", "waits of some threads were not followed"),
                ("open-waits", "the longest wait had not ended when the run did"),
            ],
            // Where wakescope measured, only the sample file lacks these; the histogram has them.
            Self::OtherProgram => &[("lost-samples", "the file lacks some of the samples")],
        }
    }
}

/// Whether probes ended before their time because what woke them, or their CPU, was lost.
pub fn lost_probes(validity: &Validity) -> bool {
    let cuts = |code: &str| DOUBTS.contains(&(code, CUT_SHORT));
    validity.findings.iter().any(|found| cuts(&found.code))
}

/// Why a run leaves open whether it keeps a limit that its samples keep; `None` if it does not.
pub fn doubt(validity: &Validity, by: MeasuredBy, complete: bool) -> Option<&'static str> {
    let mut warnings = validity.findings.iter().filter(|found| found.severity >= Severity::Warning);
    let of_finding = warnings.find_map(|found| {
        let mut doubts = DOUBTS.iter().chain(by.doubts());
        Some(doubts.find(|(code, _)| *code == found.code)?.1)
    });
    if complete { of_finding } else { Some(CUT_SHORT) }
}

impl Limit {
    /// The figure that is held to it; `None` if the samples do not carry it.
    fn figure(&self, expiries: &Distribution) -> Option<u64> {
        match self.percentile {
            Some(p) => expiries.percentile(p),
            None => expiries.known_maximum(),
        }
    }

    /// The least and the largest value in ns that this figure can have; `None` if the samples do not carry
    /// it.
    fn range(&self, expiries: &Distribution) -> Option<(u64, u64)> {
        match self.percentile {
            Some(p) => expiries.range(p),
            None => expiries.max_range(),
        }
    }

    /// The limit as one writes it for `--fail-above`: `p99.9=50us`.
    pub fn as_argument(&self) -> String {
        match self.percentile {
            Some(p) => format!("{p}={}", self.above.as_argument()),
            None => self.above.as_argument(),
        }
    }

    /// Judges `expiries`, which were measured `by` one of these. An invalid run is never judged. A run that was cut short,
    /// or of which there is a [`doubt`], can fail, but not pass: what it would have seen is not known.
    pub fn judge(
        &self,
        expiries: &Distribution,
        validity: &Validity,
        by: MeasuredBy,
        complete: bool,
    ) -> Judgement {
        let observed_ns = self.figure(expiries);
        let unseen = doubt(validity, by, complete);
        let (outcome, reason) = match self.range(expiries) {
            _ if validity.verdict == Verdict::Invalid => {
                (Outcome::Inconclusive, "the run is invalid".into())
            }
            None => (Outcome::Inconclusive, self.too_few(expiries.count)),
            Some(range) => {
                let is_known = observed_ns.is_some() && expiries.is_narrow(range);
                self.judge_range(range, is_known, unseen)
            }
        };
        Judgement { limit: self.to_string(), limit_ns: self.above.0, observed_ns, outcome, reason }
    }

    /// Judges a figure by the least and the largest value that it can have: those of its bucket, or of a
    /// step of another program's file. `is_known` if it is shown as one value; `unseen` says what leaves open
    /// whether there were larger ones.
    fn judge_range(
        &self,
        (low, high): (u64, u64),
        is_known: bool,
        unseen: Option<&str>,
    ) -> (Outcome, String) {
        let outcome = match () {
            () if low > self.above.0 => Outcome::Fail,
            () if high <= self.above.0 && unseen.is_none() => Outcome::Pass,
            () => Outcome::Inconclusive,
        };
        let name = self.name();
        let reason = if let Some(unseen) = unseen.filter(|_| high <= self.above.0) {
            unseen.into()
        } else if !is_known {
            let (low, high) = (SpanNs(low), SpanNs(high));
            format!("only bounds are known: {name} is between {low} and {high}")
        } else if outcome != Outcome::Inconclusive {
            String::new()
        } else {
            // In three digits, both ends may look like the limit.
            format!(
                "{name} is from {} ns to {} ns, and the limit lies between: the histogram is no finer",
                grouped(low),
                grouped(high)
            )
        };
        (outcome, reason)
    }

    /// `max`, `p99.9`
    fn name(&self) -> String {
        self.percentile.map_or_else(|| "max".into(), |p| p.to_string())
    }

    fn too_few(&self, count: u64) -> String {
        match self.percentile {
            Some(p) => {
                let need = grouped(p.samples_needed());
                let verb = one_or_many(count, "is", "are");
                format!("{} {verb} too few for {p}, which needs {need}", counted(count, "sample"))
            }
            None => "there are no samples".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use wakescope_testing::assert_told;

    use super::*;
    use crate::finding::Finding;
    use crate::histogram::{Bucket, Histogram};
    use crate::stated::Stated;

    #[test]
    fn limits_parse() {
        for (text, want) in [
            ("100us", Some("max ≤ 100 µs")),
            ("max=1ms", Some("max ≤ 1.00 ms")),
            ("p99.9=100us", Some("p99.9 ≤ 100 µs")),
            ("0us", None),
            ("p100=1ms", None),
            ("p99.9=", None),
            ("=1ms", None),
            ("100", None),
        ] {
            assert_eq!(
                text.parse::<Limit>().ok().map(|l| l.to_string()).as_deref(),
                want,
                "{text}"
            );
        }
    }

    #[track_caller]
    fn check(limit: &str, count: usize, verdict: Verdict, complete: bool, want: Outcome) {
        // All samples 50 µs late but one, 90 µs late.
        let histogram = Histogram::of((1..count).map(|_| 50_000).chain([90_000]));
        let d = Distribution {
            count: count as u64,
            min_ns: Some(50_000),
            max_ns: Some(90_000),
            max_at_ns: Some(0),
            sum_ns: 0,
            histogram,
            stated: None,
        };
        let validity = Validity { verdict, findings: Vec::new() };
        let got =
            limit.parse::<Limit>().unwrap().judge(&d, &validity, MeasuredBy::Probes, complete);
        assert_eq!(got.outcome, want, "{got:?}");
    }

    #[test]
    fn judgements() {
        use Outcome::{Fail, Inconclusive, Pass};
        use Verdict::{Degraded, Invalid, Valid};
        check("90us", 10_000, Valid, true, Pass);
        check("89us", 10_000, Valid, true, Fail);
        check("89us", 10_000, Degraded, true, Fail);
        check("89us", 10_000, Invalid, true, Inconclusive);
        check("1s", 10_000, Invalid, true, Inconclusive);
        check("1s", 10_000, Valid, false, Inconclusive);
        check("89us", 10_000, Valid, false, Fail);
        check("p99.9=60us", 10_000, Valid, true, Pass);
        check("p99.9=60us", 1_000, Valid, true, Inconclusive);
    }

    /// 2,000 samples of which the 99.9th percentile is `tail_ns`, and the maximum `max_ns`.
    fn tail(tail_ns: u64, max_ns: u64) -> Distribution {
        Distribution::of([vec![50_000; 1_990], vec![tail_ns; 9], vec![max_ns]].concat())
    }

    /// The same as a program counts it that cuts values off to whole µs.
    fn in_steps(tail_ns: u64, max_ns: u64) -> Distribution {
        let cut = |ns: u64| ns / 1_000 * 1_000;
        let buckets = [(50_000, 1_990), (cut(tail_ns), 9), (cut(max_ns), 1)];
        let bucket = |(lower, count)| Bucket { lower, upper: lower + 1_000, count };
        Distribution {
            max_ns: Some(cut(max_ns)),
            histogram: Histogram::from_buckets(buckets.map(bucket).into()).unwrap(),
            stated: Some(Stated { resolution_ns: 1_000, ..Stated::default() }),
            ..tail(50_000, 50_000)
        }
    }

    #[test]
    fn what_a_bucket_leaves_open_is_not_judged() {
        use Outcome::{Fail, Inconclusive, Pass};
        let between = "p99.9 is from 99,968 ns to 100,095 ns, and the limit lies between";
        for (d, limit, want, reason) in [
            (tail(99_990, 200_000), "p99.9=100us", Inconclusive, between),
            (tail(99_990, 200_000), "p99.9=99.97us", Inconclusive, between),
            (tail(99_990, 200_000), "p99.9=100095ns", Pass, ""),
            (tail(99_990, 200_000), "p99.9=99.8us", Fail, ""),
            // The maximum is exact, and no percentile is above it.
            (tail(99_990, 99_990), "p99.9=99990ns", Pass, ""),
            (tail(99_990, 99_990), "99990ns", Pass, ""),
            (tail(99_990, 99_990), "99989ns", Fail, ""),
            (in_steps(60_000, 70_500), "71us", Pass, ""),
            (in_steps(60_000, 70_500), "70us", Inconclusive, "max is from 70,000 ns to 70,999 ns"),
            (in_steps(60_000, 70_500), "69us", Fail, ""),
            (in_steps(60_000, 70_500), "p99.9=60500ns", Inconclusive, "p99.9 is from 60,000 ns to"),
            (in_steps(60_000, 70_500), "p99.9=59999ns", Fail, ""),
        ] {
            let limit: Limit = limit.parse().unwrap();
            let got = limit.judge(&d, &Validity::default(), MeasuredBy::Probes, true);
            assert_eq!(got.outcome, want, "{got:?}");
            assert!(got.reason.starts_with(reason), "{got:?}");
            assert_eq!(got.reason.is_empty(), reason.is_empty(), "{got:?}");
            assert_eq!(got.fault(Some(&limit), &d), None, "{got:?}");
        }
    }

    #[test]
    fn samples_that_are_not_in_the_file_leave_a_limit_open_and_not_the_bounds() {
        let d = Distribution {
            histogram: Histogram::from_buckets(vec![Bucket { lower: 0, upper: 5_001, count: 100 }])
                .unwrap(),
            min_ns: Some(0),
            stated: Some(Stated::default()),
            ..Distribution::of([5_000; 100])
        };
        let lost = Finding::new("lost-samples", Severity::Warning, String::new(), "");
        for (findings, limit, want, reason) in [
            (
                vec![lost.clone()],
                "p50=1ms",
                Outcome::Inconclusive,
                "the file lacks some of the samples",
            ),
            (vec![lost], "p50=1us", Outcome::Inconclusive, "only bounds are known: p50 is between"),
            (Vec::new(), "p50=1ms", Outcome::Pass, "only bounds are known: p50 is between"),
        ] {
            let validity = Validity::of(findings);
            let limit: Limit = limit.parse().unwrap();
            let got = limit.judge(&d, &validity, MeasuredBy::OtherProgram, true);
            assert_eq!(got.outcome, want, "{got:?}");
            assert!(got.reason.starts_with(reason), "{got:?}");
        }
    }

    /// With a hog of 900 ms on the CPU, 901 of 1,500 calls of a waker were left out, and "within the limit" was the
    /// judgement on the others.
    #[test]
    fn a_run_that_left_out_too_much_keeps_no_limit() {
        use Outcome::{Fail, Inconclusive, Pass};
        let expiries = Distribution::of([5_000; 100]);
        for (code, severity, limit, want) in [
            ("late-waker", Severity::Warning, "5us", Inconclusive),
            ("not-asleep", Severity::Warning, "p50=5us", Inconclusive),
            ("line-left-out", Severity::Warning, "5us", Inconclusive),
            ("late-waker", Severity::Warning, "4us", Fail),
            ("late-waker", Severity::Note, "5us", Pass),
            ("not-asleep", Severity::Note, "5us", Pass),
            ("overload", Severity::Warning, "5us", Pass),
        ] {
            let validity = Validity::of(vec![Finding::new(code, severity, String::new(), "")]);
            let limit: Limit = limit.parse().unwrap();
            let judgement = limit.judge(&expiries, &validity, MeasuredBy::Probes, true);
            assert_eq!(judgement.outcome, want, "{code} {limit}");
            assert_eq!(
                judgement.reason.contains("too many"),
                want == Inconclusive,
                "{judgement:?}"
            );
        }
    }

    /// `measure` left such a run open, and `compare` passed it.
    #[test]
    fn a_run_that_does_not_know_all_of_its_latencies_keeps_no_limit() {
        use Outcome::{Fail, Inconclusive, Pass};
        let expiries = Distribution::of([5_000; 100]);
        // By probes, by the tracer, and by another program.
        for (code, severity, wants) in [
            ("line-unanswered", Severity::Warning, [Inconclusive; 3]),
            ("line-stray", Severity::Warning, [Inconclusive; 3]),
            ("line-lost", Severity::Warning, [Inconclusive; 3]),
            ("cpu-lost", Severity::Warning, [Inconclusive; 3]),
            ("waker-lost", Severity::Warning, [Inconclusive; 3]),
            ("card-lost", Severity::Warning, [Inconclusive; 3]),
            ("line-stray", Severity::Note, [Pass; 3]),
            // The histogram of a measured run holds them.
            ("lost-samples", Severity::Warning, [Pass, Pass, Inconclusive]),
            // So does that of probes.
            ("not-followed", Severity::Warning, [Pass, Inconclusive, Pass]),
            ("not-followed", Severity::Note, [Pass; 3]),
            ("missed-switches", Severity::Warning, [Pass, Inconclusive, Pass]),
            ("missed-switches", Severity::Note, [Pass; 3]),
            ("waits-not-followed", Severity::Warning, [Pass, Inconclusive, Pass]),
            ("open-waits", Severity::Warning, [Pass, Inconclusive, Pass]),
        ] {
            let validity = Validity::of(vec![Finding::new(code, severity, String::new(), "")]);
            for (by, want) in MeasuredBy::ALL.into_iter().zip(wants) {
                for (limit, want) in [("5us", want), ("4us", Fail)] {
                    let limit: Limit = limit.parse().unwrap();
                    let judgement = limit.judge(&expiries, &validity, by, true);
                    assert_eq!(judgement.outcome, want, "{code} {limit} {by:?}");
                    assert_eq!(judgement.reason.is_empty(), want != Inconclusive, "{judgement:?}");
                }
            }
        }
    }

    #[test]
    fn a_judgement_is_that_of_the_samples() {
        use Outcome::{Fail, Pass};
        let expiries = Distribution::of([5_000; 100]);
        type Change = fn(&mut Judgement);
        for (text, change, want) in [
            ("5us", (|_| ()) as Change, None),
            ("4us", |_| (), None),
            ("p50=4us", |_| (), None),
            ("p99.9=4us", |_| (), None),
            ("5us", |it| it.limit_ns = 4_999, Some("limit_ns is 4999, but the plan has 5us")),
            ("5us", |it| it.outcome = Fail, Some("outcome is Fail, but observed_ns is 5000")),
            ("4us", |it| it.limit = "p50 ≤ 4.00 µs".into(), Some("the plan has `max ≤ 4.00 µs`")),
            ("4us", |it| it.outcome = Pass, Some("outcome is Pass, but observed_ns is 5000")),
            ("4us", |it| it.observed_ns = Some(1 << 60), Some("but its threads have 5000")),
            ("p50=4us", |it| it.observed_ns = Some(4_001), Some("but its threads have 5000")),
        ] {
            let limit: Limit = text.parse().unwrap();
            let mut judgement =
                limit.judge(&expiries, &Validity::default(), MeasuredBy::Probes, true);
            change(&mut judgement);
            assert_told(judgement.fault(Some(&limit), &expiries), want);
        }
        // Without a plan, what was observed is compared with the limit only.
        let limit: Limit = "4us".parse().unwrap();
        let mut judgement = limit.judge(&expiries, &Validity::default(), MeasuredBy::Probes, true);
        judgement.observed_ns = Some(1 << 60);
        assert_told(judgement.fault(None, &expiries), None);
        judgement.limit_ns = 1 << 61;
        assert_told(judgement.fault(None, &expiries), Some("outcome is Fail, but observed_ns is"));
    }
}
