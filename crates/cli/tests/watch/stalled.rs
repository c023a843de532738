//! A watch whose standard output is read by nobody, or late.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use crate::common::bench::{Test, eventually, eventually_some, kill};
use crate::common::following::{can_follow, links};
use crate::{stored_lines, windows};

/// Starts a watch whose standard output takes nothing until the other end is read.
fn start(test: &Test, args: &[&str]) -> (Child, UnixStream) {
    let (reader, mut full) = UnixStream::pair().unwrap();
    full.set_nonblocking(true).unwrap();
    let fault = loop {
        if let Err(e) = full.write(&[b'\n'; 4096]) {
            break e.kind();
        }
    };
    assert_eq!(fault, ErrorKind::WouldBlock);
    full.set_nonblocking(false).unwrap();
    let always = ["watch", "--json", "--interval", "100ms"];
    let mut command = test.command(&[&always, args].concat());
    command.stdout(OwnedFd::from(full)).stderr(Stdio::piped());
    (command.spawn().unwrap(), reader)
}

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap()
}

/// Waits until it ends. Its exit code, and its messages.
fn end(mut child: Child) -> (Option<i32>, String) {
    kill("TERM", &[pid(&child)]);
    let status = eventually_some("it ends", || child.try_wait().unwrap());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    (status.code(), told)
}

const STORED: [&str; 4] = ["--out", "w", "--merge", "100ms"];

#[test]
fn a_reader_that_takes_nothing_holds_up_neither_windows_nor_the_end() {
    if !can_follow("a_reader_that_takes_nothing_holds_up_neither_windows_nor_the_end") {
        return;
    }
    for args in [&STORED[..], &[]] {
        let test = Test::new("watch-stalled");
        let (child, _reader) = start(&test, args);
        eventually("the program is attached", || {
            links(pid(&child)).iter().any(|(_, place)| place == "sched_switch")
        });
        if !args.is_empty() {
            eventually("windows are stored", || stored_lines(&test.dir.join("w")) > 5);
        }
        let (code, told) = end(child);
        assert_eq!(code, Some(2), "{args:?}: {told}");
        let why = "wakescope: not all that was counted is shown\n  the reader of standard output";
        assert!(told.contains(why), "{args:?}: {told}");
    }
}

#[test]
fn a_reader_that_comes_late_gets_all() {
    if !can_follow("a_reader_that_comes_late_gets_all") {
        return;
    }
    let test = Test::new("watch-late-reader");
    let (child, mut reader) = start(&test, &STORED);
    eventually("windows are stored", || stored_lines(&test.dir.join("w")) > 5);
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    let (code, told) = end(child);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.starts_with("standard output takes nothing: intervals are added up"), "{told}");
    // They follow each other without a gap.
    let windows = windows(read.join().unwrap().trim_start());
    let stored = stored_lines(&test.dir.join("w"));
    assert!(!windows.is_empty() && windows.len() < stored, "{} of {stored}", windows.len());
}
