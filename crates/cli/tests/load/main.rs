//! `wakescope load`: loads do their work, and nothing of them outlives whoever started them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::ExitStatusExt;

use common::bench::{
    Disk, NOBODY, PATIENCE, Running, Test, eventually, eventually_some, finish_at_work, kill, skip,
};
use wakescope_core::units::SpanNs;
use wakescope_probe::load::{Load, LoadError, Options, Spec, abandon_all};
use wakescope_sys::clock;
use wakescope_sys::file::effective_user;
use wakescope_sys::sched::{Schedule, set_schedule};
use wakescope_sys::signal::EndSignals;

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod machine;

const BUILT_IN: [&str; 12] = [
    "find",
    "launch",
    "file-move",
    "cpu",
    "fifos-mmap",
    "p3-fpu",
    "fs",
    "crashme",
    "fork",
    "memory",
    "sync",
    "truncate",
];

/// How many of them have a directory.
const WITH_DIRECTORY: usize = 6;

/// A shell with a child, a grandchild that it lost, and a child that left its session.
const FAMILY: &str = "exec:sleep 1000 & (sleep 1000 &) ; setsid sleep 1000 & wait";

fn spec(name: &str) -> Spec {
    name.parse().unwrap()
}

#[test]
fn every_built_in_load_works_and_cleans_up() {
    for name in BUILT_IN {
        let mut test = Test::new(name);
        test.use_disk();
        let mut load = test.start(name);
        match load.wait_ready(PATIENCE) {
            Err(e) if name == "crashme" && e.to_string().contains("needs strict seccomp") => {
                skip("every_built_in_load_works (crashme)", &e.to_string());
                continue;
            }
            other => other.unwrap(),
        }
        let unit = load.spec().unit();
        let result = finish_at_work(load);
        assert!(result.before_per_second.is_some(), "{result:?}");
        assert_eq!((result.name.as_str(), result.unit.as_str()), (name, unit));
        test.assert_nothing_is_left();
    }
}

/// CPU time that a process has used.
fn cpu_time(pid: i32) -> SpanNs {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat[stat.rfind(')').unwrap() + 1..].split_whitespace().collect();
    // Fields 14 and 15 of proc(5), counted from the state, field 3; in hundredths of a second.
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    SpanNs(ticks * 10_000_000)
}

#[test]
fn a_load_uses_no_more_time_than_its_intensity() {
    // Of time that a load is given less is left for work, never more: a busy machine cannot fail this.
    const TOLERANCE: SpanNs = SpanNs(100_000_000);
    let threads = wakescope_sys::sched::affinity().unwrap().len() as u64;
    for (name, percent, threads) in [("cpu@10%", 10, threads), ("find@20%", 20, 1)] {
        let test = Test::new("intensity");
        let mut load = test.start(name);
        load.wait_ready(PATIENCE).unwrap();
        load.mark();
        let (begin, before) = (clock::now(), cpu_time(load.pid()));
        let first = load.status().work;
        eventually(&format!("{name} works, and enough time has passed"), || {
            load.status().work > first && clock::now().since(begin) >= SpanNs(2_000_000_000)
        });
        let used = cpu_time(load.pid()).0 - before.0;
        let most = clock::now().since(begin).0 * threads * percent / 100 + TOLERANCE.0;
        assert!(used <= most, "{name}: {used} ns of at most {most}");
        let result = load.finish();
        assert_eq!((result.name.as_str(), result.alive), (name, true));
        assert!(result.work > 0, "{result:?}");
        test.assert_nothing_is_left();
    }
}

#[test]
fn disturbances_work_and_write_down_when() {
    let test = Test::new("disturb");
    let log = test.dir.join("log");
    for kind in ["fifo", "timers", "syscall", "softirq"] {
        let _ = fs::remove_file(&log);
        let name = format!("disturb-{kind}-200us");
        let mut command = test.command(&["load", &name, "--duration", "500ms", "--json"]);
        let out = Running::start(command.env("WAKESCOPE_DISTURBANCES", &log)).output();
        if out.code == Some(2) && out.stderr.contains("which root or CAP_") {
            skip("disturbances_work_and_write_down_when", &format!("{kind}: it is not permitted"));
            continue;
        }
        assert_eq!(out.code, Some(0), "{out:?}");
        let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        assert_eq!(json["load"][0]["name"], name.as_str());
        assert!(json["load"][0]["work"].as_u64() > Some(0), "{out:?}");
        let text = fs::read_to_string(&log).unwrap();
        assert!(!text.is_empty());
        for line in text.lines() {
            let words = line.split(' ').map(|word| word.parse::<u64>().unwrap());
            let [_, begin, end] = words.collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert!(begin < end, "{line}");
            // Of the others the length is about right.
            assert!(kind != "fifo" || end - begin >= 200_000, "{line}");
        }
    }
}

#[test]
fn results_are_printed_as_a_table_or_as_json() {
    let test = Test::new("printed");
    let out = test.output(&["find,launch", "cpu", "--duration", "200ms"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let names: Vec<_> = out.stdout.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(names, ["load", "find", "launch", "cpu"], "{}", out.stdout);
    assert!(out.stderr.contains("running: find, launch, cpu"), "{}", out.stderr);

    let out =
        test.output(&["cpu", "exec:sleep 1000", "--duration", "200ms", "--seed", "7", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(json["schema"], "wakescope.load/1");
    assert_eq!(json["seed"], 7);
    assert_eq!(json["load"][0]["name"], "cpu");
    // What a command does is not counted.
    let rates = [0, 1].map(|load| &json["load"][load]["per_second"]);
    assert!(rates[0].is_f64() && rates[1].is_null(), "{}", out.stdout);
    assert!(json["duration_ns"].as_u64().unwrap() >= 200_000_000);
}

#[test]
fn bad_arguments_are_refused_with_a_remedy() {
    let test = Test::new("arguments");
    for (args, text) in [
        (&["fnid"][..], "find, launch, file-move, cpu, "),
        (&["find,fnid"], "no load `fnid`"),
        (&[], "find, launch, file-move, cpu, "),
        (&["exec:"], "needs a command"),
        (&["find@0%"], "from 1 to 100, as in find@25%"),
        (&["find@200%"], "from 1 to 100, as in find@25%"),
        (&["find@x"], "from 1 to 100, as in find@25%"),
        (&["nosuch@5%"], "no load `nosuch`"),
        (&["disturb-fifo-1ms@5%"], "a disturbance has no intensity"),
        (&["exec:make@5%"], "a command has no intensity"),
        (&["disturb-fifo"], "as in disturb-fifo-300us"),
        (&["disturb-fifo-1h"], "from 20.0 µs to 50.0 ms"),
        (&["find", "--duration", "0s"], "longer --duration"),
        (&["find", "--duration", "10"], "has no unit"),
        (&["find", "--seed", "x"], "--seed"),
        (&["\x1b[31mred"], "\u{fffd}[31mred"),
        (&["find", "--dir", "/does/not/exist"], "/does/not/exist"),
        (&["find", "--dir", "/does/not/exist"], "→ use another directory: --dir"),
        (&["sync", "--dir", "/does/not/exist"], "cannot make a directory in /does/not/exist"),
        (&["fifos-mmap", "--dir", "/proc"], "→ use another directory: --dir"),
        (&["--list", "--json"], "'--list' cannot be used with '--json'"),
    ] {
        let out = test.output(args);
        assert_eq!(out.code, Some(2), "{args:?}: {out:?}");
        assert!(out.stderr.contains(text), "{args:?}: {}", out.stderr);
        assert!(!out.stderr.contains('\x1b'), "{args:?}: {:?}", out.stderr);
    }
    let out = test.output(&["--list"]);
    assert_eq!(out.code, Some(0));
    assert!(BUILT_IN.iter().all(|name| out.stdout.contains(name)), "{}", out.stdout);
}

#[test]
fn a_command_that_ends_is_a_dead_load() {
    let test = Test::new("command");
    for (command, text) in [
        ("exec:exit 3", "exit status 3"),
        ("exec:true", "must keep running"),
        ("exec:does-not-exist", "`exec:does-not-exist` died"),
        // The error quotes the last line that the command wrote to standard error.
        ("exec:echo secret >&2; exit 5", "exit status 5: secret"),
        ("exec:kill -9 $$", "SIGKILL"),
        // A process that it leaves in the background does not count as the load.
        ("exec:sleep 1000 & exit 4", "exit status 4"),
    ] {
        let out = test.output(&[command]);
        assert_eq!(out.code, Some(2), "{command}: {out:?}");
        assert!(out.stderr.contains(text), "{command}: {}", out.stderr);
        test.assert_nothing_is_left();
    }
}

#[test]
fn signals_end_loads_in_order() {
    for signal in ["INT", "TERM", "HUP"] {
        let test = Test::new(signal);
        let mut running = test.run(&["find", "fifos-mmap", "fork", "memory@20%", FAMILY]);
        running.await_line("running:");
        kill(signal, &[running.pid()]);
        let out = running.output();
        assert_eq!(out.code, Some(0), "{out:?}");
        assert_eq!(out.stdout.lines().count(), 6, "{}", out.stdout);
        test.assert_nothing_is_left();
    }
}

#[test]
fn a_service_manager_may_signal_all_processes_at_once() {
    let test = Test::new("manager");
    let mut running = test.run(&["find", "file-move", "cpu"]);
    running.await_line("running:");
    // Their parent comes last: loads must not go before it asks what they did.
    let keepers: Vec<_> = test.processes().into_keys().filter(|p| *p != running.pid()).collect();
    assert_eq!(keepers.len(), 3);
    kill("TERM", &keepers);
    kill("TERM", &[running.pid()]);
    let out = running.output();
    assert_eq!(out.code, Some(0), "{out:?}");
    test.assert_nothing_is_left();
}

#[test]
fn loads_end_when_their_parent_is_killed() {
    let test = Test::new("parent-killed");
    let all: Vec<_> = BUILT_IN.into_iter().filter(|name| *name != "crashme").collect();
    // As one of a group, it may be left out; here it is the only one of that kind.
    let mut running = test.run(&[&all[..], &["stress-kernel@50%", FAMILY]].concat());
    running.await_line("running:");
    assert!(test.directories() >= WITH_DIRECTORY);
    eventually("the family is there", || test.count("sleep") == 3);
    kill("KILL", &[running.pid()]);
    test.assert_nothing_is_left();
}

#[test]
fn a_load_whose_helper_is_killed_says_so() {
    let test = Test::new("helper-killed");
    let mut load = test.start("fifos-mmap");
    load.wait_ready(PATIENCE).unwrap();
    let other = || {
        let processes = test.processes();
        let other = processes.iter().find(|(_, command)| command.contains("launched:fifos-mmap"));
        other.map(|(pid, _)| *pid)
    };
    kill("KILL", &[eventually_some("the other process is there", other)]);
    eventually("its death is seen", || !load.status().alive);
    let result = load.finish();
    assert!(result.fault.contains("the other process ended with SIGKILL"), "{result:?}");
    test.assert_nothing_is_left();
}

#[test]
fn random_bytes_are_executed_where_they_can_harm_nothing() {
    let test = Test::new("cage");
    let ended = |bytes: &str| {
        let out = test.command(&["launched:crashme", bytes]).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        ((out.status.code(), out.status.signal()), text)
    };
    let (first, text) = ended("exit");
    if first != (Some(7), None) {
        return skip("random_bytes_are_executed", &format!("{first:?} {text}"));
    }
    // No file is open (EBADF); a loop ends after its CPU time (SIGPROF); a call is killed (SIGKILL).
    for (bytes, want) in
        [("files", (Some(9), None)), ("loop", (None, Some(27))), ("forbidden", (None, Some(9)))]
    {
        assert_eq!(ended(bytes), (want, String::new()), "{bytes}");
    }
    // What is wrong ends a process as if nothing was: the kernel's log says nothing of it.
    let quiet = (1..=40).filter(|seed| {
        let (exit, text) = ended(&seed.to_string());
        assert_eq!(text, "", "{seed}");
        exit == (Some(0), None)
    });
    assert!(quiet.count() > 20);
    let (exit, text) = ended("nosuch");
    assert!(exit == (Some(1), None) && text.contains("x86-64 and arm64"), "{exit:?} {text}");
    test.assert_nothing_is_left();
}

#[test]
fn loads_end_when_their_parent_is_killed_while_they_are_set_up() {
    for name in ["find", "file-move"] {
        let test = Test::new(name);
        let running = test.run(&[name]);
        eventually("it has begun", || test.directories() == 1);
        kill("KILL", &[running.pid()]);
        test.assert_nothing_is_left();
    }
}

#[test]
fn an_interrupt_while_loads_are_set_up_is_no_success() {
    let test = Test::new("set-up-interrupted");
    let running = test.run(&["find", "file-move", "--json"]);
    eventually("it has begun", || test.directories() > 0);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    match ended.code {
        // It was set up sooner.
        Some(0) => assert!(ended.stdout.starts_with('{'), "{ended:?}"),
        _ => {
            assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
            assert!(ended.stderr.contains("interrupted before the loads were set up"), "{ended:?}");
        }
    }
    test.assert_nothing_is_left();
}

#[test]
fn what_is_left_when_all_are_killed_is_removed_at_the_next_start() {
    let test = Test::new("all-killed");
    let mut running = test.run(&["find", "launch", "file-move", "cpu", FAMILY]);
    running.await_line("running:");
    eventually("the family is there", || test.count("sleep") == 3);
    let contained = test.is_in_namespace(FAMILY);
    let of_wakescope = || {
        let all = test.processes().into_iter();
        let ours = all.filter(|(_, command)| command.contains(" load"));
        ours.map(|(pid, _)| pid).collect::<Vec<_>>()
    };
    // Stopped first, so that none can clean up while the others are being killed.
    kill("STOP", &of_wakescope());
    kill("KILL", &of_wakescope());
    eventually("none of its processes is left", || of_wakescope().is_empty());
    if !contained {
        skip("what_is_left_when_all_are_killed (command)", "no PID namespace is permitted");
        kill("KILL", &test.processes().into_keys().collect::<Vec<_>>());
    }
    eventually("no process is left", || test.processes().is_empty());
    assert_eq!(test.directories(), 2);
    eventually("no directory is held", || test.held_directories() == 0);
    let out = test.output(&["cpu", "--duration", "1ms"]);
    assert!(out.stderr.contains("removed 2 directories"), "{}", out.stderr);
    test.assert_nothing_is_left();
}

#[test]
fn a_killed_keeper_is_a_dead_load() {
    for name in ["find", "exec:sleep 1000 & sleep 1000"] {
        let test = Test::new("keeper-killed");
        let mut load = test.start(name);
        load.wait_ready(PATIENCE).unwrap();
        kill("KILL", &[load.pid()]);
        eventually("its death is seen", || !load.status().alive);
        let result = load.finish();
        assert!(!result.alive && result.fault.contains("SIGKILL"), "{result:?}");
        test.assert_nothing_is_left();
    }
}

#[test]
fn files_of_a_killed_keeper_are_removed_and_memory_is_suspected() {
    let test = Test::new("keeper-killed-at-work");
    let mut running = test.run(&["file-move", "--duration", "60s"]);
    running.await_line("running: ");
    let is_keeper = |command: &String| command.contains("load-keeper");
    let processes = test.processes();
    let keeper = processes.iter().find(|(_, command)| is_keeper(command)).unwrap().0;
    kill("KILL", &[*keeper]);
    let out = running.output();
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stderr.contains("memory.max") && !out.stderr.contains("--dir"), "{out:?}");
    test.assert_nothing_is_left();
}

#[test]
fn a_keeper_that_is_killed_while_it_is_set_up_may_have_run_out_of_memory() {
    let test = Test::new("keeper-killed-early");
    let mut load = test.start("find");
    kill("KILL", &[load.pid()]);
    let error = load.wait_ready(PATIENCE).unwrap_err();
    let LoadError::Died { fault, remedy: Some(remedy), .. } = error else { panic!("{error:?}") };
    assert!(fault.contains("SIGKILL") && remedy.contains("memory.max"), "{fault} {remedy}");
    load.finish();
}

#[test]
fn a_keeper_that_hangs_is_not_waited_for() {
    let test = Test::new("hangs");
    let mut load = test.start("cpu");
    load.wait_ready(PATIENCE).unwrap();
    load.mark();
    kill("STOP", &[load.pid()]);
    let result = load.finish();
    assert!(!result.alive && result.fault.contains("did not answer"), "{result:?}");
    assert!(result.incomplete, "{result:?}");
    test.assert_nothing_is_left();
}

#[test]
fn abandoned_loads_tell_what_they_did_and_leave_their_files() {
    let test = Test::new("abandoned");
    let loads = ["find", "file-move", "launch"].map(|name| {
        let mut load = test.start(name);
        load.wait_ready(PATIENCE).unwrap();
        load.mark();
        // The first growth that is seen may be from before the mark; the second cannot.
        let mut seen = vec![load.status().work];
        eventually(&format!("{name} works"), || {
            seen.push(load.status().work);
            seen.dedup();
            seen.len() == 3
        });
        load
    });
    for result in abandon_all(loads.into()) {
        assert!(result.alive && result.fault.is_empty() && result.work > 0, "{result:?}");
    }
    assert_eq!(test.directories(), 2);
    eventually("no process is left", || test.processes().is_empty());
}

#[test]
fn a_load_that_cannot_start_says_why() {
    let test = Test::new("no-start");
    let options = Options { program: test.dir.join("missing"), ..test.options() };
    let error = Load::start(spec("cpu"), &options).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    let options = Options { dir: "/does/not/exist".into(), ..test.options() };
    let error = Load::start(spec("find"), &options).unwrap().wait_ready(PATIENCE).unwrap_err();
    assert!(matches!(error, LoadError::Died { .. }), "{error}");
    // A program that knows nothing of loads.
    let options = Options { program: "/bin/true".into(), ..test.options() };
    let error = Load::start(spec("cpu"), &options).unwrap().wait_ready(PATIENCE).unwrap_err();
    assert!(error.to_string().contains("exit status 0"), "{error}");
}

#[test]
fn what_others_put_into_the_directory_is_not_touched() {
    let test = Test::new("foreign");
    let user = effective_user();
    let target = test.loads.join("treasury");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("treasure"), "x").unwrap();
    let link = test.loads.join(format!("wakescope-load-{user}-1-0000000000000001"));
    symlink(&target, &link).unwrap();
    let foreign = test.loads.join(format!("wakescope-load-{user}-2-0000000000000002"));
    fs::create_dir(&foreign).unwrap();
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o700)).unwrap();
    let given_away = user == 0 && chown(&foreign, Some(NOBODY), Some(NOBODY)).is_ok();
    if !given_away {
        skip("what_others_put_into_the_directory (owner)", "only root can give a directory away");
    }
    let out = test.output(&["find", "--duration", "1ms"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(target.join("treasure").exists() && fs::symlink_metadata(&link).is_ok());
    assert_eq!(foreign.exists(), given_away, "{out:?}");
}

#[test]
fn no_link_of_another_user_leads_to_where_loads_work() {
    if effective_user() != 0 {
        let name = "no_link_of_another_user_leads_to_where_loads_work";
        return skip(name, "only root can give links away");
    }
    let test = Test::new("foreign-link");
    let treasury = test.dir.join("treasury");
    let leftover = "inner/wakescope-load-0-1-0000000000000001";
    fs::create_dir_all(treasury.join(leftover)).unwrap();
    fs::set_permissions(treasury.join(leftover), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("treasury", test.dir.join("link")).unwrap();
    lchown(test.dir.join("link"), Some(NOBODY), None).unwrap();
    let way = "its path leads through a symbolic link that user 65534 controls";
    for (dir, why) in [
        ("link", "it is a symbolic link that user 65534 controls"),
        ("link/", "it is a symbolic link that user 65534 controls"),
        ("link/inner", way),
        ("link/../treasury/inner", way),
    ] {
        let fault = format!("cannot make a directory in {dir}: {why}");
        for (args, remedy) in [
            (
                &["load", "find", "--duration", "1ms", "--dir"][..],
                "→ use another directory: --dir DIR",
            ),
            (&["measure", "--samples", "1", "--load", "find", "--load-dir"], "--load-dir DIR"),
        ] {
            let ended = test.start_command(&[args, &[dir]].concat()).output();
            assert_eq!(ended.code, Some(2), "{args:?} {dir}: {ended:?}");
            assert!(ended.stderr.contains(&fault), "{args:?} {dir}: {}", ended.stderr);
            assert!(ended.stderr.contains(remedy), "{args:?} {dir}: {}", ended.stderr);
        }
        // A load that makes no files runs, and removes none there either.
        let ended = test.output(&["cpu", "--duration", "1ms", "--dir", dir]);
        assert_eq!(ended.code, Some(0), "{dir}: {ended:?}");
        assert!(treasury.join(leftover).exists(), "{dir}");
    }
    assert_eq!(fs::read_dir(treasury.join("inner")).unwrap().count(), 1);
    // The same link of one's own is followed, and what was left there goes.
    lchown(test.dir.join("link"), Some(0), None).unwrap();
    let ended = test.output(&["find", "--duration", "1ms", "--dir", "link/inner"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read_dir(treasury.join("inner")).unwrap().count(), 0);
}

#[test]
fn whoever_renames_a_directory_does_not_decide_where_files_are_made_and_removed() {
    for load in ["find", "file-move"] {
        let test = Test::new("renamed");
        let treasury = test.loads.join("treasury");
        fs::create_dir_all(treasury.join("files")).unwrap();
        for treasure in ["treasure", "files/target", "files/large", "wakescope-load"] {
            fs::write(treasury.join(treasure), "x").unwrap();
        }
        let mut running = test.run(&[load]);
        let directory = eventually_some("it has a directory", || {
            let mut entries = fs::read_dir(&test.loads).unwrap().flatten();
            entries.find(|e| e.file_name().to_string_lossy().starts_with("wakescope-load-"))
        });
        let away = test.loads.join("away");
        fs::rename(directory.path(), &away).unwrap();
        symlink(&treasury, directory.path()).unwrap();
        running.await_line("running:");
        kill("INT", &[running.pid()]);
        let ended = running.output();
        assert_eq!(ended.code, Some(0), "{load}: {ended:?}");
        for treasure in ["treasure", "files/target", "files/large", "wakescope-load"] {
            let text = fs::read_to_string(treasury.join(treasure));
            assert!(text.is_ok_and(|text| text == "x"), "{load}: {treasure}");
        }
        assert_eq!(fs::read_dir(treasury.join("files")).unwrap().count(), 2, "{load}");
        assert_eq!(fs::read_dir(&away).unwrap().count(), 0, "{load}: its files are left");
    }
}

#[test]
fn a_full_disk_ends_a_load_with_its_cause() {
    for load in ["file-move", "fs", "truncate", "sync"] {
        let test = Test::new("full");
        let Some(disk) = Disk::mount(&test.loads, "size=16m", "a_full_disk_ends_a_load") else {
            return;
        };
        let mut running = test.run(&[load]);
        running.await_line("running:");
        let mut filler = fs::File::create(test.loads.join("filler")).unwrap();
        // Loads free what they wrote, so room comes back again and again.
        eventually("the load is dead", || {
            let _ = filler.write_all(&vec![1; 1 << 20]);
            running.has_ended()
        });
        let out = running.output();
        assert_eq!(out.code, Some(2), "{load}: {out:?}");
        assert!(out.stderr.contains("No space left on device"), "{load}: {}", out.stderr);
        assert!(out.stderr.contains("--dir"), "{load}: {}", out.stderr);
        test.assert_nothing_is_left();
        drop((filler, disk));
    }
}

#[test]
fn a_small_disk_is_refused_or_used_in_part() {
    let test = Test::new("small");
    for (options, name, text) in [
        ("size=2m", "file-move", Some("file-move needs")),
        ("size=8m,nr_inodes=1000", "find", Some("find needs 300")),
        ("size=128k", "fifos-mmap", Some("fifos-mmap needs 66 kB")),
        ("size=128k", "fs", Some("fs needs 64 and 1049 kB")),
        ("size=128k", "sync", Some("sync needs 1049 kB")),
        ("size=128k", "truncate", Some("truncate needs 132 kB")),
        // In a group, what has no room is left out, and the others run.
        ("size=1m", "stress-kernel", Some("left fs out of stress-kernel: ")),
        ("size=8m", "file-move", None),
        ("size=8m", "find", None),
        ("size=8m", "fifos-mmap,fs,sync,truncate", None),
    ] {
        let Some(disk) = Disk::mount(&test.loads, options, "a_small_disk_is_refused") else {
            return;
        };
        let out = test.output(&[name, "--duration", "100ms"]);
        let is_group = name == "stress-kernel";
        let code = if text.is_some() && !is_group { 2 } else { 0 };
        let text = text.unwrap_or("running:");
        assert_eq!(out.code, Some(code), "{options} {name}: {out:?}");
        assert!(out.stderr.contains(text), "{options} {name}: {}", out.stderr);
        test.assert_nothing_is_left();
        drop(disk);
    }
}

#[test]
fn a_run_names_the_loads_that_ran_and_a_finding_those_left_out() {
    let test = Test::new("left-out");
    let Some(disk) = Disk::mount(&test.loads, "size=1m", "a_run_names_the_loads") else { return };
    let dir = test.loads.to_str().unwrap();
    let measure = |load: &str| {
        let args =
            ["measure", "--samples", "20", "--cpus", "0", "--policy", "other", "--out", "run"];
        let out = test.ended(&[&args[..], &["--json", "--load-dir", dir, "--load", load]].concat());
        let _ = fs::remove_dir_all(test.dir.join("run"));
        out
    };
    let out = measure("fork,stress-kernel@50%");
    assert_eq!(out.code, Some(0), "{out:?}");
    let run: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let planned: Vec<_> = run["plan"]["load"].as_array().unwrap().iter().collect();
    let ran: Vec<_> = run["load"].as_array().unwrap().iter().map(|load| &load["name"]).collect();
    assert_eq!(planned, ran);
    assert!(ran.iter().any(|name| *name == "p3-fpu@50%") && *ran[0] == "fork", "{ran:?}");
    assert!(ran.iter().all(|name| *name != "fs@50%"), "{ran:?}");
    let findings = run["validity"]["findings"].as_array().unwrap();
    for part in ["fs@50%", "nfs-compile@50%"] {
        let want = format!("{part} was left out of the load stress-kernel: ");
        let left_out = findings.iter().find(|f| f["message"].as_str().unwrap().starts_with(&want));
        assert_eq!(left_out.unwrap()["code"], "load-left-out", "{findings:?}");
    }
    // One that is named by itself is no part that could be left out.
    let out = measure("fork,fs@50%");
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stderr.contains("fs needs 64") && out.stderr.contains("--load-dir"), "{out:?}");
    test.assert_nothing_is_left();
    drop(disk);
}

#[test]
fn no_privileges_are_needed() {
    if effective_user() != 0 {
        return skip("no_privileges_are_needed", "only root can be without, the others are anyway");
    }
    let mut test = Test::new("nobody");
    test.become_nobody();
    for signal in ["INT", "KILL"] {
        let mut running =
            test.run(&["find", "file-move", "cpu", "crashme", "fork", "sync", FAMILY]);
        running.await_line("running:");
        eventually("the family is there", || test.count("sleep") == 3);
        assert!(!test.is_in_namespace(FAMILY));
        kill(signal, &[running.pid()]);
        let out = running.output();
        assert_eq!(out.code, (signal == "INT").then_some(0), "{out:?}");
        test.assert_nothing_is_left();
    }
}

#[test]
fn loads_are_ordinary_processes_whatever_starts_them() {
    let test = Test::new("ordinary");
    let starter = || {
        set_schedule(Schedule::Fifo { priority: 1 }).ok()?;
        let _signals = EndSignals::block().unwrap();
        Some(test.start("exec:sleep 1000"))
    };
    // On a thread of its own, which then is done with.
    let started = std::thread::scope(|scope| scope.spawn(starter).join().unwrap());
    let Some(mut load) = started else {
        return skip("loads_are_ordinary_processes", "SCHED_FIFO is not permitted");
    };
    load.wait_ready(PATIENCE).unwrap();
    eventually("the command is there", || test.count("sleep") == 1);
    for (pid, command) in test.processes() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<_> = stat[stat.rfind(')').unwrap() + 1..].split_whitespace().collect();
        // Counted from the state, field 3 of proc(5): the nice value is 19, the policy 41.
        assert_eq!((fields[16], fields[38]), ("0", "0"), "{command}: {stat}");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let blocked = status.lines().find_map(|l| l.strip_prefix("SigBlk:")).unwrap().trim();
        if command.starts_with("sleep") {
            assert_eq!(blocked, "0000000000000000", "{command}");
        }
    }
    assert!(load.finish().alive);
    test.assert_nothing_is_left();
}
