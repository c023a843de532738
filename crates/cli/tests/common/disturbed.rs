//! Guests that are disturbed in a known way, and whether explanations tell it.

use wakescope_core::explain::{Cause, Culprit, Name, Share};
use wakescope_core::run::Run;

use super::lab::Bench;

/// A disturbance, and what its wakeups are to be blamed on.
pub(crate) struct Disturbed<'a> {
    /// What else the lab is asked for: an architecture, and a program for it.
    pub(crate) machine: &'a [&'a str],
    pub(crate) kernel: &'a str,
    pub(crate) preempt: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) length_us: u64,
    pub(crate) samples: u64,
    pub(crate) cause: Cause,
    /// What the culprit is called, a task or a softirq; empty if that does not matter.
    pub(crate) culprit: &'a str,
}

/// Whether `share` is blamed on a task or a softirq of this name.
pub(crate) fn is_blamed_on(share: &Share, name: &str) -> bool {
    match &share.culprit {
        Culprit::Task(task) => task.comm == name,
        Culprit::Softirq(Name { name: own }) => own == name,
        _ => false,
    }
}

impl Disturbed<'_> {
    /// So far apart no disturbance holds more than one wakeup up, nor keeps the probe from going to
    /// sleep until the next is due: what a late one takes beside it, stacks and its handing over, is
    /// 60 virtual us.
    pub(crate) fn interval_us(&self) -> u64 {
        (self.length_us * 6 / 5).max(self.length_us + 80)
    }

    /// The run of the guest. Nothing else in it makes a wakeup half as late as the disturbance, so
    /// that those are what is explained. Between two of them the probe goes to sleep.
    pub(crate) fn run(&self, bench: &Bench) -> Run {
        let load = format!("disturb-{}-{}us", self.kind, self.length_us);
        let above = format!("{}ns", self.length_us * 500);
        let interval = format!("{}us", self.interval_us());
        let samples = self.samples.to_string();
        let what = ["--kernel", self.kernel, "--preempt", self.preempt, "--load", &load];
        let how = ["--samples", &samples, "--interval", &interval, "--seeds", "1"];
        let explain = ["--explain", "--above", &above, "--worst", "1000"];
        bench.run(&[self.machine, &what, &how, &explain].concat()).record()
    }

    /// Fails if anything holds a wakeup up for half as long.
    #[track_caller]
    pub(crate) fn assert_late_never(&self, bench: &Bench) {
        let run = self.run(bench);
        assert!(run.load[0].work > 20, "{:?}", run.load);
        assert!(run.woken().max_ns < Some(self.length_us * 500), "{:#?}", run.worst.first());
    }

    /// Fails unless at least `fewest` wakeups were held up, 99 % of them are blamed first on the
    /// disturbance, and the largest of those shares is not above its length by 5 % or 2 µs, nor below by more than
    /// chance makes it. The run.
    #[track_caller]
    pub(crate) fn assert_found(&self, bench: &Bench, fewest: usize) -> Run {
        let run = self.run(bench);
        let least_ns = self.length_us * 500;
        let late: Vec<_> = run.worst.iter().filter(|e| e.wakeup_latency_ns >= least_ns).collect();
        let text = format!("{} {} {}: {late:#?}", self.kernel, self.preempt, run.plan.load[0]);
        assert!(late.len() >= fewest, "{} late: {text}", late.len());
        let (mut right, mut longest_ns) = (0, 0);
        for episode in &late {
            let sum: u64 = episode.blame.iter().map(|share| share.ns).sum();
            assert_eq!(sum, episode.wakeup_latency_ns, "{text}");
            let parts = episode.components.map(|components| components.total_ns());
            assert_eq!(parts, Some(episode.wakeup_latency_ns), "{text}");
            let first = &episode.blame[0];
            let is_named = self.culprit.is_empty() || is_blamed_on(first, self.culprit);
            if first.cause == self.cause && is_named {
                right += 1;
                longest_ns = longest_ns.max(first.ns);
            }
        }
        assert!(right * 100 >= late.len() * 99, "{right} of {} right: {text}", late.len());
        let length_ns = self.length_us * 1_000;
        let near = 2_000.max(length_ns / 20);
        assert!(longest_ns <= length_ns + near, "{longest_ns} ns: {text}");
        // They fall anywhere into the first half of it. That the first 7/n of that half has none of
        // n happens once in e^7, a thousand.
        let missed = length_ns * 7 / (2 * late.len() as u64);
        assert!(longest_ns + near + missed >= length_ns, "{longest_ns} ns: {text}");
        run
    }
}
