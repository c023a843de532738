//! Files that are scenarios, and files that are none.

use proptest::prelude::*;

use super::super::length::Bucket;
use super::super::{Count, Length, LockBreak, LockKind, SHIPPED, Scenario, Step};
use super::limits;
use crate::{Image, Rules};

mod any;
mod docs;
mod limited;
mod refused;

/// Lengths of a run that does not exist, and of one that nobody may read.
fn runs(run: &str, of: &str) -> Result<Vec<Bucket>, String> {
    match (run, of) {
        ("runs/good", "wakeup_latency") => Ok(vec![
            Bucket { lower: 1_000, upper: 2_000, count: 3 },
            Bucket { lower: 2_000, upper: 2_500, count: 1 },
        ]),
        ("runs/large", _) => {
            let bucket = |i| Bucket { lower: i, upper: i + 1, count: 1 };
            Ok((0..90_000).map(bucket).collect())
        }
        ("runs/backwards", _) => Ok(vec![Bucket { lower: 3, upper: 2, count: 1 }]),
        _ => Err(format!("there is no run {run} with {of}")),
    }
}

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::read("x.toml", text, &runs).map_err(|e| e.to_string())
}

/// The steps of a path, written as in a file.
#[track_caller]
fn steps(written: &str) -> Vec<Step> {
    let text = format!(
        r#"
        schema = "wakescope.scenario/1"
        name = "x"
        [[task]]
        name = "find"
        path = "find"
        [[task]]
        name = "waker"
        path = "waker"
        [[interrupt]]
        name = "sda"
        path = "handler"
        [[interrupt]]
        name = "rx"
        kind = "softirq:net_rx"
        path = "handler"
        [path]
        handler = []
        helper = ["work"]
        waker = [{{ block = "1ms", interrupt = "sda" }}, {{ wake = "done" }}, {{ spin_lock = "l" }}]
        find = [{{ user = "1us" }}, {written}]
        "#
    );
    let mut scenario = read(&text).unwrap_or_else(|e| panic!("{written}: {e}"));
    scenario.paths.pop().unwrap().steps.split_off(1)
}

#[test]
fn every_step_can_be_written() {
    let us = |us: u64| Length::Fixed(us * 1_000);
    let compute = || vec![Step::Compute(us(2))];
    let lock = |kind| Step::Lock(kind, "m".into());
    let unlock = |kind| Step::Unlock(kind, "m".into());
    let pair = |kind| vec![lock(kind), unlock(kind)];
    let lock_break = |every, restart| LockBreak { lock: "l".into(), every, restart };
    for (written, want) in [
        (r#"{ user = "3us" }"#, vec![Step::User(us(3))]),
        (r#"{ compute = "2us" }"#, compute()),
        (r#"{ page_fault = "2us" }"#, vec![Step::PageFault(us(2))]),
        (
            r#"{ call = "vfs_read", do = [{ compute = "2us" }] }"#,
            vec![Step::Call("vfs_read".into(), compute())],
        ),
        (r#"{ call = "helper" }"#, vec![Step::Call("helper".into(), vec![Step::Work])]),
        (
            r#"{ repeat = 7, do = [{ compute = "2us" }] }"#,
            vec![Step::Repeat(Count::Fixed(7), compute())],
        ),
        (
            r#"{ repeat = [0, 9], do = [{ compute = "2us" }] }"#,
            vec![Step::Repeat(Count::Uniform(0, 9), compute())],
        ),
        (r#"{ spin_lock = "m" }, { spin_unlock = "m" }"#, pair(LockKind::Spin)),
        (
            r#"{ spin_lock_irqsave = "m" }, { spin_unlock_irqrestore = "m" }"#,
            pair(LockKind::SpinIrq),
        ),
        (r#"{ spin_lock_bh = "m" }, { spin_unlock_bh = "m" }"#, pair(LockKind::SpinBh)),
        (r#"{ raw_spin_lock = "m" }, { raw_spin_unlock = "m" }"#, pair(LockKind::Raw)),
        (
            r#"{ raw_spin_lock_irqsave = "m" }, { raw_spin_unlock_irqrestore = "m" }"#,
            pair(LockKind::RawIrq),
        ),
        (r#"{ mutex_lock = "m" }, { mutex_unlock = "m" }"#, pair(LockKind::Mutex)),
        (
            r#""preempt_disable", "preempt_enable", "local_irq_save", "local_irq_restore""#,
            vec![Step::PreemptDisable, Step::PreemptEnable, Step::IrqSave, Step::IrqRestore],
        ),
        (
            r#""local_bh_disable", "local_bh_enable", "rcu_read_lock", "rcu_read_unlock""#,
            vec![Step::BhDisable, Step::BhEnable, Step::RcuReadLock, Step::RcuReadUnlock],
        ),
        (
            r#""cond_resched", "preemption_point", "schedule", "work""#,
            vec![Step::CondResched, Step::PreemptionPoint, Step::Schedule, Step::Work],
        ),
        (
            r#"{ repeat = 2, do = [{ lock_break = "l" }] }"#,
            vec![Step::Repeat(Count::Fixed(2), vec![Step::LockBreak(lock_break(1, false))])],
        ),
        (
            r#"{ repeat = 2, do = [{ lock_break = "l", every = 100, restart = true }] }"#,
            vec![Step::Repeat(Count::Fixed(2), vec![Step::LockBreak(lock_break(100, true))])],
        ),
        (r#"{ block = "2us" }"#, vec![Step::Block { length: us(2), interrupt: None }]),
        (
            r#"{ block = "2us", interrupt = "sda" }"#,
            vec![Step::Block { length: us(2), interrupt: Some("sda".into()) }],
        ),
        (r#"{ wait = "done" }"#, vec![Step::Wait("done".into())]),
        (r#"{ wake = "done" }"#, vec![Step::Wake("done".into())]),
        (
            r#"{ prepare_to_wait = "done" }, { unless = "done", do = ["schedule"] }, { finish_wait = "done" }"#,
            vec![
                Step::PrepareToWait("done".into()),
                Step::Unless("done".into(), vec![Step::Schedule]),
                Step::FinishWait("done".into()),
            ],
        ),
        (r#"{ raise_softirq = "net_rx" }"#, vec![Step::RaiseSoftirq(3)]),
        (r#"{ raise_softirq = 3 }"#, vec![Step::RaiseSoftirq(3)]),
        (
            r#"{ per_cpu = "pagevec", do = [{ compute = "2us" }] }"#,
            vec![Step::PerCpu("pagevec".into(), compute())],
        ),
    ] {
        assert_eq!(steps(written), want, "{written}");
    }
}

#[test]
fn every_length_can_be_written() {
    let bucket = |lower, upper, count| Bucket { lower, upper, count };
    let uniform = Length::Uniform(1_000_000, 2_000_000);
    for (written, want) in [
        (r#""3us""#, Length::Fixed(3_000)),
        (r#""0ns""#, Length::Fixed(0)),
        (r#""488.281us""#, Length::Fixed(488_281)),
        (r#""1h""#, Length::Fixed(3_600_000_000_000)),
        (r#"{ uniform = ["1ms", "2ms"] }"#, uniform.clone()),
        (r#"{ exponential = "3us" }"#, Length::Exponential(3_000)),
        (
            r#"{ pareto = { least = "1us", shape = 1.5, most = "10ms" } }"#,
            Length::Pareto { least: 1_000, shape: 1.5, most: 10_000_000 },
        ),
        (
            r#"{ mixture = [[9, "3us"], [0.1, { uniform = ["1ms", "2ms"] }]] }"#,
            Length::Mixture(vec![(9.0, Length::Fixed(3_000)), (0.1, uniform)]),
        ),
        (
            r#"{ histogram = [["1us", "2us", 3], ["4us", "5us", 1]] }"#,
            Length::Histogram(vec![bucket(1_000, 2_000, 3), bucket(4_000, 5_000, 1)]),
        ),
        (
            r#"{ run = "runs/good", of = "wakeup_latency" }"#,
            Length::Histogram(vec![bucket(1_000, 2_000, 3), bucket(2_000, 2_500, 1)]),
        ),
    ] {
        let step = format!("{{ compute = {written} }}");
        assert_eq!(steps(&step), [Step::Compute(want)], "{written}");
    }
}

#[test]
fn all_shipped_scenarios_can_be_read() {
    for shipped in SHIPPED {
        let scenario = shipped.read().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(scenario.name, shipped.name);
        assert!(scenario.about.len() > 20, "{}", shipped.name);
        // Wider lines would not stand below the table as they are written.
        let fits = |line: &String| line.chars().count() <= 98;
        assert!(scenario.published.iter().all(fits), "{}", shipped.name);
        assert!(shipped.text.starts_with("# "), "{} says nothing of its origin", shipped.name);
        assert_eq!(read(&scenario.to_toml()), Ok(scenario), "{}", shipped.name);
    }
    assert!(SHIPPED.is_sorted_by_key(|shipped| shipped.name));
}

proptest! {
    #[test]
    fn a_written_scenario_is_read_as_it_was(scenario in any::scenario()) {
        let text = scenario.to_toml();
        // What a file can say, every model can run.
        for rules in Rules::ALL {
            prop_assert_eq!(Image::new(&scenario, rules).err(), None, "{}: {}", rules.name, text);
        }
        prop_assert_eq!(read(&text), Ok(scenario), "{}", text);
    }
}

#[test]
fn fuzz_scenarios() {
    let mut seeds: Vec<Vec<u8>> = SHIPPED.iter().map(|shipped| shipped.text.into()).collect();
    seeds.extend(docs::examples().map(Vec::from));
    wakescope_testing::fuzz_fewer("scenario", 2, &seeds, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        if let Ok(scenario) = Scenario::read("x.toml", text, &runs) {
            assert!(scenario.tasks.len() <= limits::TASKS);
            for rules in Rules::ALL {
                assert_eq!(Image::new(&scenario, rules).err(), None);
            }
            assert_eq!(Scenario::read("x.toml", &scenario.to_toml(), &runs), Ok(scenario));
        }
    });
}
