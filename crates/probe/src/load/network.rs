//! The load `network`: small packets through many sockets, so that the softirqs that receive them
//! are busy.

use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};

use wakescope_sys::process::raise_open_files;

use super::crew::{Crew, allowed_cpus, work_together};
use super::kinds::Job;
use super::loopback::{is_wait, no_connection, tcp_pair, udp_pair};

/// Bytes in a small packet: with the headers of UDP it is as long as the shortest frame of an
/// Ethernet.
const PACKET: usize = 18;

/// Pairs of sockets per thread.
const UDP_PAIRS: usize = 16;
const TCP_PAIRS: usize = 8;

/// The most threads: 3,072 sockets.
const MOST_THREADS: usize = 64;

/// Has one thread per allowed CPU send packets through sockets of its own until the desk says stop.
/// What was received is counted.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let cpus = allowed_cpus()?;
    // Where that is not permitted, the limit may do.
    let _ = raise_open_files();
    let sockets = (0..cpus.len().min(MOST_THREADS)).map(|_| Sockets::new());
    let members = sockets.collect::<io::Result<Vec<_>>>().map_err(|e| no_connection(&e, desk))?;
    work_together("load-network", members, desk, |sockets, crew| {
        crew.ready();
        while !crew.stopping() {
            sockets.talk(crew).map_err(|e| {
                format!("cannot send small packets over the loopback interface: {e}")
            })?;
        }
        Ok(())
    })
    .map(drop)
}

/// What one thread sends and receives through.
struct Sockets {
    udp: Vec<[UdpSocket; 2]>,
    tcp: Vec<[TcpStream; 2]>,
}

impl Sockets {
    fn new() -> io::Result<Self> {
        let udp = (0..UDP_PAIRS).map(|_| udp_pair()).collect::<io::Result<_>>()?;
        let tcp = (0..TCP_PAIRS).map(|_| {
            let pair = tcp_pair()?;
            // Else the kernel collects small packets and sends them as one.
            pair.iter().try_for_each(|socket| socket.set_nodelay(true))?;
            Ok(pair)
        });
        Ok(Self { udp, tcp: tcp.collect::<io::Result<_>>()? })
    }

    /// A packet each way through each pair. All are under way before the first is received.
    fn talk(&self, crew: &Crew<'_>) -> io::Result<()> {
        let mut packet = [0; PACKET];
        for socket in self.udp.iter().flatten() {
            unless_wait(socket.send(&packet))?;
        }
        for mut socket in self.tcp.iter().flatten() {
            unless_wait(socket.write(&packet))?;
        }
        // The kernel may drop a packet: then there is nothing to read, which is not counted.
        let count = |received: io::Result<usize>| {
            crew.done(u64::from(unless_wait(received)? > 0));
            Ok::<bool, io::Error>(crew.stopping())
        };
        for socket in self.udp.iter().flatten() {
            if count(socket.recv(&mut packet))? {
                return Ok(());
            }
        }
        for mut socket in self.tcp.iter().flatten() {
            if count(socket.read(&mut packet))? {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// How many bytes went through: none where a socket would have to wait for longer.
fn unless_wait(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(e) if is_wait(&e) => Ok(0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn each_socket_hears_one_packet_per_round() {
        let desk = test_desk();
        let rounds = |sockets: Sockets, crew: &Crew<'_>| {
            (0..3).try_for_each(|_| sockets.talk(crew)).map_err(|e| e.to_string())
        };
        work_together("test", vec![Sockets::new().unwrap()], &desk, rounds).unwrap();
        assert_eq!(desk.work(), 3 * 2 * (UDP_PAIRS + TCP_PAIRS) as u64);
    }
}
