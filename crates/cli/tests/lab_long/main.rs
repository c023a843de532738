//! `wakescope lab` on more kernels, with more seeds: many minutes (`make test-lab`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::bench::skip;
use common::disturbed::{Disturbed, is_blamed_on};
use common::episodes::{LEAVES_SOFTIRQS, assert_some_softirqs_were_left};
use common::lab::{Bench, KERNEL, Ran, Stock};
use common::measured::names;
use wakescope_core::explain::{Cause, Step, StepEvent};
use wakescope_core::lab::{Cell, Status, Verdict};
use wakescope_core::preemption::Model;
use wakescope_core::run::Run;

mod busy;
mod card;
#[path = "../common/mod.rs"]
mod common;
mod counted;
mod device;
mod early;
mod gpio;
mod hidden;
mod injected;
mod ports;
mod programs;
mod saved;
mod scoped;
mod scoped_arm64;
mod sections;
mod selftest;
mod starved;

/// `None`, and so said for `test`, unless it was asked for what takes long.
fn stock(test: &str, kernels: &[&str]) -> Option<&'static Stock> {
    if std::env::var_os("WAKESCOPE_TEST_LAB").is_none() {
        skip(test, "it takes many minutes, and WAKESCOPE_TEST_LAB is not set (make test-lab)");
        return None;
    }
    let stock = Stock::get(test)?;
    match stock.fetch("amd64", kernels) {
        Ok(()) => Some(stock),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

/// The image of a kernel that is older than those of the catalogue; or why there is none.
fn old_kernel(series: &str) -> Result<String, String> {
    let folder = common::root().join("target/old-kernels").join(series).join("boot");
    let images = names(&folder).into_iter().filter(|name| name.starts_with("vmlinuz-"));
    let missing = || format!("there is no image in {} (scripts/old-kernels)", folder.display());
    let image = images.max().ok_or_else(missing)?;
    Ok(folder.join(image).to_str().expect("a path of UTF-8").to_owned())
}

/// The same with `kernels` for arm64, and the program that their guests run.
fn arm64(test: &str, kernels: &[&str]) -> Option<(&'static Stock, String)> {
    let stock = stock(test, &[])?;
    let named = std::env::var_os("WAKESCOPE_GUEST_ARM64").map(PathBuf::from);
    let program = named.unwrap_or(common::root().join("target/guest/wakescope-aarch64"));
    let missing = match program.is_file() {
        false => Err(format!("there is no {} (make guest-arm64)", program.display())),
        true => stock.fetch("arm64", kernels),
    };
    match missing {
        Ok(()) => Some((stock, program.to_str().expect("a path of UTF-8").to_string())),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

/// What a lab is asked for that runs `program` in guests of arm64.
fn for_arm64(program: &str) -> [&str; 4] {
    ["--arch", "arm64", "--guest-program", program]
}

/// The median over the seeds of the largest lateness, by load and model.
fn medians(cells: &[Cell]) -> BTreeMap<(String, String), u64> {
    let mut all: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for cell in cells {
        let max = cell.max_ns.unwrap_or_else(|| panic!("{cell:?}"));
        all.entry((cell.load.clone(), cell.asked.clone())).or_default().push(max);
    }
    let median = |mut values: Vec<u64>| {
        values.sort_unstable();
        u64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
    };
    all.into_iter().map(|(arm, values)| (arm, median(values))).collect()
}

#[track_caller]
fn assert_all_ok(ran: &Ran) {
    assert!(ran.lab.cells.iter().all(|cell| cell.status == Status::Ok), "{}", ran.json);
}

#[test]
fn models_come_out_in_the_order_that_theory_has() {
    let name = "models_come_out_in_the_order_that_theory_has";
    let Some(stock) = stock(name, &["6.1-rt"]) else { return };
    let bench = Bench::new(stock, "order");
    let common = ["--load", "find,launch", "--seeds", "10", "--samples", "2000"];
    let stock_kernel = ["--kernel", KERNEL, "--preempt", "none,voluntary,full"];
    // What ran for the first pair is not run again.
    let compared = |pair: &str| {
        let ran = bench.run(&[&stock_kernel[..], &common, &["--compare", pair]].concat());
        assert_all_ok(&ran);
        ran
    };
    let ran = compared("none:full");
    let rt = bench.run(&[&["--kernel", "6.1-rt", "--preempt", "rt"], &common[..]].concat());
    assert_all_ok(&rt);
    let (stock_kernel, rt) = (medians(&ran.lab.cells), medians(&rt.lab.cells));
    for load in ["find", "launch"] {
        let of = |model: &str| stock_kernel[&(load.into(), model.into())];
        let [none, voluntary, full] = ["none", "voluntary", "full"].map(of);
        let rt = rt[&(load.into(), "rt".into())];
        let all = format!("{load}: none {none}, voluntary {voluntary}, full {full}, rt {rt} ns");
        assert!(none > voluntary && none > full && full > rt, "{all}");
        // What preemption is for.
        assert!(none > 2 * full, "{all}");
    }
    assert_eq!(ran.code, Some(0), "{:?}", ran.lab.comparisons);
    // Under `find` points where code lets go are as dense as it needs. (6.1: medians of 8.3 and 8.6 us, of maxima
    // from 5.1 to 12.2 under either.)
    for (pair, load, allowed) in [
        ("none:voluntary", "find", &[Verdict::Better][..]),
        ("none:voluntary", "launch", &[Verdict::Better]),
        (
            "voluntary:full",
            "find",
            &[Verdict::Better, Verdict::NoDifference, Verdict::Inconclusive],
        ),
        ("voluntary:full", "launch", &[Verdict::Better]),
    ] {
        let comparisons = compared(pair).lab.comparisons;
        let of_load = comparisons.iter().find(|comparison| comparison.load == load).unwrap();
        assert!(allowed.contains(&of_load.verdict), "{pair}: {of_load:?}");
    }
}

/// `PREEMPT_RT` of 6.1 turns an interrupt off that nobody seems to handle for 100,000 times. That of the
/// serial line is one for each byte.
#[test]
fn a_real_time_kernel_sends_results_of_any_length() {
    let name = "a_real_time_kernel_sends_results_of_any_length";
    let Some(stock) = stock(name, &["6.1-rt"]) else { return };
    let bench = Bench::new(stock, "length");
    let cell = ["--kernel", "6.1-rt", "--preempt", "rt", "--load", "idle", "--seeds", "1"];
    let how = ["--samples", "1000", "--explain", "--above", "1ns", "--worst", "500"];
    let ran = bench.run(&[&cell[..], &how].concat());
    assert_all_ok(&ran);
    let folder = PathBuf::from(ran.cell().run.as_ref().unwrap());
    let sent = std::fs::metadata(folder.join("run.json")).unwrap().len();
    assert!(sent > 150_000, "{sent} bytes");
    let console = std::fs::read_to_string(folder.join("console.log")).unwrap();
    assert!(!console.contains("nobody cared"), "{console}");
}

/// With `PREEMPT_RT` a probe that sets its next timer may wait for the lock of softirqs, which the thread of timers
/// holds. When that released it, the tracer took this for the expiry that was due by then: in 7 of the 7 latest.
#[test]
fn a_probe_that_waited_for_a_lock_was_not_woken_by_its_timer() {
    let name = "a_probe_that_waited_for_a_lock_was_not_woken_by_its_timer";
    let Some(stock) = stock(name, &["6.1-rt"]) else { return };
    let bench = Bench::new(stock, "lock");
    let cell = ["--kernel", "6.1-rt", "--preempt", "rt", "--load", "file-move", "--seeds", "1"];
    let how = ["--samples", "600", "--stimulus", "timerfd", "--interval", "60us", "--explain"];
    let ran = bench.run(&[&cell[..], &how].concat());
    assert_all_ok(&ran);
    let record = ran.record();
    let explained: Vec<_> =
        record.worst.iter().filter(|episode| !episode.blame.is_empty()).collect();
    assert!(!explained.is_empty(), "{record:?}");
    for episode in explained {
        let first = &episode.timeline[0].event;
        assert!(matches!(first, StepEvent::TimerExpiry { .. }), "{:#?}", episode.timeline);
    }
}

/// Fails unless two labs, each with an empty cache, have the same bits. What ran in one of them lies in its
/// folder for as long as the lab is kept.
#[track_caller]
fn assert_repeats(stock: &'static Stock, args: &[&str]) -> (Ran, Bench) {
    let benches = ["once", "again"].map(|name| Bench::new(stock, name));
    let [once, again] = benches.each_ref().map(|bench| bench.run(args));
    assert_eq!(once.result(), again.result());
    assert_eq!(benches[0].cells(), benches[1].cells());
    for cell in benches[0].cells() {
        let [one, other] = benches.each_ref().map(|bench| bench.bits(&cell));
        assert!(one == other, "{cell}: {:?}", differing(&one, &other));
    }
    let [bench, _] = benches;
    (once, bench)
}

fn differing<'a>(
    one: &'a BTreeMap<String, Vec<u8>>,
    other: &BTreeMap<String, Vec<u8>>,
) -> Vec<&'a String> {
    one.iter().filter(|(name, bytes)| other.get(*name) != Some(bytes)).map(|(n, _)| n).collect()
}

#[test]
fn every_load_repeats_to_the_bit() {
    let Some(stock) = stock("every_load_repeats_to_the_bit", &[]) else { return };
    let loads = "idle,find,launch,file-move,cpu,find+launch";
    let args = ["--kernel", KERNEL, "--preempt", "none", "--load", loads, "--seeds", "2"];
    let (ran, _lab) = assert_repeats(stock, &[&args[..], &["--samples", "300"]].concat());
    assert_all_ok(&ran);
    assert_eq!(ran.lab.cells.len(), 12);
}

#[test]
fn newer_kernels_run_what_they_are_asked_for_and_repeat_to_the_bit() {
    let name = "newer_kernels_run_what_they_are_asked_for_and_repeat_to_the_bit";
    let kernels = ["6.12-cloud", "7.2-cloud", "7.2-rt"];
    let Some(stock) = stock(name, &kernels) else { return };
    for (kernel, models) in [
        ("6.12-cloud", &[Model::None, Model::Voluntary, Model::Full][..]),
        ("7.2-cloud", &[Model::Full, Model::Lazy]),
        ("7.2-rt", &[Model::Rt]),
    ] {
        let asked: Vec<String> = models.iter().map(|m| m.to_string().to_lowercase()).collect();
        let asked = asked.join(",");
        let args = ["--kernel", kernel, "--preempt", &asked, "--load", "find", "--seeds", "1"];
        let (ran, _lab) = assert_repeats(stock, &[&args[..], &["--samples", "300"]].concat());
        assert_all_ok(&ran);
        let ran_models: Vec<_> = ran.lab.cells.iter().filter_map(|cell| cell.model).collect();
        assert_eq!(ran_models, models, "{kernel}");
    }
}

/// Where a kernel has the softirqs that are pending: x86 up to 6.1, up to 6.14, and since; arm64.
#[test]
fn kernels_show_which_softirqs_they_leave() {
    let name = "kernels_show_which_softirqs_they_leave";
    let Some(stock) = stock(name, &["6.12-cloud", "7.2-cloud"]) else { return };
    let check = |kernel: &[&str]| {
        let bench = Bench::new(stock, "left");
        let ran = bench.run(&[kernel, &LEAVES_SOFTIRQS].concat());
        assert_all_ok(&ran);
        assert_some_softirqs_were_left(Path::new(ran.cell().run.as_ref().unwrap()));
    };
    for series in ["5.10", "5.15"] {
        match old_kernel(series) {
            Ok(image) => check(&["--kernel", &image, "--preempt", "default"]),
            Err(why) => skip(&format!("{name}, {series}"), &why),
        }
    }
    for kernel in [KERNEL, "6.12-cloud", "7.2-cloud"] {
        check(&["--kernel", kernel, "--preempt", "full"]);
    }
    let Some((_, program)) = arm64(name, &["6.1-cloud", "7.2-cloud"]) else { return };
    for kernel in ["6.1-cloud", "7.2-cloud"] {
        check(&[&["--kernel", kernel][..], &for_arm64(&program)].concat());
    }
}

#[test]
fn kernels_for_arm64_repeat_to_the_bit() {
    let name = "kernels_for_arm64_repeat_to_the_bit";
    let Some((stock, program)) = arm64(name, &[KERNEL]) else { return };
    let load = ["--kernel", KERNEL, "--load", "idle,find", "--seeds", "2", "--samples", "300"];
    let (ran, _lab) = assert_repeats(stock, &[&for_arm64(&program)[..], &load].concat());
    assert_all_ok(&ran);
    assert_eq!(ran.lab.kernels[0].arch, "arm64");
}

#[test]
fn modules_are_loaded_with_all_that_they_need() {
    let name = "modules_are_loaded_with_all_that_they_need";
    // Those of the second are compressed.
    let kernels = [KERNEL, "6.12-cloud"];
    let Some(stock) = stock(name, &kernels) else { return };
    let bench = Bench::new(stock, "modules");
    for kernel in kernels {
        let args = ["--kernel", kernel, "--load", "idle", "--seeds", "1", "--samples", "100"];
        let ran = bench.run(&[&args[..], &["--module", "dm-crypt,null_blk,loop"]].concat());
        assert_all_ok(&ran);
        let log = bench.bits(&ran.keys()[0]).remove("kernel.log").unwrap();
        let log = String::from_utf8_lossy(&log);
        // dm_mod says this, which dm-crypt needs, and null_blk, which is behind them.
        for said in ["device-mapper: ioctl: ", "null_blk: module loaded", "loop: module loaded"] {
            assert!(log.contains(said), "{kernel}, {said}: {log}");
        }
    }
}

#[test]
fn a_guest_of_two_cpus_is_measured_when_asked_for_twice() {
    let name = "a_guest_of_two_cpus_is_measured_when_asked_for_twice";
    let Some(stock) = stock(name, &[]) else { return };
    let bench = Bench::new(stock, "smp");
    let args = ["--kernel", KERNEL, "--preempt", "full", "--load", "idle", "--seeds", "1"];
    let two = ["--samples", "100", "--cpus", "2", "--experimental-smp"];
    let ran = bench.run(&[&args[..], &two].concat());
    assert_all_ok(&ran);
    assert_eq!(ran.lab.settings.cpus, 2);
}

#[test]
fn what_holds_wakeups_up_is_found() {
    let Some(stock) = stock("what_holds_wakeups_up_is_found", &["7.2-cloud"]) else { return };
    let bench = Bench::new(stock, "found");
    for (kernel, preempt) in [(KERNEL, "none"), (KERNEL, "full"), ("7.2-cloud", "full")] {
        for (kind, cause, culprit) in [
            ("fifo", Cause::HigherPriorityTask, "disturb-fifo"),
            ("syscall", Cause::NoPreemptionPoint, ""),
            ("softirq", Cause::Softirq, "NET_RX"),
        ] {
            for length_us in [100, 300, 1_000] {
                let (machine, samples) = (&[], 0);
                let bare = Disturbed {
                    machine,
                    kernel,
                    preempt,
                    kind,
                    length_us,
                    samples,
                    cause,
                    culprit,
                };
                // Two seconds.
                let disturbed = Disturbed { samples: 2_000_000 / bare.interval_us(), ..bare };
                if kind == "syscall" && preempt == "full" {
                    disturbed.assert_late_never(&bench);
                } else {
                    disturbed.assert_found(&bench, 20);
                }
            }
        }
    }
}

#[test]
fn what_holds_wakeups_up_is_found_on_arm64() {
    let name = "what_holds_wakeups_up_is_found_on_arm64";
    let kernels = [(KERNEL, "voluntary"), ("7.2-cloud", "lazy")];
    let Some((stock, program)) = arm64(name, &kernels.map(|(kernel, _)| kernel)) else { return };
    let (bench, machine) = (Bench::new(stock, "arm64"), &for_arm64(&program)[..]);
    for (kernel, preempt) in kernels {
        let disturbed = |kind, cause, culprit| {
            let (length_us, samples) = (300, 5_500);
            Disturbed { machine, kernel, preempt, kind, length_us, samples, cause, culprit }
        };
        let fifo = disturbed("fifo", Cause::HigherPriorityTask, "disturb-fifo");
        fifo.assert_found(&bench, 20);
        disturbed("softirq", Cause::Softirq, "NET_RX").assert_found(&bench, 20);
        let call = disturbed("syscall", Cause::NoPreemptionPoint, "");
        if preempt == "lazy" {
            call.assert_late_never(&bench);
            continue;
        }
        let run = call.assert_found(&bench, 20);
        for share in run.worst.iter().filter_map(|episode| episode.blame.first()) {
            // Whatever it was at within the call, also where that has no frame of its own.
            for function in ["do_sys_poll", "__arm64_sys_ppoll"] {
                let is_in = share.frames.iter().any(|frame| frame.name() == function);
                assert!(is_in, "{kernel}, {function}: {share:#?}");
            }
        }
    }
}

/// What an interrupt is called that came while a wakeup waited.
fn interrupt_of(step: &Step) -> Option<&str> {
    match &step.event {
        StepEvent::Interrupt { name } if step.depth > 0 => name.as_deref(),
        _ => None,
    }
}

#[test]
fn interrupts_between_cpus_of_arm64_are_seen_once_and_called_by_their_reasons() {
    let name = "interrupts_between_cpus_of_arm64_are_seen_once_and_called_by_their_reasons";
    let Some((stock, program)) = arm64(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "arm64-ipi");
    let what = ["--kernel", KERNEL, "--load", "launch", "--seeds", "1", "--samples", "1000"];
    let how = ["--cpus", "2", "--experimental-smp", "--explain", "--above", "10us"];
    let all = [&for_arm64(&program)[..], &what, &how, &["--worst", "1000", "--bound"]].concat();
    let ran = bench.run(&all);
    assert_all_ok(&ran);
    let run = bench.bits(&ran.keys()[0]).remove("run.json").unwrap();
    let run = Run::from_json(&run).unwrap();
    let steps = run.worst.iter().flat_map(|episode| &episode.timeline);
    let mut interrupts: BTreeSet<&str> = steps.filter_map(interrupt_of).collect();
    // It depends on the course of the guest which of them comes while a wakeup waits.
    assert!(
        interrupts.contains("reschedule") || interrupts.contains("call_function"),
        "{interrupts:?}"
    );
    // All that came at all.
    let bound = run.explanation.as_ref().and_then(|explanation| explanation.bound.as_ref());
    let all = &bound.expect("a bound").variables.interrupts;
    interrupts.extend(all.iter().map(|source| source.culprit.name()));
    assert!(interrupts.contains("reschedule"), "{interrupts:?}");
    assert!(!interrupts.contains("IPI"), "{interrupts:?}");
}

/// At half the length, a disturbance now and then catches the probe before it sleeps, when its next
/// timer is due. 7.2 does not set one then.
#[test]
fn wakeups_that_were_due_before_the_probe_slept_are_followed() {
    let name = "wakeups_that_were_due_before_the_probe_slept_are_followed";
    let Some(stock) = stock(name, &["7.2-cloud"]) else { return };
    let bench = Bench::new(stock, "awake");
    let what = ["--kernel", "7.2-cloud", "--preempt", "full", "--load", "disturb-fifo-300us"];
    let how = ["--seeds", "1", "--samples", "12000", "--interval", "150us"];
    let explain = ["--explain", "--above", "150us", "--worst", "1000"];
    let ran = bench.run(&[&what[..], &how, &explain].concat());
    assert_all_ok(&ran);
    let run = bench.bits(&ran.keys()[0]).remove("run.json").unwrap();
    let run = Run::from_json(&run).unwrap();
    let explanation = run.explanation.as_ref().unwrap();
    assert_eq!((explanation.wakeups, explanation.not_followed), (12_000, 0), "{explanation:?}");
    let begins = run.worst.iter().filter_map(|late| late.timeline.first());
    let is_awake = |step: &&Step| matches!(step.event, StepEvent::NotAsleep { .. });
    assert!(begins.filter(is_awake).count() > 0, "{:#?}", run.worst.first());
    for late in run.worst.iter().filter(|late| late.wakeup_latency_ns >= 150_000) {
        let first = &late.blame[0];
        assert!(is_blamed_on(first, "disturb-fifo"), "{late:#?}");
    }
}

#[test]
fn lockdown_of_a_kernels_memory_is_told_and_that_of_its_integrity_hinders_nobody() {
    let name = "lockdown_of_a_kernels_memory_is_told_and_that_of_its_integrity_hinders_nobody";
    let Some(stock) = stock(name, &["7.2-cloud"]) else { return };
    let bench = Bench::new(stock, "lockdown");
    for kernel in [KERNEL, "7.2-cloud"] {
        let what = ["--kernel", kernel, "--preempt", "full", "--load", "find", "--seeds", "1"];
        let how = ["--samples", "200", "--explain", "--append"];
        let run = |append| bench.run(&[&what[..], &how, &[append]].concat());
        let integrity = run("lockdown=integrity");
        assert_all_ok(&integrity);
        assert!(integrity.cell().culprit.is_some(), "{}", integrity.json);
        let hidden = run("lockdown=confidentiality");
        assert_eq!((hidden.code, hidden.cell().max_ns), (Some(2), None), "{}", hidden.json);
        let text = "lockdown is set to confidentiality";
        assert!(hidden.cell().reason.contains(text), "{}", hidden.json);
    }
}

#[test]
fn the_oldest_kernel_that_can_be_explained_is() {
    let name = "the_oldest_kernel_that_can_be_explained_is";
    let Some(stock) = stock(name, &[]) else { return };
    let kernel = match old_kernel("5.10") {
        Ok(kernel) => kernel,
        Err(why) => return skip(name, &why),
    };
    let kernel = &kernel;
    let bench = Bench::new(stock, "oldest");
    for (kind, cause, culprit) in
        [("fifo", Cause::HigherPriorityTask, "disturb-fifo"), ("softirq", Cause::Softirq, "NET_RX")]
    {
        let (preempt, length_us, samples) = ("default", 300, 5_500);
        let machine = &[];
        let disturbed =
            Disturbed { machine, kernel, preempt, kind, length_us, samples, cause, culprit };
        disturbed.assert_found(&bench, 20);
    }
}
