//! Waits of tasks in a group with a quota: `wakescope watch` blames the quota for its own part only.

use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow, can_follow_real_time};
use crate::culprits::{await_episode, end, start};
use crate::planted::{Group, Hog, alone, cpu};
use wakescope_core::explain::Cause;
use wakescope_sys::sched::Schedule;

#[test]
fn a_quota_that_stops_its_own_group_is_named() {
    const NAME: &str = "a_quota_that_stops_its_own_group_is_named";
    if !can_follow(NAME) {
        return;
    }
    let _alone = alone();
    let group = match Group::with_small_quota() {
        Ok(group) => group,
        Err(why) => return skip(NAME, &why),
    };
    let test = Test::new("watch-quota");
    let running = start(&test);
    let spinner = group.start_spinner(&test, "stopped", cpu());
    let found = await_episode(&test, "the quota is named", |episode| {
        episode.task.pid == Some(spinner.pid()) && episode.cause == Cause::Throttled
    });
    assert!(found.throttled_ns >= found.ns / 2 && found.ns > 50_000_000, "{found:?}");
    drop(spinner);
    end(running);
}

/// From 6.18 on a quota stops a task on its way to user space, and nowhere else.
#[test]
fn a_quota_takes_nothing_from_a_task_in_a_system_call() {
    const NAME: &str = "a_quota_takes_nothing_from_a_task_in_a_system_call";
    let fifo = Schedule::Fifo { priority: 7 };
    if !can_follow_real_time(NAME) {
        return;
    }
    if !quotas_stop_tasks() {
        return skip(NAME, "before 6.18 a quota stops all that waits in a queue");
    }
    let _alone = alone();
    let group = match Group::with_small_quota() {
        Ok(group) => group,
        Err(why) => return skip(NAME, &why),
    };
    let test = Test::new("watch-quota-beside");
    let writer = group.start_writer(&test, "writer", cpu());
    let spinner = group.start_spinner(&test, "stopped", cpu());
    let running = start(&test);
    let hog = Hog::start("fifo-hog", cpu(), fifo);
    // The quota lets the group go on during some of its waits, and only then the kernel's sum grows.
    let mut after = 0;
    for _ in 0..3 {
        let found = await_episode(&test, "the writer waits again", |episode| {
            episode.task.pid == Some(writer.pid()) && episode.end_ns > after
        });
        assert_eq!(found.throttled_ns, 0, "{found:?}");
        after = found.end_ns;
    }
    group.lift_quota();
    drop((hog, spinner, writer));
    end(running);
}

/// Whether this kernel notes in each task whether a quota has stopped it.
fn quotas_stop_tasks() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(6), Some(18))
}
