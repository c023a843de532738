//! A virtual sound card, measured by the whole command.

use crate::common::bench::Test;
use crate::common::measured::{allowed_cpus, assert_not_found, record};
use wakescope_core::audio::AudioPlan;
use wakescope_core::plan::Stimulus;
use wakescope_core::run::State;

#[test]
fn an_audio_program_is_measured_with_its_deadline() {
    let test = Test::new("audio");
    let args = ["--stimulus", "audio", "--fragment", "2ms", "--fragments", "4", "--share", "30%"];
    let ended = test.measure(&[&args[..], &["--duration", "1s", "--out", "r"]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let run = record(&test.dir.join("r"));
    assert_eq!((run.state, run.plan.stimulus), (State::Complete, Stimulus::Audio));
    let plan = AudioPlan { fragment_ns: 2_000_000, fragments: 4, share_ppm: 300_000, pcm: None };
    assert_eq!((run.plan.audio, run.plan.interval_ns), (Some(plan), 2_000_000));
    // One program, on one CPU.
    assert_eq!(run.plan.cpus, allowed_cpus()[..1]);
    let [thread] = run.threads.as_slice() else { panic!("{:?}", run.threads) };
    let audio = thread.audio.as_ref().expect("a card");
    // Each point of the card has a fragment, or silence.
    let fragments = audio.compute.count;
    assert!(fragments + audio.silent >= 500 && fragments <= 500, "{audio:?}");
    assert_eq!(audio.cycles.count, fragments - 1);
    assert_eq!(thread.woken.count + thread.not_asleep, fragments);
    assert_eq!((thread.missed, thread.expiries.count), (0, thread.woken.count));
    assert!((audio.overruns == 0) == (audio.silent == 0), "{audio:?}");
    // It takes at least what it was calibrated to take, but for what a faster clock makes of it.
    assert!(audio.compute.max_ns >= Some(300_000), "{:?}", audio.compute);
    let first = ended.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("Worst wakeup "), "{first}");
    assert!(ended.stdout.contains(" (buffer: 8.00 ms); "), "{}", ended.stdout);
    assert!(ended.stdout.contains(" audio 4 × 2.00 ms at 30 % · "), "{}", ended.stdout);
    let drawn = test.done(&["report", "r", "--format", "svg", "--picture", "audio"]);
    assert!(drawn.contains("buffer 8.00 ms") && drawn.contains("</svg>"), "{drawn:.400}");
    test.done(&["report", "r", "--format", "html", "--output", "p.html"]);
    let page = std::fs::read_to_string(test.dir.join("p.html")).unwrap();
    assert!(page.contains("data-picture=\"audio\"") && page.contains("Longest cycle "));
}

#[test]
fn the_number_of_wakeups_ends_it_too() {
    let test = Test::new("audio-samples");
    let args = ["--stimulus", "audio", "--share", "1%", "--fragment", "500us", "--samples", "100"];
    let run = test.measured(&args);
    assert_eq!(run.threads[0].woken.count, 100);
    assert_not_found(&run, "no-samples");
}

#[test]
fn what_no_card_can_do_is_refused_with_a_remedy() {
    let test = Test::new("audio-refused");
    for (args, text) in [
        ("--stimulus audio --share 200%", "a share from 1% to 95% is possible"),
        ("--stimulus audio --share 80", "as in 80%"),
        ("--stimulus audio --fragments 0", "at least 2 are needed"),
        ("--stimulus audio --fragments 1001", "a whole number from 2 to 1000"),
        ("--stimulus audio --fragment 99us", "at least 100 µs is needed"),
        ("--stimulus audio --fragment 2s", "at most 1.00 s is possible"),
        ("--stimulus audio --interval 1ms", "→ use --fragment"),
        ("--stimulus audio --policy deadline", "→ use --policy fifo, rr or other"),
        ("--stimulus audio --fragment 50ms --duration 20ms", "→ measure for at least a few"),
        ("--share 50%", "→ omit --share, or use --stimulus audio"),
        ("--stimulus audio --pcm default", "→ name a card and a device of it, as in --pcm hw:0,0"),
        ("--stimulus audio --pcm hw:250,31", "this machine has no sound card hw:250,31"),
        ("--stimulus audio --pcm hw:Nobody", "this machine has no sound card hw:Nobody"),
        ("--stimulus timer --pcm hw:0,0", "→ omit --pcm, or use --stimulus audio"),
        ("--stimulus spin --fragments 3", "→ omit --fragments, or use --stimulus audio"),
    ] {
        let ended = test.measure(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.code, Some(2), "{args}: {ended:?}");
        assert!(ended.stderr.contains(text), "{args}: {}", ended.stderr);
        assert!(!test.dir.join("runs").exists(), "{args}");
    }
}
