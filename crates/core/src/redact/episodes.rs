//! What an episode names: the tasks on its CPU, interrupts, stacks.

use super::explained::{
    redact_comm, redact_culprit, redact_frame, redact_share, redact_symbol, redact_user_stack,
};
use super::names::redact_name_of_load;
use crate::episodes::{Attributed, Head};
use crate::explain::{
    Anew, Answer, Change, Context, Event, GivenUp, Interrupt, Known, Mode, Ran, RunTimes, Task,
    Wakeup, What, WokenBy,
};

/// Removes from the head of episodes what [`redact`](super::redact) removes from a run.
pub fn redact_head(head: &mut Head) {
    let Head {
        schema: _,
        run: _,
        origin_ns: _,
        above: _,
        release: _,
        arch: _,
        model: _,
        load,
        known,
    } = head;
    load.iter_mut().for_each(redact_name_of_load);
    keep_known(known);
}

/// Figures only.
fn keep_known(known: &Known) {
    let Known {
        delivery_ns: _,
        scheduling_ns: _,
        least_sched_latency_ns: _,
        waking_ns: _,
        guest: _,
        ticks: _,
        probes: _,
        shows_softirqs_left: _,
        shows_throttling: _,
    } = known;
}

/// Answers name culprits as the ranking does.
pub(super) fn redact_anew(anew: &mut Anew) {
    let Anew {
        episodes: _,
        changed: _,
        changed_net_of_steal: _,
        damaged_lines: _,
        excess_ns: _,
        changes,
    } = anew;
    for Change { before, after, episodes: _, ns: _ } in changes {
        for Answer { cause: _, culprit, phase: _, from_cpu: _ } in [before, after] {
            redact_culprit(culprit);
        }
    }
}

/// Removes from an episode what [`redact`](super::redact) removes from a run.
pub fn redact_attributed(episode: &mut Attributed) {
    let Attributed { wakeup, components: _, blame } = episode;
    let Wakeup {
        cpu: _,
        task,
        normal_prio: _,
        woken_by,
        marks: _,
        interrupted,
        events,
        lost: _,
        known_switches: _,
        ran,
        taken: _,
        given_up,
        page_faults: _,
        throttled: _,
        throttled_from: _,
        irqs_off: _,
        stolen_ns: _,
        quota_ns: _,
    } = wakeup;
    redact_task(task);
    if let WokenBy::Waker { task, on: _, in_interrupt: _ } = woken_by {
        redact_task(task);
    }
    interrupted.iter_mut().for_each(redact_context);
    events.iter_mut().for_each(redact_event);
    let RunTimes { tasks, others_ns: _, urgent_others_ns: _ } = ran;
    tasks.iter_mut().for_each(|Ran { task, ns: _ }| redact_task(task));
    if let Some(GivenUp { pid: _, stack, user_stack }) = given_up {
        stack.iter_mut().for_each(redact_frame);
        redact_user_stack(user_stack);
    }
    blame.iter_mut().for_each(redact_share);
}

fn redact_task(task: &mut Task) {
    let Task { pid, comm, policy: _, prio: _ } = task;
    redact_comm(comm, Some(*pid));
}

fn redact_context(context: &mut Context) {
    let Context {
        task,
        mode,
        preempt_depth: _,
        softirq: _,
        preemptible: _,
        enabled_interrupts: _,
        stack,
        stack_is_later: _,
        user_stack,
    } = context;
    redact_task(task);
    if let Mode::Idle(state) = mode {
        redact_symbol(state);
    }
    stack.iter_mut().for_each(redact_frame);
    redact_user_stack(user_stack);
}

fn redact_event(event: &mut Event) {
    let Event { at: _, what } = event;
    match what {
        What::IrqEntry(Interrupt(name)) | What::IrqExit(Interrupt(name)) => redact_symbol(name),
        What::TimerEntry(name, _) | What::Nmi(name, _) => redact_symbol(name),
        What::Switch { from, to } => [from, to].into_iter().for_each(redact_task),
        What::Deboost(task) => redact_task(task),
        What::TimerExit
        | What::SoftirqEntry(_)
        | What::SoftirqExit(_)
        | What::SoftirqsPending
        | What::Tracer(_)
        | What::Moved { from: _, to: _ }
        | What::SchedEntry
        | What::Steal(_)
        | What::ContentionBegin
        | What::ContentionEnd => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episodes::{Entry, Line};
    use crate::explain::{Culprit, Frame, NamedTask, Share};

    const MARKER: &str = "secret plan";

    /// Each text of an episode, but for the names of a head that a run keeps, is the marker.
    fn full() -> (Head, Attributed) {
        let task = || Task { pid: 7, comm: MARKER.into(), ..Task::default() };
        let stack = || vec![Frame { module: Some(MARKER.into()), ..Frame::in_function(MARKER, 1) }];
        let interrupt = || Interrupt(MARKER.into());
        let all = [
            What::IrqEntry(interrupt()),
            What::IrqExit(interrupt()),
            What::TimerEntry(MARKER.into(), 1),
            What::Nmi(MARKER.into(), 1),
            What::Switch { from: task(), to: task() },
        ];
        let wakeup = Wakeup {
            task: task(),
            woken_by: WokenBy::Waker { task: task(), on: 0, in_interrupt: false },
            interrupted: Some(Context {
                task: task(),
                mode: Mode::Idle(MARKER.into()),
                stack: stack(),
                user_stack: stack(),
                ..Context::default()
            }),
            given_up: Some(GivenUp { pid: 7, stack: stack(), user_stack: stack() }),
            events: all.map(|what| Event { at: crate::units::MonoNs(0), what }).into(),
            ..Wakeup::default()
        };
        let named = NamedTask { comm: MARKER.into(), pid: Some(7), ..NamedTask::default() };
        let share = Share { culprit: Culprit::Task(named), ..Share::default() };
        let head = Head { load: vec![format!("exec:{MARKER}"), MARKER.into()], ..Head::default() };
        (head, Attributed { wakeup, blame: vec![share], ..Attributed::default() })
    }

    #[test]
    fn an_episode_that_is_published_names_nobody() {
        let text = |head: &Head, episode: &Attributed| {
            let line = Line::of(episode.clone(), 0);
            Entry::Head(Box::new(head.clone())).text() + &Entry::Episode(Box::new(line)).text()
        };
        let (mut head, mut episode) = full();
        assert_eq!(text(&head, &episode).matches(MARKER).count(), 21);
        redact_head(&mut head);
        redact_attributed(&mut episode);
        let once = text(&head, &episode);
        assert!(!once.contains("secret"), "{once}");
        redact_head(&mut head);
        redact_attributed(&mut episode);
        assert_eq!(text(&head, &episode), once, "twice is once");
    }
}
