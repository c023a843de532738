//! Which cgroup's quota of CPU time threads are under.

use std::fs;
use std::path::{Path, PathBuf};

use wakescope_core::explain::Quota;

/// The quota that these threads are under, if it is one and the same for all of them that still exist.
/// A thread under several quotas, of a cgroup and of one above it, may be stopped by any of them: then
/// nobody knows which.
pub(crate) fn of_threads(proc: &Path, threads: impl Iterator<Item = u32>) -> Option<Quota> {
    let mounts = Mounts::read(&fs::read_to_string(proc.join("self/mountinfo")).ok()?);
    let mut found: Option<Quota> = None;
    for id in threads {
        let Ok(groups) = fs::read_to_string(proc.join(id.to_string()).join("cgroup")) else {
            continue;
        };
        let mut quotas = mounts.quotas(&groups);
        let (Some(one), None) = (quotas.pop(), quotas.pop()) else { return None };
        if found.as_ref().is_some_and(|other| *other != one) {
            return None;
        }
        found = Some(one);
    }
    found
}

/// Where the unified hierarchy of cgroups is mounted, if it is.
pub(crate) fn unified_hierarchy() -> Option<PathBuf> {
    Mounts::read(&fs::read_to_string("/proc/self/mountinfo").ok()?).unified
}

/// Where the hierarchies lie that can have quotas.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mounts {
    /// The unified hierarchy.
    unified: Option<PathBuf>,
    /// The older one of the controller `cpu`.
    cpu: Option<PathBuf>,
}

impl Mounts {
    /// From /proc/self/mountinfo: `… / /sys/fs/cgroup rw,… - cgroup2 cgroup2 rw`.
    fn read(mountinfo: &str) -> Self {
        let mut mounts = Self::default();
        for line in mountinfo.lines() {
            let Some((before, after)) = line.split_once(" - ") else { continue };
            let mut before = before.split(' ').skip(3);
            let (Some(root), Some(place)) = (before.next(), before.next()) else { continue };
            let mut after = after.split(' ');
            let kind = after.next();
            let options = after.nth(1).unwrap_or_default();
            // Of a part of a hierarchy the paths would be others.
            if root != "/" {
                continue;
            }
            match kind {
                Some("cgroup2") => mounts.unified = Some(place.into()),
                Some("cgroup") if options.split(',').any(|o| o == "cpu") => {
                    mounts.cpu = Some(place.into());
                }
                _ => {}
            }
        }
        mounts
    }

    /// All quotas that a thread in these `groups` (/proc/PID/cgroup) is under, its own cgroup's first.
    fn quotas(&self, groups: &str) -> Vec<Quota> {
        let mut found = Vec::new();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let is_cpu = controllers.split(',').any(|name| name == "cpu");
            let (root, read): (_, ReadQuota) = match (controllers.is_empty(), is_cpu) {
                (true, _) => (&self.unified, unified),
                (_, true) => (&self.cpu, older),
                _ => continue,
            };
            // Outside of a cgroup namespace.
            let Some(root) = root.as_ref().filter(|_| !path.contains("..")) else { continue };
            for group in Path::new(path).ancestors() {
                let place = root.join(group.strip_prefix("/").unwrap_or(group));
                let quota = read(&place).map(|(quota_us, period_us)| Quota {
                    cgroup: group.to_string_lossy().into_owned(),
                    quota_ns: quota_us.saturating_mul(1_000),
                    period_ns: period_us.saturating_mul(1_000),
                });
                found.extend(quota);
            }
        }
        found
    }
}

/// Reads quota and period, microseconds, of the cgroup at a place; `None` without a quota.
type ReadQuota = fn(&Path) -> Option<(u64, u64)>;

/// Of the unified hierarchy.
fn unified(place: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(place.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    Some((quota.parse().ok()?, period.parse().ok()?))
}

/// Of the older hierarchy.
fn older(place: &Path) -> Option<(u64, u64)> {
    let read = |name| fs::read_to_string(place.join(name)).ok()?.trim().parse().ok();
    Some((read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?))
}

#[cfg(test)]
mod tests;
