use std::time::{Duration, UNIX_EPOCH};

use super::*;
use wakescope_testing::Folder;

fn put(path: &Path, content: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The names in an archive, with type and mode, and where a name is that of the entry before.
fn entries(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut last = String::new();
    let heads = text.split("070701").skip(1).map(|entry| {
        let name = entry[104..].split('\0').next().unwrap();
        let again = if entry[..8] == last { " again" } else { "" };
        last = entry[..8].to_owned();
        format!("{} {name}{again}", &entry[11..16])
    });
    heads.collect()
}

#[test]
fn names_are_those_of_packages() {
    for (text, want) in [
        ("gcc", Some("gcc")),
        ("libc6-dev,gcc,gcc", Some("gcc,libc6-dev")),
        ("g++,0ad", Some("0ad,g++")),
        ("", None),
        ("gcc,", None),
        ("g", None),
        ("Gcc", None),
        ("../gcc", None),
        ("-y", None),
        ("gcc libc6", None),
        ("gcc=1", None),
    ] {
        assert_eq!(text.parse::<Names>().ok().map(|n| n.to_string()).as_deref(), want, "{text}");
    }
    assert!("ab,".repeat(80).parse::<Names>().is_err());
    let many: Vec<_> = (10..50).map(|n| format!("a{n}")).collect();
    assert!(many.join(",").parse::<Names>().is_err());
}

#[test]
fn only_what_programs_need_is_taken() {
    for (path, want) in [
        ("usr/bin/gcc", true),
        ("usr/share/dbench/client.txt", true),
        ("usr/share/doc/gcc/copyright", false),
        ("usr/share/man/man1/gcc.1.gz", false),
        ("lib64/ld-linux-x86-64.so.2", true),
        ("etc/services", true),
        ("init", false),
        ("dev/console", false),
        ("var/lib/x", false),
        ("boot/vmlinuz", false),
        ("modules/x.ko", false),
    ] {
        assert_eq!(is_needed(Path::new(path)), want, "{path}");
    }
}

#[test]
fn the_same_files_give_the_same_bytes_in_whatever_order_they_were_made() {
    let make = |order: &[usize]| {
        let folder = Folder::new("root");
        let tree = folder.path();
        let files = [
            ("usr/bin/gcc-14", "compiler", 0o755),
            ("usr/lib/libc.so.6", "library", 0o600),
            ("lib64/ld.so", "loader", 0o700),
            ("etc/services", "", 0o644),
        ];
        for &at in order {
            let (name, content, mode) = files[at];
            put(&tree.join(name), content, mode);
        }
        fs::hard_link(tree.join("usr/bin/gcc-14"), tree.join("usr/bin/gcc")).unwrap();
        pack(tree).unwrap().unwrap()
    };
    let image = make(&[0, 1, 2, 3]);
    assert_eq!(make(&[3, 2, 1, 0]), image);
    expect_test::expect![[r#"
        041ED etc
        041ED usr
        041ED usr/bin
        041ED usr/lib
        041ED usr/lib64
        0A1FF bin
        0A1FF lib
        0A1FF lib64
        081A4 etc/services
        081ED usr/bin/gcc
        081ED usr/bin/gcc-14 again
        081A4 usr/lib/libc.so.6
        081ED usr/lib64/ld.so
        00000 TRAILER!!!
    "#]]
    .assert_eq(&(entries(&image).join("\n") + "\n"));
    let content = String::from_utf8_lossy(&image);
    assert_eq!(content.matches("compiler").count(), 1);
}

#[test]
fn an_image_is_found_by_the_names_of_its_packages() {
    let folder = Folder::new("images");
    let cache = Cache::at(folder.path());
    let names: Names = "gcc,libc6-dev".parse().unwrap();
    let found = |cache: &Cache| find(cache, Arch::Amd64, &names, &mut Memo::open(cache));
    assert_eq!(found(&cache), None);
    let place = place(&cache, Arch::Amd64, &names);
    cache.write(&place.join(FILE), b"070701").unwrap();
    assert_eq!(found(&cache), None);
    let card = |schema: &str| Card { schema: schema.into(), packages: Vec::new() };
    let write = |card| cache.write(&place.join(CARD), &serde_json::to_vec(&card).unwrap());
    write(card(SCHEMA)).unwrap();
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000);
    fs::File::open(&place).unwrap().set_modified(long_ago).unwrap();
    let image = found(&cache).unwrap();
    assert!(fs::metadata(&place).unwrap().modified().unwrap() > long_ago, "it is used");
    assert_eq!((image.bytes, image.sha256), (6, crate::sum::of_bytes(b"070701")));
    write(card("wakescope.image/0")).unwrap();
    assert_eq!(found(&cache), None);
}
