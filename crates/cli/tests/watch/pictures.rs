//! The live view while causes that are known take the CPU: each is named within five seconds. Makes the pictures of
//! docs/watch.md (`make pictures`).

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::common::bench::{Test, eventually, skip};
use crate::common::following::can_follow;
use crate::live::pseudoterminal::Pseudoterminal;
use crate::planted::{Group, Hog, alone, cpu};
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::Schedule;

/// The size of terminals that everybody has.
const SIZE: (u16, u16) = (24, 80);
const PLAIN: [(&str, &str); 3] = [("LC_ALL", "C.UTF-8"), ("TERM", "xterm"), ("NO_COLOR", "1")];
/// Nobody looks at a screen for longer before he believes that it knows nothing.
const NAMED_WITHIN: SpanNs = SpanNs(5_000_000_000);

/// Where the pictures go; `None`, and so said for `test`, unless they were asked for.
fn folder(test: &str) -> Option<PathBuf> {
    if !can_follow(test) {
        return None;
    }
    let folder = std::env::var_os("WAKESCOPE_PICTURES").map(PathBuf::from);
    if folder.is_none() {
        skip(test, "WAKESCOPE_PICTURES names no folder for pictures (make pictures)");
    }
    folder
}

/// Watches, plants, and waits until the longest wait is blamed on what was planted.
fn assert_named<T>(name: &str, plant: impl FnOnce(&Test) -> Result<T, String>, blamed_on: &str) {
    let test_name = format!("{name}_is_named_in_the_live_view");
    let Some(folder) = folder(&test_name) else { return };
    let _alone = alone();
    let test = Test::new(&format!("watch-picture-{name}"));
    let args = ["watch", "--interval", "1s"];
    let mut terminal = Pseudoterminal::start(&test, &args, &PLAIN, SIZE);
    terminal.await_text("the last 1");
    let began = clock::now();
    let planted = match plant(&test) {
        Ok(planted) => planted,
        Err(why) => return skip(&test_name, &why),
    };
    let longest = |screen: &[String]| {
        let line = screen.iter().find(|line| line.contains("longest: "));
        let names = |line: &String| line.contains(&format!(": {blamed_on}"));
        line.is_some_and(|line| names(line) && !line.contains("no single cause"))
    };
    let mut screen = Vec::new();
    eventually(&format!("the longest wait is blamed on {blamed_on:?}"), || {
        screen = terminal.screen();
        longest(&screen)
    });
    let took = clock::now().since(began);
    drop(planted);
    terminal.press("q");
    assert_eq!(terminal.end().0, Some(0));
    std::fs::write(folder.join(format!("watch-{name}.svg")), svg(&screen)).unwrap();
    assert!(took <= NAMED_WITHIN, "{name}: after {took}");
}

/// A screen as a picture.
fn svg(screen: &[String]) -> String {
    const LINE: usize = 18;
    let (width, height) = (usize::from(SIZE.1) * 9 + 24, screen.len() * LINE + 24);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1c1f24\"/>\n\
         <g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14.5\" fill=\"#e4e6ea\">\n"
    );
    for (number, line) in screen.iter().enumerate() {
        let text = line.trim_end().replace('&', "&amp;").replace('<', "&lt;");
        let length = text_length(line.trim_end());
        let y = 12 + (number + 1) * LINE - 5;
        if length > 0 {
            let _ = writeln!(
                svg,
                "<text x=\"12\" y=\"{y}\" xml:space=\"preserve\" textLength=\"{length}\">{text}</text>"
            );
        }
    }
    svg + "</g>\n</svg>\n"
}

/// The width of a line on the screen: characters of other fonts must not move the columns.
fn text_length(line: &str) -> usize {
    line.chars().count() * 9
}

#[test]
fn quota_is_named_in_the_live_view() {
    let plant = |test: &Test| {
        let group = Group::with_small_quota()?;
        Ok((group.start_spinner(test, "stopped", cpu()), group))
    };
    assert_named("quota", plant, "its CPU quota took");
}

#[test]
fn neighbour_is_named_in_the_live_view() {
    let plant = |test: &Test| {
        let group = Group::make(("cpu.weight", "6400"), &[("cpu.shares", "65536")])?;
        let waiter = Hog::start("waits-for-it", cpu(), Schedule::Other { nice: 0 });
        Ok((waiter, group.start_spinner(test, "neighbour", cpu()), group))
    };
    assert_named("neighbour", plant, "neighbour");
}

#[test]
fn hog_is_named_in_the_live_view() {
    let plant = |_: &Test| {
        let waiter = Hog::start("waits-for-it", cpu(), Schedule::Other { nice: 0 });
        Ok((waiter, Hog::start("fifo-hog", cpu(), Schedule::Fifo { priority: 7 })))
    };
    assert_named("hog", plant, "fifo-hog");
}
