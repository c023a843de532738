//! What `watch` and `explain --pid` count of waits, against the kernel's own count of them.

use wakescope_core::lab::Status;

use crate::common::bench::skip;
use crate::common::lab::{Bench, KERNEL, Stock};
use crate::{old_kernel, stock};

/// Boots guests of this kernel with one and two CPUs, which compare: on two, tasks are moved from one to the
/// other.
fn assert_equal(stock: &Stock, kernel: &str, program: &str) {
    for cpus in ["1", "2"] {
        let bench = Bench::new(stock, "counted");
        let what = ["--kernel", kernel, "--preempt", "default", "--load", "idle"];
        let how = ["--seeds", "1", "--cpus", cpus, "--experimental-smp"];
        let ran = bench.run(&[&what[..], &how, &["--guest-program", program]].concat());
        // It sends no result: all that it has to say is in the log.
        assert_eq!(ran.cell().status, Status::Failed, "{}", ran.json);
        let [cell] = &bench.cells()[..] else { panic!("{:?}", bench.cells()) };
        let log = bench.bits(cell).remove("console.log").expect("a log");
        let log = String::from_utf8_lossy(&log).into_owned();
        assert!(log.contains("watch: all equal"), "{kernel}, {cpus} CPUs: {log}");
        for trouble in ["WARNING", "BUG", "Call Trace", "rcu:", "scheduling while atomic"] {
            assert!(!log.contains(trouble), "{kernel}, {cpus} CPUs: {trouble}: {log}");
        }
    }
}

/// The lab, and the program of its guests; or `None`, which is said.
fn guests(name: &str, kernels: &[&str]) -> Option<(&'static Stock, String)> {
    let stock = stock(name, kernels)?;
    let program = std::env::var("WAKESCOPE_TEST_WATCH").ok();
    if program.is_none() {
        skip(name, "WAKESCOPE_TEST_WATCH names no program of a guest (make test-lab)");
    }
    Some((stock, program?))
}

/// The arguments of the tracepoint are others before 5.18, and fields that the program reads move.
#[test]
fn what_is_counted_of_waits_is_what_older_and_newer_kernels_count() {
    let name = "what_is_counted_of_waits_is_what_older_and_newer_kernels_count";
    let kernels = [KERNEL, "6.1-rt", "7.2-cloud", "7.2-rt"];
    let Some((stock, program)) = guests(name, &kernels) else { return };
    for kernel in kernels {
        assert_equal(stock, kernel, &program);
    }
}

/// They count waits that had no stamp, too; and a quota stops queues, by another clock than later.
#[test]
fn what_is_counted_of_waits_is_what_the_oldest_kernels_count() {
    let name = "what_is_counted_of_waits_is_what_the_oldest_kernels_count";
    let Some((stock, program)) = guests(name, &[]) else { return };
    for series in ["5.10", "5.15"] {
        match old_kernel(series) {
            Ok(kernel) => assert_equal(stock, &kernel, &program),
            Err(why) => skip(name, &why),
        }
    }
}
