//! What a file is, by its bytes: a kernel image, of which architecture, and which release.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use wakescope_sys::input::open_input;

use super::Arch;

mod arm64;
mod x86;

/// The largest image that is read, as it is and unpacked.
const LARGEST: u64 = 512 << 20;

/// The longest version banner.
const LONGEST_BANNER: usize = 512;

/// What an image says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What it runs on.
    pub arch: Arch,
    /// `uname -r`: `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// `uname -v`: `#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-01)`.
    pub version: String,
}

/// Why a file cannot be booted.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no regular file: a folder, a device.
    #[error("it is not a file")]
    NoFile,
    /// It is larger than any kernel.
    #[error("it is larger than {} MiB", LARGEST >> 20)]
    TooLarge,
    /// It ends too early.
    #[error("it is truncated: it has {has} bytes, but needs at least {needs}")]
    Truncated {
        /// Its length, bytes.
        has: u64,
        /// The length that it says it has, bytes.
        needs: u64,
    },
    /// It is packed, and ends in the middle or is damaged.
    #[error("it cannot be unpacked, and may be truncated: {0}")]
    Packed(io::Error),
    /// It is the unpacked kernel with symbols, which no boot loader takes.
    #[error("it is an ELF file, as vmlinux is, not a boot image")]
    Elf,
    /// It is a kernel that unpacks itself by EFI.
    #[error("it is an EFI zboot image, which compresses the kernel again")]
    Zboot,
    /// It is a kernel, but of an architecture that the lab does not emulate.
    #[error("it is {0}")]
    Foreign(&'static str),
    /// It is too old to be booted: the lab needs what the field names.
    #[error("it is too old: the lab needs {0}")]
    TooOld(&'static str),
    /// It is a kernel that does not say which.
    #[error("it has no kernel version")]
    NoRelease,
    /// It is something else.
    #[error("it is not a kernel image")]
    NoKernel,
}

/// Looks at the file at `path`.
pub fn identify(path: &Path) -> Result<Image, ImageError> {
    // A pipe would be waited for when it is opened, a device might have no end.
    let meta = fs::metadata(path)?;
    if !meta.is_file() {
        return Err(ImageError::NoFile);
    }
    if meta.len() > LARGEST {
        return Err(ImageError::TooLarge);
    }
    let mut bytes = Vec::new();
    open_input(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    recognize(&bytes)
}

/// Looks at the bytes of a file.
pub(crate) fn recognize(bytes: &[u8]) -> Result<Image, ImageError> {
    match bytes {
        [0x1f, 0x8b, ..] => {
            let unpacked = unpack(bytes)?;
            match unpacked.as_slice() {
                [0x1f, 0x8b, ..] => Err(ImageError::NoKernel),
                // QEMU unpacks Image, but a bzImage unpacks itself.
                other if x86::fits(other) => Err(ImageError::NoKernel),
                other => recognize(other),
            }
        }
        [0x7f, b'E', b'L', b'F', ..] => Err(ImageError::Elf),
        _ if x86::fits(bytes) => x86::image(bytes),
        _ if arm64::fits(bytes) => arm64::image(bytes),
        _ if at(bytes, 0, b"MZ") && at(bytes, 4, b"zimg") => Err(ImageError::Zboot),
        _ if at(bytes, 56, b"RSC\x05") => Err(ImageError::Foreign("a kernel for riscv")),
        _ => Err(ImageError::NoKernel),
    }
}

fn unpack(bytes: &[u8]) -> Result<Vec<u8>, ImageError> {
    let mut unpacked = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(bytes).take(LARGEST + 1);
    // What cannot be a kernel is not unpacked to its end.
    reader.by_ref().take(4096).read_to_end(&mut unpacked).map_err(ImageError::Packed)?;
    if !arm64::fits(&unpacked) {
        return Ok(unpacked);
    }
    reader.read_to_end(&mut unpacked).map_err(ImageError::Packed)?;
    if unpacked.len() as u64 > LARGEST { Err(ImageError::TooLarge) } else { Ok(unpacked) }
}

/// Whether `what` stands in `bytes` at `offset`.
fn at(bytes: &[u8], offset: usize, what: &[u8]) -> bool {
    bytes.get(offset..).is_some_and(|rest| rest.starts_with(what))
}

/// The little-endian number of `N` bytes at `offset`; `None` behind the end.
fn number<const N: usize>(bytes: &[u8], offset: usize) -> Option<u64> {
    let field = bytes.get(offset..offset.checked_add(N)?)?;
    Some(field.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

/// Divides `6.1.0-56-cloud-amd64 (builder@host) … #1 SMP …` into release and version.
fn divide(banner: &[u8]) -> Option<(String, String)> {
    let end = banner.iter().position(|&b| b == 0 || b == b'\n').unwrap_or(banner.len());
    let text = std::str::from_utf8(&banner[..end.min(LONGEST_BANNER)]).ok()?;
    let (release, rest) = text.split_once(' ')?;
    let version = rest.rfind(" #").map_or("", |at| &rest[at + 1..]);
    let plausible = release.starts_with(|c: char| c.is_ascii_digit())
        && release.bytes().all(|b| b.is_ascii_graphic() && b != b'/')
        && version.chars().all(|c| !c.is_control());
    plausible.then(|| (release.to_owned(), version.trim().to_owned()))
}

#[cfg(test)]
mod tests;
