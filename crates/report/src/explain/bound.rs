//! The bound that the longest of each thing compose into, beside what was observed.

use wakescope_core::explain::{Bound, Culprit, Interference, Name, Unsound, Variables};
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::grouped;

use super::{WIDTH, phrases};
use crate::domain::span;
use crate::findings::wrapped;
use crate::style::{Style, clean};

/// The most interrupts and reasons that are told, and the longest name of an interrupt.
const MOST_INTERRUPTS: usize = 6;
const MOST_REASONS: usize = 16;
const LONGEST_NAME: usize = 40;

/// What the bound is, what it is made of, and why it does not hold.
pub(super) fn text(run: &Run, bound: &Bound, style: Style) -> String {
    let domain = run.time_domain;
    let reasons = bound.unsound.iter().take(MOST_REASONS).map(|&reason| {
        let line = wrapped(&format!("unsound: {}", unsound(reason)), WIDTH - 1, "   ");
        format!(" {}\n", style.warn(&line))
    });
    let lines = [sentence(run, bound), made_of(&bound.variables, domain)];
    let lines = lines.iter().filter(|line| !line.is_empty());
    let lines = lines.map(|line| format!(" {}\n", wrapped(line, WIDTH - 1, "   ")));
    lines.chain(reasons).collect()
}

/// Why a longer latency than a bound is possible.
pub(crate) fn unsound(reason: Unsound) -> String {
    let words = match reason {
        Unsound::SectionsOfLateWakeups => {
            "sections with interrupts or preemption off are observed only where they delayed a late \
             wakeup: longer ones may exist"
        }
        Unsound::NoSection => "no section with interrupts or preemption off was observed",
        Unsound::WayToSchedulerUnseen => {
            "the time from a reschedule request to the scheduler is not observed"
        }
        Unsound::SchedulerUnseen => {
            "the scheduler's own time with preemption off is not observed before the switch"
        }
        Unsound::LastSectionUnseen => {
            "the scheduler's last section with interrupts off is not observed"
        }
        Unsound::NotFullyPreemptible => {
            "the kernel is not fully preemptible: its code may run for any time even with \
             preemption enabled"
        }
        Unsound::SoftirqsNotThreaded => {
            "softirqs are not threaded: they may delay the thread one after another"
        }
        Unsound::InterruptsUnseen => "not all interrupts are observed",
        Unsound::NotMostUrgent => {
            "the bound holds only for the highest-priority thread of a CPU: others may wait for \
             tasks of higher priority"
        }
        Unsound::Hypervisor => "a hypervisor may take the CPU at any time",
        Unsound::Exceeded { cause: Some(cause) } => {
            return format!(
                "a wakeup exceeded the bound, because of a cause that the bound does not include: {}",
                phrases::cause(cause)
            );
        }
        Unsound::Exceeded { cause: None } => {
            "a wakeup exceeded the bound, and it is not known because of what"
        }
        Unsound::Unknown => "for a reason that this version does not know",
    };
    words.into()
}

/// `local_timer`, `softirq NET_RX`, `NMI watchdog`
fn name(culprit: &Culprit) -> String {
    match culprit {
        Culprit::Softirq(Name { name }) => phrases::softirq_name(name),
        Culprit::Nmi(Name { name }) => format!("NMI {name}"),
        Culprit::Interrupt(Name { name }) => name.clone(),
        _ => "interrupt".into(),
    }
}

fn sentence(run: &Run, bound: &Bound) -> String {
    let domain = run.time_domain;
    let name = if bound.unsound.is_empty() { "bound" } else { "bound (unsound)" };
    let free = span(bound.interference_free_ns, domain);
    let text = match bound.bound_ns {
        Some(ns) => format!(
            "{name}: {} (interference-free {free}, with interrupts at the highest observed rate)",
            span(ns, domain)
        ),
        None => format!(
            "{name}: none below a second (interference-free {free}; at the highest observed rate, \
             interrupts leave no time)"
        ),
    };
    match run.woken().max_ns {
        Some(worst_ns) => format!("{text}; observed {}", span(worst_ns, domain)),
        None => text,
    }
}

/// `components: section 231 µs, scheduler 3.50 µs; local_timer 3.10 µs every 1.00 ms, eth0 2.00 µs once`
fn made_of(variables: &Variables, domain: TimeDomain) -> String {
    let Variables { delivery_ns, poid_ns, paie_ns, psd_ns, dst_ns, tracer_ns, interrupts } =
        variables;
    let parts = [
        ("timer delivery", delivery_ns),
        ("section", poid_ns),
        ("last scheduler section", dst_ns),
        ("path to the scheduler", paie_ns),
        ("scheduler", psd_ns),
        ("tracer", tracer_ns),
    ];
    let part = |(name, ns): (&str, &Option<u64>)| Some(format!("{name} {}", span((*ns)?, domain)));
    let parts: Vec<String> = parts.into_iter().filter_map(part).collect();
    let longest = interrupted_by(interrupts, domain);
    let all = [parts.join(", "), longest.join(", ")];
    let all: Vec<String> = all.into_iter().filter(|text| !text.is_empty()).collect();
    if all.is_empty() { String::new() } else { format!("components: {}", all.join("; ")) }
}

/// Those that take the longest.
fn interrupted_by(interrupts: &[Interference], domain: TimeDomain) -> Vec<String> {
    let mut longest: Vec<&Interference> = interrupts.iter().collect();
    longest.sort_by_key(|interrupt| std::cmp::Reverse(interrupt.wcet_ns));
    let mut text: Vec<String> = longest
        .iter()
        .take(MOST_INTERRUPTS)
        .map(|interrupt| {
            let name = clean(&name(&interrupt.culprit), LONGEST_NAME);
            let often = match interrupt.miat_ns {
                Some(miat_ns) => format!("every {}", span(miat_ns, domain)),
                None => "once".into(),
            };
            format!("{name} {} {often}", span(interrupt.wcet_ns, domain))
        })
        .collect();
    if longest.len() > MOST_INTERRUPTS {
        text.push(format!("{} more", grouped((longest.len() - MOST_INTERRUPTS) as u64)));
    }
    text
}
