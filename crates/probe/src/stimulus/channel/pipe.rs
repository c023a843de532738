//! A pipe: the sleeper reads a byte that the waker writes.

use std::fs::File;
use std::io::{self, Read, Write};

use wakescope_sys::pipe::pipe;

use super::{Channel, Slept, all_of_it};
use crate::stimulus::waker::exchange::Exchange;

pub(super) struct Pipe {
    reader: File,
    writer: File,
}

impl Channel for Pipe {
    const KEEPS_WAKEUPS: bool = true;

    fn open(_: &Exchange) -> io::Result<Self> {
        let (reader, writer) = pipe()?;
        Ok(Self { reader, writer })
    }

    #[inline]
    fn sleep(&self, _: &Exchange) -> Slept {
        Slept::in_read((&self.reader).read(&mut [0]))
    }

    #[inline]
    fn wake(&self, _: &Exchange) -> io::Result<()> {
        (&self.writer).write(&[0]).and_then(all_of_it)
    }
}
