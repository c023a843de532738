//! The load `crashme`: executes random bytes, each time in a process that can harm nothing. After
//! crashme of the stress-kernel package.

use std::fs::File;
use std::io::{self, Read};

use wakescope_sys::cage;
use wakescope_sys::pipe::pipe;
use wakescope_sys::process::{Apart, Environment, Exit, Program, Start, set_nonblocking};

use super::desk::{Desk, streams};
use super::kinds::Job;
use super::random::Random;
use super::this_program;

/// What this program is called with to execute bytes, and before them what they are.
pub(super) const PART: &str = "launched:crashme";

/// How many bytes are executed at a time. What they jump to is memory of their process, or nothing.
const LENGTH: usize = 4096;

/// Bytes whose end is known, and is seen before any random ones are executed.
const TRIALS: [(&str, Exit); 4] = [
    // They are executed: exit(7).
    ("exit", Exit::Status(7)),
    // No file is open: exit(errno of read(0)), which is EBADF.
    ("files", Exit::Status(9)),
    // They do not run for long: SIGPROF after 10 ms.
    ("loop", Exit::Signal(27)),
    // A call that strict seccomp forbids kills: getppid().
    ("forbidden", Exit::Signal(9)),
];

/// Executes random bytes until the desk says stop. Each process is waited for, so there is never more
/// than one.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { seed, desk, .. } = job;
    let caller = Caller::new().map_err(|e| format!("cannot make a pipe: {e}"))?;
    for (bytes, exit) in TRIALS {
        caller.expect(bytes, exit, desk)?;
    }
    desk.ready();
    let mut random = Random::new(seed);
    while !desk.stopping() {
        caller.call(&random.number().to_string(), desk)?;
        desk.done(1);
    }
    Ok(())
}

/// What is used for each process again.
struct Caller {
    nothing: File,
    complaints: File,
    output: File,
}

impl Caller {
    fn new() -> io::Result<Self> {
        let (nothing, _) = pipe()?;
        let (complaints, output) = pipe()?;
        set_nonblocking(&complaints)?;
        Ok(Self { nothing, complaints, output })
    }

    /// Executes what `bytes` names, and tells how that ended. Fails if it could not be executed.
    fn call(&self, bytes: &str, desk: &Desk) -> Result<Exit, String> {
        let launch = |e| desk.not_started("cannot launch a process to execute bytes in", &e);
        let start = Start {
            program: &Program::new(&this_program(), [PART, bytes]).map_err(launch)?,
            stdio: streams(&self.nothing, &self.output),
            apart: Apart::Session,
            dies_with_thread: true,
            environment: Environment::Empty,
        };
        let exit = start.run().map_err(launch)?.wait();
        let mut said = [0; 512];
        // What could not be executed is said before the process closes its files.
        match (&self.complaints).read(&mut said) {
            Ok(length) if length > 0 => {
                Err(String::from_utf8_lossy(&said[..length]).trim().to_owned())
            }
            _ => Ok(exit),
        }
    }

    /// Executes bytes whose end is known.
    fn expect(&self, bytes: &str, want: Exit, desk: &Desk) -> Result<(), String> {
        match self.call(bytes, desk)? {
            exit if exit == want => Ok(()),
            Exit::Status(errno) => {
                let e = io::Error::from_raw_os_error(errno);
                Err(format!(
                    "{CONFINE}: {e}; crashme needs strict seccomp (prctl, CONFIG_SECCOMP), \
                     which is not to be had inside a container's filter"
                ))
            }
            exit => Err(format!("{CONFINE}: the bytes `{bytes}` ended with {exit}")),
        }
    }
}

const CONFINE: &str = "cannot confine a process that executes random bytes";

/// The bytes of this name, or the random ones of this number.
fn bytes_of(name: &str) -> Option<Vec<u8>> {
    let trials = &TRIALS.map(|(trial, _)| trial);
    if let Some(index) = trials.iter().position(|trial| *trial == name) {
        return MACHINE_CODE.get(index).map(|code| code.to_vec());
    }
    let mut bytes = vec![0; LENGTH];
    Random::new(name.parse().ok()?).fill(&mut bytes);
    Some(bytes)
}

/// What the trials execute.
#[cfg(target_arch = "x86_64")]
const MACHINE_CODE: &[&[u8]] = &[
    // mov edi, 7; mov eax, 60; syscall
    b"\xbf\x07\0\0\0\xb8\x3c\0\0\0\x0f\x05",
    // xor eax, eax; xor edi, edi; mov rsi, rsp; mov edx, 1; syscall; neg eax; mov edi, eax;
    // mov eax, 60; syscall
    b"\x31\xc0\x31\xff\x48\x89\xe6\xba\x01\0\0\0\x0f\x05\xf7\xd8\x89\xc7\xb8\x3c\0\0\0\x0f\x05",
    // jmp $
    b"\xeb\xfe",
    // mov eax, 110; syscall; ret
    b"\xb8\x6e\0\0\0\x0f\x05\xc3",
];

#[cfg(target_arch = "aarch64")]
const MACHINE_CODE: &[&[u8]] = &[
    // mov x0, 7; mov x8, 93; svc 0
    b"\xe0\x00\x80\xd2\xa8\x0b\x80\xd2\x01\x00\x00\xd4",
    // mov x0, 0; mov x1, sp; mov x2, 1; mov x8, 63; svc 0; neg x0, x0; mov x8, 93; svc 0
    b"\x00\x00\x80\xd2\xe1\x03\x00\x91\x22\x00\x80\xd2\xe8\x07\x80\xd2\x01\x00\x00\xd4\
      \xe0\x03\x00\xcb\xa8\x0b\x80\xd2\x01\x00\x00\xd4",
    // b .
    b"\x00\x00\x00\x14",
    // mov x8, 173; svc 0; ret
    b"\xa8\x15\x80\xd2\x01\x00\x00\xd4\xc0\x03\x5f\xd6",
];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE_CODE: &[&[u8]] = &[];

/// Executes the bytes of this name, in this process, which does not survive it.
pub(super) fn play(name: &str) -> Result<(), String> {
    let bytes = bytes_of(name).ok_or("crashme knows only x86-64 and arm64")?;
    Err(format!("{CONFINE}: {}", cage::execute(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_names_and_random_ones_a_number() {
        let random = ["1", "1", "2"].map(|seed| bytes_of(seed).unwrap());
        assert_eq!((random[0] == random[1], random[0] == random[2]), (true, false));
        assert_eq!(random[0].len(), LENGTH);
        assert_eq!(bytes_of("other"), None);
        let known = TRIALS.map(|(trial, _)| bytes_of(trial).map_or(0, |bytes| bytes.len()));
        assert!(MACHINE_CODE.is_empty() || known.iter().all(|length| *length > 1), "{known:?}");
    }
}
