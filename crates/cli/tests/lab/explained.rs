//! What guests explain, and what they say where they cannot.

use std::path::Path;

use wakescope_core::explain::{Cause, StepEvent, Unsound};
use wakescope_core::lab::Status;
use wakescope_core::plan::Waker;

use crate::common::bench::{Ended, Running};
use crate::common::episodes::{LEAVES_SOFTIRQS, assert_some_softirqs_were_left};
use crate::common::lab::{Bench, KERNEL, Ran, first_lab};

/// Whatever the course of the guest, interrupts are off for hundreds of µs under this load, again and again.
const LOAD: &str = "file-move";

const WHAT: [&str; 10] =
    ["--kernel", KERNEL, "--preempt", "full", "--load", LOAD, "--seeds", "1", "--samples", "200"];

/// Whether a bound includes what has this cause.
fn is_composed(cause: Cause) -> bool {
    use Cause::{Irq, IrqOff, Nmi, NoPreemptionPoint, PreemptOff, Scheduler, Softirq, Tracer};
    matches!(
        cause,
        Irq | Softirq | Nmi | IrqOff | PreemptOff | NoPreemptionPoint | Scheduler | Tracer
    )
}

fn run(bench: &Bench, how: &[&str]) -> Ran {
    bench.run(&[&WHAT[..], &["--explain"], how].concat())
}

#[test]
fn a_bound_stands_beside_the_latest_wakeup() {
    let name = "a_bound_stands_beside_the_latest_wakeup";
    let Some((stock, pool, _)) = first_lab(name) else { return };
    let bench = Bench::new(stock, "bound");
    bench.take_kernels(&pool);
    let ran = run(&bench, &["--bound"]);
    assert_eq!(ran.cell().status, Status::Ok, "{}", ran.json);
    let bound = ran.cell().bound.as_ref().expect("it was asked for");
    // What is composed of maxima is no shorter than their sum in any wakeup. Which causes a guest has
    // that are not composed depends on its course, and so on its program.
    let record = ran.record();
    for episode in &record.worst {
        let composed = episode.blame.iter().filter(|share| is_composed(share.cause));
        let composed_ns: u64 = composed.map(|share| share.ns).sum();
        assert!(bound.bound_ns >= Some(composed_ns), "{bound:?} {episode:#?}");
    }
    let exceeded = bound.unsound.iter().any(|why| matches!(why, Unsound::Exceeded { .. }));
    assert_eq!(exceeded, ran.cell().max_ns > bound.bound_ns, "{}", ran.json);
    // 6.1 has no tracepoint at the scheduler's entry, and it is seen all the same.
    let duration = record.components.as_ref().and_then(|table| table.sched_duration.as_ref());
    assert_eq!(duration.map(|duration| duration.count), Some(200), "{duration:?}");
    assert!(bound.unsound.contains(&Unsound::SectionsOfLateWakeups), "{bound:?}");
    assert!(!bound.unsound.contains(&Unsound::SchedulerUnseen), "{bound:?}");
    let reason = "sections with interrupts or preemption off are observed only where they delayed a late wakeup: longer ones may exist";
    let shown = bench.lab(&[&["run"][..], &WHAT, &["--explain", "--bound"]].concat());
    let message = |ended: &Ended, words: &[&str]| {
        let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(text.contains(word), "{word}: {ended:?}");
        }
    };
    message(
        &shown,
        &[
            "6.1-cloud/full, file-move: bound (unsound) ",
            "; observed ",
            &format!("unsound: {reason}"),
        ],
    );
    let folder = ran.cell().run.as_ref().unwrap();
    let explained = Running::start(&mut bench.test.command(&["explain", folder])).output();
    message(&explained, &["bound (unsound): ", "components: "]);
    // What the guest saw came with its run.
    message(&explained, &["attributed anew: ", "all answers are as recorded"]);
    // Nobody asks for a bound of what is not explained.
    let alone = bench.lab(&[&["run"][..], &WHAT, &["--bound"]].concat());
    assert_eq!(alone.code, Some(2), "{alone:?}");
    assert!(alone.stderr.contains("--explain"), "{alone:?}");
}

#[test]
fn wakeups_by_another_thread_are_explained_in_a_guest() {
    let name = "wakeups_by_another_thread_are_explained_in_a_guest";
    let Some((stock, pool, _)) = first_lab(name) else { return };
    let bench = Bench::new(stock, "futex");
    bench.take_kernels(&pool);
    let what = ["--kernel", KERNEL, "--load", "idle", "--seeds", "1", "--samples", "200"];
    let how = ["--preempt", "full", "--stimulus", "futex", "--explain", "--above", "5us"];
    let ran = bench.run(&[&what[..], &how].concat());
    let record = ran.record();
    assert_eq!(record.plan.waker, Some(Waker::of_probe(Some(90))));
    let explanation = record.explanation.as_ref().unwrap();
    assert_eq!((explanation.wakeups, explanation.not_followed), (200, 0), "{explanation:#?}");
    // Each takes more than 5 virtual us, with the tracer's own work.
    assert_eq!((explanation.late, explanation.explained), (200, 200), "{explanation:#?}");
    for episode in &record.worst {
        let StepEvent::MadeReady { by: Some(by), .. } = &episode.timeline[0].event else {
            panic!("{:#?}", episode.timeline)
        };
        assert_eq!(by.comm, "wakescope-w/0");
        let shares: u64 = episode.blame.iter().map(|share| share.ns).sum();
        assert_eq!(shares, episode.wakeup_latency_ns);
    }
}

/// More kernels: `kernels_show_which_softirqs_they_leave` in lab_long.
#[test]
fn softirqs_have_the_time_in_which_the_kernel_leaves_others_to_their_thread() {
    let name = "softirqs_have_the_time_in_which_the_kernel_leaves_others_to_their_thread";
    let Some((stock, pool, _)) = first_lab(name) else { return };
    let bench = Bench::new(stock, "left");
    bench.take_kernels(&pool);
    let ran =
        bench.run(&[&["--kernel", KERNEL, "--preempt", "full"][..], &LEAVES_SOFTIRQS].concat());
    assert_some_softirqs_were_left(Path::new(ran.cell().run.as_ref().unwrap()));
}
