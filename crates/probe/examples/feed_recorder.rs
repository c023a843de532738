//! Feeds a recorder 10^8 samples and tells how much memory the process has on the way.
//!
//! Part of `make bench`. A recorder takes all its memory at the start; this shows that it does:
//! measuring 10^8 wakeups for real takes 14 hours at 2,048 a second.

use std::fs;
use std::io::{self, Write};

use wakescope_core::recorder::Recorder;
use wakescope_sys::clock;

fn main() -> io::Result<()> {
    let recorder = Recorder::new(10);
    recorder.reset();
    let mut seed = 1_u64;
    let mut fed = 0_u64;
    let mut out = io::stdout().lock();
    for target in [100_000_u64, 1_000_000, 10_000_000, 100_000_000] {
        let (before, began) = (fed, clock::now());
        while fed < target {
            // Lateness of every magnitude up to 33 µs and, once in 4,096, a stall of up to 67 ms:
            // from xorshift (Marsaglia, 2003).
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let stalls = seed >> 52 == 0;
            let late_ns = (seed & 0x3ff_ffff) >> if stalls { 0 } else { 11 + (seed >> 60) };
            recorder.record(fed * 50_000, late_ns, late_ns / 50_000, 50_000);
            fed += 1;
        }
        let picoseconds = clock::now().since(began).0 * 1_000 / (fed - before);
        writeln!(out, "{fed} {} {picoseconds}", resident_kib()?)?;
    }
    Ok(())
}

/// Resident memory of this process.
fn resident_kib() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .ok_or_else(|| io::Error::other("no VmRSS in /proc/self/status"))
}
