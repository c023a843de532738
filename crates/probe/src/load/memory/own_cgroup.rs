//! A cgroup of this process's own, in which memory is short.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::{Files, cgroups};

/// The head of the name of such a cgroup.
const PREFIX: &str = "wakescope-load-";

/// What would no longer hold for a process that leaves the cgroup it was put into.
const LIMITS: [&str; 4] = ["memory.max", "memory.high", "memory.swap.max", "cpu.max"];

/// The same of CPUs and nodes, which differ from those of the cgroup above if they are limited. In a partition, also
/// an empty `cpuset.cpus` can leave fewer (`cpuset.cpus.exclusive`, since 6.7).
const LIMITED_SETS: [&str; 2] = ["cpuset.cpus.effective", "cpuset.mems.effective"];

/// A cgroup that this process is in until this is dropped, which removes it.
#[derive(Debug)]
pub(super) struct OwnCgroup {
    path: PathBuf,
    /// Where this process was before.
    home: PathBuf,
}

impl OwnCgroup {
    /// Makes one in which memory beyond `most` bytes is reclaimed, and has this process enter it.
    /// Fails with the reason where that is not possible without a change to any other cgroup.
    pub(super) fn enter(most: u64) -> Result<Self, String> {
        let groups = cgroups::folders(&Files::of_this_machine(), "memory");
        let (home, place) = place(&groups)?;
        Self::enter_below(place, home.into(), most)
    }

    fn enter_below(place: &Path, home: PathBuf, most: u64) -> Result<Self, String> {
        remove_leftovers(place);
        let pid = std::process::id().to_string();
        let path = place.join(format!("{PREFIX}{pid}"));
        fs::create_dir(&path)
            .map_err(|e| format!("cannot make the cgroup {}: {e}", path.display()))?;
        let group = Self { path, home };
        // Above this, unlike above memory.max, nothing is killed.
        group.write("memory.high", &most.to_string())?;
        group.write("cgroup.procs", &pid)?;
        Ok(group)
    }

    fn write(&self, name: &str, value: &str) -> Result<(), String> {
        let path = self.path.join(name);
        fs::write(&path, value).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        // A cgroup with a process in it cannot be removed. One that stays is removed at the next start.
        let _ = fs::write(self.home.join("cgroup.procs"), std::process::id().to_string());
        let _ = fs::remove_dir(&self.path);
    }
}

/// The cgroup of a process, and the one in which one with a limit on memory can be made for it: that one or, as
/// none but the root may have both processes and such cgroups, the one above. `groups` are those two, and others.
fn place(groups: &[PathBuf]) -> Result<(&Path, &Path), String> {
    let home = groups.first().ok_or("no cgroup of this process is visible")?;
    if gives_memory(home) {
        return Ok((home, home));
    }
    let beside = groups.get(1).filter(|above| gives_memory(above));
    let beside = beside.ok_or_else(|| {
        format!("no cgroup of version 2 with control of memory can be made at {}", home.display())
    })?;
    let word = |of: &Path, name: &str| {
        let text = fs::read_to_string(of.join(name)).unwrap_or_default();
        text.split_whitespace().next().map(str::to_owned)
    };
    let limits = |name: &str| word(home, name).is_some_and(|limit| limit != "max");
    // Without its file, a cgroup has what the one above has.
    let differs =
        |name: &str| word(home, name).is_some_and(|set| word(beside, name).as_ref() != Some(&set));
    let limit = LIMITS.iter().find(|name| limits(name));
    match limit.or_else(|| LIMITED_SETS.iter().find(|name| differs(name))) {
        None => Ok((home, beside)),
        Some(limit) => Err(format!("a cgroup beside {} would evade its {limit}", home.display())),
    }
}

/// Whether cgroups that are made in `dir` have control of memory.
fn gives_memory(dir: &Path) -> bool {
    let controllers = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    controllers.split_whitespace().any(|name| name == "memory")
}

/// Removes cgroups that loads left which were killed. One that is in use has a process in it, and so
/// cannot be removed; one that was just made has none yet, but its process lives.
fn remove_leftovers(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_leftover) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Whether a cgroup of this name was made by a load whose process is gone.
fn is_leftover(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
    let lives = |process: u32| Path::new(&format!("/proc/{process}")).exists();
    process.is_some_and(|process| lives(std::process::id()) && !lives(process))
}

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;

    #[test]
    fn no_limit_is_evaded_and_no_other_cgroup_changed() {
        const CONTROL: &str = "cgroup.subtree_control";
        let memory = |dir: &str| (format!("{dir}{CONTROL}"), "cpu memory pids\n");
        let file = |path: &str, text: &'static str| (path.to_owned(), text);
        let sets = |cpus_above, mems_above, cpus, mems| {
            vec![
                memory("a/"),
                file("a/cpuset.cpus.effective", cpus_above),
                file("a/cpuset.mems.effective", mems_above),
                file("a/b/cpuset.cpus.effective", cpus),
                file("a/b/cpuset.mems.effective", mems),
            ]
        };
        for (files, own, want) in [
            (vec![memory("")], "", Ok("")),
            (vec![memory("a/"), file("a/b/memory.max", "max\n")], "a/b", Ok("a")),
            (vec![memory("a/"), file("a/b/cpu.max", "max 100000\n")], "a/b", Ok("a")),
            (vec![memory("a/"), file("a/b/cpu.max", "50000 100000\n")], "a/b", Err("cpu.max")),
            (vec![memory("a/"), file("a/b/memory.high", "9\n")], "a/b", Err("memory.high")),
            (
                [sets("0-3\n", "0\n", "2-3\n", "0\n"), vec![file("a/b/cpuset.cpus", "2-3\n")]]
                    .concat(),
                "a/b",
                Err("its cpuset.cpus.effective"),
            ),
            (sets("0-3\n", "0-1\n", "0-3\n", "0\n"), "a/b", Err("its cpuset.mems.effective")),
            (sets("0-3\n", "0\n", "0-3\n", "0\n"), "a/b", Ok("a")),
            // A partition by `cpuset.cpus.exclusive` alone.
            (
                [sets("0-2\n", "0\n", "3\n", "0\n"), vec![file("a/b/cpuset.cpus", "\n")]].concat(),
                "a/b",
                Err("its cpuset.cpus.effective"),
            ),
            (sets("", "", "3\n", "0\n"), "a/b", Err("its cpuset.cpus.effective")),
            // Without control of memory, or two levels above.
            (vec![file("cgroup.subtree_control", "cpu\n")], "", Err("no cgroup of version 2")),
            (vec![memory(""), file("a/b/memory.max", "max\n")], "a/b", Err("no cgroup")),
            (vec![], "", Err("no cgroup of version 2")),
            // What is above the hierarchy is no cgroup.
            (vec![memory("../")], "", Err("no cgroup of version 2")),
        ] {
            // Directories that look like cgroups, as far as these functions look.
            let outer = Folder::new("own-cgroup");
            let root = outer.join("root");
            fs::create_dir(&root).unwrap();
            for (path, text) in files {
                outer.write(root.join(path), text);
            }
            let groups: Vec<_> = Path::new(own).ancestors().map(|group| root.join(group)).collect();
            match (place(&groups), want) {
                (Ok(got), Ok(want)) => {
                    assert_eq!(got, (&*root.join(own), &*root.join(want)), "{own}");
                }
                (Err(got), Err(want)) => assert!(got.contains(want), "{own}: {got}"),
                (got, want) => panic!("{own}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn what_was_made_is_removed_also_where_it_cannot_be_entered() {
        let root = Folder::new("own-cgroup");
        // No process has such a number. The first one of all always lives.
        let [left, full] = [4_194_305, 4_194_306].map(|number| format!("wakescope-load-{number}"));
        root.write(root.join(&full).join("x"), "");
        root.write("other/x", "");
        let others = ["wakescope-load-1", "wakescope-load-mine"];
        for name in [&left, others[0], others[1]] {
            fs::create_dir(root.join(name)).unwrap();
        }
        // In a directory that is none of the kernel's, the files are made.
        let group = OwnCgroup::enter_below(&root, root.join("other"), 5).unwrap();
        let high = fs::read_to_string(group.path.join("memory.high")).unwrap();
        assert_eq!(high, "5");
        // Only an empty one is removed, as the kernel does with one without processes.
        assert!(!root.join(&left).exists() && root.join(&full).exists());
        assert!(others.iter().all(|name| root.join(name).exists()));
        for name in ["memory.high", "cgroup.procs"] {
            fs::remove_file(group.path.join(name)).unwrap();
        }
        let path = group.path.clone();
        drop(group);
        assert!(!path.exists());
        let back = fs::read_to_string(root.join("other/cgroup.procs")).unwrap();
        assert_eq!(back, std::process::id().to_string());
        assert!(place(&[]).is_err(), "no cgroup is known");
        let missing = root.join("missing");
        assert!(OwnCgroup::enter_below(&missing, root.join("other"), 5).is_err());
    }
}
