//! The file that `wakescope model run -o` draws into.

use std::borrow::Cow;
use std::path::Path;

use wakescope_report::model::{Drawn, Ending, Simulated, Simulation};
use wakescope_report::run_set::{Entry, RunSet};
use wakescope_report::{html, picture};

use crate::ending::{Endings, format_for};
use crate::{Failure, output, runs};

/// The most runs that a page shows: nobody tells more curves apart.
pub(super) const MOST: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
    Html,
}

/// What the endings of files say.
const ENDINGS: Endings<'static, Option<Format>> = &[
    ("svg", &[Some(Format::Svg)]),
    ("png", &[Some(Format::Png)]),
    ("html", &[Some(Format::Html)]),
    ("htm", &[Some(Format::Html)]),
];

/// A file, and what it is to hold.
#[derive(Clone, Copy)]
pub(super) struct Drawing<'a> {
    path: &'a Path,
    format: Format,
}

impl<'a> Drawing<'a> {
    /// The format is that of the name's ending.
    pub(super) fn into(path: &'a Path) -> Result<Self, Failure> {
        match format_for(Some(path), None, None, ENDINGS)? {
            Some(format) => Ok(Self { path, format }),
            None => Err(Failure::new(format!("{}: the name says no format", path.display()))
                .try_this("use a name that ends in .svg, .png or .html")),
        }
    }

    pub(super) fn is_page(self) -> bool {
        self.format == Format::Html
    }

    /// Writes the file.
    pub(super) fn write(self, simulated: &Simulated, drawn: &[Drawn<'_>]) -> Result<(), Failure> {
        let bytes = match self.format {
            Format::Svg => picture::timelines_svg(drawn).into_bytes(),
            Format::Png => picture::timelines_png(drawn),
            Format::Html => html::model_page(simulated, &run_set(simulated)?, drawn).into_bytes(),
        };
        output::write_file(self.path, &bytes)
    }
}

/// Why there is no wakeup for the `drawing`, or for the terminal.
pub(super) fn nothing_to_draw(simulated: &Simulated, drawing: Option<Drawing<'_>>) -> Failure {
    let place = drawing.map(|drawing| format!(" in {}", drawing.path.display()));
    let what = format!("there is no wakeup to draw{}", place.unwrap_or_default());
    let is_broken = |run: &Simulation| matches!(run.ending, Ending::Broken { .. });
    let remedy = match simulated.runs.iter().any(is_broken) {
        true => "see how the rule was broken: wakescope model check SCENARIO --preempt MODEL",
        false => "draw the latest wakeup, --timeline=worst, or simulate more --samples",
    };
    let causes = match simulated.doubts() {
        none if none.is_empty() => vec!["no model has so many late wakeups".into()],
        doubts => doubts,
    };
    causes.into_iter().fold(Failure::new(what), Failure::because).try_this(remedy)
}

/// All runs as they were written, each a curve.
fn run_set(simulated: &Simulated) -> Result<RunSet<'static>, Failure> {
    let several = simulated.runs.iter().any(|run| run.seed != simulated.runs[0].seed);
    let mut entries = Vec::new();
    for run in &simulated.runs {
        let Ending::Ok(figures) = &run.ending else { continue };
        let Some(folder) = &figures.run else { continue };
        let label = match several {
            true => format!("{}, seed {}", run.preempt, run.seed),
            false => run.preempt.clone(),
        };
        let run = Cow::Owned(runs::read(Path::new(folder))?);
        entries.push(Entry { label, run, runs: 1 });
    }
    let mut run_set = RunSet::of(entries);
    run_set.title.clone_from(&simulated.scenario);
    Ok(run_set)
}
