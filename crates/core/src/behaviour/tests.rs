use super::*;
use proptest::prelude::*;

/// Where a kernel preempts a call of 1 ms in which the prober's timer expires at `expiry` µs.
#[derive(Clone, Copy)]
enum At {
    Once,
    End,
}

/// 100 wakeups, one in every second call, as a kernel would answer them that preempts `at`.
/// Every tenth call is drawn out by a stall of 30 ms after the prober ran, which the victim's CPU time does not have.
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
        let cpu_ns = end_ns - begin_ns - stall_ns - 10_000;
        calls.push(CallTimes { call, begin_ns, end_ns, cpu_ns });
        begin_ns = end_ns + 20_000;
        let end_ns = begin_ns + 1_000_000;
        calls.push(CallTimes { call, begin_ns, end_ns, cpu_ns: 1_000_000 });
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
fn an_old_kernel_says_all_that_left_models_open() {
    use Model::{Full, Rt, Voluntary};
    let mut observations = kernel(Full, Prober::Realtime);
    observations
        .series
        .iter_mut()
        .filter(|s| s.call == Call::LockScan)
        .for_each(|s| s.shares.clear());
    let judgement = judge(&observations, TimeDomain::Real);
    let judgement = judgement.of_version(KernelVersion::of("5.10.0-46-cloud-amd64"));
    assert_eq!(judgement.models, [Voluntary, Full, Rt]);
    let want = "the test of one system call is inconclusive; before 6.1, voluntary and full preemption \
                cannot be distinguished";
    assert_eq!(judgement.reason, want);
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

/// An undecided call excludes no model: none of (write, read) being decided once excluded the model without any
/// preemption, on a kernel that had it.
#[test]
fn whatever_is_undecided_the_model_is_still_among_the_answers() {
    for model in ALL {
        for prober in [Prober::Realtime, Prober::Fair] {
            let decided = kernel(model, prober);
            for undecided in 0..1_u32 << decided.series.len() {
                let mut observations = decided.clone();
                for (index, series) in observations.series.iter_mut().enumerate() {
                    if undecided >> index & 1 == 1 {
                        series.disturbed += series.shares.len();
                        series.shares.clear();
                    }
                }
                let judgement = judge(&observations, TimeDomain::Real);
                assert!(judgement.models.contains(&model), "{model} {undecided:b}: {judgement:#?}");
                let reason = &judgement.reason;
                assert!(judgement.models.len() == 1 || !reason.is_empty(), "{judgement:#?}");
            }
        }
    }
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
    let call =
        |begin_ns, end_ns, cpu_ns| CallTimes { call: Call::PipeRead, begin_ns, end_ns, cpu_ns };
    let shares = |expiry_ns: u64, woken_ns: u64, asleep_ns: u64, end_ns: u64| {
        // The first call shows what such a call needs. Nobody but these two has the CPU.
        let cpu_ns = asleep_ns.saturating_sub(woken_ns);
        let calls = [call(10_000, 11_000, 1_000), call(21_000, end_ns, end_ns - 21_000 - cpu_ns)];
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
    assert!(series(Call::ZeroRead, Prober::Fair, &[call(0, 9, 9)], &[]).shares.is_empty());
}

/// What others do to a wakeup of a prober whose timer expires 300 µs into a call of 1 ms.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    /// Time that they take before the prober runs, and after it, ns.
    before_ns: u64,
    after_ns: u64,
    /// Whether the kernel charges the victim with that time, as some do with interrupts and steal.
    charged: bool,
}

/// 100 such wakeups by a kernel that preempts `at`, each in a call of its own, and as many calls that `others`
/// draw out by as much, so that such calls are usual.
fn busy(at: At, others: Others) -> Series {
    let Others { before_ns, after_ns, charged } = others;
    let (call, prober) = (Call::PipeRead, Prober::Fair);
    let charged_ns = if charged { before_ns + after_ns } else { 0 };
    let (mut calls, mut wakeups) = (Vec::new(), Vec::new());
    let mut begin_ns = 1_000_000;
    for k in 0..100 {
        let late_ns = before_ns + if matches!(at, At::Once) { 20_000 } else { 700_000 };
        let woken_ns = begin_ns + 300_000 + late_ns;
        let expiry_ns = begin_ns + 300_000;
        wakeups.push(Wakeup { expiry_ns, woken_ns, asleep_ns: woken_ns + 10_000 });
        let end_ns = begin_ns + 1_030_000 + before_ns + after_ns;
        calls.push(CallTimes { call, begin_ns, end_ns, cpu_ns: 1_010_000 + charged_ns });
        begin_ns = end_ns + 10_000;
        let (end_ns, cpu_ns) = match charged && k % 2 == 0 {
            true => (begin_ns + 1_000_000, 1_000_000),
            false => (begin_ns + 1_000_000 + before_ns + after_ns, 1_000_000 + charged_ns),
        };
        calls.push(CallTimes { call, begin_ns, end_ns, cpu_ns });
        begin_ns = end_ns + 10_000;
    }
    series(call, prober, &calls, &wakeups)
}

/// Others that make each call three times as long as it is, or more, gave the wrong answer when a call was compared
/// with the usual one: that was as long.
#[test]
fn others_that_have_the_cpu_are_no_evidence() {
    let answer = |series: &Series| Summary::of(series, WAKEUPS_NEEDED).answer;
    let right = |at| match at {
        At::Once => Answer::Preempted,
        At::End => Answer::Waited,
    };
    for (before_ns, after_ns, charged, want_disturbed) in [
        (0, 0, false, 0),
        // A few microseconds are in each call.
        (30_000, 0, false, 0),
        (0, 30_000, true, 0),
        // Before the prober ran: a call that was preempted looks as if it was waited for.
        (3_000_000, 0, false, 100),
        (20_000_000, 0, false, 100),
        // After it: a call that was waited for looks as if it was preempted.
        (0, 3_000_000, false, 100),
        (0, 20_000_000, false, 100),
        (3_000_000, 3_000_000, false, 100),
        // The kernel charges the victim with it.
        (3_000_000, 0, true, 100),
        (0, 3_000_000, true, 100),
    ] {
        for at in [At::Once, At::End] {
            let others = Others { before_ns, after_ns, charged };
            let series = busy(at, others);
            let want = if want_disturbed == 0 { right(at) } else { Answer::Undecided };
            assert_eq!(series.disturbed, want_disturbed, "{others:?}");
            assert_eq!(series.shares.len(), 100 - want_disturbed, "{others:?}");
            assert_eq!(answer(&series), want, "{others:?}");
        }
    }
}

#[test]
fn a_busy_cpu_is_the_reason_if_it_leaves_too_few_wakeups() {
    let busy = |o: &mut Observations, series: usize, left| {
        o.series[series].disturbed = o.series[series].shares.len() - left;
        o.series[series].shares.truncate(left);
    };
    let reason = |series, left| {
        let mut observations = kernel(Model::Full, Prober::Realtime);
        busy(&mut observations, series, left);
        judge(&observations, TimeDomain::Real).reason
    };
    assert_eq!(
        reason(0, WAKEUPS_NEEDED - 1),
        "too few wakeups occurred during the system call that every kernel preempts. The CPU was \
         busy: other tasks, interrupts or the hypervisor had it during too many of the wakeups"
    );
    assert!(reason(4, 0).contains(". The CPU was busy: "));
    // There are enough without the disturbed ones, or the answer needs none of that series.
    assert_eq!((reason(0, WAKEUPS_NEEDED), reason(1, 0)), (String::new(), String::new()));
    // So few would not have been enough either.
    let mut few = kernel(Model::Full, Prober::Realtime);
    few.series[0].shares.truncate(WAKEUPS_NEEDED - 1);
    few.series[0].disturbed = 0;
    assert!(!judge(&few, TimeDomain::Real).reason.contains("busy"));
}

proptest! {
    /// However long others have the CPU, and when, no wakeup speaks for what the kernel did not do.
    #[test]
    fn no_time_of_others_turns_an_answer(
        before_ns in 0_u64..50_000_000,
        after_ns in 0_u64..50_000_000,
        charged: bool,
        at_once: bool,
    ) {
        let at = if at_once { At::Once } else { At::End };
        let others = Others { before_ns, after_ns, charged };
        let series = busy(at, others);
        prop_assert_eq!(series.shares.len() + series.disturbed, 100);
        for share in series.shares {
            prop_assert!(if at_once { share <= 0.5 } else { share >= 0.5 }, "{others:?}: {share}");
        }
    }

    #[test]
    fn shares_are_shares(times: [u64; 5], cpu_ns: u64, own_ns: Option<u64>) {
        let [begin_ns, end_ns, expiry_ns, woken_ns, asleep_ns] = times;
        let call = CallTimes { call: Call::ZeroRead, begin_ns, end_ns, cpu_ns };
        let wakeup = Wakeup { expiry_ns, woken_ns, asleep_ns };
        if let Some(rest) = Rest::of(&call, &wakeup, own_ns) {
            prop_assert!((0.0..=1.0).contains(&rest.share()));
        }
        let _ = series(Call::ZeroRead, Prober::Fair, &[call], &[wakeup]);
    }
}
