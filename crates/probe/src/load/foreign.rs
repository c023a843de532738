//! Programs of the machine's that run as a load, with all that they start.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::pipe::pipe;
use wakescope_sys::poll::wait_readable;
use wakescope_sys::proc_files::field_after_name;
use wakescope_sys::process::{
    Apart, Environment, Exit, Program, Start, adopt_orphans, collect_any, kill_child,
    kill_namespace, set_nonblocking, terminate_child,
};

use super::desk::Desk;
use super::report::Report;

/// How often to look whether the program is still there.
const LOOK: SpanNs = SpanNs(100_000_000);

/// How much is kept of what it said last, in bytes.
const LAST_WORDS: usize = 2048;

/// The longest line of its output that is read, in bytes.
const LONGEST_LINE: usize = 1024;

/// How long a program may take to end that was asked to.
const POLITE_PATIENCE: SpanNs = SpanNs(3_000_000_000);

/// How long it may take to end all that it started.
const END_PATIENCE: SpanNs = SpanNs(5_000_000_000);

/// A program to run.
pub(super) struct Foreign<'a> {
    /// Where it lies.
    pub(super) path: &'a Path,
    /// Its arguments.
    pub(super) arguments: &'a [&'a str],
    /// How much work a line of its output says was done so far; `None` where its output says nothing
    /// of that, and is discarded.
    pub(super) work_in: Option<fn(&str) -> Option<u64>>,
    /// Whether it must be asked to end (SIGTERM), because it would leave what no process owns.
    pub(super) cleans_up: bool,
}

impl Foreign<'_> {
    /// Runs it until the desk says stop, and then ends it with all that it started. Returns how it
    /// ended if it did so before, after telling what it said last.
    pub(super) fn run(&self, desk: &Desk) -> Result<Option<Exit>, String> {
        // Where the keeper is not the first process of a namespace, what the program leaves behind
        // comes to it nevertheless.
        adopt_orphans()
            .map_err(|e| format!("cannot adopt the processes that a command leaves: {e}"))?;
        let (nothing, _) = pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
        let (words, complaints) = pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
        set_nonblocking(&words).map_err(|e| format!("cannot use a pipe: {e}"))?;
        let discarded = OpenOptions::new().write(true).open("/dev/null").ok();
        let output = discarded.as_ref().filter(|_| self.work_in.is_none()).unwrap_or(&complaints);
        let program = Program::new(self.path, self.arguments)
            .map_err(|e| format!("cannot run the command: {e}"))?;
        let start = Start {
            program: &program,
            stdio: [nothing.as_fd(), output.as_fd(), complaints.as_fd()],
            apart: Apart::No,
            dies_with_thread: true,
            environment: Environment::Inherited,
        };
        let child = start
            .run()
            .map_err(|e| desk.not_started(&format!("cannot start {}", self.path.display()), &e))?;
        // Now only the program and its offspring hold the other end.
        drop(complaints);
        if self.work_in.is_none() {
            desk.done(1);
        }
        desk.ready();
        let mut ear =
            Ear { words, last: Vec::new(), line: Vec::new(), work_in: self.work_in, work: 0 };
        let exit = wait_for(child.pid(), &mut ear, desk);
        if exit.is_none() && self.cleans_up {
            ask_to_end(child.pid());
        }
        end_descendants();
        ear.listen(desk);
        if let Some(line) = exit.and_then(|_| last_line(&ear.last)) {
            desk.say(&Report::LastWords(line));
        }
        Ok(exit)
    }
}

/// Waits until the process ends, or the desk says stop (`None`), and collects every process that
/// ends meanwhile.
fn wait_for(process: i32, ear: &mut Ear, desk: &Desk) -> Option<Exit> {
    let mut anyone_speaks = true;
    while !desk.stopping() {
        while let Some((pid, exit)) = collect_any() {
            if pid == process {
                return Some(exit);
            }
        }
        if anyone_speaks {
            let _ = wait_readable(&ear.words, LOOK);
            anyone_speaks = ear.listen(desk);
        } else {
            thread::sleep(Duration::from_nanos(LOOK.0));
        }
    }
    None
}

/// What hears what the program says.
struct Ear {
    words: File,
    /// The last of it.
    last: Vec<u8>,
    /// The line that has not ended yet.
    line: Vec<u8>,
    work_in: Option<fn(&str) -> Option<u64>>,
    /// How much work it said was done.
    work: u64,
}

impl Ear {
    /// Reads what was said, keeps the last of it, and counts the work. False when nobody is left who
    /// could speak.
    fn listen(&mut self, desk: &Desk) -> bool {
        let mut chunk = [0; 4096];
        // A command that never stops talking must not keep this from seeing that it should stop.
        for _ in 0..64 {
            match self.words.read(&mut chunk) {
                Ok(0) => return false,
                Ok(length) => {
                    self.last.extend_from_slice(&chunk[..length]);
                    self.last.drain(..self.last.len().saturating_sub(LAST_WORDS));
                    self.count(&chunk[..length], desk);
                }
                Err(e) => {
                    return matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
                }
            }
        }
        true
    }

    fn count(&mut self, said: &[u8], desk: &Desk) {
        let Some(work_in) = self.work_in else { return };
        for &byte in said {
            if byte != b'\n' {
                // What is longer says nothing of work.
                if self.line.len() < LONGEST_LINE {
                    self.line.push(byte);
                }
                continue;
            }
            let work = work_in(&String::from_utf8_lossy(&self.line)).unwrap_or(0);
            self.line.clear();
            // Work that was done stays done, whatever the program says.
            desk.done(work.saturating_sub(self.work));
            self.work = self.work.max(work);
        }
    }
}

/// The last line that is not empty.
fn last_line(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    said.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(String::from)
}

/// Asks a child to end, and waits for that for a while.
fn ask_to_end(child: i32) {
    let _ = terminate_child(child);
    let deadline = clock::now().after(POLITE_PATIENCE);
    while clock::now() < deadline {
        match collect_any() {
            Some((pid, _)) if pid == child => break,
            Some(_) => {}
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Kills all that the program started, and waits until it is gone: it must not make files while its
/// directory is removed. Those that lose their parent by that become children of this process, so it
/// goes on until it has none.
pub(super) fn end_descendants() {
    let deadline = clock::now().after(END_PATIENCE);
    while clock::now() < deadline {
        // In a PID namespace, /proc shows other numbers, but all others there are descendants.
        if std::process::id() == 1 {
            if kill_namespace().is_err() {
                break;
            }
        } else {
            let children = children();
            if children.is_empty() {
                break;
            }
            for pid in children {
                let _ = kill_child(pid);
            }
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
            field_after_name(&stat, 1) == Some(this.as_str())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::load::desk::test_desk;

    fn ear(words: File, work_in: Option<fn(&str) -> Option<u64>>) -> Ear {
        Ear { words, last: Vec::new(), line: Vec::new(), work_in, work: 0 }
    }

    #[test]
    fn only_the_last_words_are_kept() {
        let (words, mut writer) = pipe().unwrap();
        set_nonblocking(&words).unwrap();
        let mut ear = ear(words, None);
        let desk = test_desk();
        for _ in 0..10 {
            writer.write_all(&[b'x'; 1000]).unwrap();
            assert!(ear.listen(&desk));
        }
        writer.write_all(b"end").unwrap();
        drop(writer);
        // A process that another test starts just now may hold the other end for a moment.
        while ear.listen(&desk) {
            thread::yield_now();
        }
        assert_eq!(ear.last.len(), LAST_WORDS);
        assert!(ear.last.ends_with(b"xend"));
    }

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        assert_eq!(last_line(b"a\nb: bad\n\n").as_deref(), Some("b: bad"));
        assert_eq!(last_line(b" \n"), None);
    }

    #[test]
    fn work_is_counted_line_by_line_and_never_undone() {
        let (words, mut writer) = pipe().unwrap();
        set_nonblocking(&words).unwrap();
        let desk = test_desk();
        let mut ear = ear(words, Some(|line| line.strip_prefix("done ")?.parse().ok()));
        let long = "x".repeat(2 * LONGEST_LINE);
        for (said, want) in [
            ("hello\ndone 5", 0),
            ("0\n", 50),
            ("done 40\n", 50),
            ("done -1\ndone 9999999999999999999999\n", 50),
            (long.as_str(), 50),
            ("done 90\ndone 60\n", 60),
            ("done 61\ndone 62\n", 62),
        ] {
            writer.write_all(said.as_bytes()).unwrap();
            assert!(ear.listen(&desk));
            assert_eq!(desk.work(), want, "{said:.20}");
        }
    }

    #[test]
    fn a_program_is_asked_to_end_and_may_clean_up() {
        let dir = wakescope_testing::Folder::new("foreign");
        let mark = dir.join("cleaned");
        let script = format!("trap 'echo > {}; exit' TERM; echo up; read x", mark.display());
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        terminate_child(i32::try_from(child.id()).unwrap()).unwrap();
        child.wait().unwrap();
        assert!(mark.exists());
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
