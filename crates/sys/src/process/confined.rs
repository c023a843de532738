//! Programs that are started with fewer rights than this process has.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::{Child, Program, clone_process, inherited_open_files, reset_signals};
use crate::checked;
use crate::landlock::Rules;
use crate::pipe::pipe;
use crate::signal::resets_file_size;

/// The number that the first inherited descriptor gets.
pub const FIRST_INHERITED: RawFd = 3;

/// The most descriptors that are inherited.
const MOST_INHERITED: usize = 8;

/// The first number that no inherited descriptor gets.
const FIRST_FREE: RawFd = FIRST_INHERITED + 8;

/// Something that a program can have of its own, apart from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Namespace {
    /// Users. Others are permitted to everybody in one's own.
    User,
    /// Networks: there is not even a loopback that is up.
    Network,
    /// Shared memory and message queues of System V and POSIX.
    Ipc,
}

impl Namespace {
    fn flag(self) -> libc::c_int {
        match self {
            Self::User => libc::CLONE_NEWUSER,
            Self::Network => libc::CLONE_NEWNET,
            Self::Ipc => libc::CLONE_NEWIPC,
        }
    }
}

/// A program with fewer rights. It leads a session of its own, gets no environment, ends with the
/// thread that starts it, has no capabilities, gains no privileges by what it executes, and leaves no
/// memory dump. No descriptor is inherited but those given.
#[derive(Debug)]
pub struct Confined<'a> {
    /// What it runs. A relative path begins at `folder`.
    pub program: &'a Program,
    /// Its standard input, output and error.
    pub stdio: [BorrowedFd<'a>; 3],
    /// Further descriptors, at most eight: they get the numbers from [`FIRST_INHERITED`] on.
    pub inherited: &'a [BorrowedFd<'a>],
    /// The folder that it works in, which is opened with this process's rights.
    pub folder: &'a File,
    /// Namespaces of its own.
    pub namespaces: &'a [Namespace],
    /// The user and group that it is, without further groups, if not those of this process.
    pub user: Option<u32>,
    /// What it may open.
    pub rules: Option<&'a Rules>,
    /// The largest file that it may write, bytes.
    pub file_size: u64,
}

/// A step on the way to a confined program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another process, its session, descriptors, folder and limits.
    Process,
    /// The namespace at this place of the list.
    Namespace(usize),
    /// Another user.
    User,
    /// No capabilities, and no new privileges.
    Privileges,
    /// The rules of what it may open.
    Rules,
    /// The program itself.
    Execute,
}

/// Why a confined program was not started.
#[derive(Debug)]
pub struct Refused {
    /// What did not work.
    pub step: Step,
    /// Why not.
    pub source: io::Error,
}

impl Confined<'_> {
    /// Starts the program. Nothing of it runs unless every step has worked.
    pub fn run(&self) -> Result<Child, Refused> {
        let of_process = |source| Refused { step: Step::Process, source };
        if self.inherited.len() > MOST_INHERITED {
            return Err(of_process(io::ErrorKind::InvalidInput.into()));
        }
        let mut argv: Vec<*const libc::c_char> =
            self.program.args.iter().map(|a| a.as_ptr()).collect();
        argv.push(ptr::null());
        let (mut reason, writer) = pipe().map_err(of_process)?;
        // Where no inherited descriptor takes their places.
        let sink = out_of_the_way(&writer).map_err(of_process)?;
        let rules = self.rules.map(out_of_the_way).transpose().map_err(of_process)?;
        let mut descriptors = [-1; 3 + MOST_INHERITED];
        for (place, fd) in descriptors.iter_mut().zip(self.stdio.iter().chain(self.inherited)) {
            *place = fd.as_raw_fd();
        }
        let plan = Plan {
            confined: self,
            argv: argv.as_ptr(),
            descriptors,
            count: 3 + self.inherited.len(),
            rules: rules.as_ref().map(AsRawFd::as_raw_fd),
            resets_file_size: resets_file_size(),
            open_files: inherited_open_files(),
            // SAFETY: takes nothing and cannot fail.
            parent: unsafe { libc::getpid() },
        };
        // SAFETY: a fork, as the child gets memory of its own. It keeps to system calls, allocates
        // nothing, and never returns from the block.
        let pid = unsafe {
            let pid = clone_process(libc::SIGCHLD);
            if pid == 0 {
                let Err((step, errno)) = plan.execute();
                let mut text = [0; 8];
                text[..4].copy_from_slice(&number_of(step).to_ne_bytes());
                text[4..].copy_from_slice(&errno.to_ne_bytes());
                libc::write(sink.as_raw_fd(), text.as_ptr().cast(), text.len());
                libc::_exit(127);
            }
            checked(pid).map_err(of_process)?
        };
        drop((sink, writer));
        let child = Child { pid, leads_group: true, exit: None };
        let mut text = [0; 8];
        // The pipe is closed by the start of the program.
        if reason.read_exact(&mut text).is_err() {
            return Ok(child);
        }
        let _ = child.wait();
        let [a, b, c, d, e, f, g, h] = text;
        let source = io::Error::from_raw_os_error(i32::from_ne_bytes([e, f, g, h]));
        Err(Refused { step: step_of(u32::from_ne_bytes([a, b, c, d])), source })
    }
}

/// The first number of a namespace.
const NAMESPACES: u32 = 16;

fn number_of(step: Step) -> u32 {
    match step {
        Step::Process => 0,
        Step::User => 1,
        Step::Privileges => 2,
        Step::Rules => 3,
        Step::Execute => 4,
        Step::Namespace(place) => NAMESPACES + u32::try_from(place).unwrap_or(0),
    }
}

fn step_of(number: u32) -> Step {
    match number {
        1 => Step::User,
        2 => Step::Privileges,
        3 => Step::Rules,
        4 => Step::Execute,
        NAMESPACES.. => Step::Namespace((number - NAMESPACES) as usize),
        _ => Step::Process,
    }
}

/// Everything that the child needs, prepared before the fork.
struct Plan<'a> {
    confined: &'a Confined<'a>,
    argv: *const *const libc::c_char,
    /// Standard input, output and error, and what is inherited beside.
    descriptors: [RawFd; 3 + MOST_INHERITED],
    count: usize,
    rules: Option<RawFd>,
    resets_file_size: bool,
    open_files: Option<libc::rlimit>,
    parent: libc::pid_t,
}

/// A copy of a descriptor among numbers that no inherited one gets.
fn out_of_the_way(file: &impl AsRawFd) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is open for as long as `file` lives.
    let fd = checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_FREE) })?;
    // SAFETY: the call gave a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn last_errno() -> libc::c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
}

/// The result of a raw system call.
fn done(rc: libc::c_long) -> Result<(), libc::c_int> {
    if rc == -1 { Err(last_errno()) } else { Ok(()) }
}

impl Plan<'_> {
    /// Becomes the program. Returns only the step that did not work, with its error number.
    ///
    /// # Safety
    /// For the child of a fork only. `argv` must be live, end in NUL and be as `execve` wants it.
    unsafe fn execute(&self) -> Result<Infallible, (Step, libc::c_int)> {
        let of = |step| move |errno| (step, errno);
        // SAFETY: as the caller vouches for; what is called here keeps to system calls.
        unsafe {
            self.prepare().map_err(of(Step::Process))?;
            for (place, namespace) in self.confined.namespaces.iter().enumerate() {
                done(libc::syscall(libc::SYS_unshare, namespace.flag()))
                    .map_err(of(Step::Namespace(place)))?;
            }
            if let Some(user) = self.confined.user {
                become_user(user).map_err(of(Step::User))?;
            }
            self.end_with_parent().map_err(of(Step::Process))?;
            drop_privileges().map_err(of(Step::Privileges))?;
            if let Some(rules) = self.rules {
                done(libc::syscall(libc::SYS_landlock_restrict_self, rules, 0_u32))
                    .map_err(of(Step::Rules))?;
            }
            let nothing: [*const libc::c_char; 1] = [ptr::null()];
            libc::execve(self.confined.program.path.as_ptr(), self.argv, nothing.as_ptr());
        }
        Err((Step::Execute, last_errno()))
    }

    /// Signals, session, descriptors, folder and limits.
    ///
    /// # Safety
    /// As for `execute`.
    unsafe fn prepare(&self) -> Result<(), libc::c_int> {
        // SAFETY: system calls without effect on memory but for the limits, which are plain data.
        unsafe {
            reset_signals(self.resets_file_size);
            done(libc::setsid().into())?;
            done(libc::fchdir(self.confined.folder.as_raw_fd()).into())?;
            self.place_descriptors()?;
            for (resource, most) in
                [(libc::RLIMIT_CORE, 0), (libc::RLIMIT_FSIZE, self.confined.file_size)]
            {
                let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                done(libc::getrlimit(resource, &raw mut limit).into())?;
                let most = limit.rlim_max.min(most);
                limit = libc::rlimit { rlim_cur: limit.rlim_cur.min(most), rlim_max: most };
                done(libc::setrlimit(resource, &raw const limit).into())?;
            }
            if let Some(limit) = &self.open_files {
                done(libc::setrlimit(libc::RLIMIT_NOFILE, limit).into())?;
            }
        }
        Ok(())
    }

    /// Gives the descriptors their numbers, and lets the program inherit no other.
    ///
    /// # Safety
    /// As for `execute`.
    unsafe fn place_descriptors(&self) -> Result<(), libc::c_int> {
        let count = libc::c_int::try_from(self.count).unwrap_or(libc::c_int::MAX);
        // Copies out of the way first: one of them may be the number that another goes to.
        let mut copies = [-1; 3 + MOST_INHERITED];
        // SAFETY: system calls on descriptors only.
        unsafe {
            close_on_exec_from(FIRST_INHERITED)?;
            for (copy, &fd) in copies.iter_mut().zip(&self.descriptors).take(self.count) {
                *copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, FIRST_FREE);
                done((*copy).into())?;
            }
            for target in 0..count {
                let copy = copies[usize::try_from(target).unwrap_or(0)];
                done(libc::dup2(copy, target).into())?;
            }
        }
        Ok(())
    }

    /// Has this process killed when the thread that started it ends. Every change of the user or of
    /// capabilities would undo it, so it comes after those.
    ///
    /// # Safety
    /// As for `execute`.
    unsafe fn end_with_parent(&self) -> Result<(), libc::c_int> {
        // SAFETY: integers only.
        unsafe {
            done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0).into())?;
            // Whoever should take this process along may have gone before it asked for that.
            if libc::getppid() == self.parent { Ok(()) } else { Err(libc::ESRCH) }
        }
    }
}

/// Lets no program inherit a descriptor from this number on.
///
/// # Safety
/// For the child of a fork only.
unsafe fn close_on_exec_from(first: RawFd) -> Result<(), libc::c_int> {
    /// More are open nowhere.
    const MOST: libc::rlim_t = 1 << 20;
    // SAFETY: system calls on descriptors; `limit` is live and writable.
    unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) == 0 {
            return Ok(());
        }
        // Linux 5.10 does not have this.
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        done(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit).into())?;
        let most = RawFd::try_from(limit.rlim_max.min(MOST)).unwrap_or(RawFd::MAX);
        for fd in first..most {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    Ok(())
}

/// Becomes a user of this number, with the group of this number and no other.
///
/// # Safety
/// For the child of a fork only.
unsafe fn become_user(user: u32) -> Result<(), libc::c_int> {
    // The C library's functions would have all threads follow, and wait for those that there are not
    // after the fork.
    // SAFETY: integers only, and no memory is read for a list of no groups.
    unsafe {
        done(libc::syscall(libc::SYS_setgroups, 0_usize, ptr::null::<libc::gid_t>()))?;
        done(libc::syscall(libc::SYS_setresgid, user, user, user))?;
        done(libc::syscall(libc::SYS_setresuid, user, user, user))?;
        // Some architectures' older calls know numbers of 16 bits only.
        if libc::geteuid() != user || libc::getegid() != user {
            return Err(libc::EINVAL);
        }
    }
    Ok(())
}

/// Gives up all capabilities, also those that executing a program would give.
///
/// # Safety
/// For the child of a fork only.
unsafe fn drop_privileges() -> Result<(), libc::c_int> {
    /// Of include/uapi/linux/capability.h: three sets, each of two words.
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let none = [0_u32; 6];
    // SAFETY: integers, and two arrays that are live and as large as the kernel reads them.
    unsafe {
        done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        done(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()))
    }
}

#[cfg(test)]
mod tests;
