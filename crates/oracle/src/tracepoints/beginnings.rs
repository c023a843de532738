//! How wakeups begin.

use wakescope_core::explain::{Marks, Mode};
use wakescope_core::units::MonoNs;
use wakescope_decode::{Interrupted, WakeupSource};
use wakescope_model::image::{BudgetId, CpuId, TaskId};
use wakescope_model::kernel::{FrameKind, Running, frame::After};

use super::cpu::FIRST_FAIR_PRIO;
use super::places::{Broken, kernel_task};
use super::wakeup::{Begun, State};
use super::{Followed, Tracepoints};

/// The bits of the preempt count that count softirqs, and places where they are off.
const SOFTIRQ_BITS: u32 = 0xff00;
/// How many wakeups of one interrupt learn when it ends.
const MOST_WOKEN: usize = 4;

/// What makes a task ready: when that was due, what it was, and where the CPU is if in no hard interrupt.
struct WokenBy {
    due: u64,
    source: WakeupSource,
    at: Option<Running>,
}

impl Tracepoints<'_> {
    pub(super) fn timer_begins(&mut self, number: usize, now: u64, task: TaskId) {
        self.timer_function(number, now, "hrtimer_wakeup");
        let due = self.wakeups[task.index()].expiry;
        let is_probe = self.image.tasks[task.index()].period_ps.is_some();
        match self.followed {
            Followed::Threads => self.cpus[number].timer_due = Some(due),
            Followed::Probes if is_probe => {
                let source = WakeupSource::Timer;
                self.begin(number, now, task, &WokenBy { due, source, at: None });
            }
            Followed::Probes => {}
        }
    }

    /// A task is to be made ready by what runs on this CPU, which is there.
    pub fn wakes(&mut self, cpu: CpuId, now: u64, task: TaskId, at: Running) {
        let number = cpu.index();
        if self.followed != Followed::Threads {
            return;
        }
        // Who runs here and now is awake, and nothing is late.
        if at.task == Some(task) {
            if self.wakeups[task.index()].state == State::Woken {
                self.give_up(task);
            }
            return;
        }
        self.look_at_prio(&at);
        self.wakeups[task.index()].preempted_before = self.preempted[task.index()];
        let runs = kernel_task(self.image, &at);
        let in_irq = self.cpus[number].in_irq;
        let (due, source) = match self.cpus[number].timer_due {
            Some(due) => (due, WakeupSource::Timer),
            None if in_irq => (now, WakeupSource::Interrupt(runs)),
            None => (now, WakeupSource::Task(runs)),
        };
        let at = (!in_irq).then_some(at);
        self.begin(number, now, task, &WokenBy { due, source, at });
    }

    fn begin(&mut self, number: usize, now: u64, task: TaskId, by: &WokenBy) {
        let index = task.index();
        let says_so = self.followed == Followed::Probes;
        if self.wakeups[index].state != State::Idle && !(says_so && self.answered(task)) {
            self.give_up(task);
        }
        let due = by.due;
        let there = match self.followed {
            Followed::Probes => number,
            Followed::Threads => self.home[index].index(),
        };
        let (cpu, waits) = (&self.cpus[number], &self.cpus[there]);
        let irq_entry = cpu.in_irq && by.source == WakeupSource::Timer;
        let mut begun = Begun {
            state: State::Woken,
            source: by.source,
            expiry: due,
            normal_prio: self.image.tasks[index].policy.prio().into(),
            cpu: there,
            stimulus_cpu: number,
            woken: now,
            marks: Marks {
                due: MonoNs(due),
                irq_entry: irq_entry.then_some(MonoNs(cpu.irq_entry)),
                ..Marks::default()
            },
            softirq: waits.softirq.filter(|_| waits.goes_on_with_softirq(self.image)),
            idle_state: waits.sleeps_elsewhere(self.image).filter(|_| there != number),
            // The interrupt of its own timer is part of the wait.
            before: waits.before(if irq_entry && there == number { cpu.irq_entry } else { now }),
            ran_there: self.runs_on(there).filter(|_| there != number),
            faults: self.wakeups[index].faults,
            faults_before: self.wakeups[index].faults,
            preempted_before: self.wakeups[index].preempted_before,
            ran_before: self.run_times(there, now),
            ..Begun::default()
        };
        begun.begin_stolen(&mut self.cpus[there], now);
        begun.begin_quota(self.quota(task), &self.cpus[there], due);
        begun.throttled = self.holds_back(there);
        if there == number && self.shown.irq_edges && by.source == WakeupSource::Timer {
            begun.irqs_off = self.cpus[number].last_irqs_off;
        }
        if there == number {
            self.look_at_interrupted(number, now, task, by.at, &mut begun);
        }
        if self.cpus[number].in_irq && self.cpus[number].woken.len() < MOST_WOKEN {
            self.cpus[number].woken.push(index);
        }
        self.cpus[there].open += 1;
        if self.followed == Followed::Probes {
            self.cpus[number].waiting = Some((index, due + self.keep_ns / 4));
        }
        self.wakeups[index] = begun;
    }

    /// What the CPU was at: beneath the interrupt, or where the waker is.
    fn look_at_interrupted(
        &mut self,
        number: usize,
        now: u64,
        task: TaskId,
        at: Option<Running>,
        begun: &mut Begun,
    ) {
        let cpu = &self.cpus[number];
        let Some(broken) = self.broken_into(number, at) else { return };
        begun.idle_state = cpu.idle_state(self.image).filter(|_| broken.is_idle());
        if broken.is_idle() && begun.softirq.is_none() {
            // Idle has preemption off once, whatever else the tracer sees of it.
            self.learn_depth(super::places::TRACING + 1);
            begun.interrupted = Some(Interrupted::default());
            return;
        }
        let mut seen = broken.seen(self.image);
        let stack = match at {
            None => broken.stack(self.image, &self.addresses),
            Some(at) => {
                seen.preempt_count = at.count + super::places::TRACING;
                let beneath = cpu.beneath.filter(|_| at.kind != FrameKind::Task);
                let place = Broken { at, enabled: false, in_switch: false, beneath };
                place.stack(self.image, &self.addresses)
            }
        };
        let has_registers = at.is_none_or(|at| is_after_interrupt(&at));
        let depth = (seen.preempt_count & 0xff) + 1;
        self.learn_depth(depth);
        let is_own = broken.at.task == Some(task) && begun.softirq.is_none();
        if !has_registers {
            (seen.mode, seen.ip) = (Mode::Kernel, 0);
        } else if seen.mode != Mode::User {
            let inside = broken.stack(self.image, &self.addresses);
            seen.ip = inside.first().copied().unwrap_or(seen.ip);
        }
        if seen.mode != Mode::User && !is_own {
            let late = now > begun.expiry && now - begun.expiry > self.keep_ns / 4;
            if late && has_registers {
                seen.code = broken.code();
            }
            let held = depth > self.least_depth
                || seen.preempt_count & SOFTIRQ_BITS != 0
                || !self.image.rules.interrupt_return_schedules;
            if late || held {
                seen.stack = stack;
            }
        }
        begun.interrupted = Some(seen);
    }

    /// The depth of code that has preemption off once, with what the tracer adds: the least that was seen.
    fn learn_depth(&mut self, depth: u32) {
        if self.least_depth == 0 || depth < self.least_depth {
            self.least_depth = depth;
        }
    }

    /// What the CPU's registers say, or where the waker is that no interrupt has broken into.
    fn broken_into(&self, number: usize, at: Option<Running>) -> Option<Broken> {
        let cpu = &self.cpus[number];
        match at {
            None => cpu.broken,
            Some(at) if is_after_interrupt(&at) => cpu.registers,
            Some(at) => Some(Broken { at, enabled: false, in_switch: false, beneath: None }),
        }
    }

    /// The quota that may stop a task, with the priority that it has.
    pub(super) fn quota(&self, task: TaskId) -> Option<BudgetId> {
        let is_ordinary = self.prios[task.index()] >= FIRST_FAIR_PRIO;
        self.image.tasks[task.index()].budget.filter(|_| is_ordinary)
    }
}

/// Whether this is a softirq at the end of an interrupt, whose registers are still there.
fn is_after_interrupt(at: &Running) -> bool {
    matches!(at.kind, FrameKind::Softirq { after: After::Interrupt, .. })
}
