//! Real-time clocks, which guests have whatever the host has.

use wakescope_core::explain::StepEvent;
use wakescope_core::plan::Stimulus;

use crate::common::lab::{Bench, KERNEL, first_lab};

#[test]
fn the_clock_of_a_guest_wakes_its_probe() {
    let Some((stock, pool, _)) = first_lab("the_clock_of_a_guest_wakes_its_probe") else { return };
    let bench = Bench::new(stock, "rtc");
    bench.take_kernels(&pool);
    let what = [
        "--kernel",
        KERNEL,
        "--preempt",
        "full",
        "--load",
        "idle",
        "--seeds",
        "1",
        "--samples",
        "200",
    ];
    let how = ["--stimulus", "rtc", "--interval", "488281ns", "--explain", "--above", "5us"];
    let ran = bench.run(&[&what[..], &how].concat());
    let record = ran.record();
    assert_eq!(record.plan.stimulus, Stimulus::Rtc);
    let thread = &record.threads[0];
    assert_eq!((thread.woken.count, thread.missed), (200, 0));
    // In virtual time a call takes a few µs at the most, and no wakeup is earlier than its expiry.
    assert!((1..20_000).contains(&thread.due_uncertainty_ns), "{thread:?}");
    assert!(record.validity.findings.iter().any(|f| f.code == "rtc-phase"), "{record:?}");
    assert!(record.validity.findings.iter().all(|f| f.code != "early"), "{record:?}");
    // The grid does not drift: what one interval is too long, others are too short.
    let deviation = record.summary.interval_deviation.unwrap();
    assert_eq!(deviation.count, 199);
    assert!(deviation.mean_ns.abs() < 100.0, "{deviation:?}");
    // Each begins with the timer that makes the interrupt, for whom that is unknown to the tracer.
    let explanation = record.explanation.as_ref().unwrap();
    assert_eq!((explanation.wakeups, explanation.not_followed), (200, 0), "{explanation:#?}");
    for episode in record.worst.iter().filter(|episode| !episode.blame.is_empty()) {
        let first = &episode.timeline[0].event;
        assert!(matches!(first, StepEvent::TimerExpiry { .. }), "{:#?}", episode.timeline);
    }
}
