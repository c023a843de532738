//! docs/reference/scope.schema.json says what the record of `wakescope scope` holds.

use serde_json::Value;
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

use crate::common::schema::{
    assert_described, assert_keys_may_be_added, assert_what_fits_is_read, unused_keys,
};
use crate::common::{Checker, read};

fn schema() -> Value {
    serde_json::from_str(&read("docs/reference/scope.schema.json")).unwrap()
}

fn locks() -> Locks {
    let place = || Place { function: Some("mutex_lock".into()), caller: Some("free".into()) };
    let lock = || Some("a_lock".to_owned());
    Locks {
        holds: 2,
        rows: vec![LockRow {
            kind: LockKind::Mutex,
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
                kind: LockKind::Mutex,
                lock: lock(),
                taken: place(),
                pid: 7,
                ns: 3,
                held_ns: 900,
            }],
        }],
    }
}

fn full() -> Scope {
    let place = || Place { function: Some("lock".into()), caller: Some("free".into()) };
    let (began, ended) = (place(), place());
    let share = ComparedShare {
        kind: Kind::IrqsOff,
        expiry_ns: 1,
        ns: 2,
        function: Some("free".into()),
        first: true,
        section: Some(Held { began: place(), ended: place(), ns: 3, length_ns: 4 }),
    };
    let of_kind = SharesOfKind {
        kind: Kind::PreemptOff,
        shares: 3,
        in_section: 2,
        longest_beside_ns: Some(35),
        named: 1,
        longer_ns: Some(Spread { min: -112, p50: -55, max: 9 }),
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
            began: began.clone(),
            ended: ended.clone(),
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
            calls: vec![Call {
                function: Some("free".into()),
                caller: Some(0),
                self_ns: 900,
                total_ns: 900,
            }],
        }],
        longest: vec![Section { kind: Kind::PreemptOff, began, ended, begin_ns: 5, length_ns: 6 }],
        explained: Some(Explained {
            late: 21,
            compared: 20,
            matched_times: 126,
            kinds: vec![of_kind],
            shares: vec![share],
            ..Explained::default()
        }),
        not_compared: Some("no events of them are stored".into()),
        episodes: vec![Episode {
            cpu: Some(0),
            expiry_ns: 5_000,
            wakeup_latency_ns: 900,
            components: Some(Components { irq_latency_ns: 900, ..Components::default() }),
            blame: vec![Share { cause: Cause::IrqOff, ns: 900, ..Share::default() }],
            ..Episode::default()
        }],
        no_episodes: Some("the clock of the guest fits the emulator's in no way".into()),
        sees_timer: true,
        first_blame: Some(FirstBlame {
            wakeups: 20,
            held_by_nothing: 3,
            same_cause: 19,
            same_culprit: 18,
            longer_ns: Some(Spread { min: -56, p50: 9, max: 12 }),
            causes: vec![BlamedOnCause {
                cause: Cause::IrqOff,
                wakeups: 20,
                same_cause: 19,
                same_culprit: 18,
                longer_ns: Some(Spread { min: -56, p50: 9, max: 12 }),
            }],
            others: vec![OtherBlame::default()],
        }),
        locks: Some(locks()),
        ..Scope::default()
    }
}

/// Fails unless `scope` can be read again as it is, fits the schema, and has no key that is not documented.
#[track_caller]
fn assert_documented(scope: &Scope) {
    let json = scope.to_json();
    assert_eq!(Scope::from_json(json.as_bytes()).as_ref(), Ok(scope));
    let fault = Checker::closed(schema()).fault(&serde_json::from_str(&json).unwrap());
    assert_eq!(fault, None, "{json}");
}

#[test]
fn a_scope_with_everything_fits_the_schema() {
    assert_documented(&full());
    let unused = unused_keys(&schema(), &serde_json::to_value(full()).unwrap());
    assert!(unused.is_empty(), "the schema documents keys that no scope has: {unused:?}");
}

#[test]
fn a_scope_with_nothing_fits_the_schema() {
    let nothing = || Place::default();
    let (began, ended, lengths) = (nothing(), nothing(), Distribution::default());
    let rows = vec![Row { kind: Kind::PreemptOff, began, ended, lengths, spent: None }];
    assert_documented(&Scope { schema: SCHEMA.into(), rows, ..Scope::default() });
    let mut scope = full();
    scope.rows[0].spent.as_mut().unwrap().functions[0].function = None;
    let explained = scope.explained.as_mut().unwrap();
    explained.kinds[0].longest_beside_ns = None;
    explained.kinds[0].longer_ns = None;
    (scope.flames[0].calls[0].function, scope.flames[0].calls[0].caller) = (None, None);
    let first_blame = scope.first_blame.as_mut().unwrap();
    (first_blame.longer_ns, first_blame.causes[0].longer_ns) = (None, None);
    let locks = scope.locks.as_mut().unwrap();
    (locks.rows[0].lock, locks.rows[0].waited_for) = (None, None);
    locks.in_episodes[0].locks[0].lock = None;
    (explained.shares[0].function, explained.shares[0].section) = (None, None);
    assert_documented(&scope);
}

#[test]
fn a_scope_that_fits_the_schema_can_be_read() {
    let whole = serde_json::to_value(full()).unwrap();
    assert_what_fits_is_read(schema(), &whole, |json| Scope::from_json(json.as_bytes()).is_ok());
}

#[test]
fn keys_may_be_added_to_a_scope_but_not_written_unannounced() {
    // What a run has of an episode is in the schema of runs.
    let of_runs = ["/episodes/0", "/components", "/blame/0", "/culprit", "/said", "/seen"];
    assert_keys_may_be_added(&schema(), &serde_json::to_value(full()).unwrap(), &of_runs);
}

#[test]
fn every_key_of_a_scope_is_described_with_its_unit() {
    assert_described(&schema(), "virtual ns");
}

#[test]
fn the_page_of_scope_names_what_the_record_holds() {
    let page = read("docs/scope.md");
    for key in schema()["properties"].as_object().unwrap().keys().filter(|key| *key != "schema") {
        assert!(page.contains(&format!("`{key}`")), "docs/scope.md says nothing of {key}");
    }
}
