//! `wakescope watch`, run as a command, against what the kernel itself has counted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::bench::{NOBODY, Running, Test, eventually, kill, skip};
use common::following::{can_follow, can_follow_real_time, links};
use common::{Checker, read};
use serde_json::{Value, json};
use wakescope_core::units::SpanNs;
use wakescope_core::watch::{CostSource, OwnCost, Waits, Window};
use wakescope_sys::clock;
use wakescope_sys::file::effective_user;
use wakescope_sys::sched::affinity;
use workers::{Work, Workers, waits_of};

mod asleep;
#[path = "../common/mod.rs"]
mod common;
mod culprits;
mod exported;
mod live;
mod moved;
mod pictures;
mod planted;
mod pushed;
mod quotas;
mod renumbered;
mod stalled;
mod stored;
mod workers;

/// Starts a watch, and waits until its program is attached.
#[track_caller]
fn start(test: &Test, args: &[&str]) -> Running {
    let running = test.start_command(&[&["watch"], args].concat());
    eventually("the program is attached", || {
        links(running.pid()).iter().any(|(_, place)| place == "sched_switch")
    });
    running
}

/// The kernel's types, which the program is fitted to, would take more than all else for as long as it runs.
#[test]
fn memory_that_was_needed_once_is_given_back() {
    if !can_follow("memory_that_was_needed_once_is_given_back") {
        return;
    }
    let test = Test::new("memory");
    let running = start(&test, &["--interval", "1s"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let own_kib: u64 = own.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(own_kib < 10 << 10, "{own_kib} KiB");
    kill("INT", &[running.pid()]);
    assert_eq!(running.output().code, Some(0));
}

/// With places for the first CPU only, all waits on the others would be left out, and nobody would know.
#[test]
fn nothing_is_counted_where_the_list_of_cpus_cannot_be_read() {
    let name = "nothing_is_counted_where_the_list_of_cpus_cannot_be_read";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("cpus-not-listed");
    let list = "/sys/devices/system/cpu/possible";
    let unlisted = |args: &[&str]| {
        let mut unshare = test.program(Path::new("unshare"));
        let hide = format!("mount --bind /dev/null {list} && exec \"$0\" \"$@\"");
        unshare.args(["--mount", "sh", "-c", &hide]).args(args);
        Running::start(&mut unshare).output()
    };
    if unlisted(&["true"]).code != Some(0) {
        return skip(name, "no file can be mounted over the list of CPUs");
    }
    let program = test.program.to_str().unwrap();
    for (args, what) in [
        (&["watch", "--once", "--interval", "100ms"][..], "cannot watch waits"),
        (&["explain", "--comm", "sleep", "--duration", "1ms"], "cannot follow wakeups"),
        (&["explain", "--samples", "10", "--cpus", "0"], "cannot follow wakeups"),
    ] {
        let ended = unlisted(&[&[program], args].concat());
        let first = format!("wakescope: {what}: cannot read {list}: it lists no CPU\n");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.starts_with(&first), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains("\n  → mount /sys"), "{args:?}: {ended:?}");
    }
}

/// How many windows a folder has so far; it is made when the watch begins.
fn stored_lines(folder: &Path) -> usize {
    let files = wakescope_store::window_files(folder).unwrap_or_default().files;
    files.iter().map(|file| std::fs::read_to_string(file).unwrap().lines().count()).sum()
}

/// The windows that were printed, each of which fits the schema.
#[track_caller]
fn windows(stdout: &str) -> Vec<Window> {
    let schema = serde_json::from_str(&read("docs/reference/watch.schema.json")).unwrap();
    let checker = Checker::closed(schema);
    let window = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(checker.fault(&value), None, "{line}");
        let window: Window = serde_json::from_value(value).unwrap();
        let all = window.series.iter().map(|series| &series.waits);
        for waits in all.chain(window.cpus.iter().map(|cpu| &cpu.waits)).chain([&window.others]) {
            assert_eq!(waits.fault(), None, "{line}");
        }
        window
    };
    let windows: Vec<Window> = stdout.lines().map(window).collect();
    let (mut end, mut booted) = (0, 0);
    for window in &windows {
        assert_eq!(window.begin_ns, end, "{windows:?}");
        end += window.window_ns;
        // The machine is not suspended meanwhile.
        // A container may shift this clock.
        if let Some(boottime_ns) = window.boottime_ns {
            assert!(boottime_ns > booted && boottime_ns > window.begin_ns, "{windows:?}");
            booted = boottime_ns;
        }
    }
    windows
}

/// The sum and count of waits that each worker has between two sleeps are those of the kernel, to the
/// nanosecond, however often it is moved and preempted.
#[track_caller]
fn check(name: &str, cpus: &[u32], works: &[Work]) {
    let test = Test::new(name);
    let mut workers = Workers::start(cpus, works);
    let running = start(&test, &["--json", "--interval", "200ms", "--audit"]);
    workers.work(SpanNs(1_000_000_000));
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let windows = windows(&ended.stdout);
    // Where the kernel does not tell of both the begin and the end of a task's turn, its wait is missed.
    workers.compare(&windows).unwrap();
    let last = windows.last().unwrap().audit.unwrap();
    assert!(last.equal >= workers.count(), "{last:?}");
    assert!(windows.iter().all(|window| window.audit.unwrap().differing == 0), "{windows:?}");
    workers.end();
}

#[test]
fn the_books_are_those_of_the_kernel() {
    const NAME: &str = "the_books_are_those_of_the_kernel";
    if can_follow(NAME) {
        let cpus = affinity().unwrap();
        check("watch-pinned", &cpus[..1], &[Work::Spins, Work::Spins, Work::Naps]);
        check(
            "watch-moved",
            &cpus,
            &[Work::Spins, Work::Naps, Work::Naps, Work::Spins, Work::Naps],
        );
    }
}

#[test]
fn the_books_of_real_time_tasks_are_those_of_the_kernel() {
    const NAME: &str = "the_books_of_real_time_tasks_are_those_of_the_kernel";
    if !can_follow_real_time(NAME) {
        return;
    }
    let cpus = affinity().unwrap();
    check("watch-fifo", &cpus[..1], &[Work::NapsInTime, Work::Spins, Work::NapsInTime]);
}

#[test]
fn every_interval_has_its_line_and_the_end_a_table() {
    if !can_follow("every_interval_has_its_line_and_the_end_a_table") {
        return;
    }
    let test = Test::new("watch-lines");
    let running = start(&test, &["--interval", "100ms", "--rows", "3", "--audit"]);
    clock::sleep_until(clock::now().after(SpanNs(500_000_000))).unwrap();
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let (lines, table) = ended.stdout.split_once("\n\n").unwrap();
    assert!(
        lines.lines().all(|line| line.starts_with("0:0") && line.contains("own cost")),
        "{lines}"
    );
    assert!(table.starts_with("Longest wait "), "{table}");
    for told in [" task ", "more rows. All: ", " own cost ", " series ", "uncovered ", " audit: "] {
        assert!(table.contains(told), "{told}: {table}");
    }
    assert!(table.contains(" equal to the ns"), "{table}");
}

/// The message where CPUs are shared out by cgroups of version 1: all tasks may be in the root of the unified
/// hierarchy, and its row is no container.
const OLDER_CGROUPS: &str = "CPUs are shared out here by cgroups of version 1, which are not shown: the rows are \
                             cgroups of the unified hierarchy, and all tasks may be in its root\n";

fn has_older_cgroups() -> bool {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let mut lists = groups.lines().filter_map(|line| line.split(':').nth(1));
    lists.any(|list| list.split(',').any(|controller| controller == "cpu"))
}

#[test]
fn once_prints_one_table_or_one_window() {
    if !can_follow("once_prints_one_table_or_one_window") {
        return;
    }
    let test = Test::new("watch-once");
    for by in ["series", "comm", "cgroup", "cpu"] {
        let args = ["watch", "--once", "--interval", "200ms", "--by", by, "--sort", "time"];
        let table = test.ended(&args);
        assert!(table.stdout.starts_with("Longest wait "), "{table:?}");
        let told = if by == "cgroup" && has_older_cgroups() { OLDER_CGROUPS } else { "" };
        assert_eq!((table.code, &*table.stderr), (Some(0), told), "{args:?}: {table:?}");
    }
    let windows = windows(&test.done(&["watch", "--once", "--interval", "200ms", "--json"]));
    let [window] = windows.as_slice() else { panic!("{windows:?}") };
    assert!(window.window_ns >= 200_000_000 && window.left_out.uncovered_ns > 0, "{window:?}");
    let sum = |waits: &mut dyn Iterator<Item = &Waits>| {
        waits.fold(Waits::default(), |sum, one| sum.merged(one))
    };
    let series = sum(&mut window.series.iter().map(|series| &series.waits).chain([&window.others]));
    let cpus = sum(&mut window.cpus.iter().map(|cpu| &cpu.waits));
    // It was read when nothing was counted any more.
    assert_eq!(series, cpus);
    let switches: u64 = window.cpus.iter().map(|cpu| cpu.switches).sum();
    let OwnCost { agent_ns, program_ns, program_runs, source, .. } = window.own_cost;
    assert_eq!(program_runs, switches);
    // Every kernel that has the program can measure it (5.8), all of the time.
    assert_eq!(source, CostSource::Measured, "{window:?}");
    assert!(agent_ns > 0 && program_ns > Some(0), "{window:?}");
    assert_eq!(window.episodes.as_ref().unwrap().least_ns, 1_000_000, "{window:?}");
}

/// A name that would move the cursor, and one whose direction is another.
#[test]
fn hostile_names_are_harmless() {
    if !can_follow("hostile_names_are_harmless") {
        return;
    }
    let test = Test::new("watch-hostile");
    let is_over = Arc::new(AtomicBool::new(false));
    let start_named = |name: &str| {
        let is_over = Arc::clone(&is_over);
        let nap = move || {
            while !is_over.load(Ordering::Relaxed) {
                clock::sleep_until(clock::now().after(SpanNs(1_000_000))).unwrap();
            }
        };
        std::thread::Builder::new().name(name.into()).spawn(nap).unwrap()
    };
    let threads = ["\x1b[2J\x1b[Hab", "a\u{202e}b\nc"].map(start_named);
    let table = test.done(&["watch", "--once", "--interval", "300ms", "--rows", "10000"]);
    let json = test.done(&["watch", "--once", "--interval", "300ms", "--json"]);
    is_over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for text in [&table, &json] {
        assert!(!text.contains('\x1b') && !text.contains('\u{202e}'), "{text:?}");
    }
    assert!(table.contains("\u{fffd}[2J\u{fffd}[Hab"), "{table}");
    assert!(table.contains("a\u{fffd}b\u{fffd}c"), "{table}");
    let windows = windows(&json);
    assert!(waits_of(&windows, "\x1b[2J\x1b[Hab").count > 0, "{json}");
    assert!(waits_of(&windows, "a\u{202e}b\nc").count > 0, "{json}");
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    if !can_follow("a_reader_that_goes_away_ends_it") {
        return;
    }
    let test = Test::new("watch-head");
    let mut shell = test.program("/bin/sh".as_ref());
    let script = format!("{} watch --json --interval 100ms | head -n 1", test.program.display());
    let output = shell.args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(windows(&String::from_utf8(output.stdout).unwrap()).len(), 1);
}

#[test]
fn what_cannot_be_done_is_refused_with_a_remedy() {
    let mut test = Test::new("watch-refused");
    for (args, told) in [
        (&["--interval", "1ms"][..], "the shortest interval is 100 ms"),
        (&["--interval", "2h"], "the longest interval is 1.00 h"),
        (&["--duration", "0s"], "write how long to watch"),
        (&["--duration", "5"], "write 5us, 5ms or 5s"),
        (&["--once", "--duration", "5s"], "cannot be used with"),
        (&["--explain=18s"], "the longest is 17.0 s"),
        (&["--series", "0"], "0 is not in 1..="),
        (&["--rows", "0"], "0 is not in 1..="),
        (&["--by", "pid"], "invalid value 'pid'"),
        (&["--json", "--by", "cgroup"], "'--json' cannot be used with '--by"),
        (&["--json", "--sort", "max"], "'--json' cannot be used with '--sort"),
        (&["--json", "--rows", "3"], "'--json' cannot be used with '--rows"),
    ] {
        let ended = test.ended(&[&["watch"], args].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
    }
    if effective_user() != 0 {
        return;
    }
    test.become_nobody();
    let ended = test.ended(&["watch", "--once"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.starts_with("wakescope: cannot watch waits: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("\n  → run as root"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("→ or read what the kernel counts by itself"),
        "{}",
        ended.stderr
    );
    assert_eq!(test.user, Some(NOBODY));
}

/// A container has its own thread IDs; what is counted needs none.
#[test]
fn in_a_container_it_counts_and_is_not_audited() {
    let name = "in_a_container_it_counts_and_is_not_audited";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("watch-container");
    if !test.can_be_contained(name) {
        return;
    }
    let program = test.program.display().to_string();
    let ended = test.contained(&[&program, "watch", "--duration=200ms", "--interval=100ms"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = test.contained(&[&program, "watch", "--duration=200ms", "--audit"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("PID namespace"), "{}", ended.stderr);
    assert!(ended.stderr.contains("→ omit --audit"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("--comm"), "{}", ended.stderr);
}

/// Without the capability to look names up, that is said, and not only shown.
#[test]
fn cgroups_without_names_are_explained() {
    let name = "cgroups_without_names_are_explained";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("watch-capabilities");
    let program = test.program.display().to_string();
    let watch = |more: &[&str]| {
        let mut setpriv = test.program(Path::new("setpriv"));
        setpriv.args(more).args([&program, "watch", "--once", "--interval", "100ms"]);
        Running::start(&mut setpriv).output()
    };
    let whole = watch(&[]);
    let less = watch(&["--bounding-set=-dac_read_search", "--inh-caps=-dac_read_search"]);
    for (ended, is_told) in [(whole, false), (less, true)] {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stderr.contains("CAP_DAC_READ_SEARCH"), is_told, "{ended:?}");
    }
}

#[test]
fn damaged_windows_do_not_fit_the_schema() {
    let schema: Value = serde_json::from_str(&read("docs/reference/watch.schema.json")).unwrap();
    let waits = json!({"count": 1, "sum_ns": 5, "max_ns": 5, "max_is_exact": true, "min_ns": 5, "min_is_exact": true,
        "histogram": [[0, 128, 1]]});
    let task = json!({"comm": "a", "pid": 7, "policy": "fifo", "priority": 50});
    let mut culprit = task.clone();
    culprit["kind"] = json!("task");
    let mut whole = json!({
        "schema": "wakescope.watch/1", "started": "2026-11-21T01:00:00Z", "begin_ns": 0, "window_ns": 1,
        "from": "queued", "series": [{"cgroup_id": 1, "cgroup": "/", "comm": "a", "waits": waits}],
        "others": waits, "cpus": [{"cpu": 0, "switches": 1, "waits": waits}],
        "left_out": {"uncovered_ns": 0, "unstamped": 0, "discarded": 0, "untracked": 0, "first": 0, "caught_up": 0,
            "missed": 0, "missed_ns": 0, "contradicted": 0},
        "moved": {"count": 0, "before_ns": 0}, "series_used": 1, "series_limit": 9,
        "own_cost": {"agent_ns": 1, "program_ns": null, "program_runs": 1, "source": "unknown", "cpus": 2},
        "audit": {"equal": 0, "behind": 0, "differing": 0, "largest_ns": 0, "busy": 0, "gone": 0,
            "not_reached": 0, "waits": 0},
        "episodes": {"least_ns": 1_000_000, "long_waits": 1,
            "not_measured": {"interrupts": true, "steal": false, "quota": false}, "longest": [{
                "end_ns": 9, "cpu": 0, "ns": 2_000_000, "task": task, "cgroup_id": 1, "cgroup": null,
                "cause": "equal_or_lower_task", "culprit": culprit, "throttled_ns": 0, "irq_ns": 0,
                "steal_ns": 0, "moved_ns": 0, "unexplained_ns": 0,
                "occupants": [{"task": task, "cgroup_id": 1, "cgroup": "/", "ns": 2_000_000}]}]}
    });
    // The macro takes no more keys.
    whole["boottime_ns"] = Value::Null;
    let checker = Checker::closed(schema);
    assert_eq!(checker.fault(&whole), None);
    assert!(serde_json::from_value::<Window>(whole.clone()).is_ok());
    for (pointer, damage) in [
        ("/schema", json!("wakescope.watch/2")),
        ("/started", json!("now")),
        ("/from", json!("waking")),
        ("/series/0/waits/histogram/0", json!([1, 2])),
        ("/series/0/waits/histogram/0/2", json!(0)),
        ("/series/0/waits/histogram", json!("@0 0")),
        ("/series/0/waits/histogram", json!("1 2")),
        ("/others", json!(null)),
        ("/own_cost/source", json!("guessed")),
        ("/left_out/missed", json!(-1)),
        ("/audit/equal", json!("all")),
        ("/episodes/longest/0/cause", json!("bad luck")),
        ("/episodes/longest/0/task/comm", json!(null)),
        ("/episodes/longest/0/occupants", json!("nobody")),
        ("/episodes/not_measured/quota", json!(1)),
    ] {
        let mut damaged = whole.clone();
        *damaged.pointer_mut(pointer).unwrap() = damage;
        assert!(checker.fault(&damaged).is_some(), "{pointer}");
    }
}
