//! `wakescope check`, run as a command.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use serde_json::Value;
use wakescope_testing::skip;

/// The user `nobody`.
const NOBODY: u32 = 65534;

fn wakescope(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakescope"));
    command.args(arguments);
    command
}

fn is_root() -> bool {
    wakescope_sys::file::effective_user() == 0
}

#[track_caller]
fn run(command: &mut Command, codes: &[i32]) -> Output {
    let output = command.output().expect("the command starts");
    let code = output.status.code();
    assert!(
        code.is_some_and(|c| codes.contains(&c)),
        "{command:?} ended with {code:?}: {output:?}"
    );
    output
}

/// The same command as an unprivileged user. `None`, with a word on stderr, if it cannot be.
fn as_nobody(test: &str, arguments: &[&str], codes: &[i32]) -> Option<Output> {
    if !is_root() {
        skip(test, "only root can become another user");
        return None;
    }
    let mut command = wakescope(arguments);
    match command.uid(NOBODY).gid(NOBODY).output() {
        Ok(_) => Some(run(&mut command, codes)),
        Err(e) => {
            skip(test, &format!("uid {NOBODY} cannot run the command here: {e}"));
            None
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is text")
}

#[test]
fn check_answers_first() {
    let outputs = [
        Some(run(&mut wakescope(&["check"]), &[0])),
        as_nobody("check_answers_first", &["check"], &[0]),
    ];
    for output in outputs.into_iter().flatten() {
        let text = text(&output);
        let first = text.lines().next().unwrap_or_default();
        assert!(first.contains("preemption model"), "{text}");
        for part in [
            " evidence",
            " machine",
            " limitations of measurements on this machine",
            " instruments",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

/// Keys that other programs rely on.
const KEYS: [&str; 8] =
    ["release", "version", "arch", "preemption", "clock", "cmdline", "limitations", "instruments"];

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

#[test]
fn json_has_the_documented_keys() {
    let outputs = [
        Some(run(&mut wakescope(&["check", "--json"]), &[0])),
        as_nobody("json_has_the_documented_keys", &["check", "--json"], &[0]),
    ];
    for output in outputs.into_iter().flatten() {
        let value = json(&output);
        for key in KEYS {
            assert!(!value[key].is_null(), "{key} is missing: {value:#}");
        }
        assert!(value["preemption"]["model"].is_string(), "{value:#}");
        for evidence in value["preemption"]["evidence"].as_array().expect("a list") {
            assert!(evidence["source"].is_string() && evidence["says"].is_string(), "{evidence}");
        }
        for instrument in value["instruments"].as_array().expect("a list") {
            let available = &instrument["available"];
            assert!(instrument["name"].is_string() && instrument["detail"].is_string());
            assert!(available.is_boolean() || available.is_null(), "{instrument}");
        }
    }
}

/// One test for both users: two probes at once would disturb each other.
#[test]
fn the_probe_does_not_contradict_the_evidence() {
    let name = "the_probe_does_not_contradict_the_evidence";
    let arguments = ["check", "--probe", "--json"];
    let outputs =
        [Some(run(&mut wakescope(&arguments), &[0, 3])), as_nobody(name, &arguments, &[0, 3])];
    for output in outputs.into_iter().flatten() {
        let value = json(&output);
        let behaviour = &value["behaviour"];
        assert_ne!(behaviour["agreement"], "contradict", "{behaviour:#}");
        assert!(!behaviour["models"].as_array().expect("a list").is_empty());
        assert!(String::from_utf8_lossy(&output.stderr).contains("timing wakeups"), "{output:?}");
        if behaviour["agreement"] == "undecided" {
            let evidence = behaviour["evidence"].to_string();
            skip(&format!("{name} (agreement)"), &format!("the probe was undecided: {evidence}"));
        }
    }
}

#[test]
fn bad_arguments_are_refused_with_a_remedy() {
    for (arguments, part) in [
        (&["check", "--probe", "--cpu", "8000"][..], "this process may not use it"),
        (&["check", "--probe", "--cpu=-1"], "--cpu"),
        (&["check", "--cpu", "0"], "--probe"),
        (&["check", "--prob"], "--probe"),
    ] {
        let output = run(&mut wakescope(arguments), &[2]);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaint.contains(part), "{arguments:?}: {complaint}");
        assert!(output.stdout.is_empty());
    }
}
