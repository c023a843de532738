//! What an explanation names: culprits, the tasks that they ran in, their stacks.

use super::names::{REDACTED, is_own_thread, kernels_part, remove};
use crate::explain::{
    CauseRow, Culprit, Edge, Frame, Function, Interrupted, Longest, Measured, NamedTask, OpenWait,
    Quota, Ranking, RankingRow, SectionKind, SectionPlace, Share, SourceLine, Step, StepEvent,
    Subject, ThreadWaits, TrueShare, WaitRow, Waits, Within, WorstWait,
};

/// Top folders of the kernel's sources (6.18).
const FOLDERS: [&str; 25] = [
    "arch",
    "block",
    "certs",
    "crypto",
    "drivers",
    "fs",
    "include",
    "init",
    "io_uring",
    "ipc",
    "kernel",
    "lib",
    "mm",
    "net",
    "rust",
    "samples",
    "scripts",
    "security",
    "sound",
    "tools",
    "usr",
    "virt",
    "generated",
    "asm",
    "linux",
];

pub(super) fn redact_row(row: &mut CauseRow) {
    let CauseRow {
        cause: _,
        culprit,
        phase: _,
        from_cpu: _,
        others: _,
        episodes: _,
        total_ns: _,
        worst_ns: _,
        share: _,
    } = row;
    redact_culprit(culprit);
}

pub(super) fn redact_waits(waits: &mut Waits) {
    let Waits {
        kinds,
        threads,
        more_threads: _,
        more_threads_ns: _,
        begun: _,
        open: _,
        open_ns: _,
        throughout: _,
        longest_open,
        ends_missed: _,
        begins_missed: _,
        begins_missed_ns: _,
        not_followed_ns: _,
        broken: _,
        no_room: _,
        schedstat: _,
        quota,
    } = waits;
    kinds.iter_mut().for_each(redact_wait_row);
    for ThreadWaits { task, sum_ns: _, run_delay_ns: _, kinds: _ } in threads {
        redact_task(task);
    }
    if let Some(OpenWait { ns: _, at_ns: _, task }) = longest_open {
        redact_task(task);
    }
    if let Some(Quota { cgroup, quota_ns: _, period_ns: _ }) = quota {
        remove(cgroup);
    }
}

pub(super) fn redact_wait_row(row: &mut WaitRow) {
    let WaitRow { kind: _, count: _, sum_ns: _, throttled_ns: _, steal_ns: _, worst } = row;
    let Some(WorstWait {
        ns: _,
        at_ns: _,
        cpu: _,
        task,
        cause: _,
        culprit,
        throttled_ns: _,
        steal_ns: _,
    }) = worst
    else {
        return;
    };
    redact_task(task);
    redact_culprit(culprit);
}

pub(super) fn redact_ranking(ranking: &mut Ranking) {
    let Ranking { by: _, wakeups: _, complete: _, rows } = ranking;
    for row in rows {
        let RankingRow { subject, episodes: _, total_ns: _, worst_ns: _, share: _ } = row;
        match subject {
            Subject::Function(function) => redact_function(function),
            Subject::Module { name } => name.iter_mut().for_each(redact_symbol),
            Subject::Task(task) => redact_task(task),
            Subject::Cause { cause: _ } | Subject::Others => {}
        }
    }
}

pub(super) fn redact_step(step: &mut Step) {
    let Step { at_ns: _, depth: _, event } = step;
    match event {
        StepEvent::TimerExpiry { cpu: _, interrupted } => redact_interrupted(interrupted),
        StepEvent::NotAsleep { task, interrupted } => {
            redact_task(task);
            redact_interrupted(interrupted);
        }
        StepEvent::MadeReady { by, cpu: _, in_interrupt: _, interrupted } => {
            by.iter_mut().for_each(redact_task);
            redact_interrupted(interrupted);
        }
        StepEvent::Switch { from, to } => {
            from.iter_mut().for_each(redact_task);
            redact_task(to);
        }
        StepEvent::Moved { cpu: _, to: task } | StepEvent::Runs { task, page_faults: _ } => {
            redact_task(task);
        }
        StepEvent::Interrupt { name } | StepEvent::InterruptExit { name } => {
            name.iter_mut().for_each(redact_symbol);
        }
        StepEvent::Timer { name, count: _ }
        | StepEvent::Softirq { name }
        | StepEvent::SoftirqExit { name }
        | StepEvent::Nmi { name, ns: _ } => redact_symbol(name),
        StepEvent::Tracer { ns: _ }
        | StepEvent::SchedEntry
        | StepEvent::LockWait
        | StepEvent::LockAcquired
        | StepEvent::Missing { count: _ }
        | StepEvent::LeftOut { count: _ }
        | StepEvent::Unknown => {}
    }
}

fn redact_interrupted(interrupted: &mut Option<Interrupted>) {
    if let Some(Interrupted { mode: _, task, idle_state, softirq }) = interrupted {
        redact_task(task);
        idle_state.iter_mut().chain(softirq).for_each(redact_symbol);
    }
}

pub(super) fn redact_share(share: &mut Share) {
    let Share {
        cause: _,
        ns: _,
        culprit,
        phase: _,
        from_cpu: _,
        within,
        waiting_for_lock: _,
        evidence: _,
        gap: _,
        frames,
        given_up_at,
        user_stack,
    } = share;
    redact_culprit(culprit);
    redact_within(within);
    frames.iter_mut().chain(given_up_at).for_each(redact_frame);
    redact_user_stack(user_stack);
}

pub(super) fn redact_true_share(share: &mut TrueShare) {
    let TrueShare { cause: _, ns: _, culprit, phase: _ } = share;
    redact_culprit(culprit);
}

/// Functions of a program tell which it is, and its files do.
pub(super) fn redact_user_stack(stack: &mut [Frame]) {
    stack.iter_mut().for_each(|frame| *frame = Frame::default());
}

pub(super) fn redact_culprit(culprit: &mut Culprit) {
    match culprit {
        Culprit::Function(function) => redact_function(function),
        Culprit::Task(task) => redact_task(task),
        // Drivers name interrupts after devices.
        Culprit::Interrupt(of)
        | Culprit::Timer(of)
        | Culprit::Softirq(of)
        | Culprit::Nmi(of)
        | Culprit::Idle(of) => redact_symbol(&mut of.name),
        Culprit::Hypervisor | Culprit::Tracer | Culprit::None => {}
    }
}

fn redact_within(within: &mut Within) {
    let Within { caller, syscall, softirq, interrupt, task } = within;
    caller.iter_mut().for_each(redact_function);
    syscall.iter_mut().chain(softirq).chain(interrupt).for_each(redact_symbol);
    task.iter_mut().for_each(redact_task);
}

/// Keeps threads of the kernel and of wakescope. The id stays, which is not the same a second time:
/// without it nobody could tell one task from another.
pub(super) fn redact_task(task: &mut NamedTask) {
    let NamedTask { comm, pid, policy: _, priority: _ } = task;
    redact_comm(comm, *pid);
}

pub(super) fn redact_comm(comm: &mut String, pid: Option<u32>) {
    if pid == Some(0) || is_own_thread(comm) {
        return;
    }
    match kernels_part(comm) {
        Some(part) if part == comm => {}
        Some(part) => *comm = format!("{part}-{REDACTED}"),
        None => remove(comm),
    }
}

pub(super) fn redact_measured(measured: &mut Measured) {
    let Measured {
        irq_off,
        preempt_off,
        scheduling,
        handlers,
        either_ns: _,
        either_scheduling_ns: _,
        edges: _,
        unpaired: _,
        with_nmi: _,
        no_room: _,
    } = measured;
    let kinds = [irq_off, preempt_off, scheduling, handlers];
    for SectionKind { lengths: _, longest, places } in kinds.into_iter().flatten() {
        if let Some(Longest { begin, end, task, frames }) = longest {
            [begin, end].into_iter().for_each(redact_edge);
            frames.iter_mut().for_each(redact_frame);
            task.iter_mut().for_each(redact_task);
        }
        for SectionPlace { begin, end, count: _, total_ns: _, worst_ns: _ } in places {
            [begin, end].into_iter().for_each(redact_edge);
        }
    }
}

fn redact_edge(edge: &mut Edge) {
    let Edge { place, caller } = edge;
    place.iter_mut().chain(caller).for_each(redact_frame);
}

fn redact_function(function: &mut Function) {
    let Function { name, module } = function;
    redact_symbol(name);
    module.iter_mut().for_each(redact_symbol);
}

/// Keeps what can be an entry of a kernel's stack.
pub(super) fn redact_frame(frame: &mut Frame) {
    let Frame { function, offset: _, module, file, line, inlined } = frame;
    function.iter_mut().chain(module).for_each(redact_symbol);
    if !file.as_deref().is_none_or(is_of_kernel) {
        *file = Some(REDACTED.into());
        *line = 0;
    }
    inlined.iter_mut().for_each(redact_line);
}

/// Keeps names such as the kernel has for functions, modules, interrupts and idle states.
pub(super) fn redact_symbol(name: &mut String) {
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.$-:#/".contains(c)) {
        remove(name);
    }
}

/// Whether a file is one of the kernel's own sources.
fn is_of_kernel(file: &str) -> bool {
    let mut parts = file.split('/');
    parts.next().is_some_and(|first| FOLDERS.contains(&first))
        && parts.next().is_some()
        && !file.split('/').any(|part| part == "..")
}

/// Keeps lines of the kernel's own sources.
fn redact_line(line: &mut SourceLine) {
    let SourceLine { function, file, line } = line;
    if !is_of_kernel(file) {
        *function = if function.is_empty() { String::new() } else { REDACTED.into() };
        remove(file);
        *line = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_the_kernel_and_of_wakescope_stay() {
        for (comm, pid, stays) in [
            ("ksoftirqd/1", 17, true),
            ("wakescope/0", 400, true),
            ("swapper/0", 0, true),
            ("python3", 4_711, false),
            ("", 4_711, true),
        ] {
            let mut task = NamedTask { comm: comm.into(), pid: Some(pid), ..NamedTask::default() };
            redact_task(&mut task);
            assert_eq!(task.comm == comm, stays, "{comm}: {task:?}");
            assert_eq!(task.pid, Some(pid));
        }
    }

    #[test]
    fn names_of_the_kernels_form_stay() {
        for (name, want) in [
            ("do_work", "do_work"),
            ("a.constprop.0", "a.constprop.0"),
            ("virtio3-input.0", "virtio3-input.0"),
            ("nvme0q1", "nvme0q1"),
            ("", ""),
            ("main program", REDACTED),
            ("rm[412]", REDACTED),
            ("\u{1b}[31m", REDACTED),
        ] {
            let mut got = name.to_owned();
            redact_symbol(&mut got);
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn lines_of_the_kernels_sources_stay() {
        for (file, stays) in [
            ("mm/shmem.c", true),
            ("arch/x86/mm/tlb.c", true),
            ("/home/me/linux/mm/shmem.c", false),
            ("mm/../home/me/x.c", false),
            ("driver.c", false),
            ("acme/secret.c", false),
            ("mm", false),
        ] {
            let line = SourceLine { function: "f".into(), file: file.into(), line: 7 };
            let mut frame = Frame { inlined: vec![line], ..Frame::in_function("f", 16) };
            frame.file = Some(file.into());
            frame.line = 7;
            let before = frame.clone();
            redact_frame(&mut frame);
            assert_eq!(frame == before, stays, "{frame:?}");
            let text = [frame.file.as_deref().unwrap_or_default(), &frame.inlined[0].file];
            assert!(stays || text == [REDACTED, REDACTED], "{frame:?}");
        }
    }
}
