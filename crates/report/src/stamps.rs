//! The kernel's own time stamps of a run's wakeups, in a sentence.

use wakescope_core::run::{Run, StampedPart};

use crate::domain;

/// `By the kernel's own time stamps, mean (longest): timer to its function 1.20 µs (5.00 µs), …`; `None`
/// where the kernel gave none.
pub(crate) fn sentence(run: &Run) -> Option<String> {
    let stamps = run.threads.iter().filter_map(|thread| thread.kernel_stamps);
    let all = stamps.reduce(|all, one| all.merged(&one)).filter(|all| all.wakeups > 0)?;
    let part = |StampedPart { sum_ns, max_ns, .. }| {
        let span = |ns| domain::span(ns, run.time_domain);
        format!("{} ({})", span(sum_ns / all.wakeups), span(max_ns))
    };
    Some(format!(
        "By the kernel's own time stamps, mean (longest): due to timer function {},\n\
         timer function to reader in the kernel {}, from there to the probe {}.",
        part(all.to_function),
        part(all.to_reader),
        part(all.to_probe),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::run::{KernelStamps, Thread};

    #[test]
    fn the_parts_of_all_probes_are_told_with_mean_and_maximum() {
        let part = |sum_ns, max_ns| StampedPart { sum_ns, min_ns: 1, max_ns };
        let thread = |wakeups: u64, longer: u64| Thread {
            kernel_stamps: Some(KernelStamps {
                wakeups,
                to_function: part(1_000 * wakeups, 5_000 + longer),
                to_reader: part(2_000 * wakeups, 6_000),
                to_probe: part(500 * wakeups, 700),
            }),
            ..Thread::default()
        };
        let mut run = Run { threads: vec![thread(10, 0), thread(30, 1_000)], ..Run::default() };
        let want = "By the kernel's own time stamps, mean (longest): due to timer function 1.00 µs \
                    (6.00 µs),\ntimer function to reader in the kernel 2.00 µs (6.00 µs), from there \
                    to the probe 500 ns (700 ns).";
        assert_eq!(sentence(&run).as_deref(), Some(want));
        // Hostile sums say something wrong, and do no harm.
        let hostile = part(u64::MAX, u64::MAX);
        let stamps = KernelStamps { wakeups: u64::MAX, to_function: hostile, ..Default::default() };
        run.threads.push(Thread { kernel_stamps: Some(stamps), ..Thread::default() });
        assert!(sentence(&run).is_some());
        run.threads.truncate(1);
        run.threads[0].kernel_stamps = None;
        assert_eq!(sentence(&run), None);
    }
}
