//! TCP over the loopback device: the sleeper reads a byte that the waker writes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use super::{Channel, Slept, all_of_it};
use crate::stimulus::waker::exchange::Exchange;

/// How long a connection may take: a firewall may drop its packets.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Tcp {
    sleeper: TcpStream,
    waker: TcpStream,
}

impl Channel for Tcp {
    const KEEPS_WAKEUPS: bool = true;

    fn open(_: &Exchange) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let waker = TcpStream::connect_timeout(&listener.local_addr()?, PATIENCE)?;
        let ours = waker.local_addr()?;
        // Others may connect as well, meanwhile.
        let sleeper = loop {
            let (stream, from) = listener.accept()?;
            if from == ours {
                break stream;
            }
        };
        waker.set_nodelay(true)?;
        waker.set_nonblocking(true)?;
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
