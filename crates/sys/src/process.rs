//! Processes: start by fork and exec, and end with whoever started them.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::{fmt, io, mem, ptr};

use crate::checked;
use crate::pipe::pipe;
use crate::sched::ThreadId;
use crate::signal::resets_file_size;

mod autogroup;
pub mod confined;
mod copy;

pub use copy::fork;

/// A program with its arguments, as `execv` wants them.
#[derive(Clone, Debug)]
pub struct Program {
    path: CString,
    args: Vec<CString>,
}

impl Program {
    /// The program at `path`, which is not looked for in `PATH`. Its first argument, by custom its
    /// name, is the path. Fails when a text holds a NUL.
    pub fn new<A: AsRef<OsStr>>(
        path: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> io::Result<Self> {
        let text = |s: &OsStr| CString::new(s.as_bytes()).map_err(io::Error::from);
        let path = text(path.as_os_str())?;
        let mut all = vec![path.clone()];
        for arg in args {
            all.push(text(arg.as_ref())?);
        }
        Ok(Self { path, args: all })
    }
}

/// How far a new process stands apart from the one that starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// In the same process group: what the terminal sends to one, it sends to both.
    No,
    /// Leader of a session, and so of a process group, of its own. What remains of the group is
    /// killed when the process is found to have ended.
    Session,
    /// As `Session`, and also the first process of a PID namespace: the kernel kills all that it
    /// started, however far removed, as soon as it ends. Needs `CAP_SYS_ADMIN`.
    Namespace,
    /// As `Namespace`, and also with an IPC namespace: what it makes of System V's semaphores, message
    /// queues and shared memory ends with it, too. Needs a kernel with `CONFIG_IPC_NS` as well.
    PidAndIpcNamespace,
}

impl Apart {
    /// The namespaces of its own, as clone(2) names them.
    fn namespaces(self) -> libc::c_int {
        match self {
            Self::No | Self::Session => 0,
            Self::Namespace => libc::CLONE_NEWPID,
            Self::PidAndIpcNamespace => libc::CLONE_NEWPID | libc::CLONE_NEWIPC,
        }
    }
}

/// The environment of a new process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// That of this process.
    #[default]
    Inherited,
    /// None: what the user set for other programs has no effect on it.
    Empty,
}

/// How to start a process.
#[derive(Debug)]
pub struct Start<'a> {
    /// What it runs.
    pub program: &'a Program,
    /// Its standard input, output and error.
    pub stdio: [BorrowedFd<'a>; 3],
    /// Its group, session and namespace.
    pub apart: Apart,
    /// Whether it is killed when the *thread* that starts it ends.
    pub dies_with_thread: bool,
    /// Its environment.
    pub environment: Environment,
}

impl Start<'_> {
    /// Starts the process by fork and exec: this process's page tables are copied, which
    /// `posix_spawn` would avoid. Returns once the program runs.
    ///
    /// It begins with no signal blocked, and with SIGPIPE and SIGCHLD as by default. Fails with
    /// the reason if it cannot be created or the program cannot be executed.
    pub fn run(&self) -> io::Result<Child> {
        let mut argv: Vec<*const libc::c_char> =
            self.program.args.iter().map(|a| a.as_ptr()).collect();
        argv.push(ptr::null());
        let (reason, sink) = pipe()?;
        let plan = Plan {
            path: self.program.path.as_ptr(),
            argv: argv.as_ptr(),
            stdio: [0, 1, 2].map(|i: usize| self.stdio[i].as_raw_fd()),
            session: self.apart != Apart::No,
            // In a namespace of its own a process cannot see its parent.
            parent: match self.apart {
                Apart::Namespace | Apart::PidAndIpcNamespace => 0,
                // SAFETY: takes nothing and cannot fail.
                _ => unsafe { libc::getpid() },
            },
            dies_with_thread: self.dies_with_thread,
            empty_environment: self.environment == Environment::Empty,
            resets_file_size: resets_file_size(),
            open_files: inherited_open_files(),
        };
        // SAFETY: without CLONE_VM this is a fork: parent and child each go on with memory of
        // their own. Other threads may hold locks at this moment, so the child keeps to calls
        // that are safe in a signal handler, allocates nothing, and never returns from the block.
        let pid = unsafe {
            let pid = clone_process(self.apart.namespaces() | libc::SIGCHLD);
            if pid == 0 {
                let errno = plan.execute().to_ne_bytes();
                libc::write(sink.as_raw_fd(), errno.as_ptr().cast(), errno.len());
                libc::_exit(127);
            }
            checked(pid)?
        };
        drop(sink);
        let child = Child { pid, leads_group: self.apart != Apart::No, exit: None };
        match read_errno(&reason) {
            None => Ok(child),
            Some(errno) => {
                let _ = child.wait();
                Err(io::Error::from_raw_os_error(errno))
            }
        }
    }
}

/// Starts a process that ends at once, with status 0, and executes nothing.
pub fn fork_that_exits() -> io::Result<Child> {
    // SAFETY: a fork, as the child gets memory of its own. It makes one system call and never returns.
    let pid = unsafe {
        let pid = clone_process(libc::SIGCHLD);
        if pid == 0 {
            libc::_exit(0);
        }
        checked(pid)?
    };
    Ok(Child { pid, leads_group: false, exit: None })
}

/// Forks with `flags`. Not `fork(3)`, which takes none.
///
/// # Safety
/// In the child, only calls that are safe in a signal handler may follow.
unsafe fn clone_process(flags: libc::c_int) -> libc::pid_t {
    let flags = libc::c_long::from(flags);
    // SAFETY: no new stack, no pointer: the child goes on with a copy of this one.
    let pid = unsafe {
        // The order of flags and stack differs on s390 only.
        if cfg!(target_arch = "s390x") {
            libc::syscall(libc::SYS_clone, 0_usize, flags, 0_usize, 0_usize, 0_usize)
        } else {
            libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize)
        }
    };
    libc::pid_t::try_from(pid).unwrap_or(-1)
}

/// Everything that the child needs, prepared before the fork.
struct Plan {
    path: *const libc::c_char,
    argv: *const *const libc::c_char,
    stdio: [RawFd; 3],
    session: bool,
    parent: libc::pid_t,
    dies_with_thread: bool,
    empty_environment: bool,
    resets_file_size: bool,
    open_files: Option<libc::rlimit>,
}

/// Gives the program that follows the signals that programs begin with: none blocked, and those that this one
/// ignores with their usual effect; SIGXFSZ only with `file_size`.
///
/// # Safety
/// For the child of a fork only.
unsafe fn reset_signals(file_size: bool) {
    // SAFETY: system calls without effect on memory but for the signal set, which is plain data that
    // `sigemptyset` initialises.
    unsafe {
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        if file_size {
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
    }
}

impl Plan {
    /// Becomes the program. Returns the error number if that does not work.
    ///
    /// # Safety
    /// For the child of a fork only. `path` and `argv` must be live, end in NUL and be as `execv`
    /// wants them.
    unsafe fn execute(&self) -> libc::c_int {
        let failed = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        // SAFETY: all of these are system calls without effect on memory.
        unsafe {
            reset_signals(self.resets_file_size);
            if self.session && libc::setsid() == -1 {
                return failed();
            }
            if self.dies_with_thread {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                // Whoever should take this process along may have gone before it asked for that.
                if self.parent != 0 && libc::getppid() != self.parent {
                    return libc::ESRCH;
                }
            }
            // Copies out of the way first: one of them may be the number that another goes to.
            let mut copies = [-1; 3];
            for (copy, fd) in copies.iter_mut().zip(self.stdio) {
                *copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3);
                // Else the next call would tell of a bad descriptor, and not why there is none.
                if *copy == -1 {
                    return failed();
                }
            }
            for (target, copy) in (0..).zip(copies) {
                if libc::dup2(copy, target) == -1 {
                    return failed();
                }
            }
            // Descriptors beyond it stay open until the program runs.
            if let Some(limit) = &self.open_files {
                if libc::setrlimit(libc::RLIMIT_NOFILE, limit) == -1 {
                    return failed();
                }
            }
            if self.empty_environment {
                let nothing: [*const libc::c_char; 1] = [ptr::null()];
                libc::execve(self.path, self.argv, nothing.as_ptr());
            } else {
                libc::execv(self.path, self.argv);
            }
        }
        failed()
    }
}

/// The error number that comes through the pipe; `None` when it is closed by the exec.
fn read_errno(pipe: &File) -> Option<libc::c_int> {
    use std::io::Read;
    let mut errno = [0; mem::size_of::<libc::c_int>()];
    let mut pipe = pipe;
    pipe.read_exact(&mut errno).ok().map(|()| libc::c_int::from_ne_bytes(errno))
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows: this process was started so that it ignores what becomes of its children.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exit status {status}"),
            Self::Signal(libc::SIGKILL) => f.write_str("SIGKILL"),
            Self::Signal(libc::SIGTERM) => f.write_str("SIGTERM"),
            Self::Signal(libc::SIGSEGV) => f.write_str("SIGSEGV"),
            Self::Signal(libc::SIGABRT) => f.write_str("SIGABRT"),
            Self::Signal(libc::SIGBUS) => f.write_str("SIGBUS"),
            Self::Signal(libc::SIGXFSZ) => f.write_str("SIGXFSZ (the limit of the file size)"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Unknown => f.write_str("an unknown exit status"),
        }
    }
}

fn exit_of(status: libc::c_int) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Status(libc::WEXITSTATUS(status))
    }
}

/// A process that this one started and has not yet waited for, so that its number is its own.
#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
    leads_group: bool,
    exit: Option<Exit>,
}

impl Child {
    /// Its number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Its first thread.
    pub fn thread(&self) -> ThreadId {
        ThreadId(self.pid)
    }

    /// How it ended, if it has. The rest of a group that it led is killed then.
    pub fn try_wait(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            self.exit = match self.has_ended() {
                Ok(false) => None,
                Ok(true) => {
                    self.kill_group();
                    Some(self.collect())
                }
                // Its number may be another's by now.
                Err(_) => Some(Exit::Unknown),
            };
        }
        self.exit
    }

    /// Waits until it ends.
    pub fn wait(mut self) -> Exit {
        self.exit.unwrap_or_else(|| {
            self.leads_group = false;
            self.collect()
        })
    }

    /// Waits until it ends, or a signal handler runs in this thread (`None`).
    pub fn wait_interruptibly(&mut self) -> Option<Exit> {
        let mut status = 0;
        // SAFETY: `status` is live and writable.
        match checked(unsafe { libc::waitpid(self.pid, &raw mut status, 0) }) {
            Ok(_) => self.exit = Some(exit_of(status)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.exit = Some(Exit::Unknown),
        }
        self.exit
    }

    /// Asks it, and the rest of a group that it leads, to end (SIGTERM).
    pub fn terminate(&self) {
        if self.exit.is_none() {
            let whom = if self.leads_group { -self.pid } else { self.pid };
            // SAFETY: as in `kill`.
            unsafe { libc::kill(whom, libc::SIGTERM) };
        }
    }

    /// Kills it, and the rest of a group that it leads. It remains to be waited for.
    pub fn kill(&self) {
        if self.exit.is_none() {
            // SAFETY: sends a signal to a child that was not waited for, so to nobody else.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.kill_group();
        }
    }

    /// Kills what is left of the group. The number stays reserved until the leader is waited for.
    fn kill_group(&self) {
        if self.leads_group {
            // SAFETY: as in `kill`; a group that is gone is no matter.
            unsafe { libc::kill(-self.pid, libc::SIGKILL) };
        }
    }

    /// Whether it has ended; it stays to be collected. Fails when it is gone already, as children
    /// are whose parent ignores SIGCHLD.
    fn has_ended(&self) -> io::Result<bool> {
        // SAFETY: `siginfo_t` is plain data, for which zero is a value.
        let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let id = libc::id_t::try_from(self.pid).unwrap_or(0);
        // SAFETY: `info` is live and writable.
        checked(unsafe { libc::waitid(libc::P_PID, id, &raw mut info, how) })?;
        // SAFETY: `waitid` has filled the field in, or left the zero that stands for "not yet".
        Ok(unsafe { info.si_pid() } != 0)
    }

    fn collect(&self) -> Exit {
        let mut status = 0;
        loop {
            // SAFETY: `status` is live and writable.
            match checked(unsafe { libc::waitpid(self.pid, &raw mut status, 0) }) {
                Ok(_) => return exit_of(status),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Exit::Unknown,
            }
        }
    }
}

/// Collects any one child that has ended, also one that was inherited; `None` if there is none.
/// Not to be mixed with waiting for a [`Child`].
pub fn collect_any() -> Option<(i32, Exit)> {
    let mut status = 0;
    // SAFETY: `status` is live and writable.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then(|| (pid, exit_of(status)))
}

/// Makes this process inherit what its descendants leave behind, in place of PID 1.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: an integer option; the kernel reads no memory.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Kills the process `pid`, which must be a child of this one that was not waited for.
pub fn kill_child(pid: i32) -> io::Result<()> {
    signal_child(pid, libc::SIGKILL)
}

/// Kills all other processes of the PID namespace that this one is the first of. Fails with `ESRCH` if
/// there are none, and without killing any if this is not the first.
pub fn kill_namespace() -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // SAFETY: sends a signal to whom this process can see, which is its namespace, but for itself.
    checked(unsafe { libc::kill(-1, libc::SIGKILL) }).map(drop)
}

/// Asks the process `pid` to end (SIGTERM). It must be a child of this one that was not waited for.
pub fn terminate_child(pid: i32) -> io::Result<()> {
    signal_child(pid, libc::SIGTERM)
}

fn signal_child(pid: i32, signal: libc::c_int) -> io::Result<()> {
    if pid <= 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: sends a signal; the caller vouches for the number.
    checked(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// How many files this process may have open.
pub fn open_files_limit() -> io::Result<u64> {
    open_files_limits().map(|limit| limit.rlim_cur)
}

fn open_files_limits() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is live and writable.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    Ok(limit)
}

/// How large the stack of this process's first thread may become, bytes.
pub fn stack_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is live and writable.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) })?;
    Ok(limit.rlim_cur)
}

/// The limit that this process was started with, once it raises it.
static OPEN_FILES: OnceLock<libc::rlimit> = OnceLock::new();

/// The limit for programs that are started, if it is not that of this process. A higher one would break those
/// that use select(2), which knows 1,024 files.
fn inherited_open_files() -> Option<libc::rlimit> {
    OPEN_FILES.get().copied()
}

/// Sets the limit of this process, and keeps the one that it was started with for those that it starts.
fn set_open_files(limit: libc::rlimit) -> io::Result<u64> {
    let before = open_files_limits()?;
    OPEN_FILES.get_or_init(|| before);
    // SAFETY: `limit` is live and only read.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(limit.rlim_cur)
}

/// Lets this process have as many files open as its hard limit allows (`ulimit -Hn`), and returns how many
/// that are. Programs that it starts get back the limit of before.
pub fn use_all_open_files() -> io::Result<u64> {
    let limit = open_files_limits()?;
    set_open_files(libc::rlimit { rlim_cur: limit.rlim_max, ..limit })
}

/// Lets this process have as many files open as the kernel allows it, and returns how many that are. The
/// privileged may exceed their hard limit. Programs that it starts get back the limit of before.
pub fn raise_open_files() -> io::Result<u64> {
    // Of what every kernel allows the privileged, if not told otherwise (fs.nr_open).
    const MOST: libc::rlim_t = 1 << 20;
    let mut limit = open_files_limits()?;
    let own = limit.rlim_max.min(MOST);
    for most in [MOST, own] {
        limit = libc::rlimit { rlim_cur: most, rlim_max: most.max(limit.rlim_max) };
        if set_open_files(limit).is_ok() {
            return Ok(most);
        }
        limit.rlim_max = own;
    }
    Err(io::Error::last_os_error())
}

/// Makes reads and writes of `file` fail with `WouldBlock` where they would have to wait.
pub fn set_nonblocking(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` lives; flags only.
    unsafe {
        let flags = checked(libc::fcntl(file.as_raw_fd(), libc::F_GETFL))?;
        checked(libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK))?;
    }
    Ok(())
}

/// Makes reads and writes of `file` wait, as they do by default.
pub fn set_blocking(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` lives; flags only.
    unsafe {
        let flags = checked(libc::fcntl(file.as_raw_fd(), libc::F_GETFL))?;
        checked(libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
