//! What time is blamed on.

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::frame::Function;
use super::task::NamedTask;

/// Who or what took time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Culprit {
    /// Code of the kernel.
    Function(Function),
    /// A task.
    Task(NamedTask),
    /// A hard interrupt, by what it is called: `local_timer`, `eth0`.
    Interrupt(Name),
    /// A function of a timer, which runs in the timer's interrupt.
    Timer(Name),
    /// A softirq, by the kernel's name or its number: `NET_RX`.
    Softirq(Name),
    /// The handler of an NMI.
    Nmi(Name),
    /// An idle state.
    Idle(Name),
    /// The hypervisor that this machine is a guest of.
    Hypervisor,
    /// The tracer itself.
    Tracer,
    /// Nobody, or it is not known who.
    #[default]
    #[serde(other)]
    None,
}

/// What something is called that has no more than a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Name {
    /// Never empty: what has no name is no culprit.
    pub name: String,
}

/// A part of the way from an interrupt to the task, which is nobody's code in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Until the timer's hardware fired, which asks for the interrupt. Only an observer from outside sees that.
    Timer,
    /// What every interrupt takes to arrive.
    Delivery,
    /// From the interrupt's end to the scheduler.
    ReturnFromInterrupt,
    /// From the scheduler's entry on, and back to the task.
    Switch,
}

/// What a culprit was in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Within {
    /// The outermost function of its stack that says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Function>,
    /// The system call, where no function says more: `read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
    /// The softirq, by the kernel's name or its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softirq: Option<String>,
    /// The hard interrupt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<String>,
    /// The task that ran, or that was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<NamedTask>,
}

/// The cause and the culprit of some time: what shares, rows of causes and rates have in common.
#[derive(Clone, Copy, Debug)]
pub struct Blamed<'a> {
    /// What it was.
    pub cause: Cause,
    /// Who.
    pub culprit: &'a Culprit,
    /// Which part of the way to the task.
    pub phase: Option<Phase>,
    /// The CPU that the wakeup came from.
    pub from_cpu: Option<u32>,
    /// Whether it stands for several culprits.
    pub others: bool,
}

impl Culprit {
    /// What it is called: a function, a task, an interrupt; empty of what has no name.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(function) => &function.name,
            Self::Task(task) => &task.comm,
            Self::Interrupt(name)
            | Self::Timer(name)
            | Self::Softirq(name)
            | Self::Nmi(name)
            | Self::Idle(name) => &name.name,
            Self::Hypervisor | Self::Tracer | Self::None => "",
        }
    }

    /// A function; nobody without one.
    pub fn function(function: Option<Function>) -> Self {
        function.map_or(Self::None, Self::Function)
    }

    /// An interrupt of this name; nobody without one.
    pub fn interrupt(name: &str) -> Self {
        Self::named(Self::Interrupt, name)
    }

    /// A function of a timer of this name; nobody without one.
    pub fn timer(name: &str) -> Self {
        Self::named(Self::Timer, name)
    }

    /// A softirq of this name; nobody without one.
    pub fn softirq(name: &str) -> Self {
        Self::named(Self::Softirq, name)
    }

    /// A handler of NMIs of this name; nobody without one.
    pub fn nmi(name: &str) -> Self {
        Self::named(Self::Nmi, name)
    }

    /// An idle state of this name; nobody without one.
    pub fn idle(name: &str) -> Self {
        Self::named(Self::Idle, name)
    }

    fn named(kind: fn(Name) -> Self, name: &str) -> Self {
        if name.is_empty() { Self::None } else { kind(Name { name: name.to_owned() }) }
    }

    /// The same; of a task all that have its name, policy and priority.
    #[must_use]
    pub fn without_pid(&self) -> Self {
        match self {
            Self::Task(task) => Self::Task(NamedTask { pid: None, ..task.clone() }),
            other => other.clone(),
        }
    }
}

impl Within {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::task::{Policy, Task};
    use serde_json::{Value, json};

    #[track_caller]
    fn check(culprit: &Culprit, want: &Value) {
        assert_eq!(serde_json::to_value(culprit).unwrap(), *want);
        assert_eq!(serde_json::from_value::<Culprit>(want.clone()).unwrap(), *culprit);
    }

    #[test]
    fn records_of_culprits_have_a_kind() {
        let function = Function { name: "free_pcppages_bulk".into(), module: None };
        let want = json!({"kind": "function", "name": "free_pcppages_bulk", "module": null});
        check(&Culprit::Function(function), &want);
        let task = Task { pid: 1_240, comm: "python3".into(), policy: Policy::Fifo, prio: 4 };
        let task = Culprit::Task(task.named());
        let mut want = json!(
            {"kind": "task", "comm": "python3", "pid": 1240, "policy": "fifo", "priority": 95}
        );
        check(&task, &want);
        want.as_object_mut().unwrap().remove("pid");
        check(&task.without_pid(), &want);
        check(&Culprit::interrupt("eth0"), &json!({"kind": "interrupt", "name": "eth0"}));
        check(&Culprit::timer("hrtick"), &json!({"kind": "timer", "name": "hrtick"}));
        check(&Culprit::softirq("RCU"), &json!({"kind": "softirq", "name": "RCU"}));
        check(&Culprit::nmi("watchdog"), &json!({"kind": "nmi", "name": "watchdog"}));
        check(&Culprit::idle("C6"), &json!({"kind": "idle", "name": "C6"}));
        check(&Culprit::Hypervisor, &json!({"kind": "hypervisor"}));
        check(&Culprit::Tracer, &json!({"kind": "tracer"}));
        check(&Culprit::None, &json!({"kind": "none"}));
        assert_eq!(Culprit::interrupt(""), Culprit::None);
    }

    #[test]
    fn a_kind_of_a_later_version_is_nobody_that_is_known() {
        let culprit: Culprit =
            serde_json::from_str(r#"{"kind": "firmware", "name": "x"}"#).unwrap();
        assert_eq!(culprit, Culprit::None);
    }
}
