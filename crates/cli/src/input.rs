//! Files that users name.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use wakescope_sys::input::{open_input, open_input_or_pipe};

use crate::Failure;

/// What a file is to this command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Input,
    Result,
}

/// All files that were read or written so far, by their file systems' numbers and their own.
static USED: Mutex<BTreeMap<(u64, u64), Use>> = Mutex::new(BTreeMap::new());

/// Opens a file that is nothing but that: one would wait for ever to read a pipe nobody writes to.
pub(crate) fn regular(path: &Path) -> io::Result<File> {
    noted(open_input(path)?)
}

/// The same, but for a pipe that this process was started with.
pub(crate) fn regular_or_pipe(path: &Path) -> io::Result<File> {
    noted(open_input_or_pipe(path)?)
}

fn noted(file: File) -> io::Result<File> {
    note(&file.metadata()?, Use::Input);
    Ok(file)
}

/// Notes what a file is, so that no result is put in its place.
pub(crate) fn note(file: &Metadata, used: Use) {
    USED.lock().unwrap_or_else(PoisonError::into_inner).insert((file.dev(), file.ino()), used);
}

/// What this file is to this command, under whatever name.
pub(crate) fn use_of(identity: (u64, u64)) -> Option<Use> {
    USED.lock().unwrap_or_else(PoisonError::into_inner).get(&identity).copied()
}

/// All bytes of a file. More than `largest` of them is an error: half a file is not read.
pub(crate) fn read_whole(file: impl Read, largest: u64) -> io::Result<Vec<u8>> {
    read_up_to(Vec::new(), file, largest)
}

/// The same of a file of this length, which may have grown or shrunk. Nothing is read of one that is too large.
pub(crate) fn read_file(file: &File, length: u64, largest: u64) -> io::Result<Vec<u8>> {
    if length > largest {
        return Err(too_large(largest));
    }
    let length = usize::try_from(length).unwrap_or(0);
    let mut bytes = Vec::new();
    // Room in which the end is found, too.
    bytes.try_reserve_exact(length + 64)?;
    read_up_to(bytes, file, largest)
}

fn read_up_to(mut bytes: Vec<u8>, file: impl Read, largest: u64) -> io::Result<Vec<u8>> {
    let more = largest.saturating_add(1).saturating_sub(bytes.len() as u64);
    file.take(more).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(too_large(largest));
    }
    Ok(bytes)
}

fn too_large(largest: u64) -> io::Error {
    let limit = format!("it is larger than {} MiB, the limit for such a file", largest >> 20);
    io::Error::other(limit)
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

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use super::*;

    #[test]
    fn nothing_is_read_of_a_file_that_is_too_large() {
        let folder = wakescope_testing::Folder::new("input-large");
        let path = folder.join("sparse");
        File::create_new(&path).unwrap().set_len(30 << 30).unwrap();
        let mut file = File::open(path).unwrap();
        let refused = read_file(&file, 30 << 30, 2 << 30).unwrap_err().to_string();
        assert_eq!(refused, "it is larger than 2048 MiB, the limit for such a file");
        assert_eq!(file.stream_position().unwrap(), 0);
    }
}
