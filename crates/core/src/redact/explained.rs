//! What an explanation names: culprits, the tasks that they ran in, their stacks.
//!
//! Culprits and steps are texts in which a name cannot be told from words, so all of such a text goes.
//! Where they become types, names of kernel threads, functions and interrupts can stay.

use super::names::{REDACTED, remove};
use crate::explain::{
    CauseRow, Longest, Measured, SectionKind, SectionPlace, Share, SourceLine, Step,
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
    let CauseRow { cause: _, culprit, episodes: _, total_ns: _, worst_ns: _, share: _ } = row;
    remove(culprit);
}

pub(super) fn redact_step(step: &mut Step) {
    let Step { at_ns: _, depth: _, what } = step;
    remove(what);
}

pub(super) fn redact_share(share: &mut Share) {
    let Share {
        cause: _,
        ns: _,
        culprit,
        within,
        evidence: _,
        stack,
        lines,
        given_up_at,
        given_up_lines,
        user_stack,
    } = share;
    remove(culprit);
    remove(within);
    stack.iter_mut().chain(given_up_at).for_each(redact_frame);
    lines.iter_mut().chain(given_up_lines).flatten().for_each(redact_line);
    // Functions of a program tell which it is, and its files do.
    user_stack.iter_mut().for_each(remove);
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
        if let Some(Longest { begin, end, task, stack }) = longest {
            let edges = [&mut begin.place, &mut begin.caller, &mut end.place, &mut end.caller];
            edges.into_iter().chain(stack).for_each(redact_frame);
            remove(task);
        }
        for SectionPlace { begin, end, count: _, total_ns: _, worst_ns: _ } in places {
            let edges = [&mut begin.place, &mut begin.caller, &mut end.place, &mut end.caller];
            edges.into_iter().for_each(redact_frame);
        }
    }
}

/// Keeps what has the form of an entry of a kernel's stack: `function+0x10`, or `[unknown]`.
fn redact_frame(frame: &mut String) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
    let is_place = frame.split_once("+0x").is_some_and(|(function, offset)| {
        !function.is_empty() && function.chars().all(is_name) && digits(offset)
    });
    if !is_place && frame != "[unknown]" {
        remove(frame);
    }
}

/// Keeps lines of the kernel's own sources.
fn redact_line(line: &mut SourceLine) {
    let SourceLine { function, file, line: _ } = line;
    let mut parts = file.split('/');
    let is_kernels = parts.next().is_some_and(|first| FOLDERS.contains(&first))
        && parts.next().is_some()
        && !file.split('/').any(|part| part == "..");
    if !is_kernels {
        *function = if function.is_empty() { String::new() } else { REDACTED.into() };
        remove(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_kernel_stacks_stay() {
        for (frame, want) in [
            ("do_work+0x1f", "do_work+0x1f"),
            ("a.constprop.0+0x0", "a.constprop.0+0x0"),
            ("[unknown]", "[unknown]"),
            ("", ""),
            ("0xffffffff81000000", REDACTED),
            ("main+0x10 [program]", REDACTED),
            ("program-x+0x10", REDACTED),
            ("rm[412]", REDACTED),
            ("a+0x", REDACTED),
            ("+0x1", REDACTED),
        ] {
            let mut got = frame.to_owned();
            redact_frame(&mut got);
            assert_eq!(got, want, "{frame}");
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
            let mut line = SourceLine { function: "f".into(), file: file.into(), line: 7 };
            let before = line.clone();
            redact_line(&mut line);
            assert_eq!(line == before, stays, "{line:?}");
            assert!(stays || (line.file == REDACTED && line.function == REDACTED), "{line:?}");
        }
    }
}
