//! A sound card that a guest's kernel has without hardware (snd-dummy), played on by the kernel's own
//! interface.

use wakescope_core::audio::AudioPlan;
use wakescope_core::sound_card::{SampleFormat, SoundCard};

use crate::common::measured::record;

use super::{Bench, assert_all_ok, assert_repeats, skip, stock};

/// Kernels for virtual machines have no sound.
const KERNEL: &str = "6.1-rt";

#[test]
fn a_card_of_the_kernel_is_played_on_and_its_stamps_are_those_of_its_interrupts() {
    let name = "a_card_of_the_kernel_is_played_on_and_its_stamps_are_those_of_its_interrupts";
    let Some(stock) = stock(name, &[KERNEL]) else { return };
    let kernel = stock.kernel(KERNEL);
    if !kernel.join("modules/kernel/sound").exists() {
        let why = format!("{} was fetched without its sound modules", kernel.display());
        return skip(name, &why);
    }
    let bench = Bench::new(stock, "card");
    let plan = bench.test.dir.join("plan.toml");
    let text = "kernels = [\"6.1-rt\"]\npreempt = [\"rt\"]\nloads = [\"idle\", \"find\"]\nseeds = 1\n\
                samples = 200\nstimulus = \"audio\"\ninterval = \"2900us\"\nshare = \"50%\"\npcm = \"hw:0,0\"\n";
    std::fs::write(&plan, text).unwrap();
    let plan = plan.to_str().expect("a path of UTF-8");
    let (ran, _lab) = assert_repeats(stock, &["--plan", plan, "--module", "snd_dummy"]);
    assert_all_ok(&ran);
    for cell in &ran.lab.cells {
        let run = record(std::path::Path::new(cell.run.as_ref().unwrap()));
        let card = SoundCard {
            name: "Dummy PCM".into(),
            format: SampleFormat::S16Le,
            channels: 2,
            rate_hz: 48_000,
            fragment_frames: 139,
            buffer_frames: 417,
        };
        assert_eq!(run.card, Some(card), "{}", cell.load);
        let pcm = Some("hw:0,0".parse().unwrap());
        let audio = AudioPlan { fragment_ns: 2_895_833, fragments: 3, share_ppm: 500_000, pcm };
        assert_eq!((run.plan.audio, run.plan.interval_ns), (Some(audio), 2_895_833));
        let thread = &run.threads[0];
        let audio = thread.audio.as_ref().expect("a card");
        // With a CPU that is fast enough, a real-time program is never late. The last wakeup ends the run.
        assert_eq!((audio.overruns, audio.silent, audio.compute.count), (0, 0, 199), "{audio:?}");
        assert_eq!((thread.woken.count, thread.not_asleep), (200, 0), "{thread:?}");
        assert!(thread.woken.min_ns > Some(0) && thread.woken.max_ns < Some(500_000));
        // The card's interrupts are its own timer's, one per fragment, and so are the cycles.
        assert_eq!(audio.cycles_within_1ms, 198, "{audio:?}");
        assert!(run.validity.findings.iter().all(|finding| finding.code != "early"));
    }
}
