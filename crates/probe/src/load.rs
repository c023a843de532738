//! Loads: work that makes wakeups late, each in a process of its own.
//!
//! That process, the *keeper*, is this program executed once more (`load-keeper`). It holds the
//! reading end of a pipe whose writing end only its parent has: when the pipe ends, the parent is
//! done or gone, however it went, and the keeper stops its work, ends all that it started, removes
//! its directory and exits. Through the pipe it is asked for its figures; through its standard
//! output come its [reports](report::Report).
//!
//! ```text
//! parent                         keeper                              worker threads
//!   Load::start    ── exec ──▶   makes its directory, starts    ──▶  set up
//!   wait_ready     ◀─ ready ──                                  ◀──  set up
//!   mark           ── m ─────▶   time and work done             ◀──  work
//!   status         ◀─ beat ───   2 to 4 a second                ◀──  work
//!   finish         ── m, end ─▶  time and work; stops, cleans up ──▶  stop
//! ```

mod budget;
mod command;
mod cpu;
mod crashme;
mod crew;
mod dbench;
mod desk;
mod disturb;
mod exec;
mod fifos_mmap;
mod file_move;
mod find;
mod foreign;
mod fork;
mod fs;
mod hackbench;
mod handle;
mod installed;
mod intensity;
mod interrupts;
mod keeper;
mod kinds;
mod launch;
mod loopback;
mod memory;
mod needs;
mod network;
mod nfs_compile;
mod p3_fpu;
mod printk;
mod progress;
mod pulse;
mod random;
mod report;
mod scratch;
mod seen;
mod serial;
mod set_up;
mod spec;
mod stress_ng;
mod sync;
mod truncate;
mod ttcp;

pub use disturb::{Disturbance, DisturbanceError, path_of_log as path_of_disturbances};
pub use handle::{Load, LoadError, Options, abandon_all, finish_all};
pub use keeper::{KEEPER_VERB, keep};
pub use kinds::WriteFile;
pub use launch::launched_output;
pub use needs::Need;
pub use scratch::clean_up_leftovers;
pub use seen::Status;
pub use set_up::{SetUp, await_set_up, start_all};
pub use spec::{Spec, SpecError, missing, name_in, parse_list};

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where loads make their files if nobody says otherwise: `$TMPDIR`, or `/tmp`.
pub fn default_dir() -> PathBuf {
    value_of(env::var_os(TMPDIR)).map_or_else(|| "/tmp".into(), PathBuf::from)
}

const TMPDIR: &str = "TMPDIR";

/// The value of an environment variable. One that is empty counts as one that is not set.
fn value_of(variable: Option<OsString>) -> Option<OsString> {
    variable.filter(|value| !value.is_empty())
}

/// A directory as messages name it: also by the variable whose value it is, since nobody may have typed it.
fn named(dir: &Path, tmpdir: Option<OsString>) -> String {
    match value_of(tmpdir) {
        Some(value) if dir == Path::new(&value) => format!("{} ({TMPDIR})", dir.display()),
        _ => dir.display().to_string(),
    }
}

/// Has this process play the part of a load that it was started for, if its `arguments` (after the
/// program's name) say so; to be asked before anything else is done. The result is how that went.
pub fn play_part(mut arguments: impl Iterator<Item = OsString>) -> Option<Result<(), String>> {
    let part = arguments.next()?;
    if part == fifos_mmap::PART {
        return Some(fifos_mmap::play());
    }
    (part == crashme::PART).then(|| {
        let bytes = arguments.next().unwrap_or_default();
        crashme::play(&bytes.to_string_lossy())
    })
}

/// The program that is running, by a path that executes it.
pub fn this_program() -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let link = Path::new("/proc/self/exe");
    let identity = |path: &Path| std::fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
    match (std::fs::read_link(link), identity(link)) {
        // By its own path if that still leads to it: tools then show its name, and not `exe`.
        (Ok(path), Some(this)) if identity(&path) == Some(this) => path,
        (_, Some(_)) => link.into(),
        // Without /proc, as in the first moments of an initramfs, there is only what it was called.
        _ => env::args_os().next().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_empty_is_not_set() {
        for (variable, want) in [(None, None), (Some(""), None), (Some("/x"), Some("/x"))] {
            assert_eq!(value_of(variable.map(OsString::from)), want.map(OsString::from));
        }
    }

    #[test]
    fn a_directory_that_comes_from_a_variable_is_named_with_it() {
        for (dir, tmpdir, want) in [
            ("/x", None, "/x"),
            ("/x", Some(""), "/x"),
            ("/x", Some("/y"), "/x"),
            ("/x", Some("/x"), "/x (TMPDIR)"),
            ("/x", Some("/x/"), "/x (TMPDIR)"),
        ] {
            assert_eq!(named(Path::new(dir), tmpdir.map(OsString::from)), want, "{tmpdir:?}");
        }
    }
}
