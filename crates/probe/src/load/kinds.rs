//! The table of loads.

use std::path::Path;

use super::desk::Desk;
use super::{
    cpu, crashme, disturb, exec, fifos_mmap, file_move, find, fork, fs, launch, memory, p3_fpu,
    sync, truncate,
};

/// What is the same for all loads of a kind.
#[derive(Debug)]
pub(super) struct Kind {
    /// How it is named.
    pub(super) name: &'static str,
    /// What it does in a few words.
    pub(super) about: &'static str,
    /// What a unit of its work is, in the plural.
    pub(super) unit: &'static str,
    /// A name without a parameter, short enough (15 bytes) to name a thread.
    pub(super) thread_name: &'static str,
    /// Whether it needs a directory to work in, which is then the current one.
    pub(super) needs_directory: bool,
    /// What its name holds.
    pub(super) form: Form,
    /// Does the work until the desk says stop. It calls [`Desk::ready`] once it is set up, and
    /// fails with a text that names the cause, before that also if it cannot run on this machine.
    pub(super) run: fn(&Job<'_>) -> Result<(), String>,
}

/// What the name of a load holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Nothing more: `find`.
    Plain,
    /// A disturbance: `disturb-fifo-300us`.
    Disturbance,
    /// A command of the user's: `exec:make`. It starts what it likes: its work is then known to
    /// itself only, and what it leaves behind has to be caught.
    Command,
}

/// What a load is given.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    /// The load as it is named, with what the name holds.
    pub(super) name: &'a str,
    /// What its directory is called in messages; empty if it needs none.
    pub(super) dir: &'a Path,
    /// Of content and choices.
    pub(super) seed: u64,
    /// Where it counts its work.
    pub(super) desk: &'a Desk,
}

/// The loads, in the order in which they are listed. A new one is a row here, a file with its `run`,
/// and its name and unit among those that `core::redact` keeps.
pub(super) static KINDS: [Kind; 14] = [
    Kind {
        name: "find",
        about: "walks a tree of 12,000 files repeatedly, as find(1) does",
        unit: "files",
        thread_name: "load-find",
        needs_directory: true,
        form: Form::Plain,
        run: find::run,
    },
    Kind {
        name: "launch",
        about: "starts a trivial program repeatedly and reads its output",
        unit: "programs",
        thread_name: "load-launch",
        needs_directory: false,
        form: Form::Plain,
        run: launch::run,
    },
    Kind {
        name: "file-move",
        about: "copies two large files over a third alternately, as cp(1) does",
        unit: "bytes",
        thread_name: "load-file-move",
        needs_directory: true,
        form: Form::Plain,
        run: file_move::run,
    },
    Kind {
        name: "cpu",
        about: "keeps every allowed CPU busy",
        unit: "loops",
        thread_name: "load-cpu",
        needs_directory: false,
        form: Form::Plain,
        run: cpu::run,
    },
    Kind {
        name: "fifos-mmap",
        about: "two processes alternate between a FIFO and a mapped file",
        unit: "turns",
        thread_name: "load-fifos-mmap",
        needs_directory: true,
        form: Form::Plain,
        run: fifos_mmap::run,
    },
    Kind {
        name: "p3-fpu",
        about: "multiplies matrices of floating-point numbers on every allowed CPU",
        unit: "products",
        thread_name: "load-p3-fpu",
        needs_directory: false,
        form: Form::Plain,
        run: p3_fpu::run,
    },
    Kind {
        name: "fs",
        about: "writes, reads, truncates and extends files with holes",
        unit: "steps",
        thread_name: "load-fs",
        needs_directory: true,
        form: Form::Plain,
        run: fs::run,
    },
    Kind {
        name: "crashme",
        about: "executes random bytes, in processes that can harm nothing",
        unit: "attempts",
        thread_name: "load-crashme",
        needs_directory: false,
        form: Form::Plain,
        run: crashme::run,
    },
    Kind {
        name: "fork",
        about: "starts processes that end at once",
        unit: "forks",
        thread_name: "load-fork",
        needs_directory: false,
        form: Form::Plain,
        run: fork::run,
    },
    Kind {
        name: "memory",
        about: "maps memory, touches each page and unmaps it, on every allowed CPU",
        unit: "pages",
        thread_name: "load-memory",
        needs_directory: false,
        form: Form::Plain,
        run: memory::run,
    },
    Kind {
        name: "sync",
        about: "writes to a file and waits until the disk has it",
        unit: "syncs",
        thread_name: "load-sync",
        needs_directory: true,
        form: Form::Plain,
        run: sync::run,
    },
    Kind {
        name: "truncate",
        about: "lets a file grow and cuts it short",
        unit: "truncations",
        thread_name: "load-truncate",
        needs_directory: true,
        form: Form::Plain,
        run: truncate::run,
    },
    Kind {
        name: "disturb-KIND-TIME",
        about: "delays wakeups in a known way: fifo, timers, syscall, softirq, throttle",
        unit: "times",
        thread_name: "load-disturb",
        needs_directory: false,
        form: Form::Disturbance,
        run: disturb::run,
    },
    Kind {
        name: "exec:COMMAND",
        about: "runs a shell command, which must keep running",
        unit: "starts",
        thread_name: "load-exec",
        needs_directory: false,
        form: Form::Command,
        run: exec::run,
    },
];

/// Several loads under one name.
#[derive(Debug)]
pub(super) struct Group {
    /// How it is named.
    pub(super) name: &'static str,
    /// The loads, by name.
    pub(super) loads: &'static [&'static str],
}

/// The groups. A load of a group that cannot run on a machine is left out there.
pub(super) static GROUPS: [Group; 1] = [Group {
    // The loads of the stress-kernel package, with which kernels were compared from 2002 on.
    name: "stress-kernel",
    loads: &["nfs-compile", "ttcp", "fifos-mmap", "p3-fpu", "fs", "crashme"],
}];

impl Group {
    /// Those of its loads that there are.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        self.loads.iter().filter_map(|name| KINDS.iter().find(|kind| kind.name == *name))
    }
}
