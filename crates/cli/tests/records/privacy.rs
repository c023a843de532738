//! What records and reports hold of secrets and names, by the whole command.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::bench::Test;
use crate::common::formats::texts;
use crate::common::measured::{RECORD, record};
use serde_json::{Value, json};
use wakescope_core::finding::Severity;
use wakescope_core::run::Run;

/// In whatever must not get out.
const SECRET: &str = "hunter2";

/// A run in a folder with the secret in its name, whose record holds it wherever there may be a name.
fn with_secrets(test: &Test) -> String {
    let folder = format!("of-{SECRET}");
    let load = format!("find,exec:TOKEN={SECRET} sleep 1000");
    let args = ["--samples", "300", "--save-samples", "--load", &load, "--out", &folder];
    let ended = test.measure(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let path = test.dir.join(&folder).join(RECORD);
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(SECRET), "a command is in the record: {text}");
    assert!(!ended.stdout.replace(&folder, "").contains(SECRET), "{}", ended.stdout);

    let mut value: Value = serde_json::from_str(&text).unwrap();
    let secret = || json!(SECRET);
    value["host"]["cmdline"] = json!(format!("root={SECRET} quiet {SECRET}.site=1 -- {SECRET}"));
    value["plan"]["load"] = json!([format!("exec:{SECRET}")]);
    value["plan"]["target"] = json!({"kind": "comm", "comm": SECRET});
    value["load"][0]["name"] = json!(format!("exec:{SECRET}"));
    value["load"][0]["alive"] = json!(false);
    value["load"][0]["fault"] = secret();
    value["later"] = secret();
    value["validity"]["verdict"] = json!("valid");
    value["validity"]["findings"] = json!([
        {"code": "load-died", "severity": Severity::Note, "message": SECRET, "hint": SECRET},
        {"code": SECRET, "severity": Severity::Note, "message": SECRET, "hint": SECRET},
    ]);
    let task =
        json!({"kind": "task", "comm": SECRET, "pid": 7, "policy": "other", "priority": null});
    let of_user = json!({"function": SECRET, "offset": 16, "module": SECRET});
    let of_source = json!({"function": "do_work", "offset": 16, "module": null,
        "file": format!("/home/{SECRET}/x.c"), "line": 7,
        "inlined": [{"function": SECRET, "file": format!("/home/{SECRET}/x.c"), "line": 7}]});
    let share = json!({"cause": "irq", "culprit": task, "within": {"task": task}, "evidence": "edge",
        "ns": value["worst"][0]["wakeup_latency_ns"], "frames": [of_source],
        "user_stack": [of_user], "given_up_at": [of_source]});
    value["worst"][0]["blame"] = json!([share]);
    value["worst"][0]["timeline"] =
        json!([{"at_ns": 0, "depth": 0, "event": {"kind": "switch", "from": task, "to": task}}]);
    value["worst"][0]["later"] = secret();
    value["causes"] = json!([{"cause": "irq", "culprit": task, "episodes": 1, "total_ns": 1,
        "worst_ns": 1, "share": 1.0}]);
    value["explanation"] = json!({"above_ns": 1, "above": "p99", "wakeups": 300, "not_followed": 0,
        "late": 1, "explained": 1, "records": 1, "lost_records": 0, "seen_with": [],
        "not_seen": [], "sections": {"exact": false, "irq_off": share, "preempt_off": null}});
    fs::write(&path, value.to_string()).unwrap();
    folder
}

#[test]
fn redacted_reports_hold_no_names_in_any_format() {
    let test = Test::new("redacted-reports");
    let folder = with_secrets(&test);
    // That the secrets are there to be found.
    assert!(test.done(&["report", &folder, "--format", "html"]).contains(SECRET));
    for format in texts() {
        let shown = test.done(&["report", &folder, "--redact", "--format", format]);
        assert!(!shown.contains(SECRET) && !shown.is_empty(), "{format}: {shown}");
    }
    for format in ["text", "html", "svg", "md"] {
        let shown = test.done(&["report", &folder, &folder, "--redact", "--format", format]);
        assert!(!shown.contains(SECRET) && shown.contains("run 2"), "{format}: {shown}");
    }
    let shown = test.done(&["explain", &folder, "--redact"]);
    assert!(!shown.contains(SECRET), "{shown}");
}

#[test]
fn a_redacted_record_is_a_record() {
    let test = Test::new("redacted-record");
    let folder = with_secrets(&test);
    assert_eq!(test.done(&["report", &folder, "--redact", "-o", "public.json"]), "");
    let text = fs::read_to_string(test.dir.join("public.json")).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    crate::common::assert_valid_run(&text);
    let (public, whole) = (Run::from_json(text.as_bytes()).unwrap(), record_of(&test, &folder));
    assert_eq!((&public.threads, &public.summary), (&whole.threads, &whole.summary));
    let frame = &public.worst[0].blame[0].frames[0];
    assert_eq!((frame.name(), frame.offset), ("do_work", 16));
    assert_eq!((frame.file.as_deref(), frame.line), (Some("[redacted]"), 0));
    assert_eq!(public.host.cmdline, "[masked] quiet [masked] -- [masked]");
    // Its figures are the same, and it can be redacted again.
    let csv = |path: &str| test.done(&["report", path, "--format", "csv"]);
    assert_eq!(csv("public.json"), csv(&folder));
    let again = test.done(&["report", "public.json", "--redact", "--format", "json"]);
    assert_eq!(again, text);
    // The record itself is its owner's; what is made to be handed on has the usual mode.
    let mode = |path: &str| fs::metadata(test.dir.join(path)).unwrap().permissions().mode();
    fs::write(test.dir.join("usual"), "").unwrap();
    assert_eq!(mode(&format!("{folder}/{RECORD}")) & 0o777, 0o600);
    assert_eq!(mode("public.json"), mode("usual"));
}

fn record_of(test: &Test, folder: &str) -> Run {
    let text = fs::read(test.dir.join(folder).join(RECORD)).unwrap();
    Run::from_json(&text).unwrap()
}

#[test]
fn a_run_can_be_redacted_from_its_beginning_on() {
    let test = Test::new("redacted-run");
    let load = "exec:sleep 1000";
    let args = ["--duration", "2s", "--load", load, "--redact", "--out", "run"];
    let running = test.start_measure(&args);
    crate::common::measured::await_samples_in(&test.dir.join("run"));
    // Also the record that is left if it is killed.
    let so_far = record(&test.dir.join("run"));
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for run in [so_far, record(&test.dir.join("run"))] {
        assert_eq!(run.plan.load, ["exec:[redacted]"]);
        assert!(run.plan.load_marks.is_empty() && !run.host.cmdline.contains("=[masked]"));
    }
    assert!(!ended.stdout.contains("sleep"), "{}", ended.stdout);
}

#[test]
fn an_import_can_be_redacted() {
    let test = Test::new("redacted-import");
    let file = format!("{SECRET}.txt");
    let text = "# Total: 000000003\n# Min Latencies: 00005\n# Avg Latencies: 00006\n\
                # Max Latencies: 00007\n# Histogram Overflows: 00000\n";
    let histogram = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000005 000001\n000006 000001\n000007 000001\n";
    fs::write(test.dir.join(&file), format!("{histogram}{text}")).unwrap();
    test.done(&["import", &file, "--redact", "--out", "run"]);
    let stored = fs::read_to_string(test.dir.join("run").join(RECORD)).unwrap();
    assert!(!stored.contains(SECRET), "{stored}");
    let shown = test.done(&["report", "run"]);
    assert!(shown.contains("cyclictest") && !shown.contains(SECRET), "{shown}");
    let shown = test.done(&["report", &file, "--redact"]);
    assert!(shown.contains("cyclictest") && !shown.contains(SECRET), "{shown}");
}
