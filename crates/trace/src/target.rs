//! Whose wakeups are followed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use wakescope_core::plan::Target;
use wakescope_sys::proc_files::is_thread;

/// Why a target cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// There is no process or thread with this id.
    #[error("no process or thread has the ID {0}")]
    NoProcess(u32),
    /// A name of a thread has 1 to 15 bytes.
    #[error("`{0}` cannot be the name of a thread: names have 1 to 15 bytes")]
    Comm(String),
    /// This is no folder of a cgroup.
    #[error("{0} is not a cgroup: {1}")]
    Cgroup(String, io::Error),
    /// Threads have other numbers here than the kernel gives them.
    #[error("this PID namespace is not the kernel's initial one")]
    Namespace,
    /// These are no threads of this machine.
    #[error("only threads of this machine can be followed")]
    Elsewhere,
}

/// `targets` of a [`Filter`]: see bpf/state.h.
pub(crate) const PROCESS: u32 = 1;
pub(crate) const COMM: u32 = 2;
pub(crate) const CGROUP: u32 = 3;
const THREAD: u32 = 4;

/// The bytes in which a task keeps its name.
const COMM_BYTES: usize = 16;

/// A target as programs are told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) targets: u32,
    pub(crate) pid: u32,
    pub(crate) comm: [u64; 2],
    pub(crate) cgroup: u64,
}

impl Filter {
    /// The same, of threads of a name only those in this cgroup.
    pub(crate) fn within(self, cgroup: Option<u64>) -> Self {
        Self { cgroup: cgroup.unwrap_or(self.cgroup), ..self }
    }

    /// Threads with this name, as their tasks keep it. Up to 5.16, the end of a longer name that they had before may
    /// follow the zero that ends it; programs compare the text.
    pub(crate) fn of_name(kept: [u64; 2]) -> Self {
        let bytes = kept.iter().flat_map(|half| half.to_ne_bytes());
        let mut text = [0; COMM_BYTES];
        text.iter_mut().zip(bytes.take_while(|&byte| byte != 0)).for_each(|(to, from)| *to = from);
        Self { targets: COMM, comm: halves(text), ..Self::default() }
    }

    /// The bits of the first word of its name that another name with the same bits shares: those of the text,
    /// and of the zero that ends it.
    pub(crate) fn comm_mask(self) -> u64 {
        let bytes = self.comm[0].to_ne_bytes();
        let length = bytes.iter().position(|&byte| byte == 0).map_or(8, |zero| zero + 1);
        let mut mask = [0; 8];
        mask[..length].fill(u8::MAX);
        u64::from_ne_bytes(mask)
    }

    /// What programs are told of `target`. They follow an ID as that of a process or of a thread.
    pub(crate) fn of(target: &Target) -> Result<Self, TargetError> {
        let none = Self::default();
        match target {
            Target::Probes | Target::Process { .. } | Target::Thread { .. }
                if !has_kernels_numbers() =>
            {
                Err(TargetError::Namespace)
            }
            Target::Probes => Ok(none),
            &(Target::Process { pid } | Target::Thread { tid: pid }) => {
                match Path::new(&format!("/proc/{pid}")).exists() {
                    true => Ok(Self {
                        targets: if is_thread(pid) { THREAD } else { PROCESS },
                        pid,
                        ..none
                    }),
                    false => Err(TargetError::NoProcess(pid)),
                }
            }
            Target::Comm { comm: name } => {
                let comm = comm(name).ok_or_else(|| TargetError::Comm(name.clone()))?;
                Ok(Self::of_name(comm))
            }
            Target::Cgroup { path } => {
                let cgroup =
                    cgroup(Path::new(path)).map_err(|e| TargetError::Cgroup(path.clone(), e))?;
                Ok(Self { targets: CGROUP, cgroup, ..none })
            }
            Target::Tasks { .. } | Target::Program { .. } | Target::Unknown => {
                Err(TargetError::Elsewhere)
            }
        }
    }
}

/// Whether the numbers that this process knows threads by are those of the kernel: programs see
/// only these. The inode is that of the first PID namespace (include/linux/proc_ns.h).
pub(crate) fn has_kernels_numbers() -> bool {
    let namespace = fs::read_link("/proc/self/ns/pid");
    // A kernel without namespaces, or without /proc, has no others.
    namespace.map_or(true, |name| name == Path::new("pid:[4026531836]"))
}

/// A name as a task keeps it: 16 bytes, filled up with zeroes.
fn comm(name: &str) -> Option<[u64; 2]> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() > 15 || bytes.contains(&0) {
        return None;
    }
    let mut comm = [0; COMM_BYTES];
    comm[..bytes.len()].copy_from_slice(bytes);
    Some(halves(comm))
}

fn halves(comm: [u8; COMM_BYTES]) -> [u64; 2] {
    let half = |at: usize| u64::from_ne_bytes(comm[at..at + 8].try_into().expect("8 bytes"));
    [half(0), half(8)]
}

/// The id of the cgroup with this folder: on 64-bit kernels that is its inode (5.10).
fn cgroup(path: &Path) -> io::Result<u64> {
    // Folders of the older hierarchies have no such file.
    if !path.join("cgroup.controllers").exists() {
        let why = "it has no cgroup.controllers, so it is not in the unified hierarchy (cgroup2)";
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    Ok(fs::metadata(path)?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let filter = |target| Filter::of(&target);
        let comm = |comm: &str| filter(Target::Comm { comm: comm.into() });
        let nobody = Target::Process { pid: 0x7fff_fff0 };
        assert!(matches!(filter(nobody), Err(TargetError::NoProcess(_))));
        for name in ["", "a name of a thread", "nul\0"] {
            assert!(matches!(comm(name), Err(TargetError::Comm(_))));
        }
        let no_cgroup = Target::Cgroup { path: "/proc".into() };
        assert!(matches!(filter(no_cgroup), Err(TargetError::Cgroup(..))));
        assert!(matches!(filter(Target::Unknown), Err(TargetError::Elsewhere)));
        assert_eq!(filter(Target::Process { pid: 1 }).unwrap().pid, 1);
        assert_eq!(filter(Target::Thread { tid: 1 }).unwrap().targets, PROCESS);
        let own = wakescope_sys::sched::this_thread().number();
        assert_eq!(filter(Target::Process { pid: own }).unwrap().targets, THREAD);
        assert_eq!(filter(Target::Thread { tid: 1 }).unwrap().pid, 1);
        assert_eq!(comm("a").unwrap().comm, [u64::from(b'a').to_le(), 0]);
        for (kept, text) in [
            (*b"ls\0h\0\0\0\0\0\0\0\0\0\0\0\0", "ls"),
            (*b"12345678\0worker\0", "12345678"),
            (*b"123456789012345\0", "123456789012345"),
        ] {
            assert_eq!(Filter::of_name(halves(kept)), comm(text).unwrap());
        }
        // What an older kernel left behind the text does not matter; that the text ends does.
        assert_eq!(comm("a").unwrap().comm_mask(), 0xffff_u64.to_le());
        for name in ["1234567", "12345678", "123456789"] {
            assert_eq!(comm(name).unwrap().comm_mask(), u64::MAX);
        }
    }
}
