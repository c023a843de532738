//! The self-test of the project's kernel module, which tries to hurt it: in guests of Debian's kernels,
//! and of one that hunts for bugs, which `make test-hunting` builds.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common;
use crate::common::bench::skip;
use crate::common::lab::{Bench, KERNEL, Stock};
use wakescope_core::lab::Status;

/// With three, the next CPU is not always the first one of the others.
const CPUS: [&[&str]; 2] = [&[], &["--cpus", "3", "--experimental-smp"]];

/// Asks for so many random operations, instead of those that are usual.
const OPERATIONS: &str = "WAKESCOPE_TEST_OPERATIONS";

/// What tells the self-test, by the kernel's command line, how many random operations it is to try.
fn random_operations(usual: Option<u32>) -> String {
    let asked = std::env::var(OPERATIONS).ok();
    let asked = asked.map(|text| text.parse().unwrap_or_else(|e| panic!("{OPERATIONS}: {e}")));
    asked.or(usual).map_or_else(String::new, |number: u32| format!("WAKESCOPE_OPERATIONS={number}"))
}

/// Compiles the module's self-test, a program that is the first process of a guest, by `compiler`.
fn self_test(bench: &Bench, compiler: &str) -> Result<PathBuf, String> {
    let program = bench.test.dir.join("selftest");
    let folder = common::root().join("kmod/selftest");
    let sources =
        ["selftest.c", "common.c", "inject.c", "pairs.c", "waits.c", "hardship.c", "fuzz.c"];
    let sources = sources.map(|name| folder.join(name));
    let mut command = std::process::Command::new(compiler);
    command.args(["-static", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
    let ended = command.arg(&program).args(sources).output();
    let ended = ended.map_err(|e| format!("there is no {compiler}: {e}"))?;
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() || told.contains("cannot find -lc"), "{told}");
    if ended.status.success() { Ok(program) } else { Err("there is no libc.a".into()) }
}

/// Runs the self-test in a guest with this kernel and a module for it, and returns all that the guest
/// printed. Fails if a test failed, or if the kernel had complaints.
fn assert_passes(
    bench: &Bench,
    program: &Path,
    [image, module]: [&Path; 2],
    how: &[&str],
) -> String {
    // As a kernel of one's own, which comes with its modules.
    let modules = bench.test.dir.join("modules");
    fs::create_dir_all(modules.join("kernel")).unwrap();
    fs::copy(module, modules.join("kernel/wakescope.ko")).unwrap();
    let path = |path: &Path| path.to_str().expect("a path of UTF-8").to_string();
    let [image, modules, program] = [path(image), path(&modules), path(program)];
    let what = ["--kernel", &image, "--preempt", "default", "--load", "idle", "--seeds", "1"];
    // On a busy machine a million operations take longer than guests usually may.
    let patience = ["--timeout", "4h"];
    let with = ["--modules", &modules, "--module", "wakescope", "--guest-program", &program];
    // It sends no result: all that it has to say is in the log.
    let ran = bench.run(&[&what[..], &with, &patience, how].concat());
    assert_eq!(ran.cell().status, Status::Failed, "{}", ran.json);
    let [cell] = &bench.cells()[..] else { panic!("{:?}", bench.cells()) };
    let log = bench.bits(cell).remove("console.log").expect("a log");
    let log = String::from_utf8_lossy(&log).into_owned();
    assert!(log.contains("selftest: all passed"), "{image}: {log}");
    assert!(log.contains("selftest: warnings are shown"), "{image}: {log}");
    let complaints = complaints(&log);
    assert!(complaints.is_empty(), "{image}: {complaints:#?}: {log}");
    log
}

/// What a kernel that has found a fault says of it, in one of its lines.
const COMPLAINTS: [&str; 8] = [
    "WARNING",
    "BUG",
    "Call Trace",
    "rcu:",
    "scheduling while atomic",
    "possible",
    "KASAN: ",
    "ODEBUG",
];

/// The lines that complain. Of an allocation that was made to fail the kernel shows the stack as well,
/// a few lines after it has said so.
fn complaints(log: &str) -> Vec<&str> {
    let lines: Vec<_> = log.lines().collect();
    let is_asked_for = |at: usize| {
        let before = &lines[at.saturating_sub(5)..at];
        let failed = ["vmalloc error: ", "allocation failure: "];
        before.iter().any(|line| failed.iter().any(|words| line.contains(words)))
    };
    let complains = |line: &str| COMPLAINTS.iter().any(|words| line.contains(words));
    let all = lines.iter().enumerate().filter(|(_, line)| complains(line));
    let all = all.filter(|(at, line)| !(line.contains("Call Trace") && is_asked_for(*at)));
    all.map(|(_, line)| *line).collect()
}

#[test]
fn the_kernel_module_survives_what_its_self_test_does_to_it() {
    let name = "the_kernel_module_survives_what_its_self_test_does_to_it";
    let kernels = [KERNEL, "6.1-rt", "7.2-cloud", "7.2-rt"];
    let Some(stock) = crate::stock(name, &kernels) else { return };
    for (kernel, cpus) in kernels.into_iter().flat_map(|kernel| CPUS.map(|cpus| (kernel, cpus))) {
        let bench = Bench::new(stock, "selftest");
        let made = self_test(&bench, "cc").and_then(|test| Ok((test, stock.build_module(kernel)?)));
        let (program, module) = match made {
            Ok(made) => made,
            Err(why) => return skip(name, &why),
        };
        let image = stock.kernel(kernel).join("image");
        let words = random_operations(None);
        let how = [&["--append", &words][..], cpus].concat();
        let log = assert_passes(&bench, &program, [&image, &module], &how);
        let goes = log.contains("selftest: CPU 1 goes");
        assert_eq!(goes, !cpus.is_empty(), "{kernel}: {log}");
    }
}

#[test]
fn the_kernel_module_survives_its_self_test_on_arm64() {
    let name = "the_kernel_module_survives_its_self_test_on_arm64";
    let kernels = [KERNEL, "7.2-cloud"];
    let Some((stock, _)) = crate::arm64(name, &kernels) else { return };
    for (kernel, cpus) in kernels.into_iter().flat_map(|kernel| CPUS.map(|cpus| (kernel, cpus))) {
        let bench = Bench::new(stock, "selftest-arm64");
        let made = self_test(&bench, "aarch64-linux-gnu-gcc");
        let made = made.and_then(|test| Ok((test, stock.build_module_for("arm64", kernel)?)));
        let (program, module) = match made {
            Ok(made) => made,
            Err(why) => return skip(name, &why),
        };
        let image = stock.kernel_for("arm64", kernel).join("image");
        let words = random_operations(None);
        let how = [&["--arch", "arm64", "--append", &words][..], cpus].concat();
        let log = assert_passes(&bench, &program, [&image, &module], &how);
        let goes = log.contains("selftest: CPU 1 goes");
        assert_eq!(goes, !cpus.is_empty(), "{kernel}: {log}");
    }
}

/// A turn of a section takes some 20 us there, and an interrupt up to 150.
const SLOWER: &str = "WAKESCOPE_SLOWER=30";

/// Each takes some 10 ms of the host's time there (measured with 3,000 on three CPUs), so these take some eight
/// minutes on each machine.
const OPERATIONS_WHEN_SLOWER: u32 = 50_000;

#[test]
fn the_kernel_module_survives_its_self_test_on_a_kernel_that_hunts_for_bugs() {
    let name = "the_kernel_module_survives_its_self_test_on_a_kernel_that_hunts_for_bugs";
    let Some(folder) = std::env::var_os("WAKESCOPE_TEST_HUNTING").map(PathBuf::from) else {
        let why = "no distribution's kernel has KASAN and lockdep, and WAKESCOPE_TEST_HUNTING \
                   names no folder with one (make test-hunting)";
        return skip(name, why);
    };
    let Some(stock) = Stock::get(name) else { return };
    let [image, module] = ["bzImage", "modules/kernel/wakescope.ko"].map(|file| folder.join(file));
    let config = folder.join("config");
    for cpus in CPUS {
        let bench = Bench::new(stock, "hunting");
        let program = match self_test(&bench, "cc") {
            Ok(program) => program,
            Err(why) => return skip(name, &why),
        };
        let words = format!("{} {SLOWER}", random_operations(Some(OPERATIONS_WHEN_SLOWER)));
        let how = [&["--config", config.to_str().unwrap(), "--append", &words][..], cpus].concat();
        let log = assert_passes(&bench, &program, [&image, &module], &how);
        // Fault injection and kmemleak are there, and did what they are for.
        assert!(log.contains("selftest: load: ") && log.contains("selftest: leaks: "), "{log}");
        assert!(!log.contains("selftest: skipped: exhausted memory"), "{log}");
        assert_eq!(log.contains("selftest: CPU 1 goes"), !cpus.is_empty(), "{log}");
    }
}
