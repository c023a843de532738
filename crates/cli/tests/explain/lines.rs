//! Lines of source, from an image of the kernel that was traced.

use std::fs;
use std::process::Command;

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Cause, Culprit, Evidence, Explanation, Frame, Share};
use wakescope_core::run::{Episode, Run};

use crate::common::bench::Test;
use crate::common::following::explain;

const SOURCE: &str = "\
volatile int pages;
int shmem_undo_range(int x)
{
	pages += x;
	return pages;
}
int exit_mmap(int x)
{
	return shmem_undo_range(x) + 1;
}
int start_kernel(void)
{
	return exit_mmap(2) + 1;
}
";

pub(crate) const BUILD_ID: &str = "00112233445566778899aabbccddeeff00112233";

/// Makes an image of its own in the folder of `test`, with `options`.
pub(crate) fn build(test: &Test, image: &str, options: &[&str]) {
    let folder = test.dir.join("init");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.c"), SOURCE).unwrap();
    let ended = Command::new("cc")
        .args(["-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-ffreestanding", "-nostdlib"])
        .args(["-static", "-Wl,-e,start_kernel"])
        .args(options)
        .args(["-o", image])
        .arg(folder.join("main.c"))
        .current_dir(&test.dir)
        .output()
        .expect("cc, which links this test, too");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// Makes a wakeup with these shares the only one of the run.
pub(crate) fn have_only(run: &mut Run, blame: Vec<Share>) {
    let wakeup_latency_ns = blame.iter().map(|share| share.ns).sum();
    // Where this machine stood still, the one wakeup that was measured has missed others.
    let late = Episode { wakeup_latency_ns, blame, missed: 0, ..run.worst[0].clone() };
    run.duration_ns = late.expiry_ns + run.plan.interval_ns;
    run.threads.truncate(1);
    let thread = &mut run.threads[0];
    thread.cpu = late.cpu;
    thread.expiries = Distribution::of([late.wakeup_latency_ns]);
    thread.woken = thread.expiries.clone();
    thread.missed = 0;
    (thread.interval_deviation, thread.maxima) = (None, None);
    run.worst = vec![late];
    run.summarize();
}

/// What a run lacks that was explained without an image of its kernel.
const NOT_SEEN: [&str; 3] = [
    "source lines (/boot/vmlinux-6.1 is another kernel's: it has no build ID)",
    "NMIs",
    "source lines of test_queue (modules without a debug file)",
];

/// Stores a run that was explained on a kernel with this build id.
fn store(test: &Test, folder: &str, build_id: Option<&str>) {
    let measured = test.start_command(&["measure", "--samples", "1", "--out", folder]).output();
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let path = test.dir.join(folder).join("run.json");
    let mut run = Run::from_json(&fs::read(&path).unwrap()).unwrap();
    let stack = [("shmem_undo_range", 0), ("unknown", 16), ("exit_mmap", 0)];
    let stack = stack.map(|(function, offset)| Frame::in_function(function, offset));
    let share = Share {
        cause: Cause::NoPreemptionPoint,
        ns: 391_000,
        culprit: Culprit::function(stack[0].function()),
        evidence: Evidence::Stack,
        given_up_at: vec![stack[0].clone()],
        frames: stack.into(),
        ..Default::default()
    };
    have_only(&mut run, vec![share]);
    run.explanation = Some(Explanation {
        wakeups: 1,
        late: 1,
        explained: 1,
        build_id: build_id.map(str::to_owned),
        not_seen: NOT_SEEN.map(String::from).into(),
        ..Default::default()
    });
    fs::write(path, run.to_json()).unwrap();
}

#[test]
fn a_stored_run_gets_lines_from_the_image_of_its_kernel() {
    let test = Test::new("explain-lines");
    store(&test, "run", Some(BUILD_ID));
    build(&test, "vmlinux", &["-g", &format!("-Wl,--build-id=0x{BUILD_ID}")]);
    let shown = |args: &[&str]| {
        let ended = explain(&test, args);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
        ended.stdout
    };
    let before = fs::read(test.dir.join("run").join("run.json")).unwrap();
    let text = shown(&["run", "--vmlinux", "vmlinux"]);
    assert!(text.contains(" shmem_undo_range+0x0 (init/main.c:"), "{text}");
    assert!(text.contains(") ← unknown+0x10 ← exit_mmap+0x0\n"), "{text}");
    assert!(text.contains(" gives up the CPU in shmem_undo_range+0x0 (init/main.c:"), "{text}");
    let json = shown(&["run", "--vmlinux", "vmlinux", "--json"]);
    let run = Run::from_json(json.as_bytes()).unwrap();
    let [first, unknown, caller] = &run.worst[0].blame[0].frames[..] else {
        panic!("{:?}", run.worst[0])
    };
    let message = (first.function.as_deref(), first.file.as_deref());
    assert_eq!(message, (Some("shmem_undo_range"), Some("init/main.c")));
    assert!((2..=5).contains(&first.line), "{first:?}");
    assert_eq!((&unknown.file, unknown.line), (&None, 0));
    // Nothing calls anybody before the first instruction of a function.
    assert_eq!((&caller.file, caller.line), (&None, 0));
    assert_eq!(fs::read(test.dir.join("run").join("run.json")).unwrap(), before);
    let without = shown(&["run"]);
    assert!(!without.contains("main.c"), "{without}");
    // The stored run still says that it lacks them, and the one with the lines does not.
    assert!(without.contains("not traced: source lines (/boot"), "{without}");
    let lacking = run.explanation.unwrap().not_seen;
    assert_eq!(lacking, ["NMIs"], "{text}");
}

#[test]
fn an_image_of_another_build_is_refused() {
    let test = Test::new("explain-other-image");
    store(&test, "run", Some(BUILD_ID));
    store(&test, "nameless", None);
    let other = "ff".repeat(20);
    build(&test, "other", &["-g", &format!("-Wl,--build-id=0x{other}")]);
    build(&test, "bare", &["-g0", &format!("-Wl,--build-id=0x{BUILD_ID}")]);
    build(&test, "stripped", &["-s", &format!("-Wl,--build-id=0x{BUILD_ID}")]);
    let refused = |run: &str, image: &str| {
        let ended = explain(&test, &[run, "--vmlinux", image]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{image}: {ended:?}");
        ended.stderr
    };
    let text = refused("run", "other");
    for words in ["is not the image of the kernel that was traced", &other, BUILD_ID, "→ name"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let text = refused("nameless", "other");
    assert!(text.contains("the image or the kernel has no build ID"), "{text}");
    let text = refused("run", "bare");
    assert!(text.contains("it has no debug information") && text.contains("→ take"), "{text}");
    let text = refused("run", "stripped");
    assert!(text.contains("it has no symbol table"), "{text}");
    // Nor is it taken for the kernel that runs, before anything is measured.
    let ended = explain(&test, &["--samples", "10", "--vmlinux", "other"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("is not the image of the kernel"), "{}", ended.stderr);
    assert!(!test.dir.join("runs").exists());
}
