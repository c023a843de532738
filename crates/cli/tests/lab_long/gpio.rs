//! Round trips of edges between lines of a GPIO chip that a guest's kernel simulates (gpio-sim).

use wakescope_core::lab::Status;

use crate::common::bench::skip;
use crate::common::lab::Bench;

/// Debian's kernels before this one are built without gpio-sim, and those for virtual machines without GPIO.
const KERNEL: &str = "7.2-rt";

#[test]
fn edges_go_over_lines_of_a_gpio_chip_and_are_answered() {
    let name = "edges_go_over_lines_of_a_gpio_chip_and_are_answered";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let Some(program) = std::env::var("WAKESCOPE_TEST_GPIO").ok() else {
        return skip(name, "WAKESCOPE_TEST_GPIO names no program of a guest (make test-lab)");
    };
    let bench = Bench::new(stock, "gpio");
    let what = ["--kernel", KERNEL, "--preempt", "default", "--load", "idle", "--seeds", "1"];
    let with = ["--module", "gpio-sim", "--guest-program", &program];
    // It sends no result: all that it has to say is in the log.
    let ran = bench.run(&[&what[..], &with].concat());
    assert_eq!(ran.cell().status, Status::Failed, "{}", ran.json);
    let [cell] = &bench.cells()[..] else { panic!("{:?}", bench.cells()) };
    let log = bench.bits(cell).remove("console.log").expect("a log");
    let log = String::from_utf8_lossy(&log).into_owned();
    assert!(log.contains("gpio: all passed"), "{log}");
    for trouble in ["WARNING", "BUG", "Call Trace", "rcu:", "scheduling while atomic"] {
        assert!(!log.contains(trouble), "{trouble}: {log}");
    }
}
