//! The load `exec:COMMAND`: whatever the user wants.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::process::{
    Apart, Environment, Exit, Program, Start, adopt_orphans, collect_any, kill_child, pipe,
    set_nonblocking, wait_readable,
};

use super::desk::{Desk, fault};
use super::kinds::Job;
use super::report::Report;
use super::spec::command_of;

const SHELL: &str = "/bin/sh";

/// How often to look whether the command is still there.
const LOOK: SpanNs = SpanNs(100_000_000);

/// How much is kept of what the command said last, in bytes.
const LAST_WORDS: usize = 2048;

/// How long it may take to end all that the command started.
const END_PATIENCE: SpanNs = SpanNs(5_000_000_000);

/// Runs the command in a shell until the desk says stop. A command that ends is a fault: a load
/// lasts, and what comes after its end would be measured without one.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let command = command_of(job.name).unwrap_or_default();
    if !Path::new(SHELL).exists() {
        return Err(format!("a command needs a shell, but {SHELL} does not exist"));
    }
    // Where the keeper is not the first process of a namespace, what the command leaves behind
    // comes to it nevertheless.
    adopt_orphans()
        .map_err(|e| format!("cannot adopt the processes that a command leaves: {e}"))?;
    let (nothing, _) = pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    let (mut words, complaints) = pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    set_nonblocking(&words).map_err(|e| format!("cannot use a pipe: {e}"))?;
    let output = OpenOptions::new().write(true).open("/dev/null").ok();
    let program = Program::new(Path::new(SHELL), ["-c", command])
        .map_err(|e| format!("cannot run the command: {e}"))?;
    let stdio = {
        use std::os::fd::AsFd;
        [nothing.as_fd(), output.as_ref().unwrap_or(&complaints).as_fd(), complaints.as_fd()]
    };
    let start = Start {
        program: &program,
        stdio,
        apart: Apart::No,
        dies_with_thread: true,
        environment: Environment::Inherited,
    };
    let shell = start.run().map_err(|e| fault("start", Path::new(SHELL), &e))?;
    // Now only the command and its offspring hold the other end.
    drop(complaints);
    desk.done(1);
    desk.ready();
    let mut last_words = Vec::new();
    let exit = wait_for(shell.pid(), &mut words, &mut last_words, desk);
    end_descendants();
    listen(&mut words, &mut last_words);
    match exit {
        None => Ok(()),
        Some(exit) => {
            if let Some(line) = last_line(&last_words) {
                desk.say(&Report::LastWords(line));
            }
            Err(obituary(exit))
        }
    }
}

/// Waits until the shell ends, or the desk says stop (`None`), and collects every process that
/// ends meanwhile.
fn wait_for(shell: i32, words: &mut File, last_words: &mut Vec<u8>, desk: &Desk) -> Option<Exit> {
    let mut anyone_speaks = true;
    while !desk.stopping() {
        while let Some((pid, exit)) = collect_any() {
            if pid == shell {
                return Some(exit);
            }
        }
        if anyone_speaks {
            let _ = wait_readable(words, LOOK);
            anyone_speaks = listen(words, last_words);
        } else {
            thread::sleep(Duration::from_nanos(LOOK.0));
        }
    }
    None
}

/// Reads what was said, and keeps the last of it. False when nobody is left who could speak.
fn listen(words: &mut File, last_words: &mut Vec<u8>) -> bool {
    let mut chunk = [0; 4096];
    // A command that never stops talking must not keep this from seeing that it should stop.
    for _ in 0..64 {
        match words.read(&mut chunk) {
            Ok(0) => return false,
            Ok(length) => {
                last_words.extend_from_slice(&chunk[..length]);
                last_words.drain(..last_words.len().saturating_sub(LAST_WORDS));
            }
            Err(e) => return matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
    true
}

/// How the command ended. Not what it said: that may be part of what it was asked to do.
fn obituary(exit: Exit) -> String {
    match exit {
        Exit::Status(0) => {
            "the command ended; a load must keep running, as `while :; do COMMAND; done` does"
                .into()
        }
        _ => format!("the command ended with {exit}"),
    }
}

/// The last line that is not empty.
fn last_line(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    said.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(String::from)
}

/// Kills all that the command started. Those that lose their parent by that become children of
/// this process, so it goes on until it has none.
fn end_descendants() {
    // The first process of a PID namespace takes all others along, and sees them in /proc by
    // numbers that mean nothing inside.
    if std::process::id() == 1 {
        return;
    }
    let deadline = clock::now().after(END_PATIENCE);
    while clock::now() < deadline {
        let children = children();
        if children.is_empty() {
            break;
        }
        for pid in children {
            let _ = kill_child(pid);
        }
        while collect_any().is_some() {}
        thread::sleep(Duration::from_millis(1));
    }
}

/// The children of this process, those included that have ended and wait to be collected.
fn children() -> Vec<i32> {
    let this = std::process::id().to_string();
    // Numbers from the /proc of another PID namespace are other processes.
    if fs::read_link("/proc/self").ok().as_deref() != Some(Path::new(&this)) {
        return Vec::new();
    }
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|pid| {
            let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
            parent_in(&stat) == Some(this.as_str())
        })
        .collect()
}

/// The parent in /proc/PID/stat: the second field after the name, which may hold anything.
fn parent_in(stat: &[u8]) -> Option<&str> {
    let after_name = stat.iter().rposition(|&b| b == b')')? + 1;
    std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace().nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_read_whatever_the_name() {
        for (stat, want) in [
            (&b"12 (sh) S 7 12 12"[..], Some("7")),
            (b"12 (a) R 9 (b) S 7 12", Some("7")),
            (b"12 (\xff\n) ) S 7 12", Some("7")),
            (b"12 (sh) S", None),
            (b"12 sh", None),
            (b"", None),
        ] {
            assert_eq!(parent_in(stat), want, "{}", String::from_utf8_lossy(stat));
        }
    }

    #[test]
    fn obituaries_say_what_is_known() {
        for (exit, want) in [
            (Exit::Status(0), "the command ended; a load must keep running, as `while"),
            (Exit::Status(127), "the command ended with exit status 127"),
            (Exit::Signal(9), "the command ended with SIGKILL"),
        ] {
            let got = obituary(exit);
            assert!(got.starts_with(want), "{got}");
        }
        assert_eq!(last_line(b"a\nb: bad\n\n").as_deref(), Some("b: bad"));
        assert_eq!(last_line(b" \n"), None);
    }

    #[test]
    fn only_the_last_words_are_kept() {
        use std::io::Write;
        let (mut reader, mut writer) = pipe().unwrap();
        set_nonblocking(&reader).unwrap();
        let mut last_words = Vec::new();
        for _ in 0..10 {
            writer.write_all(&[b'x'; 1000]).unwrap();
            assert!(listen(&mut reader, &mut last_words));
        }
        writer.write_all(b"end").unwrap();
        drop(writer);
        // A process that another test starts just now may hold the other end for a moment.
        while listen(&mut reader, &mut last_words) {
            thread::yield_now();
        }
        assert_eq!(last_words.len(), LAST_WORDS);
        assert!(last_words.ends_with(b"xend"));
    }

    #[test]
    fn own_children_are_found() {
        let mut child = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let found = children();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&pid), "{found:?}");
    }
}
