//! Guests with programs of Debian's packages.

use std::path::Path;

use wakescope_core::lab::Status;
use wakescope_core::run::{LoadResult, Run};

use crate::common::bench::skip;
use crate::common::lab::{Bench, KERNEL};
use crate::common::measured::record;

#[test]
fn with_a_compiler_guests_run_all_six_loads_of_stress_kernel_and_repeat_to_the_bit() {
    let name = "with_a_compiler_guests_run_all_six_loads_of_stress_kernel_and_repeat_to_the_bit";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    if let Err(why) = stock.make_image("gcc,libc6-dev") {
        return skip(name, &why);
    }
    let bench = Bench::new(stock, "programs");
    let what = ["--kernel", KERNEL, "--preempt", "none,full", "--seeds", "1"];
    let image = ["--packages", "gcc,libc6-dev"];
    let run_of = |load: &str, samples: &str| {
        let how = ["--load", load, "--samples", samples];
        let ran = bench.run(&[&what[..], &how, &image].concat());
        assert!(ran.lab.cells.iter().all(|cell| cell.status == Status::Ok), "{}", ran.json);
        record(Path::new(ran.lab.cells[0].run.as_ref().unwrap()))
    };
    let run = run_of("stress-kernel", "2000");
    let names: Vec<_> = run.load.iter().map(|load| load.name.as_str()).collect();
    assert_eq!(names, ["nfs-compile", "ttcp", "fifos-mmap", "p3-fpu", "fs", "crashme"]);
    // Beside five others, a compiler may need longer than this cell for a file.
    let works = |load: &LoadResult| load.alive && (load.work > 0 || load.name == "nfs-compile");
    assert!(run.load.iter().all(works), "{:?}", run.load);
    let found = |run: &Run, code: &str| run.validity.findings.iter().any(|f| f.code == code);
    assert!(!found(&run, "load-left-out"), "{:?}", run.validity);
    // Alone, and in a cell that is shorter than a file takes.
    let run = run_of("nfs-compile", "1000");
    assert!(run.load[0].work > 0, "{:?}", run.load);
    run_of("nfs-compile", "100");
    run_of("stress-kernel", "200");
    let verified = bench.lab(&["verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn a_program_that_reports_once_a_second_may_have_reported_nothing_in_a_short_cell() {
    let name = "a_program_that_reports_once_a_second_may_have_reported_nothing_in_a_short_cell";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    if let Err(why) = stock.make_image("dbench") {
        return skip(name, &why);
    }
    let bench = Bench::new(stock, "dbench");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", "dbench", "--seeds", "1"];
    let ran = bench.run(&[&what[..], &["--samples", "200", "--packages", "dbench"]].concat());
    let cell = ran.cell();
    assert_eq!((cell.status, cell.throughput), (Status::Ok, None), "{}", ran.json);
    assert!(cell.findings.iter().any(|f| f.code == "load-unfinished"), "{}", ran.json);
}
