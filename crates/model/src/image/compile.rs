//! From a scenario to an image.

use std::collections::BTreeSet;

use super::paths::{CodeBuilder, PathCompiler};
use super::{
    Budget, BudgetId, BudgetOf, Code, CodeId, Costs, CpuId, EventId, Image, ImageError, LengthId,
    LockId, Names, Op, RESCHEDULE, SOFTIRQS, Source, SourceId, SourceKind, TaskId, TaskImage,
};
use crate::rules::Rules;
use crate::scenario::{
    Count, Does, Group, Interrupt, InterruptKind, Length, RtBudget, Scenario, ScenarioTask, Step,
    TaskPolicy,
};

/// Those that wait for a CPU are bits of a word, of which the kernel's own take two.
const MOST_SOURCES: usize = 62;

/// A budget is a bit of a word.
const MOST_GROUPS: usize = crate::scenario::limits::GROUPS;

/// What threads of interrupts get on RT.
const IRQ_THREAD: TaskPolicy = TaskPolicy::Fifo(50);

pub(super) fn compile(scenario: &Scenario, rules: Rules) -> Result<Image, ImageError> {
    check_numbers(scenario)?;
    check_names(scenario)?;
    let mut compiler = Compiler::new(scenario, rules);
    compiler.own_sources(scenario);
    compiler.tasks(scenario)?;
    compiler.interrupts(scenario)?;
    compiler.softirq_threads(scenario)?;
    Ok(compiler.finish(scenario))
}

/// The softirqs of a scenario with their steps, in the order in which they run.
fn softirqs_of(scenario: &Scenario) -> Result<Vec<(u8, &[Step])>, ImageError> {
    let mut softirqs = Vec::new();
    for interrupt in &scenario.interrupts {
        if let InterruptKind::Softirq(number) = interrupt.kind {
            softirqs.push((number, steps_of(scenario, &interrupt.handler)?));
        }
    }
    softirqs.sort_by_key(|(number, _)| *number);
    Ok(softirqs)
}

fn check_numbers(scenario: &Scenario) -> Result<(), ImageError> {
    let machine = &scenario.machine;
    let number = |what, value, expected| Err(ImageError::Number { what, value, expected });
    let sources = scenario.interrupts.iter().filter(|i| i.kind.source().is_some()).count();
    if sources > MOST_SOURCES {
        return number("the number of interrupts", sources as u64, "62 at most");
    }
    if !(1..=64).contains(&machine.cpus) {
        return number("the number of CPUs", machine.cpus.into(), "1 to 64");
    }
    if machine.tick_hz > 10_000 {
        return number("the tick", machine.tick_hz.into(), "10,000 a second at most");
    }
    let bound = scenario.tasks.iter().filter_map(|task| task.cpu);
    let bound = bound.chain(scenario.interrupts.iter().filter_map(|interrupt| interrupt.cpu));
    for cpu in bound {
        if cpu >= machine.cpus {
            return number("a CPU", cpu.into(), "a number below that of CPUs");
        }
    }
    if scenario.groups.len() > MOST_GROUPS {
        return number("the number of groups", scenario.groups.len() as u64, "16 at most");
    }
    let budgets = budgets(scenario);
    if let Some(none) = budgets.iter().find(|b| b.runtime_ns == 0 || b.period_ns == 0) {
        return number("a budget in ns", none.runtime_ns.min(none.period_ns), "1 ns at least");
    }
    for task in &scenario.tasks {
        match (&task.does, task.policy) {
            (Does::Probe { period_ps: 0..=999, .. }, _) => {
                return number("a probe's period in ps", 0, "1 ns at least");
            }
            (_, TaskPolicy::Fifo(priority) | TaskPolicy::RoundRobin(priority))
                if !(1..=99).contains(&priority) =>
            {
                return number("a real-time priority", priority.into(), "1 to 99");
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_names(scenario: &Scenario) -> Result<(), ImageError> {
    let unique = |kind, names: Vec<&String>| {
        let mut seen = BTreeSet::new();
        match names.into_iter().find(|name| !seen.insert(*name)) {
            Some(name) => Err(ImageError::Twice { kind, name: name.clone() }),
            None => Ok(()),
        }
    };
    unique("group", scenario.groups.iter().map(|group| &group.name).collect())?;
    unique("path", scenario.paths.iter().map(|path| &path.name).collect())?;
    unique("task", scenario.tasks.iter().map(|task| &task.name).collect())?;
    unique("interrupt", scenario.interrupts.iter().map(|interrupt| &interrupt.name).collect())
}

/// An image in the making.
struct Compiler {
    rules: Rules,
    paths: PathCompiler,
    timer_function: LengthId,
    tick: LengthId,
    return_to_user: LengthId,
    costs: Costs,
    tasks: Vec<TaskImage>,
    sources: Vec<Source>,
    softirqs: [Option<CodeId>; SOFTIRQS],
    softirq_work: Vec<EventId>,
    softirqs_of_tasks: Option<CodeId>,
}

impl Compiler {
    fn new(scenario: &Scenario, rules: Rules) -> Self {
        let names = scenario.interrupts.iter().filter(|i| i.kind.source().is_some());
        let names = names.map(|interrupt| interrupt.name.clone()).collect();
        let mut paths = PathCompiler::new(rules, names);
        let costs = &scenario.costs;
        Self {
            rules,
            timer_function: paths.length(&costs.timer_function),
            tick: paths.length(&costs.tick),
            return_to_user: paths.length(&costs.return_to_user),
            costs: Costs {
                interrupt_entry: paths.length(&costs.interrupt_entry),
                interrupt_exit: paths.length(&costs.interrupt_exit),
                schedule: paths.length(&costs.schedule),
                switch: paths.length(&costs.switch),
                ipi: paths.length(&costs.ipi),
            },
            paths,
            tasks: Vec::new(),
            sources: Vec::new(),
            softirqs: [None; SOFTIRQS],
            softirq_work: Vec::new(),
            softirqs_of_tasks: None,
        }
    }

    /// The timer's interrupt and the one between CPUs.
    fn own_sources(&mut self, scenario: &Scenario) {
        let has_budgets = !budgets(scenario).is_empty();
        let timer = self.paths.code(|code| {
            let hrtimer = code.enter("hrtimer_wakeup");
            let begin = code.next();
            let next = code.push(Op::NextTimer(0));
            code.push(Op::Compute(self.timer_function));
            code.push(Op::WakeTimer);
            code.push(Op::Jump(begin));
            code.leave(hrtimer);
            let periods = code.next();
            code.set(next, Op::NextTimer(periods));
            // The tracepoints around it name the function of each budget's timer.
            if has_budgets {
                let next = code.push(Op::NextPeriod(0));
                code.push(Op::Compute(self.timer_function));
                code.push(Op::EndPeriod);
                code.push(Op::Jump(periods));
                let tick_begins = code.next();
                code.set(next, Op::NextPeriod(tick_begins));
            }
            let function = code.enter("tick_sched_timer");
            let tick = code.push(Op::BeginTick(0));
            code.push(Op::Compute(self.tick));
            code.push(Op::EndTick);
            code.leave(function);
            let end = code.next();
            code.set(tick, Op::BeginTick(end));
            code.push(Op::End);
        });
        let reschedule = self.paths.code(|code| {
            code.push(Op::End);
        });
        let own = |name: &str, kind, code| Source {
            name: name.into(),
            kind,
            arrivals: None,
            cpu: None,
            code,
        };
        self.sources.push(own("local_timer", SourceKind::LocalTimer, timer));
        self.sources.push(own("reschedule", SourceKind::Reschedule, reschedule));
        debug_assert_eq!(self.sources.len(), RESCHEDULE.index() + 1);
        debug_assert!(scenario.machine.cpus > 0);
    }

    fn tasks(&mut self, scenario: &Scenario) -> Result<(), ImageError> {
        for task in &scenario.tasks {
            let code = self.task_code(scenario, task)?;
            let period_ps = match task.does {
                Does::Probe { period_ps, .. } => Some(period_ps),
                Does::Path(_) => None,
            };
            self.tasks.push(TaskImage {
                name: task.name.clone(),
                policy: task.policy,
                cpu: task.cpu.map(|cpu| CpuId::at(cpu as usize)),
                budget: task.group.as_ref().map(|name| budget_of(scenario, name)).transpose()?,
                code,
                period_ps,
                is_kernel_thread: false,
            });
        }
        Ok(())
    }

    fn task_code(
        &mut self,
        scenario: &Scenario,
        task: &ScenarioTask,
    ) -> Result<CodeId, ImageError> {
        let (steps, return_to_user) = match &task.does {
            Does::Path(path) => (steps_of(scenario, path)?, None),
            Does::Probe { path: Some(path), .. } => {
                (steps_of(scenario, path)?, Some(self.return_to_user))
            }
            Does::Probe { path: None, .. } => (&[][..], Some(self.return_to_user)),
        };
        let begin = |code: &mut CodeBuilder| {
            let Some(return_to_user) = return_to_user else { return };
            let function = code.enter("clock_nanosleep");
            code.push(Op::SleepOnGrid);
            code.push(Op::Compute(return_to_user));
            code.leave(function);
        };
        self.paths.path_after(begin, steps, |code| {
            if return_to_user.is_some() {
                code.push(Op::Respond);
            }
            code.push(Op::Jump(0));
        })
    }

    fn interrupts(&mut self, scenario: &Scenario) -> Result<(), ImageError> {
        for interrupt in &scenario.interrupts {
            let steps = steps_of(scenario, &interrupt.handler)?;
            if let Some(step) = steps.iter().find_map(not_in_a_handler) {
                return Err(ImageError::Misplaced(step));
            }
            match interrupt.kind {
                InterruptKind::Softirq(number) => self.softirq(number, steps)?,
                kind => self.source(scenario, interrupt, kind, steps)?,
            }
        }
        Ok(())
    }

    fn softirq(&mut self, number: u8, steps: &[Step]) -> Result<(), ImageError> {
        let Some(place) = self.softirqs.get(usize::from(number)).copied() else {
            return Err(ImageError::Number {
                what: "a softirq",
                value: number.into(),
                expected: "0 to 9",
            });
        };
        if place.is_some() {
            let name = number.to_string();
            return Err(ImageError::Twice { kind: "softirq", name });
        }
        let code = self.paths.path(steps, |code| {
            code.push(Op::End);
        })?;
        self.softirqs[usize::from(number)] = Some(code);
        Ok(())
    }

    fn source(
        &mut self,
        scenario: &Scenario,
        interrupt: &Interrupt,
        kind: InterruptKind,
        steps: &[Step],
    ) -> Result<(), ImageError> {
        let id = SourceId::at(self.sources.len());
        let threaded = self.rules.interrupts_are_threads && kind == InterruptKind::Device;
        let code = if threaded {
            self.irq_thread(scenario, interrupt, id, steps)?
        } else {
            self.paths.path(steps, |code| {
                code.push(Op::WakeSleepers(id));
                code.push(Op::End);
            })?
        };
        self.sources.push(Source {
            name: interrupt.name.clone(),
            kind: kind.source().unwrap_or(SourceKind::Device),
            arrivals: interrupt.arrivals.clone(),
            cpu: interrupt.cpu.map(|cpu| CpuId::at(cpu as usize)),
            code,
        });
        Ok(())
    }

    /// A thread that runs the handler; what remains in the interrupt only wakes it.
    fn irq_thread(
        &mut self,
        scenario: &Scenario,
        interrupt: &Interrupt,
        id: SourceId,
        steps: &[Step],
    ) -> Result<CodeId, ImageError> {
        let event = self.paths.event(&format!("irq/{}", interrupt.name));
        let begin = |code: &mut CodeBuilder| {
            code.wait(event);
            // The handler was written for a kernel in which no softirq can interrupt it.
            code.push(Op::BhDisable);
        };
        let code = self.paths.path_after(begin, steps, |code| {
            code.push(Op::WakeSleepers(id));
            code.push(Op::BhEnable);
            code.push(Op::Jump(0));
        })?;
        let number = self.sources.len();
        let mut name = format!("irq/{number}-{}", interrupt.name);
        name.truncate(15);
        let only = (scenario.machine.cpus == 1).then_some(0);
        self.tasks.push(TaskImage {
            name,
            policy: IRQ_THREAD,
            cpu: interrupt.cpu.or(only).map(|cpu| CpuId::at(cpu as usize)),
            budget: None,
            code,
            period_ps: None,
            is_kernel_thread: true,
        });
        Ok(self.paths.code(|code| {
            let function = code.enter("irq_default_primary_handler");
            code.push(Op::Wake(event));
            code.leave(function);
            code.push(Op::End);
        }))
    }

    /// Threads that run softirqs where they would take too long, and on RT those that no task runs which
    /// enables them. There a softirq is the task's own code: it can be preempted, and sleeps for the locks
    /// that it takes.
    fn softirq_threads(&mut self, scenario: &Scenario) -> Result<(), ImageError> {
        let softirqs = softirqs_of(scenario)?;
        if self.rules.softirqs_are_threads && !softirqs.is_empty() {
            self.softirqs_of_tasks = Some(self.paths.softirqs_of_tasks(&softirqs)?);
        }
        for cpu in 0..scenario.machine.cpus {
            let name = format!("ksoftirqd/{cpu}");
            let event = self.paths.event(&name);
            self.softirq_work.push(event);
            if self.softirqs.iter().all(Option::is_none) {
                continue;
            }
            let as_own_code = self.rules.softirqs_are_threads;
            let asks = self.rules.cond_resched_schedules;
            let code = self.paths.code(|code| {
                let function = code.enter("run_ksoftirqd");
                code.wait(event);
                if as_own_code {
                    code.push(Op::BhDisable);
                    code.push(Op::BhEnable);
                } else {
                    code.push(Op::RunSoftirqs);
                    if asks {
                        code.push(Op::ReschedulePoint);
                    }
                }
                code.leave(function);
                code.push(Op::Jump(0));
            });
            self.tasks.push(TaskImage {
                name,
                policy: TaskPolicy::Other(0),
                cpu: Some(CpuId::at(cpu as usize)),
                budget: None,
                code,
                period_ps: None,
                is_kernel_thread: true,
            });
        }
        Ok(())
    }

    fn finish(self, scenario: &Scenario) -> Image {
        let machine = &scenario.machine;
        let hz = u64::from(machine.tick_hz);
        let mut tables = self.paths.finish();
        let bh_locks = if self.rules.softirqs_are_threads && scenario.kernel.bh_lock {
            let first = tables.locks.all.len();
            let names = (0..machine.cpus).map(|cpu| format!("softirq_ctrl.lock/{cpu}"));
            tables.locks.all.extend(names);
            (first..tables.locks.all.len()).map(LockId::at).collect()
        } else {
            Vec::new()
        };
        debug_assert!(self.tasks.len() <= TaskId::at(self.tasks.len()).index());
        Image {
            rules: self.rules,
            cpus: u16::try_from(machine.cpus).unwrap_or(1),
            tick_ns: 1_000_000_000_u64.checked_div(hz).unwrap_or(0),
            idle_states: machine.idle_states.clone(),
            costs: self.costs,
            codes: tables.codes,
            rt_budget: scenario.kernel.rt.map(|_| BudgetId(0)),
            budgets: budgets(scenario),
            tasks: self.tasks,
            sources: self.sources,
            softirqs: self.softirqs,
            softirq_work: self.softirq_work,
            softirqs_of_tasks: self.softirqs_of_tasks,
            bh_locks,
            locks: tables.locks.all,
            functions: tables.functions.all,
            stacks: tables.stacks,
            events: tables.events.all,
            variables: tables.variables.all,
            lengths: tables.lengths,
            counts: tables.counts,
        }
    }
}

/// That of real-time tasks first, then those of the groups.
fn budgets(scenario: &Scenario) -> Vec<Budget> {
    let rt = scenario.kernel.rt.map(|RtBudget { runtime_ns, period_ns, fair_server }| {
        let of = BudgetOf::RealTime { fair_server };
        Budget { runtime_ns, period_ns, of }
    });
    let group = |&Group { quota_ns, period_ns, .. }: &Group| {
        let of = BudgetOf::Group;
        Budget { runtime_ns: quota_ns, period_ns, of }
    };
    rt.into_iter().chain(scenario.groups.iter().map(group)).collect()
}

fn budget_of(scenario: &Scenario, name: &str) -> Result<BudgetId, ImageError> {
    let at = scenario.groups.iter().position(|group| group.name == name);
    let unknown = || ImageError::Unknown { kind: "group", name: name.into() };
    Ok(BudgetId::at(at.ok_or_else(unknown)? + usize::from(scenario.kernel.rt.is_some())))
}

fn steps_of<'s>(scenario: &'s Scenario, path: &str) -> Result<&'s [Step], ImageError> {
    let found = scenario.paths.iter().find(|known| known.name == path);
    let unknown = || ImageError::Unknown { kind: "path", name: path.into() };
    Ok(&found.ok_or_else(unknown)?.steps)
}

/// Why a step cannot be in a handler, nor in its thread, which has softirqs off meanwhile.
fn not_in_a_handler(step: &Step) -> Option<&'static str> {
    match step {
        Step::User(_) => Some("a handler has no user mode"),
        Step::PageFault(_) => Some("a handler has no page faults"),
        Step::Block { .. } | Step::Wait(_) | Step::Schedule => Some("a handler cannot sleep"),
        Step::Lock(crate::scenario::LockKind::Mutex, _) => {
            Some("a handler cannot take a mutex, which may sleep")
        }
        Step::Call(_, steps)
        | Step::Repeat(_, steps)
        | Step::Unless(_, steps)
        | Step::PerCpu(_, steps) => steps.iter().find_map(not_in_a_handler),
        _ => None,
    }
}

/// What paths refer to by number.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) codes: Vec<Code>,
    pub(super) locks: Names,
    pub(super) functions: Names,
    pub(super) stacks: Vec<Vec<super::FunctionId>>,
    pub(super) events: Names,
    pub(super) variables: Names,
    pub(super) lengths: Vec<Length>,
    pub(super) counts: Vec<Count>,
}
