//! `wakescope lab` with a cache that another user controls: nothing of it is used.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use crate::common::bench::{Ended, Running, Test, skip};
use crate::common::lab::NOWHERE;
use wakescope_sys::file::effective_user;
use wakescope_testing::write_program;

/// Another user.
const MALLORY: u32 = 1001;

/// Every command that uses the cache.
const COMMANDS: [&[&str]; 6] = [
    &["kernels"],
    &["fetch", "6.1-cloud", "qemu"],
    &["run", "--kernel", "6.1-cloud", "--load", "idle", "--seeds", "1"],
    &["verify"],
    &["prune", "--keep", "0"],
    &["bisect", "--kernel", "6.1-cloud,6.1-rt", "--load", "idle", "--fail-above", "1us"],
];

/// A cache whose programs leave a trace when they are executed.
struct Trap {
    test: Test,
    home: PathBuf,
    cache: PathBuf,
}

impl Trap {
    fn new(name: &str) -> Self {
        let test = Test::new(name);
        let home = test.dir.join("home");
        let cache = home.join(".cache/wakescope");
        let trap = Self { test, home, cache };
        let script = format!("#!/bin/sh\ntouch '{}'\n", trap.sprung().display());
        for file in [
            "qemu/10.0.13/usr/bin/qemu-system-x86_64",
            "qemu/10.0.13/usr/bin/qemu-system-aarch64",
            "qemu/10.0.13/usr/lib64/ld-linux-x86-64.so.2",
            "qemu/10.0.13/usr/lib/x86_64-linux-gnu/libc.so.6",
            "kernels/amd64/6.1.0-9-cloud/image",
            "guests/guest.cpio",
            "apt/kernels-amd64/apt.conf",
            "plugins/0123456789abcdef/scope.so",
            "maps/0123",
            "sums.json",
        ] {
            write_program(&trap.cache.join(file), script.as_bytes());
        }
        for folder in ["cells", "headers", "locks"] {
            fs::create_dir(trap.cache.join(folder)).unwrap();
        }
        trap
    }

    fn sprung(&self) -> PathBuf {
        self.test.dir.join("sprung")
    }

    /// Runs `wakescope lab`, which finds the cache by `variable`.
    fn run(&self, variable: &str, args: &[&str]) -> Ended {
        let mut command = self.test.command(&[&["lab"], args].concat());
        for name in ["WAKESCOPE_CACHE", "XDG_CACHE_HOME", "WAKESCOPE_QEMU"] {
            command.env_remove(name);
        }
        let value = match variable {
            "WAKESCOPE_CACHE" => self.cache.clone(),
            "XDG_CACHE_HOME" => self.home.join(".cache"),
            _ => self.home.clone(),
        };
        command.env(variable, value).env("WAKESCOPE_MIRROR", NOWHERE);
        Running::start(&mut command).output()
    }

    /// Everything in the test's folder, with owner, mode and time of its last change.
    fn state(&self) -> BTreeMap<PathBuf, (u32, u32, i64, i64)> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.test.dir.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                if meta.is_dir() {
                    folders.push(path.clone());
                }
                all.insert(path, (meta.uid(), meta.mode(), meta.ctime(), meta.ctime_nsec()));
            }
        }
        all
    }

    /// Fails unless the command refuses the cache for this reason, says what to do, and neither
    /// executes nor writes anything.
    #[track_caller]
    fn assert_refused(&self, variable: &str, args: &[&str], why: &[&str]) {
        let before = self.state();
        let ended = self.run(variable, args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        let remedies: &[&str] = match effective_user() {
            0 => &["sudo -H wakescope lab", "WAKESCOPE_CACHE=/root/"],
            _ => &["WAKESCOPE_CACHE=DIR"],
        };
        for text in why.iter().chain(["cannot trust the lab's cache"].iter()).chain(remedies) {
            assert!(ended.stderr.contains(text), "{text:?} is not in {}", ended.stderr);
        }
        assert!(!self.sprung().exists(), "{args:?} executed a file of the cache");
        assert_eq!(self.state(), before, "{args:?} wrote");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_cache_of_another_user_is_refused_by_every_command() {
    let name = "a_cache_of_another_user_is_refused_by_every_command";
    if effective_user() != 0 {
        return skip(name, "giving files away needs root");
    }
    // As `sudo -E` and `su` leave it, with the caller of `sudo`.
    let trap = Trap::new("foreign-home");
    chown(&trap.home, Some(MALLORY), Some(MALLORY)).unwrap();
    let owner = format!("belongs to user {MALLORY}");
    for args in COMMANDS {
        trap.assert_refused("HOME", args, &[&owner, "/home: "]);
    }
    for variable in ["WAKESCOPE_CACHE", "XDG_CACHE_HOME"] {
        trap.assert_refused(variable, COMMANDS[2], &[&owner]);
    }
    // One file or folder of it is enough.
    for file in [
        ".cache",
        ".cache/wakescope",
        ".cache/wakescope/qemu",
        ".cache/wakescope/qemu/10.0.13",
        ".cache/wakescope/qemu/10.0.13/usr/bin/qemu-system-x86_64",
        ".cache/wakescope/qemu/10.0.13/usr/lib64/ld-linux-x86-64.so.2",
        ".cache/wakescope/qemu/10.0.13/usr/lib/x86_64-linux-gnu/libc.so.6",
        ".cache/wakescope/kernels/amd64/6.1.0-9-cloud/image",
        ".cache/wakescope/guests/guest.cpio",
        ".cache/wakescope/apt/kernels-amd64/apt.conf",
        ".cache/wakescope/plugins/0123456789abcdef/scope.so",
        ".cache/wakescope/maps/0123",
        ".cache/wakescope/sums.json",
        ".cache/wakescope/cells",
        ".cache/wakescope/headers",
        ".cache/wakescope/locks",
    ] {
        let trap = Trap::new("foreign-file");
        let path = trap.home.join(file);
        chown(&path, Some(MALLORY), Some(MALLORY)).unwrap();
        let refused = format!("{}: ", path.display());
        trap.assert_refused("HOME", COMMANDS[2], &[&owner, &refused]);
    }
}

#[test]
fn the_caller_of_sudo_is_another_user() {
    let name = "the_caller_of_sudo_is_another_user";
    if effective_user() != 0 {
        return skip(name, "giving files away needs root");
    }
    let trap = Trap::new("sudo-caller");
    chown(&trap.cache, Some(MALLORY), Some(MALLORY)).unwrap();
    let mut command = trap.test.command(&["lab", "kernels"]);
    command.env("WAKESCOPE_CACHE", &trap.cache).env("SUDO_UID", MALLORY.to_string());
    let ended = Running::start(&mut command).output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("cannot trust the lab's cache"), "{}", ended.stderr);
}

#[test]
fn a_cache_that_others_may_write_is_refused_with_the_mode() {
    for (file, mode) in [
        ("", 0o777),
        (".cache/wakescope", 0o757),
        (".cache/wakescope", 0o1777),
        (".cache/wakescope/qemu/10.0.13/usr/lib", 0o777),
        (".cache/wakescope/kernels/amd64/6.1.0-9-cloud/image", 0o646),
        (".cache/wakescope/sums.json", 0o666),
    ] {
        let trap = Trap::new("open-cache");
        let path = trap.home.join(file);
        set_mode(&path, mode);
        let path = path.display().to_string();
        let path = path.trim_end_matches('/');
        let (why, remedy) = (format!("(mode {mode:04o})"), format!("chmod go-w {path}"));
        trap.assert_refused("HOME", COMMANDS[2], &[&why, &remedy]);
    }
}

#[test]
fn a_link_in_a_cache_leads_only_to_what_is_as_safe() {
    let trap = Trap::new("linked-cache");
    let elsewhere = trap.test.dir.join("elsewhere");
    fs::rename(trap.cache.join("qemu"), &elsewhere).unwrap();
    symlink(&elsewhere, trap.cache.join("qemu")).unwrap();
    let ended = trap.run("HOME", &["prune", "--keep", "1GB"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    set_mode(&elsewhere, 0o777);
    trap.assert_refused("HOME", COMMANDS[2], &["elsewhere: other users may write"]);
}

#[test]
fn a_lock_that_is_no_file_is_refused_and_not_waited_for() {
    for (kind, why) in [
        ("link", "it is a symbolic link"),
        ("dangling link", "it is a symbolic link"),
        ("fifo", "it is a FIFO"),
        ("folder", "it is a folder"),
    ] {
        let trap = Trap::new("lock");
        fs::remove_dir_all(trap.cache.join("kernels")).unwrap();
        let treasure = trap.test.dir.join("treasure");
        fs::write(&treasure, "treasure").unwrap();
        let lock = trap.cache.join("locks/apt-kernels-amd64");
        match kind {
            "link" => symlink(&treasure, &lock).unwrap(),
            "dangling link" => symlink(trap.sprung(), &lock).unwrap(),
            "folder" => fs::create_dir(&lock).unwrap(),
            _ => {
                let made = std::process::Command::new("mkfifo").arg(&lock).status();
                assert!(made.unwrap().success());
            }
        }
        let ended = trap.run("HOME", &["kernels", "--arch", "amd64"]);
        assert_eq!(ended.code, Some(2), "{kind}: {ended:?}");
        assert!(ended.stderr.contains(why), "{kind}: {}", ended.stderr);
        assert_eq!(fs::read_to_string(&treasure).unwrap(), "treasure");
        assert!(!trap.sprung().exists(), "{kind}");
    }
}
