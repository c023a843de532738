//! Lines of source of functions in modules.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use wakescope_core::explain::{Cause, Culprit, Evidence, Explanation, Frame, Share};
use wakescope_core::run::Run;

use crate::common::bench::Test;
use crate::common::following::explain;
use crate::lines::{BUILD_ID, build, have_only};

const SOURCE: &str = "\
extern void schedule(void);
volatile int queued;
__attribute__((section(\".text.unlikely\"))) int queue_reset(int x)
{
	queued = x;
	return queued;
}
int queue_drain(int x)
{
	schedule();
	return queue_reset(x) + 1;
}
int shared(int x)
{
	return x + queued;
}
";

const MODULE_ID: &str = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3";

const RELEASE: &str = "6.1.0-test";

/// Where a package has the kernel's image, and the module.
const IMAGE: &str = "usr/lib/debug/boot/vmlinux-6.1.0-test";
const MODULE: &str = "usr/lib/debug/lib/modules/6.1.0-test/kernel/drivers/test-queue.ko.debug";

/// Makes a module in the folder of `test`.
fn build_module(test: &Test, module: &str, options: &[&str]) {
    let path = test.dir.join(module);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::create_dir_all(test.dir.join("drivers")).unwrap();
    let source = test.dir.join("drivers/queue.c");
    fs::write(&source, SOURCE).unwrap();
    let ended = Command::new("cc")
        .args(["-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-ffreestanding", "-nostdlib"])
        .args(["-fno-pic", "-fno-pie", "-r"])
        .args(options)
        .arg("-o")
        .args([&path, &source])
        .current_dir(&test.dir)
        .output()
        .expect("cc, which links this test, too");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn id(id: &str) -> String {
    format!("-Wl,--build-id=0x{id}")
}

/// A package with the debug information of kernel and module, in the folder of a test.
fn package(name: &str) -> Test {
    let test = Test::new(name);
    fs::create_dir_all(test.dir.join("usr/lib/debug/boot")).unwrap();
    build(&test, IMAGE, &["-g", &id(BUILD_ID)]);
    build_module(&test, MODULE, &["-g", &id(MODULE_ID)]);
    test
}

/// What the record of a run says of modules.
struct Explained<'t> {
    release: &'t str,
    /// Of functions, the modules that they are in.
    modules: &'t [(&'t str, &'t str)],
    build_ids: &'t [(&'t str, &'t str)],
}

impl Default for Explained<'_> {
    fn default() -> Self {
        Self {
            release: RELEASE,
            modules: &[("queue_drain", "test_queue"), ("queue_reset", "test_queue")],
            build_ids: &[("test_queue", MODULE_ID)],
        }
    }
}

impl Explained<'_> {
    fn frame(&self, function: &str, offset: u64) -> Frame {
        let module = self.modules.iter().find(|(known, _)| *known == function);
        let module = module.map(|(_, module)| (*module).to_owned());
        Frame { module, ..Frame::in_function(function, offset) }
    }

    /// Stores a run with one stack.
    fn store(&self, test: &Test, folder: &str) {
        let measured = test.start_command(&["measure", "--samples", "1", "--out", folder]).output();
        assert_eq!(measured.code, Some(0), "{measured:?}");
        let path = test.dir.join(folder).join("run.json");
        let mut run = Run::from_json(&fs::read(&path).unwrap()).unwrap();
        let stack =
            [("queue_reset", 0), ("shared", 0), ("shmem_undo_range", 0), ("start_kernel", 1)];
        let frames: Vec<Frame> = stack.map(|(name, offset)| self.frame(name, offset)).into();
        let share = Share {
            cause: Cause::NoPreemptionPoint,
            ns: 391_000,
            culprit: Culprit::function(frames[0].function()),
            evidence: Evidence::Stack,
            frames,
            ..Default::default()
        };
        // The innermost of a stack needs no call before it.
        let alone = |name: &str| Share { frames: vec![self.frame(name, 0)], ..share.clone() };
        let mut blame = vec![alone("shmem_undo_range"), alone("shared"), alone("queue_drain")];
        let others = self.modules.iter().map(|(function, _)| *function);
        let others = others.filter(|name| !["queue_reset", "queue_drain"].contains(name));
        blame.extend(others.map(alone));
        blame.insert(0, share);
        have_only(&mut run, blame);
        run.host.release = self.release.into();
        let ids = self.build_ids.iter().map(|&(module, id)| (module.to_owned(), id.to_owned()));
        run.explanation = Some(Explanation {
            wakeups: 1,
            late: 1,
            explained: 1,
            build_id: Some(BUILD_ID.into()),
            module_build_ids: ids.collect(),
            ..Default::default()
        });
        fs::write(path, run.to_json()).unwrap();
    }
}

/// The run with what the image adds.
fn completed(test: &Test, image: &str) -> Run {
    let ended = explain(test, &["run", "--vmlinux", image, "--json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    Run::from_json(ended.stdout.as_bytes()).unwrap()
}

/// The functions and files of the innermost entries of the first four stacks, and what is not seen.
fn lines_and_missing(run: &Run) -> (Vec<String>, Vec<String>) {
    let innermost = |share: &Share| {
        let frame = &share.frames[0];
        let file = frame.file.as_ref();
        file.map(|file| format!("{} {file}", frame.name())).unwrap_or_default()
    };
    let lines = run.worst[0].blame.iter().take(4).map(innermost).collect();
    (lines, run.explanation.as_ref().unwrap().not_seen.clone())
}

const WITH_MODULE: [&str; 4] = [
    "queue_reset drivers/queue.c",
    "shmem_undo_range init/main.c",
    "",
    "queue_drain drivers/queue.c",
];
const WITHOUT_MODULE: [&str; 4] = ["", "shmem_undo_range init/main.c", "", ""];

fn assert_told(test: &Test, image: &str, wanted: [&str; 4], not_seen: &[&str]) {
    let (lines, missing) = lines_and_missing(&completed(test, image));
    assert_eq!(
        (lines, missing.len()),
        (wanted.map(str::to_owned).into(), not_seen.len()),
        "{missing:?}"
    );
    for (missing, words) in missing.iter().zip(not_seen) {
        assert!(missing.contains(words), "{missing}");
    }
}

#[test]
fn functions_of_modules_get_lines_from_the_files_of_their_modules() {
    let test = package("module-lines");
    Explained::default().store(&test, "run");
    let run = completed(&test, IMAGE);
    assert_told(&test, IMAGE, WITH_MODULE, &[]);
    // In one stack there are functions of both.
    let frames = &run.worst[0].blame[0].frames;
    assert_eq!(frames.len(), 4, "{frames:?}");
    assert!((3..=5).contains(&frames[0].line), "{frames:?}");
    let is_bare = |frame: &Frame| (&frame.file, frame.line) == (&None, 0);
    assert!(frames[1..].iter().all(is_bare), "{frames:?}");
    let ended = explain(&test, &["run", "--vmlinux", IMAGE]);
    assert!(ended.stdout.contains(" queue_reset+0x0 (drivers/queue.c:"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("lines of source"), "{}", ended.stdout);
}

#[test]
fn packages_that_sort_by_builds_and_builds_themselves_have_modules_too() {
    let test = package("module-places");
    Explained::default().store(&test, "run");
    fs::create_dir_all(test.dir.join("usr/lib/debug/.build-id/a0")).unwrap();
    fs::rename(test.dir.join(MODULE), test.dir.join("queue.bytes")).unwrap();
    assert_told(&test, IMAGE, WITHOUT_MODULE, &["of test_queue (modules without a debug file"]);
    let by_id =
        test.dir.join("usr/lib/debug/.build-id/a0").join(format!("{}.debug", &MODULE_ID[2..]));
    symlink(test.dir.join("queue.bytes"), &by_id).unwrap();
    assert_told(&test, IMAGE, WITH_MODULE, &[]);
    fs::remove_file(by_id).unwrap();
    // The folder of a build.
    fs::copy(test.dir.join(IMAGE), test.dir.join("vmlinux")).unwrap();
    fs::write(test.dir.join("modules.order"), "kernel/drivers/test-queue.ko\n").unwrap();
    fs::rename(test.dir.join("queue.bytes"), test.dir.join("drivers/test-queue.ko")).unwrap();
    assert_told(&test, "vmlinux", WITH_MODULE, &[]);
}

#[test]
fn files_of_other_builds_are_not_used() {
    let test = package("module-other");
    Explained::default().store(&test, "run");
    let other = "ff".repeat(20);
    for (options, why) in [
        (&["-g", &id(&other)][..], format!("its build ID is {other}, the module's is {MODULE_ID}")),
        (&["-g", "-Wl,--build-id=none"], "it has no build ID".into()),
        (&["-g0", &id(MODULE_ID)], "it has no debug information".into()),
    ] {
        build_module(&test, MODULE, options);
        assert_told(&test, IMAGE, WITHOUT_MODULE, &[&why]);
    }
    let path = test.dir.join(MODULE);
    for (bytes, why) in
        [(&b"!<arch>"[..], "it is not a complete 64-bit ELF file"), (b"", "it is empty")]
    {
        fs::write(&path, bytes).unwrap();
        assert_told(&test, IMAGE, WITHOUT_MODULE, &[why]);
    }
    fs::copy(test.dir.join(IMAGE), &path).unwrap();
    assert_told(&test, IMAGE, WITHOUT_MODULE, &["it is a linked program, not a module"]);
    // Another file of that name may be the right one.
    let below = Path::new(MODULE).parent().unwrap().join("z/test_queue.ko");
    build_module(&test, below.to_str().unwrap(), &["-g", &id(MODULE_ID)]);
    assert_told(&test, IMAGE, WITH_MODULE, &[]);
}

#[test]
fn records_that_do_not_tell_of_which_build_a_module_was_get_no_lines_of_it() {
    let test = package("module-nameless");
    let nameless = Explained { build_ids: &[], ..Explained::default() };
    nameless.store(&test, "run");
    let why = "source lines of test_queue (modules without a build ID in the record)";
    assert_told(&test, IMAGE, WITHOUT_MODULE, &[why]);
}

#[test]
fn hostile_names_of_modules_are_borne() {
    let test = package("module-hostile");
    let ids: Vec<(String, String)> = (0..600).map(|n| (format!("m{n}"), "zz/../".into())).collect();
    let names: Vec<(String, String)> =
        (0..600).map(|n| (format!("f{n}"), format!("m{n}"))).collect();
    let pairs = |all: &'static [(&'static str, &'static str)], more: &[(String, String)]| {
        let more = more.iter().map(|(a, b)| (a.clone().leak() as &str, b.clone().leak() as &str));
        all.iter().copied().chain(more).collect::<Vec<_>>()
    };
    let modules = pairs(
        &[("queue_reset", "../../boot/vmlinux"), ("queue_drain", "\x1b[2J/\0"), ("x", "bpf")],
        &names,
    );
    let build_ids = pairs(&[("../../boot/vmlinux", "/"), ("\x1b[2J/\0", "é1")], &ids);
    for release in ["..", "/", "", "a/../../b", "\0"] {
        let hostile = Explained { release, modules: &modules, build_ids: &build_ids };
        hostile.store(&test, "run");
        assert_told(
            &test,
            IMAGE,
            WITHOUT_MODULE,
            &[
                "source lines of \x1b[2J/\0, ../../boot/vmlinux, m0, m1, m10, m100, m101, m102 and 248 \
                 more (modules without a debug file",
                " and 338 more (too many modules)",
            ],
        );
        let ended = explain(&test, &["run", "--vmlinux", IMAGE]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(!ended.stdout.contains('\x1b'), "{}", ended.stdout);
        assert!(!ended.stdout.contains("queue.c"), "{}", ended.stdout);
        fs::remove_dir_all(test.dir.join("run")).unwrap();
    }
}
