//! Who gets how much of a CPU: tasks that never sleep, and those that seldom do.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Two tasks that compute in the kernel, and the lines of the first of `until_ms` in which the one's slice ends.
fn end_of_a_slice(rules: &str, until_ms: u64) -> Vec<String> {
    let mut busy = scenario(vec![Step::Compute(us(100_000))]);
    busy.machine.tick_hz = 100;
    busy.tasks[0] = ScenarioTask { name: "other".into(), ..busy.tasks[1].clone() };
    let until = Until { samples: u64::MAX, ns: until_ms * 1_000_000 };
    lines(&busy, rules, until, &|_, at_ns, what| {
        let what = match what {
            Transition::NeedResched { lazy: true } => "lazy",
            Transition::NeedResched { lazy: false } => "now",
            Transition::Switch { from: Some(_), .. } => "switch",
            _ => return None,
        };
        Some(format!("{} ms: {what}", at_ns / 1_000_000))
    })
}

#[test]
fn the_end_of_a_slice_is_lazy_until_the_next_tick() {
    assert_eq!(end_of_a_slice("full", 19), ["10 ms: now", "10 ms: switch"]);
    assert_eq!(end_of_a_slice("lazy", 29), ["10 ms: lazy", "20 ms: now", "20 ms: switch"]);
}

/// What tasks of these policies get of 10 s, per mille, in 10 us of user mode at a time. A probe of this policy
/// comes each 7 ms.
fn shares(rules: &str, cpus: u32, probe: TaskPolicy, hogs: &[TaskPolicy]) -> Vec<u64> {
    let mut scenario = scenario(vec![Step::User(us(10)), Step::Work]);
    scenario.machine = Machine { cpus, tick_hz: 250, idle_states: Vec::new() };
    scenario.tasks[0].policy = probe;
    scenario.tasks[0].does = Does::Probe { period_ps: 7_000_000_000, path: None };
    let hog = scenario.tasks.remove(1);
    scenario.tasks.extend(hogs.iter().enumerate().map(|(number, &policy)| {
        let name = format!("hog{number}");
        ScenarioTask { name, policy, ..hog.clone() }
    }));
    shares_of(&scenario, rules)
}

fn shares_of(scenario: &Scenario, rules: &str) -> Vec<u64> {
    let image = Image::new(scenario, Rules::named(rules).unwrap()).unwrap();
    let mut ignore = |_| ();
    let mut simulation = Simulation::new(&image, 1, Unwatched(&mut ignore));
    simulation.run_until(Until { samples: u64::MAX, ns: 10 * SECOND }).unwrap();
    let hogs = (1..scenario.tasks.len()).map(TaskId::at);
    hogs.map(|task| simulation.work(task) / 1_000).collect()
}

#[track_caller]
fn assert_near(rules: &str, shares: &[u64], want: &[u64]) {
    let is_near = |(share, want): (&u64, &u64)| share.abs_diff(*want) <= 8;
    assert!(shares.iter().zip(want).all(is_near), "{rules}: {shares:?}, not {want:?}");
}

#[test]
fn fair_tasks_share_a_cpu_by_their_weights() {
    use TaskPolicy::{Fifo, Other};
    for (cpus, probe, nice, want) in [
        (1, Fifo(80), &[0, 0][..], &[500, 500][..]),
        (1, Other(0), &[0, 0, 0], &[333, 333, 333]),
        // Weights of 1024, 335 and 110.
        (1, Fifo(80), &[0, 5, 10], &[697, 228, 75]),
        (1, Other(0), &[-5, 0], &[753, 247]),
        // Tasks are on the CPUs in turn, after the probe, and move to none that is busy.
        (2, Fifo(80), &[0, 0, 0], &[500, 1_000, 500]),
        (2, Other(0), &[5, 0, 0, 5], &[246, 752, 752, 246]),
    ] {
        let hogs: Vec<TaskPolicy> = nice.iter().map(|&nice| Other(nice)).collect();
        for rules in Rules::ALL {
            assert_near(rules.name, &shares(rules.name, cpus, probe, &hogs), want);
        }
    }
}

#[test]
fn a_fair_probe_waits_for_no_more_than_a_slice_and_a_tick() {
    let mut busy = scenario(vec![Step::User(us(1_000)), Step::Work]);
    busy.machine.tick_hz = 250;
    busy.tasks[0].policy = TaskPolicy::Other(0);
    busy.tasks[0].does = Does::Probe { period_ps: 7_000_000_000, path: None };
    for rules in Rules::ALL {
        let latencies = latencies(&busy, rules.name);
        assert!(latencies.len() >= 142, "{}: {}", rules.name, latencies.len());
        let (_, worst) = range(&latencies);
        assert!(worst < 8_000_000, "{}: {worst}", rules.name);
    }
}

#[test]
fn a_task_that_slept_for_long_does_not_run_alone_for_long() {
    // The load runs alone for 2 s, without a switch, and then shares the CPU: 2 + 4 of 10 s.
    let sleeper = vec![
        Step::Block { length: us(2_000_000), interrupt: None },
        Step::Repeat(Count::Fixed(1_000_000), vec![Step::User(us(10)), Step::Work]),
    ];
    let mut busy = scenario(vec![Step::User(us(10)), Step::Work]);
    busy.machine.tick_hz = 250;
    busy.paths.push(Path { name: "sleeper".into(), steps: sleeper });
    busy.tasks.push(ScenarioTask {
        name: "sleeper".into(),
        does: Does::Path("sleeper".into()),
        ..ScenarioTask::default()
    });
    busy.tasks[0].does = Does::Probe { period_ps: 20_000_000_000_000, path: None };
    for rules in Rules::ALL {
        assert_near(rules.name, &shares_of(&busy, rules.name), &[600, 400]);
    }
}

#[test]
fn round_robin_gives_each_of_a_priority_its_turn_however_often_it_is_preempted() {
    use TaskPolicy::{Fifo, Other, RoundRobin};
    for (hogs, want) in [
        (&[RoundRobin(10), RoundRobin(10)][..], &[500, 500][..]),
        (&[RoundRobin(10), RoundRobin(10), RoundRobin(10)], &[333, 333, 333]),
        // A FIFO task has no slice, and a more urgent task does not give way.
        (&[Fifo(10), RoundRobin(10)], &[1_000, 0]),
        (&[RoundRobin(11), RoundRobin(10)], &[1_000, 0]),
        (&[RoundRobin(10), Other(0)], &[1_000, 0]),
    ] {
        for rules in Rules::ALL {
            assert_near(rules.name, &shares(rules.name, 1, Fifo(80), hogs), want);
        }
    }
}
