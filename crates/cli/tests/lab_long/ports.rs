//! The spare serial ports of guests: round trips over a cable between them, and a load that writes to one.

use wakescope_core::line::{AnsweredBy, Attachment};

use crate::common::lab::{Bench, KERNEL};

#[test]
fn round_trips_in_a_guest_go_over_two_ports_and_a_serial_load_writes_to_one() {
    let name = "round_trips_in_a_guest_go_over_two_ports_and_a_serial_load_writes_to_one";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "ports");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--seeds", "1", "--samples", "200"];
    let run_of = |how: &[&str]| bench.run(&[&what[..], how].concat()).record();
    let run = run_of(&["--load", "idle", "--stimulus", "line"]);
    let line = run.line.as_ref().unwrap();
    assert_eq!((line.attachment, line.answered_by), (Attachment::Loopback, AnsweredBy::Responder));
    assert_eq!((line.baud, line.transmission_ns, line.receive_trigger_bytes), (None, 0, Some(1)));
    assert_eq!((line.unanswered, line.stray), (0, 0), "{line:?}");
    assert!(line.left_out < 20, "{line:?}");
    assert_eq!(run.threads[0].woken.count, 200);
    // Two interrupts, two worker threads and two wakeups: more than one wakeup, and no timer's tick.
    let summary = &run.summary;
    let [min, max] = [summary.min_ns, summary.max_ns].map(|ns| ns.unwrap());
    assert!((5_000..200_000).contains(&min) && max < 1_000_000, "{summary:?}");

    let run = run_of(&["--load", "serial:ttyS2"]);
    assert_eq!((run.load[0].name.as_str(), run.load[0].alive), ("serial:ttyS2", true));
    assert!(run.load[0].work > 1_000, "{:?}", run.load);
}
