//! Where the cgroups lie that this process is in.

use std::fs;
use std::path::{Path, PathBuf};

use super::Files;

/// As much of a list of mounts as is read: some 100 bytes a mount.
const MOUNTS_LIMIT: u64 = 4 << 20;

/// The folders of the cgroups in which `controller` limits this process: its own, then those above it up to the
/// one that is mounted. Empty where none of them can be seen.
///
/// A controller is in a hierarchy of version 1 where that is listed, and in the unified one otherwise.
pub(crate) fn folders(files: &Files, controller: &str) -> Vec<PathBuf> {
    own_and_above(files, controller).unwrap_or_default()
}

/// Whether `controller` is in a hierarchy of version 1, where this process sees its cgroup; so the cgroups that it
/// acts on are not those of the unified one.
pub(super) fn is_older(files: &Files, controller: &str) -> bool {
    let groups = files.text("/proc/self/cgroup").unwrap_or_default();
    groups.lines().filter_map(fields_of_group).any(|(list, _)| lists(list, controller))
}

/// Whether `controller` is in a list of some.
fn lists(list: &str, controller: &str) -> bool {
    list.split(',').any(|name| name == controller)
}

fn own_and_above(files: &Files, controller: &str) -> Option<Vec<PathBuf>> {
    let groups = files.text("/proc/self/cgroup").ok()?;
    let groups = || groups.lines().filter_map(fields_of_group);
    let older = groups().find(|(list, _)| lists(list, controller));
    let (_, group) = older.or_else(|| groups().find(|(list, _)| list.is_empty()))?;
    let mounts = files.bytes("/proc/self/mountinfo", MOUNTS_LIMIT).ok()?;
    let mounts = String::from_utf8_lossy(&mounts);
    // In a container the mount may show a part of the tree only, and the group is named from its top.
    let seen = mounts.lines().filter_map(fields_of_mount).filter_map(|mount| {
        let has_controller = match older {
            Some(_) => mount.kind == "cgroup" && lists(mount.options, controller),
            None => mount.kind == "cgroup2",
        };
        let below = Path::new(group).strip_prefix(mount.root).ok()?;
        has_controller.then_some((mount.point, below))
    });
    // Of several mounts, the one that shows most of the groups above.
    let (point, below) = seen.max_by_key(|(_, below)| below.components().count())?;
    // Never out of the hierarchy, whatever the file says.
    let inside = !Path::new(point).join(below).iter().any(|part| part == "..");
    let above = |below: &Path| files.path(point).join(below);
    inside.then(|| below.ancestors().map(above).collect())
}

/// The controllers and the path in a line of /proc/self/cgroup (cgroups(7)); the unified hierarchy has no
/// controllers there.
fn fields_of_group(line: &str) -> Option<(&str, &str)> {
    line.split_once(':')?.1.split_once(':')
}

/// A line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

fn fields_of_mount(line: &str) -> Option<Mount<'_>> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let mut file_system = file_system.split(' ');
    Some(Mount {
        root: mount.next()?,
        point: mount.next()?,
        kind: file_system.next()?,
        options: file_system.nth(1)?,
    })
}

/// The number in a file of a cgroup; `None` where that is not there, or holds a word such as `max`.
pub(crate) fn number(folder: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}

/// The number behind `key` in a file of a cgroup that has a line for each.
pub(crate) fn number_of(folder: &Path, name: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(folder.join(name)).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(found, _)| *found == key)?.1.trim().parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use wakescope_testing::Folder;

    use super::*;

    /// A machine with these texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
    pub(crate) fn machine(groups: &str, mounts: &str) -> (Folder, Files) {
        let root = Folder::new("cgroups");
        root.write("proc/self/cgroup", groups);
        root.write("proc/self/mountinfo", mounts);
        let files = Files::under(root.path());
        (root, files)
    }

    pub(crate) const UNIFIED: &str = "25 1 0:22 / /cg rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    pub(crate) const OLDER: &str = "25 1 0:22 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
         26 1 0:23 / /cg/memory rw shared:9 - cgroup cgroup rw,memory\n\
         27 1 0:24 / /cg/unified rw - cgroup2 cgroup2 rw\n";

    #[track_caller]
    fn check(groups: &str, mounts: &str, controller: &str, want: &[&str]) {
        let (root, files) = machine(groups, mounts);
        let got = folders(&files, controller);
        let got: Vec<_> = got.iter().map(|at| at.strip_prefix(root.path()).unwrap()).collect();
        assert_eq!(got, want.iter().map(Path::new).collect::<Vec<_>>(), "{controller} {groups}");
    }

    #[test]
    fn a_controller_of_version_1_is_known_from_its_line() {
        for (groups, want) in [
            ("3:cpu,cpuacct:/c\n0::/\n", true),
            ("1:cpu:/\n", true),
            ("3:cpuacct:/c\n2:cpuset:/cpu\n0::/cpu\n", false),
            ("0::/u\n", false),
            ("", false),
        ] {
            let (_root, files) = machine(groups, UNIFIED);
            assert_eq!(is_older(&files, "cpu"), want, "{groups}");
        }
    }

    #[test]
    fn a_group_and_those_above_it_are_found_where_they_are_mounted() {
        check("0::/a.slice/b:c\n", UNIFIED, "cpu", &["cg/a.slice/b:c", "cg/a.slice", "cg"]);
        check("0::/\n", UNIFIED, "memory", &["cg"]);
        let hybrid = "3:cpu,cpuacct:/c\n2:memory:/m/n\n1:name=systemd:/s\n0::/u\n";
        check(hybrid, OLDER, "cpu", &["cg/cpu/c", "cg/cpu"]);
        check(hybrid, OLDER, "memory", &["cg/memory/m/n", "cg/memory/m", "cg/memory"]);
        check(hybrid, OLDER, "pids", &["cg/unified/u", "cg/unified"]);
        // A hierarchy of version 1 that is mounted elsewhere only.
        check("3:cpuset:/x\n0::/u\n", OLDER, "cpuset", &[]);
        // A container sees its own part of the tree, or the names of it.
        let part = "25 1 0:22 /docker/a /cg rw - cgroup2 cgroup2 rw\n";
        check("0::/docker/a\n", part, "cpu", &["cg"]);
        check("0::/docker/a/b\n", part, "cpu", &["cg/b", "cg"]);
        check("0::/docker/ab\n", part, "cpu", &[]);
        check(
            "0::/docker/a/b\n",
            &format!("{part}{UNIFIED}")[..],
            "cpu",
            &["cg/docker/a/b", "cg/docker/a", "cg/docker", "cg"],
        );
        // Nothing outside of the hierarchy, and nothing where nothing is known.
        check("0::/../../etc\n", UNIFIED, "cpu", &[]);
        check("", UNIFIED, "cpu", &[]);
        check("0::/a\n", "", "cpu", &[]);
        check("0::/a\n", "25 1 0:22 /\nnothing - \n", "cpu", &[]);
    }
}
