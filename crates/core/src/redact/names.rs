//! Names in records: those that are the same everywhere stay.

use crate::units::SpanNs;

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

/// The kinds in the names of disturbances: `disturb-fifo-300us`.
const DISTURBANCES: &[&str] = &[
    "fifo",
    "timers",
    "syscall",
    "softirq",
    "throttle",
    "irqs-off",
    "preempt-off",
    "spin-lock",
    "raw-spin-lock",
    "bh-off",
    "rcu-read",
    "tasklet",
    "timer",
    "hrtimer",
    "irq-work",
    "work",
    "loop",
    "loop-resched",
    "loop-lock-break",
    "loop-restart",
    "lock-wait",
    "lock-wait-irqs-off",
    "nmi",
    "nested-preempt-off-irqs-off",
    "nested-preempt-off-irq-work",
    "nested-preempt-off-nmi",
    "nested-irqs-off-nmi",
    "overlapping-preempt-off-irqs-off",
    "overlapping-irqs-off-preempt-off",
    "back-to-back-preempt-off-irqs-off",
    "back-to-back-irqs-off-preempt-off",
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

/// What threads of the kernel are called.
const KERNEL_THREADS: [&str; 14] = [
    "khugepaged",
    "ksmd",
    "kthreadd",
    "kauditd",
    "rcu_preempt",
    "rcu_sched",
    "rcu_bh",
    "rcu_gp",
    "rcu_par_gp",
    "rcu_exp_gp_kthr",
    "rcu_exp_par_gp_",
    "rcu_tasks_kthre",
    "rcu_tasks_rude_",
    "rcu_tasks_trace",
];

/// The same, before the number of a CPU, a node, an interrupt or a pool.
const NUMBERED_KERNEL_THREADS: [&str; 16] = [
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
    "rcuos/",
    "idle_inject/",
    "swapper/",
    "kswapd",
    "kcompactd",
];

/// The names of wakescope's own threads, as the kernel keeps them (15 bytes). A name that only begins like one is
/// that of somebody's program.
const OWN_THREADS: &[&str] = &[
    "wakescope",
    "wakescope-guest",
    "wakescope-r",
    "wakescope-expl",
    "load-find",
    "load-launch",
    "load-file-move",
    "load-cpu",
    "load-fifos-mmap",
    "load-p3-fpu",
    "load-fs",
    "load-crashme",
    "load-fork",
    "load-memory",
    "load-sync",
    "load-truncate",
    "load-nfs-comp",
    "load-ttcp",
    "load-network",
    "load-hackbench",
    "load-interrupts",
    "load-serial",
    "load-serial-pty",
    "load-printk",
    "load-dbench",
    "load-disturb",
    "load-stress-ng",
    "load-exec",
    "disturb-fifo",
    "disturb-timers",
    "disturb-syscall",
    "disturb-softirq",
    "disturb-throttl",
    "disturb-inject",
];

/// The same, before the number of a CPU: probes, and those that wake them.
const NUMBERED_OWN_THREADS: [&str; 2] = ["wakescope/", "wakescope-w/"];

/// The part of a thread's name that only the kernel can have chosen: the whole of `ksoftirqd/1`, and `irq/24` of
/// `irq/24-nvme0q1`. Any task can give itself a name that begins so, so that nothing else of it is certain.
pub(super) fn kernels_part(comm: &str) -> Option<&str> {
    // Of workers: `u8:2` of one that is bound to no CPU, `0:1H` of one with high priority.
    let is_number = |text: &str| {
        let digits = text.trim_start_matches('u').trim_end_matches(['H', 'R', 'I']);
        let mut parts = digits.split(':');
        parts.all(|part| (1..=5).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()))
    };
    let part = comm.split('-').next()?;
    let number = NUMBERED_KERNEL_THREADS.iter().find_map(|name| part.strip_prefix(name));
    let is_known = KERNEL_THREADS.contains(&comm) || number.is_some_and(is_number);
    is_known.then_some(part)
}

/// Whether a thread has a name that wakescope gives its own: probes, loads, disturbances.
pub(super) fn is_own_thread(comm: &str) -> bool {
    let cpu = NUMBERED_OWN_THREADS.iter().find_map(|name| comm.strip_prefix(name));
    let is_number =
        |text: &str| (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    OWN_THREADS.contains(&comm) || cpu.is_some_and(is_number)
}

/// Whether `unit` is what a load of every wakescope counts.
pub(super) fn is_unit(unit: &str) -> bool {
    UNITS.contains(&unit)
}

/// Keeps the name of a load that every wakescope has; of a command only that it was one.
pub(super) fn redact_name_of_load(name: &mut String) {
    if let Some(kind) = ["exec:", "serial:"].iter().find(|kind| name.starts_with(**kind)) {
        *name = format!("{kind}{REDACTED}");
    } else if !LOADS.contains(&without_intensity(name)) && !is_disturbance(name) {
        remove(name);
    }
}

/// Whether `name` is that of a disturbance: `disturb-fifo-300us`, `disturb-loop-resched-every-10-300us`.
fn is_disturbance(name: &str) -> bool {
    let parts = name.strip_prefix("disturb-").and_then(|rest| rest.rsplit_once('-'));
    parts.is_some_and(|(kind, length)| {
        let (kind, turns) = kind.split_once("-every-").unwrap_or((kind, "1"));
        DISTURBANCES.contains(&kind)
            && turns.parse::<u32>().is_ok()
            && length.parse::<SpanNs>().is_ok()
    })
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
            ("ksoftirqd/1", Some("ksoftirqd/1"), false),
            ("kworker/0:1H", Some("kworker/0:1H"), false),
            ("kworker/u8:2", Some("kworker/u8:2"), false),
            ("kworker/0:1H-kblockd", Some("kworker/0:1H"), false),
            ("irq/24-nvme0q1", Some("irq/24"), false),
            ("rcu_preempt", Some("rcu_preempt"), false),
            ("kswapd0", Some("kswapd0"), false),
            // Tasks of users can have such names.
            ("rcu_acme", None, false),
            ("rcu_gp-acme", None, false),
            ("kswapd-acme", None, false),
            ("kworker/acme", None, false),
            ("kworker/u8:acme", None, false),
            ("kworker/secret plan", None, false),
            ("irq/491701234567", None, false),
            ("ksoft", None, false),
            ("wakescope", None, true),
            ("wakescope/12", None, true),
            ("wakescope-w/3", None, true),
            ("wakescope-r", None, true),
            ("wakescope-expl", None, true),
            ("load-cpu", None, true),
            ("disturb-inject", None, true),
            ("disturb-throttl", None, true),
            // And such as begin like those of wakescope.
            ("load-secret", None, false),
            ("load-cpu-secret", None, false),
            ("load-", None, false),
            ("disturb-secret", None, false),
            ("wakescopesecret", None, false),
            ("wakescope/secret", None, false),
            ("wakescope/", None, false),
            ("wakescope/123456", None, false),
            ("wakescope-w/1a", None, false),
            ("wakescope-sec", None, false),
            ("wakescope: all", None, false),
            ("bash", None, false),
        ] {
            assert_eq!((kernels_part(comm), is_own_thread(comm)), (of_kernel, own), "{comm}");
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
            ("disturb-loop-resched-every-10-1ms", "disturb-loop-resched-every-10-1ms"),
            ("disturb-nested-irqs-off-nmi-1ms", "disturb-nested-irqs-off-nmi-1ms"),
            ("disturb-loop-resched-every-acme-1ms", REDACTED),
            ("disturb-secret-1ms", REDACTED),
            ("disturb-fifo-secret", REDACTED),
            ("disturb-fifo", REDACTED),
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
