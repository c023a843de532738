//! A probe that a tracer follows on this machine, for tests.

use std::sync::mpsc::channel;

use wakescope_core::preemption::Model;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::this_thread;

use super::*;

/// How far apart its wakeups are.
const INTERVAL: SpanNs = SpanNs(200_000);

/// What a tracer of it is asked for that keeps so many wakeups with all their events.
pub(super) fn options(above_ns: Option<u64>, room: usize) -> Options {
    Options {
        target: Target::Probes,
        within_cgroup: None,
        kept_name: None,
        stimulus: Stimulus::Timer,
        probes: 1,
        pinned: false,
        above_ns,
        tail: 0.001,
        late: 0,
        model: Model::Unknown,
        idle_states: Vec::new(),
        room,
        machine: Machine::default(),
        watch: None,
        sections: None,
        by: None,
    }
}

/// Has `tracer`, which reads nothing meanwhile, follow that many wakeups. The probe says of each how late it was:
/// by `claims`, or else when it truly was.
pub(super) fn follow(
    tracer: &mut Tracer,
    wakeups: u64,
    claims: impl Fn(u64) -> Option<SpanNs> + Sync,
) {
    let mut answers = tracer.answers(0).unwrap();
    let claims = &claims;
    thread::scope(|scope| {
        let (known, thread) = channel();
        let (go, gone) = channel();
        let probe = scope.spawn(move || {
            known.send(this_thread().number()).unwrap();
            gone.recv().unwrap();
            for number in 0..wakeups {
                // It is asleep when this comes, so that it is followed.
                let due = clock::now().after(INTERVAL);
                clock::sleep_until(due).unwrap();
                let answered = claims(number).map_or_else(clock::now, |late| due.after(late));
                answers.put(due.0, answered.0);
            }
            // The last one ends when the thread sleeps again.
            clock::sleep_until(clock::now().after(INTERVAL)).unwrap();
        });
        tracer.follow(thread.recv().unwrap()).unwrap();
        tracer.begin(clock::now()).unwrap();
        go.send(()).unwrap();
        probe.join().unwrap();
    });
}
