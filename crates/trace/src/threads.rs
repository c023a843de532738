//! Threads of this machine, as /proc lists them.

use std::fs;
use std::path::{Path, PathBuf};

use wakescope_core::plan::Target;

/// A thread's folder below `proc`, for whoever knows only its number.
///
/// For `stat` in /proc/TID, the kernel adds up what all threads of the process have used (`do_task_stat` with
/// `whole`). For all threads of a process, that work grows with the square of their number. This folder has what the
/// thread alone has used.
pub(crate) fn folder_of(proc: &Path, thread: u32) -> PathBuf {
    proc.join(format!("{thread}/task/{thread}"))
}

/// All threads of the machine: their numbers, and their folders.
pub(crate) fn all(proc: &Path) -> impl Iterator<Item = (u32, PathBuf)> + use<> {
    numbered(proc).flat_map(|(_, process)| numbered(&process.join("task")))
}

/// The same of those that may become followed: the threads of a process, or all of the machine.
pub(crate) fn of_target(proc: &Path, target: &Target) -> Box<dyn Iterator<Item = (u32, PathBuf)>> {
    match target {
        Target::Process { pid } | Target::Thread { tid: pid } => {
            Box::new(numbered(&proc.join(format!("{pid}/task"))))
        }
        _ => Box::new(all(proc)),
    }
}

/// The folders in this one that have a number as their name.
fn numbered(folder: &Path) -> impl Iterator<Item = (u32, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;

    #[test]
    fn threads_of_a_process_or_of_all_may_become_followed() {
        let proc = Folder::new("threads");
        for file in ["7/task/7/x", "7/task/8/x", "9/task/9/x", "self/task/1/x", "7/fd/3"] {
            proc.write(file, "");
        }
        let of = |target| {
            let mut threads: Vec<_> = of_target(&proc, &target).collect();
            threads.sort_unstable();
            for (number, folder) in &threads {
                assert!(folder.join("x").exists(), "{number}: {folder:?}");
            }
            threads.into_iter().map(|(number, _)| number).collect::<Vec<u32>>()
        };
        assert_eq!(of(Target::Process { pid: 7 }), [7, 8]);
        assert_eq!(of(Target::Thread { tid: 9 }), [9]);
        assert_eq!(of(Target::Comm { comm: "x".into() }), [7, 8, 9]);
        assert_eq!(of(Target::Process { pid: 1 }), [0; 0]);
        assert!(folder_of(&proc, 9).join("x").exists());
    }

    #[test]
    fn this_thread_is_one_of_all() {
        let own = wakescope_sys::sched::this_thread().number();
        let proc = Path::new("/proc");
        let (_, folder) = all(proc).find(|(thread, _)| *thread == own).expect("its folder");
        for folder in [folder, folder_of(proc, own)] {
            let stat = fs::read_to_string(folder.join("stat")).unwrap();
            assert!(stat.starts_with(&format!("{own} (")), "{stat}");
        }
    }
}
