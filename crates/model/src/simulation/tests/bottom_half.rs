//! What `local_bh_disable` does on a real-time kernel, worked out by hand: nanosecond by nanosecond, with
//! 100 ns for each of the kernel's own steps.

use super::*;
use crate::scenario::{Arrivals, Interrupt, Settings};
use crate::trace::LockUser;

/// A device and a clock interrupt while the least urgent task has softirqs off for 100 us. The device's
/// handler takes 10 us and raises a softirq of 20 us; the clock wakes a task that is less urgent than the
/// device's thread.
fn interrupted(bh_lock: bool) -> Scenario {
    let mut scenario = scenario(Vec::new());
    scenario.kernel = Settings { bh_lock, ..Settings::default() };
    let low = vec![Step::BhDisable, Step::Compute(us(100)), Step::BhEnable, Step::User(us(900))];
    let middle = vec![Step::Wait("clock".into()), Step::User(us(500))];
    scenario.tasks = Vec::new();
    scenario.paths = Vec::new();
    for (name, policy, steps) in
        [("low", TaskPolicy::Other(0), low), ("middle", TaskPolicy::Fifo(10), middle)]
    {
        scenario.paths.push(Path { name: name.into(), steps });
        let does = Does::Path(name.into());
        scenario.tasks.push(ScenarioTask {
            name: name.into(),
            policy,
            cpu: None,
            group: None,
            does,
        });
    }
    let at = |us: u64| Some(Arrivals::Recorded(vec![us * 1_000]));
    for (name, kind, arrivals, steps) in [
        ("eth0", InterruptKind::Device, at(50), vec![Step::Compute(us(10)), Step::RaiseSoftirq(3)]),
        ("clock", InterruptKind::Unthreaded, at(60), vec![Step::Wake("clock".into())]),
        ("net_rx", InterruptKind::Softirq(3), None, vec![Step::Compute(us(20))]),
    ] {
        scenario.paths.push(Path { name: name.into(), steps });
        let handler = name.into();
        scenario.interrupts.push(Interrupt {
            name: name.into(),
            kind,
            arrivals,
            cpu: None,
            handler,
        });
    }
    scenario
}

/// A line for each thing that happens from 50 us on.
fn line(image: &Image, at_ns: u64, what: Transition) -> Option<String> {
    let task = |task| image.task_name(Some(task)).to_owned();
    let lock = |lock: crate::image::LockId| image.locks[lock.index()].clone();
    let user = |by| match by {
        LockUser::Task(id) => task(id),
        other => format!("{other:?}"),
    };
    let what = match what {
        _ if at_ns < 50_000 => return None,
        Transition::Raised(source) => {
            format!("interrupt {}", image.sources[source.index()].name)
        }
        Transition::Woken { task: woken, .. } => format!("wakes {}", task(woken)),
        Transition::LockAwaited { lock: id, by } => {
            format!("{} waits for {}", user(by), lock(id))
        }
        Transition::LockTaken { lock: id, by } => format!("{} has {}", user(by), lock(id)),
        Transition::LockReleased(id) => format!("{} is free", lock(id)),
        Transition::Boosted { owner, waiter } => {
            format!("{} as urgent as {}", task(owner), task(waiter))
        }
        Transition::SoftirqBegin(number) => format!("softirq {number} begins"),
        Transition::SoftirqEnd(number) => format!("softirq {number} ends"),
        Transition::Switch { from: Some(from), to: Some(to), .. } => {
            format!("{} to {}", task(from), task(to))
        }
        _ => return None,
    };
    Some(format!("{at_ns} {what}"))
}

#[track_caller]
fn check(bh_lock: bool, want: &[&str]) {
    let until = Until { samples: 1, ns: 200_000 };
    assert_eq!(lines(&interrupted(bh_lock), "rt", until, &line), want, "bh_lock {bh_lock}");
}

#[test]
fn who_wants_softirqs_off_waits_for_who_has_them_off_and_lends_it_a_priority() {
    check(
        true,
        &[
            "50000 interrupt eth0",
            // Entry.
            "50100 wakes irq/2-eth0",
            // Exit, schedule, switch. Its handler is to run with softirqs off.
            "50400 low to irq/2-eth0",
            "50400 irq/2-eth0 waits for softirq_ctrl.lock/0",
            "50400 low as urgent as irq/2-eth0",
            // Schedule, switch. 50.6 of the 100 us are left.
            "50600 irq/2-eth0 to low",
            "60000 interrupt clock",
            // It is less urgent than what was lent: low goes on, 200 ns later, with 41.2 us.
            "60100 wakes middle",
            "101400 softirq_ctrl.lock/0 is free",
            "101400 irq/2-eth0 has softirq_ctrl.lock/0",
            "101400 wakes irq/2-eth0",
            "101600 low to irq/2-eth0",
            // The handler, and then the softirq that it has raised, in the same thread.
            "111600 softirq 3 begins",
            "131600 softirq 3 ends",
            "131600 softirq_ctrl.lock/0 is free",
            "131800 irq/2-eth0 to middle",
        ],
    );
}

#[test]
fn without_the_lock_it_does_not_wait() {
    check(
        false,
        &[
            "50000 interrupt eth0",
            "50100 wakes irq/2-eth0",
            "50400 low to irq/2-eth0",
            "60000 interrupt clock",
            "60100 wakes middle",
            // The clock's interrupt took 200 ns of its 10 us.
            "60600 softirq 3 begins",
            "80600 softirq 3 ends",
            "80800 irq/2-eth0 to middle",
        ],
    );
}
