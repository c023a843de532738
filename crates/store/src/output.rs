//! Files that the user names for a result.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use wakescope_sys::file::duplicate;
use wakescope_sys::folder::{About, Folder, Kind};
use wakescope_sys::process::set_blocking;

use crate::trust::{Refused, check_folder, is_trusted_owner};

/// Of files and folders that others may not write, whatever the umask says.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;

/// Makes the file at `path`, or opens it and empties it, to be written.
///
/// A file that is there must belong to root or to this user. A link must too, and lie in a folder
/// where others cannot exchange it. Of what is no regular file only character devices are opened,
/// and what this process has open already (`/dev/stdout`, `/dev/fd/63`). Opening never waits.
pub fn create_output(path: &Path) -> io::Result<File> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match open(&path)? {
            Opened::File(file) => return Ok(file),
            // A relative target begins where the link lies; an absolute one replaces the path.
            Opened::Link(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
        }
    }
    Err(Refused::Links.into())
}

/// Makes the file at `path` with `bytes` in it, for nobody else to write. Fails if there is anything
/// of that name.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_new(path)?.write_all(bytes)
}

/// Makes an empty file at `path`, for nobody else to write, and opens it to be written. Fails if there
/// is anything of that name.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
}

/// Makes the folder at `path`, for nobody else to write. Fails if there is anything of that name.
pub fn create_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(FOLDER_MODE).create(path)
}

/// Makes the file at `to` with the bytes of `from` and its permissions, but for rights of others to
/// write and rights of another user. Fails if there is anything of that name.
pub fn copy_new(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let mode = from.metadata()?.permissions().mode() & FOLDER_MODE;
    let mut made = create_new(to)?;
    io::copy(&mut from, &mut made)?;
    made.set_permissions(fs::Permissions::from_mode(mode))
}

/// Opens the file at `path`, which is made if there is none, to lock it. It must belong to root or
/// to this user.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let name = path.file_name().ok_or(Refused::Kind(Kind::Folder))?;
    let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
    let file = match make_or_open(&folder, name) {
        // As the kernel says that a name is that of a link, or of a FIFO that nobody reads.
        Err(e)
            if !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
        {
            let kind = folder.about_file(name).map_or(Kind::File, |found| found.kind);
            return Err(if kind == Kind::File { e } else { Refused::Kind(kind).into() });
        }
        other => other?,
    };
    let found = About::of(&file.metadata()?);
    match found.kind {
        Kind::File if is_trusted_owner(found.owner) => Ok(file),
        Kind::File => Err(Refused::ForeignFile(found.owner).into()),
        other => Err(Refused::Kind(other).into()),
    }
}

/// Whoever holds a lock may remove its file at any moment, also between the two attempts.
fn make_or_open(folder: &Folder, name: &OsStr) -> io::Result<File> {
    loop {
        match folder.create(name, FILE_MODE) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
        match folder.open_to_write(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
    }
}

enum Opened {
    File(File),
    Link(PathBuf),
}

fn open(path: &Path) -> io::Result<Opened> {
    let name = path.file_name().ok_or(Refused::Kind(Kind::Folder))?;
    let parent = path.parent().unwrap_or(Path::new(""));
    if lists_open_files(parent) {
        // Not opened anew: that would begin at the start of a file that others append to.
        let number = name.to_str().and_then(|name| name.parse().ok());
        return duplicate(number.ok_or(io::ErrorKind::NotFound)?).map(Opened::File);
    }
    let folder = Folder::open(parent)?;
    match folder.create(name, 0o666) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        other => return other.map(Opened::File),
    }
    let found = folder.about_file(name)?;
    match found.kind {
        Kind::Link => follow(&folder, name, &found).map(Opened::Link),
        Kind::File => open_existing(&folder, name).map(Opened::File),
        Kind::CharacterDevice => {
            check_folder(&folder)?;
            let device = folder.open_to_write(name)?;
            set_blocking(&device)?;
            Ok(Opened::File(device))
        }
        other => Err(Refused::Kind(other).into()),
    }
}

/// Whether what is in `folder` are the open files of this process.
fn lists_open_files(folder: &Path) -> bool {
    let own = fs::canonicalize("/proc/self/fd").ok();
    own.is_some() && fs::canonicalize(folder).ok() == own
}

fn follow(folder: &Folder, name: &OsStr, link: &About) -> io::Result<PathBuf> {
    if !is_trusted_owner(link.owner) {
        return Err(Refused::ForeignLink(link.owner).into());
    }
    if check_folder(folder).is_err() {
        return Err(Refused::ForeignLink(folder.about()?.owner).into());
    }
    folder.read_link(name)
}

fn open_existing(folder: &Folder, name: &OsStr) -> io::Result<File> {
    let file = folder.open_to_write(name)?;
    // What was opened, and not what had the name before.
    let found = About::of(&file.metadata()?);
    if found.kind != Kind::File {
        return Err(Refused::Kind(found.kind).into());
    }
    if !is_trusted_owner(found.owner) {
        return Err(Refused::ForeignFile(found.owner).into());
    }
    if found.names > 1 && check_folder(folder).is_err() {
        return Err(Refused::HardLink.into());
    }
    file.set_len(0)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of one test, removed when it ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("output-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[track_caller]
    fn write(path: &Path, text: &str) {
        create_output(path).unwrap().write_all(text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }

    #[test]
    fn files_and_links_of_ones_own_are_written() {
        let scratch = Scratch::new("own");
        let path = |name: &str| scratch.0.join(name);
        write(&path("new"), "some text");
        write(&path("new"), "less");
        symlink("new", path("link")).unwrap();
        write(&path("link"), "through a link");
        assert_eq!(fs::read_to_string(path("new")).unwrap(), "through a link");
        symlink(path("not yet"), path("dangling")).unwrap();
        write(&path("dangling"), "made");
        assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
    }

    #[test]
    fn what_is_no_file_is_named() {
        let scratch = Scratch::new("kinds");
        symlink("circle", scratch.0.join("circle")).unwrap();
        fs::create_dir(scratch.0.join("folder")).unwrap();
        for (name, why) in [
            ("circle", "too many symbolic links"),
            ("folder", "it is a folder, not a regular file"),
            ("", "it is a folder, not a regular file"),
            ("none/file", "No such file or directory"),
        ] {
            let got = create_output(&scratch.0.join(name)).unwrap_err().to_string();
            assert!(got.contains(why), "{name}: {got}");
        }
    }

    #[test]
    fn a_lock_is_a_file_of_ones_own() {
        let scratch = Scratch::new("lock");
        let path = |name: &str| scratch.0.join(name);
        fs::write(path("treasure"), "treasure").unwrap();
        open_lock(&path("treasure")).unwrap();
        open_lock(&path("new")).unwrap();
        symlink("treasure", path("link")).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path("fifo")).status();
        assert!(made.unwrap().success());
        for (name, why) in [
            ("fifo", "it is a FIFO, not a regular file"),
            ("link", "it is a symbolic link, not a regular file"),
            ("dangling", "it is a symbolic link, not a regular file"),
            ("folder", "it is a folder, not a regular file"),
            ("none/lock", "No such file or directory"),
        ] {
            let got = open_lock(&path(name)).unwrap_err().to_string();
            assert!(got.contains(why), "{name}: {got}");
        }
        assert_eq!(fs::read_to_string(path("treasure")).unwrap(), "treasure");
        assert!(!path("nowhere").exists());
    }

    #[test]
    fn a_copy_takes_no_place_and_no_rights_of_another_user() {
        let scratch = Scratch::new("copy");
        let path = |name: &str| scratch.0.join(name);
        fs::write(path("from"), "text").unwrap();
        fs::set_permissions(path("from"), fs::Permissions::from_mode(0o4777)).unwrap();
        copy_new(&path("from"), &path("to")).unwrap();
        assert_eq!(fs::read_to_string(path("to")).unwrap(), "text");
        assert_eq!(fs::metadata(path("to")).unwrap().permissions().mode() & 0o7777, 0o755);
        let taken = copy_new(&path("from"), &path("to")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn devices_and_inherited_files_are_written() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        create_output(Path::new("/dev/null")).unwrap().write_all(b"x").unwrap();
        let (mut reader, writer) = wakescope_sys::pipe::pipe().unwrap();
        for folder in ["/dev/fd", "/proc/self/fd"] {
            let path = format!("{folder}/{}", writer.as_raw_fd());
            create_output(Path::new(&path)).unwrap().write_all(b"x").unwrap();
            let mut got = [0; 1];
            reader.read_exact(&mut got).unwrap();
            assert_eq!(got, *b"x", "{path}");
        }
        assert!(create_output(Path::new("/proc/self/fd/x")).is_err());
    }
}
