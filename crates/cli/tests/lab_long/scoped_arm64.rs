//! What `wakescope scope` says of guests for arm64.

use std::path::Path;

use wakescope_core::lab::Status;
use wakescope_core::scope::Scope;

use crate::common::bench::{Running, skip};
use crate::common::lab::Bench;
use crate::common::measured::record;
use crate::scoped::{assert_are_the_same, made, seen};

/// The guest does not notice, nothing that the plugin follows differs from what the processor and the kernel have,
/// and every nanosecond of the latest wakeups has a cause.
#[test]
fn sections_and_wakeups_of_arm64_are_seen_from_outside() {
    let name = "sections_and_wakeups_of_arm64_are_seen_from_outside";
    // The first two count no code that turns preemption off; the first has symbols of functions alone.
    let kernels = [("6.1-cloud", true), ("6.12-cloud", true), ("7.2-cloud", false)];
    let Some((stock, program)) = crate::arm64(name, &kernels.map(|(kernel, _)| kernel)) else {
        return;
    };
    let bench = Bench::new(stock, "scoped-arm64");
    for (kernel, partial) in kernels {
        let what = ["--kernel", kernel, "--load", "launch", "--seeds", "1", "--samples", "600"];
        let how = ["--explain", "--above", "p98", "--scope"];
        let ran = bench.run(&[&crate::for_arm64(&program)[..], &what, &how].concat());
        let cell = ran.lab.cells.iter().find(|cell| cell.load == "launch").unwrap();
        assert_eq!(cell.status, Status::Ok, "{}", ran.json);
        assert_eq!(cell.scope.as_ref().unwrap().failed, "", "{}", ran.json);

        let folder = cell.run.as_ref().unwrap();
        let again = ["scope", folder, "--functions", "--episodes", "20", "--json"];
        let mut command = bench.test.command(&again);
        bench.prepare(&mut command);
        let ended = Running::start(&mut command).output();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let scope = Scope::from_json(ended.stdout.as_bytes()).unwrap();
        assert_eq!((scope.drift_ns, scope.callers_lost, scope.sections_lost), (0, 0, 0));
        assert!(scope.has_callers && scope.sees_timer);
        assert_eq!(scope.preempt_count_partial, partial, "{kernel}");
        // Most sections with interrupts off begin and end in functions whose callers are known.
        let rows = scope.rows.iter().filter(|row| row.began.function.is_some());
        let (all, called) = rows.fold((0, 0), |(all, called), row| {
            let count = row.lengths.count;
            (all + count, called + if row.ended.caller.is_some() { count } else { 0 })
        });
        assert!(called > all / 2, "{kernel}: {called} of {all}");

        let run = record(Path::new(folder));
        assert!(!run.worst.is_empty());
        assert_eq!((scope.episodes.len(), &scope.no_episodes), (run.worst.len(), &None));
        for (seen, said) in scope.episodes.iter().zip(&run.worst) {
            assert_eq!(seen.wakeup_latency_ns, said.wakeup_latency_ns, "{kernel}");
            let all: u64 = seen.blame.iter().map(|share| share.ns).sum();
            assert_eq!(all, seen.wakeup_latency_ns, "{seen:#?}");
            assert_eq!(seen.components.unwrap().total_ns(), seen.wakeup_latency_ns, "{seen:#?}");
        }
        // Each of the tracer's times is a reading of the clock that the emulator saw.
        let explained = scope.explained.as_ref().unwrap();
        assert!(explained.late > 0 && explained.compared == explained.late, "{explained:#?}");
        assert!(explained.matched_times >= 3 * explained.compared, "{explained:#?}");
    }
}

/// Without a preempt count, as 6.1 is, what turns preemption off is not counted and so not seen.
#[test]
fn sections_that_a_module_makes_on_arm64_are_seen_to_the_nanosecond() {
    let name = "sections_that_a_module_makes_on_arm64_are_seen_to_the_nanosecond";
    let all = [
        ("disturb-irqs-off-300us", "irqs_off"),
        ("disturb-preempt-off-300us", "preempt_off"),
        ("disturb-spin-lock-300us", "preempt_off"),
    ];
    let kernels = [("6.1-cloud", &all[..1]), ("7.2-cloud", &all[..])];
    let Some((stock, program)) = crate::arm64(name, &kernels.map(|(kernel, _)| kernel)) else {
        return;
    };
    let bench = Bench::new(stock, "scoped-arm64");
    for (kernel, loads) in kernels {
        if let Err(why) = stock.build_module_for("arm64", kernel) {
            return skip(name, &why);
        }
        for &(load, kind) in loads {
            let what = ["--kernel", kernel, "--load", load, "--seeds", "1"];
            let how = ["--samples", "600", "--interval", "380us"];
            let log = ["--append", "WAKESCOPE_DISTURBANCES=/tmp/disturbances"];
            let ran = bench.run(&[&crate::for_arm64(&program)[..], &what, &how, &log].concat());
            let cell = ran.lab.cells.iter().find(|cell| cell.load == load).unwrap();
            assert_eq!(cell.status, Status::Ok, "{}", ran.json);
            let folder = Path::new(cell.run.as_ref().unwrap());
            let (made, seen) = (made(folder), seen(&bench, folder, kind));
            assert!(made.len() >= 5, "{kernel} {load}: {made:?}");
            assert_eq!(made.len(), seen.len(), "{kernel} {load}: {made:?} {seen:?}");
            assert_are_the_same(&made, &seen, load);
        }
    }
}

/// What holds it up elsewhere is not known of arm64 well enough.
#[test]
fn nothing_is_predicted_for_arm64() {
    let name = "nothing_is_predicted_for_arm64";
    let Some((stock, program)) = crate::arm64(name, &["7.2-cloud"]) else { return };
    let bench = Bench::new(stock, "predicted-arm64");
    let what = ["--kernel", "7.2-cloud", "--load", "idle", "--seeds", "1", "--samples", "100"];
    let ran = bench.run(&[&crate::for_arm64(&program)[..], &what].concat());
    let mut command = bench.test.command(&["predict", ran.lab.cells[0].run.as_ref().unwrap()]);
    bench.prepare(&mut command);
    let ended = Running::start(&mut command).output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("it is a cell of arm64"), "{ended:?}");
}
