//! A futex: the sleeper waits on the word that says whether it was woken.

use std::io;

use wakescope_sys::futex;

use super::{Channel, Slept};
use crate::stimulus::waker::exchange::{Exchange, WAITING};

pub(in crate::stimulus) struct Futex;

impl Channel for Futex {
    /// The kernel compares the word before it lets the thread sleep.
    const KEEPS_WAKEUPS: bool = false;

    fn open(_: &Exchange) -> io::Result<Self> {
        Ok(Self)
    }

    #[inline]
    fn sleep(&self, exchange: &Exchange) -> Slept {
        match futex::wait(exchange.word(), WAITING, exchange.scope()) {
            futex::Waited::Woken => Slept::Woken,
            futex::Waited::Changed => Slept::WasWokenBefore,
            futex::Waited::Interrupted => Slept::Interrupted,
        }
    }

    #[inline]
    fn wake(&self, exchange: &Exchange) -> io::Result<()> {
        // That nobody slept yet, the sleeper finds for itself.
        futex::wake_one(exchange.word(), exchange.scope()).map(drop)
    }
}
