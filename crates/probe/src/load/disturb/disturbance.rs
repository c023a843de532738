//! What disturbs and for how long, as users write it: `disturb-fifo-300us`.

use std::fmt;
use std::str::FromStr;

use wakescope_core::units::SpanNs;
use wakescope_sys::injector::Pairing::{self, BackToBack, Nested, Overlapping};
use wakescope_sys::injector::Section::{self, IrqWork, IrqsOff, Nmi, PreemptOff};

/// What disturbs, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disturbance {
    pub(super) kind: Kind,
    pub(super) length: SpanNs,
    /// Turns of a loop from one preemption point to the next; 0 for kinds that have none.
    pub(super) every: u32,
}

/// What disturbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A task of a higher priority runs.
    Fifo,
    /// Many timers expire in one interrupt.
    Timers,
    /// An ordinary task is in the kernel, where it could only be preempted.
    Syscall,
    /// A packet of the network is handed to many sockets.
    Softirq,
    /// Real-time tasks have used up their time.
    Throttle,
    /// Kernel code does what the project's kernel module makes it do.
    Injected(Section),
    /// The same, twice at once or in succession.
    Pair(Section, Pairing, Section),
}

const PREFIX: &str = "disturb-";

/// Stands before the turns of a loop from one point to the next.
const EVERY: &str = "-every-";

/// What they are if nothing is said: some microseconds. And the most.
const USUAL_EVERY: u32 = 100;
const MOST_EVERY: u32 = 10_000_000;

const fn pair(first: Section, pairing: Pairing, second: Section) -> Kind {
    Kind::Pair(first, pairing, second)
}

/// The names are also among those that `core::redact` keeps.
const KINDS: [(Kind, &str); 31] = [
    (Kind::Fifo, "fifo"),
    (Kind::Timers, "timers"),
    (Kind::Syscall, "syscall"),
    (Kind::Softirq, "softirq"),
    (Kind::Throttle, "throttle"),
    (Kind::Injected(Section::IrqsOff), "irqs-off"),
    (Kind::Injected(Section::PreemptOff), "preempt-off"),
    (Kind::Injected(Section::SpinLock), "spin-lock"),
    (Kind::Injected(Section::RawSpinLock), "raw-spin-lock"),
    (Kind::Injected(Section::BhOff), "bh-off"),
    (Kind::Injected(Section::RcuRead), "rcu-read"),
    (Kind::Injected(Section::Tasklet), "tasklet"),
    (Kind::Injected(Section::Timer), "timer"),
    (Kind::Injected(Section::Hrtimer), "hrtimer"),
    (Kind::Injected(Section::IrqWork), "irq-work"),
    (Kind::Injected(Section::Work), "work"),
    (Kind::Injected(Section::Loop), "loop"),
    (Kind::Injected(Section::LoopResched), "loop-resched"),
    (Kind::Injected(Section::LoopLockBreak), "loop-lock-break"),
    (Kind::Injected(Section::LoopRestart), "loop-restart"),
    (Kind::Injected(Section::LockWait), "lock-wait"),
    (Kind::Injected(Section::LockWaitIrqsOff), "lock-wait-irqs-off"),
    (Kind::Injected(Section::Nmi), "nmi"),
    (pair(PreemptOff, Nested, IrqsOff), "nested-preempt-off-irqs-off"),
    (pair(PreemptOff, Nested, IrqWork), "nested-preempt-off-irq-work"),
    (pair(PreemptOff, Nested, Nmi), "nested-preempt-off-nmi"),
    (pair(IrqsOff, Nested, Nmi), "nested-irqs-off-nmi"),
    (pair(PreemptOff, Overlapping, IrqsOff), "overlapping-preempt-off-irqs-off"),
    (pair(IrqsOff, Overlapping, PreemptOff), "overlapping-irqs-off-preempt-off"),
    (pair(PreemptOff, BackToBack, IrqsOff), "back-to-back-preempt-off-irqs-off"),
    (pair(IrqsOff, BackToBack, PreemptOff), "back-to-back-irqs-off-preempt-off"),
];

/// Shorter ones are lost among what a wakeup takes anyway; longer ones would hold the machine up.
const LENGTHS: [SpanNs; 2] = [SpanNs(20_000), SpanNs(50_000_000)];

impl Kind {
    fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    fn has_points(self) -> bool {
        matches!(self, Self::Injected(section) if section.has_points())
    }
}

impl Disturbance {
    /// One of every kind.
    #[cfg(test)]
    pub(in super::super) fn all() -> impl Iterator<Item = Self> {
        let every = |kind: Kind| if kind.has_points() { USUAL_EVERY + 1 } else { 0 };
        KINDS.iter().map(move |&(kind, _)| Self { kind, length: LENGTHS[0], every: every(kind) })
    }

    /// By this name, `disturb-fifo`, the threads that disturb are to be found.
    pub(in super::super) fn thread_name(&self) -> String {
        match self.kind {
            // The kernel keeps 15 bytes; functions of the module have names that tell.
            Kind::Injected(_) | Kind::Pair(..) => format!("{PREFIX}inject"),
            kind => format!("{PREFIX}{}", kind.name()),
        }
    }

    /// Whether the project's kernel module makes it.
    pub(crate) fn is_injected(&self) -> bool {
        matches!(self.kind, Kind::Injected(_) | Kind::Pair(..))
    }

    /// Whether it, or a part of it, is an NMI that a CPU sends itself.
    pub(crate) fn has_nmi(&self) -> bool {
        match self.kind {
            Kind::Injected(section) => section == Nmi,
            Kind::Pair(first, _, second) => [first, second].contains(&Nmi),
            _ => false,
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amount, unit) = match self.length.0 {
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "ms"),
            ns if ns % 1_000 == 0 => (ns / 1_000, "us"),
            ns => (ns, "ns"),
        };
        let every = match self.every {
            0 | USUAL_EVERY => String::new(),
            turns => format!("{EVERY}{turns}"),
        };
        f.pad(&format!("{PREFIX}{}{every}-{amount}{unit}", self.kind.name()))
    }
}

impl FromStr for Disturbance {
    type Err = DisturbanceError;

    /// Reads `disturb-fifo-300us`, and `disturb-loop-resched-every-10-300us`.
    fn from_str(text: &str) -> Result<Self, DisturbanceError> {
        let words = text.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('-'));
        let (kind, length) = words.ok_or(DisturbanceError::Form)?;
        let (kind, every) = match kind.split_once(EVERY) {
            Some((kind, turns)) => (kind, Some(turns)),
            None => (kind, None),
        };
        let kind = KINDS.iter().find(|(_, name)| *name == kind);
        let &(kind, _) = kind.ok_or(DisturbanceError::Form)?;
        let every = match (every, kind.has_points()) {
            (None, false) => 0,
            (None, true) => USUAL_EVERY,
            (Some(_), false) => return Err(DisturbanceError::NoPoints),
            (Some(turns), true) => match turns.parse() {
                Ok(turns @ 1..=MOST_EVERY) => turns,
                _ => return Err(DisturbanceError::Every),
            },
        };
        let length: SpanNs = length.parse().map_err(|_| DisturbanceError::Form)?;
        let [least, most] = LENGTHS;
        if length < least || length > most {
            return Err(DisturbanceError::Length);
        }
        Ok(Self { kind, length, every })
    }
}

/// Whether `text` is meant to be a disturbance.
pub(in super::super) fn is_meant(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Why a text is no disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisturbanceError {
    /// It does not name a kind and a time.
    Form,
    /// It is too short or too long to be one.
    Length,
    /// It has no preemption points.
    NoPoints,
    /// Its preemption points are no number of turns apart.
    Every,
}

impl fmt::Display for DisturbanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = KINDS.iter().map(|(_, name)| *name).collect();
        match self {
            Self::Form => write!(
                f,
                "write a disturbance as `{PREFIX}KIND-TIME`, as in {PREFIX}fifo-300us; the kinds \
                 are {}",
                names.join(", ")
            ),
            Self::Length => {
                let [least, most] = LENGTHS;
                write!(f, "a disturbance takes from {least} to {most}")
            }
            Self::NoPoints => {
                let loops: Vec<_> = KINDS
                    .iter()
                    .filter(|(kind, _)| kind.has_points())
                    .map(|(_, name)| *name)
                    .collect();
                write!(f, "only {} have `{EVERY}TURNS`; omit it", loops.join(", "))
            }
            Self::Every => write!(f, "write `{EVERY}TURNS` with 1 to {MOST_EVERY} turns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_are_read_and_written_alike() {
        for (text, want) in [
            ("disturb-fifo-300us", Ok("disturb-fifo-300us")),
            ("disturb-timers-1ms", Ok("disturb-timers-1ms")),
            ("disturb-syscall-1000us", Ok("disturb-syscall-1ms")),
            ("disturb-softirq-0.1ms", Ok("disturb-softirq-100us")),
            ("disturb-throttle-50ms", Ok("disturb-throttle-50ms")),
            ("disturb-irqs-off-300us", Ok("disturb-irqs-off-300us")),
            ("disturb-loop-lock-break-1ms", Ok("disturb-loop-lock-break-1ms")),
            ("disturb-loop-restart-every-100-1ms", Ok("disturb-loop-restart-1ms")),
            ("disturb-loop-resched-every-1-1ms", Ok("disturb-loop-resched-every-1-1ms")),
            (
                "disturb-loop-resched-every-10000000-1ms",
                Ok("disturb-loop-resched-every-10000000-1ms"),
            ),
            ("disturb-loop-resched-every-10000001-1ms", Err(DisturbanceError::Every)),
            ("disturb-loop-resched-every-0-1ms", Err(DisturbanceError::Every)),
            ("disturb-loop-resched-every--1ms", Err(DisturbanceError::Every)),
            ("disturb-loop-resched-every-1ms", Err(DisturbanceError::Form)),
            ("disturb-loop-every-10-1ms", Err(DisturbanceError::NoPoints)),
            ("disturb-lock-wait-irqs-off-1ms", Ok("disturb-lock-wait-irqs-off-1ms")),
            ("disturb-nmi-300us", Ok("disturb-nmi-300us")),
            ("disturb-nested-irqs-off-nmi-0.3ms", Ok("disturb-nested-irqs-off-nmi-300us")),
            ("disturb-nested-irqs-off-300us", Err(DisturbanceError::Form)),
            ("disturb-irqs-off", Err(DisturbanceError::Form)),
            ("disturb-irqs-300us", Err(DisturbanceError::Form)),
            ("disturb-fifo-19us", Err(DisturbanceError::Length)),
            ("disturb-fifo-51ms", Err(DisturbanceError::Length)),
            ("disturb-fifo-9999999999999h", Err(DisturbanceError::Form)),
            ("disturb-fifo-300", Err(DisturbanceError::Form)),
            ("disturb-fifo", Err(DisturbanceError::Form)),
            ("disturb-fofi-300us", Err(DisturbanceError::Form)),
            ("disturb-", Err(DisturbanceError::Form)),
        ] {
            let got = text.parse::<Disturbance>().map(|d| d.to_string());
            assert_eq!(got, want.map(str::to_owned), "{text}");
        }
    }
}
