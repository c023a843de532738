//! What guests say whose kernels hide what explaining needs.

use wakescope_core::explain::Frame;
use wakescope_core::lab::Status;

use crate::common::lab::{Bench, KERNEL};

#[test]
fn a_kernel_that_hides_its_memory_is_told_with_a_remedy() {
    let name = "a_kernel_that_hides_its_memory_is_told_with_a_remedy";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "locked-down");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", "find", "--seeds", "1"];
    let how = ["--samples", "200", "--explain", "--append", "lockdown=confidentiality"];
    let ran = bench.run(&[&what[..], &how].concat());
    let cell = ran.cell();
    assert_eq!((ran.code, cell.status), (Some(2), Status::Failed), "{}", ran.json);
    for text in ["lockdown is set to confidentiality", "→ boot without lockdown=confidentiality"]
    {
        assert!(cell.reason.contains(text), "{}", cell.reason);
    }
    assert_eq!((cell.max_ns, cell.culprit.as_ref()), (None, None), "{}", ran.json);
}

#[test]
fn a_kernel_that_hides_addresses_is_told_with_why() {
    let name = "a_kernel_that_hides_addresses_is_told_with_why";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "hidden");
    let what = ["--kernel", KERNEL, "--preempt", "none", "--load", "find", "--seeds", "1"];
    let how = ["--samples", "200", "--explain", "--above", "5us"];
    let ran =
        bench.run(&[&what[..], &how, &["--append", "sysctl.kernel.kptr_restrict=2"]].concat());
    let record = ran.record();
    let explanation = record.explanation.as_ref().unwrap();
    for text in [
        "names of functions: /proc/kallsyms hides addresses (kernel.kptr_restrict is 2)",
        "the timers that tasks sleep on (no hrtimer_wakeup in /proc/kallsyms)",
    ] {
        assert!(explanation.not_seen.iter().any(|unseen| unseen == text), "{explanation:#?}");
    }
    // All else is seen as ever.
    assert_eq!((explanation.wakeups, explanation.not_followed), (200, 0), "{explanation:#?}");
    let stacks = record.worst.iter().flat_map(|episode| &episode.blame).map(|share| &share.frames);
    let mut frames = stacks.flatten().peekable();
    assert!(frames.peek().is_some(), "{:#?}", record.worst);
    // Nor does the record tell the addresses.
    assert!(frames.all(|frame| *frame == Frame::default()), "{:#?}", record.worst);
}
