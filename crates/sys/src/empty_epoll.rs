//! An epoll instance that nothing is registered with: waits for it end by their time-out.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use wakescope_core::units::SpanNs;

use crate::checked;
use crate::clock::NS_PER_S;

/// An epoll instance without files.
#[derive(Debug)]
pub struct EmptyEpoll(OwnedFd);

impl EmptyEpoll {
    /// A new one.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes a number.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sleeps for `span`, by the time-out of `epoll_pwait2`, which counts in nanoseconds. Returns
    /// early, with `Interrupted`, when a signal handler ran. Before Linux 5.11: `Unsupported`.
    #[inline]
    pub fn sleep(&self, span: SpanNs) -> io::Result<()> {
        // The kernel's own structure: two of 64 bits on every machine. u64 nanoseconds are less than
        // 2^35 seconds.
        #[allow(clippy::cast_possible_wrap)]
        let time = [(span.0 / NS_PER_S) as i64, (span.0 % NS_PER_S) as i64];
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: `event` is live and has room for the one event asked for; `time` is live and only
        // read; the mask is left as it is.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                &raw mut event,
                1,
                time.as_ptr(),
                std::ptr::null::<libc::sigset_t>(),
                0,
            )
        };
        checked(rc).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_wait_takes_as_long_as_it_says() {
        let epoll = EmptyEpoll::new().unwrap();
        let began = clock::now();
        match epoll.sleep(SpanNs(1_500_000)) {
            Ok(()) => assert!(clock::now() >= began.after(SpanNs(1_500_000))),
            // Linux 5.10.
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::Unsupported),
        }
    }
}
