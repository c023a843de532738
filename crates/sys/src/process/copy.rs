//! Processes that go on with a copy of this one, without executing a program.

use std::io;

use super::{Child, clone_process};
use crate::checked;

/// Starts a process that runs `work` with a copy of this one's memory, and ends then, without a word.
/// It has the schedule, the CPUs, the signal mask and the open files of the calling thread, and is killed
/// when that *thread* ends after `work` has begun.
///
/// Other threads may have held locks at this moment, which nobody gives back in the copy: `work` must
/// not allocate, print or panic, nor take a lock.
pub fn fork(work: &mut dyn FnMut()) -> io::Result<Child> {
    // SAFETY: takes nothing and cannot fail.
    let parent = unsafe { libc::getpid() };
    // SAFETY: without CLONE_VM this is a fork: parent and child each go on with memory of their own.
    // The child makes system calls only, but for `work`, which the caller vouches for: what it might
    // do wrong is to wait for ever. It never returns from the block.
    let pid = unsafe {
        let pid = clone_process(libc::SIGCHLD);
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            // Whoever should take this process along may have gone before it asked for that.
            if libc::getppid() == parent {
                work();
            }
            libc::_exit(0);
        }
        checked(pid)?
    };
    Ok(Child { pid, leads_group: false, exit: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Exit;
    use crate::shared_page::SharedPage;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_copy_ends_by_itself_or_is_killed() {
        let child = fork(&mut || ()).unwrap();
        assert_eq!(child.wait(), Exit::Status(0));
        let child = fork(&mut || loop {
            std::hint::spin_loop();
        });
        let child = child.unwrap();
        child.kill();
        assert_eq!(child.wait(), Exit::Signal(libc::SIGKILL));
    }

    #[test]
    fn a_copy_ends_with_the_thread_that_made_it() {
        let page = SharedPage::new().unwrap();
        let child = std::thread::spawn(move || {
            let runs = &page.words()[0];
            let child = fork(&mut || {
                runs.store(1, Ordering::Release);
                loop {
                    std::hint::spin_loop();
                }
            });
            // A thread that ends before its copy asks for that is not noticed.
            while runs.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            child.unwrap()
        });
        assert_eq!(child.join().unwrap().wait(), Exit::Signal(libc::SIGKILL));
    }
}
