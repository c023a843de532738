//! Whether this process reads the kernel's clock.

use std::fs;
use std::path::Path;

/// This process reads another clock than the kernel, whose times would be compared with its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this time namespace shifts CLOCK_MONOTONIC")]
pub struct Shifted;

impl Shifted {
    /// Why that is an obstacle where the kernel or its devices give times.
    pub const CAUSE: &str =
        "the kernel gives times of its own clock, which do not fit those of this process";
    /// What to do.
    pub const REMEDY: &str = "run outside the container, in the kernel's first time namespace";
}

/// Fails if this process reads another `CLOCK_MONOTONIC` than the kernel. A time namespace may shift that of its
/// processes (time_namespaces(7)); the inode is that of the first one, which does not
/// (include/linux/proc_ns.h).
pub fn check_clock() -> Result<(), Shifted> {
    if is_shifted("monotonic") { Err(Shifted) } else { Ok(()) }
}

/// Whether this process reads another `CLOCK_BOOTTIME` than the kernel.
pub fn is_boottime_shifted() -> bool {
    is_shifted("boottime")
}

fn is_shifted(clock: &str) -> bool {
    let namespace = fs::read_link("/proc/self/ns/time");
    // A kernel without namespaces, or without /proc, has no others.
    let is_first = namespace.map_or(true, |name| name == Path::new("time:[4026531834]"));
    let offsets = || fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    !is_first && shifts(&offsets(), clock)
}

/// Whether the clock is shifted by these offsets: a line for each clock, with seconds and nanoseconds. Where
/// they cannot be read, they are not known to be 0.
fn shifts(offsets: &str, clock: &str) -> bool {
    let line = offsets.lines().find_map(|line| line.strip_prefix(clock));
    !line.is_some_and(|line| line.split_whitespace().all(|part| part == "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shifted_clock_is_told_from_another_one() {
        let of = |monotonic| format!("monotonic  {monotonic}\nboottime         7         0\n");
        for (offsets, want) in [
            (&*of("        0         0"), false),
            (&of("   100000         0"), true),
            (&of("       -1 999999999"), true),
            (&of("        0         1"), true),
            ("", true),
        ] {
            assert_eq!(shifts(offsets, "monotonic"), want, "{offsets}");
            assert!(shifts(offsets, "boottime"), "{offsets}");
        }
        assert!(!shifts("monotonic  7  0\nboottime   0         0\n", "boottime"));
        assert_eq!(check_clock(), Ok(()));
        assert!(!is_boottime_shifted());
    }
}
