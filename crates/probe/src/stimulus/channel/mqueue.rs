//! A POSIX message queue: the sleeper receives a message of one byte.

use std::ffi::CString;
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
            other => other?,
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
