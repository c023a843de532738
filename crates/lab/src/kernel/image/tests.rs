use std::fs::File;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use wakescope_testing::{Folder, fuzz};

use super::*;

fn bzimage() -> Vec<u8> {
    crate::testing::bzimage("6.1.0-56-cloud-amd64")
}

/// An Image with a PE header of two sections, of which the last ends at 4096.
fn arm64_image() -> Vec<u8> {
    let mut image = vec![0; 4096];
    image[..2].copy_from_slice(b"MZ");
    image[56..60].copy_from_slice(b"ARM\x64");
    image[0x3c] = 64;
    image[64..68].copy_from_slice(b"PE\0\0");
    image[64 + 6] = 2;
    image[64 + 20] = 160;
    for (i, (size, from)) in [(1024_u32, 1024_u32), (2048, 2048)].into_iter().enumerate() {
        let entry = 64 + 24 + 160 + i * 40;
        image[entry + 16..entry + 20].copy_from_slice(&size.to_le_bytes());
        image[entry + 20..entry + 24].copy_from_slice(&from.to_le_bytes());
    }
    let text = b"Linux version %s (%s)\n\0Linux version 7.2.12+deb13-cloud-arm64 (debian) (gcc, \
                 GNU ld) #1 SMP PREEMPT Debian 7.2.12-1\n\0";
    image[1500..1500 + text.len()].copy_from_slice(text);
    image
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn changed(mut image: Vec<u8>, offset: usize, byte: u8) -> Vec<u8> {
    image[offset] = byte;
    image
}

#[test]
fn images_tell_their_release() {
    let image = recognize(&bzimage()).unwrap();
    assert_eq!(image.arch, Arch::Amd64);
    assert_eq!(image.release, "6.1.0-56-cloud-amd64");
    assert_eq!(image.version, "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-01)");
    for bytes in [arm64_image(), gzip(&arm64_image())] {
        let image = recognize(&bytes).unwrap();
        assert_eq!(image.arch, Arch::Arm64);
        assert_eq!(image.release, "7.2.12+deb13-cloud-arm64");
        assert_eq!(image.version, "#1 SMP PREEMPT Debian 7.2.12-1");
    }
    // Signatures follow behind the end.
    assert!(recognize(&[bzimage(), vec![0; 1000]].concat()).is_ok());
}

#[track_caller]
fn check(bytes: &[u8], want: &str) {
    let got = recognize(bytes).unwrap_err().to_string();
    assert!(got.contains(want), "{got:?} is not {want:?}");
}

#[test]
fn what_cannot_be_booted_is_told() {
    let long = bzimage().len();
    check(&bzimage()[..long - 1], "truncated: it has 2623 bytes, but needs at least 2624");
    check(&bzimage()[..1000], "truncated");
    check(&bzimage()[..0x210], "truncated");
    check(&bzimage()[..0x100], "not a kernel image");
    check(&arm64_image()[..4095], "truncated: it has 4095 bytes, but needs at least 4096");
    check(&gzip(&arm64_image())[..60], "cannot be unpacked, and may be truncated");
    check(&gzip(b"text"), "not a kernel image");
    check(&gzip(&bzimage()), "not a kernel image");
    check(&gzip(&gzip(&arm64_image())), "not a kernel image");
    check(&changed(bzimage(), 0x236, 0), "a 32-bit x86 kernel");
    check(&changed(bzimage(), 0x211, 0), "not a zImage");
    check(&changed(bzimage(), 0x206, 0x0b), "Linux 3.8");
    check(&changed(bzimage(), 0x20f, 0), "has no kernel version");
    check(&changed(bzimage(), 0x20f, 0xff), "has no kernel version");
    check(&changed(bzimage(), 0x500, b'x'), "has no kernel version");
    check(&changed(arm64_image(), 1500 + 37, b'x'), "has no kernel version");
    check(b"\x7fELF\x02\x01\x01", "ELF");
    check(b"MZ\0\0zimg", "zboot");
    check(&changed(changed(arm64_image(), 56, b'R'), 57, b'S'), "not a kernel image");
    check(&[vec![0; 56], b"RSC\x05".to_vec()].concat(), "riscv");
    check(b"", "not a kernel image");
    check(b"#!/bin/sh\n", "not a kernel image");
}

#[test]
fn only_files_of_a_sane_size_are_read() {
    let folder = Folder::new("image");
    let path = folder.path().join("image");
    std::fs::write(&path, bzimage()).unwrap();
    assert!(identify(&path).is_ok());
    for (path, want) in [
        (Path::new("/dev/zero"), "not a file"),
        (folder.path(), "not a file"),
        (Path::new("/does/not/exist"), "No such file"),
    ] {
        let got = identify(path).unwrap_err().to_string();
        assert!(got.contains(want), "{got}");
    }
    // It takes no room, and no time, for it is not read.
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(identify(&path), Err(ImageError::TooLarge)));
}

#[test]
fn fuzz_images() {
    fuzz("kernel", &[bzimage(), arm64_image(), gzip(&arm64_image())], |bytes| {
        let _ = recognize(bytes);
    });
}
