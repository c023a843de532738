//! The table of loads.

use std::io;
use std::path::Path;

use super::desk::Desk;
use super::{
    cpu, crashme, dbench, disturb, exec, fifos_mmap, file_move, find, fork, fs, hackbench,
    interrupts, launch, memory, network, nfs_compile, p3_fpu, printk, serial, stress_ng, sync,
    truncate, ttcp,
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
    /// Nothing more, but it runs a program of the machine's that starts what it likes: `dbench`.
    Program,
    /// Arguments of the user's for such a program: `stress-ng:--cpu 2`.
    Arguments,
    /// A serial port: `serial:ttyS1`.
    Port,
}

impl Form {
    /// Whether it starts what it likes.
    pub(super) fn is_foreign(self) -> bool {
        matches!(self, Self::Command | Self::Program | Self::Arguments)
    }
}

/// What a load is given.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    /// The load as it is named, with what the name holds.
    pub(super) name: &'a str,
    /// What the directory that its own one lies in is called in messages.
    pub(super) dir: &'a str,
    /// Of content and choices.
    pub(super) seed: u64,
    /// Where it counts its work.
    pub(super) desk: &'a Desk,
    /// Writes the file that a user has named.
    pub(super) write_file: WriteFile,
}

/// Puts a text in place of what is in a file, which is made if there is none. The command has a rule for
/// files that the user names, and gives it to loads.
pub type WriteFile = fn(&Path, &str) -> io::Result<()>;

impl Job<'_> {
    /// What the name of the load holds after its first colon.
    pub(super) fn argument(&self) -> &str {
        self.name.split_once(':').map_or("", |(_, argument)| argument)
    }
}

/// The loads, in the order in which they are listed. A new one is a row here, a file with its `run`,
/// and its name, its unit and the name of its threads among those that `core::redact` keeps.
pub(super) static KINDS: &[Kind] = &[
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
        name: "nfs-compile",
        about: "compiles a tree of C files that lies on an NFS server of the same machine",
        unit: "files",
        thread_name: "load-nfs-comp",
        needs_directory: true,
        form: Form::Plain,
        run: nfs_compile::run,
    },
    Kind {
        name: "ttcp",
        about: "sends bulk data over TCP on the loopback interface, both ways, as ttcp(1)",
        unit: "bytes",
        thread_name: "load-ttcp",
        needs_directory: false,
        form: Form::Plain,
        run: ttcp::run,
    },
    Kind {
        name: "network",
        about: "sends small packets through many sockets on the loopback interface",
        unit: "packets",
        thread_name: "load-network",
        needs_directory: false,
        form: Form::Plain,
        run: network::run,
    },
    Kind {
        name: "hackbench",
        about: "groups of 20 senders and 20 receivers pass messages, as hackbench(8)",
        unit: "messages",
        thread_name: "load-hackbench",
        needs_directory: false,
        form: Form::Plain,
        run: hackbench::run,
    },
    Kind {
        name: "interrupts",
        about: "causes timer interrupts on every CPU, and interrupts from CPU to CPU",
        unit: "requests",
        thread_name: "load-interrupts",
        needs_directory: false,
        form: Form::Plain,
        run: interrupts::run,
    },
    Kind {
        name: "serial:PORT",
        about: "writes to a serial port without pause, as in serial:ttyS1",
        unit: "bytes",
        thread_name: "load-serial",
        needs_directory: false,
        form: Form::Port,
        run: serial::run,
    },
    Kind {
        name: "serial-pty",
        about: "the same with a pseudo-terminal in place of a port",
        unit: "bytes",
        thread_name: "load-serial-pty",
        needs_directory: false,
        form: Form::Plain,
        run: serial::run_pty,
    },
    Kind {
        name: "printk",
        about: "writes 100 lines a second to the kernel's log, 100,000 at most",
        unit: "lines",
        thread_name: "load-printk",
        needs_directory: false,
        form: Form::Plain,
        run: printk::run,
    },
    Kind {
        name: "dbench",
        about: "runs dbench, if it is installed: files as clients of a server use them",
        unit: "operations",
        thread_name: "load-dbench",
        needs_directory: true,
        form: Form::Program,
        run: dbench::run,
    },
    Kind {
        name: "disturb-KIND-TIME",
        about: "delays wakeups in a known way: fifo, timers, syscall, softirq, throttle, and \
                sections of the kernel module, as irqs-off",
        unit: "times",
        thread_name: "load-disturb",
        needs_directory: false,
        form: Form::Disturbance,
        run: disturb::run,
    },
    Kind {
        name: "stress-ng:ARGS",
        about: "runs stress-ng with arguments, if it is installed",
        unit: "starts",
        thread_name: "load-stress-ng",
        needs_directory: true,
        form: Form::Arguments,
        run: stress_ng::run,
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
        self.loads.iter().filter_map(|name| kind_of(name))
    }

    /// Those that there are not.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'static str> {
        self.loads.iter().copied().filter(|name| kind_of(name).is_none())
    }
}

fn kind_of(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
