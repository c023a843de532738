//! What stands between a real-time task and its CPU.

use wakescope_core::host::{FairServerShare, KernelVersion, RtLimits};
use wakescope_core::preemption::Sources;

use super::{Files, capabilities, cgroups, sched};

/// Reads the limits of this process. `status` is /proc/self/status.
pub(super) fn read(files: &Files, sources: &Sources, status: &str) -> RtLimits {
    // Only a cgroup of version 1 has such a share.
    let own_group = cgroups::folders(files, "cpu").into_iter().next();
    let setting = |name: &str| files.number::<i64>(&format!("/proc/sys/kernel/{name}"));
    RtLimits {
        // -1: no limit.
        runtime_ns: setting("sched_rt_runtime_us").and_then(us_to_ns),
        period_ns: setting("sched_rt_period_us").and_then(us_to_ns),
        fair_server: fair_server(files, &sources.release),
        fair_server_share: fair_server_share(files),
        group_scheduling: group_scheduling(sources),
        group_runtime_ns: own_group
            .and_then(|own| cgroups::number(&own, "cpu.rt_runtime_us"))
            .and_then(|us| us.checked_mul(1000)),
        priority_limit: sched::rt_priority_limit().ok(),
        nice_capability: nice_capability(files, status),
    }
}

fn us_to_ns(us: i64) -> Option<u64> {
    u64::try_from(us).ok()?.checked_mul(1000)
}

/// Its settings: a folder for each CPU.
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";

/// Whether the kernel has the fair server. Its folder in debugfs decides where it can be seen.
fn fair_server(files: &Files, release: &str) -> Option<bool> {
    if files.exists("/sys/kernel/debug/sched") {
        return Some(files.exists(FAIR_SERVER));
    }
    // It came with 6.12; older releases of some distributions have it too.
    (KernelVersion::of(release)? >= KernelVersion(6, 12)).then_some(true)
}

/// The largest share that the fair server of a CPU may take; `None` if none can be read.
fn fair_server_share(files: &Files) -> Option<FairServerShare> {
    let of_cpu = |cpu: String| {
        let setting = |name: &str| files.number::<u64>(&format!("{FAIR_SERVER}/{cpu}/{name}"));
        let share =
            FairServerShare { runtime_ns: setting("runtime")?, period_ns: setting("period")? };
        // 6.12 gives a CPU its settings when the first ordinary task runs there.
        (share.period_ns > 0).then_some(share)
    };
    let shares = files.entries(FAIR_SERVER).into_iter().filter_map(of_cpu);
    let cross = |a: &FairServerShare, b: &FairServerShare| {
        u128::from(a.runtime_ns) * u128::from(b.period_ns)
    };
    shares.max_by(|a, b| cross(a, b).cmp(&cross(b, a)))
}

/// Whether real-time tasks are limited per cgroup.
fn group_scheduling(sources: &Sources) -> Option<bool> {
    let config = sources.config.text.as_deref().ok()?;
    let has = |line: &str| config.lines().any(|l| l.trim_end() == line);
    // A kernel from 6.15 on can be built with it switched off, or told so at boot.
    let cmdline = sources.cmdline.text.as_deref().unwrap_or_default();
    let values = cmdline.split_whitespace().rev().filter_map(|w| w.strip_prefix("rt_group_sched="));
    // It ignores every value but these two.
    let asked = values.filter_map(kernel_number).find(|number| (0..=1).contains(number));
    let on = match asked {
        Some(number) => number == 1,
        None => !has("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y"),
    };
    Some(has("CONFIG_RT_GROUP_SCHED=y") && on)
}

/// The number that the kernel reads `text` as (`kstrtol` without a base).
fn kernel_number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let (base, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None => (if digits.starts_with('0') { 8 } else { 10 }, digits),
    };
    // Rust would take another sign.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    i64::from_str_radix(digits, base).ok().filter(|_| is_plain).map(|number| sign * number)
}

/// Whether this process may raise priorities beyond its limit.
fn nice_capability(files: &Files, status: &str) -> Option<bool> {
    const CAP_SYS_NICE: u32 = 23;
    Some(capabilities(files, status)? >> CAP_SYS_NICE & 1 == 1)
}
