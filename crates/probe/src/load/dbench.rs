//! The load `dbench`: the program of that name, which does what clients of a file server do.

use std::path::Path;

use super::crew::allowed_cpus;
use super::foreign::Foreign;
use super::installed;
use super::kinds::Job;

/// Clients are one per allowed CPU, at most so many: each has about 20 MB of files.
const MOST_CLIENTS: usize = 16;

/// In seconds: 31 years. A load lasts until it is ended.
const FOR_EVER: &str = "1000000000";

/// Runs dbench in the current directory until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let path = installed::find("dbench", "dbench", desk)?;
    let cpus = allowed_cpus()?;
    let clients = cpus.len().min(MOST_CLIENTS).to_string();
    let arguments = &["-D", ".", "-t", FOR_EVER, &clients];
    let dbench =
        Foreign { path: Path::new(&path), arguments, work_in: Some(operations), cleans_up: false };
    match dbench.run(desk)? {
        None => Ok(()),
        Some(exit) => Err(format!("dbench ended with {exit}")),
    }
}

/// What a line of each second says was done so far:
/// `   2     15802   202.40 MB/sec  execute   1 sec  latency 16.127 ms`.
fn operations(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
    match words[..] {
        [clients, operations, _, "MB/sec", "execute" | "warmup"] => {
            clients.parse::<u32>().ok()?;
            operations.parse().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read() {
        for (line, want) in [
            ("   2     15802   202.40 MB/sec  execute   1 sec  latency 16.127 ms", Some(15802)),
            ("   1      7469   101.00 MB/sec  warmup   1 sec  latency 1.0 ms", Some(7469)),
            ("   2  cleanup   4 sec", None),
            ("2 of 2 processes prepared for launch   0 sec", None),
            (" NTCreateX      23548     0.025    12.122", None),
            ("Throughput 192.58 MB/sec  2 clients  2 procs  max_latency=20.476 ms", None),
            ("   2     99999999999999999999   1 MB/sec  execute   1 sec", None),
            ("", None),
        ] {
            assert_eq!(operations(line), want, "{line}");
        }
    }
}
