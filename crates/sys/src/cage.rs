//! Execution of arbitrary machine code where it can harm nothing.

use std::convert::Infallible;
use std::{io, mem, ptr};

use crate::checked;

/// CPU time that the code gets: enough for any that does something other than loop.
const MOST_US: libc::suseconds_t = 10_000;

/// The stack that signals are handled on.
const SIGNAL_STACK: usize = 64 << 10;

/// What code does wrong, as signals.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// What the caged process may have no more of than it has.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

const LIMITS: [(Resource, libc::rlim_t); 6] = [
    // Seconds; the timer comes first.
    (libc::RLIMIT_CPU, 1),
    // Not even the stack grows.
    (libc::RLIMIT_AS, 0),
    (libc::RLIMIT_CORE, 0),
    (libc::RLIMIT_FSIZE, 0),
    (libc::RLIMIT_NOFILE, 0),
    (libc::RLIMIT_NPROC, 0),
];

/// Executes `code` in this process, which it ends in any case: by what the code does wrong, by a
/// system call, by its end, or after 10 ms of CPU time. Returns only if the cage cannot be made; the
/// process is then fit for nothing but to end.
///
/// From inside, nothing is to be reached but this process's own private memory. Strict seccomp leaves
/// it four system calls: to read and write, but no file is open; to return from a signal; and to
/// exit. Any other kills it. It cannot grow, cannot undo any of this, and leaves no core file.
///
/// For a process that was executed for this, has one thread, shares no memory with others, and has
/// nothing in its memory that matters. Fails where strict seccomp or executable memory is not to be
/// had: within a seccomp filter (containers), or under a policy that forbids it.
pub fn execute(code: &[u8]) -> io::Error {
    let Err(cause) = enter(code);
    cause
}

fn enter(code: &[u8]) -> io::Result<Infallible> {
    let place = executable(code)?;
    exit_on_faults()?;
    // SAFETY: integer options, and a structure that is live for the call, which only reads it.
    unsafe {
        // What is not dumpable leaves no core, not even to a program that the kernel pipes cores to,
        // which a limit of 0 does not keep it from.
        checked(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
        checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let once = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let timer = libc::itimerval {
            it_interval: once,
            it_value: libc::timeval { tv_sec: 0, tv_usec: MOST_US },
        };
        checked(set_timer(&timer))?;
    }
    // Before the limit of open files forbids nothing that is open already.
    close_all_files()?;
    for (resource, most) in LIMITS {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: the structure is live for the call, which only reads it.
        checked(unsafe { libc::setrlimit(resource, &raw const limit) })?;
    }
    // SAFETY: an integer option; from here on this process makes no call but to exit.
    checked(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT, 0, 0, 0) })?;
    // SAFETY: `place` is the begin of executable memory. Whatever is done there to this process's
    // memory, nothing of it is used afterwards but the call to exit; all else is what the cage is for.
    unsafe {
        let code: extern "C" fn() = mem::transmute(place);
        code();
    }
    exit(0)
}

/// Memory that holds `code`, and can then be executed but no longer written.
fn executable(code: &[u8]) -> io::Result<*mut libc::c_void> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses the place, so nothing is there yet.
    let place = unsafe { libc::mmap(ptr::null_mut(), code.len(), protection, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: so many bytes were just mapped there, and nobody else knows of them.
    unsafe {
        ptr::copy_nonoverlapping(code.as_ptr(), place.cast(), code.len());
        checked(libc::mprotect(place, code.len(), libc::PROT_READ | libc::PROT_EXEC))?;
    }
    Ok(place)
}

/// Has this process end without a word when it does something wrong: the kernel logs such signals
/// where nobody handles them.
fn exit_on_faults() -> io::Result<()> {
    let stack = Box::leak(vec![0_u8; SIGNAL_STACK].into_boxed_slice());
    // The code may have lost the usual stack.
    let stack =
        libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack is as large as stated and never freed. `sigaction` is plain data for which
    // zero is a value: an empty mask. The handler makes one system call.
    unsafe {
        checked(libc::sigaltstack(&raw const stack, ptr::null_mut()))?;
        for signal in FAULTS {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = on_fault as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_ONSTACK;
            checked(libc::sigaction(signal, &raw const action, ptr::null_mut()))?;
        }
    }
    Ok(())
}

extern "C" fn on_fault(_: libc::c_int) {
    exit(0)
}

/// Ends the only thread. The C library's functions end all threads, by a call that kills a process
/// in strict seccomp.
fn exit(status: libc::c_int) -> ! {
    loop {
        // SAFETY: an integer.
        unsafe { libc::syscall(libc::SYS_exit, status) };
    }
}

/// Counts CPU time, of user and kernel, and ends the process by SIGPROF.
///
/// # Safety
/// None is needed: the structure is a reference. It is a call into the C library all the same.
unsafe fn set_timer(timer: &libc::itimerval) -> libc::c_int {
    // SAFETY: the structure is live for the call, which only reads it; the old value is not asked for.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_setitimer,
            libc::ITIMER_PROF,
            ptr::from_ref(timer),
            ptr::null_mut::<libc::itimerval>(),
        )
    };
    if rc == -1 { -1 } else { 0 }
}

fn close_all_files() -> io::Result<()> {
    /// More are open nowhere.
    const MOST: libc::rlim_t = 1 << 20;
    // SAFETY: integers, and `limit` is live and writable. Nothing in this process uses its files any
    // more.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) == 0 {
            return Ok(());
        }
        // Before Linux 5.9 there is no such call.
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        checked(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        let most = libc::c_int::try_from(limit.rlim_max.min(MOST)).unwrap_or(libc::c_int::MAX);
        for fd in 0..most {
            libc::close(fd);
        }
    }
    Ok(())
}
