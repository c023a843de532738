//! An event of an episode as one flat object: nothing has to be read twice to know its kind.

use serde::{Deserialize, Serialize};

use super::LineError;
use crate::explain::{Interrupt, Task, What};

/// An event, and when it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct EventLine {
    /// From the expiry.
    at_ns: i64,
    kind: Kind,
    /// Of an interrupt, a timer's function, an NMI's handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Of a softirq.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u8>,
    /// For so many timers in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    /// How long an NMI or the tracer took, or the reading of the clock of stolen time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Task>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<Task>,
    /// Of a move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from_cpu: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to_cpu: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    IrqEntry,
    IrqExit,
    TimerEntry,
    TimerExit,
    SoftirqEntry,
    SoftirqExit,
    SoftirqsPending,
    Nmi,
    Tracer,
    Switch,
    Moved,
    #[default]
    SchedEntry,
    Steal,
    ContentionBegin,
    ContentionEnd,
    Deboost,
}

impl EventLine {
    pub(super) fn at_ns(&self) -> i64 {
        self.at_ns
    }

    pub(super) fn of(at_ns: i64, what: What) -> Self {
        let plain = |kind| Self { at_ns, kind, ..Self::default() };
        let number = |kind, number| Self { number: Some(number), ..plain(kind) };
        match what {
            What::IrqEntry(of) => Self { name: Some(of.0), ..plain(Kind::IrqEntry) },
            What::IrqExit(of) => Self { name: Some(of.0), ..plain(Kind::IrqExit) },
            What::TimerEntry(name, count) => {
                Self { name: Some(name), count: Some(count), ..plain(Kind::TimerEntry) }
            }
            What::TimerExit => plain(Kind::TimerExit),
            What::SoftirqEntry(of) => number(Kind::SoftirqEntry, of),
            What::SoftirqExit(of) => number(Kind::SoftirqExit, of),
            What::SoftirqsPending => plain(Kind::SoftirqsPending),
            What::Nmi(name, ns) => Self { name: Some(name), ns: Some(ns), ..plain(Kind::Nmi) },
            What::Tracer(ns) => Self { ns: Some(ns), ..plain(Kind::Tracer) },
            What::Switch { from, to } => {
                Self { from: Some(from), to: Some(to), ..plain(Kind::Switch) }
            }
            What::Moved { from, to } => {
                Self { from_cpu: Some(from), to_cpu: Some(to), ..plain(Kind::Moved) }
            }
            What::SchedEntry => plain(Kind::SchedEntry),
            What::Steal(ns) => Self { ns: Some(ns), ..plain(Kind::Steal) },
            What::ContentionBegin => plain(Kind::ContentionBegin),
            What::ContentionEnd => plain(Kind::ContentionEnd),
            What::Deboost(from) => Self { from: Some(from), ..plain(Kind::Deboost) },
        }
    }

    pub(super) fn what(self) -> Result<What, LineError> {
        let Self { at_ns: _, kind, name, number, count, ns, from, to, from_cpu, to_cpu } = self;
        let lacks = |of, key| move || LineError::Lacks(of, key);
        let name = |of| name.ok_or_else(lacks(of, "name"));
        let ns = |of| ns.ok_or_else(lacks(of, "ns"));
        let from = |of| from.ok_or_else(lacks(of, "from"));
        let number = |of| number.ok_or_else(lacks(of, "number"));
        Ok(match kind {
            Kind::IrqEntry => What::IrqEntry(Interrupt(name("irq_entry")?)),
            Kind::IrqExit => What::IrqExit(Interrupt(name("irq_exit")?)),
            Kind::TimerEntry => What::TimerEntry(name("timer_entry")?, count.unwrap_or(1)),
            Kind::TimerExit => What::TimerExit,
            Kind::SoftirqEntry => What::SoftirqEntry(number("softirq_entry")?),
            Kind::SoftirqExit => What::SoftirqExit(number("softirq_exit")?),
            Kind::SoftirqsPending => What::SoftirqsPending,
            Kind::Nmi => What::Nmi(name("nmi")?, ns("nmi")?),
            Kind::Tracer => What::Tracer(ns("tracer")?),
            Kind::Switch => {
                What::Switch { from: from("switch")?, to: to.ok_or_else(lacks("switch", "to"))? }
            }
            Kind::Moved => What::Moved {
                from: from_cpu.ok_or_else(lacks("moved", "from_cpu"))?,
                to: to_cpu.ok_or_else(lacks("moved", "to_cpu"))?,
            },
            Kind::SchedEntry => What::SchedEntry,
            Kind::Steal => What::Steal(ns("steal")?),
            Kind::ContentionBegin => What::ContentionBegin,
            Kind::ContentionEnd => What::ContentionEnd,
            Kind::Deboost => What::Deboost(from("deboost")?),
        })
    }
}
