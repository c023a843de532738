//! What stands between a real-time task and its CPU.

use wakescope_core::host::{KernelVersion, RtLimits};
use wakescope_core::preemption::Sources;

use super::{Files, sched, status_line};

/// Reads the limits of this process. `status` is /proc/self/status.
pub(super) fn read(files: &Files, sources: &Sources, status: &str) -> RtLimits {
    let setting = |name: &str| files.number::<i64>(&format!("/proc/sys/kernel/{name}"));
    RtLimits {
        // -1: no limit.
        runtime_ns: setting("sched_rt_runtime_us").and_then(us_to_ns),
        period_ns: setting("sched_rt_period_us").and_then(us_to_ns),
        fair_server: fair_server(files, &sources.release),
        group_scheduling: group_scheduling(sources),
        group_runtime_ns: group_runtime(files),
        priority_limit: sched::rt_priority_limit().ok(),
        nice_capability: nice_capability(files, status),
    }
}

fn us_to_ns(us: i64) -> Option<u64> {
    u64::try_from(us).ok()?.checked_mul(1000)
}

/// Whether the kernel has the fair server. Its folder in debugfs decides where it can be seen.
fn fair_server(files: &Files, release: &str) -> Option<bool> {
    if files.exists("/sys/kernel/debug/sched") {
        return Some(files.exists("/sys/kernel/debug/sched/fair_server"));
    }
    // It came with 6.12; older releases of some distributions have it too.
    (KernelVersion::of(release)? >= KernelVersion(6, 12)).then_some(true)
}

/// Whether real-time tasks are limited per cgroup.
fn group_scheduling(sources: &Sources) -> Option<bool> {
    let config = sources.config.text.as_deref().ok()?;
    let has = |line: &str| config.lines().any(|l| l.trim_end() == line);
    // A kernel from 6.15 on can be built with it switched off, or told so at boot.
    let cmdline = sources.cmdline.text.as_deref().unwrap_or_default();
    let asked = cmdline.split_whitespace().rev().find_map(|w| w.strip_prefix("rt_group_sched="));
    let on = match asked {
        Some(value) => !matches!(value, "0" | "n" | "N" | "off"),
        None => !has("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y"),
    };
    Some(has("CONFIG_RT_GROUP_SCHED=y") && on)
}

/// `cpu.rt_runtime_us` of this process's own cgroup. Only cgroup v1 has it.
fn group_runtime(files: &Files) -> Option<u64> {
    let groups = files.text("/proc/self/cgroup").ok()?;
    let is_cpu = |list: &str| list.split(',').any(|controller| controller == "cpu");
    let group = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        is_cpu(fields.next()?).then(|| fields.next())?
    })?;
    let mounts = files.text("/proc/self/mountinfo").ok()?;
    let (root, point) = mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut file_system = file_system.split(' ');
        let found = file_system.next()? == "cgroup" && is_cpu(file_system.nth(1)?);
        found.then(|| Some((mount.next()?, mount.next()?)))?
    })?;
    // In a container the mount shows a part of the tree only, and the group is named from its top.
    let below = group.strip_prefix(root.trim_end_matches('/')).unwrap_or(group);
    let path = format!("{point}/{}/cpu.rt_runtime_us", below.trim_matches('/'));
    files.number::<i64>(&path).and_then(us_to_ns)
}

/// Whether this process may raise priorities beyond its limit.
fn nice_capability(files: &Files, status: &str) -> Option<bool> {
    const CAP_SYS_NICE: u32 = 23;
    let effective = u64::from_str_radix(status_line(status, "CapEff:")?, 16).ok()?;
    // In a user namespace of its own a process has capabilities over that namespace only, and
    // scheduling belongs to the first one, which maps all users.
    let map = files.word("/proc/self/uid_map");
    let first = map.is_none_or(|m| m.split_whitespace().eq(["0", "0", "4294967295"]));
    Some(effective >> CAP_SYS_NICE & 1 == 1 && first)
}
