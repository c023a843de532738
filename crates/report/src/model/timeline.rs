//! One late wakeup of a simulation, drawn: what each CPU was at, column by column.

use std::fmt::Write;

use wakescope_core::run::TimeDomain;
use wakescope_core::units::SpanNs;
use wakescope_model::Image;
use wakescope_model::image::{CpuId, TaskId};
use wakescope_model::kernel::FrameKind;
use wakescope_model::timeline::{Stretch, Timeline};
use wakescope_model::trace::Transition;

use crate::domain;
use crate::style::clean;

/// How many columns the drawing has: a terminal of 80 has room for the names of its rows.
const COLUMNS: u64 = 66;

/// The drawing in 80 columns, with what its letters mean.
pub fn timeline(image: &Image, timeline: &Timeline) -> String {
    let late = domain::span(timeline.response_ns - timeline.expiry_ns, TimeDomain::Simulated);
    let column = SpanNs((timeline.to_ns - timeline.from_ns) / COLUMNS);
    let mut out = format!(" {}: {late} late · a column is {column}\n", image.rules.name);
    out += &row("", |column| {
        let (from, to) = edges(timeline, column);
        match (timeline.expiry_ns, timeline.response_ns) {
            (expiry, _) if (from..to).contains(&expiry) => 'E',
            (_, response) if (from..to).contains(&response) => 'R',
            _ => ' ',
        }
    });
    let tasks = timeline.tasks();
    for cpu in (0..image.cpus).map(CpuId) {
        let at = |column| {
            let (from, to) = edges(timeline, column);
            timeline.at(cpu, from, to)
        };
        let of = |column, what: &dyn Fn(&Stretch) -> char| at(column).map_or(' ', what);
        out += &row(&format!("CPU {}", cpu.0), |column| of(column, &|s| letter(s, &tasks)));
        let count = |s: &Stretch| match s.at.count & 0xff {
            0 => '·',
            count => char::from_digit(count.min(9), 10).unwrap_or('9'),
        };
        out += &row("  preempt", |column| of(column, &count));
        let irqs = |s: &Stretch| if s.at.irqs_off { '█' } else { '·' };
        out += &row("  irqs off", |column| of(column, &irqs));
        let wanted = wanted(timeline, cpu);
        out += &row("  resched", |column| {
            let (from, to) = edges(timeline, column);
            let is_set = wanted.iter().any(|&(since, until)| since < to && until > from);
            if is_set { '!' } else { '·' }
        });
    }
    out += &legend(image, timeline, &tasks);
    out
}

fn edges(timeline: &Timeline, column: u64) -> (u64, u64) {
    let edge = |column: u64| {
        let span = u128::from(timeline.to_ns - timeline.from_ns) * u128::from(column);
        timeline.from_ns + u64::try_from(span / u128::from(COLUMNS)).unwrap_or(0)
    };
    (edge(column), edge(column + 1).max(edge(column) + 1))
}

fn row(name: &str, of: impl Fn(u64) -> char) -> String {
    let line: String = (0..COLUMNS).map(of).collect();
    format!(" {name:<11} {}\n", line.trim_end())
}

/// When `need_resched` was set of a CPU.
fn wanted(timeline: &Timeline, cpu: CpuId) -> Vec<(u64, u64)> {
    let mut spans = Vec::new();
    let mut since = None;
    for &(_, at, what) in timeline.events.iter().filter(|event| event.0 == cpu) {
        match what {
            Transition::NeedResched { .. } => {
                since.get_or_insert(at);
            }
            Transition::Switch { .. } => spans.extend(since.take().map(|since| (since, at))),
            _ => {}
        }
    }
    spans.extend(since.map(|since| (since, timeline.to_ns)));
    spans
}

/// The letter of what runs: a small one for a task's user mode, a capital for its kernel mode.
fn letter(stretch: &Stretch, tasks: &[TaskId]) -> char {
    match (stretch.at.kind, stretch.at.task, stretch.at.spins_for) {
        (FrameKind::Interrupt(_), ..) => '#',
        (FrameKind::Softirq { .. }, ..) => '%',
        (FrameKind::Scheduler { .. }, ..) => '+',
        (FrameKind::Task, _, Some(_)) => '~',
        (FrameKind::Task, None, None) => '-',
        (FrameKind::Task, Some(task), None) => {
            let place = tasks.iter().position(|other| *other == task).unwrap_or(25).min(25);
            let small = char::from(b'a' + u8::try_from(place).unwrap_or(25));
            if stretch.at.is_user { small } else { small.to_ascii_uppercase() }
        }
    }
}

fn legend(image: &Image, timeline: &Timeline, tasks: &[TaskId]) -> String {
    let mut out = String::from(
        " E expiry, R response; # interrupt, % softirq, + scheduler, ~ spins, - idle\n a task's \
         user mode is a small letter, its kernel mode a capital:\n",
    );
    for (place, &task) in tasks.iter().enumerate() {
        let letter = char::from(b'a' + u8::try_from(place.min(25)).unwrap_or(25));
        let mut functions: Vec<&str> = Vec::new();
        let is_own = |s: &&Stretch| s.at.task == Some(task) && s.at.kind == FrameKind::Task;
        for stretch in timeline.stretches.iter().filter(is_own) {
            for function in &image.stacks[stretch.at.stack.index()] {
                let name = image.functions[function.index()].as_str();
                if !functions.contains(&name) {
                    functions.push(name);
                }
            }
        }
        let name = clean(image.task_name(Some(task)), 15);
        let line = match functions.as_slice() {
            [] => format!("{letter} {name}"),
            functions => format!("{letter} {name}: {}", functions.join(", ")),
        };
        let _ = writeln!(out, "   {}", clean(&line, 75));
    }
    if timeline.left_out > 0 {
        let _ = writeln!(out, " {} more were left out", timeline.left_out);
    }
    out
}
