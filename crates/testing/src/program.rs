use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that can be run at once, and the folders that lead to it.
///
/// Another process writes it. What this one had open for writing, a process that another test starts just then would
/// inherit until it becomes another program, and so long nobody can execute the file: "Text file busy". A file that is
/// renamed is still the same file.
///
/// # Panics
/// If it cannot be written.
#[track_caller]
pub fn write_program(path: &Path, text: &[u8]) {
    let mut shell = Command::new("sh");
    let script = r#"mkdir -p -- "${1%/*}" && cat >"$1.unfinished" && mv -- "$1.unfinished" "$1" && chmod 755 -- "$1""#;
    shell.args(["-c", script, "sh"]).arg(path).stdin(Stdio::piped());
    let mut writing = shell.spawn().unwrap();
    writing.stdin.take().unwrap().write_all(text).unwrap();
    assert!(writing.wait().unwrap().success(), "{}", path.display());
}

/// Copies a program, so that it can be run at once: see [`write_program`].
///
/// # Panics
/// If it cannot be copied.
#[track_caller]
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("install").args(["-m", "755", "--"]).args([from, to]).status();
    assert!(copied.unwrap().success(), "{} to {}", from.display(), to.display());
}

#[test]
fn no_process_that_another_thread_starts_can_inherit_a_program_that_is_written() {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};
    let dir = crate::Folder::new("program");
    let [ends, is_open] = [AtomicBool::new(false), AtomicBool::new(false)];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                let mut open = fs::read_dir("/proc/self/fd").unwrap().flatten();
                // The file may be closed by now.
                if open.any(|fd| fs::read_link(fd.path()).is_ok_and(|file| file.starts_with(&dir)))
                {
                    is_open.store(true, Ordering::Relaxed);
                }
            }
        });
        // What takes a while to write is seen by whoever looks often.
        let text = format!("#!/bin/sh\nexit 7\n{}", "#\n".repeat(1 << 19));
        for index in 0..50 {
            let (written, copied) =
                (dir.join(format!("{index}")), dir.join(format!("{index}-copy")));
            write_program(&written, text.as_bytes());
            copy_program(&written, &copied);
            for program in [written, copied] {
                assert_eq!(Command::new(program).status().unwrap().code(), Some(7));
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(!is_open.into_inner(), "a program was open for writing here");
}
