//! A host that fails: what it does to a cell says nothing about the kernel, and is not kept.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use wakescope_core::lab::Status;

use crate::common::bench::{Disk, Ended, Running, eventually, eventually_some, kill};
use crate::common::lab::{Bench, KERNEL, NO_INIT, Ran, Stock};
use crate::common::made_up_kernel::{End, MadeUp};
use crate::common::measured::names;

/// Starts a lab of two seeds with a kernel that hangs, and waits until its emulator runs.
pub(crate) fn hung(bench: &Bench) -> (Running, i32) {
    let kernel = MadeUp { console: "I stay\n".into(), ..MadeUp::new(End::Hang) };
    let path = kernel.write(&bench.test.dir, "kernel");
    let args = ["--kernel", path.to_str().unwrap(), "--load", "idle", "--seeds", "2"];
    let running = bench.start(&args);
    let console = |cell: String| bench.cache.join("cells").join(cell).join("console.log");
    let has_booted = |cell| fs::read(console(cell)).is_ok_and(|text| text == b"I stay\n");
    // In this order: until there is an emulator, a console may be that of a lab that was killed.
    let emulator = eventually_some("there is an emulator", || bench.emulators().first().copied());
    eventually("the guest has booted", || bench.cells().into_iter().any(has_booted));
    (running, emulator)
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
        assert!(ran.stderr.contains("run the same command again to resume"), "{}", ran.stderr);
        assert_eq!((bench.emulators(), bench.cells()), (vec![], vec![]));
    }
}

#[test]
fn guests_have_their_files_where_few_may_be_open() {
    let name = "guests_have_their_files_where_few_may_be_open";
    let Some(stock) = Stock::get(name) else { return };
    let bench = Bench::new(stock, "few-files");
    // Each is another kernel, so they are checked side by side. An emulator alone opens fewer files than that.
    let kernels = (0..16).map(|number| {
        let path = MadeUp::says(format!("I am {number}\n"))
            .write(&bench.test.dir, &format!("kernel-{number}"));
        path.to_str().unwrap().to_owned()
    });
    let kernels = kernels.collect::<Vec<_>>().join(",");
    let mut shell = bench.test.program(Path::new("/bin/sh"));
    let lab = "ulimit -Sn 48 && exec \"$0\" lab run --json --arch amd64 --load idle --seeds 1 --jobs 16 --kernel \"$1\"";
    shell.args(["-c", lab, env!("CARGO_BIN_EXE_wakescope"), &kernels]);
    bench.prepare(&mut shell);
    let ran = Ran::of(Running::start(&mut shell).output());
    assert_eq!(ran.lab.cells.len(), 16, "{}", ran.json);
    for cell in &ran.lab.cells {
        assert!(cell.reason.starts_with("the guest restarted"), "{}", cell.reason);
    }
}

/// Takes all the room that there is.
fn fill(filler: &mut File) {
    while filler.write_all(&[1; 4096]).is_ok() {}
    while filler.write_all(&[1]).is_ok() {}
}

#[test]
fn a_lab_without_room_begins_nothing() {
    let name = "a_lab_without_room_begins_nothing";
    let Some(stock) = Stock::get(name) else { return };
    // Too little for the guest's image, and for a cell.
    for (folder, size) in [("guests", "size=1m"), ("cells", "size=2m")] {
        let bench = Bench::new(stock, "full");
        let place = bench.cache.join(folder);
        fs::create_dir(&place).unwrap();
        let Some(_disk) = Disk::mount(&place, size, name) else { return };
        let kernel = MadeUp::new(End::Restart).write(&bench.test.dir, "kernel");
        let args = ["--kernel", kernel.to_str().unwrap(), "--load", "idle", "--seeds", "1"];
        let ended = bench.start(&args).output();
        assert_out_of_room(&ended);
        let left: Vec<String> =
            names(&place).into_iter().filter(|name| !name.ends_with(".lock")).collect();
        assert_eq!(left, [""; 0]);
    }
}

#[test]
fn a_disk_that_fills_up_is_not_taken_for_a_failure_of_the_guest() {
    let name = "a_disk_that_fills_up_is_not_taken_for_a_failure_of_the_guest";
    let Some(stock) = Stock::get(name) else { return };
    let bench = Bench::new(stock, "fills-up");
    let place = bench.cache.join("cells");
    fs::create_dir(&place).unwrap();
    let Some(_disk) = Disk::mount(&place, "size=8m", name) else { return };
    // A guest that takes its time until it says its last word, for which there is no room then.
    let args = ["--kernel", KERNEL, "--load", "idle", "--seeds", "1", "--append", NO_INIT];
    let running = bench.start(&args);
    eventually("the guest runs", || !bench.emulators().is_empty());
    fill(&mut File::create(place.join("filler")).unwrap());
    assert_out_of_room(&running.output());
    assert_eq!(bench.cells(), ["filler"]);
    fs::remove_file(place.join("filler")).unwrap();
    let ran = bench.run(&args);
    assert!(ran.cell().reason.contains("panicked"), "{}", ran.json);
}

#[track_caller]
fn assert_out_of_room(ended: &Ended) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("no space left"), "{}", ended.stderr);
    assert!(ended.stderr.contains('→'), "no next step: {}", ended.stderr);
}
