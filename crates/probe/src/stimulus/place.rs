//! The CPU that a probe belongs on.

use wakescope_sys::sched::{self, CpuReader};

/// The CPU that the calling thread belongs on: of the machine, or of a simulation of one in tests.
pub trait Place {
    /// Whether the thread is on the CPU that it belongs on.
    fn is_home(&mut self) -> bool;
    /// Brings the thread back to the CPU that it belongs on; false if that CPU is gone.
    fn go_home(&mut self) -> bool;
}

/// A CPU of this machine.
pub struct Cpu {
    home: Option<u32>,
    reader: CpuReader,
}

impl Cpu {
    /// The CPU that the thread is bound to; `None` if to none.
    pub fn new(home: Option<u32>) -> Self {
        Self { home, reader: CpuReader::new() }
    }
}

impl Place for Cpu {
    #[inline]
    fn is_home(&mut self) -> bool {
        self.home.is_none() || self.reader.read() == self.home
    }

    #[cold]
    fn go_home(&mut self) -> bool {
        // Binding to a CPU that is offline fails with EINVAL.
        self.home.is_none_or(|cpu| sched::set_affinity(&[cpu]).is_ok())
    }
}

/// A thread that stays on its CPU, for tests of what it does there.
#[cfg(test)]
pub(crate) struct Home;

#[cfg(test)]
impl Place for Home {
    fn is_home(&mut self) -> bool {
        true
    }

    fn go_home(&mut self) -> bool {
        true
    }
}
