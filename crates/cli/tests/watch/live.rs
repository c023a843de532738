//! The live view of `wakescope watch`, and that of stored windows, on a terminal.

use std::fs;

use crate::common::bench::{Test, eventually, kill};
use crate::common::following::can_follow;
use crate::common::stored_window::stored_window;
use crate::stored_lines;
use pseudoterminal::Pseudoterminal;
use serde_json::json;

pub(crate) mod pseudoterminal;

/// A folder with three windows, of which the second has a long wait.
fn made_up(test: &Test) {
    let folder = test.dir.join("w");
    fs::create_dir(&folder).unwrap();
    let line = |minute: u32, comm: &str, sum_ns: u64, histogram: &str| {
        let waits = json!({"count": 1, "sum_ns": sum_ns, "max_ns": sum_ns, "max_is_exact": true,
            "min_ns": sum_ns, "min_is_exact": true,
            "histogram": histogram});
        stored_window(&format!("2026-11-21T01:{minute}:00Z"), 0, comm, &waits)
    };
    // Buckets from 100 ns, 16 ms and 100 ns.
    let lines = [
        line(10, "postgres", 100, "@0 1"),
        line(20, "nginx", 17_000_000, "@273 1"),
        line(30, "postgres", 100, "@0 1"),
    ];
    fs::write(folder.join("2026-11-21T01-10-00.jsonl"), lines.concat()).unwrap();
}

const REPLAY: [&str; 3] = ["watch", "--replay", "w"];
const UTF8: [(&str, &str); 3] = [("LC_ALL", "C.UTF-8"), ("TERM", "xterm"), ("NO_COLOR", "")];

#[test]
fn stored_windows_are_stepped_through_by_keys() {
    let test = Test::new("watch-live-stored");
    made_up(&test);
    let mut terminal = Pseudoterminal::start(&test, &REPLAY, &UTF8, (24, 80));
    terminal.await_text("window 3 of 3, 2026-11-21T01:30:00Z");
    terminal.press("\x1b[D");
    terminal.await_text("window 2 of 3, 2026-11-21T01:20:00Z");
    assert!(terminal.is_raw());
    let shown = terminal.screen().join("\n");
    assert!(shown.contains("\n>nginx           /a"), "{shown}");
    assert!(shown.contains("\n own cost "), "{shown}");
    assert!(shown.contains("\n q end  ←→ window"), "{shown}");
    terminal.press("\r");
    terminal.await_text(" 16.8 ms ▕████");
    terminal.press("c");
    terminal.await_text("CPU      max");
    terminal.resize((10, 50));
    terminal.await_text(" a column per windo…");
    terminal.press("\x1b");
    terminal.await_text("\n task ");
    terminal.press("<");
    terminal.await_text("window 1 of 3");
    terminal.press("sgggq");
    let (code, printed) = terminal.end();
    assert_eq!(code, Some(0), "{printed}");
    // The table is of all, as it was chosen last.
    assert!(printed.starts_with("3 stored windows from 2026-11-21T01:10:00Z"), "{printed}");
    assert!(printed.contains("\r\n CPU  waits"), "{printed}");
}

/// Threads that serve and write must not take the signal from it.
#[test]
fn every_new_size_is_drawn() {
    if !can_follow("every_new_size_is_drawn") {
        return;
    }
    let test = Test::new("watch-live-sizes");
    // No interval ends, with which it would be drawn anew.
    let args = ["watch", "--interval", "1h", "--listen", "127.0.0.1:0"];
    let mut terminal = Pseudoterminal::start(&test, &args, &UTF8, (24, 80));
    let title = "waits, runnable to running: none yet";
    terminal.await_text(title);
    for columns in 20..30 {
        terminal.resize((24, columns));
        terminal.await_text(&format!("{}…", &title[..usize::from(columns) - 1]));
    }
    terminal.press("q");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn the_terminal_is_put_back_on_every_way_out() {
    for way_out in ["key", "Ctrl-C", "SIGTERM", "SIGHUP"] {
        let test = Test::new("watch-live-ends");
        made_up(&test);
        let mut terminal = Pseudoterminal::start(&test, &REPLAY, &UTF8, (24, 80));
        terminal.await_text("window 3 of 3");
        assert!(terminal.is_raw());
        match way_out {
            "key" => terminal.press("q"),
            "Ctrl-C" => terminal.press("\x03"),
            signal => kill(&signal[3..], &[terminal.pid()]),
        }
        // The end says whether all is as it was.
        let (code, printed) = terminal.end();
        assert_eq!(code, Some(0), "{way_out}: {printed}");
        assert!(printed.contains("Longest wait 17.0 ms: nginx in /a."), "{way_out}: {printed}");
    }
}

#[test]
fn a_view_whose_terminal_is_gone_ends_although_it_ignores_that() {
    let test = Test::new("watch-live-gone");
    made_up(&test);
    let mut terminal = Pseudoterminal::start_for_good(&test, &REPLAY, &UTF8, (24, 80));
    terminal.await_text("window 3 of 3");
    terminal.hang_up();
    terminal.await_end();
}

#[test]
fn a_watch_that_stores_goes_on_without_its_terminal() {
    if !can_follow("a_watch_that_stores_goes_on_without_its_terminal") {
        return;
    }
    let test = Test::new("watch-live-goes-on");
    let args = ["watch", "--interval", "100ms", "--out", "w", "--merge", "100ms"];
    let mut terminal = Pseudoterminal::start_for_good(&test, &args, &UTF8, (24, 80));
    terminal.await_text("the last 1");
    terminal.hang_up();
    let stored = || stored_lines(&test.dir.join("w"));
    let before = stored();
    eventually("more is stored", || stored() > before + 3);
    kill("TERM", &[terminal.pid()]);
    terminal.await_end();
}

#[test]
fn a_terminal_without_colours_or_utf8_has_none() {
    let test = Test::new("watch-live-plain");
    made_up(&test);
    let plain = [("LC_ALL", "C"), ("TERM", "vt100"), ("NO_COLOR", "1")];
    let mut terminal = Pseudoterminal::start(&test, &REPLAY, &plain, (8, 40));
    terminal.await_text("window 3 of~");
    terminal.press("\x1bOD");
    terminal.await_text(">nginx");
    terminal.press("q");
    let all = terminal.all();
    let (_, printed) = terminal.end();
    assert!(all.is_ascii() && printed.is_ascii(), "{all:?} {printed:?}");
    let colours = ["\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"];
    assert!(!colours.iter().any(|colour| all.contains(colour)), "{all:?}");
}

#[test]
fn a_watch_is_a_live_view_on_a_terminal() {
    if !can_follow("a_watch_is_a_live_view_on_a_terminal") {
        return;
    }
    let test = Test::new("watch-live");
    let args = ["watch", "--interval", "100ms"];
    let mut terminal = Pseudoterminal::start(&test, &args, &UTF8, (24, 80));
    terminal.await_text("the last 1");
    terminal.await_text("\n>");
    terminal.press("a");
    terminal.await_text("all of 0:0");
    terminal.press("gs");
    terminal.await_text("s sort: p99.9  g by: task");
    terminal.press(" ");
    terminal.await_text(" · paused");
    terminal.press("q");
    let (code, printed) = terminal.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("Longest wait "), "{printed}");
    assert!(printed.contains("\r\n task   "), "{printed}");
}
