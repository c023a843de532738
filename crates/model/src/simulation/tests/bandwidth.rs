//! Budgets of CPU time, worked out by hand: 100 ns for each of the kernel's own steps, and a tick each
//! millisecond, at which time is charged.

use super::*;
use crate::scenario::{Group, RtBudget};

/// One CPU, and tasks that never sleep, of these policies. Those of the fair class share a quota of 2 ms.
fn busy(rt: Option<RtBudget>, policies: &[TaskPolicy]) -> Scenario {
    let mut scenario = scenario(vec![Step::User(us(1_000_000))]);
    scenario.machine.tick_hz = 1_000;
    scenario.kernel.rt = rt;
    scenario.groups =
        vec![Group { name: "batch".into(), quota_ns: 2_000_000, period_ns: 10_000_000 }];
    let task = |policy: &TaskPolicy| {
        let is_fair = matches!(policy, TaskPolicy::Other(_));
        ScenarioTask {
            name: if is_fair { "batch".into() } else { "hog".into() },
            policy: *policy,
            cpu: None,
            group: (is_fair && rt.is_none()).then(|| "batch".into()),
            does: Does::Path("load".into()),
        }
    };
    scenario.tasks = policies.iter().map(task).collect();
    scenario
}

/// When budgets were used up and refilled, and who was switched to.
fn line(image: &Image, at_ns: u64, what: Transition) -> Option<String> {
    let what = match what {
        Transition::Switch { from, to, .. } => {
            format!("{} to {}", image.task_name(from), image.task_name(to))
        }
        Transition::PeriodBegin(_) => "timer".into(),
        Transition::PeriodEnd => "timer ends".into(),
        Transition::Throttled(_) => "used up".into(),
        Transition::Unthrottled(_) => "refilled".into(),
        _ => return None,
    };
    Some(format!("{at_ns} {what}"))
}

#[track_caller]
fn check(rt: Option<RtBudget>, policies: &[TaskPolicy], want: &[&str]) {
    let until = Until { samples: 1, ns: 15_000_000 };
    assert_eq!(lines(&busy(rt, policies), "full", until, &line), want, "{rt:?}");
}

/// 3 ms in each 10.
fn budget(fair_server: bool) -> Option<RtBudget> {
    Some(RtBudget { runtime_ns: 3_000_000, period_ns: 10_000_000, fair_server })
}

const HOG: TaskPolicy = TaskPolicy::Fifo(50);
const BATCH: TaskPolicy = TaskPolicy::Other(0);

#[test]
fn real_time_tasks_give_way_to_others_for_the_rest_of_a_period() {
    let want = [
        "200 swapper to hog",
        // Ticks at 1, 2, 3 ms charge 1 ms each, 200 ns after they came; the first sets the timer. After
        // three there is nothing left, and nothing too much.
        "4000200 used up",
        "4000500 hog to batch",
        // The timer expires in the tick at 11 ms, which ends 100 ns later.
        "11000400 timer",
        "11000500 refilled",
        "11000500 timer ends",
        "11000800 batch to hog",
        // 3 ms, less 1.0002 that were too much.
        "14000200 used up",
        "14000500 hog to batch",
    ];
    check(budget(false), &[HOG, BATCH], &want);
    // The fair server is owed no more than 1 ns, so that the next time is 15.0002 ms.
    check(budget(true), &[HOG, BATCH], &want[..7]);
}

#[test]
fn alone_they_are_stopped_too_but_not_by_the_fair_server() {
    let want = [
        "200 swapper to hog",
        "4000200 used up",
        "4000500 hog to swapper",
        // The CPU is idle: entry, and the timer's function.
        "11000300 timer",
        "11000400 refilled",
        "11000400 timer ends",
        "11000700 swapper to hog",
        "14000200 used up",
        "14000500 hog to swapper",
    ];
    check(budget(false), &[HOG], &want);
    let server = ["200 swapper to hog", "4000200 used up"];
    // The tick at 11 ms comes first, is charged to the last period, and leaves 3 ms less 1 ns.
    let refilled = ["11000400 timer", "11000500 refilled", "11000500 timer ends"];
    let again = ["14000200 used up"];
    check(budget(true), &[HOG], &[&server[..], &refilled[..], &again[..]].concat());
}

#[test]
fn a_group_is_stopped_once_its_quota_is_used_up() {
    check(
        None,
        &[BATCH],
        &[
            "200 swapper to batch",
            // The first tick takes all of the 2 ms for this CPU, and charges one of them.
            "2000200 used up",
            "2000500 batch to swapper",
            "11000300 timer",
            // It gets what it owes, and 1 ns.
            "11000400 refilled",
            "11000400 timer ends",
            "11000700 swapper to batch",
            // Less the 200 ns that it ran too long, and the 500 ns from the tick at 11 ms on.
            "14000200 used up",
            "14000500 batch to swapper",
        ],
    );
}

#[test]
fn a_lock_that_lends_a_real_time_priority_lifts_a_quota() {
    // The owner of the lock has used up its quota of 1 ms in 1 s when a real-time task wants the lock.
    let locked = |before: Step, inside: Length| {
        vec![
            before,
            Step::Lock(LockKind::Mutex, "mutex".into()),
            Step::Compute(inside),
            Step::Unlock(LockKind::Mutex, "mutex".into()),
            Step::Work,
            Step::Block { length: us(10_000_000), interrupt: None },
        ]
    };
    let mut scenario = busy(None, &[BATCH, HOG]);
    scenario.groups[0] =
        Group { name: "batch".into(), quota_ns: 1_000_000, period_ns: 1_000_000_000 };
    scenario
        .paths
        .push(Path { name: "owner".into(), steps: locked(Step::Compute(us(1)), us(10_000)) });
    let sleep = Step::Block { length: us(100_000), interrupt: None };
    scenario.paths.push(Path { name: "wants".into(), steps: locked(sleep, us(1)) });
    scenario.tasks[0].does = Does::Path("owner".into());
    scenario.tasks[1].does = Does::Path("wants".into());
    let image = Image::new(&scenario, Rules::named("full").unwrap()).unwrap();
    let mut ignore = |_| ();
    let mut simulation = Simulation::new(&image, 1, Unwatched(&mut ignore));
    let mut done_after = |ms: u64| {
        simulation.run_until(Until { samples: 1, ns: ms * 1_000_000 }).unwrap();
        [simulation.work(TaskId(0)), simulation.work(TaskId(1))]
    };
    assert_eq!(done_after(99), [0, 0]);
    // Once it has given the lock back, its quota holds again, before its own work is done.
    assert_eq!(done_after(130), [0, 1]);
}
