//! The load `crashme`: executes random bytes, each time in a process that can harm nothing. After
//! crashme of the stress-kernel package.

use std::fs::File;
use std::io::{self, Read};

use wakescope_sys::cage;
use wakescope_sys::process::{Apart, Environment, Exit, Program, Start, pipe, set_nonblocking};

use super::desk::streams;
use super::kinds::Job;
use super::random::Random;
use super::this_program;

/// What this program is called with to execute bytes, and before them what they are.
pub(super) const PART: &str = "launched:crashme";

/// How many bytes are executed at a time. What they jump to is memory of their process, or nothing.
const LENGTH: usize = 4096;

/// The bytes of these calls are known, and so is what has to become of them.
const EXIT: &str = "exit";
const FORBIDDEN: &str = "forbidden";

/// What `EXIT` ends with.
const STATUS: i32 = 7;

/// What a forbidden call ends with.
const KILLED: Exit = Exit::Signal(9);

/// Executes random bytes until the desk says stop. Each process is waited for, so there is never more
/// than one.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { seed, desk, .. } = job;
    let caller = Caller::new().map_err(|e| format!("cannot make a pipe: {e}"))?;
    // Nothing random is executed before it is seen that the cage holds.
    caller.expect(EXIT, Exit::Status(STATUS))?;
    caller.expect(FORBIDDEN, KILLED)?;
    desk.ready();
    let mut random = Random::new(seed);
    while !desk.stopping() {
        caller.call(&random.number().to_string())?;
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
    fn call(&self, bytes: &str) -> Result<Exit, String> {
        let launch = |e| format!("cannot launch a process to execute bytes in: {e}");
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
    fn expect(&self, bytes: &str, want: Exit) -> Result<(), String> {
        match self.call(bytes)? {
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
    let known = |name| machine_code(name).map(|(code, _)| code.to_vec());
    if matches!(name, EXIT | FORBIDDEN) {
        return known(name);
    }
    let seed = name.parse().ok()?;
    let mut bytes = vec![0; LENGTH];
    Random::new(seed).fill(&mut bytes);
    Some(bytes)
}

/// Calls exit(7), or a call that strict seccomp forbids: getppid(2).
#[cfg(target_arch = "x86_64")]
fn machine_code(name: &str) -> Option<(&'static [u8], &'static str)> {
    Some(match name {
        EXIT => (b"\xbf\x07\0\0\0\xb8\x3c\0\0\0\x0f\x05", "mov edi, 7; mov eax, 60; syscall"),
        FORBIDDEN => (b"\xb8\x6e\0\0\0\x0f\x05\xc3", "mov eax, 110; syscall; ret"),
        _ => return None,
    })
}

#[cfg(target_arch = "aarch64")]
fn machine_code(name: &str) -> Option<(&'static [u8], &'static str)> {
    Some(match name {
        EXIT => {
            (b"\xe0\x00\x80\xd2\xa8\x0b\x80\xd2\x01\x00\x00\xd4", "mov x0, 7; mov x8, 93; svc 0")
        }
        FORBIDDEN => {
            (b"\xa8\x15\x80\xd2\x01\x00\x00\xd4\xc0\x03\x5f\xd6", "mov x8, 173; svc 0; ret")
        }
        _ => return None,
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn machine_code(_: &str) -> Option<(&'static [u8], &'static str)> {
    None
}

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
        assert_eq!(bytes_of(EXIT).is_some(), bytes_of(FORBIDDEN).is_some());
    }
}
