//! docs/reference/scope.schema.json says what the record of `wakescope scope` holds.

use serde_json::Value;
use wakescope_core::distribution::Distribution;
use wakescope_core::scope::explained::SharesOfKind;
use wakescope_core::scope::{Kind, Place, Row, SCHEMA, Scope};

use crate::common::made_up_scope::full;
use crate::common::schema::{
    assert_described, assert_keys_may_be_added, assert_what_fits_is_read, unused_keys,
};
use crate::common::{Checker, read};

fn schema() -> Value {
    serde_json::from_str(&read("docs/reference/scope.schema.json")).unwrap()
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
    // The reasons why something is not there are not beside it.
    let mut all = serde_json::to_value(full()).unwrap();
    for reason in ["not_compared", "no_episodes"] {
        all[reason] = "no events of them are stored".into();
    }
    let unused = unused_keys(&schema(), &all);
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
    (scope.flames[0].calls[0].function, scope.flames[0].calls[1].function) = (None, None);
    let explained = scope.explained.as_mut().unwrap();
    for share in &mut explained.shares {
        (share.function, share.section) = (None, None);
    }
    explained.kinds = Kind::ALL.map(|kind| SharesOfKind::of(kind, &explained.shares)).into();
    let first_blame = scope.first_blame.as_mut().unwrap();
    first_blame.longer_ns = None;
    (first_blame.same_cause, first_blame.same_culprit, first_blame.wakeups) = (0, 0, 1);
    first_blame.causes.truncate(1);
    let of_cause = &mut first_blame.causes[0];
    (of_cause.longer_ns, of_cause.wakeups) = (None, 1);
    (of_cause.same_cause, of_cause.same_culprit) = (0, 0);
    let locks = scope.locks.as_mut().unwrap();
    (locks.rows[0].lock, locks.rows[0].waited_for) = (None, None);
    locks.in_episodes[0].locks[0].lock = None;
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
