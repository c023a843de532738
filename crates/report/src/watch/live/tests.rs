use super::*;
use crate::watch::Past;
use crate::watch::tests::{episodes, series, waits, window};
use expect_test::{Expect, expect};
use wakescope_core::watch::Cpu;

const VIEW: View = View { by: By::Series, sort: Sort::Max, rows: 20 };
const WIDE: Size = Size { columns: 80, lines: 24 };
const PLAIN: Look = Look { style: Style { colour: false }, ascii: false };

/// A view of the third window of a watch.
fn live() -> Live {
    let mut live = Live::new(VIEW);
    let mut before = window();
    before.series.truncate(2);
    live.add(&before);
    live.add(&before);
    live.add(&window());
    live
}

fn press(live: &mut Live, keys: &[Key]) {
    for &key in keys {
        assert_eq!(live.press(key), Wish::Nothing, "{key:?}");
    }
}

/// The frame after these keys.
#[track_caller]
fn check(keys: &[Key], size: Size, look: Look, want: Expect) {
    let mut live = live();
    press(&mut live, keys);
    want.assert_eq(&text(&live, size, look));
}

/// A frame, with a mark where each line begins.
#[track_caller]
fn text(live: &Live, size: Size, look: Look) -> String {
    let lines = live.frame(size, look);
    assert_eq!(lines.len(), size.lines);
    lines.iter().map(|line| format!("|{line}\n")).collect()
}

#[test]
fn the_table_has_bands_of_severity() {
    check(
        &[],
        WIDE,
        PLAIN,
        expect![[r#"
        |waits, runnable to running: the last 2.00 s of 0:07
        | task            cgroup                    waits      p99      max   waited
        | ─ 10 ms and longer
        |>kworker/0:1     /                             2        –  30.0 ms  30.0 ms  ▁▁█
        | ─ 1 ms to 10 ms
        | find            …em.slice/backup.service  3,000  12.0 µs  4.31 ms  40.5 ms  ▁▁▁
        | ─ below 100 µs
        | find            /user.slice                 250  9.00 µs  9.00 µs  2.25 ms  ▁▁▁
        | gone            (id 23)                       1        –  1.00 µs  1.00 µs  ▁▁█
        | �[2Ja�b         –                             1        –    70 ns    70 ns  ▁▁█
        |
        |
        |
        |
        |
        |
        |
        |
        |
        |
        | All: 3,254 waits, p99.9 12.0 µs, max 30.0 ms, waited 72.8 ms
        | own cost 0.08 % of 2 CPUs: program 16,000 × 100 ns, wakescope 1.50 ms
        | series 123 of 4,096; left out 0; uncovered 0 ns; moved 12
        | q end  Enter open  s sort: max  g by: series  c CPUs  a all  space pause
    "#]],
    );
}

#[test]
fn a_page_does_not_end_with_the_heading_of_a_band() {
    let lasts_of = |rows: u64| {
        let mut window = window();
        // The last row is in a band of its own.
        let longest = |i: u64| if i + 1 == rows { 5_000 } else { 20_000_000 };
        window.series = (0..rows).map(|i| series("task", i, None, &[longest(i)])).collect();
        let mut live = Live::new(VIEW);
        live.add(&window);
        let frame = live.frame(WIDE, PLAIN);
        let sum = frame.iter().position(|line| line.contains(" All: ")).unwrap();
        (frame[sum - 1].trim().to_owned(), frame)
    };
    for rows in 10..24 {
        let (last, frame) = lasts_of(rows);
        assert!(!last.starts_with('─'), "{rows}: {frame:?}");
    }
}

#[test]
fn keys_change_rows_and_their_order() {
    let keys = [Key::Char('s'), Key::Char('s'), Key::Char('g'), Key::Char('g'), Key::Down];
    check(
        &keys,
        Size { columns: 60, lines: 12 },
        PLAIN,
        expect![[r#"
            |waits, runnable to running: the last 2.00 s of 0:07
            | cgroup                waits      p99      max   waited
            | …lice/backup.service  3,000  12.0 µs  4.31 ms  40.5 ms  ▁▁▁
            |>/                         2        –  30.0 ms  30.0 ms  ▁▁█
            | /user.slice             250  9.00 µs  9.00 µs  2.25 ms  ▁▁▁
            | (id 23)                   1        –  1.00 µs  1.00 µs  ▁▁█
            | –                         1        –    70 ns    70 ns  ▁▁█
            |
            | All: 3,254 waits, p99.9 12.0 µs, max 30.0 ms, waited 72.8 …
            | own cost 0.08 %: program 1.60 ms, wakescope 1.50 ms
            | series 123 of 4,096; left out 0; uncovered 0 ns; moved 12
            | q end  Enter open  s sort: waited  g by: cgroup  c CPUs
        "#]],
    );
}

#[test]
fn a_small_terminal_without_utf8_shows_what_matters() {
    let look = Look { ascii: true, ..PLAIN };
    check(
        &[],
        Size { columns: 44, lines: 7 },
        look,
        expect![[r#"
            |waits, runnable to running: the last 2.00 s~
            | task            cgroup         max   waited
            |>kworker/0:1     /          30.0 ms  30.0 ms
            | find            ~.service  4.31 ms  40.5 ms
            | 1-2 of 5. All: 3,254 waits, p99.9 12.0 us,~
            | own cost 0.08 %
            | q end  Enter open  s sort: max
        "#]],
    );
    check(
        &[Key::Char('c')],
        Size { columns: 44, lines: 9 },
        look,
        expect![[r#"
            |waits, runnable to running: the last 2.00 s~
            | The longest wait on each CPU, a column per~
            | . from 10 us, - from 100 us, + from 1 ms, ~
            | CPU      max
            |   0  4.31 ms |+++
            |   3  9.00 us |   
            |
            | own cost 0.08 %
            | q end  Esc back  ^v scroll  space pause
        "#]],
    );
    check(
        &[],
        Size { columns: 20, lines: 2 },
        look,
        expect![[r#"
        |waits, runnable to ~
        |>kworker/0:1     ~ ~
    "#]],
    );
}

#[test]
fn a_row_opens_to_its_histogram() {
    check(
        &[Key::Down, Key::Enter],
        WIDE,
        PLAIN,
        expect![[r#"
        |waits, runnable to running: the last 2.00 s of 0:07
        | find in /system.slice/backup.service
        |       waits      p50      p99    p99.9      max   waited
        | last  3,000  12.0 µs  12.0 µs  12.0 µs  4.31 ms  40.5 ms
        | all   9,000  12.0 µs  12.0 µs  12.0 µs  4.31 ms   121 ms
        |
        |  12.0 µs ▕████████████████████████████████████████████████████████       2,998
        |  16.4 µs ▕
        |  32.8 µs ▕
        |  65.5 µs ▕
        |   131 µs ▕████▌                                                              1
        |   262 µs ▕
        |   524 µs ▕
        |  1.05 ms ▕
        |  2.10 ms ▕
        |  4.19 ms ▕████▌                                                              1
        |
        |
        |
        |
        |
        | own cost 0.08 % of 2 CPUs: program 16,000 × 100 ns, wakescope 1.50 ms
        | series 123 of 4,096; left out 0; uncovered 0 ns; moved 12
        | q end  Esc back  ↑↓ row  a all  space pause
    "#]],
    );
}

#[test]
fn long_waits_are_shown_with_who_took_them() {
    let mut live = live();
    live.add(&Window { episodes: Some(episodes()), ..window() });
    let longest = live.frame(WIDE, PLAIN)[20].clone();
    expect![" longest: 30.0 ms  kworker/0:1[12]: hog[77] (fifo 50) in /user.slice ran 29.9 ms"]
        .assert_eq(&longest);
    press(&mut live, &[Key::Down, Key::Enter]);
    expect![[r#"
        |waits, runnable to running: the last 2.00 s of 0:07
        | find in /system.slice/backup.service
        |        waits      p50      p99    p99.9      max   waited
        | last   3,000  12.0 µs  12.0 µs  12.0 µs  4.31 ms  40.5 ms
        | all   12,000  12.0 µs  12.0 µs  12.0 µs  4.31 ms   162 ms
        | 4.31 ms  find[13], CPU 1 at 0:06: its CPU quota took 4.00 ms
        | 3.00 ms  find[13], CPU 1 at 0:06: no single cause: 1.80 ms not explained, 900 µs of it in the queue of another CPU; cc…
        | 2.10 ms  find[13], CPU 1 at 0:06: the hypervisor took 2.00 ms (steal)
        | 2.00 ms  find[13], CPU 1 at 0:06: interrupts took 1.90 ms
        | 1.60 ms  find[13], CPU 1 at 0:06: cc1[80] in /user.slice ran 1.50 ms
        |
        |  12.0 µs ▕████████████████████████████████████████████████████████       2,998
        |  16.4 µs ▕
        |  65.5 µs ▕████▌                                                              1
        |   262 µs ▕
        |  1.05 ms ▕
        |  4.19 ms ▕████▌                                                              1
        | own cost 0.08 % of 2 CPUs: program 16,000 × 100 ns, wakescope 1.50 ms
        | series 123 of 4,096; left out 0; uncovered 0 ns; moved 12
        | q end  Esc back  ↑↓ row  a all  space pause
    "#]].assert_eq(&text(&live, Size { columns: 120, lines: 20 }, PLAIN));
}

#[test]
fn cpus_have_a_heat_map() {
    check(
        &[Key::Char('c')],
        Size { columns: 80, lines: 10 },
        PLAIN,
        expect![[r#"
        |waits, runnable to running: the last 2.00 s of 0:07
        | The longest wait on each CPU, a column per window, the last one at the right:
        | · from 10 µs, ░ from 100 µs, ▒ from 1 ms, ▓ from 10 ms, █ from 100 ms
        | CPU      max
        |   0  4.31 ms │▒▒▒
        |   3  9.00 µs │   
        |
        |
        | own cost 0.08 % of 2 CPUs: program 16,000 × 100 ns, wakescope 1.50 ms
        | q end  Esc back  ↑↓ scroll  space pause
    "#]],
    );
}

/// The title and the foot of the heat map are of the same windows, in whichever order keys are pressed.
#[test]
fn the_heat_map_is_of_the_last_window_throughout() {
    let lines = |keys: &[Key]| {
        let mut live = live();
        press(&mut live, keys);
        live.frame(WIDE, PLAIN)
    };
    let (map, all) = (Key::Char('c'), Key::Char('a'));
    let want = lines(&[map]);
    for keys in [&[map, all][..], &[all, map]] {
        assert_eq!(lines(keys), want, "{keys:?}");
    }
    // With figures that the sum of all windows has not.
    assert_ne!(lines(&[all])[20..], lines(&[])[20..]);
}

#[test]
fn arrows_of_ascii_are_words() {
    let mut live = Live::of_stored(VIEW, &window());
    live.show_stored(window(), History::default(), 1, 2);
    for (ascii, want) in [(false, " q end  ←→ window "), (true, " q end  left/right window ")] {
        let frame = live.frame(WIDE, Look { ascii, ..PLAIN });
        assert!(frame.last().unwrap().starts_with(want), "{frame:?}");
    }
}

#[test]
fn colour_repeats_what_the_words_say() {
    let style = Style { colour: true };
    let lines = live().frame(WIDE, Look { style, ascii: false });
    let plain = live().frame(WIDE, PLAIN);
    let bare = lines.iter().map(|line| {
        let codes = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"];
        codes.iter().fold(line.clone(), |line, code| line.replace(code, ""))
    });
    assert_eq!(bare.collect::<Vec<_>>(), plain);
    let row = lines.iter().find(|line| line.contains("kworker")).unwrap();
    assert!(row.starts_with("\x1b[31m"), "{row:?}");
}

#[test]
fn without_utf8_no_view_has_a_character_that_is_not_known() {
    let views: [&[Key]; 4] =
        [&[], &[Key::Enter], &[Key::Down, Key::Char('a'), Key::Enter], &[Key::Char('c')]];
    for keys in views {
        let mut live = live();
        press(&mut live, keys);
        let shown = text(&live, WIDE, PLAIN);
        let in_ascii = text(&live, WIDE, Look { ascii: true, ..PLAIN });
        assert!(!shown.is_ascii() && in_ascii.is_ascii(), "{in_ascii}");
        for (c, instead) in shown.chars().zip(in_ascii.chars()) {
            assert!(instead != '?' || matches!(c, '?' | '\u{fffd}'), "{c:?} in {shown}");
        }
    }
}

#[test]
fn any_size_and_any_key_give_a_frame_that_fits() {
    let mut live = live();
    let mut many = window();
    many.series = (0..500)
        .map(|n| series(&format!("a-task-named-{n}"), n, Some(&"/long".repeat(40)), &[n * n; 9]))
        .collect();
    many.cpus =
        (0..300).map(|cpu| Cpu { cpu, switches: 1, waits: waits(&[u64::from(cpu)]) }).collect();
    live.add(&many);
    let keys = [
        Key::Down,
        Key::PageDown,
        Key::Enter,
        Key::Down,
        Key::Char('a'),
        Key::Back,
        Key::End,
        Key::Char('s'),
        Key::Up,
        Key::Char('c'),
        Key::End,
        Key::PageUp,
        Key::Char('g'),
        Key::Enter,
        Key::Char('s'),
        Key::Char('g'),
        Key::Enter,
        Key::Home,
        Key::Char('g'),
        Key::Char(' '),
        Key::Left,
        Key::Char('?'),
        Key::PageUp,
    ];
    for key in keys {
        press(&mut live, &[key]);
        for (columns, lines) in [(80, 24), (200, 50), (79, 10), (40, 6), (12, 4), (1, 1), (0, 0)] {
            let size = Size { columns, lines };
            let frame = live.frame(size, PLAIN);
            assert_eq!(frame.len(), lines, "{key:?} {size:?}");
            let fits = frame.iter().all(|line| line.chars().count() <= columns);
            assert!(fits, "{key:?} {size:?}: {frame:#?}");
        }
    }
}

/// Which row is marked.
fn marked(live: &Live) -> String {
    let frame = live.frame(WIDE, PLAIN);
    let line = frame.iter().find(|line| line.starts_with('>')).expect("a marked row");
    line[1..].split_whitespace().next().unwrap().to_owned()
}

#[test]
fn the_mark_stays_with_the_row_that_was_chosen() {
    let mut live = live();
    assert_eq!(marked(&live), "kworker/0:1");
    press(&mut live, &[Key::Down]);
    assert_eq!(marked(&live), "find");
    // Another row comes first, and this one is now the third.
    let mut next = window();
    next.series.push(series("new", 30, Some("/new"), &[60_000_000]));
    live.add(&next);
    assert_eq!(marked(&live), "find");
    press(&mut live, &[Key::Up, Key::Up, Key::Up]);
    assert_eq!(marked(&live), "new");
    // What has no waits leaves its place to another.
    live.add(&window());
    assert_eq!(marked(&live), "kworker/0:1");
    press(&mut live, &[Key::End]);
    assert_ne!(marked(&live), "kworker/0:1");
    press(&mut live, &[Key::Home]);
    live.add(&next);
    assert_eq!(marked(&live), "new", "without a choice, the first is marked");
}

#[test]
fn a_pause_keeps_the_window_and_loses_none() {
    let mut live = live();
    press(&mut live, &[Key::Char(' ')]);
    let before = live.frame(WIDE, PLAIN);
    assert!(before[0].ends_with(" · paused"), "{before:#?}");
    let later = Window { begin_ns: 7_000_000_000, ..window() };
    live.add(&later);
    assert_eq!(live.frame(WIDE, PLAIN), before);
    press(&mut live, &[Key::Char(' '), Key::Char('a')]);
    let all = live.frame(WIDE, PLAIN);
    assert_eq!(all[0], "waits, runnable to running: all of 0:09");
    // 3,250 + 3,250 in the first two, and 3,254 in each of the others.
    assert!(all.iter().any(|line| line.contains("All: 13,008 waits")), "{all:#?}");
}

#[test]
fn stored_windows_are_stepped_through() {
    let mut live = Live::of_stored(VIEW, &window());
    let steps = [Key::Left, Key::Right, Key::Char('<'), Key::Char('>')].map(|key| live.press(key));
    assert_eq!(steps, [-1, 1, i64::MIN, i64::MAX].map(Wish::Step));
    let mut history = History::default();
    history.add(Past::of(&window()));
    live.show_stored(window(), history, 3, 144);
    let frame = live.frame(WIDE, PLAIN);
    let title = "waits, runnable to running: window 3 of 144, 2026-11-21T01:00:00Z, 2.00 s";
    assert_eq!(frame[0], title);
    assert!(frame[23].contains("←→ window") && !frame[23].contains("pause"), "{}", frame[23]);
    press(&mut live, &[Key::Char('a'), Key::Char(' ')]);
    assert_eq!(live.frame(WIDE, PLAIN)[0], "waits, runnable to running: all 144 windows");
    assert_eq!(live.press(Key::Char('q')), Wish::End);
    // In a watch that goes on there is no other window.
    assert_eq!(self::live().press(Key::Left), Wish::Nothing);
}

#[test]
fn before_the_first_window_there_is_a_frame() {
    let mut live = Live::new(VIEW);
    let keys = [Key::Down, Key::Enter, Key::Char('c'), Key::Down, Key::Back, Key::Char(' ')];
    press(&mut live, &keys);
    expect![[r#"
        |waits, runnable to running: none yet · paused
        | the first interval has not ended
        |
        | q end  Enter open  s sort: max  g by: series  c CPUs  a all
    "#]]
    .assert_eq(&text(&live, Size { columns: 60, lines: 4 }, PLAIN));
}
