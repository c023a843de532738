//! TCP over the loopback device.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use super::stream::{End, Stream};
use crate::loopback::tcp_pair;

/// How long a connection may take: a firewall may drop its packets.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) type Tcp = Stream<TcpStream>;

impl End for TcpStream {
    fn both() -> io::Result<(Self, Self)> {
        let [waker, sleeper] = tcp_pair(PATIENCE)?;
        waker.set_nodelay(true)?;
        waker.set_nonblocking(true)?;
        Ok((sleeper, waker))
    }
}
