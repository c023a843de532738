//! The user's terminal while a view has it: a screen of its own, and keys one by one. All is put back on
//! every way out but by signals that end a program at once: SIGKILL, SIGQUIT and SIGABRT.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::panic;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};

use wakescope_core::units::SpanNs;
use wakescope_report::watch::live::{Key, Look, Size};
use wakescope_sys::poll::{Ready, wait_any};
use wakescope_sys::serial::{ENDED, Settings, is_own_terminal, open};
use wakescope_sys::signal::{EndSignals, redraw_signals};
use wakescope_sys::terminal::{is_in_foreground, size};

use crate::cleaner::cleaned;
use crate::output;
use keys::Keys;

mod keys;

/// To a screen of its own, without a cursor and without lines that go on in the next one.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
/// Back again, also from the middle of a sequence.
const LEAVE: &[u8] = b"\x18\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// How long the rest of a key may take, on a slow connection.
const REST_OF_KEY: SpanNs = SpanNs(50_000_000);
/// How long a terminal that takes nothing is waited for at the end.
const LAST_PATIENCE: SpanNs = SpanNs(500_000_000);

/// The size where it is not known, and the largest that is used.
const USUAL: Size = Size { columns: 80, lines: 24 };
const LARGEST: Size = Size { columns: 400, lines: 200 };

/// The terminal and its settings before, while it is taken.
static TAKEN: Mutex<Option<(File, Settings)>> = Mutex::new(None);

/// What happened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Keys were pressed.
    Keys(Vec<Key>),
    /// What is drawn is not what it should be.
    Redraw,
    /// A signal says to end.
    End,
    /// The time passed.
    Passed,
    /// The terminal is gone: its window was closed, or its connection ended. It never comes back.
    Gone,
}

/// A terminal that is taken.
pub(crate) struct Terminal {
    /// Opened anew, so that reads and writes wait for nobody: a terminal that was stopped must not stop what
    /// is shown on it.
    file: File,
    /// Signals that ask to draw anew, and that there is one that asks to end.
    redraws: File,
    ends: File,
    keys: Keys,
    size: Size,
    /// The lines that it shows once it has taken `pending`.
    drawn: Vec<String>,
    pending: Vec<u8>,
    /// Whether a frame was left out, because it did not take the one before.
    is_behind: bool,
    is_gone: bool,
    look: Look,
}

impl Terminal {
    /// Takes the terminal, if all of standard input, output and error are one, it can move its cursor, and
    /// this process is not in the background.
    pub(crate) fn take(signals: &EndSignals) -> Option<Self> {
        if !output::can_take_terminal() {
            return None;
        }
        let file = open(Path::new("/dev/tty")).ok().filter(is_in_foreground)?;
        let before = Settings::of(&file).ok()?;
        let (redraws, ends) = (redraw_signals().ok()?, signals.file().ok()?);
        let another = file.try_clone().ok()?;
        put_back_on_panic();
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some((another, before.clone()));
        let mut terminal = Self {
            file,
            redraws,
            ends,
            keys: Keys::default(),
            size: USUAL,
            drawn: Vec::new(),
            pending: ENTER.to_vec(),
            is_behind: false,
            is_gone: false,
            look: output::look(),
        };
        // Dropped here, it is put back.
        before.key_by_key().apply(&terminal.file).ok()?;
        terminal.flush();
        Some(terminal)
    }

    /// Draws what `frame` makes for its size, as far as that is not there already.
    pub(crate) fn draw(&mut self, frame: impl FnOnce(Size, Look) -> Vec<String>) {
        self.flush();
        self.is_behind = !self.pending.is_empty();
        if self.is_behind || self.is_gone {
            return;
        }
        let now = usable(size(&self.file).unwrap_or((0, 0)));
        if now != self.size {
            (self.size, self.drawn) = (now, Vec::new());
        }
        let lines = frame(now, self.look);
        if self.drawn.len() != lines.len() {
            self.pending.extend_from_slice(b"\x1b[2J");
            self.drawn = vec![String::new(); lines.len()];
        }
        for (number, (line, drawn)) in (1..).zip(lines.iter().zip(&self.drawn)) {
            if line != drawn {
                let line = cleaned(line, self.look.style.colour);
                // Cleared first: behind a line that is full, its last character would be cleared.
                self.pending.extend_from_slice(format!("\x1b[{number};1H\x1b[2K{line}").as_bytes());
            }
        }
        self.drawn = lines;
        self.flush();
    }

    /// Waits for keys and signals, for `patience` at most.
    pub(crate) fn wait(&mut self, signals: &EndSignals, patience: SpanNs) -> Event {
        if self.is_gone {
            return Event::Gone;
        }
        let own = if self.pending.is_empty() { Ready::Read } else { Ready::Both };
        let files = [
            (self.file.as_fd(), own),
            (self.redraws.as_fd(), Ready::Read),
            (self.ends.as_fd(), Ready::Read),
        ];
        let is_in_key = self.keys.is_in_key();
        let patience = if is_in_key { patience.min(REST_OF_KEY) } else { patience };
        // A wait that is interrupted is one that passed early: whoever waits looks at the clock.
        let [own, redraw, end] = wait_any(files, patience).unwrap_or_default();
        if end && signals.wait(SpanNs(0)).is_some() {
            return Event::End;
        }
        if redraw {
            let _ = self.redraws.read(&mut [0; 1024]);
            self.continue_after_stop();
            return Event::Redraw;
        }
        let was_behind = self.is_behind;
        if own {
            self.flush();
            self.is_behind &= !self.pending.is_empty();
        }
        let keys = if own { self.read_keys() } else { self.keys.end() };
        match keys {
            _ if self.is_gone => Event::Gone,
            keys if !keys.is_empty() => Event::Keys(keys),
            _ if was_behind && !self.is_behind => Event::Redraw,
            _ => Event::Passed,
        }
    }

    /// Draws everything anew the next time: the terminal may have been used by others.
    pub(crate) fn forget(&mut self) {
        self.drawn.clear();
    }

    /// A shell has its own settings in force while a job is stopped.
    fn continue_after_stop(&mut self) {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, before)) = taken.as_ref().filter(|_| is_in_foreground(&self.file)) {
            let is_as_left = Settings::of(&self.file).is_ok_and(|now| now.is_key_by_key());
            if !is_as_left {
                let _ = before.key_by_key().apply(&self.file);
                self.pending.extend_from_slice(ENTER);
            }
        }
        drop(taken);
        self.forget();
    }

    fn read_keys(&mut self) -> Vec<Key> {
        let mut bytes = [0; 256];
        match self.file.read(&mut bytes) {
            Ok(0) => self.is_gone = true,
            Ok(read) => return self.keys.read(&bytes[..read]),
            Err(e) if e.raw_os_error() == Some(ENDED) => self.is_gone = true,
            // It was ready to be written to.
            Err(_) => {}
        }
        Vec::new()
    }

    /// Writes as much as the terminal takes.
    fn flush(&mut self) {
        while !self.pending.is_empty() {
            match self.file.write(&self.pending) {
                Ok(written @ 1..) => drop(self.pending.drain(..written)),
                _ => return,
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        put_back();
    }
}

/// Puts the terminal back, if it is taken.
fn put_back() {
    // A panic may come while it is locked, and must not wait for itself.
    let Ok(mut taken) = TAKEN.try_lock() else { return };
    let Some((mut file, before)) = taken.take() else { return };
    // A job in the background would be stopped for that.
    if is_in_foreground(&file) || !is_own_terminal(&file) {
        let _ = before.apply(&file);
    }
    let _ = wait_any([(file.as_fd(), Ready::Write)], LAST_PATIENCE);
    let _ = file.write_all(LEAVE);
}

/// Has a panic put the terminal back before it says anything: its message would be lost with the screen, and
/// a release build runs nothing after it.
fn put_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let then = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            put_back();
            then(about);
        }));
    });
}

fn usable((columns, lines): (u16, u16)) -> Size {
    let or = |known: u16, usual| if known == 0 { usual } else { usize::from(known) };
    Size {
        columns: or(columns, USUAL.columns).min(LARGEST.columns),
        lines: or(lines, USUAL.lines).min(LARGEST.lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_sys::serial::open_pair;

    #[test]
    fn a_panic_puts_the_terminal_back_before_it_says_why() {
        let (mut shown, line, _) = open_pair().unwrap();
        let before = Settings::of(&line).unwrap();
        before.key_by_key().apply(&line).unwrap();
        let another = line.try_clone().unwrap();
        *TAKEN.lock().unwrap() = Some((another, before));
        put_back_on_panic();
        let was_back = Mutex::new(false);
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                // Dropped after the hook has run.
                let looks = Looks(&line, &was_back);
                panic!("as it is meant to, {}", looks.0.metadata().is_ok());
            });
            assert!(panics.join().is_err());
        });
        assert!(*was_back.lock().unwrap());
        let mut bytes = [0; LEAVE.len()];
        shown.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, LEAVE);
    }

    struct Looks<'a>(&'a File, &'a Mutex<bool>);

    impl Drop for Looks<'_> {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = !Settings::of(self.0).unwrap().is_key_by_key();
        }
    }

    #[test]
    fn a_size_is_one_that_can_be_drawn() {
        assert_eq!(usable((0, 0)), USUAL);
        assert_eq!(usable((u16::MAX, u16::MAX)), LARGEST);
        assert_eq!(usable((7, 3)), Size { columns: 7, lines: 3 });
    }
}
