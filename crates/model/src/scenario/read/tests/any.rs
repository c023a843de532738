//! Random scenarios that can be written to a file.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use wakescope_core::run::TimeDomain;

use super::super::super::length::Bucket;
use super::super::super::*;
use super::super::limits;

const HOUR: u64 = limits::LENGTH_NS;

/// Locks by their family, so that none is of two.
const LOCKED: &[(LockKind, &str)] = &[
    (LockKind::Spin, "dcache_lock"),
    (LockKind::SpinIrq, "dcache_lock"),
    (LockKind::SpinBh, "tx \"lock\""),
    (LockKind::Raw, "rq\\lock"),
    (LockKind::RawIrq, "rq\\lock"),
    (LockKind::Mutex, "i_mutex"),
];
const EVENTS: &[&str] = &["done", "more work"];

pub(super) fn scenario() -> impl Strategy<Value = Scenario> {
    let most = 4_u32;
    (
        (
            name(),
            line(),
            (vec(line(), 0..4), option::of(measured()).prop_map(|one| one.into_iter().collect())),
            machine(most),
            kernel(),
            costs(),
        ),
        vec(steps(), 1..4),
        (groups(), vec((policy(), option::of(0..most), 0_usize..4, does()), 1..5)),
        vec((kind(), arrivals(), option::of(0..most)), 0..4),
    )
        .prop_map(
            |(
                (name, about, (published, measured), machine, kernel, costs),
                paths,
                (groups, tasks),
                interrupts,
            )| {
                let mut all = vec![defines(), Path { name: "handler".into(), steps: handler() }];
                let faults = vec![Step::PageFault(Length::Fixed(1))];
                all.push(Path { name: "faults".into(), steps: faults });
                for (i, steps) in paths.into_iter().enumerate() {
                    // Time passes in each.
                    let steps = [vec![Step::User(Length::Fixed(1))], steps].concat();
                    all.push(Path { name: format!("a path\"{i}"), steps });
                }
                let with_path = |does| match does {
                    Does::Path(_) => Does::Path(all[all.len() - 1].name.clone()),
                    Does::Probe { period_ps, path } => {
                        Does::Probe { period_ps, path: path.map(|_| "faults".into()) }
                    }
                };
                let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
                let task =
                    |(i, (policy, cpu, group, does)): (usize, (_, _, usize, _))| ScenarioTask {
                        name: format!("task {i}"),
                        policy,
                        cpu,
                        group: names.get(group).cloned(),
                        does: with_path(does),
                    };
                let tasks = tasks.into_iter().enumerate().map(task).collect();
                let interrupt = |(i, (kind, arrivals, cpu))| Interrupt {
                    name: format!("irq {i}"),
                    kind,
                    arrivals: Some(arrivals),
                    cpu,
                    handler: "handler".into(),
                };
                let mut interrupts: Vec<Interrupt> =
                    interrupts.into_iter().enumerate().map(interrupt).collect();
                for (name, kind, arrivals) in [
                    ("net_rx", InterruptKind::Softirq(3), None),
                    ("sda", InterruptKind::Device, None),
                ] {
                    let handler = "handler".into();
                    interrupts.push(Interrupt {
                        name: name.into(),
                        kind,
                        arrivals,
                        cpu: None,
                        handler,
                    });
                }
                Scenario {
                    name,
                    about,
                    published,
                    measured,
                    machine,
                    kernel,
                    costs,
                    paths: all,
                    groups,
                    tasks,
                    interrupts,
                }
            },
        )
}

/// A path that defines what others name.
fn defines() -> Path {
    let mut steps = vec![Step::Block { length: Length::Fixed(1), interrupt: Some("sda".into()) }];
    steps.extend(LOCKED.iter().map(|&(kind, lock)| Step::Lock(kind, lock.into())));
    steps.extend(EVENTS.iter().map(|event| Step::Wake((*event).into())));
    Path { name: "defines".into(), steps }
}

fn handler() -> Vec<Step> {
    vec![Step::Call("irq\\1".into(), vec![Step::RaiseSoftirq(3), Step::Wake("done".into())])]
}

fn name() -> impl Strategy<Value = String> {
    "[ -~]{1,64}"
}

fn line() -> impl Strategy<Value = String> {
    "[ -~äµ]{0,40}"
}

fn machine(cpus: u32) -> impl Strategy<Value = Machine> {
    let states = vec((0..=HOUR, 0..=HOUR), 0..4).prop_map(|states| {
        let state = |(i, (exit_ns, residency_ns))| {
            let name = format!("C{i}");
            IdleState { name, exit_ns, residency_ns }
        };
        states.into_iter().enumerate().map(state).collect()
    });
    (cpus..=64, 0_u32..=10_000, states).prop_map(|(cpus, tick_hz, idle_states)| Machine {
        cpus,
        tick_hz,
        idle_states,
    })
}

fn measured() -> impl Strategy<Value = Measured> {
    let time = || option::of(1..=HOUR);
    let times = (time(), time(), time());
    let below = vec((1..HOUR, 0.001_f64..=100.0), 0..4).prop_map(|mut below| {
        below.sort_by_key(|&(ns, _)| ns);
        below.dedup_by_key(|&mut (ns, _)| ns);
        below
    });
    let percentiles = (option::of(1..=HOUR), option::of(1..=HOUR)).prop_map(|(p50, p999)| {
        let of = |name: &str, ns: Option<u64>| ns.map(|ns| (name.parse().unwrap(), ns));
        [of("p50", p50), of("p99.9", p999)].into_iter().flatten().collect::<Vec<_>>()
    });
    let time_domain = select(vec![TimeDomain::Real, TimeDomain::Virtual]);
    let count = 1..=u64::from(u32::MAX);
    let counts = (count.clone(), option::of(count));
    (name(), time_domain, counts, times, percentiles, below).prop_map(
        |(kernel, time_domain, (samples, buckets), times, percentiles, below)| {
            let (max_ns, mean_ns, stdev_ns) = times;
            let figures =
                Measured { max_ns, mean_ns, stdev_ns, percentiles, ..Measured::default() };
            let preempt = "full".into();
            Measured { preempt, kernel, time_domain, samples, buckets, below, ..figures }
        },
    )
}

fn groups() -> impl Strategy<Value = Vec<Group>> {
    let period = limits::QUOTA_NS..=limits::QUOTA_PERIOD_NS;
    vec((limits::QUOTA_NS..=HOUR, period), 0..4).prop_map(|groups| {
        let group = |(i, (quota_ns, period_ns))| {
            let name = format!("group \\{i}");
            Group { name, quota_ns, period_ns }
        };
        groups.into_iter().enumerate().map(group).collect()
    })
}

fn kernel() -> impl Strategy<Value = Settings> {
    let budget = (1..HOUR, 1..HOUR, any::<bool>()).prop_filter_map("no room", |(a, b, server)| {
        let (runtime_ns, period_ns) = (a.min(b), a.max(b));
        let budget = RtBudget { runtime_ns, period_ns, fair_server: server };
        (runtime_ns < period_ns).then_some(budget)
    });
    (any::<bool>(), option::of(budget)).prop_map(|(bh_lock, rt)| Settings { bh_lock, rt })
}

fn costs() -> impl Strategy<Value = Costs> {
    vec(length(), 8).prop_map(|lengths| {
        let mut costs = Costs::default();
        for ((_, cost), length) in words::costs(&mut costs).into_iter().zip(lengths) {
            *cost = length;
        }
        costs
    })
}

fn length() -> impl Strategy<Value = Length> {
    let pareto = (1..HOUR, 0.01_f64..100.0, 0..HOUR).prop_map(|(least, shape, more)| {
        Length::Pareto { least, shape, most: (least + more).min(HOUR) }
    });
    let histogram = vec((0_u64..1_000, 1_u64..1_000_000, 1_u64..1 << 40), 1..5).prop_map(|parts| {
        let mut end = 0;
        let buckets = parts.into_iter().map(|(gap, width, count)| {
            let lower = end + gap;
            end = lower + width;
            Bucket { lower, upper: end, count }
        });
        Length::Histogram(buckets.collect())
    });
    let leaf = prop_oneof![
        4 => (0..=HOUR).prop_map(Length::Fixed),
        1 => (0..=HOUR, 0..=HOUR).prop_map(|(a, b)| Length::Uniform(a.min(b), a.max(b))),
        1 => (1..=HOUR).prop_map(Length::Exponential),
        1 => pareto,
        1 => histogram,
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        vec((1e-6_f64..1e9, inner), 1..4).prop_map(Length::Mixture)
    })
}

fn count() -> impl Strategy<Value = Count> {
    let most = 1_000_000_000_u32;
    prop_oneof![
        (1..=most).prop_map(Count::Fixed),
        (0..=most, 0..=most).prop_map(|(a, b)| Count::Uniform(a.min(b), a.max(b))),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let event = || select(EVENTS).prop_map(String::from);
    let some_time = || (1..=HOUR).prop_map(|ns| Step::Compute(Length::Fixed(ns)));
    let plain = select(words::PLAIN).prop_map(|(_, step)| step);
    let leaf = prop_oneof![
        4 => plain,
        1 => length().prop_map(Step::User),
        2 => length().prop_map(Step::Compute),
        1 => length().prop_map(Step::PageFault),
        2 => select(LOCKED).prop_map(|(kind, lock)| Step::Lock(kind, lock.into())),
        2 => select(LOCKED).prop_map(|(kind, lock)| Step::Unlock(kind, lock.into())),
        1 => (length(), option::of(Just("sda".to_owned())))
            .prop_map(|(length, interrupt)| Step::Block { length, interrupt }),
        1 => event().prop_map(Step::Wait),
        1 => event().prop_map(Step::Wake),
        1 => event().prop_map(Step::PrepareToWait),
        1 => event().prop_map(Step::FinishWait),
        1 => Just(Step::RaiseSoftirq(3)),
    ];
    let looped = (count(), 1..1_000_000_000_u32, any::<bool>(), some_time()).prop_map(
        |(count, every, restart, time)| {
            let lock = LockBreak { lock: "dcache_lock".into(), every, restart };
            Step::Repeat(count, vec![time, Step::LockBreak(lock)])
        },
    );
    let step = prop_oneof![9 => leaf, 1 => looped].prop_recursive(3, 24, 5, move |inner| {
        let timed = (some_time(), vec(inner.clone(), 0..5)).prop_map(|(time, mut steps)| {
            steps.push(time);
            steps
        });
        let inner = vec(inner, 0..5);
        prop_oneof![
            (name(), inner.clone()).prop_map(|(name, steps)| Step::Call(name, steps)),
            (count(), timed).prop_map(|(count, steps)| Step::Repeat(count, steps)),
            (event(), inner.clone()).prop_map(|(event, steps)| Step::Unless(event, steps)),
            (name(), inner).prop_map(|(name, steps)| Step::PerCpu(name, steps)),
        ]
    });
    vec(step, 0..8)
}

fn policy() -> impl Strategy<Value = TaskPolicy> {
    prop_oneof![
        (-20_i8..=19).prop_map(TaskPolicy::Other),
        (1_u8..=99).prop_map(TaskPolicy::Fifo),
        (1_u8..=99).prop_map(TaskPolicy::RoundRobin),
        (1..=HOUR).prop_map(TaskPolicy::Deadline),
    ]
}

fn does() -> impl Strategy<Value = Does> {
    let common = select(&[488_281_250, 1_000_000_000, 16_666_666_667][..]);
    let periods = prop_oneof![common, limits::PERIOD_PS..=HOUR * 1_000];
    prop_oneof![
        Just(Does::Path(String::new())),
        (periods, option::of(Just(String::new())))
            .prop_map(|(period_ps, path)| Does::Probe { period_ps, path }),
    ]
}

fn kind() -> impl Strategy<Value = InterruptKind> {
    use InterruptKind::{Device, Nmi, Steal, Unthreaded};
    select(&[Device, Unthreaded, Nmi, Steal][..])
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let recorded = vec(0..=HOUR, 0..5).prop_map(|mut times| {
        times.sort_unstable();
        Arrivals::Recorded(times)
    });
    prop_oneof![
        (1..=HOUR).prop_map(Arrivals::Periodic),
        (1..=HOUR).prop_map(Arrivals::Poisson),
        (1..=HOUR, 1_u32..=10_000, 1..=HOUR)
            .prop_map(|(every_ns, count, gap_ns)| Arrivals::Bursts { every_ns, count, gap_ns }),
        recorded,
    ]
}
