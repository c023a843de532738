//! The load `launch`: starts a trivial program repeatedly and reads its output.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};

use wakescope_sys::pipe::pipe;
use wakescope_sys::process::{Apart, Environment, Exit, Program, Start, set_nonblocking};

use super::desk::{Desk, streams};
use super::kinds::Job;
use super::this_program;

/// What this program is called with to be the trivial one that does nothing.
const QUIET: &str = "launched:quiet";

/// What it is called with to print a line.
const PRINT: &str = "launched:print";

/// What it prints.
const LINE: &str = "a program that prints this line was launched\n";

/// What the program has to print, and nothing else, if its first argument says that it was
/// launched by the load of that name. To be asked before anything else is done: what comes first
/// is done again and again.
pub fn launched_output(first_argument: Option<&OsStr>) -> Option<&'static str> {
    match first_argument?.to_str()? {
        QUIET => Some(""),
        PRINT => Some(LINE),
        _ => None,
    }
}

/// Starts one program after the other until the desk says stop. Each is waited for, so there is
/// never more than one.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let path = this_program();
    let program = |arg| {
        Program::new(&path, [arg]).map_err(|e| format!("cannot launch {}: {e}", path.display()))
    };
    // Alternately with and without output: the second shows what starting alone does.
    let programs = [(program(QUIET)?, ""), (program(PRINT)?, LINE)];
    let launcher = Launcher::new().map_err(|e| format!("cannot make a pipe: {e}"))?;
    for (program, line) in &programs {
        launcher.launch(program, line, desk)?;
    }
    desk.ready();
    for (program, line) in programs.iter().cycle() {
        if desk.stopping() {
            break;
        }
        launcher.launch(program, line, desk)?;
        desk.done(1);
    }
    Ok(())
}

/// What is used for each program again.
struct Launcher {
    /// Where nothing comes from.
    nothing: File,
    /// Where programs print to. A pipe and no terminal: an initramfs need not have any.
    screen: File,
    /// The other end of `screen`.
    eye: File,
}

impl Launcher {
    fn new() -> std::io::Result<Self> {
        let (nothing, _) = pipe()?;
        let (eye, screen) = pipe()?;
        set_nonblocking(&eye)?;
        Ok(Self { nothing, screen, eye })
    }

    /// Starts the program, waits until it ends, and reads what it printed, which must be `line`.
    fn launch(&self, program: &Program, line: &str, desk: &Desk) -> Result<(), String> {
        let stdio = streams(&self.nothing, &self.screen);
        let start = Start {
            program,
            stdio,
            apart: Apart::No,
            dies_with_thread: true,
            environment: Environment::Inherited,
        };
        let child = start.run().map_err(|e| desk.not_started("cannot launch a program", &e))?;
        let exit = child.wait();
        // A line fits the pipe, so the program did not have to wait for anybody to read it.
        let mut printed = [0; 256];
        let length = match (&self.eye).read(&mut printed) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => 0,
            other => other.map_err(|e| format!("cannot read what a program printed: {e}"))?,
        };
        if exit != Exit::Status(0) || &printed[..length] != line.as_bytes() {
            let printed = String::from_utf8_lossy(&printed[..length]);
            return Err(format!("a launched program ended with {exit} and printed `{printed}`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn only_its_own_arguments_make_it_the_trivial_program() {
        for (argument, want) in [
            (None, None),
            (Some("measure"), None),
            (Some("launched:other"), None),
            (Some(QUIET), Some("")),
            (Some(PRINT), Some(LINE)),
        ] {
            assert_eq!(launched_output(argument.map(OsStr::new)), want, "{argument:?}");
        }
    }

    #[test]
    fn a_program_must_do_what_it_is_for() {
        let (launcher, desk) = (Launcher::new().unwrap(), &test_desk());
        let shell = |script| Program::new(Path::new("/bin/sh"), ["-c", script]).unwrap();
        launcher.launch(&shell("echo a"), "a\n", desk).unwrap();
        launcher.launch(&shell(""), "", desk).unwrap();
        for (script, fault) in [
            ("echo b", "exit status 0 and printed `b"),
            ("echo a; exit 3", "exit status 3"),
            ("kill -9 $$", "SIGKILL"),
        ] {
            let got = launcher.launch(&shell(script), "a\n", desk).unwrap_err();
            assert!(got.contains(fault), "{script}: {got}");
        }
        let none = Program::new(Path::new("/does/not/exist"), [""; 0]).unwrap();
        assert!(launcher.launch(&none, "", desk).unwrap_err().contains("No such file"));
    }
}
