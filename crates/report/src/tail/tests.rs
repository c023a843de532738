use expect_test::expect;
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Cause, CauseRow, Explanation};
use wakescope_core::maxima::Maxima;

use crate::explain::tests::runs::culprit_of;

use super::*;
use crate::text::tests::run_of;

const PLAIN: Style = Style { colour: false };

/// The block below a line that begins at the edge, so that its own indent is seen.
fn shown(run: &Run) -> String {
    format!("shown:\n{}", block(run, PLAIN))
}

/// A run of `samples` at 1 ms, with the course of its maxima.
fn with_course(samples: &[u64]) -> Run {
    const INTERVAL_NS: usize = 1_000_000;
    let slot_ns = 1_usize << 27;
    let slots = samples.len() * INTERVAL_NS / slot_ns + 1;
    let mut max_ns = vec![None; slots];
    for (i, &sample) in samples.iter().enumerate() {
        let slot = &mut max_ns[i * INTERVAL_NS / slot_ns];
        *slot = (*slot).max(Some(sample));
    }
    let mut run = run_of(&[samples]);
    run.duration_ns = (samples.len() * INTERVAL_NS) as u64;
    run.threads[0].maxima = Some(Maxima { slot_ns: slot_ns as u64, max_ns });
    run
}

/// Exponential samples, each followed by `more` that are hardly less late.
fn exponential(count: u64, more: u64) -> Vec<u64> {
    let mut state = 1_u64;
    let mut draw = || {
        // Knuth's MMIX.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        10_000 + whole(-20_000.0 * ((state >> 12) as f64 / (1_u64 << 52) as f64).ln())
    };
    let mut samples = Vec::new();
    for _ in 0..count {
        let late = draw();
        samples.extend((0..=more).map(|i| late - i * 40));
    }
    samples
}

#[test]
fn a_steady_run_is_extrapolated() {
    expect![[r#"
        shown:
         How long is long enough?
         · With 95 % confidence, fewer than 1 in 6,560 expiries (one every 6.56 s) is later than 206 µs, if
           conditions stay the same. Late ones do not come in bursts.
         · Measuring time needed without a value above 206 µs, with 95 % confidence: 3.05 min for less than
           one in a minute, 3.05 h for less than one in an hour.
         · Extrapolation, not a measurement: once in 3.33 min, one expiry or more is later than 247 µs
           (about 95 %: 200 µs to 304 µs); generalized Pareto above 60.2 µs, 1,601 samples, shape -0.01
           (-0.07 to 0.05).
    "#]].assert_eq(&shown(&with_course(&exponential(20_000, 0))));
}

#[test]
fn bursts_are_worth_less() {
    expect![[r#"
        shown:
         How long is long enough?
         · Late expiries come in bursts of about 3.7: 20,000 count as 5,427 independent ones. With 95 %
           confidence, fewer than 1 in 1,810 expiries (one every 1.81 s) is later than 206 µs.
         · Measuring time needed without a value above 206 µs, with 95 % confidence: 11.1 min for less than
           one in a minute, 11.1 h for less than one in an hour.
         · No extrapolation: large samples come in bursts (extremal index 0.27).
    "#]].assert_eq(&shown(&with_course(&exponential(5_000, 3))));
}

/// The figures count bursts that are not certain, so the words must not deny them.
#[test]
fn uncertain_bursts_are_not_denied() {
    let samples = exponential(2_700, 0).into_iter().enumerate();
    // One in nine is followed by another that is hardly less late.
    let samples = samples.flat_map(|(i, ns)| vec![ns; 1 + usize::from(i % 9 == 0)]);
    let run = with_course(&samples.collect::<Vec<_>>());
    let tail = Tail::of(&run).unwrap();
    let bursts = tail.bound.bursts.as_ref().unwrap();
    assert!(bursts.index < ALONE && bursts.interval.1 > ALONE, "{bursts:?}");
    expect![[r#"
        Late expiries may come in bursts of about 1.2: 3,000 count as 2,472 independent ones. With 95 % confidence, fewer than 1 in 825 expiries (one every 825 ms) is later than 184 µs.
        1 in 825 expiries above 184 µs, one every 825 ms (bursts counted)"#]].assert_eq(&format!("{}\n{}", sentences(&run)[0], not_excluded(&run).unwrap()));
}

#[test]
fn causes_have_their_rates() {
    let mut run = with_course(&exponential(4_000, 0)[..3_000]);
    run.time_domain = TimeDomain::Virtual;
    let row = |cause, culprit: &str, episodes| CauseRow {
        cause,
        culprit: culprit_of(cause, culprit),
        episodes,
        worst_ns: 90_000,
        ..Default::default()
    };
    run.causes = vec![
        row(Cause::NoPreemptionPoint, "shmem_undo_range", 12),
        row(Cause::Softirq, "NET_RX \u{1b}[31m", 1),
        row(Cause::Unexplained, "", 5),
    ];
    run.explanation = Some(Explanation { late: 20, explained: 18, ..Default::default() });
    expect![[r#"
        shown:
         How long is long enough?
         · With 95 % confidence, fewer than 1 in 1,000 expiries (one every 1.00 virtual s) is later than
           184 virtual µs, if conditions stay the same. Late ones do not come in bursts.
         · Measuring time needed without a value above 184 virtual µs, with 95 % confidence:
           3.00 virtual min for less than one in a minute, 3.00 virtual h for less than one in an hour.
         · By cause (95 % confidence intervals): no preemption point in shmem_undo_range, about every
           250 virtual ms (143 virtual ms to 484 virtual ms), worst 90.0 virtual µs; softirq NET_RX �[31m,
           about every 3.00 virtual s (538 virtual ms to 1.97 virtual min), worst 90.0 virtual µs. A cause
           not seen in this run may still occur as often as every 1.00 virtual s. Only 18 of 20 late
           wakeups are explained.
         · Extrapolation, not a measurement: once in 30.0 virtual s, one expiry or more is later than
           214 virtual µs (about 95 %: 169 virtual µs to 692 virtual µs); generalized Pareto above
           57.2 virtual µs, 284 samples, shape 0.00 (-0.12 to 0.16).
    "#]].assert_eq(&shown(&run));
}

#[test]
fn what_says_nothing_is_left_out() {
    assert_eq!(block(&run_of(&[&[1_000, 2_000]]), PLAIN), "");
    assert_eq!(sentences(&run_of(&[&[]])), Vec::<String>::new());
}

#[test]
fn a_year_can_be_proven() {
    let mut run = with_course(&exponential(3_000, 0));
    run.duration_ns = 4 * 31_557_600_000_000_000;
    let text = block(&run, PLAIN);
    assert!(text.contains("in a year is proven at 95 %"), "{text}");
}

#[test]
fn nothing_is_promised_by_rounding() {
    assert_eq!([1e-6, 3.0 / 20_001.0, 0.9, 1.0].map(one_in), ["1,000,000", "6,660", "1", "1"]);
}

/// 12.04 ms was above the 12.0 ms that it was rounded to.
#[test]
fn no_value_that_was_seen_is_above_the_threshold() {
    let mut run = with_course(&exponential(3_000, 0));
    let max_ns = 12_045_792;
    run.threads[0].expiries = Distribution::of([vec![9_000; 2_999], vec![max_ns]].concat());
    run.summarize();
    let said = sentences(&run).join(" ").replace(TIED, " ");
    for want in ["is later than 12.1 ms", "without a value above 12.1 ms"] {
        assert!(said.contains(want), "{want}: {said}");
    }
    let text = not_excluded(&run).unwrap();
    assert!(text.contains(" expiries above 12.1 ms,"), "{text}");
    run.duration_ns = 4 * 31_557_600_000_000_000;
    let text = block(&run, PLAIN);
    assert!(text.contains("Less than one above 12.1 ms in a year"), "{text}");
}
