use super::*;
use crate::scenario::{
    Does, LockKind, Machine, Measured, Path, ScenarioTask, Step, length::Length,
};
use crate::simulation::Until;

fn scenario(steps: Vec<Step>) -> Scenario {
    let task = |name: &str, policy, does| ScenarioTask {
        name: name.into(),
        policy,
        cpu: None,
        group: None,
        does,
    };
    Scenario {
        name: "test".into(),
        machine: Machine { cpus: 1, tick_hz: 250, idle_states: Vec::new() },
        paths: vec![Path { name: "load".into(), steps }],
        tasks: vec![
            task("probe", TaskPolicy::Fifo(80), Does::Probe { period_ps: 488_281_250, path: None }),
            task("load", TaskPolicy::Other(0), Does::Path("load".into())),
        ],
        ..Scenario::default()
    }
}

fn recorded(scenario: &Scenario, rules: &str, samples: u64) -> Run {
    let image = Image::new(scenario, Rules::named(rules).unwrap()).unwrap();
    let experiment = Experiment { scenario, image: &image, seed: 7, samples };
    let mut simulation = Simulation::new(&image, 7, Recording::new(&image));
    let until = Until { samples, ns: experiment.longest_ns() };
    simulation.run_until(until).unwrap();
    let is_whole = simulation.samples() >= samples;
    experiment.record(&simulation, if is_whole { Ending::Complete } else { Ending::TooLong })
}

#[test]
fn a_record_is_consistent_and_repeats_to_the_bit() {
    let scenario = scenario(vec![
        Step::Lock(LockKind::Spin, "lock".into()),
        Step::Compute(Length::Exponential(2_000_000)),
        Step::Unlock(LockKind::Spin, "lock".into()),
        Step::User(Length::Fixed(500_000)),
        Step::Work,
    ]);
    let run = recorded(&scenario, "both", 1_000);
    assert_eq!(run.fault(), None);
    assert_eq!((run.threads[0].woken.count, run.threads[0].cpu), (1_000, Some(0)));
    assert!(run.missed() > 100, "late wakeups swallow expiries: {}", run.missed());
    assert_eq!(run.plan.stimulus, Stimulus::RtcGrid);
    assert_eq!((run.time_domain, run.host.preemption.model), (TimeDomain::Simulated, Model::Full));
    assert_eq!(run.load[0].name, "load");
    let rate = run.load[0].work as f64 / (run.duration_ns as f64 / 1e9);
    assert!(rate > 100.0 && (rate - run.load[0].per_second).abs() < 1e-6, "{rate}");
    assert_eq!(run.to_json(), recorded(&scenario, "both", 1_000).to_json());
    assert_ne!(run.id, recorded(&scenario, "full", 1_000).id);
}

#[test]
fn that_a_run_was_ended_is_said_before_whom_that_met_waiting() {
    let lock = || "lock".into();
    let steps = vec![
        Step::Lock(LockKind::Spin, lock()),
        Step::Compute(Length::Fixed(2_000_000)),
        Step::Unlock(LockKind::Spin, lock()),
        Step::User(Length::Fixed(500_000)),
    ];
    let scenario = scenario(steps);
    let image = Image::new(&scenario, Rules::named("full").unwrap()).unwrap();
    let experiment = Experiment { scenario: &scenario, image: &image, seed: 7, samples: 1_000 };
    let mut simulation = Simulation::new(&image, 7, Recording::new(&image));
    while experiment.unanswered(&simulation, simulation.now_ns()).is_none() {
        let ns = simulation.now_ns() + 100_000;
        simulation.run_until(Until { samples: 1_000, ns }).unwrap();
    }
    let run = experiment.record(&simulation, Ending::Interrupted);
    let findings = run.validity.findings.iter().filter(|finding| finding.code == "interrupted");
    let said: Vec<&str> = findings.map(|finding| finding.message.as_str()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("ended early: ") && said[1].contains("had been due"), "{said:?}");
}

#[test]
fn published_figures_make_no_other_scenario() {
    let plain = scenario(vec![Step::Compute(Length::Fixed(1))]);
    let published = Scenario { published: vec!["somebody: 5 ms".into()], ..plain.clone() };
    assert_eq!(plain.checksum(), published.checksum());
    let measured = Measured { max_ns: Some(5_000_000), ..Measured::default() };
    let measured = Scenario { measured: vec![measured], ..plain.clone() };
    assert_eq!(plain.checksum(), measured.checksum());
    let other = scenario(vec![Step::Compute(Length::Fixed(2))]);
    assert_ne!(plain.checksum(), other.checksum());
}

#[test]
fn a_probe_that_never_runs_makes_a_run_invalid() {
    let mut starved = scenario(vec![Step::User(Length::Fixed(1_000_000))]);
    starved.tasks[0].policy = TaskPolicy::Fifo(1);
    starved.tasks[1].policy = TaskPolicy::Fifo(2);
    let run = recorded(&starved, "full", 100);
    let codes: Vec<&str> = run.validity.findings.iter().map(|f| f.code.as_str()).collect();
    assert_eq!(run.validity.verdict, wakescope_core::finding::Verdict::Invalid);
    assert_eq!(codes, ["no-samples", "overload", "simulated-time"]);
}

#[test]
fn expiries_that_a_wakeup_swallows_are_counted_once() {
    // The probe responds, and something more urgent takes the CPU before it sleeps again: it is late for
    // the next expiry, and that is a sample, not a gap.
    let stall = vec![
        Step::Block { length: Length::Exponential(3_000_000), interrupt: None },
        Step::User(Length::Fixed(2_000_000)),
    ];
    let mut stalled = scenario(stall);
    stalled.tasks[1].policy = TaskPolicy::Fifo(90);
    let run = recorded(&stalled, "full", 2_000);
    let thread = &run.threads[0];
    let expiries = run.duration_ns * 1_000 / 488_281_250;
    assert!(
        thread.expiries.count.abs_diff(expiries) <= 1,
        "{} of {expiries}",
        thread.expiries.count
    );
    assert!(thread.expiries.max_ns.unwrap() > 1_900_000);
}
