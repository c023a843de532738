//! Scripts that fetch and build, with programs that stand for those that need a network.

use std::fs;
use std::process::{Command, Output};

use crate::common::root;
use wakescope_testing::{Folder, copy_program, skip, write_program};

/// A source of a kernel in an archive in a package, as apt-get and dpkg-deb give it; `SIZE` bytes of the
/// archive are there.
const PACKAGE: &str = "
mkdir -p package/usr/src linux-source-6.1 && cd package || exit
head -c 200000 /dev/urandom >../linux-source-6.1/file
tar -C .. -cJ linux-source-6.1 | head -c SIZE >usr/src/linux-source-6.1.tar.xz
tar -cf ../package.tar ./usr
";

const FIND: &str = "set -euo pipefail; . scripts/messages.sh; . scripts/linux-source.sh
source=$(find_source); echo \"found ${source##*/}\"";

/// The output of `FIND`, and whether a source is kept.
fn find_source(folder: &Folder, size: u64) -> (Output, bool) {
    let run = |script: &str| {
        let path = format!("{}/bin:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).current_dir(&**folder).env("PATH", path);
        bash.env_remove("LINUX_SOURCE").output().unwrap()
    };
    let packed = run(&PACKAGE.replace("SIZE", &size.to_string()));
    assert!(packed.status.success(), "{packed:?}");
    (run(FIND), folder.join("target/linux-source/linux-source-6.1").exists())
}

#[test]
fn a_source_that_was_cut_is_not_kept() {
    let test = "a_source_that_was_cut_is_not_kept";
    if Command::new("xz").arg("--version").output().is_err() {
        return skip(test, "there is no xz");
    }
    let folder = Folder::new(test);
    for sub in ["scripts", "bin"] {
        fs::create_dir_all(folder.join(sub)).unwrap();
    }
    for script in ["scripts/messages.sh", "scripts/linux-source.sh"] {
        copy_program(&root().join(script), &folder.join(script));
    }
    for (program, text) in [
        ("apt-cache", "#!/bin/sh\necho linux-source-6.1 - Linux\n"),
        ("apt-get", "#!/bin/sh\n: >linux-source-6.1_1_all.deb\n"),
        ("dpkg-deb", "#!/bin/sh\ncat package.tar\n"),
    ] {
        write_program(&folder.join("bin").join(program), text.as_bytes());
    }
    let (Output { status, stdout, .. }, kept) = find_source(&folder, 100_000);
    assert!(!status.success() && !kept, "{}", String::from_utf8_lossy(&stdout));
    // The whole of it, and then what is there.
    for _ in 0..2 {
        let (Output { status, stdout, stderr }, kept) = find_source(&folder, 1_000_000);
        assert!(status.success() && kept, "{}", String::from_utf8_lossy(&stderr));
        assert_eq!(String::from_utf8_lossy(&stdout), "found linux-source-6.1\n");
    }
}
