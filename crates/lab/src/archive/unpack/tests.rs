use std::os::unix::fs::MetadataExt;

use super::*;
use crate::testing::tar as archive;
use wakescope_testing::Folder;

/// What is below a folder, with modes; a link or device would be shown by its kind.
fn below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(folder).unwrap().display();
            found.push(format!("{name} {:o}", meta.mode()));
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

type Entries<'a> = &'a [(u8, &'a str, &'a str, u32, &'a [u8])];

fn unpack_within(folder: &Path, packages: &[Entries], limits: Limits) -> Result<(), UnpackError> {
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    let mut unpacker = Unpacker::new(&tree, |path| !path.starts_with("doc"), limits).unwrap();
    for entries in packages {
        unpacker.add(&archive(entries)[..])?;
    }
    unpacker.finish()
}

/// What there is in the tree and beside it, after packages were taken apart; or why they were not.
fn unpack(packages: &[Entries]) -> Result<Vec<String>, String> {
    let folder = Folder::new("unpack");
    fs::write(folder.path().join("treasure"), "treasure").unwrap();
    let done = unpack_within(folder.path(), packages, LIMITS);
    let found = below(folder.path());
    let outside = found.iter().filter(|path| !path.starts_with("tree"));
    assert_eq!(outside.collect::<Vec<_>>(), ["treasure 100644"]);
    assert_eq!(fs::read_to_string(folder.path().join("treasure")).unwrap(), "treasure");
    let in_tree = |path: String| path.strip_prefix("tree/").map(String::from);
    done.map(|()| found.into_iter().filter_map(in_tree).collect()).map_err(|e| e.to_string())
}

#[test]
fn files_are_made_without_rights_of_others() {
    let got = unpack(&[&[
        (b'5', "./", "", 0o777, b""),
        (b'5', "./bin/", "", 0o2777, b""),
        (b'0', "./bin/program", "", 0o6777, b"program"),
        (b'0', "./bin/secret", "", 0o600, b"text"),
        (b'1', "./bin/again", "./bin/program", 0o4755, b""),
        (b'0', "./doc/manual", "", 0o644, b"unwanted"),
        (b'5', "./empty/", "", 0o755, b""),
        (b'3', "./bin/null", "", 0o666, b""),
        (b'4', "./bin/disk", "", 0o666, b""),
        (b'6', "./bin/fifo", "", 0o666, b""),
    ]]);
    let want = ["bin 40755", "bin/again 100755", "bin/program 100755", "bin/secret 100644"];
    assert_eq!(got.unwrap(), want);
}

#[test]
fn a_link_becomes_the_file_that_it_leads_to_within_the_packages() {
    let library: Entries = &[
        (b'2', "./usr/lib64/ld.so", "/lib/x/ld.so.2", 0o777, b""),
        (b'2', "./usr/lib/x/libc.so", "libc.so.6", 0o777, b""),
        (b'2', "./usr/lib/x/libc.so.6", "libc-2.so", 0o777, b""),
        (b'0', "./usr/lib/x/libc-2.so", "", 0o644, b"libc"),
        (b'0', "./usr/lib/x/ld.so.2", "", 0o755, b"loader"),
        // Firmware that another package brings.
        (b'2', "./usr/share/qemu/bios.bin", "../seabios/bios.bin", 0o777, b""),
        (b'2', "./usr/share/folder", "seabios", 0o777, b""),
        (b'2', "./usr/share/dangling", "nowhere", 0o777, b""),
        (b'2', "./usr/share/circle", "circle", 0o777, b""),
        (b'2', "./usr/share/outside", "../../../../treasure", 0o777, b""),
        (b'2', "./usr/share/passwd", "/etc/passwd", 0o777, b""),
    ];
    let merged: Entries = &[
        (b'2', "./lib", "usr/lib", 0o777, b""),
        (b'0', "./usr/share/seabios/bios.bin", "", 0o644, b"bios"),
    ];
    let want = [
        "usr 40755",
        "usr/lib 40755",
        "usr/lib/x 40755",
        "usr/lib/x/ld.so.2 100755",
        "usr/lib/x/libc-2.so 100644",
        "usr/lib/x/libc.so 100644",
        "usr/lib/x/libc.so.6 100644",
        "usr/lib64 40755",
        "usr/lib64/ld.so 100755",
        "usr/share 40755",
        "usr/share/qemu 40755",
        "usr/share/qemu/bios.bin 100644",
        "usr/share/seabios 40755",
        "usr/share/seabios/bios.bin 100644",
    ];
    assert_eq!(unpack(&[library, merged]).unwrap(), want);
    assert_eq!(unpack(&[merged, library]).unwrap(), want);
}

#[test]
fn what_leads_out_of_a_package_is_refused() {
    let absolute = std::env::temp_dir().join("treasure").display().to_string();
    let cases: [(Entries, &str); 9] = [
        (&[(b'0', "../treasure", "", 0o644, b"x")], "leads out of the package"),
        (&[(b'0', "./a/../../treasure", "", 0o644, b"x")], "leads out of the package"),
        (&[(b'0', &absolute, "", 0o644, b"x")], "leads out of the package"),
        (
            &[(b'2', "lib", "/etc", 0o777, b""), (b'0', "lib/passwd", "", 0o644, b"x")],
            "lies below a symbolic link",
        ),
        (
            &[(b'2', "lib", "../..", 0o777, b""), (b'0', "lib/a/treasure", "", 0o644, b"x")],
            "lies below a symbolic link",
        ),
        (
            &[
                (b'2', "a", "..", 0o777, b""),
                (b'2', "b", "a/..", 0o777, b""),
                (b'0', "b/treasure", "", 0o644, b"x"),
            ],
            "lies below a symbolic link",
        ),
        (&[(b'1', "file", "../treasure", 0o644, b"")], "is a link to what is not there"),
        (&[(b'1', "file", "/etc/passwd", 0o644, b"")], "is a link to what is not there"),
        (
            &[(b'2', "link", "../treasure", 0o644, b""), (b'1', "file", "link", 0o644, b"")],
            "is a link to what is not there",
        ),
    ];
    for (entries, why) in cases {
        let got = unpack(&[entries]).unwrap_err();
        assert!(got.contains(why), "{entries:?}: {got}");
    }
    let deep = "d/".repeat(50) + "file";
    assert!(unpack(&[&[(b'0', &deep, "", 0o644, b"x")]]).unwrap_err().contains("too deep"));
}

#[test]
fn a_file_takes_the_place_of_an_earlier_one_and_of_no_folder() {
    let file: Entries = &[(b'0', "a/file", "", 0o644, b"first")];
    let again: Entries = &[(b'0', "a/file", "", 0o755, b"second")];
    assert_eq!(unpack(&[file, again]).unwrap(), ["a 40755", "a/file 100755"]);
    // A link in the place of a folder that is there leaves it, and so does one of a file.
    for later in ["a", "a/file"] {
        let link: Entries = &[(b'2', later, "/etc", 0o777, b"")];
        assert_eq!(unpack(&[file, link]).unwrap(), ["a 40755", "a/file 100644"]);
    }
    for wrong in [&[(b'0', "a", "", 0o644, &b"x"[..])][..], &[(b'0', "a/file/b", "", 0o644, b"x")]]
    {
        assert!(unpack(&[file, wrong]).unwrap_err().starts_with("cannot write "));
    }
}

#[test]
fn a_second_name_counts_as_the_file_that_is_copied() {
    let copy = |name| (b'1', name, "a", 0o644, &b""[..]);
    let entries: Entries = &[(b'0', "a", "", 0o644, b"12345"), copy("b"), copy("c")];
    for (bytes, fits) in [(15, true), (14, false)] {
        let folder = Folder::new("copies");
        let got = unpack_within(folder.path(), &[entries], Limits { entries: 3, bytes });
        let want = if fits { None } else { Some("it holds more than 4294967296 bytes".into()) };
        assert_eq!(got.err().map(|e| e.to_string()), want);
        assert_eq!(folder.join("tree/c").exists(), fits);
    }
}

#[test]
fn packages_are_bounded_all_together() {
    let entries: Entries =
        &[(b'0', "a", "", 0o644, b"12345"), (b'0', "doc/b", "", 0o644, b"12345")];
    for (limits, what) in [
        (Limits { entries: 4, bytes: 20 }, None),
        (Limits { entries: 3, bytes: 20 }, Some("files")),
        (Limits { entries: 4, bytes: 19 }, Some("bytes")),
    ] {
        let folder = Folder::new("bounded");
        let got = unpack_within(folder.path(), &[entries, entries], limits);
        assert_eq!(got.err().map(|e| e.to_string().contains(what.unwrap())), what.map(|_| true));
    }
}
