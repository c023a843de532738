//! Wakeups that come before the loader has said what is late.

use wakescope_core::units::SpanNs;
use wakescope_testing::skip;

use super::one_probe::{follow, options};
use super::*;

/// Later than anything that truly happens here.
const HUGE: SpanNs = SpanNs(10_000_000_000);

/// What is seen of so many wakeups, of which some claim to be late; `None` where nothing can be followed.
fn seen(
    test: &str,
    wakeups: u64,
    claims: impl Fn(u64) -> Option<SpanNs> + Sync,
) -> Option<(Seen, Tally)> {
    let mut tracer = match Tracer::start(options(None, 2_048)) {
        Ok(tracer) => tracer,
        Err(why) => {
            skip(test, &why.to_string());
            return None;
        }
    };
    follow(&mut tracer, wakeups, claims);
    let (mut seen, _) = tracer.finish();
    let tally = seen.tally.take().unwrap();
    assert_eq!(tally.contradictions(), [""; 0]);
    Some((seen, tally))
}

/// On 6.12, a wakeup that was 20 us late came 64th, after one of 308 us. Only what was later than an eighth of the
/// worst left the kernel then, and the percentile of the run made it late in the end (17.5 us).
#[test]
fn all_have_a_record_before_it_is_known_what_is_late() {
    // So few that there is room for them even if each comes with all events of its CPU.
    const WAKEUPS: u64 = 60;
    let name = "all_have_a_record_before_it_is_known_what_is_late";
    let first_is_huge = |number| (number == 0).then_some(HUGE);
    let Some((seen, tally)) = seen(name, WAKEUPS, first_is_huge) else { return };
    assert_eq!(seen.wakeup_latency.max_ns, Some(HUGE.0));
    assert!(tally.ended > WAKEUPS / 2, "{tally:?}");
    assert_eq!((seen.records, seen.lost_records), (tally.ended, 0), "{tally:?}");
}

#[test]
fn a_buffer_that_nobody_reads_keeps_room_for_the_worst() {
    // Far more than there is room for.
    const WAKEUPS: u64 = 1_000;
    let name = "a_buffer_that_nobody_reads_keeps_room_for_the_worst";
    let worse_and_worse_at_last = |number: u64| {
        let worse = (number + 10).saturating_sub(WAKEUPS);
        (number == 0 || worse > 0).then_some(SpanNs(HUGE.0 + worse))
    };
    let Some((seen, tally)) = seen(name, WAKEUPS, worse_and_worse_at_last) else { return };
    assert!(seen.records < tally.ended, "{tally:?}");
    assert_eq!(seen.lost_records, 0);
    let worst =
        seen.wakeups.iter().map(|wakeup| wakeup.marks.response.since(wakeup.marks.due).0).max();
    assert_eq!(worst, seen.wakeup_latency.max_ns);
    assert!(worst > Some(HUGE.0), "{worst:?}");
}
