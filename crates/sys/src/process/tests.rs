use std::io::{Read, Write};
use std::os::fd::AsFd;

use wakescope_core::units::SpanNs;

use super::*;
use crate::poll::{wait_readable, wait_writable};

/// Long enough for any machine; nothing waits for all of it unless the test fails.
const PATIENCE: SpanNs = SpanNs(30_000_000_000);

fn shell(script: &str) -> Program {
    Program::new(Path::new("/bin/sh"), ["-c", script]).unwrap()
}

/// Starts `script`; returns it with the reading end of its output.
fn start(script: &str, apart: Apart) -> io::Result<(Child, File)> {
    let (nothing, _) = pipe()?;
    let (reader, writer) = pipe()?;
    let stdio = [nothing.as_fd(), writer.as_fd(), writer.as_fd()];
    let program = shell(script);
    Ok((
        Start {
            program: &program,
            stdio,
            apart,
            dies_with_thread: false,
            environment: Environment::Inherited,
        }
        .run()?,
        reader,
    ))
}

fn output(mut reader: File) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn programs_get_their_streams_and_their_exit_is_told() {
    for (script, printed, exit) in [
        ("echo out; echo err >&2; exit 3", "out\nerr\n", Exit::Status(3)),
        ("read x || echo end", "end\n", Exit::Status(0)),
        ("kill -KILL $$", "", Exit::Signal(9)),
        // SIGPIPE ends it: Rust programs ignore that signal, and so would all that they start.
        ("kill -PIPE $$; echo alive", "", Exit::Signal(13)),
    ] {
        let (child, reader) = start(script, Apart::No).unwrap();
        assert_eq!(output(reader), printed, "{script}");
        assert_eq!(child.wait(), exit, "{script}");
    }
}

#[test]
fn programs_have_the_limit_of_open_files_that_this_one_was_started_with() {
    let most = raise_open_files().unwrap();
    // Another test may raise it, too.
    assert!(open_files_limit().unwrap() >= most);
    let before = OPEN_FILES.get().unwrap();
    let (child, reader) = start("ulimit -Sn; ulimit -Hn", Apart::No).unwrap();
    assert_eq!(output(reader), format!("{}\n{}\n", before.rlim_cur, before.rlim_max));
    assert_eq!(child.wait(), Exit::Status(0));
}

#[test]
fn a_program_that_cannot_run_is_an_error() {
    let program = Program::new(Path::new("/does/not/exist"), ["x"]).unwrap();
    let (nothing, _) = pipe().unwrap();
    let stdio = [nothing.as_fd(); 3];
    let start = Start {
        program: &program,
        stdio,
        apart: Apart::No,
        dies_with_thread: false,
        environment: Environment::Inherited,
    };
    assert_eq!(start.run().unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(Program::new(Path::new("/bin/sh"), ["a\0b"]).is_err());
}

#[test]
fn signals_are_not_blocked_in_a_program() {
    std::thread::spawn(|| {
        let _signals = crate::signal::EndSignals::block().unwrap();
        let (child, _reader) = start("kill -TERM $$; sleep 60", Apart::No).unwrap();
        assert_eq!(child.wait(), Exit::Signal(libc::SIGTERM));
    })
    .join()
    .unwrap();
}

#[test]
fn a_group_ends_with_its_leader() {
    // The child in the background holds the pipe open for as long as it lives.
    let (mut child, reader) = start("sleep 1000 & echo up; exit 4", Apart::Session).unwrap();
    assert!(wait_readable(&reader, PATIENCE).unwrap());
    while child.try_wait().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(output(reader), "up\n");
    assert_eq!(child.wait(), Exit::Status(4));
}

#[test]
fn a_namespace_ends_with_its_first_process() {
    // In a session of its own, the one in the background is out of reach for a signal to the group.
    let script = "setsid sleep 1000 & echo $$; exit 0";
    match start(script, Apart::Namespace) {
        Ok((child, reader)) => {
            assert_eq!(output(reader), "1\n");
            assert_eq!(child.wait(), Exit::Status(0));
        }
        Err(e) => {
            wakescope_testing::skip("a_namespace_ends_with_its_first_process", &e.to_string());
        }
    }
}

#[test]
fn a_process_dies_with_the_thread_that_started_it() {
    let (reader, writer) = pipe().unwrap();
    let child = std::thread::spawn(move || {
        let (nothing, _) = pipe().unwrap();
        let program = shell("exec sleep 1000");
        let stdio = [nothing.as_fd(), writer.as_fd(), writer.as_fd()];
        Start {
            program: &program,
            stdio,
            apart: Apart::No,
            dies_with_thread: true,
            environment: Environment::Inherited,
        }
        .run()
        .unwrap()
    });
    assert_eq!(child.join().unwrap().wait(), Exit::Signal(libc::SIGKILL));
    drop(reader);
}

#[test]
fn waiting_for_a_pipe_has_a_bound() {
    let (reader, mut writer) = pipe().unwrap();
    assert!(!wait_readable(&reader, SpanNs(1_000_000)).unwrap());
    set_nonblocking(&reader).unwrap();
    assert_eq!((&reader).read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(wait_writable(&writer, PATIENCE).unwrap());
    writer.write_all(b"x").unwrap();
    assert!(wait_readable(&reader, PATIENCE).unwrap());
    // No end of file is waited for: a process that another test starts just now holds the pipe too.
    let mut byte = [0];
    (&reader).read_exact(&mut byte).unwrap();
    assert_eq!(byte, *b"x");
}

#[test]
fn only_a_child_is_killed() {
    for pid in [0, -1, -2] {
        assert_eq!(kill_child(pid).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
