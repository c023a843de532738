use super::*;
use crate::testing::frame;
use crate::{blame, components};
use wakescope_core::explain::{Cause, Components, Marks, NamedTask, OpenWait, Waits, Wakeup};
use wakescope_core::finding::Verdict;
use wakescope_core::host::{Host, Idle, IdleState};
use wakescope_core::plan::Target;
use wakescope_core::run::{SCHEMA, State, TimeDomain};
use wakescope_core::units::{MonoNs, SpanNs};

mod net;
mod ranking;

/// When the run began.
const ORIGIN: u64 = 1_000_000;

fn distribution(samples: &[u64]) -> Distribution {
    Distribution { max_at_ns: Some(ORIGIN + 500), ..Distribution::of(samples.iter().copied()) }
}

/// A wakeup that was due so long after the run began.
fn wakeup(cpu: u32, expiry_ns: u64, late_ns: u64) -> Wakeup {
    let due = MonoNs(ORIGIN + expiry_ns);
    let after = |ns| due.after(SpanNs(ns));
    let marks = Marks {
        due,
        irq_entry: Some(after(late_ns / 10)),
        irq_exit: Some(after(late_ns / 5)),
        sched_entry: Some(after(late_ns / 2)),
        switch_in: Some(after(late_ns / 2 + 1)),
        response: after(late_ns),
    };
    Wakeup { cpu, marks, ..Wakeup::default() }
}

/// What a tracer saw of wakeups, all of which were handed over, the latest first.
fn seen(wakeups: &[Wakeup]) -> Seen {
    let parts: Vec<Components> = wakeups.iter().map(|w| components(&w.marks)).collect();
    let part = |get: &dyn Fn(&Components) -> u64| {
        distribution(&parts.iter().map(get).collect::<Vec<u64>>())
    };
    Seen {
        wakeups: wakeups.to_vec(),
        components: ComponentTable {
            irq_latency: part(&|c| c.irq_latency_ns),
            handler_duration: part(&|c| c.handler_duration_ns),
            sched_latency: part(&|c| c.sched_latency_ns),
            sched_duration: Some(part(&|c| c.sched_duration_ns.unwrap())),
        },
        wakeup_latency: part(&Components::total_ns),
        records: wakeups.len() as u64,
        seen_with: vec!["sched_switch".into()],
        not_seen: vec!["NMIs".into()],
        ..Seen::default()
    }
}

fn episode(cpu: Option<u32>, expiry_ns: u64, wakeup_latency_ns: u64) -> Episode {
    Episode { cpu, expiry_ns, wakeup_latency_ns, ..Episode::default() }
}

/// A run whose probe measured these, without an explanation yet.
fn measured(samples: &[u64], worst: Vec<Episode>) -> Run {
    let woken = distribution(samples);
    let thread =
        Thread { cpu: Some(0), woken: woken.clone(), expiries: woken, ..Thread::default() };
    let (schema, threads) = (SCHEMA.into(), vec![thread]);
    let mut run = Run { schema, origin_ns: ORIGIN, worst, threads, ..Run::default() };
    run.plan.interval_ns = 1_000_000;
    run.summarize();
    run
}

fn above(text: &str) -> Above {
    text.parse().unwrap()
}

fn explanation_of(run: &Run) -> &Explanation {
    run.explanation.as_ref().expect("an explanation")
}

fn codes(run: &Run) -> Vec<(&str, Severity)> {
    run.validity.findings.iter().map(|f| (f.code.as_str(), f.severity)).collect()
}

#[test]
fn the_worst_are_explained_by_the_wakeups_that_they_were() {
    let wakeups = [wakeup(0, 7_000, 900), wakeup(1, 8_000, 900), wakeup(0, 9_000, 500)];
    let mut run = measured(
        &[900, 900, 500, 10],
        vec![
            episode(Some(1), 8_000, 900),
            // Unknown to the tracer by its time, its lateness, its CPU.
            episode(Some(0), 7_001, 900),
            episode(Some(0), 9_000, 501),
            episode(Some(1), 9_000, 500),
            // A probe that was not bound to a CPU.
            episode(None, 7_000, 900),
        ],
    );
    account(&mut run, seen(&wakeups), above("100ns"));
    let explained: Vec<bool> = run.worst.iter().map(|w| w.components.is_some()).collect();
    assert_eq!(explained, [true, false, false, false, true]);
    for episode in &run.worst {
        assert_eq!(episode.blame.is_empty(), episode.components.is_none());
        assert_eq!(episode.timeline.is_empty(), episode.components.is_none());
        let late_ns = episode.components.map_or(0, |c| c.total_ns());
        assert_eq!(episode.blame.iter().map(|share| share.ns).sum::<u64>(), late_ns);
    }
}

/// A wakeup that finds the run ended is answered, and its probe records it no more. What a record does not have for
/// another reason stays in it, so that it contradicts the record.
#[test]
fn what_came_after_the_end_is_no_part_of_the_run() {
    for (state, duration_ns, left, contradicts) in [
        (State::Interrupted, 9_000, 1, false),
        (State::Complete, 9_000, 1, false),
        (State::Interrupted, 9_001, 2, true),
        // It may be killed before the next record is written.
        (State::Running, 9_000, 2, false),
    ] {
        let mut all = seen(&[wakeup(0, 7_000, 900), wakeup(0, 9_000, 3_400)]);
        all.wakeup_latency = distribution(&[10, 900, 3_400]);
        let mut run = measured(&[10, 900], Vec::new());
        (run.state, run.duration_ns) = (state, duration_ns);
        let accounted = account(&mut run, all, above("100ns"));
        assert_eq!(accounted.episodes.len(), left, "{state:?} {duration_ns}");
        assert_eq!(run.fault().is_some(), contradicts, "{:?}", run.fault());
    }
}

#[test]
fn late_ones_are_counted_whether_they_are_explained_or_not() {
    // Of ten wakeups four are late, of which two were handed over.
    let late = [wakeup(0, 1_000, 900), wakeup(0, 2_000, 800)];
    let samples = [900, 800, 700, 600, 10, 10, 10, 10, 10, 10];
    let mut all = seen(&late);
    (all.wakeup_latency, all.lost_records) = (distribution(&samples), 2);
    let mut run = measured(&samples, Vec::new());
    account(&mut run, all.clone(), above("500ns"));
    let Explanation { wakeups, late, explained, unexplained_ns, .. } = *explanation_of(&run);
    assert_eq!((wakeups, late, explained, unexplained_ns), (10, 4, 2, 1_300));
    assert_eq!(explanation_of(&run).late_components.unwrap().total_ns(), 1_700);
    assert_eq!(run.causes.iter().map(|row| row.total_ns).sum::<u64>(), 3_000);
    // What left the kernel and is not late, is not explained.
    let mut run = measured(&samples, Vec::new());
    account(&mut run, all.clone(), above("850ns"));
    assert_eq!((explanation_of(&run).late, explanation_of(&run).explained), (1, 1));
    // As late as asked for is late.
    let mut run = measured(&samples, Vec::new());
    account(&mut run, all.clone(), above("900ns"));
    assert_eq!((explanation_of(&run).late, explanation_of(&run).explained), (1, 1));
    let mut run = measured(&samples, Vec::new());
    account(&mut run, all, above("901ns"));
    assert_eq!((explanation_of(&run).late, explanation_of(&run).explained), (0, 0));
    assert!(run.causes.is_empty());
    assert_eq!(explanation_of(&run).late_components, Some(Components::default()));
}

/// The row of what is unexplained: episodes, nanoseconds, and the longest.
fn unexplained(run: &Run) -> (u64, u64, u64) {
    let row = run.causes.iter().find(|row| row.cause == Cause::Unexplained);
    row.map(|row| (row.episodes, row.total_ns, row.worst_ns)).unwrap_or_default()
}

#[test]
fn late_wakeups_that_were_not_followed_are_part_of_unexplained() {
    // The two latest of ten were not followed.
    let followed = [wakeup(0, 1_000, 900), wakeup(0, 2_000, 800)];
    let samples = [4_000, 3_000, 900, 800, 10, 10, 10, 10, 10, 10];
    let worst = [(3_000, 4_000), (4_000, 3_000), (1_000, 900), (2_000, 800)];
    let worst: Vec<Episode> = worst.map(|(at, late)| episode(Some(0), at, late)).into();
    let mut all = seen(&followed);
    all.wakeup_latency = distribution(&[900, 800, 10, 10, 10, 10, 10, 10]);
    let mut run = measured(&samples, worst);
    account(&mut run, all, above("500ns"));
    let Explanation { late, explained, late_not_followed, not_followed, .. } =
        *explanation_of(&run);
    assert_eq!((late, explained, late_not_followed, not_followed), (4, 2, 2, 2));
    // Of the wakeups that were followed, 10 ns are unexplained.
    assert_eq!(
        (unexplained(&run), explanation_of(&run).unexplained_ns),
        ((3, 7_010, 4_000), 7_000)
    );
    assert_eq!(run.causes.iter().map(|row| row.total_ns).sum::<u64>(), 8_700);
    let share: f64 = run.causes.iter().map(|row| row.share).sum();
    assert!((share - 1.0).abs() < 1e-9, "{share}");
    assert_eq!(codes(&run), [("not-followed", Severity::Warning)]);
    assert_eq!(
        run.validity.findings[0].message,
        "2 of 10 wakeups were not followed from stimulus to response: components exclude them; 2 \
         of the 4 late wakeups are among them, also the latest of all, and unexplained"
    );
}

#[test]
fn a_percentile_is_one_of_all_that_the_probes_saw() {
    // One in fifty is very late, and none of these was followed.
    let samples = [vec![900; 2], vec![100; 2], vec![10; 196]].concat();
    let mut all = seen(&[]);
    all.wakeup_latency = distribution(&samples[2..]);
    let mut run = measured(&samples, Vec::new());
    account(&mut run, all, above("p99"));
    let Explanation { above_ns, late, explained, late_not_followed, .. } = *explanation_of(&run);
    assert_eq!((above_ns, late, explained, late_not_followed), (100, 4, 0, 2));
    assert_eq!(unexplained(&run), (4, 2_000, 900));
}

#[test]
fn a_sample_of_causes_leaves_what_was_not_followed_as_it_is() {
    let mut all = seen(&[]);
    let other = wakeup(0, 3_000, 800);
    for _ in 0..40_000 {
        all.abridged.add(components(&other.marks), 0, blame(&other, &Known::default()));
    }
    all.wakeup_latency = distribution(&vec![800; 40_000]);
    let mut run = measured(&[vec![800; 40_000], vec![5_000; 3]].concat(), Vec::new());
    account(&mut run, all, above("p50"));
    assert_eq!(explanation_of(&run).one_in, Some(2));
    let Explanation { late, explained, late_not_followed, unexplained_ns, .. } =
        *explanation_of(&run);
    assert_eq!((late, explained, late_not_followed, unexplained_ns), (40_003, 40_000, 3, 15_000));
}

#[test]
fn numbers_that_contradict_the_probes_are_told() {
    let late = [wakeup(0, 1_000, 900), wakeup(0, 2_000, 800)];
    // A probe that stops has answered one wakeup that it did not record.
    for (samples, want) in [
        (&[900, 10][..], vec![]),
        (&[10, 10, 10][..], vec![("contradictory-counts", Severity::Warning)]),
    ] {
        let mut run = measured(samples, Vec::new());
        let all = seen(&late);
        let all = Seen {
            wakeup_latency: distribution(&[&[900, 800][..], &samples[1..]].concat()),
            ..all
        };
        account(&mut run, all, above("500ns"));
        let found = codes(&run);
        let found: Vec<_> = found.into_iter().filter(|(code, _)| *code != "not-followed").collect();
        assert_eq!(found, want, "{samples:?}");
    }
}

#[test]
fn a_tracer_that_contradicts_itself_is_told_and_degrades_the_run() {
    let late = [wakeup(0, 1_000, 900), wakeup(0, 2_000, 800)];
    // 1 more began than ended: on several CPUs at once, or nobody knows where.
    for (begun, contended, lost, want) in [
        (2, 0, 0, vec![]),
        (3, 2, 1, vec![]),
        (3, 0, 0, vec![("contradictory-tracer", Severity::Warning)]),
    ] {
        let tally = Tally { begun, contended, ended: 2, sent: 2, read: 2, ..Tally::default() };
        let mut all = Seen { tally: Some(tally), ..seen(&late) };
        let mut run = measured(&[900, 800], Vec::new());
        account(&mut run, all.clone(), above("500ns"));
        assert_eq!(codes(&run), want, "{begun} begun");
        let verdict = if want.is_empty() { Verdict::Valid } else { Verdict::Degraded };
        assert_eq!(run.validity.verdict, verdict);
        // Without probes, nobody else knows of those.
        all.broken = 4;
        run.plan.target = Target::Process { pid: 4_711 };
        account(&mut run, all, above("500ns"));
        assert_eq!(explanation_of(&run).not_followed, 4 + lost);
    }
}

#[test]
fn causes_are_those_of_all_late_wakeups_kept_whole_or_not() {
    let kept = [wakeup(0, 1_000, 900), wakeup(0, 2_000, 800)];
    let samples = [900, 800, 700, 600, 10, 10, 10, 10, 10, 10];
    let mut all = seen(&kept);
    all.wakeup_latency = distribution(&samples);
    for late_ns in [700, 600, 10] {
        let other = wakeup(0, 3_000, late_ns);
        all.abridged.add(components(&other.marks), 0, blame(&other, &Known::default()));
    }
    let mut run = measured(&samples, Vec::new());
    account(&mut run, all, above("500ns"));
    assert_eq!(
        (explanation_of(&run).late, explanation_of(&run).explained, explanation_of(&run).one_in),
        (4, 4, None)
    );
    assert_eq!(explanation_of(&run).late_components.unwrap().total_ns(), 3_000);
    assert_eq!(run.causes.iter().map(|row| row.total_ns).sum::<u64>(), 3_000);
    assert_eq!(run.causes.iter().map(|row| row.episodes).max(), Some(4));
    assert!(!codes(&run).iter().any(|(code, _)| *code == "sampled-causes"));
}

#[test]
fn it_is_told_where_causes_are_estimated() {
    let mut all = seen(&[wakeup(0, 1_000, 900)]);
    let other = wakeup(0, 3_000, 800);
    for _ in 0..40_000 {
        all.abridged.add(components(&other.marks), 0, blame(&other, &Known::default()));
    }
    let samples = [vec![900], vec![800; 40_000]].concat();
    all.wakeup_latency = distribution(&samples);
    let mut run = measured(&samples, Vec::new());
    account(&mut run, all, above("500ns"));
    assert_eq!(explanation_of(&run).one_in, Some(2));
    assert!(codes(&run).contains(&("sampled-causes", Severity::Note)), "{:?}", codes(&run));
    assert_eq!((explanation_of(&run).explained, explanation_of(&run).late), (40_001, 40_001));
}

#[test]
fn what_was_asked_and_seen_is_told() {
    let mut run = measured(&[900], Vec::new());
    account(&mut run, seen(&[wakeup(0, 1_000, 900)]), above("p99"));
    let explanation = explanation_of(&run);
    assert_eq!(
        (explanation.seen_with.as_slice(), explanation.not_seen.as_slice()),
        (&["sched_switch".to_string()][..], &["NMIs".to_string()][..])
    );
    // One sample carries no percentile, so that all are late.
    assert_eq!(
        (explanation.above_ns, explanation.above.as_str(), explanation.records),
        (0, "all", 1)
    );
    assert_eq!(explanation.sections.as_ref().map(|sections| sections.exact), Some(false));
    let table = run.components.as_ref().unwrap();
    let parts = [&table.irq_latency, &table.handler_duration, &table.sched_latency];
    for part in parts.into_iter().chain(&table.sched_duration) {
        assert_eq!(part.max_at_ns, Some(500), "times count from the start of the run");
    }
    assert_eq!(codes(&run), []);
}

#[test]
fn what_was_not_followed_makes_it_doubtful() {
    for (measured_count, severity) in [
        (1_000, None),
        (1_001, Some(Severity::Note)),
        (1_010, Some(Severity::Note)),
        (1_011, Some(Severity::Warning)),
    ] {
        let mut run = measured(&vec![10; measured_count], Vec::new());
        let mut all = seen(&[]);
        all.wakeup_latency = distribution(&[10; 1_000]);
        account(&mut run, all, above("1us"));
        assert_eq!(explanation_of(&run).not_followed, measured_count as u64 - 1_000);
        let want: Vec<_> =
            severity.map(|severity| ("not-followed", severity)).into_iter().collect();
        assert_eq!(codes(&run), want, "{measured_count}");
    }
}

#[test]
fn a_run_whose_latest_wakeup_was_not_followed_is_doubtful() {
    // The latest of 1,000 late wakeups, or the second.
    for (missing, severity) in [(0, Severity::Warning), (1, Severity::Note)] {
        let late_ns: Vec<u64> = (0..1_000).map(|i| 2_000_000 - 100 * i).collect();
        let mut wakeups: Vec<Wakeup> =
            (0..).zip(&late_ns).map(|(i, &late_ns)| wakeup(0, 1_000 * i, late_ns)).collect();
        wakeups.remove(missing);
        let worst =
            (0..).zip(&late_ns).take(2).map(|(i, &late_ns)| episode(Some(0), 1_000 * i, late_ns));
        let mut run = measured(&late_ns, worst.collect());
        account(&mut run, seen(&wakeups), above("1us"));
        let [found] = &run.validity.findings[..] else { panic!("{:?}", run.validity) };
        assert_eq!((&*found.code, found.severity), ("not-followed", severity));
        assert_eq!(found.message.contains(" also the latest of all, "), missing == 0, "{found:?}");
        assert_eq!(found.hint.contains("ftrace"), missing == 0, "{found:?}");
    }
}

#[test]
fn what_is_no_longer_known_of_long_waits_is_told() {
    let told = |forgotten: u64, of: u64| {
        let late_ns: Vec<u64> = (0..of).map(|i| 1_000_000 - i).collect();
        let waits = |(i, late_ns): (u64, &u64)| {
            let mut wakeup = wakeup(0, 1_000 * i, *late_ns);
            wakeup.lost = u32::from(i < forgotten);
            // Most of it lies between the interrupt and the scheduler.
            let entered = wakeup.marks.due.after(SpanNs(late_ns / 5 * 4));
            (wakeup.marks.sched_entry, wakeup.marks.switch_in) = (Some(entered), Some(entered));
            wakeup
        };
        let late: Vec<Wakeup> = (0..).zip(&late_ns).map(waits).collect();
        let mut run = measured(&late_ns, Vec::new());
        account(&mut run, seen(&late), above("1ns"));
        run.validity.findings
    };
    assert_eq!(told(0, 1), []);
    let one = &told(1, 1)[0];
    assert_eq!((&*one.code, one.severity), ("forgotten-events", Severity::Warning));
    assert_eq!(
        one.message,
        "more events came during 1 of the latest 1 wakeup than are kept for a CPU: the first ones are unknown, up to 600 µs"
    );
    for (forgotten, of, severity) in
        [(1, 100, Severity::Note), (2, 199, Severity::Warning), (2, 200, Severity::Note)]
    {
        assert_eq!(told(forgotten, of)[0].severity, severity, "{forgotten} of {of}");
    }
}

#[test]
fn what_was_lost_makes_it_degraded() {
    let mut run = measured(&[900], Vec::new());
    let known = Finding::new("steal", Severity::Note, "some".into(), "");
    run.validity = Validity::of(vec![known]);
    let lost = Seen { lost_records: 7, ..seen(&[wakeup(0, 1_000, 900)]) };
    account(&mut run, lost, above("1ns"));
    assert_eq!((explanation_of(&run).lost_records, explanation_of(&run).records), (7, 1));
    assert_eq!(codes(&run), [("lost-records", Severity::Warning), ("steal", Severity::Note)]);
    assert_eq!(run.validity.verdict, wakescope_core::finding::Verdict::Degraded);
    assert!(run.validity.findings[0].message.starts_with("7 of 8 records of late wakeups "));
}

/// A run of others' wakeups, before anything was seen of it.
fn of_others(worst: usize) -> Run {
    let mut run = measured(&[], Vec::new());
    (run.plan.target, run.plan.worst) = (Target::Process { pid: 4_711 }, worst);
    run.threads.clear();
    run
}

#[test]
fn where_nobody_probes_what_was_seen_stands_in() {
    let wakeups = [wakeup(3, 1_000, 900), wakeup(1, 2_000, 800), wakeup(1, 500, 10)];
    let mut run = of_others(2);
    account(&mut run, seen(&wakeups), above("100ns"));
    let [thread] = run.threads.as_slice() else { panic!("{:?}", run.threads) };
    assert_eq!((thread.cpu, thread.missed, &thread.woken), (None, 0, &thread.expiries));
    assert_eq!((thread.woken.count, thread.woken.max_at_ns), (3, Some(500)));
    assert_eq!((run.summary.count, run.summary.max_ns), (3, Some(900)));
    let worst: Vec<_> =
        run.worst.iter().map(|w| (w.cpu, w.expiry_ns, w.wakeup_latency_ns)).collect();
    assert_eq!(worst, [(Some(3), 1_000, 900), (Some(1), 2_000, 800)]);
    assert!(run.worst.iter().all(|w| !w.blame.is_empty() && w.components.is_some()));
    assert_eq!(
        (
            explanation_of(&run).late,
            explanation_of(&run).explained,
            explanation_of(&run).not_followed
        ),
        (2, 2, 0)
    );
    assert_eq!(codes(&run), []);
    let json = run.to_json();
    assert!(Run::from_json(json.as_bytes()).is_ok(), "{json}");
}

#[test]
fn of_others_it_is_the_tracer_that_knows_what_was_not_followed() {
    let mut run = of_others(2);
    let some = Seen { broken: 2, no_room: 3, ..seen(&[wakeup(0, 1_000, 900)]) };
    account(&mut run, some, above("1ns"));
    assert_eq!(explanation_of(&run).not_followed, 5);
    assert_eq!(codes(&run), [("not-followed", Severity::Warning)]);
    assert!(run.validity.findings[0].message.starts_with("5 of 6 wakeups were "));
    let mut run = of_others(2);
    let one = Seen { broken: 1, ..seen(&[wakeup(0, 1_000, 900)]) };
    account(&mut run, one, above("1ns"));
    let message = &run.validity.findings[0].message;
    assert!(
        message.starts_with("1 of 2 wakeups was ") && message.ends_with(" is unknown"),
        "{message}"
    );
}

#[test]
fn a_run_without_a_wakeup_is_explained_all_the_same() {
    let nobody = ("no-samples", Severity::Error);
    for (mut run, want) in [(of_others(3), vec![nobody]), (measured(&[], Vec::new()), vec![])] {
        run.duration_ns = 2_000_000_000;
        account(&mut run, Seen::default(), above("p99.9"));
        assert_eq!((explanation_of(&run).wakeups, explanation_of(&run).late), (0, 0));
        assert!(run.worst.is_empty() && run.causes.is_empty());
        assert_eq!(codes(&run), want);
        for found in &run.validity.findings {
            assert_eq!(found.message, "no wakeup of the followed threads was traced within 2.00 s");
        }
        assert!(Run::from_json(run.to_json().as_bytes()).is_ok());
    }
}

/// Such a thread neither woke nor began to wait within the run.
#[test]
fn a_thread_that_waited_throughout_is_a_sample() {
    let longest_open = Some(OpenWait { ns: 2, at_ns: 1_000, task: NamedTask::default() });
    let waits = Waits { throughout: 1, longest_open, ..Waits::default() };
    let mut run = of_others(3);
    run.origin_ns = 1_000;
    account(&mut run, Seen { waits: Some(waits), ..Seen::default() }, above("p99.9"));
    assert_eq!(codes(&run), [("open-waits", Severity::Warning)]);
    let waits = explanation_of(&run).waits.as_ref().unwrap();
    assert_eq!(waits.longest_open.as_ref().unwrap().at_ns, 0);
}

#[test]
fn a_run_teaches_what_every_wakeup_takes() {
    let mut table = ComponentTable::default();
    assert_eq!(calibrate(&table, Machine::default(), false), Known::default());
    // One in ten by chance does not wait at all; one in a hundred does not count.
    table.irq_latency = distribution(&[0, 700, 700, 700, 700, 710, 720, 730, 740, 9_000]);
    assert_eq!(calibrate(&table, Machine::default(), true).delivery_ns, 0);
    table.irq_latency = distribution(&[[0; 1].as_slice(), &[700; 98], &[9_000]].concat());
    assert_eq!(calibrate(&table, Machine::default(), true).delivery_ns, 700);
    // Without as many as that takes, the least.
    table.irq_latency = distribution(&[650, 700]);
    assert!((650..=700).contains(&calibrate(&table, Machine::default(), true).delivery_ns));
    table.sched_duration = Some(distribution(&[[300; 198].as_slice(), &[9_000; 2]].concat()));
    assert_eq!(calibrate(&table, Machine::default(), true).scheduling_ns, Some(300));
    table.sched_latency = distribution(&[578, 575, 778, 9_000]);
    let known = calibrate(&table, Machine::default(), true);
    assert_eq!(known.least_sched_latency_ns, Some(575));
    // A run of an earlier version did not store that beside its episodes, but has its components.
    let earlier = Known { least_sched_latency_ns: None, ..known };
    assert_eq!(earlier.completed(Some(&table)), known);
    assert_eq!(earlier.completed(None), earlier);
    let stored = Known { least_sched_latency_ns: Some(570), ..known };
    assert_eq!(stored.completed(Some(&table)), stored);
}

#[test]
fn a_cpu_wakes_as_fast_as_it_mostly_does_but_not_faster_than_its_idle_states() {
    let deep = IdleState { exit_latency_ns: 133_000, ..IdleState::default() };
    let idle = Idle { states: vec![deep, IdleState::default()], ..Idle::default() };
    let machine =
        Machine::of(&Host { idle, cpus_nohz_full: vec![1], ..Host::default() }, TimeDomain::Real);
    assert_eq!(machine, Machine { idle_exit_ns: 133_000, guest: false, ticks: false });
    let mut table = ComponentTable::default();
    assert_eq!(calibrate(&table, machine, true).waking_ns, None);
    table.irq_latency = distribution(&[[700; 60].as_slice(), &[20_000_000; 40]].concat());
    assert_eq!(calibrate(&table, Machine::default(), true).waking_ns, Some(700));
    assert_eq!(calibrate(&table, machine, true).waking_ns, Some(133_000));
}

#[test]
fn shares_of_a_late_wakeup_have_causes() {
    let mut run = measured(&[900], vec![episode(Some(0), 1_000, 900)]);
    account(&mut run, seen(&[wakeup(0, 1_000, 900)]), above("1ns"));
    let rows: u64 = run.causes.iter().map(|row| row.total_ns).sum();
    assert_eq!(rows, 900);
    assert!(run.causes.iter().all(|row| Cause::ALL.contains(&row.cause)));
}

#[test]
fn of_modules_those_are_told_that_frames_are_in() {
    let mut run = measured(&[900, 4_000], vec![episode(Some(0), 700, 900)]);
    let mut late = wakeup(0, 700, 900);
    late.interrupted = Some(wakescope_core::explain::Context {
        mode: wakescope_core::explain::Mode::Kernel,
        preemptible: Some(false),
        stack: vec![frame("xfs_ilock+0x10 [xfs]"), frame("ext4_read+0x20")],
        ..Default::default()
    });
    let id = |module: &str| (module.to_owned(), "02cd".to_owned());
    let seen = Seen {
        build_id: Some("01ab".into()),
        module_build_ids: ["ext4", "xfs"].map(id).into(),
        ..seen(&[late])
    };
    account(&mut run, seen, above("1ns"));
    assert!(stacks_mut(&mut run).next().is_some());
    let Explanation { build_id, module_build_ids, .. } = explanation_of(&run);
    assert_eq!(build_id.as_deref(), Some("01ab"));
    assert_eq!(*module_build_ids, [id("xfs")].into());
}
