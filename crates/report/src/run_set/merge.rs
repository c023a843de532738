//! Several runs as one.

use wakescope_core::finding::{Finding, Validity};
use wakescope_core::run::{Run, Thread};

/// The most of the latest wakeups, and of findings, that are kept of several runs.
const MOST: usize = 64;

/// What runs of the same kind have together: samples per CPU, the latest wakeups, every finding once.
/// The rest is that of the first; what is true of single runs only is left out. `None` without any.
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
    all.validity = Validity::of(findings(runs));
    // Causes and components are of one run each, and so are limits.
    (all.explanation, all.components) = (None, None);
    all.causes.clear();
    (all.net_of_steal, all.ranking) = (None, None);
    all.limits.clear();
    all.load.clear();
    all.summarize();
    Some(all)
}

fn add(threads: &mut Vec<Thread>, other: &Thread) {
    let Some(own) = threads.iter_mut().find(|t| t.cpu == other.cpu) else {
        threads.push(other.clone());
        return;
    };
    own.missed = own.missed.saturating_add(other.missed);
    own.lost = own.lost.saturating_add(other.lost);
    own.migrated = own.migrated.saturating_add(other.migrated);
    own.page_faults = own.page_faults.saturating_add(other.page_faults);
    own.woken = own.woken.merged(&other.woken);
    own.expiries = own.expiries.merged(&other.expiries);
    own.interval_deviation = match (own.interval_deviation.take(), &other.interval_deviation) {
        (Some(own), Some(other)) => Some(own.merged(other)),
        _ => None,
    };
    own.maxima = match (own.maxima.take(), &other.maxima) {
        (Some(own), Some(other)) => Some(own.merged(other)),
        (own, other) => own.or_else(|| other.clone()),
    };
}

fn findings(runs: &[&Run]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for finding in runs.iter().flat_map(|run| &run.validity.findings) {
        let is_known = found.iter().any(|f| f.code == finding.code);
        if !is_known && found.len() < MOST {
            found.push(finding.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::run_of;

    #[test]
    fn samples_add_up() {
        let (a, b) = (run_of(&[&[5_000, 9_000], &[6_000]]), run_of(&[&[7_000_000; 3]]));
        let both = merged(&[&a, &b]).unwrap();
        assert_eq!(both.threads.len(), 2);
        assert_eq!(both.threads[0].expiries.count, 5);
        assert_eq!(both.summary.max_ns, Some(7_000_000));
        assert_eq!(both.worst[0].wakeup_latency_ns, 7_000_000);
        assert_eq!(merged(&[&a]), Some(a));
        assert_eq!(merged(&[]), None);
    }
}
