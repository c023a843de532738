//! `make install` and `make uninstall`, from a copy of what they need, with programs that are none.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::root;
use wakescope_testing::{Folder, copy_program, skip, write_program};

/// A checkout in a folder with blanks and a quotation mark in its name, and what it builds.
struct Checkout {
    dir: Folder,
}

const BLANKS: &str = "check out, it's";

impl Checkout {
    /// `None` where there is no make.
    fn new(test: &str) -> Option<Self> {
        if Command::new("make").arg("--version").output().is_err() {
            skip(test, "there is no make");
            return None;
        }
        let this = Self { dir: Folder::new(test) };
        let to = this.folder();
        fs::create_dir_all(to.join("scripts")).unwrap();
        for file in ["Makefile", "scripts/install", "scripts/messages.sh"] {
            copy_program(&root().join(file), &to.join(file));
        }
        for folder in ["docs/reference/man", "docs/reference/completions"] {
            fs::create_dir_all(to.join(folder)).unwrap();
            for entry in fs::read_dir(root().join(folder)).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), to.join(folder).join(entry.file_name())).unwrap();
            }
        }
        // What would build tells that it was called.
        for script in ["cargo", "setup"] {
            this.program(
                &format!("scripts/{script}"),
                "#!/bin/sh\ntouch \"$(dirname \"$0\")/../built\"\n",
            );
        }
        Some(this)
    }

    fn folder(&self) -> PathBuf {
        self.dir.join(BLANKS)
    }

    fn program(&self, path: &str, text: &str) {
        write_program(&self.folder().join(path), text.as_bytes());
    }

    /// Makes the two programs that `make build` would.
    fn build(&self, version: &str) {
        self.program("target dir/release/wakescope", version);
        self.program("target dir/release/wakescope-guest", &format!("guest {version}"));
    }

    fn make(&self, arguments: &[&str]) -> Output {
        let mut make = Command::new("make");
        make.arg("-C").arg(self.folder()).args(arguments).env("CARGO_TARGET_DIR", "target dir");
        // Of a make that runs this test.
        for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR", "PREFIX", "BINARY"] {
            make.env_remove(name);
        }
        make.output().unwrap()
    }

    #[track_caller]
    fn made(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.make(arguments);
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let stdout = String::from_utf8_lossy(&stdout);
        assert!(status.success(), "{arguments:?}: {stdout}{stderr}");
        stderr
    }

    /// `DESTDIR=…`, in this checkout's scratch folder.
    fn destination(&self) -> (PathBuf, String) {
        let to = self.dir.join("stage of it's own");
        let argument = format!("DESTDIR={}", to.display());
        (to, argument)
    }
}

/// Everything below a folder: files with their content and mode, folders, links with their targets.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let path = entry.path();
            let about = fs::symlink_metadata(&path).unwrap();
            let what = if about.is_dir() {
                open.push(path.clone());
                "folder".to_owned()
            } else if about.is_symlink() {
                format!("link to {}", fs::read_link(&path).unwrap().display())
            } else {
                let text = fs::read(&path).unwrap();
                format!("{:o} {}", about.mode() & 0o7777, String::from_utf8_lossy(&text))
            };
            found.insert(path.strip_prefix(folder).unwrap().display().to_string(), what);
        }
    }
    found
}

#[test]
fn what_is_installed_is_removed_and_nothing_else() {
    let Some(checkout) = Checkout::new("what_is_installed_is_removed_and_nothing_else") else {
        return;
    };
    checkout.build("version 1");
    let (to, destdir) = checkout.destination();
    let source = tree(&checkout.folder());
    for prefix in ["/usr/local", "/opt/a prefix"] {
        let prefix_argument = format!("PREFIX={prefix}");
        let arguments = |target| [target, destdir.as_str(), prefix_argument.as_str()];
        // Into nothing, which is then there no more.
        checkout.made(&arguments("install"));
        let installed = tree(&to);
        let at = |path: &str| installed.get(&format!("{}/{path}", prefix.trim_start_matches('/')));
        assert_eq!(at("bin/wakescope").unwrap(), "755 version 1");
        assert_eq!(at("lib/wakescope/wakescope-guest").unwrap(), "755 guest version 1");
        assert!(at("share/man/man1/wakescope-report.1").unwrap().starts_with("644 "));
        for file in ["bash-completion/completions/wakescope", "zsh/site-functions/_wakescope"] {
            assert!(at(&format!("share/{file}")).unwrap().starts_with("644 "), "{installed:?}");
        }
        checkout.made(&arguments("uninstall"));
        assert_eq!(tree(&to), BTreeMap::new(), "{prefix}");
        assert!(!to.exists());
        // Beside what others have: files, and folders that are empty.
        let others = to.join(prefix.trim_start_matches('/'));
        for folder in ["bin", "share/man/man1", "share/empty", "etc"] {
            fs::create_dir_all(others.join(folder)).unwrap();
        }
        fs::write(others.join("share/man/man1/other.1"), "other").unwrap();
        symlink("other.1", others.join("share/man/man1/wakescope-other.1")).unwrap();
        let before = tree(&to);
        checkout.made(&arguments("install"));
        checkout.made(&arguments("install"));
        checkout.made(&arguments("uninstall"));
        assert_eq!(tree(&to), before, "{prefix}");
        // Twice is once.
        let text = checkout.made(&arguments("uninstall"));
        assert!(text.contains("nothing is installed under"), "{text}");
        assert_eq!(tree(&to), before, "{prefix}");
        fs::remove_dir_all(&to).unwrap();
    }
    assert_eq!(tree(&checkout.folder()), source, "the checkout stays as it is");
}

#[test]
fn what_others_put_there_stays() {
    let Some(checkout) = Checkout::new("what_others_put_there_stays") else { return };
    checkout.build("version 1");
    let (to, destdir) = checkout.destination();
    checkout.made(&["install", &destdir]);
    let usr = to.join("usr/local");
    fs::write(usr.join("bin/wakescope"), "another program").unwrap();
    fs::write(usr.join("lib/wakescope/plugin"), "plugin").unwrap();
    let text = checkout.made(&["uninstall", &destdir]);
    assert!(text.contains("bin/wakescope is not what was installed, and stays"), "{text}");
    let left = tree(&to);
    let files: Vec<&str> = left.keys().map(String::as_str).collect();
    let want = ["usr", "usr/local", "usr/local/bin", "usr/local/bin/wakescope", "usr/local/lib"];
    let want =
        want.into_iter().chain(["usr/local/lib/wakescope", "usr/local/lib/wakescope/plugin"]);
    assert_eq!(files, want.collect::<Vec<_>>());
}

#[test]
fn a_new_version_takes_the_place_of_the_old_one() {
    let Some(checkout) = Checkout::new("a_new_version_takes_the_place_of_the_old_one") else {
        return;
    };
    let (to, destdir) = checkout.destination();
    let page = "docs/reference/man/wakescope-old.1";
    checkout.build("version 1");
    fs::write(checkout.folder().join(page), "an old page").unwrap();
    checkout.made(&["install", &destdir]);
    assert!(to.join("usr/local/share/man/man1/wakescope-old.1").exists());
    checkout.build("version 2");
    fs::remove_file(checkout.folder().join(page)).unwrap();
    checkout.made(&["install", &destdir]);
    assert_eq!(fs::read_to_string(to.join("usr/local/bin/wakescope")).unwrap(), "version 2");
    assert!(!to.join("usr/local/share/man/man1/wakescope-old.1").exists());
    checkout.made(&["uninstall", &destdir]);
    assert!(!to.exists(), "{:?}", tree(&to));
}

/// A list that leads elsewhere ends both, before anything is changed.
#[test]
fn a_list_that_leads_out_of_the_root_is_refused() {
    let Some(checkout) = Checkout::new("a_list_that_leads_out_of_the_root_is_refused") else {
        return;
    };
    checkout.build("version 1");
    let (to, destdir) = checkout.destination();
    checkout.made(&["install", &destdir]);
    let list = to.join("usr/local/lib/wakescope/installed");
    let complete = fs::read_to_string(&list).unwrap();
    for path in ["../../etc/x", "/etc/x", "share/../../x", "share/..", " ../x"] {
        fs::write(&list, format!("{complete}file abc {path}\n")).unwrap();
        let before = tree(&to);
        for target in ["uninstall", "install"] {
            let Output { status, stderr, .. } = checkout.make(&[target, &destdir]);
            let stderr = String::from_utf8_lossy(&stderr);
            assert!(!status.success(), "{target}: {path}");
            assert!(stderr.contains("names files outside of"), "{target}: {stderr}");
            assert_eq!(tree(&to), before, "{target}: {path}");
        }
    }
    fs::write(&list, complete).unwrap();
    checkout.made(&["uninstall", &destdir]);
    assert!(!to.exists(), "{:?}", tree(&to));
}

#[test]
fn nothing_is_built_by_installing() {
    let Some(checkout) = Checkout::new("nothing_is_built_by_installing") else { return };
    let (to, destdir) = checkout.destination();
    let before = tree(&checkout.dir);
    let refused = |arguments: &[&str], text: &str| {
        let Output { status, stderr, .. } = checkout.make(arguments);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && stderr.contains(text), "{stderr}");
        assert!(stderr.contains("→ build it as the user"), "{stderr}");
    };
    refused(&["install", &destdir], "there is no target dir/release/wakescope, and");
    assert_eq!(tree(&checkout.dir), before);
    // Only one of the two.
    checkout.program("target dir/release/wakescope", "version 1");
    refused(&["install", &destdir], "there is no target dir/release/wakescope-guest, and");
    assert!(!to.exists());
    // Programs from elsewhere.
    checkout.program("else where/it", "version 1");
    checkout.program("else where/it-guest", "version 1");
    checkout.made(&["install", &destdir, "BINARY=else where/it"]);
    checkout.made(&["uninstall", &destdir]);
    assert!(!to.exists());
    assert!(!checkout.folder().join("built").exists(), "something was built");
    // What builds does: the test would see it.
    let _ = checkout.make(&["build"]);
    assert!(checkout.folder().join("built").exists());
}

#[test]
fn help_lists_both() {
    let Some(checkout) = Checkout::new("help_lists_both") else { return };
    let Output { stdout, .. } = checkout.make(&["help", "PREFIX=/it's here"]);
    let help = String::from_utf8_lossy(&stdout);
    for line in
        ["make install ", "make uninstall ", "PREFIX=/it's here", "target dir/release/wakescope\n"]
    {
        assert!(help.contains(line), "{line}: {help}");
    }
}
