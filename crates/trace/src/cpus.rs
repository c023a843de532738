//! The numbers that CPUs have.

use std::fs;

use wakescope_core::host::cpu_list;

/// One more than the largest number of a CPU that there may ever be: the length of an array in which programs
/// find a CPU by its number. Some machines leave numbers out.
pub(crate) fn cpu_numbers() -> u32 {
    numbers(&fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default())
}

/// The same by the kernel's list.
fn numbers(possible: &str) -> u32 {
    cpu_list(possible).last().map_or(1, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_a_place_although_numbers_are_left_out() {
        for (possible, want) in [("0\n", 1), ("0-3\n", 4), ("0,2-3\n", 4), ("0-1,4\n", 5), ("", 1)]
        {
            assert_eq!(numbers(possible), want, "{possible:?}");
        }
    }
}
