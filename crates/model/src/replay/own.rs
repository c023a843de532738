//! The probe's own wakeups: what of their interrupts is theirs, and what another wakeup would have met as well.

use std::ops::Range;

use super::{Point, Stretch};

/// A wakeup of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnWakeup {
    /// When its interrupt was entered, ns.
    pub entered_ns: u64,
    /// When that one's handler was through, ns.
    pub handled_ns: u64,
    /// When the interrupt was left, or called the scheduler, ns.
    pub left_ns: u64,
    /// When the scheduler was entered, and when the probe read the clock, ns; `None` if one of both was not seen.
    pub ran_ns: Option<(u64, u64)>,
    /// How long interrupts took between these two, with the softirqs at their ends, ns: a tick that came just then.
    pub interrupted_ns: u64,
}

/// How far from its place on the grid an interrupt is that nothing held up, at most: a few instructions, ns.
const NEAR_NS: u64 = 200;

impl OwnWakeup {
    /// How long its interrupt took until its handler was through, ns.
    pub(super) fn handler_ns(&self) -> u64 {
        self.handled_ns.saturating_sub(self.entered_ns)
    }
}

/// How long the handler of a wakeup usually takes: half of them took as long at most. What is more is other work in
/// the same interrupt, the tick's for one. (6.1 with a tracer: the shortest took 2 us, most of them 5.)
pub(super) fn usual_handler_ns(wakeups: &[OwnWakeup]) -> u64 {
    let whole = wakeups.iter().filter(|own| own.ran_ns.is_some());
    let mut lengths: Vec<u64> = whole.map(OwnWakeup::handler_ns).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// How long the way from the handler to the scheduler takes where nothing comes in between, ns.
pub(super) fn shortest_exit_ns(wakeups: &[OwnWakeup]) -> u64 {
    let between = |own: &OwnWakeup| Some(own.ran_ns?.0.saturating_sub(own.handled_ns));
    wakeups.iter().filter_map(between).min().unwrap_or(0)
}

/// How long it takes from the handler until the interrupt is left where nothing comes in between, ns.
pub(super) fn shortest_return_ns(wakeups: &[OwnWakeup]) -> u64 {
    let whole = wakeups.iter().filter(|own| own.ran_ns.is_some());
    whole.map(|own| own.left_ns.saturating_sub(own.handled_ns)).min().unwrap_or(0)
}

/// How long a wakeup takes that nothing holds up or interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// From its expiry to the scheduler, ns.
    pub(super) to_scheduler_ns: u64,
    /// From there to the probe's reading of the clock, ns.
    pub(super) to_program_ns: u64,
}

impl Way {
    pub(super) fn ns(self) -> u64 {
        self.to_scheduler_ns.saturating_add(self.to_program_ns)
    }
}

/// The way of each wakeup from its interrupt on; `None` where not all of it was seen.
pub(super) fn ways(wakeups: &[OwnWakeup]) -> Vec<Option<Way>> {
    let (usual, exit) = (usual_handler_ns(wakeups), shortest_exit_ns(wakeups));
    let way = |own: &OwnWakeup| {
        let (schedule, ran) = own.ran_ns?;
        let to_program_ns = ran.saturating_sub(schedule).saturating_sub(own.interrupted_ns);
        Some(Way { to_scheduler_ns: own.handler_ns().min(usual) + exit, to_program_ns })
    };
    wakeups.iter().map(way).collect()
}

/// The times of those handlers, as if each came last in its interrupt, and of the shortest way from there to the
/// scheduler: another wakeup has both in its own way, so they hold it up no second time.
pub(super) fn handlers(wakeups: &[OwnWakeup]) -> Vec<Range<u64>> {
    let (usual, exit) = (usual_handler_ns(wakeups), shortest_exit_ns(wakeups));
    let of = |own: &OwnWakeup| {
        let from_ns = own.entered_ns.max(own.handled_ns.saturating_sub(usual));
        from_ns..own.left_ns.min(own.handled_ns.saturating_add(exit))
    };
    wakeups.iter().map(of).collect()
}

/// Divides stretches where `own` times, which are in order, begin and end, and marks those.
pub(super) fn marked(stretches: Vec<Stretch>, end_ns: u64, own: &[Range<u64>]) -> Vec<Stretch> {
    let mut out = Vec::with_capacity(stretches.len() + 2 * own.len());
    let mut own = own.iter().peekable();
    let ends: Vec<u64> =
        stretches.iter().skip(1).map(|next| next.from_ns).chain([end_ns]).collect();
    for (stretch, to_ns) in stretches.into_iter().zip(ends) {
        let mut piece = stretch;
        loop {
            while own.next_if(|own| own.end <= piece.from_ns).is_some() {}
            let next = own.peek().filter(|own| own.start < to_ns);
            let is_own = next.is_some_and(|own| own.start <= piece.from_ns);
            let until_ns =
                next.map_or(to_ns, |own| if is_own { own.end.min(to_ns) } else { own.start });
            out.push(Stretch { is_own, counts: piece.counts && !is_own, ..piece });
            if until_ns >= to_ns {
                break;
            }
            piece = Stretch { from_ns: until_ns, point: Point::None, ..piece };
        }
    }
    out
}

/// When the interrupt of each wakeup would have come if nothing had held it up: on a grid, as the timer's expiries
/// are. The timer is set anew when the probe has run, to the next place on it.
pub(super) fn arrivals(wakeups: &[OwnWakeup], interval_ns: u64) -> Vec<u64> {
    let Some(first) = wakeups.first() else { return Vec::new() };
    let interval = i128::from(interval_ns.max(1));
    let since = |ns: u64| i128::from(ns) - i128::from(first.entered_ns);
    // Most are on time.
    let off = |own: &OwnWakeup| {
        (since(own.entered_ns) + interval / 2).rem_euclid(interval) - interval / 2
    };
    let mut offsets: Vec<i128> = wakeups.iter().map(off).collect();
    offsets.sort_unstable();
    let phase = offsets[offsets.len() / 2];
    let at = |place: i128| {
        let ns = i128::from(first.entered_ns) + phase + place * interval;
        u64::try_from(ns).unwrap_or(0)
    };
    let mut least = i128::MIN;
    let mut out = Vec::with_capacity(wakeups.len());
    for own in wakeups {
        let nearest = (since(own.entered_ns) - phase + interval / 2).div_euclid(interval);
        // Held up for long, it is that of an earlier place, but of none before the probe slept again.
        let place = if least == i128::MIN { nearest } else { nearest.min(least) };
        let due_ns = at(place);
        out.push(if own.entered_ns.abs_diff(due_ns) < NEAR_NS { own.entered_ns } else { due_ns });
        let ran_ns = own.ran_ns.map_or(own.handled_ns, |(_, ran)| ran);
        least = (since(ran_ns) - phase).div_euclid(interval) + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::At;
    use super::*;

    fn own(entered_ns: u64, handled_ns: u64) -> OwnWakeup {
        let ran_ns = Some((handled_ns + 5, handled_ns + 10));
        OwnWakeup { entered_ns, handled_ns, left_ns: handled_ns + 5, ran_ns, interrupted_ns: 0 }
    }

    #[test]
    fn what_is_longer_than_a_usual_handler_is_others_work() {
        let wakeups = [own(100, 120), own(200, 260), own(300, 310)];
        // With 5 ns from the handler to the scheduler, which are in each way as well.
        assert_eq!(handlers(&wakeups), [100..125, 240..265, 300..315]);
        let way = |handler_ns: u64| Way { to_scheduler_ns: handler_ns + 5, to_program_ns: 5 };
        assert_eq!(ways(&wakeups), [20, 20, 10].map(|ns| Some(way(ns))));
        // One that was not seen to its end says nothing of what is usual.
        let cut = OwnWakeup { ran_ns: None, ..own(300, 400) };
        assert_eq!(handlers(&[own(100, 120), cut]), [100..125, 380..405]);
        // One that is gone back from earlier: what it came into goes on.
        let back = OwnWakeup { left_ns: 123, ran_ns: Some((500, 505)), ..own(100, 120) };
        assert_eq!(handlers(&[back, own(600, 620)]), [100..123, 600..625]);
        assert_eq!(ways(&[own(100, 120), cut]), [Some(way(20)), None]);
        let interrupted =
            OwnWakeup { ran_ns: Some((125, 160)), interrupted_ns: 30, ..own(100, 120) };
        assert_eq!(ways(&[interrupted]), [Some(way(20))]);
        assert_eq!((handlers(&[]), ways(&[])), (vec![], vec![]));
    }

    #[test]
    fn stretches_are_divided_where_own_times_begin_and_end() {
        let stretch = |from_ns, point, counts, is_own| Stretch {
            from_ns,
            irqs_off: true,
            preempt_off: false,
            at: At::Kernel,
            task: 1,
            point,
            counts,
            is_own,
        };
        let whole = |from_ns| stretch(from_ns, Point::Looks, true, false);
        let rest = |from_ns| stretch(from_ns, Point::None, true, false);
        let mine = |from_ns| stretch(from_ns, Point::None, false, true);
        // Within one; over the border of two; up to an end; none.
        for (ranges, want) in [
            (&[(10, 20)][..], vec![whole(0), mine(10), rest(20), whole(100), whole(200)]),
            (
                &[(90, 110)],
                vec![
                    whole(0),
                    mine(90),
                    stretch(100, Point::Looks, false, true),
                    rest(110),
                    whole(200),
                ],
            ),
            (&[(150, 200)], vec![whole(0), whole(100), mine(150), whole(200)]),
            (&[(250, 300)], vec![whole(0), whole(100), whole(200), mine(250)]),
            (
                &[(5, 6), (7, 8)],
                vec![whole(0), mine(5), rest(6), mine(7), rest(8), whole(100), whole(200)],
            ),
            (&[], vec![whole(0), whole(100), whole(200)]),
        ] {
            let own: Vec<Range<u64>> = ranges.iter().map(|&(from, to)| from..to).collect();
            assert_eq!(
                marked(vec![whole(0), whole(100), whole(200)], 300, &own),
                want,
                "{ranges:?}"
            );
        }
        // What has no length keeps its point.
        let zero = vec![whole(0), whole(100), whole(100), whole(200)];
        assert_eq!(marked(zero.clone(), 300, &[]), zero);
    }

    #[test]
    fn interrupts_that_were_held_up_belong_to_the_place_before() {
        // Each 100 ns, on time at 10 past; two are held up, the second by more than an interval.
        let wakeups = [
            own(1_010, 1_012),
            own(1_111, 1_113),
            own(1_210, 1_212),
            own(1_890, 1_892),
            own(2_010, 2_012),
        ];
        let arrivals = arrivals(&wakeups, 100);
        // What is a few ns late is as it was; 1,890 is the wakeup of 1,310.
        assert_eq!(arrivals, [1_010, 1_111, 1_210, 1_310, 2_010]);
        assert_eq!(super::arrivals(&[], 100), [0; 0]);
    }

    #[test]
    fn a_wakeup_that_another_interrupt_took_along_is_due_on_its_grid() {
        // The second is handled in an interrupt that began 300 ns before it was due.
        let wakeups = [own(10_000, 10_100), own(19_700, 20_100), own(30_000, 30_100)];
        assert_eq!(arrivals(&wakeups, 10_000), [10_000, 20_000, 30_000]);
    }
}
