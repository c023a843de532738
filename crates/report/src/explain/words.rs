//! A share of blame in words.

use wakescope_core::explain::{Cause, Evidence, Share};
use wakescope_core::run::TimeDomain;

use crate::domain;
use crate::style::clean;

/// The longest name of a culprit, and of what it was in.
pub(super) const LONGEST_NAME: usize = 48;

/// `231 µs interrupts off in uart_drain_fifo, called from serial_release in logger[231]`
pub(crate) fn phrase(share: &Share, domain: TimeDomain) -> String {
    format!("{} {}{}", domain::span(share.ns, domain), share.cause.words(), whose(share))
}

/// A cause and its culprit: `no preemption point in copy_page`, `softirq NET_RX`.
pub(crate) fn named(cause: Cause, culprit: &str) -> String {
    match beside(cause, culprit) {
        none if none.is_empty() => cause.words().into(),
        name => format!("{} {}{name}", cause.words(), joint(cause)),
    }
}

/// A culprit as it stands beside the words of its cause, without words of its name that end these:
/// no "softirq softirq 12", and nothing beside "stolen by the hypervisor". May be empty.
pub(crate) fn beside(cause: Cause, culprit: &str) -> String {
    let name = clean(culprit, LONGEST_NAME);
    let (before, own): (Vec<&str>, Vec<&str>) =
        (cause.words().split(' ').collect(), name.split(' ').collect());
    let is_said = |&count: &usize| {
        let end = &before[before.len() - count..];
        end.iter().zip(&own[..count]).all(|(a, b)| a.eq_ignore_ascii_case(b))
    };
    let said = (1..=before.len().min(own.len())).rev().find(is_said).unwrap_or(0);
    own[said..].join(" ")
}

/// What follows the words of a cause: ` in uart_drain_fifo, called from serial_release in …`.
pub(super) fn whose(share: &Share) -> String {
    let culprit = match beside(share.cause, &share.culprit) {
        name if name.is_empty() => name,
        name => format!(" {}{name}", joint(share.cause)),
    };
    let within = match clean(&share.within, 2 * LONGEST_NAME) {
        place if place.is_empty() => String::new(),
        // A function within a task, or no more than the task.
        place if place.contains(" in ") => format!(", called from {place}"),
        place => format!(", in {place}"),
    };
    culprit + &within
}

/// The word between a cause and its culprit: sections are in a function, others have a name.
fn joint(cause: Cause) -> &'static str {
    match cause {
        Cause::IrqOff
        | Cause::PreemptOff
        | Cause::NoPreemptionPoint
        | Cause::Scheduler
        | Cause::PageFault
        | Cause::Unexplained => "in ",
        Cause::RemoteWakeup => "by ",
        Cause::Steal
        | Cause::Nmi
        | Cause::Irq
        | Cause::Softirq
        | Cause::HigherPriorityTask
        | Cause::EqualOrLowerTask
        | Cause::Throttled
        | Cause::IdleExit
        | Cause::Tracer => "",
    }
}

/// How a share is known. Nothing is known of what is unexplained.
pub(crate) fn known(share: &Share) -> &'static str {
    match (share.cause, share.evidence) {
        (Cause::Unexplained, _) => "",
        (_, Evidence::Edge) => "both edges seen",
        (_, Evidence::Stack) => "stack taken inside",
        (_, Evidence::Bound) => "at most: what is left between two points",
    }
}

/// What a tenth of a µs is enough for: `231.4`.
pub(super) fn micros(ns: u64) -> String {
    format!("{}.{}", ns / 1_000, ns % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cause: Cause, culprit: &str, within: &str, want: &str) {
        let (culprit, within) = (culprit.into(), within.into());
        let share = Share { cause, ns: 231_000, culprit, within, ..Share::default() };
        assert_eq!(phrase(&share, TimeDomain::Real), want);
    }

    #[test]
    fn shares_read_as_sentences() {
        check(
            Cause::IrqOff,
            "uart_drain_fifo",
            "serial_release in logger[231]",
            "231 µs interrupts off in uart_drain_fifo, called from serial_release in logger[231]",
        );
        check(
            Cause::NoPreemptionPoint,
            "copy_page",
            "rm[4]",
            "231 µs no preemption point in copy_page, in rm[4]",
        );
        check(Cause::Softirq, "NET_RX", "", "231 µs softirq NET_RX");
        check(Cause::Steal, "hypervisor", "", "231 µs stolen by the hypervisor");
        check(Cause::HigherPriorityTask, "spin[7]", "", "231 µs higher-priority task spin[7]");
        check(Cause::IdleExit, "C6", "", "231 µs exit from idle C6");
        check(Cause::Steal, "", "", "231 µs stolen by the hypervisor");
        check(Cause::RemoteWakeup, "kworker[9]", "", "231 µs remote wakeup by kworker[9]");
        check(Cause::Unexplained, "", "", "231 µs unexplained");
    }

    #[test]
    fn no_word_is_doubled() {
        for (cause, culprit, want) in [
            (Cause::Steal, "hypervisor", "stolen by the hypervisor"),
            (Cause::Softirq, "softirq 12", "softirq 12"),
            (Cause::Irq, "interrupt", "interrupt"),
            (Cause::Nmi, "nmi", "NMI"),
            (Cause::IdleExit, "idle", "exit from idle"),
            (Cause::Scheduler, "scheduler", "scheduler"),
            (Cause::Tracer, "", "tracing"),
            (Cause::NoPreemptionPoint, "copy_page", "no preemption point in copy_page"),
        ] {
            assert_eq!(named(cause, culprit), want);
        }
        // Whatever a record calls a culprit, also what the cause is called.
        for cause in Cause::ALL {
            for culprit in cause.words().split(' ').chain([cause.name(), cause.words()]) {
                let text = named(cause, culprit).to_lowercase();
                let words: Vec<&str> = text.split(' ').collect();
                assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{text}");
            }
        }
    }

    #[test]
    fn tenths_of_microseconds_are_not_rounded_up() {
        for (ns, want) in
            [(0, "0.0"), (231_499, "231.4"), (99, "0.0"), (u64::MAX, "18446744073709551.6")]
        {
            assert_eq!(micros(ns), want);
        }
    }
}
