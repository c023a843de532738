//! The ranking by tasks or code, of all late wakeups.

use super::*;
use crate::Abridged;
use crate::calibrate;
use proptest::prelude::*;
use wakescope_core::explain::{By, Context, Mode, Task};

/// A wakeup that another thread's system call delayed.
fn delayed_by(pid: u32, expiry_ns: u64, late_ns: u64) -> Wakeup {
    let task = Task { pid, comm: format!("task{}", pid % 3), prio: 120, ..Task::default() };
    let stack = vec![frame(&format!("function{}+0x10", pid % 2))];
    let preemptible = Some(false);
    let context = Context { task, mode: Mode::Kernel, preemptible, stack, ..Context::default() };
    Wakeup { interrupted: Some(context), ..wakeup(0, expiry_ns, late_ns) }
}

proptest! {
    /// Whether a wakeup is kept whole does not matter; all time is somebody's; and a coarser ranking adds
    /// up a finer one.
    #[test]
    fn all_late_time_is_ranked_once(
        drawn in prop::collection::vec((100_u64..100_000, 1_u32..9, any::<bool>()), 1..30),
        not_followed in prop::collection::vec(50_000_u64..100_000, 0..4),
    ) {
        let wakeups: Vec<Wakeup> =
            (0..).zip(&drawn).map(|(n, &(ns, pid, _))| delayed_by(pid, n * 1_000_000, ns)).collect();
        let samples: Vec<u64> =
            drawn.iter().map(|d| d.0).chain(not_followed.iter().copied()).collect();
        let ranked = |by, has_room: &dyn Fn(usize) -> bool| {
            let mut all = Seen { by: Some(by), abridged: Abridged::by(Some(by)), ..seen(&wakeups) };
            all.wakeups.clear();
            let known = calibrate(&all.components, Machine::default(), true);
            for (number, wakeup) in wakeups.iter().enumerate() {
                match has_room(number) {
                    true => all.wakeups.push(wakeup.clone()),
                    false => all.abridged.add(components(&wakeup.marks), 0, blame(wakeup, &known)),
                }
            }
            let mut run = measured(&samples, Vec::new());
            account(&mut run, all, above("1ns"));
            let caused: u64 = run.causes.iter().map(|row| row.total_ns).sum();
            (run.ranking.unwrap(), caused)
        };
        let mut rows = Vec::new();
        for by in By::ALL {
            let (ranking, caused) = ranked(by, &|number| drawn[number].2);
            prop_assert_eq!(&ranking, &ranked(by, &|_| true).0);
            prop_assert!(ranking.complete && ranking.wakeups == samples.len() as u64);
            prop_assert_eq!(ranking.rows.iter().map(|row| row.total_ns).sum::<u64>(), caused);
            rows.push(ranking.rows.len());
        }
        let [pid, task, function, module] = rows[..] else { unreachable!() };
        prop_assert!(pid >= task && function >= module, "{rows:?}");
    }
}
