//! Probes that another thread wakes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use wakescope_core::finding::Severity;
use wakescope_core::limit::Outcome;
use wakescope_core::plan::{Between, Placement, Stimulus, Waker};
use wakescope_core::run::{Run, State};
use wakescope_core::source::Quantity;
use wakescope_sys::sched::{Schedule, set_schedule};

use crate::common::bench::{Running, Test, eventually, eventually_some, kill, skip};
use crate::common::measured::{RECORD, allowed_cpus, assert_found, await_samples_in, record};
use crate::common::{Checker, read};

/// A run whose probes are woken by others must account for each of their calls.
#[track_caller]
fn assert_calls_are_accounted_for(run: &Run, points: u64) {
    for thread in &run.threads {
        // Each call was a wakeup or is accounted for; one may fall while the probe is late.
        let calls = thread.woken.count + thread.not_asleep + thread.skipped;
        assert!(thread.woken.count > 0 && calls <= points, "{thread:?}");
        assert!(thread.woken.min_ns > Some(0), "{thread:?}");
        assert_eq!(thread.expiries.count, thread.woken.count + thread.missed);
    }
}

#[test]
fn a_probe_can_be_woken_by_another_thread() {
    let wakers = Stimulus::OF_PROBES.iter().copied().filter(|stimulus| stimulus.needs_waker());
    for stimulus in wakers {
        for (between, name) in [(Between::Threads, "threads"), (Between::Processes, "processes")] {
            let test = Test::new(&format!("{stimulus}-{name}"));
            let args = ["--stimulus", stimulus.name(), "--between", name, "--interval", "500us"];
            let args = [&args[..], &["--warmup", "50ms"]].concat();
            let ended = test.measure(&[&args[..], &["--duration", "300ms"]].concat());
            if ended.code == Some(2) && ended.stderr.contains("this kernel is built without") {
                skip(&format!("a_probe_can_be_woken_by_another_thread, {stimulus}"), &ended.stderr);
                continue;
            }
            assert_eq!(ended.code, Some(0), "{stimulus}, {name}: {ended:?}");
            let run = record(&test.run_folder());
            assert_eq!((run.state, run.plan.stimulus), (State::Complete, stimulus));
            let waker = run.plan.waker.clone().expect("a waker");
            assert_eq!(waker, Waker { between, ..Waker::of_probe(run.plan.priority) });
            assert_calls_are_accounted_for(&run, 600);
            // The number of wakeups ends it, too.
            let run = test.measured(&[&args[..], &["--samples", "100"]].concat());
            assert!(run.threads.iter().all(|t| t.woken.count == 100), "{:?}", run.threads);
        }
    }
}

#[test]
fn wakers_run_where_they_are_asked_to() {
    let test = Test::new("places");
    let cpus = allowed_cpus();
    let [first, .., last] = cpus.as_slice() else {
        let ended = test.measure(&["--stimulus", "pipe", "--place", "cross-cpu"]);
        assert!(ended.code == Some(2) && ended.stderr.contains("--place same-cpu"), "{ended:?}");
        return skip("wakers_run_where_they_are_asked_to", "there is one CPU");
    };
    let (first, last) = (*first, *last);
    let args = ["--stimulus", "pipe", "--duration", "200ms", "--warmup", "50ms", "--place"];
    let pair = format!("{last}:{first}");
    let cross: Vec<u32> = cpus.iter().copied().cycle().skip(1).take(cpus.len()).collect();
    for (place, probes, wakers) in
        [("cross-cpu", cpus.clone(), cross), (pair.as_str(), vec![first], vec![last])]
    {
        let run = test.measured(&[&args[..], &[place]].concat());
        let waker = run.plan.waker.clone().expect("a waker");
        assert_eq!((run.plan.cpus.clone(), waker.cpus), (probes, wakers), "{place}");
        assert_eq!(waker.placement, Placement::CrossCpu);
        assert_calls_are_accounted_for(&run, 200);
    }
    // On one CPU only there is no other.
    let one = first.to_string();
    let mut alone = test.program(Path::new("taskset"));
    alone.args(["-c", &one, env!("CARGO_BIN_EXE_wakescope"), "measure"]).args(args);
    let ended = Running::start(alone.arg("cross-cpu")).output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in ["needs two CPUs", "--place same-cpu"] {
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
}

/// Kills the process that wakes the probe of a run, once that has samples.
fn kill_waker_of(test: &Test, running: &Running, out: &Path) {
    eventually_some("the run begins", || out.join(RECORD).exists().then_some(()));
    await_samples_in(out);
    let processes: Vec<i32> = test.processes().into_keys().collect();
    let wakers: Vec<i32> = processes.into_iter().filter(|&p| p != running.pid()).collect();
    assert_eq!(wakers.len(), 1, "{wakers:?}");
    kill("KILL", &wakers);
}

#[test]
fn a_series_says_that_one_of_its_runs_ended_early() {
    let test = Test::new("killed-waker-of-series");
    let cpu = allowed_cpus()[0].to_string();
    let out = test.dir.join("series");
    let args = ["--stimulus", "pipe", "--between", "both", "--duration", "3s", "--cpus", &cpu];
    let running = test.start_measure(&[&args[..], &["--out", out.to_str().unwrap()]].concat());
    kill_waker_of(&test, &running, &out.join("processes"));
    let ended = running.output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("1 of 2 runs ended early"), "{ended:?}");
    assert!(ended.stdout.contains("processes"), "the table is shown: {ended:?}");
}

#[test]
fn a_waker_that_is_killed_ends_the_measurement_of_its_probe() {
    let test = Test::new("killed-waker");
    let cpu = allowed_cpus()[0].to_string();
    for stimulus in ["pipe", "condvar", "sysv-semaphore"] {
        let out = test.dir.join(stimulus);
        let args = ["--stimulus", stimulus, "--between", "processes", "--duration", "1h"];
        let named = ["--cpus", cpu.as_str(), "--out", out.to_str().unwrap()];
        let running = test.start_measure(&[&args[..], &named].concat());
        kill_waker_of(&test, &running, &out);
        let ended = running.output();
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let run = record(&out);
        let finding = assert_found(&run, "waker-lost");
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.message.contains("the process that wakes the probe has ended"));
        assert_eq!(run.state, State::Interrupted);
        assert!(run.threads[0].woken.count > 0);
    }
}

#[test]
fn semaphores_of_a_killed_run_are_removed_by_the_next() {
    const TEST: &str = "semaphores_of_a_killed_run_are_removed_by_the_next";
    let test = Test::new("semaphores");
    let Ok(list) = fs::read_to_string("/proc/sysvipc/sem") else {
        return skip(TEST, "this kernel is built without System V IPC");
    };
    let sets = |list: &str| -> Vec<String> {
        let ids = list.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
        ids.map(str::to_owned).collect()
    };
    let before = sets(&list);
    let now = || sets(&fs::read_to_string("/proc/sysvipc/sem").unwrap());
    let args = ["--stimulus", "sysv-semaphore", "--duration", "1h"];
    let running = test.start_measure(&args);
    test.await_samples();
    let left: Vec<String> = now().into_iter().filter(|id| !before.contains(id)).collect();
    kill("KILL", &[running.pid()]);
    drop(running);
    // Other tests may use sets of their own meanwhile; those of the killed run are some of these.
    assert!(left.iter().any(|id| now().contains(id)), "{left:?}");
    test.measured(&["--samples", "10", "--warmup", "10ms"]);
    let gone = || left.iter().all(|id| !now().contains(id)).then_some(());
    eventually_some("all of them are gone", gone);
}

#[test]
fn stimuli_through_the_network_are_refused_where_there_is_none() {
    let test = Test::new("no-network");
    for stimulus in ["udp", "tcp"] {
        let mut apart = test.program(Path::new("unshare"));
        apart.args(["-n", env!("CARGO_BIN_EXE_wakescope"), "measure", "--stimulus", stimulus]);
        let ended = Running::start(&mut apart).output();
        let text = &ended.stderr;
        if text.contains("unshare failed") {
            let name = "stimuli_through_the_network_are_refused_where_there_is_none";
            return skip(name, "a network of one's own is not permitted");
        }
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let want = format!("cannot wake the probe by {stimulus}");
        assert!(text.contains(&want) && text.contains("ip link set lo up"), "{text}");
        assert_eq!(test.runs(), Vec::<PathBuf>::new(), "nothing is left");
    }
}

#[test]
fn message_queues_that_there_is_no_room_for_are_refused_with_a_remedy() {
    let test = Test::new("no-queues");
    // None has room, and one has, but no second one: its bytes are more than half of these.
    for bytes in ["0", "100"].into_iter().take(allowed_cpus().len()) {
        let mut limited = test.program(Path::new("prlimit"));
        limited.args([&format!("--msgqueue={bytes}"), env!("CARGO_BIN_EXE_wakescope"), "measure"]);
        let ended = Running::start(limited.args(["--stimulus", "mqueue"])).output();
        assert_eq!(ended.code, Some(2), "{bytes}: {ended:?}");
        let want = "cannot wake the probe by mqueue: the room for this user's message queues";
        let text = &ended.stderr;
        assert!(text.contains(want) && text.contains("raise ulimit -q"), "{bytes}: {text}");
        assert!(!text.contains("ulimit -n"), "it is not a matter of open files: {text}");
        assert_eq!(test.runs(), Vec::<PathBuf>::new(), "nothing is left");
    }
}

#[test]
fn timers_whose_signals_there_is_no_room_for_are_refused_with_a_remedy() {
    let test = Test::new("no-signals");
    let mut limited = test.program(Path::new("prlimit"));
    limited.args(["--sigpending=0", env!("CARGO_BIN_EXE_wakescope"), "measure"]);
    let ended = Running::start(limited.args(["--stimulus", "signal"])).output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let text = &ended.stderr;
    assert!(text.contains("this user's limit of pending signals is reached"), "{text}");
    assert!(text.contains("→ raise that limit: ulimit -i"), "{text}");
    assert!(!text.contains("ulimit -u"), "it is not a matter of threads: {text}");
    assert_eq!(test.runs(), Vec::<PathBuf>::new(), "nothing is left");
}

#[test]
fn what_a_waker_cannot_do_is_refused_with_a_remedy() {
    let test = Test::new("futex-refused");
    let ended = test.measure(&["--stimulus", "futex", "--policy", "deadline"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let want = "--policy deadline does not apply to --stimulus futex";
    assert!(ended.stderr.contains(want) && ended.stderr.contains("--policy fifo"), "{ended:?}");
}

/// The rows of a table: names, and whether they have figures.
fn rows(text: &str) -> Vec<(String, bool)> {
    let lines = text.lines().skip(1).take_while(|line| !line.is_empty());
    let row = |line: &str| {
        let (name, _) = line.trim().split_once([' ', ':'])?;
        Some((name.to_owned(), !line.contains("not measured")))
    };
    lines.filter_map(row).filter(|(name, _)| name != "largest").collect()
}

#[test]
fn all_stimuli_are_measured_one_after_the_other() {
    let test = Test::new("all");
    let args = ["--stimulus", "all", "--samples", "50", "--warmup", "10ms", "--out", "all"];
    let ended = test.measure(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut names: Vec<String> = rows(&ended.stdout).into_iter().map(|(name, _)| name).collect();
    names.sort();
    // Gaps and round trips are no wakeups, and do not stand among them.
    let wakeups = Stimulus::OF_PROBES.iter().filter(|s| s.quantity() == Quantity::WakeupLatency);
    let mut want: Vec<String> = wakeups.map(ToString::to_string).collect();
    want.sort();
    assert!(!want.contains(&"spin".into()) && !want.contains(&"line".into()), "{want:?}");
    assert_eq!(names, want, "{}", ended.stdout);
    for (name, is_measured) in rows(&ended.stdout) {
        let stimulus = name.parse::<Stimulus>().unwrap();
        if is_measured {
            let run = record(&test.dir.join("all").join(&name));
            assert_eq!((run.plan.stimulus, run.state), (stimulus, State::Complete));
        }
    }
    // The folder of the series is one of runs, which other verbs read.
    let shown = test.ended(&["report", "all"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    // A second series does not mix with the first.
    let again = test.measure(&args);
    assert!(again.code == Some(2) && again.stderr.contains("already holds a run"), "{again:?}");
    // Not even those of its runs that would have a folder of their own.
    std::fs::remove_dir_all(test.dir.join("all").join("futex")).unwrap();
    let again = test.measure(&args);
    assert!(again.code == Some(2) && again.stderr.contains("already holds a run"), "{again:?}");
    assert!(!test.dir.join("all").join("futex").exists(), "{again:?}");
}

#[test]
fn what_a_kernel_lacks_is_named_in_the_table() {
    const TEST: &str = "what_a_kernel_lacks_is_named_in_the_table";
    let test = Test::new("lacks");
    let mut apart = test.program(Path::new("unshare"));
    apart.args(["-n", env!("CARGO_BIN_EXE_wakescope"), "measure", "--stimulus", "all"]);
    let ended = Running::start(apart.args(["--samples", "20", "--warmup", "10ms"])).output();
    if ended.stderr.contains("unshare failed") {
        return skip(TEST, "a network of one's own is not permitted");
    }
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for (name, is_measured) in rows(&ended.stdout) {
        if ["udp", "tcp"].contains(&name.as_str()) {
            assert!(!is_measured, "{}", ended.stdout);
        } else if ["futex", "pipe"].contains(&name.as_str()) {
            assert!(is_measured, "{}", ended.stdout);
        }
    }
}

#[test]
fn a_series_that_is_interrupted_keeps_its_runs() {
    let test = Test::new("interrupted-series");
    let args = ["--stimulus", "pipe", "--between", "both", "--duration", "1h", "--out", "both"];
    let running = test.start_measure(&args);
    let out = test.dir.join("both").join("threads");
    eventually_some("the first run begins", || out.join(RECORD).exists().then_some(()));
    await_samples_in(&out);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("ended early: 1 more were not begun"), "{}", ended.stdout);
    assert_eq!(record(&out).state, State::Interrupted);
    assert!(!test.dir.join("both").join("processes").exists());
}

#[test]
fn a_series_that_is_interrupted_in_a_warm_up_passes_no_limit() {
    let test = Test::new("undecided-series");
    let args = ["--stimulus", "pipe", "--between", "both", "--samples", "50", "--warmup", "1s"];
    for (limit, code, judged) in [
        ("100s", 3, " within the limit max ≤ "),
        // What was measured is enough for this one.
        ("1ns", 1, " above the limit max ≤ "),
    ] {
        let own = ["--fail-above", limit, "--out", limit];
        let running = test.start_measure(&[&args[..], &own].concat());
        let out = test.dir.join(limit).join("processes");
        eventually("the second run begins", || out.join(RECORD).exists());
        kill("INT", &[running.pid()]);
        let ended = running.output();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let said = " not every run of the series was measured: a limit that no run exceeded is \
                    inconclusive\n";
        assert!(ended.stdout.contains(judged) && ended.stdout.contains(said), "{}", ended.stdout);
        assert!(!ended.stderr.contains("could not be measured"), "{}", ended.stderr);
    }
}

#[test]
fn pairs_of_cpus_are_a_matrix_in_text_and_json() {
    let test = Test::new("matrix");
    let cpus = allowed_cpus();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    if first == last {
        return skip("pairs_of_cpus_are_a_matrix_in_text_and_json", "there is one CPU");
    }
    let named = format!("{first},{last}");
    let args = ["--stimulus", "eventfd", "--place", "matrix", "--cpus", &named];
    let length = ["--samples", "50", "--warmup", "10ms", "--out"];
    let ended = test.measure(&[&args[..], &length, &["text"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains(&format!("probe on CPU {last}")), "{}", ended.stdout);
    let ended = test.measure(&[&args[..], &length, &["json", "--json"]].concat());
    let printed: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(printed["schema"], "wakescope.series/1");
    let schema = serde_json::from_str(&read("docs/reference/series.schema.json")).unwrap();
    assert_eq!(Checker::closed(schema).fault(&printed), None);
    let runs = printed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for row in runs {
        let run = record(&test.dir.join(row["path"].as_str().unwrap()));
        let of_probe = run.plan.cpus[0];
        let of_waker = run.plan.waker.as_ref().unwrap().cpu(0, of_probe);
        assert_eq!(row["name"], format!("{of_waker}:{of_probe}"));
        // A late wakeup may have swallowed calls, which count as well.
        assert_eq!(row["count"].as_u64(), Some(run.summary.count));
        assert!(run.summary.count >= 50, "{:?}", run.summary);
        assert_eq!(row["max_ns"].as_u64(), run.summary.max_ns);
    }
}

#[test]
fn a_series_says_which_limit_is_exceeded_and_what_is_missing() {
    let test = Test::new("limits-of-a-series");
    let args =
        ["--stimulus", "eventfd", "--between", "both", "--samples", "50", "--warmup", "10ms"];
    let limits = ["--fail-above", "p50=1ns", "--fail-above", "100s", "--out", "both"];
    let ended = test.measure(&[&args[..], &limits].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let mut wanted = vec![" above the limit p50 ≤ 1 ns: 2 of 2 runs".to_owned()];
    // Where this machine stood still, a waker has left out too many calls for a limit to hold.
    let runs = ["threads", "processes"].map(|name| record(&test.dir.join("both").join(name)));
    for (outcome, words) in
        [(Outcome::Pass, "within the limit"), (Outcome::Inconclusive, "inconclusive on the limit")]
    {
        let count = runs.iter().filter(|run| run.limits[1].outcome == outcome).count();
        if count > 0 {
            wanted.push(format!(" {words} max ≤ 1.67 min: {count} of 2 runs"));
        }
    }
    for line in wanted {
        assert!(ended.stdout.contains(&line), "{line}: {}", ended.stdout);
    }
    // A run that could not be measured is within no limit.
    let args = ["--stimulus", "eventfd", "--between", "both", "--samples", "50", "--warmup", "2s"];
    let limits = ["--fail-above", "100s", "--out", "other"];
    let running = test.start_measure(&[&args[..], &limits].concat());
    eventually("it begins", || test.dir.join("other").join("threads").join(RECORD).exists());
    // The first run warms up. Its folder was free when it began, and so was the other.
    let taken = test.dir.join("other").join("processes");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join(RECORD), "{}").unwrap();
    let ended = running.output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stdout.contains("processes: not measured: "), "{ended:?}");
    assert!(ended.stderr.contains("1 of 2 runs could not be measured"), "{ended:?}");
}

#[test]
fn series_that_make_no_sense_are_refused() {
    let test = Test::new("no-series");
    for (args, want) in [
        (&["--stimulus", "all", "--between", "both"][..], "does not go together with"),
        (&["--between", "both"], "--between does not apply to --stimulus timer"),
        (&["--stimulus", "pipe", "--between", "both", "--policy", "deadline"], "--policy deadline"),
    ] {
        let ended = test.measure(args);
        assert!(ended.code == Some(2) && ended.stderr.contains(want), "{args:?}: {ended:?}");
        assert_eq!(test.runs(), Vec::<PathBuf>::new());
    }
    let ended = test.ended(&["explain", "--stimulus", "all"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("several runs"), "{ended:?}");
}

#[test]
fn a_waker_that_is_moved_or_demoted_makes_the_run_invalid() {
    const TEST: &str = "a_waker_that_is_moved_or_demoted_makes_the_run_invalid";
    let test = Test::new("moved-waker");
    let [cpu, .., other] = allowed_cpus()[..] else { return skip(TEST, "there is one CPU") };
    let fifo = Schedule::Fifo { priority: 90 };
    let may = std::thread::spawn(move || set_schedule(fifo).is_ok()).join().unwrap();
    let (cpu, other) = (cpu.to_string(), other.to_string());
    for between in ["threads", "processes"] {
        for (code, tool, args) in
            [("waker-moved", "taskset", ["-pc", &other]), ("policy", "chrt", ["-op", "0"])]
        {
            if code == "policy" && !may {
                skip(&format!("{TEST}, {code}"), "SCHED_FIFO is not permitted");
                continue;
            }
            let out = test.dir.join(format!("{code}-{between}"));
            let how = ["--stimulus", "futex", "--between", between, "--duration", "1h"];
            let named = ["--fail-above", "1h", "--cpus", &cpu, "--out", out.to_str().unwrap()];
            let running = test.start_measure(&[&how[..], &named].concat());
            eventually_some("the run begins", || out.join(RECORD).exists().then_some(()));
            await_samples_in(&out);
            let waker = match between {
                "processes" => test.processes().into_keys().find(|&pid| pid != running.pid()),
                _ => thread_of(running.pid(), "wakescope-w/"),
            };
            let waker = waker.expect("a waker").to_string();
            let changed = Command::new(tool).args(args).arg(&waker).output().unwrap();
            assert!(changed.status.success(), "{changed:?}");
            await_more_samples_in(&out);
            kill("INT", &[running.pid()]);
            let ended = running.output();
            assert_eq!(ended.code, Some(3), "{ended:?}");
            let run = record(&out);
            let found = assert_found(&run, code);
            let of_waker = found.message.starts_with("the waker of the probe on CPU ");
            assert!(found.severity == Severity::Error && of_waker, "{found:?}");
        }
    }
}

/// The number of the thread of `pid` whose name begins so.
fn thread_of(pid: i32, name: &str) -> Option<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut tasks = tasks.map(|task| task.unwrap().path());
    let is_it = |task: &PathBuf| {
        fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with(name))
    };
    let task = tasks.find(is_it)?;
    task.file_name()?.to_str()?.parse().ok()
}

/// Waits until the run in `folder` has samples that it has not now.
fn await_more_samples_in(folder: &Path) {
    let count =
        || Run::from_json(&fs::read(folder.join(RECORD)).ok()?).ok().map(|r| r.summary.count);
    // The first record after may have been in the making.
    for _ in 0..2 {
        let last = count();
        eventually_some("there are more samples", || (count() > last).then_some(()));
    }
}
