//! The same cell gives the same bits.

use std::process::Command;

use wakescope_core::lab::Status;

use crate::common::bench::{Running, Test, skip};
use crate::common::lab::{Bench, FIRST, KERNEL, Ran, first_lab};
use crate::common::measured::names;

/// Starts the command in a system of another name, where this is permitted.
fn elsewhere(command: &Command) -> Command {
    let mut other = Command::new("unshare");
    let script = "hostname elsewhere && exec \"$0\" \"$@\"";
    other.args(["--uts", "sh", "-c", script]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other.current_dir(command.get_current_dir().unwrap());
    other
}

fn may_rename_hosts() -> bool {
    let mut try_it = Command::new("unshare");
    try_it.args(["--uts", "hostname", "elsewhere"]).stderr(std::process::Stdio::null());
    try_it.status().is_ok_and(|status| status.success())
}

/// A process that does nothing but take time, beside which four emulators do not have two CPUs for themselves.
fn keep_busy(test: &Test) -> Running {
    let mut command = test.program("/bin/sh".as_ref());
    Running::start(command.args(["-c", "while :; do :; done"]))
}

#[test]
fn neither_a_busy_host_nor_its_name_nor_more_jobs_change_a_bit() {
    let name = "neither_a_busy_host_nor_its_name_nor_more_jobs_change_a_bit";
    let Some((stock, pool, first)) = first_lab(name) else { return };
    let bench = Bench::new(stock, "busy");
    // The first lab ran two at a time.
    let cells = ["--kernel", KERNEL, "--preempt", "full", "--load", "idle,find", "--seeds", "2"];
    let how = ["run", "--arch", "amd64", "--json", "--samples", "200", "--jobs", "4"];
    let mut command = bench.command(&[&how[..], &cells].concat());
    if may_rename_hosts() {
        command = elsewhere(&command);
    } else {
        skip(name, "on a host of another name: this is not permitted");
    }
    let spinning = keep_busy(&bench.test);
    let again = Ran::of(Running::start(&mut command).output());
    drop(spinning);
    assert_eq!((again.code, again.states()), (Some(0), vec![Status::Ok; 4]), "{}", again.json);
    assert_eq!(again.cached(), [false; 4]);
    // What the guest reported of its kernel is a cell, too.
    assert_eq!(bench.cells().len(), 5);
    bench.assert_same_bits(&pool);
    let known: Vec<_> = first.result().cells;
    assert!(again.result().cells.iter().all(|cell| known.contains(cell)), "{}", again.json);
}

#[test]
fn what_was_run_is_not_run_again() {
    let Some((_, pool, first)) = first_lab("what_was_run_is_not_run_again") else { return };
    let written = |bench: &Bench| -> Vec<Vec<u8>> {
        let meta = |cell: &String| bench.cache.join("cells").join(cell).join("meta.json");
        bench.cells().iter().map(|cell| std::fs::read(meta(cell)).unwrap()).collect()
    };
    let before = written(&pool);
    let again = pool.run(&FIRST);
    assert_eq!(again.code, first.code);
    let ran: Vec<bool> = again.lab.cells.iter().map(|c| c.status == Status::Ok).collect();
    assert_eq!(again.cached(), ran);
    assert_eq!(again.result(), first.result());
    assert_eq!(again.keys(), first.keys());
    assert_eq!(written(&pool), before);
}

#[test]
fn a_guest_that_goes_on_from_a_saved_machine_gives_the_bits_of_one_that_boots() {
    let name = "a_guest_that_goes_on_from_a_saved_machine_gives_the_bits_of_one_that_boots";
    let Some((stock, ..)) = first_lab(name) else { return };
    let one = |seed| {
        let cell = ["--kernel", KERNEL, "--preempt", "full", "--load", "find", "--samples", "100"];
        [&cell[..], &["--seeds", seed]].concat()
    };
    let state_of = |bench: &Bench, cell: &str| {
        let meta = std::fs::read(bench.cache.join("cells").join(cell).join("meta.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&meta).unwrap()["state"].clone()
    };
    // On a busy host the machine may be halted too late to be saved.
    let bench = (0..5).find_map(|_| {
        let bench = Bench::new(stock, "saved");
        let ran = bench.run(&one("1"));
        assert_eq!((ran.code, ran.states()), (Some(0), vec![Status::Ok]), "{}", ran.json);
        bench.cache.join("states").exists().then_some(bench)
    });
    let bench = bench.expect("a machine is saved");
    let first = bench.measurements().remove(0);
    let states = names(&bench.cache.join("states"));
    let [state] = &states[..] else { panic!("{states:?}") };
    let state = bench.cache.join("states").join(state);
    let mut stored = std::fs::read(&state).unwrap();
    let sum = std::str::from_utf8(&stored).err().map(|e| &stored[..e.valid_up_to()]).unwrap();
    let sum = String::from_utf8_lossy(sum).lines().nth(1).unwrap().to_owned();
    assert_eq!(state_of(&bench, &first), sum);
    // What verifies them boots.
    let verified = bench.lab(&["verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    assert!(
        verified.stdout.contains("2 cells were run again and repeated to the bit"),
        "{verified:?}"
    );
    // From a damaged one, nobody goes on.
    let middle = stored.len() / 2;
    stored[middle] ^= 1;
    std::fs::write(&state, stored).unwrap();
    let ran = bench.run(&one("1,2"));
    assert_eq!((ran.code, ran.states()), (Some(0), vec![Status::Ok; 2]), "{}", ran.json);
    let second = bench.measurements().into_iter().find(|cell| *cell != first).unwrap();
    assert!(state_of(&bench, &second).is_null() && !state.exists());
}
