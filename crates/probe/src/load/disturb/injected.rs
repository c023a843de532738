//! Sections of kernel code that the project's kernel module makes, of which it tells begin and end.

use std::fs::File;
use std::io;

use wakescope_sys::injector::{Asked, Injector, Section};

use super::super::desk::Desk;
use super::disturbance::Disturbance;
use super::disturber::{Burst, Disturber, Turns};

/// Where the module has it, if it was loaded with `inject=1`.
const DEVICE: &str = "/dev/wakescope-inject";

/// What it answers where there is no other CPU.
const ENODEV: i32 = 19;

/// How many turns a loop that begins anew makes again: longer than from one wakeup to the next, where
/// these come as fast as they can.
const AGAIN: u32 = 500;

pub(super) struct Injected {
    injector: Injector,
    asked: Asked,
}

impl Injected {
    pub(super) fn new(section: Section, what: &Disturbance) -> Result<Self, String> {
        let file = File::open(DEVICE).map_err(|e| cannot_open(&e))?;
        let injector =
            Injector::new(file).map_err(|e| format!("{DEVICE} is no injector of ours: {e}"))?;
        let again = if section == Section::LoopRestart { AGAIN } else { 0 };
        let asked = Asked { section, length: what.length, every: what.every, again };
        Ok(Self { injector, asked })
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
            Err(e) => return Err(format!("{DEVICE} refuses: {e}")),
        }
        let made = self.injector.last().ok_or_else(|| format!("{DEVICE} tells of no section"))?;
        if made.cut {
            return Err(format!("{DEVICE} ended a section early: the kernel's clock stood still"));
        }
        let turns = Some(Turns { all: made.turns, work: made.work });
        Ok(Some(Burst { begin: made.begin, end: made.end, turns }))
    }
}
