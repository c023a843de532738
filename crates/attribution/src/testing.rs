//! Short notations for tests: frames, and what is blamed, as text.

use wakescope_core::explain::{
    Blamed, Cause, Culprit, Frame, Function, NamedTask, Phase, Policy, Share, Within,
};

/// Of `function+0x10 [module]`; without a function where that is empty.
pub(crate) fn frame(text: &str) -> Frame {
    let (place, module) = match text.split_once(" [") {
        Some((place, module)) => (place, module.strip_suffix(']').map(str::to_owned)),
        None => (text, None),
    };
    let (function, offset) = place.split_once('+').unwrap_or((place, "0x0"));
    let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16).unwrap();
    let function = Some(function.to_owned()).filter(|function| !function.is_empty());
    Frame { function, offset, module, ..Frame::default() }
}

/// `function+0x10 function+0x20`
pub(crate) fn joined(frames: &[Frame]) -> String {
    let text = |f: &Frame| format!("{}+{:#x}", f.function.as_deref().unwrap_or("?"), f.offset);
    frames.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// A function of the kernel itself as a culprit.
pub(crate) fn function(name: &str) -> Culprit {
    Culprit::Function(Function { name: name.into(), module: None })
}

/// A share of `ns` nanoseconds, which a function has.
pub(crate) fn share(cause: Cause, name: &str, ns: u64) -> Share {
    Share { cause, culprit: function(name), ns, ..Share::default() }
}

/// Who, as `rm[412] other`; empty if nobody is named.
pub(crate) fn who(blamed: Blamed) -> String {
    let Blamed { cause, culprit, phase, from_cpu, others } = blamed;
    match (phase, from_cpu, culprit) {
        _ if others => "others".into(),
        (Some(Phase::Timer), ..) => "before its timer fired".into(),
        (Some(Phase::Delivery), ..) => "delivery".into(),
        (Some(Phase::ReturnFromInterrupt), ..) => "return from interrupt".into(),
        (Some(Phase::Switch), ..) => "switch".into(),
        (_, Some(cpu), _) => format!("CPU {cpu}"),
        (_, _, Culprit::Task(task)) => match cause {
            Cause::HigherPriorityTask | Cause::EqualOrLowerTask => {
                format!("{} {}", task_name(task), policy(task))
            }
            Cause::Throttled => policy(task),
            _ => task_name(task),
        },
        (_, _, Culprit::Function(function)) => function.name.clone(),
        (
            _,
            _,
            Culprit::Interrupt(n)
            | Culprit::Timer(n)
            | Culprit::Softirq(n)
            | Culprit::Nmi(n)
            | Culprit::Idle(n),
        ) => n.name.clone(),
        (_, _, Culprit::Hypervisor) => "hypervisor".into(),
        (_, _, Culprit::Tracer | Culprit::None) => String::new(),
    }
}

/// What a share was in: `exit_mmap in rm[412], waiting for a lock`; may be empty.
pub(crate) fn place(within: &Within, waiting_for_lock: bool) -> String {
    let Within { caller, syscall, softirq, interrupt, task } = within;
    let function = caller.as_ref().map(|function| &function.name).or(syscall.as_ref());
    let function = function.or(interrupt.as_ref()).cloned().unwrap_or_default();
    let task = task.as_ref().map(task_name);
    let outer = match (softirq, task) {
        (Some(softirq), Some(task)) => format!("softirq {softirq} of {task}"),
        (Some(softirq), None) => format!("softirq {softirq}"),
        (None, task) => task.unwrap_or_default(),
    };
    let joint = if function.is_empty() || outer.is_empty() { "" } else { " in " };
    let lock = if waiting_for_lock { ", waiting for a lock" } else { "" };
    format!("{function}{joint}{outer}{lock}")
}

fn task_name(task: &NamedTask) -> String {
    let pid = task.pid.map(|pid| format!("[{pid}]")).unwrap_or_default();
    format!("{}{pid}", task.comm)
}

fn policy(task: &NamedTask) -> String {
    let name = match task.policy {
        Policy::Other => "other",
        Policy::Fifo => "fifo",
        Policy::RoundRobin => "rr",
        Policy::Batch => "batch",
        Policy::Idle => "idle",
        Policy::Deadline => "deadline",
        Policy::Ext => "ext",
        Policy::Unknown(_) => "unknown",
    };
    let priority = task.priority.map(|priority| format!(" {priority}"));
    format!("{name}{}", priority.unwrap_or_default())
}
