#![allow(clippy::print_stdout)]
use wakescope_core::units::*;
use wakescope_sys::{clock, sched};
use wakescope_trace::*;
fn main() {
    let n: u64 = std::env::args().nth(1).map_or(2000, |a| a.parse().unwrap());
    let t0 = clock::now();
    let mut tracer = Tracer::start(Options { target: Target::Probes(1), pinned: true, above_ns: None, tail: 0.001, preemptible: Some(false), idle_states: vec![], room: 1000 }).unwrap_or_else(|e| panic!("{e}"));
    println!("start {}", clock::now().since(t0));
    let word = tracer.response(0).unwrap();
    let (tx, rx) = std::sync::mpsc::channel();
    let (gtx, grx) = std::sync::mpsc::channel::<MonoNs>();
    let th = std::thread::spawn(move || {
        sched::set_affinity(&[0]).unwrap();
        sched::set_schedule(sched::Schedule::Fifo { priority: 90 }).unwrap();
        tx.send(sched::this_thread()).unwrap();
        let origin = grx.recv().unwrap();
        let mut all = vec![];
        for i in 0..n {
            let mut e = origin.after(SpanNs(i * 1_000_000)); let n0 = clock::now(); if n0 > e { e = n0.after(SpanNs(300_000)); }
            clock::sleep_until(e).unwrap();
            let now = clock::now();
            word.store(now.0);
            all.push(now.since(e).0);
        }
        all
    });
    tracer.follow(rx.recv().unwrap().number()).unwrap();
    let origin = clock::now().after(SpanNs(10_000_000));
    tracer.begin(origin).unwrap();
    gtx.send(origin).unwrap();
    let mut i = 0;
    while !th.is_finished() { std::thread::sleep(std::time::Duration::from_millis(50)); tracer.poll(); i += 1; if i % 10 == 0 { tracer.adapt(); } }
    let mut all = th.join().unwrap();
    let t1 = clock::now();
    let traced = tracer.finish();
    println!("finish {}", clock::now().since(t1));
    all.sort();
    println!("probe: n {} min {} med {} max {}", all.len(), all[0], all[all.len()/2], all.last().unwrap());
    for (name, d) in [("irq", &traced.counted.components.irq_latency), ("handler", &traced.counted.components.handler_duration), ("sched", &traced.counted.components.sched_latency), ("dur", traced.counted.components.sched_duration.as_ref().unwrap_or(&traced.counted.wakeup_latency)), ("all", &traced.counted.wakeup_latency)] {
        println!("{name}: n {} min {:?} p50 {:?} max {:?} sum {}", d.count, d.min_ns, d.percentile("p50".parse().unwrap()), d.max_ns, d.sum_ns);
    }
    println!("records {} lost {} broken {} kept {}", traced.records, traced.lost_records, traced.broken, traced.wakeups.len());
    println!("{:?}\n{:?}", traced.seen_with, traced.not_seen);
    for w in traced.wakeups.iter().take(2) { println!("{w:#?}"); }
}
