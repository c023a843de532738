//! A file of a run that grows by whole pieces while the run lasts, and can be replaced as a whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};

use wakescope_sys::folder::{Folder, Rename};

use crate::run_folder::FILE_MODE;

/// Such a file, in a folder that stays open.
#[derive(Debug)]
pub struct GrowingFile {
    folder: Folder,
    file: File,
    name: &'static str,
    fresh: &'static str,
    length: u64,
}

impl GrowingFile {
    pub(crate) fn new(folder: Folder, file: File, name: &'static str, fresh: &'static str) -> Self {
        Self { folder, file, name, fresh, length: 0 }
    }

    /// How long it is, bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Adds a piece at the end. On an error none of it is added.
    ///
    /// # Errors
    /// If there is no room, or the file cannot be written.
    pub fn append(&mut self, piece: &[u8]) -> io::Result<()> {
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
                self.file = file;
                self.length = whole.len() as u64;
            }
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
