//! The first sentence about a run.

use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::{Run, Thread};
use wakescope_core::source::Quantity;
use wakescope_core::stated::Quantile;

use crate::{domain, quantity};

/// The first sentence about a run, in its parts.
pub(crate) struct Headline {
    /// `Worst wakeup 4.31 ms late`
    what: String,
    /// Where the largest sample was seen, and when, as far as that is known: `CPU 0, 6.20 s in`. May be
    /// empty.
    place: String,
    /// `99.9 % within 12.0 µs`; empty where the samples carry no percentile.
    share: String,
}

impl Headline {
    /// `None` if nothing was measured.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let all = run.expiries();
        let (bound, worst_ns) = match all.maximum()? {
            Quantile::Known(ns) => ("", ns),
            Quantile::AtMost(ns) => ("at most ", ns),
        };
        let worst = format!("{bound}{}", domain::span(worst_ns, run.time_domain));
        let what = match quantity::of(run) {
            Quantity::WakeupLatency => format!("Worst wakeup {worst} late"),
            other => format!("Largest {other} {worst}"),
        };
        let deepest = Percentile::SHOWN.iter().rev().find_map(|&p| Some((p, all.percentile(p)?)));
        // The third nine is what people compare; with few samples, whatever they carry.
        let usual = Percentile::SHOWN[2];
        let share = all.percentile(usual).map(|ns| (usual, ns)).or(deepest).map(|(p, ns)| {
            let of = p.to_string();
            let within = domain::span(ns, run.time_domain);
            format!("{} % within {within}", of.trim_start_matches('p'))
        });
        let place = where_and_when(run, &all);
        Some(Self { what, place, share: share.unwrap_or_default() })
    }

    /// `Worst wakeup 4.31 ms late (CPU 0, 6.20 s in); 99.9 % within 12.0 µs.`
    pub(crate) fn sentence(&self) -> String {
        let place =
            if self.place.is_empty() { String::new() } else { format!(" ({})", self.place) };
        let share = if self.share.is_empty() { String::new() } else { format!("; {}", self.share) };
        format!("{}{place}{share}.", self.what)
    }

    /// The same without what was worst, for where that is said already; may be empty.
    pub(crate) fn place_and_share(&self) -> String {
        match (self.place.as_str(), self.share.as_str()) {
            ("", "") => String::new(),
            (part, "") | ("", part) => format!("{part}."),
            (place, share) => format!("{place}; {share}."),
        }
    }
}

/// Where the largest sample was seen, and when, as far as that is known: `CPU 0, 6.20 s in`.
fn where_and_when(run: &Run, all: &Distribution) -> String {
    let of_max = |t: &&Thread| t.expiries.max_ns == all.max_ns;
    let cpu = match &run.source {
        Some(_) => run.threads.iter().find(of_max).and_then(|t| t.cpu),
        None => run.worst.first().and_then(|w| w.cpu),
    };
    let cpu = cpu.map(|cpu| format!("CPU {cpu}"));
    let when = all.max_at_ns.map(|at_ns| format!("{} in", domain::span(at_ns, run.time_domain)));
    cpu.into_iter().chain(when).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use wakescope_core::histogram::{Bucket, Histogram};
    use wakescope_core::stated::Stated;

    use super::*;
    use crate::text::tests::run_of;

    #[test]
    fn an_edge_is_not_said_to_be_the_worst() {
        let mut run = run_of(&[&[2_600; 2_000]]);
        run.threads[0].expiries.stated =
            Some(Stated { extremes_are_edges: true, ..Stated::default() });
        // So narrow a bucket is as good as a value.
        assert!(Headline::of(&run).unwrap().sentence().starts_with("Worst wakeup 2.60 µs late"));
        let all = &mut run.threads[0].expiries;
        all.histogram =
            Histogram::from_buckets(vec![Bucket { lower: 0, upper: 2_601, count: 2_000 }]).unwrap();
        let sentence = Headline::of(&run).unwrap().sentence();
        assert!(sentence.starts_with("Worst wakeup at most 2.60 µs late"), "{sentence}");
    }

    #[test]
    fn the_headline_is_the_same_in_whole_and_in_parts() {
        let parts = |run: &Run| {
            let headline = Headline::of(run).unwrap();
            (headline.sentence(), headline.place_and_share())
        };
        let mut run = run_of(&[&[&[2_600; 19_999][..], &[238_000]].concat()]);
        let (whole, rest) = parts(&run);
        assert_eq!(whole, "Worst wakeup 238 µs late (CPU 0, 20.0 s in); 99.9 % within 2.60 µs.");
        assert_eq!(rest, "CPU 0, 20.0 s in; 99.9 % within 2.60 µs.");
        // Where it is not known when and where, the rest is said nevertheless.
        run.worst.clear();
        run.threads[0].expiries.max_at_ns = None;
        let (whole, rest) = parts(&run);
        assert_eq!(whole, "Worst wakeup 238 µs late; 99.9 % within 2.60 µs.");
        assert_eq!(rest, "99.9 % within 2.60 µs.");
        let few = run_of(&[&[238_000]]);
        assert_eq!(parts(&few).1, "CPU 0, 0 ns in.");
    }
}
