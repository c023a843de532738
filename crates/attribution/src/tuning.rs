//! The thresholds of the rules of blame, in one place.
//!
//! None of them follows from the kernel's code alone: each lies between what was measured of a way that
//! nothing disturbed and of one that something did. Two tests move each by 30 %: `moved` pins which cases of
//! the tests change, and `episodes` which stored answers do. A threshold that changes none is not proven by any.

/// What the rules of blame take for long. Times are in nanoseconds; names that end in `_percent` are
/// parts of what is usual in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// How long the way back from an interrupt may take.
    ///
    /// Between the exit of an interrupt and the scheduler's entry, or the switch, lie the end of the
    /// interrupt's accounting, the check for softirqs and the check whether to reschedule: a few
    /// hundred instructions, which with cold caches take a microsecond or two. What is longer has
    /// another reason.
    pub return_path_ns: u64,
    /// How long the kernel may take from the end of one softirq to the beginning of the next one it does at
    /// once. These are a few instructions, and the tracer's own at both events: 319 to 405 ns in guests of kernels
    /// from 6.1 to 7.3, and 675 with a tracer that read more behind the first event. What is longer may have a task's
    /// code in it.
    pub next_softirq_ns: u64,
    /// How long the kernel may take from the end of a softirq until it has made the thread ready to which it leaves
    /// the others: 1.6 to 1.8 µs in guests of 6.1 and 6.12, 1.1 to 1.6 µs in ones of 7.2, 2 to 4 µs in a guest of
    /// KVM (6.18) under a program of bpftrace at both events, which takes a part of that.
    pub to_ksoftirqd_ns: u64,
    /// How much of the run's shortest way from an interrupt to the scheduler that one takes which leads through
    /// a section that is over at once. The CPU goes back to the code, which calls the scheduler itself. (In percent
    /// of the shortest: 135 on 7.2, of which 4 were after the section, and 104 or 105 on 6.1, 6.12 and 6.18. Code
    /// without a preemption point takes 100, but 65 more for each further interrupt, whose way in and out no
    /// event shows.)
    pub way_out_percent: u64,
    /// How long the way from the scheduler, or from an interrupt, to the task may take without an event,
    /// without the CPU being stopped. A few µs are usual.
    pub slow_way_ns: u64,
    /// What the timer's interrupt takes for itself at the most, without the functions of timers.
    pub slow_handler_ns: u64,
    /// How long a CPU may take to wake from any state without being stopped. A guest's halt ends through
    /// its hypervisor, which first has to wake its own CPU: tens of microseconds.
    pub slow_to_wake_ns: u64,
    /// And how many times what half of the run's wakeups take. Idle states that were seldom reached may
    /// take much longer than usual ones.
    pub slow_to_wake_percent: u64,
    /// How long a probe may run between two sleeps without being stopped. It reads a clock and sets two
    /// timers: 8 to 64 µs in a guest of KVM (6.18), 3 of 5,981 times more than 128 µs.
    pub slow_probe_ns: u64,
    /// What none of the kernel's own short functions of timers takes: up to 21 µs in late wakeups of a
    /// guest of KVM (6.18), up to 240 µs where the processor is emulated (7.2).
    pub long_function_ns: u64,
    /// How long interrupts may be off on the kernel's short way back to a program, or out of a switch. (Under
    /// an emulator that was stopped: 20 ms of `exit_to_user_mode_prepare`, 6.1, and 52 ms of
    /// `finish_task_switch`, 7.2.)
    pub long_short_way_ns: u64,
    /// What the tracer takes at the most. A stack takes some 40 µs in a guest of KVM, and less than 300 µs
    /// where the processor is emulated. (6.1 under an emulator that was stopped: 28 ms.)
    pub long_tracer_ns: u64,
    /// What a CPU that runs with interrupts on may be without an interrupt: more than two ticks where
    /// these come seldom (CONFIG_HZ=100).
    pub tickless_ns: u64,
    /// When the next tick comes at the latest.
    pub tick_ns: u64,
    /// How much of what 99 % of the run's wakeups take from the scheduler to the response can be that of
    /// another one: the same code runs each time.
    pub scheduling_percent: u64,
    /// How much of what interrupts usually take to arrive one may take after interrupts went on.
    pub delivery_percent: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            return_path_ns: 3_000,
            next_softirq_ns: 1_000,
            to_ksoftirqd_ns: 2_000,
            way_out_percent: 140,
            slow_way_ns: 200_000,
            slow_handler_ns: 200_000,
            slow_to_wake_ns: 200_000,
            slow_to_wake_percent: 1_000,
            slow_probe_ns: 1_000_000,
            long_function_ns: 1_000_000,
            long_short_way_ns: 1_000_000,
            long_tracer_ns: 1_000_000,
            tickless_ns: 25_000_000,
            tick_ns: 10_000_000,
            scheduling_percent: 200,
            delivery_percent: 200,
        }
    }
}

/// So many percent of `ns`.
pub(crate) fn percent_of(percent: u64, ns: u64) -> u64 {
    u64::try_from(u128::from(ns) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod episodes;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use wakescope_core::units::SpanNs;

    /// One of the thresholds.
    pub(crate) type Threshold = fn(&mut Tuning) -> &mut u64;

    /// All of them, with their names.
    pub(crate) fn thresholds() -> Vec<(&'static str, Threshold)> {
        macro_rules! all {
            ($($name:ident),*) => {{
                // A new one is not compiled until it is here.
                let Tuning { $($name: _),* } = Tuning::default();
                vec![$((stringify!($name), (|tuning: &mut Tuning| &mut tuning.$name) as Threshold)),*]
            }};
        }
        all!(
            return_path_ns,
            next_softirq_ns,
            to_ksoftirqd_ns,
            way_out_percent,
            slow_way_ns,
            slow_handler_ns,
            slow_to_wake_ns,
            slow_to_wake_percent,
            slow_probe_ns,
            long_function_ns,
            long_short_way_ns,
            long_tracer_ns,
            tickless_ns,
            tick_ns,
            scheduling_percent,
            delivery_percent
        )
    }

    /// The tuning with one of its thresholds moved, as in `tick_ns=70`, in percent of what it is.
    pub(crate) fn moved(text: &str) -> Tuning {
        let (name, percent) = text.split_once('=').expect("a name and percent");
        let (_, threshold) = thresholds().into_iter().find(|t| t.0 == name).expect("a threshold");
        let mut tuning = Tuning::default();
        let value = threshold(&mut tuning);
        *value = percent_of(percent.parse().expect("percent"), *value);
        tuning
    }

    /// The cells of the threshold's row on the page for users, which has its value.
    #[track_caller]
    pub(crate) fn documented(name: &str) -> Vec<&'static str> {
        let (_, threshold) = thresholds().into_iter().find(|t| t.0 == name).expect("a threshold");
        let value = *threshold(&mut Tuning::default());
        let value = match name.ends_with("_percent") {
            true => format!("{value} %"),
            false => SpanNs(value).to_string(),
        };
        let page = include_str!("../../../docs/explain.md");
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` | {value} |")));
        let row = row.unwrap_or_else(|| panic!("docs/explain.md has no row of {name}, {value}"));
        row.trim_matches('|').split('|').map(str::trim).collect()
    }

    #[test]
    fn percent_do_not_overflow() {
        assert_eq!(percent_of(200, 7), 14);
        assert_eq!(percent_of(70, 10), 7);
        assert_eq!(percent_of(200, u64::MAX), u64::MAX);
        assert_eq!(moved("tick_ns=130").tick_ns, 13_000_000);
    }
}
