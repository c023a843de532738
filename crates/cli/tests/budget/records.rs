//! Hostile records of runs and labs: counts that no run has, lists without end, keys of no version.

use serde_json::{Value, json};

use crate::common::formats::{BINARY, PICTURES, texts};
use crate::common::made_up::run;
use crate::{Bench, MEMORY, MEMORY_MB, STEPS, Want};

/// A record with other values of some keys.
fn record(change: impl FnOnce(&mut Value)) -> String {
    let mut json = serde_json::to_value(run(70)).unwrap();
    json["id"] = "hostile".into();
    // With that of other threads it would be refused before anything costs time or memory.
    json.as_object_mut().unwrap().remove("summary");
    json["duration_ns"] = Value::Null;
    change(&mut json);
    let threads = json["threads"].as_array().unwrap();
    let counts = threads.iter().filter_map(|thread| thread["expiries"]["count"].as_u64());
    let most = counts.max().unwrap();
    // And so would it be where its length is not that of its expiries.
    let interval_ns: u64 = if most < 1 << 40 { 1_000_000 } else { 1 };
    json["plan"]["interval_ns"] = interval_ns.into();
    if json["duration_ns"].is_null() {
        json["duration_ns"] = (most * interval_ns).into();
    }
    json.to_string()
}

fn distribution(buckets: &[[u64; 3]]) -> Value {
    let (first, last) = (buckets[0], buckets[buckets.len() - 1]);
    let least = buckets.iter().map(|b| b[0].saturating_mul(b[2]));
    json!({
        "count": buckets.iter().map(|b| b[2]).sum::<u64>(),
        "min_ns": first[0],
        "max_ns": last[1] - 1,
        "max_at_ns": 1,
        "sum_ns": least.fold(0, u64::saturating_add),
        "histogram": buckets,
    })
}

fn thread(cpu: u64, buckets: &[[u64; 3]]) -> Value {
    let d = distribution(buckets);
    json!({"cpu": cpu, "missed": 0, "lost": 0, "woken": d, "expiries": d})
}

/// The records, by name.
fn records() -> Vec<(&'static str, String)> {
    let repeat = |text: &str, count: usize| vec![text; count].join(",");
    let with = |key: &str, text: &str| {
        let record = record(|json| {
            json.as_object_mut().unwrap().remove(key);
        });
        format!("{},\"{key}\":{text}}}", &record[..record.len() - 1])
    };
    let list =
        |key: &str, text: &str, count: usize| with(key, &format!("[{}]", repeat(text, count)));
    let episode = "{\"cpu\":0,\"expiry_ns\":1,\"wakeup_latency_ns\":1}";
    vec![
        (
            "counts",
            record(|json| {
                let buckets =
                    [[0, 1_000, 1 << 63], [1_000, 2_000, (1 << 63) - 2], [2_000, 3_000, 1]];
                json["threads"] = json!([thread(0, &buckets)]);
            }),
        ),
        (
            "largest",
            record(|json| {
                let buckets = [[0, 1, 1], [u64::MAX - 2, u64::MAX - 1, 1 << 63]];
                json["threads"] = json!([thread(0, &buckets)]);
                json["duration_ns"] = u64::MAX.into();
            }),
        ),
        (
            "slots",
            record(|json| {
                let buckets: Vec<[u64; 3]> =
                    (0..300).map(|i| [i * 100, i * 100 + 100, 1 << 50]).collect();
                json["threads"] = json!([thread(0, &buckets)]);
                json["threads"][0]["maxima"] =
                    json!({"slot_ns": 1, "max_ns": vec![29_999; 65_536]});
            }),
        ),
        (
            "threads",
            record(|json| {
                // None of their buckets is that of another thread.
                let of = |cpu: u64| {
                    (0..8).map(move |i| [(i << 20) + 8 * cpu, (i << 20) + 8 * cpu + 3, 1])
                };
                let of = |cpu| thread(cpu, &of(cpu).collect::<Vec<_>>());
                json["threads"] = (0..1_200).map(of).collect();
            }),
        ),
        (
            "buckets",
            record(|json| {
                let buckets: Vec<[u64; 3]> = (0..25_000).map(|i| [i * 3, i * 3 + 2, 1]).collect();
                json["threads"] = json!([thread(0, &buckets)]);
            }),
        ),
        (
            "cpus",
            record(|json| {
                let cpus: Vec<u32> = (0..80_000).map(|i| u32::MAX - 2 * i).chain([0]).collect();
                json["plan"]["cpus"] = json!(cpus);
            }),
        ),
        (
            "loads",
            record(|json| {
                let load = |i| {
                    json!({"name": format!("l{i}"), "work": u64::MAX, "unit": "u",
                "per_second": 1e308, "alive": true})
                };
                json["load"] = (0..8_000).map(load).collect();
            }),
        ),
        (
            "findings",
            record(|json| {
                let finding = |i| {
                    json!({"code": format!("x{i}"), "severity": "error", "message": "m",
                "hint": "h"})
                };
                json["validity"]["findings"] = (0..10_000).map(finding).collect();
                json["validity"]["verdict"] = json!("invalid");
            }),
        ),
        ("worst", list("worst", episode, 19_000)),
        (
            "causes",
            list(
                "causes",
                &json!({"cause": "irq", "culprit": {"kind": "timer", "name": "x"},
                    "episodes": 9, "total_ns": 9, "worst_ns": 9, "share": 0.000_125})
                .to_string(),
                8_000,
            ),
        ),
        ("unknown", list("zz", "0", 490_000)),
        ("objects", list("zz", "{}", 320_000)),
        ("nested", with("zz", &format!("{}{}", "[".repeat(490_000), "]".repeat(490_000)))),
        (
            "unknown-in-worst",
            with(
                "worst",
                &format!("[{},\"zz\":[{}]}}]", &episode[..episode.len() - 1], repeat("0", 480_000)),
            ),
        ),
    ]
}

#[test]
fn every_verb_with_hostile_records() {
    let bench = Bench::new("budget-verbs");
    for (name, text) in records() {
        let file = format!("{name}.json");
        bench.write(&file, text.as_bytes());
        bench.check_verbs(&file, "", Want::Any);
        bench.check(&format!("report {file}"), MEMORY_MB, Want::Read);
    }
}

#[test]
fn every_format_with_hostile_records() {
    let bench = Bench::new("budget-formats");
    for (name, text) in records() {
        let file = format!("{name}.json");
        bench.write(&file, text.as_bytes());
        let pictures = PICTURES.map(|picture| format!("svg --picture {picture}"));
        let formats = texts().chain([BINARY]).map(String::from).chain(pictures);
        for format in formats {
            bench.check(&format!("report {file} --format {format} -o out"), MEMORY_MB, Want::Any);
        }
    }
}

#[test]
fn unknown_keys_take_no_more_than_their_text() {
    let bench = Bench::new("budget-unknown");
    for (name, text) in records() {
        if matches!(name, "unknown" | "objects" | "nested" | "unknown-in-worst") {
            bench.write("run.json", text.as_bytes());
            // A parsed list takes 32 times its text, for as long as the run is held.
            bench.check("report run.json", 20, Want::Read);
        }
    }
}

#[test]
fn rows_and_columns_of_an_export() {
    let bench = Bench::new("budget-export");
    let text = record(|json| {
        let of = |cpu| thread(cpu, &[[0, 1, 1], [1_000_000_000, 1_000_000_001, 1]]);
        json["threads"] = (0..2_000).map(of).collect();
    });
    bench.write("run.json", text.as_bytes());
    bench.check("report run.json --format cyclictest", MEMORY_MB, STEPS);
    bench.check("report run.json --format cyclictest --rows 10", MEMORY_MB, Want::Read);
    bench.check("report run.json --format cyclictest --sparse", MEMORY_MB, Want::Read);
}

#[test]
fn records_of_labs() {
    let bench = Bench::new("budget-lab");
    let cell = |kernel: usize, asked: usize, load: usize| {
        json!({"kernel": format!("k{kernel}"), "asked": format!("a{asked}"), "model": null,
            "load": format!("l{load}"), "seed": 1, "status": "ok", "cached": false, "min_ns": 1,
            "p50_ns": 2, "p99_ns": null, "p999_ns": 5, "max_ns": 9, "throughput": 1.0,
            "histogram_sha256": null, "run": null})
    };
    let lab = |cells: Vec<Value>| {
        json!({"schema": "wakescope.lab/1", "plan": "", "repeat": "", "kernels": [], "cells": cells,
            "settings": {"interval_ns": 1, "samples": 1, "cpu_mips": 1, "cpus": 1, "emulator": "",
                "guest_sha256": ""}})
    };
    for (name, cells, want) in [
        // A row and a column for each cell: a table of twenty million places.
        ("apart.json", (0..4_000).map(|i| cell(i, i, i)).collect(), MEMORY),
        ("kernels.json", (0..4_000).map(|i| cell(i, 0, 0)).collect::<Vec<_>>(), Want::Read),
        ("models.json", (0..4_000).map(|i| cell(0, i, 0)).collect(), Want::Read),
        ("loads.json", (0..4_000).map(|i| cell(0, 0, i)).collect(), Want::Read),
    ] {
        bench.write(name, lab(cells).to_string().as_bytes());
        for format in ["", " --format html", " --format md", " --format json"] {
            bench.check(&format!("report {name}{format}"), MEMORY_MB, want);
        }
    }
    let mut unknown = lab(vec![cell(0, 0, 0)]);
    unknown["cells"][0]["zz"] = json!(vec![0; 480_000]);
    bench.write("unknown.json", unknown.to_string().as_bytes());
    bench.check("report unknown.json", 20, Want::Read);
}
