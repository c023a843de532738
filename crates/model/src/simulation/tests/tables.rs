//! What each model does in which order, from the expiry of a probe's timer to its response.

use super::*;
use crate::kernel::{FrameKind, NeedResched};

/// From the raised timer interrupt on, a line each: when, after the expiry, and what.
struct Story {
    image: Image,
    armed: u64,
    lines: Vec<String>,
    all: Vec<Vec<String>>,
}

impl Watch for Story {
    const FOLLOWS: bool = true;

    fn sample(&mut self, _: Sample) {
        let lines = std::mem::take(&mut self.lines);
        self.all.push(lines);
    }

    fn armed(&mut self, _: TaskId, _: CpuId, expiry_ns: u64) {
        self.armed = expiry_ns;
        self.lines.clear();
    }

    fn happened(&mut self, _: CpuId, at_ns: u64, what: Transition) {
        if at_ns < self.armed {
            return;
        }
        let name = |task: Option<TaskId>| self.image.task_name(task).to_owned();
        let what = match what {
            Transition::Switch { from, to, .. } => format!("{} to {}", name(from), name(to)),
            Transition::Raised(LOCAL_TIMER) => "raised".into(),
            Transition::HandlerBegin(_) => "handler".into(),
            Transition::Returned(_) => "returned".into(),
            Transition::SchedEntry => "scheduler".into(),
            Transition::LockBroken(_) => "lock broken".into(),
            Transition::Response(_) => "response".into(),
            Transition::NeedResched { lazy } => {
                format!("need resched{}", if lazy { ", lazy" } else { "" })
            }
            Transition::Boosted { .. } => "boosted".into(),
            _ => return,
        };
        self.lines.push(format!("{} {what}", at_ns - self.armed));
    }
}

/// The story of the first wakeup that is as late as the latest.
fn story(scenario: &Scenario, rules: &str) -> Vec<String> {
    let image = Image::new(scenario, Rules::named(rules).unwrap()).unwrap();
    let watch = Story { image: image.clone(), armed: 0, lines: Vec::new(), all: Vec::new() };
    let mut simulation = Simulation::new(&image, 3, watch);
    simulation.run_until(Until { samples: 300, ns: u64::MAX }).unwrap();
    let all = simulation.into_watch().all;
    let lateness = |lines: &&Vec<String>| {
        let last = lines.last().and_then(|line| line.split(' ').next()?.parse::<u64>().ok());
        last.unwrap_or(0)
    };
    all.iter().max_by_key(lateness).unwrap().clone()
}

/// A loop with a lock held, which can be dropped in each second iteration, then kernel code without it.
fn locked_load(unlocked: Length) -> Scenario {
    scenario(vec![
        Step::Lock(LockKind::Spin, "lock".into()),
        Step::Repeat(
            Count::Fixed(10),
            vec![
                Step::Compute(us(10)),
                Step::LockBreak(LockBreak { lock: "lock".into(), every: 2, restart: false }),
            ],
        ),
        Step::Unlock(LockKind::Spin, "lock".into()),
        Step::Compute(unlocked),
        Step::User(Length::Uniform(7_000, 9_000)),
    ])
}

/// Compares the story with `want`. The phase decides when the scheduler is entered, so `+` counts from
/// there.
#[track_caller]
fn check(rules: &str, unlocked: Length, want: &[&str]) -> u64 {
    let lines = story(&locked_load(unlocked), rules);
    let at = |line: &str| line.split(' ').next().unwrap().parse::<u64>().unwrap();
    let entered = lines.iter().position(|line| line.ends_with("scheduler")).unwrap();
    let from = at(&lines[entered]);
    let shown = lines.iter().map(|line| match at(line) {
        time if time < from => line.clone(),
        time => format!("+{} {}", time - from, line.split_once(' ').unwrap().1),
    });
    assert_eq!(shown.collect::<Vec<_>>(), want, "{rules}");
    from
}

/// The interrupt returns to what it interrupted, and the scheduler comes later.
const LATER: [&str; 7] = [
    "0 raised",
    "100 handler",
    "200 need resched",
    "300 returned",
    "+0 scheduler",
    "+200 load to probe",
    "+300 response",
];

/// The same, and a lock is dropped for it.
const LOCK_BROKEN: [&str; 8] = [
    "0 raised",
    "100 handler",
    "200 need resched",
    "300 returned",
    "+0 lock broken",
    "+0 scheduler",
    "+200 load to probe",
    "+300 response",
];

#[test]
fn none_schedules_on_the_way_to_user_mode() {
    // At worst after all of the 200 us.
    let entered = check("none", us(100), &LATER);
    assert!((180_000..=200_000).contains(&entered), "{entered}");
}

#[test]
fn low_latency_breaks_the_lock() {
    let entered = check("voluntary", Length::Fixed(0), &LOCK_BROKEN);
    assert!((15_000..=20_300).contains(&entered), "{entered}");
    // It does not leave kernel code that has no such point.
    let entered = check("voluntary", us(100), &LATER);
    assert!((100_000..=120_300).contains(&entered), "{entered}");
}

#[test]
fn full_schedules_when_the_lock_is_given_back() {
    // Not before: the lock was held for 100 us. And not later.
    let entered = check("full", us(100), &LATER);
    assert!((80_000..=100_000).contains(&entered), "{entered}");
}

#[test]
fn both_breaks_the_lock_after_two_iterations() {
    let entered = check("both", us(100), &LOCK_BROKEN);
    assert!((15_000..=20_300).contains(&entered), "{entered}");
}

#[test]
fn rt_leaves_who_holds_the_lock() {
    let entered = check(
        "rt",
        us(100),
        &[
            "0 raised",
            "100 handler",
            "200 need resched",
            "+0 returned",
            "+0 scheduler",
            "+200 load to probe",
            "+300 response",
        ],
    );
    assert_eq!(entered, 300);
}

#[test]
fn the_scheduler_is_never_entered_from_an_interrupt() {
    struct Seen(u64);
    impl Watch for Seen {
        const FOLLOWS: bool = true;
        fn sample(&mut self, _: Sample) {}
        fn ran(&mut self, _: CpuId, _: u64, _: u64, at: crate::kernel::Running) {
            if matches!(at.kind, FrameKind::Scheduler { .. }) {
                assert_eq!(at.count, 0, "{at:?}");
                self.0 += 1;
            }
        }
    }
    for rules in Rules::ALL {
        let image = Image::new(&locked_load(us(100)), rules).unwrap();
        let mut simulation = Simulation::new(&image, 1, Seen(0));
        simulation.run_until(Until { samples: 100, ns: u64::MAX }).unwrap();
        assert!(simulation.watch().0 > 100);
    }
}

/// Fails where a task goes on although the scheduler had to look again, and counts how often it did.
struct LooksAgain {
    has_left: bool,
    times: u64,
}

impl Watch for LooksAgain {
    const FOLLOWS: bool = true;

    fn sample(&mut self, _: Sample) {}

    fn happened(&mut self, _: CpuId, _: u64, what: Transition) {
        if what == Transition::SchedEntry && self.has_left {
            self.times += 1;
        }
        self.has_left = what == Transition::SchedExit;
    }

    fn ran(&mut self, _: CpuId, _: u64, _: u64, at: crate::kernel::Running) {
        if at.kind == FrameKind::Task {
            assert!(!self.has_left || at.need_resched != NeedResched::Now, "{at:?}");
            self.has_left = false;
        }
    }
}

#[test]
fn the_scheduler_looks_again_before_it_returns() {
    // Two tasks that go to sleep again and again: now and then the probe's timer expires meanwhile.
    let mut busy = scenario(vec![
        Step::Compute(Length::Uniform(1_000, 3_000)),
        Step::Block { length: us(2), interrupt: None },
    ]);
    busy.tasks.push(ScenarioTask { name: "other".into(), ..busy.tasks[1].clone() });
    for rules in Rules::ALL {
        let image = Image::new(&busy, rules).unwrap();
        let watch = LooksAgain { has_left: false, times: 0 };
        let mut simulation = Simulation::new(&image, 1, watch);
        simulation.run_until(Until { samples: 1_000, ns: u64::MAX }).unwrap();
        assert!(simulation.watch().times > 10, "{}: {}", rules.name, simulation.watch().times);
    }
}
