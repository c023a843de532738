//! The load `fork`: starts processes that end at once.

use wakescope_sys::process::{Exit, fork_that_exits};

use super::kinds::Job;

/// So many are there at once.
const ALIVE: usize = 8;

/// Forks until the desk says stop. The processes share no more with the keeper than its memory at the
/// time of the fork, and execute nothing.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    desk.ready();
    while !desk.stopping() {
        let mut children = Vec::with_capacity(ALIVE);
        let mut refused = None;
        for _ in 0..ALIVE {
            match fork_that_exits() {
                Ok(child) => children.push(child),
                Err(e) => refused = Some(e),
            }
        }
        // All are waited for, whatever became of the others.
        for child in children {
            let exit = child.wait();
            if exit != Exit::Status(0) {
                refused.get_or_insert_with(|| {
                    std::io::Error::other(format!("a process ended with {exit}"))
                });
            }
            desk.done(1);
        }
        if let Some(e) = refused {
            return Err(format!(
                "cannot fork: {e} (ulimit -u and pids.max limit the number of processes)"
            ));
        }
    }
    Ok(())
}
