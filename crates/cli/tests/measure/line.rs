//! `wakescope measure --stimulus line` and `wakescope respond`, at two ends of a pseudoterminal.

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::thread::JoinHandle;

use crate::common::bench::{Running, Test, eventually, kill, skip};
use crate::common::measured::{
    allowed_cpus, assert_found, assert_not_found, await_samples_in, record,
};
use wakescope_core::line::{AnsweredBy, Attachment, Line};
use wakescope_core::run::{Run, State};
use wakescope_core::source::Quantity;
use wakescope_sys::file::effective_user;
use wakescope_sys::serial::{self, Settings};

/// A responder on a new pseudoterminal, and the path of its line.
fn respond(test: &Test) -> (Running, String) {
    let mut responder = test.start_command(&["respond", "--pty"]);
    responder.await_line("answering on ");
    let path = responder.awaited().split(' ').nth(2).unwrap().to_owned();
    assert!(path.starts_with("/dev/pts/"), "{path}");
    (responder, path)
}

fn over<'a>(line: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--stimulus", "line", "--line", line], more].concat()
}

/// A pseudoterminal whose other end does what `answer` says with the byte that comes as so-many-th. It
/// ends with the line, which is the file.
struct Other {
    line: File,
    path: PathBuf,
    _thread: JoinHandle<()>,
}

impl Other {
    fn start(answer: impl Fn(usize, u8) -> Option<u8> + Send + 'static) -> Self {
        let (mut answering, line, path) = serial::open_pair().unwrap();
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 64];
            let mut number = 0;
            while let Ok(count) = answering.read(&mut bytes) {
                for byte in &bytes[..count] {
                    number += 1;
                    if let Some(answer) = answer(number, *byte) {
                        let _ = answering.write_all(&[answer]);
                    }
                }
            }
        });
        Self { line, path, _thread: thread }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

fn line_of(run: &Run) -> &Line {
    run.line.as_ref().expect("a line")
}

/// Points that were measured, counted or left out.
fn points(run: &Run) -> u64 {
    let line = line_of(run);
    run.threads[0].woken.count + line.unanswered + line.left_out
}

#[test]
fn round_trips_are_measured_between_two_processes() {
    let test = Test::new("line");
    let (responder, path) = respond(&test);
    let run = test.measured(&over(&path, &["--duration", "400ms", "--interval", "1ms"]));
    assert_eq!((run.state, run.quantity()), (State::Complete, Quantity::RoundTrip));
    let line = line_of(&run);
    assert_eq!(
        (line.attachment, line.answered_by),
        (Attachment::Pseudoterminal, AnsweredBy::Responder)
    );
    assert_eq!((line.baud, line.transmission_ns), (None, 0));
    assert_eq!((run.threads.len(), points(&run)), (1, 400), "{line:?}");
    assert!(run.threads[0].woken.min_ns > Some(0));
    assert_eq!(run.plan.line.as_ref().unwrap().device, path);
    for code in ["line-echo", "line-stray", "line-lost", "late-waker"] {
        assert_not_found(&run, code);
    }
    // The number of round trips ends it, too, and one sender comes after another.
    let second = test.measured(&over(&path, &["--samples", "50", "--interval", "1ms"]));
    assert_eq!(second.threads[0].woken.count, 50);
    kill("TERM", &[responder.pid()]);
    let ended = responder.output();
    assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), path.as_str()), "{ended:?}");
    let text = ended.stderr.lines().last().unwrap();
    let answered: u64 = text.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert!(answered >= run.threads[0].woken.count + 50, "{text}");
    assert!(text.contains(" bytes answered in ") && text.ends_with("; ended by SIGTERM"), "{text}");
}

#[test]
fn round_trips_are_not_called_wakeups_and_not_compared_with_them() {
    let test = Test::new("line-words");
    let (_responder, path) = respond(&test);
    let out = ["--samples", "300", "--interval", "1ms", "--out", "trips"];
    let ended = test.measure(&over(&path, &out));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("Largest round trip "), "{ended:?}");
    let text = format!("line {path}, a pseudoterminal: nothing is transmitted");
    assert!(ended.stdout.contains(&text), "{ended:?}");
    assert!(!ended.stdout.contains("wakeup"), "{ended:?}");
    let page = test.done(&["report", "trips", "--format", "html"]);
    assert!(page.contains(&text) && !page.contains("Worst wakeup"));
    let ended = test.measure(&["--samples", "300", "--out", "wakeups"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = test.ended(&["compare", "trips", "--against", "wakeups"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("round trip"), "{ended:?}");
}

#[test]
fn a_responder_that_is_killed_ends_the_run_and_what_was_measured_is_kept() {
    let test = Test::new("line-killed");
    let (responder, path) = respond(&test);
    let sender = test.start_measure(&over(&path, &["--duration", "1h", "--fail-above", "1h"]));
    let folder = test.await_samples();
    kill("KILL", &[responder.pid()]);
    let ended = sender.output();
    // Limits are not passed by a run that was cut short.
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let run = record(&folder);
    assert_eq!(run.state, State::Interrupted);
    assert!(run.threads[0].woken.count > 0);
    let lost = assert_found(&run, "line-lost");
    assert!(lost.message.ends_with("its other end was closed, or its device is gone"), "{lost:?}");
}

#[test]
fn answers_that_do_not_come_and_those_that_are_wrong_are_counted() {
    let test = Test::new("line-wrong");
    // After the greeting, some bytes are lost, and some answers are those of no byte.
    let other = Other::start(|number, byte| match number {
        ..=100 => Some(!byte),
        _ if number % 20 == 0 => None,
        _ if number % 20 == 10 => Some(byte),
        _ => Some(!byte),
    });
    let limits = ["--samples", "300", "--interval", "1ms", "--fail-above", "1h"];
    let ended = test.measure(&over(other.path(), &limits));
    assert_eq!(ended.code, Some(3), "no run with lost bytes passes: {ended:?}");
    let run = record(&test.run_folder());
    let line = line_of(&run);
    assert!(line.unanswered > 0 && line.stray > 0, "{line:?}");
    assert_eq!((run.threads[0].woken.count, run.state), (300, State::Complete), "{line:?}");
    assert_found(&run, "line-unanswered");
    assert_found(&run, "line-stray");
    assert!(ended.stdout.contains(" got no answer"), "{ended:?}");
}

#[test]
fn an_echo_is_not_taken_for_a_responder() {
    let test = Test::new("line-echo");
    let other = Other::start(|_, byte| Some(byte));
    let run = test.measured(&over(other.path(), &["--samples", "50", "--interval", "1ms"]));
    assert_eq!(line_of(&run).answered_by, AnsweredBy::Echo);
    assert_found(&run, "line-echo");
}

#[test]
fn the_settings_of_a_line_are_restored_after_a_signal() {
    let test = Test::new("line-signal");
    let other = Other::start(|_, byte| Some(!byte));
    let is_raw = || Settings::of(&other.line).unwrap().is_raw();
    assert!(!is_raw());
    let sender = test.start_measure(&over(other.path(), &["--duration", "1h"]));
    let folder = test.await_samples();
    assert!(is_raw());
    kill("INT", &[sender.pid()]);
    let ended = sender.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!is_raw());
    assert_eq!(record(&folder).state, State::Interrupted);
    // Also where nothing was measured yet, and the probe has the line already.
    let mut sender = test.start_measure(&over(other.path(), &["--warmup", "1h"]));
    sender.await_line("warming up for ");
    assert!(is_raw());
    kill("TERM", &[sender.pid()]);
    let ended = sender.output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("interrupted before the first wakeup"), "{ended:?}");
    assert!(!is_raw());
    // So does `respond`, whose other end is this process.
    let (mut far, near, path) = serial::open_pair().unwrap();
    let mut responder = test.start_command(&["respond", path.to_str().unwrap()]);
    responder.await_line("answering on ");
    assert!(Settings::of(&near).unwrap().is_raw());
    far.write_all(&[5]).unwrap();
    let mut answer = [0];
    far.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [!5]);
    kill("INT", &[responder.pid()]);
    let ended = responder.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("1 byte answered in "), "{ended:?}");
    assert!(!Settings::of(&near).unwrap().is_raw());
    // A line that ends is an error, after all was answered.
    let mut responder = test.start_command(&["respond", path.to_str().unwrap()]);
    responder.await_line("answering on ");
    drop(far);
    let ended = responder.output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("its other end was closed, or its device is gone"), "{ended:?}");
}

#[test]
fn what_cannot_be_measured_over_a_line_is_refused_with_a_remedy() {
    let test = Test::new("line-refused");
    let silent = Other::start(|_, _| None);
    let cpus = allowed_cpus();
    let (_responder, path) = respond(&test);
    let sender = test.start_measure(&over(&path, &["--duration", "1h", "--out", "first"]));
    eventually("the first run begins", || test.dir.join("first/run.json").exists());
    await_samples_in(&test.dir.join("first"));
    let check = |args: &[&str], want: &str| {
        let ended = test.ended(args);
        let text = &ended.stderr;
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(text.contains(want) && text.contains("\n  → "), "{args:?}: {text}");
    };
    let measure = |line: &'static str| ["measure", "--stimulus", "line", "--line", line];
    check(&["measure", "--stimulus", "line"], "needs a line");
    check(&["measure", "--line", "/dev/ttyS1"], "do not apply to --stimulus timer");
    check(&measure("/dev/null"), "/dev/null is no serial line");
    check(&measure("/nowhere"), "cannot find the line /nowhere");
    check(&["measure", "--stimulus", "line", "--line", &path], "another program uses the line");
    check(
        &["measure", "--stimulus", "line", "--line", silent.path()],
        "nothing answers on the line",
    );
    check(&["explain", "--stimulus", "line", "--line", silent.path()], "cannot be explained");
    check(&["respond", "/dev/null"], "/dev/null is no serial line");
    let deadline =
        ["measure", "--stimulus", "line", "--line", silent.path(), "--policy", "deadline"];
    check(&deadline, "--policy deadline does not apply");
    if let [first, .., last] = cpus[..] {
        let list = format!("{first},{last}");
        let two = ["measure", "--stimulus", "line", "--line", silent.path(), "--cpus", &list];
        check(&two, "names several CPUs");
    } else {
        skip("what_cannot_be_measured_over_a_line_is_refused_with_a_remedy (CPUs)", "one CPU");
    }
    assert!(test.runs().is_empty(), "a refused run leaves no folder");
    kill("INT", &[sender.pid()]);
    assert_eq!(sender.output().code, Some(0));
    if effective_user() != 0 {
        return skip(
            "what_cannot_be_measured_over_a_line (permission)",
            "only root can become nobody",
        );
    }
    let mut test = Test::new("line-permission");
    test.become_nobody();
    let ended = test.ended(&["respond", silent.path()]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("become a member of that group"), "{ended:?}");
}
