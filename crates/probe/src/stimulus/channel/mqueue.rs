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
        let (name, sleeper) = open_new(exchange)?;
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

/// Makes a queue under a name that nobody has. Any user may have given such a name to a queue, which is left
/// alone.
fn open_new(exchange: &Exchange) -> io::Result<(CString, MessageQueue)> {
    for number in 0..MOST_NAMES {
        let name = name(exchange, number)?;
        match MessageQueue::open(&name, Open::New) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return Ok((name, other.map_err(why_refused)?)),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "all candidate names exist"))
}

fn name(exchange: &Exchange, number: u32) -> io::Result<CString> {
    let (process, thread) = exchange.probe();
    Ok(CString::new(format!("wakescope-{process}-{}-{number}", thread.number()))?)
}

/// More than there can be queues without privileges (fs.mqueue.queues_max is 256).
const MOST_NAMES: u32 = 1_000;

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

#[cfg(test)]
mod tests {
    use wakescope_core::plan::Between;

    use super::*;

    #[test]
    fn a_queue_that_has_the_name_is_left_alone() {
        let exchange = Exchange::of_this_thread(Between::Threads).unwrap();
        let first = name(&exchange, 0).unwrap();
        let taken = match MessageQueue::open(&first, Open::New) {
            Err(e) => {
                let test = "a_queue_that_has_the_name_is_left_alone";
                return wakescope_testing::skip(test, &e.to_string());
            }
            Ok(taken) => taken,
        };
        taken.send().unwrap();
        let own = Mqueue::open(&exchange);
        let kept = MessageQueue::open(&first, Open::Nonblocking);
        MessageQueue::unlink(&first).unwrap();
        let (own, kept) = (own.unwrap(), kept.unwrap());
        own.wake(&exchange).unwrap();
        assert!(matches!(own.sleep(&exchange), Slept::Woken));
        assert_eq!(kept.send().unwrap_err().kind(), io::ErrorKind::WouldBlock, "it is still full");
    }
}
