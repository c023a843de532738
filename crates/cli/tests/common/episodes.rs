//! The late wakeups that a run stores.

use std::fs;
use std::path::Path;

use wakescope_core::episodes::{Attributed, Head, LineError, read};
use wakescope_core::explain::{Cause, Evidence, What};

/// The file's name in the folder of a run.
pub(crate) const EPISODES: &str = "episodes.jsonl";

/// Each episode below the head above it.
pub(crate) fn stored(folder: &Path) -> Vec<(Head, Result<Attributed, LineError>)> {
    let mut all = Vec::new();
    let bytes = fs::read(folder.join(EPISODES)).unwrap_or_default();
    let ended = read(&bytes[..], |_, line| {
        all.push(match line {
            Ok((head, episode)) => (head.clone(), Ok(episode)),
            Err(e) => (Head::default(), Err(e)),
        });
        Ok::<(), ()>(())
    });
    assert_eq!(ended.unwrap(), Ok(()));
    all
}

/// A cell of the lab whose kernel leaves softirqs to their thread, in 5 of the 500 wakeups that are stored (6.1).
pub(crate) const LEAVES_SOFTIRQS: [&str; 11] = [
    "--load",
    "fork",
    "--seeds",
    "1",
    "--samples",
    "1000",
    "--interval",
    "333us",
    "--explain",
    "--above",
    "p50",
];

/// Fails unless some wakeup of the run in this folder saw the kernel leave softirqs to their thread. Softirqs have
/// the time that this takes.
#[track_caller]
pub(crate) fn assert_some_softirqs_were_left(folder: &Path) {
    let mut left = 0;
    for (_, episode) in stored(folder) {
        let episode = episode.unwrap();
        let events = &episode.wakeup.events;
        let Some(at) = events.iter().position(|event| event.what == What::SoftirqsPending) else {
            continue;
        };
        assert!(matches!(events[at - 1].what, What::SoftirqExit(_)), "{events:?}");
        assert_eq!(events[at - 1].at, events[at].at, "{events:?}");
        // Else the kernel went on with another one.
        if events[at..].iter().any(|event| matches!(event.what, What::SoftirqEntry(_))) {
            continue;
        }
        left += 1;
        let is_bound = |evidence| evidence == Evidence::Bound;
        let mut softirqs = episode.blame.iter().filter(|share| share.cause == Cause::Softirq);
        assert!(softirqs.any(|share| is_bound(share.evidence)), "{episode:#?}");
    }
    assert!(left > 0, "no softirqs were left to their thread in {}", folder.display());
}
