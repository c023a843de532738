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
    /// Of all whole pieces, bytes.
    length: u64,
    /// Whether a part of a piece may be behind these.
    is_torn: bool,
}

impl Appended {
    /// A new file, in which nothing is yet.
    pub(crate) fn new(file: File) -> Self {
        Self { file, length: 0, is_torn: false }
    }

    /// Adds a piece at the end. On an error none of it is added.
    pub(crate) fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        self.add(piece, |_| Ok(()))
    }

    /// The same, and waits until the disk has it.
    pub(crate) fn append_synced(&mut self, piece: &[u8]) -> io::Result<()> {
        self.add(piece, File::sync_data)
    }

    /// Whether a part of a piece is at the end that cannot be removed. Until it is, no piece can be added.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_torn
    }

    fn add(&mut self, piece: &[u8], sync: fn(&File) -> io::Result<()>) -> io::Result<()> {
        if self.is_torn {
            self.roll_back()?;
        }
        let written = self.file.write_all(piece).and_then(|()| sync(&self.file));
        match written {
            Ok(()) => self.length += piece.len() as u64,
            // What a full disk took of it goes again, and the next piece begins there.
            Err(_) => drop(self.roll_back()),
        }
        written
    }

    /// Removes what is behind the whole pieces.
    fn roll_back(&mut self) -> io::Result<()> {
        self.is_torn = true;
        self.file.set_len(self.length)?;
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.length))?;
        self.is_torn = false;
        Ok(())
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
            Ok(()) => {
                self.file = Appended { length: whole.len() as u64, ..Appended::new(file) };
            }
            Err(_) => {
                let _ = self.folder.remove_file(fresh);
            }
        }
        written
    }

    /// Removes the file, so that what it was to hold is missing rather than wrong.
    pub fn remove(&self) {
        let _ = self.folder.remove_file(OsStr::new(self.name));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::{EPISODES, EPISODES_FRESH, RunFiles, RunFolderError};
    use wakescope_testing::{Disk, Folder};

    fn growing(folder: &Path) -> Result<GrowingFile, RunFolderError> {
        let mut run = RunFiles::create(Some(folder), "", b"{}")?;
        run.add_growing(EPISODES, EPISODES_FRESH)
    }

    #[test]
    fn pieces_are_added_and_the_whole_replaced() {
        let folder = Folder::new("growing");
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
    }

    #[test]
    fn a_piece_for_which_there_is_no_room_leaves_nothing() {
        let folder = Folder::new("growing-full");
        let name = "a_piece_for_which_there_is_no_room_leaves_nothing";
        let Some(_disk) = Disk::mount(&folder, "size=64k", name) else { return };
        let mut growing = growing(&folder.join("run")).unwrap();
        let file = || fs::read(folder.join("run").join(EPISODES)).unwrap();
        growing.append(&[1; 30_000]).unwrap();
        growing.append(&[2; 40_000]).unwrap_err();
        growing.replace(&[3; 40_000]).unwrap_err();
        assert_eq!(file(), [1; 30_000]);
        growing.append(b"4").unwrap();
        assert_eq!((file().len(), file().last()), (30_001, Some(&b'4')));
        assert!(!folder.join("run").join(EPISODES_FRESH).exists());
    }

    #[test]
    fn nothing_is_added_behind_a_part_that_cannot_be_removed() {
        let open = |device| Appended::new(File::options().write(true).open(device).unwrap());
        let mut full = open("/dev/full");
        assert_eq!(full.append(b"1").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(full.is_torn());
        // It takes everything, but cannot be cut.
        full.file = open("/dev/null").file;
        full.append(b"2").unwrap_err();
        assert!(full.is_torn());
        let folder = Folder::new("growing-torn");
        full.file = File::create(folder.join("file")).unwrap();
        full.file.write_all(b"1").unwrap();
        full.append(b"3").unwrap();
        assert_eq!(fs::read(folder.join("file")).unwrap(), b"3");
    }

    #[test]
    fn what_cannot_be_synced_is_not_added() {
        let mut device = Appended::new(File::options().write(true).open("/dev/null").unwrap());
        device.append(b"1").unwrap();
        assert_eq!(device.append_synced(b"2").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(device.length, 1);
    }

    #[test]
    fn what_has_the_name_already_is_neither_followed_nor_replaced() {
        let folder = Folder::new("growing-taken");
        for name in [EPISODES, EPISODES_FRESH] {
            symlink("elsewhere", folder.join(name)).unwrap();
            assert!(growing(&folder).is_err(), "{name}");
            assert!(!folder.join("elsewhere").exists());
            fs::remove_file(folder.join(name)).unwrap();
        }
        fs::write(folder.join(EPISODES), "of another run").unwrap();
        assert!(matches!(growing(&folder), Err(RunFolderError::HoldsRun(_))));
        assert_eq!(fs::read(folder.join(EPISODES)).unwrap(), b"of another run");
    }
}
