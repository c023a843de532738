//! Wakeups that waited through more than the truth has room for.

use wakescope_model::record::{Ending, Experiment, Recording};
use wakescope_model::simulation::Until;
use wakescope_model::{Image, Rules, Scenario, Simulation};

/// One wakeup waits for 400 ms, in which there are 80,000 interrupts.
const STARVED: &str = r#"
schema = "wakescope.scenario/1"
name = "starved"
about = "a probe below a busy task"
machine = { cpus = 1 }
costs = { interrupt_entry = "100ns", interrupt_exit = "100ns" }
task = [
  { name = "probe", policy = "fifo:1", period = "10ms" },
  { name = "busy", policy = "fifo:2", path = "busy" },
]
interrupt = [
  { name = "nic", kind = "unthreaded", path = "nic", arrives = { periodic = "5us" } },
]

[path]
nic = [{ compute = "1us" }]
busy = [{ user = "400ms" }, { block = "300ms" }]
"#;

#[test]
fn a_wakeup_that_cannot_be_compared_with_the_truth_is_counted() {
    let scenario = Scenario::read("starved.toml", STARVED, &|_, _| Err("no runs".into())).unwrap();
    let image = Image::new(&scenario, Rules::ALL[2]).unwrap();
    let experiment = Experiment { scenario: &scenario, image: &image, seed: 1, samples: 40 };
    let mut simulation = Simulation::new(&image, 1, Recording::new(&image));
    simulation.record_until(Until { samples: 40, ns: u64::MAX }).unwrap();
    let mut run = experiment.record(&simulation, Ending::Complete);
    assert!(wakescope_oracle::explain(&image, &mut run, &|_| true).unwrap());
    let explanation = run.explanation.unwrap();
    let truth = explanation.truth.unwrap();
    assert_eq!(truth.wakeups + truth.uncompared, explanation.explained, "{truth:?}");
    assert_eq!(truth.uncompared, 1, "{truth:?}");
    let compared_ns: u64 = truth.causes.iter().map(|cause| cause.ns).sum();
    assert!(compared_ns < 100_000_000, "of the others only: {truth:?}");
}
