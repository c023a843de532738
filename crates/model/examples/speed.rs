//! How many operations a simulation executes per second of CPU time: `cargo run --release --example speed`, of a scenario of
//! its own, or `cargo run --release --example speed williams 5000000`, of one that is shipped.

use wakescope_model::scenario::Shipped;
use wakescope_model::scenario::{
    Arrivals, Does, Interrupt, InterruptKind, Length, LockKind, Path, Scenario, ScenarioTask, Step,
    TaskPolicy,
};
use wakescope_model::simulation::{Sample, Simulation, Until, Unwatched};
use wakescope_model::{Image, Rules};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let scenario = match arguments.next() {
        Some(name) => Shipped::named(&name).expect("it is shipped").read().expect("it is right"),
        None => own_scenario(),
    };
    let samples = arguments.next().map_or(500_000, |count| count.parse().expect("a number"));
    for rules in Rules::ALL {
        measure(&scenario, rules, samples);
    }
}

/// A load with every kind of section, an interrupt, and a probe.
fn own_scenario() -> Scenario {
    let ns = Length::Fixed;
    let path = |name: &str, steps| Path { name: name.into(), steps };
    let load = vec![
        Step::User(Length::Exponential(40_000)),
        Step::Call(
            "sys_unlink".into(),
            vec![
                Step::Lock(LockKind::Spin, "dcache_lock".into()),
                Step::Compute(Length::Exponential(5_000)),
                Step::Unlock(LockKind::Spin, "dcache_lock".into()),
                Step::IrqSave,
                Step::Compute(ns(2_000)),
                Step::IrqRestore,
            ],
        ),
        Step::Work,
    ];
    Scenario {
        paths: vec![path("load", load), path("eth0", vec![Step::Compute(ns(2_000))])],
        tasks: vec![
            ScenarioTask {
                name: "probe".into(),
                policy: TaskPolicy::Fifo(80),
                cpu: None,
                group: None,
                does: Does::Probe { period_ps: 488_281_250, path: None },
            },
            ScenarioTask {
                name: "load".into(),
                does: Does::Path("load".into()),
                ..ScenarioTask::default()
            },
        ],
        interrupts: vec![Interrupt {
            name: "eth0".into(),
            kind: InterruptKind::Device,
            arrivals: Some(Arrivals::Poisson(500_000)),
            cpu: None,
            handler: "eth0".into(),
        }],
        ..Scenario::default()
    }
}

fn measure(scenario: &Scenario, rules: Rules, samples: u64) {
    let image = Image::new(scenario, rules).expect("the scenario is right");
    let (mut sum, mut most) = (0_u64, 0);
    let mut count = |sample: Sample| {
        sum += sample.latency_ns();
        most = most.max(sample.latency_ns());
    };
    let begun = cpu_ns();
    let mut simulation = Simulation::new(&image, 1, Unwatched(&mut count));
    let until = Until { samples, ns: u64::MAX };
    simulation.run_until(until).expect("the scenario keeps the rules");
    let seconds = (cpu_ns() - begun) as f64 / 1e9;
    let events = simulation.events();
    drop(simulation);
    let name = rules.name;
    let line = format!(
        "{name:10} {:6.1} million operations a second of CPU time, {:5.2} million samples, {:4.1} operations a sample, \
         mean {} ns, max {most} ns\n",
        events as f64 / seconds / 1e6,
        samples as f64 / seconds / 1e6,
        events as f64 / samples as f64,
        sum / samples.max(1),
    );
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).expect("it can print");
}

/// What this thread has had of CPUs, in ns. A busy machine changes that less than what a clock on the wall says.
fn cpu_ns() -> u64 {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel counts CPU time");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number of ns")
}
