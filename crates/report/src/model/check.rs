//! What a checker found out about a scenario under a model.

use std::fmt::Write;

use wakescope_core::units::{counted, grouped};
use wakescope_model::Image;
use wakescope_model::check::{Coverage, Failure, Limit, Limits, Line, Report, replay};
use wakescope_model::image::{CpuId, Op, SourceId, TaskId};
use wakescope_model::kernel::{FrameKind, Stage, Violation};
use wakescope_model::trace::Transition;

use crate::findings::wrapped;
use crate::style::{Style, clean};

/// As wide as all that wakescope prints.
const WIDTH: usize = 100;

/// A schedule that is longer is not shown in the middle.
const LINES: usize = 60;

/// The answer for the rules of `image`, which is as the checker prepared it, and the shortest schedule
/// that breaks a rule, if one was found.
pub fn check(image: &Image, limits: &Limits, report: &Report, style: Style) -> String {
    let rules = image.rules.name;
    match &report.failure {
        Some(failure) => {
            let what = format!("{rules}: {}", named(image, failure.violation));
            format!(" {}\n{}", style.bad(&what), schedule(image, report, failure))
        }
        None => {
            let line = wrapped(&format!("{rules}: {}", covered(limits, report)), WIDTH - 4, "   ");
            let line = match report.coverage {
                Coverage::All | Coverage::UntilFailure => style.good(&line),
                Coverage::Part(_) => style.warn(&line),
            };
            format!(" {line}\n")
        }
    }
}

fn covered(limits: &Limits, report: &Report) -> String {
    let states = counted(report.states, "state");
    match report.coverage {
        Coverage::All | Coverage::UntilFailure => format!(
            "every rule holds in all {states} and {}, with loops of {} iterations at most",
            counted(report.steps, "step"),
            limits.iterations
        ),
        Coverage::Part(limit) => format!(
            "no broken rule in {states}, and in {} of seed {}; that is no proof, because there are \
             more: {}",
            counted(report.schedules, "random schedule"),
            limits.seed,
            match limit {
                Limit::States => "raise --states",
                Limit::Depth => "the schedules are too long",
                Limit::Memory => "they take too much memory",
            }
        ),
    }
}

/// A broken rule, with the name of what it is about.
fn named(image: &Image, violation: Violation) -> String {
    let name = match violation {
        Violation::SelfDeadlock(lock) | Violation::NotHolder(lock) => {
            image.locks[lock.index()].as_str()
        }
        Violation::HalfChanged(variable) => image.variables[variable.index()].as_str(),
        Violation::LostWakeup(task)
        | Violation::LostNeedResched(task)
        | Violation::Livelock(task) => image.task_name(Some(task)),
        _ => "",
    };
    match name {
        "" => violation.to_string(),
        name => format!("{violation} ({})", clean(name, 64)),
    }
}

fn schedule(image: &Image, report: &Report, failure: &Failure) -> String {
    let found = match report.coverage {
        Coverage::Part(_) => "a schedule that breaks it, found at random",
        Coverage::All | Coverage::UntilFailure => "the shortest schedule that breaks it",
    };
    let mut lines = shown(image, &replay(image, &failure.schedule));
    if !failure.cycle.is_empty() {
        let whole = [&failure.schedule[..], &failure.cycle[..]].concat();
        let cycle: Vec<Line> = replay(image, &whole)
            .into_iter()
            .filter(|line| line.choice >= failure.schedule.len())
            .collect();
        lines.push("and then for ever:".into());
        lines.extend(shown(image, &cycle));
    }
    let mut out = format!("   {found}:\n");
    let left_out = lines.len().saturating_sub(LINES);
    for (number, line) in lines.iter().enumerate() {
        if left_out > 0 && number == LINES / 2 {
            let _ = writeln!(out, "   … {} more …", grouped(left_out as u64));
        }
        if left_out == 0 || number < LINES / 2 || number >= LINES / 2 + left_out {
            let _ = writeln!(out, "   {}", clean(line, WIDTH - 4));
        }
    }
    out
}

/// A line for each stretch of operations of one task or handler, and what happened in it.
fn shown(image: &Image, lines: &[Line]) -> Vec<String> {
    let mut out: Vec<(CpuId, String, Vec<String>)> = Vec::new();
    for line in lines {
        let who = who(image, line);
        let mut what: Vec<String> = executed(image, line).into_iter().collect();
        what.extend(line.happened.iter().filter_map(|&(_, what)| happening(image, what)));
        what.extend(line.violation.map(|(violation, _)| format!("← {}", named(image, violation))));
        match out.last_mut() {
            Some((cpu, last, all)) if *cpu == line.cpu && *last == who => all.extend(what),
            _ => out.push((line.cpu, who, what)),
        }
    }
    let several = image.cpus > 1;
    let text = |(cpu, who, what): &(CpuId, String, Vec<String>)| {
        let cpu = if several { format!("CPU {} ", cpu.0) } else { String::new() };
        format!("{cpu}{who}: {}", what.join(", "))
    };
    let is_shown = |(_, _, what): &&(CpuId, String, Vec<String>)| !what.is_empty();
    let long: Vec<String> = out.iter().filter(is_shown).map(text).collect();
    let folded = long.iter().map(|line| wrapped(line, WIDTH - 8, "    "));
    folded.flat_map(|line| line.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// What was executed in this line: not the operation that an interrupt came before, and not the sleep that
/// has just ended.
fn executed(image: &Image, line: &Line) -> Option<String> {
    let happened = |what: fn(&Transition) -> bool| line.happened.iter().any(|(_, is)| what(is));
    if happened(|what| matches!(what, Transition::Raised(_) | Transition::Taken(_))) {
        return None;
    }
    match line.op? {
        Op::Sleep(..) | Op::SleepOnGrid
            if !happened(|what| matches!(what, Transition::SchedEntry)) =>
        {
            None
        }
        op => words_of(image, op),
    }
}

fn who(image: &Image, line: &Line) -> String {
    let task = clean(image.task_name(line.task), 15);
    match (line.kind, line.stage) {
        (FrameKind::Task, _) => task,
        (FrameKind::Scheduler { .. }, _) => format!("{task}, in the scheduler"),
        (FrameKind::Softirq { number, .. }, _) => format!("softirq {number} on {task}"),
        (FrameKind::Interrupt(_), Stage::LeavingIdle) => "leaving idle".into(),
        (FrameKind::Interrupt(source), _) => {
            format!("interrupt {} on {task}", source_name(image, source))
        }
    }
}

fn source_name(image: &Image, source: SourceId) -> String {
    clean(&image.sources[source.index()].name, 40)
}

/// The kernel's word for an operation; `None` of those that are the model's own.
fn words_of(image: &Image, op: Op) -> Option<String> {
    let lock = |what: &str, lock: wakescope_model::image::LockId| {
        Some(format!("{what}({})", clean(&image.locks[lock.index()], 40)))
    };
    let event = |what: &str, event: wakescope_model::image::EventId| {
        Some(format!("{what}({})", clean(&image.events[event.index()], 40)))
    };
    let plain = |what: &str| Some(what.to_owned());
    match op {
        Op::User(_) => plain("user mode"),
        Op::PageFault(_) => plain("page fault"),
        Op::Sleep(..) | Op::SleepOnGrid => plain("sleeps"),
        Op::Respond => plain("responds"),
        Op::Acquire(id) => lock("spin_lock", id),
        Op::Release(id) => lock("spin_unlock", id),
        Op::MutexLock(id) => lock("lock", id),
        Op::RtLock(id) => lock("spin_lock", id),
        Op::MutexUnlock(id) => lock("unlock", id),
        Op::PreemptDisable => plain("preempt_disable"),
        Op::PreemptEnable => plain("preempt_enable"),
        Op::IrqSave => plain("local_irq_save"),
        Op::IrqRestore => plain("local_irq_restore"),
        Op::BhDisable => plain("local_bh_disable"),
        Op::BhEnable => plain("local_bh_enable"),
        Op::RcuReadLock => plain("rcu_read_lock"),
        Op::RcuReadUnlock => plain("rcu_read_unlock"),
        Op::Broken(id) => lock("drops", id),
        Op::PrepareToWait(id) => event("prepare_to_wait", id),
        Op::FinishWait(id) => event("finish_wait", id),
        Op::Wake(id) => event("wake_up", id),
        Op::Schedule => plain("schedule"),
        Op::RaiseSoftirq(number) => Some(format!("raises softirq {number}")),
        Op::BeginChange(id) | Op::EndChange(id) => {
            let what = if matches!(op, Op::BeginChange(_)) { "begins" } else { "ends" };
            let variable = clean(&image.variables[id.index()], 40);
            Some(format!("{what} to change {variable}"))
        }
        Op::Work => plain("work is done"),
        _ => None,
    }
}

/// What happened, where an operation does not say it already.
fn happening(image: &Image, what: Transition) -> Option<String> {
    let task = |task: TaskId| clean(image.task_name(Some(task)), 15);
    match what {
        Transition::Woken { task: woken, .. } => Some(format!("wakes {}", task(woken))),
        Transition::NeedResched { lazy: false } => Some("need_resched is set".into()),
        Transition::NeedResched { lazy: true } => Some("need_resched_lazy is set".into()),
        Transition::Switch { from, preempted, to } => {
            let from = clean(image.task_name(from), 15);
            let how = if preempted { "preempts" } else { "follows" };
            Some(format!("{} {how} {from}", clean(image.task_name(to), 15)))
        }
        Transition::SpinBegin(_) => Some("spins".into()),
        Transition::Boosted { owner, waiter } => {
            Some(format!("{} gets the priority of {}", task(owner), task(waiter)))
        }
        _ => None,
    }
}
