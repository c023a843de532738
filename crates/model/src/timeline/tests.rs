use super::*;
use crate::{Rules, Scenario};

/// Two CPUs whose tasks, interrupts and softirqs fight for a spin lock, and tasks for a mutex.
const CONTENDED: &str = r#"
schema = "wakescope.scenario/1"
name = "contended"
machine = { cpus = 2 }
task = [
  { name = "probe", policy = "fifo:80", period = "1ms", cpu = 0 },
  { name = "reader", path = "read" },
  { name = "writer", path = "read" },
  { name = "w", policy = "fifo:10", path = "write" },
  { name = "x", path = "write" },
  { name = "y", path = "write" },
]
interrupt = [
  { name = "eth0", arrives = { poisson = "300us" }, path = "irq" },
  { name = "rx", kind = "softirq:net_rx", path = "softirq" },
]
[path]
irq = [{ compute = "5us" }, { raise_softirq = "net_rx" }]
softirq = [{ raw_spin_lock = "queue" }, { compute = "20us" }, { raw_spin_unlock = "queue" }]
read = [
  { user = { exponential = "50us" } },
  "local_bh_disable", { raw_spin_lock = "queue" }, { compute = "100us" }, { raw_spin_unlock = "queue" }, "local_bh_enable",
]
write = [
  { block = { exponential = "300us" } },
  { mutex_lock = "inode" }, { compute = "60us" }, { block = "50us" }, { mutex_unlock = "inode" },
]
"#;

fn image(rules: Rules) -> Image {
    let no_runs = |_: &str, _: &str| Err(String::new());
    Image::new(&Scenario::read("x.toml", CONTENDED, &no_runs).unwrap(), rules).unwrap()
}

/// 20 ms around the time 30 ms.
fn timeline(rules: Rules) -> Timeline {
    Timeline::of(&image(rules), 3, 30_000_000, 20_000_000).unwrap()
}

#[test]
fn a_lock_has_one_holder_at_a_time_and_who_waited_gets_it() {
    for rules in Rules::ALL {
        let timeline = timeline(rules);
        let (mut handed, mut contended) = (0, 0);
        for lock in [LockId(0), LockId(1)] {
            let of =
                |waits| timeline.locks.iter().filter(move |s| s.lock == lock && s.waits == waits);
            let held: Vec<&LockSpan> = of(false).collect();
            assert!(held.len() > 30, "{} {lock:?}: {}", rules.name, held.len());
            let in_order = |pair: &[&LockSpan]| pair[0].to_ns <= pair[1].from_ns;
            assert!(held.windows(2).all(in_order), "{}: two hold {lock:?}", rules.name);
            for wait in of(true).filter(|wait| wait.to_ns < timeline.to_ns) {
                let gets = |held: &&LockSpan| held.from_ns == wait.to_ns && held.by == wait.by;
                assert!(held.iter().any(gets), "{}: {wait:?} for nothing", rules.name);
                handed += 1;
                contended |= 1 << lock.0;
            }
        }
        assert!(handed > 20 && contended == 3, "{}: {handed} of {contended}", rules.name);
    }
}

#[test]
fn columns_have_what_took_most_of_them() {
    let timeline = timeline(Rules::named("full").unwrap());
    for (cpu, count) in [(CpuId(0), 66), (CpuId(1), 997), (CpuId(0), 1)] {
        for (column, found) in timeline.columns(cpu, count).into_iter().enumerate() {
            let (from, to) = timeline.column(column, count);
            let overlap = |s: &Stretch| s.to_ns.min(to).saturating_sub(s.from_ns.max(from));
            let rank = |s: &Stretch| (s.at.kind != FrameKind::Task, overlap(s));
            let own = timeline.stretches.iter().filter(|s| s.cpu == cpu && overlap(s) > 0);
            let want = own.max_by_key(|s| rank(s));
            assert_eq!(found.map(rank), want.map(rank), "column {column} of {count}");
        }
    }
}

#[test]
fn the_marks_of_a_wakeup_are_in_order() {
    for rules in Rules::ALL {
        let image = image(rules);
        let mut all: Vec<Sample> = Vec::new();
        let mut keep = |sample| all.push(sample);
        let watch = crate::simulation::Unwatched(&mut keep);
        Simulation::new(&image, 3, watch).run_until(Until { samples: 50, ns: u64::MAX }).unwrap();
        for sample in all {
            let timeline = Timeline::of(&image, 3, sample.expiry_ns, sample.latency_ns()).unwrap();
            let marks = [
                Some(timeline.expiry_ns),
                timeline.need_resched_ns(),
                timeline.sched_entry_ns(),
                Some(timeline.response_ns),
            ];
            let marks: Vec<u64> = marks.into_iter().flatten().collect();
            assert!(marks.is_sorted(), "{}: {marks:?}", rules.name);
            assert_eq!(timeline.cpu(), Some(CpuId(0)), "{}", rules.name);
            // The scheduler takes its time, and so does the way back to the probe.
            let entry = timeline.sched_entry_ns().unwrap();
            assert!(entry + 1_500 <= timeline.response_ns, "{}: {marks:?}", rules.name);
        }
    }
}
