//! Files that the user names for a result.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use wakescope_sys::file::{attribute, attributes, duplicate};
use wakescope_sys::folder::{About, Folder, Kind, Rename};
use wakescope_sys::process::set_blocking;
use wakescope_sys::trust::{Refused, check_exclusive, check_names, is_trusted_owner};
use wakescope_sys::way::{open_parent, read_link};

use crate::run_folder::{EPISODES, RECORD, SAMPLES, begins_as_record};
use crate::window_folder::{LOCK, file_time};

/// Of files and folders that others may not write, whatever the umask says.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// Of files that are locked. Whoever may read one may lock it as well (flock(2)), and so keep its owner out.
const LOCK_MODE: u32 = 0o600;

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;

/// Most files that processes which were killed may have left beside a result.
const MOST_LEFT: u32 = 100;

/// A file that the user named for a result, while it is written.
///
/// The result is written to a new file beside it, which then takes its name. So a full disk leaves neither an empty
/// file nor a part of a result, and takes nothing of an older one. A file that cannot be replaced like this is itself
/// written, and is empty if that fails.
#[derive(Debug)]
pub struct Output {
    file: File,
    fate: Fate,
    /// The regular file in whose place the result is put.
    replaced: Option<(u64, u64)>,
}

/// What becomes of the file that is written.
#[derive(Debug)]
enum Fate {
    /// It has its name, and what has been written stays.
    Stays,
    /// It holds something older, which goes before anything is written.
    Emptied,
    /// It has begun to be written in place of something older.
    Begun,
    /// It has this name until it takes the other one.
    Renamed { folder: Folder, fresh: OsString, name: OsString, how: Rename },
}

/// Whether something was not written for want of room: on the disk, or of what its user may have there.
pub fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Output {
    /// Gives the file its name. Without this there is no result.
    pub fn finish(mut self) -> io::Result<()> {
        self.empty()?;
        if let Fate::Renamed { folder, fresh, name, how } = &self.fate {
            match rename(folder, fresh, name, *how) {
                // Something is mounted there, as containers do with single files. The new one is then removed.
                Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
                    return overwrite(folder, fresh, name);
                }
                other => other?,
            }
        }
        self.fate = Fate::Stays;
        Ok(())
    }

    /// By what the file is known in whose place the result is put, as [`About::identity`] says; `None` if
    /// nothing is lost.
    pub fn replaced(&self) -> Option<(u64, u64)> {
        self.replaced
    }

    /// Fails if the disk has no room for a single byte of a new file. What is written itself is left as it is: a file
    /// gives its room back first, and a device or a pipe has none.
    fn check_room(&mut self) -> io::Result<()> {
        match self.fate {
            Fate::Renamed { .. } => self.file.write_all(&[0]),
            Fate::Stays | Fate::Emptied | Fate::Begun => Ok(()),
        }
    }

    fn empty(&mut self) -> io::Result<()> {
        if matches!(self.fate, Fate::Emptied) {
            self.file.set_len(0)?;
            self.fate = Fate::Begun;
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.empty()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = match &self.fate {
            Fate::Renamed { folder, fresh, .. } => folder.remove_file(fresh),
            Fate::Begun => self.file.set_len(0),
            Fate::Stays | Fate::Emptied => Ok(()),
        };
    }
}

/// Renames a new file. Some file systems cannot tell whether another one has the name.
fn rename(folder: &Folder, from: &OsStr, to: &OsStr, how: Rename) -> io::Result<()> {
    match folder.rename(from, to, how) {
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => folder.rename(from, to, Rename::Over),
        other => other,
    }
}

/// Puts the bytes of one file in place of all that is in another. If that fails, the other one is empty.
fn overwrite(folder: &Folder, from: &OsStr, to: &OsStr) -> io::Result<()> {
    let mut to = Output { file: folder.open_to_write(to)?, fate: Fate::Emptied, replaced: None };
    io::copy(&mut folder.open_to_read(from)?, &mut to)?;
    to.finish()
}

/// Fails if no result can be written to `path`, as far as that can be known before there is one: a disk that is full
/// already is. Changes nothing.
pub fn check_output(path: &Path) -> io::Result<()> {
    create_output(path)?.check_room()
}

/// Opens the file at `path`, or a new one that is to have its name, to be written. What is there stays until
/// something is written.
///
/// A file that is there must belong to root or to this user. A link must too, also on the way to the file,
/// and lie in a folder where nobody else can exchange it, the user who called `sudo` included. A file with
/// other names and a device must lie in such a folder. Of what is no regular file only character devices are
/// opened, and what this process has open already (`/dev/stdout`, `/dev/fd/63`). Opening never waits.
///
/// The record of a run is refused, under its own name and where it has several; so are its samples and its episodes
/// beside it, and the windows of a watch.
pub fn create_output(path: &Path) -> io::Result<Output> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match open(&path)? {
            Opened::File(output) => return Ok(output),
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
    lock_file(&open_parent(path)?, name)
}

/// The same, of a file in an open folder.
pub(crate) fn lock_file(folder: &Folder, name: &OsStr) -> io::Result<File> {
    let file = match make_or_open(folder, name) {
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
        match folder.create(name, LOCK_MODE) {
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
    File(Output),
    Link(PathBuf),
}

fn open(path: &Path) -> io::Result<Opened> {
    let name = path.file_name().ok_or(Refused::Kind(Kind::Folder))?;
    let folder = open_parent(path)?;
    if lists_open_files(&folder)? {
        // Not opened anew: that would begin at the start of a file that others append to.
        let number = name.to_str().and_then(|name| name.parse().ok());
        let file = duplicate(number.ok_or(io::ErrorKind::NotFound)?)?;
        return Ok(Opened::File(Output { file, fate: Fate::Stays, replaced: None }));
    }
    let found = match folder.about_file(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return beside(folder, name, 0o666, Rename::New).map(Opened::File);
        }
        other => other?,
    };
    match found.kind {
        Kind::Link => read_link(&folder, name, &found).map(Opened::Link),
        Kind::File => open_existing(folder, name).map(Opened::File),
        Kind::CharacterDevice => {
            check_exclusive(&folder)?;
            let file = folder.open_to_write(name)?;
            set_blocking(&file)?;
            Ok(Opened::File(Output { file, fate: Fate::Stays, replaced: None }))
        }
        other => Err(Refused::Kind(other).into()),
    }
}

/// A new file, which is to have this name.
fn beside(folder: Folder, name: &OsStr, mode: u32, how: Rename) -> io::Result<Output> {
    let process = std::process::id();
    for number in 0..MOST_LEFT {
        let fresh = OsString::from(format!(".wakescope-{process}-{number}"));
        match folder.create(&fresh, mode) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(file) => {
                let fate = Fate::Renamed { folder, fresh, name: name.into(), how };
                return Ok(Output { file, fate, replaced: None });
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whether what is in `folder` are the open files of this process.
fn lists_open_files(folder: &Folder) -> io::Result<bool> {
    match Folder::open_to_pass(Path::new("/proc/self/fd")) {
        Ok(own) => Ok(own.about()?.identity == folder.about()?.identity),
        // Without /proc there is no such folder.
        Err(_) => Ok(false),
    }
}

/// A file that is there. A new one takes its place only if nobody can tell one from the other: with other names,
/// with an ACL of its own, and in a folder that is closed to this user, it is written itself.
fn open_existing(folder: Folder, name: &OsStr) -> io::Result<Output> {
    let file = folder.open_to_write(name)?;
    // What was opened, and not what had the name before.
    let found = About::of(&file.metadata()?);
    if found.kind != Kind::File {
        return Err(Refused::Kind(found.kind).into());
    }
    if !is_trusted_owner(found.owner) {
        return Err(Refused::ForeignFile(found.owner).into());
    }
    check_names(&found, &folder)?;
    // Nobody can measure once more what a report took the place of.
    if (found.names > 1 || name == RECORD) && holds_record(&folder, name) {
        return Err(Refused::Record.into());
    }
    if is_of_run(&folder, name) || is_of_watch(&folder, name) {
        return Err(Refused::Measured.into());
    }
    let replaced = Some(found.identity);
    if found.names == 1 {
        if let Ok(mut output) = like(folder, name, &file, &found) {
            output.replaced = replaced;
            return Ok(output);
        }
    }
    Ok(Output { file, fate: Fate::Emptied, replaced })
}

/// Whether a file is what a run stores beside its record.
fn is_of_run(folder: &Folder, name: &OsStr) -> bool {
    [SAMPLES, EPISODES].iter().any(|own| name == *own) && holds_record(folder, OsStr::new(RECORD))
}

/// Whether a file holds windows.
fn is_of_watch(folder: &Folder, name: &OsStr) -> bool {
    file_time(name).is_some() && folder.about_file(OsStr::new(LOCK)).is_ok()
}

fn holds_record(folder: &Folder, name: &OsStr) -> bool {
    folder.open_to_read(name).and_then(begins_as_record).unwrap_or(false)
}

/// The ACL of a file, its label, and its other extended attributes, but for the kernel's checksums of the file
/// itself (IMA, EVM). None where the file system has no such attributes.
fn attributes_of(file: &File) -> io::Result<BTreeMap<OsString, Vec<u8>>> {
    const SUMS: [&str; 2] = ["security.ima", "security.evm"];
    let names = names_if_any(attributes(file))?.into_iter();
    let names = names.filter(|name| !SUMS.iter().any(|sum| name == sum));
    names.map(|name| attribute(file, &name).map(|value| (name, value))).collect()
}

fn names_if_any(listed: io::Result<Vec<OsString>>) -> io::Result<Vec<OsString>> {
    const EOPNOTSUPP: i32 = 95;
    match listed {
        Err(e) if e.raw_os_error() == Some(EOPNOTSUPP) => Ok(Vec::new()),
        other => other,
    }
}

/// A new file that is to replace an old one, with the same owner, group, mode and attributes. A file gets some of
/// these from its folder or from the kernel; if they are not those of the old one, it is no replacement.
fn like(folder: Folder, name: &OsStr, old: &File, about_old: &About) -> io::Result<Output> {
    let new = beside(folder, name, 0o600, Rename::Over)?;
    let about = About::of(&new.file.metadata()?);
    if (about.owner, about.group) != (about_old.owner, about_old.group) {
        return Err(Refused::ForeignFile(about_old.owner).into());
    }
    // The mode is a part of an ACL.
    new.file.set_permissions(fs::Permissions::from_mode(about_old.mode))?;
    if attributes_of(&new.file)? != attributes_of(old)? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use wakescope_testing::Folder;

    use super::*;

    #[track_caller]
    fn write(path: &Path, text: &str) {
        check_output(path).unwrap();
        let mut output = create_output(path).unwrap();
        output.write_all(text.as_bytes()).unwrap();
        output.finish().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }

    #[test]
    fn files_and_links_of_ones_own_are_written() {
        let scratch = Folder::new("output-own");
        let path = |name: &str| scratch.join(name);
        write(&path("new"), "some text");
        write(&path("new"), "less");
        symlink("new", path("link")).unwrap();
        write(&path("link"), "through a link");
        assert_eq!(fs::read_to_string(path("new")).unwrap(), "through a link");
        symlink(path("not yet"), path("dangling")).unwrap();
        write(&path("dangling"), "made");
        assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
    }

    /// As containers mount single files, which cannot be renamed over.
    #[test]
    fn a_file_that_is_mounted_is_written() {
        let scratch = Folder::new("output-mounted");
        let path = |name: &str| scratch.join(name);
        fs::write(path("outside"), "some longer text").unwrap();
        fs::write(path("inside"), "").unwrap();
        let mut mount = std::process::Command::new("mount");
        let mount = mount.arg("--bind").args([path("outside"), path("inside")]).output();
        if !mount.is_ok_and(|ended| ended.status.success()) {
            let name = "a_file_that_is_mounted_is_written";
            return wakescope_testing::skip(name, "mounting a file is not permitted");
        }
        let wrote = std::panic::catch_unwind(|| write(&path("inside"), "text"));
        let umount = std::process::Command::new("umount").arg("-l").arg(path("inside")).status();
        assert!(umount.unwrap().success());
        wrote.unwrap();
        assert_eq!(fs::read_to_string(path("outside")).unwrap(), "text");
        assert_eq!(fs::read_to_string(path("inside")).unwrap(), "");
        assert_eq!(names(&scratch), ["inside", "outside"]);
    }

    /// Entries of an ACL as the kernel keeps them (linux/posix_acl_xattr.h), set by a program, as there is no call
    /// for it here. False where that is not possible.
    fn set_acl(path: &Path, kind: &str, user: u32) -> bool {
        // The owner, the user, the group and others; the mask gives the group no more than its own entry.
        let entries = [(1, 6, u32::MAX), (2, 6, user), (4, 4, u32::MAX), (16, 6, u32::MAX)];
        let entries = entries.into_iter().chain([(32, 0, u32::MAX)]);
        let bytes = entries.flat_map(|(tag, rights, id): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        });
        let hex: String = 2_u32
            .to_le_bytes()
            .into_iter()
            .chain(bytes)
            .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        let call =
            "import os, sys; os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]))";
        let mut python = std::process::Command::new("python3");
        let python = python.args(["-c", call]).arg(path).args([kind, &hex]).output();
        python.is_ok_and(|ended| ended.status.success())
    }

    /// Its mode shows the mask in place of the group's rights. So a new file of that mode let the group write,
    /// and user 1000 no longer.
    #[test]
    fn a_file_keeps_its_acl() {
        const ACL: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];
        let scratch = Folder::new("output-acl");
        let path = scratch.write("shared", "some longer text");
        if !set_acl(&path, ACL[0], 1000) {
            return wakescope_testing::skip("a_file_keeps_its_acl", "no ACL can be set here");
        }
        let acl = |path: &Path| attributes(&File::open(path).unwrap()).unwrap();
        assert_eq!(acl(&path), [ACL[0]]);
        write(&path, "text");
        assert_eq!(acl(&path), [ACL[0]]);
        // Nor does it get that of a folder which had none when the file was made.
        let plain = scratch.write("folder/plain", "some text");
        assert!(set_acl(plain.parent().unwrap(), ACL[1], 1000));
        write(&plain, "other text");
        assert!(acl(&plain).is_empty());
        assert_eq!(names(plain.parent().unwrap()), ["plain"]);
        // One that has the ACL that a new one gets there is replaced. It would be written itself with another value.
        let shared = scratch.write("folder/shared", "some text");
        let value = |path: &Path| attribute(&File::open(path).unwrap(), ACL[0].as_ref()).unwrap();
        for (user, is_replaced) in [(1000, true), (1001, false)] {
            assert!(set_acl(&shared, ACL[0], user));
            let before = (value(&shared), identity(&shared));
            write(&shared, "text");
            let after = (value(&shared), identity(&shared));
            assert_eq!((after.0 == before.0, after.1 == before.1), (true, !is_replaced), "{user}");
        }
    }

    fn identity(path: &Path) -> (u64, u64) {
        About::of(&fs::metadata(path).unwrap()).identity
    }

    #[test]
    fn a_file_system_without_attributes_has_none() {
        let listed = |number| names_if_any(Err(io::Error::from_raw_os_error(number)));
        assert_eq!(listed(95).unwrap(), [""; 0]);
        // A filter of system calls, which says nothing of the file.
        assert_eq!(listed(1).unwrap_err().raw_os_error(), Some(1));
    }

    #[test]
    fn what_is_no_file_is_named() {
        let scratch = Folder::new("output-kinds");
        symlink("circle", scratch.join("circle")).unwrap();
        fs::create_dir(scratch.join("folder")).unwrap();
        for (name, why) in [
            ("circle", "too many symbolic links"),
            ("folder", "it is a folder, not a regular file"),
            ("", "it is a folder, not a regular file"),
            ("none/file", "No such file or directory"),
        ] {
            for opened in
                [create_output(&scratch.join(name)).map(drop), check_output(&scratch.join(name))]
            {
                let got = opened.unwrap_err().to_string();
                assert!(got.contains(why), "{name}: {got}");
            }
        }
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_is_not_finished_leaves_all_as_it_was() {
        let scratch = Folder::new("output-unfinished");
        let path = |name: &str| scratch.join(name);
        fs::write(path("old"), "older").unwrap();
        symlink("old", path("link")).unwrap();
        for name in ["new", "old", "link"] {
            check_output(&path(name)).unwrap();
            create_output(&path(name)).unwrap().write_all(b"a part").unwrap();
            assert_eq!(names(&scratch), ["link", "old"], "{name}");
        }
        assert_eq!(fs::read_to_string(path("old")).unwrap(), "older");
        // With two names it is itself written.
        fs::hard_link(path("old"), path("other")).unwrap();
        check_output(&path("old")).unwrap();
        assert_eq!(fs::read_to_string(path("old")).unwrap(), "older");
        create_output(&path("old")).unwrap().write_all(b"a part").unwrap();
        assert_eq!(fs::read_to_string(path("other")).unwrap(), "");
        write(&path("old"), "whole");
        assert_eq!(fs::read_to_string(path("other")).unwrap(), "whole");
        assert_eq!(names(&scratch), ["link", "old", "other"]);
        // Where anybody may write, anybody can have made the other name, and that of a link.
        fs::hard_link(path("link"), path("same-link")).unwrap();
        fs::set_permissions(&*scratch, fs::Permissions::from_mode(0o1777)).unwrap();
        for name in ["old", "link"] {
            let error = create_output(&path(name)).map(drop).unwrap_err().to_string();
            assert!(error.contains("other hard links"), "{error}");
        }
        assert_eq!(fs::read_to_string(path("old")).unwrap(), "whole");
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_new_one_takes_no_name_that_another_took() {
        let scratch = Folder::new("output-modes");
        let path = |name: &str| scratch.join(name);
        fs::write(path("old"), "older").unwrap();
        fs::set_permissions(path("old"), fs::Permissions::from_mode(0o640)).unwrap();
        // Left by a process of the same number.
        fs::write(path(&format!(".wakescope-{}-0", std::process::id())), "left").unwrap();
        write(&path("old"), "some text");
        assert_eq!(fs::metadata(path("old")).unwrap().permissions().mode() & 0o7777, 0o640);
        let output = create_output(&path("new")).unwrap();
        fs::write(path("new"), "faster").unwrap();
        output.finish().unwrap_err();
        assert_eq!(fs::read_to_string(path("new")).unwrap(), "faster");
        assert_eq!(names(&scratch).len(), 3);
    }

    #[test]
    fn a_lock_is_a_file_of_ones_own() {
        let scratch = Folder::new("output-lock");
        let path = |name: &str| scratch.join(name);
        fs::write(path("treasure"), "treasure").unwrap();
        open_lock(&path("treasure")).unwrap();
        let new = open_lock(&path("new")).unwrap();
        let mode = new.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "nobody else can lock it");
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
        let scratch = Folder::new("output-copy");
        let path = |name: &str| scratch.join(name);
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
        let write = |path: &str| {
            let mut output = create_output(Path::new(path)).unwrap();
            output.write_all(b"x").unwrap();
            output.finish().unwrap();
        };
        write("/dev/null");
        let (mut reader, writer) = wakescope_sys::pipe::pipe().unwrap();
        for folder in ["/dev/fd", "/proc/self/fd"] {
            let path = format!("{folder}/{}", writer.as_raw_fd());
            check_output(Path::new(&path)).unwrap();
            write(&path);
            let mut got = [0; 1];
            reader.read_exact(&mut got).unwrap();
            assert_eq!(got, *b"x", "{path}");
        }
        assert!(create_output(Path::new("/proc/self/fd/x")).is_err());
    }
}
