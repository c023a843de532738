//! The unit of a file's values: that the file and the user must agree, and that it must be possible.

use super::{About, ImportError, Unit};

/// The unit that a file states, in ns. `by` says what in the file tells it.
///
/// # Errors
/// If the user says another one.
pub(super) fn stated(about: &About, unit: Unit, by: &str) -> Result<u64, ImportError> {
    match about.unit {
        Some(asked) if asked != unit => Err(ImportError::new(format!(
            "--unit says {asked}, but the file's values are in {unit}: {by}"
        ))
        .try_this("omit --unit")),
        _ => Ok(unit.ns()),
    }
}

/// Refuses an assumed unit by which wakeups are later on average than one follows the other.
pub(super) fn refuse_impossible(mean_ns: u64, interval_ns: u64) -> Result<(), ImportError> {
    if mean_ns <= interval_ns {
        return Ok(());
    }
    let us = |ns: u64| format!("{}.{:03} µs", ns / 1_000, ns % 1_000);
    Err(ImportError::new(format!(
        "the values cannot be in µs, the assumed unit: their mean would be {}, above the interval of {}",
        us(mean_ns),
        us(interval_ns)
    ))
    .try_this("say which unit it is: --unit ns; or --unit us, if every wakeup was that late"))
}
