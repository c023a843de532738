//! Ports of x86: how the first process of a guest reaches devices of its machine.

use std::arch::asm;
use std::io;
use std::ops::Range;

use crate::checked;

/// Ports that this thread may use until this is dropped.
#[derive(Debug)]
pub struct Ports {
    range: Range<u16>,
}

impl Ports {
    /// Asks the kernel for these ports.
    ///
    /// # Errors
    /// Without `CAP_SYS_RAWIO`, and from kernels without `CONFIG_X86_IOPL_IOPERM`.
    pub fn open(range: Range<u16>) -> io::Result<Self> {
        permit(&range, true)?;
        Ok(Self { range })
    }

    /// Reads a byte.
    ///
    /// # Panics
    /// For a port of others.
    pub fn read(&self, port: u16) -> u8 {
        self.check(port, 1);
        let value: u8;
        // SAFETY: touches no memory of this process, which may use the port.
        unsafe {
            asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags));
        }
        value
    }

    /// Writes a byte.
    ///
    /// # Panics
    /// For a port of others.
    pub fn write(&self, port: u16, value: u8) {
        self.check(port, 1);
        // SAFETY: as above; what the device does is the caller's matter.
        unsafe {
            asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags));
        }
    }

    /// Writes two bytes, the lower one to `port`.
    ///
    /// # Panics
    /// For ports of others.
    pub fn write_two(&self, port: u16, value: u16) {
        self.check(port, 2);
        // SAFETY: as above.
        unsafe {
            asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags));
        }
    }

    fn check(&self, port: u16, count: u16) {
        let inside = self.range.contains(&port) && count <= self.range.end - port;
        assert!(inside, "port {port:#x} is not among {:#x?}", self.range);
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // Who has ports is slower to switch to.
        let _ = permit(&self.range, false);
    }
}

fn permit(range: &Range<u16>, permitted: bool) -> io::Result<()> {
    let (first, count) = (libc::c_ulong::from(range.start), range.len() as libc::c_ulong);
    // SAFETY: integers only.
    let rc = unsafe { libc::syscall(libc::SYS_ioperm, first, count, libc::c_int::from(permitted)) };
    checked(rc).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    // What works is seen in the lab: here it would reach devices.

    #[test]
    fn ports_of_others_are_refused() {
        assert!(Ports::open(0x510..0x510).is_err());
        let two = std::mem::ManuallyDrop::new(Ports { range: 0x510..0x512 });
        two.check(0x510, 2);
        for (port, count) in [(0x50f, 1), (0x512, 1), (0x511, 2)] {
            let checked = std::panic::catch_unwind(|| two.check(port, count));
            assert!(checked.is_err(), "{port:#x} {count}");
        }
    }
}
