//! Guests that give no result: failed cells with the log's decisive lines, never numbers.

use std::fs;

use serde_json::{Value, json};
use wakescope_core::lab::Status;
use wakescope_lab::parcel::{Item, pack};

use crate::common::lab::{Bench, KERNEL, NO_INIT, Ran, Stock, first_lab};
use crate::common::made_up_kernel::{End, MadeUp};

/// Runs a lab of one cell with `kernel`.
fn boot(bench: &Bench, kernel: &MadeUp, args: &[&str]) -> Ran {
    let path = kernel.write(&bench.test.dir, "kernel");
    let all = ["--kernel", path.to_str().unwrap(), "--load", "idle", "--seeds", "1"];
    bench.run(&[&all, args].concat())
}

/// Fails unless the only cell failed as `reason` has it, with `evidence` among its lines.
#[track_caller]
fn assert_failed(ran: &Ran, reason: &str, evidence: &str) {
    let cell = ran.cell();
    assert_eq!((ran.code, cell.status), (Some(2), Status::Failed), "{}", ran.json);
    assert!(cell.reason.contains(reason), "{:?}", cell.reason);
    assert!(cell.evidence.iter().any(|line| line.contains(evidence)), "{:?}", cell.evidence);
    assert_eq!((cell.max_ns, cell.p50_ns, cell.count), (None, None, 0));
}

#[test]
fn a_kernel_that_panics_is_a_failed_cell_with_the_panic() {
    let name = "a_kernel_that_panics_is_a_failed_cell_with_the_panic";
    let Some(stock) = Stock::get(name) else { return };
    let bench = Bench::new(stock, "panic");
    let args = ["--kernel", KERNEL, "--load", "idle", "--seeds", "1", "--append", NO_INIT];
    let ran = bench.run(&args);
    assert_failed(&ran, "the kernel panicked: not syncing: ", "Kernel panic - not syncing: ");
    assert_eq!(bench.cells().len(), 1, "a panic repeats, so it is kept");
    let shown = bench.lab(&[&["run", "--arch", "amd64"], &args[..]].concat());
    assert_eq!(shown.code, Some(2), "{shown:?}");
    assert!(shown.stdout.contains("failed"), "{}", shown.stdout);
    assert!(shown.stdout.contains("│ [") && shown.stdout.contains("Kernel panic"), "{shown:?}");
}

#[test]
fn a_kernel_that_stays_in_its_panic_is_not_waited_for() {
    let name = "a_kernel_that_stays_in_its_panic_is_not_waited_for";
    let Some(stock) = Stock::get(name) else { return };
    // For ever, and for a virtual day.
    for wait in ["panic=0", "panic=86400"] {
        let bench = Bench::new(stock, "stays");
        let append = format!("{NO_INIT} {wait}");
        let args = ["--kernel", KERNEL, "--load", "idle", "--seeds", "1", "--append", &append];
        let ran = bench.run(&args);
        assert_failed(&ran, "the kernel panicked: not syncing: ", "Kernel panic - not syncing: ");
        assert_eq!(bench.cells().len(), 1, "a panic repeats, so it is kept");
    }
}

#[test]
fn a_guest_out_of_virtual_time_is_a_failed_cell() {
    let Some(stock) = Stock::get("a_guest_out_of_virtual_time_is_a_failed_cell") else { return };
    let bench = Bench::new(stock, "virtual-time");
    // The guest's clock is 250 times as fast as its kernel can work, which therefore seems stuck.
    let append = ["--append", "tsc_early_khz=4000 nowatchdog"];
    let ran =
        bench.run(&[&["--kernel", KERNEL, "--load", "idle", "--seeds", "1"], &append[..]].concat());
    assert_failed(&ran, "did not finish within", "");
    assert_eq!(bench.cells().len(), 1, "it repeats, so it is kept");
}

#[test]
fn guests_that_end_without_a_result_are_failed_cells() {
    let name = "guests_that_end_without_a_result_are_failed_cells";
    let Some(stock) = Stock::get(name) else { return };
    let bench = Bench::new(stock, "no-result");
    let whole = MadeUp::sends_files(&[("check.json", "{}")]).results;
    let mut changed = whole.clone();
    changed[40] ^= 1;
    let oops = "BUG: kernel NULL pointer dereference, address: 0\nOops: 0002 [#1] PREEMPT SMP\n";
    let failed = json!({"error": "no such load", "time_up": false, "began_ns": 1, "ended_ns": 2});
    let failed = pack(&[Item::new("guest.json", failed.to_string())]);
    let cases = [
        (MadeUp::new(End::Restart), "restarted; the guest sent no result", None),
        (MadeUp::says("one\ntwo\n"), "restarted; the guest sent no result", Some("two")),
        (MadeUp::says("Kernel panic - not syncing: why\n"), "panicked: not syncing: why", None),
        (MadeUp::sends("nonsense\n"), "is damaged", None),
        (MadeUp::sends(&whole[..whole.len() - 9]), "before it had sent its result", None),
        (MadeUp::sends(changed), "is damaged", None),
        (MadeUp::sends(pack(&[])), "the guest sent no result", None),
        (MadeUp::sends_files(&[]), "sent no check.json", None),
        (MadeUp::sends_files(&[("check.json", "{")]), "cannot be read", None),
        (MadeUp::sends(failed), "no such load", None),
        // Whatever it sends, a kernel in trouble gives no result.
        (MadeUp { console: oops.into(), ..MadeUp::sends(whole) }, "had an oops", Some("BUG: ")),
    ];
    for (kernel, reason, evidence) in cases {
        let ran = boot(&bench, &kernel, &[]);
        assert_failed_with(&ran, reason, evidence);
    }
}

#[track_caller]
fn assert_failed_with(ran: &Ran, reason: &str, evidence: Option<&str>) {
    match evidence {
        Some(line) => assert_failed(ran, reason, line),
        None => {
            let cell = ran.cell();
            assert_eq!((ran.code, cell.status), (Some(2), Status::Failed), "{}", ran.json);
            assert!(cell.reason.contains(reason), "{:?} is not {reason:?}", cell.reason);
            assert_eq!(cell.max_ns, None);
        }
    }
}

#[test]
fn a_guest_that_never_ends_is_ended() {
    let Some(stock) = Stock::get("a_guest_that_never_ends_is_ended") else { return };
    let bench = Bench::new(stock, "endless");
    let kernel = MadeUp { console: "I stay\n".into(), ..MadeUp::new(End::Hang) };
    let ran = boot(&bench, &kernel, &["--timeout", "2s"]);
    assert_failed(&ran, "did not end within 2.00 s of host time", "I stay");
    assert_eq!(bench.emulators(), [0; 0]);
    assert_eq!(bench.cells(), [""; 0], "another host may be faster: it is not kept");
}

#[test]
fn what_a_guest_says_does_no_harm() {
    let Some((stock, pool, ran)) = first_lab("what_a_guest_says_does_no_harm") else { return };
    let bench = Bench::new(stock, "hostile");
    let esc = "\u{1b}[2J\u{1b}]0;gotcha\u{7}\u{9b}31m";
    let panic = format!("{esc}\r\nKernel panic - not syncing: {esc}\n");
    let facts = json!({"error": esc, "time_up": false, "began_ns": 1, "ended_ns": 2});
    let check = pool.cells().into_iter().find_map(|cell| pool.bits(&cell).remove("check.json"));
    let mut check: Value = serde_json::from_slice(&check.unwrap()).unwrap();
    check["preemption"]["model"] = "lazy".into();
    check["preemption"]["because"] = esc.into();
    check["behaviour"] = Value::Null;
    assert_eq!(ran.code, Some(0), "{}", ran.json);
    for (kernel, status) in [
        (MadeUp::says(panic), "failed"),
        (MadeUp::sends(pack(&[Item::new("guest.json", facts.to_string())])), "failed"),
        (MadeUp::sends_files(&[("check.json", &check.to_string())]), "lazy"),
    ] {
        let path = kernel.write(&bench.test.dir, "kernel");
        let args = ["--kernel", path.to_str().unwrap(), "--load", "idle", "--seeds", "1"];
        for format in [&[][..], &["--markdown"], &["--json"]] {
            let args = [&["run", "--arch", "amd64", "--preempt", "full"], &args[..], format];
            let ended = bench.lab(&args.concat());
            let text = ended.stdout + &ended.stderr;
            assert!(text.contains(status), "{text:?}");
            let harm = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(harm, None, "{text:?}");
        }
    }
}

#[test]
fn a_guest_image_that_differs_by_a_byte_is_another_cell() {
    let name = "a_guest_image_that_differs_by_a_byte_is_another_cell";
    let Some(stock) = Stock::get(name) else { return };
    let bench = Bench::new(stock, "byte");
    let config = bench.test.dir.join("config");
    let kernel = MadeUp::says("Kernel panic - not syncing: enough\n");
    let run = |text: &str| {
        fs::write(&config, text).unwrap();
        let ran = boot(&bench, &kernel, &["--config", config.to_str().unwrap()]);
        assert_failed(&ran, "enough", "enough");
        bench.cells()
    };
    let one = run("CONFIG_HZ=250\nCONFIG_HZ_250=y\n");
    let two = run("CONFIG_HZ=251\nCONFIG_HZ_250=y\n");
    assert_eq!((one.len(), two.len()), (1, 2));
    assert_eq!(run("CONFIG_HZ=250\nCONFIG_HZ_250=y\n"), two, "that was run before");
}
