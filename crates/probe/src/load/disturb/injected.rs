//! Disturbances by the project's kernel module. It makes sections of kernel code that hold a CPU up, and
//! records when each section began and ended.

use std::fs::File;
use std::io;

use wakescope_sys::injector::{Asked, Injector, Made, Pairing, Section};

use super::super::desk::Desk;
use super::disturbance::Disturbance;
use super::disturber::{Burst, Disturber, Turns};

/// The module's device for sections. It exists if the module was loaded with `inject=1`.
const DEVICE: &str = "/dev/wakescope-inject";

/// The device's error for sections that need another CPU, if there is no other.
const ENODEV: i32 = 19;

/// The device's error for NMIs, if no CPU can send itself one.
const EOPNOTSUPP: i32 = 95;

/// How many turns a loop repeats after a break. They take longer than the shortest time between two
/// wakeups, so that a livelock is possible.
const AGAIN: u32 = 500;

pub(super) struct Injected {
    injector: Injector,
    asked: Asked,
    /// The second section of the last pair.
    second: Option<Burst>,
}

impl Injected {
    pub(super) fn new(
        section: Section,
        second: Option<(Pairing, Section)>,
        what: &Disturbance,
    ) -> Result<Self, String> {
        let file = File::open(DEVICE).map_err(|e| cannot_open(&e))?;
        let injector =
            Injector::new(file).map_err(|e| format!("{DEVICE} is no injector of ours: {e}"))?;
        let again = if section == Section::LoopRestart { AGAIN } else { 0 };
        let asked = Asked { section, second, length: what.length, every: what.every, again };
        Ok(Self { injector, asked, second: None })
    }
}

fn cannot_open(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => format!(
            "there is no {DEVICE}: load the kernel module and allow it, insmod kmod/wakescope.ko \
             inject=1"
        ),
        _ => format!("cannot open {DEVICE}, which needs root: {e}"),
    }
}

impl Disturber for Injected {
    fn disturb(&mut self, _desk: &Desk) -> Result<Option<Burst>, String> {
        match self.injector.inject(self.asked) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(e) if e.raw_os_error() == Some(ENODEV) => {
                return Err("another CPU is to hold a lock, and there is none".into());
            }
            Err(e) if e.raw_os_error() == Some(EOPNOTSUPP) => {
                return Err("this machine has no NMI that a CPU can send itself".into());
            }
            Err(e) => return Err(format!("{DEVICE} refuses: {e}")),
        }
        let untold = || format!("{DEVICE} tells of no section");
        let Some((_, section)) = self.asked.second else {
            return burst(self.asked.section, self.injector.last().ok_or_else(untold)?);
        };
        let [first, second] = self.injector.last_two().ok_or_else(untold)?;
        self.second = burst(section, second)?;
        burst(self.asked.section, first)
    }

    fn second(&self) -> Option<Burst> {
        self.second
    }
}

/// The disturbance that a section was. A wait for a lock is shorter than asked for where the other CPU
/// gave the lock up first, because an interrupt or a hypervisor held up the CPU that was to wait.
fn burst(section: Section, made: Made) -> Result<Option<Burst>, String> {
    if made.cut && section.needs_another_cpu() {
        return Ok(None);
    }
    if made.cut && section == Section::Nmi && made.turns == 0 {
        return Err(format!("an NMI that {DEVICE} sent to its own CPU did not come"));
    }
    if made.cut {
        return Err(format!("{DEVICE} ended a section early: the kernel's clock stood still"));
    }
    let turns = Some(Turns { all: made.turns, work: made.work });
    Ok(Some(Burst { begin: made.begin, end: made.end, turns }))
}

#[cfg(test)]
mod tests {
    use wakescope_core::units::MonoNs;

    use super::*;

    #[test]
    fn only_a_wait_for_another_cpu_may_end_early() {
        let whole = Made {
            number: 1,
            begin: MonoNs(1_000),
            end: MonoNs(301_000),
            cpu: 0,
            turns: 5_000,
            work: 5_000,
            cut: false,
        };
        for (section, cut, want) in [
            (Section::IrqsOff, false, Ok(Some(301_000))),
            (Section::IrqsOff, true, Err("clock stood still")),
            (Section::LockWait, false, Ok(Some(301_000))),
            (Section::LockWait, true, Ok(None)),
            (Section::LockWaitIrqsOff, true, Ok(None)),
            (Section::Nmi, false, Ok(Some(301_000))),
            (Section::Nmi, true, Err("did not come")),
        ] {
            let turns = if cut { 0 } else { whole.turns };
            let found = burst(section, Made { cut, turns, ..whole });
            let found = found.map(|burst| burst.map(|burst| burst.end.0));
            match (&found, &want) {
                (Err(found), Err(want)) => assert!(found.contains(want), "{section:?}: {found}"),
                (found, want) => assert_eq!(found.as_ref().ok(), want.as_ref().ok(), "{section:?}"),
            }
        }
    }
}
