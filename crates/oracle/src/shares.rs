//! The truth of a wakeup in the terms of its record.

use std::collections::BTreeMap;

use wakescope_core::explain::{Cause, Culprit, Function, Phase, TrueShare};
use wakescope_decode::KernelTask;
use wakescope_model::Image;
use wakescope_model::image::{StackId, TaskId};

use crate::tracepoints::places::{comm, pid, policy};
use crate::truth::{Truth, Who};

/// The most shares of a wakeup that are listed one by one. The others are summed up, one share for each cause.
const MOST: usize = 12;

/// What the time of a wakeup went to, the largest share first. The shares add up to its latency. Where several
/// answers are right, it is the best one.
pub(crate) fn true_shares(image: &Image, truth: &Truth) -> Vec<TrueShare> {
    let mut lengths: BTreeMap<(Cause, Who), u64> = BTreeMap::new();
    for stretch in &truth.stretches {
        *lengths.entry(stretch.answers[0]).or_default() += stretch.ns;
    }
    let mut all: Vec<((Cause, Who), u64)> = lengths.into_iter().collect();
    all.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
    let mut rest: BTreeMap<Cause, u64> = BTreeMap::new();
    for ((cause, _), ns) in all.drain(MOST.min(all.len())..) {
        *rest.entry(cause).or_default() += ns;
    }
    let rest = rest.into_iter().map(|(cause, ns)| TrueShare { cause, ns, ..TrueShare::default() });
    let mut shares: Vec<TrueShare> = all
        .into_iter()
        .map(|((cause, who), ns)| share(image, cause, who, ns))
        .chain(rest)
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
    shares
}

fn share(image: &Image, cause: Cause, who: Who, ns: u64) -> TrueShare {
    let source = |index: usize| image.sources[index].name.as_str();
    let culprit = match who {
        Who::Any if cause == Cause::Steal => Culprit::Hypervisor,
        Who::Any | Who::Delivery => Culprit::None,
        Who::Task(task) => Culprit::Task(thread(image, task).decoded().named()),
        Who::Source(source_id) if cause == Cause::Nmi => Culprit::nmi(source(source_id.index())),
        Who::Source(source_id) => Culprit::interrupt(source(source_id.index())),
        Who::Timer(stack) => Culprit::timer(innermost(image, stack)),
        Who::Softirq(number) => Culprit::softirq(&wakescope_core::softirq::softirq_name(number)),
        Who::Function(stack) => function(innermost(image, stack)),
        Who::Scheduler(_) => function("__schedule"),
    };
    let phase = match who {
        Who::Delivery => Some(Phase::Delivery),
        Who::Any if cause == Cause::Scheduler => Some(Phase::Switch),
        _ => None,
    };
    TrueShare { cause, ns, culprit, phase }
}

/// A task, with the priority that is its own.
fn thread(image: &Image, task: TaskId) -> KernelTask {
    let known = &image.tasks[task.index()];
    KernelTask {
        pid: pid(Some(task)),
        prio: known.policy.prio().into(),
        policy: policy(known.policy),
        comm: comm(&known.name),
    }
}

fn function(name: &str) -> Culprit {
    Culprit::function((!name.is_empty()).then(|| Function { name: name.into(), module: None }))
}

/// The innermost function of a stack; empty for the code of a task that is in none.
fn innermost(image: &Image, stack: StackId) -> &str {
    let function = image.stacks[stack.index()].last();
    function.map_or("", |function| &image.functions[function.index()])
}
