//! A series of runs from one command: all stimuli, threads and processes, or all pairs of CPUs.

use std::path::{Path, PathBuf};

use wakescope_core::limit::{self, Outcome as Judged};
use wakescope_core::plan::{Between, Plan, Stimulus};
use wakescope_core::source::Quantity;
use wakescope_core::units::SpanNs;
use wakescope_probe::driver::{Signals, Waited};
use wakescope_probe::host;
use wakescope_probe::observer::Unobserved;
use wakescope_probe::session::outcome;
use wakescope_report::series::{Figures, Row, json, limits, matrix, table};
use wakescope_sys::signal::EndSignals;

use super::args::{self, MeasureArgs};
use super::wakers::{Asked, Place};
use super::{
    Kept, NotMeasured, keep, lasting, only_unprinted, prepare_process, time_now, verdict_of,
};
use crate::folder::RunsFolder;
use crate::{Failure, Outcome, output};

/// What the runs of a series differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Varied {
    /// What wakes the probes.
    Stimulus,
    /// Whether wakers are threads or processes.
    Between,
    /// The CPUs of waker and probe.
    Place,
}

impl Varied {
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Stimulus => "--stimulus all",
            Self::Between => "--between both",
            Self::Place => "--place matrix",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Stimulus => "stimulus",
            Self::Between => "between",
            Self::Place => "waker:probe",
        }
    }
}

/// What is varied; `None` if one run is asked for.
pub(super) fn varied(args: &MeasureArgs) -> Result<Option<Varied>, Failure> {
    let asked = [
        args.stimulus().is_none().then_some(Varied::Stimulus),
        (args.between == Some(args::BetweenArg::Both)).then_some(Varied::Between),
        (args.place == Some(args::PlaceArg::Matrix)).then_some(Varied::Place),
    ];
    let asked: Vec<Varied> = asked.into_iter().flatten().collect();
    match asked.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        [first, second, ..] => {
            let (first, second) = (first.option(), second.option());
            Err(Failure::new(format!("{first} does not go together with {second}"))
                .because("a table shows what one thing changes")
                .try_this("use one of them, and name a value for the other"))
        }
    }
}

/// A run of a series, and what it is called there.
struct Member {
    name: String,
    plan: Result<Plan, Failure>,
}

impl Member {
    /// Its folder in that of the series.
    fn folder(&self) -> PathBuf {
        self.name.replace(':', "-").into()
    }
}

/// The runs that are asked for.
fn members(args: &MeasureArgs, varied: Varied) -> Result<Vec<Member>, Failure> {
    let (between, place) = (args.one_between(), args.one_place());
    let member = |name, asked| Member { name, plan: args::plan_of(args, asked).and_then(lasting) };
    let stimulus = args.stimulus().unwrap_or_default();
    Ok(match varied {
        Varied::Stimulus => {
            let of = |&stimulus: &Stimulus| {
                // What is said of wakers is for those stimuli that have one.
                let (between, place) = match stimulus.needs_waker() {
                    true => (between, place),
                    false => (None, None),
                };
                member(stimulus.to_string(), Asked { stimulus, between, place })
            };
            // A gap or a round trip is no wakeup, and would stand among wakeups as if it were one.
            let is_wakeup = |s: &&Stimulus| s.quantity() == Quantity::WakeupLatency;
            Stimulus::OF_PROBES.iter().filter(is_wakeup).map(of).collect()
        }
        Varied::Between => [Between::Threads, Between::Processes]
            .map(|one| member(one.to_string(), Asked { stimulus, between: Some(one), place }))
            .into(),
        Varied::Place => {
            let cpus = args::cpus_of_matrix(args)?;
            let pairs =
                cpus.iter().flat_map(|&waker| cpus.iter().map(move |&probe| (waker, probe)));
            pairs
                .map(|(waker, probe)| {
                    let place = Some(Place::Pair(waker, probe));
                    member(format!("{waker}:{probe}"), Asked { stimulus, between, place })
                })
                .collect()
        }
    })
}

/// Signals, whether one has come, and whether it ended a run that had no figures yet.
struct Ending<'a> {
    signals: &'a EndSignals,
    has_come: bool,
    has_cut: bool,
}

impl Signals for Ending<'_> {
    fn wait(&mut self, span: SpanNs) -> Waited {
        let waited = Waited::from(self.signals.fetch(span));
        self.has_come |= matches!(waited, Waited::Asked(_));
        waited
    }
}

/// Measures one after the other, each into a folder of its own, and shows all of them in one table. A
/// signal ends the run that is being measured, and with it the series.
pub(super) fn run(args: &MeasureArgs, varied: Varied) -> Result<Outcome, Failure> {
    let members = members(args, varied)?;
    // What cannot be asked for at all is an error; what one stimulus lacks is a row of the table.
    if varied != Varied::Stimulus {
        if let Some(at) = members.iter().position(|member| member.plan.is_err()) {
            let refused = members.into_iter().nth(at).map(|member| member.plan.map(drop));
            return refused.unwrap_or(Ok(())).map(|()| Outcome::Done);
        }
    }
    // Not after minutes of measuring.
    RunsFolder::check(args.out.as_deref(), &time_now(), members.iter().map(Member::folder))?;
    let end_signals = prepare_process()?;
    let mut signals = Ending { signals: &end_signals, has_come: false, has_cut: false };
    let folder = RunsFolder::create(args.out.as_deref(), &time_now())?;
    let (mut rows, mut worst, count) = (Vec::new(), Judged::Pass, members.len());
    // Runs that could not be measured although this machine has all that they take, and those that lie nowhere.
    let (mut failed, mut unsaved) = (0, 0);
    let mut ended_early = 0;
    let mut first_failure = None;
    for (number, member) in (1..).zip(members) {
        let path = folder.path().join(member.folder());
        let Member { name, plan } = member;
        output::tell(&format!("run {number} of {count}: {name}"));
        // A plan that one stimulus alone refuses is one that it does not have.
        let plan = plan.map_err(|failure| NotMeasured { failure, lacks_stimulus: true });
        match plan.and_then(|plan| measure(args, plan, &path, &mut signals)) {
            Ok(Measured { figures, judged, lost_probes, saved }) => {
                worst = worst.max(judged);
                ended_early += usize::from(lost_probes);
                unsaved += usize::from(saved.is_err());
                let path = saved.inspect_err(output::complain).ok();
                let path = path.map(|path| path.display().to_string());
                rows.push(Row { name, path, figures: Some(figures), not_measured: None });
            }
            Err(NotMeasured { failure, lacks_stimulus }) => {
                // A kernel need not have every stimulus; it has all CPUs, threads and processes that are asked for.
                // One that a signal cut has no figures because of that.
                let is_lacking = varied == Varied::Stimulus && lacks_stimulus;
                failed += usize::from(!signals.has_cut && !is_lacking);
                // With the remedy, for which a row has no room.
                output::complain(&failure);
                rows.push(Row {
                    name,
                    path: None,
                    figures: None,
                    not_measured: Some(why(&failure)),
                });
                first_failure.get_or_insert(failure);
            }
        }
        if signals.has_come {
            break;
        }
    }
    if rows.iter().all(|row| row.figures.is_none()) {
        return first_failure.map_or(Ok(Outcome::Done), Err);
    }
    let (not_begun, has_cut) = (count - rows.len(), signals.has_cut);
    let is_undecided = (not_begun > 0 || has_cut || failed > 0) && args.has_limit();
    if is_undecided {
        worst = worst.max(Judged::Inconclusive);
    }
    drop(end_signals);
    let printed = show(args, varied, &rows, (not_begun, is_undecided), folder.path());
    if failed + unsaved > 0 && worst != Judged::Fail {
        if let Err(unprinted) = printed {
            output::complain(&unprinted);
        }
        return Err(incomplete(failed, unsaved, count));
    }
    let saved = if unsaved > 0 { "runs that could be are saved" } else { "the runs are saved" };
    printed.map_err(|e| only_unprinted(&e, saved, "report", folder.path()))?;
    if ended_early > 0 && worst == Judged::Pass {
        return Err(cut_short(ended_early, count, folder.path()));
    }
    Ok(verdict_of(worst, false))
}

/// Of `count` runs some could not be measured, or saved.
fn incomplete(failed: usize, unsaved: usize, count: usize) -> Failure {
    let (number, done) = match failed {
        0 => (unsaved, "saved"),
        _ => (failed, "measured"),
    };
    Failure::new(format!("{number} of {count} runs could not be {done}"))
        .because("the series is not complete; the reason is above, with each of them")
        .try_this("remove the reason, and measure again, into a new folder: --out DIR")
}

/// In `number` of `count` runs, probes ended before their time.
fn cut_short(number: usize, count: usize, folder: &Path) -> Failure {
    Failure::new(format!("{number} of {count} runs ended early"))
        .because("what woke a probe was lost, or its CPU; what was measured is kept")
        .try_this(format!("see what each of them says: {}", output::command("report", folder)))
}

/// What went wrong and why, in a line.
fn why(failure: &Failure) -> String {
    let text = failure.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('→'));
    let text = lines.collect::<Vec<_>>().join(": ");
    text.strip_prefix("wakescope: ").unwrap_or(&text).to_owned()
}

/// A run of the series that was measured.
struct Measured {
    figures: Figures,
    judged: Judged,
    lost_probes: bool,
    /// Where it lies, or why it could not be written for the last time.
    saved: Result<PathBuf, Failure>,
}

fn measure(
    args: &MeasureArgs,
    plan: Plan,
    path: &Path,
    signals: &mut Ending,
) -> Result<Measured, NotMeasured> {
    let host = host::read(&plan.cpus);
    let kept = keep(args, Some(path), plan, host, signals, &mut Unobserved);
    // Whatever it says: it was being set up when the signal came.
    let kept = kept.inspect_err(|_| signals.has_cut = signals.has_come)?;
    let Kept { run, saved, .. } = kept;
    let lost_probes = limit::lost_probes(&run.validity);
    Ok(Measured { figures: Figures::of(&run), judged: outcome(&run), lost_probes, saved })
}

/// Shows the series, of which a signal left some runs `not_begun`, and whether that leaves limits undecided.
fn show(
    args: &MeasureArgs,
    varied: Varied,
    rows: &[Row],
    (not_begun, is_undecided): (usize, bool),
    folder: &Path,
) -> Result<(), Failure> {
    if args.json {
        let json = json(varied.title(), not_begun, rows)
            .map_err(|e| Failure::new(format!("cannot write the series as JSON: {e}")))?;
        return output::print(&format!("{json}\n"));
    }
    let style = output::style();
    let mut text = match varied {
        Varied::Place => matrix(rows, style),
        Varied::Stimulus | Varied::Between => table(varied.title(), rows, style),
    };
    if not_begun > 0 {
        text += &format!(" ended early: {not_begun} more were not begun\n");
    }
    text += &limits(rows, style);
    if is_undecided {
        text += " not every run of the series was measured: a limit that no run exceeded is inconclusive\n";
    }
    let show = output::command("report", folder);
    text += &format!("\n runs: {}   show: {show}\n", folder.display());
    output::print(&text)
}
