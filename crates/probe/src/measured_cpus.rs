//! Tells two measurements on the same CPU of each other.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A note, readable by other wakescopes, that this process measures some CPUs.
///
/// It is a socket without a file: nothing is left behind however the process ends. Another network
/// namespace, such as a container's, does not see it.
///
/// Any user can have taken the name, and read nothing: so nobody waits for an answer, or for room in a queue.
#[derive(Debug, Default)]
pub struct MeasuredCpus {
    held: Vec<(u32, UnixDatagram)>,
    taken: Vec<u32>,
}

/// Announces that `cpus` are measured. Nothing keeps two wakescopes from measuring one CPU, but each should know.
pub fn announce(cpus: &[u32]) -> MeasuredCpus {
    let mut announced = MeasuredCpus::default();
    for &cpu in cpus {
        let Ok(name) = SocketAddr::from_abstract_name(format!("wakescope-measures-cpu-{cpu}"))
        else {
            continue;
        };
        match UnixDatagram::bind_addr(&name) {
            Ok(socket) => announced.held.push((cpu, socket)),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                // Where this fails, others have knocked before.
                let _ = knock(&name);
                announced.taken.push(cpu);
            }
            // Without sockets nobody can be told, and the measurement does not depend on it.
            Err(_) => {}
        }
    }
    announced
}

/// Tells the one that has this name, which finds it when it ends.
fn knock(name: &SocketAddr) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(&[], name).map(drop)
}

impl MeasuredCpus {
    /// Those of the CPUs that another wakescope measured at any time since.
    pub fn shared(&self) -> Vec<u32> {
        let knocked = |socket: &UnixDatagram| {
            socket.set_nonblocking(true).is_ok() && socket.recv(&mut []).is_ok()
        };
        let mut cpus = self.taken.clone();
        cpus.extend(self.held.iter().filter(|(_, socket)| knocked(socket)).map(|(cpu, _)| cpu));
        cpus.sort_unstable();
        cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_until_the_first_ends() {
        // CPUs that no machine has, so that a measurement running here does not interfere.
        let cpu = 1_000_000 + std::process::id();
        let first = announce(&[cpu, cpu + 2]);
        assert!(first.shared().is_empty());
        assert_eq!(announce(&[cpu, cpu + 1]).shared(), [cpu]);
        assert_eq!(first.shared(), [cpu], "the first is text too");
        drop(first);
        assert!(announce(&[cpu]).shared().is_empty());
    }

    /// A stream socket took 4,096 of them (net.core.somaxconn), and the next one waited for ever. Another user
    /// who had the name could have that of every measurement.
    #[test]
    fn nobody_waits_for_one_that_does_not_look() {
        let cpu = 2_000_000 + std::process::id();
        let first = announce(&[cpu]);
        for _ in 0..5_000 {
            assert_eq!(announce(&[cpu]).shared(), [cpu]);
        }
        assert_eq!(first.shared(), [cpu]);
    }
}
