//! Which cgroup's quota of CPU time stopped threads.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wakescope_core::explain::Quota;
use wakescope_sys::proc_files;

/// A quota, and how often it had stopped threads when it was read.
#[derive(Debug)]
struct Limit {
    quota: Quota,
    /// The folder of its cgroup.
    place: PathBuf,
    stops: Option<u64>,
}

/// The quotas of CPU time that threads are under, at one time.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    /// By the number of the thread: of its own cgroup and of those above it, its own first.
    of_threads: HashMap<u32, Arc<[Limit]>>,
}

impl Quotas {
    /// Reads those of `threads` that exist.
    pub(crate) fn read(proc: &Path, threads: impl IntoIterator<Item = u32>) -> Self {
        let mounts = proc_files::text(&proc.join("self/mountinfo")).unwrap_or_default();
        let mounts = Mounts::read(&mounts);
        let mut known: HashMap<String, Arc<[Limit]>> = HashMap::new();
        let of_threads = threads.into_iter().filter_map(|id| {
            let groups = fs::read_to_string(proc.join(id.to_string()).join("cgroup")).ok()?;
            let limits = known.entry(groups);
            let limits = limits.or_insert_with_key(|groups| mounts.limits(groups).into());
            Some((id, limits.clone()))
        });
        Self { of_threads: of_threads.collect() }
    }

    /// The quota that stopped `threads` between this reading and the `later` one. `None` unless all readings
    /// of these threads show the same quotas in the same cgroups, and exactly one of these has stopped threads
    /// meanwhile: a thread may have been moved, and a cgroup's quota need never have stopped it.
    pub(crate) fn that_stopped(&self, threads: &[u32], later: &Self) -> Option<Quota> {
        let readings = [self, later];
        let readings = threads.iter().flat_map(|id| readings.map(|all| all.of_threads.get(id)));
        let mut readings = readings.flatten();
        let limits = readings.next()?;
        if !readings.all(|other| are_same(limits, other)) {
            return None;
        }
        let before = self.of_threads.values().find(|before| are_same(limits, before))?;
        let has_stopped = |limit: &&Limit| stops(&limit.place) > limit.stops;
        let mut stopped = before.iter().filter(|limit| limit.stops.is_some()).filter(has_stopped);
        match (stopped.next(), stopped.next()) {
            (Some(only), None) => Some(only.quota.clone()),
            _ => None,
        }
    }
}

/// Whether these are the same quotas of the same cgroups.
fn are_same(one: &[Limit], other: &[Limit]) -> bool {
    one.iter().map(|limit| &limit.quota).eq(other.iter().map(|limit| &limit.quota))
}

/// How often the quota of the cgroup at a place has stopped threads.
fn stops(place: &Path) -> Option<u64> {
    let text = fs::read_to_string(place.join("cpu.stat")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?.trim().parse().ok()
}

/// Where the unified hierarchy of cgroups is mounted, if it is.
pub(crate) fn unified_hierarchy() -> Option<PathBuf> {
    Mounts::read(&proc_files::text(Path::new("/proc/self/mountinfo")).ok()?).unified
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
    fn limits(&self, groups: &str) -> Vec<Limit> {
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
                let Some((quota_us, period_us)) = read(&place) else { continue };
                let quota = Quota {
                    cgroup: group.to_string_lossy().into_owned(),
                    quota_ns: quota_us.saturating_mul(1_000),
                    period_ns: period_us.saturating_mul(1_000),
                };
                found.push(Limit { quota, stops: stops(&place), place });
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
