//! Lines of GPIO chips, by version 2 of the kernel's interface (include/uapi/linux/gpio.h, from Linux 5.10 on).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use wakescope_core::units::MonoNs;

use crate::{checked, ioctl};

/// The letter of all requests.
const TYPE: u8 = 0xb4;
const CHIP_INFO: libc::c_ulong = ioctl(2, TYPE, 1, size_of::<ChipInfo>());
const LINE_INFO: libc::c_ulong = ioctl(3, TYPE, 5, size_of::<LineInfo>());
const GET_LINE: libc::c_ulong = ioctl(3, TYPE, 7, size_of::<LineRequest>());
const GET_VALUES: libc::c_ulong = ioctl(3, TYPE, 14, size_of::<LineValues>());
const SET_VALUES: libc::c_ulong = ioctl(3, TYPE, 15, size_of::<LineValues>());

const USED: u64 = 1;
const INPUT: u64 = 1 << 2;
const OUTPUT: u64 = 1 << 3;
const BOTH_EDGES: u64 = 1 << 4 | 1 << 5;
/// The attribute of a request that has the first values of outputs.
const OUTPUT_VALUES: u32 = 2;
const RISING: u32 = 1;

/// Who has a line is called so by tools such as `gpioinfo`.
const CONSUMER: &[u8] = b"wakescope";

/// `struct gpiochip_info`.
#[repr(C)]
#[derive(Default)]
struct ChipInfo {
    name: [u8; 32],
    label: [u8; 32],
    lines: u32,
}

/// `struct gpio_v2_line_attribute`, with its union as the largest part.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LineAttribute {
    id: u32,
    padding: u32,
    value: u64,
}

/// `struct gpio_v2_line_info`.
#[repr(C)]
#[derive(Default)]
struct LineInfo {
    name: [u8; 32],
    consumer: [u8; 32],
    offset: u32,
    num_attrs: u32,
    flags: u64,
    attrs: [LineAttribute; 10],
    padding: [u32; 4],
}

/// `struct gpio_v2_line_config_attribute`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ConfigAttribute {
    attr: LineAttribute,
    mask: u64,
}

/// `struct gpio_v2_line_request` with `struct gpio_v2_line_config` in it.
#[repr(C)]
struct LineRequest {
    offsets: [u32; 64],
    consumer: [u8; 32],
    flags: u64,
    num_attrs: u32,
    config_padding: [u32; 5],
    attrs: [ConfigAttribute; 10],
    num_lines: u32,
    event_buffer_size: u32,
    padding: [u32; 5],
    fd: i32,
}

/// `struct gpio_v2_line_values`.
#[repr(C)]
struct LineValues {
    bits: u64,
    mask: u64,
}

/// `struct gpio_v2_line_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LineEvent {
    timestamp_ns: u64,
    id: u32,
    offset: u32,
    seqno: u32,
    line_seqno: u32,
    padding: [u32; 6],
}

const _: () = assert!(size_of::<ChipInfo>() == 68);
const _: () = assert!(size_of::<LineInfo>() == 256);
const _: () = assert!(size_of::<LineRequest>() == 592);
const _: () = assert!(size_of::<LineEvent>() == 48);

/// An open chip.
#[derive(Debug)]
pub struct Chip(File);

impl Chip {
    /// Opens the device of a chip. Fails with `ENOTTY` on any other device.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let chip = options.read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        let chip = Self(chip);
        chip.line_count().map(|_| chip)
    }

    /// How many lines it has. They are numbered from 0.
    pub fn line_count(&self) -> io::Result<u32> {
        let mut info = ChipInfo::default();
        // SAFETY: the request writes a structure of this size, and `info` is live.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), CHIP_INFO as _, &raw mut info) })?;
        Ok(info.lines)
    }

    /// What has a line, by the name that it gave itself; `None` if nothing has.
    pub fn user_of(&self, line: u32) -> io::Result<Option<String>> {
        let mut info = LineInfo { offset: line, ..LineInfo::default() };
        // SAFETY: the request reads and writes a structure of this size, and `info` is live.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), LINE_INFO as _, &raw mut info) })?;
        let name = info.consumer.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok((info.flags & USED != 0).then(|| String::from_utf8_lossy(name).into_owned()))
    }

    /// Takes a line to send on, at this level.
    pub fn output(&self, line: u32, is_high: bool) -> io::Result<Output> {
        let attr = LineAttribute { id: OUTPUT_VALUES, padding: 0, value: is_high.into() };
        self.take(line, OUTPUT, Some(ConfigAttribute { attr, mask: 1 })).map(Output)
    }

    /// Takes a line to receive on.
    pub fn input(&self, line: u32) -> io::Result<Input> {
        self.take(line, INPUT | BOTH_EDGES, None).map(Input)
    }

    fn take(&self, line: u32, flags: u64, attr: Option<ConfigAttribute>) -> io::Result<File> {
        let mut request = LineRequest {
            offsets: [0; 64],
            consumer: [0; 32],
            flags,
            num_attrs: attr.is_some().into(),
            config_padding: [0; 5],
            attrs: [ConfigAttribute::default(); 10],
            num_lines: 1,
            event_buffer_size: 0,
            padding: [0; 5],
            fd: -1,
        };
        request.offsets[0] = line;
        request.consumer[..CONSUMER.len()].copy_from_slice(CONSUMER);
        request.attrs[0] = attr.unwrap_or_default();
        // SAFETY: the request reads and writes a structure of this size, and `request` is live.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), GET_LINE as _, &raw mut request) })?;
        if request.fd < 0 {
            return Err(io::Error::other("the kernel gave no file for the line"));
        }
        // SAFETY: the call gave a descriptor that nobody else has.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(request.fd) }))
    }
}

/// A line that this process sends on. It is given back when this is dropped.
#[derive(Debug)]
pub struct Output(File);

impl Output {
    /// Sets its level.
    #[inline]
    pub fn set(&self, is_high: bool) -> io::Result<()> {
        let values = LineValues { bits: is_high.into(), mask: 1 };
        // SAFETY: the request reads and writes a structure of this size, and `values` is live.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), SET_VALUES as _, &raw const values) })
            .map(drop)
    }
}

/// A line that this process receives on. It is given back when this is dropped.
#[derive(Debug)]
pub struct Input(File);

/// A change of a line's level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// When the kernel's interrupt handler saw it, or its thread where the chip has no interrupt of its own.
    pub at: MonoNs,
    /// Whether the level is high since.
    pub is_high: bool,
}

/// How many edges one read returns at most: so many the kernel keeps for a line.
pub const EDGES: usize = 16;

impl Input {
    /// Whether its level is high now.
    pub fn is_high(&self) -> io::Result<bool> {
        let mut values = LineValues { bits: 0, mask: 1 };
        // SAFETY: the request reads and writes a structure of this size, and `values` is live.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), GET_VALUES as _, &raw mut values) })?;
        Ok(values.bits & 1 != 0)
    }

    /// Waits for edges that were not read yet, the oldest first, and returns how many. Returns early, with
    /// `Interrupted`, when a signal handler ran.
    #[inline]
    pub fn read(&self, into: &mut [Edge; EDGES]) -> io::Result<usize> {
        let mut raw = [LineEvent::default(); EDGES];
        // SAFETY: `raw` is live, writable for as many bytes, and any bytes are a value of it.
        let rc =
            unsafe { libc::read(self.0.as_raw_fd(), raw.as_mut_ptr().cast(), size_of_val(&raw)) };
        let Ok(bytes) = usize::try_from(rc) else { return Err(io::Error::last_os_error()) };
        let count = bytes / size_of::<LineEvent>();
        for (edge, event) in into.iter_mut().zip(&raw[..count]) {
            *edge = Edge { at: MonoNs(event.timestamp_ns), is_high: event.id == RISING };
        }
        Ok(count)
    }

    /// The file to wait for.
    pub fn file(&self) -> &File {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_numbered_as_in_the_kernels_header() {
        // As `printf` shows the macros of linux/gpio.h on x86-64.
        assert_eq!(
            [CHIP_INFO, LINE_INFO, GET_LINE, GET_VALUES, SET_VALUES],
            [0x8044_b401, 0xc100_b405, 0xc250_b407, 0xc010_b40e, 0xc010_b40f]
        );
    }

    #[test]
    fn what_is_no_chip_is_refused() {
        let error = Chip::open(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
