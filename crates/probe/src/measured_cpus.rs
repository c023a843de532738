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
    /// CPUs for which there is no note, and why there is none for the last of them.
    unannounced: Vec<u32>,
    refused: Option<io::Error>,
}

/// Announces that `cpus` are measured. Nothing keeps two wakescopes from measuring one CPU, but each should know.
pub fn announce(cpus: &[u32]) -> MeasuredCpus {
    announce_by(cpus, UnixDatagram::bind_addr)
}

fn announce_by(
    cpus: &[u32],
    bind: impl Fn(&SocketAddr) -> io::Result<UnixDatagram>,
) -> MeasuredCpus {
    let mut announced = MeasuredCpus::default();
    for &cpu in cpus {
        let Ok(name) = SocketAddr::from_abstract_name(format!("wakescope-measures-cpu-{cpu}"))
        else {
            continue;
        };
        match bind(&name) {
            Ok(socket) => announced.held.push((cpu, socket)),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                // Where this fails, others have knocked before.
                let _ = knock(&name);
                announced.taken.push(cpu);
            }
            // The measurement does not depend on it.
            Err(e) => {
                announced.unannounced.push(cpu);
                announced.refused = Some(e);
            }
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
    /// Those of the CPUs for which no note could be left, so that nobody knows of others that measure them, and
    /// why. `None` if there is a note for each.
    pub fn unannounced(&self) -> Option<(Vec<u32>, String)> {
        let cause = self.refused.as_ref()?;
        Some((self.unannounced.clone(), cause.to_string()))
    }

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

    /// The finding sends its reader there.
    #[test]
    fn the_mark_is_listed_by_the_kernel() {
        let cpu = 4_000_000 + std::process::id();
        let _held = announce(&[cpu]);
        let listed = std::fs::read_to_string("/proc/net/unix").unwrap();
        let mark = format!("@wakescope-measures-cpu-{cpu}");
        assert!(listed.lines().any(|line| line.ends_with(&mark)), "{mark}: {listed}");
    }

    #[test]
    fn cpus_that_could_not_be_announced_are_named() {
        let cpu = 3_000_000 + std::process::id();
        let refuses = |name: &SocketAddr| {
            let is_second = name.as_abstract_name().unwrap().ends_with(b"1");
            if is_second {
                Err(io::Error::from_raw_os_error(24))
            } else {
                UnixDatagram::bind_addr(name)
            }
        };
        let all = [cpu * 10, cpu * 10 + 1];
        let announced = announce_by(&all, refuses);
        let (unannounced, cause) = announced.unannounced().unwrap();
        assert_eq!(unannounced, [cpu * 10 + 1]);
        assert!(cause.contains("Too many open files"), "{cause}");
        // Nobody knows of another one there.
        let other = announce(&all);
        assert_eq!((other.shared(), announced.shared()), (vec![cpu * 10], vec![cpu * 10]));
        assert_eq!(other.unannounced(), None);
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
