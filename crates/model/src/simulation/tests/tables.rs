//! What each model does in which order, from the expiry of a probe's timer to its response.

use super::*;
use crate::kernel::FrameKind;

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

/// Half of the time with a lock held, half in the kernel without.
fn locked_load() -> Scenario {
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
        Step::Compute(us(100)),
        Step::User(Length::Uniform(7_000, 9_000)),
    ])
}

/// The same lines; times that depend on the phase are `+`, and those after it count from there.
#[track_caller]
fn check(rules: &str, want: &[&str]) {
    let lines = story(&locked_load(), rules);
    let held = |line: &String| line.ends_with("scheduler");
    let begins = lines.iter().position(held).unwrap_or(0);
    let at = |line: &str| line.split(' ').next().unwrap().parse::<u64>().unwrap();
    let from = at(&lines[begins]);
    let shown = lines.iter().enumerate().map(|(index, line)| {
        let what = line.split_once(' ').unwrap().1;
        let is_later = index >= begins || from == at(line);
        if is_later { format!("+{} {what}", at(line) - from) } else { line.clone() }
    });
    assert_eq!(shown.collect::<Vec<_>>(), want, "{rules}");
}

#[test]
fn none_schedules_on_the_way_to_user_mode() {
    check(
        "none",
        &[
            "0 raised",
            "100 handler",
            "200 need resched",
            "300 returned",
            "+0 scheduler",
            "+200 load to probe",
            "+300 response",
        ],
    );
}

#[test]
fn low_latency_breaks_the_lock() {
    check(
        "voluntary",
        &[
            "0 raised",
            "100 handler",
            "200 need resched",
            "300 returned",
            "+0 scheduler",
            "+200 load to probe",
            "+300 response",
        ],
    );
}

#[test]
fn full_schedules_when_the_lock_is_given_back() {
    check(
        "full",
        &[
            "0 raised",
            "100 handler",
            "200 need resched",
            "300 returned",
            "+0 scheduler",
            "+200 load to probe",
            "+300 response",
        ],
    );
    // Not before: the lock was held all the time.
    let lines = story(&locked_load(), "full");
    let scheduled: u64 = lines[4].split(' ').next().unwrap().parse().unwrap();
    assert!(scheduled > 80_000, "{lines:?}");
}

#[test]
fn both_breaks_the_lock_after_two_iterations() {
    check(
        "both",
        &[
            "0 raised",
            "100 handler",
            "200 need resched",
            "300 returned",
            "+0 lock broken",
            "+0 scheduler",
            "+200 load to probe",
            "+300 response",
        ],
    );
}

#[test]
fn rt_leaves_who_holds_the_lock() {
    check(
        "rt",
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
        let image = Image::new(&locked_load(), rules).unwrap();
        let mut simulation = Simulation::new(&image, 1, Seen(0));
        simulation.run_until(Until { samples: 100, ns: u64::MAX }).unwrap();
        assert!(simulation.watch().0 > 100);
    }
}
