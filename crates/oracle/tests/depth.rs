//! How deep preemption is off in the tracer's programs alone, which it has to learn.

use wakescope_core::explain::Cause;
use wakescope_model::record::{Ending, Experiment, Recording};
use wakescope_model::simulation::Until;
use wakescope_model::{Image, Rules, Scenario, Simulation};

/// Interrupts break into idle, or into a section with preemption off, and into nothing else.
const SECTIONS_AND_IDLE: &str = r#"
schema = "wakescope.scenario/1"
name = "idle"
about = "a section with preemption off, and idle time"
task = [
  { name = "probe", policy = "fifo:80", period = "1ms" },
  { name = "load", path = "load" },
]

[path]
load = [{ block = "2ms" }, { call = "f", do = ["preempt_disable", { compute = "300us" }, "preempt_enable"] }]
"#;

#[test]
fn idle_tells_how_deep_preemption_is_off_in_a_section() {
    let scenario = Scenario::read("idle.toml", SECTIONS_AND_IDLE, &|_, _| Err("no runs".into()));
    let scenario = scenario.unwrap();
    let image = Image::new(&scenario, Rules::named("full").unwrap()).unwrap();
    let experiment = Experiment { scenario: &scenario, image: &image, seed: 1, samples: 2_000 };
    let mut simulation = Simulation::new(&image, 1, Recording::new(&image));
    simulation.record_until(Until { samples: 2_000, ns: u64::MAX }).unwrap();
    let mut run = experiment.record(&simulation, Ending::Complete);
    assert!(wakescope_oracle::explain(&image, &mut run, &|_| true).unwrap());
    let truth = run.explanation.unwrap().truth.unwrap();
    let sections = truth.causes.iter().find(|row| row.cause == Cause::PreemptOff).unwrap();
    assert!(sections.right_ns * 100 > sections.ns * 99, "{truth:?}");
    assert!(truth.right * 100 > truth.wakeups * 99, "{truth:?}");
}
