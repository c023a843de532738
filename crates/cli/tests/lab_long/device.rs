//! The project's kernel module, in a guest that loads it by itself.

use wakescope_core::explain::StepEvent;
use wakescope_core::plan::Stimulus;

use crate::common::bench::skip;
use crate::common::lab::{Bench, KERNEL};

#[test]
fn the_kernels_own_stamps_divide_each_wakeup_of_its_device() {
    let name = "the_kernels_own_stamps_divide_each_wakeup_of_its_device";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    if let Err(why) = stock.build_module(KERNEL) {
        return skip(name, &why);
    }
    let bench = Bench::new(stock, "device");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", "idle", "--seeds", "1"];
    let how = ["--stimulus", "device", "--samples", "200", "--explain", "--above", "1us"];
    let ran = bench.run(&[&what[..], &how].concat());
    let record = ran.record();
    assert_eq!(record.plan.stimulus, Stimulus::Device);
    let thread = &record.threads[0];
    assert_eq!(thread.expiries.count, thread.woken.count + thread.missed, "{thread:?}");
    assert!(thread.woken.count >= 190, "{thread:?}");
    let stamps = thread.kernel_stamps.expect("stamps");
    assert_eq!(stamps.wakeups, thread.woken.count);
    let parts = [stamps.to_function, stamps.to_reader, stamps.to_probe];
    assert!(parts.iter().all(|part| 0 < part.min_ns && part.min_ns <= part.max_ns), "{parts:?}");
    let sum: u64 = parts.iter().map(|part| part.sum_ns).sum();
    assert_eq!(u128::from(sum), u128::from(thread.woken.sum_ns), "{parts:?}");
    assert!(record.validity.findings.iter().all(|f| f.code != "early"), "{record:?}");
    // The tracer recognises them, too: each begins with the module's timer.
    let explanation = record.explanation.as_ref().unwrap();
    assert_eq!(explanation.not_followed, 0, "{explanation:#?}");
    let explained = record.worst.iter().filter(|episode| !episode.blame.is_empty());
    let firsts: Vec<_> = explained.map(|episode| &episode.timeline[0].event).collect();
    let is_timer = |event: &&&StepEvent| matches!(event, StepEvent::TimerExpiry { .. });
    assert!(firsts.iter().filter(is_timer).count() * 10 >= firsts.len() * 9, "{firsts:#?}");
    assert!(!firsts.is_empty());
}
