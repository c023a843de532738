//! Files to read that somebody else has named.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::checked;
use crate::file::c_path;
use crate::machine::open_without_waiting;

/// File systems whose regular files are the kernel's own: to read one may wait for ever, or take
/// away what is read (/proc/kmsg, trace_pipe). Numbers of include/uapi/linux/magic.h.
const KERNEL: [(u64, &str); 17] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6265_6570, "configfs"),
    (0xcafe_4a11, "bpf"),
    (0xde5e_81e4, "efivarfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0x6573_5543, "fusectl"),
    (0x1980_0202, "mqueue"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x6e73_6673, "nsfs"),
    (0x6759_6969, "rpc_pipefs"),
];

/// Opens a regular file of an ordinary file system to read. Nothing else is even opened: that alone
/// may wait, or have an effect.
pub fn open_input(path: &Path) -> io::Result<File> {
    check(&std::fs::metadata(path)?)?;
    check_kind(of_path(path)?)?;
    let file = open_without_waiting(path)?;
    // Another file may have taken its place meanwhile.
    check(&file.metadata()?)?;
    check_kind(of_file(&file)?)?;
    Ok(file)
}

/// The same, but for a pipe that this process was started with, as a shell passes `<(command)` and
/// standard input: that is read until its writer ends.
pub fn open_input_or_pipe(path: &Path) -> io::Result<File> {
    let is_pipe = std::fs::metadata(path)?.file_type().is_fifo();
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let own = Path::new("/proc/self/fd").canonicalize().ok();
    let is_given = path == Path::new("/dev/stdin") || (own.is_some() && folder == own);
    if is_pipe && is_given {
        return File::open(path);
    }
    open_input(path)
}

fn check(found: &Metadata) -> io::Result<()> {
    if found.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

fn check_kind(kind: u64) -> io::Result<()> {
    match KERNEL.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => Err(io::Error::other(format!(
            "it is a kernel file ({name}), where reading may block for ever or consume the data"
        ))),
        None => Ok(()),
    }
}

fn of_path(path: &Path) -> io::Result<u64> {
    let path = c_path(path)?;
    // SAFETY: `statfs` is plain integers, for which zero is a value.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the string is live and ends in NUL, `found` is live and writable.
    checked(unsafe { libc::statfs(path.as_ptr(), &raw mut found) })?;
    Ok(number(&found))
}

fn of_file(file: &File) -> io::Result<u64> {
    // SAFETY: as above.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open for as long as `file` lives, `found` is live and writable.
    checked(unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut found) })?;
    Ok(number(&found))
}

/// Its width and sign depend on the target; the numbers have 32 bits.
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
fn number(found: &libc::statfs) -> u64 {
    found.f_type as u64 & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn only_regular_files_of_ordinary_file_systems_are_opened() {
        let folder = wakescope_testing::Folder::new("input");
        let fifo = folder.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let fifo = fifo.to_str().unwrap();
        for (path, why) in [
            ("/proc/version", "a kernel file (proc)"),
            ("/proc/self/status", "a kernel file (proc)"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "a kernel file (sysfs)"),
            ("/dev/zero", "not a regular file"),
            ("/dev", "not a regular file"),
            (fifo, "not a regular file"),
        ] {
            if Path::new(path).exists() {
                let refused = open_input(Path::new(path)).unwrap_err().to_string();
                assert!(refused.contains(why), "{path}: {refused}");
            }
        }
        assert!(open_input_or_pipe(Path::new(fifo)).is_err());
        assert!(open_input(&std::env::current_exe().unwrap()).is_ok());
        // A link of the kernel to an ordinary file leads there.
        assert!(open_input(Path::new("/proc/self/exe")).is_ok());
    }

    #[test]
    fn a_pipe_that_the_process_has_is_read_where_that_is_meant() {
        use std::io::Write;
        let (reader, mut writer) = crate::pipe::pipe().unwrap();
        writer.write_all(b"text").unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert!(open_input(Path::new(&path)).is_err());
        let mut text = String::new();
        open_input_or_pipe(Path::new(&path)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}
