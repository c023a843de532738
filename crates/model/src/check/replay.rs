//! A schedule once more, operation by operation.

use std::fmt;

use super::choice::Choice;
use super::machine::{Witness, choose};
use super::script::Script;
use super::state::State;
use crate::image::{CpuId, Image, Op, StackId, TaskId};
use crate::kernel::{FrameKind, Kernel, Stage, Violation};
use crate::trace::Transition;

/// One operation of a schedule, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Which choice of the schedule it belongs to, from 0.
    pub choice: usize,
    /// On which CPU.
    pub cpu: CpuId,
    /// Which task the CPU had; `None` is idle.
    pub task: Option<TaskId>,
    /// What ran: that task, or what interrupted it.
    pub kind: FrameKind,
    /// How far that had come.
    pub stage: Stage,
    /// In which functions, the outermost first.
    pub stack: StackId,
    /// What it executed; `None` where it was a step of the kernel's own.
    pub op: Option<Op>,
    /// What happened, and on which CPU.
    pub happened: Vec<(CpuId, Transition)>,
    /// The rule that was broken.
    pub violation: Option<(Violation, CpuId)>,
}

/// Executes a schedule for `image` as [`super::prepare`] gave it. A choice that is not possible ends it.
pub fn replay(image: &Image, schedule: &[Choice]) -> Vec<Line> {
    let mut state = State::first(image);
    let mut script = Script::new(image);
    script.log = Some(Vec::new());
    let mut writer = Writer { image, choice: 0, lines: Vec::new() };
    for (number, choice) in schedule.iter().enumerate() {
        writer.choice = number;
        let came = choose(image, &mut state, choice, &mut script, &mut writer);
        let Some(came) = came else { break };
        if let Some(last) = writer.lines.last_mut() {
            last.violation = came.violation;
        }
        if came.violation.is_some() {
            break;
        }
    }
    writer.lines
}

struct Writer<'i> {
    image: &'i Image,
    choice: usize,
    lines: Vec<Line>,
}

impl Witness for Writer<'_> {
    fn before(&mut self, kernel: &Kernel, cpu: CpuId) {
        let running = kernel.running(self.image, cpu);
        self.lines.push(Line {
            choice: self.choice,
            cpu,
            task: running.task,
            kind: running.kind,
            stage: running.stage,
            stack: running.stack,
            op: kernel.top(cpu).and_then(|top| top.op(self.image)),
            happened: Vec::new(),
            violation: None,
        });
    }

    fn after(&mut self, script: &mut Script) {
        if let (Some(line), Some(log)) = (self.lines.last_mut(), &mut script.log) {
            line.happened = std::mem::take(log);
        }
    }
}

impl Line {
    /// The line with the names of `image`, for tests and logs: reports have words of their own.
    pub fn display<'l>(&'l self, image: &'l Image) -> impl fmt::Display + 'l {
        Named { line: self, image }
    }
}

struct Named<'l> {
    line: &'l Line,
    image: &'l Image,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, image } = self;
        write!(f, "{:3} cpu{} {}", line.choice, line.cpu.0, image.task_name(line.task))?;
        if line.kind != FrameKind::Task {
            write!(f, " {:?} {:?}", line.kind, line.stage)?;
        }
        for function in &image.stacks[line.stack.index()] {
            write!(f, " {}", image.functions[function.index()])?;
        }
        if let Some(op) = line.op {
            write!(f, ": {op:?}")?;
        }
        for (cpu, what) in &line.happened {
            write!(f, "; ")?;
            if *cpu != line.cpu {
                write!(f, "cpu{} ", cpu.0)?;
            }
            write!(f, "{what:?}")?;
        }
        line.violation.map_or(Ok(()), |(violation, cpu)| write!(f, " => cpu{}: {violation}", cpu.0))
    }
}
