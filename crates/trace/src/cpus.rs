//! The numbers that CPUs have.

use std::fs;
use std::io;

use wakescope_core::host::cpu_list;

use crate::error::TraceError;

/// Where the kernel lists the CPUs that there may ever be.
pub(crate) const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// One more than the largest number of a CPU that there may ever be: the length of an array in which programs
/// find a CPU by its number. Some machines leave numbers out. Fails where the kernel's list cannot be read: with
/// a guess, the programs would leave out CPUs.
pub(crate) fn cpu_numbers() -> Result<u32, TraceError> {
    fs::read_to_string(POSSIBLE).and_then(|list| numbers(&list)).map_err(TraceError::NoCpus)
}

/// The same by the kernel's list.
fn numbers(possible: &str) -> io::Result<u32> {
    let last = cpu_list(possible).last().copied();
    last.map(|last| last + 1).ok_or_else(|| io::Error::other("it lists no CPU"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_a_place_although_numbers_are_left_out() {
        for (possible, want) in [
            ("0\n", Some(1)),
            ("0-3\n", Some(4)),
            ("0,2-3\n", Some(4)),
            ("0-1,4\n", Some(5)),
            ("", None),
            ("\n", None),
        ] {
            assert_eq!(numbers(possible).ok(), want, "{possible:?}");
        }
    }
}
