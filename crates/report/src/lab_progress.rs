//! What a lab shows while it lasts.

use wakescope_core::units::{SpanNs, counted, grouped};

use crate::progress::clock;
use crate::style::clean;

/// The longest name that is shown: a kernel's can be a path.
const LONGEST_NAME: usize = 32;

/// How far a lab has come.
#[derive(Clone, Debug, Default)]
pub struct LabProgress {
    /// Cells in all.
    pub total: usize,
    /// Cells that are done.
    pub done: usize,
    /// Of these, how many had been run before.
    pub cached: usize,
    /// Of these, how many have no result.
    pub failed: usize,
    /// Cells that another lab runs at this moment.
    pub waiting: usize,
    /// Since the lab began.
    pub elapsed: SpanNs,
    /// Until it ends, as far as that can be told.
    pub left: Option<SpanNs>,
    /// What runs now.
    pub running: Vec<RunningCell>,
}

/// A guest that runs.
#[derive(Clone, Debug, Default)]
pub struct RunningCell {
    /// The kernel's name.
    pub kernel: String,
    /// The preemption model asked for.
    pub model: String,
    /// The load.
    pub load: String,
    /// The seed, if chance has a part in it.
    pub seed: Option<u64>,
    /// Since it was started.
    pub elapsed: SpanNs,
}

/// The block that is redrawn on a terminal: how far it is, and a line for each guest that runs; no
/// more than `height` lines (2 at least) of `width` characters (20 at least).
///
/// ```text
/// lab   31 / 90 cells · 12 cached · 1 failed   2:10, about 3:40 left
///  6.1-cloud  full       find    seed 3   0:12
///  6.1-cloud  voluntary  launch  seed 10  0:03
/// ```
pub fn block(title: &str, lab: &LabProgress, height: usize, width: usize) -> String {
    let (height, width) = (height.max(2), width.max(20));
    let mut lines = vec![format!("{}   {}   {}", clean(title, width), cells(lab), times(lab))];
    lines.extend(rows(&lab.running));
    if lines.len() > height {
        let hidden = lines.len() - height + 1;
        lines.truncate(height - 1);
        lines.push(format!(" … and {hidden} more"));
    }
    let lines: Vec<String> = lines.iter().map(|line| cut(line, width)).collect();
    lines.join("\n")
}

/// The line that is printed now and then where there is no terminal.
pub fn line(lab: &LabProgress) -> String {
    let mut text = format!("{} · {}", cells(lab), times(lab));
    if let Some(first) = lab.running.first() {
        text += &format!(" · now {}", name(first).join(" ").trim_end());
        match lab.running.len() {
            1 => {}
            n => text += &format!(" and {}", counted(n as u64 - 1, "other")),
        }
    }
    text
}

/// `31 / 90 cells · 12 cached · 1 failed`; what there is none of is left out.
fn cells(lab: &LabProgress) -> String {
    let mut text = format!("{} / {}", grouped(lab.done as u64), counted(lab.total as u64, "cell"));
    let parts =
        [(lab.cached, "cached"), (lab.failed, "failed"), (lab.waiting, "run by another lab")];
    for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(" · {} {what}", grouped(count as u64));
    }
    text
}

/// `2:10, about 3:40 left`.
fn times(lab: &LabProgress) -> String {
    match lab.left {
        // What takes longer than was thought is not almost done.
        Some(left) if lab.done < lab.total && left >= SpanNs(1_000_000_000) => {
            format!("{}, about {} left", clock(lab.elapsed), clock(left))
        }
        _ => clock(lab.elapsed),
    }
}

/// One line per guest, names below names.
fn rows(running: &[RunningCell]) -> Vec<String> {
    let names: Vec<[String; 4]> = running.iter().map(name).collect();
    let width =
        |column: usize| names.iter().map(|name| name[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let row = |(name, cell): (&[String; 4], &RunningCell)| {
        let name: String =
            name.iter().zip(&widths).map(|(text, &width)| format!(" {text:width$} ")).collect();
        format!("{name} {}", clock(cell.elapsed))
    };
    names.iter().zip(running).map(row).collect()
}

/// Kernel, model, load and seed.
fn name(cell: &RunningCell) -> [String; 4] {
    let seed = cell.seed.map_or_else(String::new, |seed| format!("seed {seed}"));
    let short = |text: &str| clean(text, LONGEST_NAME);
    [short(&cell.kernel), short(&cell.model), short(&cell.load), seed]
}

/// At most `width` characters: a line that wraps would spoil the redrawing.
fn cut(line: &str, width: usize) -> String {
    match line.chars().nth(width) {
        None => line.into(),
        Some(_) => line.chars().take(width - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn running(model: &str, load: &str, seed: Option<u64>, seconds: u64) -> RunningCell {
        RunningCell {
            kernel: "6.1-cloud".into(),
            model: model.into(),
            load: load.into(),
            seed,
            elapsed: SpanNs(seconds * 1_000_000_000),
        }
    }

    fn lab() -> LabProgress {
        LabProgress {
            total: 1_090,
            done: 31,
            cached: 12,
            failed: 1,
            waiting: 2,
            elapsed: SpanNs(130_000_000_000),
            left: Some(SpanNs(3_723_000_000_000)),
            running: vec![
                running("full", "find", Some(3), 12),
                running("voluntary", "launch", Some(10), 3),
            ],
        }
    }

    #[test]
    fn the_block_says_how_far_and_what_runs() {
        expect![[r#"
            lab   31 / 1,090 cells · 12 cached · 1 failed · 2 run by another lab   2:10, about 1:02:03 left
             6.1-cloud  full       find    seed 3   0:12
             6.1-cloud  voluntary  launch  seed 10  0:03"#]]
        .assert_eq(&block("lab", &lab(), 10, 120));
    }

    #[test]
    fn what_is_not_known_or_not_there_is_left_out() {
        let begins = LabProgress {
            total: 3,
            running: vec![running("full", "check", None, 0)],
            ..LabProgress::default()
        };
        expect![[r#"
            verify   0 / 3 cells   0:00
             6.1-cloud  full  check    0:00"#]]
        .assert_eq(&block("verify", &begins, 10, 80));
        let ended =
            LabProgress { total: 3, done: 3, left: Some(SpanNs(0)), ..LabProgress::default() };
        assert_eq!(block("lab", &ended, 10, 80), "lab   3 / 3 cells   0:00");
    }

    #[test]
    fn the_block_fits_the_terminal_whatever_runs() {
        let mut lab = lab();
        lab.running = (0..64).map(|seed| running("full", "find", Some(seed), 1)).collect();
        lab.running[0].kernel = "/home/me/linux\x1b[2J/".repeat(20);
        for (height, width) in [(10, 40), (2, 20), (0, 0)] {
            let block = block("lab", &lab, height, width);
            assert_eq!(block.lines().count(), height.max(2));
            assert!(block.lines().all(|line| line.chars().count() <= width.max(20)), "{block}");
            assert!(!block.contains('\x1b'));
        }
        let block = block("lab", &lab, 10, 200);
        assert!(block.ends_with("\n … and 56 more"), "{block}");
    }

    #[test]
    fn a_line_for_logs() {
        let mut lab = lab();
        expect!["31 / 1,090 cells · 12 cached · 1 failed · 2 run by another lab · 2:10, about 1:02:03 left · now 6.1-cloud full find seed 3 and 1 other"]
            .assert_eq(&line(&lab));
        lab.running.truncate(1);
        assert!(line(&lab).ends_with(" · now 6.1-cloud full find seed 3"));
        lab.running.clear();
        assert!(!line(&lab).contains("now"));
        lab.running = vec![running("full", "check", None, 1); 4];
        assert!(line(&lab).ends_with(" · now 6.1-cloud full check and 3 others"), "{}", line(&lab));
    }
}
