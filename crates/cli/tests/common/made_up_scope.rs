//! A scope with everything, of which no figure contradicts another.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Cause, Components, Share};
use wakescope_core::run::Episode;
use wakescope_core::scope::explained::{ComparedShare, Explained, Held, SharesOfKind, Spread};
use wakescope_core::scope::first_blame::{BlamedOnCause, FirstBlame, OtherBlame};
use wakescope_core::scope::flame::{Call, Flame};
use wakescope_core::scope::locks::{
    Doubts, EpisodeLocks, Hold, InSection, LockInEpisode, LockKind, LockRow, Locks, NotSeen,
};
use wakescope_core::scope::{Kind, Place, Row, SCHEMA, Scope, Section, Spent, TimeIn};

fn place() -> Place {
    Place { function: Some("lock".into()), caller: Some("free".into()) }
}

fn locks() -> Locks {
    let lock = || Some("a_lock".to_owned());
    Locks {
        holds: 2,
        rows: vec![LockRow {
            kind: LockKind::Spin,
            lock: lock(),
            locks: 1,
            taken: place(),
            released: place(),
            held: Distribution::of([7, 900]),
            waited: Distribution::of([40]),
            waited_for: Some(place()),
            sections: vec![InSection {
                kind: Kind::PreemptOff,
                began: place(),
                ended: place(),
                holds: 2,
                ns: 907,
            }],
        }],
        longest: vec![Hold { row: 0, pid: 7, begin_ns: 5, length_ns: 900 }],
        not_seen: vec![NotSeen {
            kind: LockKind::Read,
            whole: true,
            functions: vec!["_raw_read_unlock".into()],
        }],
        doubts: Doubts { held_at_end: 1, ..Doubts::default() },
        in_episodes: vec![EpisodeLocks {
            expiry_ns: 5_000,
            locks: vec![LockInEpisode {
                kind: LockKind::Spin,
                lock: lock(),
                taken: place(),
                pid: 7,
                ns: 3,
                held_ns: 900,
            }],
        }],
    }
}

fn explained() -> Explained {
    let share = |ns, section| ComparedShare {
        kind: Kind::IrqsOff,
        expiry_ns: 1,
        ns,
        function: Some("free".into()),
        first: true,
        section,
    };
    let held = Held { began: place(), ended: place(), ns: 3, length_ns: 4 };
    let shares = vec![share(2, Some(held)), share(35, None)];
    Explained {
        late: 21,
        compared: 20,
        matched_times: 126,
        kinds: Kind::ALL.map(|kind| SharesOfKind::of(kind, &shares)).into(),
        shares,
        ..Explained::default()
    }
}

fn first_blame() -> FirstBlame {
    let longer_ns = Some(Spread { min: -56, p50: 9, max: 12 });
    let (wakeups, same_cause, same_culprit) = (20, 19, 19);
    let cause = Cause::IrqOff;
    FirstBlame {
        wakeups,
        held_by_nothing: 3,
        same_cause,
        same_culprit,
        longer_ns,
        causes: vec![BlamedOnCause { cause, wakeups, same_cause, same_culprit, longer_ns }],
        others: vec![OtherBlame {
            wakeup_latency_ns: 900,
            said_ns: 900,
            seen_ns: 800,
            ..OtherBlame::default()
        }],
    }
}

/// Each key of the schema is in it, but for the reasons why something is not there.
pub(crate) fn full() -> Scope {
    let call = |caller, self_ns, total_ns| Call {
        function: Some("free".into()),
        caller,
        self_ns,
        total_ns,
    };
    Scope {
        schema: SCHEMA.into(),
        cell: "0a".repeat(32),
        label: "6.1-cloud full find seed 1".into(),
        window_ns: 500_000_000,
        sections: 2,
        has_callers: true,
        rows: vec![Row {
            kind: Kind::IrqsOff,
            began: place(),
            ended: place(),
            lengths: Distribution::of([7, 900]),
            spent: Some(Spent {
                sections: 1,
                total_ns: 900,
                functions: vec![TimeIn { function: Some("free".into()), ns: 900 }],
            }),
        }],
        flames: vec![Flame {
            kind: Kind::IrqsOff,
            sections: 1,
            total_ns: 900,
            calls: vec![call(None, 600, 900), call(Some(0), 300, 300)],
        }],
        longest: vec![Section {
            kind: Kind::IrqsOff,
            began: place(),
            ended: place(),
            begin_ns: 5,
            length_ns: 900,
        }],
        explained: Some(explained()),
        episodes: vec![Episode {
            cpu: Some(0),
            expiry_ns: 5_000,
            wakeup_latency_ns: 900,
            components: Some(Components { irq_latency_ns: 900, ..Components::default() }),
            blame: vec![Share { cause: Cause::IrqOff, ns: 900, ..Share::default() }],
            ..Episode::default()
        }],
        sees_timer: true,
        first_blame: Some(first_blame()),
        locks: Some(locks()),
        ..Scope::default()
    }
}
