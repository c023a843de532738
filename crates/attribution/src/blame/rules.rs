//! The rules of blame for time that neither an interrupt nor a softirq takes.

use super::case::Case;
use super::piece::{
    Label, from_afar, in_place, known_by, label, of_phase, unexplained, with_given_up_at,
    with_stack, with_user_stack,
};
use super::standstill::{quietly_waits, stalled, stood_still};
use crate::function::{
    culprit, is_of_user_mode, is_short_way, leaves_switch, under_softirq, unlocks,
    who_had_interrupts_off, within,
};
use crate::rule::Rule;
use crate::tuning::{Tuning, percent_of};
use wakescope_core::explain::{
    Cause, Context, Culprit, Evidence, Frame, Marks, Mode, Phase, Policy, Task, WokenBy,
};
use wakescope_core::units::MonoNs;

/// How a stretch of time is divided: the first label gets so much of it, the second one the rest.
#[derive(Clone, Debug)]
pub(super) struct Split {
    pub(super) at_most_ns: u64,
    pub(super) first: Label,
    pub(super) then: Label,
}

impl Split {
    pub(super) fn all(label: Label) -> Self {
        Self { at_most_ns: 0, first: label.clone(), then: label }
    }

    pub(super) fn unexplained(rule: Rule) -> Self {
        Self::all(unexplained(rule))
    }

    fn all_of(rule: Rule, cause: Cause, culprit: Culprit, evidence: Evidence) -> Self {
        Self::all(label(rule, cause, culprit, evidence))
    }

    /// All is of a task that was seen to run, wherever in its program it was.
    fn all_of_task(rule: Rule, case: &Case, cause: Cause, task: &Task) -> Self {
        let bare = label(rule, cause, Culprit::Task(task.named()), Evidence::Edge);
        Self::all(with_user_stack(&bare, case.user_stack(task)))
    }
}

/// The wait for the interrupt: nothing but code with interrupts off holds it up in the kernel, and
/// such code is interrupted where it enables them.
///
/// What is interrupted in the end did not hold up a timer that was not there before. (6.1 beside a load:
/// a probe slept 0.45 s for a page before it set its timer. Ticks came meanwhile, but switches were lost,
/// and 37 ms were blamed on interrupts off in the load.)
pub(super) fn waiting(case: &Case) -> Split {
    if case.timer_was_not_there() {
        return Split::unexplained(Rule::NoTimerYet);
    }
    if let Some((_, runs)) = case.woken_in_thread {
        return before_thread(case, runs);
    }
    match case.context() {
        Some(context) if is_asleep(context) => waking(case, context),
        Some(context) if case.is_own(&context.task) => on_its_way_to_sleep(case),
        Some(context) => match case.irqs_off().filter(|_| context.mode == Mode::Kernel) {
            Some(edges) => measured(case, context, edges),
            None if lets_interrupts_in(context) => woken_by_another(case)
                .unwrap_or_else(|| delivery(case, stood_still(Rule::LateInterrupt, case))),
            None if context.mode == Mode::Kernel => kept_out(case, context),
            None => delivery(case, unexplained(Rule::LateInterrupt)),
        },
        _ => delivery(case, unexplained(Rule::LateInterrupt)),
    }
}

/// The wait for the interrupt of a timer that wakes in a thread, which runs after that. Of what the interrupt broke into
/// only the task is known. (6.1-rt in the lab, a probe by timerfd that was awake when it was due: 3.05 ms of it were
/// blamed on interrupts off in `hrtimer_run_softirq`, of the thread.)
fn before_thread(case: &Case, runs: &Task) -> Split {
    match runs.is_idle() && !case.known.guest && !case.doubtful {
        true => idle_exit(&Context::default()),
        false => delivery(case, stood_still(Rule::LateInterrupt, case)),
    }
}

/// Kernel code that had interrupts off until it was broken into. Where that is the way back from
/// another interrupt to a program, it had them off since then only: programs have them on. (6.18 on
/// KVM: `irqentry_exit_to_user_mode` was blamed for 107 us of a pause of 27 ms that came before.)
///
/// Neither that way back nor the one out of a switch takes long: if it seems to in a guest, that stood
/// still. (Under an emulator that was stopped: 20 ms of `exit_to_user_mode_prepare`, 6.1, and 52 ms of
/// `finish_task_switch`, 7.2.)
fn kept_out(case: &Case, context: &Context) -> Split {
    let section = |rule| section(rule, case, Cause::IrqOff, context);
    let is_short = !context.stack_is_later && is_short_way(&context.stack);
    match case.interrupt_before() {
        Some(came) if !context.stack_is_later && is_of_user_mode(&context.stack) => {
            let at_most_ns = came.since(case.marks.due).0;
            let rule = Rule::WayBackBefore;
            Split { at_most_ns, first: stood_still(rule, case), then: section(rule) }
        }
        _ if is_short && case.known.guest && !case.doubtful => {
            let at_most_ns = case.tuning.long_short_way_ns;
            let rule = Rule::ShortWay;
            Split { at_most_ns, first: section(rule), then: stood_still(rule, case) }
        }
        _ => delivery(case, section(Rule::InterruptsOff)),
    }
}

/// A CPU that sleeps. Its hardware wakes it in about the same time each time; a hypervisor that has
/// something else to run does not. (6.1 under an emulator that was stopped for 20 ms: all of it was
/// blamed on the idle state.)
///
/// What is usual says nothing of the states that were seldom reached, so a CPU is given much longer.
fn waking(case: &Case, context: &Context) -> Split {
    let Tuning { slow_to_wake_ns, slow_to_wake_percent, .. } = case.tuning;
    let unusual_ns = |usual_ns| percent_of(slow_to_wake_percent, usual_ns).max(slow_to_wake_ns);
    let Marks { due, irq_entry, .. } = case.marks;
    let waited_ns = irq_entry.map_or(0, |entry| entry.since(due).0);
    match case.known.waking_ns {
        Some(usual_ns) if case.known.guest && waited_ns > unusual_ns(usual_ns) => {
            let then = stood_still(Rule::LateIdleExit, case);
            Split { at_most_ns: usual_ns, then, ..idle_exit(context) }
        }
        _ => idle_exit(context),
    }
}

/// A CPU that slept when the wakeup was due, and that another interrupt woke. What that one broke into is
/// not recorded, but the first switch is one from the idle task. In a guest, the hypervisor may have had
/// the CPU as well.
fn woken_by_another(case: &Case) -> Option<Split> {
    let came = case.interrupt_before().filter(|_| !case.doubtful && !case.known.guest)?;
    let first = case.first_switch().filter(|(at, from)| *at > came && from.is_known());
    let slept = first.is_some_and(|(_, from)| from.is_idle());
    let first = label(Rule::IdleExit, Cause::IdleExit, Culprit::idle(""), Evidence::Bound);
    let then = stood_still(Rule::LateInterrupt, case);
    slept.then_some(Split { at_most_ns: came.since(case.marks.due).0, first, then })
}

/// The same CPU, after the interrupt that woke it: it has only to leave its idle task. (6.1 under an
/// emulator that was stopped: 20 ms of that were blamed on the idle state.)
fn awake(case: &Case, context: &Context) -> Split {
    let Marks { irq_exit, sched_entry, switch_in, .. } = case.marks;
    match quietly_waits(case, irq_exit, sched_entry.or(switch_in)) {
        true if case.known.guest => {
            let at_most_ns = case.tuning.slow_way_ns;
            let then = stood_still(Rule::LateIdleExit, case);
            Split { at_most_ns, then, ..idle_exit(context) }
        }
        _ => idle_exit(context),
    }
}

/// The task itself, which had not gone to sleep when it was due to wake: there was no timer yet whose
/// interrupt could have been kept out. It expires as soon as it is there, where the kernel enables
/// interrupts again. (6.18: `do_nanosleep` was blamed for 2.26 ms, of which it had some ns.)
fn on_its_way_to_sleep(case: &Case) -> Split {
    Split { then: stood_still(Rule::TooEarly, case), ..own_too_early(case) }
}

/// Whether interrupts were on in what was interrupted, for longer than an instruction.
fn lets_interrupts_in(context: &Context) -> bool {
    context.mode == Mode::User || context.enabled_interrupts == Some(false)
}

/// The wait for the interrupt where it is known when interrupts went `off`, and `on` again: what lies
/// outside of that is no such section's, whatever the stack says.
fn measured(case: &Case, context: &Context, (off, on): (MonoNs, MonoNs)) -> Split {
    let due = case.marks.due;
    if on <= due {
        return delivery(case, stood_still(Rule::LateInterrupt, case));
    }
    let section = section(Rule::MeasuredSection, case, Cause::IrqOff, context);
    let first = known_by(Rule::MeasuredSection, &section, Evidence::Edge);
    let begin = off.max(due);
    let after_ns = case.marks.irq_entry.map_or(0, |entry| entry.since(on).0);
    let is_delivery = begin == due
        && after_ns <= percent_of(case.tuning.delivery_percent, case.known.delivery_ns);
    let then = match is_delivery {
        true => delivered(Rule::Delivery),
        false => stood_still(Rule::LateInterrupt, case),
    };
    Split { at_most_ns: on.since(begin).0, first, then }
}

/// Whoever runs while the task has not even gone to sleep for its timer.
pub(super) fn not_asleep(case: &Case, runs: &Task) -> Split {
    if runs.is_known() && case.is_own(runs) {
        // It had the CPU until it went to sleep, which is seen: nobody kept it from that.
        let own = Split::all_of_task(Rule::Awake, case, Cause::EqualOrLowerTask, runs);
        match case.known.probes && case.known.guest {
            true => {
                let at_most_ns = case.tuning.slow_probe_ns;
                Split { at_most_ns, then: stood_still(Rule::SlowProbe, case), ..own }
            }
            false => own,
        }
    } else if runs.is_known() && runs.comes_before(case.task()) {
        more_urgent_task(Rule::KeptAwake, case, runs)
    } else {
        Split::unexplained(Rule::KeptAwake)
    }
}

/// What every interrupt takes to arrive, and what is held up beyond that.
fn delivery(case: &Case, then: Label) -> Split {
    Split { at_most_ns: case.known.delivery_ns, first: delivered(Rule::Delivery), then }
}

/// What an interrupt takes to arrive.
pub(super) fn delivered(rule: Rule) -> Label {
    of_phase(rule, Cause::Irq, Phase::Delivery, Evidence::Bound)
}

/// What was interrupted and still runs. `softirq_over`: it was a softirq that has ended, so that
/// the stack, and how it was with preemption, are no longer those of what runs.
pub(super) fn interrupted(case: &Case, context: Option<&Context>, softirq_over: bool) -> Split {
    let Some(context) = context else { return return_path(case, unexplained(Rule::Unseen)) };
    let (runs, own) = (&context.task, case.task());
    if runs.is_known() && case.is_own(runs) {
        let Marks { irq_exit, response, .. } = case.marks;
        return return_path(case, stalled(Rule::TooEarly, case, irq_exit, Some(response)));
    }
    if runs.is_known() && runs.comes_before(own) {
        return going_on(case, more_urgent_task(Rule::MoreUrgentTask, case, runs));
    }
    if case.throttled {
        return throttled(case);
    }
    if is_asleep(context) {
        return awake(case, context);
    }
    if own.is_urgent() && runs.is_known() && runs.prio == own.prio {
        // Nobody of the same priority is made to go.
        let same = of_rank(Rule::SamePriority, case, Cause::EqualOrLowerTask, runs);
        return going_on(case, same);
    }
    let beneath = if softirq_over { beneath_softirq(context) } else { Some(context.clone()) };
    if runs.is_known() && !own.is_urgent() && !runs.is_urgent() {
        let task = among_ordinary(Rule::OrdinaryTask, case, runs, beneath.as_ref());
        let goes_on = beneath.is_some_and(|context| held(&context).is_some());
        return if goes_on { Split::all(task) } else { return_path(case, task) };
    }
    match beneath.and_then(|context| Some((held(&context)?, context))) {
        Some((cause, context)) if softirq_over => {
            let rule = Rule::BeneathSoftirq;
            let section = section(rule, case, cause, &context);
            return after_softirqs(case, known_by(rule, &section, Evidence::Bound));
        }
        Some((Cause::PreemptOff, context)) if is_out_of_switch(&context) => {
            return return_path(case, out_of_switch());
        }
        Some((cause, context)) => {
            return way_first(case, section(Rule::KernelCode, case, cause, &context));
        }
        None => {}
    }
    let Marks { irq_exit, sched_entry, switch_in, .. } = case.marks;
    match !softirq_over && !case.remote && is_left_at_once(context) {
        true => {
            let until = sched_entry.or(switch_in);
            return_path(case, stalled(Rule::NotLeft, case, irq_exit, until))
        }
        false => return_path(case, unexplained(Rule::NotLeft)),
    }
}

/// All is of the task that was interrupted, once it goes on. Where the interrupt woke after its handler, nobody knows
/// how long it went on itself.
fn going_on(case: &Case, split: Split) -> Split {
    match case.was_woken_after_handler() {
        true => Split::all(known_by(split.then.rule, &split.then, Evidence::Bound)),
        false => split,
    }
}

/// An ordinary task that an ordinary one waits for. It goes when the scheduler finds that fair, and no event
/// says when that was: so where it was in the kernel is told, but is not the reason. (Simulated: of 10,700 such
/// waits 9,900 were blamed on code that did not have to be left.)
fn among_ordinary(rule: Rule, case: &Case, runs: &Task, context: Option<&Context>) -> Label {
    let culprit = Culprit::Task(runs.named());
    let bare = label(rule, Cause::EqualOrLowerTask, culprit, Evidence::Bound);
    let in_kernel = context.filter(|context| context.mode == Mode::Kernel);
    let (stack, given_up_at) = match in_kernel {
        Some(context) => stacks(case, Cause::NoPreemptionPoint, context),
        None => (&[][..], &[][..]),
    };
    let with_stacks = with_given_up_at(&with_stack(&bare, stack), given_up_at);
    with_user_stack(&with_stacks, case.user_stack(runs))
}

/// What the softirq broke into that was interrupted itself, and has ended: the stack leads there. Where
/// nobody is preempted anyway, it makes no difference how often preemption was off in it. (6.18: 70 us of
/// poll(2) were unexplained where the interrupt had come in the softirq of one before.) Elsewhere it was off
/// in one of the two: if it was in the softirq, this is left on the way back. (Simulated: 115 us.)
fn beneath_softirq(context: &Context) -> Option<Context> {
    let stack = under_softirq(&context.stack);
    let is_known = context.preemptible.is_some() && !context.stack_is_later;
    (is_known && !stack.is_empty()).then(|| Context {
        softirq: None,
        preempt_depth: context.preempt_depth.filter(|_| context.preemptible == Some(true)),
        enabled_interrupts: None,
        stack: stack.to_vec(),
        ..context.clone()
    })
}

/// Whether what was interrupted does not go on where a more urgent task waits. (6.1 under an emulator
/// that was stopped: 20.9 ms between an interrupt of a program and the switch were unexplained.)
pub(super) fn is_left_at_once(context: &Context) -> bool {
    match context.mode {
        Mode::User => true,
        Mode::Kernel => context.preemptible == Some(true) && context.preempt_depth == Some(0),
        Mode::Unknown | Mode::Idle(_) => false,
    }
}

/// The waker, which goes on with its own work on the same CPU.
pub(super) fn waker(case: &Case, waker: &Task) -> Split {
    if waker.comes_before(case.task()) {
        return more_urgent_task(Rule::MoreUrgentTask, case, waker);
    }
    if case.throttled {
        return throttled(case);
    }
    if waker.is_idle() {
        // What it did for others is over: it has only to be left.
        return awake(case, case.context().unwrap_or(&Context::default()));
    }
    let context = case.context().filter(|context| context.task.pid == waker.pid);
    if context.and_then(held).is_some() && !case.task().is_urgent() && !waker.is_urgent() {
        return Split::all(among_ordinary(Rule::Waker, case, waker, context));
    }
    let held = context.and_then(|context| Some((context, held(context)?)));
    let is_seen =
        |&(context, cause): &(&Context, Cause)| !stacks(case, cause, context).0.is_empty();
    match held.filter(is_seen) {
        Some((context, cause)) => Split::all(section(Rule::WakersCode, case, cause, context)),
        None => {
            let split = Split::all_of_task(Rule::Waker, case, Cause::EqualOrLowerTask, waker);
            // It had to be left at once, unless interrupts were off.
            let had_to_go = || case.task().comes_before(waker).then_some(Rule::Waker);
            let doubt = doubt_about_rank(case, waker).or_else(had_to_go);
            match doubt {
                Some(rule) => Split::all(known_by(rule, &split.then, Evidence::Bound)),
                None => split,
            }
        }
    }
}

/// Another task that the CPU was switched to. `asked`: the scheduler knew of the wakeup then.
pub(super) fn running(case: &Case, runs: &Task, asked: bool) -> Split {
    let own = case.task();
    if runs.comes_before(own) {
        more_urgent_task(Rule::MoreUrgentTask, case, runs)
    } else if case.throttled {
        throttled(case)
    } else if own.policy.is_realtime() && !is_urgent_and_awake(runs) {
        // The scheduler runs none of these before a real-time task, if it may run that one. Where each switch says
        // whether it may, this one had another reason: core scheduling, or a task that runs on behalf of another.
        // A deadline task may have been stopped when it was queued, which none says.
        let would_say = case.known.shows_throttling && own.policy != Policy::Deadline;
        match asked && !would_say {
            true => throttled(case),
            false => Split::unexplained(Rule::NoReason),
        }
    } else if runs.is_idle() {
        Split::unexplained(Rule::NoReason)
    } else {
        other_task(case, runs)
    }
}

/// Interrupts were lost, but no switch. So the time between two switches belongs to a task, or to throttling, except
/// for the time of interrupts. When these came is not known: they may all have come in any stretch. (6.18: 950 ms of
/// a real-time task were unexplained, because ticks had filled the ring. 6.1 in the lab: 50 ms of throttling, because
/// other tasks woke up meanwhile.)
pub(super) fn beside_lost_interrupts(split: &Split, interrupts_ns: u64) -> Split {
    match split.then.cause {
        Cause::HigherPriorityTask | Cause::EqualOrLowerTask | Cause::Throttled => {
            let rule = Rule::BesideLostInterrupts;
            let at_most_ns = split.at_most_ns.saturating_add(interrupts_ns);
            let then = known_by(rule, &split.then, Evidence::Bound);
            Split { at_most_ns, first: unexplained(rule), then }
        }
        _ => Split::unexplained(Rule::LostEvents),
    }
}

/// Who ran where events were lost, if the one that wakes has to wait for such a task. When it ran nobody knows,
/// nor what interrupted it.
pub(super) fn ran_meanwhile(case: &Case, runs: &Task) -> Option<Label> {
    let then = running(case, runs, false).then;
    let is_to_blame = match then.cause {
        Cause::HigherPriorityTask => true,
        // A real-time task has to give way to a more urgent one at once: code kept it, and not who was in that.
        Cause::EqualOrLowerTask => !case.task().is_urgent() || runs.prio == case.task().prio,
        _ => false,
    };
    is_to_blame.then(|| known_by(Rule::RanMeanwhile, &then, Evidence::Bound))
}

/// The same of all others of which only that is known. An ordinary task has to wait for all of them.
pub(super) fn others_ran(case: &Case, are_urgent: bool) -> Option<Label> {
    let cause = if are_urgent { Cause::HigherPriorityTask } else { Cause::EqualOrLowerTask };
    let has_to_wait = !case.task().is_urgent();
    has_to_wait.then(|| label(Rule::RanMeanwhile, cause, Culprit::None, Evidence::Bound))
}

/// Another task, after the one that was to wake has run already: that one waited for something.
pub(super) fn running_instead(case: &Case, runs: &Task) -> Split {
    if runs.comes_before(case.task()) {
        more_urgent_task(Rule::MoreUrgentTask, case, runs)
    } else if case.throttled {
        throttled(case)
    } else if case.wakeup.page_faults > 0 {
        page_fault(case)
    } else {
        Split::unexplained(Rule::NoReason)
    }
}

/// The task itself, from the switch to its response.
pub(super) fn own(case: &Case) -> Split {
    if case.wakeup.page_faults > 0 {
        return page_fault(case);
    }
    let Marks { switch_in, response, .. } = case.marks;
    switching(case, switch_in, Some(response))
}

/// The scheduler, until it switches.
pub(super) fn scheduler(case: &Case) -> Split {
    let Marks { sched_entry, switch_in, response, .. } = case.marks;
    switching(case, sched_entry, switch_in.or(Some(response)))
}

/// The scheduler, until it switches to another task.
pub(super) fn switching_to_another() -> Split {
    let rule = Rule::SwitchToAnother;
    Split::all(of_phase(rule, Cause::Scheduler, Phase::Switch, Evidence::Edge))
}

/// The scheduler or the way back from it. What the tracer takes then is no part of what it usually
/// takes.
fn switching(case: &Case, from: Option<MonoNs>, to: Option<MonoNs>) -> Split {
    // What is lost may have been an interrupt between the two.
    let evidence = if case.doubtful { Evidence::Bound } else { Evidence::Edge };
    let first = of_phase(Rule::Switch, Cause::Scheduler, Phase::Switch, evidence);
    // No event and no more than the usual code lie in between. A stall there is the machine's or a
    // hypervisor's: 2 ms in a guest whose host says nothing of it (6.18).
    let is_stall = case.known.guest && quietly_waits(case, from, to);
    let tuning = &case.tuning;
    let (most_ns, then) = match case.known.scheduling_ns {
        Some(usual_ns) => {
            let most_ns = percent_of(tuning.scheduling_percent, usual_ns);
            let most_ns = most_ns.saturating_add(tuning.return_path_ns);
            (most_ns, stalled(Rule::Switch, case, from, to))
        }
        None if is_stall => (tuning.slow_way_ns, stood_still(Rule::Stall, case)),
        None => (0, first.clone()),
    };
    let at_most_ns = most_ns.saturating_add(case.traced_ns(from, to));
    Split { at_most_ns, first, then }
}

/// The task itself, before it was finally switched to: it need not have got far.
pub(super) fn own_too_early(case: &Case) -> Split {
    Split {
        at_most_ns: case.tuning.return_path_ns,
        first: of_phase(Rule::TooEarly, Cause::Scheduler, Phase::Switch, Evidence::Bound),
        then: unexplained(Rule::TooEarly),
    }
}

/// The interrupt that wakes the task. Where events are missing, as all of another CPU are, an NMI may have come in it,
/// or a guest may have stood still. (Simulated: 40 us of 42, and 276 of 278.) How long NMIs took that were lost is known.
pub(super) fn handler(case: &Case) -> Split {
    let name = case.interrupt.as_deref().unwrap_or_default();
    let may_hide_more = case.known.guest || case.wakeup.taken.nmis_ns > 0;
    let evidence = match case.remote || (case.doubtful && may_hide_more) {
        true => Evidence::Bound,
        false => Evidence::Edge,
    };
    Split::all_of(Rule::Handler, Cause::Irq, Culprit::interrupt(name), evidence)
}

/// The way from another CPU, until its interrupt was taken. An interrupt that woke the task is none of the task that it
/// had broken into. A softirq may be: a task that sends to this machine runs it in its own call. Of one that came at the
/// end of an interrupt the tracer names nobody.
pub(super) fn remote(case: &Case) -> Split {
    let (culprit, from_cpu) = match &case.wakeup.woken_by {
        WokenBy::Waker { task, in_interrupt: false, .. } if task.is_known() => {
            (Culprit::Task(task.named()), None)
        }
        WokenBy::Timer { on } => (Culprit::None, Some(*on)),
        _ => (Culprit::None, None),
    };
    called(case, culprit, from_cpu)
}

/// The same after the task was moved to this CPU: by whom no event says.
pub(super) fn called_after_move(case: &Case) -> Split {
    called(case, Culprit::None, None)
}

/// A call from another CPU. If it takes about as long as interrupts of this run usually do, its time is certain. A
/// longer one is a bound: the CPU may have had interrupts off, or its hypervisor did not run it, and no event says so.
fn called(case: &Case, culprit: Culprit, from_cpu: Option<u32>) -> Split {
    let first = from_afar(Rule::RemoteCall, culprit, from_cpu);
    let then = known_by(Rule::RemoteCall, &first, Evidence::Bound);
    let at_most_ns = percent_of(case.tuning.delivery_percent, case.known.delivery_ns);
    Split { at_most_ns, first, then }
}

fn return_path(case: &Case, then: Label) -> Split {
    Split { at_most_ns: case.tuning.return_path_ns, first: way_back(), then }
}

/// What was interrupted holds the scheduler up only by what is beyond the way that every wakeup has. (Test:
/// `a_section_held_up_only_what_is_beyond_the_way_to_the_scheduler`.)
fn way_first(case: &Case, then: Label) -> Split {
    Split { at_most_ns: case.way_out_of_section_ns(), first: way_back(), then }
}

/// The same of what a softirq broke into. Softirqs end only after the event of it: where more are pending, their
/// thread is made ready first. Where a kernel does not show that, it may be what took the time. (6.1: 1,588 ns of
/// that, and then 3 of the code beneath.)
fn after_softirqs(case: &Case, then: Label) -> Split {
    match case.known.shows_softirqs_left {
        true => way_first(case, then),
        false => return_path(case, then),
    }
}

fn way_back() -> Label {
    let (rule, phase) = (Rule::ReturnPath, Phase::ReturnFromInterrupt);
    of_phase(rule, Cause::Scheduler, phase, Evidence::Bound)
}

fn idle_exit(context: &Context) -> Split {
    let state = match &context.mode {
        Mode::Idle(state) => state.as_str(),
        _ => "",
    };
    Split::all_of(Rule::IdleExit, Cause::IdleExit, Culprit::idle(state), Evidence::Bound)
}

/// All is of a task that ran, by its rank. If that changed while it ran, it was no such task for all of that time.
/// (Simulated: 42 us of an ordinary task after it had given a lock back, blamed on a more urgent one.)
fn of_rank(rule: Rule, case: &Case, cause: Cause, runs: &Task) -> Split {
    let split = Split::all_of_task(rule, case, cause, runs);
    match doubt_about_rank(case, runs) {
        Some(rule) => Split::all(known_by(rule, &split.then, Evidence::Bound)),
        None => split,
    }
}

/// Why it is not known whether a task comes before the one that wakes, if it is not.
fn doubt_about_rank(case: &Case, runs: &Task) -> Option<Rule> {
    let is_changed = case.changed_rank(runs).then_some(Rule::ChangedRank);
    let by_deadline = || case.task().deadlines_decide(runs).then_some(Rule::UnknownDeadline);
    is_changed.or_else(by_deadline)
}

/// A task that comes first.
fn more_urgent_task(rule: Rule, case: &Case, runs: &Task) -> Split {
    of_rank(rule, case, Cause::HigherPriorityTask, runs)
}

/// A task that does not. Who runs beside a task that a quota has stopped is not what it waits for. (Simulated:
/// 8.7 ms of others.)
fn other_task(case: &Case, runs: &Task) -> Split {
    let split = of_rank(Rule::OtherTask, case, Cause::EqualOrLowerTask, runs);
    let is_doubtful = split.then.rule == Rule::OtherTask && case.a_quota_may_have_stopped_it();
    match is_doubtful {
        true => Split::all(known_by(Rule::BesideQuota, &split.then, Evidence::Bound)),
        false => split,
    }
}

/// The kernel says at the wakeup and at switches whether it throttles real-time tasks, not since when. So
/// they were throttled for a part of the time at least. (Simulated: 75 of 1,921 such answers had 3 ms of
/// kernel code, and were throttled after that.)
fn throttled(case: &Case) -> Split {
    let culprit = Culprit::Task(case.task().named());
    Split::all_of(Rule::Throttled, Cause::Throttled, culprit, Evidence::Bound)
}

/// A quota of CPU time has stopped the task.
pub(super) fn stopped_by_quota(case: &Case) -> Label {
    let culprit = Culprit::Task(case.task().named());
    label(Rule::Quota, Cause::Throttled, culprit, Evidence::Bound)
}

fn page_fault(case: &Case) -> Split {
    let culprit = Culprit::Task(case.task().named());
    Split::all_of(Rule::PageFault, Cause::PageFault, culprit, Evidence::Bound)
}

/// Why kernel code is not left at once, as far as the context says.
fn held(context: &Context) -> Option<Cause> {
    let depth = context.preempt_depth.unwrap_or(0);
    // The section ends where the interrupt came: what goes on is not it.
    let ends = depth == 1 && !context.stack_is_later && context.stack.first().is_some_and(unlocks);
    match (if ends { 0 } else { depth }, context.preemptible) {
        _ if context.mode != Mode::Kernel => None,
        // Where nobody is preempted anyway, the switch waits for a preemption point, however short
        // the section was that the interrupt came in: `fput`, some ns, and then 1 ms of poll (6.18).
        (_, Some(false)) if context.softirq.is_none() => Some(Cause::NoPreemptionPoint),
        (1.., _) => Some(Cause::PreemptOff),
        (0, Some(true)) => None,
        (0, _) => Some(Cause::NoPreemptionPoint),
    }
}

/// A share of kernel code, with the function that its stack names.
fn section(rule: Rule, case: &Case, cause: Cause, context: &Context) -> Label {
    let (stack, given_up_at) = stacks(case, cause, context);
    // A stack says that the code was there, but only the two ends that this took all the time. A guest
    // may have stood still in it, also where there is a clock of stolen time. (6.18 on KVM, none of it stolen:
    // 34.6 ms of `do_timerfd_settime`, which sets the CPU's timer, and so enters the hypervisor; and 1.02 ms of
    // `hrtimer_try_to_cancel` at the end of a system call, with interrupts on.)
    // Of another CPU there are no events: what kept its interrupt out may have been another one before.
    // Of ordinary tasks nobody knows whether the scheduler wanted the other to go meanwhile; nor of one
    // that was lent a priority since, from when on it was not to go.
    let is_ordinary = !case.task().is_urgent() && !context.task.is_urgent();
    let is_to_go = !is_ordinary && !case.changed_rank(&context.task);
    // Nor how long the interrupt went on that woke the task after its handler.
    let ends_are_seen = match cause {
        Cause::IrqOff => !case.remote,
        _ => case.end_is_seen() && is_to_go && !case.was_woken_after_handler(),
    };
    let evidence = match ends_are_seen && !case.known.guest && !stack.is_empty() {
        true => Evidence::Stack,
        false => Evidence::Bound,
    };
    let who = match cause {
        Cause::IrqOff => who_had_interrupts_off(stack),
        _ => culprit(stack),
    };
    let bare = in_place(&label(rule, cause, who, evidence), within(context, stack));
    let with_stacks = with_given_up_at(&with_stack(&bare, stack), given_up_at);
    with_user_stack(&with_stacks, case.user_stack(&context.task))
}

/// The stack at the interrupt, and that where the same task gave up the CPU in the end. Without the
/// first the second is where the code was seen.
fn stacks<'c>(case: &Case<'c>, cause: Cause, context: &'c Context) -> (&'c [Frame], &'c [Frame]) {
    // Who had interrupts off must have been there when the first one came.
    if cause == Cause::IrqOff {
        return (if context.stack_is_later { &[] } else { &context.stack }, &[]);
    }
    match case.given_up_at(&context.task) {
        given_up_at if context.stack.is_empty() => (given_up_at, &[]),
        given_up_at => (&context.stack, given_up_at),
    }
}

/// The scheduler itself has preemption off there, and looks again whether somebody is to run. (Simulated, RT: 15 us
/// of that, blamed on who had called it.)
fn out_of_switch() -> Label {
    of_phase(Rule::Switch, Cause::Scheduler, Phase::Switch, Evidence::Bound)
}

/// Whether the interrupt came where the scheduler, which has just switched, turns interrupts on again.
fn is_out_of_switch(context: &Context) -> bool {
    let is_there = !context.stack_is_later && context.mode == Mode::Kernel;
    is_there && context.stack.first().is_some_and(leaves_switch)
}

fn is_asleep(context: &Context) -> bool {
    let idle_task = context.task.is_known() && context.task.is_idle();
    matches!(context.mode, Mode::Idle(_)) || (idle_task && context.softirq.is_none())
}

fn is_urgent_and_awake(task: &Task) -> bool {
    task.is_urgent() && !task.is_idle()
}
