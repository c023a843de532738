//! Threads that waited already when a run began, and still did when it ended.
//!
//! No program sees such a wait, since it has neither a begin nor an end within the run. The kernel's own account shows
//! it: the thread could run at both times, and neither its CPU time nor its turns on a CPU (fields 1 and 3 of
//! /proc/TID/schedstat) have grown.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use wakescope_core::explain::NamedTask;
use wakescope_core::plan::Target;
use wakescope_core::units::SpanNs;
use wakescope_decode::KernelTask;
use wakescope_sys::proc_files::{field_after_name, is_thread, name};

use crate::threads;

/// Of a thread that runs, the kernel adds up the CPU time at ticks: there are ten in that time, at least.
const SHORTEST: SpanNs = SpanNs(100_000_000);

/// The threads of a target that could run at one time, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Runnable {
    /// The name that they must keep, if they are followed by it.
    name: Option<String>,
    threads: BTreeMap<u32, (PathBuf, Thread)>,
}

#[derive(Debug)]
struct Thread {
    task: NamedTask,
    account: Account,
}

/// When a thread began, CPU time that it has used, and its turns on a CPU.
type Account = [u64; 3];

impl Runnable {
    /// Reads them. There are none of a cgroup, whose threads /proc does not list, and none if a CPU may do without
    /// ticks.
    pub(crate) fn read(target: &Target) -> Self {
        if has_ticks() { Self::below(Path::new("/proc"), target) } else { Self::default() }
    }

    fn below(proc: &Path, target: &Target) -> Self {
        let (only, name) = match target {
            &(Target::Process { pid } | Target::Thread { tid: pid }) => {
                (is_thread(pid).then_some(pid), None)
            }
            Target::Comm { comm } => (None, Some(comm.clone())),
            _ => return Self::default(),
        };
        let all = threads::of_target(proc, target);
        let all =
            all.filter(|(id, _)| only.is_none_or(|only| *id == only)).filter_map(|(id, folder)| {
                let thread = Thread::read(id, &folder, name.as_deref())?;
                Some((id, (folder, thread)))
            });
        Self { threads: all.collect(), name }
    }

    /// The threads that have waited since they were read, in the order of their numbers, at the end of a run that began
    /// since then and took `run`. None if not enough time has passed to know.
    pub(crate) fn waited_throughout(&self, run: SpanNs) -> Vec<NamedTask> {
        if run < SHORTEST {
            return Vec::new();
        }
        let waited = self.threads.iter().filter(|&(&id, (folder, before))| {
            let after = Thread::read(id, folder, self.name.as_deref());
            after.is_some_and(|after| after.account == before.account)
        });
        waited.map(|(_, (_, thread))| thread.task.clone()).collect()
    }
}

impl Thread {
    /// Reads a thread from its folder, if it can run, has this name, and the kernel keeps an account of it.
    fn read(id: u32, folder: &Path, name: Option<&str>) -> Option<Self> {
        let (task, begun) = runnable(id, &fs::read(folder.join("stat")).ok()?)?;
        // Most of the machine's threads are not followed, or sleep: of these, one file is enough.
        if name.is_some_and(|name| task.comm != name) {
            return None;
        }
        let account = account(begun, &fs::read_to_string(folder.join("schedstat")).ok()?)?;
        Some(Self { task, account })
    }
}

/// A thread from its file `stat` and when it began, if it can run.
fn runnable(id: u32, stat: &[u8]) -> Option<(NamedTask, u64)> {
    // The name is field 2.
    let field = |number: usize| field_after_name(stat, number - 3);
    let prio = field(18)?.parse::<i32>().ok()?.checked_add(100)?;
    let mut comm = [0; 16];
    comm.iter_mut().zip(name(stat)?).for_each(|(to, &byte)| *to = byte);
    let task = KernelTask { pid: id, prio, policy: field(41)?.parse().ok()?, comm };
    let begun = field(22)?.parse().ok()?;
    (field(3) == Some("R")).then(|| (task.decoded().named(), begun))
}

/// The account of a thread that began then, from its file `schedstat`, if it has run.
fn account(begun: u64, schedstat: &str) -> Option<Account> {
    let mut fields = schedstat.split_whitespace();
    let (run_ns, turns) = (fields.next()?.parse().ok()?, fields.nth(1)?.parse().ok()?);
    (turns > 0).then_some([begun, run_ns, turns])
}

/// Whether all CPUs have ticks while a task runs there.
fn has_ticks() -> bool {
    let without = fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    matches!(without.trim(), "" | "(null)")
}

#[cfg(test)]
mod tests {
    use wakescope_core::explain::Policy;
    use wakescope_testing::Folder;

    use super::*;

    const STAT: &str = "7 (a) b (c) R 1 7 7 0 -1 0 0 0 0 0 5 6 0 0 -51 0 1 0 4711 0 0 0 1 1 0 0 0 0 0 0 0 0 0 \
                        0 17 0 50 1 0 0 0";

    #[test]
    fn a_thread_is_read_from_its_files() {
        let (task, begun) = runnable(7, STAT.as_bytes()).unwrap();
        let (policy, priority) = (Policy::Fifo, Some(50));
        assert_eq!(task, NamedTask { comm: "a) b (c".into(), pid: Some(7), policy, priority });
        assert_eq!(account(begun, "100 200 3\n"), Some([4_711, 100, 3]));
        for stat in [&*STAT.replace(" R ", " S "), "7 (a) R 1", ""] {
            assert_eq!(runnable(7, stat.as_bytes()), None, "{stat}");
        }
        for schedstat in ["0 0 0\n", ""] {
            assert_eq!(account(begun, schedstat), None, "{schedstat}");
        }
    }

    /// A folder like /proc, with these threads of process 7. As there, only a thread's own folder has all of its files.
    fn proc(name: &str, threads: &[(u32, &str, &str)]) -> Folder {
        let proc = Folder::new(name);
        for (id, stat, schedstat) in threads {
            proc.write(format!("7/task/{id}/stat"), stat);
            if !schedstat.is_empty() {
                proc.write(format!("7/task/{id}/schedstat"), schedstat);
            }
        }
        proc
    }

    fn numbers(waited: Vec<NamedTask>) -> Vec<u32> {
        waited.into_iter().map(|task| task.pid.unwrap()).collect()
    }

    #[test]
    fn only_a_thread_that_never_ran_has_waited_throughout() {
        let before: Vec<_> = (7..=10).map(|id| (id, STAT, "100 200 3")).collect();
        let proc = proc("throughout", &before);
        let name = Target::Comm { comm: "a) b (c".into() };
        let runnable = Runnable::below(&proc, &name);
        let waited = |run| numbers(runnable.waited_throughout(run));
        assert_eq!(waited(SHORTEST), [7, 8, 9, 10]);
        assert_eq!(waited(SpanNs(SHORTEST.0 - 1)), [0; 0]);
        // One has run, one runs, another thread has the number of the third, and the fourth has another name.
        proc.write("7/task/7/schedstat", "100 300 4");
        proc.write("7/task/8/schedstat", "101 200 3");
        proc.write("7/task/9/stat", STAT.replace(" 4711 ", " 4712 "));
        proc.write("7/task/10/stat", STAT.replace("b (c", "d"));
        proc.write("7/task/11/stat", STAT);
        proc.write("7/task/11/schedstat", "100 200 3");
        assert_eq!(waited(SHORTEST), [0; 0]);
        proc.write("7/task/8/schedstat", "100 200 3");
        assert_eq!(waited(SHORTEST), [8]);
    }

    /// The kernel cuts a name at 15 bytes, which may be within a character.
    #[test]
    fn a_thread_that_is_not_named_in_utf8_is_read() {
        let proc = Folder::new("throughout-cut");
        let (before, behind) = STAT.split_once("a) b (c").unwrap();
        let stat = [before.as_bytes(), b"a name of umla\xc3", behind.as_bytes()].concat();
        proc.write("7/task/7/stat", stat);
        proc.write("7/task/7/schedstat", "100 200 3");
        let waited =
            Runnable::below(&proc, &Target::Process { pid: 7 }).waited_throughout(SHORTEST);
        assert_eq!(numbers(waited), [7]);
    }

    #[test]
    fn threads_are_followed_by_name_or_process_and_not_by_cgroup() {
        let other = STAT.replace("b (c", "d");
        let proc = proc("runnable", &[(7, STAT, "100 200 3"), (8, &other, "100 200 3")]);
        for (target, want) in [
            (Target::Comm { comm: "a) b (c".into() }, &[7][..]),
            (Target::Comm { comm: "a) d".into() }, &[8]),
            (Target::Process { pid: 7 }, &[7, 8]),
            (Target::Cgroup { path: "/".into() }, &[]),
        ] {
            let waited = Runnable::below(&proc, &target).waited_throughout(SHORTEST);
            assert_eq!(numbers(waited), want, "{target:?}");
        }
    }
}
