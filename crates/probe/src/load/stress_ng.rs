//! The load `stress-ng:ARGS`: the program of that name, with arguments of the user's.

use std::path::Path;

use super::foreign::Foreign;
use super::installed;
use super::kinds::Job;

/// Runs stress-ng with the arguments until the desk says stop. They are words between blanks; no
/// shell reads them.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let path = installed::find("stress-ng", "stress-ng", job.desk)?;
    // By default it ends after a day. What the user says of that comes later and holds.
    let mut all = vec!["--timeout", "0"];
    all.extend(job.argument().split_ascii_whitespace());
    // Killed, it would leave semaphores, message queues and shared memory of System V.
    let stress =
        Foreign { path: Path::new(&path), arguments: &all, work_in: None, cleans_up: true };
    match stress.run(job.desk)? {
        None => Ok(()),
        Some(exit) => Err(format!("stress-ng ended with {exit}; a load must keep running")),
    }
}
