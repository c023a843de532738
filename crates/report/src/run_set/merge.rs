//! Several runs as one.

use wakescope_core::audio::Audio;
use wakescope_core::finding::Validity;
use wakescope_core::maxima::Maxima;
use wakescope_core::run::{KernelStamps, Run, Spin, Thread};

/// The most of the latest wakeups that are kept of several runs.
const MOST: usize = 64;

/// What runs of the same kind have together: samples per CPU, and the latest wakeups. The rest, the seed among it, is that of the first; what is true of single runs only is left out. `None`
/// without any.
pub fn merged(runs: &[&Run]) -> Option<Run> {
    let (&first, others) = runs.split_first()?;
    let mut all = first.clone();
    if others.is_empty() {
        return Some(all);
    }
    for run in others {
        run.threads.iter().for_each(|thread| add(&mut all.threads, thread));
        all.worst.extend(run.worst.iter().cloned());
        all.duration_ns = all.duration_ns.saturating_add(run.duration_ns);
    }
    all.worst.sort_by_key(|e| std::cmp::Reverse(e.wakeup_latency_ns));
    all.worst.truncate(MOST);
    // Causes and components are of one run each, and so are limits and validity.
    all.validity = Validity::default();
    (all.explanation, all.components) = (None, None);
    all.causes.clear();
    (all.net_of_steal, all.ranking) = (None, None);
    all.limits.clear();
    all.load.clear();
    // So are its line, and what it is called.
    all.line = None;
    all.id.clear();
    all.started.clear();
    all.summarize();
    // What a run proves follows from the course of one run.
    all.summary.not_excluded_every_ns = None;
    Some(all)
}

/// Adds a thread of another run to that of the same CPU. A figure that one of the two lacks is not known of
/// both.
fn add(threads: &mut Vec<Thread>, other: &Thread) {
    let Some(own) = threads.iter_mut().find(|t| t.cpu == other.cpu) else {
        threads.push(other.clone());
        return;
    };
    let deviation = Thread::interval_deviation_of([&*own, other]);
    let Thread {
        cpu: _,
        missed,
        lost,
        migrated,
        not_asleep,
        skipped,
        due_uncertainty_ns,
        page_faults,
        spin,
        kernel_stamps,
        woken,
        expiries,
        interval_deviation,
        maxima,
        audio,
        overflow,
    } = own;
    for (own, other) in [
        (missed, other.missed),
        (lost, other.lost),
        (migrated, other.migrated),
        (not_asleep, other.not_asleep),
        (skipped, other.skipped),
        (page_faults, other.page_faults),
    ] {
        *own = own.saturating_add(other);
    }
    *due_uncertainty_ns = other.due_uncertainty_ns.max(*due_uncertainty_ns);
    *woken = woken.merged(&other.woken);
    *expiries = expiries.merged(&other.expiries);
    merge(spin, other.spin.as_ref(), |own, other| Spin {
        loops: own.loops.saturating_add(other.loops),
        observed_ns: own.observed_ns.saturating_add(other.observed_ns),
    });
    merge(kernel_stamps, other.kernel_stamps.as_ref(), KernelStamps::merged);
    *interval_deviation = deviation;
    merge(maxima, other.maxima.as_ref(), Maxima::merged);
    merge(audio, other.audio.as_ref(), Audio::merged);
    // Where the histograms of both ended is no one place.
    *overflow = None;
}

fn merge<T>(own: &mut Option<T>, other: Option<&T>, merged: impl Fn(&T, &T) -> T) {
    *own = own.take().zip(other).map(|(own, other)| merged(&own, other));
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::distribution::Distribution;
    use wakescope_core::interval_deviation::IntervalDeviation;
    use wakescope_core::run::StampedPart;

    use crate::text::tests::run_of;

    #[test]
    fn samples_add_up() {
        let (a, b) = (run_of(&[&[5_000, 9_000], &[6_000]]), run_of(&[&[7_000_000; 3]]));
        let both = merged(&[&a, &b]).unwrap();
        assert_eq!(both.threads.len(), 2);
        assert_eq!(both.threads[0].expiries.count, 5);
        assert_eq!(both.summary.max_ns, Some(7_000_000));
        assert_eq!(both.worst[0].wakeup_latency_ns, 7_000_000);
        assert_eq!(both.summary.not_excluded_every_ns, None);
        assert_eq!(merged(&[&a]), Some(a));
        assert_eq!(merged(&[]), None);
    }

    /// Two runs with one wakeup each have two together, and no time between them.
    #[test]
    fn runs_with_one_wakeup_hide_no_deviation_of_another() {
        let once = run_of(&[&[5_000]]);
        let (mut often, unknown) = (run_of(&[&[6_000; 3]]), run_of(&[&[6_000; 3]]));
        let longer = Distribution::of([300, 200]);
        often.threads[0].interval_deviation =
            Some(IntervalDeviation { longer, ..IntervalDeviation::default() });
        for (third, want) in [(&often, Some(2)), (&unknown, None)] {
            for order in [[0, 1, 2], [0, 2, 1], [2, 0, 1]] {
                let runs = order.map(|at| [&once, &once, third][at]);
                let got = merged(&runs).unwrap().interval_deviation();
                assert_eq!(got.map(|all| all.count()), want, "{order:?}");
            }
        }
    }

    #[test]
    fn figures_of_threads_are_of_all_runs_or_of_none() {
        let part = |ns| StampedPart { sum_ns: 10 * ns, min_ns: ns, max_ns: 2 * ns };
        let (to_function, to_reader, to_probe) = (part(100), part(300), part(500));
        let mut full = crate::audio::tests::run();
        (full.id, full.started) = ("a".into(), "2026-11-21T01:00:00Z".into());
        let own = &mut full.threads[0];
        (own.not_asleep, own.skipped, own.due_uncertainty_ns) = (1, 2, 3);
        own.spin = Some(Spin { loops: 7, observed_ns: 1_000 });
        own.kernel_stamps = Some(KernelStamps { wakeups: 10, to_function, to_reader, to_probe });
        let all = merged(&[&full, &full]).unwrap();
        let [own] = all.threads.as_slice() else { panic!("{:?}", all.threads) };
        assert_eq!((own.not_asleep, own.skipped, own.due_uncertainty_ns), (2, 4, 3));
        assert_eq!(own.spin, Some(Spin { loops: 14, observed_ns: 2_000 }));
        let stamps = own.kernel_stamps.unwrap();
        let twice = StampedPart { sum_ns: 2_000, min_ns: 100, max_ns: 200 };
        assert_eq!((stamps.wakeups, stamps.to_function), (20, twice));
        let audio = own.audio.as_ref().unwrap();
        assert_eq!((audio.overruns, audio.compute.count, audio.cycles.count), (2, 4_000, 3_998));
        assert_eq!((all.id.as_str(), all.started.as_str()), ("", ""));
        // What one of them lacks is not that of the other.
        let mut bare = full.clone();
        let own = &mut bare.threads[0];
        (own.spin, own.kernel_stamps, own.audio, own.maxima) = (None, None, None, None);
        for runs in [[&full, &bare], [&bare, &full]] {
            let own = merged(&runs).unwrap().threads.remove(0);
            assert_eq!(
                (own.spin, own.kernel_stamps, own.audio, own.maxima),
                (None, None, None, None)
            );
        }
    }
}
