//! A host that fails: what it does to a cell says nothing about the kernel, and is not kept.

use std::fs::{self, File};
use std::io::Write;

use wakescope_core::lab::Status;

use crate::common::bench::{Disk, Running, eventually, eventually_some, kill};
use crate::common::lab::{Bench, Ran, Stock};
use crate::made_up::{End, MadeUp};

/// Starts a lab of two seeds with a kernel that hangs, and waits until its emulator runs.
fn hung(bench: &Bench) -> (Running, i32) {
    let kernel = MadeUp { console: "I stay\n".into(), ..MadeUp::new(End::Hang) };
    let path = kernel.write(&bench.test.dir, "kernel");
    let args = ["--kernel", path.to_str().unwrap(), "--load", "idle", "--seeds", "2"];
    let running = bench.start(&args);
    let says_so = || {
        let consoles = bench.cells().into_iter().map(|cell| {
            fs::read(bench.cache.join("cells").join(cell).join("console.log")).unwrap_or_default()
        });
        let mut consoles = consoles;
        consoles.any(|text| text.ends_with(b"I stay\n"))
    };
    eventually("the guest has booted", says_so);
    (running, eventually_some("there is an emulator", || bench.emulators().first().copied()))
}

#[test]
fn an_emulator_that_is_killed_is_a_failed_cell_that_is_run_again() {
    let name = "an_emulator_that_is_killed_is_a_failed_cell_that_is_run_again";
    let Some(stock) = Stock::get(name) else { return };
    let bench = Bench::new(stock, "killed");
    for (signal, word) in [("KILL", "SIGKILL"), ("TERM", "SIGTERM"), ("KILL", "SIGKILL")] {
        let (running, emulator) = hung(&bench);
        kill(signal, &[emulator]);
        let ran = Ran::of(running.output());
        assert_eq!((ran.code, ran.states()), (Some(2), vec![Status::Failed; 2]), "{}", ran.json);
        for cell in &ran.lab.cells {
            assert!(cell.reason.contains("the emulator was ended"), "{:?}", cell.reason);
            assert!(cell.reason.contains(word), "{:?}", cell.reason);
            assert_eq!(cell.evidence, ["I stay"]);
        }
        assert_eq!(bench.cells(), [""; 0], "{signal}: it is kept");
    }
}

#[test]
fn a_killed_lab_leaves_no_emulator_and_nothing_half_done() {
    let name = "a_killed_lab_leaves_no_emulator_and_nothing_half_done";
    let Some(stock) = Stock::get(name) else { return };
    let bench = Bench::new(stock, "killed-lab");
    let (running, _) = hung(&bench);
    kill("KILL", &[running.pid()]);
    assert_eq!(running.output().code, None);
    eventually("no emulator is left", || bench.emulators().is_empty());
    assert!(bench.cells().iter().all(|cell| cell.ends_with(".new")), "{:?}", bench.cells());
    // The next lab tidies up, and runs it as if nothing had been.
    let (running, emulator) = hung(&bench);
    assert_eq!(bench.cells().len(), 1);
    kill("KILL", &[emulator]);
    assert_eq!(running.output().code, Some(2));
    assert_eq!(bench.cells(), [""; 0]);
}

#[test]
fn signals_end_a_lab_and_its_guests() {
    let Some(stock) = Stock::get("signals_end_a_lab_and_its_guests") else { return };
    for signal in ["INT", "TERM", "HUP"] {
        let bench = Bench::new(stock, "signal");
        let (running, _) = hung(&bench);
        kill(signal, &[running.pid()]);
        let ran = Ran::of(running.output());
        assert_eq!((ran.code, ran.states()), (Some(3), vec![Status::NotRun; 2]), "{}", ran.json);
        assert!(ran.stderr.contains("the same command goes on from there"), "{}", ran.stderr);
        assert_eq!((bench.emulators(), bench.cells()), (vec![], vec![]));
    }
}

/// Takes all the room that there is.
fn fill(filler: &mut File) {
    while filler.write_all(&[1; 4096]).is_ok() {}
    while filler.write_all(&[1]).is_ok() {}
}

#[test]
fn a_disk_that_is_full_ends_the_lab() {
    let name = "a_disk_that_is_full_ends_the_lab";
    let Some(stock) = Stock::get(name) else { return };
    // Too small for the guest's image; for a cell; and one that fills up while the guest runs.
    for (folder, size, later) in
        [("guests", "size=1m", false), ("cells", "size=2m", false), ("cells", "size=8m", true)]
    {
        let bench = Bench::new(stock, "full");
        let place = bench.cache.join(folder);
        fs::create_dir(&place).unwrap();
        let Some(_disk) = Disk::mount(&place, size, name) else { return };
        let ended = if later {
            let (running, _) = hung(&bench);
            let mut filler = File::create(place.join("filler")).unwrap();
            fill(&mut filler);
            kill("KILL", &bench.emulators());
            running.output()
        } else {
            let kernel = MadeUp::new(End::Restart).write(&bench.test.dir, "kernel");
            let args = ["--kernel", kernel.to_str().unwrap(), "--load", "idle", "--seeds", "1"];
            bench.start(&args).output()
        };
        if later {
            // The emulator was killed, which comes before any lack of room.
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert_eq!(bench.cells(), ["filler"]);
        } else {
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
            assert!(ended.stderr.contains("room"), "{}", ended.stderr);
            assert!(ended.stderr.contains('→'), "{}", ended.stderr);
            let left = crate::common::measured::names(&place);
            assert!(left.iter().all(|name| name.ends_with(".lock")), "{left:?}");
        }
    }
}
