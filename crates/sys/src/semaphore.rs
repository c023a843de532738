//! POSIX semaphores without a name, those of the C library: a count and a futex.

use std::io;

use crate::checked;
use crate::region::Region;

/// A semaphore in memory that a process shares with those that it forks.
#[derive(Debug)]
pub struct Semaphore(Region);

// SAFETY: the memory stays mapped for as long as the value lives, and is only ever reached through
// functions that any number of threads may call at once.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// A semaphore with the count 0. Only if it is `shared` may processes that are forked use it.
    pub fn new(shared: bool) -> io::Result<Self> {
        // A semaphore of Linux is nothing but its memory.
        let this = Self(Region::of_zeros(size_of::<libc::sem_t>(), true)?);
        // SAFETY: a mapping is aligned and long enough, and nobody else knows of it yet.
        checked(unsafe { libc::sem_init(this.at(), libc::c_int::from(shared), 0) })?;
        Ok(this)
    }

    fn at(&self) -> *mut libc::sem_t {
        self.0.start().as_ptr()
    }

    /// Adds one to the count, and wakes a thread that waits for that.
    #[inline]
    pub fn post(&self) -> io::Result<()> {
        // SAFETY: the semaphore was initialised and lives as long as this value.
        checked(unsafe { libc::sem_post(self.at()) }).map(drop)
    }

    /// Waits until the count is not 0, and takes one from it.
    #[inline]
    pub fn wait(&self) -> io::Result<()> {
        // SAFETY: as in `post`.
        checked(unsafe { libc::sem_wait(self.at()) }).map(drop)
    }

    /// Takes one from the count; fails with `WouldBlock` where it is 0.
    #[inline]
    pub fn try_wait(&self) -> io::Result<()> {
        // SAFETY: as in `post`.
        checked(unsafe { libc::sem_trywait(self.at()) }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_post_lets_one_through() {
        for shared in [false, true] {
            let semaphore = Semaphore::new(shared).unwrap();
            semaphore.post().unwrap();
            semaphore.post().unwrap();
            semaphore.wait().unwrap();
            semaphore.try_wait().unwrap();
            assert_eq!(semaphore.try_wait().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }
}
