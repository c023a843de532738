//! Few rights and few CPUs: unprivileged users, cpusets, read-only places, other measurements.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use wakescope_core::finding::{Severity, Verdict};
use wakescope_core::plan::ProbePolicy;
use wakescope_core::run::{Run, State};
use wakescope_sys::file::effective_user;
use wakescope_sys::sched;

use crate::common::bench::{Running, Test, eventually, eventually_some, kill, skip};
use crate::common::measured::{RECORD, allowed_cpus, assert_found, finding, names, record};

/// A test whose commands run without privileges.
fn unprivileged(name: &str) -> Test {
    let mut test = Test::new(name);
    if effective_user() == 0 {
        test.become_nobody();
    }
    test
}

#[test]
fn no_privileges_are_needed_to_measure() {
    if sched::rt_priority_limit().unwrap() > 0 {
        return skip("no_privileges_are_needed_to_measure", "everybody may be real-time here");
    }
    let test = unprivileged("measure-nobody");
    let run = test.measured(&["--samples", "100"]);
    assert_eq!((run.plan.policy, run.plan.priority), (ProbePolicy::Other, None));
    assert!(run.threads.iter().all(|t| t.woken.count == 100), "{:?}", run.threads);
    let finding = assert_found(&run, "unprivileged");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.hint.contains("setcap"), "{finding:?}");
    assert_eq!(run.validity.verdict, Verdict::Degraded, "{:?}", run.validity);
}

#[test]
fn a_stack_without_room_is_refused_before_it_overflows() {
    let test = Test::new("small-stack");
    for (kib, code) in [(64, 2), (1_023, 2), (1_024, 0)] {
        let mut command = test.program(Path::new("/bin/sh"));
        let script = format!("ulimit -s {kib} && exec \"$0\" --help");
        let ended = Running::start(command.args(["-c", &script]).arg(&test.program)).output();
        assert_eq!(ended.code, Some(code), "{kib}: {ended:?}");
        let is_told = ended.stderr.contains(&format!("a stack of {kib} KiB"))
            && ended.stderr.contains("→ raise the limit of the stack: ulimit -s 1024");
        assert_eq!(is_told, code != 0, "{kib}: {ended:?}");
    }
}

#[test]
fn what_takes_privileges_is_refused_to_those_who_have_none() {
    let test = unprivileged("refuse-nobody");
    let before = names(&test.dir);
    let is_real_time = sched::rt_priority_limit().unwrap() > 0;
    for (args, text) in [
        (
            &["--policy", "fifo"][..],
            ["SCHED_FIFO 90: Operation not permitted", "RLIMIT_RTPRIO", "→ run as root"],
        ),
        (&["--priority", "5"], ["SCHED_FIFO 5", "RLIMIT_RTPRIO", "--policy other"]),
        (
            &["--idle-states", "shallow"],
            ["/dev/cpu_dma_latency", "→ run as root", "--idle-states as-is"],
        ),
    ] {
        if is_real_time && args[0] != "--idle-states" {
            skip("what_takes_privileges_is_refused", "everybody may be real-time here");
            continue;
        }
        let ended = test.measure(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        for part in text {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
        assert_eq!(names(&test.dir), before, "{args:?}");
    }
}

/// The kernel says no more than "Resource temporarily unavailable".
#[test]
fn where_no_thread_can_be_started_the_limit_is_named() {
    let test = unprivileged("no-threads");
    let own = ["this user (ulimit -u)", "→ raise that limit"];
    let of_load = ["of this user (ulimit -u)", "→ raise the limit of processes and threads"];
    for (limit, args, told) in [
        (1, "measure --samples 10 --cpus 0 --policy other", own),
        (1, "measure --samples 10 --cpus 0 --policy other --stimulus futex", own),
        (1, "measure --samples 10 --cpus 0 --policy other --load cpu", own),
        (1, "load find --duration 1ms", own),
        // The load's process has room, and its thread has none.
        (2, "load find --duration 1ms", of_load),
    ] {
        let started = || {
            let mut limited = test.program(Path::new("prlimit"));
            limited.arg(format!("--nproc={limit}")).arg(&test.program).args(args.split(' '));
            Running::start(&mut limited).output()
        };
        // Other tests have processes of this user, too, which count while they run.
        let ended = eventually_some(&format!("{args} is told that {told:?}"), || {
            let ended = started();
            assert_eq!(ended.code, Some(2), "{args}: {ended:?}");
            assert!(ended.stderr.contains("(os error 11)"), "{args}: {}", ended.stderr);
            told.iter().all(|part| ended.stderr.contains(part)).then_some(ended)
        });
        for wrong in ["--dir", "--stimulus futex", "see whether CPU"] {
            assert!(!ended.stderr.contains(wrong), "{args}: {wrong}: {}", ended.stderr);
        }
        test.assert_nothing_is_left();
    }
}

#[test]
fn who_is_started_under_sched_deadline_is_told_that_it_cannot_start_threads() {
    let name = "who_is_started_under_sched_deadline_is_told_that_it_cannot_start_threads";
    let test = Test::new("started-under-deadline");
    let under = |args: &[&str]| {
        let mut chrt = test.program(Path::new("chrt"));
        let times = ["runtime=5000000", "deadline=50000000", "period=50000000"];
        chrt.arg("-d").args(times.map(|time| format!("--sched-{time}"))).arg("0").args(args);
        Running::start(&mut chrt).output()
    };
    if under(&["true"]).code != Some(0) {
        return skip(name, "chrt cannot give SCHED_DEADLINE here");
    }
    let program = test.program.to_str().unwrap();
    let ended = under(&[program, "measure", "--samples", "10"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no task of SCHED_DEADLINE start threads"), "{}", ended.stderr);
    assert!(ended.stderr.contains("→ start it without chrt -d"), "{}", ended.stderr);
}

#[test]
fn a_read_only_place_is_no_obstacle_to_out() {
    let test = unprivileged("read-only");
    // Not even root may make a folder in /proc.
    let sealed = test.dir.join("sealed");
    fs::create_dir(&sealed).unwrap();
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o555)).unwrap();
    for (test, place) in [(&test, sealed.as_path()), (&Test::new("in-proc"), Path::new("/proc"))] {
        let measure = |args: &[&str]| {
            let mut command = test.command(&[&["measure", "--samples", "1"], args].concat());
            Running::start(command.current_dir(place)).output()
        };
        let ended = measure(&[]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("cannot create the run's folder runs"), "{}", ended.stderr);
        assert!(ended.stderr.contains("→ ") && ended.stderr.contains("--out"), "{}", ended.stderr);
        let elsewhere = test.dir.join("elsewhere");
        let ended = measure(&["--out", &elsewhere.display().to_string()]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(record(&elsewhere).state, State::Complete);
    }
    assert_eq!(names(&sealed), [""; 0]);
}

/// A run, and a refusal, in a place that leaves only `cpu`; `command` makes what runs there.
fn check_confined(test: &Test, cpu: u32, start: impl Fn(&[&str]) -> Running) {
    let ended = start(&["measure", "--samples", "100", "--out", "run"]).output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run: Run = record(&test.dir.join("run"));
    assert_eq!(run.plan.cpus, [cpu]);
    let [thread] = run.threads.as_slice() else { panic!("{:?}", run.threads) };
    assert_eq!((thread.cpu, thread.woken.count, thread.migrated), (Some(cpu), 100, 0));
    assert_eq!(finding(&run, "not-pinned"), None);

    let Some(other) = allowed_cpus().into_iter().find(|&other| other != cpu) else {
        return skip("a CPU outside the cpuset is refused", "there is only one CPU");
    };
    let ended = start(&["measure", "--cpus", &other.to_string(), "--out", "other"]).output();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    let refused = format!("this process may not use CPU {other}");
    for part in [&refused, &format!("it may use {cpu}\n"), "--cpus"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!test.dir.join("other").exists());
}

#[test]
fn an_affinity_of_one_cpu_is_kept_to() {
    for cpu in allowed_cpus() {
        let test = Test::new("affinity");
        check_confined(&test, cpu, |args| {
            // A child has the affinity of the thread that starts it.
            let start = || {
                sched::set_affinity(&[cpu]).unwrap();
                test.start_command(args)
            };
            std::thread::scope(|scope| scope.spawn(start).join().unwrap())
        });
    }
}

/// A control group that leaves its tasks one CPU. Removed at the end.
struct Cpuset {
    folder: PathBuf,
    tasks: &'static str,
}

impl Cpuset {
    /// `None`, and so said for `test`, if none can be made.
    fn of(cpu: u32, test: &str) -> Option<Self> {
        let name = format!("wakescope-test-{}-{cpu}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/cpuset");
        let v2 = Path::new("/sys/fs/cgroup");
        // In a hierarchy of version 2, only where somebody gave the controller to groups already:
        // the machine's own groups are not to be changed.
        let given = fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap_or_default();
        let (parent, tasks) = if v1.join("cpuset.mems").exists() {
            (v1, "tasks")
        } else if given.split_whitespace().any(|c| c == "cpuset") {
            (v2, "cgroup.procs")
        } else {
            skip(test, "there is no cpuset hierarchy at /sys/fs/cgroup");
            return None;
        };
        let cpuset = Self { folder: parent.join(name), tasks };
        let made = fs::create_dir(&cpuset.folder).and_then(|()| {
            if tasks == "tasks" {
                let mems = fs::read(parent.join("cpuset.mems"))?;
                fs::write(cpuset.folder.join("cpuset.mems"), mems)?;
            }
            fs::write(cpuset.folder.join("cpuset.cpus"), cpu.to_string())
        });
        if let Err(e) = made {
            skip(test, &format!("no cpuset can be made below {}: {e}", parent.display()));
            return None;
        }
        Some(cpuset)
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        // A group can be removed once its last task is gone for good.
        if self.folder.exists() {
            eventually("the cpuset is removed", || fs::remove_dir(&self.folder).is_ok());
        }
    }
}

#[test]
fn a_container_with_one_cpu_is_kept_to() {
    for cpu in allowed_cpus() {
        let Some(cpuset) = Cpuset::of(cpu, "a_container_with_one_cpu_is_kept_to") else { return };
        let test = Test::new("cpuset");
        check_confined(&test, cpu, |args| {
            let mut shell = test.program(Path::new("/bin/sh"));
            shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
            shell.arg(cpuset.folder.join(cpuset.tasks)).arg(&test.program).args(args);
            Running::start(&mut shell)
        });
    }
}

/// How to begin a network namespace of one's own, and how to enter that of another process.
const NAMESPACE: [[&[&str]; 2]; 2] =
    [[&["-n"], &["-n"]], [&["-rn"], &["-U", "-n", "--preserve-credentials"]]];

#[test]
fn two_measurements_at_once_know_of_each_other() {
    let name = "two_measurements_at_once_know_of_each_other";
    // Other tests measure these CPUs too. Where they cannot be seen, there are just two.
    let [begin, enter] = NAMESPACE[usize::from(effective_user() != 0)];
    let tried = Command::new("unshare").args(begin).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return skip(name, "unshare cannot make a network namespace");
    }
    let test = Test::new("two");
    let mut first = test.program(Path::new("unshare"));
    first.args(begin).arg(&test.program).args(["measure", "--duration", "1h"]);
    let first = Running::start(&mut first);
    let first_folder = test.await_samples();
    let mut second = test.program(Path::new("nsenter"));
    second.arg("-t").arg(first.pid().to_string()).args(enter).arg("--").arg(&test.program);
    let ended = Running::start(second.args(["measure", "--duration", "300ms"])).output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    kill("INT", &[first.pid()]);
    let ended = first.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");

    let runs = test.runs();
    assert!(runs.len() == 2 && runs.contains(&first_folder), "{runs:?}");
    for folder in runs {
        let run = record(&folder);
        let finding = assert_found(&run, "busy-probe");
        let cpus: Vec<_> = allowed_cpus().iter().map(u32::to_string).collect();
        assert!(finding.message.contains(&cpus.join(", ")), "{finding:?}");
        assert_eq!(names(&folder), [RECORD]);
    }
}
