#![allow(clippy::print_stderr)]
use std::fs;
use std::io::Write;

use super::info::tests::module;
use super::*;
use crate::archive::tool;
use wakescope_testing::Folder;

/// A folder of modules: paths below it, and what each needs.
fn tree(modules: &[(&str, &str)]) -> Folder {
    let folder = Folder::new("modules");
    for (path, needs) in modules {
        folder.write(path, module(&format!("license=GPL\0depends={needs}\0")));
    }
    folder
}

fn names(folder: &Folder, wanted: &[&str]) -> Result<String, ModulesError> {
    let wanted: Vec<String> = wanted.iter().map(|&name| name.into()).collect();
    let modules = resolve(folder.path(), &wanted)?;
    Ok(modules.into_iter().map(|m| m.name).collect::<Vec<_>>().join(" "))
}

#[track_caller]
fn check(folder: &Folder, wanted: &[&str], want: &str) {
    assert_eq!(names(folder, wanted).unwrap(), want, "{wanted:?}");
}

#[track_caller]
fn refuse(folder: &Folder, wanted: &[&str], want: &str, remedy: &str) {
    let e = names(folder, wanted).unwrap_err();
    assert!(e.to_string().contains(want), "{e}");
    assert!(e.remedy().contains(remedy), "{}", e.remedy());
}

#[test]
fn what_is_needed_comes_first_and_once() {
    let folder = tree(&[
        ("kernel/a.ko", ""),
        ("kernel/deep/er/b-x.ko", "a"),
        ("kernel/c.ko", "b_x,a"),
        ("kernel/d.ko", "b-x,c"),
    ]);
    check(&folder, &[], "");
    check(&folder, &["a"], "a");
    check(&folder, &["d"], "a b_x c d");
    check(&folder, &["c", "a", "b-x", "d"], "a b_x c d");
    check(&folder, &["b_x", "a"], "a b_x");
    let modules = resolve(folder.path(), &["b-x".into()]).unwrap();
    assert_eq!(modules[1].file_name(), "b_x.ko");
    assert_eq!(modules[1].bytes, module("license=GPL\0depends=a\0"));
}

#[test]
fn what_is_built_in_is_not_loaded() {
    let folder = tree(&[("kernel/a.ko", "crc-t10dif")]);
    refuse(&folder, &["a"], "no module `crc_t10dif`", "modules_install");
    folder.write("modules.builtin", b"kernel/lib/crc-t10dif.ko\nkernel/drivers/block/loop.ko\n");
    check(&folder, &["a", "loop"], "a");
}

#[test]
fn what_cannot_be_loaded_is_said_with_what_to_do() {
    let folder = tree(&[
        ("kernel/a.ko", "b"),
        ("kernel/b.ko", "c"),
        ("kernel/c.ko", "b"),
        ("kernel/self.ko", "self"),
        ("kernel/lost.ko", "gone"),
    ]);
    folder.write("kernel/text.ko", b"#!/bin/sh\n");
    refuse(&folder, &["a"], "circular dependency of modules: b → c → b", "reinstall");
    refuse(&folder, &["self"], "circular dependency of modules: self → self", "reinstall");
    refuse(&folder, &["lost"], "no module `gone`", "modules_install");
    refuse(&folder, &["lost"], "which `lost` needs", "");
    refuse(
        &folder,
        &["text"],
        "text.ko is not a module: it is not a complete 64-bit ELF file",
        "reinstall",
    );
    for name in ["nobody", "", "../a", "kernel/a", "a.ko"] {
        refuse(&folder, &[name], &format!("no module `{name}` in "), "lsmod shows");
    }
    let e = resolve(&folder.path().join("none"), &[]).unwrap_err();
    assert!(matches!(e, ModulesError::Read(..)), "{e}");
}

#[test]
fn no_folder_is_without_end() {
    let folder = tree(&[("kernel/a.ko", "")]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("kernel/build")).unwrap();
    check(&folder, &["a"], "a");
    folder.write(format!("kernel/{}a.ko", "x/".repeat(25)), b"");
    refuse(&folder, &["a"], "it has no end", "");

    let many: Vec<String> = (0..=MODULES_MOST).map(|i| format!("m{i}")).collect();
    let folder = Folder::new("modules");
    for (i, name) in many.iter().enumerate() {
        let info = format!("depends=m{}\0", i + 1);
        let info = if i == MODULES_MOST { "" } else { &info };
        folder.write(format!("kernel/{name}.ko"), module(info));
    }
    refuse(&folder, &["m0"], "exceed the limit of 256", "fewer");
    assert_eq!(names(&folder, &["m1"]).unwrap().split(' ').count(), MODULES_MOST);
}

#[test]
fn a_module_outside_the_kernels_own_takes_its_place() {
    let folder = tree(&[
        ("kernel/x/a.ko", "kernel_x"),
        ("updates/a.ko", ""),
        ("kernel/x/b.ko", ""),
        ("kernel/y/b.ko", "kernel_y"),
    ]);
    check(&folder, &["a", "b"], "a b");
}

#[test]
fn modules_are_unpacked() {
    let bytes = module("depends=\0");
    let folder = Folder::new("modules");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&bytes).unwrap();
    let packed = packer.finish().unwrap();
    folder.write("kernel/gz.ko.gz", &packed);
    folder.write("kernel/short.ko.gz", &packed[..packed.len() / 2]);
    assert_eq!(resolve(folder.path(), &["gz".into()]).unwrap()[0].bytes, bytes);
    refuse(&folder, &["short"], "cannot decompress", "reinstall");
    for (program, suffix) in [("xz", "xz"), ("zstd", "zst")] {
        let path = folder.path().join(format!("kernel/{program}.ko"));
        fs::write(&path, &bytes).unwrap();
        let Some(tool) = tool::find(program) else {
            wakescope_testing::skip("modules_are_unpacked", &format!("{program} is not installed"));
            continue;
        };
        let packed = std::process::Command::new(tool).arg("-q").arg(&path).status().unwrap();
        assert!(packed.success());
        let _ = fs::remove_file(&path);
        assert_eq!(resolve(folder.path(), &[program.into()]).unwrap()[0].bytes, bytes);
        folder.write(format!("kernel/no-{program}.ko.{suffix}"), b"what is this");
        refuse(&folder, &[&format!("no_{program}")], "cannot decompress", "reinstall");
    }
}

#[test]
fn what_unpacks_without_end_is_cut() {
    let folder = Folder::new("modules");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), 65 << 20), &mut packer).unwrap();
    folder.write("kernel/zeros.ko.gz", packer.finish().unwrap());
    refuse(&folder, &["zeros"], "it is too large", "reinstall");
}

#[test]
fn a_program_that_is_missing_is_named() {
    for (tool, package) in [("xz", "apt install xz-utils"), ("zstd", "apt install zstd")] {
        let e = ModulesError::NoTool("/m/a.ko.xz".into(), tool);
        assert!(e.to_string().ends_with(&format!("`{tool}` is not installed")), "{e}");
        assert!(e.remedy().ends_with(package), "{}", e.remedy());
    }
}
