//! A signal: the waker sends it to the sleeping thread, which waits for it (sigwaitinfo).

use std::io;

use wakescope_sys::wake_signal::{self, WakeSignal};

use super::{Channel, Slept};
use crate::stimulus::waker::exchange::Exchange;

pub(super) struct Kill(WakeSignal);

impl Channel for Kill {
    const KEEPS_WAKEUPS: bool = true;

    fn open(_: &Exchange) -> io::Result<Self> {
        WakeSignal::block().map(Self)
    }

    #[inline]
    fn sleep(&self, _: &Exchange) -> Slept {
        Slept::in_call(self.0.wait())
    }

    #[inline]
    fn wake(&self, exchange: &Exchange) -> io::Result<()> {
        let (process, thread) = exchange.probe();
        wake_signal::send(process, thread)
    }
}
