//! Whether runs are alike enough to be compared: what differs besides what one wants to compare.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::{count_of, listed};
use super::{Labelled, is_invalid, order};
use crate::binomial::largest_probability_of;
use wakescope_core::audio::AudioPlan;
use wakescope_core::finding::{Severity, Verdict};
use wakescope_core::host::scheduler;
use wakescope_core::line::{AnsweredBy, Attachment};
use wakescope_core::observation::{Observation, Tracing};
use wakescope_core::plan::Target;
use wakescope_core::run::TimeDomain;
use wakescope_core::source::{Omission, Quantity};
use wakescope_core::units::{SpanNs, grouped};

/// Intervals that differ by no more than this share are the same: a kernel without fine timers
/// rounds them.
const SAME_INTERVAL: f64 = 0.01;

/// In what runs are not alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What it is about: `interval`, `load`, `validity`, …
    pub what: String,
    /// The difference in a sentence.
    pub message: String,
    /// What there is, and which runs have it.
    pub values: Vec<Value>,
    /// Whether a comparison would say more about this than about what one wants to compare.
    pub matters: bool,
}

/// A value and the runs that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// In words.
    pub value: String,
    /// The labels of the runs.
    pub runs: Vec<String>,
}

impl Value {
    /// `2 % (a, b)`
    pub(super) fn with_runs(&self) -> String {
        format!("{} ({})", self.value, listed(&self.runs))
    }
}

/// Why runs are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A side has no runs.
    NoRuns,
    /// A run has no samples: its label.
    NoSamples(String),
    /// The sides do not hold the same quantities: those of new and those of old.
    Quantities(Vec<Quantity>, Vec<Quantity>),
    /// A run is given twice: its labels.
    Repeated(String, String),
    /// The runs are not alike in what matters.
    Differences(Vec<Difference>),
}

/// Refuses sides without runs, and runs without samples.
pub(super) fn refuse_nothing(new: &[Labelled], old: &[Labelled]) -> Result<(), Box<Refusal>> {
    if new.is_empty() || old.is_empty() {
        return Err(Box::new(Refusal::NoRuns));
    }
    match new.iter().chain(old).find(|l| l.run.threads.iter().all(|t| t.expiries.count == 0)) {
        Some(empty) => Err(Box::new(Refusal::NoSamples(empty.label.into()))),
        None => Ok(()),
    }
}

/// Refuses sides that do not hold the same quantities. Where it is asked to `mix` one with another,
/// that is a difference.
pub(super) fn mixture(
    new: &[Labelled],
    old: &[Labelled],
    mix: bool,
) -> Result<Option<Difference>, Box<Refusal>> {
    let (mut of_new, mut of_old) = (quantities(new), quantities(old));
    of_new.sort_unstable();
    of_old.sort_unstable();
    if of_new == of_old {
        return Ok(None);
    }
    if !mix || of_new.len() > 1 || of_old.len() > 1 {
        return Err(Box::new(Refusal::Quantities(of_new, of_old)));
    }
    let all: Vec<Labelled> = new.iter().chain(old).copied().collect();
    let values = by_value(&all, |run| Some(run.quantity().to_string()));
    Ok(Some(difference("quantity", values, true)))
}

/// Refuses differences that matter, unless forced.
pub(crate) fn refuse_differences(
    differences: Vec<Difference>,
    force: bool,
) -> Result<Vec<Difference>, Box<Refusal>> {
    let matters: Vec<Difference> = differences.iter().filter(|d| d.matters).cloned().collect();
    match matters.is_empty() || force {
        true => Ok(differences),
        false => Err(Box::new(Refusal::Differences(matters))),
    }
}

/// The quantities of some runs, each once, in order of appearance.
pub(crate) fn quantities(runs: &[Labelled]) -> Vec<Quantity> {
    let mut found = Vec::new();
    for quantity in runs.iter().map(|l| l.run.quantity()) {
        if !found.contains(&quantity) {
            found.push(quantity);
        }
    }
    found
}

/// In what `runs` are not alike, besides the kernel, which is what one compares.
pub(crate) fn differences(runs: &[Labelled]) -> Vec<Difference> {
    let mut found: Vec<Difference> =
        ASPECTS.iter().filter_map(|aspect| aspect.difference(runs)).collect();
    found.extend(of_intervals(runs));
    found.extend(of_commands(runs));
    found.extend(of_validity(runs));
    found.sort_by_key(|difference| !difference.matters);
    found
}

/// Something that all runs of a comparison should have in common.
struct Aspect {
    what: &'static str,
    /// Key of the record whose absence a file of another program declares; empty if none does.
    key: &'static str,
    matters: bool,
    /// The value in words; `None` where it means nothing.
    of: fn(&Observation) -> Option<String>,
}

const ASPECTS: &[Aspect] = &[
    Aspect { what: "time domain", key: "", matters: true, of: |run| Some(domain(run)) },
    Aspect {
        what: "threads",
        key: "",
        matters: true,
        of: |run| Some(threads(&run.plan.target).into()),
    },
    Aspect {
        what: "stimulus",
        key: "plan.stimulus",
        matters: true,
        of: |run| Some(run.plan.stimulus.to_string()),
    },
    Aspect { what: "line", key: "", matters: true, of: line },
    Aspect {
        what: "sound card",
        key: "",
        matters: true,
        of: |run| {
            let AudioPlan { fragment_ns, fragments, share_ppm, pcm } = run.plan.audio?;
            let fragment = SpanNs(fragment_ns);
            let card = if pcm.is_some() { "real" } else { "virtual" };
            Some(format!("{card}, {fragments} × {fragment} at {} %", share_ppm / 10_000))
        },
    },
    Aspect {
        what: "length of a gap",
        key: "plan.gap_from_ns",
        matters: true,
        of: |run| {
            run.plan.gap_from_ns.map(|ns| match ns {
                0 => "every reading of the clock".into(),
                ns => format!("{} or more", SpanNs(ns)),
            })
        },
    },
    Aspect { what: "load", key: "plan.load", matters: true, of: |run| Some(load(run)) },
    Aspect { what: "scenario", key: "", matters: true, of: scenario },
    Aspect { what: "omission", key: "", matters: true, of: |run| Some(omission(run).to_string()) },
    // Tracing takes instructions, which are virtual time, and more of it than of real time. A simulation takes none.
    Aspect { what: "tracer", key: "", matters: true, of: |run| tracer(run, TimeDomain::Virtual) },
    Aspect { what: "tracer", key: "", matters: false, of: |run| tracer(run, TimeDomain::Real) },
    Aspect { what: "policy", key: "plan.policy", matters: false, of: policy },
    Aspect { what: "CPUs", key: "plan.cpus", matters: false, of: cpus },
    Aspect { what: "idle states", key: "plan.idle_states", matters: false, of: idle_states },
    Aspect {
        what: "processor",
        key: "host.cpu_model",
        matters: false,
        of: |run| run.host.cpu_model.clone(),
    },
    Aspect {
        what: "hypervisor",
        key: "host.hypervisor",
        matters: false,
        of: |run| run.host.hypervisor.clone(),
    },
    Aspect { what: "clock", key: "host.clock", matters: false, of: clock },
    Aspect { what: "scheduler of sched_ext", key: "", matters: false, of: sched_ext },
    Aspect {
        what: "architecture",
        key: "host.arch",
        matters: false,
        of: |run| named(&run.host.arch),
    },
    Aspect { what: "program", key: "", matters: false, of: |run| Some(program(run)) },
];

impl Aspect {
    fn difference(&self, runs: &[Labelled]) -> Option<Difference> {
        let value = |run: &Observation| match is_unknown(run, self.key) {
            true => Some("not known".to_owned()),
            false => (self.of)(run),
        };
        let values = by_value(runs, value);
        let known = values.iter().filter(|v| v.value != "not known").count();
        (values.len() > 1).then(|| difference(self.what, values, self.matters && known > 1))
    }
}

pub(super) fn difference(what: &str, values: Vec<Value>, matters: bool) -> Difference {
    let text: Vec<String> = values.iter().map(Value::with_runs).collect();
    let message = format!("The runs differ in {what}: {}.", text.join("; "));
    Difference { what: what.into(), message, values, matters }
}

/// Which runs have which value, in order of appearance. Those without one are left out.
pub(super) fn by_value(
    runs: &[Labelled],
    of: impl Fn(&Observation) -> Option<String>,
) -> Vec<Value> {
    grouped_by_value(runs.iter().map(|labelled| (labelled.label, of(labelled.run))))
}

/// The same of labels and values.
pub(super) fn grouped_by_value<'a>(
    runs: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> Vec<Value> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut values: Vec<Value> = Vec::new();
    for (label, value) in runs {
        let Some(value) = value else { continue };
        let place = *places.entry(value.clone()).or_insert_with(|| {
            values.push(Value { value, runs: Vec::new() });
            values.len() - 1
        });
        // A file of several quantities is one run to its user.
        if values[place].runs.last().is_none_or(|last| last != label) {
            values[place].runs.push(label.into());
        }
    }
    values
}

/// Whether a file of another program says nothing of this key.
fn is_unknown(run: &Observation, key: &str) -> bool {
    !key.is_empty() && run.source.as_ref().is_some_and(|source| source.lacks(key))
}

fn domain(run: &Observation) -> String {
    match run.time_domain {
        TimeDomain::Real => "real",
        TimeDomain::Virtual => "virtual",
        TimeDomain::Simulated => "simulated",
    }
    .into()
}

/// Its loads, commands with what tells them from others of the same program.
fn load(run: &Observation) -> String {
    let marks = run.plan.load_marks.iter().map(String::as_str).chain(std::iter::repeat(""));
    let named = run.plan.load.iter().zip(marks).map(|(name, mark)| match mark {
        "" => name.clone(),
        mark => format!("{name} (command {mark})"),
    });
    let mut names: Vec<String> = named.collect();
    names.sort_unstable();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// What followed the wakeups of a run of wakescope in the time of `domain`.
fn tracer(run: &Observation, domain: TimeDomain) -> Option<String> {
    let Tracing { explained, sections, bound } = run.tracing;
    let parts = [(explained, "explain"), (sections, "sections"), (bound, "bound")];
    let parts: Vec<&str> = parts.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    let text = if parts.is_empty() { "none".into() } else { parts.join(", ") };
    (run.source.is_none() && run.time_domain == domain).then_some(text)
}

/// What was simulated, but not under which rules: these are what one compares.
fn scenario(run: &Observation) -> Option<String> {
    let scenario = run.plan.scenario.as_ref()?;
    Some(format!("{} ({})", scenario.name, scenario.checksum))
}

fn omission(run: &Observation) -> Omission {
    match (&run.source, run.plan.is_of_others()) {
        (Some(source), _) => source.omission,
        (None, false) if run.plan.stimulus.is_busy() => Omission::None,
        (None, false) => Omission::Counted,
        (None, true) => Omission::None,
    }
}

/// Whose wakeups a run is about, but not which of them: their IDs and names differ from boot to boot
/// and from version to version.
fn threads(target: &Target) -> &'static str {
    match target {
        Target::Probes => "probes",
        Target::Program { .. } => "those of the program",
        Target::Process { .. }
        | Target::Thread { .. }
        | Target::Comm { .. }
        | Target::Cgroup { .. }
        | Target::Tasks { .. }
        | Target::Unknown => "other threads",
    }
}

fn policy(run: &Observation) -> Option<String> {
    (!run.plan.is_of_others()).then(|| match (run.plan.priority, run.plan.runtime_ns) {
        (Some(priority), _) => format!("{} {priority}", run.plan.policy),
        (None, Some(runtime)) => format!("{} {}", run.plan.policy, SpanNs(runtime)),
        (None, None) => run.plan.policy.to_string(),
    })
}

fn cpus(run: &Observation) -> Option<String> {
    (!run.plan.is_of_others()).then(|| wakescope_core::host::cpu_ranges(&run.plan.cpus))
}

fn line(run: &Observation) -> Option<String> {
    let line = run.line.as_ref()?;
    let kind = match line.attachment {
        Attachment::Uart => "serial port",
        Attachment::Usb => "USB adapter",
        Attachment::Pseudoterminal => "pseudoterminal",
        Attachment::Loopback => "serial ports in loopback",
        Attachment::Gpio => "lines of a GPIO chip",
    };
    let speed = line.baud.map_or_else(String::new, |baud| format!(" at {baud} bits/s"));
    let answered = match line.answered_by {
        AnsweredBy::Responder => "",
        AnsweredBy::Echo => ", echoed",
    };
    Some(format!("{kind}{speed}{answered}"))
}

fn idle_states(run: &Observation) -> Option<String> {
    serde_json::to_value(run.plan.idle_states).ok()?.as_str().map(Into::into)
}

fn clock(run: &Observation) -> Option<String> {
    named(&run.host.clock.source)
}

/// The scheduler of sched_ext, which files of other programs do not tell. Watches have one for each boot.
fn sched_ext(run: &Observation) -> Option<String> {
    run.source.is_none().then(|| scheduler(run.host.sched_ext.as_deref()).into())
}

fn named(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.into())
}

fn program(run: &Observation) -> String {
    run.source.as_ref().map_or_else(|| "wakescope".into(), |source| source.tool.clone())
}

/// Intervals are numbers: they are the same if they are close.
fn of_intervals(runs: &[Labelled]) -> Option<Difference> {
    let interval = |run: &Observation| {
        let on_a_grid = !run.plan.is_of_others() && !run.plan.stimulus.is_busy();
        let known = on_a_grid && !is_unknown(run, "plan.interval_ns");
        known.then_some(run.plan.interval_ns)
    };
    let all = || runs.iter().filter_map(|l| interval(l.run));
    let (least, most) = (all().min()?, all().max()?);
    let apart = most as f64 > least as f64 * (1.0 + SAME_INTERVAL);
    let values = by_value(runs, |run| match interval(run) {
        Some(ns) => Some(SpanNs(ns).to_string()),
        None => Some("not known".into()),
    });
    (apart || values.len() > 1).then(|| difference("interval", values, apart))
}

/// Runs with commands of which only the program is known: their loads may differ all the same.
fn of_commands(runs: &[Labelled]) -> Option<Difference> {
    let is_command = |name: &str| name.starts_with("exec:");
    let marks =
        |run: &Observation| run.plan.load_marks.iter().filter(|mark| !mark.is_empty()).count();
    let commands = |run: &Observation| run.plan.load.iter().filter(|name| is_command(name)).count();
    let values = by_value(runs, |run| (commands(run) > marks(run)).then(|| "not known".to_owned()));
    let [unknown] = values.as_slice() else { return None };
    let message = format!(
        "The commands of the exec: loads may differ: the record has only their programs ({}).",
        listed(&unknown.runs)
    );
    (runs.len() > 1).then(|| Difference {
        what: "commands".into(),
        message,
        values,
        matters: false,
    })
}

/// Runs that are not valid, by what was found.
fn of_validity(runs: &[Labelled]) -> Option<Difference> {
    let doubtful: Vec<Labelled> =
        runs.iter().filter(|l| l.run.validity.verdict != Verdict::Valid).copied().collect();
    let values = by_value(&doubtful, |run| {
        let findings = run.validity.findings.iter().filter(|f| f.severity > Severity::Note);
        let codes: Vec<&str> = findings.map(|f| f.code.as_str()).collect();
        Some(format!("{}: {}", run.validity.verdict, codes.join(", ")))
    });
    if values.is_empty() {
        return None;
    }
    let text: Vec<String> = values.iter().map(Value::with_runs).collect();
    Some(Difference {
        what: "validity".into(),
        message: format!(
            "{} of {} not fully trustworthy: {}.",
            grouped(doubtful.len() as u64),
            count_of(runs.len(), "run"),
            text.join("; ")
        ),
        values,
        matters: doubtful.iter().any(|l| is_invalid(l.run)),
    })
}

/// Refuses a run that is given twice, on one side or on both, or in a series: no force can make it two.
pub(crate) fn refuse_repetitions(runs: &[Labelled]) -> Result<(), Box<Refusal>> {
    let mut first: BTreeMap<_, &str> = BTreeMap::new();
    for Labelled { label, run } in runs.iter().filter(|l| has_own_id(l.run)) {
        if let Some(before) = first.insert(run.id.as_str(), label) {
            return Err(Box::new(Refusal::Repeated(before.into(), (*label).into())));
        }
    }
    Ok(())
}

/// Whether no other run has the id of this one. Guests have none, and other programs' runs one that
/// their figures make.
fn has_own_id(run: &Observation) -> bool {
    run.source.is_none() && run.time_domain == TimeDomain::Real && !run.id.is_empty()
}

/// Runs that are alike to the sample: on a side, and, unless virtual time repeats itself, on both.
pub(super) fn repetitions(all: &[Labelled], sides: [&[Labelled]; 2]) -> Vec<Difference> {
    let of_sides = sides.into_iter().find_map(repeated);
    of_sides.or_else(|| repetition(all)).into_iter().collect()
}

/// Two of `runs` that are alike to the sample, unless virtual time repeats itself.
pub(crate) fn repetition(runs: &[Labelled]) -> Option<Difference> {
    let real = runs.iter().filter(|l| l.run.time_domain == TimeDomain::Real);
    repeated(&real.copied().collect::<Vec<_>>())
}

/// Two of `runs` that are the same: they would count as two.
fn repeated(runs: &[Labelled]) -> Option<Difference> {
    let mut by_counts: BTreeMap<_, Vec<Labelled>> = BTreeMap::new();
    for labelled in runs {
        by_counts.entry(counts(labelled.run)).or_default().push(*labelled);
    }
    let twice = by_counts.values().find_map(|alike| {
        let pairs = alike.iter().enumerate();
        let mut pairs =
            pairs.flat_map(|(at, first)| alike[at + 1..].iter().map(move |l| (first, l)));
        pairs.find(|(first, other)| {
            is_identical(first.run, other.run) || is_in_two_formats(first.run, other.run)
        })
    });
    twice.map(|(first, same)| {
        let labels = vec![first.label.to_owned(), same.label.to_owned()];
        Difference {
            what: "repetition".into(),
            message: format!(
                "{} and {} are the same run and would count as two.",
                first.label, same.label
            ),
            values: vec![Value { value: first.run.id.clone(), runs: labels }],
            matters: true,
        }
    })
}

/// What a run has in common with itself in every format: its quantity, and the samples of its threads with
/// the largest. Formats list threads in different orders.
fn counts(run: &Observation) -> (Quantity, Vec<(u64, Option<u64>)>) {
    let threads = run.threads.iter().map(|t| (t.expiries.count, t.expiries.max_ns));
    let mut threads: Vec<_> = threads.collect();
    threads.sort_unstable();
    (run.quantity(), threads)
}

fn is_identical(one: &Observation, other: &Observation) -> bool {
    (&one.id, &one.started, one.seed) == (&other.id, &other.started, other.seed)
        && (&one.threads, &one.expiries) == (&other.threads, &other.expiries)
}

/// Above this probability, two runs may well have the same histogram by chance. Of 100 runs with histograms
/// that are alike with less, two are taken for one with a probability of 5 % at most.
const BY_CHANCE: f64 = 1e-5;

/// Whether runs of other programs with the same [`counts`] are one run that is stated in two formats: their
/// histograms are the same, and have so many buckets that this is no chance. A format may not state the
/// start, each rounds the sum in its own way, and the id is made from what a file states.
fn is_in_two_formats(one: &Observation, other: &Observation) -> bool {
    let (Some(source), Some(other_source)) = (&one.source, &other.source) else { return false };
    let is_of_one_format =
        (&source.tool, &source.format) == (&other_source.tool, &other_source.format);
    let (began, other_began) = (order::start(one), order::start(other));
    let began_apart = began.is_some() && other_began.is_some() && began != other_began;
    let (histogram, other) = (&one.expiries.histogram, &other.expiries.histogram);
    let counts = || histogram.buckets().iter().map(|bucket| bucket.count).collect::<Vec<u64>>();
    !is_of_one_format
        && !began_apart
        && histogram == other
        && largest_probability_of(&counts()) < BY_CHANCE
}

/// That both sides have the same seeds in virtual time.
pub(super) fn of_seeds(new: &[Labelled], old: &[Labelled]) -> Option<String> {
    let seeds = |side: &[Labelled]| {
        let of_virtual = side.iter().filter(|l| l.run.time_domain == TimeDomain::Virtual);
        let mut seeds: Vec<u64> = of_virtual.map(|l| l.run.seed).collect();
        seeds.sort_unstable();
        seeds
    };
    let (new, old) = (seeds(new), seeds(old));
    (!new.is_empty() && new == old).then(|| {
        "Both sides have the same seeds in virtual time: `wakescope lab run --compare` pairs them and detects smaller differences.".into()
    })
}
