//! An explained run for people: what made its latest wakeup late, what makes wakeups late here, and
//! how each part of that is known.
//!
//! Names of functions, tasks and interrupts come from a kernel or from anybody's record: all of them
//! are cleaned and cut, and no list is longer than a screen bears.

use wakescope_core::explain::{Above, Explanation};
use wakescope_core::percentile::Percentile;
use wakescope_core::run::{Episode, Run, TimeDomain};
use wakescope_core::units::{counted, grouped};

use crate::domain;
use crate::findings::{self, Notes, wrapped};
use crate::style::Style;
use crate::text;

mod anew;
mod bar;
mod basis;
mod bound;
mod causes;
mod components;
mod episode;
mod frames;
mod latest;
mod net;
mod percent;
mod phrases;
pub(crate) mod ranking;
mod sections;
mod steps;
mod verdict;
mod waits;

pub(crate) use bound::unsound;
pub(crate) use causes::{Line as CauseLine, lines as cause_lines};
pub(crate) use episode::{ORDER, Stack, Words, blocks, not_explained, shares, stack, stacks};
pub(crate) use frames::kernel_frame;
pub(crate) use latest::{Latest, latest, left_out_runs};
pub(crate) use net::{TITLE as NET_TITLE, rest_of_steal};
pub(crate) use phrases::{beside, cause, culprit, culprit_and_place, known, named, place};
pub(crate) use steps::step;
pub(crate) use verdict::{because, because_of};
pub(crate) use waits::{
    Line as WaitLine, lines as wait_lines, notes as wait_notes, row as wait_row,
};

pub(crate) use percent::of as percents;

/// The widest line, in characters.
const WIDTH: usize = 100;

/// How many of the worst episodes are shown with their timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// At most so many.
    Worst(usize),
    /// Every one that the run holds an explanation of.
    All,
}

impl Default for Extent {
    fn default() -> Self {
        Self::Worst(3)
    }
}

impl Extent {
    fn most(self) -> usize {
        match self {
            Self::Worst(count) => count,
            Self::All => usize::MAX,
        }
    }
}

/// What made the worst wakeup late, in a sentence; `None` if the run was not explained.
pub(crate) fn sentence(run: &Run) -> Option<String> {
    run.explanation.as_ref().map(|_| verdict::text(run, &Ranked::of(run)))
}

/// What the threads that were followed waited for if that outweighs their waits after wakeups, in lines for
/// a terminal of 100 columns; empty otherwise.
pub(crate) fn waits_sentence(run: &Run, style: Style) -> String {
    verdict::lines(waits::sentence(run).trim_end(), style)
}

/// The verdict, the four components, the causes, what they rest on, and the worst episodes, for a
/// terminal of 100 columns. Of a run that was not explained, no more than that.
pub fn text(run: &Run, style: Style, extent: Extent) -> String {
    let ranked = Ranked::of(run);
    let mut out = verdict::sentence(run, &ranked, style);
    if let Some(explanation) = &run.explanation {
        out.push_str(&verdict::counts(run, explanation, style));
        let waits = explanation.waits.as_ref();
        out.push_str(&text::limits(run, style));
        let explained = [
            waits.map(|waits| waits::table(waits, run.time_domain)).unwrap_or_default(),
            components::table(run, explanation),
            causes::table(run, explanation),
            net::table(run),
            run.ranking.as_ref().map(|r| ranking::table(r, explanation)).unwrap_or_default(),
            basis::text(run, explanation, style),
            ranked.shown(run, style, extent.most()),
        ];
        explained.iter().for_each(|part| push_part(&mut out, part));
    }
    out.push_str(&findings::list(&run.validity.findings, style, Notes::ByName));
    push_part(&mut out, &closing(run));
    out
}

/// Adds a part after an empty line, if there is anything in it.
fn push_part(out: &mut String, part: &str) {
    if !part.is_empty() {
        out.push('\n');
        out.push_str(part);
    }
}

/// Where it was measured, and what its time leaves out.
fn closing(run: &Run) -> String {
    let caveats = domain::caveats(run.time_domain, run.explanation.is_some());
    let lines = caveats.map(|caveat| format!(" {}\n", wrapped(caveat, WIDTH - 1, " ")));
    lines.collect::<String>() + &text::machine(run)
}

/// The worst episodes of a run, each with its rank from 1.
struct Ranked<'a>(Vec<(usize, &'a Episode)>);

impl<'a> Ranked<'a> {
    fn of(run: &'a Run) -> Self {
        let mut episodes: Vec<&Episode> = run.worst.iter().collect();
        // A record of our own is in this order already; of others' nobody knows.
        episodes.sort_by_key(|e| std::cmp::Reverse(e.wakeup_latency_ns));
        Self((1..).zip(episodes).collect())
    }

    fn first(&self) -> Option<&'a Episode> {
        self.0.first().map(|&(_, episode)| episode)
    }

    fn explained(&self) -> impl Iterator<Item = (usize, &'a Episode)> + '_ {
        self.0.iter().copied().filter(|(_, episode)| is_explained(episode))
    }

    /// Those that rank above `last` and were not explained.
    fn left_out(&self, last: usize) -> impl Iterator<Item = (usize, &'a Episode)> + '_ {
        self.0.iter().copied().filter(move |(rank, e)| *rank < last && !is_explained(e))
    }

    /// The worst of those that were explained, and which of the worse ones were not.
    fn shown(&self, run: &Run, style: Style, most: usize) -> String {
        let domain = run.time_domain;
        let shown: Vec<(usize, &Episode)> = self.explained().take(most).collect();
        let Some(&(last, _)) = shown.last() else { return String::new() };
        let mut out = match episode::not_explained(self.left_out(last), domain) {
            none if none.is_empty() => none,
            text => format!(" {text}\n"),
        };
        out.push_str(&episode::blocks(&shown, domain, style));
        let others = net::others(run, &shown, most);
        if !others.is_empty() {
            out.push_str("\n worst wakeups net of measured steal:\n");
            out.push_str(&episode::blocks(&others, domain, style));
        }
        out
    }
}

/// Whether it is known what made an episode late, or that nobody knows.
fn is_explained(episode: &Episode) -> bool {
    !episode.blame.is_empty()
}

/// The threshold at and above which wakeups are late: `50.0 µs`, `212 µs (p99.9)`.
fn threshold(explanation: &Explanation, domain: TimeDomain) -> String {
    threshold_of(explanation.above_ns, &explanation.above, domain)
}

/// The same of a threshold that was asked for as `above`.
fn threshold_of(above_ns: u64, above: &str, domain: TimeDomain) -> String {
    let span = domain::span(above_ns, domain);
    // A time that was asked for is the threshold itself.
    match above.parse::<Percentile>() {
        Ok(asked) => format!("{span} ({asked})"),
        Err(_) => span,
    }
}

/// How many wakeups are late: `12 at or above 212 µs (p99.9)`; or that all are, for want of a percentile.
fn late(count: u64, (above_ns, above): (u64, &str), domain: TimeDomain) -> String {
    match is_all(above) {
        true => format!("all count as late {TOO_FEW}"),
        false => {
            format!("{} at or above {}", grouped(count), threshold_of(above_ns, above, domain))
        }
    }
}

/// The same in the title of a table: `the 12 wakeups at or above 212 µs (p99.9)`.
fn late_wakeups(count: u64, (above_ns, above): (u64, &str), domain: TimeDomain) -> String {
    let wakeups = counted(count, "wakeup");
    match is_all(above) {
        true => format!("all {wakeups} {TOO_FEW}"),
        false => format!("the {wakeups} at or above {}", threshold_of(above_ns, above, domain)),
    }
}

const TOO_FEW: &str = "(too few for a percentile)";

/// Whether a record says so of its threshold.
fn is_all(above: &str) -> bool {
    above == Above::All.to_string()
}

#[cfg(test)]
pub(crate) mod tests;
