//! Counters that a run finds at the end of 32 bits.

use aya::maps::Array;
use wakescope_testing::skip;

use super::one_probe::{follow, options};
use super::*;
use crate::shared::{BUCKETS, FIGURES_HEAD};

/// What a counter of 32 bits holds at most.
const FULL: u64 = u32::MAX as u64;

/// Samples that each component has before the run: every bucket is full.
const BEFORE: u64 = FULL * BUCKETS as u64;

const WAKEUPS: u64 = 200;

/// Fills the counters as billions of wakeups would have.
fn fill(tracer: &mut Tracer) {
    for component in 0..COMPONENTS {
        let at = component * FIGURES_WORDS;
        tracer.figures.store(at, BEFORE);
        for bucket in 0..BUCKETS {
            tracer.figures.store(at + FIGURES_HEAD + bucket, FULL);
        }
    }
    let counts = Counts {
        records: FULL,
        begun: BEFORE,
        wakeups: BEFORE,
        least_depth: 1,
        ..Counts::default()
    };
    let map = tracer.programs.map_mut("counts").unwrap();
    Array::<_, Counts>::try_from(map).unwrap().set(0, counts, 0).unwrap();
    tracer.read = FULL;
}

#[test]
fn counts_go_on_beyond_32_bits() {
    const NAME: &str = "counts_go_on_beyond_32_bits";
    let mut tracer = match Tracer::start(options(Some(1), 16)) {
        Ok(tracer) => tracer,
        Err(why) => return skip(NAME, &why.to_string()),
    };
    fill(&mut tracer);
    follow(&mut tracer, WAKEUPS, |_| None);
    let (seen, _) = tracer.finish();
    let tally = seen.tally.unwrap();
    assert_eq!(tally.contradictions(), [""; 0]);
    let more = tally.ended - BEFORE;
    assert!((1..=WAKEUPS).contains(&more), "{more} wakeups were followed");
    let always = [&seen.components.handler_duration, &seen.components.sched_latency];
    for part in always.into_iter().chain([&seen.wakeup_latency]) {
        assert_eq!(part.count, BEFORE + more);
        assert!(part.histogram.buckets().iter().all(|bucket| bucket.count >= FULL));
        let beyond = part.histogram.buckets().iter().map(|bucket| bucket.count - FULL);
        assert_eq!(beyond.sum::<u64>(), more);
    }
    assert!(seen.records > FULL && tally.begun > BEFORE, "{tally:?}");
}
