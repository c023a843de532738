//! Which stimuli this machine has.

use std::io;

use wakescope_core::plan::{Plan, Stimulus};
use wakescope_core::units::SpanNs;
use wakescope_sys::empty_epoll::EmptyEpoll;

/// Why a stimulus cannot be had here.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// The kernel does not have the call.
    #[error("the kernel lacks epoll_pwait2: {0}")]
    EpollPwait2(io::Error),
}

impl Unavailable {
    /// What lies behind it and what to do.
    pub fn cause_and_remedy(&self) -> (&'static str, &'static str) {
        match self {
            Self::EpollPwait2(_) => (
                "it came with Linux 5.11; the time-out of epoll_wait is in whole milliseconds, \
                 which would be most of the latency",
                "use --stimulus timer or futex-timeout",
            ),
        }
    }
}

/// Whether the stimulus of `plan` can be had here.
pub(crate) fn check(plan: &Plan) -> Result<(), Unavailable> {
    match plan.stimulus {
        Stimulus::Epoll => EmptyEpoll::new()
            .and_then(|epoll| epoll.sleep(SpanNs(0)))
            .map_err(Unavailable::EpollPwait2),
        _ => Ok(()),
    }
}
