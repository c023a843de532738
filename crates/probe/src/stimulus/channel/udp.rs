//! UDP over the loopback device: the sleeper receives a datagram of one byte.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use super::{Channel, Slept, all_of_it};
use crate::loopback::udp_pair;
use crate::stimulus::waker::exchange::Exchange;

/// How long a first datagram may take: one that a firewall drops never arrives.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Udp {
    sleeper: UdpSocket,
    waker: UdpSocket,
}

impl Channel for Udp {
    const KEEPS_WAKEUPS: bool = true;

    fn open(_: &Exchange) -> io::Result<Self> {
        let [sleeper, waker] = udp_pair()?;
        waker.send(&[0])?;
        sleeper.set_read_timeout(Some(PATIENCE))?;
        sleeper.recv(&mut [0])?;
        sleeper.set_read_timeout(None)?;
        waker.set_nonblocking(true)?;
        Ok(Self { sleeper, waker })
    }

    #[inline]
    fn sleep(&self, _: &Exchange) -> Slept {
        Slept::in_read(self.sleeper.recv(&mut [0]))
    }

    #[inline]
    fn wake(&self, _: &Exchange) -> io::Result<()> {
        self.waker.send(&[0]).and_then(all_of_it)
    }
}
