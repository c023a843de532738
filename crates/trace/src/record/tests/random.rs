//! From the bytes of a record to its blame: what BPF programs write at random.
//!
//! Each property has a seed of its own, which a failure prints with the smallest case that fails.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{RngSeed, TestError, TestRunner};

use wakescope_attribution::{Part, Seen, account, blame, components, rank, timeline};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Above, Cause, Culprit, Evidence, Known, Share};
use wakescope_core::run::{Episode, Run, Thread};
use wakescope_core::units::SpanNs;

use super::drawn::{DUE, Drawn, Kind, Timed, lengths, wakeups};
use super::encode::{Form, Record};
use super::*;

/// Where the registers are that a copied stack begins with.
const REGISTERS: u64 = 0xffff_c900_0000_1f58;

type Checked = Result<(), TestCaseError>;

/// Checks a property of `cases` values that are drawn from a seed.
#[track_caller]
fn check_all<S: Strategy>(seed: u64, cases: u32, strategy: S, test: impl Fn(S::Value) -> Checked) {
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match TestRunner::new(config).run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(why, value)) => panic!("seed {seed}: {why}\n{value:#?}"),
        Err(TestError::Abort(why)) => panic!("seed {seed}: {why}"),
    }
}

fn forms() -> impl Strategy<Value = Form> {
    select(vec![Form::Short, Form::Copied, Form::Long])
}

/// What leaves the kernel of a wakeup.
#[derive(Clone, Debug)]
struct DrawnRecord {
    drawn: Drawn,
    form: Form,
    /// Whether its stack is in the copy, to be walked, where there is one.
    copied: bool,
    /// How many events it states beyond those that it has room for; `None` if it states what it holds.
    overstated: Option<u32>,
    /// Events that the kernel says were lost, beside those that there is no room for.
    lost: u32,
}

/// Records of wakeups whose events are lost, or out of order, or neither.
fn records() -> impl Strategy<Value = DrawnRecord> {
    let pairs = any::<(Index, Index)>();
    // Pairs of events that exchange their times.
    let exchanged = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec(pairs, 1..4),
    ];
    let overstated = prop_oneof![8 => Just(None), 1 => (1_u32..1_000).prop_map(Some)];
    let lost = prop_oneof![3 => Just(0_u32), 1 => 1_u32..500];
    let rest = (exchanged, overstated, lost);
    (wakeups(300), forms(), any::<bool>(), rest).prop_map(
        |(mut drawn, form, copied, (exchanged, overstated, lost))| {
            let count = drawn.events.len();
            for (a, b) in exchanged.iter().filter(|_| count > 0) {
                let (a, b) = (a.index(count), b.index(count));
                let times = (drawn.events[a].at, drawn.events[b].at);
                (drawn.events[a].at, drawn.events[b].at) = (times.1, times.0);
            }
            DrawnRecord { drawn, form, copied, overstated, lost }
        },
    )
}

impl DrawnRecord {
    /// How many of the first events there is no room for.
    fn left_out(&self) -> usize {
        self.drawn.events.len().saturating_sub(self.form.room())
    }

    /// How many of those came after the wakeup had begun, which is when its interrupt came.
    fn left_out_since_it_began(&self) -> usize {
        let began = self.drawn.marks[0].unwrap_or(DUE);
        let events = &self.drawn.events;
        let before = events.iter().position(|event| event.at >= began).unwrap_or(events.len());
        self.left_out().saturating_sub(before)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut wakeup = self.drawn.raw();
        let stack = &self.drawn.head.stack;
        let in_copy = self.is_in_copy();
        if !in_copy {
            wakeup.stack[..stack.len()].copy_from_slice(stack);
            wakeup.stack_bytes = i32::try_from(size_of_val(&stack[..])).unwrap();
        }
        let kept = self.drawn.events[self.left_out()..].iter();
        let events: Vec<RawEvent> = kept.map(Timed::raw).collect();
        let count = |count: usize| u32::try_from(count).unwrap();
        let stated = match self.overstated {
            Some(more) => count(self.form.room()) + more,
            None => count(events.len()),
        };
        Record {
            form: self.form,
            wakeup: &wakeup,
            events: &events,
            stated,
            lost: count(self.left_out_since_it_began()) + self.lost,
            switches_from: 0,
            in_interrupts: u64::MAX,
            taken: Taken { all: u64::MAX, softirqs: u64::MAX / 2, nmis: 7 },
            registers: if in_copy { REGISTERS } else { 0 },
            ran: &[],
            all_ran: [0; 2],
        }
        .bytes()
    }

    fn is_in_copy(&self) -> bool {
        self.copied && self.form != Form::Short && !self.drawn.head.stack.is_empty()
    }

    /// The record, read.
    fn seen(&self) -> KernelWakeup {
        let walked = std::cell::Cell::new(false);
        let seen = part_of(&self.bytes(), |copy| {
            walked.set(true);
            let pieces = copy.bytes.iter().enumerate();
            let is_written = |(i, piece): (usize, &[u8; 256])| {
                copy.at[i] == REGISTERS + 256 * i as u64
                    && piece.iter().all(|&byte| usize::from(byte) == i)
            };
            assert!(copy.registers == REGISTERS && pieces.clone().all(is_written));
            self.drawn.head.stack.clone()
        });
        assert_eq!(walked.get(), self.is_in_copy() && self.drawn.head.looked);
        seen.unwrap().wakeup
    }

    /// Whether events are missing from the record, or it holds them in another order than that of
    /// their times, so that nothing that rests on them is certain.
    fn is_doubtful(&self) -> bool {
        let Drawn { events, response, .. } = &self.drawn;
        let is_due = |event: &Timed| event.at >= DUE && event.at <= *response;
        let (gone, kept) = events.split_at(self.left_out());
        let known: Vec<u64> =
            kept.iter().filter(|e| !matches!(e.kind, Kind::Unknown)).map(|e| e.at).collect();
        let mut latest = 0;
        let is_late = |at: u64| {
            latest = latest.max(at);
            latest >= DUE && at < latest && at <= *response
        };
        self.lost > 0
            || self.overstated.is_some()
            || gone.iter().any(is_due)
            || known.into_iter().any(is_late)
    }
}

/// What a run teaches.
fn knowns() -> impl Strategy<Value = Known> {
    let some = || prop::option::of(0_u64..30_000);
    let of_scheduler = (some(), prop::option::of(0_u64..3_000));
    (0_u64..3_000, of_scheduler, some(), any::<[bool; 5]>()).prop_map(
        |(
            delivery_ns,
            (scheduling_ns, least),
            waking_ns,
            [guest, ticks, probes, shows_softirqs_left, shows_throttling],
        )| Known {
            delivery_ns,
            scheduling_ns,
            least_sched_latency_ns: least,
            waking_ns,
            guest,
            ticks,
            probes,
            shows_softirqs_left,
            shows_throttling,
        },
    )
}

fn sum(shares: &[Share]) -> u64 {
    shares.iter().map(|share| share.ns).sum()
}

/// Checks what holds of every wakeup: components and shares add up, and no cause has more time than
/// its events.
fn check_sums(record: &DrawnRecord, wakeup: &Decoded, shares: &[Share]) -> Checked {
    let latency = record.drawn.response - DUE;
    prop_assert_eq!(components(&wakeup.marks).total_ns(), latency);
    prop_assert_eq!(sum(shares), latency, "{:?}", shares);
    let of = |cause: Cause| -> u64 {
        shares.iter().filter(|share| share.cause == cause).map(|share| share.ns).sum()
    };
    let (mut nmis, mut tracer) = (wakeup.taken.nmis_ns, 0);
    for event in &record.drawn.events {
        match event.kind {
            Kind::Nmi { length, .. } => nmis += length,
            Kind::Tracer { length } => tracer += length,
            _ => {}
        }
    }
    prop_assert!(of(Cause::Nmi) <= nmis && of(Cause::Tracer) <= tracer, "{:?}", shares);
    let rows = rank([Part::of(latency, shares)]);
    prop_assert_eq!(rows.iter().map(|row| row.total_ns).sum::<u64>(), latency);
    let steps = timeline(wakeup);
    prop_assert!(steps.iter().all(|step| step.at_ns <= latency), "{:?}", steps);
    Ok(())
}

/// Checks that nothing is certain but what marks bound, and NMIs and the tracer, which tell their own length; that
/// no cause is there that only events tell of; and that switches tell of no more time than they are known for.
fn check_doubt(wakeup: &Decoded, shares: &[Share]) -> Checked {
    let by_interrupt = matches!(wakeup.woken_by, WokenBy::Timer { .. } | WokenBy::Unknown)
        || wakeup.marks.irq_exit.is_some();
    let by_quota = wakeup.quota_ns > Some(0);
    let mut by_switches_ns = 0;
    for share in shares {
        let is_bounded = match share.cause {
            _ if share.evidence == Evidence::Bound => true,
            Cause::Nmi | Cause::Tracer => true,
            Cause::Irq | Cause::IrqOff => by_interrupt,
            _ => false,
        };
        let of_events = match share.cause {
            // What softirqs took is summed up in the kernel, and no event says which they were.
            Cause::Softirq => share.culprit != Culprit::None || share.ns > wakeup.taken.softirqs_ns,
            cause => {
                matches!(cause, Cause::PreemptOff | Cause::NoPreemptionPoint | Cause::RemoteWakeup)
            }
        };
        prop_assert!(is_bounded && !of_events, "{:?}", share);
        by_switches_ns += match share.cause {
            Cause::HigherPriorityTask | Cause::EqualOrLowerTask => share.ns,
            // A quota needs no events: the kernel counts how long it has stopped the task.
            Cause::Throttled if !by_quota => share.ns,
            _ => 0,
        };
    }
    let response = wakeup.marks.response;
    let kept_ns = wakeup.known_switches.map_or(0, |known| response.since(known.from).0);
    prop_assert!(by_switches_ns <= kept_ns, "{} ns of {}: {:?}", by_switches_ns, kept_ns, shares);
    Ok(())
}

#[test]
fn what_was_written_comes_back() {
    let whole = (wakeups(150), forms(), any::<bool>()).prop_map(|(drawn, form, copied)| {
        let form = if drawn.events.len() > form.room() { Form::Long } else { form };
        DrawnRecord { drawn, form, copied, overstated: None, lost: 0 }
    });
    check_all(11, 400, (whole, knowns()), |(record, known)| {
        let DrawnRecord { drawn, form, .. } = &record;
        let seen = record.seen();
        let wakeup = decoded(&seen);
        let (readings, events): (Vec<Event>, Vec<Event>) =
            wakeup.events.iter().cloned().partition(|event| matches!(event.what, What::Steal(_)));
        let events: Vec<(u64, What)> = events.into_iter().map(|e| (e.at.0, e.what)).collect();
        prop_assert_eq!(events, drawn.expected());
        let mut readings: Vec<(u64, What)> =
            readings.into_iter().map(|e| (e.at.0, e.what)).collect();
        // One that repeats the one before says until when the clock had not moved.
        readings.dedup_by(|later, earlier| later.1 == earlier.1);
        let drawn_readings = drawn.readings().into_iter();
        let wanted: Vec<(u64, What)> = drawn_readings.map(|(at, s)| (at, What::Steal(s))).collect();
        prop_assert_eq!(readings, wanted);
        prop_assert!(wakeup.events.windows(2).all(|pair| pair[0].at <= pair[1].at));
        // A full record may lack what came before.
        prop_assert!(wakeup.lost == 0 || drawn.events.len() == form.room());
        let Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response } = wakeup.marks;
        let marks = [irq_entry, irq_exit, sched_entry, switch_in].map(|at| at.map(|at| at.0));
        prop_assert_eq!((due.0, marks, response.0), (DUE, drawn.marks, drawn.response));
        // No more can have been stolen than all of it.
        prop_assert_eq!(wakeup.stolen_ns, seen.stolen_ns.min(seen.latency_ns()));
        let quota = drawn.head.quota.map(|ns| ns.min(seen.latency_ns()));
        prop_assert_eq!(wakeup.quota_ns, quota);
        check_context(drawn, &wakeup)?;
        check_sums(&record, &wakeup, &blame(&wakeup, &known))
    });
}

/// Checks what was interrupted, and who gave up the CPU.
fn check_context(drawn: &Drawn, wakeup: &Decoded) -> Checked {
    let raw = drawn.raw();
    prop_assert_eq!(wakeup.cpu, raw.cpu);
    prop_assert_eq!((wakeup.task.pid, wakeup.task.comm.as_str()), (400, "probe"));
    let faults = if drawn.marks[3].is_some() { drawn.head.faults } else { 0 };
    prop_assert_eq!(wakeup.page_faults, faults);
    prop_assert_eq!(wakeup.irqs_off.is_some(), drawn.head.edges.is_some());
    let last = wakeup.given_up.as_ref().map(|last| (last.pid, text_of(&last.stack).join(" ")));
    let wanted = Some(raw.away_pid).filter(|&pid| pid != 0);
    prop_assert_eq!(last, wanted.map(|pid| (pid, "do_syscall_64+0x34".to_owned())));
    if !drawn.head.looked {
        return Ok(());
    }
    let Some(context) = &wakeup.interrupted else {
        return Err(TestCaseError::fail("what was interrupted is missing"));
    };
    prop_assert_eq!(context.task.pid, raw.interrupted.pid);
    prop_assert_eq!(context.softirq.map(u32::from), raw.softirq.checked_sub(1));
    let named = [(at::WORK, "do_work+0x23"), (at::SYSCALL, "do_syscall_64+0x34")];
    let there = named.into_iter().filter(|(place, _)| drawn.head.stack.contains(place));
    let stack: Vec<&str> = there.map(|(_, name)| name).collect();
    prop_assert_eq!(&text_of(&context.stack), &stack);
    prop_assert_eq!(context.stack_is_later, stack == ["do_syscall_64+0x34"]);
    Ok(())
}

#[test]
fn what_is_lost_or_out_of_order_is_never_certain() {
    let doubtful = std::cell::Cell::new(0);
    check_all(12, 1_000, (records(), knowns()), |(record, known)| {
        let seen = record.seen();
        prop_assert!(seen.events.len() <= record.form.room());
        let wakeup = decoded(&seen);
        let shares = blame(&wakeup, &known);
        check_sums(&record, &wakeup, &shares)?;
        if record.is_doubtful() {
            doubtful.set(doubtful.get() + 1);
            let out_of_order = wakeup.events.windows(2).any(|pair| pair[1].at < pair[0].at);
            prop_assert!(wakeup.lost > 0 || out_of_order, "nothing tells of the loss");
            check_doubt(&wakeup, &shares)?;
        }
        Ok(())
    });
    assert!((300..900).contains(&doubtful.get()), "{} of 1,000 are doubtful", doubtful.get());
}

#[test]
fn causes_of_decoded_wakeups_have_all_their_time() {
    let several = prop::collection::vec(records(), 1..6);
    check_all(13, 100, (several, lengths(), any::<bool>()), |(several, above_ns, guest)| {
        let above_ns = above_ns.max(1);
        let wakeups: Vec<Decoded> = several.iter().map(|record| decoded(&record.seen())).collect();
        let latencies: Vec<u64> =
            several.iter().map(|record| record.drawn.response - DUE).collect();
        let all = Distribution::of(latencies.iter().copied());
        let thread = Thread { woken: all.clone(), expiries: all.clone(), ..Thread::default() };
        let mut run = Run { threads: vec![thread], ..Run::default() };
        run.host.hypervisor = guest.then(|| "kvm".into());
        let episode = |(wakeup, &wakeup_latency_ns): (&Decoded, &u64)| Episode {
            cpu: Some(wakeup.cpu),
            expiry_ns: DUE,
            wakeup_latency_ns,
            ..Episode::default()
        };
        run.worst = wakeups.iter().zip(&latencies).map(episode).collect();
        let records = all.count;
        let seen = Seen { wakeups, wakeup_latency: all, records, ..Seen::default() };
        account(&mut run, seen, Above::Time(SpanNs(above_ns)));
        let late = latencies.iter().filter(|&&ns| ns >= above_ns);
        let caused: u64 = run.causes.iter().map(|row| row.total_ns).sum();
        prop_assert_eq!(caused, late.clone().sum::<u64>(), "{:?}", run.causes);
        let explanation = run.explanation.unwrap_or_default();
        prop_assert_eq!(explanation.late, late.count() as u64);
        prop_assert_eq!(explanation.late, explanation.explained);
        for episode in run.worst.iter().filter(|e| e.wakeup_latency_ns >= above_ns) {
            prop_assert_eq!(sum(&episode.blame), episode.wakeup_latency_ns);
            let components = episode.components.map(|c| c.total_ns());
            prop_assert_eq!(components, Some(episode.wakeup_latency_ns));
        }
        Ok(())
    });
}
