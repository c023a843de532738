//! An eventfd: the sleeper reads the count that the waker adds to.

use std::fs::File;
use std::io::{self, Read, Write};

use wakescope_sys::event_count::event_count;

use super::{Channel, Slept, all_of_it};
use crate::stimulus::waker::exchange::Exchange;

pub(super) struct Eventfd(File);

impl Channel for Eventfd {
    const KEEPS_WAKEUPS: bool = true;

    fn open(_: &Exchange) -> io::Result<Self> {
        event_count().map(Self)
    }

    #[inline]
    fn sleep(&self, _: &Exchange) -> Slept {
        Slept::in_read((&self.0).read(&mut [0; 8]))
    }

    #[inline]
    fn wake(&self, _: &Exchange) -> io::Result<()> {
        (&self.0).write(&1_u64.to_ne_bytes()).and_then(all_of_it)
    }
}
