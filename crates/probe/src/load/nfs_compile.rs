//! The load `nfs-compile`: compiles a tree of C files that lies on an NFS server of the same machine. After
//! NFS-COMPILE of the stress-kernel package, which compiled a kernel so.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wakescope_core::units::SpanNs;
use wakescope_sys::pipe::pipe;
use wakescope_sys::poll::wait_readable;
use wakescope_sys::proc_files;
use wakescope_sys::process::{
    Apart, Environment, Exit, Program, Start, adopt_orphans, set_nonblocking,
};
use wakescope_sys::serial::numbers;

use super::desk::{Desk, fault, streams};
use super::foreign::end_descendants;
use super::installed;
use super::kinds::Job;

mod mount;
mod tree;

use mount::Mount;

/// The compiler, which Debian has in a package of the same name.
const COMPILER: &str = "gcc";

/// How often to look whether to stop while the compiler works.
const LOOK: SpanNs = SpanNs(50_000_000);

/// How much is kept of what a compiler complains about, in bytes.
const COMPLAINTS_MOST: usize = 16 << 10;

/// What it takes beside the server.
const REMEDY: &str = "run it in a guest of the lab: wakescope lab run --load nfs-compile --packages \
                      gcc,libc6-dev; or export a directory to 127.0.0.1 yourself, mount it by NFS, and name \
                      that: --dir DIR, or --load-dir DIR of measure";

/// Compiles one file after the other in the current directory, removes what came of them when all are done,
/// and begins anew, until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    expect_own_server(job.dir, desk)?;
    let compiler = installed::find(COMPILER, "gcc libc6-dev", desk)?;
    // What a compiler leaves behind that is killed comes to this process.
    adopt_orphans().map_err(|e| format!("cannot adopt the processes of a compiler: {e}"))?;
    let sources = tree::make(job.seed)?;
    let compiler = Compiler::new(&compiler)?;
    // The first run shows whether it can compile at all, and has it in memory.
    let first = &sources[0];
    compiler.compile(first, desk)?;
    desk.ready();
    while !desk.stopping() {
        for source in &sources {
            if desk.stopping() {
                break;
            }
            if compiler.compile(source, desk)? {
                desk.done(1);
            }
        }
        for object in sources.iter().map(|source| source.with_extension("o")) {
            match fs::remove_file(&object) {
                Err(e) if e.kind() != ErrorKind::NotFound && !desk.stopping() => {
                    return Err(fault("remove", &object, &e));
                }
                _ => {}
            }
        }
    }
    end_descendants();
    Ok(())
}

/// Fails unless the current directory lies on an NFS server of this machine.
fn expect_own_server(dir: &str, desk: &Desk) -> Result<(), String> {
    let path = Path::new("/proc/self/mountinfo");
    let mounts = proc_files::text(path).map_err(|e| fault("read", path, &e))?;
    let device = fs::metadata(".").map_err(|e| format!("cannot look at {dir}: {e}"))?.dev();
    match Mount::of(numbers(device), &mounts) {
        Some(mount) if mount.is_own_server() => Ok(()),
        _ => {
            desk.advise(REMEDY);
            Err(format!(
                "{dir} does not lie on an NFS server of this machine, and wakescope exports no directory of a \
                 machine by itself",
            ))
        }
    }
}

/// The compiler, with what is the same in all its runs.
struct Compiler {
    path: PathBuf,
    nothing: File,
}

impl Compiler {
    fn new(path: &Path) -> Result<Self, String> {
        let (nothing, _) = pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
        Ok(Self { path: path.into(), nothing })
    }

    /// Compiles a file. False if the desk said stop before it was done.
    fn compile(&self, source: &Path, desk: &Desk) -> Result<bool, String> {
        let object = source.with_extension("o");
        let names = [source, &object].map(|path| path.to_string_lossy().into_owned());
        let arguments = ["-O1", "-pipe", "-Iinclude", "-c", &names[0], "-o", &names[1]];
        let program = Program::new(&self.path, arguments)
            .map_err(|e| format!("cannot run the compiler: {e}"))?;
        let (ear, complaints) = pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
        set_nonblocking(&ear).map_err(|e| format!("cannot use a pipe: {e}"))?;
        let start = Start {
            program: &program,
            stdio: streams(&self.nothing, &complaints),
            apart: Apart::No,
            dies_with_thread: true,
            environment: Environment::Inherited,
        };
        let child = start
            .run()
            .map_err(|e| desk.not_started(&format!("cannot start {}", self.path.display()), &e))?;
        // Now only the compiler and what it starts hold the other end: it closes when all have ended.
        drop(complaints);
        let Some(said) = listen(ear, desk) else {
            child.kill();
            return Ok(false);
        };
        match child.wait() {
            Exit::Status(0) => Ok(true),
            exit => Err(format!("the compiler ended with {exit}{}", complaint(&said))),
        }
    }
}

/// What comes until the other end is closed, as much as is kept of it; `None` if the desk says stop before.
fn listen(ear: File, desk: &Desk) -> Option<Vec<u8>> {
    let mut said = Vec::new();
    let mut chunk = [0; 4096];
    while !desk.stopping() {
        match (&ear).read(&mut chunk) {
            Ok(0) => return Some(said),
            Ok(length) if said.len() < COMPLAINTS_MOST => said.extend_from_slice(&chunk[..length]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let _ = wait_readable(&ear, LOOK);
            }
            _ => {}
        }
    }
    None
}

/// What a compiler complained about first.
fn complaint(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
    line.map_or_else(String::new, |line| format!(": {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn a_compiler_that_fails_is_quoted() {
        let root = wakescope_testing::Folder::new("nfs-compile");
        let write = |script: &str| {
            let path = root.join("cc");
            wakescope_testing::write_program(&path, script.as_bytes());
            path
        };
        for (script, want) in [
            ("#!/bin/sh\nexit 0\n", Ok(true)),
            (
                "#!/bin/sh\necho 'In x:'; echo 'x.c:1: error: no' >&2; exit 1\n",
                Err("1: x.c:1: error: no"),
            ),
            ("#!/bin/sh\necho killed; exit 4\n", Err("4: killed")),
            ("#!/bin/sh\nexit 2\n", Err("2")),
        ] {
            let got =
                Compiler::new(&write(script)).unwrap().compile(Path::new("x.c"), &test_desk());
            match want {
                Ok(want) => assert_eq!(got, Ok(want)),
                Err(want) => assert!(got.clone().unwrap_err().ends_with(want), "{got:?} {want}"),
            }
        }
    }

    #[test]
    fn a_directory_without_an_nfs_server_is_refused() {
        let e = expect_own_server("/here", &test_desk()).unwrap_err();
        assert!(e.starts_with("/here does not lie on an NFS server of this machine"), "{e}");
    }
}
