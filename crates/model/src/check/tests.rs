//! Planted violations, each with a counterpart that keeps the rule.

mod bottom_half;
mod unreduced;

use super::invariant::Promise;
use super::*;
use crate::Rules;
use crate::image::TaskId;
use crate::scenario::{
    Arrivals, Does, Interrupt, InterruptKind, Length, LockBreak, LockKind, Machine, Path, RtBudget,
    Scenario, ScenarioTask, Step as Do, TaskPolicy,
};

/// A machine with so many CPUs, no tick, and tasks that run these steps again and again.
fn machine(cpus: u32, tasks: Vec<(TaskPolicy, Option<u32>, Vec<Do>)>) -> Scenario {
    let mut scenario = Scenario {
        name: "test".into(),
        machine: Machine { cpus, tick_hz: 0, idle_states: Vec::new() },
        ..Scenario::default()
    };
    for (number, (policy, cpu, steps)) in tasks.into_iter().enumerate() {
        let name = format!("task{number}");
        scenario.paths.push(Path { name: name.clone(), steps });
        let does = Does::Path(name.clone());
        scenario.tasks.push(ScenarioTask { name, policy, cpu, group: None, does });
    }
    scenario
}

/// The same with a device that may interrupt at any time.
fn with_device(mut scenario: Scenario, handler: Vec<Do>) -> Scenario {
    scenario.paths.push(Path { name: "handler".into(), steps: handler });
    scenario.interrupts.push(Interrupt {
        name: "eth0".into(),
        kind: InterruptKind::Device,
        arrivals: Some(Arrivals::Poisson(1_000_000)),
        cpu: None,
        handler: "handler".into(),
    });
    scenario
}

const FAIR: TaskPolicy = TaskPolicy::Other(0);
const URGENT: TaskPolicy = TaskPolicy::Fifo(50);

fn compute() -> Do {
    Do::Compute(Length::Fixed(1_000))
}

fn user() -> Do {
    Do::User(Length::Fixed(1_000))
}

fn block() -> Do {
    Do::Block { length: Length::Fixed(1_000), interrupt: None }
}

fn lock(name: &str) -> Do {
    Do::Lock(LockKind::Spin, name.into())
}

fn unlock(name: &str) -> Do {
    Do::Unlock(LockKind::Spin, name.into())
}

fn event() -> String {
    "event".into()
}

fn rules(name: &str) -> Rules {
    Rules::named(name).unwrap()
}

fn prepared(scenario: &Scenario, rules: Rules) -> Image {
    prepare(&Image::new(scenario, rules).unwrap(), &Limits::default())
}

/// Text of a schedule, for failures of tests.
fn text(image: &Image, schedule: &[Choice]) -> String {
    let lines = replay(image, schedule);
    lines.iter().map(|line| format!("{}\n", line.display(image))).collect()
}

#[track_caller]
fn holds(scenario: &Scenario, rules: Rules) -> Report {
    let image = prepared(scenario, rules);
    let report = check(&image, &Limits::default());
    if let Some(failure) = &report.failure {
        panic!("{}: {failure:?}\n{}", rules.name, text(&image, &failure.schedule));
    }
    assert_eq!(report.coverage, Coverage::All, "{}: {} states", rules.name, report.states);
    report
}

/// The violation, by its name, is found; replaying its schedule shows it, and no shorter one does.
#[track_caller]
fn breaks(scenario: &Scenario, rules: Rules, wanted: &str) -> Failure {
    let image = prepared(scenario, rules);
    let report = check(&image, &Limits::default());
    let failure = report.failure.unwrap_or_else(|| {
        panic!("{}: {wanted} not found in {} states", rules.name, report.states)
    });
    let found = format!("{:?}", failure.violation);
    let shown = text(&image, &failure.schedule);
    assert!(found.starts_with(wanted), "{}: {found} instead of {wanted}\n{shown}", rules.name);
    assert_eq!(check(&image, &Limits::default()).failure.as_ref(), Some(&failure));
    failure
}

/// The last line of a schedule that was replayed shows the violation.
#[track_caller]
fn breaks_at_its_end(scenario: &Scenario, rules: Rules, wanted: &str) -> Failure {
    let failure = breaks(scenario, rules, wanted);
    let image = prepared(scenario, rules);
    let lines = replay(&image, &failure.schedule);
    let last = lines.last().unwrap();
    assert_eq!(last.violation, Some((failure.violation, failure.cpu)));
    assert_eq!(last.choice + 1, failure.schedule.len());
    let without_last = &failure.schedule[..failure.schedule.len() - 1];
    assert!(replay(&image, without_last).iter().all(|line| line.violation.is_none()));
    failure
}

/// An urgent task that sleeps, and one that computes in the kernel for long.
fn urgent_and_load(load: Vec<Do>) -> Scenario {
    machine(1, vec![(URGENT, None, vec![block(), user()]), (FAIR, None, load)])
}

#[test]
fn all_models_keep_the_rules() {
    let mut load = urgent_and_load(vec![
        compute(),
        lock("lock"),
        compute(),
        unlock("lock"),
        compute(),
        Do::CondResched,
        Do::Work,
        user(),
    ]);
    load.machine.tick_hz = 100;
    for rules in Rules::ALL {
        let report = holds(&load, rules);
        assert!(report.states > 50, "{}: {}", rules.name, report.states);
        let mut two = load.clone();
        two.machine.cpus = 2;
        assert!(holds(&two, rules).states > report.states, "{}", rules.name);
    }
}

#[test]
fn a_preemptible_kernel_needs_both_of_its_places() {
    let load = urgent_and_load(vec![compute(), lock("a"), compute(), unlock("a"), user()]);
    let full = rules("full");
    holds(&load, full);
    let no_return = Rules { interrupt_return_schedules: false, ..full };
    let no_enable = Rules { preempt_enable_schedules: false, ..full };
    for mutated in [no_return, no_enable] {
        let failure = breaks_at_its_end(&load, mutated, "LostNeedResched");
        assert_eq!(failure.violation, Violation::LostNeedResched(TaskId(0)));
    }
    // Without either nothing is promised but the way to user mode.
    holds(&load, Rules { preempt_enable_schedules: false, ..no_return });
}

#[test]
fn a_task_that_wakes_a_more_urgent_one_is_left_at_once() {
    let waits = vec![Do::Wait(event()), user()];
    let sections = [
        vec![Do::Wake(event()), compute()],
        vec![lock("a"), Do::Wake(event()), unlock("a"), compute()],
        vec![Do::Lock(LockKind::SpinIrq, "a".into()), Do::Wake(event())],
    ];
    let unlock_irq = vec![Do::Unlock(LockKind::SpinIrq, "a".into()), compute()];
    let [bare, locked, irqs_off] = sections;
    for wakes in [bare, locked, [irqs_off, unlock_irq].concat()] {
        let wakes = [wakes, vec![user()]].concat();
        let scenario = machine(1, vec![(URGENT, None, waits.clone()), (FAIR, None, wakes)]);
        Rules::ALL.iter().for_each(|&rules| _ = holds(&scenario, rules));
    }
    // `local_irq_restore` does not ask: the kernel's documentation warns of that.
    let wakes = vec![Do::IrqSave, Do::Wake(event()), Do::IrqRestore, compute(), user()];
    let scenario = machine(1, vec![(URGENT, None, waits), (FAIR, None, wakes)]);
    breaks_at_its_end(&scenario, rules("full"), "LostNeedResched");
}

#[test]
fn kernel_code_that_never_ends_starves_who_is_more_urgent_unless_it_asks() {
    let load = |point: Vec<Do>| urgent_and_load([vec![compute(), Do::Work], point].concat());
    breaks(&load(vec![]), rules("none"), "LostNeedResched");
    holds(&load(vec![Do::CondResched]), rules("none"));
    holds(&load(vec![]), rules("full"));
}

#[test]
fn counts_that_do_not_balance_are_found() {
    for (steps, violation) in [
        (vec![Do::PreemptDisable, compute(), user()], "Unbalanced"),
        (vec![Do::PreemptDisable, compute()], "Unbalanced"),
        (vec![Do::IrqSave, compute()], "Unbalanced"),
        (vec![Do::RcuReadLock, compute()], "Unbalanced"),
        (vec![Do::PreemptDisable, Do::PreemptEnable, Do::PreemptEnable, user()], "Underflow"),
        (vec![Do::IrqRestore, user()], "Underflow"),
        (vec![Do::BhEnable, user()], "Underflow"),
    ] {
        let failure = breaks_at_its_end(&urgent_and_load(steps), rules("full"), violation);
        assert!(failure.schedule.len() < 20, "{}", failure.schedule.len());
    }
    for (steps, violation) in [
        (vec![Do::BhDisable, compute(), user()], "Unbalanced"),
        (vec![Do::BhDisable, compute()], "Unbalanced"),
        (vec![Do::BhEnable, user()], "Underflow"),
    ] {
        breaks_at_its_end(&urgent_and_load(steps), rules("rt"), violation);
    }
    let steps = vec![Do::PreemptDisable, Do::IrqSave, Do::IrqRestore, Do::PreemptEnable, user()];
    holds(&urgent_and_load(steps), rules("full"));
}

#[test]
fn a_wakeup_between_the_test_and_the_sleep_is_lost() {
    let waits = |steps: Vec<Do>| {
        let waker = vec![block(), Do::Wake(event()), user()];
        let waiter = [steps, vec![Do::FinishWait(event()), Do::Work, user()]].concat();
        machine(2, vec![(URGENT, Some(0), waiter), (FAIR, Some(1), waker)])
    };
    let prepare = || Do::PrepareToWait(event());
    let too_late = waits(vec![Do::Unless(event(), vec![prepare(), Do::Schedule])]);
    let in_time = waits(vec![prepare(), Do::Unless(event(), vec![Do::Schedule])]);
    for rules in Rules::ALL {
        let failure = breaks_at_its_end(&too_late, rules, "LostWakeup");
        assert_eq!(failure.violation, Violation::LostWakeup(TaskId(0)));
        holds(&in_time, rules);
    }
}

#[test]
fn a_task_preempted_before_its_test_is_lost_without_preempt_active() {
    let waiter = vec![
        Do::PrepareToWait(event()),
        compute(),
        Do::Unless(event(), vec![Do::Schedule]),
        Do::FinishWait(event()),
        user(),
    ];
    let scenario = with_device(
        machine(1, vec![(URGENT, None, vec![block(), user()]), (FAIR, None, waiter)]),
        vec![Do::Wake(event())],
    );
    let full = rules("full");
    holds(&scenario, full);
    let forgotten = Rules { preempted_stay_ready: false, ..full };
    let failure = breaks_at_its_end(&scenario, forgotten, "LostWakeup");
    assert_eq!(failure.violation, Violation::LostWakeup(TaskId(1)));
}

#[test]
fn data_half_changed_when_its_lock_is_broken_is_seen() {
    // Both tasks take the lock to change what it protects; one drops it in the middle.
    let broken = |inside: bool| {
        let breaks = Do::Repeat(
            Count::Fixed(2),
            vec![
                compute(),
                Do::Work,
                Do::LockBreak(LockBreak { lock: "dcache_lock".into(), every: 1, restart: false }),
            ],
        );
        let changed = |steps| Do::PerCpu("dentry".into(), steps);
        let middle = if inside {
            vec![changed(vec![breaks])]
        } else {
            vec![changed(vec![compute()]), breaks, changed(vec![compute()])]
        };
        let load = [vec![lock("dcache_lock")], middle, vec![unlock("dcache_lock"), user()]];
        let other = vec![
            block(),
            lock("dcache_lock"),
            changed(vec![compute()]),
            unlock("dcache_lock"),
            user(),
        ];
        machine(1, vec![(URGENT, None, other), (FAIR, None, load.concat())])
    };
    for name in ["voluntary", "both"] {
        breaks_at_its_end(&broken(true), rules(name), "HalfChanged");
        holds(&broken(false), rules(name));
    }
    // Where locks are not broken, nobody sees it.
    holds(&broken(true), rules("full"));
}

#[test]
fn a_handler_that_takes_a_lock_needs_interrupts_off_for_all_others() {
    let scenario = |kind| {
        let name = || "lock".to_owned();
        let task = vec![Do::Lock(kind, name()), compute(), Do::Unlock(kind, name()), user()];
        let handler = vec![lock("lock"), compute(), unlock("lock")];
        with_device(machine(2, vec![(FAIR, Some(0), task.clone()), (FAIR, Some(1), task)]), handler)
    };
    for name in ["none", "voluntary", "full", "lazy"] {
        breaks_at_its_end(&scenario(LockKind::Spin), rules(name), "SelfDeadlock");
        holds(&scenario(LockKind::SpinIrq), rules(name));
    }
    // On RT the handler is a thread.
    holds(&scenario(LockKind::Spin), rules("rt"));
}

#[test]
fn locks_in_opposite_orders_deadlock_on_two_cpus() {
    let scenario = |kind, second: [&str; 2]| {
        let pair = |names: [&str; 2]| {
            let [one, other] = names.map(str::to_owned);
            vec![
                Do::Lock(kind, one.clone()),
                Do::Lock(kind, other.clone()),
                compute(),
                Do::Unlock(kind, other),
                Do::Unlock(kind, one),
                user(),
            ]
        };
        machine(2, vec![(FAIR, Some(0), pair(["a", "b"])), (FAIR, Some(1), pair(second))])
    };
    for kind in [LockKind::Spin, LockKind::RawIrq, LockKind::Mutex] {
        for name in ["none", "full", "rt"] {
            breaks_at_its_end(&scenario(kind, ["b", "a"]), rules(name), "Deadlock");
            holds(&scenario(kind, ["a", "b"]), rules(name));
        }
    }
}

#[test]
fn a_task_that_waits_for_an_event_with_a_lock_that_its_waker_needs_is_stuck() {
    let mutex = |steps: Vec<Do>| {
        let name = || "mutex".to_owned();
        let (begin, end) = (Do::Lock(LockKind::Mutex, name()), Do::Unlock(LockKind::Mutex, name()));
        [vec![begin], steps, vec![end, user()]].concat()
    };
    let waker = || mutex(vec![Do::Wake(event())]);
    let inside = mutex(vec![Do::Wait(event())]);
    let outside = [vec![Do::Wait(event())], mutex(vec![compute()])].concat();
    let scenario = |waiter| machine(1, vec![(FAIR, None, waiter), (FAIR, None, waker())]);
    breaks(&scenario(inside), rules("full"), "Deadlock");
    holds(&scenario(outside), rules("full"));
}

#[test]
fn sleeping_in_atomic_context_is_found() {
    for (steps, violation) in [
        (vec![lock("lock"), block(), unlock("lock"), user()], "AtomicSchedule"),
        (vec![Do::IrqSave, Do::Wait(event()), Do::IrqRestore, user()], "AtomicSchedule"),
        (vec![Do::RcuReadLock, block(), Do::RcuReadUnlock, user()], "SleepInRcu"),
    ] {
        breaks_at_its_end(&urgent_and_load(steps), rules("full"), violation);
    }
    let steps = vec![lock("lock"), block(), unlock("lock"), user()];
    holds(&urgent_and_load(steps), rules("rt"));
}

/// Nobody else wants these locks: whether who asks may sleep does not depend on that.
#[test]
fn locks_that_sleep_are_not_taken_in_atomic_context_even_if_they_are_free() {
    let mutex = || {
        let name = || "mutex".to_owned();
        vec![Do::Lock(LockKind::Mutex, name()), compute(), Do::Unlock(LockKind::Mutex, name())]
    };
    let spin = || vec![lock("lock"), compute(), unlock("lock")];
    let around = |begin, steps, end| [vec![begin], steps, vec![end, user()]].concat();
    let broken = |name| (Some("AtomicSleep"), rules(name));
    let whole = |name| (None, rules(name));
    let in_rcu = |steps| around(Do::RcuReadLock, steps, Do::RcuReadUnlock);
    let preempt_off = |steps| around(Do::PreemptDisable, steps, Do::PreemptEnable);
    let irqs_off = |steps| around(Do::IrqSave, steps, Do::IrqRestore);
    for (steps, (violation, rules)) in [
        (around(lock("lock"), mutex(), unlock("lock")), broken("full")),
        (around(lock("lock"), mutex(), unlock("lock")), whole("rt")),
        (preempt_off(mutex()), broken("none")),
        (irqs_off(mutex()), broken("lazy")),
        // Of RT, spin locks sleep, too.
        (preempt_off(spin()), broken("rt")),
        (preempt_off(spin()), whole("full")),
        (irqs_off(spin()), broken("rt")),
        (irqs_off(spin()), whole("both")),
        // To sleep in a spin lock of RT is no sleep to RCU.
        (in_rcu(mutex()), (Some("SleepInRcu"), rules("full"))),
        (in_rcu(spin()), whole("rt")),
        ([mutex(), vec![user()]].concat(), whole("full")),
    ] {
        let scenario = machine(1, vec![(FAIR, None, steps)]);
        match violation {
            Some(violation) => _ = breaks(&scenario, rules, violation),
            None => _ = holds(&scenario, rules),
        }
    }
}

/// Two tasks of one CPU that change the same variable of it.
fn catface(protect: bool) -> Scenario {
    let change = |before: Vec<Do>| {
        let changed = vec![Do::PerCpu("catface".into(), vec![compute()])];
        let protected =
            |steps: Vec<Do>| [vec![Do::PreemptDisable], steps, vec![Do::PreemptEnable]].concat();
        let changed = if protect { protected(changed) } else { changed };
        [before, changed, vec![user()]].concat()
    };
    machine(1, vec![(URGENT, None, change(vec![block()])), (FAIR, None, change(vec![compute()]))])
}

#[test]
fn data_of_a_cpu_needs_protection_once_the_kernel_can_be_preempted() {
    for name in ["full", "both", "lazy", "rt"] {
        breaks_at_its_end(&catface(false), rules(name), "HalfChanged");
        holds(&catface(true), rules(name));
    }
    for name in ["none", "voluntary"] {
        holds(&catface(false), rules(name));
    }
}

#[test]
fn who_is_throttled_is_preempted_even_by_the_less_urgent() {
    let change = |protect: bool| {
        let changed = Do::PerCpu("catface".into(), vec![compute()]);
        match protect {
            true => vec![Do::PreemptDisable, changed, Do::PreemptEnable, user()],
            false => vec![changed, user()],
        }
    };
    // The urgent one never sleeps: nobody else ever runs.
    let scenario = |protect, rt| {
        let mut scenario =
            machine(1, vec![(URGENT, None, change(protect)), (FAIR, None, change(protect))]);
        scenario.machine.tick_hz = 100;
        scenario.kernel.rt = rt;
        scenario
    };
    holds(&scenario(false, None), rules("full"));
    for fair_server in [false, true] {
        let rt = Some(RtBudget { runtime_ns: 1, period_ns: 2, fair_server });
        breaks_at_its_end(&scenario(false, rt), rules("full"), "HalfChanged");
        Rules::ALL.iter().for_each(|&rules| _ = holds(&scenario(true, rt), rules));
    }
}

#[test]
fn a_task_moved_in_the_middle_of_a_change_is_found() {
    // Nobody else changes the variable: that the task ends on another CPU is enough.
    let change = vec![Do::PerCpu("catface".into(), vec![compute()]), user()];
    let urgent = |cpu| (URGENT, Some(cpu), vec![block(), user()]);
    let scenario = machine(2, vec![urgent(0), urgent(1), (FAIR, None, change)]);
    breaks_at_its_end(&scenario, rules("full"), "HalfChanged");
    holds(&scenario, rules("none"));
}

#[test]
fn a_loop_that_begins_anew_whenever_its_lock_is_broken_never_ends() {
    let load = |every, restart| {
        let broken = Do::LockBreak(LockBreak { lock: "lock".into(), every, restart });
        let body = Do::Repeat(Count::Fixed(3), vec![broken, compute(), Do::Work]);
        urgent_and_load(vec![lock("lock"), body, unlock("lock"), user()])
    };
    for name in ["voluntary", "both"] {
        let failure = breaks(&load(1, true), rules(name), "Livelock");
        assert_eq!(failure.violation, Violation::Livelock(TaskId(1)));
        // The cycle leads back to where it begins, and does not hold any work of the load.
        let image = prepared(&load(1, true), rules(name));
        let [once, twice] = [1, 2].map(|times| {
            let cycles = std::iter::repeat_n(failure.cycle.clone(), times).flatten();
            let schedule: Vec<Choice> = failure.schedule.iter().cloned().chain(cycles).collect();
            let lines = replay(&image, &schedule);
            assert_eq!(lines.last().unwrap().choice + 1, schedule.len());
            let cycle = lines
                .into_iter()
                .rev()
                .take_while(|l| l.choice + failure.cycle.len() >= schedule.len());
            cycle.map(|line| Line { choice: 0, ..line }).collect::<Vec<_>>()
        });
        assert_eq!(once, twice);
        let work = crate::trace::Transition::Work(TaskId(1));
        let breaks = |line: &Line| matches!(line.op, Some(Op::Broken(_)));
        assert!(once.iter().any(breaks), "{once:?}");
        assert!(!once.iter().any(|line| line.happened.iter().any(|(_, what)| *what == work)));
        // Some work is done between two breaks, or none is lost.
        holds(&load(2, true), rules(name));
        holds(&load(1, false), rules(name));
    }
}

#[test]
fn a_loop_may_run_a_number_of_times_between_its_least_and_its_most() {
    // Preemption is off after an odd number of rounds. Neither none nor two of them break a rule.
    let odd = |count| {
        let [off, on] = [String::from("off"), String::from("on")];
        let disable = vec![Do::PreemptDisable, Do::Wake(off.clone()), Do::FinishWait(on.clone())];
        let round = vec![
            Do::Unless(on.clone(), vec![Do::PreemptEnable]),
            Do::Unless(off.clone(), disable),
            compute(),
        ];
        urgent_and_load(vec![
            user(),
            Do::Wake(on.clone()),
            Do::Repeat(count, round),
            Do::FinishWait(off),
            Do::FinishWait(on),
        ])
    };
    for rules in Rules::ALL {
        holds(&odd(Count::Fixed(0)), rules);
        holds(&odd(Count::Fixed(2)), rules);
        breaks_at_its_end(&odd(Count::Uniform(0, 2)), rules, "Unbalanced");
    }
}

/// The scenarios of the documentation: what it says of them is what is found.
#[test]
fn files_of_scenarios_show_what_they_are_for() {
    let read = |name: &str, text: &str| {
        let no_runs = |_: &str, _: &str| Err("there are no runs here".to_owned());
        Scenario::read(name, text, &no_runs).unwrap()
    };
    macro_rules! file {
        ($name:literal) => {
            read($name, include_str!(concat!("../../scenarios/", $name, ".toml")))
        };
    }
    let (catface, protected) = (file!("catface"), file!("catface-protected"));
    for rules in Rules::ALL {
        if Promise::of(rules) == Promise::AtOnce {
            breaks_at_its_end(&catface, rules, "HalfChanged");
        } else {
            holds(&catface, rules);
        }
        holds(&protected, rules);
        holds(&file!("priority-inversion"), rules);
        holds(&file!("prune-dcache"), rules);
    }
    let anew = file!("prune-dcache-livelock");
    for rules in Rules::ALL {
        // RT's lock sleeps and is not broken.
        if rules.breaks_locks {
            breaks(&anew, rules, "Livelock");
        } else {
            holds(&anew, rules);
        }
    }
}

#[test]
fn a_limit_makes_it_random_and_says_so() {
    let few = Limits { states: 10, schedules: 200, choices: 300, ..Limits::default() };
    let image = prepared(&catface(true), rules("full"));
    let report = check(&image, &few);
    assert_eq!((report.coverage, report.schedules), (Coverage::Part(Limit::States), 200));
    assert_eq!(report.failure, None);
    let image = prepared(&catface(false), rules("full"));
    let failure = check(&image, &few).failure.unwrap();
    assert_eq!(check(&image, &few).failure.as_ref(), Some(&failure), "the seed repeats it");
    let shortest = check(&image, &Limits::default()).failure.unwrap();
    assert_eq!(failure.violation, shortest.violation);
    assert!(failure.schedule.len() <= 2 * shortest.schedule.len(), "{}", failure.schedule.len());
    for (limits, limit) in [
        (Limits { depth: 3, ..few.clone() }, Limit::Depth),
        (Limits { states: 1_000, bytes: 1_000, ..few.clone() }, Limit::Memory),
    ] {
        assert_eq!(check(&image, &limits).coverage, Coverage::Part(limit));
    }
}
