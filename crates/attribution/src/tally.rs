//! What a tracer counted in more than one way, checked against each other.
//!
//! Each wakeup is counted when it begins, when it ends, in a count of each component and in a bucket of
//! its histogram, and once more when its record is sent and read. These are separate counters, so
//! that one that wraps, loses an addition or belongs to another layout shows.

use crate::abridged::Abridged;
use wakescope_core::finding::{Finding, Severity};
use wakescope_core::units::grouped;

/// What a tracer counted, after its programs had been detached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Wakeups that began, also before the start of the run.
    pub begun: u64,
    /// Of these, that ended and are in the figures.
    pub ended: u64,
    /// That could not be followed to their end.
    pub broken: u64,
    /// That ended, or were given up, before the start of the run or after its end.
    pub uncounted: u64,
    /// That were still open when the programs were detached.
    pub open: u64,
    /// Ends that found that another CPU ended the same wakeup. If all that came at once found that,
    /// the wakeup is in none of the figures above.
    pub contended: u64,
    /// Records of late wakeups that were sent.
    pub sent: u64,
    /// Records that were read.
    pub read: u64,
    /// Parts of wakeups that were sent, which waited on.
    pub parts_sent: u64,
    /// Parts that were read.
    pub parts_read: u64,
    /// Those of each component, of each place that counted.
    pub components: Vec<Histogrammed>,
    /// Those of each kind of section, of each CPU.
    pub sections: Vec<Histogrammed>,
}

/// A histogram with what was counted beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogrammed {
    /// What it is of: `interrupt latency`.
    pub name: &'static str,
    /// Who counted: `CPU 3`.
    pub place: String,
    /// Samples by their own counter.
    pub count: u64,
    /// Samples by the buckets.
    pub in_buckets: u64,
    /// The sum of all samples, nanoseconds.
    pub sum_ns: u64,
}

/// The component that is the sum of the others.
pub const WAKEUP_LATENCY: &str = "wakeup latency";
/// The same without stolen time, where that is known.
pub const NET_OF_STEAL: &str = "wakeup latency net of steal";
/// The component that only wakeups have whose timer's interrupt came after they were due.
pub const INTERRUPT_LATENCY: &str = "interrupt latency";
/// The component that only some kernels show.
pub const SCHEDULING_DURATION: &str = "scheduling duration";

impl Tally {
    /// Wakeups that ended on several CPUs at once, so that none of these counted them.
    pub(crate) fn lost_in_contention(&self) -> u64 {
        self.begun.saturating_sub(self.with_an_end()).min(self.contended)
    }

    fn with_an_end(&self) -> u64 {
        let ends = [self.ended, self.broken, self.uncounted, self.open];
        ends.into_iter().fold(0, u64::saturating_add)
    }

    /// The numbers that should agree and do not: each pair in words, with both figures.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut same = |what: &str, one: u64, other: &str, two: u64| {
            if one != two {
                found.push(format!("{} {what}, but {} {other}", grouped(one), grouped(two)));
            }
        };
        let ends = self.with_an_end().saturating_add(self.lost_in_contention());
        same("wakeups began", self.begun, "ended or are still open", ends);
        for part in self.components.iter().chain(&self.sections) {
            let what = format!("samples of {} of {} were counted", part.name, part.place);
            same(&what, part.count, "are in its histogram", part.in_buckets);
        }
        let mut names: Vec<&str> = self.components.iter().map(|part| part.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let samples = self.total(|part| part.name == name, |part| part.in_buckets);
            // Where the scheduler's entry was not seen, it is part of the component before. Where there
            // is no clock of stolen time, nothing is counted without that.
            let may_lack = match name {
                INTERRUPT_LATENCY | SCHEDULING_DURATION => true,
                NET_OF_STEAL => samples == 0,
                _ => false,
            };
            if !may_lack || samples > self.ended {
                let other = format!("samples of {name} are in histograms");
                same("wakeups ended", self.ended, &other, samples);
            }
        }
        let whole = |part: &Histogrammed| part.name == WAKEUP_LATENCY;
        let latency_ns = self.total(whole, |part| part.sum_ns);
        let net = |part: &Histogrammed| part.name == NET_OF_STEAL;
        let parts_ns = self.total(|part| !whole(part) && !net(part), |part| part.sum_ns);
        same("ns of wakeup latency were counted", latency_ns, "ns of its components", parts_ns);
        let net_ns = self.total(net, |part| part.sum_ns);
        same("ns of it net of steal", net_ns, "ns of it at the most", net_ns.min(latency_ns));
        same("records were sent", self.sent, "were read", self.read);
        same("parts of wakeups were sent", self.parts_sent, "were read", self.parts_read);
        found
    }

    fn total(
        &self,
        of: impl Fn(&Histogrammed) -> bool,
        figure: impl Fn(&Histogrammed) -> u64,
    ) -> u64 {
        let parts = self.components.iter().filter(|part| of(part));
        parts.map(figure).fold(0, u64::saturating_add)
    }

    /// The finding if anything contradicts: also if not all records that were read are among the
    /// `kept` wakeups and those that are `abridged`.
    pub(crate) fn finding(&self, kept: usize, abridged: &Abridged) -> Option<Finding> {
        let mut all = self.contradictions();
        let held = abridged.added().saturating_add(kept as u64);
        if held != self.read {
            let (read, held) = (grouped(self.read), grouped(held));
            all.push(format!("{read} records were read, but {held} wakeups explained"));
        }
        let first = all.first()?;
        let more = match all.len() {
            1 => String::new(),
            count => format!(" (and {} more such contradictions)", count - 1),
        };
        Some(Finding::new(
            "contradictory-tracer",
            Severity::Warning,
            format!(
                "the tracer's own counts contradict each other: {first}{more}; components, causes \
                 and their shares are unreliable"
            ),
            "report this with the run's record; the probes' own figures are not affected",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &'static str, count: u64, sum_ns: u64) -> Histogrammed {
        Histogrammed { name, place: "CPU 1".into(), count, in_buckets: count, sum_ns }
    }

    /// 100 wakeups, of which 90 count.
    fn right() -> Tally {
        Tally {
            begun: 100,
            ended: 90,
            broken: 4,
            uncounted: 3,
            open: 2,
            contended: 2,
            sent: 5,
            read: 5,
            parts_sent: 3,
            parts_read: 3,
            components: vec![
                part(INTERRUPT_LATENCY, 50, 600),
                part(INTERRUPT_LATENCY, 30, 300),
                part("handler duration", 90, 0),
                part(SCHEDULING_DURATION, 50, 100),
                part(WAKEUP_LATENCY, 90, 1_000),
                part(NET_OF_STEAL, 90, 1_000),
            ],
            sections: vec![part("interrupts off", 1 << 40, 7)],
        }
    }

    #[test]
    fn each_number_that_is_off_by_one_is_named_with_its_counterpart() {
        assert_eq!(right().contradictions(), [""; 0]);
        assert_eq!(right().lost_in_contention(), 1);
        type Spoil = fn(&mut Tally);
        let cases: [(Spoil, &str); 15] = [
            (|t| t.begun += 2, "102 wakeups began, but 101 ended or are still open"),
            (|t| t.begun -= 2, "98 wakeups began, but 99 ended or are still open"),
            (|t| t.contended = 0, "100 wakeups began, but 99 ended or are still open"),
            (
                |t| t.components[1].in_buckets -= 1,
                "30 samples of interrupt latency of CPU 1 were counted, but 29 are in its histogram",
            ),
            (
                |t| t.sections[0].in_buckets = 0,
                "1,099,511,627,776 samples of interrupts off of CPU 1 were counted, but 0 are in its \
                 histogram",
            ),
            (
                |t| t.components[1] = part(INTERRUPT_LATENCY, 41, 300),
                "90 wakeups ended, but 91 samples of interrupt latency are in histograms",
            ),
            (
                |t| t.components[2] = part("handler duration", 89, 0),
                "90 wakeups ended, but 89 samples of handler duration are in histograms",
            ),
            (
                |t| t.components[4] = part(WAKEUP_LATENCY, 91, 1_000),
                "90 wakeups ended, but 91 samples of wakeup latency are in histograms",
            ),
            (
                |t| t.components[3] = part(SCHEDULING_DURATION, 91, 100),
                "90 wakeups ended, but 91 samples of scheduling duration are in histograms",
            ),
            (
                |t| t.components[3].sum_ns += 1,
                "1,000 ns of wakeup latency were counted, but 1,001 ns of its components",
            ),
            (
                |t| t.components[5] = part(NET_OF_STEAL, 89, 800),
                "90 wakeups ended, but 89 samples of wakeup latency net of steal are in histograms",
            ),
            (
                |t| t.components[5] = part(NET_OF_STEAL, 90, 1_001),
                "1,001 ns of it net of steal, but 1,000 ns of it at the most",
            ),
            (|t| t.read -= 1, "5 records were sent, but 4 were read"),
            (|t| t.parts_read = 2, "3 parts of wakeups were sent, but 2 were read"),
            (|t| t.open += 1 << 33, "100 wakeups began, but 8,589,934,691 ended or are still open"),
        ];
        for (spoil, want) in cases {
            let mut tally = right();
            spoil(&mut tally);
            assert_eq!(tally.contradictions()[0], want);
        }
    }

    #[test]
    fn a_record_that_was_read_and_not_explained_is_a_finding() {
        assert_eq!(right().finding(5, &Abridged::default()), None);
        let text = right().finding(4, &Abridged::default()).unwrap();
        assert!(text.message.contains("5 records were read, but 4 wakeups explained"), "{text:?}");
        let mut wrong = right();
        wrong.read = 3;
        let text = wrong.finding(5, &Abridged::default()).unwrap();
        let want = "5 records were sent, but 3 were read (and 1 more such contradictions)";
        assert!(text.message.contains(want), "{text:?}");
    }
}
