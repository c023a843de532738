//! Sections that the project's kernel module makes, and whether explanations tell their lengths.

use std::fs;
use std::path::Path;

use wakescope_core::explain::{Cause, Culprit};
use wakescope_core::run::Episode;

use crate::common::bench::skip;
use crate::common::lab::{Bench, KERNEL};

/// When sections began and ended, by the module's own clock.
fn sections(log: &str) -> Vec<[u64; 2]> {
    let numbers = |line: &str| line.split(' ').map(|word| word.parse().unwrap()).collect();
    let lines = log.lines().map(numbers);
    lines.map(|words: Vec<u64>| [words[1], words[2]]).collect()
}

/// Only a section is ever broken into there: everything else sleeps, or is in user mode for µs.
#[test]
fn sections_of_a_quiet_guest_with_real_time_preemption_are_named_from_the_first_one_on() {
    let name =
        "sections_of_a_quiet_guest_with_real_time_preemption_are_named_from_the_first_one_on";
    let kernel = "7.2-rt";
    let Some(stock) = crate::stock(name, &[kernel]) else { return };
    if let Err(why) = stock.build_module(kernel) {
        return skip(name, &why);
    }
    let bench = Bench::new(stock, "injected");
    let load = "disturb-preempt-off-300us";
    let what = ["--kernel", kernel, "--preempt", "rt", "--load", load, "--seeds", "1"];
    let how = ["--samples", "1300", "--interval", "380us", "--explain", "--above", "150us"];
    let ran = bench.run(&[&what[..], &how].concat());
    let run = ran.record();
    // While the load starts, the guest is not quiet.
    let is_late = |e: &&Episode| e.wakeup_latency_ns >= 150_000 && e.expiry_ns > 10_000_000;
    let late: Vec<_> = run.worst.iter().filter(is_late).collect();
    assert!(late.len() >= 5, "{late:#?}");
    for episode in late {
        let first = &episode.blame[0];
        assert_eq!(first.cause, Cause::PreemptOff, "{episode:#?}");
        // A stack that is taken only when the section ends begins in the scheduler.
        let frames: Vec<_> = first.frames.iter().map(|frame| frame.name()).collect();
        let innermost =
            frames.iter().take(2).any(|name| name.contains("wakescope_inject_preempt_off"));
        assert!(innermost && !frames[0].contains("sched"), "{frames:?}: {episode:#?}");
    }
}

#[test]
fn wakeups_that_a_section_with_interrupts_off_holds_up_are_blamed_on_it_to_the_microsecond() {
    let name =
        "wakeups_that_a_section_with_interrupts_off_holds_up_are_blamed_on_it_to_the_microsecond";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    if let Err(why) = stock.build_module(KERNEL) {
        return skip(name, &why);
    }
    let bench = Bench::new(stock, "injected");
    let load = "disturb-irqs-off-300us";
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", load, "--seeds", "1"];
    let how = ["--samples", "2000", "--interval", "380us", "--explain", "--above", "150us"];
    let log = ["--append", "WAKESCOPE_DISTURBANCES=/tmp/disturbances"];
    let ran = bench.run(&[&what[..], &how, &log].concat());
    let run = ran.record();
    let folder = Path::new(ran.cell().run.as_ref().unwrap());
    let sections = sections(&fs::read_to_string(folder.join("disturbances.log")).unwrap());
    assert!(sections.len() > 20, "{sections:?}");
    assert!(sections.iter().all(|[begin, end]| (300_000..303_000).contains(&(end - begin))));
    let late: Vec<_> = run.worst.iter().filter(|e| e.wakeup_latency_ns >= 150_000).collect();
    assert!(late.len() >= 5, "{late:#?}");
    for episode in late {
        let due = run.origin_ns + episode.expiry_ns;
        let met = sections.iter().find(|[begin, end]| *begin <= due + 5_000 && due < *end);
        let [begin, end] = met.unwrap_or_else(|| panic!("outside of {sections:?}: {episode:#?}"));
        let first = &episode.blame[0];
        let Culprit::Function(function) = &first.culprit else { panic!("{episode:#?}") };
        assert_eq!(first.cause, Cause::IrqOff, "{episode:#?}");
        assert_eq!(function.name, "wakescope_inject_irqs_off", "{episode:#?}");
        assert_eq!(function.module.as_deref(), Some("wakescope"), "{episode:#?}");
        let truth = end - due.max(*begin);
        assert!(first.ns.abs_diff(truth) <= 2_000, "{truth} ns: {episode:#?}");
    }
}
