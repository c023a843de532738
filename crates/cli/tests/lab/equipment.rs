//! Kernels and emulators that are of no use. No guest is booted.

use std::fs;
use std::path::Path;

use crate::common::bench::{Ended, Running, Test, skip};
use crate::common::lab::{Bench, KERNEL, NOWHERE, Stock};
use crate::common::made_up_kernel::{End, MadeUp};
use wakescope_testing::write_program;

/// Runs `wakescope lab run` with `args`, an empty cache and nothing to fetch from.
fn run(test: &Test, path: &str, args: &[&str]) -> Ended {
    let mut command =
        test.command(&[&["lab", "run", "--load", "idle", "--seeds", "1"], args].concat());
    command.env("WAKESCOPE_CACHE", test.dir.join("cache")).env("WAKESCOPE_MIRROR", NOWHERE);
    command.env("PATH", path).env_remove("WAKESCOPE_QEMU").env_remove("WAKESCOPE_GUEST_AMD64");
    Running::start(&mut command).output()
}

/// Fails unless it could not be done, for these reasons.
#[track_caller]
fn assert_undone(ended: &Ended, words: &[&str]) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in {}", ended.stderr);
    }
    assert!(ended.stderr.contains('→'), "no next step: {}", ended.stderr);
    let harm = ended.stderr.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(harm, None, "{:?}", ended.stderr);
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}

fn amd64(test: &Test) -> String {
    MadeUp::new(End::Restart).write(&test.dir, "bzImage").display().to_string()
}

#[test]
fn files_that_are_no_kernel_are_refused() {
    let test = Test::new("no-kernel");
    let whole = MadeUp::new(End::Restart).bytes();
    let mut arm = vec![0; 4096];
    arm[56..60].copy_from_slice(b"ARM\x64");
    arm[1000..1000 + 60].copy_from_slice(&[b' '; 60]);
    let banner = b"Linux version 6.1.0 (made@up) #1 SMP Made up\n\0";
    arm[2000..2000 + banner.len()].copy_from_slice(banner);
    let files: [(&str, &[u8], &str); 5] = [
        ("cut", &whole[..whole.len() - 64], "it is truncated"),
        ("head", &whole[..600], "it is truncated"),
        ("empty", b"", "it is not a kernel image"),
        ("vmlinux", b"\x7fELF\x02\x01", "it is an ELF file"),
        ("Image", &arm, "it is for arm64, not for amd64"),
    ];
    for (name, bytes, why) in files {
        let path = test.dir.join(name);
        fs::write(&path, bytes).unwrap();
        let kernel = path.display().to_string();
        let ended = run(&test, &self::path(), &["--arch", "amd64", "--kernel", &kernel]);
        assert_undone(&ended, &["cannot boot ", name, why]);
    }
    let gone = run(&test, &path(), &["--kernel", "./gone"]);
    assert_undone(&gone, &["./gone", "No such file"]);
}

#[test]
fn names_that_no_kernel_has_do_no_harm() {
    let test = Test::new("hostile-name");
    for name in ["../../etc/passwd", "\u{1b}[2J", "6.1-cloud\n$(reboot)", "-", "\u{202e}duolc"] {
        let ended = run(&test, &path(), &[&format!("--kernel={name}")]);
        assert_undone(&ended, &[]);
    }
    // A kernel may have any name that a file can have.
    let strange = test.dir.join("\u{1b}[2J, \"x\"\n%s");
    fs::write(&strange, "no kernel").unwrap();
    let plan = test.dir.join("plan.toml");
    fs::write(&plan, format!("kernels = [{:?}]\n", strange.display().to_string())).unwrap();
    let ended = run(&test, &path(), &["--plan", plan.to_str().unwrap()]);
    assert_undone(&ended, &[]);
}

#[test]
fn a_lab_without_an_emulator_says_what_to_do() {
    let test = Test::new("no-qemu");
    let kernel = amd64(&test);
    let args = ["--kernel", kernel.as_str()];
    let empty = test.dir.join("empty");
    fs::create_dir(&empty).unwrap();
    let ended = run(&test, empty.to_str().unwrap(), &args);
    assert_undone(&ended, &["cannot set up QEMU", "WAKESCOPE_QEMU"]);
    let ended = run(&test, empty.to_str().unwrap(), &[&args[..], &["--qemu", "./none"]].concat());
    assert_undone(&ended, &["./none", "wakescope lab fetch qemu"]);
}

/// A program that says what an emulator says.
fn fake(folder: &Path, says: &str) -> String {
    let path = folder.join("qemu-system-x86_64");
    write_program(&path, format!("#!/bin/sh\necho '{says}'\n").as_bytes());
    path.display().to_string()
}

#[test]
fn an_emulator_that_is_too_old_is_refused() {
    let test = Test::new("old-qemu");
    let kernel = amd64(&test);
    let old = fake(&test.dir.join("old"), "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)");
    let other = fake(&test.dir.join("other"), "something else");
    let args = ["--kernel", kernel.as_str(), "--qemu"];
    let ended = run(&test, &path(), &[&args[..], &[&old]].concat());
    assert_undone(&ended, &["is QEMU 7.2.22", "needs 8.0.0", "wakescope lab fetch qemu"]);
    let ended = run(&test, &path(), &[&args[..], &[&other]].concat());
    assert_undone(&ended, &["does not identify itself as QEMU"]);
    // One that just happens to be there is passed over.
    let path = format!("{}:{}", test.dir.join("old").display(), path());
    let ended = run(&test, &path, &["--kernel", &kernel]);
    assert_undone(&ended, &["cannot set up QEMU"]);
}

#[test]
fn no_time_is_no_limit_for_guests() {
    let test = Test::new("no-time");
    for verb in [&["lab", "run"][..], &["lab", "verify"], &["scope", "0"], &["predict", "0"]] {
        let args = [verb, &["--timeout", "0s"]].concat();
        let ended = Running::start(&mut test.command(&args)).output();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("it must be above zero"), "{ended:?}");
    }
}

#[test]
fn several_cpus_are_refused_with_the_reason() {
    let test = Test::new("smp");
    let kernel = amd64(&test);
    let ended = run(&test, &path(), &["--kernel", &kernel, "--cpus", "2"]);
    assert_undone(&ended, &["guests with 2 CPUs", "one CPU at a time", "--experimental-smp"]);
}

/// What a guest measures depends on its program, so that it is said where it is not the usual one.
#[test]
fn a_lab_without_the_program_for_guests_says_so() {
    if cfg!(not(target_arch = "x86_64")) {
        let name = "a_lab_without_the_program_for_guests_says_so";
        return skip(name, "the made-up kernel is for amd64");
    }
    let mut test = Test::new("no-guest");
    let kernel = amd64(&test);
    let qemu = fake(&test.dir.join("qemu"), "QEMU emulator version 10.0.13 (made up)");
    let args = ["--kernel", kernel.as_str(), "--qemu", &qemu];
    let [alone, beside] = ["alone", "beside"].map(|name| test.dir.join(name));
    for folder in [&alone, &beside] {
        fs::create_dir(folder).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_wakescope"), folder.join("wakescope")).unwrap();
    }
    fs::write(beside.join("wakescope-guest"), "no program").unwrap();
    for (folder, is_said) in [(&alone, true), (&beside, false)] {
        test.program = folder.join("wakescope");
        let ended = run(&test, &path(), &args);
        let said = ended.stderr.matches("no wakescope-guest beside this program").count();
        assert_eq!(said, usize::from(is_said), "{ended:?}");
    }
}

#[test]
fn a_module_that_is_not_there_is_named() {
    let Some(stock) = Stock::get("a_module_that_is_not_there_is_named") else { return };
    let bench = Bench::new(stock, "module");
    let ended =
        bench.lab(&["run", "--arch", "amd64", "--kernel", KERNEL, "--module", "null_blk,nobody"]);
    assert_undone(&ended, &["there is no module `nobody` in ", "lsmod shows"]);
    assert!(bench.cells().is_empty(), "no guest was booted");
}
