//! `wakescope lab kernels` and `wakescope lab fetch`, where nothing can be fetched.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use expect_test::expect;
use serde_json::{Value, json};
use wakescope_testing::{Folder, write_program};

/// Nobody answers there.
const NOWHERE: &str = "http://127.0.0.1:9/debian";

/// A cache of one's own.
struct Lab {
    dir: Folder,
}

impl Lab {
    fn new(name: &str) -> Self {
        Self { dir: Folder::new(name) }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wakescope"));
        command.arg("lab").args(args);
        command.env("WAKESCOPE_CACHE", self.dir.join("cache")).env("WAKESCOPE_MIRROR", NOWHERE);
        command.env_remove("WAKESCOPE_KEYRING").env_remove("WAKESCOPE_QEMU");
        command
    }

    /// Puts a kernel into the cache, as `lab fetch` would have.
    fn add(&self, version: &str, banner: &str, config: &str) {
        let release = format!("{version}-amd64");
        let folder = self.dir.join("cache/kernels/amd64").join(version);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("image"), "image").unwrap();
        fs::write(folder.join("config"), config).unwrap();
        let card = json!({
            "schema": "wakescope.kernel/1",
            "release": release,
            "version": format!("#1 SMP {banner}"),
            // Of the image's content.
            "sha256": "6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d",
            "package": format!("linux-image-{release}"),
            "package_version": "6.1.192-2",
            "fetched_bytes": 26_713_492,
        });
        fs::write(folder.join("kernel.json"), card.to_string()).unwrap();
    }
}

#[track_caller]
fn check(command: &mut Command, code: i32, message: &[&str]) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{stderr}");
    for text in message {
        assert!(stderr.contains(text), "{text:?} is not in\n{stderr}");
    }
    String::from_utf8(stdout).unwrap()
}

#[test]
fn a_machine_without_apt_gets_a_word_and_another_way() {
    let lab = Lab::new("no-apt");
    for (args, other_way) in [
        (&["fetch", "6.1-cloud"][..], "--kernel bzImage"),
        (&["kernels"], "--kernel bzImage"),
        (&["image", "gcc,libc6-dev"], "omit --packages"),
        // A kernel of one's own needs an emulator too.
        (&["fetch", "qemu"], "WAKESCOPE_QEMU=PROGRAM"),
    ] {
        let text = ["`apt-get` is not installed", "→ install", other_way];
        check(lab.command(args).env("PATH", lab.dir.path()), 2, &text);
    }
}

#[test]
fn a_machine_without_keys_gets_a_word() {
    let lab = Lab::new("no-keys");
    if !["/usr/bin/apt-get", "/usr/bin/dpkg-deb"].iter().all(|p| Path::new(p).exists()) {
        crate::common::bench::skip("a machine without keys gets a word", "there is no apt");
        return;
    }
    let mut command = lab.command(&["fetch", "6.1-cloud"]);
    let text = ["keys are not installed: /none", "debian-archive-keyring"];
    check(command.env("WAKESCOPE_KEYRING", "/none"), 2, &text);
}

#[test]
fn bad_arguments_are_refused_with_a_remedy() {
    let lab = Lab::new("arguments");
    check(&mut lab.command(&["fetch"]), 2, &["<NAME>"]);
    check(&mut lab.command(&["fetch", "6.1", "--arch", "riscv64"]), 2, &["amd64 and arm64"]);
    let mut command = lab.command(&["fetch", "6.1"]);
    check(command.env("WAKESCOPE_MIRROR", "mirror"), 2, &["WAKESCOPE_MIRROR=http://"]);
    let mut command = lab.command(&["kernels"]);
    command.env_remove("WAKESCOPE_CACHE").env_remove("XDG_CACHE_HOME").env_remove("HOME");
    check(&mut command, 2, &["→ name a folder for the cache: WAKESCOPE_CACHE=DIR"]);
}

#[test]
fn a_lab_without_a_program_for_its_guests_fetches_nothing() {
    let lab = Lab::new("no-guest");
    let arch = if std::env::consts::ARCH == "aarch64" { "amd64" } else { "arm64" };
    let mut command = lab.command(&["run", "--arch", arch, "--kernel", "6.1-cloud"]);
    command.env_remove(format!("WAKESCOPE_GUEST_{}", arch.to_uppercase()));
    let why = format!("there is no wakescope for guests of {arch}");
    check(command.env("PATH", lab.dir.path()), 2, &[&why, "--guest-program FILE"]);
}

#[test]
fn what_is_cached_is_listed_and_fetched_without_the_archive() {
    let lab = Lab::new("cached");
    lab.add(
        "6.1.0-56-cloud",
        "PREEMPT_DYNAMIC",
        "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
    );
    lab.add("6.1.0-56-rt", "PREEMPT_RT", "CONFIG_PREEMPT_RT=y\n");
    lab.add("6.1.0-9-cloud", "", "CONFIG_PREEMPT_NONE=y\n");
    // What is none is left out.
    fs::create_dir(lab.dir.join("cache/kernels/amd64/6.1.0-8")).unwrap();
    fs::create_dir(lab.dir.join("cache/kernels/amd64/.new-1-0-6.1.0-7")).unwrap();

    let amd64 = ["--arch", "amd64"];
    let list = check(lab.command(&["kernels"]).args(amd64).env("PATH", lab.dir.path()), 0, &[]);
    expect![[r#"
        | kernel         release               cached   size  preemption
        | 6.1.0-9-cloud  6.1.0-9-cloud-amd64   yes     27 MB  none, built in
        | 6.1-cloud      6.1.0-56-cloud-amd64  yes     27 MB  voluntary by default, changeable at boot
        | 6.1-rt         6.1.0-56-rt-amd64     yes     27 MB  RT
    "#]]
    .assert_eq(&list.lines().map(|line| format!("|{line}\n")).collect::<String>());

    let list =
        check(lab.command(&["kernels", "--json"]).args(amd64).env("PATH", lab.dir.path()), 0, &[]);
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["schema"], "wakescope.kernels/1");
    let newest = &list["kernels"][1];
    assert_eq!(newest["name"], "6.1.0-56-cloud");
    assert_eq!(newest["short_name"], "6.1-cloud");
    assert_eq!((&newest["model"], &newest["dynamic"]), (&json!("voluntary"), &json!(true)));
    assert_eq!((&newest["cached"], &newest["can_be_fetched"]), (&json!(true), &json!(false)));

    let mut fetch = lab.command(&["fetch", "6.1-cloud", "6.1.0-9-cloud"]);
    let text = [
        "using 6.1.0-56-cloud from the cache",
        "6.1-cloud: 6.1.0-56-cloud-amd64, was here already",
        "6.1.0-9-cloud: 6.1.0-9-cloud-amd64, was here already",
    ];
    check(fetch.args(amd64).env("PATH", lab.dir.path()), 0, &text);

    // Where the archive could give another in its place, it is said why the cached one is not used.
    fs::write(lab.dir.join("cache/kernels/amd64/6.1.0-56-rt/image"), "changed").unwrap();
    for args in [&["fetch", "6.1-rt"][..], &["module", "6.1-rt"], &["run", "--kernel", "6.1-rt"]] {
        let text =
            ["6.1.0-56-rt is damaged: its image has changed; the archive is asked for it", "→"];
        check(lab.command(args).args(amd64).env("PATH", lab.dir.path()), 2, &text);
    }

    // Who asks for news wants to know that there are none to be had.
    let mut command = lab.command(&["kernels", "--refresh"]);
    check(command.args(amd64).env("PATH", lab.dir.path()), 2, &["`apt-get` is not installed"]);
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let lab = Lab::new("blocked");
    fs::write(lab.dir.join("cache"), "a file").unwrap();
    let text = ["cannot use ", "it is a file, not a folder", "WAKESCOPE_CACHE=DIR"];
    check(&mut lab.command(&["kernels"]), 2, &text);
}

#[test]
fn a_module_is_built_from_what_is_cached_or_refused_with_a_remedy() {
    let lab = Lab::new("module");
    check(&mut lab.command(&["module"]), 2, &["no kernel in the cache", "→ name one"]);
    lab.add("6.1.0-56-cloud", "PREEMPT_DYNAMIC", "CONFIG_PREEMPT_DYNAMIC=y\n");
    let apart = std::env::consts::ARCH != "x86_64";
    if apart {
        let told = ["only be built on that architecture", "→ run it on"];
        check(&mut lab.command(&["module", "6.1-cloud"]), 2, &told);
        return;
    }
    check(&mut lab.command(&["module", "6.1-cloud"]), 2, &["cannot build the module for 6.1.0-56"]);
    let tree = lab.dir.join("cache/headers/6.1.0-56-cloud-amd64/tree");
    fs::create_dir_all(tree).unwrap();
    // It goes into the packages and builds, in place of the real one.
    let tools = lab.dir.join("tools");
    let module = |script: &str, code, told: &[&str]| {
        let unshare = tools.join("unshare");
        write_program(&unshare, format!("#!/bin/sh\n{script}\n").as_bytes());
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        check(lab.command(&["module", "6.1-cloud"]).env("PATH", path), code, told);
    };
    let denied = "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1";
    module(denied, 2, &["no private place to build in: unshare: ", "→ run it "]);
    let broken = "echo 'device.c:7: error: no' >&2; exit 2";
    module(
        broken,
        2,
        &[
            "the build for 6.1.0-56-cloud-amd64 failed",
            "device.c:7",
            "→ remove ",
            "→ or build it by",
        ],
    );
    module("echo what", 2, &["it ended without a module", "→ remove "]);
    module("printf '\\177ELF module'", 0, &["6.1-cloud: ", "/wakescope.ko"]);
    module(denied, 0, &["/wakescope.ko, was here already"]);
}
