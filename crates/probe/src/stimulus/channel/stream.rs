//! Streams of bytes: the sleeper reads a byte that the waker writes.

use std::io::{self, Read, Write};

use super::{Channel, Slept, all_of_it};
use crate::stimulus::waker::exchange::Exchange;

/// An end of a stream that is made with the other one.
pub(super) trait End: Send + Sync + Sized + 'static {
    /// Both ends: the sleeper's, and the waker's.
    fn both() -> io::Result<(Self, Self)>;
}

pub(super) struct Stream<E> {
    sleeper: E,
    waker: E,
}

impl<E: End> Channel for Stream<E>
where
    for<'a> &'a E: Read + Write,
{
    const KEEPS_WAKEUPS: bool = true;

    fn open(_: &Exchange) -> io::Result<Self> {
        let (sleeper, waker) = E::both()?;
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
