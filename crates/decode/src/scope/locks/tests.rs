use wakescope_core::budget::Budget;
use wakescope_core::scope::Kind;
use wakescope_core::scope::locks::{Doubts, LockKind, Locks};

use super::{Books, Call, Lock, Step};
use crate::scope::lock_functions::number_of;

/// Functions of the kernel, by their places.
const NAMES: [&str; 3] = ["first", "second", "third"];

fn call(function: &str, caller: u32) -> Call {
    Call { function: number_of(function).unwrap(), caller: Some(caller) }
}

fn lock(address: u64) -> Lock<'static> {
    Lock { address, name: (address < 100).then_some("a_lock") }
}

/// The rows of what was seen of measured 1,000 ns.
fn locks(steps: &[(u64, Step<'static>)]) -> Locks {
    let budget = Budget::of(1_000);
    let mut books = Books::new(1_000, true, 1, &budget);
    for (at_ns, step) in steps {
        books.step(*at_ns, *step).unwrap();
    }
    let (locks, held) = books.end(&NAMES);
    assert_eq!(locks.rows.iter().map(|row| row.held.count).sum::<u64>(), locks.holds);
    assert_eq!(held.len() as u64, locks.holds);
    for hold in held {
        let longest = locks.rows[usize::try_from(hold.row).unwrap()].held.max_ns.unwrap();
        assert!(hold.length_ns <= longest, "{hold:?}");
    }
    locks
}

fn asked(function: &str, caller: u32, address: u64) -> Step<'static> {
    Step::Asked(call(function, caller), lock(address))
}

fn taken(function: &str, address: u64) -> Step<'static> {
    // What a call returns to can be in another function than what called.
    Step::Taken(call(function, 2), lock(address))
}

fn released(function: &str, address: u64) -> Step<'static> {
    Step::Released(call(function, 1), lock(address))
}

fn off(caller: u32) -> Step<'static> {
    Step::Off(Kind::PreemptOff, (Some(2), Some(caller)))
}

const ON: Step<'static> = Step::On(Kind::PreemptOff, (Some(2), Some(1)));

/// What is said of a row: kind, name, different locks, times, longest.
type Said<'a> = (LockKind, Option<&'a str>, u64, u64, Option<u64>);

fn rows(locks: &Locks) -> Vec<Said<'_>> {
    let row = locks.rows.iter();
    row.map(|row| (row.kind, row.lock.as_deref(), row.locks, row.held.count, row.held.max_ns))
        .collect()
}

#[test]
fn a_lock_is_held_from_the_return_to_the_release_within_a_section() {
    let seen = locks(&[
        (10, off(0)),
        (11, asked("_raw_spin_lock", 0, 500)),
        (14, taken("_raw_spin_lock", 500)),
        (20, asked("_raw_spin_lock", 0, 600)),
        (24, taken("_raw_spin_lock", 600)),
        (50, released("_raw_spin_unlock", 600)),
        (100, released("_raw_spin_unlock", 500)),
        (101, ON),
        // With a name, it is another row.
        (200, off(1)),
        (202, asked("_raw_spin_lock", 0, 8)),
        (204, taken("_raw_spin_lock", 8)),
        (214, released("_raw_spin_unlock", 8)),
        (220, ON),
    ]);
    let spin = LockKind::Spin;
    assert_eq!(rows(&seen), [(spin, None, 2, 2, Some(86)), (spin, Some("a_lock"), 1, 1, Some(10))]);
    assert_eq!(seen.doubts, Doubts::default());
    let row = &seen.rows[0];
    assert_eq!(row.held.max_at_ns, Some(14));
    assert_eq!(row.taken.function.as_deref(), Some("_raw_spin_lock"));
    assert_eq!(row.taken.caller.as_deref(), Some("first"));
    assert_eq!(row.released.caller.as_deref(), Some("second"));
    let [section] = &row.sections[..] else { panic!("{row:?}") };
    assert_eq!((section.kind, section.holds, section.ns), (Kind::PreemptOff, 2, 86 + 26));
    assert_eq!(section.began.caller.as_deref(), Some("first"));
}

#[test]
fn a_lock_that_was_refused_is_not_held() {
    let call = call("mutex_trylock", 0);
    let seen = locks(&[
        (10, Step::Asked(call, lock(500))),
        (20, Step::Refused(call, lock(500))),
        (30, asked("mutex_trylock", 0, 500)),
        (32, taken("mutex_trylock", 500)),
        (40, released("mutex_unlock", 500)),
    ]);
    assert_eq!(rows(&seen), [(LockKind::Mutex, None, 1, 1, Some(8))]);
    assert_eq!((seen.doubts, seen.rows[0].waited.count), (Doubts::default(), 0));
}

#[test]
fn who_waits_for_a_lock_is_told_for_whom() {
    let seen = locks(&[
        (10, asked("mutex_lock", 0, 500)),
        (12, taken("mutex_lock", 500)),
        (20, Step::Switch(2)),
        (30, asked("mutex_lock", 1, 500)),
        (40, Step::Switch(1)),
        (90, released("mutex_unlock", 500)),
        (95, Step::Switch(2)),
        (100, taken("mutex_lock", 500)),
        (110, released("mutex_unlock", 500)),
    ]);
    let [first, second] = &seen.rows[..] else { panic!("{seen:?}") };
    assert_eq!((first.held.max_ns, first.waited.count), (Some(78), 0));
    assert_eq!((second.held.max_ns, second.waited.max_ns), (Some(10), Some(70)));
    assert_eq!(second.waited_for.as_ref(), Some(&first.taken));
    // The first of two tasks is preempted before it has it, and the other one takes and releases it.
    let seen = locks(&[
        (10, asked("down_write", 0, 500)),
        (12, Step::Switch(2)),
        (13, asked("down_read", 1, 500)),
        (14, taken("down_read", 500)),
        (30, released("up_read", 500)),
        (31, Step::Switch(1)),
        (40, taken("down_write", 500)),
        (41, released("up_write", 500)),
    ]);
    assert_eq!(seen.rows[0].held.max_ns, Some(16));
    assert_eq!(seen.rows[1].waited.max_ns, Some(30));
}

/// Whoever waits for such a lock takes the one that spins at its address meanwhile.
#[test]
fn a_lock_that_sleeps_is_told_from_the_one_that_spins_at_its_address() {
    let queue = |at_ns| {
        [
            (at_ns, off(0)),
            (at_ns + 1, asked("_raw_spin_lock_irqsave", 0, 8)),
            (at_ns + 2, taken("_raw_spin_lock_irqsave", 8)),
            (at_ns + 5, released("_raw_spin_unlock_irqrestore", 8)),
            (at_ns + 6, ON),
        ]
    };
    let first = [(10, asked("rt_spin_lock", 0, 8)), (12, taken("rt_spin_lock", 8))];
    let second = [(20, Step::Switch(9)), (21, asked("rt_spin_lock", 1, 8))];
    let release = [(40, Step::Switch(1)), (41, released("rt_spin_unlock", 8))];
    let goes_on = [
        (60, Step::Switch(9)),
        (62, taken("rt_spin_lock", 8)),
        (70, released("rt_spin_unlock", 8)),
    ];
    let all = [&first[..], &second, &queue(22), &release, &queue(42), &goes_on].concat();
    let seen = locks(&all);
    assert_eq!(seen.doubts, Doubts::default());
    assert_eq!(seen.holds, 4);
    let sleeps = seen.rows.iter().filter(|row| row.kind == LockKind::RtSpin);
    let waited = sleeps.clone().filter_map(|row| row.waited.max_ns).collect::<Vec<_>>();
    assert_eq!(sleeps.map(|row| row.held.sum_ns).sum::<u64>(), 29 + 8);
    assert_eq!(waited, [41]);
    let mut spins = seen.rows.iter().filter(|row| row.kind == LockKind::Spin);
    assert!(spins.all(|row| row.held.max_ns == Some(3) && row.waited.count == 0));
}

#[test]
fn readers_share_a_lock_and_a_writer_can_become_one() {
    let seen = locks(&[
        (10, asked("down_write", 0, 500)),
        (11, taken("down_write", 500)),
        (21, released("downgrade_write", 500)),
        (25, Step::Switch(2)),
        (26, asked("down_read", 0, 500)),
        (27, taken("down_read", 500)),
        (30, Step::Switch(1)),
        (61, released("up_read", 500)),
        (70, Step::Switch(2)),
        (77, released("up_read", 500)),
    ]);
    let (read, write) = (LockKind::RwsemRead, LockKind::RwsemWrite);
    let all =
        [(read, None, 1, 1, Some(50)), (read, None, 1, 1, Some(40)), (write, None, 1, 1, Some(10))];
    assert_eq!(rows(&seen), all);
    assert_eq!((seen.doubts, seen.rows[0].waited.count), (Doubts::default(), 0));
}

#[test]
fn a_function_that_calls_another_one_takes_a_lock_once() {
    let seen = locks(&[
        (10, asked("ww_mutex_lock", 0, 500)),
        (12, asked("mutex_lock", 1, 500)),
        (14, taken("mutex_lock", 500)),
        (16, taken("ww_mutex_lock", 500)),
        (24, released("mutex_unlock", 500)),
    ]);
    assert_eq!(rows(&seen), [(LockKind::Mutex, None, 1, 1, Some(10))]);
    assert_eq!(seen.doubts, Doubts::default());
}

/// GCC lets one of two functions with the same code jump into the other one, as in the RT kernel of Debian's 6.12.
#[test]
fn a_function_that_jumps_into_another_one_releases_a_lock_once() {
    let twice = [(50, released("mutex_unlock", 8)), (51, released("rt_mutex_unlock", 8))];
    let take = [(10, asked("mutex_lock", 0, 8)), (12, taken("mutex_lock", 8))];
    let seen = locks(&[&take[..], &twice].concat());
    assert_eq!(rows(&seen), [(LockKind::Mutex, Some("a_lock"), 1, 1, Some(38))]);
    assert_eq!(seen.doubts, Doubts::default());
    // Also of one that was taken before.
    let doubts = |steps: &[(u64, Step<'static>)]| locks(steps).doubts;
    assert_eq!(doubts(&twice), Doubts { taken_before: 1, ..Doubts::default() });
    // But not by another task, and not once more.
    let once = Doubts { not_seen_taken: 1, ..Doubts::default() };
    let (first, second) = (twice[0], twice[1]);
    let others = [first, (50, Step::Switch(9)), second];
    assert_eq!(doubts(&[&take[..], &others].concat()), once);
    assert_eq!(doubts(&[&take[..], &twice, &[second]].concat()), once);
    assert_eq!(doubts(&[&take[..], &[first, first]].concat()), once);
}

#[test]
fn what_is_unbalanced_is_counted_and_in_no_row() {
    let none = Doubts::default();
    let check = |steps: &[(u64, Step<'static>)], holds: u64, want: Doubts| {
        let seen = locks(steps);
        assert_eq!((seen.holds, seen.doubts), (holds, want), "{steps:?}");
    };
    let release = (20, released("mutex_unlock", 500));
    check(&[release], 0, Doubts { taken_before: 1, ..none });
    check(&[release, release], 0, Doubts { taken_before: 1, not_seen_taken: 1, ..none });
    let take = [(10, asked("mutex_lock", 0, 500)), (11, taken("mutex_lock", 500))];
    check(&take, 0, Doubts { held_at_end: 1, ..none });
    // Of a call that came before anything was seen, only the return was.
    check(&[take[1], release], 1, none);
    // Made anew.
    let twice = [take[0], take[1], (15, take[0].1), (16, take[1].1), release];
    check(&twice, 1, Doubts { not_seen_released: 1, ..none });
    check(
        &[take[0], take[1], (15, Step::Switch(2)), release],
        1,
        Doubts { handed_over: 1, ..none },
    );
    // What spins is the CPU's, and released before preemption is on.
    let spin = [(10, asked("_raw_spin_lock", 0, 500)), (11, taken("_raw_spin_lock", 500))];
    let unlock = (20, released("_raw_spin_unlock", 500));
    let switched = [(9, off(0)), spin[0], spin[1], (15, Step::Switch(2)), unlock, (21, ON)];
    check(&switched, 1, none);
    check(&[spin[0], spin[1], unlock], 1, Doubts { outside_section: 1, ..none });
    let late = [(9, off(0)), spin[0], spin[1], (15, ON), unlock];
    check(&late, 0, Doubts { not_seen_released: 1, not_seen_taken: 1, ..none });
    // What was taken when the guest no longer measured does not count.
    let after = [(1_000, take[0].1), (1_001, take[1].1), (1_002, release.1)];
    check(&after, 0, none);
}

/// Calls that never return, and each release looks through them.
#[test]
fn what_is_looked_through_again_and_again_has_an_end() {
    const CALLS: u64 = 8_000;
    let budget = Budget::of(1_000);
    let mut books = Books::new(1_000_000, true, 1, &budget);
    let mut step = |at_ns, step| books.step(at_ns, step);
    for at in 0..CALLS {
        step(at, asked("mutex_lock", 0, 500)).unwrap();
    }
    let mut releases = (CALLS..2 * CALLS).map(|at| {
        step(at, asked("mutex_lock", 0, 600))?;
        step(at, taken("mutex_lock", 600))?;
        step(at, released("mutex_unlock", 600))
    });
    let refused = releases.find_map(Result::err).expect("there are fewer steps than that");
    assert!(refused.to_string().contains("calls that have not returned"), "{refused}");
}
