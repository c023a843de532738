//! The machine under test of round trips: a thread that answers each byte of a line at once, or each edge.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use wakescope_core::line::{AnsweredBy, EdgeWaits};
use wakescope_sys::clock;
use wakescope_sys::gpio::{EDGES, Edge};
use wakescope_sys::process::set_blocking;
use wakescope_sys::sched::{self, Schedule, ThreadId};
use wakescope_sys::signal::ThreadHandle;

use crate::edges::EdgeLine;
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
    /// Of answers to edges: the fields of [`EdgeWaits`], in their order.
    waits: [AtomicU64; 4],
    stop: AtomicBool,
}

impl Responder {
    /// Starts to answer on `port`, and gives the port back as it was when it ends. `kept` stays open until
    /// then.
    pub fn start(task: RespondTask, port: Port, kept: Option<File>) -> io::Result<Self> {
        set_blocking(&port.file)?;
        let answers = port.file.try_clone()?;
        Self::spawn(task, move |shared| {
            let result = answer(&port.file, &answers, shared);
            drop((answers, port, kept));
            result
        })
    }

    /// Starts to answer edges on two lines of a GPIO chip, and gives them back when it ends.
    pub fn start_edges(task: RespondTask, edges: EdgeLine) -> io::Result<Self> {
        Self::spawn(task, move |shared| answer_edges(&edges, shared))
    }

    /// Starts to answer what comes in on the device `from`, by bytes that go out on another one.
    pub fn start_between(task: RespondTask, from: File, to: File) -> io::Result<Self> {
        set_blocking(&from)?;
        set_blocking(&to)?;
        Self::spawn(task, move |shared| answer(&from, &to, shared))
    }

    /// Starts a thread that runs `answers` until it is stopped.
    fn spawn(
        task: RespondTask,
        answers: impl FnOnce(&Shared) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let (say_ready, ready) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("wakescope-r".into())
            .stack_size(STACK_BYTES)
            .spawn(move || match prepare(&task, &say_ready) {
                true => answers(&theirs),
                false => Ok(()),
            })?;
        let thread = ThreadHandle::new(thread);
        let id = ready.recv().map_err(|_| io::Error::other("the responder's thread ended"))??;
        Ok(Self { shared, thread, id })
    }

    /// How long answers to edges took from the kernel's stamps on; nothing for bytes.
    pub fn waits(&self) -> EdgeWaits {
        let [count, min_ns, max_ns, sum_ns] = self.shared.waits.each_ref().map(load);
        EdgeWaits { count, min_ns, max_ns, sum_ns }
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

fn load(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// Prepares the thread, says how that went, and returns whether it can answer.
fn prepare(task: &RespondTask, say_ready: &SyncSender<io::Result<ThreadId>>) -> bool {
    let bound = task.cpu.map_or(Ok(()), |cpu| sched::set_affinity(&[cpu]));
    let prepared = bound.and_then(|()| sched::set_schedule(task.schedule));
    let is_ready = prepared.is_ok();
    let _ = say_ready.send(prepared.map(|()| sched::this_thread()));
    is_ready
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

/// Answers each edge by the inverse one, until `stop` is set. If several come at once, each gets its answer.
fn answer_edges(lines: &EdgeLine, shared: &Shared) -> io::Result<()> {
    let (mut edges, mut waits) = ([Edge::default(); EDGES], EdgeWaits::default());
    while !shared.stop.load(Ordering::Relaxed) {
        let count = match lines.into.read(&mut edges) {
            Ok(count) => count,
            Err(e) if is_passing(&e) => continue,
            Err(e) => return Err(e),
        };
        for edge in &edges[..count] {
            lines.out.set(!edge.is_high)?;
            waits.add(clock::now().since(edge.at));
        }
        let EdgeWaits { count, min_ns, max_ns, sum_ns } = waits;
        for (number, value) in shared.waits.iter().zip([count, min_ns, max_ns, sum_ns]) {
            number.store(value, Ordering::Relaxed);
        }
        shared.answered.store(count, Ordering::Relaxed);
    }
    Ok(())
}
