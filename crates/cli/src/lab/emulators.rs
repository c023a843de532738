//! The emulators that stored cells can be run again by.

use std::path::Path;
use std::sync::Arc;

use wakescope_lab::cache::Cache;
use wakescope_lab::kernel::Arch;
use wakescope_lab::qemu::Qemu;
use wakescope_lab::sum::Memo;

use super::failure_of_qemu;
use crate::Failure;

/// One of each architecture that there is: which of them a cell needs, only the cell says.
///
/// # Errors
/// If there is none, or the one that is named (`explicit`) is of no use.
pub(super) fn emulators(explicit: Option<&Path>, cache: &Cache) -> Result<Vec<Arc<Qemu>>, Failure> {
    let mut memo = Memo::open(cache);
    let found = Arch::ALL.map(|arch| Qemu::find(arch, explicit, cache, &mut memo));
    let mut why = None;
    let mut emulators = Vec::new();
    for one in found {
        match one {
            Ok(qemu) => emulators.push(Arc::new(qemu)),
            // The first is that of the usual architecture.
            Err(e) => why = why.or(Some(e)),
        }
    }
    match why {
        Some(e) if emulators.is_empty() => Err(failure_of_qemu(&e)),
        _ => Ok(emulators),
    }
}
