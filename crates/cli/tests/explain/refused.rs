//! What cannot be done as asked.

use std::fs;
use std::path::Path;

use wakescope_sys::file::effective_user;

use crate::common::bench::{Running, Test, skip};
use crate::common::following::{can_follow, explain};
use crate::common::measured::names;

/// Arguments that are refused before anything is looked at, and a piece of what is said about it.
/// `run` was measured, and not explained; `broken` is no record.
const REFUSED: [(&str, &str); 30] = [
    ("--above 0us", "write a time, as in 50us"),
    ("--above -1us", "`-1us` is negative"),
    ("--above p100", "write p50, p99.9 or p99.999"),
    ("--above late", "or a percentile, as in p99.9"),
    ("--pid 0", "write the ID of a process or thread, 1 or higher"),
    ("--pid sshd", "see ps -eL); --comm takes names"),
    ("--pid 1 --comm sh", "'--pid <PID>' cannot be used with '--comm"),
    ("--pid 1 --cgroup /", "'--pid <PID>' cannot be used with '--cgroup"),
    ("--pid 1 --interval 2ms", "'--pid <PID>' cannot be used with '--interval"),
    ("--comm sh --fail-above 1ms", "'--comm <NAME>' cannot be used with '--fail-above"),
    ("--cgroup / --save-samples", "'--cgroup <DIR>' cannot be used with '--save-samples"),
    ("--pid 1 --samples 10", "→ set how long to follow them: --duration"),
    ("--pid 1 --load cpu", "→ run the load separately: wakescope load"),
    ("--episodes=-1", "invalid digit found in string"),
    ("--samples 10 --vmlinux missing", "→ name the kernel's vmlinux: --vmlinux FILE"),
    ("--samples 10 --vmlinux /", "cannot use the image /: it is not a regular file"),
    ("--samples 10 --vmlinux /dev/zero", "it is not a regular file"),
    ("--samples 10 --vmlinux run/run.json", "it is not a complete 64-bit ELF file"),
    ("--comm sh --vmlinux run/run.json", "→ name the uncompressed vmlinux"),
    ("missing", "→ name a run folder"),
    ("broken", "→ name another run's folder"),
    ("run", "explain a new run"),
    ("run/run.json --json", "causes are recorded only while wakescope explain measures"),
    ("run --above 5us", "'[RUN]' cannot be used with '--above"),
    ("run --sections", "'[RUN]' cannot be used with '--sections"),
    ("run --bound", "'[RUN]' cannot be used with '--bound"),
    ("run --duration 5s", "'[RUN]' cannot be used with '--duration"),
    ("run --comm sh", "'[RUN]' cannot be used with '--comm"),
    ("run --fail-above 1ms", "'[RUN]' cannot be used with '--fail-above"),
    ("run run", "unexpected argument 'run' found"),
];

/// The same, of what is asked of the kernel.
const NOT_THERE: [(&str, &str); 6] = [
    ("--pid 99999999", "no process or thread has the ID 99999999"),
    ("--pid 4294967295", "→ name existing threads: ps -eL"),
    ("--comm sixteen-bytes-xx", "names have 1 to 15 bytes"),
    ("--cgroup /tmp", "/tmp is not a cgroup"),
    ("--cgroup /does/not/exist", "/does/not/exist is not a cgroup"),
    ("--cgroup run/run.json", "run/run.json is not a cgroup"),
];

#[track_caller]
fn check(test: &Test, args: &str, text: &str) {
    let before = (names(&test.dir), names(&test.dir.join("run")));
    let ended = explain(test, &args.split(' ').collect::<Vec<_>>());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args}: {ended:?}");
    assert!(ended.stderr.contains(text), "{args}: {}", ended.stderr);
    assert_eq!((names(&test.dir), names(&test.dir.join("run"))), before, "{args}");
}

#[test]
fn bad_arguments_are_refused_with_a_remedy() {
    let test = Test::new("explain-arguments");
    let measured = test.measure(&["--samples", "1", "--out", "run"]);
    assert_eq!(measured.code, Some(0), "{measured:?}");
    fs::create_dir(test.dir.join("broken")).unwrap();
    fs::write(test.dir.join("broken").join("run.json"), "[]").unwrap();
    // What follows is refused whoever asks.
    for (args, text) in REFUSED {
        check(&test, args, text);
    }
    if can_follow("bad_arguments_are_refused_with_a_remedy: threads that are not there") {
        for (args, text) in NOT_THERE {
            check(&test, args, text);
        }
    }
}

#[test]
fn in_a_container_numbers_of_threads_are_not_guessed() {
    let name = "in_a_container_numbers_of_threads_are_not_guessed";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("container");
    if !test.can_be_contained(name) {
        return;
    }
    let program = test.program.display().to_string();
    for whose in ["--samples=10", "--pid=1"] {
        let ended = test.contained(&[&program, "explain", whose]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{whose}: {ended:?}");
        assert!(ended.stderr.contains("PID namespace"), "{whose}: {}", ended.stderr);
        assert_eq!(names(&test.dir), [""; 0], "{whose}");
    }
    let ended = test.contained(&[&program, "explain", "--comm", "nobody", "--duration", "10ms"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("No wakeup was seen.\n"), "{}", ended.stdout);
}

/// The kernel's programs read another clock than a process whose namespace shifts it.
#[test]
fn a_shifted_clock_is_refused() {
    let name = "a_shifted_clock_is_refused";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("shifted");
    let shifted = |args: &[&str]| {
        let mut unshare = test.program(Path::new("unshare"));
        unshare.args(["--time", "--fork", "--monotonic", "100000"]).args(args);
        Running::start(&mut unshare).output()
    };
    if shifted(&["true"]).code != Some(0) {
        return skip(name, "a time namespace cannot be made with unshare");
    }
    let program = test.program.display().to_string();
    for (args, what) in [
        (&["explain", "--samples=10"][..], "follow wakeups"),
        (&["explain", "--comm=nobody", "--duration=10ms"], "follow wakeups"),
        (&["watch", "--once", "--interval=100ms"], "watch waits"),
        // Their stamps are the kernel's, too. Whether there is such a device is of no matter.
        (&["measure", "--samples=10", "--stimulus=device"], "wake the probe by device"),
        (&["measure", "--samples=10", "--stimulus=audio", "--pcm=hw:0,0"], ""),
        (&["respond", "/dev/null:1:2"], ""),
    ] {
        let ended = shifted(&[&[&*program], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        let cannot = if what.is_empty() { String::new() } else { format!("cannot {what}: ") };
        let want = format!("wakescope: {cannot}this time namespace shifts CLOCK_MONOTONIC");
        assert!(ended.stderr.starts_with(&want), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("→ run outside the container"), "{}", ended.stderr);
        assert_eq!(names(&test.dir), [""; 0], "{args:?}");
    }
    // So are those of sections that the module makes.
    let ended = shifted(&[&program, "load", "disturb-irqs-off-300us", "--duration=1s"]);
    for want in ["this time namespace shifts CLOCK_MONOTONIC", "→ run outside the container"] {
        assert!(ended.code == Some(2) && ended.stderr.contains(want), "{ended:?}");
    }
}

#[test]
fn without_privileges_it_says_which_it_takes() {
    let mut test = Test::new("explain-nobody");
    if effective_user() == 0 {
        test.become_nobody();
    } else if can_load_programs() {
        let name = "without_privileges_it_says_which_it_takes";
        return skip(name, "this user is not root, and has the privileges all the same");
    }
    for args in ["--samples 10", "--comm sh", "--pid 1 --out new/run"] {
        let before = names(&test.dir);
        let ended = explain(&test, &args.split(' ').collect::<Vec<_>>());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args}: {ended:?}");
        for word in ["cannot follow wakeups", "CAP_BPF", "CAP_PERFMON", "→ run as root"] {
            assert!(ended.stderr.contains(word), "{args}: {word}: {}", ended.stderr);
        }
        // What exactly the kernel refused first depends on chance, and on nothing that helps.
        let first = "wakescope: cannot follow wakeups: this process may not load BPF programs: \
                     operation not permitted\n";
        assert!(ended.stderr.starts_with(first), "{args}: {}", ended.stderr);
        assert_eq!(names(&test.dir), before, "{args}");
    }
}

fn can_load_programs() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    held.is_some_and(|hex| u64::from_str_radix(hex.trim(), 16).unwrap() != 0)
}
