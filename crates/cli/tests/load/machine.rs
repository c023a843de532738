//! Loads that use what a machine may lack: a network, terminals, the kernel's log, programs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::process::Command;

use crate::common::bench::{
    PATIENCE, Running, Test, eventually, eventually_some, finish_at_work, kill, skip,
};
use wakescope_sys::file::effective_user;
use wakescope_sys::network::leave_for_a_new_one;
use wakescope_sys::poll::wait_readable;
use wakescope_sys::serial::open_pair;
use wakescope_testing::write_program;

/// Those that run on every machine with a loopback interface.
const BUILT_IN: [&str; 5] = ["ttcp", "network", "hackbench", "serial-pty", "interrupts"];

/// Those that are programs of the machine's: the load, the program, and how its processes begin.
const PROGRAMS: [(&str, &str); 2] = [("dbench", "dbench"), ("stress-ng:--cpu 1", "stress-ng")];

fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// The loads of [`PROGRAMS`] that this machine has.
fn programs(test: &'static str) -> impl Iterator<Item = &'static str> {
    let is_there = move |&(_, program): &(&str, &str)| {
        let is_there = is_installed(program);
        if !is_there {
            skip(&format!("{test} ({program})"), "it is not installed");
        }
        is_there
    };
    PROGRAMS.into_iter().filter(is_there).map(|(load, _)| load)
}

/// The processes that descend from `pid`, with their names. Not by the test's mark: stress-ng writes over
/// the environment of its children.
fn descendants(pid: i32) -> BTreeMap<i32, String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let all = pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (begin, end) = (stat.find('(')?, stat.rfind(')')?);
        let parent = stat[end + 1..].split_whitespace().nth(1)?.parse::<i32>().ok()?;
        Some((pid, parent, stat[begin + 1..end].to_owned()))
    });
    let all: Vec<_> = all.collect();
    let (mut found, mut parents) = (BTreeMap::new(), vec![pid]);
    while let Some(parent) = parents.pop() {
        for (pid, _, name) in all.iter().filter(|(_, of, _)| *of == parent) {
            found.insert(*pid, name.clone());
            parents.push(*pid);
        }
    }
    found
}

/// Fails unless all processes of `family` end.
#[track_caller]
fn assert_gone(family: &BTreeMap<i32, String>) {
    eventually(&format!("all of {family:?} are gone"), || {
        family.iter().all(|(pid, name)| {
            let found = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            // The number may be another's by now.
            found.trim() != name
        })
    });
}

/// Waits until a program of [`PROGRAMS`] has children that work, and returns all that descends from
/// `pid`.
fn family_at_work(pid: i32, program: &str) -> BTreeMap<i32, String> {
    eventually_some("its children work", || {
        let family = descendants(pid);
        let is_it = |name: &&String| name.starts_with(program);
        (family.values().filter(is_it).count() >= 2).then_some(family)
    })
}

#[test]
fn loads_work_and_leave_nothing() {
    for name in BUILT_IN {
        let test = Test::new("machine-works");
        let mut load = test.start(name);
        load.wait_ready(PATIENCE).unwrap();
        finish_at_work(load);
        test.assert_nothing_is_left();
    }
}

#[test]
fn a_run_is_measured_beside_each_load() {
    let measure = ["measure", "--policy", "other", "--samples", "20", "--cpus", "0", "--json"];
    for name in BUILT_IN {
        let test = Test::new("machine-measured");
        let out = test.ended(&[&measure[..], &["--load", name, "--out", "run"]].concat());
        assert_eq!(out.code, Some(0), "{name}: {out:?}");
        let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        assert_eq!(json["load"][0]["name"], name);
        assert_eq!(json["load"][0]["alive"], true, "{name}: {}", json["load"][0]);
        test.assert_nothing_is_left();
    }
}

#[test]
fn loads_end_when_their_parent_is_killed() {
    for name in BUILT_IN.into_iter().chain(programs("loads_end_when_their_parent_is_killed")) {
        let test = Test::new("machine-killed");
        let mut running = test.run(&[name]);
        running.await_line("running:");
        let program = name.split(':').next().unwrap();
        let family = match PROGRAMS.iter().any(|(load, _)| *load == name) {
            true => family_at_work(running.pid(), program),
            false => descendants(running.pid()),
        };
        kill("KILL", &[running.pid()]);
        test.assert_nothing_is_left();
        assert_gone(&family);
    }
}

#[test]
fn programs_run_until_they_are_ended_with_all_their_children() {
    // As root in a PID namespace, and as a user who may not make one.
    let users = [false, true].into_iter().filter(|nobody| !nobody || effective_user() == 0);
    let programs: Vec<_> = programs("programs_run_until_they_are_ended").collect();
    for (nobody, name) in users.flat_map(|nobody| programs.iter().map(move |name| (nobody, *name)))
    {
        let mut test = Test::new("machine-program");
        if nobody {
            test.become_nobody();
        }
        let mut running = test.run(&[name, "--json"]);
        running.await_line("running:");
        let program = name.split(':').next().unwrap();
        let family = family_at_work(running.pid(), program);
        kill("INT", &[running.pid()]);
        let out = running.output();
        assert_eq!(out.code, Some(0), "{name}: {out:?}");
        let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        // What its arguments are is nobody's business.
        assert_eq!(json["load"][0]["name"], program);
        test.assert_nothing_is_left();
        assert_gone(&family);
    }
}

#[test]
fn dbench_tells_how_much_it_did() {
    if !is_installed("dbench") {
        return skip("dbench_tells_how_much_it_did", "it is not installed");
    }
    let test = Test::new("machine-dbench");
    let mut load = test.start("dbench");
    load.wait_ready(PATIENCE).unwrap();
    // Ended while it starts, it leaves a System V semaphore, unless its namespace ends with it.
    let is_of_its_own = |kind: &str| {
        let link = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{kind}")).unwrap();
        link(&load.pid().to_string()) != link("self")
    };
    let kernel_has_them = fs::exists("/proc/self/ns/ipc").unwrap();
    if kernel_has_them && effective_user() == 0 {
        assert_eq!(is_of_its_own("ipc"), is_of_its_own("pid"));
    }
    eventually("it says what it did", || load.status().work > 0);
    let result = load.finish();
    assert_eq!(result.unit, "operations");
    assert!(result.alive, "{result:?}");
    test.assert_nothing_is_left();
}

#[test]
fn a_killed_program_is_a_dead_load() {
    for name in programs("a_killed_program_is_a_dead_load") {
        let test = Test::new("machine-dead");
        let mut running = test.run(&[name]);
        running.await_line("running:");
        let program = name.split(':').next().unwrap();
        let is_it = |command: &str| {
            command.split(' ').next().is_some_and(|path| path.ends_with(&format!("/{program}")))
        };
        eventually("it runs", || test.processes().values().any(|command| is_it(command)));
        let all = test.processes();
        let pids = all.into_iter().filter(|(_, command)| is_it(command)).map(|(pid, _)| pid);
        kill("KILL", &pids.collect::<Vec<_>>());
        let out = running.output();
        assert_eq!(out.code, Some(2), "{name}: {out:?}");
        assert!(out.stderr.contains(&format!("{program} ended with SIGKILL")), "{out:?}");
        test.assert_nothing_is_left();
    }
}

#[test]
fn a_program_that_is_not_there_or_ends_is_told_with_the_remedy() {
    let test = Test::new("machine-missing");
    for (args, path, text) in [
        (&["dbench"][..], "/does/not/exist", "→ install it: apt-get install dbench"),
        (&["stress-ng:--cpu 1"], "/does/not/exist", "→ install it: apt-get install stress-ng"),
        // Not from wherever the user is.
        (&["dbench"], ":.:relative", "dbench is not installed"),
    ] {
        write_program(&test.dir.join("dbench"), b"#!/bin/sh\n");
        let mut command = test.command(&[&["load"], args].concat());
        let out = Running::start(command.env("PATH", path)).output();
        assert_eq!(out.code, Some(2), "{args:?}: {out:?}");
        assert!(out.stderr.contains(text), "{args:?}: {}", out.stderr);
        test.assert_nothing_is_left();
        // As a plan of a measurement.
        let measure = ["measure", "--samples", "5", "--policy", "other", "--out", "run", "--load"];
        let mut command = test.command(&[&measure, args].concat());
        let out = Running::start(command.env("PATH", path)).output();
        assert_eq!(out.code, Some(2), "{args:?}: {out:?}");
        assert!(out.stderr.contains(text), "{args:?}: {}", out.stderr);
    }
    if is_installed("stress-ng") {
        let out = test.output(&["stress-ng:--no-such-option"]);
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(out.stderr.contains("stress-ng ended with exit status"), "{out:?}");
        assert!(out.stderr.contains("no-such-option"), "its last words are text: {out:?}");
    }
}

#[test]
fn without_a_loopback_interface_the_remedy_is_told() {
    for name in ["ttcp", "network"] {
        let test = Test::new("machine-no-network");
        let in_new_network = || leave_for_a_new_one().map(|()| test.output(&[name]));
        let ended = std::thread::scope(|scope| scope.spawn(in_new_network).join().unwrap());
        let Ok(out) = ended else {
            return skip("without_a_loopback_interface", "no network namespace is permitted");
        };
        assert_eq!(out.code, Some(2), "{name}: {out:?}");
        assert!(out.stderr.contains("→ bring the loopback interface up: ip link"), "{out:?}");
        test.assert_nothing_is_left();
    }
}

/// The settings of a terminal, as stty(1) prints them.
fn settings(terminal: &File) -> String {
    let mut stty = Command::new("/bin/stty");
    stty.arg("-g").stdin(terminal.try_clone().unwrap());
    String::from_utf8(stty.output().unwrap().stdout).unwrap()
}

#[test]
fn a_serial_port_is_written_to_and_put_back() {
    let test = Test::new("machine-serial");
    let (mut device, terminal, path) = open_pair().unwrap();
    let path = path.to_str().unwrap();
    let before = settings(&terminal);
    let mut running = test.run(&[&format!("serial:{path}"), "--json"]);
    running.await_line(&format!("running: serial:{}", path.strip_prefix("/dev/").unwrap()));
    assert_ne!(settings(&terminal), before);
    let mut got = 0;
    while got < 100_000 {
        assert!(wait_readable(&device, PATIENCE).unwrap());
        let mut bytes = [0; 4096];
        let length = device.read(&mut bytes).unwrap();
        assert!(bytes[..length].iter().all(|&byte| byte == b'U'));
        got += length;
    }
    // From here on nobody reads: the port blocks, but the load does not.
    kill("INT", &[running.pid()]);
    let out = running.output();
    assert_eq!(out.code, Some(0), "{out:?}");
    let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(json["load"][0]["unit"], "bytes");
    assert_eq!(settings(&terminal), before, "the port's settings are not put back");
    test.assert_nothing_is_left();
}

#[test]
fn a_serial_port_that_is_closed_is_a_dead_load() {
    let test = Test::new("machine-closed");
    let (device, terminal, path) = open_pair().unwrap();
    let name = format!("serial:{}", path.to_str().unwrap());
    drop(terminal);
    let mut running = test.run(&[&name]);
    running.await_line("running:");
    drop(device);
    let out = running.output();
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stderr.contains("cannot write to /dev/pts/"), "{}", out.stderr);
    test.assert_nothing_is_left();
}

#[test]
fn ports_that_cannot_be_used_are_refused() {
    let test = Test::new("machine-ports");
    for (name, text) in [
        ("serial", "serial:ttyS0"),
        ("serial:", "as in serial:ttyS0"),
        ("serial:/tmp/x", "as in serial:ttyS0"),
        ("serial:/dev/sda1", "as in serial:ttyS0"),
        ("serial:ttyNONE77", "cannot open the line /dev/ttyNONE77"),
        ("serial:ttyNONE77", "→ name a port that has a driver"),
    ] {
        let out = test.output(&[name]);
        assert_eq!(out.code, Some(2), "{name}: {out:?}");
        assert!(out.stderr.contains(text), "{name}: {}", out.stderr);
    }
}

#[test]
fn a_port_that_somebody_uses_is_refused_and_so_is_the_own_terminal() {
    let test = Test::new("machine-taken");
    let (_device, terminal, path) = open_pair().unwrap();
    let before = settings(&terminal);
    let name = format!("serial:{}", path.to_str().unwrap());
    let mut running = test.run(&[&name]);
    running.await_line("running:");
    let out = test.output(&[&name]);
    assert_eq!(out.code, Some(2), "{out:?}");
    for words in ["another program uses the line /dev/pts/", "→ end what uses it"] {
        assert!(out.stderr.contains(words), "{words}: {}", out.stderr);
    }
    kill("INT", &[running.pid()]);
    running.output();
    assert_eq!(settings(&terminal), before);

    let mut session = Command::new("setsid");
    session.args(["--ctty", "--wait"]).arg(env!("CARGO_BIN_EXE_wakescope")).args(["load", &name]);
    let out = session.stdin(terminal.try_clone().unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("that is the terminal that this command was started in"), "{out:?}");
    assert_eq!(settings(&terminal), before);
}

#[test]
fn the_kernels_log_is_written_to_only_where_no_line_is_dropped() {
    let test = Test::new("machine-printk");
    let setting = fs::read_to_string("/proc/sys/kernel/printk_devkmsg").unwrap_or_default();
    let out = test.output(&["printk", "--duration", "100ms"]);
    if setting.trim() == "on" && effective_user() == 0 {
        assert_eq!(out.code, Some(0), "{out:?}");
    } else {
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(out.stderr.contains("→ "), "{}", out.stderr);
    }
}

#[test]
fn a_lab_is_told_which_loads_its_guests_cannot_run() {
    let test = Test::new("machine-lab");
    for (load, text) in [
        ("dbench", "→ give it Debian's packages: --packages dbench"),
        ("nfs-compile", "→ give it Debian's packages: --packages gcc,libc6-dev"),
        ("serial:ttyS0", "name serial:ttyS2"),
        ("stress-ng:--cpu 1", "a guest does not have"),
    ] {
        let out = test.ended(&["lab", "run", "--load", load]);
        assert_eq!(out.code, Some(2), "{load}: {out:?}");
        assert!(out.stderr.contains(text), "{load}: {}", out.stderr);
    }
}
