//! What has to be alike on both sides, and what is only pointed out.

use super::*;

/// What is done to a run, by name.
type Change = (&'static str, fn(&mut Run));

/// What is refused of five new runs, changed so, against five others.
fn refusal(change: fn(&mut Run)) -> Option<Refusal> {
    let mut new = runs(&LOW);
    new.iter_mut().for_each(change);
    held(&new, &runs(&HIGH), &Options::default()).err().map(|refusal| *refusal)
}

#[test]
fn commands_of_one_program_are_told_apart_by_their_marks() {
    let under = |us: &[u64], mark: &[&str]| {
        let mut runs = runs(us);
        for run in &mut runs {
            run.plan.load = vec!["find".into(), "exec:make".into()];
            run.plan.load_marks = mark.iter().map(ToString::to_string).collect();
        }
        runs
    };
    let compared = |new: &[&str], old: &[&str]| {
        held(&under(&LOW, new), &under(&HIGH, old), &Options::default())
    };
    let (one, other) = (&["", "a1"][..], &["", "b2"][..]);
    let refused = |new, old| match compared(new, old).err().map(|refusal| *refusal) {
        Some(Refusal::Differences(found)) => found[0].message.clone(),
        other => panic!("{other:?}"),
    };
    let message = refused(one, other);
    assert!(message.contains("exec:make (command a1)"), "{message}");
    assert!(message.contains("exec:make (command b2)"), "{message}");
    refused(one, &[]);
    let what = |new, old| {
        let found = compared(new, old).unwrap().differences;
        found.into_iter().map(|d| (d.what, d.matters)).collect::<Vec<_>>()
    };
    assert_eq!(what(one, one), []);
    // Records that hold no marks are compared, but not without a word.
    assert_eq!(what(&[], &[]), [("commands".to_owned(), false)]);
}

#[test]
fn what_is_not_alike_is_refused_unless_forced() {
    let source =
        |omission| Some(Source { tool: "cyclictest".into(), omission, ..Source::default() });
    let _ = source;
    let changes: [Change; 8] = [
        ("time domain", |run| run.time_domain = TimeDomain::Virtual),
        ("interval", |run| run.plan.interval_ns = 1_020_000),
        ("load", |run| run.plan.load.push("cpu".into())),
        ("stimulus", |run| run.plan.stimulus = Stimulus::Any),
        ("threads", |run| run.plan.target = Target::Process { pid: 4_711 }),
        ("omission", |run| {
            run.source = Some(Source { omission: Omission::Skipped, ..Source::default() });
        }),
        ("validity", |run| {
            let finding = Finding::new("policy", Severity::Error, "no".into(), "");
            run.validity = Validity::of(vec![finding]);
        }),
        // What nobody gave an id of its own.
        ("repetition", |run| *run = Run { id: String::new(), ..super::tests::run(100) }),
    ];
    for (what, change) in changes {
        let Some(Refusal::Differences(found)) = refusal(change) else { panic!("{what}") };
        assert!(found.iter().any(|d| d.what == what), "{what}: {found:?}");
        assert!(found.iter().all(|d| d.matters && d.message.ends_with('.')), "{found:?}");
        let mut new = runs(&LOW);
        new.iter_mut().for_each(change);
        let forced = Options { force: true, ..Options::default() };
        let got = held(&new, &runs(&HIGH), &forced).unwrap();
        assert!(got.settings.forced && got.differences.iter().any(|d| d.what == what));
    }
}

#[test]
fn round_trips_over_lines_of_other_speeds_are_refused() {
    let over = |baud, us: &[u64]| -> Vec<Run> {
        let mut all = runs(us);
        for run in &mut all {
            run.plan.stimulus = Stimulus::Line;
            run.line = Some(Line { baud: Some(baud), ..Line::default() });
        }
        all
    };
    let fast = over(921_600, &LOW);
    assert!(held(&fast, &over(921_600, &HIGH), &Options::default()).is_ok());
    let refused = held(&fast, &over(115_200, &HIGH), &Options::default()).unwrap_err();
    let Refusal::Differences(found) = *refused else { panic!("{refused:?}") };
    assert!(found.iter().any(|d| d.what == "line"), "{found:?}");
    assert!(found[0].message.contains("serial port at 115200 bits/s"), "{found:?}");
}

/// Of two programs that never sleep, one counts each reading of its clock, and one does not state which gaps.
#[test]
fn gaps_are_compared_if_they_count_from_the_same_length() {
    let busy = |us: &[u64], gap_from_ns: Option<u64>| -> Vec<Run> {
        let mut all = runs(us);
        for run in &mut all {
            run.plan =
                Plan { stimulus: Stimulus::Spin, interval_ns: 0, gap_from_ns, ..run.plan.clone() };
            let unknown = gap_from_ns.is_none().then(|| "plan.gap_from_ns".into());
            run.source = Some(Source {
                quantity: Quantity::Gap,
                omission: Omission::None,
                unknown: unknown.into_iter().collect(),
                ..Source::default()
            });
        }
        all
    };
    let old = busy(&HIGH, Some(1_000));
    let refused = held(&busy(&LOW, Some(0)), &old, &Options::default()).unwrap_err();
    let Refusal::Differences(found) = *refused else { panic!("{refused:?}") };
    let want = "The runs differ in length of a gap: every reading of the clock (n0, n1, n2 and 2 more); 1.00 µs or more (o0, o1, o2 and 2 more).";
    assert_eq!(found.iter().map(|d| &*d.message).collect::<Vec<_>>(), [want]);
    let found = held(&busy(&LOW, None), &old, &Options::default()).unwrap().differences;
    let found: Vec<(&str, bool)> = found.iter().map(|d| (&*d.what, d.matters)).collect();
    assert_eq!(found, [("length of a gap", false)]);
    let alike = held(&busy(&LOW, Some(1_000)), &old, &Options::default()).unwrap();
    assert!(alike.differences.is_empty(), "{:?}", alike.differences);
}

#[test]
fn what_does_not_matter_is_pointed_out() {
    let changes: [Change; 6] = [
        ("policy", |run| run.plan.priority = Some(7)),
        ("interval", |run| run.plan.interval_ns = 1_005_000),
        ("processor", |run| run.host.cpu_model = Some("other".into())),
        ("scheduler of sched_ext", |run| run.host.sched_ext = Some("simple".into())),
        ("validity", |run| {
            let finding = Finding::new("steal", Severity::Warning, "some".into(), "");
            run.validity = Validity::of(vec![finding]);
        }),
        // A file that says nothing of the interval differs in nothing that is known.
        ("interval", |run| {
            let unknown = vec!["plan".into()];
            run.source = Some(Source { unknown, omission: Omission::Counted, ..Source::default() });
        }),
    ];
    for (what, change) in changes {
        let mut new = runs(&LOW);
        change(&mut new[2]);
        if what == "processor" {
            new[1].host.cpu_model = Some("one".into());
        }
        let got = held(&new, &runs(&HIGH), &Options::default()).unwrap();
        assert_eq!(got.verdict, Verdict::Better);
        let found = got.differences.iter().find(|d| d.what == what);
        assert!(found.is_some_and(|d| !d.matters), "{what}: {:?}", got.differences);
    }
}

#[test]
fn what_cannot_be_compared_is_always_refused() {
    let forced = Options { force: true, ..Options::default() };
    let of = |new: &[Run], old: &[Run]| held(new, old, &forced).err().map(|refusal| *refusal);
    assert_eq!(of(&[], &runs(&LOW)), Some(Refusal::NoRuns));
    let empty = of_samples([].into_iter());
    assert_eq!(of(&runs(&LOW), &[empty]), Some(Refusal::NoSamples("o0".into())));
    let irq = Source { quantity: Quantity::IrqLatency, ..Source::default() };
    let other = Run { source: Some(irq), ..run(9) };
    assert!(matches!(of(&runs(&LOW), &[other]), Some(Refusal::Quantities(..))));
}
