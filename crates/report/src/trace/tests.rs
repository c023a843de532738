use expect_test::expect;
use proptest::prelude::*;
use wakescope_core::explain::{Cause, Components, Share, Step, StepEvent};
use wakescope_core::maxima::Maxima;
use wakescope_core::plan::Stimulus;
use wakescope_core::run::{Episode, Run};

use super::write;
use crate::explain::tests::runs::culprit_of;
use crate::text::tests::run_of;

/// What is written of a run.
fn written(run: &Run) -> String {
    let mut out = Vec::new();
    write(run, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A run in which each CPU has wakeups from 2 to 6 µs late.
fn small() -> Run {
    run_of(&[&[2_000, 2_999, 4_100, 6_700], &[2_500, 5_000]])
}

#[test]
fn the_curve_of_gaps_is_of_lengths() {
    let mut run = small();
    run.threads[1].maxima = Some(Maxima { slot_ns: 1 << 20, max_ns: vec![Some(6_700)] });
    assert!(written(&run).contains("largest lateness, CPU 1"));
    run.plan.stimulus = Stimulus::Spin;
    assert!(written(&run).contains("largest length, CPU 1"));
}

/// A wakeup so late, half of it before the interrupt.
fn explained(late: u64) -> Episode {
    let share = |cause, ns| Share {
        cause,
        ns,
        culprit: culprit_of(cause, "spin[7] fifo 95"),
        ..Default::default()
    };
    Episode {
        components: Some(Components {
            irq_latency_ns: late / 2,
            sched_duration_ns: Some(late - late / 2),
            ..Default::default()
        }),
        blame: vec![
            share(Cause::HigherPriorityTask, late / 3),
            share(Cause::Unexplained, late - late / 3),
        ],
        timeline: vec![Step {
            at_ns: late / 2,
            depth: 0,
            event: StepEvent::Interrupt { name: Some("interrupt \u{1b}[31m".into()) },
        }],
        ..Default::default()
    }
}

#[test]
fn a_trace_has_episodes_components_and_blame() {
    let mut run = small();
    run.worst = vec![Episode {
        cpu: Some(1),
        expiry_ns: 5_000_000_123,
        wakeup_latency_ns: 9_000,
        missed: 2,
        ..explained(9_000)
    }];
    run.threads[1].maxima = Some(Maxima { slot_ns: 1 << 20, max_ns: vec![None, Some(6_700)] });
    expect![[r#"
        {"displayTimeUnit":"ns","traceEvents":[
        {"args":{"name":"wakescope run x (kernel 6.12.95)"},"name":"process_name","ph":"M","pid":1,"tid":0},
        {"args":{"name":"CPU 1"},"name":"thread_name","ph":"M","pid":1,"tid":1},
        {"ts":5000000.123,"dur":9.000,"args":{"missed":2,"wakeup_latency_ns":9000},"name":"late by 9.00 µs","ph":"X","pid":1,"tid":1},
        {"ts":5000000.123,"dur":4.500,"args":{"ns":4500},"name":"irq_latency","ph":"X","pid":1,"tid":1},
        {"ts":5000004.623,"dur":4.500,"args":{"ns":4500},"name":"sched_duration","ph":"X","pid":1,"tid":1},
        {"ts":5000004.623,"args":{"depth":0},"name":"interrupt �[31m taken","ph":"i","pid":1,"s":"t","tid":1},
        {"args":{"name":"CPU 1: attribution, largest first, not in time order"},"name":"thread_name","ph":"M","pid":1,"tid":2},
        {"ts":5000000.123,"dur":3.000,"args":{"cause":"higher_priority_task","culprit":"spin[7] fifo 95","evidence":"bound","ns":3000,"stack":"","within":""},"name":"higher-priority task spin[7] fifo 95","ph":"X","pid":1,"tid":2},
        {"ts":5000003.123,"dur":6.000,"args":{"cause":"unexplained","culprit":"","evidence":"bound","ns":6000,"stack":"","within":""},"name":"unexplained","ph":"X","pid":1,"tid":2},
        {"ts":1048.576,"args":{"us":6.7},"name":"largest lateness, CPU 1","ph":"C","pid":1}
        ]}
    "#]].assert_eq(&written(&run));
}

proptest! {
    #[test]
    fn slices_of_a_track_do_not_overlap(
        episodes in prop::collection::vec((0_u32..2, 0_u64..50, 0_u64..20), 0..20),
    ) {
        let mut run = small();
        run.worst = episodes.into_iter().map(|(cpu, at, late)| Episode {
            cpu: Some(cpu), expiry_ns: at, wakeup_latency_ns: late, ..explained(late)
        }).collect();
        let trace: serde_json::Value =
            serde_json::from_str(&written(&run)).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let ns = |value: &serde_json::Value| (value.as_f64().unwrap() * 1e3).round();
        let slices: Vec<(u64, f64, f64)> = events.iter().filter(|e| e["ph"] == "X")
            .map(|e| (e["tid"].as_u64().unwrap(), ns(&e["ts"]), ns(&e["ts"]) + ns(&e["dur"]))).collect();
        for a in &slices {
            for b in slices.iter().filter(|b| b.0 == a.0) {
                let apart = a.2 <= b.1 || b.2 <= a.1;
                let within = (a.1 >= b.1 && a.2 <= b.2) || (b.1 >= a.1 && b.2 <= a.2);
                prop_assert!(apart || within, "{:?} and {:?}", a, b);
            }
        }
        let late = events.iter().filter(|e| e["name"].as_str().unwrap().starts_with("late by"));
        prop_assert_eq!(late.count(), run.worst.len());
    }
}
