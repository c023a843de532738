//! A terminal that a command runs on, with what it shows.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use wakescope_sys::serial::{Settings, open_pair};
use wakescope_sys::signal::end_by_default;

use crate::common::bench::{Test, eventually, eventually_some};

/// The flag of open(2) by which a terminal does not become that of this process.
const O_NOCTTY: i32 = 0o400;

/// What puts the terminal back: behind it is what the command prints at its end.
const LEAVE: &str = "\x1b[?1049l";

/// A command on a terminal of its own.
pub(crate) struct Pseudoterminal {
    child: Child,
    keyboard: File,
    line: File,
    before: String,
    output: Arc<Mutex<Vec<u8>>>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Pseudoterminal {
    /// Starts `wakescope` with `args` on a terminal of so many lines and columns.
    #[track_caller]
    pub(crate) fn start(
        test: &Test,
        args: &[&str],
        environment: &[(&str, &str)],
        size: (u16, u16),
    ) -> Self {
        Self::start_by(test, &[], args, environment, size)
    }

    /// The same, started so that it ignores that its terminal is gone.
    #[track_caller]
    pub(crate) fn start_for_good(
        test: &Test,
        args: &[&str],
        environment: &[(&str, &str)],
        size: (u16, u16),
    ) -> Self {
        let by = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"];
        Self::start_by(test, &by, args, environment, size)
    }

    fn start_by(
        test: &Test,
        by: &[&str],
        args: &[&str],
        environment: &[(&str, &str)],
        size: (u16, u16),
    ) -> Self {
        let (keyboard, _, path) = open_pair().unwrap();
        let open = || OpenOptions::new().read(true).write(true).custom_flags(O_NOCTTY).open(&path);
        let line = open().unwrap();
        // What the terminal shows is read all the time: one that is full holds up whoever writes.
        let output = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut screen, shown) = (keyboard.try_clone().unwrap(), output.clone());
        let over = is_over.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error: nobody has the terminal open any more.
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                shown.lock().unwrap().extend_from_slice(&bytes[..read]);
            }
        });
        stty(&line, &["rows", &size.0.to_string(), "cols", &size.1.to_string()]);
        let before = stty(&line, &["-g"]);
        // A session of its own, whose terminal this is.
        let mut command = test.program(Path::new("setsid"));
        command.args(["--ctty", "--wait"]).args(by).arg(&test.program).args(args);
        command.envs(environment.iter().copied());
        command.stdin(open().unwrap()).stdout(open().unwrap()).stderr(open().unwrap());
        // Ctrl-C is to end it, also where a shell started this test in the background.
        end_by_default();
        let child = command.spawn().unwrap();
        Self { child, keyboard, line, before, output, is_over, reader: Some(reader) }
    }

    /// Closes the other end of the terminal, as when its window is closed.
    pub(crate) fn hang_up(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // What is written because of it ends the reader.
        self.press("s");
        self.reader.take().unwrap().join().unwrap();
        self.keyboard = File::open("/dev/null").unwrap();
    }

    /// Waits until the command ends.
    #[track_caller]
    pub(crate) fn await_end(&mut self) {
        eventually_some("it ends", || self.child.try_wait().unwrap());
    }

    /// The command, which setsid becomes: it leads no group when it starts.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, (rows, columns): (u16, u16)) {
        stty(&self.line, &["rows", &rows.to_string(), "cols", &columns.to_string()]);
    }

    /// Whether keys are read one by one.
    pub(crate) fn is_raw(&self) -> bool {
        Settings::of(&self.line).unwrap().is_key_by_key()
    }

    /// All that was written to it so far.
    pub(crate) fn all(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    /// The lines that are to be seen.
    pub(crate) fn screen(&self) -> Vec<String> {
        screen_of(&self.all())
    }

    /// Waits until it shows `text`.
    #[track_caller]
    pub(crate) fn await_text(&self, text: &str) {
        eventually(&format!("{text:?} is shown"), || self.screen().join("\n").contains(text));
    }

    /// Waits until the command ends, and demands that the terminal is as it was before. The exit code, and
    /// what was printed behind the view.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let status = eventually_some("it ends", || self.child.try_wait().unwrap());
        assert_eq!(stty(&self.line, &["-g"]), self.before);
        // Now nobody has it open any more: the reader ends.
        let Self { line, output, reader, .. } = &mut self;
        *line = File::open("/dev/null").unwrap();
        reader.take().unwrap().join().unwrap();
        let all = String::from_utf8_lossy(&output.lock().unwrap()).into_owned();
        let (view, printed) = all.rsplit_once(LEAVE).unwrap_or_else(|| panic!("{all:?}"));
        // Lines are wrapped again, and there is a cursor.
        assert!(view.ends_with("\x1b[?7h\x1b[?25h"), "{all:?}");
        (status.code(), printed.to_owned())
    }
}

impl Drop for Pseudoterminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stty(line: &File, args: &[&str]) -> String {
    let output = Command::new("stty").args(args).stdin(line.try_clone().unwrap()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is to be seen once `all` is written, of the few sequences that the view uses.
fn screen_of(all: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut at = 0;
    for part in all.split("\x1b[").skip(1) {
        let Some(end) = part.find(|c: char| c.is_ascii_alphabetic()) else { continue };
        let (sequence, text) = part.split_at(end + 1);
        match sequence {
            "2J" => lines.clear(),
            "2K" => lines[at].clear(),
            _ if sequence.ends_with('H') => {
                let line: usize = sequence.split(';').next().unwrap().parse().unwrap();
                at = line - 1;
                lines.resize(lines.len().max(line), String::new());
            }
            _ => {}
        }
        if let Some(line) = lines.get_mut(at) {
            line.push_str(text);
        }
    }
    lines
}
