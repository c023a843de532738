//! Signals that end a command.

use wakescope_sys::signal::EndSignals;

use crate::Failure;

/// From now on, until what is returned is dropped, Ctrl-C and SIGTERM wait until they are fetched.
pub(crate) fn block_end_signals() -> Result<EndSignals, Failure> {
    EndSignals::block().map_err(|e| Failure::new(format!("cannot handle Ctrl-C and SIGTERM: {e}")))
}
