//! Standard output and standard error of a watch. A thread of its own writes to each, so that no reader and no
//! terminal holds up what is counted, stored and exported.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wakescope_core::units::{SpanNs, grouped};
use wakescope_sys::clock;
use wakescope_sys::poll::{Ready, wait_any};
use wakescope_sys::signal::EndSignals;

use crate::cleaner::cleaned;
use crate::failure::lacks_threads;
use crate::{Failure, output};

/// Texts that are kept for a stream that takes nothing: beyond that, only the last ones.
const MOST_KEPT: usize = 100;

/// How long a text is waited for. One that is taken meanwhile stands before what comes on the other stream.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a stream may take nothing after a signal.
const LAST_PATIENCE: SpanNs = SpanNs(1_000_000_000);

/// Both streams.
pub(super) struct Streams {
    out: Writer,
    err: Writer,
    /// Whether the reader of standard output has left no room in it.
    is_out_full: fn() -> bool,
}

impl Streams {
    pub(super) fn start() -> Result<Self, Failure> {
        let draw = |text: &str| {
            output::draw(text);
            Ok(true)
        };
        Ok(Self { is_out_full, ..Self::with(output::print_on, draw)? })
    }

    /// Streams that these write to. Each says whether somebody still reads. One that is behind has a reader that takes
    /// nothing.
    pub(super) fn with(
        out: impl FnMut(&str) -> Result<bool, Failure> + Send + 'static,
        err: impl FnMut(&str) -> Result<bool, Failure> + Send + 'static,
    ) -> Result<Self, Failure> {
        Ok(Self { out: Writer::start(out)?, err: Writer::start(err)?, is_out_full: || true })
    }

    /// The same, whose reader has left room.
    #[cfg(test)]
    pub(super) fn with_room(self) -> Self {
        Self { is_out_full: || false, ..self }
    }

    /// Whether standard output has not taken yet what it was given.
    pub(super) fn is_behind(&self) -> bool {
        self.out.shared.lock().is_behind()
    }

    /// Whether that is because nobody reads it. On a busy machine its own thread may have had no CPU yet. (6.18, beside
    /// guests on all CPUs: 200 ms.)
    pub(super) fn is_out_full(&self) -> bool {
        (self.is_out_full)()
    }

    /// Gives a result to standard output. Whether somebody still reads it, as far as that is known.
    pub(super) fn print(&self, text: String) -> Result<bool, Failure> {
        self.out.give(text)
    }

    /// Whether the terminal that standard error is has taken what it was given.
    pub(super) fn can_draw(&self) -> bool {
        !self.err.shared.lock().is_behind()
    }

    /// Draws on that terminal.
    pub(super) fn draw(&self, drawing: String) {
        if !drawing.is_empty() {
            self.give_err(drawing);
        }
    }

    /// Tells the user something beside the results.
    pub(super) fn note(&self, text: &str) {
        self.give_err(format!("{}\n", cleaned(text.trim_end(), false)));
    }

    fn give_err(&self, text: String) {
        // If standard error is closed, there is no place left to say so.
        let _ = self.err.give(text);
    }

    /// Waits until all is taken, and for a second at most after a signal, or from now on if `is_hurried`.
    /// Whether that was enough; if not, it says so.
    pub(super) fn finish(&self, signals: &EndSignals, is_hurried: bool) -> Result<bool, Failure> {
        let mut hurried = is_hurried.then(clock::now);
        // No thread can wait for another one and for a signal at once.
        while !(self.out.shared.is_taken_soon() && self.err.shared.is_taken_soon()) {
            hurried = hurried.or_else(|| signals.wait(SpanNs(0)).map(|_| clock::now()));
            if hurried.is_some_and(|since| clock::now().since(since) > LAST_PATIENCE) {
                let failure = Failure::new("not all that was counted is shown").because(
                    "the reader of standard output, or the terminal, took nothing for a second at the end",
                );
                // Not by whoever started this: standard error may be what takes nothing.
                self.note(&failure.to_string());
                return Ok(false);
            }
        }
        self.out.shared.result().map(|_| true)
    }
}

fn is_out_full() -> bool {
    let out = io::stdout();
    let ready = wait_any([(out.as_fd(), Ready::Write)], SpanNs(0));
    ready.is_ok_and(|[takes]| !takes)
}

/// Texts that are to be written.
#[derive(Debug, Default)]
pub(super) struct Kept {
    texts: VecDeque<String>,
    older: u64,
}

impl Kept {
    pub(super) fn push(&mut self, text: String) {
        if self.texts.len() == MOST_KEPT {
            self.texts.pop_front();
            self.older += 1;
        }
        self.texts.push_back(text);
    }

    /// The first one, behind how many were left out.
    pub(super) fn pop(&mut self) -> Option<String> {
        match std::mem::take(&mut self.older) {
            0 => self.texts.pop_front(),
            older => Some(format!("{} earlier messages are left out\n", grouped(older))),
        }
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// A stream, and the thread that writes to it.
struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    kept: Kept,
    is_writing: bool,
    is_over: bool,
    /// Whether the reader has gone away, and what else the last texts met.
    is_closed: bool,
    failure: Option<Failure>,
}

impl State {
    fn is_behind(&self) -> bool {
        self.is_writing || !self.kept.is_empty()
    }
}

impl Writer {
    fn start(
        mut write: impl FnMut(&str) -> Result<bool, Failure> + Send + 'static,
    ) -> Result<Self, Failure> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let own = Arc::clone(&shared);
        let run = move || {
            while let Some(text) = own.next() {
                own.wrote(write(&text));
            }
        };
        // It has the name of the process: what it waits is no other program's.
        thread::Builder::new().spawn(run).map_err(|e| {
            let failure = Failure::new(format!("cannot start a thread that writes: {e}"));
            if lacks_threads(&e) { failure.lacking_threads(None) } else { failure }
        })?;
        Ok(Self { shared })
    }

    /// Has a text written. Whether somebody still reads, as far as that is known.
    fn give(&self, text: String) -> Result<bool, Failure> {
        let was_behind = {
            let mut state = self.shared.lock();
            let was_behind = state.is_behind();
            state.kept.push(text);
            was_behind
        };
        self.shared.changed.notify_all();
        if !was_behind {
            self.shared.is_taken_soon();
        }
        self.shared.result()
    }
}

impl Drop for Writer {
    /// Its thread ends once it has written what it has, if it ever can.
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all is taken, within [`PATIENCE`].
    fn is_taken_soon(&self) -> bool {
        let waits = |state: &mut State| state.is_behind();
        let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, waits);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_behind()
    }

    /// What the last texts met: whether somebody still reads.
    fn result(&self) -> Result<bool, Failure> {
        let mut state = self.lock();
        state.failure.take().map_or(Ok(!state.is_closed), Err)
    }

    /// The next text to write; `None` when it is over.
    fn next(&self) -> Option<String> {
        let waits = |state: &mut State| state.kept.is_empty() && !state.is_over;
        let state = self.changed.wait_while(self.lock(), waits);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let text = state.kept.pop();
        state.is_writing = text.is_some();
        text
    }

    /// What became of it.
    fn wrote(&self, result: Result<bool, Failure>) {
        let mut state = self.lock();
        state.is_writing = false;
        match result {
            Ok(is_read) => state.is_closed |= !is_read,
            Err(failure) => state.failure = Some(failure),
        }
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

    use super::*;

    /// The reader of a stream. It takes each text only on command.
    pub(in super::super) struct SlowReader {
        begun: Receiver<()>,
        go_on: SyncSender<()>,
        texts: Receiver<String>,
    }

    impl SlowReader {
        /// A reader, and what writes to it.
        pub(in super::super) fn new()
        -> (Self, impl FnMut(&str) -> Result<bool, Failure> + Send + 'static) {
            let ((begins, begun), (written, texts)) = (channel(), channel());
            let (go_on, may_go_on) = sync_channel(0);
            let write = move |text: &str| {
                let _ = begins.send(());
                let _ = may_go_on.recv();
                let _ = written.send(text.to_owned());
                Ok(true)
            };
            (Self { begun, go_on, texts }, write)
        }

        /// Waits until a text is being written, which is not taken yet.
        fn wait(&self) {
            self.begun.recv().unwrap();
        }

        /// Takes the next text.
        pub(in super::super) fn take(&self) -> String {
            self.go_on.send(()).unwrap();
            self.texts.recv().unwrap()
        }
    }

    #[test]
    fn a_stream_that_takes_nothing_holds_nobody_up() {
        let (reader, out) = SlowReader::new();
        let streams = Streams::with(out, |_| Ok(true)).unwrap();
        assert!(streams.print("0".into()).unwrap());
        // Of those that are not being written yet, only the last hundred are kept.
        reader.wait();
        for number in 1..103 {
            assert!(streams.print(number.to_string()).unwrap());
        }
        assert!(streams.is_behind());
        let want = ["0", "2 earlier messages are left out\n", "3", "4"];
        assert_eq!(want.map(|_| reader.take()), want);
        let rest: Vec<String> = (5..103).map(|_| reader.take()).collect();
        assert_eq!(rest, (5..103).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_reader_does_is_known() {
        let gone = Streams::with(|_| Ok(false), |_| Ok(true)).unwrap();
        let full = Streams::with(|_| Err(Failure::new("full")), |_| Ok(true)).unwrap();
        // It takes what is left where the machine is busy.
        let last = |streams: &Streams| {
            let first = streams.print("x".into());
            while streams.is_behind() {
                thread::yield_now();
            }
            first.and_then(|is_read| Ok(is_read && streams.print(String::new())?))
        };
        assert!(!last(&gone).unwrap());
        assert!(last(&full).is_err());
    }
}
