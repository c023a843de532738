//! Runs a program to its end: watched, bounded, and without being asked anything.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus, Stdio};

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;

use super::ArchiveError;
use crate::watch::Watch;

/// How often to look whether the program has ended.
const LOOK: SpanNs = SpanNs(20_000_000);

/// How much of what a program complains about is kept.
const MOST_COMPLAINTS: usize = 16 << 10;

/// Finds a program in `PATH`, or where an administrator's programs are, which is not in everybody's.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|f| f.is_absolute())
        .map(|f| f.join(name))
        .find(|p| is_program(p))
}

pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// How a program ended, and what it complained about.
pub(crate) struct Ended<T> {
    pub(crate) status: ExitStatus,
    pub(crate) complaints: String,
    pub(crate) output: T,
}

/// Runs `command`, gives its output to `read` in another thread, and calls `look` until it ends.
/// It is killed when the user ends it.
pub(crate) fn run<T: Send>(
    mut command: Command,
    read: impl FnOnce(ChildStdout) -> T + Send,
    watch: &mut dyn Watch,
    mut look: impl FnMut(&mut dyn Watch),
) -> Result<Ended<T>, ArchiveError> {
    let name = PathBuf::from(command.get_program());
    let failed = |source: io::Error| ArchiveError::Start { program: name.clone(), source };
    // What is read here is for programs, not for a user of some language.
    command.env("LC_ALL", "C.UTF-8").env("DEBIAN_FRONTEND", "noninteractive");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failed(io::ErrorKind::BrokenPipe.into()));
    };
    std::thread::scope(|scope| {
        let output = scope.spawn(move || read(stdout));
        let complaints = scope.spawn(move || tail(stderr));
        let mut stopped = false;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if watch.stopped() && !stopped {
                stopped = true;
                let _ = child.kill();
            }
            look(watch);
            let _ = clock::sleep_until(clock::now().after(LOOK));
        };
        let complaints = complaints.join().unwrap_or_default();
        let output = output.join().map_err(|_| failed(io::ErrorKind::InvalidData.into()))?;
        if stopped || watch.stopped() {
            return Err(ArchiveError::Stopped);
        }
        Ok(Ended { status, complaints, output })
    })
}

/// The end of what a program complains about: it says last why it gave up.
fn tail(mut stderr: ChildStderr) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = stderr.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..n]);
        if kept.len() > MOST_COMPLAINTS {
            kept.drain(..kept.len() - MOST_COMPLAINTS);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Reads at most `limit` bytes of a program's output, and the rest for nothing, so that the
/// program is not held up.
pub(crate) fn text(limit: u64) -> impl FnOnce(ChildStdout) -> String + Send {
    move |mut out| {
        let mut bytes = Vec::new();
        let _ = out.by_ref().take(limit).read_to_end(&mut bytes);
        let _ = io::copy(&mut out, &mut io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
