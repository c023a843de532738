//! Waits of 17.2 s and more, which are all in one bucket.

use super::*;

const SECOND: f64 = 1e9;

/// Watches with one series, of which each has these waits; the longest may be only as long as its bucket tells.
fn watches(count: usize, of: &[(f64, u64)], is_exact: bool) -> Vec<Observed> {
    let watch = |i: usize| {
        let mut all = waits(of.iter().copied());
        if !is_exact {
            (all.max_ns, all.max_is_exact) = (Some(edges_of(BUCKETS - 1).0), false);
        }
        let comm = "t".to_owned();
        let series = Series { cgroup_id: 7, cgroup: Some("/s".into()), comm, waits: all.clone() };
        let cpu = Cpu { cpu: 0, switches: 1_000 + i as u64, waits: all };
        observed(vec![window(NOON + i as i64, vec![series], cpu)])
    };
    (0..count).map(watch).collect()
}

/// An hour that is only known to be 17.2 s or more was *no difference* to 17.5 s, and within a limit of 20 s.
#[test]
fn a_longest_wait_without_an_end_is_as_long_as_the_sum_allows() {
    let usual = [(100_000.0, 2_970), (400_000.0, 30)];
    let with = |ns: f64, is_exact| watches(6, &[&usual[..], &[(ns, 1)]].concat(), is_exact);
    let limits = vec!["20s".parse().unwrap(), "10s".parse().unwrap()];
    let options = Options { limits, ..Options::default() };
    let old = with(17.5 * SECOND, true);
    let got = held(&with(3_600.0 * SECOND, false), &old, &options).unwrap();
    let max = &got.quantities[0].max.as_ref().unwrap().effect;
    assert_eq!((max.verdict, got.verdict), (Verdict::Inconclusive, Verdict::Inconclusive));
    let [least, most] = max.only_bounded.as_ref().unwrap().ratio;
    assert!(least < 1.0 && most > 200.0, "{max:?}");
    let outcomes: Vec<Outcome> = got.limits.iter().map(|limit| limit.outcome).collect();
    assert_eq!(outcomes, [Outcome::Inconclusive, Outcome::Fail], "{:?}", got.limits);
    assert!(got.limits[0].reason.contains("max is between 17.2 s and 1.00 h"), "{:?}", got.limits);
    let (new, old) = (&got.new[0], &got.old[0]);
    assert_eq!((new.max_ns, old.max_range_ns()), (None, Some([17_500_000_000; 2])));
    assert_eq!(new.max_range_ns(), new.max_of_count_range_ns());
}

/// Two of the new watches have their p99.9 there. The six others alone were *better*.
#[test]
fn a_series_keeps_the_watches_of_which_only_bounds_are_known() {
    let fast = watches(6, &[(100_000.0, 2_970), (400_000.0, 30)], true);
    let slow = watches(2, &[(100_000.0, 2_970), (90.0 * SECOND, 30)], true);
    let old = watches(8, &[(200_000.0, 2_970), (800_000.0, 30)], true);
    let new = fast.into_iter().chain(slow).collect::<Vec<_>>();
    let got = got(&new, &old);
    let group = &got.watches.as_ref().unwrap().groups[0];
    let effect = group.tested.as_ref().unwrap();
    assert_eq!((effect.runs, effect.verdict), ([8, 8], Verdict::Inconclusive), "{effect:?}");
    assert_eq!(effect.only_bounded.as_ref().unwrap().runs, [2, 0]);
    assert!(group.p999_ns.is_none() && group.max_ns.is_some() && group.p50_ns.is_some());
}
