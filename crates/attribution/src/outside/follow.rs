//! Follows one late wakeup from edge to edge: its marks, and a share of blame for each stretch of time.

use wakescope_core::explain::{
    Cause, Culprit, Evidence, Frame, Marks, Phase, Share, Task, Within, WokenBy,
};
use wakescope_core::scope::edges::{EdgeKind, WayIn};
use wakescope_core::softirq::softirq_name;

use super::cpu::{Cpu, Entered};
use super::cut::Cut;
use super::{Late, SectionEnd, at, woken_by};
use crate::function::{culprit, who_had_interrupts_off};

/// A wakeup, followed.
pub(super) struct Followed {
    pub(super) task: Task,
    pub(super) woken_by: WokenBy,
    pub(super) marks: Marks,
    pub(super) page_faults: u64,
    /// In order of time.
    pub(super) shares: Vec<Share>,
    pub(super) ends: Vec<SectionEnd>,
}

/// The wakeup's own points, as the edges show them.
#[derive(Default)]
struct Own {
    /// The interrupt that made the task ready.
    interrupt: Option<Entered>,
    irq_exit_ns: Option<u64>,
    sched_entry_ns: Option<u64>,
    switch_in_ns: Option<u64>,
    woken: bool,
    woken_by: WokenBy,
    /// Until when the task had not gone to sleep, if that was after the wakeup was due.
    awake_until_ns: Option<u64>,
    page_faults: u64,
}

impl Followed {
    pub(super) fn of(before: &Cpu, cut: &Cut) -> Option<Self> {
        let mut last = before.clone();
        cut.within.iter().for_each(|edge| last.apply(edge));
        // It has read the clock itself.
        let task = cut.edges.task(last.state.task)?.clone();
        let own = Own::of(before, cut, &task);
        let Late { due_ns, response_ns } = cut.late;
        let entry_ns = own.interrupt.map(|entered| entered.at_ns.max(due_ns));
        let marks = Marks {
            due: at(due_ns),
            irq_entry: entry_ns.map(at),
            irq_exit: own.irq_exit_ns.map(at),
            sched_entry: own.sched_entry_ns.map(at),
            switch_in: own.switch_in_ns.map(at),
            response: at(response_ns),
        };
        let (shares, ends) = own.shares(before, cut, &task);
        let (woken_by, page_faults) = (own.woken_by, own.page_faults);
        Some(Self { task, woken_by, marks, page_faults, shares, ends })
    }

    /// The shares since the task was made ready: since its interrupt came, or since it was due if none did.
    pub(super) fn shares_when_ready(&self) -> impl Iterator<Item = &Share> {
        let Marks { due, irq_entry, .. } = self.marks;
        let ready_ns = irq_entry.map_or(0, |entry| entry.since(due).0);
        let mut at_ns = 0;
        let begun = self.shares.iter().map(move |share| {
            let begin_ns = at_ns;
            at_ns += share.ns;
            (begin_ns, share)
        });
        begun.filter(move |(begin_ns, _)| *begin_ns >= ready_ns).map(|(_, share)| share)
    }
}

impl Own {
    fn of(before: &Cpu, cut: &Cut, task: &Task) -> Self {
        let mut cpu = before.clone();
        let is_own = |id| cut.edges.task(Some(id)).is_some_and(|other| other.pid == task.pid);
        let mut own = Self { woken_by: WokenBy::Awake, ..Self::default() };
        let mut sched_entry_ns = None;
        // A task that the scheduler leaves with interrupts off is asleep, and its timer is set. The code that has them
        // off keeps the interrupt out. (6.1, full: for 17 of the 32 us that a wakeup was late.)
        let mut goes_to_sleep = before.in_scheduler && before.state.irqs_off;
        for edge in cut.within {
            let was_in_interrupt = cpu.state.preempt.in_interrupt();
            let had_cpu = cpu.state.task.is_some_and(is_own);
            cpu.apply(edge);
            match edge.what {
                // A task that is ready already may be woken once more.
                EdgeKind::Wake(id) if is_own(id) && !own.woken => {
                    own.woken = true;
                    own.interrupt = cpu.interrupt().copied().filter(|_| was_in_interrupt);
                    own.woken_by = match own.interrupt {
                        Some(_) => WokenBy::Timer { on: 0 },
                        None => woken_by(cut.edges.task(cpu.state.task)),
                    };
                    own.irq_exit_ns = None;
                }
                EdgeKind::PreemptCount(count)
                    if was_in_interrupt && !count.in_interrupt() && own.interrupt.is_some() =>
                {
                    own.irq_exit_ns = own.irq_exit_ns.or(Some(edge.at_ns));
                }
                EdgeKind::Schedule => sched_entry_ns = Some(edge.at_ns),
                EdgeKind::Switch(id) if had_cpu && !own.woken && !is_own(id) => {
                    own.awake_until_ns = (!goes_to_sleep).then_some(edge.at_ns);
                }
                EdgeKind::IrqsOn => goes_to_sleep = false,
                EdgeKind::Switch(id) if is_own(id) => {
                    own.switch_in_ns = Some(edge.at_ns);
                    own.sched_entry_ns = sched_entry_ns;
                    own.page_faults = 0;
                }
                EdgeKind::Enter { way: WayIn::Exception, .. } => {
                    own.page_faults += u64::from(is_page_fault(&cpu));
                }
                _ => {}
            }
        }
        if own.switch_in_ns.is_none() {
            own.page_faults = 0;
        }
        if own.awake_until_ns.is_some() {
            own.woken_by = WokenBy::Awake;
        }
        own
    }

    /// A share for each stretch from one edge to the next, and where sections that are among them ended.
    fn shares(&self, before: &Cpu, cut: &Cut, task: &Task) -> (Vec<Share>, Vec<SectionEnd>) {
        let mut cpu = before.clone();
        let (mut shares, mut ends) = (Vec::new(), Vec::new());
        let mut from_ns = cut.late.due_ns;
        let mut put = |from_ns: u64, to_ns: u64, cpu: &Cpu| {
            if to_ns > from_ns {
                shares.push(Share { ns: to_ns - from_ns, ..self.blame(from_ns, cpu, task) });
            }
        };
        for edge in cut.within {
            // The interrupt comes at its own time, which no stretch reaches across.
            put(from_ns, edge.at_ns, &cpu);
            if let Some(frames) = cpu.end_of_section(edge).filter(|_| edge.at_ns > from_ns) {
                let Share { cause, culprit, .. } = self.blame(from_ns, &cpu, task);
                ends.push(SectionEnd { cause, culprit, frames });
            }
            from_ns = edge.at_ns;
            cpu.apply(edge);
        }
        put(from_ns, cut.late.response_ns, &cpu);
        (shares, ends)
    }

    /// What the CPU is at from a time on.
    fn blame(&self, from_ns: u64, cpu: &Cpu, task: &Task) -> Share {
        let current = cpu.edges.task(cpu.state.task);
        let has_come = self.interrupt.is_none_or(|own| from_ns >= own.at_ns);
        let is_own = current.is_some_and(|current| current.pid == task.pid);
        let is_awake = self.awake_until_ns.is_some_and(|until| from_ns < until);
        let share = if is_awake && is_own {
            Self::awake(cpu, task)
        } else if is_awake {
            self.ready(from_ns, cpu, task)
        } else if is_own && has_come {
            Self::own_task(cpu)
        } else if has_come {
            self.ready(from_ns, cpu, task)
        } else {
            self.not_come(cpu)
        };
        // Code and softirqs run in a task's name; all else is the same in each.
        let has_task = matches!(share.culprit, Culprit::Function(_) | Culprit::Softirq(_));
        let other = current.filter(|current| has_task && current.pid != task.pid);
        let within = Within { task: other.map(Task::named), ..share.within };
        Share { evidence: Evidence::Edge, within, ..share }
    }

    /// The task's interrupt has not come.
    fn not_come(&self, cpu: &Cpu) -> Share {
        let preempt = cpu.state.preempt;
        if preempt.in_nmi() {
            return Share { cause: Cause::Nmi, ..Share::default() };
        }
        // Whatever the CPU is at, nothing asked it for the interrupt yet.
        if cpu.awaits_timer() && self.interrupt.is_some_and(|own| cpu.is_timer(&own)) {
            return phase(Cause::Irq, Phase::Timer);
        }
        // Where the CPU halts with interrupts off, what asked ends that, and is let in a little later.
        if cpu.from_idle {
            return phase(Cause::Irq, Phase::Delivery);
        }
        let by_entry = cpu.interrupt().filter(|_| cpu.irqs_off.is_none());
        match by_entry {
            Some(entered) if preempt.in_interrupt() || cpu.state.irqs_off => {
                interrupt(cpu, entered)
            }
            _ if cpu.state.irqs_off => {
                let stack = match cpu.irqs_off {
                    Some(place) => cpu.stack(Some(place)),
                    None => cpu.entered.last().and_then(|e| cpu.frame(e.by)).into_iter().collect(),
                };
                in_code(cpu, Cause::IrqOff, stack)
            }
            // Nothing held it off.
            _ => phase(Cause::Irq, Phase::Delivery),
        }
    }

    /// The task is ready, and another one has the CPU.
    fn ready(&self, from_ns: u64, cpu: &Cpu, task: &Task) -> Share {
        let preempt = cpu.state.preempt;
        let is_own = |entered: &&Entered| {
            self.interrupt.is_some_and(|own| own.at_ns == entered.at_ns) && from_ns >= entered.at_ns
        };
        let interrupt_now = cpu.interrupt();
        if preempt.in_nmi() {
            return Share { cause: Cause::Nmi, ..Share::default() };
        }
        if preempt.in_interrupt() {
            return interrupt_now.map_or_else(Share::default, |entered| interrupt(cpu, entered));
        }
        if preempt.in_softirq() {
            return softirq(cpu);
        }
        if cpu.in_scheduler {
            return phase(Cause::Scheduler, Phase::Switch);
        }
        let is_handled = self.irq_exit_ns.is_some_and(|exit| from_ns >= exit);
        match interrupt_now {
            Some(entered) if !is_own(&entered) => return interrupt(cpu, entered),
            Some(entered) if !is_handled => return interrupt(cpu, entered),
            Some(_) => return phase(Cause::Scheduler, Phase::ReturnFromInterrupt),
            None => {}
        }
        self.other_task(cpu, task)
    }

    /// Another task runs, in no interrupt.
    fn other_task(&self, cpu: &Cpu, task: &Task) -> Share {
        let Some(current) = cpu.edges.task(cpu.state.task) else { return Share::default() };
        if current.is_idle() {
            // What idle code does until it calls the scheduler.
            return phase(Cause::Scheduler, Phase::ReturnFromInterrupt);
        }
        let blamed =
            |cause| Share { cause, culprit: Culprit::Task(current.named()), ..Share::default() };
        if current.comes_before(task) {
            return blamed(Cause::HigherPriorityTask);
        }
        if cpu.state.in_user {
            return blamed(Cause::EqualOrLowerTask);
        }
        let off_in = cpu.stack(cpu.preempt_off);
        if off_in.first().is_some_and(|frame| is_way_to_scheduler(frame.name())) {
            return phase(Cause::Scheduler, Phase::Switch);
        }
        // Nobody is made to go for one of the same priority, wherever it is in the kernel.
        if task.is_urgent() && current.prio == task.prio {
            return blamed(Cause::EqualOrLowerTask);
        }
        if cpu.state.preempt.is_off() {
            return in_code(cpu, Cause::PreemptOff, off_in);
        }
        if cpu.state.irqs_off {
            if let Some(place) = cpu.irqs_off {
                return in_code(cpu, Cause::IrqOff, cpu.stack(Some(place)));
            }
        }
        // Where its interrupt came: what is called until a point of preemption is not followed.
        let into = self.interrupt.and_then(|own| cpu.frame(own.into));
        in_code(cpu, Cause::NoPreemptionPoint, into.into_iter().collect())
    }

    /// The task itself has the CPU, and has not gone to sleep.
    fn awake(cpu: &Cpu, task: &Task) -> Share {
        match Self::own_task(cpu) {
            share if share.phase.is_some() => {
                let culprit = Culprit::Task(task.named());
                Share { cause: Cause::EqualOrLowerTask, culprit, ..Share::default() }
            }
            other => other,
        }
    }

    /// The task itself has the CPU.
    fn own_task(cpu: &Cpu) -> Share {
        let preempt = cpu.state.preempt;
        match cpu.entered.last() {
            _ if preempt.in_nmi() => Share { cause: Cause::Nmi, ..Share::default() },
            // Also those at the end of an interrupt.
            _ if preempt.in_softirq() && !preempt.in_interrupt() => softirq(cpu),
            Some(entered) if entered.way == WayIn::Interrupt && !cpu.in_scheduler => {
                interrupt(cpu, entered)
            }
            Some(entered) if entered.way == WayIn::Exception && is_page_fault(cpu) => {
                let stack: Vec<Frame> = cpu.frame(entered.into).into_iter().collect();
                Share { cause: Cause::PageFault, frames: stack, ..Share::default() }
            }
            _ => phase(Cause::Scheduler, Phase::Switch),
        }
    }
}

/// Whether a function turns preemption off to call the scheduler.
fn is_way_to_scheduler(function: &str) -> bool {
    ["schedule", "preempt_schedule", "__cond_resched"].iter().any(|way| function.starts_with(way))
}

fn is_page_fault(cpu: &Cpu) -> bool {
    let by = cpu.entered.last().and_then(|entered| cpu.edges.function(entered.by));
    by.is_some_and(|name| ["asm_exc_page_fault", "page_fault"].contains(&name))
}

fn interrupt(cpu: &Cpu, entered: &Entered) -> Share {
    let culprit = Culprit::interrupt(&cpu.name_of(entered));
    Share { cause: Cause::Irq, culprit, ..Share::default() }
}

fn softirq(cpu: &Cpu) -> Share {
    let name = cpu.softirq.map(softirq_name).unwrap_or_default();
    Share { cause: Cause::Softirq, culprit: Culprit::softirq(&name), ..Share::default() }
}

fn phase(cause: Cause, phase: Phase) -> Share {
    Share { cause, phase: Some(phase), ..Share::default() }
}

/// Code of the kernel, in a softirq perhaps.
fn in_code(cpu: &Cpu, cause: Cause, stack: Vec<Frame>) -> Share {
    let culprit = match cause {
        Cause::IrqOff => who_had_interrupts_off(&stack),
        _ => culprit(&stack),
    };
    let softirq = cpu.softirq.filter(|_| cpu.state.preempt.in_softirq()).map(softirq_name);
    let within = Within { softirq, ..Within::default() };
    Share { cause, culprit, within, frames: stack, ..Share::default() }
}
