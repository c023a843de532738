//! What an emulator may do that `wakescope lab` starts. It is a script here; `confined.rs` has the
//! real one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::bench::{
    Running, Test, eventually, eventually_or_told, eventually_some, kill, skip,
};
use crate::common::lab::NOWHERE;
use crate::common::made_up_kernel::{End, MadeUp};
use crate::common::measured::names;
use wakescope_sys::file::effective_user;
use wakescope_sys::landlock;
use wakescope_testing::write_program;

/// A lab with an emulator that is a script.
pub(crate) struct Fake {
    pub(crate) test: Test,
    pub(crate) cache: PathBuf,
    pub(crate) qemu: PathBuf,
    pub(crate) args: Vec<String>,
}

impl Fake {
    /// `body` is run in place of a guest. It has `$DIR`, the test's folder.
    pub(crate) fn new(name: &str, body: &str) -> Self {
        let test = Test::new(name);
        let (cache, dir) = (test.dir.join("cache"), test.dir.display().to_string());
        let qemu = test.dir.join("emulator/qemu-system-x86_64");
        let script = format!(
            "#!/bin/sh\nDIR='{dir}'\ncase \" $* \" in *' -kernel '*) ;; *) echo 'QEMU emulator \
             version 10.0.0'; exit;; esac\n{body}\n"
        );
        write_program(&qemu, script.as_bytes());
        let kernel = MadeUp::new(End::Hang).write(&test.dir, "kernel").display().to_string();
        // Neither is anybody's but this user's.
        fs::set_permissions(&kernel, fs::Permissions::from_mode(0o600)).unwrap();
        // The least that looks like a static program for amd64.
        let mut program = vec![0; 64];
        program[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        program[18] = 62;
        fs::write(test.dir.join("guest"), program).unwrap();
        let options =
            ["lab", "run", "--arch", "amd64", "--load", "idle", "--seeds", "1", "--kernel"];
        let args = options.into_iter().map(String::from).chain([kernel]).collect();
        Self { test, cache, qemu, args }
    }

    pub(crate) fn command(&self) -> Command {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let mut command = self.test.command(&args);
        command.args(["--qemu", self.qemu.to_str().unwrap()]);
        command.args(["--guest-program", self.test.dir.join("guest").to_str().unwrap()]);
        command.env("WAKESCOPE_CACHE", &self.cache).env("WAKESCOPE_MIRROR", NOWHERE);
        command.env("SECRET", "secret");
        command
    }

    /// The number of the emulator that runs a guest.
    fn emulator(&self, lab: i32) -> Option<i32> {
        let children = fs::read_to_string(format!("/proc/{lab}/task/{lab}/children"));
        let of_lab = children.unwrap_or_default();
        let threads = fs::read_dir(format!("/proc/{lab}/task")).ok()?.flatten();
        let of_threads = threads
            .map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
        let all: Vec<String> = of_threads.chain([of_lab]).collect();
        let mut pids = all.iter().flat_map(|text| text.split_whitespace());
        pids.find_map(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let has_guest = command.split(|&b| b == 0).any(|word| word == b"-kernel");
            // Its parent's, until it is the program.
            let is_it = String::from_utf8_lossy(&command).contains("qemu-system-x86_64");
            (has_guest && is_it).then(|| pid.parse().ok())?
        })
    }
}

/// The lines of /proc/PID/status.
fn status_of(pid: i32) -> BTreeMap<String, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.into(), value.trim().into())).collect()
}

#[test]
fn the_emulator_has_no_rights_of_who_starts_it() {
    let fake = Fake::new("no-rights", "sleep 1000 & wait");
    // Open in the lab without "close on exec", as a redirection of a shell.
    let treasure = fake.test.dir.join("treasure");
    fs::write(&treasure, "treasure").unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", r#"exec "$0" "$@" 9<>treasure"#]);
    shell.arg(&fake.test.program).args(fake.command().get_args());
    shell.envs(fake.command().get_envs().filter_map(|(key, value)| Some((key, value?))));
    let running = Running::start(shell.current_dir(&fake.test.dir));
    let pid = eventually_some("an emulator runs", || fake.emulator(running.pid()));
    let status = status_of(pid);
    for key in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status[key], "0000000000000000", "{key}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
    if effective_user() == 0 {
        for key in ["Uid", "Gid"] {
            let all: Vec<&str> = status[key].split_whitespace().collect();
            assert!(all.iter().all(|&id| id != "0" && id == all[0]), "{key}: {}", status[key]);
        }
        assert_eq!(status["Groups"], "");
    }
    let open = || {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let mut open: BTreeMap<i32, String> = files
            .filter_map(|entry| {
                let path = fs::read_link(entry.path()).ok()?;
                let name = path.file_name().unwrap_or_default().to_str()?.to_owned();
                // Of a socket, its number.
                let name = name.split('[').next()?.to_owned();
                Some((entry.file_name().to_str()?.parse().ok()?, name))
            })
            .collect();
        // The shell that runs the script has that open, somewhere above.
        open.retain(|_, name| name != "qemu-system-x86_64");
        open
    };
    let copy = "memfd:wakescope (deleted)";
    let want = [
        "null",
        "emulator.log",
        "emulator.log",
        copy,
        copy,
        "console.log",
        "results.parcel",
        // Its order; the state that it may save, twice; and its monitor.
        copy,
        copy,
        copy,
        "socket:",
    ];
    // While the shell is being loaded, it has libraries open.
    let is_all = || Some(open()).filter(|open| open.values().eq(want));
    let open = eventually_or_told(|| format!("these are open: {want:?}, not {:?}", open()), is_all);
    assert_eq!(open.into_keys().collect::<Vec<_>>(), (0..=10).collect::<Vec<_>>());
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap_or_default().len(), 0);
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    kill("KILL", &[pid]);
    let ended = running.output();
    assert!(ended.stdout.contains("the emulator was ended: SIGKILL"), "{ended:?}");
    assert_eq!(fs::read_to_string(treasure).unwrap(), "treasure");
    eventually("nothing is left", || fake.test.processes().is_empty());
}

#[test]
fn an_emulator_reads_its_images_and_writes_its_outputs_only() {
    let body = "\
        head -c 4 /proc/self/fd/4 >&5
        cmp -s /proc/self/fd/3 \"$DIR/copy\" && echo same kernel >&5
        echo x >/proc/self/fd/3 && echo changed its kernel >&5
        echo x >\"$DIR/open\" && echo opened a file >&5
        echo x >\"$DIR/new\" && echo made a file >&5
        rm \"$DIR/open\" && echo removed a file >&5
        cat \"$DIR/kernel\" >/dev/null && echo read the file of a user >&5
        exit 1";
    let name = "an_emulator_reads_its_images_and_writes_its_outputs_only";
    let fake = Fake::new("only-outputs", body);
    fs::copy(fake.test.dir.join("kernel"), fake.test.dir.join("copy")).unwrap();
    for (file, mode) in [("copy", 0o644), ("open", 0o666)] {
        let path = fake.test.dir.join(file);
        fs::write(&path, fs::read(&path).unwrap_or_default()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = names(&fake.test.dir);
    let ended = Running::start(&mut fake.command()).output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    // It complains about what it may not do, in the last line that it said.
    let mut want = vec!["0707same kernel"];
    if landlock::version().is_err() {
        skip(name, "there is no Landlock");
        want.push("opened a file");
    }
    if effective_user() != 0 {
        want.push("read the file of a user");
    }
    // Below the table, the end of the console is quoted.
    let quoted = |line| str::trim_start_matches(line, [' ', '│']);
    let shown: Vec<&str> = ended.stdout.lines().map(quoted).collect();
    for line in &want {
        assert!(shown.contains(line), "{line:?} is not in {ended:?}");
    }
    for line in [
        "changed its kernel",
        "opened a file",
        "made a file",
        "removed a file",
        "read the file of a user",
    ] {
        assert_eq!(shown.contains(&line), want.contains(&line), "{line}: {}", ended.stdout);
    }
    let after: Vec<String> = names(&fake.test.dir).into_iter().filter(|n| n != "cache").collect();
    assert_eq!(after, before);
}

#[test]
fn an_emulator_that_only_root_can_reach_is_refused_as_root() {
    let name = "an_emulator_that_only_root_can_reach_is_refused_as_root";
    if effective_user() != 0 {
        return skip(name, "whoever is not root runs it with its own rights");
    }
    let fake = Fake::new("unreachable", "touch \"$DIR/ran\"");
    let close = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let folder = fake.qemu.parent().unwrap();
    for (path, mode) in [(folder, 0o700), (fake.qemu.as_path(), 0o700)] {
        close(path, mode);
        let ended = Running::start(&mut fake.command()).output();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        let text =
            format!("it must not run as root, and other users cannot reach it: {}", path.display());
        assert!(ended.stderr.contains(&text), "{}", ended.stderr);
        assert!(ended.stderr.contains('→'), "no next step: {}", ended.stderr);
        close(path, 0o755);
    }
    assert!(!fake.test.dir.join("ran").exists());
}
