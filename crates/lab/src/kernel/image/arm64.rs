//! Image, as the kernel's "Booting AArch64 Linux" describes it, and the PE header that makes it a
//! program for EFI.

use super::{Image, ImageError, at, divide, number};
use crate::kernel::Arch;

const MAGIC: usize = 56;

/// What every kernel holds somewhere, before its release.
const BANNER: &[u8] = b"Linux version ";

/// The most sections that a PE header is believed to have.
const MOST_SECTIONS: u64 = 96;

pub(super) fn fits(bytes: &[u8]) -> bool {
    at(bytes, MAGIC, b"ARM\x64")
}

pub(super) fn image(bytes: &[u8]) -> Result<Image, ImageError> {
    let has = bytes.len() as u64;
    // The header of Image itself states a size in memory only, with what is zero at first.
    if let Some(needs) = end_of_sections(bytes).filter(|&needs| needs > has) {
        return Err(ImageError::Truncated { has, needs });
    }
    let (release, version) = banner(bytes).ok_or(ImageError::NoRelease)?;
    Ok(Image { arch: Arch::Arm64, release, version })
}

/// Where the last section ends in the file, if it says so: only with CONFIG_EFI.
fn end_of_sections(bytes: &[u8]) -> Option<u64> {
    let pe = usize::try_from(number::<4>(bytes, 0x3c)?).ok()?;
    if !at(bytes, pe, b"PE\0\0") {
        return None;
    }
    let sections = number::<2>(bytes, pe + 6)?.min(MOST_SECTIONS);
    let optional = usize::try_from(number::<2>(bytes, pe + 20)?).ok()?;
    let table = pe + 24 + optional;
    let end = |i: u64| {
        let entry = table + usize::try_from(i).ok()? * 40;
        Some(number::<4>(bytes, entry + 16)? + number::<4>(bytes, entry + 20)?)
    };
    (0..sections).filter_map(end).max()
}

/// Finds the first banner that names a release: the pattern it is printed by comes without one.
fn banner(bytes: &[u8]) -> Option<(String, String)> {
    let mut rest = bytes;
    loop {
        let at = find(rest, BANNER)?;
        rest = &rest[at + BANNER.len()..];
        if let Some(found) = divide(rest) {
            return Some(found);
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    // Looking for the first byte alone is much faster than comparing at each place.
    let mut from = 0;
    loop {
        from += bytes.get(from..)?.iter().position(|b| Some(b) == what.first())?;
        if bytes[from..].starts_with(what) {
            return Some(from);
        }
        from += 1;
    }
}
