//! What a record blames, in words: one function for each type, so that text, page, pictures, Markdown
//! and other programs' formats say the same.

use wakescope_core::explain::{
    Blamed, Cause, Culprit, Evidence, Function, Gap, Name, NamedTask, Phase, Policy, Share, Within,
};
use wakescope_core::run::TimeDomain;

use crate::domain;
use crate::style::clean;

/// The longest name of a culprit, and of what it was in.
pub(super) const LONGEST_NAME: usize = 48;

/// In a sentence: `no preemption point`.
pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Steal => "stolen by the hypervisor",
        Cause::Nmi => "NMI",
        Cause::Irq => "interrupt",
        Cause::Softirq => "softirq",
        Cause::IrqOff => "interrupts off",
        Cause::PreemptOff => "preemption off",
        Cause::NoPreemptionPoint => "no preemption point",
        Cause::HigherPriorityTask => "higher-priority task",
        Cause::EqualOrLowerTask => "equal- or lower-priority task",
        Cause::Throttled => "throttled",
        Cause::IdleExit => "exit from idle",
        Cause::RemoteWakeup => "remote wakeup",
        Cause::Scheduler => "scheduler",
        Cause::PageFault => "page fault",
        Cause::Tracer => "tracer overhead",
        Cause::Unexplained => "unexplained",
    }
}

/// `rm[412]`; `rm` where it stands for all of that name.
pub(super) fn task(task: &NamedTask) -> String {
    match task.pid {
        Some(pid) => format!("{}[{pid}]", task.comm),
        None => task.comm.clone(),
    }
}

/// `rm[412] other`, `spin[7] fifo 95`: with the priority as one sets it.
pub(super) fn task_with_policy(of: &NamedTask) -> String {
    let policy = match of.policy {
        Policy::Other => "other".into(),
        Policy::Fifo => "fifo".into(),
        Policy::RoundRobin => "rr".into(),
        Policy::Batch => "batch".into(),
        Policy::Idle => "idle".into(),
        Policy::Deadline => "deadline".into(),
        Policy::Ext => "ext".into(),
        Policy::Unknown(number) => format!("policy {number}"),
    };
    match of.priority {
        Some(priority) => format!("{} {policy} {priority}", task(of)),
        None => format!("{} {policy}", task(of)),
    }
}

/// Who or what, on its own, as a record has it; empty if there is nothing to say. It is not cleaned.
pub(crate) fn culprit(blamed: Blamed) -> String {
    let Blamed { cause, culprit, phase, from_cpu, others } = blamed;
    match (culprit, phase, from_cpu) {
        _ if others => "others".into(),
        (Culprit::Task(of), ..) => match cause {
            Cause::HigherPriorityTask | Cause::EqualOrLowerTask | Cause::Throttled => {
                task_with_policy(of)
            }
            _ => task(of),
        },
        (Culprit::Function(Function { name, .. }), ..) => name.clone(),
        (Culprit::Interrupt(Name { name }) | Culprit::Timer(Name { name }), ..)
        | (Culprit::Softirq(Name { name }) | Culprit::Nmi(Name { name }), ..)
        | (Culprit::Idle(Name { name }), ..) => name.clone(),
        (Culprit::Hypervisor, ..) => "hypervisor".into(),
        (Culprit::Tracer, ..) => String::new(),
        (Culprit::None, Some(Phase::Timer), _) => "before its timer fired".into(),
        (Culprit::None, Some(Phase::Delivery), _) => "delivery".into(),
        (Culprit::None, Some(Phase::ReturnFromInterrupt), _) => "return from interrupt".into(),
        (Culprit::None, Some(Phase::Switch), _) => "switch".into(),
        (Culprit::None, None, Some(cpu)) => format!("CPU {cpu}"),
        (Culprit::None, None, None) if is_of_several(blamed) => "several tasks".into(),
        (Culprit::None, None, None) => String::new(),
    }
}

/// Whether tasks are blamed of which none is known to have had the CPU for long.
fn is_of_several(Blamed { cause, culprit, phase, others, .. }: Blamed) -> bool {
    let is_of_tasks = matches!(cause, Cause::HigherPriorityTask | Cause::EqualOrLowerTask);
    is_of_tasks && *culprit == Culprit::None && phase.is_none() && !others
}

/// In a sentence, whoever is blamed: `several higher-priority tasks`.
fn cause_of(blamed: Blamed) -> String {
    match is_of_several(blamed) {
        true => format!("several {}s", cause(blamed.cause)),
        false => cause(blamed.cause).into(),
    }
}

/// Whether this is a task with a deadline that is not known to come first: then the one that waited has one as well,
/// and which is earlier is not seen.
fn is_of_deadline(Share { cause, culprit, evidence, .. }: &Share) -> bool {
    let has_deadline = matches!(culprit, Culprit::Task(task) if task.policy == Policy::Deadline);
    has_deadline && *cause == Cause::EqualOrLowerTask && *evidence == Evidence::Bound
}

/// What a culprit was in: `exit_mmap in rm[412], waiting for a lock`; empty if that is not known. It is
/// not cleaned.
pub(crate) fn place(share: &Share) -> String {
    let (inner, outer) = inner_and_outer(&share.within);
    let joint = if inner.is_empty() || outer.is_empty() { "" } else { " in " };
    let place = format!("{inner}{joint}{outer}");
    match (share.waiting_for_lock, place.is_empty()) {
        (false, _) => place,
        (true, true) => WAITS.into(),
        (true, false) => format!("{place}, {WAITS}"),
    }
}

const WAITS: &str = "waiting for a lock";

/// The function or interrupt that the culprit was in, and the softirq or task around that.
fn inner_and_outer(within: &Within) -> (String, String) {
    let Within { caller, syscall, softirq, interrupt, task: of } = within;
    let function = caller.as_ref().map(|caller| &caller.name).or(syscall.as_ref());
    let inner = function.or(interrupt.as_ref()).cloned().unwrap_or_default();
    let of = of.as_ref().map(task);
    let outer = match (softirq, of) {
        (Some(softirq), Some(of)) => format!("{} of {of}", softirq_name(softirq)),
        (Some(softirq), None) => softirq_name(softirq),
        (None, of) => of.unwrap_or_default(),
    };
    (inner, outer)
}

/// `softirq NET_RX`
pub(super) fn softirq_name(name: &str) -> String {
    format!("softirq {name}")
}

/// `231 µs interrupts off in uart_drain_fifo, called from serial_release in logger[231]`
pub(super) fn phrase(share: &Share, domain: TimeDomain) -> String {
    let cause = match is_of_deadline(share) {
        true => "deadline task".into(),
        false => cause_of(share.blamed()),
    };
    format!("{} {cause}{}", domain::span(share.ns, domain), whose(share))
}

/// A cause and its culprit: `no preemption point in copy_page`, `softirq NET_RX`.
pub(crate) fn named(blamed: Blamed) -> String {
    match beside(blamed) {
        none if none.is_empty() => cause_of(blamed),
        name => format!("{} {}{name}", cause(blamed.cause), joint(blamed.cause)),
    }
}

/// The same with the name of the cause: `no_preemption_point in copy_page`, `softirq NET_RX`.
pub(super) fn with_culprit(blamed: Blamed) -> String {
    match beside(blamed) {
        none if none.is_empty() => blamed.cause.name().into(),
        name => format!("{} {}{name}", blamed.cause.name(), joint(blamed.cause)),
    }
}

/// A culprit as it stands beside the words of its cause, without words of its name that end these:
/// no "interrupt interrupt", and nothing beside "stolen by the hypervisor". May be empty.
pub(crate) fn beside(blamed: Blamed) -> String {
    if is_of_several(blamed) {
        return String::new();
    }
    let name = clean(&culprit(blamed), LONGEST_NAME);
    let (before, own): (Vec<&str>, Vec<&str>) =
        (cause(blamed.cause).split(' ').collect(), name.split(' ').collect());
    let is_said = |&count: &usize| {
        let end = &before[before.len() - count..];
        end.iter().zip(&own[..count]).all(|(a, b)| a.eq_ignore_ascii_case(b))
    };
    let said = (1..=before.len().min(own.len())).rev().find(is_said).unwrap_or(0);
    own[said..].join(" ")
}

/// Who caused it, and where, behind the name of the cause: ` in uart_drain_fifo, called from tty_release in
/// logger[231]`.
pub(super) fn whose(share: &Share) -> String {
    let culprit = match beside(share.blamed()) {
        name if name.is_empty() => name,
        name => format!(" {}{name}", joint(share.cause)),
    };
    culprit + &behind_culprit(share)
}

/// The same where the name of the cause stands elsewhere: `uart_drain_fifo, called from tty_release in
/// logger[231]`.
pub(crate) fn culprit_and_place(share: &Share) -> String {
    let all = beside(share.blamed()) + &behind_culprit(share);
    all.trim_start_matches(", ").into()
}

/// Where it was, behind its culprit; empty if that is not known.
fn behind_culprit(share: &Share) -> String {
    let (inner, outer) = inner_and_outer(&share.within);
    let place = clean(&place(share), 2 * LONGEST_NAME);
    match (inner.is_empty(), outer.is_empty()) {
        // A function within a task, or no more than one of them.
        (false, false) => format!(", called from {place}"),
        (true, true) if place.is_empty() => place,
        (true, true) => format!(", {place}"),
        _ => format!(", in {place}"),
    }
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

/// Why time is unexplained.
pub(super) fn gap(gap: Gap) -> &'static str {
    match gap {
        Gap::LostEvents => "events were lost or are out of order",
        Gap::Contradiction => "events contradict each other",
        Gap::NotSeen => "no event shows what the CPU did",
        Gap::TimerNotSet => "the task had not set its timer yet",
        Gap::LateInterrupt => "no event shows what kept the interrupt out",
        Gap::Slow => "longer than usual, and no event shows why",
        Gap::NotLeft => "no event shows why the CPU was not given up",
        Gap::OtherChosen => "no event shows why the scheduler chose another task",
    }
}

/// How a share is known; of what is unexplained, why.
pub(crate) fn known(share: &Share) -> &'static str {
    match (share.cause, share.evidence) {
        (Cause::Unexplained, _) => share.gap.map_or("", gap),
        (_, Evidence::Edge) => "both edges seen",
        (_, Evidence::Stack) => "stack taken inside",
        (_, Evidence::Bound) => "upper bound: remainder between two events",
    }
}

/// What a tenth of a µs is enough for: `231.4`.
pub(super) fn micros(ns: u64) -> String {
    format!("{}.{}", ns / 1_000, ns % 1_000 / 100)
}

#[cfg(test)]
mod tests;
