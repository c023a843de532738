//! Ways out of idle: what a wakeup that finds the CPU asleep waits for between its interrupt and the scheduler.

use super::own::{OwnWakeup, shortest_exit_ns, shortest_return_ns};

/// How the idle task went from its sleeps to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WayOut {
    /// When it first fell asleep, ns.
    pub from_ns: u64,
    /// When the interrupt was left that ended the last sleep, ns.
    pub left_ns: u64,
    /// When the scheduler was entered, ns.
    pub to_ns: u64,
}

/// From when to when the CPU is idle with a way out that is longer than others, and by how much.
///
/// Where the tick was stopped, the way out starts it again, which takes 0.77 us (6.1). The tick is stopped after the
/// first one that comes in idle, so a wakeup that ends the time before has the shorter way. But a probe whose timer has
/// another phase also sleeps for its whole interval before it is woken. What its wakeups find is what the recorded ones
/// found at their ends, so the way out counts from the begin on. (6.1, each 5 ms: all 300 wakeups had the longer one.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowExit {
    /// When the idle task first fell asleep, ns.
    pub from_ns: u64,
    /// The end of the way out, ns.
    pub to_ns: u64,
    /// What it takes beyond the shortest way from a handler to the scheduler, ns.
    pub longer_ns: u64,
}

/// Those of `all`, in order, that are longer than the way that each wakeup is given.
pub(super) fn slow_exits(all: &[WayOut], own: &[OwnWakeup]) -> Vec<SlowExit> {
    let usual_ns = shortest_exit_ns(own).saturating_sub(shortest_return_ns(own));
    let slow = |way: &WayOut| {
        let longer_ns = way.to_ns.saturating_sub(way.left_ns).saturating_sub(usual_ns);
        SlowExit { from_ns: way.from_ns, to_ns: way.to_ns, longer_ns }
    };
    all.iter().map(slow).filter(|exit| exit.longer_ns > 0).collect()
}

/// How much longer one takes than it would otherwise that nothing holds up from `at_ns` on, ns; of exits in order.
pub(super) fn longer_ns(exits: &[SlowExit], at_ns: u64) -> u64 {
    let next = exits.partition_point(|exit| exit.to_ns <= at_ns);
    exits.get(next).filter(|exit| exit.from_ns <= at_ns).map_or(0, |exit| exit.longer_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_out_is_longer_by_what_no_wakeup_has_in_its_own_way() {
        // The shortest way takes 8 ns from the handler to the scheduler, 3 of them until its interrupt is left.
        let own = |handled_ns, left_ns, ran_ns| OwnWakeup {
            entered_ns: handled_ns - 10,
            handled_ns,
            left_ns,
            ran_ns: Some((ran_ns, ran_ns + 9)),
            interrupted_ns: 0,
        };
        let own = [own(100, 104, 110), own(200, 203, 208)];
        let way = |from_ns, left_ns, to_ns| WayOut { from_ns, left_ns, to_ns };
        let exits = slow_exits(&[way(50, 104, 110), way(150, 203, 208), way(300, 400, 475)], &own);
        let slow = |from_ns, to_ns, longer_ns| SlowExit { from_ns, to_ns, longer_ns };
        assert_eq!(exits, [slow(50, 110, 1), slow(300, 475, 70)]);
        for (at_ns, want) in [(49, 0), (50, 1), (109, 1), (110, 0), (299, 0), (300, 70), (475, 0)] {
            assert_eq!(longer_ns(&exits, at_ns), want, "{at_ns}");
        }
        assert_eq!(longer_ns(&[], 7), 0);
    }
}
