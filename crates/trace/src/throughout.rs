//! Threads that waited already when a run began, and still did when it ended.
//!
//! No program sees such a wait, since it has neither a begin nor an end within the run. The kernel's own account shows
//! it: the thread could run at both times, and neither its CPU time nor its turns on a CPU (fields 1 and 3 of
//! /proc/TID/schedstat) have grown.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use wakescope_core::explain::NamedTask;
use wakescope_core::plan::Target;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_decode::KernelTask;

use crate::quota::threads_of;
use crate::target::is_thread;

/// Of a thread that runs, the kernel adds up the CPU time at ticks: there are ten in that time, at least.
const SHORTEST: SpanNs = SpanNs(100_000_000);

/// The threads of a target that could run at one time, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Runnable {
    at: MonoNs,
    threads: HashMap<u32, Thread>,
}

#[derive(Debug)]
struct Thread {
    task: NamedTask,
    /// When it began, CPU time that it has used, and its turns on a CPU.
    account: [u64; 3],
}

impl Runnable {
    /// Reads them. There are none of a cgroup, whose threads /proc does not list, and none if a CPU may do without
    /// ticks.
    pub(crate) fn read(target: &Target, at: MonoNs) -> Self {
        let proc = Path::new("/proc");
        let is_followed = |id: u32, thread: &Thread| match target {
            Target::Process { pid } | Target::Thread { tid: pid } => id == *pid || !is_thread(*pid),
            Target::Comm { comm } => thread.task.comm == *comm,
            _ => false,
        };
        let all = if has_ticks() { threads_of(proc, target) } else { Vec::new() };
        let all = all.into_iter().filter_map(|id| {
            let read = |file: &str| fs::read_to_string(proc.join(id.to_string()).join(file)).ok();
            Some((id, thread(id, &read("stat")?, &read("schedstat")?)?))
        });
        Self { at, threads: all.filter(|(id, thread)| is_followed(*id, thread)).collect() }
    }

    /// The threads that waited from this reading to the `later` one, in the order of their numbers. None if not enough
    /// time has passed to know.
    pub(crate) fn waited_until(&self, later: &Self) -> Vec<NamedTask> {
        if later.at.since(self.at) < SHORTEST {
            return Vec::new();
        }
        let waited = self.threads.iter().filter(|(id, before)| {
            later.threads.get(id).is_some_and(|after| after.account == before.account)
        });
        let mut waited: Vec<_> = waited.map(|(&id, thread)| (id, thread.task.clone())).collect();
        waited.sort_unstable_by_key(|(id, _)| *id);
        waited.into_iter().map(|(_, task)| task).collect()
    }
}

/// A thread from its files `stat` and `schedstat`, if it can run, and the kernel keeps an account of it.
fn thread(id: u32, stat: &str, schedstat: &str) -> Option<Thread> {
    // The name may have blanks and parentheses.
    let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // The first one is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let prio = field(18)?.parse::<i32>().ok()?.checked_add(100)?;
    let mut comm = [0; 16];
    comm.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte);
    let mut account = schedstat.split_whitespace();
    let (run_ns, turns) = (account.next()?.parse().ok()?, account.nth(1)?.parse().ok()?);
    let task = KernelTask { pid: id, prio, policy: field(41)?.parse().ok()?, comm };
    let account = [field(22)?.parse().ok()?, run_ns, turns];
    (field(3) == Some("R") && turns > 0).then(|| Thread { task: task.decoded().named(), account })
}

/// Whether all CPUs have ticks while a task runs there.
fn has_ticks() -> bool {
    let without = fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    matches!(without.trim(), "" | "(null)")
}

#[cfg(test)]
mod tests {
    use wakescope_core::explain::Policy;

    use super::*;

    const STAT: &str = "7 (a) b (c) R 1 7 7 0 -1 0 0 0 0 0 5 6 0 0 -51 0 1 0 4711 0 0 0 1 1 0 0 0 0 0 0 0 0 0 \
                        0 17 0 50 1 0 0 0";

    fn reading(at: u64, threads: &[(u32, &str, &str)]) -> Runnable {
        let read = |&(id, stat, schedstat): &_| Some((id, thread(id, stat, schedstat)?));
        Runnable { at: MonoNs(at), threads: threads.iter().filter_map(read).collect() }
    }

    #[test]
    fn a_thread_is_read_from_its_files() {
        let read = thread(7, STAT, "100 200 3\n").unwrap();
        let (policy, priority) = (Policy::Fifo, Some(50));
        assert_eq!(read.task, NamedTask { comm: "a) b (c".into(), pid: Some(7), policy, priority });
        assert_eq!(read.account, [4_711, 100, 3]);
        for (stat, schedstat) in [
            (STAT.replace(" R ", " S "), "100 200 3\n"),
            (STAT.into(), "0 0 0\n"),
            (STAT.into(), ""),
            ("7 (a) R 1".into(), "100 200 3\n"),
            (String::new(), "100 200 3\n"),
        ] {
            assert!(thread(7, &stat, schedstat).is_none(), "{stat} {schedstat}");
        }
    }

    #[test]
    fn only_a_thread_that_never_ran_has_waited_throughout() {
        let other = STAT.replace(" 4711 ", " 4712 ");
        let before = [(7, STAT, "100 200 3"), (8, STAT, "100 200 3"), (9, STAT, "100 200 3")];
        let waited = |at, after: &[(u32, &str, &str)]| {
            let all = reading(5, &before).waited_until(&reading(at, after));
            all.into_iter().map(|task| task.pid.unwrap()).collect::<Vec<u32>>()
        };
        let late = 5 + SHORTEST.0;
        assert_eq!(waited(late, &before), [7, 8, 9]);
        assert!(waited(late - 1, &before).is_empty());
        // One has run, one runs, and another thread has the number of the third.
        let after = [(7, STAT, "100 300 4"), (8, STAT, "101 200 3"), (9, &other, "100 200 3")];
        assert!(waited(late, &after).is_empty());
        assert_eq!(waited(late, &[(8, STAT, "100 200 3"), (10, STAT, "100 200 3")]), [8]);
    }
}
