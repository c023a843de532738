//! What it takes to follow wakeups, and how to ask for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wakescope_core::explain::Share;
use wakescope_core::run::{Episode, Run};
use wakescope_sys::file::effective_user;
use wakescope_sys::sched::{Schedule, set_schedule};

use crate::common::bench::{Ended, Running, Test, eventually, skip};
use crate::common::measured::{allowed_cpus, record};

/// Whether wakeups can be followed here. If not, says for `test` why.
pub(crate) fn can_follow(test: &str) -> bool {
    let why = obstacle();
    why.inspect(|why| skip(test, why)).is_none()
}

/// The same, and whether threads of the test may have a real-time priority.
pub(crate) fn can_follow_real_time(test: &str) -> bool {
    let may = || set_schedule(Schedule::Fifo { priority: 1 }).is_ok();
    if !can_follow(test) {
        return false;
    }
    let may = std::thread::spawn(may).join().unwrap();
    if !may {
        skip(test, "no thread may have a real-time priority");
    }
    may
}

static CPUS: Mutex<()> = Mutex::new(());

/// The CPUs, for a test whose real-time thread leaves others little of one, or whose threads must have one between
/// them. Tests that ask for them run one after the other.
pub(crate) fn cpus_alone() -> MutexGuard<'static, ()> {
    CPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A CPU that the command does not need itself, where wakeups can be followed. If there is none, says for `test` why.
pub(crate) fn other_cpu(test: &str) -> Option<u32> {
    match allowed_cpus()[..] {
        _ if !can_follow(test) => None,
        [_, .., cpu] => Some(cpu),
        _ => {
            skip(test, "only one CPU is usable, which this command needs itself");
            None
        }
    }
}

/// How much of the late time of `episodes` is in shares that are of `which`, ns.
pub(crate) fn sum_ns(episodes: &[Episode], which: impl Fn(&Share) -> bool) -> u64 {
    let shares = episodes.iter().flat_map(|episode| &episode.blame);
    shares.filter(|share| which(share)).map(|share| share.ns).sum()
}

fn obstacle() -> Option<&'static str> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    if effective_user() != 0 {
        return Some("only root may follow wakeups");
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Some("the kernel provides no BTF type information");
    }
    let status = read("/proc/self/status");
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = held.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    // Numbers of include/uapi/linux/capability.h: SYS_ADMIN, PERFMON and BPF.
    let has = |capability: u32| held & 1 << capability != 0;
    let may_load = has(21) || (has(38) && has(39));
    if !may_load {
        return Some("this root has no CAP_BPF and CAP_PERFMON");
    }
    if read("/sys/kernel/security/lockdown").contains("[confidentiality]") {
        return Some("the kernel is locked down");
    }
    None
}

/// Runs `wakescope explain` with `args` to its end, whatever that is.
pub(crate) fn explain(test: &Test, args: &[&str]) -> Ended {
    start_explain(test, args).output()
}

pub(crate) fn start_explain(test: &Test, args: &[&str]) -> Running {
    test.start_command(&[&["explain"], args].concat())
}

/// Runs `wakescope explain` with `args`, of which the last names the run, and which must end well.
/// The record, and what was printed.
#[track_caller]
pub(crate) fn explained(test: &Test, args: &[&str]) -> (Run, String) {
    let ended = explain(test, args);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
    (record(&test.dir.join(args[args.len() - 1])), ended.stdout)
}

/// Waits until the last of its programs is attached.
#[track_caller]
pub(crate) fn await_programs(running: &Running) {
    eventually("all programs are attached", || {
        links(running.pid()).iter().any(|(_, place)| place == "hrtimer_expire_entry")
    });
}

/// Programs that a process keeps attached: their numbers, and the tracepoints.
pub(crate) fn links(pid: i32) -> BTreeSet<(u32, String)> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let link = |text: String| {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim_start_matches(':').trim().to_owned())
        };
        value("link_id").and_then(|_| Some((value("prog_id")?.parse().ok()?, value("tp_name")?)))
    };
    // What is closed meanwhile is none any more.
    files.filter_map(|file| link(fs::read_to_string(file.path()).ok()?)).collect()
}
