//! Sections of kernel code that the project's kernel module makes, of which it tells begin and end.

use std::fs::File;
use std::io;

use wakescope_core::units::SpanNs;
use wakescope_sys::injector::{Injector, Section};

use super::super::desk::Desk;
use super::disturber::{Burst, Disturber};

/// Where the module has it, if it was loaded with `inject=1`.
const DEVICE: &str = "/dev/wakescope-inject";

/// How many turns a loop makes from one point to the next: some microseconds.
const EVERY: u32 = 100;

pub(super) struct Injected {
    injector: Injector,
    section: Section,
    length: SpanNs,
}

impl Injected {
    pub(super) fn new(section: Section, length: SpanNs) -> Result<Self, String> {
        let file = File::open(DEVICE).map_err(|e| cannot_open(&e))?;
        let injector =
            Injector::new(file).map_err(|e| format!("{DEVICE} is no injector of ours: {e}"))?;
        Ok(Self { injector, section, length })
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
        let every = if self.section.has_points() { EVERY } else { 0 };
        match self.injector.inject(self.section, self.length, every) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(e) => return Err(format!("{DEVICE} refuses: {e}")),
        }
        let made = self.injector.last().ok_or_else(|| format!("{DEVICE} tells of no section"))?;
        if made.cut {
            return Err(format!("{DEVICE} ended a section early: the kernel's clock stood still"));
        }
        Ok(Some(Burst { begin: made.begin, end: made.end }))
    }
}
