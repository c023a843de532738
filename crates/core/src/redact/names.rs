//! Names in records: those that are the same everywhere stay.

/// Stands for what is left out.
pub const REDACTED: &str = "[redacted]";

/// Loads that every wakescope has, and their groups.
const LOADS: &[&str] = &[
    "find",
    "launch",
    "file-move",
    "cpu",
    "fifos-mmap",
    "p3-fpu",
    "fs",
    "crashme",
    "fork",
    "memory",
    "sync",
    "truncate",
    "stress-kernel",
    "nfs-compile",
    "ttcp",
    "network",
    "hackbench",
    "interrupts",
    "serial-pty",
    "printk",
    "dbench",
    "stress-ng",
];

/// What they count.
const UNITS: &[&str] = &[
    "files",
    "programs",
    "bytes",
    "loops",
    "turns",
    "products",
    "steps",
    "attempts",
    "forks",
    "pages",
    "syncs",
    "truncations",
    "times",
    "starts",
    "packets",
    "messages",
    "requests",
    "lines",
    "operations",
];

/// What is removed is marked; an empty text says already that there is nothing.
pub(super) fn remove(text: &mut String) {
    if !text.is_empty() {
        *text = REDACTED.into();
    }
}

/// What threads of the kernel are called, before a number, a CPU or a device.
const KERNEL_THREADS: [&str; 20] = [
    "ksoftirqd/",
    "kworker/",
    "migration/",
    "cpuhp/",
    "irq/",
    "irq_work/",
    "ktimers/",
    "rcuc/",
    "rcub/",
    "rcuog/",
    "rcuop/",
    "rcu_",
    "idle_inject/",
    "swapper/",
    "kswapd",
    "khugepaged",
    "kcompactd",
    "ksmd",
    "kthreadd",
    "kauditd",
];

/// Whether a thread has the name of one of the kernel's. Those of interrupts and of queues end with the
/// names that drivers and file systems gave them, which are the kernel's too.
pub(super) fn is_kernel_thread(comm: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-:+.>".contains(c);
    KERNEL_THREADS.iter().any(|name| comm.starts_with(name)) && comm.chars().all(is_plain)
}

/// Whether a thread has the name of one of wakescope's own: probes, loads, disturbances.
pub(super) fn is_own_thread(comm: &str) -> bool {
    let rest = ["wakescope", "load-", "disturb-"].iter().find_map(|name| comm.strip_prefix(name));
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric() || "/-".contains(c)))
}

/// Whether `unit` is what a load of every wakescope counts.
pub(super) fn is_unit(unit: &str) -> bool {
    UNITS.contains(&unit)
}

/// Keeps the name of a load that every wakescope has; of a command only that it was one.
pub(super) fn redact_name_of_load(name: &mut String) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let is_disturbance = name.starts_with("disturb-") && name.chars().all(is_plain);
    if let Some(kind) = ["exec:", "serial:"].iter().find(|kind| name.starts_with(**kind)) {
        *name = format!("{kind}{REDACTED}");
    } else if !LOADS.contains(&without_intensity(name)) && !is_disturbance {
        remove(name);
    }
}

/// The load of `find@25%`.
fn without_intensity(name: &str) -> &str {
    let is_percentage = |text: &str| {
        let digits = text.strip_suffix('%').unwrap_or_default();
        (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    match name.split_once('@') {
        Some((load, intensity)) if is_percentage(intensity) => load,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_and_of_wakescope_are_known() {
        for (comm, of_kernel, own) in [
            ("ksoftirqd/1", true, false),
            ("kworker/0:1H-kblockd", true, false),
            ("irq/24-nvme0q1", true, false),
            ("rcu_preempt", true, false),
            ("kworker/secret plan", false, false),
            ("ksoft", false, false),
            ("wakescope", false, true),
            ("wakescope/12", false, true),
            ("load-cpu", false, true),
            ("wakescope: all", false, false),
            ("bash", false, false),
        ] {
            assert_eq!((is_kernel_thread(comm), is_own_thread(comm)), (of_kernel, own), "{comm}");
        }
    }

    #[test]
    fn loads_that_all_have_stay() {
        for (name, want) in [
            ("find", "find"),
            ("file-move", "file-move"),
            ("find@25%", "find@25%"),
            ("stress-kernel@5%", "stress-kernel@5%"),
            ("find@secret", REDACTED),
            ("find@25", REDACTED),
            ("find@secret%", REDACTED),
            ("find@%", REDACTED),
            ("other@25%", REDACTED),
            ("disturb-fifo-1ms@5%", REDACTED),
            ("disturb-fifo-300us", "disturb-fifo-300us"),
            ("disturb-fifo-0.3ms", "disturb-fifo-0.3ms"),
            ("disturb-x y", REDACTED),
            ("exec:make", "exec:[redacted]"),
            ("exec:[redacted]", "exec:[redacted]"),
            ("serial:ttyS1", "serial:[redacted]"),
            ("stress-ng", "stress-ng"),
            ("stress-ng:--secret", REDACTED),
            ("other", REDACTED),
            ("", ""),
        ] {
            let mut got = name.to_owned();
            redact_name_of_load(&mut got);
            assert_eq!(got, want, "{name}");
        }
    }
}
