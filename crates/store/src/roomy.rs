//! Files that are overwritten in place, with room kept on the disk for their next version.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use wakescope_sys::file::{give_room_back, keep_room, room_beside};

/// Room is kept in steps of this, bytes: a new file has it for the record of a few CPUs, which the first second
/// makes of one that is empty.
const STEP: u64 = 256 << 10;
/// Of what is free, at most one part of so many is kept.
const LEAVES: u64 = 3;

/// A file that holds one version after another, each in the room that was kept for it, whatever else
/// fills the disk meanwhile. Where there was no room, or the file system keeps none, it is a file as any.
#[derive(Debug)]
pub(crate) struct RoomyFile {
    file: File,
    /// At most; exactly, once a version has been written, bytes.
    length: u64,
    /// What is kept, from its beginning on, bytes.
    room: u64,
}

impl RoomyFile {
    /// There are `length` bytes in `file`.
    pub(crate) fn new(file: File, length: usize) -> Self {
        Self { file, length: length as u64, room: 0 }
    }

    /// Writes a version over the last one. On an error what is in it may be of both.
    pub(crate) fn overwrite(&mut self, version: &[u8]) -> io::Result<()> {
        let length = version.len() as u64;
        // Of one that does not fit some part may be there.
        self.length = self.length.max(length);
        self.file.write_all_at(version, 0)?;
        if length < self.length {
            self.file.set_len(length)?;
            // With the end, most file systems cut off the room behind it.
            self.room = 0;
        }
        self.length = length;
        Ok(())
    }

    /// Keeps room for a version of at least `length` bytes. Where little is left it keeps none, and so takes none
    /// from the files beside it.
    pub(crate) fn keep_room(&mut self, length: usize) {
        let room = (length as u64).next_multiple_of(STEP);
        let is_plenty = |free: u64| free / LEAVES >= room - self.room;
        if room > self.room
            && room_beside(&self.file).is_ok_and(|found| is_plenty(found.bytes))
            && keep_room(&self.file, room).is_ok()
        {
            self.room = room;
        }
    }

    /// Waits until the disk has the version, and gives back the room that it does not need.
    pub(crate) fn finish(&self) -> io::Result<()> {
        // Room that stays is no fault of the version.
        let _ = give_room_back(&self.file);
        self.file.sync_all()
    }
}
