//! TCP over the loopback device.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use super::stream::{End, Stream};

/// How long a connection may take: a firewall may drop its packets.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) type Tcp = Stream<TcpStream>;

impl End for TcpStream {
    fn both() -> io::Result<(Self, Self)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let waker = Self::connect_timeout(&listener.local_addr()?, PATIENCE)?;
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
        Ok((sleeper, waker))
    }
}
