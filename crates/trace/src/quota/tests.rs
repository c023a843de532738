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
        for (path, text) in files.iter().copied().chain([("proc/self/mountinfo", &*mounts)]) {
            root.write(path, text);
        }
        Self(root)
    }

    fn quota(&self, threads: &[u32]) -> Option<(String, u64, u64)> {
        let found = of_threads(&self.0.join("proc"), threads.iter().copied());
        found.map(|quota| (quota.cgroup, quota.quota_ns, quota.period_ns))
    }
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
    assert_eq!(tree.quota(&[1]), of_a);
    assert_eq!(tree.quota(&[2]), Some(("/x/y".to_owned(), 10_000_000, 50_000_000)));
    // Threads that have ended say nothing.
    assert_eq!(tree.quota(&[99, 1, 1]), of_a);
    // Two quotas, none, another namespace, nonsense.
    for threads in [&[1, 2][..], &[3], &[1, 3], &[4], &[5], &[99], &[]] {
        assert_eq!(tree.quota(threads), None, "{threads:?}");
    }
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
    assert_eq!(tree.quota(&[1]), None);
}
