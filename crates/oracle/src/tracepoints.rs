//! What the tracer sees of a simulated kernel: the events of a stock kernel's tracepoints, and no truth.
//!
//! The programs are `crates/trace/bpf`; what they write and when is done here in the same way, on x86-64.

mod beginnings;
mod cpu;
pub(crate) mod places;
mod switches;
mod wakeup;

use wakescope_core::explain::Marks;
use wakescope_core::units::MonoNs;
use wakescope_decode::{Decoder, Irq, KernelWakeup, Payload, Vector};
use wakescope_model::Image;
use wakescope_model::image::{BudgetOf, CpuId, SourceId, SourceKind, TaskId};
use wakescope_model::kernel::{FrameKind, Running};
use wakescope_model::simulation::Sample;
use wakescope_model::trace::Transition;

use crate::addresses::Addresses;
pub(crate) use cpu::SWITCHES;
use cpu::{Cpu, RING};
use places::{Broken, comm, pid};
use wakeup::{Begun, State};

/// What a kernel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whether it has a tracepoint at the scheduler's entry.
    pub sched_entry: bool,
    /// Whether it has tracepoints where a CPU waits for a lock (since 5.19).
    pub contention: bool,
    /// Whether CPUs have a clock of stolen time.
    pub steal_clock: bool,
    /// Whether it has tracepoints where interrupts go off and on, as debug kernels have.
    pub irq_edges: bool,
    /// How many events the tracer keeps of each CPU, but for the last switches: older ones are lost.
    pub events: usize,
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            sched_entry: true,
            contention: true,
            steal_clock: true,
            irq_edges: false,
            events: RING,
        }
    }
}

/// Whose wakeups the tracer follows, and with that how it sees them begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Followed {
    /// Those of probes, which it has named. They sleep by timers of their own, and say when they have answered.
    #[default]
    Probes,
    /// Those of all tasks, whatever wakes them, as threads of others: up to the switch to each.
    Threads,
}

/// A part of a wakeup is handed over once that is so much as late as one must be to be kept.
const PART_SHARE: u64 = 8;

/// The tracer. It is told what happens in the simulated kernel, and keeps what its programs would have seen.
#[derive(Clone, Debug)]
pub struct Tracepoints<'i> {
    image: &'i Image,
    addresses: Addresses,
    shown: Shown,
    followed: Followed,
    cpus: Vec<Cpu>,
    /// One for each task; used of those that are followed.
    wakeups: Vec<Begun>,
    /// Priorities as they were last seen.
    prios: Vec<i32>,
    /// The CPU that each task was on last.
    home: Vec<CpuId>,
    /// How often each task was preempted.
    preempted: Vec<u64>,
    /// Wakeups at least so late are kept, nanoseconds.
    pub keep_ns: u64,
    /// One more than the least depth of disabled preemption seen; 0 if none was.
    least_depth: u32,
    /// Late wakeups that nobody has taken yet.
    pub late: Vec<KernelWakeup>,
    /// The marks of all wakeups that ended.
    pub ended: Vec<Marks>,
    /// Wakeups that could not be followed: whose they are, and when they were due, nanoseconds.
    pub not_followed: Vec<(TaskId, u64)>,
}

impl<'i> Tracepoints<'i> {
    /// Of a kernel that shows this much.
    pub fn new(image: &'i Image, shown: Shown, followed: Followed) -> Self {
        Self {
            image,
            addresses: Addresses::of(image),
            shown,
            followed,
            cpus: (0..image.cpus)
                .map(|_| Cpu::new(shown.events.max(1), shown.steal_clock))
                .collect(),
            wakeups: vec![Begun::default(); image.tasks.len()],
            prios: image.tasks.iter().map(|task| task.policy.prio().into()).collect(),
            home: image.tasks.iter().map(|task| task.cpu.unwrap_or(CpuId(0))).collect(),
            preempted: vec![0; image.tasks.len()],
            keep_ns: 0,
            least_depth: 0,
            late: Vec::new(),
            ended: Vec::new(),
            not_followed: Vec::new(),
        }
    }

    /// Calls `use_it` with what understands these wakeups.
    pub(crate) fn with_decoder<T>(&self, use_it: impl FnOnce(&Decoder) -> T) -> T {
        let idle_states: Vec<String> =
            self.image.idle_states.iter().map(|state| state.name.clone()).collect();
        use_it(&Decoder {
            kernel_frame: &|address| self.addresses.frame(address),
            user_frame: &|_, _| None,
            least_depth: self.least_depth.into(),
            preemptible: Some(self.image.rules.interrupt_return_schedules),
            idle_states: &idle_states,
        })
    }

    /// The tracepoints that it sees with, as the kernel names them.
    pub fn seen_with(&self) -> Vec<String> {
        let always = [
            "irq_handler_entry",
            "softirq_entry",
            "nmi_handler",
            "sched_switch",
            "hrtimer_expire_entry",
        ];
        let contention = self.shown.contention.then_some(["contention_begin", "contention_end"]);
        let sched_entry = self.shown.sched_entry.then_some("sched_entry_tp");
        let all = always.into_iter().chain(contention.into_iter().flatten()).chain(sched_entry);
        all.map(str::to_owned).collect()
    }

    /// A task's timer was set.
    pub fn armed(&mut self, task: TaskId, expiry_ns: u64) {
        self.wakeups[task.index()].expiry = expiry_ns;
    }

    /// A probe has responded: it says so in memory that the tracer reads.
    pub fn responded(&mut self, sample: Sample) {
        let wakeup = &mut self.wakeups[sample.task.index()];
        wakeup.answer = Some((sample.expiry_ns, sample.response_ns));
    }

    /// A CPU was at this.
    pub fn ran(&mut self, cpu: CpuId, from_ns: u64, to_ns: u64, at: Running) {
        self.cpus[cpu.index()].ran(at, to_ns - from_ns);
        self.look_at_prio(&at);
    }

    /// Where a CPU is before it takes an interrupt, enables them, or switches.
    pub fn place(&mut self, cpu: CpuId, at: Running) {
        self.cpus[cpu.index()].place = Some(at);
        if at.kind == FrameKind::Task {
            self.cpus[cpu.index()].beneath = Some(at);
        }
        self.look_at_prio(&at);
    }

    fn look_at_prio(&mut self, at: &Running) {
        if let Some(task) = at.task {
            self.prios[task.index()] = at.prio.into();
        }
    }

    /// Something happens on a CPU.
    pub fn happened(&mut self, cpu: CpuId, now: u64, what: Transition) {
        let number = cpu.index();
        match what {
            Transition::Raised(_) => {
                if let Some(came) = &mut self.cpus[number].idle_kept {
                    came.get_or_insert(now);
                }
            }
            Transition::Taken(source) => self.taken(number, now, source),
            Transition::HandlerBegin(source) => self.handler_begins(number, now, source),
            Transition::HandlerEnd(source) => self.handler_ends(number, now, source),
            Transition::TimerBegin(task) => self.timer_begins(number, now, task),
            Transition::TickBegin => self.timer_function(number, now, "tick_sched_timer"),
            Transition::PeriodBegin(budget) => {
                let function = match self.image.budgets[budget.index()].of {
                    BudgetOf::RealTime { .. } => "sched_rt_period_timer",
                    BudgetOf::Group => "sched_cfs_period_timer",
                };
                self.timer_function(number, now, function);
            }
            Transition::Throttled(budget) => {
                self.cpus[number].throttles(self.image, budget, true, now)
            }
            Transition::Unthrottled(budget) => {
                self.cpus[number].throttles(self.image, budget, false, now);
            }
            Transition::TimerEnd(_) | Transition::TickEnd | Transition::PeriodEnd => {
                self.cpus[number].timer_due = None;
                self.cpus[number].event(now, Payload::TimerExit);
            }
            Transition::SoftirqBegin(softirq) => {
                let cpu = &mut self.cpus[number];
                cpu.softirq = Some(softirq);
                cpu.softirq_entry = (cpu.open > 0).then_some((now, cpu.interrupts_ns));
                self.while_open(number, now, Payload::SoftirqEntry(softirq.into()));
            }
            Transition::SoftirqEnd(softirq) => {
                let cpu = &mut self.cpus[number];
                cpu.softirq = None;
                cpu.softirq_ends(now);
                self.while_open(
                    number,
                    now,
                    Payload::SoftirqExit { number: softirq.into(), pending: false },
                );
            }
            Transition::IrqsOff => self.cpus[number].irqs_off = Some(now),
            Transition::IrqsOn => {
                let cpu = &mut self.cpus[number];
                cpu.irqs_on(now);
                cpu.enabled = cpu.place.map(|at| (now, at));
            }
            Transition::SpinBegin(lock) if self.shown.contention => {
                self.cpus[number].contended = Some(lock);
                self.cpus[number].event(now, Payload::ContentionBegin);
            }
            Transition::SpinEnd(lock) if self.cpus[number].contended == Some(lock) => {
                self.cpus[number].contended = None;
                self.cpus[number].event(now, Payload::ContentionEnd);
            }
            Transition::Woken { task, on } => {
                self.home[task.index()] = on;
                self.migrated(task, now, cpu, on, false);
            }
            Transition::Pulled(task) => {
                self.home[task.index()] = cpu;
                self.migrated(task, now, cpu, cpu, true);
            }
            Transition::Boosted { owner, waiter } => {
                let lent = self.prios[waiter.index()];
                let prio = &mut self.prios[owner.index()];
                *prio = lent.min(*prio);
            }
            Transition::Deboosted(task) => {
                let lent_to = self.switched_from(Some(task));
                self.while_open(number, now, Payload::Deboost(lent_to));
            }
            Transition::SchedEntry if self.shown.sched_entry && self.cpus[number].open > 0 => {
                self.cpus[number].irqs_off = Some(now);
                self.cpus[number].sched_entry = now;
                self.cpus[number].event(now, Payload::SchedEntry);
            }
            Transition::SchedEntry => self.cpus[number].irqs_off = Some(now),
            Transition::Switch { from, preempted, to } => {
                let left = from.map(|from| self.kernel_task(from));
                self.cpus[number].turn_ends(left, now);
                self.runs(cpu, from.filter(|_| preempted), to);
                self.switch(number, now, (from, preempted), to);
            }
            Transition::SchedExit => {
                self.cpus[number].sched_exit = now;
                self.cpus[number].irqs_on(now);
            }
            Transition::PageFault(task) => self.wakeups[task.index()].faults += 1,
            _ => {}
        }
    }

    fn runs(&mut self, cpu: CpuId, preempted: Option<TaskId>, to: Option<TaskId>) {
        self.cpus[cpu.index()].runs = to;
        if let Some(to) = to {
            self.home[to.index()] = cpu;
        }
        if let Some(preempted) = preempted {
            self.preempted[preempted.index()] += 1;
        }
    }

    fn while_open(&mut self, cpu: usize, now: u64, payload: Payload) {
        if self.cpus[cpu].open > 0 {
            self.cpus[cpu].event(now, payload);
        }
    }

    fn kind(&self, source: SourceId) -> SourceKind {
        self.image.sources[source.index()].kind
    }

    /// No tracepoint is here: this only keeps where the CPU was, which its registers say later.
    fn taken(&mut self, number: usize, now: u64, source: SourceId) {
        let kind = self.kind(source);
        let cpu = &mut self.cpus[number];
        let Some(at) = cpu.place else { return };
        if kind == SourceKind::Steal {
            let is_idle = at.task.is_none() && at.kind == FrameKind::Task;
            cpu.idle_kept = is_idle.then_some(None);
        }
        if matches!(kind, SourceKind::Nmi | SourceKind::Steal) {
            return;
        }
        if at.task.is_none() && at.kind == FrameKind::Task {
            cpu.leaving_idle_ns = 0;
        }
        let enabled = cpu.enabled.filter(|&(when, _)| when == now).map(|(_, at)| at);
        let in_switch = cpu.sched_exit == now && at.kind == FrameKind::Task;
        let broken = Broken {
            at: match enabled {
                // It was in the kernel then, whatever comes next.
                Some(enabled) => Running { is_user: false, ..enabled },
                None => at,
            },
            enabled: enabled.is_some() || in_switch,
            in_switch,
            beneath: cpu.beneath.filter(|_| at.kind != FrameKind::Task),
        };
        cpu.broken = Some(broken);
        if at.kind == FrameKind::Task {
            cpu.registers = Some(broken);
        }
    }

    fn irq(&self, source: SourceId) -> (Irq, [u8; 16]) {
        match self.kind(source) {
            SourceKind::LocalTimer => (Irq::Vector(Vector::LocalTimer), [0; 16]),
            SourceKind::Reschedule => (Irq::Vector(Vector::Reschedule), [0; 16]),
            _ => {
                let line = u32::from(source.0) + 16;
                (Irq::Line(line), comm(&self.image.sources[source.index()].name))
            }
        }
    }

    fn handler_begins(&mut self, number: usize, now: u64, source: SourceId) {
        match self.kind(source) {
            SourceKind::Nmi => self.cpus[number].nmi_began = now,
            SourceKind::Steal => self.cpus[number].steal_began = now,
            _ => {
                let (irq, name) = self.irq(source);
                let cpu = &mut self.cpus[number];
                cpu.irq_begins(now);
                cpu.event(now, Payload::IrqEntry { irq, name });
            }
        }
    }

    fn handler_ends(&mut self, number: usize, now: u64, source: SourceId) {
        let cpu = &mut self.cpus[number];
        match self.image.sources[source.index()].kind {
            SourceKind::Nmi => {
                let duration_ns = now - cpu.nmi_began;
                let handler = self.addresses.function(&self.image.sources[source.index()].name);
                cpu.event(now, Payload::Nmi { handler, duration_ns });
                cpu.nmi_took(duration_ns);
            }
            SourceKind::Steal => {
                // Nothing is stolen from a CPU that has nothing to do.
                let since = match cpu.idle_kept.take() {
                    Some(came) => came.unwrap_or(now),
                    None => cpu.steal_began,
                };
                let ns = now - since;
                cpu.has_stolen(ns);
            }
            _ => {
                let irq = self.irq(source).0;
                let cpu = &mut self.cpus[number];
                cpu.event(now, Payload::IrqExit(irq));
                cpu.irq_ends(now);
                for task in std::mem::take(&mut cpu.woken) {
                    let wakeup = &mut self.wakeups[task];
                    if wakeup.state == State::Woken && wakeup.marks.irq_exit.is_none() {
                        wakeup.marks.irq_exit = Some(MonoNs(now));
                    }
                }
            }
        }
    }

    fn timer_function(&mut self, number: usize, now: u64, function: &str) {
        let function = self.addresses.function(function);
        self.cpus[number].timer_event(now, function);
        if let Some((task, look_at)) = self.cpus[number].waiting {
            if now >= look_at {
                self.look_again(number, task);
            }
        }
    }

    /// What runs is what holds a late wakeup up, if no stack says so yet.
    fn look_again(&mut self, number: usize, task: usize) {
        self.cpus[number].waiting = None;
        let wakeup = &self.wakeups[task];
        let is_here = wakeup.cpu == number && wakeup.state == State::Woken;
        if !is_here || self.cpus[number].switched > wakeup.woken {
            return;
        }
        let Some(broken) = self.cpus[number].broken else { return };
        let stack = broken.stack(self.image, &self.addresses);
        self.wakeups[task].look_again(task, stack);
    }

    /// The wakeup waits for another CPU from now on, and may have waited for the last one.
    fn migrated(&mut self, task: TaskId, now: u64, by: CpuId, on: CpuId, has_waited: bool) {
        let quota = self.quota(task);
        let kernel_task = self.kernel_task(task);
        let runs = self.runs_on(on.index());
        let ran_before = self.run_times(on.index(), now).filter(|_| !has_waited);
        let throttled = self.holds_back(on.index());
        let wakeup = &mut self.wakeups[task.index()];
        let (from, to) = (wakeup.cpu, on.index());
        if wakeup.state == State::Running && from != to {
            // It was preempted before it answered, and goes on elsewhere.
            wakeup.events_elsewhere += 1;
        }
        if wakeup.state != State::Woken || from == to {
            return;
        }
        if has_waited {
            wakeup.end_quota(&self.cpus[from], now);
        }
        wakeup.begin_quota(quota, &self.cpus[to], now);
        if has_waited {
            wakeup.leave(kernel_task, &self.cpus[from], now, self.keep_ns / PART_SHARE);
        } else {
            wakeup.add_stolen(self.cpus[from].steal_ns(), now);
        }
        wakeup.go_on_stolen(self.cpus[to].steal_ns());
        wakeup.ran_there = runs;
        wakeup.ran_before = ran_before;
        (wakeup.cpu, wakeup.before) = (to, self.cpus[to].before(now));
        wakeup.throttled |= throttled;
        let rt = self.image.rules.softirqs_are_threads;
        wakeup.moved_softirq = self.cpus[to].softirq.filter(|_| !rt);
        if wakeup.interrupted.is_none() {
            wakeup.softirq = wakeup.moved_softirq;
        }
        // A CPU that fetches a task for itself, and not in a softirq, is in its scheduler, or about to enter it.
        if has_waited && by == on && self.cpus[to].softirq.is_none() && !self.cpus[to].in_irq {
            self.cpus[to].sched_entry = now;
        }
        self.cpus[from].open -= 1;
        self.cpus[to].open += 1;
    }

    /// Whether the kernel shows that real-time tasks of this CPU are held back, by who runs there.
    fn holds_back(&self, number: usize) -> bool {
        let cpu = &self.cpus[number];
        cpu.holds_back(cpu.runs.map(|task| self.prios[task.index()]))
    }
}
