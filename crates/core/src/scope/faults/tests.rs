use wakescope_testing::assert_told;

use super::super::explained::{ComparedShare, Explained, Held, SharesOfKind, Spread};
use super::super::first_blame::{BlamedOnCause, FirstBlame, OtherBlame};
use super::super::flame::{Call, Flame};
use super::super::locks::{EpisodeLocks, Hold, InSection, LockInEpisode, LockKind, LockRow, Locks};
use super::super::{Kind, Place, SCHEMA, TimeIn};
use super::*;
use crate::explain::{Cause, Components, Share};

fn place(function: &str) -> Place {
    Place { function: Some(function.into()), caller: None }
}

fn row(kind: Kind, lengths: &[u64], at_ns: u64) -> Row {
    let lengths =
        Distribution { max_at_ns: Some(at_ns), ..Distribution::of(lengths.iter().copied()) };
    Row { kind, began: place("begin"), ended: place("end"), lengths, spent: None }
}

fn explained() -> Explained {
    let share = |kind, ns, held: Option<(u64, u64)>| ComparedShare {
        kind,
        expiry_ns: 1,
        ns,
        function: Some("end".into()),
        first: true,
        section: held.map(|(ns, length_ns)| Held {
            began: place("begin"),
            ended: place("end"),
            ns,
            length_ns,
        }),
    };
    let shares = vec![
        share(Kind::IrqsOff, 800, Some((900, 900))),
        share(Kind::IrqsOff, 35, None),
        share(Kind::PreemptOff, 70, Some((60, 300))),
    ];
    Explained {
        late: 3,
        compared: 3,
        matched_times: 12,
        kinds: Kind::ALL.map(|kind| SharesOfKind::of(kind, &shares)).into(),
        section_not_first: 0,
        first_not_section: 1,
        shares,
        shares_unlisted: 0,
    }
}

fn first_blame() -> FirstBlame {
    let spread = |min, max| Some(Spread { min, p50: min, max });
    let of_cause = |cause, wakeups, same_cause, same_culprit, longer_ns| BlamedOnCause {
        cause,
        wakeups,
        same_cause,
        same_culprit,
        longer_ns,
    };
    FirstBlame {
        wakeups: 5,
        held_by_nothing: 2,
        same_cause: 3,
        same_culprit: 3,
        longer_ns: spread(-7, 9),
        causes: vec![
            of_cause(Cause::IrqOff, 3, 3, 3, spread(-7, 9)),
            of_cause(Cause::PreemptOff, 2, 0, 0, None),
        ],
        others: vec![
            OtherBlame {
                wakeup_latency_ns: 900,
                said_ns: 900,
                seen_ns: 800,
                ..OtherBlame::default()
            },
            OtherBlame::default(),
        ],
    }
}

fn locks() -> Locks {
    let (began, ended) = (place("begin"), place("end"));
    Locks {
        holds: 2,
        rows: vec![LockRow {
            kind: LockKind::Spin,
            lock: None,
            locks: 1,
            taken: place("lock"),
            released: place("unlock"),
            held: Distribution { max_at_ns: Some(1_500), ..Distribution::of([7, 900]) },
            waited: Distribution::of([40]),
            waited_for: Some(place("lock")),
            sections: vec![InSection { kind: Kind::IrqsOff, began, ended, holds: 2, ns: 907 }],
        }],
        longest: vec![Hold { row: 0, pid: 7, begin_ns: 1_500, length_ns: 900 }],
        in_episodes: vec![EpisodeLocks {
            expiry_ns: 5_000,
            locks: vec![LockInEpisode {
                kind: LockKind::Spin,
                lock: None,
                taken: place("lock"),
                pid: 7,
                ns: 300,
                held_ns: 900,
            }],
        }],
        ..Locks::default()
    }
}

/// Sections, locks, and what was said of three late wakeups, which do not contradict each other.
fn true_scope() -> Scope {
    let (began, ended) = (place("begin"), place("end"));
    let functions = [("end", 600), ("inner", 300)];
    let functions = functions.map(|(name, ns)| TimeIn { function: Some(name.into()), ns }).into();
    let spent = Some(Spent { sections: 1, total_ns: 900, functions });
    let call = |name: &str, caller, self_ns, total_ns| Call {
        function: Some(name.into()),
        caller,
        self_ns,
        total_ns,
    };
    Scope {
        schema: SCHEMA.into(),
        window_ns: 1_000_000,
        sections: 5,
        rows: vec![
            Row { spent, ..row(Kind::IrqsOff, &[7, 8, 900], 2_000) },
            row(Kind::PreemptOff, &[20, 300], 500_000),
        ],
        flames: vec![Flame {
            kind: Kind::IrqsOff,
            sections: 1,
            total_ns: 900,
            calls: vec![call("end", None, 500, 900), call("inner", Some(0), 300, 300)],
        }],
        longest: vec![Section {
            kind: Kind::IrqsOff,
            began,
            ended,
            begin_ns: 2_000,
            length_ns: 900,
        }],
        explained: Some(explained()),
        episodes: vec![Episode {
            expiry_ns: 5_000,
            wakeup_latency_ns: 900,
            components: Some(Components { irq_latency_ns: 900, ..Components::default() }),
            blame: vec![Share { cause: Cause::IrqOff, ns: 900, ..Share::default() }],
            ..Episode::default()
        }],
        first_blame: Some(first_blame()),
        locks: Some(locks()),
        ..Scope::default()
    }
}

type Change<T> = fn(&mut T);

/// Reads `true_scope` after each change, which is refused for this reason.
#[track_caller]
fn check<const N: usize>(changes: [(Change<Scope>, Option<&str>); N]) {
    for (change, want) in changes {
        let mut scope = true_scope();
        change(&mut scope);
        let read = Scope::from_json(scope.to_json().as_bytes());
        assert_told(read.as_ref().err(), want);
        if let Ok(read) = read {
            assert_eq!(read, scope);
        }
    }
}

#[test]
fn sections_that_contradict_each_other_are_refused() {
    check([
        (|_| (), None),
        (|scope| scope.sections = 6, Some("sections is 6, but those of rows add up to 5")),
        (|scope| scope.rows[1].lengths.count = 3, Some("rows[1]: lengths: count is 3")),
        (|scope| scope.rows[1].lengths.sum_ns = 1, Some("rows[1]: lengths: sum_ns is 1")),
        (|scope| scope.rows[1].lengths.max_ns = Some(1 << 50), Some("rows[1]: lengths: max_ns")),
        (
            |scope| scope.sections_unlisted = 5,
            Some("number of long sections is 6, but that of all is 5"),
        ),
        (|scope| (scope.sections_unlisted, scope.sections_lost) = (5, 1), None),
        (
            |scope| scope.longest[0].length_ns = 901,
            Some("length_ns is 901, but those of its row are from 7 to 900"),
        ),
        (
            |scope| scope.longest[0].kind = Kind::PreemptOff,
            Some("those of its row are from 20 to 300"),
        ),
        (|scope| scope.longest[0].ended = place("other"), Some("longest[0]: no row has its ends")),
        // It may be one of those that are in no row.
        (|scope| (scope.longest[0].length_ns, scope.sections_lost) = (901, 1), None),
    ]);
}

#[test]
fn times_beyond_the_window_are_refused() {
    const LATE: u64 = 2_000 + 1_000_000 + TICK_NS;
    check([
        (|scope| scope.longest[0].begin_ns = LATE - 500, None),
        (|scope| scope.longest[0].begin_ns = LATE, Some("window_ns is 1000000")),
        (|scope| (scope.longest[0].begin_ns, scope.drift_ns) = (LATE, 250), None),
        (|scope| scope.rows[0].lengths.max_at_ns = Some(1 << 60), Some("window_ns is 1000000")),
        (|scope| scope.rows[0].lengths.max_at_ns = None, None),
        (|scope| scope.window_ns = 0, None),
        (|scope| scope.explained.as_mut().unwrap().shares[0].expiry_ns = 10_003_000_000, None),
        (
            |scope| scope.explained.as_mut().unwrap().shares[0].expiry_ns = 10_003_000_001,
            Some("a wakeup was due at 10003000001 ns, but window_ns is 1000000"),
        ),
        (
            |scope| scope.first_blame.as_mut().unwrap().others[0].expiry_ns = 1 << 60,
            Some("a wakeup was due at"),
        ),
        (
            |scope| {
                scope.locks = None;
                scope.episodes[0].expiry_ns = 1 << 60;
            },
            Some("a wakeup was due at"),
        ),
        (
            |scope| scope.locks.as_mut().unwrap().longest[0].begin_ns = 1 << 60,
            Some("one began at 1500 ns and one at 1152921504606846976 ns"),
        ),
        (
            |scope| scope.locks.as_mut().unwrap().rows[0].held.max_at_ns = Some(1 << 60),
            Some("window_ns is 1000000"),
        ),
    ]);
}

#[test]
fn time_in_functions_that_contradicts_that_of_sections_is_refused() {
    fn spent(scope: &mut Scope) -> &mut Spent {
        scope.rows[0].spent.as_mut().unwrap()
    }
    check([
        (
            |scope| spent(scope).sections = 4,
            Some("rows[0]: spent: sections is 4, but the number of all of the row is 3"),
        ),
        (
            |scope| spent(scope).total_ns = 916,
            Some("total_ns is 916, but that of all of the row is 915"),
        ),
        (
            |scope| spent(scope).total_ns = 899,
            Some("total_ns is 899, but its functions add up to 900"),
        ),
        (
            |scope| spent(scope).functions[0].ns = u64::MAX,
            Some("total_ns is 900, but its functions"),
        ),
        (|scope| scope.flames.clear(), None),
        (
            |scope| scope.flames[0].sections = 2,
            Some("flames[0]: sections is 2, but those of rows add up to 1"),
        ),
        (
            |scope| scope.flames[0].total_ns = 901,
            Some("total_ns is 901, but those of rows add up to 900"),
        ),
        (
            |scope| scope.flames[0].kind = Kind::PreemptOff,
            Some("flames[0]: sections is 1, but those of rows add up to 0"),
        ),
        (
            |scope| scope.flames[0].calls[0].total_ns = 799,
            Some("calls[0]: the time of its parts is 800, but total_ns is 799"),
        ),
        (
            |scope| scope.flames[0].calls[0].self_ns = u64::MAX,
            Some("calls[0]: the time of its parts is 18446744073709551615"),
        ),
        (
            |scope| scope.flames[0].calls[1].self_ns = 301,
            Some("calls[1]: the time of its parts is 301"),
        ),
        (
            |scope| scope.flames[0].calls[0].total_ns = 901,
            Some("outermost calls is 901, but total_ns is 900"),
        ),
        (
            |scope| scope.flames[0].calls[1].caller = Some(1),
            Some("calls[1]: caller is 1, which is no earlier one"),
        ),
        (
            |scope| scope.flames[0].calls[1].caller = Some(u32::MAX),
            Some("calls[1]: caller is 4294967295"),
        ),
        (|scope| scope.flames[0].calls[1].caller = None, Some("outermost calls is 1200")),
    ]);
}

#[test]
fn a_comparison_with_what_was_said_that_contradicts_itself_is_refused() {
    fn of(scope: &mut Scope) -> &mut Explained {
        scope.explained.as_mut().unwrap()
    }
    check([
        (|scope| of(scope).compared = 4, Some("explained: compared is 4, but late is 3")),
        (
            |scope| of(scope).section_not_first = 4,
            Some("section_not_first is 4, but compared is 3"),
        ),
        (
            |scope| of(scope).first_not_section = 4,
            Some("first_not_section is 4, but compared is 3"),
        ),
        (
            |scope| of(scope).shares_unlisted = 1,
            Some("the number of shares is 4, but those of kinds add up to 3"),
        ),
        (|scope| of(scope).kinds[0].shares = 3, Some("those of kinds add up to 4")),
        (
            |scope| of(scope).kinds[0].in_section = 3,
            Some("kinds[0]: in_section is 3, but shares is 2"),
        ),
        (
            |scope| of(scope).kinds[0].in_section = 2,
            Some("in_section is 2, but its shares make it 1"),
        ),
        (|scope| of(scope).kinds[0].named = 2, Some("kinds[0]: named is 2, but in_section is 1")),
        (|scope| of(scope).kinds[0].named = 0, Some("named is 0, but its shares make it 1")),
        (|scope| of(scope).kinds[0].longest_beside_ns = None, Some("longest_beside_ns is None")),
        (|scope| of(scope).kinds[0].longer_ns = None, Some("longer_ns is null, of 1")),
        (
            |scope| of(scope).kinds[0].longer_ns = Some(Spread { min: -100, p50: -100, max: -99 }),
            Some("its shares make it Some(Spread { min: -100, p50: -100, max: -100 })"),
        ),
        (
            |scope| of(scope).kinds[0].longer_ns = Some(Spread { min: -100, p50: -101, max: -100 }),
            Some("longer_ns goes from -100 by -101 to -100"),
        ),
        (|scope| of(scope).kinds.swap(0, 1), None),
        (|scope| of(scope).shares[0].ns = 801, Some("kinds[0]: longer_ns is Some")),
        (|scope| of(scope).shares[2].section.as_mut().unwrap().ns = 301, Some("kinds[1]")),
        (
            |scope| of(scope).shares[2].section.as_mut().unwrap().length_ns = 59,
            Some("shares[2]: section.ns is 60, but section.length_ns is 59"),
        ),
        // Sections that are not listed have a part in the figures of their kind.
        (
            |scope| {
                (of(scope).shares_unlisted, of(scope).kinds[0].shares) = (1, 3);
                of(scope).kinds[0].longest_beside_ns = Some(40);
            },
            None,
        ),
        (
            |scope| {
                (of(scope).shares_unlisted, of(scope).kinds[1].shares) = (1, 2);
                (of(scope).kinds[0].shares, of(scope).kinds[1].shares) = (1, 3);
            },
            Some("kinds[0]: the number of listed ones is 2, but shares is 1"),
        ),
        (
            |scope| scope.not_compared = Some("no".into()),
            Some("it has explained, and not_compared"),
        ),
    ]);
}

#[test]
fn late_wakeups_that_contradict_themselves_are_refused() {
    check([
        (
            |scope| scope.episodes[0].blame[0].ns = 899,
            Some("episodes[0]: its shares of blame do not add up"),
        ),
        (
            |scope| scope.episodes[0].wakeup_latency_ns = 1,
            Some("episodes[0]: its components do not add up"),
        ),
        (|scope| scope.no_episodes = Some("no".into()), Some("it has episodes, and no_episodes")),
    ]);
}

#[test]
fn a_comparison_of_what_was_blamed_first_that_contradicts_itself_is_refused() {
    fn of(scope: &mut Scope) -> &mut FirstBlame {
        scope.first_blame.as_mut().unwrap()
    }
    check([
        (|scope| of(scope).same_cause = 6, Some("first_blame: same_cause is 6, but wakeups is 5")),
        (|scope| of(scope).same_culprit = 4, Some("same_culprit is 4, but same_cause is 3")),
        (
            |scope| of(scope).wakeups = 6,
            Some("wakeups is 6, but same_culprit is 3 and others are 2"),
        ),
        (|scope| of(scope).longer_ns = None, Some("first_blame: longer_ns is null, of 3")),
        (
            |scope| of(scope).longer_ns.as_mut().unwrap().p50 = 10,
            Some("longer_ns goes from -7 by 10 to 9"),
        ),
        (|scope| of(scope).longer_ns.as_mut().unwrap().max = 10, Some("but those of causes from")),
        (|scope| of(scope).causes.clear(), None),
        (
            |scope| of(scope).causes[0].wakeups = 4,
            Some("wakeups is 5, but those of causes add up to 6"),
        ),
        (
            |scope| of(scope).causes[0].same_cause = 4,
            Some("causes[0]: same_cause is 4, but wakeups is 3"),
        ),
        (
            |scope| of(scope).causes[0].same_culprit = 2,
            Some("same_culprit is 3, but those of causes add up to 2"),
        ),
        (
            |scope| of(scope).causes[1].longer_ns = Some(Spread::default()),
            Some("causes[1]: longer_ns is there, of 0"),
        ),
        (
            |scope| of(scope).others[0].said_ns = 901,
            Some("others[0]: said_ns is 901, but wakeup_latency_ns is 900"),
        ),
        (
            |scope| of(scope).others[0].seen_ns = 901,
            Some("seen_ns is 901, but wakeup_latency_ns is 900"),
        ),
    ]);
}

#[test]
fn locks_that_contradict_each_other_are_refused() {
    fn of(scope: &mut Scope) -> &mut Locks {
        scope.locks.as_mut().unwrap()
    }
    fn row(scope: &mut Scope) -> &mut LockRow {
        &mut of(scope).rows[0]
    }
    fn lock(scope: &mut Scope) -> &mut LockInEpisode {
        &mut of(scope).in_episodes[0].locks[0]
    }
    check([
        (|scope| scope.locks = None, None),
        (|scope| of(scope).holds = 3, Some("locks: holds is 3, but those of rows add up to 2")),
        (|scope| row(scope).held.sum_ns = 1, Some("locks: rows[0]: held: sum_ns is 1")),
        (|scope| row(scope).waited.max_ns = Some(1 << 50), Some("rows[0]: waited: max_ns")),
        (|scope| row(scope).locks = 0, Some("locks is 0, but there are 2 holds")),
        (|scope| lock(scope).held_ns = 901, Some("held_ns is 901, as in no row of that lock")),
        (|scope| lock(scope).kind = LockKind::Read, Some("held_ns is 900, as in no row")),
        (|scope| row(scope).locks = 3, Some("locks is 3, but the number of holds is 2")),
        (|scope| row(scope).waited = Distribution::of([40; 3]), Some("number of waits is 3")),
        (
            |scope| row(scope).waited = Distribution::default(),
            Some("waited_for is there, but nobody waited"),
        ),
        (
            |scope| row(scope).sections[0].holds = 3,
            Some("sections[0]: holds is 3, but the number of holds is 2"),
        ),
        (
            |scope| row(scope).sections[0].ns = 908,
            Some("sections[0]: ns is 908, but sum_ns of held is 907"),
        ),
        (|scope| of(scope).longest[0].row = 1, Some("longest[0]: there is no row 1")),
        (|scope| of(scope).longest[0].length_ns = 901, Some("those of its row are from 7 to 900")),
        (
            |scope| {
                let hold = of(scope).longest[0].clone();
                of(scope).longest = vec![hold; 3];
            },
            Some("the number of longest is 3, but holds is 2"),
        ),
        (|scope| of(scope).in_episodes.clear(), Some("in_episodes are 0, but episodes are 1")),
        (|scope| scope.episodes.clear(), None),
        (
            |scope| of(scope).in_episodes[0].expiry_ns = 1,
            Some("in_episodes[0]: expiry_ns is 1, but that of the episode is 5000"),
        ),
        (|scope| lock(scope).ns = 901, Some("ns is 901, but held_ns is 900")),
        (
            |scope| (lock(scope).ns, lock(scope).held_ns) = (901, 901),
            Some("ns is 901, but wakeup_latency_ns of the episode is 900"),
        ),
    ]);
}
