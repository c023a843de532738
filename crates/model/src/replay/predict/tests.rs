use super::super::cell::tests::{course, section, with_sections};
use super::*;
use wakescope_core::explain::Explanation;
use wakescope_core::plan::ProbePolicy;

/// As of one phase that is the same whenever it is drawn.
fn sample(max_ns: u64) -> Sample {
    let figures = [Some(1), Some(2), None, Some(max_ns)];
    Sample { phases: vec![figures; 4], drawn: vec![figures; 16], longest_ns: max_ns + 7 }
}

#[test]
fn what_only_one_course_had_is_in_the_range_of_all() {
    let max = |samples: &[&Sample]| {
        let Latencies { max, p999, longest_ns, .. } = latencies(samples).unwrap();
        assert_eq!(p999, None);
        let Range { median_ns, low_ns, high_ns } = max.unwrap();
        [median_ns, low_ns, high_ns, longest_ns]
    };
    let [one, other] = [400, 900].map(sample);
    assert_eq!(max(&[&one]), [400, 396, 404, 407]);
    assert_eq!(max(&[&one, &one, &other]), [400, 396, 909, 907]);
    // The order of cells says nothing.
    assert_eq!(max(&[&other, &one, &one]), [400, 396, 909, 907]);
    assert_eq!(latencies(&[]), None);
}

#[test]
fn ranges_have_what_the_replay_is_off_by_and_the_median() {
    let figures = |low_ns, median_ns, high_ns| Figures { median_ns, low_ns, high_ns };
    let range = |drawn| range(figures(0, 1_000, 9_999), drawn);
    let wide = range(figures(800, 1_100, 2_000));
    assert_eq!((wide.low_ns, wide.median_ns, wide.high_ns), (792, 1_000, 2_020));
    // The median is within.
    assert_eq!(range(figures(1_100, 1_100, 1_100)).low_ns, 1_000);
    assert_eq!(range(figures(900, 900, 900)).high_ns, 1_000);
}

#[test]
fn only_cells_that_differ_in_their_seeds_are_predicted_from_together() {
    let run = Run { seed: 1, ..Run::default() };
    let cell = |key: &str, run: &Run| Cell {
        key: key.into(),
        label: "6.1 none find seed 1".into(),
        run: run.clone(),
    };
    let others = [cell("a", &run), cell("b", &run)];
    let refused = |key, other: &Run| is_one_more(&cell(key, other), &others);
    assert_eq!(is_one_more(&others[0], &[]), Ok(()));
    assert_eq!(refused("c", &Run { seed: 2, ..run.clone() }), Ok(()));
    type Change = fn(&mut Run);
    let changes: [(&str, Change); 6] = [
        ("kernel", |run| run.host.release = "7.2".into()),
        ("kernel", |run| run.host.version = "#2".into()),
        ("preemption model", |run| run.host.preemption.model = Model::Full),
        ("load", |run| run.plan.load = vec!["find".into()]),
        ("plan", |run| run.plan.interval_ns = 7),
        ("tracer", |run| run.explanation = Some(Explanation::default())),
    ];
    for (what, change) in changes {
        let mut other = run.clone();
        change(&mut other);
        let first = "6.1 none find seed 1".into();
        assert_eq!(refused("c", &other), Err(Unpredictable::Differs { what, first }));
    }
    assert_eq!(refused("b", &run), Err(Unpredictable::Twice));
    let told = CannotPredict { label: "6.1 none find seed 1".into(), why: Unpredictable::Twice };
    assert_eq!(told.to_string(), "cannot predict from 6.1 none find seed 1: it is given twice");
}

#[test]
fn what_cells_say_themselves_is_judged_before_they_are_run() {
    let mut run = Run::default();
    run.host.preemption.model = Model::Full;
    run.plan.priority = Some(95);
    run.plan.policy = ProbePolicy::Fifo;
    let question = || Question { breaks: vec![], limit_sections_ns: None, every_ns: 1 };
    let refused = |change: fn(&mut Run)| {
        let mut other = run.clone();
        change(&mut other);
        let cells = [("a", &run), ("b", &other)].map(|(key, run)| Cell {
            key: key.into(),
            label: key.into(),
            run: run.clone(),
        });
        Predictor::new(question(), cells.into()).map(|_| ()).map_err(|e| (e.label, e.why))
    };
    assert_eq!(refused(|_| {}), Ok(()));
    let of_other = |why| Err(("b".to_owned(), why));
    assert_eq!(
        refused(|run| run.host.preemption.model = Model::Unknown),
        of_other(Unpredictable::Model)
    );
    let policy = Unpredictable::Policy("other".into());
    assert_eq!(refused(|run| run.plan.policy = ProbePolicy::Other), of_other(policy));
    let differs = Unpredictable::Differs { what: "plan", first: "a".into() };
    assert_eq!(refused(|run| run.plan.interval_ns = 7), of_other(differs));
    // There is a cell for whatever is seen, and something was seen of each cell.
    let mut none = Predictor::new(question(), vec![]).ok().unwrap();
    let no_cell = Err(CannotPredict { label: "no cell".into(), why: Unpredictable::Nothing });
    assert_eq!(none.add(&Edges::default()), no_cell);
    let cell = Cell { label: "a".into(), run: run.clone(), ..Cell::default() };
    let left = Predictor::new(question(), vec![cell]).ok().unwrap().predict();
    let why = Unpredictable::Nothing;
    assert_eq!(left, Err(CannotPredict { label: "a".into(), why }));
}

#[test]
fn what_to_break_up_next_is_behind_the_latest_wakeup_of_all_courses() {
    // One course is held up by `b` for 60 ns, the other by `a` for 50 and by `b` for 40. Numbers of functions are those
    // of a course.
    let one = course(&[(0, 'u'), (100, 'i'), (160, 'u')]);
    let other = course(&[(0, 'u'), (100, 'i'), (150, 'u'), (300, 'i'), (340, 'u')]);
    let (of_one, of_other) = ([section(100, 160, 0)], [section(100, 150, 0), section(300, 340, 1)]);
    let course = |names: &[&str], sections, course| Course {
        cell: Cell::default(),
        functions: names.iter().map(ToString::to_string).collect(),
        window_ns: 0,
        replay: with_sections(course, sections),
    };
    let [one, other] = [course(&["b"], &of_one[..], &one), course(&["a", "b"], &of_other, &other)];
    let ranked = |all: &[Course], breaks: &[(&str, u64)]| {
        let own_rules = rules(Model::Full).unwrap();
        let courses = Courses { all, recorded: Model::Full, own_rules };
        let breaks = breaks.iter().map(|&(name, every_ns)| (name.into(), every_ns)).collect();
        let question = Question { breaks, limit_sections_ns: None, every_ns: 25 };
        let steps = courses.ranking(&question).steps.into_iter();
        let steps: Vec<_> =
            steps.map(|step| (step.functions.join(" "), step.before_ns, step.after_ns)).collect();
        (steps, courses.predict(&question).map(|prediction| prediction.breaks))
    };
    // Each takes 10 ns that nothing holds up, and 25 are left of what is broken.
    let both = [one, other];
    let (steps, _) = ranked(&both, &[]);
    assert_eq!(steps, [("b".into(), 70, 60), ("a".into(), 60, 35)]);
    let (steps, breaks) = ranked(&both, &[("b", 25)]);
    assert_eq!(steps, [("a".into(), 60, 35)]);
    assert_eq!(breaks, Ok(vec![Break { function: "b".into(), every_ns: 25, sections: 2 }]));
    // What lets go more seldom than the ranking breaks up is still behind a wakeup. Of two times the shorter counts.
    for breaks in [&[("b", 55)][..], &[("b", 55), ("b", 59)], &[("b", 59), ("b", 55)]] {
        let (steps, _) = ranked(&both, breaks);
        assert_eq!(steps, [("b".into(), 65, 60), ("a".into(), 60, 35)], "{breaks:?}");
    }
    // One course alone has no `a`.
    let (_, breaks) = ranked(&both[..1], &[("a", 25)]);
    assert_eq!(breaks, Err(Unpredictable::Function("a".into())));
    assert!(ranked(&both, &[("a", 25)]).1.is_ok());
}

#[test]
fn what_would_let_go_too_often_is_counted_before_it_is_replayed() {
    let one = course(&[(0, 'u'), (100, 'i'), (160, 'u'), (200, 'i'), (1_200, 'u')]);
    let course = Course {
        cell: Cell::default(),
        functions: vec!["a".into(), "b".into()],
        window_ns: 0,
        replay: with_sections(&one, &[section(100, 160, 0), section(200, 1_200, 1)]),
    };
    let cuts = |breaks: &[(&str, u64)], limit_sections_ns, every_ns| {
        let breaks = breaks.iter().map(|&(name, every_ns)| (name.into(), every_ns)).collect();
        course.cuts(&Question { breaks, limit_sections_ns, every_ns })
    };
    assert_eq!([cuts(&[], None, 50), cuts(&[], None, 1)], [1 + 19, 59 + 999]);
    assert_eq!([cuts(&[("b", 10)], None, 2_000), cuts(&[], Some(20), 2_000)], [99, 2 + 49]);
}

#[test]
fn sections_are_kept_that_something_may_break_up() {
    let shortest = |breaks: &[u64], limit_sections_ns| {
        let breaks = breaks.iter().map(|every_ns| ("f".into(), *every_ns)).collect();
        Question { breaks, limit_sections_ns, every_ns: 100 }.shortest_ns()
    };
    // What the ranking breaks up, what is asked for, and the limit of all.
    assert_eq!([shortest(&[], None), shortest(&[400], Some(300))], [100, 100]);
    assert_eq!([shortest(&[400, 40], None), shortest(&[40], Some(20))], [40, 20]);
}

#[test]
fn how_far_a_prediction_goes() {
    use Model::{Full, Lazy, None, Rt, Voluntary};
    use Reach::{AtLeast, AtMost, OtherKernel, SpinLocks, Whole};
    let reach = |recorded, model, all_known, seen| reach(recorded, model, Asks { seen, all_known });
    for (recorded, model, known, asked, unasked) in [
        (Full, None, Whole, AtMost, AtMost),
        (Lazy, Voluntary, Whole, AtMost, AtMost),
        (None, Voluntary, Whole, AtMost, AtMost),
        (Voluntary, None, Whole, AtLeast, AtMost),
        (None, None, Whole, Whole, AtMost),
        (None, Full, Whole, Whole, Whole),
        (Full, Lazy, Whole, Whole, Whole),
        (None, Rt, SpinLocks, SpinLocks, SpinLocks),
        (Rt, None, OtherKernel, OtherKernel, OtherKernel),
        (Rt, Rt, Whole, Whole, Whole),
    ] {
        let got = [
            reach(recorded, model, true, false),
            reach(recorded, model, false, true),
            reach(recorded, model, false, false),
        ];
        assert_eq!(got, [known, asked, unasked], "{recorded} to {model}");
    }
}
