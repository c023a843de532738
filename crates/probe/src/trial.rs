//! Trying what would stay with the thread that does it: its policy, its signal mask, its timer slack.

use std::io;

/// What is tried needs little. The C library keeps the stack of a thread that has ended, and once memory
/// is locked, all of it is resident.
const STACK_BYTES: usize = 64 << 10;

/// The result of `trial`, in a thread that ends with it.
///
/// # Errors
/// That of `trial`, or that there was no thread for it.
pub(crate) fn in_own_thread<T: Send + 'static>(
    trial: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(trial)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")))
}
