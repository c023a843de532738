//! A network of one's own, in which a thread talks to itself.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::checked;

/// Gives the calling thread a new network, in which there is nothing but a loopback device that is
/// down. Takes `CAP_SYS_ADMIN`. What the thread has open stays in the old one.
pub fn leave_for_a_new_one() -> io::Result<()> {
    // SAFETY: flags only.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Brings the loopback device up in the network of the calling thread. With that, the kernel gives
/// it its address.
pub fn bring_loopback_up(any: &UdpSocket) -> io::Result<()> {
    // SAFETY: `ifreq` is integers and bytes, for which zero is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = libc::c_char::from_ne_bytes([*byte]);
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    // SAFETY: `request` is live, and what this request takes.
    checked(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) })
        .map(drop)
}

/// A UDP socket of any address and of `port`, which others like it may have as well: what is
/// broadcast there, each of them gets. It keeps as few packets as the kernel lets it.
pub fn shared_udp_socket(port: u16) -> io::Result<UdpSocket> {
    // SAFETY: numbers only.
    let fd =
        checked(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new, and nobody else has it.
    let socket = UdpSocket::from(unsafe { OwnedFd::from_raw_fd(fd) });
    set_option(&socket, libc::SO_REUSEADDR, 1)?;
    set_option(&socket, libc::SO_RCVBUF, 1)?;
    bind(&socket, port)?;
    Ok(socket)
}

fn set_option(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(0);
    // SAFETY: `value` is live and of the size that is passed.
    checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size,
        )
    })
    .map(drop)
}

fn bind(socket: &UdpSocket, port: u16) -> io::Result<()> {
    let any = libc::in_addr { s_addr: u32::from(Ipv4Addr::UNSPECIFIED).to_be() };
    let address = libc::sockaddr_in {
        sin_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap_or(0),
        sin_port: port.to_be(),
        sin_addr: any,
        sin_zero: [0; 8],
    };
    let size = libc::socklen_t::try_from(size_of::<libc::sockaddr_in>()).unwrap_or(0);
    // SAFETY: `address` is live and of the size that is passed.
    checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_share_a_port_get_what_is_broadcast() {
        let first = shared_udp_socket(0).unwrap();
        let port = first.local_addr().unwrap().port();
        let others = [0; 3].map(|_| shared_udp_socket(port).unwrap());
        first.set_broadcast(true).unwrap();
        // Where there is no loopback device, as in some containers, nothing can be sent.
        if first.send_to(b"x", ("127.255.255.255", port)).is_err() {
            return;
        }
        for socket in others.iter().chain([&first]) {
            socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
            assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 1);
        }
    }
}
