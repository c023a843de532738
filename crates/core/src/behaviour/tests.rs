use super::*;
use proptest::prelude::*;

/// Where a kernel preempts a call of 1 ms in which the prober's timer expires at `expiry` µs.
#[derive(Clone, Copy)]
enum At {
    Once,
    End,
}

/// 100 wakeups, one in each of as many calls, as a kernel would answer them that preempts `at`.
/// Every third call is drawn out by a stall of 30 ms, in which the victim used no CPU time.
fn observe(call: Call, prober: Prober, at: At) -> Series {
    let (mut calls, mut wakeups) = (Vec::new(), Vec::new());
    let mut now_ns = 5_000_000;
    let mut cpu_ns = 700_000;
    for k in 0..100 {
        let stall_ns = if k % 3 == 0 { 30_000_000 } else { 0 };
        let before_ns = k * 9_000;
        let (begin_ns, begin_cpu_ns) = (now_ns, cpu_ns);
        // The timer interrupt and the switch take 4 µs.
        let done_ns = match at {
            At::Once => before_ns + 4_000,
            At::End => 1_000_000,
        };
        now_ns += 1_000_000 + stall_ns;
        cpu_ns += 1_000_000;
        let victim_cpu_ns = begin_cpu_ns + done_ns.min(1_000_000);
        calls.push(CallTimes { call, begin_ns, end_ns: now_ns, begin_cpu_ns, end_cpu_ns: cpu_ns });
        wakeups.push(Wakeup { expiry_ns: begin_ns + before_ns, victim_cpu_ns });
        now_ns += 20_000;
        cpu_ns += 15_000;
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
        let judgement = judge(&kernel(model, Prober::Realtime));
        assert_eq!(judgement.models, [model], "{judgement:#?}");
        assert_eq!(judgement.agreement(model), Agreement::Agree);
        let other = if model == Model::Full { Model::None } else { Model::Full };
        assert_eq!(judgement.agreement(other), Agreement::Contradict);
        assert_eq!(judgement.agreement(Model::Unknown), Agreement::Undecided);
    }
}

#[test]
fn without_priority_the_model_is_still_among_the_answers() {
    for model in ALL {
        let judgement = judge(&kernel(model, Prober::Fair));
        assert!(judgement.models.contains(&model), "{model}: {judgement:#?}");
        assert!(judgement.models.len() <= 2, "{model}: {judgement:#?}");
        assert!(!judgement.reason.is_empty());
    }
}

#[track_caller]
fn check(change: impl Fn(&mut Observations), want: &[Model]) {
    let mut observations = kernel(Model::Full, Prober::Realtime);
    change(&mut observations);
    let judgement = judge(&observations);
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
fn a_third_of_strange_wakeups_changes_nothing() {
    for model in ALL {
        let mut observations = kernel(model, Prober::Realtime);
        for series in &mut observations.series {
            series.shares.iter_mut().step_by(3).for_each(|share| *share = 1.0 - *share);
        }
        assert_eq!(judge(&observations).models, [model]);
    }
}

#[test]
fn only_expiries_early_in_a_call_count() {
    let call = CallTimes {
        call: Call::PipeRead,
        begin_ns: 1_000,
        end_ns: 2_000,
        begin_cpu_ns: 50,
        end_cpu_ns: 1_050,
    };
    let share = |expiry_ns, victim_cpu_ns| {
        let wakeup = Wakeup { expiry_ns, victim_cpu_ns };
        series(Call::PipeRead, Prober::Fair, &[call], &[wakeup]).shares
    };
    assert_eq!(share(1_000, 50), [0.0]);
    assert_eq!(share(1_500, 800), [0.5]);
    assert_eq!(share(1_800, 1_050), [1.0]);
    assert_eq!(share(1_500, 5_000), [1.0]);
    assert_eq!(share(1_801, 1_050), [0.0; 0]);
    assert_eq!(share(999, 50), [0.0; 0]);
    assert_eq!(share(2_500, 1_050), [0.0; 0]);
    // The prober ran before the call began: a clock is wrong.
    assert_eq!(share(1_500, 49), [0.0; 0]);
    assert!(series(Call::ZeroRead, Prober::Fair, &[call], &[]).shares.is_empty());
}

proptest! {
    #[test]
    fn shares_are_shares(times: [u64; 6]) {
        let [begin_ns, end_ns, begin_cpu_ns, end_cpu_ns, expiry_ns, victim_cpu_ns] = times;
        let call = CallTimes { call: Call::ZeroRead, begin_ns, end_ns, begin_cpu_ns, end_cpu_ns };
        let wakeup = Wakeup { expiry_ns, victim_cpu_ns };
        if let Some(share) = share(&call, &wakeup) {
            prop_assert!((0.0..=1.0).contains(&share));
        }
    }
}
