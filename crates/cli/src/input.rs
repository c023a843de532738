//! Files that users name.

use std::fs::File;
use std::io;
use std::path::Path;

use wakescope_sys::input::open_input;

use crate::Failure;

/// Opens a file that is nothing but that: one would wait for ever to read a pipe nobody writes to.
pub(crate) fn regular(path: &Path) -> io::Result<File> {
    open_input(path)
}

/// That the run at `path`, whose record is `file`, cannot be read.
pub(crate) fn not_a_run(path: &Path, file: &Path, e: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot read the run {}: {e}", file.display()));
    if path.is_dir() {
        failure.try_this(
            "name the folder of one run, which contains a run.json; by default it is under runs/",
        )
    } else {
        failure.try_this("name a run folder, as printed at the end of `wakescope measure`")
    }
}
