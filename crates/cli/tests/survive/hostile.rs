//! Hostile text in every string that there is: nothing of it reaches a terminal or a file as it is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use serde_json::Value;
use wakescope_core::lab::Lab;
use wakescope_core::run::Run;
use wakescope_report::style::is_hostile;

use crate::common::bench::{Ended, Running, Test, eventually, kill, skip};
use crate::common::formats::texts;
use crate::common::made_up::run;
use crate::common::runs::full_run;
use crate::inputs;

/// A command for a terminal, an 8-bit one, a turn of direction, and a line of one's own.
const HOSTILE: &str =
    "\u{1b}]0;x\u{7}\u{9b}31m\u{61c}\u{202e}\u{2066}\u{ad}\u{e0041}\r\nwakescope: all is well";

#[track_caller]
fn assert_harmless(text: &[u8], what: &str) {
    let text = std::str::from_utf8(text).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = text.chars().find(|&c| is_hostile(c) && c != '\n' && c != '\t');
    assert_eq!(found, None, "{what}: {text:?}");
}

#[track_caller]
fn assert_ended_harmless(ended: &Ended, what: &str) {
    assert_harmless(ended.stdout.as_bytes(), what);
    assert_harmless(ended.stderr.as_bytes(), what);
    assert!(!ended.stderr.contains("panicked"), "{what}: {}", ended.stderr);
    let forged = ended.stderr.lines().filter(|line| *line == "wakescope: all is well").count();
    assert_eq!(forged, 0, "{what}: {}", ended.stderr);
}

/// Every string of `record` made hostile that the reader takes so: not those of few known values.
fn hostile(record: Value, is_read: impl Fn(&Value) -> bool) -> Value {
    let mut pointers = Vec::new();
    list(&record, String::new(), &mut pointers);
    let mut record = record;
    let mut changed = 0;
    for pointer in pointers {
        let place = record.pointer_mut(&pointer).unwrap();
        let before = place.clone();
        *place = Value::String(format!("{}{HOSTILE}", before.as_str().unwrap()));
        if is_read(&record) {
            changed += 1;
        } else {
            *record.pointer_mut(&pointer).unwrap() = before;
        }
    }
    assert!(changed > 3, "only {changed} strings could be made hostile");
    record
}

fn list(value: &Value, at: String, pointers: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::String(_) => pointers.push(at),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(i, v)| list(v, format!("{at}/{i}"), pointers));
        }
        Value::Object(map) => {
            map.iter().for_each(|(k, v)| list(v, format!("{at}/{}", escaped(k)), pointers));
        }
        _ => {}
    }
}

fn hostile_run(run: &Run) -> String {
    let record = serde_json::from_str(&run.to_json()).unwrap();
    hostile(record, |value| Run::from_json(value.to_string().as_bytes()).is_ok()).to_string()
}

#[test]
fn hostile_text_in_records_goes_nowhere() {
    let test = Test::new("hostile");
    let write = |name: &str, record: &str| {
        fs::create_dir(test.dir.join(name)).unwrap();
        fs::write(test.dir.join(name).join("run.json"), record).unwrap();
    };
    write("full", &hostile_run(&full_run()));
    write("plain", &hostile_run(&run(50)));
    write("other", &hostile_run(&Run { id: "another".into(), ..run(50) }));
    let mut shown = 0;
    for folder in ["full", "plain"] {
        for format in texts() {
            let what = format!("{folder} as {format}");
            let ended = test.start_command(&["report", folder, "--format", format]).output();
            assert_ended_harmless(&ended, &what);
            shown += usize::from(ended.code == Some(0));
            let args = ["report", folder, "--format", format, "-o", "out"];
            let written = test.start_command(&args).output();
            assert_eq!(written.code, ended.code, "{what}: {written:?}");
            assert_ended_harmless(&written, &what);
            if written.code == Some(0) {
                assert_harmless(&fs::read(test.dir.join("out")).unwrap(), &what);
            }
        }
    }
    assert!(shown > texts().count(), "only {shown} reports were shown");
    for command in [
        "compare full --against plain",
        "compare plain --against other --json",
        "compare plain --against other --format junit",
        "compare plain --against other --format markdown",
        "trend plain plain plain",
        "trend plain plain plain --json",
        "report full plain",
        "explain full",
        "explain full --json",
    ] {
        let args: Vec<&str> = command.split(' ').collect();
        assert_ended_harmless(&test.start_command(&args).output(), command);
    }
}

#[test]
fn what_compare_tells_in_json_means_the_same() {
    let test = Test::new("hostile-json");
    // A label is a folder's name, cleaned; the command that repeats it is whole.
    let name = "a\u{9b}b\u{202e}";
    test.write_run(name, &run(50));
    test.write_run("other", &Run { id: "another".into(), ..run(50) });
    let ended = test.start_command(&["compare", name, "--against", "other", "--json"]).output();
    assert_ended_harmless(&ended, "compare --json");
    assert!(ended.stdout.contains("\\u009b"), "{}", ended.stdout);
    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(value.to_string().contains(name), "{value}");
}

#[test]
fn hostile_text_in_paths_and_arguments_goes_nowhere() {
    let test = Test::new("hostile-paths");
    let raw = OsStr::from_bytes(b"\x1b[31m\x9b2J\nwakescope: all is well");
    for args in [
        &["report"][..],
        &["report", "--format"],
        &["import"],
        &["explain"],
        &["trend"],
        &["measure", "--load"],
        &["measure", "--samples", "1", "--out", "/proc"],
        &["lab", "run", "--plan"],
        &["compare", "x", "--against"],
        &["load"],
        &[],
    ] {
        for own in [OsStr::new(HOSTILE), raw] {
            let mut command = test.command(args);
            let ended = Running::start(command.arg(own)).output();
            assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
            assert_ended_harmless(&ended, &format!("{args:?}"));
        }
    }
}

#[test]
fn hostile_text_in_a_lab_record_goes_nowhere() {
    let test = Test::new("hostile-lab");
    for place in ["run", HOSTILE] {
        test.write_run("run", &run(50));
        let record = serde_json::from_str(&inputs::record(place)).unwrap();
        let is_read = |value: &Value| Lab::from_json(value.to_string().as_bytes()).is_ok();
        let lab = hostile(record, is_read);
        fs::write(test.dir.join("lab.json"), lab.to_string()).unwrap();
        for format in ["html", "svg", "md", "json", "text"] {
            let ended = test.start_command(&["report", "lab.json", "--format", format]).output();
            assert_ended_harmless(&ended, &format!("{place:?} as {format}"));
        }
    }
}

#[test]
fn a_dumb_terminal_gets_no_colours_and_no_sequences() {
    let test = Test::new("dumb");
    test.write_run("run", &full_run());
    let there = Command::new("script").arg("--version").output();
    if !there.is_ok_and(|ended| ended.status.success()) {
        return skip("a_dumb_terminal_gets_no_colours", "there is no script(1)");
    }
    for (term, dressed) in [("xterm", true), ("dumb", false), ("", false)] {
        let mut script = test.program("script".as_ref());
        let program = test.program.display();
        let command =
            format!("{program} report run; {program} measure --duration 1s --out {term}x");
        script.args(["-qec", &command, "typescript"]).env("TERM", term).env_remove("NO_COLOR");
        let ended = Running::start(&mut script).output();
        assert_eq!(ended.stdout.contains('\u{1b}'), dressed, "{term}: {}", ended.stdout);
    }
    // Nothing is left that waits.
    let left: Vec<i32> = test.processes().into_keys().collect();
    kill("TERM", &left);
    eventually("all is over", || test.processes().is_empty());
}
