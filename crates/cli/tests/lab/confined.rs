//! QEMU itself runs with as few rights as a made-up emulator in `lab_confined.rs`.

use std::fs;

use serde_json::Value;
use wakescope_sys::landlock;

use crate::common::bench::kill;
use crate::common::lab::{Bench, Stock, first_lab};
use crate::hurt::hung;

#[test]
fn qemu_runs_without_rights_and_under_seccomp() {
    let Some(stock) = Stock::get("qemu_runs_without_rights_and_under_seccomp") else { return };
    let bench = Bench::new(stock, "confined");
    let (running, emulator) = hung(&bench);
    let status = fs::read_to_string(format!("/proc/{emulator}/status")).unwrap();
    for line in
        ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
    {
        assert!(status.lines().any(|l| l == line), "{line} is not in {status}");
    }
    kill("KILL", &[emulator]);
    running.output();
}

#[test]
fn a_cell_notes_what_its_emulator_was_kept_from() {
    let Some((_, bench, ran)) = first_lab("a_cell_notes_what_its_emulator_was_kept_from") else {
        return;
    };
    for key in ran.keys() {
        let meta = fs::read(bench.cache.join("cells").join(key).join("meta.json")).unwrap();
        let meta: Value = serde_json::from_slice(&meta).unwrap();
        let noted: Vec<&str> =
            meta["confinement"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(noted[..2], ["no-new-privileges", "no-capabilities"], "{meta}");
        assert_eq!(noted.last(), Some(&"seccomp"), "{meta}");
        assert_eq!(noted.contains(&"landlock"), landlock::version().is_ok(), "{meta}");
    }
}
