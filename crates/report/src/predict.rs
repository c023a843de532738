//! What a replay predicts, as text.

use std::fmt::Write;

use wakescope_core::predict::{
    Cell, Figure, Latencies, Measured, NotRepeated, Predicted, Prediction, Range, Ranking, Reach,
};
use wakescope_core::run::TimeDomain;
use wakescope_core::units::{SpanNs, counted, grouped};

use crate::domain;
use crate::findings::wrapped;
use crate::progress::span_or_dash;
use crate::style::{Style, clean};
use crate::table::columns;

/// The widest line of a sentence, in characters.
const WIDTH: usize = 100;

/// The longest name of a function that is shown.
const NAME: usize = 80;

/// The prediction as text.
pub fn text(prediction: &Prediction, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.strong(&wrapped(&headline(prediction), WIDTH, "")));
    let _ = write!(out, "\n{}", table(prediction, style));
    for warning in prediction.cells.iter().filter_map(|cell| not_repeated(prediction, cell)) {
        let _ = writeln!(out, " {}", style.strong(&wrapped(&warning, WIDTH - 3, "   ")));
    }
    let outside = prediction.cells.iter();
    let outside = outside.filter_map(|cell| outside_of_its_range(prediction, cell));
    for note in outside.chain(notes(prediction)) {
        let _ = writeln!(out, " {}", wrapped(&note, WIDTH - 3, "   "));
    }
    if let Some(ranking) = &prediction.next {
        let _ = write!(out, "\n{}", steps(ranking, style));
    }
    let _ = writeln!(out, "\n {}", style.faint(&wrapped(&basis(prediction), WIDTH - 1, " ")));
    // Cells with and without a tracer are not predicted from together.
    let explained = prediction.cells.first().is_some_and(|cell| cell.explained);
    let caveats = domain::caveats(TimeDomain::Virtual, explained).map(String::from);
    for limit in limits(prediction.cells.len()).into_iter().chain(caveats) {
        let _ = writeln!(out, " {}", style.faint(&wrapped(&limit, WIDTH - 1, " ")));
    }
    out
}

/// What no replay of so many courses knows.
fn limits(courses: usize) -> [String; 2] {
    let drawn_from = match courses {
        1 => "this one course".into(),
        _ => format!("these {courses} courses"),
    };
    [
        "A replay changes only when the CPU is given up. Under another model, tasks would also come in \
         another order, and batches have other sizes: both are left as they were recorded."
            .into(),
        format!(
            "Of ten cells nine are meant to lie in a range. It is drawn from {drawn_from}: a longer section that \
             only another boot, seed or model has is not in it. A cell of the predicted model is the test."
        ),
    ]
}

/// `, seed 2` where there are several cells, which differ in nothing else.
fn which(prediction: &Prediction, cell: &Cell) -> String {
    if prediction.cells.len() > 1 { format!(", seed {}", cell.seed) } else { String::new() }
}

/// `Predicted largest wakeup latency, in virtual time: none 3.90 ms, full 498 µs.`
fn headline(prediction: &Prediction) -> String {
    let part = |predicted: &Predicted| {
        let latencies = predicted.broken.as_ref().or(predicted.as_recorded.as_ref())?;
        let sign = sign(predicted.reach);
        Some(format!("{} {sign}{}", predicted.model, SpanNs(latencies.max?.median_ns)))
    };
    let parts: Vec<String> = prediction.models.iter().filter_map(part).collect();
    let broken = if has_breaks(prediction) { " with what is broken up" } else { "" };
    match parts.is_empty() {
        true => "Nothing can be predicted.".into(),
        false => format!(
            "Predicted largest wakeup latency{broken}, in virtual time: {}.",
            parts.join(", ")
        ),
    }
}

fn has_breaks(prediction: &Prediction) -> bool {
    !prediction.breaks.is_empty() || prediction.limit_sections_ns.is_some()
}

fn sign(reach: Reach) -> &'static str {
    match reach {
        Reach::AtMost => "≤ ",
        Reach::AtLeast => "≥ ",
        Reach::Whole | Reach::SpinLocks | Reach::OtherKernel => "",
    }
}

fn table(prediction: &Prediction, style: Style) -> String {
    let head = ["", "p50", "p99", "p99.9", "max", "of any phase"].map(String::from).to_vec();
    let model = prediction.recorded;
    let mut rows = vec![head];
    for cell in &prediction.cells {
        // All cells ran the same model; with it and a seed, names would be too long for a line.
        let name = |what: &str| match prediction.cells.len() {
            1 => format!("{model}, {what}"),
            _ => format!("{what}{}", which(prediction, cell)),
        };
        rows.push(figures(name("measured"), &cell.measured));
        rows.push(figures(name("replayed"), &cell.replayed));
    }
    for predicted in &prediction.models {
        let name = predicted.model.to_string();
        match &predicted.as_recorded {
            None => rows.push(vec![name.clone(), "–".into()]),
            Some(latencies) => rows.push(row(name.clone(), latencies, predicted.reach)),
        }
        if let Some(latencies) = &predicted.broken {
            rows.push(row(format!("{name}, broken up"), latencies, predicted.reach));
        }
    }
    let laid_out = columns(&rows, true);
    let mut lines = laid_out.lines();
    let mut out = String::new();
    if let Some(head) = lines.next() {
        let _ = writeln!(out, "{}", style.faint(head));
    }
    lines.for_each(|line| out.push_str(&format!("{line}\n")));
    out
}

fn figures(name: String, of: &Measured) -> Vec<String> {
    let Measured { p50_ns, p99_ns, p999_ns, max_ns } = *of;
    let figures = [p50_ns, p99_ns, p999_ns, max_ns].map(span_or_dash);
    [name].into_iter().chain(figures).collect()
}

fn row(name: String, latencies: &Latencies, reach: Reach) -> Vec<String> {
    let sign = sign(reach);
    let figure = |range: Option<Range>| match range {
        None => "–".into(),
        Some(range) if range.low_ns == range.high_ns => {
            format!("{sign}{}", SpanNs(range.median_ns))
        }
        Some(range) => format!("{sign}{}", with_range(range)),
    };
    let Latencies { p50, p99, p999, max, longest_ns } = *latencies;
    let mut cells = vec![name];
    // Phases hardly differ in their medians.
    cells
        .push(p50.map_or_else(|| "–".into(), |range| format!("{sign}{}", SpanNs(range.median_ns))));
    cells.extend([p99, p999, max].map(figure));
    cells.push(format!("{sign}{}", SpanNs(longest_ns)));
    cells
}

/// `18.4 µs (11.8–23.1)`; with all units where they differ.
fn with_range(range: Range) -> String {
    let [median, low, high] =
        [range.median_ns, range.low_ns, range.high_ns].map(|ns| SpanNs(ns).to_string());
    let unit = median.find(' ').map_or("", |at| &median[at..]);
    match (low.strip_suffix(unit), high.strip_suffix(unit)) {
        (Some(low), Some(high)) if !low.contains(' ') && !high.contains(' ') => {
            format!("{median} ({low}–{high})")
        }
        _ => format!("{median} ({low}–{high})"),
    }
}

/// `The replay does not repeat what was measured: under full, which ran, max is to be 16.9 µs–66.1 µs, and 12.8 µs
/// for the cell's own wakeups, but 12.7 µs was measured. …`
fn not_repeated(prediction: &Prediction, cell: &Cell) -> Option<String> {
    let part = |one: &NotRepeated| {
        let [low, high, measured] = [one.low_ns, one.high_ns, one.measured_ns].map(SpanNs);
        let own = one.replayed_ns.map_or_else(String::new, |ns| {
            format!(", and {} for the cell's own wakeups", SpanNs(ns))
        });
        format!("{} is to be {low}–{high}{own}, but {measured} was measured", one.figure)
    };
    let parts: Vec<String> = cell.not_repeated.iter().map(part).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "The replay does not repeat what was measured: under {}, which ran{}, {}. Not all code that lets go \
             early is seen, and the wakeups of a cell may all meet the tick, or never. Figures of other models, and \
             of broken-up functions, can be off by as much.",
            prediction.recorded,
            which(prediction, cell),
            parts.join("; ")
        )
    })
}

/// `Measured outside of the range of full, which ran: p99 4.41 µs, max 4.41 µs. Of ten cells one is meant to be.` What
/// [`not_repeated`] says is left out.
fn outside_of_its_range(prediction: &Prediction, cell: &Cell) -> Option<String> {
    let is_recorded = |of: &&Predicted| of.model == prediction.recorded;
    let range = prediction.models.iter().find(is_recorded)?.as_recorded?;
    let Measured { p99_ns, p999_ns, max_ns, .. } = cell.measured;
    let figures = [
        (Figure::P99, p99_ns, range.p99),
        (Figure::P999, p999_ns, range.p999),
        (Figure::Max, max_ns, range.max),
    ];
    let part = |(figure, measured_ns, range): (Figure, Option<u64>, Option<Range>)| {
        let (measured_ns, Range { low_ns, high_ns, .. }) = (measured_ns?, range?);
        let is_said = cell.not_repeated.iter().any(|one| one.figure == figure);
        let [low, high, measured] = [low_ns, high_ns, measured_ns].map(|ns| SpanNs(ns).to_string());
        // What reads as an end of the range is not shown to be outside.
        let is_outside = (measured_ns < low_ns && measured != low)
            || (measured_ns > high_ns && measured != high);
        (is_outside && !is_said).then(|| format!("{figure} {measured}"))
    };
    let parts: Vec<String> = figures.into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Measured outside of the range of {}, which ran{}: {}. Of ten cells one is meant to be.",
            prediction.recorded,
            which(prediction, cell),
            parts.join(", ")
        )
    })
}

/// Why a model has no figures, or only a bound.
fn notes(prediction: &Prediction) -> Vec<String> {
    let note = |predicted: &Predicted| {
        let model = predicted.model;
        let why = match predicted.reach {
            Reach::Whole => return None,
            Reach::AtMost => {
                "≤: some of the places where the kernel asks whether somebody else is to run \
                were not seen, so wakeups may be earlier"
            }
            Reach::AtLeast => {
                "≥: some of the places where the kernel asks whether somebody else is to run \
                belong to the recorded model only, so wakeups may be later"
            }
            Reach::SpinLocks => {
                "not predicted: RT makes spin locks sleep, and they cannot be told from \
                other sections; run the RT kernel"
            }
            Reach::OtherKernel => {
                "not predicted: an RT kernel ran, whose locks and handlers are others"
            }
        };
        Some((model, why))
    };
    let mut notes: Vec<(Vec<String>, &str)> = Vec::new();
    for (model, why) in prediction.models.iter().filter_map(note) {
        match notes.iter_mut().find(|(_, known)| *known == why) {
            Some((models, _)) => models.push(model.to_string()),
            None => notes.push((vec![model.to_string()], why)),
        }
    }
    let mut notes: Vec<String> =
        notes.into_iter().map(|(models, why)| format!("{} {why}.", models.join(", "))).collect();
    notes.extend(prediction.breaks.iter().map(|broken| {
        format!(
            "{} lets go after {}: {} in the replayed time.",
            clean(&broken.function, NAME),
            SpanNs(broken.every_ns),
            counted(broken.sections, "longer section"),
        )
    }));
    if let Some(ns) = prediction.limit_sections_ns {
        notes.push(format!("No section lasts longer than {}.", SpanNs(ns)));
    }
    notes
}

/// `1  free_pcppages_bulk, handle_softirqs   3.90 ms → 498 µs`
fn steps(ranking: &Ranking, style: Style) -> String {
    let Ranking { model, every_ns, steps } = ranking;
    let title = format!(
        " what to break up next under {model}, so that it keeps the CPU for {} at most",
        SpanNs(*every_ns)
    );
    let mut out = format!("{}\n", style.strong(&title));
    if steps.is_empty() {
        out.push_str(" Nothing: no section that can be broken up makes the latest wakeup.\n");
    }
    for (number, step) in (1..).zip(steps) {
        let names: Vec<String> = step.functions.iter().map(|name| clean(name, NAME)).collect();
        let line = format!(
            "{number}  {}: latest {} → {}",
            names.join(" and "),
            SpanNs(step.before_ns),
            SpanNs(step.after_ns)
        );
        let _ = writeln!(out, " {}", wrapped(&line, WIDTH - 4, "    "));
    }
    out
}

/// `6.1-cloud full file-move seed 1, 500 ms of virtual time, replayed for 1,000 wakeups every 500 µs in 256 phases: …`
fn basis(prediction: &Prediction) -> String {
    let course = |cell: &Cell| {
        format!(
            "{}, {} of virtual time, replayed for {}",
            clean(&cell.label, 200),
            SpanNs(cell.window_ns),
            counted(cell.wakeups, "wakeup"),
        )
    };
    let way = |cell: &Cell| {
        let path = &cell.path;
        format!(
            "{} ({} to {}, {} of the probe's{})",
            SpanNs(path.median_ns),
            SpanNs(path.min_ns),
            SpanNs(path.max_ns),
            counted(path.wakeups, "wakeup"),
            which(prediction, cell),
        )
    };
    let cells = &prediction.cells;
    let courses: Vec<String> = cells.iter().map(course).collect();
    let ways: Vec<String> = cells.iter().map(way).collect();
    format!(
        "{}; one every {} in {} phases: their median, and in parentheses what nine of ten cells are meant to measure. \
         A wakeup that nothing holds up takes {}.",
        courses.join("; "),
        SpanNs(prediction.interval_ns),
        grouped(prediction.phases.into()),
        ways.join("; "),
    )
}

#[cfg(test)]
mod tests {
    use wakescope_core::predict::{Break, Path, Step};
    use wakescope_core::preemption::Model;

    use super::*;

    fn latencies(max_ns: u64) -> Option<Latencies> {
        let range = |ns| Some(Range { median_ns: ns, low_ns: ns / 2, high_ns: ns * 2 });
        Some(Latencies {
            p50: range(5_000),
            p99: range(9_000),
            p999: None,
            max: range(max_ns),
            longest_ns: max_ns * 3,
        })
    }

    fn cell(seed: u64) -> Cell {
        Cell {
            label: format!("6.1-cloud full file-move seed {seed}"),
            seed,
            window_ns: 500_000_000,
            wakeups: 1_000,
            path: Path { wakeups: 990, min_ns: 3_000, median_ns: 3_500, max_ns: 9_000 },
            measured: Measured {
                p50_ns: Some(3_700),
                max_ns: Some(498_000),
                ..Measured::default()
            },
            ..Cell::default()
        }
    }

    fn prediction() -> Prediction {
        let of = |model, reach, as_recorded| Predicted { model, reach, as_recorded, broken: None };
        Prediction {
            cells: vec![cell(1)],
            recorded: Model::Full,
            interval_ns: 500_000,
            phases: 256,
            models: vec![
                of(Model::None, Reach::AtMost, latencies(3_900_000)),
                of(Model::Full, Reach::Whole, latencies(400_000)),
                of(Model::Rt, Reach::SpinLocks, None),
            ],
            next: Some(Ranking {
                model: Model::Full,
                every_ns: 10_000,
                steps: vec![Step {
                    functions: vec!["free\u{1b}[1m".into(), "softirqs".into()],
                    before_ns: 269_000,
                    after_ns: 61_000,
                }],
            }),
            ..Prediction::default()
        }
    }

    /// Whether `text` has all of `parts`, wherever its lines break, and no line is too wide.
    #[track_caller]
    fn assert_says(text: &str, parts: &[&str]) {
        let in_one_line = text.replace("\n   ", " ").replace("\n ", " ");
        for part in parts {
            assert!(in_one_line.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn a_prediction_from_an_explained_cell_says_that_the_tracer_is_in_its_figures() {
        let mut prediction = prediction();
        for explained in [false, true] {
            prediction.cells[0].explained = explained;
            let text = text(&prediction, Style::default());
            assert_says(&text, &["Virtual time counts instructions"]);
            assert_eq!(text.contains("The tracer that explains wakeups"), explained, "{text}");
        }
    }

    #[test]
    fn a_bound_is_marked_and_what_is_not_predicted_says_why() {
        let text = text(&prediction(), Style::default());
        assert_says(
            &text,
            &[
                "in virtual time: none ≤ 3.90 ms, full 400 µs.",
                "full, measured ",
                " 3.70 µs ",
                "≤ 3.90 ms (1.95–7.80)",
                "≤ 5.00 µs ",
                // The p99 of one timer may be far from the median over all phases.
                "≤ 9.00 µs (4.50–18.0)",
                " none ≤: some of the places where",
                " RT not predicted: RT makes spin locks sleep",
                " 1  free\u{fffd}[1m and softirqs: latest 269 µs → 61.0 µs",
                "A wakeup that nothing holds up takes 3.50 µs (3.00 µs to 9.00 µs, 990 wakeups of the probe's)",
                "batches have other sizes",
                "Of ten cells nine are meant to lie in a range.",
                "another boot, seed or model has",
                "in parentheses what nine of ten cells are meant to measure",
            ],
        );
    }

    #[test]
    fn units_of_a_range_are_left_out_where_they_are_the_medians() {
        for (median_ns, low_ns, high_ns, want) in [
            (18_400, 11_800, 23_100, "18.4 µs (11.8–23.1)"),
            (998_000, 900_000, 1_200_000, "998 µs (900 µs–1.20 ms)"),
            (1_200_000, 998_000, 1_300_000, "1.20 ms (998 µs–1.30 ms)"),
            (900, 800, 990, "900 ns (800–990)"),
        ] {
            assert_eq!(with_range(Range { median_ns, low_ns, high_ns }), want);
        }
    }

    #[test]
    fn what_the_replay_does_not_repeat_is_said_before_all_else() {
        let mut prediction = prediction();
        assert_eq!(not_repeated(&prediction, &prediction.cells[0]), None);
        prediction.cells[0].not_repeated = vec![NotRepeated {
            figure: Figure::Max,
            measured_ns: 12_700,
            replayed_ns: Some(12_800),
            low_ns: 16_900,
            high_ns: 66_100,
        }];
        let told = text(&prediction, Style::default());
        let warning = "does not repeat what was measured: under full, which ran, max is to be 16.9 µs–66.1 µs, \
                       and 12.8 µs for the cell's own wakeups, but 12.7 µs was measured.";
        assert!(told.replace("\n   ", " ").contains(warning), "{told}");
        assert!(told.lines().all(|line| line.chars().count() <= WIDTH), "{told}");
        prediction.cells[0].not_repeated[0].replayed_ns = None;
        let text = text(&prediction, Style::default());
        assert!(text.replace("\n   ", " ").contains("66.1 µs, but 12.7 µs"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn what_was_measured_outside_of_its_range_is_said() {
        // As an idle cell of 6.1 (full, 300 wakeups each 500 us).
        let range = Range { median_ns: 4_340, low_ns: 4_300, high_ns: 4_380 };
        let told = |measured: Measured, repeated: bool| {
            let mut prediction = prediction();
            let full = &mut prediction.models[1].as_recorded;
            *full = full.map(|of| Latencies { p99: Some(range), max: Some(range), ..of });
            prediction.cells[0].measured = measured;
            if !repeated {
                prediction.cells[0].not_repeated = vec![NotRepeated::default()];
            }
            assert_says(&text(&prediction, Style::default()), &[]);
            outside_of_its_range(&prediction, &prediction.cells[0])
        };
        let max = |ns| Measured { max_ns: Some(ns), ..Measured::default() };
        let only = |figures: &str| {
            Some(format!(
                "Measured outside of the range of full, which ran: {figures}. Of ten cells one is meant to be."
            ))
        };
        for (measured, want) in [
            (max(4_409), only("max 4.41 µs")),
            (max(4_201), only("max 4.20 µs")),
            (Measured { p99_ns: Some(4_409), ..max(4_300) }, only("p99 4.41 µs")),
            (Measured { p99_ns: Some(4_409), ..max(4_412) }, only("p99 4.41 µs, max 4.41 µs")),
            (max(4_340), None),
            // These read as the ends do.
            (max(4_383), None),
            (max(4_298), None),
            (Measured::default(), None),
        ] {
            assert_eq!(told(measured, true), want, "{measured:?}");
        }
        // The warning that the replay does not repeat it has it already.
        assert_eq!(told(max(4_409), false), None);
    }

    #[test]
    fn several_cells_are_told_apart_by_their_seeds() {
        let mut prediction = prediction();
        prediction.cells.push(cell(4));
        prediction.cells[1].not_repeated =
            vec![NotRepeated { measured_ns: 9, ..NotRepeated::default() }];
        let text = text(&prediction, Style::default());
        assert_says(
            &text,
            &[
                " measured, seed 1 ",
                " replayed, seed 4 ",
                "under full, which ran, seed 4, max is to be",
                "seed 1, 500 ms of virtual time, replayed for 1,000 wakeups; 6.1-cloud full file-move seed 4, 500 ms",
                "990 wakeups of the probe's, seed 4)",
                "drawn from these 2 courses:",
            ],
        );
    }

    #[test]
    fn what_is_broken_up_stands_beside_what_was_recorded() {
        let mut prediction = prediction();
        prediction.models.remove(0);
        prediction.models[0].broken = latencies(90_000);
        prediction.breaks = vec![Break { function: "free".into(), every_ns: 10_000, sections: 7 }];
        prediction.limit_sections_ns = Some(500_000);
        let text = text(&prediction, Style::default());
        assert_says(
            &text,
            &[
                "latency with what is broken up, in virtual time: full 90.0 µs.",
                "full, broken up",
                " free lets go after 10.0 µs: 7 longer sections in the replayed time.",
                " No section lasts longer than 500 µs.",
            ],
        );
    }
}
