//! What a CPU is at, as signals side by side.

use wakescope_core::explain::Share;
use wakescope_core::scope::signals::{Signal, Slice};
use wakescope_core::softirq::softirq_name;

use super::cpu::Cpu;
use super::cut::Cut;
use super::is_same;

/// Signals of different kinds.
const TRACKS: usize = 8;

/// The signals of a wakeup, whose shares of blame come in order of time.
pub(super) fn slices(before: &Cpu, cut: &Cut, shares: &[Share]) -> Vec<Slice> {
    let mut all = held_up(shares);
    let mut open: [Option<Slice>; TRACKS] = Default::default();
    let mut cpu = before.clone();
    let due_ns = cut.late.due_ns;
    let length_ns = cut.late.response_ns.saturating_sub(due_ns);
    change(&mut open, signals_of(&cpu), 0, &mut all);
    for edge in cut.within {
        cpu.apply(edge);
        change(&mut open, signals_of(&cpu), edge.at_ns.saturating_sub(due_ns), &mut all);
    }
    change(&mut open, Default::default(), length_ns, &mut all);
    all.sort_by_key(|slice| (slice.at_ns, slice.what.track()));
    all
}

/// Shares one after the other; those with the same blame are one.
fn held_up(shares: &[Share]) -> Vec<Slice> {
    let mut all: Vec<(u64, Share)> = Vec::new();
    let mut at_ns = 0;
    for share in shares {
        match all.last_mut() {
            Some((_, last)) if is_same(last, share) => last.ns += share.ns,
            _ => all.push((at_ns, share.clone())),
        }
        at_ns += share.ns;
    }
    let slice = |(at_ns, share): (u64, Share)| Slice {
        at_ns,
        ns: share.ns,
        what: Signal::HeldUp(Box::new(share)),
    };
    all.into_iter().map(slice).collect()
}

/// The signals that are on, by their tracks.
fn signals_of(cpu: &Cpu) -> [Option<Signal>; TRACKS] {
    let preempt = cpu.state.preempt;
    let on = [
        cpu.state.irqs_off.then(|| Signal::IrqsOff(cpu.place(cpu.irqs_off))),
        preempt.is_off().then(|| Signal::PreemptOff(cpu.place(cpu.preempt_off))),
        cpu.interrupt().map(|entered| Signal::Interrupt(cpu.name_of(entered))),
        cpu.softirq.filter(|_| preempt.in_softirq()).map(|n| Signal::Softirq(softirq_name(n))),
        preempt.need_resched().then_some(Signal::NeedResched),
        cpu.awaits_timer().then_some(Signal::TimerSet),
        cpu.edges.task(cpu.state.task).map(|task| Signal::Task(task.named(), cpu.state.in_user)),
    ];
    let mut all: [Option<Signal>; TRACKS] = Default::default();
    for signal in on.into_iter().flatten() {
        let track = signal.track();
        all[track] = Some(signal);
    }
    all
}

/// Ends what is off or another one, and begins what is on.
fn change(
    open: &mut [Option<Slice>; TRACKS],
    now: [Option<Signal>; TRACKS],
    at_ns: u64,
    into: &mut Vec<Slice>,
) {
    for (open, now) in open.iter_mut().zip(now) {
        if open.as_ref().map(|slice| &slice.what) == now.as_ref() {
            continue;
        }
        if let Some(slice) = open.take() {
            let ns = at_ns.saturating_sub(slice.at_ns);
            into.extend((ns > 0).then_some(Slice { ns, ..slice }));
        }
        *open = now.map(|what| Slice { at_ns, ns: 0, what });
    }
}
