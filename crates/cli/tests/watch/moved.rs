//! Waits that begin on one CPU and end on another: `wakescope watch` knows what took them on each.

use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow, can_follow_real_time};
use crate::culprits::{await_episode, end_and_check, start};
use crate::planted::{Group, MovedWaiter, alone, start_mover, start_parent};
use wakescope_core::explain::{Cause, Culprit, NamedTask, Policy};
use wakescope_core::watch::episode::Episode;
use wakescope_sys::sched::{Schedule, affinity};

/// Two CPUs, of which tasks are moved from the first to the second.
fn two_cpus() -> Option<(u32, u32)> {
    let [to, .., from] = affinity().unwrap()[..] else { return None };
    Some((from, to))
}

/// What it waited in the queue of this CPU before it was moved, ns.
fn waited_for(episode: &Episode, cpu: u32) -> u64 {
    let queues = episode.earlier_queues.iter().filter(|queue| queue.cpu == cpu);
    queues.map(|queue| queue.ns).sum()
}

/// It is moved away from the CPU that it waits for, and its wait ends on another one, where the task that kept it waiting
/// never runs.
#[test]
fn whoever_kept_the_cpu_that_a_task_was_moved_from_is_named() {
    const NAME: &str = "whoever_kept_the_cpu_that_a_task_was_moved_from_is_named";
    let fifo = Schedule::Fifo { priority: 7 };
    if !can_follow_real_time(NAME) {
        return;
    }
    let Some((from, to)) = two_cpus() else { return skip(NAME, "it takes two CPUs") };
    let _alone = alone();
    let test = Test::new("watch-moved");
    let running = start(&test);
    let threads = MovedWaiter::start("waits-here", "fifo-hog", fifo, (from, to));
    let is_hog = |task: &NamedTask| task.comm == "fifo-hog";
    // Where others compile, the longest waits may be of those that the load balancer moved away from the hog.
    let found = await_episode(&test, "who ran on the CPU before is named", |episode| {
        let is_culprit = matches!(&episode.culprit, Culprit::Task(task) if is_hog(task));
        is_culprit && episode.cpu == to
    });
    drop(threads);
    assert_eq!(found.cause, Cause::HigherPriorityTask, "{found:?}");
    let hog = &found.occupants[0];
    assert!(is_hog(&hog.task) && hog.ns <= waited_for(&found, from), "{found:?}");
    end_and_check(running);
    let table = test.ended(&["report", "w"]).stdout;
    assert!(table.contains("; before, it waited "), "{table}");
}

#[test]
fn whoever_kept_the_cpu_from_a_task_that_was_moved_before_it_ever_ran_is_named() {
    const NAME: &str =
        "whoever_kept_the_cpu_from_a_task_that_was_moved_before_it_ever_ran_is_named";
    const PARENT: &str = "has-children";
    if !can_follow_real_time(NAME) {
        return;
    }
    let Some((from, to)) = two_cpus() else { return skip(NAME, "it takes two CPUs") };
    let _alone = alone();
    let test = Test::new("watch-moved-child");
    let running = start(&test);
    let (parent, mover) = start_parent(&test, PARENT, (from, to));
    // A child has its parent's name until it runs.
    let found = await_episode(&test, "its parent is named", |episode| {
        let is_child = episode.task.comm == PARENT && episode.task.policy == Policy::Other;
        is_child && episode.cpu == to && matches!(episode.culprit, Culprit::Task(_))
    });
    assert_eq!(found.cause, Cause::HigherPriorityTask, "{found:?}");
    let Culprit::Task(NamedTask { pid, .. }) = found.culprit else { panic!("{found:?}") };
    assert_eq!(pid, Some(parent.pid()), "{found:?}");
    assert!(waited_for(&found, from) >= found.occupants[0].ns, "{found:?}");
    drop((parent, mover));
    end_and_check(running);
}

#[test]
fn a_quota_that_stopped_a_task_in_an_earlier_queue_is_named() {
    const NAME: &str = "a_quota_that_stopped_a_task_in_an_earlier_queue_is_named";
    if !can_follow(NAME) {
        return;
    }
    let Some((from, to)) = two_cpus() else { return skip(NAME, "it takes two CPUs") };
    let _alone = alone();
    let group = match Group::with_small_quota() {
        Ok(group) => group,
        Err(why) => return skip(NAME, &why),
    };
    let test = Test::new("watch-moved-stopped");
    let running = start(&test);
    let spinner = group.start_spinner(&test, "stopped", from);
    let mover = start_mover(&test, &spinner, (from, to));
    let found = await_episode(&test, "the quota is named", |episode| {
        let is_it = episode.task.pid == Some(spinner.pid()) && episode.cause == Cause::Throttled;
        is_it && waited_for(episode, from) > episode.ns / 2
    });
    // It was stopped on the first CPU, and not only after that.
    assert!(found.throttled_ns > found.ns - found.moved_ns, "{found:?}");
    drop((mover, spinner));
    end_and_check(running);
}
