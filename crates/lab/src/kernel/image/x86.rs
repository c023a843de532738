//! bzImage, as the kernel's "Linux/x86 boot protocol" describes it.

use super::{Image, ImageError, at, divide, number};
use crate::kernel::Arch;

const SETUP_SECTS: usize = 0x1f1;
const SYSSIZE: usize = 0x1f4;
const BOOT_FLAG: usize = 0x1fe;
const MAGIC: usize = 0x202;
const PROTOCOL: usize = 0x206;
const KERNEL_VERSION: usize = 0x20e;
const LOADFLAGS: usize = 0x211;
const XLOADFLAGS: usize = 0x236;

/// The real-mode code is counted in sectors, the rest in paragraphs.
const SECTOR: u64 = 512;
const PARAGRAPH: u64 = 16;

/// The first version of the protocol that says whether the kernel is one of 64 bits (Linux 3.8).
const SAYS_64_BIT: u64 = 0x20c;

pub(super) fn fits(bytes: &[u8]) -> bool {
    at(bytes, BOOT_FLAG, &[0x55, 0xaa]) && at(bytes, MAGIC, b"HdrS")
}

pub(super) fn image(bytes: &[u8]) -> Result<Image, ImageError> {
    let has = bytes.len() as u64;
    let field = |value: Option<u64>| value.ok_or(ImageError::Truncated { has, needs: 1024 });
    // By custom, 0 stands for 4.
    let sectors = match field(number::<1>(bytes, SETUP_SECTS))? {
        0 => 4,
        n => n,
    };
    let setup = (sectors + 1) * SECTOR;
    let needs = setup + field(number::<4>(bytes, SYSSIZE))? * PARAGRAPH;
    if field(number::<1>(bytes, LOADFLAGS))? & 1 == 0 {
        return Err(ImageError::TooOld("a bzImage, not a zImage"));
    }
    if field(number::<2>(bytes, PROTOCOL))? < SAYS_64_BIT {
        return Err(ImageError::TooOld("Linux 3.8"));
    }
    if field(number::<2>(bytes, XLOADFLAGS))? & 1 == 0 {
        return Err(ImageError::Foreign("a 32-bit x86 kernel"));
    }
    if has < needs {
        return Err(ImageError::Truncated { has, needs });
    }
    let banner = match field(number::<2>(bytes, KERNEL_VERSION))? {
        0 => None,
        offset => usize::try_from(offset + SECTOR).ok().filter(|&at| (at as u64) < setup),
    };
    let banner = banner.and_then(|at| bytes.get(at..)).ok_or(ImageError::NoRelease)?;
    let (release, version) = divide(banner).ok_or(ImageError::NoRelease)?;
    Ok(Image { arch: Arch::Amd64, release, version })
}
