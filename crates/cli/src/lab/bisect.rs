//! `wakescope lab bisect`

use std::fmt::Write as _;

use serde_json::json;
use wakescope_core::lab::{Lab, Status};
use wakescope_core::units::grouped;
use wakescope_lab::bisect::{BisectError, Bisection, Examine, Examined, Step, Verdict, bisect};
use wakescope_lab::cache::Cache;
use wakescope_lab::matrix;
use wakescope_lab::plan::{Kernels, Plan};
use wakescope_report::style::clean;
use wakescope_sys::signal::EndSignals;

use super::asking::{Asking, failure_of_plan};
use super::building::{Building, Built};
use super::cache;
use super::equipping::Equipping;
use super::run::{failure_of_lab, watcher};
use super::showing::Showing;
use super::waiting::Waiting;
use crate::signals::block_end_signals;
use crate::{Failure, Outcome, output};

/// Find the first kernel of an ordered list that exceeds a limit
///
/// Each kernel is measured under one load and one model, with all seeds. It is bad if any seed
/// exceeds the limit. Figures repeat to the bit, so no step needs repeating. Exit codes: 0 found; 1
/// the first kernel is already bad, or the first and the last are good, and the others were not
/// measured; 2 an error; 3 inconclusive, because kernels could not be measured.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab bisect --kernel 6.1-cloud,6.12-cloud,7.2-cloud --load find --fail-above 100us
  wakescope lab bisect --repo linux --good v6.11 --bad v6.12 --build 'git checkout -q $REVISION && make -j8 bzImage' --image arch/x86/boot/bzImage --load find --fail-above 100us")]
pub(super) struct BisectArgs {
    #[command(flatten)]
    asking: Asking,

    #[command(flatten)]
    equipping: Equipping,

    #[command(flatten)]
    building: Building,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `wakescope lab bisect`.
pub(super) fn run(args: &BisectArgs) -> Result<Outcome, Failure> {
    let plan = args.asking.plan(args.equipping.has_programs())?;
    expect_one_cell(&plan)?;
    let cache = cache()?;
    let candidates = match args.building.revisions()? {
        Some(revisions) => revisions,
        None => plan.kernel_names().to_vec(),
    };
    let signals = block_end_signals()?;
    let mut examiner = Examiner { args, plan, cache, candidates: &candidates, signals };
    let found = bisect(candidates.len(), &mut examiner);
    drop(examiner);
    match found {
        Ok(bisection) => {
            if args.json {
                output::print(&format!("{:#}\n", as_json(&bisection, &candidates)))?;
            } else {
                output::print(&as_text(&bisection, &candidates))?;
            }
            Ok(Ending::of(&bisection).outcome())
        }
        Err(BisectError::Examine(failure)) => Err(failure),
        Err(e @ BisectError::TooFew(_)) => Err(Failure::new(without_failure(&e)).try_this(
            "name the kernels in order: --kernel A,B,C; or build them: --repo, --good, --bad, \
             --build, --image",
        )),
        Err(e @ BisectError::EndSkipped { .. }) => {
            Err(Failure::new(clean(&without_failure(&e), 400))
                .try_this("begin and end the list with kernels that boot and can be measured"))
        }
    }
}

/// What the error says; one of an examination never comes here.
fn without_failure(e: &BisectError<Failure>) -> String {
    e.to_string()
}

/// How a bisection ended.
enum Ending {
    /// With the first bad kernel.
    Found(usize),
    /// With several that may be it, because some could not be measured.
    Open,
    /// With ends that leave nothing to bisect.
    FirstIsBad,
    LastIsGood,
}

impl Ending {
    fn of(bisection: &Bisection) -> Self {
        match (bisection.last_good, bisection.first_bad, bisection.found()) {
            (None, ..) => Self::FirstIsBad,
            (_, None, _) => Self::LastIsGood,
            (.., Some(place)) => Self::Found(place),
            (.., None) => Self::Open,
        }
    }

    /// What it is called in JSON.
    fn name(&self) -> &'static str {
        match self {
            Self::Found(_) => "found",
            Self::Open => "open",
            Self::FirstIsBad => "first-is-bad",
            Self::LastIsGood => "last-is-good",
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Found(_) => Outcome::Done,
            Self::Open => Outcome::Inconclusive,
            Self::FirstIsBad | Self::LastIsGood => Outcome::Failed,
        }
    }
}

/// The candidates that were not measured where both ends are alike: nothing is known of them.
fn not_measured(unknown: &[String]) -> String {
    const MOST: usize = 20;
    let named: Vec<String> = unknown.iter().take(MOST).map(|name| clean(name, 120)).collect();
    let more = match unknown.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and {} more", grouped(more as u64)),
    };
    match named.is_empty() {
        true => ".\n".into(),
        false => format!("; not measured: {}{more}.\n", named.join(", ")),
    }
}

/// A bisection is about one load, one model and at least one limit.
fn expect_one_cell(plan: &Plan) -> Result<(), Failure> {
    let wrong = |what: &str, remedy: &str| Err(Failure::new(what.to_string()).try_this(remedy));
    if plan.fail_above.is_empty() {
        return wrong(
            "a bisection needs a limit to tell good from bad",
            "set a limit: --fail-above 100us, or p99.9=50us",
        );
    }
    if plan.loads.len() != 1 {
        return wrong(
            "a bisection needs exactly one load",
            "name it: --load find; a combination as find+launch",
        );
    }
    if plan.preempt.len() != 1 || !plan.preempt_of.is_empty() {
        return wrong("a bisection needs exactly one preemption model", "name it: --preempt full");
    }
    Ok(())
}

struct Examiner<'a> {
    args: &'a BisectArgs,
    plan: Plan,
    cache: Cache,
    candidates: &'a [String],
    /// Those that end it. They wait while nobody looks.
    signals: EndSignals,
}

impl Examine for Examiner<'_> {
    type Error = Failure;

    fn examine(&mut self, candidate: usize) -> Result<Examined, Failure> {
        let name = &self.candidates[candidate];
        output::tell(&format!("examining {}", clean(name, 100)));
        let (files, place) = match self.args.building.build(name, &self.cache, &self.signals)? {
            Built::Named => (self.candidates.to_vec(), candidate),
            Built::Image(path) => (vec![path.display().to_string()], 0),
            Built::No(reason) => {
                return Ok(with_progress(Examined {
                    verdict: Verdict::Skip(reason),
                    evidence: Vec::new(),
                }));
            }
        };
        let lab = self.measure(name, &files, place)?;
        Ok(with_progress(judge(&lab)))
    }
}

impl Examiner<'_> {
    /// Measures the kernel at `place` among `files`, and calls it `name`.
    fn measure(&self, name: &str, files: &[String], place: usize) -> Result<Lab, Failure> {
        let Self { args, cache, .. } = self;
        let mut plan = self.plan.clone();
        plan.kernels = Kernels::Named(vec![name.to_string()]);
        plan.compare.clear();
        let plan = plan.expand(&[]).map_err(|e| failure_of_plan("the command line", &e))?;
        let mut waiting = Waiting::new()?;
        let mut kernel = args.equipping.kernel(files, place, cache, &mut waiting)?;
        kernel.name = name.to_string();
        let kernels = [kernel];
        let equipment = args.equipping.equipment(&kernels, &plan, cache.clone(), &mut waiting)?;
        let mut showing = Showing::new(waiting);
        let mut watch = watcher(&mut showing);
        let done = matrix::run(&plan, &kernels, args.asking.repeat(), &equipment, &mut watch);
        drop(watch);
        drop(showing);
        let done = done.map_err(|e| failure_of_lab(&e))?;
        if done.stopped {
            return Err(Failure::new("ended before it was found").try_this(
                "run the same command again to resume: finished measurements are cached",
            ));
        }
        Ok(done.lab)
    }
}

/// What the cells of one kernel say about it.
fn judge(lab: &Lab) -> Examined {
    let runs = lab.cells.iter().filter_map(|cell| cell.run.clone());
    let mut evidence: Vec<String> = Vec::new();
    for limit in &lab.limits {
        if let (Some(ns), Some(seed)) = (limit.observed_ns, limit.seed) {
            let us = microseconds(ns);
            evidence
                .push(format!("{us} virtual µs with seed {seed}, the limit is {}", limit.limit));
        }
    }
    let broken = lab.limits.iter().any(|limit| limit.within == Some(false));
    let bad_cell = lab.cells.iter().find(|cell| cell.status != Status::Ok);
    let undecided = lab.limits.iter().find(|limit| limit.within.is_none());
    let verdict = if broken {
        Verdict::Bad
    } else if let Some(cell) = bad_cell {
        Verdict::Skip(cell.reason.clone())
    } else if let Some(limit) = undecided {
        Verdict::Skip(limit.reason.clone())
    } else {
        Verdict::Good
    };
    evidence.extend(runs);
    Examined { verdict, evidence }
}

/// Microseconds with all digits: rounded, a figure beyond the limit could be the limit.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// Tells the user how a step came out.
fn with_progress(examined: Examined) -> Examined {
    output::tell(&clean(&in_words(&examined), 300));
    examined
}

fn in_words(examined: &Examined) -> String {
    let figures: Vec<&str> = examined
        .evidence
        .iter()
        .filter(|line| !line.starts_with('/'))
        .map(String::as_str)
        .collect();
    match &examined.verdict {
        Verdict::Good => format!("good: {}", figures.join("; ")),
        Verdict::Bad => format!("bad: {}", figures.join("; ")),
        Verdict::Skip(reason) => format!("skipped: {reason}"),
    }
}

fn as_text(bisection: &Bisection, candidates: &[String]) -> String {
    let name = |place: usize| clean(&candidates[place], 120);
    let mut text = match Ending::of(bisection) {
        Ending::Found(place) => {
            format!("{} is the first kernel that exceeds the limit.\n", name(place))
        }
        Ending::FirstIsBad => {
            format!("The first candidate is already bad{}", not_measured(&candidates[1..]))
        }
        Ending::LastIsGood => format!(
            "The first and the last candidate are good{}",
            not_measured(&candidates[1..candidates.len() - 1])
        ),
        Ending::Open => format!(
            "One of {} kernels is the first that exceeds the limit; the kernels between could not \
             be measured:\n{}",
            bisection.suspects().count(),
            bisection.suspects().map(|place| format!(" {}\n", name(place))).collect::<String>()
        ),
    };
    text += "\n";
    let width =
        bisection.steps.iter().map(|s| name(s.candidate).chars().count()).max().unwrap_or(0);
    for Step { candidate, examined } in &bisection.steps {
        let _ = writeln!(text, " {:width$}  {}", name(*candidate), clean(&in_words(examined), 200));
        for run in examined.evidence.iter().filter(|line| line.starts_with('/')).take(1) {
            let _ = writeln!(text, " {:width$}    {}", "", clean(run, 200));
        }
    }
    text
}

fn as_json(bisection: &Bisection, candidates: &[String]) -> serde_json::Value {
    let steps = bisection.steps.iter().map(|Step { candidate, examined }| {
        let (verdict, reason) = match &examined.verdict {
            Verdict::Good => ("good", ""),
            Verdict::Bad => ("bad", ""),
            Verdict::Skip(reason) => ("skip", reason.as_str()),
        };
        json!({"kernel": candidates[*candidate], "verdict": verdict, "reason": reason, "evidence": examined.evidence})
    });
    json!({
        "schema": "wakescope.bisect/1",
        "ending": Ending::of(bisection).name(),
        "first_bad": bisection.found().map(|place| &candidates[place]),
        "suspects": bisection.suspects().map(|place| &candidates[place]).collect::<Vec<_>>(),
        "last_good": bisection.last_good.map(|place| &candidates[place]),
        "steps": steps.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_beyond_a_limit_does_not_look_like_it() {
        let of = [(99_999, "99.999"), (100_000, "100.000"), (100_001, "100.001"), (7, "0.007")];
        of.iter().for_each(|&(ns, want)| assert_eq!(microseconds(ns), want));
    }

    #[test]
    fn candidates_between_alike_ends_are_said_to_be_not_measured() {
        let candidates: Vec<String> = (0..30).map(|number| format!("k{number}")).collect();
        let step = |candidate| Step {
            candidate,
            examined: Examined { verdict: Verdict::Good, evidence: vec![format!("/{candidate}")] },
        };
        let good = |count: usize| {
            let (last_good, steps) = (Some(count - 1), vec![step(0), step(count - 1)]);
            as_text(&Bisection { last_good, first_bad: None, steps }, &candidates[..count])
        };
        let bad = |count: usize| {
            let steps = vec![step(0)];
            let found = Bisection { last_good: None, first_bad: Some(0), steps };
            as_text(&found, &candidates[..count])
        };
        for (text, ends) in [
            (good(2), "The first and the last candidate are good.\n\n"),
            (good(3), "The first and the last candidate are good; not measured: k1.\n\n"),
            (bad(2), "The first candidate is already bad; not measured: k1.\n\n"),
            (bad(3), "The first candidate is already bad; not measured: k1, k2.\n\n"),
        ] {
            assert!(text.starts_with(ends), "{text}");
            // With the runs that say so.
            assert!(text.contains("k0  good: \n       /0\n"), "{text}");
        }
        assert!(good(30).contains(", k19, k20, and 8 more.\n\n"), "{}", good(30));
    }
}
