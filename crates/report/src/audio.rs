//! An audio program with its sound card, in words.

use wakescope_core::audio::{Audio, AudioPlan};
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::sound_card::SoundCard;
use wakescope_core::units::{counted, grouped};

use crate::domain;
use crate::share;
use crate::style::clean;

/// The set-up in a few words: `audio 3 × 2.90 ms at 80 %`, `audio hw:0,0 3 × 2.90 ms at 80 %`.
pub(crate) fn plan(plan: AudioPlan, time: TimeDomain) -> String {
    let AudioPlan { fragment_ns, fragments, share_ppm, pcm } = plan;
    let card = pcm.map(|name| format!("{name} ")).unwrap_or_default();
    let fragment = domain::span(fragment_ns, time);
    format!("audio {card}{fragments} × {fragment} at {} %", share_ppm / 10_000)
}

/// What came of a run's fragments: overruns, then cycles, then computing. Empty if it had none.
pub(crate) fn sentences(run: &Run) -> Vec<String> {
    let (Some(plan), Some(all)) = (run.plan.audio, of(run)) else { return Vec::new() };
    let span = |ns| domain::span(ns, run.time_domain);
    let silent = match all.silent {
        0 => String::new(),
        silent => format!(", {} of silence", counted(silent, "fragment")),
    };
    let mut said = card(run);
    said.push(format!(
        "{}: {}{silent}.",
        counted(all.compute.count, "fragment"),
        match all.overruns {
            0 => "no overrun".into(),
            overruns => counted(overruns, "overrun"),
        }
    ));
    if let Some(max_ns) = all.cycles.max_ns {
        said.push(format!(
            "Longest cycle {} (buffer: {}); {} within 1 ms of {}, {} within 2 ms.",
            span(max_ns),
            span(plan.buffer_ns()),
            part_of(all.cycles_within_1ms, all.cycles.count),
            span(plan.fragment_ns),
            part_of(all.cycles_within_2ms, all.cycles.count)
        ));
    }
    if let Some(max_ns) = all.compute.max_ns {
        said.push(format!(
            "Longest computing {}; {} within 0.1 ms of {}, {} within 0.2 ms.",
            span(max_ns),
            part_of(all.compute_within_100us, all.compute.count),
            span(plan.compute_ns()),
            part_of(all.compute_within_200us, all.compute.count)
        ));
    }
    said
}

/// How the machine's sound card was set up, if it was one.
fn card(run: &Run) -> Vec<String> {
    let (Some(card), Some(name)) = (&run.card, run.plan.audio.and_then(|audio| audio.pcm)) else {
        return Vec::new();
    };
    let SoundCard { name: device, format, channels, rate_hz, fragment_frames, buffer_frames } =
        card;
    vec![format!(
        "Card {name} ({}): {} Hz, {}, {}; {} in a fragment, {} in the buffer.",
        clean(device, 80),
        grouped(u64::from(*rate_hz)),
        counted(u64::from(*channels), "channel"),
        format.name(),
        counted(*fragment_frames, "frame"),
        grouped(*buffer_frames)
    )]
}

/// All threads' cards together; `None` if there was none.
pub(crate) fn of(run: &Run) -> Option<Audio> {
    let cards = run.threads.iter().filter_map(|thread| thread.audio.clone());
    cards.reduce(|all, one| all.merged(&one))
}

/// `99.95 %`, and never a whole 100 % where one is missing.
fn part_of(some: u64, all: u64) -> String {
    match all {
        _ if some >= all => format!("all {}", grouped(all)),
        _ => format!("{} %", share::percent(some, all, 2)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::text::tests::run_of;
    use wakescope_core::audio::AudioRecorder;
    use wakescope_core::plan::Stimulus;

    /// A run of 2,000 fragments, one of them 10 ms after the one before.
    pub(crate) fn run() -> Run {
        let mut run = run_of(&[&[9_000; 2_000]]);
        let plan = AudioPlan::usual(2_900_000);
        run.plan.stimulus = Stimulus::Audio;
        (run.plan.interval_ns, run.plan.audio) = (plan.fragment_ns, Some(plan));
        let recorder = AudioRecorder::new(plan);
        for i in 0..2_000 {
            let cycle_ns = if i == 900 { 10_000_000 } else { 2_900_000 };
            let compute_ns = if i % 100 == 50 { 2_480_000 } else { 2_330_000 };
            recorder.record(i * 2_900_000, (i > 0).then_some(cycle_ns), compute_ns);
        }
        recorder.count_overrun(1);
        run.threads[0].audio = Some(recorder.snapshot());
        run
    }

    #[test]
    fn fragments_are_told_with_their_deadline() {
        let said = sentences(&run());
        let want = [
            "2,000 fragments: 1 overrun, 1 fragment of silence.",
            "Longest cycle 10.0 ms (buffer: 8.70 ms); 99.94 % within 1 ms of 2.90 ms, \
             99.94 % within 2 ms.",
            "Longest computing 2.48 ms; 99.00 % within 0.1 ms of 2.32 ms, all 2,000 within 0.2 ms.",
        ];
        assert_eq!(said, want);
        let text = crate::text::report(&run(), crate::style::Style { colour: false });
        assert!(text.contains("\n audio 3 × 2.90 ms at 80 % · fifo 90 · CPU 0\n"), "{text}");
        assert!(text.contains("\n2,000 wakeups at 2.90 ms.\n") && text.contains(want[1]), "{text}");
        assert!(!text.contains("expir"), "{text}");
        assert!(sentences(&run_of(&[&[1]])).is_empty());
    }
}
