//! The machine under test of round trips: a thread that answers each byte of a line at once.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use wakescope_core::line::AnsweredBy;
use wakescope_sys::process::set_blocking;
use wakescope_sys::sched::{self, Schedule, ThreadId};
use wakescope_sys::signal::ThreadHandle;

use crate::line::{Port, closed, closed_or, is_passing};

/// The loop needs little stack.
const STACK_BYTES: usize = 64 << 10;

/// Where and how a responder runs.
pub struct RespondTask {
    /// The CPU that it is bound to, if to one.
    pub cpu: Option<u32>,
    /// The schedule that it runs under.
    pub schedule: Schedule,
}

/// A thread that answers.
pub struct Responder {
    shared: Arc<Shared>,
    thread: ThreadHandle<io::Result<()>>,
    /// The thread, by the kernel's ID.
    pub id: ThreadId,
}

#[derive(Default)]
struct Shared {
    answered: AtomicU64,
    stop: AtomicBool,
}

impl Responder {
    /// Starts to answer on `port`, and gives the port back as it was when it ends. `kept` stays open until
    /// then.
    pub fn start(task: RespondTask, port: Port, kept: Option<File>) -> io::Result<Self> {
        set_blocking(&port.file)?;
        let answers = port.file.try_clone()?;
        Self::spawn(task, answers, port, |port| &port.file, kept)
    }

    /// Starts to answer what comes in on the device `from`, by bytes that go out on another one.
    pub fn start_between(task: RespondTask, from: File, to: File) -> io::Result<Self> {
        set_blocking(&from)?;
        set_blocking(&to)?;
        Self::spawn(task, to, from, |from| from, None)
    }

    /// `file_of` is what is read from, of that which is given back at the end.
    fn spawn<T: Send + 'static>(
        task: RespondTask,
        to: File,
        from: T,
        file_of: fn(&T) -> &File,
        kept: Option<File>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let (say_ready, ready) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("wakescope-r".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let result = live(&task, file_of(&from), &to, &theirs, &say_ready);
                drop((from, to, kept));
                result
            })?;
        let thread = ThreadHandle::new(thread);
        let id = ready.recv().map_err(|_| io::Error::other("the responder's thread ended"))??;
        Ok(Self { shared, thread, id })
    }

    /// How many bytes were answered.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Whether it has ended by itself.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it, and returns how many bytes it answered. The error is why it ended by itself.
    pub fn end(self) -> (u64, io::Result<()>) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let died = |_| Err(io::Error::other("the responder's thread died"));
        let result = self.thread.end().unwrap_or_else(died);
        (self.shared.answered.load(Ordering::Relaxed), result)
    }
}

/// The thread's whole life.
fn live(
    task: &RespondTask,
    from: &File,
    to: &File,
    shared: &Shared,
    say_ready: &SyncSender<io::Result<ThreadId>>,
) -> io::Result<()> {
    let bound = task.cpu.map_or(Ok(()), |cpu| sched::set_affinity(&[cpu]));
    let prepared = bound.and_then(|()| sched::set_schedule(task.schedule));
    let failed = prepared.is_err();
    let _ = say_ready.send(prepared.map(|()| sched::this_thread()));
    if failed { Ok(()) } else { answer(from, to, shared) }
}

/// Answers each byte that comes from `line` on `to`, until `stop` is set. A read waits for the first byte and
/// returns at once with it; nothing here allocates or prints.
fn answer(mut line: &File, mut to: &File, shared: &Shared) -> io::Result<()> {
    let mut bytes = [0; 64];
    while !shared.stop.load(Ordering::Relaxed) {
        let count = match line.read(&mut bytes) {
            Ok(0) => return Err(closed()),
            Ok(count) => count,
            Err(e) if is_passing(&e) => continue,
            Err(e) => return Err(closed_or(e)),
        };
        bytes[..count].iter_mut().for_each(|byte| *byte = AnsweredBy::Responder.answer(*byte));
        let mut sent = 0;
        while sent < count && !shared.stop.load(Ordering::Relaxed) {
            match to.write(&bytes[sent..count]) {
                Ok(more) => sent += more,
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(closed_or(e)),
            }
        }
        shared.answered.fetch_add(sent as u64, Ordering::Relaxed);
    }
    Ok(())
}
