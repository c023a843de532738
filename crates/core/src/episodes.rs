//! `episodes.jsonl`: what a tracer saw of each late wakeup, so that time can be attributed anew by
//! later rules. docs/episodes.md describes it, docs/reference/episode.schema.json defines it.
//!
//! Each line is JSON: a [`Head`] says what holds for all [`Line`]s up to the next head.

use serde::{Deserialize, Serialize};

mod event;
mod reader;

use event::EventLine;
pub use reader::read;

use crate::explain::{
    Above, Components, Context, Event, GivenUp, Known, KnownSwitches, Marks, RunTimes, Share,
    Taken, Task, Wakeup, WokenBy,
};
use crate::preemption::Model;
use crate::run::Run;
use crate::units::MonoNs;

/// The schema that this version writes.
pub const SCHEMA: &str = "wakescope.episode/1";

/// A line is at most so long, bytes: a wakeup whose CPU filled its ring of events takes a tenth of it.
pub const LONGEST_LINE: usize = 1 << 20;

/// What holds for the episodes in the lines below.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// [`SCHEMA`].
    pub schema: String,
    /// The id of the run.
    pub run: String,
    /// `CLOCK_MONOTONIC` at the start of the run, from which `expiry_ns` counts.
    #[serde(default)]
    pub origin_ns: u64,
    /// Which wakeups are late: `p99.9`, `50us`.
    pub above: Above,
    /// The kernel's release.
    #[serde(default)]
    pub release: String,
    /// The architecture.
    #[serde(default)]
    pub arch: String,
    /// The preemption model in force.
    #[serde(default)]
    pub model: Model,
    /// The loads that ran. A `disturb-` load names what it did and for how long: there the cause is
    /// known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<String>,
    /// What all wakeups of the run taught about each.
    #[serde(default)]
    pub known: Known,
}

impl Head {
    /// The head of the episodes of `run`, of which those count as late that are `above`.
    pub fn of(run: &Run, above: Above, known: Known) -> Self {
        Self {
            schema: SCHEMA.into(),
            run: run.id.clone(),
            origin_ns: run.origin_ns,
            above,
            release: run.host.release.clone(),
            arch: run.host.arch.clone(),
            model: run.host.preemption.model,
            load: run.plan.load.clone(),
            known,
        }
    }
}

/// A late wakeup with the answer that it was given: its components, and whose its time was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributed {
    /// What was seen.
    pub wakeup: Wakeup,
    /// What it was made of.
    pub components: Components,
    /// What its time was blamed on, the largest share first.
    pub blame: Vec<Share>,
}

/// An episode, as it is written. Times are nanoseconds from the expiry, but for `expiry_ns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    expiry_ns: i64,
    wakeup_latency_ns: u64,
    cpu: u32,
    task: Task,
    woken_by: WokenBy,
    #[serde(default)]
    marks: MarksLine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    normal_prio: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted: Option<Context>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given_up: Option<GivenUp>,
    #[serde(default)]
    events: Vec<EventLine>,
    #[serde(default, skip_serializing_if = "is_zero")]
    lost: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known_switches: Option<KnownSwitchesLine>,
    #[serde(default, skip_serializing_if = "RunTimes::is_empty")]
    ran: RunTimes,
    #[serde(default, skip_serializing_if = "Taken::is_empty")]
    taken: Taken,
    #[serde(default, skip_serializing_if = "is_zero")]
    page_faults: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    throttled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    throttled_from_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    irqs_off_ns: Option<(i64, i64)>,
    #[serde(default, skip_serializing_if = "is_zero")]
    stolen_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quota_ns: Option<u64>,
    components: Components,
    blame: Vec<Share>,
}

/// The points of a wakeup between its expiry and its response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct MarksLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    irq_entry_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    irq_exit_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sched_entry_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    switch_in_ns: Option<i64>,
}

/// From when on every switch is known, and how long interrupts took from then on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct KnownSwitchesLine {
    from_ns: i64,
    interrupts_ns: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // So serde calls it.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The time from `origin` to `at`. Modulo 2^64, so that it leads back whatever the two are.
fn from_origin(at: MonoNs, origin: MonoNs) -> i64 {
    i64::from_ne_bytes(at.0.wrapping_sub(origin.0).to_ne_bytes())
}

fn to_time(from_origin: i64, origin: MonoNs) -> MonoNs {
    MonoNs(origin.0.wrapping_add(u64::from_ne_bytes(from_origin.to_ne_bytes())))
}

impl Line {
    /// The line of an episode in a run that began at `origin_ns`. Stacks of shares are left out: they
    /// are those of the wakeup.
    pub fn of(episode: Attributed, origin_ns: u64) -> Self {
        let Attributed { wakeup, components, mut blame } = episode;
        let Wakeup {
            cpu,
            task,
            normal_prio,
            woken_by,
            marks,
            interrupted,
            events,
            lost,
            known_switches,
            ran,
            taken,
            given_up,
            page_faults,
            throttled,
            throttled_from,
            irqs_off,
            stolen_ns,
            quota_ns,
        } = wakeup;
        let Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response } = marks;
        let since = |at: MonoNs| from_origin(at, due);
        blame.iter_mut().for_each(without_stacks);
        Self {
            expiry_ns: from_origin(due, MonoNs(origin_ns)),
            wakeup_latency_ns: response.0.wrapping_sub(due.0),
            cpu,
            task,
            normal_prio,
            woken_by,
            marks: MarksLine {
                irq_entry_ns: irq_entry.map(since),
                irq_exit_ns: irq_exit.map(since),
                sched_entry_ns: sched_entry.map(since),
                switch_in_ns: switch_in.map(since),
            },
            interrupted,
            given_up,
            events: events.into_iter().map(|e| EventLine::of(since(e.at), e.what)).collect(),
            lost: lost.into(),
            known_switches: known_switches.map(|KnownSwitches { from, interrupts_ns }| {
                KnownSwitchesLine { from_ns: since(from), interrupts_ns }
            }),
            ran,
            taken,
            page_faults,
            throttled,
            throttled_from_ns: throttled_from.map(since),
            irqs_off_ns: irqs_off.map(|(off, on)| (since(off), since(on))),
            stolen_ns,
            quota_ns,
            components,
            blame,
        }
    }

    /// The episode of a run that began at `origin_ns`.
    ///
    /// # Errors
    /// If an event lacks what its kind has, or the recorded answer does not add up to the latency.
    pub fn attributed(self, origin_ns: u64) -> Result<Attributed, LineError> {
        let Self { components, blame, wakeup_latency_ns, .. } = &self;
        let shares = blame.iter().try_fold(0_u64, |sum, share| sum.checked_add(share.ns));
        let parts = components.checked_total_ns();
        if shares != Some(*wakeup_latency_ns) || parts != Some(*wakeup_latency_ns) {
            return Err(LineError::Sum(*wakeup_latency_ns));
        }
        let due = to_time(self.expiry_ns, MonoNs(origin_ns));
        let at = |ns: i64| to_time(ns, due);
        let event = |line: EventLine| {
            let at = at(line.at_ns());
            line.what().map(|what| Event { at, what })
        };
        let marks = Marks {
            due,
            irq_entry: self.marks.irq_entry_ns.map(at),
            irq_exit: self.marks.irq_exit_ns.map(at),
            sched_entry: self.marks.sched_entry_ns.map(at),
            switch_in: self.marks.switch_in_ns.map(at),
            response: MonoNs(due.0.wrapping_add(self.wakeup_latency_ns)),
        };
        let wakeup = Wakeup {
            cpu: self.cpu,
            task: self.task,
            normal_prio: self.normal_prio,
            woken_by: self.woken_by,
            marks,
            interrupted: self.interrupted,
            events: self.events.into_iter().map(event).collect::<Result<_, _>>()?,
            lost: u32::try_from(self.lost).unwrap_or(u32::MAX),
            known_switches: self.known_switches.map(
                |KnownSwitchesLine { from_ns, interrupts_ns }| KnownSwitches {
                    from: at(from_ns),
                    interrupts_ns,
                },
            ),
            ran: self.ran,
            taken: self.taken,
            given_up: self.given_up,
            page_faults: self.page_faults,
            throttled: self.throttled,
            throttled_from: self.throttled_from_ns.map(at),
            irqs_off: self.irqs_off_ns.map(|(off, on)| (at(off), at(on))),
            stolen_ns: self.stolen_ns,
            quota_ns: self.quota_ns,
        };
        Ok(Attributed { wakeup, components: self.components, blame: self.blame })
    }
}

impl Attributed {
    /// The wakeup latency, nanoseconds.
    pub fn wakeup_latency_ns(&self) -> u64 {
        self.components.total_ns()
    }
}

/// A share as episodes hold it.
pub fn without_stacks(share: &mut Share) {
    share.frames.clear();
    share.given_up_at.clear();
    share.user_stack.clear();
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// What holds for the next ones.
    Head(Box<Head>),
    /// An episode.
    Episode(Box<Line>),
}

impl Entry {
    /// What a line says.
    ///
    /// # Errors
    /// If it is damaged, or of another schema.
    pub fn read(line: &[u8]) -> Result<Self, LineError> {
        #[derive(Deserialize)]
        struct Schema {
            schema: Option<String>,
        }
        if !line.starts_with(HEAD_BEGINS) {
            return serde_json::from_slice(line)
                .map(|line| Self::Episode(Box::new(line)))
                .map_err(|e| LineError::Malformed(e.to_string()));
        }
        let malformed = |e: serde_json::Error| LineError::Malformed(e.to_string());
        let Schema { schema } = serde_json::from_slice(line).map_err(malformed)?;
        match schema.as_deref() {
            Some(SCHEMA) => serde_json::from_slice(line).map(Self::Head).map_err(malformed),
            other => Err(LineError::Schema(other.unwrap_or_default().chars().take(80).collect())),
        }
    }

    /// The line, with its end.
    pub fn text(&self) -> String {
        let text = match self {
            Self::Head(head) => serde_json::to_string(head),
            Self::Episode(line) => serde_json::to_string(line),
        };
        // Maps have string keys and numbers are integers: there is nothing that could fail.
        text.unwrap_or_default() + "\n"
    }
}

/// What every head begins with, and no episode.
const HEAD_BEGINS: &[u8] = b"{\"schema\"";

/// Why a line cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is no JSON of this shape.
    #[error("it is damaged: {0}")]
    Malformed(String),
    /// A head of another schema.
    #[error("its schema is `{0}`, this wakescope reads `{SCHEMA}`")]
    Schema(String),
    /// The recorded answer does not add up to this wakeup latency, nanoseconds.
    #[error("its components or its shares of blame do not add up to {0} ns")]
    Sum(u64),
    /// An event of this kind lacks this key.
    #[error("an event of the kind {0} lacks `{1}`")]
    Lacks(&'static str, &'static str),
    /// It is longer than [`LONGEST_LINE`].
    #[error("it is longer than {} MiB", LONGEST_LINE >> 20)]
    Long,
    /// No head comes before it.
    #[error("no line with `schema` comes before it")]
    NoHead,
}

#[cfg(test)]
mod tests;
