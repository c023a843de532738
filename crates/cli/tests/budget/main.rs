//! What a small hostile file may cost, for every format that is read and every verb that reads it.
//!
//! Memory is limited by the kernel (`RLIMIT_DATA`, which counts what a process allocates, whether it is
//! touched or not), so no peak is missed. Time is the processor time of the command, not that of the
//! clock (`RLIMIT_CPU`). `make test` names the optimised build, which is what users have, in
//! `WAKESCOPE_OPTIMISED`. Without that it is the tests' own, which takes 10 to 20 times as long and gets
//! ten times as long; what these files took without a budget was beyond both, or without end.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

use common::bench::Test;
use common::made_up::run;

#[path = "../common/mod.rs"]
mod common;
mod foreign;
mod records;

/// Hostile files are no longer than this, in bytes.
const LONGEST: usize = 1_000_000;

/// The most memory for one of them, in MB.
const MEMORY_MB: u64 = 300;

/// The most processor time of an optimised build, in seconds.
const SECONDS: u64 = 5;

/// By what an unoptimised build may take longer.
const SLOWER: u64 = 10;

/// What must become of a file.
#[derive(Clone, Copy, Debug)]
enum Want {
    /// It is read, or refused for some other reason.
    Any,
    /// It is read and shown.
    Read,
    /// It is refused whole, and the message names this limit.
    Refused(&'static str),
}

const MEMORY: Want = Want::Refused("needs more than 128 MB of memory for ");
const STEPS: Want = Want::Refused("it has more than 32,000,000 ");

struct Bench {
    test: Test,
    seconds: u64,
}

impl Bench {
    fn new(name: &str) -> Self {
        let mut test = Test::new(name);
        let optimised = std::env::var_os("WAKESCOPE_OPTIMISED").filter(|path| !path.is_empty());
        let slower = if optimised.is_none() && cfg!(debug_assertions) { SLOWER } else { 1 };
        if let Some(optimised) = optimised {
            test.program = optimised.into();
        }
        fs::write(test.dir.join("other.json"), run(50).to_json()).unwrap();
        fs::write(test.dir.join("third.json"), run(60).to_json()).unwrap();
        Self { test, seconds: SECONDS * slower }
    }

    #[track_caller]
    fn write(&self, name: &str, content: &[u8]) {
        assert!(content.len() <= LONGEST, "{name} has {} bytes", content.len());
        fs::write(self.test.dir.join(name), content).unwrap();
    }

    /// Runs a command within the limits; it must end by itself and as wanted.
    #[track_caller]
    fn check(&self, command: &str, memory_mb: u64, want: Want) -> Output {
        let (kib, seconds) = (memory_mb * 1_000_000 / 1_024, self.seconds);
        let script = format!("ulimit -d {kib} && ulimit -t {seconds} && exec \"$0\" \"$@\"");
        let mut shell = self.test.program(Path::new("/bin/sh"));
        shell.arg("-c").arg(script).arg(&self.test.program).args(command.split(' '));
        let output = shell.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let ending = (output.status.code(), output.status.signal());
        assert!(
            matches!(ending, (Some(0..=3), None)) && !stderr.contains("panicked"),
            "{command}: {ending:?} within {memory_mb} MB and {seconds} s of processor time: {stderr}"
        );
        match want {
            Want::Any => {}
            Want::Read => assert_ne!(ending.0, Some(2), "{command}: {stderr}"),
            Want::Refused(why) => {
                assert_eq!((ending.0, output.stdout.len()), (Some(2), 0), "{command}: {stderr}");
                assert!(
                    stderr.contains(why) && stderr.contains(", the limit for "),
                    "{command}: {stderr}"
                );
                assert!(stderr.contains("\n  → "), "{command} does not say what to do: {stderr}");
            }
        }
        output
    }

    /// Holds every verb that reads runs to the limits with one file.
    #[track_caller]
    fn check_verbs(&self, file: &str, options: &str, want: Want) {
        let _ = fs::remove_dir_all(self.test.dir.join("imported"));
        for command in [
            "report FILE",
            "report FILE --format html -o page.html",
            "import FILE --out imported",
            "compare FILE --against other.json --force --mix-quantities --accept-blocks",
            "trend FILE other.json third.json --force",
            "explain FILE",
        ] {
            // It takes nothing else than the record of a run.
            if command.starts_with("explain") && !options.is_empty() {
                continue;
            }
            // What can be shown need not have anything in common with other runs.
            let want = match want {
                Want::Read if !command.starts_with("report") => Want::Any,
                other => other,
            };
            self.check(&format!("{}{options}", command.replace("FILE", file)), MEMORY_MB, want);
        }
    }
}
