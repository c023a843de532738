//! Runs the emulator until the guest ends it, or until it must be ended.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use wakescope_core::units::SpanNs;
use wakescope_store::create_new;
use wakescope_sys::clock;
use wakescope_sys::process::{Child, Exit};

use super::monitor::Monitor;

/// A guest that prints more than that has lost its mind, bytes.
const OUTPUT_MOST: u64 = 64 << 20;

/// What a kernel that panics prints before it does nothing more, or before it waits to restart, if `panic=` says for
/// how long (kernel/panic.c). Its log is complete by then.
const END_OF_PANIC: [&str; 2] = ["---[ end Kernel panic", "Rebooting in "];

/// How often to look whether it has ended.
const LOOK: SpanNs = SpanNs(20_000_000);

/// Why the emulator is no longer running.
#[derive(Debug)]
pub enum End {
    /// It ended by itself: the guest restarted, orderly or not.
    Restarted,
    /// It was ended because its kernel had panicked, and would have waited, or done nothing more.
    Panicked,
    /// It was ended because this much of the host's time had passed.
    TimeUp(SpanNs),
    /// It was ended because the guest wrote without end.
    Flood,
    /// The caller wanted it.
    Cancelled,
    /// Something on the host ended it.
    Killed(Exit),
    /// It refused to run, in these words.
    Refused(String),
    /// It could not be started.
    NotStarted(io::Error),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restarted => f.write_str("the guest restarted"),
            Self::Panicked => f.write_str("the guest's kernel panicked"),
            Self::TimeUp(limit) => write!(f, "the guest did not end within {limit} of host time"),
            Self::Flood => write!(f, "the guest wrote more than {} MiB", OUTPUT_MOST >> 20),
            Self::Cancelled => f.write_str("the guest was stopped on request"),
            Self::Killed(exit) => write!(f, "the emulator was ended: {exit}"),
            Self::Refused(why) => write!(f, "the emulator refused: {why}"),
            Self::NotStarted(e) => write!(f, "the emulator cannot be started: {e}"),
        }
    }
}

/// Limits of a guest, and where its output goes.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// The most time of the host that it may take.
    pub limit: SpanNs,
    /// The file that its guest's console writes to.
    pub console: &'a Path,
    /// Another one that its guest writes to.
    pub results: &'a Path,
    /// Set when it is to be ended.
    pub cancel: &'a AtomicBool,
}

/// Runs the emulator that `start` starts; what it says itself goes into the file `words`. It ends with
/// the calling thread at the latest. Its `monitor`, if it has one, is attended to.
pub fn run(
    start: impl FnOnce(&File) -> io::Result<Child>,
    words: &Path,
    watch: Watch,
    mut monitor: Option<&mut Monitor>,
) -> End {
    let started = create_new(words).and_then(|file| start(&file));
    let mut child = match started {
        Ok(child) => child,
        Err(e) => return End::NotStarted(e),
    };
    let began = clock::now();
    // A guest that has taken the emulator over can make it say what it will.
    let outputs = [watch.console, watch.results, words];
    let mut panic = Panic { console: watch.console, read: 0 };
    loop {
        if let Some(exit) = child.try_wait() {
            return match exit {
                Exit::Status(0) if was_terminated(words) => End::Killed(Exit::Signal(TERMINATED)),
                Exit::Status(0) => End::Restarted,
                Exit::Status(_) => End::Refused(last_words(words)),
                exit => End::Killed(exit),
            };
        }
        let end = if watch.cancel.load(Ordering::Relaxed) {
            Some(End::Cancelled)
        } else if panic.has_ended() {
            Some(End::Panicked)
        } else if clock::now().since(began) > watch.limit {
            Some(End::TimeUp(watch.limit))
        } else if outputs.iter().any(|path| size(path) > OUTPUT_MOST) {
            Some(End::Flood)
        } else {
            None
        };
        if let Some(end) = end {
            child.kill();
            child.wait();
            return end;
        }
        match &mut monitor {
            Some(monitor) => monitor.attend(LOOK),
            None => std::thread::sleep(std::time::Duration::from_nanos(LOOK.0)),
        }
    }
}

/// Looks for the end of a panic in what comes out of a console.
struct Panic<'a> {
    console: &'a Path,
    /// How much of it was looked at, bytes.
    read: u64,
}

impl Panic<'_> {
    fn has_ended(&mut self) -> bool {
        if size(self.console) <= self.read {
            return false;
        }
        // What ends a panic may have come half before.
        let from = self.read.saturating_sub(END_OF_PANIC[0].len() as u64);
        let mut new = Vec::new();
        let read = File::open(self.console).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.take(OUTPUT_MOST).read_to_end(&mut new)
        });
        self.read = from + read.unwrap_or(0) as u64;
        let text = String::from_utf8_lossy(&new);
        END_OF_PANIC.iter().any(|end| text.contains(end))
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}

/// The signal that asks programs to end, as a host does when it shuts down.
const TERMINATED: i32 = 15;

/// Whether the emulator says that it was asked to end: it does so as if its guest had.
fn was_terminated(words: &Path) -> bool {
    let text = fs::read(words).unwrap_or_default();
    String::from_utf8_lossy(&text).contains("terminating on signal")
}

/// The end of what the emulator said, on one line.
fn last_words(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last =
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    last.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use wakescope_sys::pipe::pipe;
    use wakescope_sys::process::{Apart, Environment, Program, Start};
    use wakescope_testing::Folder;

    use super::*;

    #[test]
    fn an_emulator_that_says_too_much_is_ended() {
        let folder = Folder::new("power");
        // Its input comes from nobody, and never ends.
        let (input, _open) = pipe().unwrap();
        let program = Program::new(Path::new("/bin/cat"), [""; 0]).unwrap();
        for (bytes, want) in [(OUTPUT_MOST + 1, "more than 64 MiB"), (OUTPUT_MOST, "within 200 ms")]
        {
            let start = |words: &File| {
                words.set_len(bytes)?;
                let stdio = [input.as_fd(), words.as_fd(), words.as_fd()];
                let (apart, environment) = (Apart::No, Environment::Empty);
                Start { program: &program, stdio, apart, dies_with_thread: true, environment }.run()
            };
            let limit = SpanNs(200_000_000);
            let (console, results) = (&folder.join("console"), &folder.join("results"));
            let watch = Watch { limit, console, results, cancel: &AtomicBool::new(false) };
            let end = run(start, &folder.join(format!("{bytes}.log")), watch, None);
            assert!(end.to_string().contains(want), "{end}");
        }
    }

    #[test]
    fn the_end_of_a_panic_is_seen_when_it_has_come_whole() {
        let folder = Folder::new("panic");
        let console = folder.join("console");
        let mut panic = Panic { console: &console, read: 0 };
        assert!(!panic.has_ended(), "there is no console yet");
        let mut file = create_new(&console).unwrap();
        for (text, want) in [
            ("[    0.1] Linux version 6.1\n", false),
            ("[    0.4] Kernel panic - not syncing: No working init found.\n", false),
            ("", false),
            ("[    0.4] ---[ end Ker", false),
            ("nel panic - not syncing: ", true),
            ("[    0.5] Rebooting in 30 seconds..\n", true),
        ] {
            file.write_all(text.as_bytes()).unwrap();
            assert_eq!(panic.has_ended(), want, "{text}");
        }
    }
}
