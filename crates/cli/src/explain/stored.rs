//! Showing a stored run: attributed anew from its episodes, or as it was recorded.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use wakescope_attribution::{Reattribution, Seen, account, rank_stored_by};
use wakescope_core::budget::{Budget, Entry, Exceeded};
use wakescope_core::episodes::{Attributed, Head, LineError, read};
use wakescope_core::explain::{Above, By, Known, Ranking, Wakeup};
use wakescope_core::run::{Run, State};
use wakescope_core::units::{counted, one_or_many};
use wakescope_report::style::clean;
use wakescope_store::{EPISODES, RECORD};

use super::{ExplainArgs, lines, shown};
use crate::input::regular;
use crate::{Failure, Outcome, output, runs};

/// The longest file of episodes that is read: a hundred times what a run writes.
const LONGEST: u64 = 2 << 30;

/// So many damaged lines are named.
const MOST_NAMED: u64 = 3;

/// Shows the run at `path`.
pub(super) fn show(args: &ExplainArgs, path: &Path) -> Result<Outcome, Failure> {
    let mut run = runs::read(path)?;
    let lacks = match args.as_recorded {
        true => None,
        false => attribute_anew(&mut run, path, args.by).err(),
    };
    if run.explanation.is_none() {
        return Err(without_explanation(&run, path, lacks));
    }
    let is_by = |ranking: &Ranking| Some(ranking.by) == args.by;
    if let Some(by) = args.by.filter(|_| !run.ranking.as_ref().is_some_and(is_by)) {
        run.ranking = Some(rank_stored_by(&run, by));
    }
    if let Some(image) = &args.vmlinux {
        lines::add_to_stored(&mut run, image)?;
    }
    args.measure.redact_if_asked(&mut run);
    if args.measure.json {
        // Where there is no file, the record itself says so: it has no `anew`.
        let faults = lacks.iter().filter(|lacks| !matches!(lacks, Lacks::File));
        faults.for_each(|fault| output::tell(&fault.note()));
        output::print(&(run.to_json() + "\n"))?;
    } else {
        let note = lacks.map(|lacks| format!(" {}\n", lacks.note())).unwrap_or_default();
        output::print(&(shown(args, &run) + &note))?;
    }
    Ok(Outcome::Done)
}

fn without_explanation(run: &Run, path: &Path, lacks: Option<Lacks>) -> Failure {
    let mut failure = Failure::new(format!("the run {} has no explanation", path.display()))
        .because("causes are recorded only while wakescope explain measures");
    if run.state == State::Running {
        failure = failure.because(
            "the explanation is written at the end of a run: this run was killed, or is still \
             going on",
        );
        failure = lacks.into_iter().fold(failure, |failure, lacks| failure.because(lacks.why()));
    }
    failure.try_this("explain a new run, with the options of this one: wakescope explain")
}

/// Why a run is shown as it was recorded.
enum Lacks {
    /// There are no episodes.
    File,
    /// They cannot be read.
    Unreadable(std::io::Error),
    /// They are those of another run.
    OtherRun(String),
    /// There are too many of them, or too many causes.
    Exceeded(Exceeded),
    /// There is no usable line.
    Empty,
}

impl Lacks {
    fn why(&self) -> String {
        match self {
            Self::File => format!("its folder has no {EPISODES}"),
            Self::Unreadable(e) => format!("{EPISODES} cannot be read: {e}"),
            Self::OtherRun(id) => {
                format!("{EPISODES} belongs to another run, with the id {}", clean(id, 80))
            }
            Self::Exceeded(e) => format!("{EPISODES} is not used: {e}"),
            Self::Empty => format!("{EPISODES} holds no episode that can be used"),
        }
    }

    fn note(&self) -> String {
        format!("shown as recorded: {}", self.why())
    }
}

impl From<Stop> for Lacks {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::OtherRun(id) => Self::OtherRun(id),
            Stop::Exceeded(e) => Self::Exceeded(e),
        }
    }
}

/// Why no further line is read.
enum Stop {
    OtherRun(String),
    Exceeded(Exceeded),
}

/// The file with the episodes of the run at `path`. A record that lies elsewhere than in its run's
/// folder, such as one to be published, has none.
fn episodes_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.join(EPISODES));
    }
    let is_record = path.file_name().is_some_and(|name| name == RECORD);
    is_record.then(|| path.with_file_name(EPISODES))
}

/// Hands over each late wakeup that is stored of the run at `path`, as it was attributed then. How many
/// there were: none where nothing is stored.
///
/// # Errors
/// Why what is stored cannot be read.
pub(crate) fn each_stored(
    run: &Run,
    path: &Path,
    mut hand_over: impl FnMut(&Attributed),
) -> Result<u64, String> {
    let all = opened(path).and_then(|(input, _)| {
        each(run, input, |_, episode| {
            hand_over(&episode);
            Ok(())
        })
    });
    match all {
        Ok((used, _)) => Ok(used),
        Err(Lacks::File) => Ok(0),
        Err(other) => Err(other.why()),
    }
}

/// Attributes what is stored of `run` by the rules of this version. On an error `run` is as it was.
fn attribute_anew(run: &mut Run, path: &Path, by: Option<By>) -> Result<(), Lacks> {
    let (input, length) = opened(path)?;
    let budget = Budget::of(length);
    match run.explanation {
        Some(_) => exchange(run, by, input, &budget),
        None => explain(run, by, input, &budget),
    }
}

/// The episodes of the run at `path`, and how long they are, bytes.
fn opened(path: &Path) -> Result<(impl BufRead, u64), Lacks> {
    let file = episodes_of(path).ok_or(Lacks::File)?;
    let opened = match regular(&file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(Lacks::File),
        other => other.map_err(Lacks::Unreadable)?,
    };
    let length = opened.metadata().map_err(Lacks::Unreadable)?.len();
    if length > LONGEST {
        let limit = format!("it is larger than {} MiB", LONGEST >> 20);
        return Err(Lacks::Unreadable(std::io::Error::other(limit)));
    }
    Ok((BufReader::with_capacity(1 << 16, opened), length))
}

/// What the late time is to be ranked by: what is asked for, or was when the run was measured.
fn ranking_to_make(run: &Run, by: Option<By>) -> Option<By> {
    by.or_else(|| run.ranking.as_ref().map(|ranking| ranking.by))
}

/// Puts new answers in place of the recorded ones.
fn exchange(
    run: &mut Run,
    by: Option<By>,
    input: impl BufRead,
    budget: &Budget,
) -> Result<(), Lacks> {
    let mut reattribution = Reattribution::of(run, ranking_to_make(run, by));
    let (used, damaged) = each(run, input, |head, episode| {
        reattribution.add(episode, &head.known.completed(run.components.as_ref()), budget)
    })?;
    let stored = run.explanation.as_ref().and_then(|explanation| explanation.stored_episodes);
    if used == 0 && stored != Some(0) {
        return Err(Lacks::Empty);
    }
    reattribution.finish(run, damaged);
    Ok(())
}

/// Explains a run that was killed before its explanation was written, from what is stored of it.
fn explain(
    run: &mut Run,
    by: Option<By>,
    input: impl BufRead,
    budget: &Budget,
) -> Result<(), Lacks> {
    let mut wakeups: Vec<Wakeup> = Vec::new();
    let mut last: Option<(Above, Known)> = None;
    let (used, _) = each(run, input, |head, episode| {
        let Attributed { wakeup, .. } = episode;
        budget.keep(size_of(&wakeup), Entry::SEEN)?;
        wakeups.push(wakeup);
        last = Some((head.above, head.known));
        Ok(())
    })?;
    let Some((above, known)) = last.filter(|_| used > 0) else { return Err(Lacks::Empty) };
    wakeups.sort_by_key(|wakeup| std::cmp::Reverse(wakeup.marks.response.since(wakeup.marks.due)));
    let mut wakeup_latency = run.woken();
    // As a tracer counts.
    wakeup_latency.max_at_ns = wakeup_latency.max_at_ns.map(|at| at.saturating_add(run.origin_ns));
    let not_seen = vec![
        "components, lost records and late wakeups that were not stored: the run was killed"
            .to_owned(),
    ];
    let seen =
        Seen { wakeups, wakeup_latency, known: Some(known), by, not_seen, ..Seen::default() };
    account(run, seen, above);
    run.components = None;
    if let Some(explanation) = &mut run.explanation {
        explanation.stored_episodes = Some(used);
        // Of others nobody knows whether they were followed.
        explanation.wakeups = explanation.explained;
    }
    Ok(())
}

/// Of a wakeup, what is priced.
fn size_of(wakeup: &Wakeup) -> u64 {
    let interrupted = wakeup.interrupted.iter().map(|c| c.stack.len() + c.user_stack.len());
    let given_up = wakeup.given_up.iter().map(|g| g.stack.len() + g.user_stack.len());
    let frames: usize = interrupted.chain(given_up).sum();
    (8 + wakeup.events.len() + frames) as u64
}

/// Hands over each episode of `run`, once; how many there were, and how many damaged lines, of which the
/// first are named on stderr.
fn each(
    run: &Run,
    input: impl BufRead,
    mut hand_over: impl FnMut(&Head, Attributed) -> Result<(), Exceeded>,
) -> Result<(u64, u64), Lacks> {
    let (mut used, mut damaged, mut repeated) = (0_u64, 0_u64, 0_u64);
    // A task is woken once at a time: such a line is of the same wakeup, however it came there twice.
    let mut wakeups: HashSet<[u64; 4]> = HashSet::new();
    let name = |number: u64, e: &LineError| {
        output::tell(&format!("{EPISODES}, line {number}: {}", clean(&e.to_string(), 200)));
    };
    let ended = read(input, |number, line| {
        match line {
            Ok((head, _)) if head.run != run.id => {
                return Err(Stop::OtherRun(head.run.clone()));
            }
            Ok((_, episode)) if !wakeups.insert(identity(&episode.wakeup)) => repeated += 1,
            Ok((head, episode)) => {
                hand_over(head, episode).map_err(Stop::Exceeded)?;
                used += 1;
            }
            Err(e) => {
                damaged += 1;
                if damaged <= MOST_NAMED {
                    name(number, &e);
                }
            }
        }
        Ok(())
    });
    ended.map_err(Lacks::Unreadable)??;
    if damaged > MOST_NAMED {
        let more = counted(damaged - MOST_NAMED, "further damaged line");
        output::tell(&format!("{EPISODES}: {more}"));
    }
    if repeated > 0 {
        let lines = counted(repeated, "line");
        let repeat = one_or_many(repeated, "repeats", "repeat");
        output::tell(&format!("{EPISODES}: {lines} {repeat} an episode, which counts once"));
    }
    Ok((used, damaged))
}

/// What tells a wakeup from all others of a run.
fn identity(wakeup: &Wakeup) -> [u64; 4] {
    let Wakeup { cpu, task, marks, .. } = wakeup;
    [(*cpu).into(), task.pid.into(), marks.due.0, marks.response.0]
}
