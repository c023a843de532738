//! One late wakeup of a simulation, drawn: what each CPU was at, column by column.

use std::fmt::Write;

use wakescope_core::run::TimeDomain;
use wakescope_core::units::SpanNs;
use wakescope_model::Image;
use wakescope_model::image::{CpuId, TaskId};
use wakescope_model::kernel::FrameKind;
use wakescope_model::timeline::{LockSpan, Stretch, Timeline};
use wakescope_model::trace::LockUser;

use super::locks::{Row, Rows};
use crate::domain;
use crate::style::clean;

/// How many columns the drawing has: a terminal of 80 has room for the names of its rows.
const COLUMNS: usize = 66;

/// A wakeup to draw, of a kernel that follows the rules of `image`.
#[derive(Clone, Debug)]
pub struct Drawn<'a> {
    /// The scenario under a model.
    pub image: &'a Image,
    /// What happened around the wakeup.
    pub timeline: Timeline,
}

/// The drawing in 80 columns, with what its letters mean.
pub fn timeline(Drawn { image, timeline }: &Drawn<'_>) -> String {
    let late = domain::span(timeline.response_ns - timeline.expiry_ns, TimeDomain::Simulated);
    let column = SpanNs((timeline.to_ns - timeline.from_ns) / COLUMNS as u64);
    let mut out = format!(" {}: {late} late · a column is {column}\n", image.rules.name);
    out += &row("", |column| {
        let (from, to) = timeline.column(column, COLUMNS);
        match (timeline.expiry_ns, timeline.response_ns) {
            (expiry, _) if (from..to).contains(&expiry) => 'E',
            (_, response) if (from..to).contains(&response) => 'R',
            _ => ' ',
        }
    });
    let tasks = timeline.tasks();
    for cpu in (0..image.cpus).map(CpuId) {
        let columns = timeline.columns(cpu, COLUMNS);
        let of = |column: usize, what: &dyn Fn(&Stretch) -> char| columns[column].map_or(' ', what);
        out += &row(&format!("CPU {}", cpu.0), |column| of(column, &|s| letter(s, &tasks)));
        let count = |s: &Stretch| match s.at.count & 0xff {
            0 => '·',
            count => char::from_digit(count.min(9), 10).unwrap_or('9'),
        };
        out += &row("  preempt", |column| of(column, &count));
        let irqs = |s: &Stretch| if s.at.irqs_off { '█' } else { '·' };
        out += &row("  irqs off", |column| of(column, &irqs));
        let wanted = timeline.need_resched(cpu);
        out += &row("  resched", |column| {
            let (from, to) = timeline.column(column, COLUMNS);
            let is_set = wanted.iter().any(|&(since, until)| since < to && until > from);
            if is_set { '!' } else { '·' }
        });
    }
    let locks = Rows::of(timeline);
    for of in &locks.rows {
        out += &row_of_lock(image, timeline, &tasks, of);
    }
    out += &legend(image, timeline, &tasks);
    if !locks.rows.is_empty() {
        out += " beside a lock stands who holds it, and below it who waits for it\n";
    }
    for line in locks.left_out {
        let _ = writeln!(out, " {line}");
    }
    out
}

fn row(name: &str, of: impl Fn(usize) -> char) -> String {
    let line: String = (0..COLUMNS).map(of).collect();
    format!(" {name:<11} {}\n", line.trim_end())
}

fn row_of_lock(image: &Image, timeline: &Timeline, tasks: &[TaskId], of: &Row) -> String {
    row(&clean(&of.name(image), 11), |column| {
        let (from, to) = timeline.column(column, COLUMNS);
        let overlap = |s: &&LockSpan| s.to_ns.min(to).saturating_sub(s.from_ns.max(from));
        let most = of.spans.iter().max_by_key(overlap).filter(|span| overlap(span) > 0);
        most.map_or('·', |span| letter_of_user(span.by, tasks))
    })
}

fn letter_of_user(by: LockUser, tasks: &[TaskId]) -> char {
    match by {
        LockUser::Task(task) => small_letter(task, tasks).to_ascii_uppercase(),
        LockUser::Interrupt(_) => '#',
        LockUser::Softirq(_) => '%',
    }
}

/// The letter of what runs: a small one for a task's user mode, a capital for its kernel mode.
fn letter(stretch: &Stretch, tasks: &[TaskId]) -> char {
    match (stretch.at.kind, stretch.at.task, stretch.at.spins_for) {
        (FrameKind::Interrupt(_), ..) => '#',
        (FrameKind::Softirq { .. }, ..) => '%',
        (FrameKind::Scheduler { .. }, ..) => '+',
        (FrameKind::Task, _, Some(_)) => '~',
        (FrameKind::Task, ..) if stretch.at.softirq.is_some() => '%',
        (FrameKind::Task, None, None) => '-',
        (FrameKind::Task, Some(task), None) => {
            let small = small_letter(task, tasks);
            if stretch.at.is_user { small } else { small.to_ascii_uppercase() }
        }
    }
}

/// The letter of a task: all from the 26th on share one, and so do those that never had a CPU here.
fn small_letter(task: TaskId, tasks: &[TaskId]) -> char {
    let place = tasks.iter().position(|other| *other == task).unwrap_or(25).min(25);
    char::from(b'a' + u8::try_from(place).unwrap_or(25))
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
    out
}
