//! What a watch tells.

use wakescope_core::watch::counters::{Counter, Counters, Followed, Key, Split, Totals};
use wakescope_core::watch::explained::Suppressed;
use wakescope_core::watch::{Audit, LeftOut, WaitBegin, Waits};

use super::{Family, Kind, Sample, Value};

/// The row of all that have none of their own. No path of a cgroup is like it.
const OTHERS: &str = "(others)";

/// How exact histograms are: those that have native buckets, and those of explicit bounds alone.
const WITH_NATIVE_BUCKETS: [&str; 2] = [
    "Waits of tasks for a CPU, from when they were put into a run queue until they ran. Exact: count, sum, and each \
     classic bucket. Approximate: native buckets tell a wait as up to 4.3 % shorter or 10.9 % longer than it was.",
    "The same waits by the CPU on which they ended. Exact and approximate as wakescope_wait_seconds.",
];
const OF_EXPLICIT_BOUNDS: [&str; 2] = [
    "Waits of tasks for a CPU, from when they were put into a run queue until they ran. Exact: count, sum and buckets.",
    "The same waits by the CPU on which they ended. Exact.",
];

/// All families of a watch.
pub fn families(counters: &Counters) -> Vec<Family> {
    described(counters, WITH_NATIVE_BUCKETS)
}

fn described(counters: &Counters, of_histograms: [&'static str; 2]) -> Vec<Family> {
    let mut all = vec![version()];
    all.extend(waits(counters, of_histograms));
    all.extend(losses(&counters.totals().left_out));
    all.extend(progress(counters));
    all.extend(own_cost(counters.totals()));
    all.extend(places(counters));
    all.extend(counters.totals().audit.as_ref().map(audit));
    all.extend(causes(counters.totals()));
    all.extend(counters.totals().followed.iter().flat_map(followed));
    all
}

/// The same without what is of the last minutes, for counters of one period: their histograms have its
/// longest wait, and no native buckets.
pub fn deltas(counters: &Counters) -> Vec<Family> {
    let mut all = described(counters, OF_EXPLICIT_BOUNDS);
    all.retain(|family| !family.name.ends_with("_longest_seconds"));
    all
}

fn version() -> Family {
    let version = env!("CARGO_PKG_VERSION");
    let samples =
        vec![Sample { labels: vec![("version", version.into())], value: Value::Number(1) }];
    let help = "The version of wakescope.";
    Family { name: "wakescope_build_info", kind: Kind::Gauge, help, samples }
}

fn waits(counters: &Counters, [of_tasks, of_cpus]: [&'static str; 2]) -> [Family; 5] {
    let from = match counters.totals().from {
        Some(WaitBegin::Queued) | None => "queued",
    };
    let others = Key {
        cgroup: OTHERS.into(),
        comm: (counters.split() == Split::Series).then(|| OTHERS.into()),
    };
    let series = counters.series().chain([(&others, counters.others())]);
    let series: Vec<_> = series.map(|(key, counter)| (labels(key, from), counter)).collect();
    let cpu_labels = |cpu: u32| vec![("cpu", cpu.to_string()), ("from", from.to_owned())];
    let cpus = counters.cpus().map(|(cpu, _, counter)| (cpu_labels(cpu), counter));
    let cpus: Vec<_> = cpus.collect();
    let switches = counters.cpus().map(|(cpu, switches, _)| Sample {
        labels: vec![("cpu", cpu.to_string())],
        value: Value::Number(switches),
    });
    [
        Family {
            name: "wakescope_wait_seconds",
            kind: Kind::Histogram,
            help: of_tasks,
            samples: histograms(&series),
        },
        Family {
            name: "wakescope_wait_longest_seconds",
            kind: Kind::Gauge,
            help: "The longest wait of the last minute or two. Exact, but for waits that ended at the very \
                   moment at which an interval did: these are up to 6.25 % too long, and 17.2 s for any longer \
                   one.",
            samples: peaks(&series),
        },
        Family {
            name: "wakescope_cpu_wait_seconds",
            kind: Kind::Histogram,
            help: of_cpus,
            samples: histograms(&cpus),
        },
        Family {
            name: "wakescope_cpu_wait_longest_seconds",
            kind: Kind::Gauge,
            help: "The longest wait of the last minute or two, by the CPU on which it ended. Exact as \
                   wakescope_wait_longest_seconds.",
            samples: peaks(&cpus),
        },
        Family {
            name: "wakescope_switches",
            kind: Kind::Counter,
            help: "Switches of each CPU from one task to another, or to or from idle, that the kernel reported.",
            samples: switches.collect(),
        },
    ]
}

type Labels = Vec<(&'static str, String)>;

fn labels(key: &Key, from: &str) -> Labels {
    let mut labels = vec![("cgroup", key.cgroup.clone())];
    labels.extend(key.comm.clone().map(|comm| ("comm", comm)));
    labels.push(("from", from.to_owned()));
    labels
}

fn histograms(all: &[(Labels, &Counter)]) -> Vec<Sample> {
    let waits = |waits: &Waits| Value::Waits(waits.clone());
    let sample = |(labels, counter): &(Labels, &Counter)| Sample {
        labels: labels.clone(),
        value: waits(&counter.waits),
    };
    all.iter().map(sample).collect()
}

fn peaks(all: &[(Labels, &Counter)]) -> Vec<Sample> {
    let sample = |(labels, counter): &(Labels, &Counter)| Sample {
        labels: labels.clone(),
        value: Value::Time(counter.peak_ns()),
    };
    all.iter().map(sample).collect()
}

fn losses(left_out: &LeftOut) -> [Family; 5] {
    let LeftOut {
        uncovered_ns,
        unstamped,
        discarded,
        untracked,
        first,
        caught_up,
        missed,
        missed_ns,
        contradicted,
        asleep,
        asleep_ns,
    } = *left_out;
    [
        Family {
            name: "wakescope_left_out",
            kind: Kind::Counter,
            help: "Waits that are not, or not wholly, in wakescope_wait_seconds.",
            samples: by(
                "why",
                &[
                    ("missed", missed),
                    ("discarded", discarded),
                    ("untracked", untracked),
                    ("contradicted", contradicted),
                    ("asleep", asleep),
                ],
            ),
        },
        Family {
            name: "wakescope_irregular",
            kind: Kind::Counter,
            help: "Irregular reports of the kernel. caught_up and first are waits that are counted; \
                   unstamped are tasks that the kernel did not mark as waiting.",
            samples: by(
                "why",
                &[("caught_up", caught_up), ("first", first), ("unstamped", unstamped)],
            ),
        },
        Family::of(
            "wakescope_missed_seconds",
            Kind::Counter,
            "Time of the waits that the kernel has counted and wakescope missed.",
            Value::Time(missed_ns),
        ),
        Family::of(
            "wakescope_asleep_seconds",
            Kind::Counter,
            "Time, by the kernel's count, of waits that are left out because it may have counted sleep.",
            Value::Time(asleep_ns),
        ),
        Family::of(
            "wakescope_uncovered_seconds",
            Kind::Counter,
            "Time in which nothing was counted: until the program was attached.",
            Value::Time(uncovered_ns),
        ),
    ]
}

fn progress(counters: &Counters) -> impl Iterator<Item = Family> {
    let end = counters.totals().end.and_then(|end| u64::try_from(end.seconds()).ok());
    let end = end.map(|seconds| {
        Family::of(
            "wakescope_last_interval_end_timestamp_seconds",
            Kind::Gauge,
            "When the last interval ended that is in these figures.",
            Value::Number(seconds),
        )
    });
    let watched = Family::of(
        "wakescope_watched_seconds",
        Kind::Counter,
        "Length of all intervals in these figures.",
        Value::Time(counters.watched_ns()),
    );
    let moved = Family::of(
        "wakescope_moved_waits",
        Kind::Counter,
        "Waits that began in the queue of another CPU than the one on which they ended.",
        Value::Number(counters.totals().moved.count),
    );
    [watched, moved].into_iter().chain(end)
}

fn own_cost(totals: &Totals) -> [Family; 2] {
    let part =
        |part: &str, ns| Sample { labels: vec![("part", part.to_owned())], value: Value::Time(ns) };
    [
        Family {
            name: "wakescope_own_cpu_seconds",
            kind: Kind::Counter,
            help: "CPU time that watching took: of the process (agent), of its BPF program, and of the programs \
                   of the tracer that follows late series (--explain). That of the program is measured now \
                   and then and estimated in between; it does not include the call of the \
                   program, nor time in which it is not known (wakescope_own_cpu_unknown_seconds_total).",
            samples: vec![
                part("agent", totals.agent_ns),
                part("program", totals.program_ns),
                part("tracer", totals.tracer_ns),
            ],
        },
        Family::of(
            "wakescope_own_cpu_unknown_seconds",
            Kind::Counter,
            "Watched time in which the CPU time of the BPF program is not known.",
            Value::Time(totals.cost_unknown_ns),
        ),
    ]
}

/// How many series there are, and how many there can be.
fn places(counters: &Counters) -> [Family; 2] {
    let places = |of: &str, used, limit| {
        [("used", used), ("limit", limit)].map(|(what, number)| Sample {
            labels: vec![("of", of.to_owned()), ("what", what.to_owned())],
            value: Value::Number(number),
        })
    };
    let (used, limit) = counters.totals().rows;
    let exported = places("export", counters.series().count() as u64, counters.limit() as u64);
    let rows = places("kernel", used, limit);
    [
        Family {
            name: "wakescope_series",
            kind: Kind::Gauge,
            help: "Series that are counted by name, in the kernel and here, and how many can be. All others \
                   are the series (others).",
            samples: rows.into_iter().chain(exported).collect(),
        },
        Family::of(
            "wakescope_retired_series",
            Kind::Gauge,
            "Series that are not shown any more because they had no waits for 10 minutes and others needed the \
             place. They go on from their counts if they come back.",
            Value::Number(counters.retired() as u64),
        ),
    ]
}

fn audit(audit: &Audit) -> Family {
    let tasks = [
        ("equal", audit.equal),
        ("behind", audit.behind),
        ("differing", audit.differing),
        ("busy", audit.busy),
        ("gone", audit.gone),
        ("not_reached", audit.not_reached),
    ];
    Family {
        name: "wakescope_audit_tasks",
        kind: Kind::Gauge,
        help: "Tasks by how their counts compare with the kernel's own, in the last interval.",
        samples: by("result", &tasks),
    }
}

/// Long waits, and what is known of them.
fn causes(totals: &Totals) -> [Family; 2] {
    let episodes: Vec<_> =
        totals.episodes.iter().map(|(cause, &count)| (cause.name(), count)).collect();
    [
        Family::of(
            "wakescope_long_waits",
            Kind::Counter,
            "Waits of 1 ms and longer, without those that ended at a switch which the kernel did not report.",
            Value::Number(totals.long_waits),
        ),
        Family {
            name: "wakescope_episodes",
            kind: Kind::Counter,
            help: "Long waits by cause: of each interval the eight longest, of the two longest of each CPU.",
            samples: by("cause", &episodes),
        },
    ]
}

/// What the tracer of --explain followed, and what it did not.
fn followed(followed: &Followed) -> [Family; 2] {
    let Suppressed { budget, cooling, busy, failed } = followed.suppressed;
    let why = [("budget", budget), ("cooling", cooling), ("busy", busy), ("failed", failed)];
    [
        Family::of(
            "wakescope_explained_series",
            Kind::Counter,
            "Late series that the tracer of --explain followed.",
            Value::Number(followed.series),
        ),
        Family {
            name: "wakescope_explain_suppressed",
            kind: Kind::Counter,
            help: "How often, once for each interval and series, a late series was not followed: because of the \
                   budget, because it had been shortly before (cooling), because another one was (busy), or because \
                   the tracer could not (failed).",
            samples: by("why", &why),
        },
    ]
}

/// A sample for each of these, with its name as this label.
fn by(label: &'static str, counts: &[(&str, u64)]) -> Vec<Sample> {
    let sample = |&(name, count): &(&str, u64)| Sample {
        labels: vec![(label, name.to_owned())],
        value: Value::Number(count),
    };
    counts.iter().map(sample).collect()
}

/// How requests for these figures ended so far.
pub fn scrapes(counts: [(&'static str, u64); 3]) -> Family {
    Family {
        name: "wakescope_scrapes",
        kind: Kind::Counter,
        help: "Requests for these figures that were answered, refused, or failed because the client was too slow \
               or went away.",
        samples: by("result", &counts),
    }
}

/// Waits that were refused by who takes these figures.
pub fn lost_waits(count: u64) -> Family {
    Family::of(
        "wakescope_refused_waits",
        Kind::Counter,
        "Waits in requests that the collector refused, wholly or in part.",
        Value::Number(count),
    )
}
