//! Tasks that could run when a watch began: what these wait for then is no sleep.

use std::fs;
use std::path::Path;

use aya::maps::{HashMap, Map};
use wakescope_sys::proc_files::field_after_name;

use super::refused;
use crate::error::TraceError;
use crate::target::has_kernels_numbers;
use crate::threads;

/// The program learns of so many tasks at most. If another one waits when the watch begins, that wait is left out.
pub(super) const MOST: u32 = 16_384;

/// Tells the program which tasks can run now. By then, the program that marks moves must be attached. In a PID
/// namespace tasks have other numbers, so the program learns of none.
pub(super) fn tell(map: Map) -> Result<(), TraceError> {
    let mut told = HashMap::<_, u32, u32>::try_from(map).map_err(refused("runnable_before"))?;
    let tasks = has_kernels_numbers().then(|| threads::all(Path::new("/proc")));
    let can_run = tasks
        .into_iter()
        .flatten()
        .filter(|(_, folder)| fs::read(folder.join("stat")).is_ok_and(|stat| is_runnable(&stat)));
    for (task, _) in can_run.take(MOST as usize) {
        told.insert(task, 1, 0).map_err(refused("runnable_before"))?;
    }
    Ok(())
}

/// Whether /proc/TID/stat says that the task runs, or could.
pub(super) fn is_runnable(stat: &[u8]) -> bool {
    field_after_name(stat, 0).is_none_or(|state| state == "R")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_of_a_task_is_read() {
        assert!(is_runnable(b"12 (a) S) R 1 12"));
        assert!(is_runnable(b"12 (\xc3) R 1 12"));
        assert!(!is_runnable(b"12 (a) R) S 1 12"));
        assert!(!is_runnable(b"12 (\xc3) S 1 12"));
    }
}
