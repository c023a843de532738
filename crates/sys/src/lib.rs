//! Every system call that wakescope writes by hand, and nothing that decides when to make it.
//!
//! A wrapper does one call, takes safe types, returns `io::Result` and says why it is sound. What
//! changes the machine returns a guard that puts it back. This crate and the one that loads BPF
//! programs are the only ones with `unsafe`.
//!
//! The walk along a path ([`way`]) and the owners that it trusts ([`trust`]) do decide something. They are
//! here because whatever makes files below a path of the user's needs the same rules. Files of /proc about a process
//! ([`proc_files`]) are read here because several crates need them.
#![allow(unsafe_code)]

pub mod barrier;
pub mod bpf;
pub mod cage;
pub mod cgroup;
pub mod clock;
pub mod condition;
pub mod counter;
pub mod empty_epoll;
pub mod event_count;
pub mod file;
pub mod folder;
pub mod futex;
pub mod gpio;
pub mod guest;
pub mod injector;
pub mod input;
pub mod landlock;
pub mod machine;
pub mod mapped_file;
pub mod memory;
pub mod message_queue;
pub mod network;
pub mod pcm;
pub mod pipe;
pub mod pm_qos;
pub mod poll;
pub mod poll_set;
#[cfg(target_arch = "x86_64")]
pub mod ports;
pub mod posix_timer;
pub mod proc_files;
pub mod process;
pub mod record_lock;
mod region;
pub mod repeat;
pub mod rtc;
pub mod sched;
pub mod semaphore;
pub mod semaphore_set;
pub mod serial;
pub mod shared;
pub mod shared_page;
pub mod signal;
pub mod terminal;
pub mod time_namespace;
pub mod timer_file;
pub mod trust;
pub mod wake_signal;
pub mod wakeup_device;
pub mod way;

/// The result of a call that reports failure as -1 and the reason in `errno`.
#[inline]
fn checked<T: PartialEq + From<i8>>(rc: T) -> std::io::Result<T> {
    if rc == T::from(-1) { Err(std::io::Error::last_os_error()) } else { Ok(rc) }
}

/// The number of a request of a device, as most architectures have it, x86 and ARM among them: what is
/// read (2), written (1) or neither (0), the letter of the device, and the size of what is passed.
const fn ioctl(
    direction: libc::c_ulong,
    letter: u8,
    number: libc::c_ulong,
    size: usize,
) -> libc::c_ulong {
    direction << 30 | (size as libc::c_ulong) << 16 | (letter as libc::c_ulong) << 8 | number
}
