//! What a record says that its late wakeups truly were.

use wakescope_core::explain::{Cause, Culprit};
use wakescope_core::run::{Episode, Run};
use wakescope_model::record::{Ending, Experiment, Recording};
use wakescope_model::simulation::Until;
use wakescope_model::{Image, Rules, Scenario, Simulation};

/// On each CPU a probe that is due when the other one is, and a task that may hold it up for as long.
const TWO_CPUS: &str = r#"
schema = "wakescope.scenario/1"
name = "two"
about = "two CPUs with the same lengths"
machine = { cpus = 2 }
task = [
  { name = "probe/0", policy = "fifo:50", cpu = 0, period = "1ms" },
  { name = "probe/1", policy = "fifo:50", cpu = 1, period = "1ms" },
  { name = "first", policy = "fifo:60", cpu = 0, path = "busy" },
  { name = "second", policy = "fifo:60", cpu = 1, path = "busy" },
]

[path]
busy = [{ user = "300us" }, { block = "100us" }]
"#;

/// The image, and a run of it that is not explained yet.
fn two_cpus() -> (Image, Run) {
    let scenario = Scenario::read("two.toml", TWO_CPUS, &|_, _| Err("no runs".into())).unwrap();
    let image = Image::new(&scenario, Rules::ALL[2]).unwrap();
    let experiment = Experiment { scenario: &scenario, image: &image, seed: 1, samples: 100 };
    let mut simulation = Simulation::new(&image, 1, Recording::new(&image));
    simulation.record_until(Until { samples: 100, ns: u64::MAX }).unwrap();
    let run = experiment.record(&simulation, Ending::Complete);
    (image, run)
}

#[test]
fn a_wakeup_as_late_at_the_same_time_on_another_cpu_has_another_truth() {
    let (image, mut run) = two_cpus();
    let own = run.worst[0].clone();
    let other = Episode { cpu: own.cpu.map(|cpu| 1 - cpu), ..own.clone() };
    run.worst = vec![own, other];
    assert!(wakescope_oracle::explain(&image, &mut run, &|_| true).unwrap());
    let told: Vec<_> = run.worst.iter().map(|episode| !episode.truth.is_empty()).collect();
    assert_eq!(told, [true, false], "{:?}", run.worst);
}

#[test]
fn each_late_wakeup_has_its_own_truth() {
    let (image, mut run) = two_cpus();
    assert!(wakescope_oracle::explain(&image, &mut run, &|_| true).unwrap());
    let mut told = 0;
    for episode in &run.worst {
        let sum: u64 = episode.truth.iter().map(|share| share.ns).sum();
        assert_eq!(sum, episode.wakeup_latency_ns, "{episode:?}");
        let held = episode.truth.iter().find(|share| share.cause == Cause::HigherPriorityTask);
        let Some(Culprit::Task(task)) = held.map(|share| &share.culprit) else { continue };
        let own = if episode.cpu == Some(0) { "first" } else { "second" };
        assert_eq!((task.comm.as_str(), task.priority), (own, Some(60)), "{episode:?}");
        told += 1;
    }
    assert!(told > 0, "no wakeup was late: {:?}", run.worst);
}
