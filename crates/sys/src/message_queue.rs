//! POSIX message queues, by their system calls: an open queue is a descriptor.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::checked;

/// One open end of a queue.
#[derive(Debug)]
pub struct MessageQueue(OwnedFd);

/// How to open a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Makes it, with room for one message of one byte. Fails if one of this name exists.
    New,
    /// Opens one that exists, so that nothing sent through this end ever waits for room.
    Nonblocking,
}

impl MessageQueue {
    /// Opens the queue called `name`, which has no slash: that is the C library's. Only this user
    /// may use what is made.
    pub fn open(name: &CStr, how: Open) -> io::Result<Self> {
        // SAFETY: `mq_attr` is plain integers, for which zero is a value.
        let mut room: libc::mq_attr = unsafe { std::mem::zeroed() };
        (room.mq_maxmsg, room.mq_msgsize) = (1, 1);
        let flags = match how {
            Open::New => libc::O_CREAT | libc::O_EXCL,
            Open::Nonblocking => libc::O_NONBLOCK,
        };
        let flags = flags | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the name ends in NUL, and the attributes are live and only read.
        let fd = unsafe {
            libc::syscall(libc::SYS_mq_open, name.as_ptr(), flags, 0o600, &raw const room)
        };
        let fd = checked(libc::c_int::try_from(fd).unwrap_or(-1))?;
        // SAFETY: the descriptor is new, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Takes the name from a queue, which ends with the last who has it open.
    pub fn unlink(name: &CStr) -> io::Result<()> {
        // SAFETY: the name ends in NUL.
        let rc = unsafe { libc::syscall(libc::SYS_mq_unlink, name.as_ptr()) };
        checked(rc).map(drop)
    }

    /// Sends a message. Fails with `WouldBlock` if there is no room and this end does not wait for it.
    #[inline]
    pub fn send(&self) -> io::Result<()> {
        let message = [0_u8; 1];
        // SAFETY: the message is live, of the length that is passed, and only read; no timeout.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_mq_timedsend,
                self.0.as_raw_fd(),
                message.as_ptr(),
                message.len(),
                0,
                std::ptr::null::<libc::timespec>(),
            )
        };
        checked(rc).map(drop)
    }

    /// Takes a message, which it waits for.
    #[inline]
    pub fn receive(&self) -> io::Result<()> {
        let mut message = [0_u8; 1];
        // SAFETY: the room for the message is live, writable and of the length that is passed;
        // neither its priority nor a timeout is asked for.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_mq_timedreceive,
                self.0.as_raw_fd(),
                message.as_mut_ptr(),
                message.len(),
                std::ptr::null_mut::<libc::c_uint>(),
                std::ptr::null::<libc::timespec>(),
            )
        };
        checked(rc).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_does_not_hold_who_does_not_wait() {
        let name =
            std::ffi::CString::new(format!("wakescope-test-{}", std::process::id())).unwrap();
        let queue = match MessageQueue::open(&name, Open::New) {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => return,
            other => other.unwrap(),
        };
        let sender = MessageQueue::open(&name, Open::Nonblocking).unwrap();
        assert!(MessageQueue::open(&name, Open::New).is_err(), "it exists");
        MessageQueue::unlink(&name).unwrap();
        assert!(MessageQueue::open(&name, Open::Nonblocking).is_err(), "it has no name");
        for _ in 0..2 {
            sender.send().unwrap();
            assert_eq!(sender.send().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            queue.receive().unwrap();
        }
    }
}
