//! A limit on idle states, as long as somebody holds it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// While this lives, the CPUs may only use idle states that wake within the limit.
/// The kernel drops the limit when the file is closed, so it cannot outlive the process.
#[derive(Debug)]
pub struct WakeLimit {
    _device: File,
}

/// The device that takes the limit (Documentation/power/pm_qos_interface.rst).
const DEVICE: &str = "/dev/cpu_dma_latency";

impl WakeLimit {
    /// Limits the time to wake from idle to `us` microseconds.
    pub fn request(us: i32) -> io::Result<Self> {
        let mut device = OpenOptions::new().write(true).open(DEVICE)?;
        device.write_all(&us.to_ne_bytes())?;
        Ok(Self { _device: device })
    }
}
