use wakescope_testing::Folder;

use super::*;

/// A folder with empty files at these places.
fn folder_with(test: &str, files: &[&str]) -> Folder {
    let dir = Folder::new(test);
    for file in files {
        dir.write(file, "");
    }
    dir
}

const RELEASE: &str = "6.1.0-test";
const BUILD_ID: &str = "0011223344";

/// The files of modules that are `wanted` near the image at `vmlinux` in `dir`, in the order in which
/// they are tried.
fn found(dir: &Folder, vmlinux: &str, release: &str, wanted: &[&str]) -> Vec<String> {
    let new = |name: &&str| Wanted::new((*name).into(), BUILD_ID.into());
    let wanted: Vec<Wanted> = wanted.iter().map(new).collect();
    let places = Place::all(release, Some(&dir.join(vmlinux)));
    let of_module = |place: &Place| place.files(&wanted).into_values().flatten().collect();
    let all: Vec<PathBuf> =
        places.iter().flat_map(|place| -> Vec<PathBuf> { of_module(place) }).collect();
    let inside = all.iter().filter_map(|path| path.strip_prefix(dir).ok());
    inside.map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn packages_have_their_ways() {
    for (package, vmlinux, file) in [
        (
            "boot",
            "usr/lib/debug/boot/vmlinux-6.1.0-test",
            "usr/lib/debug/lib/modules/6.1.0-test/kernel/fs/ext4/ext4.ko",
        ),
        (
            "usr",
            "usr/lib/debug/boot/vmlinux-6.1.0-test",
            "usr/lib/debug/usr/lib/modules/6.1.0-test/kernel/fs/ext4/ext4.ko",
        ),
        (
            "modules",
            "usr/lib/debug/lib/modules/6.1.0-test/vmlinux",
            "usr/lib/debug/lib/modules/6.1.0-test/kernel/fs/ext4/ext4.ko.debug",
        ),
        ("builds", "usr/lib/debug/boot/vmlinux", "usr/lib/debug/.build-id/00/11223344.debug"),
        ("installed", "boot/vmlinux-6.1.0-test", "lib/modules/6.1.0-test/updates/ext4.ko"),
        ("copied", "vmlinux", "ext4.ko.debug"),
        ("release", "copied/6.1.0-test/vmlinux", "copied/6.1.0-test/kernel/fs/ext4.ko"),
    ] {
        let dir = folder_with(package, &[vmlinux, file]);
        assert_eq!(found(&dir, vmlinux, RELEASE, &["ext4"]), [file], "{package}");
        assert!(found(&dir, vmlinux, RELEASE, &["jbd2"]).len() <= 1, "{package}");
        assert!(found(&dir, vmlinux, RELEASE, &[]).is_empty(), "{package}");
    }
}

#[test]
fn links_to_an_image_lead_to_its_package() {
    let file = "usr/lib/debug/lib/modules/6.1.0-test/kernel/ext4.ko";
    let dir = folder_with("links", &["usr/lib/debug/boot/vmlinux-6.1.0-test", file]);
    let target = dir.join("usr/lib/debug/boot/vmlinux-6.1.0-test");
    std::os::unix::fs::symlink(target, dir.join("vmlinux")).unwrap();
    assert_eq!(found(&dir, "vmlinux", RELEASE, &["ext4"]), [file]);
}

#[test]
fn builds_list_their_modules() {
    let files = ["vmlinux", "fs/ext4/ext4.ko", "drivers/nvme-core.ko", "fs/jbd2.ko", "out.ko"];
    for (way, list) in [
        ("kernel", "kernel/fs/ext4/ext4.ko\nkernel/drivers/nvme-core.ko\nkernel/fs/jbd2.ko\n"),
        ("files", "fs/ext4/ext4.ko\ndrivers/nvme-core.ko\n"),
        ("objects", "fs/ext4/ext4.o\ndrivers/nvme-core.o\nfs/jbd2.o"),
        ("damaged", "\n/fs/jbd2.ko\n../out.ko\nfs/ext4/ext4.ko\n\u{1}\ndrivers/nvme-core.ko"),
    ] {
        let dir = folder_with(way, &files);
        fs::write(dir.join("modules.order"), list).unwrap();
        let found = found(&dir, "vmlinux", RELEASE, &["ext4", "nvme_core", "out_of_tree"]);
        assert_eq!(found, ["fs/ext4/ext4.ko", "drivers/nvme-core.ko"], "{way}");
    }
    // Without a list nobody searches what may be anything.
    let dir = folder_with("unlisted", &files);
    assert_eq!(found(&dir, "vmlinux", RELEASE, &["ext4"]), [""; 0]);
}

#[test]
fn names_lead_nowhere_else() {
    let file = "usr/lib/debug/lib/modules/6.1.0-test/ext4.ko";
    let dir = folder_with("names", &["usr/lib/debug/boot/vmlinux", file]);
    let found = |release: &str| found(&dir, "usr/lib/debug/boot/vmlinux", release, &["ext4"]);
    assert_eq!(found(RELEASE), [file]);
    for release in ["", ".", "..", "../modules/6.1.0-test", "/", "6.1.0-test/..", "6.1.0\0test"] {
        assert_eq!(found(release), [""; 0], "{release}");
    }
    for id in ["", "0", "00", "../..", "00/1", "0é1"] {
        assert_eq!(by_build(Path::new("/x"), id), None, "{id}");
    }
    assert_eq!(by_build(Path::new("/x"), "00a"), Some("/x/00/a.debug".into()));
}

#[test]
fn of_many_files_of_one_name_few_are_tried() {
    let files: Vec<String> = (0..20).map(|n| format!("6.1.0-test/{n:02}/ext4.ko")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).chain(["6.1.0-test/vmlinux"]).collect();
    let dir = folder_with("many", &files);
    let found = found(&dir, "6.1.0-test/vmlinux", RELEASE, &["ext4"]);
    assert_eq!(found.len(), MOST_FILES);
}

#[test]
fn trees_without_end_are_left() {
    let dir = folder_with("loop", &["6.1.0-test/vmlinux"]);
    let tree = dir.join("6.1.0-test");
    std::os::unix::fs::symlink(&tree, tree.join("again")).unwrap();
    let deep = tree.join("x/".repeat(DEEPEST + 1));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("ext4.ko"), "").unwrap();
    assert_eq!(found(&dir, "6.1.0-test/vmlinux", RELEASE, &["ext4"]), [""; 0]);
}
