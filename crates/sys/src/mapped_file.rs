//! Files that are mapped to be read.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// The bytes of a file, of which only those take memory that are looked at.
///
/// For files that nobody writes to any more: who does changes what is read, and who cuts one short
/// ends this process (`SIGBUS`).
pub struct MappedFile {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory stays mapped for as long as the value lives, and is only ever read.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps all of `file`, as long as it is now. Fails for what is empty or no regular file.
    pub fn of(file: &File) -> io::Result<Self> {
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let length = usize::try_from(about.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if length == 0 {
            return Err(io::Error::other("it is empty"));
        }
        // SAFETY: the kernel chooses the place, and nothing is there yet.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, length })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped there, readable, for as long as this value lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, and nobody has a byte of it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_is_its_bytes() {
        let path = std::env::temp_dir().join(format!("wakescope-mapped-{}", std::process::id()));
        std::fs::write(&path, "wake\n").unwrap();
        let mapped = MappedFile::of(&File::open(&path).unwrap()).unwrap();
        assert_eq!(&*mapped, b"wake\n");
        std::fs::write(&path, "").unwrap();
        let empty = MappedFile::of(&File::open(&path).unwrap());
        assert_eq!(empty.err().unwrap().to_string(), "it is empty");
        std::fs::remove_file(path).unwrap();
        let folder = MappedFile::of(&File::open("/").unwrap());
        assert_eq!(folder.err().unwrap().to_string(), "it is not a regular file");
    }
}
