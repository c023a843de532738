//! A pair of Unix stream sockets: the sleeper reads a byte that the waker writes.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use super::{Channel, Slept, all_of_it};
use crate::stimulus::waker::exchange::Exchange;

pub(super) struct Socketpair {
    sleeper: UnixStream,
    waker: UnixStream,
}

impl Channel for Socketpair {
    const KEEPS_WAKEUPS: bool = true;

    fn open(_: &Exchange) -> io::Result<Self> {
        let (sleeper, waker) = UnixStream::pair()?;
        Ok(Self { sleeper, waker })
    }

    #[inline]
    fn sleep(&self, _: &Exchange) -> Slept {
        Slept::in_read((&self.sleeper).read(&mut [0]))
    }

    #[inline]
    fn wake(&self, _: &Exchange) -> io::Result<()> {
        (&self.waker).write(&[0]).and_then(all_of_it)
    }
}
