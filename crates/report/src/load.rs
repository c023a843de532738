//! What loads did, as a table.

use wakescope_core::run::LoadResult;
use wakescope_core::units::{counted, grouped};
use wakescope_stats::compare::factor;

use crate::style::clean;

/// The longest name that is shown: one can be a whole command.
const LONGEST_NAME: usize = 40;

/// One row per load, with the work it did and how much of it per second; below it, why a load
/// died. Empty if there are no loads.
///
/// ```text
///  load        work             per second
///  find        412,233 files        41,200
///  launch        6,120 programs        612
///  file-move      11.2 GB          1.12 GB
/// ```
pub fn table(loads: &[LoadResult]) -> String {
    if loads.is_empty() {
        return String::new();
    }
    let rows: Vec<Row> = loads.iter().map(Row::of).collect();
    let width = |cell: fn(&Row) -> &str, least: usize| {
        rows.iter().map(|row| cell(row).chars().count()).fold(least, usize::max)
    };
    let name = width(|r| &r.name, "file-move".len());
    let amount = width(|r| &r.amount, 7);
    let unit = width(|r| &r.unit, 8);
    let rate = width(|r| &r.rate, "per second".len());
    let work = amount + 1 + unit;
    let mut out = format!(" {:name$}  {:work$}  {:>rate$}\n", "load", "work", "per second");
    for row in &rows {
        let Row { name: text, amount: number, unit: what, rate: per_second, .. } = row;
        let line = format!(" {text:name$}  {number:>amount$} {what:unit$}  {per_second:>rate$}");
        out.push_str(line.trim_end());
        out.push('\n');
        if let Some(fault) = &row.fault {
            out.push_str(&format!("   died: {fault}\n"));
        }
    }
    out
}

/// How much work a load does in a second, in three digits: `41,200 files`, `1.12 GB`.
pub fn rate(per_second: f64, unit: &str) -> String {
    match scale(per_second, unit) {
        Some((number, unit)) => format!("{number} {unit}"),
        None => "–".into(),
    }
}

/// How many units of work: `1 file`, `412,233 files`. A record names its units in the plural.
pub(crate) fn amount(work: u64, unit: &str) -> String {
    match unit.strip_suffix('s') {
        Some(noun) => counted(work, noun),
        None => format!("{} {unit}", grouped(work)),
    }
}

/// An amount of work of `load`, marked if it may be more.
pub(crate) fn at_least(load: &LoadResult, amount: String) -> String {
    if load.incomplete && !amount.is_empty() { format!("≥ {amount}") } else { amount }
}

struct Row {
    name: String,
    amount: String,
    unit: String,
    rate: String,
    fault: Option<String>,
}

impl Row {
    fn of(load: &LoadResult) -> Self {
        let unit = clean(&load.unit, 16);
        let (amount, shown_unit) = match unit.as_str() {
            // Counts are exact; of bytes, nobody wants to read all digits.
            "bytes" => scale(load.work as f64, "bytes").unwrap_or_default(),
            _ => {
                let amount = amount(load.work, &unit);
                let (number, noun) = amount.split_once(' ').unwrap_or((&amount, ""));
                (number.to_owned(), noun.to_owned())
            }
        };
        let amount = at_least(load, amount);
        let rate = match scale(load.per_second, &unit) {
            Some((number, scaled)) if unit == "bytes" => format!("{number} {scaled}"),
            Some((number, _)) => number,
            None => "–".into(),
        };
        let fault = if load.fault.is_empty() { "for an unknown reason" } else { &load.fault };
        let fault = (!load.alive).then(|| clean(fault, 240));
        Self { name: clean(&load.name, LONGEST_NAME), amount, unit: shown_unit, rate, fault }
    }
}

/// Three digits of a number, with the unit they are in; `None` for what is no amount: 0, which
/// means that nothing was counted, and what only a damaged record holds.
fn scale(value: f64, unit: &str) -> Option<(String, String)> {
    let rounded: f64 = format!("{value:.2e}").parse().ok()?;
    if !(rounded > 0.0 && rounded < 1e18) {
        return None;
    }
    if unit != "bytes" {
        return Some((three_digits(rounded), unit.into()));
    }
    let steps = [("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let (unit, step) = steps.into_iter().find(|&(_, s)| rounded >= s).unwrap_or(("B", 1.0));
    Some((three_digits(rounded / step), unit.into()))
}

/// Writes a number that is rounded to three digits already.
fn three_digits(rounded: f64) -> String {
    let text = factor(rounded);
    text.parse().map_or(text, grouped)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn load(name: &str, work: u64, unit: &str, per_second: f64) -> LoadResult {
        let (name, unit) = (name.into(), unit.into());
        LoadResult { name, work, unit, per_second, alive: true, ..Default::default() }
    }

    #[test]
    fn a_table_of_loads() {
        let loads = [
            load("find", 412_233, "files", 41_223.3),
            load("launch", 6_120, "programs", 612.04),
            load("file-move", 11_234_567_890, "bytes", 1_123_456_789.0),
            load("cpu", 312_345, "loops", 31_234.5),
            load("exec:make", 1, "starts", 0.0),
        ];
        expect![[r#"
            | load       work              per second
            | find       412,233 files         41,200
            | launch       6,120 programs         612
            | file-move     11.2 GB           1.12 GB
            | cpu        312,345 loops         31,200
            | exec:make        1 start              –
        "#]]
        .assert_eq(&framed(&table(&loads)));
    }

    #[test]
    fn a_dead_load_says_why_and_cannot_garble_the_terminal() {
        let mut dead = load("find", 7, "files", 3.5);
        (dead.alive, dead.fault) = (false, "cannot make /tmp/x: No space left on device".into());
        let mut hostile = load("exec:\x1b[31mred", 1, "starts", 0.0);
        (hostile.alive, hostile.fault) = (false, "\x07\nbell".into());
        let mut silent = load("cpu", 0, "loops", 0.0);
        (silent.alive, silent.incomplete) = (false, true);
        expect![[r#"
            | load           work              per second
            | find                 7 files           3.50
            |   died: cannot make /tmp/x: No space left on device
            | exec:�[31mred        1 start              –
            |   died: ��bell
            | cpu                ≥ 0 loops              –
            |   died: for an unknown reason
        "#]]
        .assert_eq(&framed(&table(&[dead, hostile, silent])));
        assert_eq!(table(&[]), "");
    }

    /// `expect!` takes off the blanks that all lines begin with; a frame keeps them.
    fn framed(table: &str) -> String {
        table.lines().map(|line| format!("|{line}\n")).collect()
    }

    #[test]
    fn rates_have_three_digits() {
        for (per_second, unit, want) in [
            (0.0, "files", "–"),
            (0.004_56, "files", "0.00456 files"),
            (0.000_4, "files", "0.000400 files"),
            (0.25, "files", "0.25 files"),
            (9.996, "files", "10.0 files"),
            (45.67, "files", "45.7 files"),
            (999.6, "files", "1,000 files"),
            (41_234.0, "files", "41,200 files"),
            (999.0, "bytes", "999 B"),
            (999_600.0, "bytes", "1.00 MB"),
            (12_340_000.0, "bytes", "12.3 MB"),
            (f64::NAN, "files", "–"),
            (f64::INFINITY, "bytes", "–"),
            (-1.0, "files", "–"),
            (1e300, "files", "–"),
        ] {
            assert_eq!(rate(per_second, unit), want, "{per_second} {unit}");
        }
    }
}
