//! docs/reference/predict.schema.json says what the record of `wakescope predict` holds.

use serde_json::Value;
use wakescope_core::predict::{
    Break, Cell, Figure, Latencies, Measured, NotRepeated, Path, Predicted, Prediction, Range,
    Ranking, Reach, SCHEMA, Step,
};
use wakescope_core::preemption::Model;

use crate::common::schema::{assert_described, assert_keys_may_be_added, unused_keys};
use crate::common::{Checker, read};

fn schema() -> Value {
    serde_json::from_str(&read("docs/reference/predict.schema.json")).unwrap()
}

fn full() -> Prediction {
    let range = Some(Range { median_ns: 5, low_ns: 4, high_ns: 9 });
    let latencies =
        || Some(Latencies { p50: range, p99: range, p999: range, max: range, longest_ns: 9 });
    let model =
        |model, reach| Predicted { model, reach, as_recorded: latencies(), broken: latencies() };
    let break_of = |name: &str| Break { function: name.into(), every_ns: 1_000, sections: 3 };
    Prediction {
        schema: SCHEMA.into(),
        cells: vec![Cell {
            key: "0a".repeat(32),
            label: "6.1-cloud none find seed 1".into(),
            seed: 1,
            window_ns: 500_000_000,
            wakeups: 1_000,
            explained: true,
            path: Path { wakeups: 1_000, min_ns: 1, median_ns: 2, max_ns: 3 },
            measured: Measured {
                p50_ns: Some(1),
                p99_ns: Some(2),
                p999_ns: Some(3),
                max_ns: Some(4),
            },
            replayed: Measured {
                p50_ns: Some(1),
                p99_ns: Some(2),
                p999_ns: Some(9),
                max_ns: Some(9),
            },
            not_repeated: vec![NotRepeated {
                figure: Figure::P999,
                measured_ns: 4,
                replayed_ns: Some(9),
                low_ns: 5,
                high_ns: 9,
            }],
        }],
        recorded: Model::None,
        interval_ns: 500_000,
        phases: 256,
        breaks: vec![break_of("free_pages")],
        limit_sections_ns: Some(500_000),
        models: vec![
            model(Model::None, Reach::Whole),
            model(Model::Voluntary, Reach::AtMost),
            model(Model::Full, Reach::AtLeast),
            model(Model::Lazy, Reach::OtherKernel),
            model(Model::Rt, Reach::SpinLocks),
        ],
        next: Some(Ranking {
            model: Model::None,
            every_ns: 10_000,
            steps: vec![Step { functions: vec!["lock".into()], before_ns: 9, after_ns: 4 }],
        }),
        ..Prediction::default()
    }
}

#[track_caller]
fn assert_documented(prediction: &Prediction) {
    let json = prediction.to_json();
    let fault = Checker::closed(schema()).fault(&serde_json::from_str(&json).unwrap());
    assert_eq!(fault, None, "{json}");
    assert_eq!(serde_json::from_str::<Prediction>(&json).as_ref().ok(), Some(prediction));
}

#[test]
fn a_prediction_fits_the_schema() {
    assert_documented(&full());
    let unused = unused_keys(&schema(), &serde_json::to_value(full()).unwrap());
    assert!(unused.is_empty(), "the schema documents keys that no prediction has: {unused:?}");
    let mut least = full();
    (least.next, least.limit_sections_ns) = (None, None);
    least.models[0].as_recorded.as_mut().unwrap().p999 = None;
    (least.models[1].as_recorded, least.models[1].broken) = (None, None);
    least.cells[0].measured = Measured::default();
    assert_documented(&least);
}

#[test]
fn keys_may_be_added_to_a_prediction_but_not_written_unannounced() {
    assert_keys_may_be_added(&schema(), &serde_json::to_value(full()).unwrap(), &[]);
}

#[test]
fn every_key_of_a_prediction_is_described_with_its_unit() {
    assert_described(&schema(), "virtual ns");
}

#[test]
fn the_page_of_predict_names_what_the_record_holds() {
    let page = read("docs/predict.md");
    for key in schema()["properties"].as_object().unwrap().keys().filter(|key| *key != "schema") {
        assert!(page.contains(&format!("`{key}`")), "docs/predict.md says nothing of {key}");
    }
}
