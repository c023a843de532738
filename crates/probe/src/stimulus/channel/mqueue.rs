//! A POSIX message queue: the sleeper receives a message of one byte.

use std::ffi::CString;
use std::fs::File;
use std::io;

use wakescope_sys::message_queue::{MessageQueue, Open};

use super::{Channel, Slept};
use crate::stimulus::waker::exchange::Exchange;

pub(super) struct Mqueue {
    sleeper: MessageQueue,
    /// Does not wait for room.
    waker: MessageQueue,
}

impl Channel for Mqueue {
    const KEEPS_WAKEUPS: bool = true;

    fn open(exchange: &Exchange) -> io::Result<Self> {
        let (process, thread) = exchange.probe();
        let name = CString::new(format!("wakescope-{process}-{}", thread.number()))?;
        let sleeper = match MessageQueue::open(&name, Open::New) {
            // Of a process of this number that was killed before it took the name away.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                MessageQueue::unlink(&name)?;
                MessageQueue::open(&name, Open::New)?
            }
            other => other.map_err(why_refused)?,
        };
        let waker = MessageQueue::open(&name, Open::Nonblocking);
        // From here on the queue ends with this process and its copies, however they end.
        MessageQueue::unlink(&name)?;
        Ok(Self { sleeper, waker: waker? })
    }

    #[inline]
    fn sleep(&self, _: &Exchange) -> Slept {
        Slept::in_call(self.sleeper.receive())
    }

    #[inline]
    fn wake(&self, _: &Exchange) -> io::Result<()> {
        self.waker.send()
    }
}

/// What a refusal means: the kernel says that too many files are open where it is message queues that have
/// used up this user's room.
fn why_refused(e: io::Error) -> io::Error {
    let text = match e.raw_os_error() {
        // Where a file cannot be opened either, it is what it says.
        Some(TOO_MANY_FILES) if File::open("/dev/null").is_ok() => {
            "the room for this user's message queues is used up"
        }
        Some(NO_SPACE) => "there are as many message queues as the system allows",
        _ => return e,
    };
    io::Error::other(text)
}

/// `EMFILE` and `ENOSPC`.
const TOO_MANY_FILES: i32 = 24;
const NO_SPACE: i32 = 28;
