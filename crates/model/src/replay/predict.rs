//! What cells of the lab would have measured under other rules, with what is broken up.

use std::collections::{BTreeSet, VecDeque};

use wakescope_core::percentile::Percentile;
use wakescope_core::predict::{
    self as record, Break, Latencies, Measured, NotRepeated, Predicted, Prediction, Range, Ranking,
    Reach, SCHEMA, Step,
};
use wakescope_core::preemption::Model;
use wakescope_core::run::Run;
use wakescope_core::scope::edges::Edges;
use wakescope_core::units::SpanNs;

use super::cell::{MOST_WAKEUPS, PHASES, Replay, Sample};
use super::edges::{Probe, Seen};
use super::{Breaks, Figures, Latest, Section, ranking};
use crate::rules::Rules;

/// How far the replay of the wakeups that a cell measured was off from that, at most, in percent: what is meant to be
/// within a range may be that far outside, and what gains no more than that gains nothing. (Of 48 cells of five
/// kernels, p99, p99.9 and the maximum.)
const ERROR_PERCENT: u64 = 1;

/// How often all that is broken up may let go in a course: each time is replayed, and takes some 150 bytes.
const MOST_CUTS: u64 = 1 << 22;

/// Steps of a ranking.
const STEPS: usize = 3;

/// The models, in the order of a prediction's rows.
const MODELS: [Model; 5] = [Model::None, Model::Voluntary, Model::Full, Model::Lazy, Model::Rt];

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Functions by name, and how long each keeps the CPU at most, ns.
    pub breaks: Vec<(String, u64)>,
    /// The longest section, ns.
    pub limit_sections_ns: Option<u64>,
    /// How long what the ranking proposes keeps the CPU at most, ns.
    pub every_ns: u64,
}

impl Question {
    /// A section that lasts no longer than this is not broken up, ns.
    fn shortest_ns(&self) -> u64 {
        let breaks = self.breaks.iter().map(|(_, every_ns)| *every_ns);
        breaks.chain(self.limit_sections_ns).fold(self.every_ns, u64::min)
    }
}

/// From which cell nothing can be predicted, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot predict from {label}: {why}")]
pub struct CannotPredict {
    /// What the cell is called.
    pub label: String,
    /// Why.
    pub why: Unpredictable,
}

impl CannotPredict {
    fn no_cell() -> Self {
        Self { label: "no cell".into(), why: Unpredictable::Nothing }
    }
}

/// Why nothing can be predicted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpredictable {
    /// The probe is no real-time task.
    #[error(
        "the probe's policy is {0}, so the scheduler decides when it runs, which no replay knows"
    )]
    Policy(String),
    /// The model that ran is not known.
    #[error("it is not known which preemption model the cell ran")]
    Model,
    /// No such function was seen.
    #[error("no section or switch of {0} was seen, so it cannot be broken up")]
    Function(String),
    /// It is no other course of what the first one is.
    #[error(
        "its {what} is not that of {first}; cells that are predicted from together may differ in their seeds only"
    )]
    Differs {
        /// What it has otherwise.
        what: &'static str,
        /// What the first one is called.
        first: String,
    },
    /// It would count twice.
    #[error("it is given twice")]
    Twice,
    /// More would be replayed than there is memory for.
    #[error("the functions would let go {0} times, and {MOST_CUTS} times can be replayed")]
    Cuts(u64),
    /// The interval of its record, which the guest wrote, would have more wakeups replayed than there is memory for.
    #[error(
        "its record has a wakeup due every {interval} for {window}, and {MOST_WAKEUPS} can be replayed"
    )]
    Interval {
        /// From a wakeup to the next.
        interval: SpanNs,
        /// How long the emulator saw it.
        window: SpanNs,
    },
    /// There is nothing to replay.
    #[error("the emulator saw nothing of the time in which the cell measured")]
    Nothing,
    /// How long a wakeup takes that nothing holds up is known of too few wakeups, or of none.
    #[error("the emulator recognised only {seen} of the probe's {all} wakeups")]
    Wakeups {
        /// Wakeups of which each step was seen.
        seen: u64,
        /// Wakeups of the cell.
        all: u64,
    },
}

/// The rules of a model.
fn rules(model: Model) -> Option<Rules> {
    Rules::named(match model {
        Model::None => "none",
        Model::Voluntary => "voluntary",
        Model::Full => "full",
        Model::Lazy => "lazy",
        Model::Rt => "rt",
        Model::Unknown => return None,
    })
}

/// Which places were seen at which a kernel asks whether somebody else is to run.
#[derive(Clone, Copy, Debug, Default)]
struct Asks {
    /// Whether one was, in any cell.
    seen: bool,
    /// Whether all of them are known, under any model.
    all_known: bool,
}

impl Asks {
    fn of(courses: &[Course]) -> Self {
        let seen = || courses.iter().map(|course| &course.replay.seen);
        Self { seen: seen().any(|seen| seen.asks), all_known: seen().all(|seen| seen.knows_asks) }
    }
}

/// How far the prediction of `model` goes from a kernel that ran `recorded`.
fn reach(recorded: Model, model: Model, asks: Asks) -> Reach {
    use Model::{Full, Lazy, None, Rt, Voluntary};
    match (recorded, model) {
        (Rt, Rt) => Reach::Whole,
        (Rt, _) => Reach::OtherKernel,
        (_, Rt) => Reach::SpinLocks,
        (_, Full | Lazy) => Reach::Whole,
        _ if asks.all_known => Reach::Whole,
        // Kernels that preempt do not ask, or nobody sees it.
        (Full | Lazy, None | Voluntary) => Reach::AtMost,
        (None | Voluntary, None | Voluntary) if !asks.seen => Reach::AtMost,
        // Only voluntary asks wherever it might sleep, too.
        (None, Voluntary) => Reach::AtMost,
        (Voluntary, None) => Reach::AtLeast,
        _ => Reach::Whole,
    }
}

/// A cell of the lab.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Its key.
    pub key: String,
    /// What it is called.
    pub label: String,
    /// What it measured.
    pub run: Run,
}

/// Answers a question by cells that differ in nothing but their seeds. It keeps no edges of them: only what it takes
/// to replay their courses.
pub struct Predictor {
    question: Question,
    /// Those of which nothing was seen yet, in order.
    unseen: VecDeque<Cell>,
    courses: Vec<Course>,
}

impl Predictor {
    /// One that is to be shown what the emulator sees of these cells.
    ///
    /// # Errors
    /// If what is known of them already says that nothing can be predicted, so that none has to be run.
    pub fn new(question: Question, cells: Vec<Cell>) -> Result<Self, CannotPredict> {
        for (place, cell) in cells.iter().enumerate() {
            let judged = rules_of(&cell.run)
                .and_then(|_| probe_of(&cell.run))
                .and_then(|_| is_one_more(cell, &cells[..place]));
            judged.map_err(|why| CannotPredict { label: cell.label.clone(), why })?;
        }
        Ok(Self { question, unseen: cells.into(), courses: Vec::new() })
    }

    /// Adds what the emulator saw of the next cell's run.
    ///
    /// # Errors
    /// If nothing can be predicted of it, or there is no next one.
    pub fn add(&mut self, edges: &Edges) -> Result<(), CannotPredict> {
        let Some(cell) = self.unseen.pop_front() else { return Err(CannotPredict::no_cell()) };
        let label = cell.label.clone();
        let course = Course::of(cell, edges, &self.question);
        self.courses.push(course.map_err(|why| CannotPredict { label, why })?);
        Ok(())
    }

    /// The functions that were seen, of each cell.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.courses.iter().flat_map(|course| &course.functions).map(String::as_str)
    }

    /// Replays all of them.
    ///
    /// # Errors
    /// If there is none, nothing was seen of one, or a function that is to be broken up was not seen in any.
    pub fn predict(&self) -> Result<Prediction, CannotPredict> {
        if let Some(cell) = self.unseen.front() {
            let label = cell.label.clone();
            return Err(CannotPredict { label, why: Unpredictable::Nothing });
        }
        let Some(Course { cell: first, .. }) = self.courses.first() else {
            return Err(CannotPredict::no_cell());
        };
        let of_first = |why| CannotPredict { label: first.label.clone(), why };
        let recorded = first.run.host.preemption.model;
        let own_rules = rules_of(&first.run).map_err(of_first)?;
        let courses = Courses { all: &self.courses, recorded, own_rules };
        courses.predict(&self.question).map_err(of_first)
    }
}

/// Whether something can be predicted from a cell and `others` together: it differs from the first of them in its seed,
/// and in nothing else.
fn is_one_more(cell: &Cell, others: &[Cell]) -> Result<(), Unpredictable> {
    if others.iter().any(|other| other.key == cell.key) {
        return Err(Unpredictable::Twice);
    }
    let Some(first) = others.first() else { return Ok(()) };
    let (one, other) = (&first.run, &cell.run);
    let kernel = |run: &Run| (run.host.release.clone(), run.host.version.clone());
    let differences = [
        ("kernel", kernel(one) != kernel(other)),
        ("preemption model", one.host.preemption.model != other.host.preemption.model),
        ("load", one.plan.load != other.plan.load),
        ("plan", one.plan != other.plan),
        // It takes time of each wakeup.
        ("tracer", one.explanation.is_some() != other.explanation.is_some()),
    ];
    match differences.into_iter().find(|(_, is_other)| *is_other) {
        Some((what, _)) => Err(Unpredictable::Differs { what, first: first.label.clone() }),
        None => Ok(()),
    }
}

/// The rules of the model that ran.
fn rules_of(run: &Run) -> Result<Rules, Unpredictable> {
    rules(run.host.preemption.model).ok_or(Unpredictable::Model)
}

fn probe_of(run: &Run) -> Result<Probe, Unpredictable> {
    let plan = &run.plan;
    let priority = plan.priority.filter(|_| plan.policy.has_priority());
    match (plan.policy.to_string().as_str(), priority) {
        ("deadline", _) => Ok(Probe { prio: -1 }),
        (_, Some(priority)) => Ok(Probe { prio: 99 - i32::from(priority) }),
        (policy, None) => Err(Unpredictable::Policy(policy.into())),
    }
}

/// The course of a cell.
struct Course {
    cell: Cell,
    /// The names of functions, by their numbers.
    functions: Vec<String>,
    /// How long its guest measured, ns.
    window_ns: u64,
    replay: Replay,
}

impl Course {
    fn of(cell: Cell, edges: &Edges, question: &Question) -> Result<Self, Unpredictable> {
        let own_rules = rules_of(&cell.run)?;
        let probe = probe_of(&cell.run)?;
        if edges.edges.is_empty() {
            return Err(Unpredictable::Nothing);
        }
        let window_ns = edges.measured_ns();
        let preempts = own_rules.preempt_enable_schedules;
        let least_ns = question.shortest_ns().saturating_add(1);
        let seen = Seen::with_sections_of(edges, probe, preempts, least_ns);
        let replay = Replay::of(seen, &cell.run, &own_rules)?;
        let course = Self { cell, functions: edges.functions.clone(), window_ns, replay };
        match course.cuts(question) {
            count if count > MOST_CUTS => Err(Unpredictable::Cuts(count)),
            _ => Ok(course),
        }
    }

    /// How often it lets go of the CPU at most, whatever the ranking breaks up in addition.
    fn cuts(&self, question: &Question) -> u64 {
        let sections = &self.replay.seen.sections;
        let asked = self.breaks(question, &BTreeSet::new()).count(sections);
        let all = Breaks { limit_ns: Some(question.every_ns), ..Breaks::default() };
        asked.saturating_add(all.count(sections))
    }

    /// The number that a function has here; `None` if it was not seen.
    fn id(&self, function: &str) -> Option<u32> {
        let place = self.functions.iter().position(|known| known == function);
        place.and_then(|place| u32::try_from(place).ok())
    }

    fn name(&self, id: u32) -> Option<String> {
        self.functions.get(id as usize).cloned()
    }

    /// What is broken here, of what is asked for and of a ranking.
    fn breaks(&self, question: &Question, of_ranking: &BTreeSet<String>) -> Breaks {
        let asked = question.breaks.iter().map(|(name, every_ns)| (name, *every_ns));
        let ranked = of_ranking.iter().map(|name| (name, question.every_ns));
        let mut breaks = Breaks { limit_ns: question.limit_sections_ns, ..Breaks::default() };
        for (name, every_ns) in asked.chain(ranked) {
            let Some(id) = self.id(name) else { continue };
            let own_ns = breaks.functions.entry(id).or_insert(every_ns);
            *own_ns = every_ns.min(*own_ns);
        }
        breaks
    }

    /// Sections of a function that are longer.
    fn longer(&self, function: &str, every_ns: u64) -> u64 {
        let Some(id) = self.id(function) else { return 0 };
        let is_longer = |section: &&Section| {
            section.functions.contains(&Some(id)) && section.own_ns() > every_ns
        };
        self.replay.seen.sections.iter().filter(is_longer).count() as u64
    }

    /// The latest wakeup that could be due at any moment, with what is behind it by name.
    fn latest(&self, rules: &Rules, breaks: &Breaks, every_ns: u64) -> Option<Latest<String>> {
        let delays = self.replay.delays(rules, breaks);
        let latest = self.replay.latest(&delays)?;
        let functions = self.replay.behind(&latest, &delays, every_ns, breaks);
        let functions = functions.into_iter().filter_map(|id| self.name(id)).collect();
        Some(Latest { ns: latest.ns, functions })
    }

    /// What is recorded of its cell. `sample`: of the model that ran.
    fn record(&self, own_rules: &Rules, sample: Option<&Sample>) -> record::Cell {
        let Cell { key, label, run } = &self.cell;
        let measured = measured(run);
        let replayed = self.replay.at_its_own(own_rules);
        let phases = sample.and_then(|sample| latencies(&[sample])).unwrap_or_default();
        record::Cell {
            key: key.clone(),
            label: label.clone(),
            seed: run.seed,
            window_ns: self.window_ns,
            wakeups: self.replay.wakeups,
            explained: run.explanation.is_some(),
            path: self.replay.path(),
            not_repeated: NotRepeated::of(&measured, &replayed, &phases),
            measured,
            replayed,
        }
    }
}

fn measured(run: &Run) -> Measured {
    let all = run.expiries();
    let at = |place: usize| all.percentile(Percentile::SHOWN[place]);
    Measured { p50_ns: at(0), p99_ns: at(1), p999_ns: at(2), max_ns: all.max_ns }
}

/// The courses of cells that differ in nothing but their seeds; one at least.
struct Courses<'a> {
    all: &'a [Course],
    recorded: Model,
    own_rules: Rules,
}

impl Courses<'_> {
    fn predict(&self, question: &Question) -> Result<Prediction, Unpredictable> {
        let is_unseen = |name: &str| self.all.iter().all(|course| course.id(name).is_none());
        if let Some((name, _)) = question.breaks.iter().find(|(name, _)| is_unseen(name)) {
            return Err(Unpredictable::Function(name.clone()));
        }
        let own = self.samples(&self.own_rules, None);
        let cells = self.all.iter().zip(&own);
        let cells = cells.map(|(course, sample)| course.record(&self.own_rules, sample.as_ref()));
        let broken = question.breaks.iter().map(|(function, every_ns)| Break {
            function: function.clone(),
            every_ns: *every_ns,
            sections: self.all.iter().map(|course| course.longer(function, *every_ns)).sum(),
        });
        Ok(Prediction {
            schema: SCHEMA.into(),
            cells: cells.collect(),
            recorded: self.recorded,
            interval_ns: self.all.first().map_or(0, |course| course.cell.run.plan.interval_ns),
            phases: PHASES,
            breaks: broken.collect(),
            limit_sections_ns: question.limit_sections_ns,
            models: MODELS.map(|model| self.of_model(model, question)).into(),
            next: Some(self.ranking(question)),
            ..Prediction::default()
        })
    }

    fn of_model(&self, model: Model, question: &Question) -> Predicted {
        let reach = reach(self.recorded, model, Asks::of(self.all));
        let is_predicted = !matches!(reach, Reach::SpinLocks | Reach::OtherKernel);
        let rules = rules(model).filter(|_| is_predicted);
        let of = |question| {
            let samples = self.samples(&rules?, question);
            latencies(&samples.iter().flatten().collect::<Vec<_>>())
        };
        let has_breaks = !question.breaks.is_empty() || question.limit_sections_ns.is_some();
        let broken = has_breaks.then(|| of(Some(question))).flatten();
        Predicted { model, reach, as_recorded: of(None), broken }
    }

    /// Of each course, with what a question asks for broken up.
    fn samples(&self, rules: &Rules, question: Option<&Question>) -> Vec<Option<Sample>> {
        let breaks = |course: &Course| {
            question.map_or_else(Breaks::default, |of| course.breaks(of, &BTreeSet::new()))
        };
        self.all.iter().map(|course| course.replay.sample(rules, &breaks(course))).collect()
    }

    /// What to break up next under the model that ran, so that the latest wakeup of all courses is earlier.
    fn ranking(&self, question: &Question) -> Ranking {
        let every_ns = question.every_ns;
        let latest = |broken: &BTreeSet<String>| {
            let of = |course: &Course| {
                course.latest(&self.own_rules, &course.breaks(question, broken), every_ns)
            };
            // Of two, the first.
            self.all.iter().rev().filter_map(of).max_by_key(|latest| latest.ns)
        };
        let steps = ranking(STEPS, ERROR_PERCENT, &latest).into_iter().map(|step| Step {
            functions: step.functions,
            before_ns: step.before_ns,
            after_ns: step.after_ns,
        });
        Ranking { model: self.recorded, every_ns, steps: steps.collect() }
    }
}

/// What cells like these would measure. `None` if nobody is late in any of them.
fn latencies(samples: &[&Sample]) -> Option<Latencies> {
    let figure = |place: usize| {
        let of = |phases: fn(&Sample) -> &[[Option<u64>; 4]]| {
            let all = samples.iter().flat_map(|sample| phases(sample));
            Figures::of(all.filter_map(|figures| figures[place]).collect())
        };
        Some(range(of(|sample| &sample.phases)?, of(|sample| &sample.drawn)?))
    };
    let longest_ns = samples.iter().map(|sample| sample.longest_ns).max()?;
    let [p50, p99, p999, max] = [0, 1, 2, 3].map(figure);
    Some(Latencies { p50, p99, p999, max, longest_ns })
}

/// The median of a figure over the phases, and between what other cells are meant to measure it.
fn range(phases: Figures, drawn: Figures) -> Range {
    let error = |ns: u64| ns.saturating_mul(ERROR_PERCENT) / 100;
    let Figures { low_ns, high_ns, .. } = drawn;
    let (low_ns, high_ns) = (low_ns - error(low_ns), high_ns.saturating_add(error(high_ns)));
    let median_ns = phases.median_ns;
    Range { median_ns, low_ns: low_ns.min(median_ns), high_ns: high_ns.max(median_ns) }
}

#[cfg(test)]
mod tests;
