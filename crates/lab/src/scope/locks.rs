//! Which locks were held while the latest wakeups were late.

use wakescope_core::scope::locks::{EpisodeLocks, Hold, LockInEpisode, Locks};
use wakescope_core::scope::signals::{Signal, Signals, Slice};

/// The locks that were held in each of these wakeups, which are late from `due_ns` on of the plugin's time; and a
/// signal for each of them.
pub(super) fn in_episodes(
    locks: &Locks,
    held: &[Hold],
    signals: &mut [Signals],
    due_ns: impl Fn(&Signals) -> u64,
) -> Vec<EpisodeLocks> {
    let of_one = |signals: &mut Signals| {
        let from = due_ns(signals);
        let to = from.saturating_add(signals.wakeup_latency_ns);
        let end_of = |hold: &Hold| hold.begin_ns.saturating_add(hold.length_ns);
        let during = held.iter().filter(|hold| hold.begin_ns < to && end_of(hold) > from);
        let mut during: Vec<&Hold> = during.collect();
        during.sort_by_key(|hold| hold.begin_ns);
        let (mut all, mut tracks) = (Vec::new(), Vec::new());
        for hold in during {
            let row = usize::try_from(hold.row).ok().and_then(|row| locks.rows.get(row));
            let Some(row) = row else { continue };
            let (begin, end) = (hold.begin_ns.max(from), end_of(hold).min(to));
            let ns = end - begin;
            all.push(LockInEpisode {
                kind: row.kind,
                lock: row.lock.clone(),
                taken: row.taken.clone(),
                pid: hold.pid,
                ns,
                held_ns: hold.length_ns,
            });
            let lock = Signal::Lock {
                track: free(&mut tracks, begin, end),
                kind: row.kind,
                lock: row.lock.clone(),
                taken: row.taken.clone(),
            };
            signals.slices.push(Slice { at_ns: begin - from, ns, what: lock });
        }
        signals.slices.sort_by_key(|slice| slice.at_ns);
        all.sort_by_key(|lock| (std::cmp::Reverse(lock.ns), std::cmp::Reverse(lock.held_ns)));
        EpisodeLocks { expiry_ns: signals.expiry_ns, locks: all }
    };
    signals.iter_mut().map(of_one).collect()
}

/// The first track that is free at `begin`, which is taken until `end`: locks need not be released in the reverse
/// order of their taking.
fn free(tracks: &mut Vec<u64>, begin: u64, end: u64) -> usize {
    let place = tracks.iter().position(|until| *until <= begin);
    let place = place.unwrap_or_else(|| {
        tracks.push(0);
        tracks.len() - 1
    });
    tracks[place] = end;
    place
}

#[cfg(test)]
mod tests {
    use wakescope_core::distribution::Distribution;
    use wakescope_core::scope::Place;
    use wakescope_core::scope::locks::{LockKind, LockRow};

    use super::*;

    #[test]
    fn locks_of_a_wakeup_are_those_that_were_held_meanwhile() {
        let row = |kind| LockRow {
            kind,
            lock: None,
            locks: 1,
            taken: Place::default(),
            released: Place::default(),
            held: Distribution::default(),
            waited: Distribution::default(),
            waited_for: None,
            sections: Vec::new(),
        };
        let rows = vec![row(LockKind::Mutex), row(LockKind::Spin)];
        let locks = Locks { rows, ..Locks::default() };
        let hold =
            |row, begin_ns, end_ns| Hold { row, pid: 7, begin_ns, length_ns: end_ns - begin_ns };
        // Due at 1,000, and late by 100. One ended as it was due, and one began as it ran.
        let held = [
            hold(1, 900, 1_000),
            hold(0, 990, 1_060),
            hold(1, 1_010, 1_020),
            hold(1, 1_060, 1_300),
            hold(1, 1_100, 1_200),
        ];
        let late = Signals { expiry_ns: 300, wakeup_latency_ns: 100, slices: Vec::new() };
        let mut signals = [late];
        let found = in_episodes(&locks, &held, &mut signals, |late| late.expiry_ns + 700);
        let found: Vec<_> =
            found[0].locks.iter().map(|lock| (lock.kind, lock.ns, lock.held_ns)).collect();
        let (mutex, spin) = (LockKind::Mutex, LockKind::Spin);
        assert_eq!(found, [(mutex, 60, 70), (spin, 40, 240), (spin, 10, 10)]);
        // What is held at once stands in different tracks.
        let slices = signals[0].slices.iter();
        let slices: Vec<_> =
            slices.map(|slice| (slice.at_ns, slice.ns, slice.what.track())).collect();
        assert_eq!(slices, [(0, 60, 8), (10, 10, 9), (60, 40, 8)]);
    }
}
