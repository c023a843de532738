//! A POSIX semaphore of the C library: the sleeper waits for it, the waker posts it.

use std::io;

use wakescope_core::plan::Between;
use wakescope_sys::semaphore;

use super::{Channel, Slept};
use crate::stimulus::waker::exchange::Exchange;

pub(super) struct Semaphore(semaphore::Semaphore);

impl Channel for Semaphore {
    const KEEPS_WAKEUPS: bool = true;

    fn open(exchange: &Exchange) -> io::Result<Self> {
        semaphore::Semaphore::new(exchange.between() == Between::Processes).map(Self)
    }

    #[inline]
    fn sleep(&self, _: &Exchange) -> Slept {
        Slept::in_call(self.0.wait())
    }

    #[inline]
    fn wake(&self, _: &Exchange) -> io::Result<()> {
        self.0.post()
    }
}
