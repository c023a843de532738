//! The driver of every measurement: begin, look, checkpoint, end.
//!
//! It is the same for probes of this process and for threads of others, on a machine and in a guest
//! of the lab. What differs is the [`Measurement`]; who watches gives a [`Screen`], [`Signals`] and a
//! [`Storage`].

use std::io;

use wakescope_core::plan::Plan;
use wakescope_core::run::Run;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::signal::{EndSignals, Signal};

use crate::measurement::{Measurement, Progress, Request, SampleSink};
use crate::observer::Observer;
use crate::session::{Following, MeasureError, Session};

/// How often it is verified that everything is still as it should be.
const VERIFY: SpanNs = SpanNs(1_000_000_000);
/// How often saved samples are taken from the probes.
const DRAIN: SpanNs = SpanNs(100_000_000);
/// The shortest wait between two looks.
const SHORTEST: SpanNs = SpanNs(2_000_000);

/// Requests to end a measurement.
pub trait Signals {
    /// Waits for a request, for `span` at most.
    fn wait(&mut self, span: SpanNs) -> Waited;
}

/// How a wait for a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The time was over.
    InVain,
    /// This process was stopped meanwhile, and goes on.
    Stopped,
    /// There is a request to end: `SIGINT`.
    Asked(String),
}

impl Signals for EndSignals {
    fn wait(&mut self, span: SpanNs) -> Waited {
        self.fetch(span).into()
    }
}

impl From<io::Result<Signal>> for Waited {
    fn from(fetched: io::Result<Signal>) -> Self {
        match fetched {
            Ok(signal) => Self::Asked(signal.name().to_owned()),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => Self::Stopped,
            Err(_) => Self::InVain,
        }
    }
}

/// Shows how a measurement stands.
pub trait Screen {
    /// The measurement has not begun yet, and waits for `span` before it does.
    fn wait(&mut self, span: SpanNs);
    /// The measurement of `plan` has begun.
    fn begin(&mut self, plan: &Plan);
    /// How often to call [`Self::show`]; `None` if never.
    fn pace(&self) -> Option<SpanNs>;
    /// Shows `progress`.
    fn show(&mut self, progress: &Progress);
    /// Removes what is shown.
    fn clear(&mut self);
}

/// Keeps a run while it is measured.
pub trait Storage: SampleSink {
    /// How often to call [`Self::checkpoint`]; `None` if never.
    fn pace(&self) -> Option<SpanNs>;
    /// Keeps the record of a run that goes on, in place of the last one.
    fn checkpoint(&mut self, run: Run);
}

/// Carries out `request` from beginning to end, and returns its record.
///
/// A signal before the first wakeup is measured is an error; a later one ends the measurement early.
pub fn measure(
    request: Request,
    observer: &mut dyn Observer,
    signals: &mut dyn Signals,
    screen: &mut dyn Screen,
    storage: &mut impl Storage,
) -> Result<Run, MeasureError> {
    let is_of_others = request.plan.is_of_others();
    let mut pause = |span| {
        screen.wait(span);
        wait_until(clock::now().after(span), signals)
    };
    let measurement: Box<dyn Measurement> = match is_of_others {
        true => Box::new(Following::begin(request, observer)?),
        false => Box::new(Session::begin(request, observer, &mut pause)?),
    };
    Ok(carry_out(measurement, observer, signals, screen, storage))
}

fn carry_out(
    mut measurement: Box<dyn Measurement>,
    observer: &mut dyn Observer,
    signals: &mut dyn Signals,
    screen: &mut dyn Screen,
    storage: &mut impl Storage,
) -> Run {
    screen.begin(measurement.plan());
    let drain = measurement.plan().save_samples.then_some(DRAIN);
    let mut verify = Periodic::new(Some(VERIFY));
    let mut show = Periodic::new(screen.pace());
    let mut checkpoint = Periodic::new(storage.pace());
    let mut ended_by = None;
    while ended_by.is_none() && !measurement.is_finished() {
        let now = clock::now();
        let paces = [Some(VERIFY), drain, screen.pace(), storage.pace(), observer.pace(now)];
        let pace = paces.into_iter().flatten().min().unwrap_or(VERIFY);
        let near_end = until_next_look(measurement.planned_end(), now);
        match signals.wait(pace.min(near_end).max(SHORTEST)) {
            Waited::InVain => {}
            // It lasted as long as the wait at most.
            Waited::Stopped => measurement.was_stopped(clock::now().since(now)),
            Waited::Asked(signal) => ended_by = Some(signal),
        }
        measurement.drain(storage);
        observer.look(clock::now());
        let now = clock::now();
        if show.is_due(now) {
            screen.show(&measurement.progress(observer));
        }
        if verify.is_due(now) {
            measurement.verify();
        }
        if checkpoint.is_due(now) {
            let mut run = measurement.checkpoint();
            observer.complete_checkpoint(&mut run);
            storage.checkpoint(run);
        }
    }
    screen.clear();
    let mut run = measurement.end(ended_by, storage);
    observer.complete(&mut run);
    run
}

/// Near the planned end, looks are frequent: whoever measures for 10 s does not want to wait 11. Beyond it,
/// as where expiries were missed, they become rarer again: each look can itself delay a wakeup.
fn until_next_look(planned_end: MonoNs, now: MonoNs) -> SpanNs {
    let overrun = now.since(planned_end);
    planned_end.since(now).max(SpanNs(overrun.0 / 16))
}

/// Waits until then, or for a request to end. `Stopped` if a stop of this process lasted until then or
/// longer; one that was over before is none of it.
fn wait_until(then: MonoNs, signals: &mut dyn Signals) -> Waited {
    loop {
        let waited = signals.wait(then.since(clock::now()));
        if matches!(waited, Waited::Asked(_)) || clock::now() >= then {
            return waited;
        }
    }
}

/// Something to do again and again.
struct Periodic {
    every: Option<SpanNs>,
    next: MonoNs,
}

impl Periodic {
    /// Due after `every`, and from then on `every` after each time; never if that is `None`.
    fn new(every: Option<SpanNs>) -> Self {
        Self { every, next: clock::now().after(every.unwrap_or_default()) }
    }

    fn is_due(&mut self, now: MonoNs) -> bool {
        let Some(every) = self.every.filter(|_| now >= self.next) else { return false };
        self.next = now.after(every);
        true
    }
}

#[cfg(test)]
mod tests;
