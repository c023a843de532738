//! Threads that are woken over the network, on another CPU than that of whoever sends.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use wakescope_core::explain::StepEvent;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::Schedule;

use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow, explained};
use crate::common::measured::allowed_cpus;
use crate::common::threads::Threads;

const ORDINARY: Schedule = Schedule::Other { nice: 0 };

/// Who wakes a thread that receives by UDP on one CPU, by the beginnings of its latest wakeups from another CPU: names,
/// and how many have none. It waits for so many ms at most, and on the other CPU `beside` runs again and again, given
/// the address that it receives at. `None` where this cannot be seen.
fn wakers(
    name: &str,
    most_ms: u64,
    beside: (&str, fn(SocketAddr)),
) -> Option<(Vec<String>, usize)> {
    if !can_follow(name) {
        return None;
    }
    let [here, .., there] = allowed_cpus()[..] else {
        skip(name, "there is one CPU only");
        return None;
    };
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = receiver.local_addr().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(most_ms))).unwrap();
    let mut threads = Threads::default();
    let (other, act) = beside;
    let named = format!("{other}-{}", std::process::id());
    threads.repeat(&named, &[here], ORDINARY, move || {
        let _ = receiver.recv(&mut [0; 8]);
    });
    threads.repeat(other, &[there], ORDINARY, move || act(address));
    let test = Test::new(other);
    let all = ["--duration", "1s", "--above", "1ns", "--worst", "400"];
    let (run, _) = explained(&test, &[&["--comm", &named], &all[..], &["--out", "run"]].concat());
    threads.end();
    let first = run.worst.iter().filter_map(|episode| episode.timeline.first());
    let from_afar = first.filter_map(|step| match &step.event {
        StepEvent::MadeReady { by, cpu: Some(_), in_interrupt: false, .. } => Some(by.clone()),
        _ => None,
    });
    let (known, unknown): (Vec<_>, Vec<_>) = from_afar.partition(Option::is_some);
    Some((known.into_iter().flatten().map(|task| task.comm).collect(), unknown.len()))
}

/// The kernel delivers to this machine in a softirq of the call that sends.
#[test]
fn who_sends_to_a_thread_of_this_machine_has_woken_it() {
    const NAME: &str = "who_sends_to_a_thread_of_this_machine_has_woken_it";
    let send = |address| {
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", address).unwrap();
        clock::sleep_until(clock::now().after(SpanNs(2_000_000))).unwrap();
    };
    let Some((known, unknown)) = wakers(NAME, 500, ("sends", send)) else { return };
    assert!(!known.is_empty() && known.iter().all(|comm| comm == "sends"), "{known:?}, {unknown}");
}

/// The kernel's timer of such a wait runs in a softirq at the end of an interrupt. Whoever that came upon was once
/// called the waker.
#[test]
fn nobody_is_said_to_have_woken_whom_a_softirq_woke() {
    const NAME: &str = "nobody_is_said_to_have_woken_whom_a_softirq_woke";
    let spin = |_| std::hint::spin_loop();
    let Some((known, unknown)) = wakers(NAME, 8, ("spins", spin)) else { return };
    assert!(known.iter().all(|comm| comm != "spins"), "{known:?}, {unknown}");
    // Before 6.9 the CPU that sets such a timer waits for it itself.
    if known.is_empty() && unknown == 0 {
        skip(NAME, "no timer ran on another CPU");
    }
}
