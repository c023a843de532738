//! What a CPU is at: more than its own state, how it came to that.

use std::collections::BTreeMap;

use wakescope_core::explain::Frame;
use wakescope_core::scope;
use wakescope_core::scope::edges::{Edge, EdgeKind, Edges, FunctionId, State, TaskId, WayIn};

/// A place in the kernel's code, and what called it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    function: Option<FunctionId>,
    caller: Option<FunctionId>,
}

/// A way into the kernel that was not left yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entered {
    pub(super) way: WayIn,
    pub(super) at_ns: u64,
    /// What the kernel was entered by.
    pub(super) by: Option<FunctionId>,
    /// The kernel's function that it came into.
    pub(super) into: Option<FunctionId>,
    /// Whether that was the scheduler.
    into_scheduler: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Cpu<'a> {
    pub(super) edges: &'a Edges,
    pub(super) state: State,
    /// Where interrupts went off, if they are; `None` if an entry into the kernel did that.
    pub(super) irqs_off: Option<Place>,
    /// Where preemption went off, if it is.
    pub(super) preempt_off: Option<Place>,
    /// Ways into the kernel that the task is in, the innermost last.
    pub(super) entered: Vec<Entered>,
    /// Those of other tasks, by their pids.
    others: BTreeMap<u32, Vec<Entered>>,
    /// The softirq that began last.
    pub(super) softirq: Option<u8>,
    /// Whether the scheduler was entered and not left.
    pub(super) in_scheduler: bool,
    /// Whether it is halted, or on the way out of that and has not let the interrupt in that ended it (arm64).
    pub(super) from_idle: bool,
    timer: Timer,
    /// By which function its interrupt enters the kernel.
    timer_entry: Option<FunctionId>,
}

/// The CPU's own timer.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    /// Whether it is set, and has not fired since.
    is_set: bool,
    /// Whether it fired, and the CPU has not taken its interrupt. It may have been set again meanwhile.
    asks: bool,
}

impl<'a> Cpu<'a> {
    pub(super) fn new(edges: &'a Edges) -> Self {
        Self {
            edges,
            state: edges.start,
            irqs_off: None,
            preempt_off: None,
            entered: Vec::new(),
            others: BTreeMap::new(),
            softirq: None,
            in_scheduler: false,
            from_idle: false,
            timer: Timer::default(),
            timer_entry: edges.timer_entry(),
        }
    }

    pub(super) fn apply(&mut self, edge: &Edge) {
        let place = Place { function: edge.function, caller: edge.caller };
        let before = self.state;
        self.state = before.after(edge.what);
        match edge.what {
            EdgeKind::IrqsOff => self.irqs_off = Some(place),
            EdgeKind::IrqsOn => {
                self.irqs_off = None;
                self.from_idle = false;
                // A kernel that counts what turns preemption off has it off in the scheduler. Another one has
                // interrupts off until the end of it.
                self.in_scheduler &= before.preempt.is_off();
            }
            EdgeKind::PreemptCount(count) => {
                if !count.is_off() {
                    self.preempt_off = None;
                    // Not where it was on, and only the need for rescheduling is another.
                    self.in_scheduler &= !before.preempt.is_off();
                } else if !before.preempt.is_off() {
                    self.preempt_off = Some(place);
                }
                self.softirq = self.softirq.filter(|_| count.in_softirq());
            }
            EdgeKind::Enter { way, .. } => {
                let (by, into) = (edge.function, edge.caller);
                let into_scheduler = std::mem::take(&mut self.in_scheduler);
                self.timer.asks &= by != self.timer_entry;
                self.from_idle = false;
                self.entered.push(Entered { way, at_ns: edge.at_ns, by, into, into_scheduler });
            }
            EdgeKind::Leave { to_user: true } => self.entered.clear(),
            EdgeKind::Leave { to_user: false } => {
                self.in_scheduler = self.entered.pop().is_some_and(|left| left.into_scheduler);
            }
            EdgeKind::Softirq(number) => self.softirq = Some(number),
            EdgeKind::Schedule => self.in_scheduler = true,
            EdgeKind::Switch(to) => self.switch(before.task, to),
            // The idle task never turns preemption on.
            EdgeKind::Halt => {
                self.in_scheduler = false;
                self.from_idle = true;
            }
            EdgeKind::Resume => {}
            EdgeKind::Wake(_) | EdgeKind::UserClock | EdgeKind::Ask(_) => {}
            EdgeKind::TimerSet(after) => self.timer.is_set = after.is_some(),
            EdgeKind::TimerFires => self.timer = Timer { is_set: false, asks: true },
        }
    }

    fn switch(&mut self, from: Option<TaskId>, to: TaskId) {
        let entered = std::mem::take(&mut self.entered);
        if let Some(task) = self.edges.task(from) {
            self.others.insert(task.pid, entered);
        }
        let pid = self.edges.task(Some(to)).map_or(0, |task| task.pid);
        self.entered = self.others.remove(&pid).unwrap_or_default();
    }

    /// The interrupt that the CPU is in, or on the way into or out of.
    pub(super) fn interrupt(&self) -> Option<&Entered> {
        self.entered.last().filter(|entered| entered.way == WayIn::Interrupt)
    }

    /// A place with its names, as a record has it.
    pub(super) fn place(&self, place: Option<Place>) -> scope::Place {
        let Place { function, caller } = place.unwrap_or_default();
        let name = |id| self.edges.function(id).map(str::to_owned);
        scope::Place { function: name(function), caller: name(caller) }
    }

    /// Where a section with interrupts or preemption off ends, if this edge, which comes next, ends one.
    pub(super) fn end_of_section(&self, edge: &Edge) -> Option<Vec<Frame>> {
        let ends = match edge.what {
            EdgeKind::IrqsOn => self.state.irqs_off,
            EdgeKind::PreemptCount(count) => self.state.preempt.is_off() && !count.is_off(),
            _ => false,
        };
        let place = Place { function: edge.function, caller: edge.caller };
        ends.then(|| self.stack(Some(place)))
    }

    /// A stack of a place and its caller, so far as their names are known.
    pub(super) fn stack(&self, place: Option<Place>) -> Vec<Frame> {
        let Some(Place { function, caller }) = place else { return Vec::new() };
        [function, caller].into_iter().filter_map(|id| self.frame(id)).collect()
    }

    /// A stack of one function.
    pub(super) fn frame(&self, id: Option<FunctionId>) -> Option<Frame> {
        self.edges.function(id).map(|name| Frame::in_function(name, 0))
    }

    /// Whether the interrupt of the CPU's own timer will come, and has not been asked for: the timer is set.
    pub(super) fn awaits_timer(&self) -> bool {
        self.timer.is_set && !self.timer.asks
    }

    /// Whether the kernel was entered by the interrupt of the CPU's own timer.
    pub(super) fn is_timer(&self, entered: &Entered) -> bool {
        entered.by.is_some() && entered.by == self.timer_entry
    }

    /// What an interrupt is called.
    pub(super) fn name_of(&self, entered: &Entered) -> String {
        interrupt_name(self.edges.function(entered.by).unwrap_or_default())
    }
}

/// What an interrupt is called that enters the kernel at this function: as the tracer names it. The names are those of
/// entries without FRED: see `ways_in` in `decode`.
pub(super) fn interrupt_name(entry: &str) -> String {
    let name = entry.strip_prefix("asm_sysvec_").unwrap_or(entry);
    match name {
        "apic_timer_interrupt" => "local_timer",
        "reschedule_ipi" => "reschedule",
        "error_interrupt" => "error_apic",
        "spurious_apic_interrupt" => "spurious_apic",
        "irq_entries_start" => "device",
        other => other,
    }
    .into()
}
