//! Late wakeups of guests that come before it is known what is late.

use wakescope_core::percentile::Percentile;

use crate::common::lab::Bench;

/// In this guest a wakeup comes soon that is later than any other by far. Half of all 500 wakeups are late in the
/// end, which cannot be known before all of them have come.
#[test]
fn what_comes_early_has_a_record_if_it_is_late_in_the_end() {
    let name = "what_comes_early_has_a_record_if_it_is_late_in_the_end";
    const KERNEL: &str = "6.12-cloud";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "early");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", "file-move", "--seeds", "1"];
    let how = ["--samples", "500", "--explain", "--above", "p50", "--worst", "500"];
    let run = bench.run(&[&what[..], &how].concat()).record();
    let explanation = run.explanation.as_ref().unwrap();
    assert_eq!((explanation.wakeups, explanation.lost_records), (500, 0), "{explanation:#?}");
    assert_eq!(explanation.explained, explanation.late, "{explanation:#?}");
    let median = run.woken().percentile("p50".parse::<Percentile>().unwrap());
    assert!(run.woken().max_ns > median.map(|ns| 8 * ns), "{median:?}, {:?}", run.woken().max_ns);
    let worst_at = run.worst.first().map(|worst| worst.expiry_ns);
    let late_after = run.worst.iter().filter(|late| Some(late.expiry_ns) > worst_at).count();
    assert!(late_after > 20, "{late_after} late wakeups came after the worst: {:#?}", run.worst);
}
