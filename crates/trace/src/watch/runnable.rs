//! Tasks that could run when a watch began: what these wait for then is no sleep.

use std::fs;

use aya::maps::{HashMap, Map};

use super::refused;
use crate::error::TraceError;
use crate::target::has_kernels_numbers;

/// The program learns of so many tasks at most. If another one waits when the watch begins, that wait is left out.
pub(super) const MOST: u32 = 16_384;

/// Tells the program which tasks can run now. By then, the program that marks moves must be attached. In a PID
/// namespace tasks have other numbers, so the program learns of none.
pub(super) fn tell(map: Map) -> Result<(), TraceError> {
    let mut told = HashMap::<_, u32, u32>::try_from(map).map_err(refused("runnable_before"))?;
    let tasks = if has_kernels_numbers() { tasks() } else { Vec::new() };
    let can_run = tasks.into_iter().filter(|(_, path)| {
        fs::read_to_string(format!("{path}/stat")).is_ok_and(|stat| is_runnable(&stat))
    });
    for (task, _) in can_run.take(MOST as usize) {
        told.insert(task, 1, 0).map_err(refused("runnable_before"))?;
    }
    Ok(())
}

/// All tasks, each with its folder.
fn tasks() -> Vec<(u32, String)> {
    numbered("/proc").flat_map(|(_, process)| numbered(&format!("{process}/task"))).collect()
}

/// The folders in this one that have a number as their name.
fn numbered(folder: &str) -> impl Iterator<Item = (u32, String)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folder = folder.to_owned();
    entries.filter_map(move |entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some((number, format!("{folder}/{number}")))
    })
}

/// Whether /proc/TID/stat says that the task runs, or could. Its name may contain anything.
pub(super) fn is_runnable(stat: &str) -> bool {
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('R'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_of_a_task_is_read() {
        assert!(is_runnable("12 (a) S) R 1 12"));
        assert!(!is_runnable("12 (a) R) S 1 12"));
    }

    #[test]
    fn this_task_is_one_of_all_and_can_run() {
        let own = fs::read_link("/proc/thread-self").unwrap();
        let own: u32 = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let (_, path) = tasks().into_iter().find(|(task, _)| *task == own).expect("its folder");
        assert!(is_runnable(&fs::read_to_string(format!("{path}/stat")).unwrap()));
    }
}
