//! What a guest's log says about its end.

/// Why a guest gave no result, as its log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// In a few words: `the kernel panicked: not syncing: Fatal exception`.
    pub what: String,
    /// The log's decisive lines.
    pub lines: Vec<String>,
}

/// Signs that a kernel is in trouble, the gravest first: what its log holds, and what that means.
const SIGNS: [(&str, &str); 11] = [
    ("Kernel panic", "the kernel panicked"),
    ("Oops", "the kernel had an oops"),
    ("Internal error", "the kernel had an oops"),
    ("kernel BUG at", "the kernel had an oops"),
    ("Unable to handle kernel", "the kernel had an oops"),
    ("BUG: ", "the kernel found a bug in itself"),
    ("general protection fault", "the kernel had an oops"),
    ("double fault", "the kernel had an oops"),
    ("self-detected stall", "the kernel stalled"),
    ("soft lockup", "the kernel hung"),
    ("blocked for more than", "a task hung in the kernel"),
];

/// No more of the log than that is quoted.
const LINES_MOST: usize = 12;

/// No line longer than that is.
const LINE_MOST: usize = 160;

/// What `log` says is the matter; `None` if nothing is.
pub fn trouble(log: &[u8]) -> Option<Verdict> {
    let text = String::from_utf8_lossy(log);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let (message, rest, meaning) = SIGNS.into_iter().find_map(|(sign, meaning)| {
        lines.iter().find_map(|line| Some((line, after(line, sign)?, meaning)))
    })?;
    // A panic is told after what led to it, so the first sign of any kind begins the story.
    let has_sign = |line: &&str| SIGNS.iter().any(|(sign, _)| after(line, sign).is_some());
    let first = lines.iter().position(has_sign)?;
    let detail = message.split_once(" - ").map_or(rest, |(_, detail)| detail);
    let what = match detail.trim_matches([' ', ':', ',']) {
        "" => meaning.into(),
        detail => format!("{meaning}: {}", cut(detail)),
    };
    let mut quoted: Vec<String> =
        lines[first..].iter().take(LINES_MOST - 1).map(|line| cut(line)).collect();
    let message = cut(message);
    if !quoted.contains(&message) {
        quoted.push(message);
    }
    Some(Verdict { what, lines: quoted })
}

/// The text after a sign that a line of the log holds, if the kernel speaks of itself there. The sign is no end of a
/// longer word, as of `DEBUG: `.
fn after<'a>(line: &'a str, sign: &str) -> Option<&'a str> {
    if is_of_program(line) {
        return None;
    }
    let begins_word =
        |at: &usize| !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut places = line.match_indices(sign).map(|(at, _)| at);
    places.find(begins_word).map(|at| &line[at + sign.len()..])
}

/// Whether an x86 kernel tells here of a program that crashed:
/// `traps: fio[3920] general protection fault ip:7f… sp:7f… error:0 in libc.so.6`.
fn is_of_program(line: &str) -> bool {
    line.split_once("traps: ").is_some_and(|(_, told)| told.contains("] ") && told.contains(" ip:"))
}

/// The last lines of a log that says nothing in particular.
pub(crate) fn last_lines(log: &[u8]) -> Vec<String> {
    const LAST: usize = 5;
    let text = String::from_utf8_lossy(log);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST)..].iter().map(|line| cut(line)).collect()
}

fn cut(line: &str) -> String {
    line.chars().take(LINE_MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(log: &str, want: Option<&str>) {
        assert_eq!(trouble(log.as_bytes()).map(|v| v.what).as_deref(), want, "{log}");
    }

    #[test]
    fn trouble_is_seen_and_named() {
        check("", None);
        check("[    0.1] Linux version 6.1\n[    0.2] Run /init as init process\n", None);
        for harmless in [
            "[    3.1] traps: fio[3920] general protection fault ip:55e4 sp:7ffd error:0 in fio[55e4+9]\n",
            "DEBUG: fio begins\n",
            "fio: MY_BUG: none\n",
        ] {
            check(harmless, None);
        }
        check(
            "DEBUG: it begins\n[    3.1] traps: PANIC: double fault, error_code: 0x0\n",
            Some("the kernel had an oops: error_code: 0x0"),
        );
        check(
            "DEBUG: BUG: sleeping function called from invalid context\n",
            Some("the kernel found a bug in itself: sleeping function called from invalid context"),
        );
        check(
            "[    0.4] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200\n",
            Some("the kernel panicked: not syncing: Attempted to kill init! exitcode=0x00000200"),
        );
        check(
            "BUG: unable to handle page fault for address: ffff888003801000\n\
               #PF: supervisor read access in kernel mode\nOops: 0000 [#1] PREEMPT SMP NOPTI\n",
            Some("the kernel had an oops: 0000 [#1] PREEMPT SMP NOPTI"),
        );
        check(
            "Internal error: Oops: 0000000096000004 [#1] SMP\n",
            Some("the kernel had an oops: 0000000096000004 [#1] SMP"),
        );
        check(
            "rcu: INFO: rcu_sched self-detected stall on CPU\n",
            Some("the kernel stalled: on CPU"),
        );
        check(
            "watchdog: BUG: soft lockup - CPU#0 stuck for 26s!\n",
            Some("the kernel found a bug in itself: CPU#0 stuck for 26s!"),
        );
    }

    #[test]
    fn the_story_begins_with_the_first_sign_and_has_the_panic_in_it() {
        let trace: String = (0..40).map(|i| format!("  frame {i}\n")).collect();
        let log = format!(
            "boot\nBUG: kernel NULL pointer dereference\n{trace}Kernel panic - not syncing: Fatal exception\n"
        );
        let verdict = trouble(log.as_bytes()).unwrap();
        assert_eq!(verdict.what, "the kernel panicked: not syncing: Fatal exception");
        assert_eq!(verdict.lines.len(), LINES_MOST);
        assert!(verdict.lines[0].starts_with("BUG: kernel NULL"), "{verdict:#?}");
        assert!(verdict.lines[LINES_MOST - 1].starts_with("Kernel panic"), "{verdict:#?}");
        assert_eq!(last_lines(b"1\n2\n\n3\n4\n5\n6\n").join(""), "23456");
    }

    proptest! {
        #[test]
        fn no_log_is_a_danger(log in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (trouble(&log), last_lines(&log));
        }
    }
}
