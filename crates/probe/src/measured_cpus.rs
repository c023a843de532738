//! Tells two measurements on the same CPU of each other.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// A note, readable by other wakescopes, that this process measures some CPUs.
///
/// It is a socket without a file: nothing is left behind however the process ends. Another network
/// namespace, such as a container's, does not see it.
#[derive(Debug, Default)]
pub struct MeasuredCpus {
    held: Vec<(u32, UnixListener)>,
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
        match UnixListener::bind_addr(&name) {
            Ok(socket) => announced.held.push((cpu, socket)),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                // Knocking tells the other one, which finds the connection when it ends.
                let _ = UnixStream::connect_addr(&name);
                announced.taken.push(cpu);
            }
            // Without sockets nobody can be told, and the measurement does not depend on it.
            Err(_) => {}
        }
    }
    announced
}

impl MeasuredCpus {
    /// Those of the CPUs that another wakescope measured at any time since.
    pub fn shared(&self) -> Vec<u32> {
        let knocked =
            |socket: &UnixListener| socket.set_nonblocking(true).is_ok() && socket.accept().is_ok();
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
}
