//! Signals that are ignored when the command starts, and limits that the kernel tells by signals.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use wakescope_core::finding::Verdict;
use wakescope_core::run::State;
use wakescope_sys::signal::end_by_default;

use crate::common::bench::{Running, Test, eventually, eventually_some, kill, skip};
use crate::common::measured::{NEXT, RECORD, assert_found, assert_not_found, names, record};

/// The command with `args`, started by a shell that does `first`.
fn after(test: &Test, first: &str, args: &[&str]) -> Command {
    let mut shell = test.program(Path::new("/bin/bash"));
    shell.args(["-c", &format!("{first}; exec \"$0\" \"$@\"")]).arg(&test.program).args(args);
    shell
}

/// Whether the command can be started so.
fn has_bash(test: &str) -> bool {
    let there = Path::new("/bin/bash").exists();
    if !there {
        skip(test, "there is no /bin/bash");
    }
    there
}

#[test]
fn ignored_signals_do_not_end_a_run() {
    if !has_bash("ignored_signals_do_not_end_a_run") {
        return;
    }
    // As nohup does, and a shell for a job in the background.
    for (ignored, end) in [("HUP", "INT"), ("INT", "TERM"), ("HUP INT TERM", "")] {
        let test = Test::new("ignored");
        let last = if end.is_empty() { "1500ms" } else { "1h" };
        let args = ["measure", "--duration", last];
        let mut running = Running::start(&mut after(&test, &format!("trap '' {ignored}"), &args));
        let folder = test.await_samples();
        let before = record(&folder).duration_ns;
        for signal in ignored.split(' ') {
            kill(signal, &[running.pid()]);
        }
        if !end.is_empty() {
            eventually("it goes on", || {
                assert!(!running.has_ended(), "SIG{ignored} ended it");
                record(&folder).duration_ns > before + 1_000_000_000
            });
            kill(end, &[running.pid()]);
        }
        let ended = running.output();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let run = record(&folder);
        let state = if end.is_empty() { State::Complete } else { State::Interrupted };
        assert_eq!(run.state, state, "{ignored}");
        if !end.is_empty() {
            assert!(assert_found(&run, "interrupted").message.contains(end), "{:?}", run.validity);
        }
    }
}

/// A build in a bisection takes minutes, and many make of Ctrl-C what they make of a mistake in the source.
#[test]
fn signals_end_a_bisection_and_its_build() {
    for signal in ["INT", "TERM"] {
        let test = Test::new("bisection");
        let git = "git init -q linux && cd linux && \
                   for change in good bad; do git -c user.name=t -c user.email=t@example.org \
                   commit -q --allow-empty -m $change || exit; done";
        let made = test.program(Path::new("/bin/sh")).args(["-c", git]).status();
        if !made.is_ok_and(|status| status.success()) {
            return skip("signals_end_a_bisection_and_its_build", "there is no git");
        }
        let build = "trap 'exit 2' INT TERM; sleep 1000 & echo $! >pid; mv pid started; wait";
        let mut bisect = test.program(&test.program);
        bisect.args(["lab", "bisect", "--repo", "linux", "--good", "HEAD~1", "--bad", "HEAD"]);
        bisect.args(["--build", build, "--image", "bzImage", "--load", "idle"]);
        bisect.args(["--preempt", "none", "--fail-above", "1ms"]);
        let running = Running::start(&mut bisect);
        let started = test.dir.join("linux/started");
        let sleeper = eventually_some("it builds", || std::fs::read_to_string(&started).ok());
        kill(signal, &[running.pid()]);
        let ended = running.output();
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("the build was interrupted\n"), "{ended:?}");
        assert!(!ended.stderr.contains("skipped"), "{ended:?}");
        // A zombie has no command line.
        let command = format!("/proc/{}/cmdline", sleeper.trim());
        eventually("what the build has started ends", || {
            std::fs::read(&command).unwrap_or_default().is_empty()
        });
    }
}

#[test]
fn a_stop_is_found_and_no_machine_is_blamed_for_it() {
    let test = Test::new("stopped");
    let args = ["--duration", "2s", "--fail-above", "500ms", "--policy", "other"];
    let running = test.start_measure(&args);
    let folder = test.await_samples();
    kill("STOP", &[running.pid()]);
    std::thread::sleep(Duration::from_millis(600));
    kill("CONT", &[running.pid()]);
    // Nothing is made of a signal that does not stop it.
    kill("USR1", &[running.pid()]);
    kill("CONT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(3), "a limit is neither kept nor exceeded: {ended:?}");
    let run = record(&folder);
    assert!(run.summary.max_ns > Some(500_000_000), "{:?}", run.summary);
    let found = assert_found(&run, "stopped");
    assert!(found.message.starts_with("wakescope was stopped once during the run"), "{found:?}");
    assert_eq!(run.validity.verdict, Verdict::Invalid);
}

#[test]
fn a_stop_before_the_first_wakeup_is_found_if_it_lasts_until_then() {
    for (stop_ms, is_found) in [(3_600, true), (200, false)] {
        let test = Test::new("stopped-early");
        let args =
            ["--warmup", "3s", "--duration", "1s", "--interval", "10ms", "--policy", "other"];
        let mut running = test.start_measure(&args);
        running.await_line("warming up for");
        // A stop is seen where it waits, which it does at once now.
        std::thread::sleep(Duration::from_millis(200));
        kill("STOP", &[running.pid()]);
        std::thread::sleep(Duration::from_millis(stop_ms));
        kill("CONT", &[running.pid()]);
        let ended = running.output();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let run = record(&test.run_folder());
        match is_found {
            true => {
                let found = assert_found(&run, "stopped");
                assert!(found.message.contains("was stopped once"), "{found:?}");
                assert!(run.summary.max_ns > Some(100_000_000), "{:?}", run.summary);
            }
            false => assert_not_found(&run, "stopped"),
        }
    }
}

#[test]
fn ignored_signals_do_not_end_a_load() {
    if !has_bash("ignored_signals_do_not_end_a_load") {
        return;
    }
    let test = Test::new("ignored-load");
    let load = "exec:while :; do echo >>ticks; sleep 0.05; done";
    let args = ["load", load, "--duration", "1h"];
    let mut running = Running::start(&mut after(&test, "trap '' HUP INT", &args));
    let ticks = || std::fs::metadata(test.dir.join("ticks")).map_or(0, |found| found.len());
    eventually("it has begun", || ticks() > 0);
    kill("HUP", &[running.pid()]);
    kill("INT", &[running.pid()]);
    let before = ticks();
    eventually("it goes on", || {
        assert!(!running.has_ended(), "an ignored signal ended it");
        ticks() > before + 20
    });
    kill("TERM", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    test.assert_nothing_is_left();
}

/// A stream that takes nothing, and the other end of it, which nobody reads.
fn full_stream() -> (Stdio, UnixStream) {
    let (mut stream, unread) = UnixStream::pair().unwrap();
    stream.set_nonblocking(true).unwrap();
    while stream.write(b"x").is_ok() {}
    stream.set_nonblocking(false).unwrap();
    (OwnedFd::from(stream).into(), unread)
}

#[test]
fn a_signal_ends_a_command_whose_output_nobody_takes() {
    end_by_default();
    let test = Test::new("not-taken");
    for args in [
        &["measure", "--duration", "1h", "--json"][..],
        &["load", "cpu", "--json"],
        &["model", "run", "williams", "--preempt", "none", "--samples", "100"],
    ] {
        let (stdout, _unread) = full_stream();
        let mut child = test.command(args).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        match args[0] {
            "measure" => {
                test.await_samples();
                kill("INT", &[pid]);
            }
            "load" => {
                let told = BufReader::new(child.stderr.take().unwrap()).lines().next();
                assert_eq!(told.unwrap().unwrap(), "running: cpu");
                kill("INT", &[pid]);
            }
            // It ends by itself.
            _ => {}
        }
        eventually("it waits for its reader", || writes_to_stdout(pid));
        kill("TERM", &[pid]);
        let status = eventually_some("it ends", || child.try_wait().unwrap());
        assert_eq!(status.signal(), Some(15), "{args:?}: {status}");
        test.assert_nothing_is_left();
    }
}

/// Whether the main thread of a process is in a system call on its standard output.
fn writes_to_stdout(pid: i32) -> bool {
    let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    // While signals are blocked, it waits for a load's end: the first argument of waitid(2) is 1, too (P_PID).
    let status = read("status");
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_open = blocked.is_some_and(|mask| mask & (1 << (15 - 1)) == 0);
    is_open && read("syscall").split(' ').nth(1) == Some("0x1")
}

#[test]
fn the_limit_of_file_sizes_is_an_error_with_a_name() {
    if !has_bash("the_limit_of_file_sizes_is_an_error_with_a_name") {
        return;
    }
    let test = Test::new("file-size");
    let limited = |kib: u32, args: &[&str]| {
        Running::start(&mut after(&test, &format!("ulimit -f {kib}"), args)).output()
    };
    let measure: Vec<_> =
        "measure --cpus 0 --interval 50us --samples 100000 --save-samples".split(' ').collect();
    // Nothing fits, or the record but not the samples: these take 1.8 MB, while a record grows with how
    // different its samples are (180 kB for a CPU that a stalling machine took away again and again).
    let ended = limited(1, &measure);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("File too large"), "{}", ended.stderr);
    assert_eq!(names(&test.dir), [""; 0]);
    let ended = limited(1000, &measure);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let folder = test.run_folder();
    assert_eq!(names(&folder), [RECORD, "samples.csv"]);
    assert!(!folder.join(NEXT).exists());
    let run = record(&folder);
    assert_eq!(run.state, State::Complete);
    let finding = assert_found(&run, "not-saved");
    assert!(finding.message.contains("File too large"), "{finding:?}");
    // A report, and what is printed to a file.
    let run = folder.display().to_string();
    let ended = limited(1, &["report", &run, "--format", "html", "-o", "page.html"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("page.html: File too large"), "{}", ended.stderr);
    let printed = limited(1, &["report", &run, "--format", "json", "-o", "/dev/null"]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    // A load's programs end as they always did.
    let ended = limited(1, &["load", "exec:yes >big; kill -l $?", "--duration", "2s"]);
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
}
