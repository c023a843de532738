//! Connections over the loopback interface, for loads that talk to themselves.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use super::desk::Desk;
use crate::loopback;

/// How long a read or write may wait before the thread looks whether it should stop. Where packets
/// flow, nothing waits for so long.
const LOOK: Duration = Duration::from_millis(100);

/// How long a connection may take: forever where a filter drops its packets.
const PATIENCE: Duration = Duration::from_secs(5);

/// Two connected TCP sockets. Reads and writes fail after [`LOOK`] as [`is_wait`] tells.
pub(super) fn tcp_pair() -> io::Result<[TcpStream; 2]> {
    let pair = loopback::tcp_pair(PATIENCE)?;
    for socket in &pair {
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(LOOK))?;
    }
    Ok(pair)
}

/// Two UDP sockets that hear only each other. Reads fail after [`LOOK`] as [`is_wait`] tells.
pub(super) fn udp_pair() -> io::Result<[UdpSocket; 2]> {
    let pair = loopback::udp_pair()?;
    for socket in &pair {
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(LOOK))?;
    }
    Ok(pair)
}

/// Whether nothing is wrong but that there is nothing to read, or no room to write.
pub(super) fn is_wait(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The reason for a failed connection. The remedy, if there is one, goes to the desk.
pub(super) fn no_connection(e: &io::Error, desk: &Desk) -> String {
    if matches!(e.kind(), ErrorKind::AddrNotAvailable | ErrorKind::NetworkUnreachable) {
        desk.advise("bring the loopback interface up: ip link set lo up");
        return format!("cannot connect over the loopback interface, which is down: {e}");
    }
    format!("cannot connect over the loopback interface: {e}")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn pairs_hear_each_other_and_nothing_waits_for_ever() {
        let [mut near, mut far] = tcp_pair().unwrap();
        near.write_all(b"abc").unwrap();
        let mut got = [0; 3];
        far.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"abc");
        assert!(is_wait(&far.read(&mut got).unwrap_err()));
        let [near, far] = udp_pair().unwrap();
        far.send(b"xyz").unwrap();
        assert_eq!(near.recv(&mut got).unwrap(), 3);
        let stranger = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        stranger.send_to(b"no", near.local_addr().unwrap()).unwrap();
        assert!(is_wait(&near.recv(&mut got).unwrap_err()));
    }
}
