use super::*;
use proptest::prelude::*;

/// Where a kernel preempts a call of 1 ms in which the prober's timer expires at `expiry` µs.
#[derive(Clone, Copy)]
enum At {
    Once,
    End,
}

/// 100 wakeups, one in every second call, as a kernel would answer them that preempts `at`.
/// Every tenth call is drawn out by a stall of 30 ms after the prober ran.
fn observe(call: Call, prober: Prober, at: At) -> Series {
    let (mut calls, mut wakeups) = (Vec::new(), Vec::new());
    let mut begin_ns = 5_000_000;
    for k in 0..100 {
        let stall_ns = if k % 10 == 0 { 30_000_000 } else { 0 };
        // The call needs 1 ms, timer interrupt and switch take 40 µs, the prober 10 µs.
        let expiry_ns = begin_ns + k * 9_000;
        let (woken_ns, end_ns) = match at {
            At::Once => (expiry_ns + 40_000, begin_ns + 1_050_000 + stall_ns),
            At::End => (begin_ns + 1_040_000, begin_ns + 1_080_000 + stall_ns),
        };
        wakeups.push(Wakeup { expiry_ns, woken_ns, asleep_ns: woken_ns + 10_000 });
        calls.push(CallTimes { call, begin_ns, end_ns });
        begin_ns = end_ns + 20_000;
        calls.push(CallTimes { call, begin_ns, end_ns: begin_ns + 1_000_000 });
        begin_ns += 1_020_000;
    }
    series(call, prober, &calls, &wakeups)
}

/// What a kernel of each model does, with and without a real-time prober.
fn kernel(model: Model, prober: Prober) -> Observations {
    use Call::{LockScan, PipeRead, PipeWrite, ZeroRead};
    let at = |preempts| if preempts { At::Once } else { At::End };
    let everywhere = matches!(model, Model::Full | Model::Lazy | Model::Rt);
    let lazy = model == Model::Lazy;
    let series = match prober {
        Prober::Realtime => vec![
            observe(ZeroRead, prober, At::Once),
            observe(PipeWrite, prober, at(model != Model::None)),
            observe(PipeRead, prober, at(everywhere)),
            observe(LockScan, prober, at(model == Model::Rt)),
            observe(PipeRead, Prober::Fair, at(everywhere && !lazy)),
        ],
        Prober::Fair => vec![
            observe(ZeroRead, prober, at(!lazy)),
            observe(PipeWrite, prober, at(model != Model::None && !lazy)),
            observe(PipeRead, prober, at(everywhere && !lazy)),
        ],
    };
    Observations { cpu: 0, series, obstacles: Vec::new() }
}

#[test]
fn each_model_is_told_from_the_others() {
    for model in ALL {
        let judgement = judge(&kernel(model, Prober::Realtime), TimeDomain::Real);
        assert_eq!(judgement.models, [model], "{judgement:#?}");
        assert_eq!(judgement.agreement(model), Agreement::Agree);
        let other = if model == Model::Full { Model::None } else { Model::Full };
        assert_eq!(judgement.agreement(other), Agreement::Contradict);
        assert_eq!(judgement.agreement(Model::Unknown), Agreement::Undecided);
    }
}

#[test]
fn an_old_kernel_with_the_voluntary_model_is_not_taken_for_one_with_full_preemption() {
    use Model::{Full, Voluntary};
    let models = |model, release: &str| {
        let judgement = judge(&kernel(model, Prober::Realtime), TimeDomain::Real);
        judgement.of_version(KernelVersion::of(release)).models
    };
    // So a voluntary 5.10 behaves.
    assert_eq!(models(Full, "5.10.0-46-cloud-amd64"), [Voluntary, Full]);
    assert_eq!(models(Full, "6.1.0-56-cloud-amd64"), [Full]);
    assert_eq!(models(Full, "unknown"), [Full]);
    for other in [Model::None, Voluntary, Model::Rt] {
        assert_eq!(models(other, "5.10.0-46-rt-amd64"), [other]);
    }
}

#[test]
fn without_priority_the_model_is_still_among_the_answers() {
    for model in ALL {
        let judgement = judge(&kernel(model, Prober::Fair), TimeDomain::Real);
        assert!(judgement.models.contains(&model), "{model}: {judgement:#?}");
        assert!(judgement.models.len() <= 2, "{model}: {judgement:#?}");
        assert!(!judgement.reason.is_empty());
    }
}

#[track_caller]
fn check(change: impl Fn(&mut Observations), want: &[Model]) {
    let mut observations = kernel(Model::Full, Prober::Realtime);
    change(&mut observations);
    let judgement = judge(&observations, TimeDomain::Real);
    assert_eq!(judgement.models, want, "{judgement:#?}");
}

#[test]
fn what_is_undecided_leaves_models_open() {
    use Model::{Full, Lazy, Rt};
    check(|_| {}, &[Full]);
    // A call that was hit too seldom.
    check(|o| o.series[0].shares.truncate(WAKEUPS_NEEDED - 1), &ALL);
    check(|o| o.series[1].shares.clear(), &[Full]);
    check(|o| o.series[2].shares.clear(), &ALL[1..]);
    check(|o| o.series[3].shares.clear(), &[Full, Rt]);
    check(|o| o.series[4].shares.clear(), &[Full, Lazy]);
    check(|o| o.series.truncate(3), &[Full, Lazy, Rt]);
    check(|o| o.series.clear(), &ALL);
    // Neither at once nor at the end.
    check(|o| o.series[3].shares.fill(0.5), &[Full, Rt]);
    // The control fails.
    check(|o| o.series[0].shares.fill(1.0), &ALL);
    // No such kernel.
    check(|o| o.series[1].shares.fill(1.0), &ALL);
}

#[test]
fn in_virtual_time_fewer_wakeups_do() {
    for model in ALL {
        let mut observations = kernel(model, Prober::Realtime);
        let mut keep =
            |count| observations.series.iter_mut().for_each(|s| s.shares.truncate(count));
        keep(WAKEUPS_NEEDED_VIRTUALLY);
        let mut fewer = observations.clone();
        assert_eq!(judge(&observations, TimeDomain::Virtual).models, [model]);
        assert_eq!(judge(&observations, TimeDomain::Real).models, ALL);
        fewer.series[0].shares.pop();
        assert_eq!(judge(&fewer, TimeDomain::Virtual).models, ALL);
    }
}

#[test]
fn a_third_of_strange_wakeups_changes_nothing() {
    for model in ALL {
        let mut observations = kernel(model, Prober::Realtime);
        for series in &mut observations.series {
            series.shares.iter_mut().step_by(3).for_each(|share| *share = 1.0 - *share);
        }
        assert_eq!(judge(&observations, TimeDomain::Real).models, [model]);
    }
}

#[test]
fn only_expiries_early_in_an_ordinary_call_count() {
    let call = |begin_ns, end_ns| CallTimes { call: Call::PipeRead, begin_ns, end_ns };
    let shares = |expiry_ns, woken_ns, asleep_ns, end_ns| {
        // The first call shows the usual length.
        let calls = [call(10_000, 11_000), call(21_000, end_ns)];
        let wakeup = Wakeup { expiry_ns, woken_ns, asleep_ns };
        series(Call::PipeRead, Prober::Fair, &calls, &[wakeup]).shares
    };
    assert_eq!(shares(21_000, 21_000, 21_100, 22_100), [0.0]);
    assert_eq!(shares(21_500, 21_750, 21_800, 22_050), [0.5]);
    assert_eq!(shares(21_800, 22_000, 22_010, 22_010), [1.0]);
    let none = [0.0; 0];
    assert_eq!(shares(21_801, 22_000, 22_010, 22_010), none, "late in the call");
    assert_eq!(shares(20_999, 21_000, 21_010, 22_010), none, "before the call");
    assert_eq!(shares(22_500, 22_600, 22_610, 22_010), none, "after the call");
    assert_eq!(shares(21_000, 21_000, 21_100, 23_200), none, "twice as long as usual");
    assert_eq!(shares(21_000, 21_000, 25_100, 26_100), [0.0], "the prober's own time is no matter");
    assert_eq!(shares(21_500, 21_400, 21_800, 22_050), none, "woken before the time");
    assert!(series(Call::ZeroRead, Prober::Fair, &[call(0, 9)], &[]).shares.is_empty());
}

proptest! {
    #[test]
    fn shares_are_shares(times: [u64; 6]) {
        let [begin_ns, end_ns, expiry_ns, woken_ns, asleep_ns, usual_ns] = times;
        let call = CallTimes { call: Call::ZeroRead, begin_ns, end_ns };
        let wakeup = Wakeup { expiry_ns, woken_ns, asleep_ns };
        if let Some(share) = share(&call, &wakeup, usual_ns) {
            prop_assert!((0.0..=1.0).contains(&share));
        }
        let _ = series(Call::ZeroRead, Prober::Fair, &[call], &[wakeup]);
    }
}
