use wakescope_testing::Folder;

use super::*;

const MOUNTS: &str = "\
24 1 0:21 / /proc rw - proc proc rw
30 28 0:26 / {root}/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct
31 28 0:27 /part {root}/part rw - cgroup cgroup rw,cpu
32 28 0:28 / {root}/memory rw - cgroup cgroup rw,memory
33 28 0:29 / {root}/unified rw - cgroup2 cgroup2 rw,nsdelegate
garbage
 - 
";

/// A folder with files of a kernel.
struct Tree(Folder);

impl Tree {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = Folder::new(name);
        let mounts = MOUNTS.replace("{root}", root.to_str().unwrap());
        for (path, text) in files {
            root.write(path, text);
        }
        let foreign = b"25 28 0:22 / /media/Gr\xfc\xdfe rw - vfat /dev/sdb rw\n";
        root.write("proc/self/mountinfo", [foreign, mounts.as_bytes()].concat());
        Self(root)
    }

    fn read(&self, threads: &[u32]) -> Quotas {
        Quotas::read(&self.0.join("proc"), threads.iter().copied())
    }

    /// The quota that stopped `threads`, if these cgroups stopped threads meanwhile.
    fn quota(&self, threads: &[u32], stopping: &[&str]) -> Option<(String, u64, u64)> {
        let stat = |group: &str, times: u32| {
            let text = format!("nr_periods 9\nnr_throttled {times}\nthrottled_time 1\n");
            self.0.write(format!("{group}/cpu.stat"), text);
        };
        for group in ["cpu/a", "unified/x", "unified/x/y"] {
            stat(group, 4);
        }
        let before = self.read(threads);
        for group in stopping {
            stat(group, 5);
        }
        told(before.that_stopped(threads, &self.read(threads)))
    }
}

fn told(found: Option<Quota>) -> Option<(String, u64, u64)> {
    found.map(|quota| (quota.cgroup, quota.quota_ns, quota.period_ns))
}

#[test]
fn the_quota_of_a_cgroup_or_of_one_above_it_is_found() {
    let tree = Tree::new(
        "quota",
        &[
            ("proc/1/cgroup", "5:memory:/\n4:cpu,cpuacct:/a/b\n0::/\n"),
            ("proc/2/cgroup", "0::/x/y/z\n"),
            ("proc/3/cgroup", "0::/free\n"),
            ("proc/4/cgroup", "0::/../x/y\n"),
            ("proc/5/cgroup", "nothing that makes sense"),
            ("cpu/a/cpu.cfs_quota_us", "20000\n"),
            ("cpu/a/cpu.cfs_period_us", "100000\n"),
            ("cpu/a/b/cpu.cfs_quota_us", "-1\n"),
            ("cpu/a/b/cpu.cfs_period_us", "100000\n"),
            ("unified/x/cpu.max", "max 100000\n"),
            ("unified/x/y/cpu.max", "10000 50000\n"),
            ("unified/free/cpu.max", "max 100000\n"),
        ],
    );
    let of_a = Some(("/a".to_owned(), 20_000_000, 100_000_000));
    let all = ["cpu/a", "unified/x/y"];
    assert_eq!(tree.quota(&[1], &all), of_a);
    assert_eq!(tree.quota(&[2], &all), Some(("/x/y".to_owned(), 10_000_000, 50_000_000)));
    // Threads that have ended say nothing.
    assert_eq!(tree.quota(&[99, 1, 1], &all), of_a);
    // Two quotas, none, another namespace, nonsense.
    for threads in [&[1, 2][..], &[3], &[1, 3], &[4], &[5], &[99], &[]] {
        assert_eq!(tree.quota(threads, &all), None, "{threads:?}");
    }
    assert_eq!(tree.quota(&[1], &["unified/x/y"]), None, "it stopped nobody");
}

#[test]
fn of_several_quotas_above_each_other_nobody_knows_which() {
    let tree = Tree::new(
        "quotas",
        &[
            ("proc/1/cgroup", "0::/x/y\n"),
            ("unified/x/cpu.max", "90000 100000\n"),
            ("unified/x/y/cpu.max", "10000 100000\n"),
        ],
    );
    let (outer, inner) = ("unified/x", "unified/x/y");
    assert_eq!(tree.quota(&[1], &[outer, inner]), None);
    // Unless only one of them has stopped anybody.
    let of_outer = Some(("/x".to_owned(), 90_000_000, 100_000_000));
    assert_eq!(tree.quota(&[1], &[outer]), of_outer);
}

/// It was stopped in the one, and is in the other when the run ends, which has stopped others.
#[test]
fn of_a_thread_that_was_moved_nobody_knows_which() {
    let one = ("proc/1/cgroup", "3:cpu:/one\n");
    let tree = Tree::new(
        "moved",
        &[
            one,
            ("proc/2/cgroup", "3:cpu:/two\n"),
            ("cpu/one/cpu.cfs_quota_us", "10000\n"),
            ("cpu/one/cpu.cfs_period_us", "100000\n"),
            ("cpu/one/cpu.stat", "nr_throttled 1\n"),
            ("cpu/two/cpu.cfs_quota_us", "190000\n"),
            ("cpu/two/cpu.cfs_period_us", "100000\n"),
            ("cpu/two/cpu.stat", "nr_throttled 1\n"),
        ],
    );
    let before = tree.read(&[1, 2]);
    for (path, text) in [
        ("proc/1/cgroup", "3:cpu:/two\n"),
        ("cpu/one/cpu.stat", "nr_throttled 9\n"),
        ("cpu/two/cpu.stat", "nr_throttled 9\n"),
    ] {
        tree.0.write(path, text);
    }
    assert_eq!(told(before.that_stopped(&[1], &tree.read(&[1]))), None);
    let of_two = Some(("/two".to_owned(), 190_000_000, 100_000_000));
    assert_eq!(told(before.that_stopped(&[2], &tree.read(&[2]))), of_two);
    // It began later, in a cgroup where others were already.
    tree.0.write("proc/3/cgroup", "3:cpu:/two\n");
    assert_eq!(told(before.that_stopped(&[3], &tree.read(&[3]))), of_two);
    // It has ended since.
    assert_eq!(told(before.that_stopped(&[2], &Quotas::default())), of_two);
    // Another quota than it had.
    tree.0.write("cpu/two/cpu.cfs_quota_us", "50000\n");
    assert_eq!(told(before.that_stopped(&[2], &tree.read(&[2]))), None);
    assert_eq!(told(Quotas::default().that_stopped(&[2], &tree.read(&[2]))), None);
}
