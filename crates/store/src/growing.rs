//! Files that grow by whole pieces while something lasts; that of a run can be replaced as a whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};

use wakescope_sys::folder::{Folder, Rename};

use crate::run_folder::FILE_MODE;

/// A file that pieces are added to.
#[derive(Debug)]
pub(crate) struct Appended {
    file: File,
    length: u64,
}

impl Appended {
    /// A new file, in which nothing is yet.
    pub(crate) fn new(file: File) -> Self {
        Self { file, length: 0 }
    }

    /// Adds a piece at the end. On an error none of it is added.
    pub(crate) fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(piece);
        match written {
            Ok(()) => self.length += piece.len() as u64,
            // What a full disk took of it goes again, and the next piece begins there.
            Err(_) => {
                self.file.set_len(self.length)?;
                io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.length))?;
            }
        }
        written
    }
}

/// A file of a run, in a folder that stays open.
#[derive(Debug)]
pub struct GrowingFile {
    folder: Folder,
    file: Appended,
    name: &'static str,
    fresh: &'static str,
}

impl GrowingFile {
    pub(crate) fn new(folder: Folder, file: File, name: &'static str, fresh: &'static str) -> Self {
        Self { folder, file: Appended::new(file), name, fresh }
    }

    /// How long it is, bytes.
    pub fn length(&self) -> u64 {
        self.file.length
    }

    /// Adds a piece at the end. On an error none of it is added.
    ///
    /// # Errors
    /// If there is no room, or the file cannot be written.
    pub fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.append(piece)
    }

    /// Puts `whole` in place of all that is in the file. On an error it stays as it was.
    ///
    /// # Errors
    /// If there is no room for it beside the old one, or it cannot be written.
    pub fn replace(&mut self, whole: &[u8]) -> io::Result<()> {
        let fresh = OsStr::new(self.fresh);
        // Left by an attempt that failed. Only whoever has the folder makes one.
        let _ = self.folder.remove_file(fresh);
        let mut file = self.folder.create(fresh, FILE_MODE)?;
        let written = file
            .write_all(whole)
            .and_then(|()| self.folder.rename(fresh, OsStr::new(self.name), Rename::Over));
        match &written {
            Ok(()) => self.file = Appended { file, length: whole.len() as u64 },
            Err(_) => {
                let _ = self.folder.remove_file(fresh);
            }
        }
        written
    }

    /// Removes the file, so that what it was to hold is missing rather than wrong.
    pub fn remove(self) {
        let _ = self.folder.remove_file(OsStr::new(self.name));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;
    use crate::{EPISODES, EPISODES_FRESH, RunFiles, RunFolderError};
    use wakescope_testing::Disk;

    /// A folder of the test `name`, which has none yet.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("wakescope-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    fn growing(folder: &std::path::Path) -> Result<GrowingFile, RunFolderError> {
        let mut run = RunFiles::create(Some(folder), "", b"{}")?;
        run.add_growing(EPISODES, EPISODES_FRESH)
    }

    #[test]
    fn pieces_are_added_and_the_whole_replaced() {
        let folder = folder("growing");
        let file = || fs::read_to_string(folder.join(EPISODES));
        let mut growing = growing(&folder).unwrap();
        growing.append(b"one\n").unwrap();
        growing.append(b"two\n").unwrap();
        assert_eq!((file().unwrap().as_str(), growing.length()), ("one\ntwo\n", 8));
        growing.replace(b"three\n").unwrap();
        growing.append(b"four\n").unwrap();
        assert_eq!((file().unwrap().as_str(), growing.length()), ("three\nfour\n", 11));
        assert!(!folder.join(EPISODES_FRESH).exists());
        growing.remove();
        assert!(file().is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_piece_for_which_there_is_no_room_leaves_nothing() {
        let folder = folder("growing-full");
        let name = "a_piece_for_which_there_is_no_room_leaves_nothing";
        let Some(disk) = Disk::mount(&folder, "size=64k", name) else { return };
        let mut growing = growing(&folder.join("run")).unwrap();
        let file = || fs::read(folder.join("run").join(EPISODES)).unwrap();
        growing.append(&[1; 30_000]).unwrap();
        growing.append(&[2; 40_000]).unwrap_err();
        growing.replace(&[3; 40_000]).unwrap_err();
        assert_eq!(file(), [1; 30_000]);
        growing.append(b"4").unwrap();
        assert_eq!((file().len(), file().last()), (30_001, Some(&b'4')));
        assert!(!folder.join("run").join(EPISODES_FRESH).exists());
        drop(disk);
        fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn what_has_the_name_already_is_neither_followed_nor_replaced() {
        let folder = folder("growing-taken");
        for name in [EPISODES, EPISODES_FRESH] {
            symlink("elsewhere", folder.join(name)).unwrap();
            assert!(growing(&folder).is_err(), "{name}");
            assert!(!folder.join("elsewhere").exists());
            fs::remove_file(folder.join(name)).unwrap();
        }
        fs::write(folder.join(EPISODES), "of another run").unwrap();
        assert!(matches!(growing(&folder), Err(RunFolderError::HoldsRun(_))));
        assert_eq!(fs::read(folder.join(EPISODES)).unwrap(), b"of another run");
        fs::remove_dir_all(folder).unwrap();
    }
}
