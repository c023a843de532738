//! Long waits with a cause that is known: `wakescope watch` names it.

use std::fs;

use crate::common::bench::{Running, Test, eventually_or_told, kill, skip};
use crate::common::following::{can_follow, can_follow_real_time};
use crate::common::{Checker, read};
use crate::planted::{Group, Hog, alone, cpu, start_executor};
use wakescope_core::explain::{Cause, Culprit, NamedTask, Policy, WaitKind};
use wakescope_core::watch::episode::Episode;
use wakescope_core::watch::explained::{Explained, Explanations};
use wakescope_core::watch::{Window, packed};
use wakescope_sys::sched::Schedule;

/// A watch whose windows go to a file as they end.
pub(crate) fn start(test: &Test) -> Running {
    start_with(test, &[])
}

/// The same with these options, too.
fn start_with(test: &Test, options: &[&str]) -> Running {
    let always = ["watch", "--json", "--interval", "200ms", "--out", "w", "--merge", "200ms"];
    test.start_command(&[&always, options].concat())
}

/// The first episode that `is_it`, in what the watch stores.
#[track_caller]
pub(crate) fn await_episode(test: &Test, what: &str, is_it: impl Fn(&Episode) -> bool) -> Episode {
    await_in_windows(test, what, |window| {
        window.episodes?.longest.into_iter().find(|episode| is_it(episode))
    })
}

/// The first thing that `find` finds in a window that the watch stores.
#[track_caller]
fn await_in_windows<T>(test: &Test, what: &str, find: impl Fn(Window) -> Option<T>) -> T {
    let folder = test.dir.join("w");
    let windows = || {
        let files = wakescope_store::window_files(&folder).unwrap_or_default().files;
        let text: String = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.map(|line| packed::read(line.as_bytes()).unwrap()).collect::<Vec<Window>>()
    };
    let told = || {
        let explanations = windows().into_iter().filter_map(|window| window.explanations);
        let all = explanations.fold(Explanations::default(), Explanations::plus);
        format!("{what}; followed so far: {all:?}")
    };
    eventually_or_told(told, || windows().into_iter().find_map(&find))
}

/// The task of this name that a watch names as the culprit of a wait. Others may live on that CPU, and wait
/// for the same reason, or have done so before they were moved to another one.
#[track_caller]
fn culprit(test: &Test, name: &str, cause: Cause) -> NamedTask {
    let culprit = |episode: &Episode| match &episode.culprit {
        Culprit::Task(task) if task.comm == name && episode.moved_ns == 0 => Some(task.clone()),
        _ => None,
    };
    let found = await_episode(test, "it is named", |episode| culprit(episode).is_some());
    assert_eq!((found.cause, found.cpu), (cause, cpu()), "{found:?}");
    assert!(found.occupants[0].ns >= found.ns / 2 && found.throttled_ns == 0, "{found:?}");
    culprit(&found).unwrap()
}

#[track_caller]
pub(crate) fn end(running: Running) {
    kill("INT", &[running.pid()]);
    assert_eq!(running.output().code, Some(0));
}

#[test]
fn a_neighbour_on_the_same_cpu_is_named() {
    const NAME: &str = "a_neighbour_on_the_same_cpu_is_named";
    if !can_follow(NAME) {
        return;
    }
    let _alone = alone();
    let group = match Group::make(("cpu.weight", "6400"), &[("cpu.shares", "65536")]) {
        Ok(group) => group,
        Err(why) => return skip(NAME, &why),
    };
    let test = Test::new("watch-neighbour");
    let running = start(&test);
    let waiter = Hog::start("waits-for-it", cpu(), Schedule::Other { nice: 0 });
    let spinner = group.start_spinner(&test, "neighbour", cpu());
    let who = culprit(&test, "neighbour", Cause::EqualOrLowerTask);
    assert_eq!((who.pid, who.policy), (Some(spinner.pid()), Policy::Other));
    drop((spinner, waiter));
    end(running);
}

#[test]
fn a_real_time_task_that_keeps_the_cpu_is_named() {
    const NAME: &str = "a_real_time_task_that_keeps_the_cpu_is_named";
    let fifo = Schedule::Fifo { priority: 7 };
    if !can_follow_real_time(NAME) {
        return;
    }
    let _alone = alone();
    let test = Test::new("watch-hog");
    let running = start(&test);
    let waiter = Hog::start("waits-for-it", cpu(), Schedule::Other { nice: 0 });
    let hog = Hog::start("fifo-hog", cpu(), fifo);
    let who = culprit(&test, "fifo-hog", Cause::HigherPriorityTask);
    assert_eq!((who.policy, who.priority), (Policy::Fifo, Some(7)));
    drop((hog, waiter));
    end(running);
}

#[test]
fn a_program_is_named_although_its_turn_began_before_it_was_executed() {
    const NAME: &str = "a_program_is_named_although_its_turn_began_before_it_was_executed";
    if !can_follow_real_time(NAME) {
        return;
    }
    let _alone = alone();
    let test = Test::new("watch-executed");
    let running = start(&test);
    let waiter = Hog::start("waits-for-it", cpu(), Schedule::Other { nice: 0 });
    let executor = start_executor(&test, ("executes", "executed"), cpu(), false);
    let by_either = |episode: &Episode| match &episode.culprit {
        Culprit::Task(task) if ["executes", "executed"].contains(&&*task.comm) => {
            Some(task.clone())
        }
        _ => None,
    };
    let found = await_episode(&test, "it is named", |episode| by_either(episode).is_some());
    let who = by_either(&found).unwrap();
    assert_eq!((&*who.comm, who.policy), ("executed", Policy::Fifo), "{found:?}");
    drop((executor, waiter));
    end(running);
}

#[test]
fn nobody_is_named_for_a_turn_in_which_a_task_became_a_real_time_task() {
    const NAME: &str = "nobody_is_named_for_a_turn_in_which_a_task_became_a_real_time_task";
    if !can_follow_real_time(NAME) {
        return;
    }
    let _alone = alone();
    let test = Test::new("watch-became");
    let running = start(&test);
    let waiter = Hog::start("waits-for-it", cpu(), Schedule::Other { nice: 0 });
    let executor = start_executor(&test, ("executes", "executed"), cpu(), true);
    let found = await_episode(&test, "it is not explained", |episode| {
        let waits = episode.task.comm == "waits-for-it" && episode.moved_ns == 0;
        waits && episode.ns > 10_000_000 && episode.unexplained_ns > episode.ns / 2
    });
    assert_eq!(found.cause, Cause::Unexplained, "{found:?}");
    drop((executor, waiter));
    end(running);
}

/// Ends a watch, and holds each of its windows against the schema.
#[track_caller]
pub(crate) fn end_and_check(running: Running) -> Vec<Window> {
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let schema = serde_json::from_str(&read("docs/reference/watch.schema.json")).unwrap();
    let checker = Checker::closed(schema);
    let windows = ended.stdout.lines().map(|line| {
        assert_eq!(checker.fault(&serde_json::from_str(line).unwrap()), None, "{line}");
        packed::read(line.as_bytes()).unwrap()
    });
    windows.collect()
}

#[test]
fn late_waits_are_followed_to_the_task_that_caused_them() {
    const NAME: &str = "late_waits_are_followed_to_the_task_that_caused_them";
    let fifo = Schedule::Fifo { priority: 7 };
    if !can_follow_real_time(NAME) {
        return;
    }
    let _alone = alone();
    let test = Test::new("watch-explain-hog");
    // Where others compile, waits of some ms are those of many: one after the other would be followed, for three
    // seconds each. Whoever waits so long again and again waits for the hog.
    let running = start_with(&test, &["--explain=40ms", "--budget", "100%"]);
    // Only wakeups have causes, and a series is followed for three seconds of each minute.
    let waiter = Hog::start_sleeper("waits-for-it", cpu());
    let hog = Hog::start("fifo-hog", cpu(), fifo);
    // Others may live on that CPU, and be followed first, for the same reason: what they wait for elsewhere may
    // outweigh it.
    let is_hog = |culprit: &Culprit| matches!(culprit, Culprit::Task(task) if task.comm == "fifo-hog" && task.policy == Policy::Fifo);
    let row = |found: &Explained| found.causes.iter().find(|row| is_hog(&row.culprit)).cloned();
    let is_in_worst = |found: &Explained| {
        let worst = found.worst.as_ref();
        worst.is_some_and(|worst| worst.blame.iter().any(|share| is_hog(&share.culprit)))
    };
    let found = await_in_windows(&test, "the hog is a cause, and of the latest wakeup", |window| {
        let mut explained = window.explanations?.explained.into_iter();
        explained.find(|found| row(found).is_some() && is_in_worst(found))
    });
    let row = row(&found).unwrap();
    assert_eq!(row.cause, Cause::HigherPriorityTask, "{found:?}");
    assert!(row.worst_ns >= 20_000_000, "{found:?}");
    assert!(found.explained > 0 && found.late >= found.explained, "{found:?}");
    let worst = found.worst.as_ref().unwrap();
    let blamed: u64 = worst.blame.iter().map(|share| share.ns).sum();
    assert_eq!((blamed, worst.timeline.len()), (worst.wakeup_latency_ns, 0));
    assert!(found.program_ns.is_some_and(|ns| ns > 0) && found.agent_ns > 0, "{found:?}");
    drop((hog, waiter));
    let windows = end_and_check(running);
    let tracer: u64 = windows.iter().map(|window| window.own_cost.tracer_ns).sum();
    let all = windows.iter().filter_map(|window| window.explanations.as_ref());
    let followed = all.flat_map(|all| &all.explained).filter_map(|one| one.program_ns);
    assert_eq!(tracer, followed.sum::<u64>(), "each run of the tracer is in the own cost once");
    let table = test.ended(&["report", "w"]).stdout;
    assert!(table.contains(" followed for ") && table.contains("fifo-hog fifo 7"), "{table}");
    let redacted = test.ended(&["report", "w", "--redact"]).stdout;
    assert!(redacted.contains(" followed for ") && !redacted.contains("fifo-hog"), "{redacted}");
}

#[test]
fn late_waits_are_followed_to_the_quota_that_caused_them() {
    const NAME: &str = "late_waits_are_followed_to_the_quota_that_caused_them";
    if !can_follow(NAME) {
        return;
    }
    let _alone = alone();
    let group = match Group::with_small_quota() {
        Ok(group) => group,
        Err(why) => return skip(NAME, &why),
    };
    let test = Test::new("watch-explain-quota");
    let running = start_with(&test, &["--explain=20ms", "--budget", "100%"]);
    let spinner = group.start_spinner(&test, "stopped", cpu());
    let found = await_in_windows(&test, "the quota is seen", |window| {
        window.explanations?.explained.into_iter().find(|explained| explained.comm == "stopped")
    });
    let throttled = found.waits.iter().find(|row| row.kind == WaitKind::Throttled);
    let worst = throttled.and_then(|row| row.worst.as_ref());
    let worst = worst.unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!((worst.cause, worst.task.pid), (Cause::Throttled, Some(spinner.pid())), "{found:?}");
    assert!(worst.ns > 50_000_000, "{found:?}");
    drop(spinner);
    end_and_check(running);
}

#[test]
fn nothing_is_followed_beyond_the_budget_and_that_is_told() {
    const NAME: &str = "nothing_is_followed_beyond_the_budget_and_that_is_told";
    if !can_follow(NAME) {
        return;
    }
    let _alone = alone();
    let test = Test::new("watch-explain-budget");
    let running = start_with(&test, &["--explain=10us", "--budget", "0.001%"]);
    let waiter = Hog::start("waits-for-it", cpu(), Schedule::Other { nice: 0 });
    let other = Hog::start("waits-as-well", cpu(), Schedule::Other { nice: 0 });
    await_in_windows(&test, "the budget suppresses it", |window| {
        (window.explanations?.suppressed.budget > 0).then_some(())
    });
    drop((waiter, other));
    let windows = end_and_check(running);
    let explanations = || windows.iter().filter_map(|window| window.explanations.as_ref());
    assert!(explanations().all(|all| all.explained.is_empty()), "{windows:?}");
    assert!(windows.iter().all(|window| window.own_cost.tracer_ns == 0), "{windows:?}");
    let table = test.ended(&["report", "w"]).stdout;
    assert!(table.contains("beyond the budget of 0.001 %"), "{table}");
}
