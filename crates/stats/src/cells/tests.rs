use expect_test::{Expect, expect};
use proptest::prelude::*;
use wakescope_core::units::counted;

use super::*;
use crate::cells::testing::{arm, cells};
use wakescope_core::preemption::Model;

const ALPHA: f64 = 0.05;

/// The first side has these maxima, in µs, seed by seed, the second those.
fn two(a: &[u64], b: &[u64]) -> Vec<Cell> {
    let ns = |us: &[u64]| us.iter().map(|us| us * 1_000).collect::<Vec<_>>();
    [cells("k/none", "find", &ns(a)), cells("k/full", "find", &ns(b))].concat()
}

fn pair() -> Vec<(Arm, Arm)> {
    vec![(arm("k/none"), arm("k/full"))]
}

fn verdicts(cells: &[Cell]) -> Vec<Comparison> {
    compare(cells, &pair(), 0.1, ALPHA)
}

/// What a comparison says, in a line, with its reasons below.
fn text_of(comparisons: &[Comparison]) -> String {
    let figure = |name: &str, effect: &Option<Effect>| match effect {
        Some(e) => format!(
            "{name} {:.2} ({:.2}–{:.2}) {}↓ {}↑ of {} p {:.3} → {:.3} {:?}",
            e.ratio, e.low, e.high, e.better, e.worse, e.seeds, e.p_value, e.p_adjusted, e.verdict
        ),
        None => format!("{name} –"),
    };
    comparisons
        .iter()
        .map(|c| {
            let reasons: String = c.reasons.iter().map(|r| format!("    {r}\n")).collect();
            let (max, p999) = (figure("max", &c.max), figure("p99.9", &c.p999));
            {
                let seeds = counted(c.seeds as u64, "seed");
                format!("{} {:?} of {seeds}\n  {max}\n  {p999}\n{reasons}", c.load, c.verdict)
            }
        })
        .collect()
}

#[track_caller]
fn check(a: &[u64], b: &[u64], want: Expect) {
    want.assert_eq(&text_of(&verdicts(&two(a, b))));
}

const TEN: [u64; 10] = [100, 101, 102, 103, 104, 105, 106, 107, 108, 109];

#[test]
fn all_seeds_agree() {
    check(
        &TEN,
        &TEN.map(|x| x / 10),
        expect![[r#"
        find Better of 10 seeds
          max 0.10 (0.09–0.10) 10↓ 0↑ of 10 p 0.002 → 0.004 Better
          p99.9 0.10 (0.09–0.10) 10↓ 0↑ of 10 p 0.002 → 0.004 Better
    "#]],
    );
    check(
        &TEN,
        &TEN.map(|x| x * 2),
        expect![[r#"
        find Worse of 10 seeds
          max 2.00 (2.00–2.00) 0↓ 10↑ of 10 p 0.002 → 0.004 Worse
          p99.9 2.00 (2.00–2.00) 0↓ 10↑ of 10 p 0.002 → 0.004 Worse
    "#]],
    );
}

#[test]
fn a_difference_within_the_margin_is_none() {
    check(
        &TEN,
        &TEN,
        expect![[r#"
        find NoDifference of 10 seeds
          max 1.00 (1.00–1.00) 0↓ 0↑ of 10 p 1.000 → 1.000 NoDifference
          p99.9 1.00 (1.00–1.00) 0↓ 0↑ of 10 p 1.000 → 1.000 NoDifference
    "#]],
    );
    check(
        &TEN,
        &TEN.map(|x| x + 5),
        expect![[r#"
        find NoDifference of 10 seeds
          max 1.05 (1.05–1.05) 0↓ 10↑ of 10 p 0.002 → 0.004 NoDifference
          p99.9 1.05 (1.05–1.05) 0↓ 10↑ of 10 p 0.002 → 0.004 NoDifference
    "#]],
    );
}

#[test]
fn a_difference_about_as_large_as_the_margin_is_open() {
    let b = [105, 110, 118, 106, 108, 122, 110, 119, 121, 111];
    check(
        &TEN,
        &b,
        expect![[r#"
            find Inconclusive of 10 seeds
              max 1.07 (1.02–1.16) 0↓ 10↑ of 10 p 0.002 → 0.004 Inconclusive
              p99.9 1.07 (1.02–1.16) 0↓ 10↑ of 10 p 0.002 → 0.004 Inconclusive
                The maximum differs (1.07 ×), but it is inconclusive whether by more than 10 %.
                p99.9 differs (1.07 ×), but it is inconclusive whether by more than 10 %.
        "#]],
    );
}

#[test]
fn seeds_that_disagree_do_not_tell() {
    let b = [50, 200, 50, 200, 50, 200, 50, 200, 50, 200];
    check(
        &TEN,
        &b,
        expect![[r#"
        find Inconclusive of 10 seeds
          max 0.96 (0.46–1.98) 5↓ 5↑ of 10 p 0.756 → 1.000 Inconclusive
          p99.9 0.96 (0.46–1.98) 5↓ 5↑ of 10 p 0.756 → 1.000 Inconclusive
            The seeds disagree on the maximum: 0.46 × to 1.98 ×, p = 1.00.
            The seeds disagree on p99.9: 0.46 × to 1.98 ×, p = 1.00.
    "#]],
    );
}

#[test]
fn few_seeds_do_not_tell_and_how_many_would_is_said() {
    check(
        &[100; 5],
        &[50; 5],
        expect![[r#"
            find Inconclusive of 5 seeds
              max 0.50 (0.50–0.50) 5↓ 0↑ of 5 p 0.062 → 0.125 Inconclusive
              p99.9 0.50 (0.50–0.50) 5↓ 0↑ of 5 p 0.062 → 0.125 Inconclusive
                5 seeds are too few to decide 2 figures compared together: 7 are needed.
        "#]],
    );
    check(
        &[100],
        &[100],
        expect![[r#"
            find Inconclusive of 1 seed
              max 1.00 (1.00–1.00) 0↓ 0↑ of 1 p 1.000 → 1.000 Inconclusive
              p99.9 1.00 (1.00–1.00) 0↓ 0↑ of 1 p 1.000 → 1.000 Inconclusive
                1 seed is too few to decide 2 figures compared together: 7 are needed.
        "#]],
    );
    check(
        &[100; 3],
        &[104; 3],
        expect![[r#"
            find Inconclusive of 3 seeds
              max 1.04 (1.04–1.04) 0↓ 3↑ of 3 p 0.250 → 0.500 Inconclusive
              p99.9 1.04 (1.04–1.04) 0↓ 3↑ of 3 p 0.250 → 0.500 Inconclusive
                3 seeds are too few to decide 2 figures compared together: 7 are needed.
        "#]],
    );
}

/// Seven of twelve seeds are half as late again, and five a little less late. In the mean that differs, but
/// other seeds may well have a median below 1.
#[test]
fn a_mean_that_differs_is_not_enough_where_the_median_may_not() {
    let b = [150, 150, 97, 150, 97, 150, 97, 150, 97, 150, 97, 150];
    check(
        &[100; 12],
        &b,
        expect![[r#"
            find Inconclusive of 12 seeds
              max 1.50 (0.97–1.50) 5↓ 7↑ of 12 p 0.016 → 0.031 Inconclusive
              p99.9 1.50 (0.97–1.50) 5↓ 7↑ of 12 p 0.016 → 0.031 Inconclusive
                The maximum differs in the mean (p = 0.031), but the median may not: its 95 % interval, 0.97 × to 1.50 ×, holds 1 ×.
                p99.9 differs in the mean (p = 0.031), but the median may not: its 95 % interval, 0.97 × to 1.50 ×, holds 1 ×.
        "#]],
    );
    check(
        &b,
        &[100; 12],
        expect![[r#"
            find Inconclusive of 12 seeds
              max 0.67 (0.67–1.03) 7↓ 5↑ of 12 p 0.016 → 0.031 Inconclusive
              p99.9 0.67 (0.67–1.03) 7↓ 5↑ of 12 p 0.016 → 0.031 Inconclusive
                The maximum differs in the mean (p = 0.031), but the median may not: its 95 % interval, 0.67 × to 1.03 ×, holds 1 ×.
                p99.9 differs in the mean (p = 0.031), but the median may not: its 95 % interval, 0.67 × to 1.03 ×, holds 1 ×.
        "#]],
    );
}

/// Without an interval, nothing is no different.
#[test]
fn each_figure_is_judged_by_the_seeds_that_have_it() {
    let mut cells = two(&TEN, &TEN);
    for cell in cells.iter_mut().filter(|cell| cell.seed > 2) {
        cell.p999_ns = None;
    }
    expect![[r#"
        find Inconclusive of 10 seeds
          max 1.00 (1.00–1.00) 0↓ 0↑ of 10 p 1.000 → 1.000 NoDifference
          p99.9 1.00 (1.00–1.00) 0↓ 0↑ of 2 p 1.000 → 1.000 Inconclusive
            p99.9 is unknown with 8 of 10 seeds: it needs 2,000 samples.
            p99.9 is known with 2 seeds, too few to decide 2 figures compared together: 7 are needed.
    "#]].assert_eq(&text_of(&verdicts(&cells)));
    let b = [50, 200, 50, 200, 50, 200, 50, 200, 50, 200];
    for (cell, us) in cells.iter_mut().filter(|cell| cell.asked == "full").zip(b) {
        cell.max_ns = Some(us * 1_000);
    }
    expect![[r#"
        find Inconclusive of 10 seeds
          max 0.96 (0.46–1.98) 5↓ 5↑ of 10 p 0.756 → 1.000 Inconclusive
          p99.9 1.00 (1.00–1.00) 0↓ 0↑ of 2 p 1.000 → 1.000 Inconclusive
            p99.9 is unknown with 8 of 10 seeds: it needs 2,000 samples.
            The seeds disagree on the maximum: 0.46 × to 1.98 ×, p = 1.00.
            p99.9 is known with 2 seeds, too few to decide 2 figures compared together: 7 are needed.
    "#]].assert_eq(&text_of(&verdicts(&cells)));
}

#[test]
fn figures_that_contradict_each_other_do_not_tell() {
    let mut cells = two(&TEN, &TEN.map(|x| x * 2));
    for cell in cells.iter_mut().filter(|cell| cell.asked == "full") {
        cell.p999_ns = Some(1_000);
    }
    expect![[r#"
        find Inconclusive of 10 seeds
          max 2.00 (2.00–2.00) 0↓ 10↑ of 10 p 0.002 → 0.004 Worse
          p99.9 0.02 (0.02–0.02) 10↓ 0↑ of 10 p 0.002 → 0.004 Better
            p99.9 is better and the maximum is worse.
    "#]]
    .assert_eq(&text_of(&verdicts(&cells)));
}

#[test]
fn one_figure_is_enough_to_be_worse_but_not_to_be_no_different() {
    let mut worse = two(&TEN, &TEN.map(|x| x * 2));
    let mut same = two(&TEN, &TEN);
    for cell in worse.iter_mut().chain(&mut same) {
        cell.p999_ns = None;
    }
    expect![[r#"
        find Worse of 10 seeds
          max 2.00 (2.00–2.00) 0↓ 10↑ of 10 p 0.002 → 0.002 Worse
          p99.9 –
            p99.9 is unknown: it needs 2,000 samples.
    "#]]
    .assert_eq(&text_of(&verdicts(&worse)));
    expect![[r#"
        find Inconclusive of 10 seeds
          max 1.00 (1.00–1.00) 0↓ 0↑ of 10 p 1.000 → 1.000 NoDifference
          p99.9 –
            p99.9 is unknown: it needs 2,000 samples.
    "#]]
    .assert_eq(&text_of(&verdicts(&same)));
}

#[test]
fn what_did_not_measure_is_left_out_and_named() {
    let mut cells = two(&TEN, &TEN.map(|x| x / 10));
    for (at, status) in
        [(1, Status::Failed), (12, Status::Failed), (14, Status::Failed), (19, Status::NotRun)]
    {
        cells[at].status = status;
        cells[at].max_ns = Some(1); // Must not be used.
    }
    cells.remove(0);
    expect![[r#"
        find Inconclusive of 5 seeds
          max 0.09 (0.09–0.10) 5↓ 0↑ of 5 p 0.062 → 0.125 Inconclusive
          p99.9 0.09 (0.09–0.10) 5↓ 0↑ of 5 p 0.062 → 0.125 Inconclusive
            k/none failed with seed 2.
            k/none has no cell with seed 1.
            k/full failed with 2 of 10 seeds (3, 5).
            k/full was not run with seed 10.
            5 seeds are too few to decide 2 figures compared together: 7 are needed.
    "#]]
    .assert_eq(&text_of(&verdicts(&cells)));
}

#[test]
fn a_model_that_the_kernel_ignores_has_no_verdict() {
    let mut cells = two(&TEN, &TEN);
    for cell in cells.iter_mut().filter(|cell| cell.asked == "full") {
        (cell.status, cell.model) = (Status::Ignored, Some(Model::Voluntary));
    }
    expect![[r#"
        find Inconclusive of 0 seeds
          max –
          p99.9 –
            k/full has no result: this kernel runs voluntary instead.
    "#]]
    .assert_eq(&text_of(&verdicts(&cells)));
    cells.truncate(10);
    expect![[r#"
        find Inconclusive of 0 seeds
          max –
          p99.9 –
            There are no cells of k/full under this load.
    "#]]
    .assert_eq(&text_of(&verdicts(&cells)));
}

#[test]
fn more_comparisons_need_more_seeds() {
    let loads: Vec<String> = (0..20).map(|i| format!("load{i}")).collect();
    let of = |seeds: usize| -> Vec<Cell> {
        let side = |at, load, max| cells(at, load, &vec![max; seeds]);
        loads
            .iter()
            .flat_map(|l| [side("k/none", l, 100_000), side("k/full", l, 50_000)].concat())
            .collect()
    };
    let ten = verdicts(&of(10));
    assert_eq!(ten.len(), 20);
    assert!(ten.iter().all(|c| c.verdict == Verdict::Inconclusive));
    assert_eq!(
        ten[0].reasons,
        ["10 seeds are too few to decide 40 figures compared together: 11 are needed."]
    );
    assert!(verdicts(&of(11)).iter().all(|c| c.verdict == Verdict::Better));
}

#[test]
fn throughput_stands_beside() {
    let mut cells = two(&TEN, &TEN);
    for cell in &mut cells {
        let share = if cell.asked == "full" { 0.9 } else { 1.0 };
        cell.throughput = Some(share * (cell.seed * 1_000) as f64);
    }
    (cells[0].throughput, cells[1].throughput) = (None, Some(0.0));
    let ratio = verdicts(&cells)[0].throughput_ratio.unwrap();
    assert!((ratio - 0.9).abs() < 1e-12, "{ratio}");
    assert_eq!(verdicts(&two(&TEN, &TEN))[0].throughput_ratio, None);
}

#[test]
fn no_pair_and_no_cell_no_verdict() {
    assert_eq!(compare(&two(&TEN, &TEN), &[], 0.1, ALPHA), []);
    assert_eq!(compare(&[], &pair(), 0.1, ALPHA), []);
}

proptest! {
    #[test]
    fn swapping_the_sides_turns_the_verdict_round(
        maxima in prop::collection::vec((1_u64..500, 1_u64..500), 1..12),
        margin in 0.0_f64..1.0,
    ) {
        let (a, b): (Vec<u64>, Vec<u64>) = maxima.into_iter().unzip();
        let cells = two(&a, &b);
        let there = compare(&cells, &pair(), margin, ALPHA);
        let back = compare(&cells, &[(arm("k/full"), arm("k/none"))], margin, ALPHA);
        let turned = match there[0].verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            same => same,
        };
        prop_assert_eq!(back[0].verdict, turned);
    }

    #[test]
    fn what_is_undecided_says_why(
        maxima in prop::collection::vec((1_u64..500, 1_u64..500), 1..12),
    ) {
        let (a, b): (Vec<u64>, Vec<u64>) = maxima.into_iter().unzip();
        for comparison in verdicts(&two(&a, &b)) {
            if comparison.verdict == Verdict::Inconclusive {
                prop_assert!(!comparison.reasons.is_empty());
            }
            prop_assert!(comparison.reasons.iter().all(|r| r.ends_with('.')));
        }
    }
}

/// One kernel with two names, as `6.1-cloud` and its release, beside another.
#[test]
fn two_names_of_the_same_cells_are_no_different_and_count_in_no_correction() {
    let mut all = two(&TEN, &TEN.map(|x| x * 2));
    for cell in &mut all {
        cell.run = Some(format!("/cells/{}{}", cell.asked, cell.seed));
    }
    let renamed = all[..10].iter().cloned().map(|cell| Cell { kernel: "l".into(), ..cell });
    let renamed: Vec<Cell> = renamed.collect();
    all.extend(renamed);
    let pairs = [(arm("k/none"), arm("l/none")), (arm("k/none"), arm("k/full"))];
    let [same, other] = &compare(&all, &pairs, 0.1, ALPHA)[..] else { panic!("two pairs") };
    expect![[r#"
        find NoDifference of 10 seeds
          max –
          p99.9 –
            Both names stand for the same cells: the same kernel image, booted alike.
    "#]]
    .assert_eq(&text_of(std::slice::from_ref(same)));
    // As if the other pair were alone.
    assert_eq!(*other, compare(&all, &pair(), 0.1, ALPHA)[0]);
    // Where a seed of one side is another cell, or nothing is known of it, they are compared.
    for run in [Some("/cells/other".into()), None] {
        all[20].run = run;
        assert!(compare(&all, &pairs[..1], 0.1, ALPHA)[0].max.is_some());
    }
    // Cells that were not run are not known to be the same.
    all.iter_mut().for_each(|cell| cell.run = None);
    assert!(compare(&all, &pairs[..1], 0.1, ALPHA)[0].max.is_some());
}
