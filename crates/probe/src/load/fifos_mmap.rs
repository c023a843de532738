//! The load `fifos-mmap`: two processes take turns; each maps a file, works on it, and passes data on
//! through a FIFO. After FIFOS_MMAP of the stress-kernel package.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use wakescope_core::units::SpanNs;
use wakescope_sys::file::make_fifo;

use wakescope_sys::pipe::pipe;
use wakescope_sys::poll::wait_readable;
use wakescope_sys::process::{Apart, Child, Environment, Exit, Program, Start, set_nonblocking};
use wakescope_sys::shared::Words;

use super::budget::Budget;
use super::desk::{Desk, fault, streams};
use super::kinds::Job;
use super::random::Random;
use super::this_program;

/// What this program is called with to be the other process.
pub(super) const PART: &str = "launched:fifos-mmap";

/// The file and the FIFOs, in the load's directory.
const FILE: &str = "file";
const THERE: &str = "there";
const BACK: &str = "back";

/// The size of the file: on most machines 16 pages, and each turn faults them in again.
const BYTES: usize = 64 << 10;
const WORDS: usize = BYTES / size_of::<u64>();

/// What is passed on: as much as a FIFO takes at once (PIPE_BUF), so that it is whole or not there.
const MESSAGE: usize = 4096;

/// How often to look whether work should stop, while the other process has its turn.
const LOOK: SpanNs = SpanNs(5_000_000);

/// Takes turns with the other process until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { dir, seed, desk, .. } = job;
    let placed = |fault| format!("{fault}, in {dir}");
    let budget = Budget::here(dir)?;
    if budget.bytes < BYTES as u64 || budget.files < 3 {
        return Err(budget.too_small(dir, "fifos-mmap", BYTES as u64));
    }
    let mut pair = Pair::start(seed, desk).map_err(placed)?;
    // The first turn shows that the other process is there.
    pair.turn(desk).map_err(placed)?;
    desk.ready();
    while !desk.stopping() {
        if pair.turn(desk).map_err(placed)? {
            desk.done(1);
        }
    }
    Ok(())
}

/// Both processes, as the one in the keeper sees them.
struct Pair {
    file: File,
    there: File,
    back: File,
    /// What the other process says if it fails.
    complaints: File,
    other: Child,
    message: [u8; MESSAGE],
    turns: u64,
}

impl Pair {
    fn start(seed: u64, desk: &Desk) -> Result<Self, String> {
        let [path, there, back] = [FILE, THERE, BACK].map(Path::new);
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.as_mut().map_err(|e| fault("make", path, e))?;
        let mut content = vec![0; BYTES];
        Random::new(seed).fill(&mut content);
        // All of it is written: a page without a place on the disk would be a signal at its first use.
        file.write_all(&content).map_err(|e| fault("write", path, &e))?;
        for fifo in [there, back] {
            make_fifo(fifo).map_err(|e| fault("make", fifo, &e))?;
        }
        // Open for both, so that neither waits for the other process, nor for one that never comes.
        let open = |path: &Path| {
            let open = OpenOptions::new().read(true).write(true).open(path);
            open.map_err(|e| fault("open", path, &e))
        };
        let (there, back) = (open(there)?, open(back)?);
        set_nonblocking(&back).map_err(|e| format!("cannot use a FIFO: {e}"))?;
        let (other, complaints) = start_other(desk)?;
        let file = file.try_clone().map_err(|e| fault("open", path, &e))?;
        Ok(Self { file, there, back, complaints, other, message: [0; MESSAGE], turns: 0 })
    }

    /// Works on the file, and lets the other process do the same. False if the desk says stop
    /// meanwhile.
    fn turn(&mut self, desk: &Desk) -> Result<bool, String> {
        self.turns += 1;
        work(&self.file, self.turns).map_err(|e| fault("map", Path::new(FILE), &e))?;
        self.message[..8].copy_from_slice(&self.turns.to_le_bytes());
        self.there.write_all(&self.message).map_err(|e| fault("write", Path::new(THERE), &e))?;
        let mut answered = 0;
        while answered < MESSAGE {
            match self.back.read(&mut self.message[answered..]) {
                Ok(length) => answered += length,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if desk.stopping() {
                        return Ok(false);
                    }
                    if let Some(exit) = self.other.try_wait() {
                        return Err(self.obituary(exit));
                    }
                    let _ = wait_readable(&self.back, LOOK);
                }
                Err(e) => return Err(fault("read", Path::new(BACK), &e)),
            }
        }
        match self.message[..8] == answer(self.turns).to_le_bytes() {
            true => Ok(true),
            false => Err("the other process answered something else".into()),
        }
    }

    fn obituary(&mut self, exit: Exit) -> String {
        let mut said = [0; 512];
        let length = self.complaints.read(&mut said).unwrap_or(0);
        let said = String::from_utf8_lossy(&said[..length]);
        format!("the other process ended with {exit}: {}", said.trim())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.other.kill();
    }
}

fn start_other(desk: &Desk) -> Result<(Child, File), String> {
    let program = Program::new(&this_program(), [PART]);
    let program = program.map_err(|e| format!("cannot launch the other process: {e}"))?;
    let pipes = || -> std::io::Result<_> {
        let (nothing, _) = pipe()?;
        let (complaints, output) = pipe()?;
        set_nonblocking(&complaints)?;
        Ok((nothing, complaints, output))
    };
    let (nothing, complaints, output) = pipes().map_err(|e| format!("cannot make a pipe: {e}"))?;
    let start = Start {
        program: &program,
        stdio: streams(&nothing, &output),
        apart: Apart::No,
        dies_with_thread: true,
        environment: Environment::Inherited,
    };
    let other = start.run().map_err(|e| desk.not_started("cannot launch the other process", &e))?;
    Ok((other, complaints))
}

/// What the other process makes of the number of a turn.
fn answer(turn: u64) -> u64 {
    turn.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Maps the file, changes a word of each page, and lets go of it again.
fn work(file: &File, turn: u64) -> std::io::Result<()> {
    const WORDS_PER_PAGE: usize = 512;
    let words = Words::map(file.as_fd(), WORDS)?;
    for page in 0..WORDS / WORDS_PER_PAGE {
        let at = page * WORDS_PER_PAGE + usize::try_from(turn % WORDS_PER_PAGE as u64).unwrap_or(0);
        words.store(at, words.load(at).wrapping_add(turn));
    }
    Ok(())
}

/// The other process: has its turn for each message, until the FIFO ends.
pub(super) fn play() -> Result<(), String> {
    let [path, there, back] = [FILE, THERE, BACK].map(Path::new);
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|e| fault("open", path, &e))?;
    let mut from = File::open(there).map_err(|e| fault("open", there, &e))?;
    let mut to = OpenOptions::new().write(true).open(back);
    let to = to.as_mut().map_err(|e| fault("open", back, e))?;
    let mut message = [0; MESSAGE];
    loop {
        match from.read_exact(&mut message) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(fault("read", there, &e)),
        }
        let mut turn = [0; 8];
        turn.copy_from_slice(&message[..8]);
        let turn = u64::from_le_bytes(turn);
        work(&file, turn).map_err(|e| fault("map", path, &e))?;
        message[..8].copy_from_slice(&answer(turn).to_le_bytes());
        to.write_all(&message).map_err(|e| fault("write", back, &e))?;
    }
}
