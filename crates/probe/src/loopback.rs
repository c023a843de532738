//! Pairs of sockets over the loopback interface that hear only each other.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// A port of the kernel's choice, which only this machine reaches.
const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// Two connected TCP sockets. Where a firewall drops their packets, this fails after `patience`.
pub(crate) fn tcp_pair(patience: Duration) -> io::Result<[TcpStream; 2]> {
    let listener = TcpListener::bind(ANY_PORT)?;
    let near = TcpStream::connect_timeout(&listener.local_addr()?, patience)?;
    let ours = near.local_addr()?;
    // Others on this machine may connect, too. They are turned away.
    loop {
        let (far, peer) = listener.accept()?;
        if peer == ours {
            return Ok([near, far]);
        }
    }
}

/// Two connected UDP sockets: neither takes what others send. A firewall may drop all packets.
pub(crate) fn udp_pair() -> io::Result<[UdpSocket; 2]> {
    let pair = [UdpSocket::bind(ANY_PORT)?, UdpSocket::bind(ANY_PORT)?];
    let addresses: [SocketAddr; 2] = [pair[0].local_addr()?, pair[1].local_addr()?];
    for (socket, other) in pair.iter().zip(addresses.iter().rev()) {
        socket.connect(other)?;
    }
    Ok(pair)
}
