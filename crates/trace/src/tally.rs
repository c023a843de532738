//! What was counted in more than one way, read for a check.

use aya::maps::{HashMap, MapData};
use wakescope_attribution::{
    Histogrammed, INTERRUPT_LATENCY, NET_OF_STEAL, SCHEDULING_DURATION, Tally, WAKEUP_LATENCY,
};
use wakescope_sys::shared::Words;

use crate::counted::{Figures, figures};
use crate::shared::{COMPONENTS, Counts, FIGURES_WORDS, SECTION_KINDS, Wakeup};

/// As they are numbered: `enum component`.
const COMPONENT_NAMES: [&str; COMPONENTS] = [
    INTERRUPT_LATENCY,
    "handler duration",
    "scheduler latency",
    SCHEDULING_DURATION,
    WAKEUP_LATENCY,
    NET_OF_STEAL,
];

/// As they are numbered: `enum section_kind`.
const SECTION_NAMES: [&str; SECTION_KINDS] = [
    "sections with interrupts off",
    "sections with preemption off",
    "sections with preemption off to schedule",
    "interrupt sections",
];

/// What programs counted of wakeups, without their histograms and records.
pub(crate) fn of_counts(counts: &Counts, open: u64) -> Tally {
    Tally {
        begun: counts.begun,
        ended: counts.wakeups,
        broken: counts.broken,
        uncounted: counts.uncounted,
        open,
        contended: counts.contended,
        sent: counts.records,
        parts_sent: counts.parts,
        ..Tally::default()
    }
}

/// How many wakeups in the map have begun and not ended.
pub(crate) fn open_wakeups(wakeups: &HashMap<&MapData, u32, Wakeup>) -> u64 {
    wakeups.iter().filter_map(Result::ok).filter(|(_, wakeup)| wakeup.state != 0).count() as u64
}

/// What each of `places` counted of each component; `place` is what a place is: `CPU`.
pub(crate) fn components(words: &Words, places: usize, place: &str) -> Vec<Histogrammed> {
    histogrammed(words, places, place, COMPONENT_NAMES)
}

/// What each of `cpus` counted of each kind of section.
pub(crate) fn sections(words: &Words, cpus: usize) -> Vec<Histogrammed> {
    histogrammed(words, cpus, "CPU", SECTION_NAMES)
}

fn histogrammed<const N: usize>(
    words: &Words,
    places: usize,
    place: &str,
    names: [&'static str; N],
) -> Vec<Histogrammed> {
    let all = (0..places).flat_map(|number| names.iter().enumerate().map(move |n| (number, n)));
    all.map(|(number, (rank, &name))| {
        let Figures { count, sum_ns, buckets, .. } =
            figures(words, (number * N + rank) * FIGURES_WORDS);
        let in_buckets = buckets.iter().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.1));
        Histogrammed { name, place: format!("{place} {number}"), count, in_buckets, sum_ns }
    })
    .collect()
}
