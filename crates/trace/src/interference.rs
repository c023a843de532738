//! What takes time from everything else on a CPU: interrupts, NMIs, softirqs.

use std::collections::{BTreeMap, BTreeSet};

use aya::maps::{HashMap, MapData};
use wakescope_core::explain::{Culprit, Interference, Interrupt, Work};
use wakescope_core::softirq::softirq_name;
use wakescope_decode::{Irq, Vector, interrupt_name};

use crate::shared::{self, A_SOFTIRQ, A_VECTOR, AN_NMI, Source, window_ns};
use crate::symbols::Symbols;

/// Whose interference is counted, for a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// On these CPUs; on all if there are none.
    pub cpus: BTreeSet<u32>,
    /// Whether softirqs interfere, rather than run in threads.
    pub softirqs: bool,
}

impl Watch {
    /// As the programs know it.
    pub(crate) fn wants_bound(&self) -> u32 {
        if self.softirqs { 2 } else { 1 }
    }

    fn watches(&self, cpu: u32) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu)
    }
}

/// What was counted.
pub(crate) struct Counted(Vec<(Source, shared::Interference)>);

impl Counted {
    /// Reads what `watch` asks for.
    pub(crate) fn read(
        map: &HashMap<&MapData, Source, shared::Interference>,
        watch: &Watch,
    ) -> Self {
        // What cannot be read was deleted meanwhile, which nobody does.
        let all = map.iter().filter_map(Result::ok);
        Self(all.filter(|(source, _)| watch.watches(source.cpu)).collect())
    }

    /// The worst of each over all CPUs, in the order of their kinds and names.
    pub(crate) fn worst(&self, symbols: &Symbols) -> Vec<Interference> {
        // Two that share a name may both come, so that the name does not tell them apart.
        let mut worst: BTreeMap<(u32, u64), Interference> = BTreeMap::new();
        for (source, figures) in &self.0 {
            let one = interference(culprit(source, figures, symbols), figures);
            let known = worst.entry((source.number, source.who)).or_insert_with(|| one.clone());
            known.worsen(&one);
        }
        let mut all: Vec<Interference> = worst.into_values().collect();
        all.sort_by(|a, b| a.culprit.cmp(&b.culprit));
        all
    }
}

fn culprit(source: &Source, figures: &shared::Interference, symbols: &Symbols) -> Culprit {
    match source.number {
        AN_NMI => Culprit::nmi(&symbols.function(source.who)),
        number if number >= A_SOFTIRQ => {
            let number = u8::try_from(number - A_SOFTIRQ).unwrap_or(u8::MAX);
            Culprit::softirq(&softirq_name(number))
        }
        number => {
            let irq = match number.checked_sub(A_VECTOR) {
                Some(vector) => Irq::Vector(Vector::of(vector)),
                None => Irq::Line(number),
            };
            let Interrupt(name) = interrupt_name(irq, &figures.name);
            Culprit::interrupt(&name)
        }
    }
}

fn interference(culprit: Culprit, figures: &shared::Interference) -> Interference {
    let most = figures.windows.iter().enumerate();
    let work = most.map(|(rank, w)| Work { within_ns: window_ns(rank), most_ns: w.most });
    let mut spans = figures.least.iter().take_while(|&&span| span != 0).copied();
    Interference {
        culprit,
        wcet_ns: figures.longest,
        miat_ns: spans.next(),
        spans_ns: spans.collect(),
        work: work.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(longest: u64, least: &[u64], name: &str) -> shared::Interference {
        let mut figures = shared::Interference { longest, ..Default::default() };
        figures.least[..least.len()].copy_from_slice(least);
        figures.name[..name.len()].copy_from_slice(name.as_bytes());
        figures.windows[1].most = longest * 2;
        figures
    }

    #[test]
    fn the_worst_of_all_cpus_counts() {
        let on = |cpu, number| Source { cpu, number, who: 0 };
        let timer = A_VECTOR + 1;
        let counted = Counted(vec![
            (on(0, timer), figures(900, &[5, 20], "")),
            (on(1, timer), figures(700, &[7, 11, 40], "")),
            (on(1, 24), figures(50, &[], "virtio0")),
            (on(0, A_SOFTIRQ + 3), figures(4_000, &[9], "")),
        ]);
        let one = |culprit, wcet_ns, miat_ns, spans_ns: &[u64]| Interference {
            culprit,
            wcet_ns,
            miat_ns,
            spans_ns: spans_ns.into(),
            work: (0..shared::WINDOWS)
                .map(|rank| Work {
                    within_ns: 16_384 << (2 * rank),
                    most_ns: if rank == 1 { wcet_ns * 2 } else { 0 },
                })
                .collect(),
        };
        let want = [
            one(Culprit::interrupt("local_timer"), 900, Some(5), &[11, 40]),
            one(Culprit::interrupt("virtio0"), 50, None, &[]),
            one(Culprit::softirq("NET_RX"), 4_000, Some(9), &[]),
        ];
        assert_eq!(counted.worst(&Symbols::default()), want);
    }

    #[test]
    fn only_cpus_that_are_asked_for_are_watched() {
        let some = Watch { cpus: [1].into(), softirqs: false };
        assert!(some.watches(1) && !some.watches(0) && Watch::default().watches(0));
        assert_eq!((some.wants_bound(), Watch { softirqs: true, ..some }.wants_bound()), (1, 2));
    }
}
