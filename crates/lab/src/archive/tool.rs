//! Runs a program to its end: watched, bounded, and without being asked anything.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::pipe::pipe;
use wakescope_sys::process::{Apart, Child, Environment, Exit, Program, Start};

use super::ArchiveError;
use crate::watch::Watch;

/// How often to look whether the program has ended.
const LOOK: SpanNs = SpanNs(20_000_000);

/// How much of what a program complains about is kept.
const MOST_COMPLAINTS: usize = 16 << 10;

/// Finds a program in `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|path| is_program(path))
}

pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A program, its arguments, and what is different in its environment.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    program: PathBuf,
    /// Arguments of `env`, which changes the environment and the folder.
    changes: Vec<OsString>,
    args: Vec<OsString>,
}

impl Tool {
    pub(crate) fn new(program: impl Into<PathBuf>) -> Self {
        // What is read is for programs, not for a user of some language; and a loader that is not
        // the system's must not be led astray.
        let env = ["--unset=LD_LIBRARY_PATH", "--unset=LD_PRELOAD", "LC_ALL=C.UTF-8"];
        Self {
            program: program.into(),
            changes: env.map(OsString::from).to_vec(),
            args: Vec::new(),
        }
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &Path) -> Self {
        let mut text = OsString::from(name);
        text.push("=");
        text.push(value);
        self.changes.push(text);
        self
    }

    /// Starts it in `folder`.
    pub(crate) fn current_dir(mut self, folder: &Path) -> Self {
        let mut text = OsString::from("--chdir=");
        text.push(folder);
        self.changes.insert(0, text);
        self
    }

    fn start(&self, output: &File, complaints: &File) -> io::Result<Child> {
        let env = find("env")
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no `env` in $PATH"))?;
        // Without this, `env` would complain in its place, in words of its own.
        if !is_program(&self.program) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it is not a program"));
        }
        // A path with `=` in it would be a variable to `env`. What it makes is for its owner to write
        // only, for the lab's cache is refused otherwise.
        let shell = ["sh", "-c", r#"umask go-w; exec "$0" "$@""#].map(OsString::from);
        let own = [self.program.clone().into_os_string()];
        let words = self.changes.iter().chain(&shell).chain(&own).chain(&self.args).cloned();
        let program = Program::new(&env, words)?;
        let input = File::open("/dev/null")?;
        Start {
            program: &program,
            stdio: [input.as_fd(), output.as_fd(), complaints.as_fd()],
            // What it started in turn ends with it, and Ctrl-C is for this process to hear.
            apart: Apart::Session,
            dies_with_thread: true,
            environment: Environment::Inherited,
        }
        .run()
    }
}

/// How a program ended, and what it complained about.
pub(crate) struct Ended<T> {
    pub(crate) exit: Exit,
    pub(crate) complaints: String,
    pub(crate) output: T,
}

impl<T> Ended<T> {
    pub(crate) fn success(&self) -> bool {
        self.exit == Exit::Status(0)
    }
}

/// Runs `tool`, gives its output to `read` in another thread, and calls `look` until it ends. It
/// is killed when the user ends it, or when `look` sees no sense in going on.
pub(crate) fn run<T: Send>(
    tool: &Tool,
    read: impl FnOnce(File) -> T + Send,
    watch: &mut dyn Watch,
    mut look: impl FnMut(&mut dyn Watch) -> Result<(), ArchiveError>,
) -> Result<Ended<T>, ArchiveError> {
    let failed = |source| ArchiveError::Start { program: tool.program.clone(), source };
    let (output, output_end) = pipe().map_err(failed)?;
    let (complaints, complaints_end) = pipe().map_err(failed)?;
    let mut child = tool.start(&output_end, &complaints_end).map_err(failed)?;
    // Nobody but the program holds these ends, so that they close with it.
    drop((output_end, complaints_end));
    std::thread::scope(|scope| {
        let output = scope.spawn(move || read(output));
        let complaints = scope.spawn(move || tail(complaints));
        let mut given_up = None;
        let exit = loop {
            if let Some(exit) = child.try_wait() {
                break exit;
            }
            if given_up.is_none() {
                let stopped = if watch.stopped() { Err(ArchiveError::Stopped) } else { Ok(()) };
                if let Err(e) = stopped.and_then(|()| look(watch)) {
                    given_up = Some(e);
                    child.kill();
                }
            }
            let _ = clock::sleep_until(clock::now().after(LOOK));
        };
        let complaints = complaints.join().unwrap_or_default();
        let output = output.join().map_err(|_| failed(io::ErrorKind::InvalidData.into()))?;
        match given_up {
            Some(e) => Err(e),
            None => Ok(Ended { exit, complaints, output }),
        }
    })
}

/// The end of what a program complains about: it says last why it gave up.
fn tail(mut stderr: File) -> String {
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
pub(crate) fn text(limit: u64) -> impl FnOnce(File) -> String + Send {
    move |mut out| {
        let mut bytes = Vec::new();
        let _ = out.by_ref().take(limit).read_to_end(&mut bytes);
        let _ = io::copy(&mut out, &mut io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Step, Unwatched};
    use wakescope_testing::Folder;

    fn shell(script: &str) -> Tool {
        Tool::new("/bin/sh").args(["-c", script])
    }

    fn end(tool: &Tool) -> Ended<String> {
        run(tool, text(10), &mut Unwatched, |_| Ok(())).unwrap()
    }

    #[test]
    fn programs_are_run_in_a_known_environment() {
        let folder = Folder::new("a=b");
        let tool = shell("echo $LC_ALL; echo said >&2; exit 3");
        let ended = end(&tool);
        assert_eq!((ended.exit, ended.success()), (Exit::Status(3), false));
        assert_eq!((&*ended.output, &*ended.complaints), ("C.UTF-8\n", "said\n"));
        let tool = shell("echo $X; pwd | tail -c 4").env("X", Path::new("a b"));
        assert!(end(&tool.current_dir(folder.path())).output.starts_with("a b\n"));

        let program = folder.path().join("program");
        std::fs::copy("/bin/true", &program).unwrap();
        assert!(end(&Tool::new(program)).success(), "a path like a variable");
        for missing in ["/does/not/exist", "/dev/null"] {
            let e = run(&Tool::new(missing), text(1), &mut Unwatched, |_| Ok(())).err().unwrap();
            assert!(e.to_string().starts_with("cannot start /"), "{e}");
        }
    }

    #[test]
    fn what_programs_say_is_bounded() {
        let tool = shell("head -c 1000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero >&2");
        let ended = end(&tool);
        assert!(ended.success());
        assert_eq!((ended.output.len(), ended.complaints.len()), (10, MOST_COMPLAINTS));
    }

    #[test]
    fn a_program_that_is_stopped_is_gone_with_all_it_started() {
        struct Stop(u32);
        impl Watch for Stop {
            fn step(&mut self, _: &Step<'_>) {}
            fn stopped(&mut self) -> bool {
                self.0 += 1;
                self.0 > 2
            }
        }
        // The output is not at its end as long as anybody has it.
        let tool = shell("sleep 1000 & sleep 1000");
        let e = run(&tool, text(10), &mut Stop(0), |_| Ok(())).err().unwrap();
        assert!(matches!(e, ArchiveError::Stopped));
        let full = || ArchiveError::NoTool("x");
        let e = run(&tool, text(10), &mut Unwatched, |_| Err(full())).err().unwrap();
        assert!(matches!(e, ArchiveError::NoTool(_)));
    }
}
