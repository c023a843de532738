//! Rules by hand-worked tables of what happens when.

use super::*;
use crate::Rules;
use crate::scenario::{
    Costs, Count, Does, InterruptKind, Length, LockBreak, LockKind, Machine, Path, Scenario,
    ScenarioTask, Step, TaskPolicy,
};
use crate::trace::Transition;

mod bandwidth;
mod bottom_half;
mod fairness;
mod tables;
mod theory;

/// A probe each millisecond, first at its phase, and a task that runs `steps` again and again. The
/// kernel's own steps take 100 ns each where they take any time.
fn scenario(steps: Vec<Step>) -> Scenario {
    let ns = Length::Fixed;
    Scenario {
        name: "test".into(),
        machine: Machine { cpus: 1, tick_hz: 0, idle_states: Vec::new() },
        costs: Costs {
            interrupt_entry: ns(100),
            interrupt_exit: ns(100),
            timer_function: ns(100),
            tick: ns(100),
            schedule: ns(100),
            switch: ns(100),
            return_to_user: ns(100),
            ipi: ns(100),
        },
        paths: vec![Path { name: "load".into(), steps }],
        tasks: vec![
            ScenarioTask {
                name: "probe".into(),
                policy: TaskPolicy::Fifo(80),
                cpu: None,
                group: None,
                does: Does::Probe { period_ps: 1_000_000_000, path: None },
            },
            ScenarioTask {
                name: "load".into(),
                does: Does::Path("load".into()),
                ..ScenarioTask::default()
            },
        ],
        ..Scenario::default()
    }
}

fn us(us: u64) -> Length {
    Length::Fixed(us * 1_000)
}

/// All latencies of a second under these rules, nanoseconds.
fn latencies(scenario: &Scenario, rules: &str) -> Vec<u64> {
    let image = Image::new(scenario, Rules::named(rules).unwrap()).unwrap();
    let mut latencies = Vec::new();
    let mut keep = |sample: Sample| latencies.push(sample.latency_ns());
    let mut simulation = Simulation::new(&image, 1, Unwatched(&mut keep));
    simulation.run_until(Until { samples: 1_000, ns: 1_000_000_000 }).unwrap();
    latencies
}

/// What happens, in the words of `line`; it leaves out what a test is not about.
struct Lines<'a> {
    image: &'a Image,
    line: &'a Line,
    lines: Vec<String>,
}

type Line = dyn Fn(&Image, u64, Transition) -> Option<String>;

impl Watch for Lines<'_> {
    const FOLLOWS: bool = true;

    fn sample(&mut self, _: Sample) {}

    fn happened(&mut self, _: CpuId, at_ns: u64, what: Transition) {
        self.lines.extend((self.line)(self.image, at_ns, what));
    }
}

/// All that happens under these rules, a line each.
fn lines(scenario: &Scenario, rules: &str, until: Until, line: &Line) -> Vec<String> {
    let image = Image::new(scenario, Rules::named(rules).unwrap()).unwrap();
    let watch = Lines { image: &image, line, lines: Vec::new() };
    let mut simulation = Simulation::new(&image, 1, watch);
    simulation.run_until(until).unwrap();
    simulation.into_watch().lines
}

/// The least and the most.
fn range(latencies: &[u64]) -> (u64, u64) {
    (*latencies.iter().min().unwrap(), *latencies.iter().max().unwrap())
}

#[test]
fn an_idle_machine_takes_what_its_steps_take() {
    // Entry, timer function, exit, scheduler, switch, return to user mode: 600 ns.
    let asleep = scenario(vec![Step::Block { length: us(1_000_000), interrupt: None }]);
    for rules in Rules::ALL {
        let latencies = latencies(&asleep, rules.name);
        assert_eq!(range(&latencies), (600, 600), "{}", rules.name);
        assert!(latencies.len() >= 999, "{}", latencies.len());
    }
}

#[test]
fn a_probe_runs_its_path_before_it_responds() {
    let mut asleep = scenario(vec![Step::Block { length: us(1_000_000), interrupt: None }]);
    asleep.paths.push(Path { name: "faults".into(), steps: vec![Step::PageFault(us(7))] });
    asleep.tasks[0].does = Does::Probe { period_ps: 1_000_000_000, path: Some("faults".into()) };
    let latencies = latencies(&asleep, "full");
    assert_eq!(range(&latencies), (7_600, 7_600));
    assert!(latencies.len() >= 999, "{}", latencies.len());
}

#[test]
fn a_long_system_call_holds_the_probe_up_unless_the_kernel_can_be_preempted() {
    // 300 us in the kernel, 7 us in user mode.
    let load = scenario(vec![Step::Compute(us(300)), Step::User(us(7))]);
    for (rules, most) in [("none", 300_600), ("voluntary", 300_600), ("full", 600), ("rt", 600)] {
        let (least, worst) = range(&latencies(&load, rules));
        assert_eq!(least, 600, "{rules}");
        assert!(worst <= most && worst > most * 9 / 10, "{rules}: {worst}");
    }
}

#[test]
fn a_deadline_is_so_long_after_each_wakeup_whatever_woke_the_task() {
    let by_timer = Step::Block { length: us(20_000), interrupt: None };
    let by_event = Step::Wait("go".into());
    for (woken, whose) in [(by_timer, "a timer"), (by_event, "another task")] {
        let mut scenario = scenario(vec![woken, Step::Compute(us(5_000))]);
        scenario.tasks[0].policy = TaskPolicy::Deadline(1_000_000);
        scenario.tasks[1].policy = TaskPolicy::Deadline(100_000_000);
        scenario.tasks.push(ScenarioTask {
            name: "waker".into(),
            policy: TaskPolicy::Fifo(50),
            does: Does::Path("waker".into()),
            ..ScenarioTask::default()
        });
        let steps =
            vec![Step::Block { length: us(20_000), interrupt: None }, Step::Wake("go".into())];
        scenario.paths.push(Path { name: "waker".into(), steps });
        // The probe is due first whenever both are ready, and waits for steps of the kernel only.
        let (_, worst) = range(&latencies(&scenario, "full"));
        assert!(worst < 2_000, "woken by {whose}: {worst}");
    }
}

#[test]
fn spin_locks_hold_up_all_but_those_that_sleep() {
    let load = scenario(vec![
        Step::Lock(LockKind::Spin, "lock".into()),
        Step::Compute(us(300)),
        Step::Unlock(LockKind::Spin, "lock".into()),
        Step::User(us(7)),
    ]);
    for (rules, most) in [("none", 300_600), ("full", 300_600), ("both", 300_600), ("rt", 600)] {
        let (_, worst) = range(&latencies(&load, rules));
        assert!(worst <= most && worst > most * 9 / 10, "{rules}: {worst}");
    }
}

#[test]
fn lock_breaking_bounds_a_loop_by_its_iterations() {
    let iterate = |every| {
        scenario(vec![
            Step::Lock(LockKind::Spin, "dcache_lock".into()),
            Step::Repeat(
                Count::Fixed(1_000),
                vec![
                    Step::Compute(Length::Fixed(100)),
                    Step::LockBreak(LockBreak {
                        lock: "dcache_lock".into(),
                        every,
                        restart: false,
                    }),
                ],
            ),
            Step::Unlock(LockKind::Spin, "dcache_lock".into()),
            Step::User(us(7)),
        ])
    };
    for (rules, every, most) in [
        ("full", 100, 100_600),
        ("voluntary", 100, 10_600),
        ("both", 100, 10_600),
        ("both", 1, 700),
        ("both", 500, 50_600),
    ] {
        let (_, worst) = range(&latencies(&iterate(every), rules));
        assert!(worst <= most && worst > most * 9 / 10, "{rules} {every}: {worst}");
    }
}

/// A device whose interrupt raises a softirq, and a softirq of 300 us that takes a lock.
fn with_softirq(steps: Vec<Step>) -> Scenario {
    let softirq = vec![
        Step::Lock(LockKind::Spin, "queue".into()),
        Step::Compute(us(300)),
        Step::Unlock(LockKind::Spin, "queue".into()),
        Step::RaiseSoftirq(1),
    ];
    let mut scenario = scenario(steps);
    let interrupt = |name: &str, kind, every, handler: &str| crate::scenario::Interrupt {
        name: name.into(),
        kind,
        arrivals: every,
        cpu: None,
        handler: handler.into(),
    };
    let every = Some(crate::scenario::Arrivals::Periodic(730_000));
    scenario.interrupts = vec![
        interrupt("eth0", InterruptKind::Device, every, "raise"),
        interrupt("rx", InterruptKind::Softirq(3), None, "softirq"),
        interrupt("timers", InterruptKind::Softirq(1), None, "short"),
    ];
    for (name, steps) in [
        ("raise", vec![Step::RaiseSoftirq(3)]),
        ("softirq", softirq),
        ("short", vec![Step::Compute(us(1))]),
    ] {
        scenario.paths.push(Path { name: name.into(), steps });
    }
    scenario
}

#[test]
fn softirqs_hold_up_all_models_but_the_one_that_runs_them_as_threads() {
    let load = with_softirq(vec![Step::User(us(7))]);
    for (rules, least, most) in
        [("none", 270_000, 303_000), ("full", 270_000, 303_000), ("rt", 600, 2_000)]
    {
        let (_, worst) = range(&latencies(&load, rules));
        assert!((least..=most).contains(&worst), "{rules}: {worst}");
    }
}

#[test]
fn a_softirq_of_a_thread_sleeps_for_a_lock_and_is_done_as_often() {
    // The task that holds the lock is interrupted by the device, whose softirq wants it. Without threads
    // that would be a deadlock: there, softirqs are off meanwhile.
    let load = with_softirq(vec![
        Step::Lock(LockKind::SpinBh, "queue".into()),
        Step::Compute(us(100)),
        Step::Unlock(LockKind::SpinBh, "queue".into()),
        Step::User(us(7)),
    ]);
    for rules in ["full", "rt"] {
        let image = Image::new(&load, Rules::named(rules).unwrap()).unwrap();
        let mut simulation = Simulation::new(&image, 1, Log::default());
        simulation.run_until(Until { samples: u64::MAX, ns: 1_000_000_000 }).unwrap();
        let log = simulation.into_watch().0;
        let ended = |softirq| {
            log.iter().filter(|(_, what)| *what == Transition::SoftirqEnd(softirq)).count()
        };
        let [first, second] = [1, 3].map(ended);
        // Each 730 us one of both kinds.
        assert!(
            second.abs_diff(1_369) <= 2 && first.abs_diff(second) <= 1,
            "{rules}: {first} and {second}"
        );
    }
}

#[test]
fn softirqs_that_raise_softirqs_hold_the_probe_up_for_one_round() {
    // One that raises itself again and again, and ten that each raise the next one.
    let itself = vec![(3, vec![Step::Compute(us(200)), Step::RaiseSoftirq(3)])];
    let next = |number: u8| (number, vec![Step::Compute(us(200)), Step::RaiseSoftirq(number + 1)]);
    let last = (9, vec![Step::Compute(us(200))]);
    let each_other: Vec<(u8, Vec<Step>)> = (3..9).map(next).chain([last]).collect();
    for softirqs in [itself, each_other] {
        let mut load = scenario(vec![Step::User(us(7))]);
        let device = (InterruptKind::Device, vec![Step::RaiseSoftirq(3)]);
        let softirqs = softirqs.into_iter().map(|(n, steps)| (InterruptKind::Softirq(n), steps));
        for (kind, steps) in [device].into_iter().chain(softirqs) {
            let name = format!("{kind:?}");
            let arrivals = crate::scenario::Arrivals::Periodic(7_300_000);
            load.interrupts.push(crate::scenario::Interrupt {
                name: name.clone(),
                kind,
                arrivals: (kind == InterruptKind::Device).then_some(arrivals),
                cpu: None,
                handler: name.clone(),
            });
            load.paths.push(Path { name, steps });
        }
        for rules in ["none", "voluntary", "full", "lazy"] {
            let latencies = latencies(&load, rules);
            let (_, worst) = range(&latencies);
            assert!((150_000..=202_000).contains(&worst), "{rules}: {worst}");
            assert!(latencies.len() >= 999, "{rules}: {}", latencies.len());
        }
    }
}

#[test]
fn softirqs_go_to_their_thread_after_ten_rounds() {
    // Three in each round.
    let mut load = scenario(vec![Step::Block { length: us(1_000_000), interrupt: None }]);
    load.tasks.remove(0);
    let again = vec![Step::Compute(us(1)), Step::RaiseSoftirq(3), Step::RaiseSoftirq(4)];
    let all = vec![Step::RaiseSoftirq(3), Step::RaiseSoftirq(4), Step::RaiseSoftirq(5)];
    let once = crate::scenario::Arrivals::Recorded(vec![100_000]);
    for (kind, arrivals, steps) in [
        (InterruptKind::Device, Some(once), all),
        (InterruptKind::Softirq(3), None, again),
        (InterruptKind::Softirq(4), None, vec![Step::RaiseSoftirq(5)]),
        (InterruptKind::Softirq(5), None, vec![]),
    ] {
        let (name, handler) = (format!("{kind:?}"), format!("{kind:?}"));
        load.paths.push(Path { name: name.clone(), steps });
        load.interrupts.push(crate::scenario::Interrupt {
            name,
            kind,
            arrivals,
            cpu: None,
            handler,
        });
    }
    let image = Image::new(&load, Rules::named("full").unwrap()).unwrap();
    let mut simulation = Simulation::new(&image, 1, Log::default());
    simulation.run_until(Until { samples: u64::MAX, ns: 1_000_000 }).unwrap();
    let log = simulation.into_watch().0;
    let left = log.iter().position(|(_, what)| matches!(what, Transition::Woken { .. })).unwrap();
    for number in [3, 4, 5] {
        let begins = Transition::SoftirqBegin(number);
        let began = log[..left].iter().filter(|(_, what)| *what == begins);
        assert_eq!(began.count(), 10, "{number}");
    }
}

#[test]
fn interrupts_off_hold_up_every_model() {
    let load =
        scenario(vec![Step::IrqSave, Step::Compute(us(50)), Step::IrqRestore, Step::User(us(7))]);
    for rules in Rules::ALL {
        let (_, worst) = range(&latencies(&load, rules.name));
        assert!((45_000..=50_600).contains(&worst), "{}: {worst}", rules.name);
    }
}

#[test]
fn a_mutex_lends_the_priority_of_who_waits() {
    // Low takes the lock for 100 us, middle computes, the probe's own neighbour high wants the lock.
    let task = |name: &str, priority| ScenarioTask {
        name: name.into(),
        policy: TaskPolicy::Fifo(priority),
        does: Does::Path(name.into()),
        ..ScenarioTask::default()
    };
    let locked = |before: Length, inside: Length| {
        vec![
            Step::Block { length: before, interrupt: None },
            Step::Lock(LockKind::Mutex, "mutex".into()),
            Step::Compute(inside),
            Step::Unlock(LockKind::Mutex, "mutex".into()),
            Step::Work,
        ]
    };
    let mut load = scenario(vec![Step::User(us(100))]);
    load.paths.push(Path { name: "low".into(), steps: locked(us(10), us(100)) });
    load.paths.push(Path { name: "high".into(), steps: locked(us(1_000), us(1)) });
    let middle = vec![Step::Block { length: us(1_000), interrupt: None }, Step::User(us(50_000))];
    load.paths.push(Path { name: "middle".into(), steps: middle });
    load.tasks.extend([task("low", 1), task("middle", 2), task("high", 3)]);
    let image = Image::new(&load, Rules::named("full").unwrap()).unwrap();
    let mut ignore = |_| ();
    let mut simulation = Simulation::new(&image, 1, Unwatched(&mut ignore));
    simulation.run_until(Until { samples: 1_000, ns: 1_000_000_000 }).unwrap();
    // Without it, high would get the lock only in the 1 ms of every 51 that middle sleeps.
    let done = simulation.work(TaskId(4));
    assert!(done > 800, "high was done {done} times");
}

/// Writes down what happens.
#[derive(Default)]
struct Log(Vec<(u64, Transition)>);

impl Watch for Log {
    const FOLLOWS: bool = true;

    fn sample(&mut self, _: Sample) {}

    fn happened(&mut self, _: CpuId, at_ns: u64, what: Transition) {
        self.0.push((at_ns, what));
    }
}

#[test]
fn nesting_that_is_too_deep_for_the_preempt_count_is_called_so() {
    let nested = |disable: Step, enable: Step, depth| {
        let [disable, enable] = [disable, enable]
            .map(|step| Step::Repeat(Count::Fixed(depth), vec![step, Step::Compute(us(1))]));
        scenario(vec![Step::User(us(100)), disable, enable])
    };
    let result = |load: &Scenario, rules| {
        let image = Image::new(load, rules).unwrap();
        let mut ignore = |_| ();
        let mut simulation = Simulation::new(&image, 1, Unwatched(&mut ignore));
        let until = Until { samples: u64::MAX, ns: 200_000_000 };
        simulation.run_until(until).map_err(|broken| broken.violation)
    };
    let overflow = Err(Violation::Overflow);
    for (disable, enable, most) in
        [(Step::PreemptDisable, Step::PreemptEnable, 255), (Step::BhDisable, Step::BhEnable, 127)]
    {
        for rules in Rules::ALL {
            let at = |depth| result(&nested(disable.clone(), enable.clone(), depth), rules);
            assert_eq!((at(most), at(most + 1)), (Ok(()), overflow), "{}", rules.name);
        }
    }
    // These are not in the preempt count.
    for (disable, enable) in
        [(Step::IrqSave, Step::IrqRestore), (Step::RcuReadLock, Step::RcuReadUnlock)]
    {
        for rules in Rules::ALL {
            let load = nested(disable.clone(), enable.clone(), 70_000);
            assert_eq!(result(&load, rules), Ok(()), "{}", rules.name);
        }
    }
}

#[test]
fn a_seed_repeats_every_bit() {
    let mut load = scenario(vec![
        Step::Lock(LockKind::SpinIrq, "lock".into()),
        Step::Compute(Length::Exponential(20_000)),
        Step::Unlock(LockKind::SpinIrq, "lock".into()),
        Step::User(Length::Exponential(50_000)),
    ]);
    load.machine.cpus = 2;
    load.machine.tick_hz = 1_000;
    load.tasks.push(ScenarioTask {
        name: "load2".into(),
        does: Does::Path("load".into()),
        ..ScenarioTask::default()
    });
    let log = |seed| {
        let image = Image::new(&load, Rules::named("full").unwrap()).unwrap();
        let mut simulation = Simulation::new(&image, seed, Log::default());
        simulation.run_until(Until { samples: 200, ns: u64::MAX }).unwrap();
        simulation.into_watch().0
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
    assert!(log(1).is_sorted_by_key(|&(at, _)| at), "time runs backwards");
}
