//! A task of a higher priority than the probe's.

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_schedule};

use super::super::desk::Desk;
use super::disturber::{Burst, Disturber};

/// Above the probe's, if that is not told otherwise.
const PRIORITY: u8 = 95;

pub(super) struct Fifo {
    length: SpanNs,
}

impl Fifo {
    pub(super) fn new(length: SpanNs) -> Result<Self, String> {
        become_fifo(PRIORITY)?;
        Ok(Self { length })
    }
}

impl Disturber for Fifo {
    fn disturb(&mut self, _desk: &Desk) -> Result<Option<Burst>, String> {
        let begin = clock::now();
        let until = begin.after(self.length);
        loop {
            let end = clock::now();
            if end >= until {
                return Ok(Some(Burst { begin, end, turns: None }));
            }
        }
    }
}

/// Makes the calling thread one of `SCHED_FIFO`.
pub(super) fn become_fifo(priority: u8) -> Result<(), String> {
    set_schedule(Schedule::Fifo { priority }).map_err(|e| {
        format!(
            "cannot use SCHED_FIFO with priority {priority}, which needs root or CAP_SYS_NICE: {e}"
        )
    })
}
