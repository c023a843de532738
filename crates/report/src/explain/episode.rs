//! One late wakeup: a bar, what happened in order of time, and whose it was.

use wakescope_core::explain::{Cause, Frame, Share, Step, TrueShare};
use wakescope_core::run::{Episode, TimeDomain};
use wakescope_core::units::{counted, grouped};

use super::bar::{self, Part};
use super::frames::{kernel_frame, user_frame};
use super::phrases::{self, LONGEST_NAME, known, micros, whose};
use super::steps;
use super::{WIDTH, net, percent};
use crate::domain::span;
use crate::findings::wrapped;
use crate::style::{Style, clean};
use crate::table::columns;

/// How wide the bar is where there is room, in characters.
const BAR: usize = 80;
/// The steps of a timeline that are shown: from its beginning, and from its end.
const FIRST_STEPS: usize = 24;
const LAST_STEPS: usize = 8;
/// The deepest that a step is indented.
const DEEPEST: u32 = 8;
/// The shares of blame that are shown, and the functions of a stack.
const MOST_SHARES: usize = 10;
const MOST_FRAMES: usize = 12;
/// The shares of what it truly was that are shown.
const MOST_TRUE: usize = 6;
/// The longest name of a source file, in characters.
const LONGEST_FILE: usize = 36;
/// Named among those that were not explained.
const MOST_NAMED: usize = 6;

/// Which episodes are left out for want of an explanation; empty if none are.
pub(crate) fn not_explained<'a>(
    left_out: impl Iterator<Item = (usize, &'a Episode)>,
    domain: TimeDomain,
) -> String {
    let all: Vec<String> = left_out
        .map(|(rank, e)| format!("#{rank} {}", span(e.wakeup_latency_ns, domain)))
        .collect();
    match all.len() {
        0 => String::new(),
        n if n > MOST_NAMED => {
            let named = all[..MOST_NAMED].join(", ");
            format!("not explained: {named}, {} more", grouped((n - MOST_NAMED) as u64))
        }
        _ => format!("not explained: {}", all.join(", ")),
    }
}

/// The episodes, each in a block of its own, their bars below each other.
pub(crate) fn blocks(ranked: &[(usize, &Episode)], domain: TimeDomain, style: Style) -> String {
    let heads: Vec<String> = ranked.iter().map(|&(rank, e)| head(rank, e, domain)).collect();
    let width = heads.iter().map(|head| head.chars().count()).max().unwrap_or(0);
    let bar_width = BAR.min(WIDTH.saturating_sub(width));
    let blocks = ranked.iter().zip(&heads).map(|(&(_, episode), head)| {
        let shares = shares(episode);
        let bar = bar::draw(parts(&shares), episode.wakeup_latency_ns, bar_width);
        let head = style.strong(&format!("{head:<width$}"));
        let told = timeline(episode, domain) + &blame(&shares, domain) + &truth(episode, domain);
        format!("{head}{bar}\n{told}")
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// ` #1  CPU 0  238 µs  `
fn head(rank: usize, episode: &Episode, domain: TimeDomain) -> String {
    let cpu = episode.cpu.map(|cpu| format!("CPU {cpu}  ")).unwrap_or_default();
    let net = net::beside(episode, domain);
    format!(" #{rank}  {cpu}{}  {net}", span(episode.wakeup_latency_ns, domain))
}

/// The shares in the usual order of a wakeup.
fn parts(shares: &[Share]) -> Vec<Part> {
    let mut shares: Vec<&Share> = shares.iter().collect();
    shares.sort_by_key(|share| ORDER.iter().position(|&cause| cause == share.cause));
    let part = |share: &&Share| Part {
        ns: share.ns,
        name: short(share.cause).into(),
        culprit: clean(&phrases::culprit(share.blamed()), LONGEST_NAME),
    };
    shares.iter().map(part).collect()
}

/// An episode's shares, the largest first, and what nobody knows last. What they leave of the episode
/// nobody knows either.
pub(crate) fn shares(episode: &Episode) -> Vec<Share> {
    let sum =
        |shares: &[Share]| shares.iter().fold(0_u64, |sum, share| sum.saturating_add(share.ns));
    let text = sum(&episode.blame);
    let there = episode.blame.iter().filter(|share| share.ns > 0).cloned();
    let (unknown, mut known): (Vec<Share>, Vec<Share>) =
        there.partition(|share| share.cause == Cause::Unexplained);
    known.sort_by_key(|share| std::cmp::Reverse(share.ns));
    let ns = sum(&unknown).saturating_add(episode.wakeup_latency_ns.saturating_sub(text));
    if ns > 0 {
        let first = unknown.into_iter().next().unwrap_or_default();
        known.push(Share { ns, ..first });
    }
    known
}

/// The causes in the order in which they have their place between expiry and response. Shares have
/// no times of their own: one may be in several pieces.
pub(crate) const ORDER: [Cause; 16] = [
    Cause::IdleExit,
    Cause::IrqOff,
    Cause::Steal,
    Cause::Nmi,
    Cause::Irq,
    Cause::Softirq,
    Cause::RemoteWakeup,
    Cause::PreemptOff,
    Cause::NoPreemptionPoint,
    Cause::HigherPriorityTask,
    Cause::EqualOrLowerTask,
    Cause::Throttled,
    Cause::Scheduler,
    Cause::PageFault,
    Cause::Tracer,
    Cause::Unexplained,
];

/// A cause's name where there is little room.
fn short(cause: Cause) -> &'static str {
    match cause {
        Cause::HigherPriorityTask => "higher_priority",
        Cause::EqualOrLowerTask => "equal_or_lower",
        Cause::Scheduler => "sched",
        cause => cause.name(),
    }
}

/// A line per step, with its time from when the wakeup was due. Of a long one the middle is left out.
fn timeline(episode: &Episode, domain: TimeDomain) -> String {
    let steps = &episode.timeline;
    let shown = if steps.len() > FIRST_STEPS + LAST_STEPS {
        (&steps[..FIRST_STEPS], &steps[steps.len() - LAST_STEPS..])
    } else {
        (steps.as_slice(), &[][..])
    };
    let times = shown.0.iter().chain(shown.1).map(|step| micros(step.at_ns).len());
    let width = times.max().unwrap_or(0).max(8);
    let unit = format!("{}µs", domain.before_unit());
    let mut out = String::new();
    for (at, step) in shown.0.iter().enumerate() {
        let unit = if at == 0 { unit.clone() } else { " ".repeat(unit.chars().count()) };
        out.push_str(&step_text(step, width, &unit));
    }
    let hidden = &steps[shown.0.len()..steps.len() - shown.1.len()];
    if !hidden.is_empty() {
        let count = hidden.iter().fold(0, |sum: u64, step| sum.saturating_add(step.stands_for()));
        let text = format!("… {} omitted", counted(count, "step"));
        out.push_str(&format!("{:>width$}  {text}\n", ""));
    }
    let blank = " ".repeat(unit.chars().count());
    shown.1.iter().for_each(|step| out.push_str(&step_text(step, width, &blank)));
    out
}

fn step_text(step: &Step, width: usize, unit: &str) -> String {
    let indent = " ".repeat(2 * step.depth.min(DEEPEST) as usize);
    let before = format!("{:>width$} {unit}  {indent}", micros(step.at_ns));
    let what = clean(&steps::step(step), WIDTH.saturating_sub(before.chars().count() + 1));
    format!("{before}{what}").trim_end().to_owned() + "\n"
}

/// Whose the time was: how much, what, who, how that is known, and the stack.
fn blame(shares: &[Share], domain: TimeDomain) -> String {
    let percents = percent::of(&shares.iter().map(|share| share.ns).collect::<Vec<_>>());
    let shown = &shares[..shares.len().min(MOST_SHARES)];
    let lengths =
        shown.iter().zip(percents).map(|(share, percent)| vec![span(share.ns, domain), percent]);
    let table = columns(&lengths.collect::<Vec<_>>(), false);
    let mut out = String::new();
    for (length, share) in table.lines().zip(shown) {
        let before = format!("   {length}  ");
        let indent = before.chars().count();
        let text = wrapped(&share_text(share), WIDTH - indent, &" ".repeat(indent));
        out.push_str(&format!("{before}{text}\n"));
        out.push_str(&stack(share, 9));
    }
    let others = shares.get(MOST_SHARES..).unwrap_or_default();
    if !others.is_empty() {
        let sum = others.iter().fold(0_u64, |sum, share| sum.saturating_add(share.ns));
        let count = counted(others.len() as u64, "other");
        // Of one there is nothing to add up.
        let together = if others.len() == 1 { "" } else { " together" };
        out.push_str(&format!("    {count}, {}{together}\n", span(sum, domain)));
    }
    out
}

/// What a simulation knows of it: `it truly was: 114 µs throttled probe/0[100] fifo 80, 3.10 µs softirq RCU`
fn truth(episode: &Episode, domain: TimeDomain) -> String {
    let Episode { truth, .. } = episode;
    if truth.is_empty() {
        return String::new();
    }
    let (shown, others) = truth.split_at(truth.len().min(MOST_TRUE));
    let share = |share: &TrueShare| {
        format!("{} {}", span(share.ns, domain), phrases::with_culprit(share.blamed()))
    };
    let mut shares: Vec<String> = shown.iter().map(share).collect();
    if !others.is_empty() {
        let sum = others.iter().fold(0_u64, |sum, share| sum.saturating_add(share.ns));
        let count = counted(others.len() as u64, "other");
        shares.push(format!("{} {count}", span(sum, domain)));
    }
    let text = format!("it truly was: {}", shares.join(", "));
    format!("   {}\n", wrapped(&text, WIDTH - 3, "     "))
}

/// `irq_off in uart_drain_fifo, called from serial_release in logger[231] · stack taken inside`
fn share_text(share: &Share) -> String {
    let known = match known(share) {
        "" => String::new(),
        words => format!(" · {words}"),
    };
    format!("{}{}{known}", share.cause.name(), whose(share))
}

/// The stacks of a share: the kernel's with lines of source, and that of the program.
pub(crate) fn stack(share: &Share, indent: usize) -> String {
    stacks(share, MOST_FRAMES).into_iter().map(|stack| chain(stack, indent)).collect()
}

/// A stack, as far as there is room for it.
pub(crate) struct Stack {
    /// The first entries, innermost first. What stack it is stands before the first.
    pub(crate) entries: Vec<Words>,
    /// How many entries are not among them.
    pub(crate) more: usize,
}

/// The stacks of a share that has any, with at most so many entries each: that of the kernel with lines of
/// source, where the culprit gave up the CPU in the end, and that of its program.
pub(crate) fn stacks(share: &Share, most: usize) -> Vec<Stack> {
    let Share {
        cause: _,
        ns: _,
        culprit: _,
        phase: _,
        from_cpu: _,
        within: _,
        waiting_for_lock: _,
        evidence: _,
        gap: _,
        frames,
        given_up_at,
        user_stack,
    } = share;
    let own = |title: &str, shown: &[Frame], all: &[Frame], text: fn(&Frame) -> Words| {
        let mut entries: Vec<Words> = shown.iter().take(most).map(text).collect();
        entries.first_mut()?[0].insert_str(0, title);
        let more = all.len() - entries.len();
        Some(Stack { entries, more })
    };
    let given_up = until_common(given_up_at, frames);
    let all = [
        own("", frames, frames, entry_text),
        own("gives up the CPU in ", given_up, given_up_at, entry_text),
        own("user stack: ", user_stack, user_stack, |frame| vec![user_frame(frame)]),
    ];
    all.into_iter().flatten().collect()
}

/// `stack` up to the innermost entry that `other` has, too: what called that, called both. Empty if
/// it says nothing new.
fn until_common<'s>(stack: &'s [Frame], other: &[Frame]) -> &'s [Frame] {
    let ends = stack.iter().rev().zip(other.iter().rev());
    let common = ends.take_while(|(entry, other)| entry.is_at(other)).count();
    let own = stack.len() - common;
    if own == 0 { &[] } else { &stack[..(own + 1).min(stack.len())] }
}

/// An entry of a stack, in the pieces between which a line may end.
pub(crate) type Words = Vec<String>;

/// `shmem_undo_range+0x1b2 (mm/shmem.c:912)`; where functions were put into one another, with the
/// innermost and the outermost of them:
/// `shmem_undo_range+0x1b2 (folio_put at include/linux/mm.h:1320, inlined into mm/shmem.c:912)`.
fn entry_text(frame: &Frame) -> Words {
    let entry = kernel_frame(frame);
    let file = frame.file.as_deref().unwrap_or_default();
    let own = source(file, frame.line);
    match frame.inlined.first() {
        Some(inner) => {
            let function = clean(&inner.function, LONGEST_NAME);
            let inner = format!("({function} at {},", source(&inner.file, inner.line));
            vec![entry, inner, format!("inlined into {own})")]
        }
        None if own.is_empty() => vec![entry],
        None => vec![format!("{entry} ({own})")],
    }
}

/// `mm/shmem.c:912`
fn source(file: &str, line: u32) -> String {
    let file = file_name(file);
    if line == 0 { file } else { format!("{file}:{line}") }
}

/// The file, or its end if it is long: the file itself says more than the folders that it is in.
fn file_name(file: &str) -> String {
    let begin = file.char_indices().rev().nth(LONGEST_FILE - 1).map_or(0, |(at, _)| at);
    let cut = if begin > 0 { "…" } else { "" };
    format!("{cut}{}", clean(&file[begin..], LONGEST_FILE))
}

/// Functions, each called by the next, on as few lines as they take.
fn chain(Stack { entries, more }: Stack, indent: usize) -> String {
    // With what stands before a function, and at its end, on one line.
    let longest = WIDTH.saturating_sub(indent + "… ←".chars().count());
    let count = entries.len() + more;
    let mut pieces: Words = Vec::new();
    for (at, entry) in entries.into_iter().enumerate() {
        pieces.extend(entry.iter().map(|piece| clean(piece, longest)));
        if let Some(end) = pieces.last_mut().filter(|_| at + 1 < count) {
            end.push_str(" ←");
        }
    }
    if more > 0 {
        pieces.push(format!("… {} more", grouped(more as u64)));
    }
    let blank = " ".repeat(indent);
    let mut out = String::new();
    let mut line = String::new();
    for piece in pieces {
        let more = piece.chars().count();
        if !line.is_empty() && indent + line.chars().count() + 1 + more > WIDTH {
            out.push_str(&format!("{blank}{line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&piece);
    }
    if !line.is_empty() {
        out.push_str(&format!("{blank}{line}\n"));
    }
    out
}
