//! What disturbs and for how long, as users write it: `disturb-fifo-300us`.

use std::fmt;
use std::str::FromStr;

use wakescope_core::units::SpanNs;
use wakescope_sys::injector::Section;

/// What disturbs, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disturbance {
    pub(super) kind: Kind,
    pub(super) length: SpanNs,
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
}

const PREFIX: &str = "disturb-";

const KINDS: [(Kind, &str); 19] = [
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
];

/// Shorter ones are lost among what a wakeup takes anyway; longer ones would hold the machine up.
const LENGTHS: [SpanNs; 2] = [SpanNs(20_000), SpanNs(50_000_000)];

impl Kind {
    fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

impl Disturbance {
    /// By this name, `disturb-fifo`, the threads that disturb are to be found.
    pub(super) fn thread_name(&self) -> String {
        match self.kind {
            // The kernel keeps 15 bytes; functions of the module have names that tell.
            Kind::Injected(_) => format!("{PREFIX}inject"),
            kind => format!("{PREFIX}{}", kind.name()),
        }
    }

    /// Whether the project's kernel module makes it.
    pub fn is_injected(&self) -> bool {
        matches!(self.kind, Kind::Injected(_))
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amount, unit) = match self.length.0 {
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "ms"),
            ns if ns % 1_000 == 0 => (ns / 1_000, "us"),
            ns => (ns, "ns"),
        };
        f.pad(&format!("{PREFIX}{}-{amount}{unit}", self.kind.name()))
    }
}

impl FromStr for Disturbance {
    type Err = DisturbanceError;

    /// Reads `disturb-fifo-300us`.
    fn from_str(text: &str) -> Result<Self, DisturbanceError> {
        let words = text.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('-'));
        let (kind, length) = words.ok_or(DisturbanceError::Form)?;
        let kind = KINDS.iter().find(|(_, name)| *name == kind);
        let &(kind, _) = kind.ok_or(DisturbanceError::Form)?;
        let length: SpanNs = length.parse().map_err(|_| DisturbanceError::Form)?;
        let [least, most] = LENGTHS;
        if length < least || length > most {
            return Err(DisturbanceError::Length);
        }
        Ok(Self { kind, length })
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
