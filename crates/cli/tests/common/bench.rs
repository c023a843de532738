//! A place for the command to work in, and the means to see what it leaves.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use wakescope_core::run::LoadResult;
use wakescope_core::units::SpanNs;
use wakescope_probe::load::{Load, Options};
use wakescope_sys::clock;
use wakescope_sys::file::{open_directory, try_lock};
use wakescope_sys::signal::end_by_default;
#[allow(unused_imports)] // Each test takes what it needs.
pub(crate) use wakescope_testing::{Disk, skip};
use wakescope_testing::{Folder, copy_program, write_program};

/// Long enough for any machine; nothing waits for all of it unless the test fails.
pub(crate) const PATIENCE: SpanNs = SpanNs(60_000_000_000);

/// A user that owns nothing.
pub(crate) const NOBODY: u32 = 65534;

/// The variable by which every process that stems from a test is known.
const MARK: &str = "WAKESCOPE_TEST";

/// A test with a directory of its own and a mark on every process that stems from it.
pub(crate) struct Test {
    mark: String,
    pub(crate) dir: Folder,
    /// Where loads work. In memory if possible: dozens of trees of 12,000 files are no good to a
    /// disk.
    pub(crate) loads: PathBuf,
    /// The command.
    pub(crate) program: PathBuf,
    /// Who runs it, if not the user that runs the test.
    pub(crate) user: Option<u32>,
}

impl Test {
    pub(crate) fn new(name: &str) -> Self {
        let dir = Folder::new(name);
        let mark = dir.file_name().unwrap().to_str().unwrap().to_owned();
        let memory = Path::new("/dev/shm").join(&mark);
        let loads = if fs::create_dir(&memory).is_ok() { memory } else { dir.to_path_buf() };
        let program = PathBuf::from(env!("CARGO_BIN_EXE_wakescope"));
        Self { mark, loads, dir, program, user: None }
    }

    /// Lets loads work where programs usually have their files.
    pub(crate) fn use_disk(&mut self) {
        if self.loads != *self.dir {
            fs::remove_dir(&self.loads).unwrap();
            self.loads = self.dir.to_path_buf();
        }
    }

    pub(crate) fn options(&self) -> Options {
        let (program, dir) = (self.program.clone(), self.loads.clone());
        Options { program, dir, seed: 1 }
    }

    /// Starts a load of this process, through a script that marks it and is gone when it runs.
    pub(crate) fn start(&self, name: &str) -> Load {
        let program = self.dir.join("marking");
        let command = self.program.display();
        let script = format!("#!/bin/sh\nexport {MARK}={}\nexec {command} \"$@\"\n", self.mark);
        write_program(&program, script.as_bytes());
        let options = Options { program, ..self.options() };
        Load::start(name.parse().unwrap(), &options).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Starts `wakescope load` with `args`.
    pub(crate) fn run(&self, args: &[&str]) -> Running {
        self.start_command(&[&["load"], args].concat())
    }

    /// Starts `wakescope` with `args`.
    pub(crate) fn start_command(&self, args: &[&str]) -> Running {
        Running::start(&mut self.command(args))
    }

    /// Runs `wakescope` with `args` to its end.
    pub(crate) fn ended(&self, args: &[&str]) -> Ended {
        self.start_command(args).output()
    }

    /// Runs `wakescope` with `args`, which must end well and without a word on standard error, and
    /// returns what it printed.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let ended = self.ended(args);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
        ended.stdout
    }

    /// `wakescope` with `args`, in the test's directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(&self.program);
        command.args(args);
        command
    }

    /// Any program, as this test runs what it runs.
    pub(crate) fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env(MARK, &self.mark).env("TMPDIR", &self.loads).current_dir(&self.dir);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// From here on runs what it runs as a user without privileges, who may write to the test's
    /// directories. Only root can do this.
    pub(crate) fn become_nobody(&mut self) {
        // Where it was built, others need not be able to read it.
        let program = self.dir.join("wakescope");
        copy_program(&self.program, &program);
        chown(&self.dir, Some(NOBODY), Some(NOBODY)).unwrap();
        chown(&self.loads, Some(NOBODY), Some(NOBODY)).unwrap();
        (self.program, self.user) = (program, Some(NOBODY));
    }

    /// Runs a command to its end where numbers of threads are its own, as in a container.
    pub(crate) fn contained(&self, args: &[&str]) -> Ended {
        let mut unshare = self.program(Path::new("unshare"));
        unshare.args(["--pid", "--fork", "--mount-proc"]).args(args);
        Running::start(&mut unshare).output()
    }

    /// Whether that can be done. If not, `test` is skipped.
    pub(crate) fn can_be_contained(&self, test: &str) -> bool {
        let can = self.contained(&["true"]).code == Some(0);
        if !can {
            skip(test, "a PID namespace cannot be made with unshare");
        }
        can
    }

    /// Runs `wakescope load` with `args` to its end.
    pub(crate) fn output(&self, args: &[&str]) -> Ended {
        self.run(args).output()
    }

    /// Living processes that stem from this test, with their command lines.
    pub(crate) fn processes(&self) -> BTreeMap<i32, String> {
        let mark = format!("{MARK}={}", self.mark);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(|pid| {
            // Processes may be gone by now, and the environment of those that ended is empty.
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let ours = environment.split(|&b| b == 0).any(|v| v == mark.as_bytes());
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            ours.then(|| (pid, String::from_utf8_lossy(&command).replace('\0', " ")))
        })
        .collect()
    }

    /// How many of them run `command`.
    pub(crate) fn count(&self, command: &str) -> usize {
        self.processes().values().filter(|c| c.starts_with(command)).count()
    }

    /// Whether the keeper of `load` is in a PID namespace of its own.
    pub(crate) fn is_in_namespace(&self, load: &str) -> bool {
        let processes = self.processes();
        let keeper = processes.iter().find(|(_, c)| c.contains("load-keeper") && c.contains(load));
        let (pid, _) = keeper.unwrap_or_else(|| panic!("no keeper: {processes:?}"));
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap();
        namespace(&pid.to_string()) != namespace("self")
    }

    /// How many directories of loads there are.
    pub(crate) fn directories(&self) -> usize {
        self.paths_of_directories().count()
    }

    /// How many of them a process holds. One that was killed lets go of them only after it has lost its
    /// environment, by which `processes` knows it.
    pub(crate) fn held_directories(&self) -> usize {
        let is_held = |path: &PathBuf| {
            let directory = open_directory(path).unwrap();
            !try_lock(&directory).unwrap()
        };
        self.paths_of_directories().filter(is_held).count()
    }

    fn paths_of_directories(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.loads).unwrap().flatten();
        let of_loads = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("wakescope-load-"));
        of_loads.map(|entry| entry.path())
    }

    #[track_caller]
    pub(crate) fn assert_nothing_is_left(&self) {
        eventually("no process is left", || self.processes().is_empty());
        assert_eq!(self.directories(), 0, "directories are left");
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        // A test that failed must not leave its processes to others.
        let left: Vec<i32> = self.processes().into_keys().collect();
        if !left.is_empty() {
            kill("KILL", &left);
        }
        let _ = fs::remove_dir_all(&self.loads);
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: BufReader<ChildStderr>,
    awaited: String,
}

/// One that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        // What is ignored here, as in a shell's job in the background, would be ignored by all that
        // a test starts and means to end.
        end_by_default();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        // Read while it runs: a pipe that is full would hold it up.
        let mut stdout = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, stdout: Some(stdout), stderr, awaited: String::new() }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits until it says on stderr a line that begins with `start`.
    #[track_caller]
    pub(crate) fn await_line(&mut self, start: &str) {
        let mut line = String::new();
        while !line.starts_with(start) {
            line.clear();
            let length = self.stderr.read_line(&mut line).unwrap();
            assert!(length > 0, "it ended without saying {start:?}: {}", self.awaited);
            self.awaited += &line;
        }
    }

    /// What it said on stderr up to the line that was awaited.
    pub(crate) fn awaited(&self) -> &str {
        &self.awaited
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn output(mut self) -> Ended {
        let mut stderr = std::mem::take(&mut self.awaited);
        self.stderr.read_to_string(&mut stderr).unwrap();
        let stderr =
            stderr.split_inclusive('\n').filter(|line| !is_of_a_slow_machine(line)).collect();
        let stdout = self.stdout.take().unwrap().join().unwrap();
        Ended { code: self.child.wait().unwrap().code(), stdout, stderr }
    }
}

/// Whether a command says this wherever it takes over two seconds, whatever else it has to say.
fn is_of_a_slow_machine(line: &str) -> bool {
    line == "the measurement is still being set up\n" || line.starts_with("simulating: ")
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn kill(signal: &str, pids: &[i32]) {
    let pids = pids.iter().map(ToString::to_string);
    let mut kill = Command::new("/bin/sh");
    // Some may have ended just before, which is no matter.
    kill.args(["-c", "kill -s \"$0\" \"$@\"", signal]).args(pids).stderr(Stdio::null());
    kill.status().unwrap();
}

/// Ends a load that is ready, once it has been seen to work without a fault.
#[track_caller]
pub(crate) fn finish_at_work(mut load: Load) -> LoadResult {
    load.mark();
    let first = load.status();
    assert!(first.alive && first.ready, "{first:?}");
    // The first growth that is seen may be from before the mark; the second cannot.
    let mut seen = vec![first.work];
    eventually("it works", || {
        seen.push(load.status().work);
        seen.dedup();
        seen.len() == 3
    });
    assert!(seen.is_sorted() && load.status().work_grew_at > first.work_grew_at, "{seen:?}");
    let result = load.finish();
    assert!(result.alive && result.fault.is_empty(), "{result:?}");
    assert!(result.work > 0 && result.per_second > 0.0, "{result:?}");
    result
}

#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    eventually_some(what, || condition().then_some(()));
}

#[track_caller]
pub(crate) fn eventually_some<T>(what: &str, get: impl FnMut() -> Option<T>) -> T {
    eventually_or_told(|| what.into(), get)
}

/// The same; `what` can say what was there instead.
#[track_caller]
pub(crate) fn eventually_or_told<T>(
    what: impl FnOnce() -> String,
    mut get: impl FnMut() -> Option<T>,
) -> T {
    let deadline = clock::now().after(PATIENCE);
    loop {
        if let Some(got) = get() {
            return got;
        }
        if clock::now() >= deadline {
            panic!("waited in vain until {}", what());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
