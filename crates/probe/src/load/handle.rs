//! A load as its parent sees it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use wakescope_core::run::LoadResult;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::validity::LeftOut;
use wakescope_sys::clock;
use wakescope_sys::pipe::pipe;
use wakescope_sys::poll::wait_readable;
use wakescope_sys::process::{Apart, Child, Environment, Exit, Program, Start, set_nonblocking};

use super::Spec;
use super::keeper::{KEEPER_VERB, MARK};
use super::report::LONGEST;
use super::scratch::clean_up_leftovers;
use super::seen::{Seen, Status};
use super::serial::is_own_terminal;

/// How long a keeper may take to answer. It may be one of many that want a slow CPU.
const ANSWER_PATIENCE: SpanNs = SpanNs(5_000_000_000);

/// How long it may take to stop work and remove its files, before it is killed.
const END_PATIENCE: SpanNs = SpanNs(30_000_000_000);

/// How long a killed keeper may take to be gone, before it is left to PID 1: a process that waits
/// for a disk cannot be killed, and nobody should wait for it.
const KILL_PATIENCE: SpanNs = SpanNs(5_000_000_000);

/// What a load needs to know.
#[derive(Clone, Debug)]
pub struct Options {
    /// This program, by a path that executes it: see [`super::this_program`].
    pub program: PathBuf,
    /// Where its files are made: see [`super::default_dir`].
    pub dir: PathBuf,
    /// Of names and content of its files.
    pub seed: u64,
}

/// A load that runs. Ends when this is dropped, or when this process is gone.
#[derive(Debug)]
pub struct Load {
    spec: Spec,
    /// Where its files are removed if its keeper is killed; `None` if they are to stay then.
    dir: Option<PathBuf>,
    child: Child,
    /// Closed to end the load.
    requests: Option<File>,
    reports: File,
    unread: Vec<u8>,
    reports_ended: bool,
    seen: Seen,
}

impl Load {
    /// Starts a load; its set-up then goes on by itself. It inherits the CPUs that the calling
    /// thread is bound to, but neither its policy nor its blocked signals.
    pub fn start(spec: Spec, options: &Options) -> Result<Self, LoadError> {
        Self::spawn(&spec, options)
            .map_err(|source| LoadError::Start { load: spec.to_string(), source })
    }

    fn spawn(spec: &Spec, options: &Options) -> io::Result<Self> {
        if spec.name().strip_prefix("serial:").is_some_and(is_own_terminal) {
            return Err(io::Error::other("that is the terminal that this command was started in"));
        }
        let (seed, name) = (options.seed.to_string(), spec.as_argument());
        let args = [
            KEEPER_VERB.as_ref(),
            "--seed".as_ref(),
            seed.as_ref(),
            "--dir".as_ref(),
            options.dir.as_os_str(),
            "--".as_ref(),
            name.as_ref(),
        ];
        let program = Program::new(&options.program, args)?;
        let (requests_read, requests) = pipe()?;
        let (reports, reports_write) = pipe()?;
        // Neither a full nor an empty pipe may ever hold the measurement up.
        set_nonblocking(&requests)?;
        set_nonblocking(&reports)?;
        let stderr = io::stderr();
        let start = |apart| {
            let stdio = [requests_read.as_fd(), reports_write.as_fd(), stderr.as_fd()];
            Start {
                program: &program,
                stdio,
                apart,
                dies_with_thread: false,
                environment: Environment::Inherited,
            }
            .run()
        };
        // A command may start what it likes; a namespace catches all of it. Loads of our own start
        // nothing that lasts, and process numbers in two namespaces would slow down their forks.
        // Programs that are ended early leave semaphores behind, dbench for instance. A user's command
        // may need those of other programs.
        let namespaces: &[Apart] = match (spec.is_program(), spec.is_foreign()) {
            (true, _) => &[Apart::PidAndIpcNamespace, Apart::Namespace],
            (false, true) => &[Apart::Namespace],
            (false, false) => &[],
        };
        let child = namespaces.iter().find_map(|&apart| start(apart).ok());
        let child = child.map_or_else(|| start(Apart::Session), Ok)?;
        Ok(Self {
            spec: spec.clone(),
            dir: Some(options.dir.clone()),
            child,
            requests: Some(requests),
            reports,
            unread: Vec::new(),
            reports_ended: false,
            seen: Seen::default(),
        })
    }

    /// Which load it is.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The process number of its keeper.
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Waits until its set-up is done. Be patient: the 12,000 files of `find`, made in 0.2 s in
    /// memory, took 8 s on ext4 on a machine that was busy with other things.
    pub fn wait_ready(&mut self, patience: SpanNs) -> Result<(), LoadError> {
        let deadline = clock::now().after(patience);
        self.listen_until(deadline, |load| load.seen.ready.is_some());
        let status = self.status();
        match (status.alive, status.ready) {
            (true, true) => Ok(()),
            (true, false) => Err(LoadError::NotReady { load: self.spec.to_string(), patience }),
            (false, _) => Err(LoadError::Died {
                load: self.spec.to_string(),
                fault: self.seen.result(&self.spec, &status).fault_with_last_words(),
                remedy: self.seen.remedy.clone(),
            }),
        }
    }

    /// What it leaves out of its work on this machine, as far as heard.
    pub fn omissions(&self) -> impl Iterator<Item = LeftOut> + '_ {
        self.seen.omissions.iter().map(|(part, reason)| LeftOut {
            part: part.clone(),
            of: self.spec.to_string(),
            reason: reason.clone(),
        })
    }

    /// What helps, once it has died.
    pub fn remedy(&mut self) -> Option<String> {
        if self.reports_ended {
            // So that the cause of its end is known.
            self.await_exit(KILL_PATIENCE);
        }
        self.status();
        self.seen.remedy.clone()
    }

    /// What leaving it out means, if `error` is why it could not start and it was not asked for by
    /// itself, but as one of a group.
    pub fn can_be_left_out(&self, error: &LoadError) -> Option<LeftOut> {
        match (error, self.spec.group()) {
            (LoadError::Died { fault, .. }, Some(group)) if self.seen.ready.is_none() => {
                Some(LeftOut {
                    part: self.spec.to_string(),
                    of: group.into(),
                    reason: fault.clone(),
                })
            }
            _ => None,
        }
    }

    /// Begins the measured window, and ends the time before. Does not wait: the window begins when
    /// the keeper takes the request up, and its work is counted from that very moment.
    pub fn mark(&mut self) {
        self.seen.begin = None;
        self.seen.begin_asked = Some(clock::now());
        self.seen.begin_mark = self.request_mark();
    }

    /// Bounds and divides the time in which it runs alone, which says how fast it is by itself: to be called
    /// when that begins, in its middle, and when it ends. Does not wait.
    pub(crate) fn mark_alone(&mut self) {
        let mark = self.request_mark();
        self.seen.alone_marks.extend(mark);
    }

    /// How it is doing, as far as heard. Does not wait. To be asked every few minutes at least, for
    /// a pipe holds no more signs of life.
    pub fn status(&mut self) -> Status {
        self.listen();
        if self.reports_ended && self.seen.fault.is_none() {
            let exit = self.child.try_wait();
            self.seen.fault = exit.map(obituary);
            if exit == Some(Exit::Signal(KILLED)) {
                self.seen.remedy.get_or_insert_with(|| MORE_MEMORY.into());
            }
        }
        let seen = &self.seen;
        Status {
            alive: seen.fault.is_none() && !self.reports_ended,
            ready: seen.ready.is_some(),
            work: seen.last.map_or(0, |r| r.work),
            heard_at: seen.last.map(|r| r.at),
            work_grew_at: seen.grew_at,
            fault: match &seen.fault {
                Some(fault) => fault.clone(),
                // It closes the pipe by ending, a moment before it can be found to have ended.
                None if self.reports_ended => "its process is ending".into(),
                None => String::new(),
            },
            last_words: seen.last_words.clone().unwrap_or_default(),
        }
    }

    /// Ends the load and waits until it is gone with its files. The result counts the work from the
    /// last [`Self::mark`] to this call, or from the end of the set-up if there was none. A keeper
    /// that hangs is killed: after 5 s without an answer, or 30 s without an end.
    pub fn finish(self) -> LoadResult {
        finish_all(vec![self]).pop().unwrap_or_default()
    }

    fn request_end_mark(&mut self) {
        self.seen.end_mark = self.request_mark();
    }

    fn await_end_mark(&mut self, deadline: MonoNs) {
        // Also where the request could not be made, for then the keeper is about to end.
        self.listen_until(deadline, |load| load.seen.end.is_some());
        if self.status().alive && self.seen.end.is_none() {
            self.seen.fault = Some(format!("it did not answer within {ANSWER_PATIENCE}"));
            self.child.kill();
        }
    }

    /// The number of the mark; `None` if the request could not be made.
    fn request_mark(&mut self) -> Option<u32> {
        // It fails when the keeper is gone, which `status` tells, or does not read any more, which
        // shows when the answer does not come.
        self.requests.as_ref()?.write_all(&[MARK]).ok()?;
        self.seen.marks = self.seen.marks.wrapping_add(1);
        Some(self.seen.marks)
    }

    /// Hears reports until `done`, or the deadline, or their end.
    fn listen_until(&mut self, deadline: MonoNs, done: impl Fn(&Self) -> bool) {
        loop {
            self.listen();
            let left = deadline.since(clock::now());
            if self.reports_ended {
                // So that the cause of its end is known.
                self.await_exit(KILL_PATIENCE);
                break;
            }
            if done(self) || self.seen.fault.is_some() || left.0 == 0 {
                break;
            }
            if wait_readable(&self.reports, left).is_err() {
                break;
            }
        }
    }

    /// Hears what there is.
    fn listen(&mut self) {
        let mut chunk = [0; 4096];
        // What a pipe holds; a keeper that has more to say has gone mad.
        for _ in 0..64 {
            match self.reports.read(&mut chunk) {
                Ok(0) => self.reports_ended = true,
                Ok(length) => {
                    self.unread.extend_from_slice(&chunk[..length]);
                    self.take_lines();
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.reports_ended = true,
            }
            break;
        }
    }

    fn take_lines(&mut self) {
        while let Some(end) = self.unread.iter().position(|&b| b == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            match String::from_utf8_lossy(&line[..end]).parse() {
                Ok(report) => self.seen.take(report),
                Err(_) => self.seen.object(),
            }
        }
        if self.unread.len() > LONGEST {
            self.unread.clear();
            self.seen.object();
        }
    }

    fn await_exit(&mut self, patience: SpanNs) -> Option<Exit> {
        let deadline = clock::now().after(patience);
        loop {
            let exit = self.child.try_wait();
            if exit.is_some() || clock::now() >= deadline {
                return exit;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the keeper is gone; kills it if it does not go. One that was killed has left its files.
    fn end(&mut self) {
        self.requests = None;
        let mut exit = self.await_exit(END_PATIENCE);
        if exit.is_none() {
            self.child.kill();
            exit = self.await_exit(KILL_PATIENCE);
        }
        if let (Some(Exit::Signal(_)), Some(dir)) = (exit, &self.dir) {
            clean_up_leftovers(dir);
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends loads, all at once: their windows end together, and they clean up side by side.
/// Otherwise as [`Load::finish`].
pub fn finish_all(mut loads: Vec<Load>) -> Vec<LoadResult> {
    let mut results = close_windows(&mut loads);
    // All are told before the first is waited for.
    loads.iter_mut().for_each(|load| load.requests = None);
    for (load, result) in loads.iter_mut().zip(&mut results) {
        load.end();
        load.listen();
        result.not_saved = load.seen.not_saved.take();
    }
    results
}

/// Ends loads as [`finish_all`] does, but kills them, and their files stay. For a machine that
/// restarts next, where removing the 12,000 files of `find` would be a twentieth of all it does.
pub fn abandon_all(mut loads: Vec<Load>) -> Vec<LoadResult> {
    let results = close_windows(&mut loads);
    for load in &mut loads {
        load.child.kill();
        load.dir = None;
    }
    results
}

/// Ends the windows of all loads, and tells what was done in them.
fn close_windows(loads: &mut [Load]) -> Vec<LoadResult> {
    for load in loads.iter_mut() {
        load.request_end_mark();
    }
    let deadline = clock::now().after(ANSWER_PATIENCE);
    for load in loads.iter_mut() {
        load.await_end_mark(deadline);
    }
    let results = loads.iter_mut().map(|load| {
        let status = load.status();
        load.seen.result(&load.spec, &status)
    });
    results.collect()
}

/// SIGKILL.
const KILLED: i32 = 9;

/// What helps if it was the kernel that killed a load: these go first when memory runs out.
const MORE_MEMORY: &str = "see whether memory ran out (dmesg), and raise the limit of this cgroup if that was it (memory.max)";

/// Why a keeper ended that did not say so itself.
fn obituary(exit: Exit) -> String {
    match exit {
        Exit::Signal(_) => format!("its process was killed ({exit})"),
        _ => format!("its process ended unexpectedly ({exit})"),
    }
}

/// Why there is no load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its process could not be started.
    #[error("cannot start the load `{load}`: {source}")]
    Start {
        /// The load's name.
        load: String,
        /// Why.
        source: io::Error,
    },
    /// It gave up.
    #[error("the load `{load}` died: {fault}")]
    Died {
        /// The load's name.
        load: String,
        /// Why.
        fault: String,
        /// What the user can do about it, as far as the load knows.
        remedy: Option<String>,
    },
    /// It was not set up in time.
    #[error("the load `{load}` was not ready within {patience}")]
    NotReady {
        /// The load's name.
        load: String,
        /// How long it had.
        patience: SpanNs,
    },
    /// There is one file for the logs of two.
    #[error(
        "the loads `{first}` and `{second}` would write their logs to one file \
         (WAKESCOPE_DISTURBANCES)"
    )]
    OneLog {
        /// The name of a load.
        first: String,
        /// That of another one.
        second: String,
    },
}

impl LoadError {
    /// What the user can do about it, as far as that is known.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Died { remedy, .. } => remedy.as_deref(),
            Self::OneLog { .. } => Some("run one at a time, or unset WAKESCOPE_DISTURBANCES"),
            Self::Start { .. } | Self::NotReady { .. } => None,
        }
    }
}
