//! The late wakeups of a simulated run, explained by what a tracer would have seen of them.

use std::collections::BTreeMap;

use wakescope_attribution::{
    Machine, Seen, Tuning, account, calibrate, components, decide, irq_latency_ns,
};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{
    Above, Cause, ComponentTable, Known, TrueCause, Truth as Record, Wakeup,
};
use wakescope_core::histogram::Histogram;
use wakescope_core::recorder::Recorder;
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;
use wakescope_model::Simulation;
use wakescope_model::image::Image;
use wakescope_model::simulation::{Broken, Until};

use crate::both::{Both, Listener};
use crate::score::{Verdict, score};
use crate::shares::true_shares;
use crate::tracepoints::{Followed, Shown};
use crate::truth::Truth;

/// About so many of the latest wakeups are explained.
const EXPLAINED: u64 = 1_000;

/// No more than these are kept whole: where many are equally late, some of the late are not explained.
const KEPT: usize = 4_000;

/// It is looked whether to go on once in so much simulated time.
const STRIDE_NS: u64 = 1_000_000;

/// How long after its end a run is followed so that its last wakeups are seen to their end.
const AFTER_NS: u64 = 1_000_000_000;

/// Puts into `run`, which `image` gave, why its latest wakeups were late. The same is simulated again, and a
/// tracer watches; attribution is that of every other run. Calls `goes_on` again and again, with the number of
/// wakeups that were followed so far. Returns `false` if `goes_on` did: then nothing was explained.
///
/// # Errors
/// If the kernel broke a rule, which it then did the first time.
pub fn explain(
    image: &Image,
    run: &mut Run,
    goes_on: &dyn Fn(u64) -> bool,
) -> Result<bool, Broken> {
    let woken = run.woken();
    let late_ns = late_from_ns(&woken.histogram);
    let follower = Follower { parts: std::array::from_fn(|_| Recorder::new(0)), seen: 0 };
    let mut both = Both::new(image, Shown::default(), Followed::Probes, follower);
    both.keep(late_ns);
    let mut simulation = Simulation::new(image, run.seed, both);
    let end = run.duration_ns.saturating_add(AFTER_NS);
    while simulation.now_ns() < end && simulation.watch().ended() < woken.count {
        if !goes_on(simulation.watch().ended()) {
            return Ok(false);
        }
        let ns = simulation.now_ns().saturating_add(STRIDE_NS).min(end);
        simulation.run_until(Until { samples: u64::MAX, ns })?;
    }
    let mut both = simulation.into_watch();
    let truths = std::mem::take(&mut both.witness.truths);
    let seen = both.seen(run.duration_ns, woken);
    let machine = Machine::of(&run.host, run.time_domain);
    let known = calibrate(&seen.components, machine, true);
    let truth = compared(image, &seen.wakeups, &known, &truths);
    account(run, Seen { known: Some(known), ..seen }, Above::Time(SpanNs(late_ns)));
    add_truths(image, run, &truths);
    if let Some(explanation) = &mut run.explanation {
        explanation.truth = Some(truth);
    }
    Ok(true)
}

/// Adds to each listed wakeup what truly made it late. Wakeups that cannot be told from each other get none.
fn add_truths(image: &Image, run: &mut Run, truths: &[Truth]) {
    let mut places: BTreeMap<(u64, u64), Vec<&Truth>> = BTreeMap::new();
    for truth in truths {
        places.entry((truth.due, truth.latency_ns())).or_default().push(truth);
    }
    let origin_ns = run.origin_ns;
    let net = run.net_of_steal.iter_mut().flat_map(|net| &mut net.worst);
    for episode in run.worst.iter_mut().chain(net) {
        let place = (origin_ns.saturating_add(episode.expiry_ns), episode.wakeup_latency_ns);
        let may_be_it = |truth: &&&Truth| {
            let bound = image.tasks[truth.task.index()].cpu.map(|cpu| u32::from(cpu.0));
            bound.is_none_or(|bound| episode.cpu.is_none_or(|cpu| cpu == bound))
        };
        let same: Vec<_> = places.get(&place).into_iter().flatten().filter(may_be_it).collect();
        if let [truth] = same[..] {
            episode.truth = true_shares(image, truth);
        }
    }
}

/// How right attribution is about these wakeups.
fn compared(image: &Image, wakeups: &[Wakeup], known: &Known, truths: &[Truth]) -> Record {
    let truths: BTreeMap<(u32, u64), &Truth> =
        truths.iter().map(|truth| ((truth.pid(), truth.due), truth)).collect();
    let mut record = Record::default();
    let mut causes: BTreeMap<Cause, (u64, u64)> = BTreeMap::new();
    for wakeup in wakeups {
        let Some(truth) = truths.get(&(wakeup.task.pid, wakeup.marks.due.0)) else {
            record.uncompared += 1;
            continue;
        };
        let one = score(image, truth, &decide(&Tuning::default(), wakeup, known));
        record.wakeups += 1;
        *match one.first {
            Verdict::Right => &mut record.right,
            Verdict::Elsewhere => &mut record.other_function,
            Verdict::WrongBound(..) => &mut record.wrong_bound,
            Verdict::Wrong(..) => &mut record.wrong,
            Verdict::Unexplained(_) => &mut record.unexplained,
        } += 1;
        for (cause, ns, right_ns) in one.causes {
            let sums = causes.entry(cause).or_default();
            (sums.0, sums.1) = (sums.0 + ns, sums.1 + right_ns);
        }
    }
    let row = |(cause, (ns, right_ns))| TrueCause { cause, ns, right_ns };
    record.causes = causes.into_iter().map(row).collect();
    record.causes.sort_by_key(|row| std::cmp::Reverse(row.ns));
    record
}

/// The least lateness of a wakeup that is late: an edge of the histogram.
fn late_from_ns(all: &Histogram) -> u64 {
    let mut count = 0;
    let mut least = 0;
    for bucket in all.buckets().iter().rev() {
        if count > 0 && count + bucket.count > EXPLAINED {
            break;
        }
        count += bucket.count;
        least = bucket.lower;
    }
    least
}

/// The components of all wakeups that the tracer has seen.
struct Follower {
    /// See [`ComponentTable`], in the order of time.
    parts: [Recorder; 4],
    seen: u64,
}

impl Listener for Follower {
    /// Takes what the tracer has seen: it would keep it all.
    fn happened(both: &mut Both<'_, Self>, _: usize) {
        for marks in both.tracer.ended.drain(..) {
            let of_wakeup = components(&marks);
            let all = [
                irq_latency_ns(&marks),
                Some(of_wakeup.handler_duration_ns),
                Some(of_wakeup.sched_latency_ns),
                of_wakeup.sched_duration_ns,
            ];
            for (part, ns) in both.listener.parts.iter().zip(all) {
                if let Some(ns) = ns {
                    part.record(0, ns, 0, 0);
                }
            }
            both.listener.seen += 1;
        }
        if both.tracer.late.len() >= KEPT {
            both.keep(u64::MAX);
        }
    }
}

impl Both<'_, Follower> {
    /// Wakeups that came to an end, or that could not be followed to one.
    fn ended(&self) -> u64 {
        self.listener.seen + self.tracer.not_followed.len() as u64
    }

    /// What was seen of a run that ended then.
    fn seen(self, end_ns: u64, wakeup_latency: Distribution) -> Seen {
        let [irq_latency, handler_duration, sched_latency, sched_duration] =
            self.listener.parts.map(|part| without_times(part.snapshot().woken));
        let components = ComponentTable {
            irq_latency,
            handler_duration,
            sched_latency,
            sched_duration: Some(sched_duration).filter(|part| part.count > 0),
        };
        let late = self.tracer.late.iter().filter(|seen| seen.marks.response.0 <= end_ns);
        let mut wakeups: Vec<_> =
            self.tracer.with_decoder(|decoder| late.map(|seen| decoder.wakeup(seen)).collect());
        wakeups
            .sort_by_key(|wakeup| std::cmp::Reverse(wakeup.marks.response.since(wakeup.marks.due)));
        Seen {
            records: wakeups.len() as u64,
            wakeups,
            components,
            wakeup_latency,
            broken: self.tracer.not_followed.len() as u64,
            seen_with: self.tracer.seen_with(),
            ..Seen::default()
        }
    }
}

/// When the extremes of components came is not known.
fn without_times(mut part: Distribution) -> Distribution {
    part.max_at_ns = None;
    part
}
