//! Threads that are woken over the network, on another CPU than that of whoever sends.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wakescope_core::explain::StepEvent;
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::Schedule;

use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow, explained};
use crate::common::measured::allowed_cpus;
use crate::common::threads::Threads;

const ORDINARY: Schedule = Schedule::Other { nice: 0 };

/// Who wakes a thread of this name, by the beginnings of its latest wakeups on other CPUs: names, and how many have none.
fn wakers_of(run: &Run) -> (Vec<String>, usize) {
    let first = run.worst.iter().filter_map(|episode| episode.timeline.first());
    let from_afar = first.filter_map(|step| match &step.event {
        StepEvent::MadeReady { by, cpu: Some(_), in_interrupt: false, .. } => Some(by.clone()),
        _ => None,
    });
    let (known, unknown): (Vec<_>, Vec<_>) = from_afar.partition(Option::is_some);
    (known.into_iter().flatten().map(|task| task.comm).collect(), unknown.len())
}

/// The kernel delivers to this machine in a softirq of the call that sends.
#[test]
fn who_sends_to_a_thread_of_this_machine_has_woken_it() {
    const NAME: &str = "who_sends_to_a_thread_of_this_machine_has_woken_it";
    if !can_follow(NAME) {
        return;
    }
    let cpus = allowed_cpus();
    let [here, .., there] = cpus[..] else { return skip(NAME, "there is one CPU only") };
    let test = Test::new("senders");
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = receiver.local_addr().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut threads = Threads::default();
    let named = format!("rx-{}", std::process::id());
    threads.start(&named, &[here], ORDINARY, move |ends| {
        while !ends.load(Ordering::Relaxed) {
            let _ = receiver.recv(&mut [0; 8]);
        }
    });
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    threads.repeat("sends", &[there], ORDINARY, move || {
        sender.send_to(b"x", address).unwrap();
        clock::sleep_until(clock::now().after(SpanNs(2_000_000))).unwrap();
    });
    let all = ["--above", "1ns", "--worst", "400"];
    let args = [&["--comm", &named, "--duration", "1s"], &all[..], &["--out", "run"]].concat();
    let (run, _) = explained(&test, &args);
    threads.end();
    let (known, unknown) = wakers_of(&run);
    assert!(!known.is_empty() && known.iter().all(|comm| comm == "sends"), "{known:?}, {unknown}");
}

/// The kernel's timer of such a wait runs in a softirq at the end of an interrupt. Whoever that came upon was once
/// called the waker.
#[test]
fn nobody_is_said_to_have_woken_whom_a_softirq_woke() {
    const NAME: &str = "nobody_is_said_to_have_woken_whom_a_softirq_woke";
    if !can_follow(NAME) {
        return;
    }
    let cpus = allowed_cpus();
    let [here, .., there] = cpus[..] else { return skip(NAME, "there is one CPU only") };
    let test = Test::new("timeouts");
    let mut threads = Threads::default();
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(8))).unwrap();
    let named = format!("to-{}", std::process::id());
    threads.repeat(&named, &[here], ORDINARY, move || {
        let _ = receiver.recv(&mut [0; 8]);
    });
    threads.repeat("spins", &[there], ORDINARY, std::hint::spin_loop);
    let all = ["--above", "1ns", "--worst", "400"];
    let args = [&["--comm", &named, "--duration", "1s"], &all[..], &["--out", "run"]].concat();
    let (run, _) = explained(&test, &args);
    threads.end();
    let (known, unknown) = wakers_of(&run);
    assert!(known.iter().all(|comm| comm != "spins"), "{known:?}, {unknown}");
    // Before 6.9 the CPU that sets such a timer waits for it itself.
    if known.is_empty() && unknown == 0 {
        skip(NAME, "no timer ran on another CPU");
    }
}
