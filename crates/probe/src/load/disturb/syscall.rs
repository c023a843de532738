//! An ordinary task that is in one system call for long, in code without a preemption point: a
//! single pass of poll(2) over very many files has none.

use std::fs::File;

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::pipe::pipe;
use wakescope_sys::poll_set::PollSet;

use super::super::desk::Desk;
use super::disturber::{Burst, Disturber};
use super::{calibrate, files};

pub(super) struct Syscall {
    set: PollSet,
    /// Open, so that there is no news of the other end.
    _writer: File,
}

impl Syscall {
    pub(super) fn new(length: SpanNs) -> Result<Self, String> {
        let most = files::all()?;
        let (reader, writer) = pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
        let mut this = Self { set: PollSet::of(reader.into(), 1), _writer: writer };
        let count = calibrate::amount(length, most, |count| {
            this.set.resize(count);
            let Burst { begin, end, .. } = this.call()?;
            Ok(end.since(begin))
        })?;
        this.set.resize(count);
        Ok(this)
    }

    fn call(&mut self) -> Result<Burst, String> {
        let begin = clock::now();
        self.set.look().map_err(|e| format!("cannot poll many files: {e}"))?;
        Ok(Burst { begin, end: clock::now(), turns: None })
    }
}

impl Disturber for Syscall {
    fn disturb(&mut self, _desk: &Desk) -> Result<Option<Burst>, String> {
        self.call().map(Some)
    }
}
