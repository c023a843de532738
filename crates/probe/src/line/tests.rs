use wakescope_sys::signal::allow_interrupts;

use super::*;
use crate::respond::{RespondTask, Responder};
use crate::schedule::ordinary;

/// A new pseudoterminal: its answering end, and the path of the line. The line stays open as long as the
/// file.
fn pair() -> (File, File, PathBuf) {
    serial::open_pair().unwrap()
}

#[test]
fn a_line_is_raw_while_it_is_taken_and_as_before_afterwards() {
    let (_answering, kept, path) = pair();
    assert!(!Settings::of(&kept).unwrap().is_raw());
    let port = Port::open(&path, 9_600).unwrap();
    assert!(Settings::of(&kept).unwrap().is_raw());
    assert_eq!((port.line.attachment, port.line.baud), (Attachment::Pseudoterminal, None));
    let second = Port::open(&path, 9_600).err();
    assert!(matches!(second, Some(LineError::Busy(_))), "{second:?}");
    drop(port);
    assert!(!Settings::of(&kept).unwrap().is_raw());
    assert!(Port::open(&path, 9_600).is_ok());
}

#[test]
fn a_line_that_its_user_wants_alone_is_busy_for_root_too() {
    let (_answering, kept, path) = pair();
    serial::set_exclusive(&kept, true).unwrap();
    let refused = Port::open(&path, 9_600).err();
    assert!(matches!(refused, Some(LineError::Busy(_))), "{refused:?}");
}

#[test]
fn what_is_no_line_is_refused() {
    for (path, want) in [
        ("/dev/null", "/dev/null is no serial line"),
        ("/", "/ is no serial line"),
        // To open it would begin something.
        ("/dev/ptmx", "/dev/ptmx is no serial line"),
        ("/nowhere", "cannot open the line /nowhere: No such file"),
    ] {
        let text = Port::open(Path::new(path), 9_600).err().unwrap().to_string();
        assert!(text.starts_with(want), "{text}");
    }
}

#[test]
fn whoever_answers_is_known_from_how() {
    for by in [AnsweredBy::Responder, AnsweredBy::Echo] {
        let (mut answering, _kept, path) = pair();
        let thread = std::thread::spawn(move || {
            let mut byte = [0];
            for _ in GREETING {
                answering.read_exact(&mut byte).unwrap();
                // What an earlier sender left on its way comes first.
                answering.write_all(&[0x77, by.answer(byte[0])]).unwrap();
            }
            answering
        });
        let mut port = Port::open(&path, 9_600).unwrap();
        port.greet().unwrap();
        assert_eq!(port.line.answered_by, by);
        drop(thread.join().unwrap());
    }
}

/// A line that an earlier sender had filled was reported as one that failed.
#[test]
fn a_line_that_takes_no_byte_for_now_is_waited_for() {
    let (mut answering, _kept, path) = pair();
    let mut port = Port::open(&path, 9_600).unwrap();
    while port.file.write(&[0; 256]).is_ok() {}
    let thread = std::thread::spawn(move || {
        let mut left = GREETING.len();
        while left > 0 {
            let mut byte = [0];
            answering.read_exact(&mut byte).unwrap();
            if byte != [0] {
                answering.write_all(&[!byte[0]]).unwrap();
                left -= 1;
            }
        }
        answering
    });
    port.greet().unwrap();
    drop(thread.join().unwrap());
}

#[test]
fn a_line_without_answers_and_one_with_others_are_told_apart() {
    let (mut answering, _kept, path) = pair();
    let mut port = Port::open(&path, 9_600).unwrap();
    assert!(matches!(port.greet(), Err(LineError::NoAnswer(_))));
    answering.write_all(b"login: ").unwrap();
    assert!(matches!(port.greet(), Err(LineError::OtherBytes(_))));
    drop(answering);
    assert!(matches!(port.greet(), Err(LineError::Failed(..))));
}

#[test]
fn a_responder_answers_each_byte_and_ends_when_told_or_when_its_line_does() {
    allow_interrupts().unwrap();
    let start = |port, kept| {
        Responder::start(RespondTask { cpu: None, schedule: ordinary() }, port, kept).unwrap()
    };
    let (port, kept) = Port::pair().unwrap();
    let path = port.path.clone();
    let responder = start(port, Some(kept));
    for _ in 0..2 {
        // A sender goes, the next comes.
        let mut sender = Port::open(&path, 9_600).unwrap();
        sender.greet().unwrap();
        assert_eq!(sender.line.answered_by, AnsweredBy::Responder);
    }
    assert!(!responder.is_finished());
    let (answered, result) = responder.end();
    assert_eq!(answered, 2 * GREETING.len() as u64);
    assert!(result.is_ok());
    assert!(!path.exists(), "the pseudoterminal is gone");

    let (answering, _kept, path) = pair();
    let responder = start(Port::open(&path, 9_600).unwrap(), None);
    drop(answering);
    while !responder.is_finished() {
        std::thread::yield_now();
    }
    assert!(responder.end().1.is_err());
}
