//! Histograms as comma-separated values: nothing is lost of them.

use std::io::{self, Write};

use wakescope_core::run::{Run, TimeDomain};

use super::Values;

/// Writes a line per CPU, distribution and bucket. A bucket holds what is at least its lower edge
/// and less than its upper one; there is none without samples.
pub fn write(run: &Run, which: &[Values], out: &mut impl Write) -> io::Result<()> {
    let domain = match run.time_domain {
        TimeDomain::Real => "",
        TimeDomain::Virtual => "virtual_",
        TimeDomain::Simulated => "simulated_",
    };
    writeln!(out, "cpu,distribution,lower_{domain}ns,upper_{domain}ns,count")?;
    for thread in &run.threads {
        let cpu = thread.cpu.map_or_else(String::new, |cpu| cpu.to_string());
        for values in which {
            for b in values.of(thread).histogram.buckets() {
                writeln!(out, "{cpu},{values},{},{},{}", b.lower, b.upper, b.count)?;
            }
        }
    }
    Ok(())
}
