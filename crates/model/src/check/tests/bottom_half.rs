//! What `local_bh_disable` protects, and what its lock can do.

use super::*;

/// The same kernel built without the lock of `local_bh_disable`.
fn without_bh_lock(mut scenario: Scenario) -> Scenario {
    scenario.kernel.bh_lock = false;
    scenario
}

#[test]
fn softirqs_off_protect_data_of_a_cpu_as_long_as_that_takes_a_lock() {
    let change = |before: Vec<Do>| {
        let changed = Do::PerCpu("xdp_bulk_queue".into(), vec![compute()]);
        [before, vec![Do::BhDisable, changed, Do::BhEnable, user()]].concat()
    };
    let scenario =
        machine(1, vec![(URGENT, None, change(vec![block()])), (FAIR, None, change(vec![]))]);
    Rules::ALL.iter().for_each(|&rules| _ = holds(&scenario, rules));
    let without = without_bh_lock(scenario);
    breaks_at_its_end(&without, rules("rt"), "HalfChanged");
    holds(&without, rules("full"));
    // The task stays on its CPU all the same: alone there, nobody sees its change.
    let urgent = |cpu| (URGENT, Some(cpu), vec![block(), user()]);
    let alone = machine(2, vec![urgent(0), urgent(1), (FAIR, None, change(vec![]))]);
    holds(&without_bh_lock(alone), rules("rt"));
}

#[test]
fn softirqs_off_with_a_lock_held_deadlock_with_the_opposite_order_on_rt() {
    let inside = vec![lock("lock"), Do::BhDisable, compute(), Do::BhEnable, unlock("lock"), user()];
    let around =
        vec![block(), Do::BhDisable, lock("lock"), compute(), unlock("lock"), Do::BhEnable, user()];
    let scenario = machine(1, vec![(URGENT, None, around), (FAIR, None, inside)]);
    breaks_at_its_end(&scenario, rules("rt"), "Deadlock");
    holds(&scenario, rules("full"));
    holds(&without_bh_lock(scenario), rules("rt"));
}

#[test]
fn a_task_with_softirqs_off_must_not_sleep() {
    let load = |inside: Do| urgent_and_load(vec![Do::BhDisable, inside, Do::BhEnable, user()]);
    breaks_at_its_end(&load(block()), rules("full"), "AtomicSchedule");
    breaks_at_its_end(&load(block()), rules("rt"), "SleepInRcu");
    // A spin lock of RT is no sleep, neither there nor in a section of RCU.
    let spins = |begin, end| {
        let inside = vec![lock("lock"), compute(), unlock("lock")];
        let other = [vec![block()], inside.clone(), vec![user()]].concat();
        let load = [vec![begin], inside, vec![end, user()]].concat();
        machine(2, vec![(URGENT, Some(0), other), (FAIR, Some(1), load)])
    };
    holds(&spins(Do::BhDisable, Do::BhEnable), rules("rt"));
    holds(&spins(Do::RcuReadLock, Do::RcuReadUnlock), rules("rt"));
}
