//! The same cell gives the same bits on a busy host of another name.

use std::process::Command;

use wakescope_core::lab::Status;

use crate::common::bench::{Running, Test, skip};
use crate::common::lab::{Bench, KERNEL, Ran, first_lab};
use crate::common::measured::allowed_cpus;

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

/// A process per CPU that does nothing but take time.
fn keep_busy(test: &Test) -> Vec<Running> {
    let spin = || {
        let mut command = test.program("/bin/sh".as_ref());
        Running::start(command.args(["-c", "while :; do :; done"]))
    };
    allowed_cpus().iter().map(|_| spin()).collect()
}

#[test]
fn neither_a_busy_host_nor_its_name_nor_more_jobs_change_a_bit() {
    let name = "neither_a_busy_host_nor_its_name_nor_more_jobs_change_a_bit";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let Some((_, pool, first)) = first_lab(name) else { return };
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
