use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use wakescope_testing::{Folder, write_program};

/// A program that says it is QEMU.
fn fake(folder: &Folder, name: &str, version: &str) -> PathBuf {
    let path = folder.path().join(name);
    let script = format!(
        "#!/bin/sh\ncase $1 in -L) echo {};; *) echo 'QEMU emulator version {version}';; esac\n",
        folder.path().display()
    );
    write_program(&path, script.as_bytes());
    path
}

fn find(folder: &Folder, path: &Path) -> Result<Qemu, QemuError> {
    let cache = Cache::at(folder.path().join("cache"));
    Qemu::find(Arch::Amd64, Some(path), &cache, &mut Memo::open(&cache))
}

#[test]
fn an_emulator_that_is_named_is_asked_what_it_is() {
    let folder = Folder::new("qemu");
    let program = fake(&folder, "qemu-system-x86_64", "9.2.1 (x)");
    fs::write(folder.path().join("pvh.bin"), "firmware").unwrap();
    let qemu = find(&folder, &program).unwrap();
    assert_eq!(qemu.version, Version(9, 2, 1));
    assert_eq!(qemu.banner, "QEMU 9.2.1 (x)");
    assert_eq!(qemu.command, [program.clone().into_os_string()]);
    assert_eq!(qemu.data, [folder.path()]);
    assert_eq!(find(&folder, folder.path()).unwrap(), qemu, "its folder was named");

    fs::write(folder.path().join("pvh.bin"), "other firmware").unwrap();
    assert_ne!(find(&folder, &program).unwrap().sha256, qemu.sha256);
    fake(&folder, "qemu-system-x86_64", "9.2.2");
    assert_eq!(find(&folder, &program).unwrap().version, Version(9, 2, 2), "an old answer");
}

#[test]
fn trouble_of_a_moment_is_no_answer() {
    for asked in ["-L", "-sandbox"] {
        let folder = Folder::new("qemu-trouble");
        let data = folder.path().display();
        let (trouble, program) = (folder.join("trouble"), folder.join("qemu-system-x86_64"));
        let script = format!(
            "#!/bin/sh\nif [ $1 = {asked} ] && [ -e {} ]; then kill -KILL $$; fi\n\
             case $1 in -L) echo {data};; *) echo 'QEMU emulator version 9.2.1';; esac\n",
            trouble.display()
        );
        write_program(&program, script.as_bytes());
        folder.write("trouble", "");
        let refused = find(&folder, &program).unwrap_err().to_string();
        assert!(refused.ends_with("cannot be used: SIGKILL"), "{refused}");
        fs::remove_file(trouble).unwrap();
        let qemu = find(&folder, &program).unwrap();
        assert_eq!((&*qemu.data, qemu.has_sandbox), (&[folder.path().to_owned()][..], true));
    }
    // What it refuses, it refuses each time.
    let folder = Folder::new("qemu-refuses");
    let program = folder.join("qemu-system-x86_64");
    let script =
        "#!/bin/sh\ncase $1 in --version) echo 'QEMU emulator version 9.2.1';; *) exit 1; esac\n";
    write_program(&program, script.as_bytes());
    let qemu = find(&folder, &program).unwrap();
    assert_eq!((qemu.data.len(), qemu.has_sandbox), (0, false));
}

#[test]
fn an_emulator_that_was_replaced_is_noticed() {
    let folder = Folder::new("qemu-replaced");
    let firmware = folder.path().join("pvh.bin");
    let make = |version: &str, text: &str| {
        fs::write(&firmware, text).unwrap();
        fake(&folder, "qemu-system-x86_64", version)
    };
    let program = make("9.2.1", "firmware");
    let qemu = find(&folder, &program).unwrap();
    let changed = || {
        let memo = &mut Memo::open(&Cache::at(folder.path().join("cache")));
        qemu.expect_unchanged(memo).map_err(|e| e.to_string())
    };
    let want = Err(format!("{} changed since the lab began", program.display()));
    for (version, firmware, want) in [
        ("9.2.1", "firmware", &Ok(())),
        ("9.2.2", "firmware", &want),
        ("9.2.1", "another", &want),
        ("9.2.1", "firmware", &Ok(())),
    ] {
        make(version, firmware);
        assert_eq!(&changed(), want, "{version} {firmware}");
    }
}

#[test]
fn emulators_of_no_use_are_refused() {
    let folder = Folder::new("bad-qemu");
    let old = fake(&folder, "old", "7.2.22 (Debian 1:7.2+dfsg-7)");
    let silent = fake(&folder, "silent", "unknown");
    let arm = fake(&folder, "qemu-system-aarch64", "10.0.0");
    let text = folder.path().join("text");
    fs::write(&text, "text").unwrap();
    for (path, want) in [
        (old.as_path(), "is QEMU 7.2.22, the lab needs 8.0.0"),
        (&silent, "it does not identify itself as QEMU"),
        (&arm, "does not emulate amd64"),
        (&text, "it is not a program"),
        (Path::new("/does/not/exist"), "it is not there"),
        (Path::new("/bin/false"), "exit status 1"),
    ] {
        let got = find(&folder, path).unwrap_err().to_string();
        assert!(got.contains(want), "{got:?} is not {want:?}");
    }
}

#[test]
fn a_private_emulator_is_started_by_its_own_loader() {
    let folder = Folder::new("private-qemu");
    let path = |name: &str| folder.path().join(name);
    for dir in ["usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/share/qemu"] {
        fs::create_dir_all(path(dir)).unwrap();
    }
    assert!(Start::private(folder.path(), Arch::Amd64).is_err());
    fs::write(path("usr/lib/x86_64-linux-gnu/libc.so.6"), "").unwrap();
    fs::write(path("usr/lib64/ld-linux-x86-64.so.2"), "").unwrap();
    let start = Start::private(folder.path(), Arch::Arm64).unwrap();
    let root = format!("{}/", folder.path().display());
    let words: Vec<String> = start
        .command()
        .into_iter()
        .map(|word| word.into_string().unwrap().replace(&root, ""))
        .collect();
    assert_eq!(
        words,
        [
            "usr/lib64/ld-linux-x86-64.so.2",
            "--library-path",
            "usr/lib/x86_64-linux-gnu",
            "usr/bin/qemu-system-aarch64",
            "-L",
            "usr/share/qemu",
        ]
    );
}

#[test]
fn as_root_only_an_emulator_that_others_can_reach_is_started() {
    let folder = Folder::new("reachable-qemu");
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let program = inner.join("qemu-system-x86_64");
    fs::write(&program, "").unwrap();
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (folder_mode, program_mode, closed) in [
        (0o755, 0o755, None),
        (0o711, 0o755, None),
        (0o700, 0o755, Some(&inner)),
        (0o750, 0o755, Some(&inner)),
        (0o755, 0o700, Some(&program)),
        (0o755, 0o711, Some(&program)),
    ] {
        set(&inner, folder_mode);
        set(&program, program_mode);
        let got = closed_to_others(&program, folder.path());
        assert_eq!(got.as_ref(), closed, "{folder_mode:o} {program_mode:o}");
        let start = Start::of_machine(program.clone());
        assert!(start.expect_reachable(false).is_ok());
        assert!(closed.is_none() || start.expect_reachable(true).is_err());
    }
    // What the lab has set up is started in its folder, wherever that lies.
    set(&inner, 0o755);
    set(&program, 0o755);
    set(folder.path(), 0o700);
    assert!(Start::of_machine(program.clone()).expect_reachable(true).is_err());
    let own = Start { root: Some(inner.clone()), ..Start::of_machine(program) };
    assert!(own.expect_reachable(true).is_ok());
    assert_eq!(
        (own.folder(), own.relative_command()),
        (&*inner, vec!["qemu-system-x86_64".into()])
    );
}
