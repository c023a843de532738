//! Playback devices of sound cards, by the kernel's own interface (`sound/asound.h`).
//!
//! The ALSA library is not needed: it would convert and mix, which a measurement must not.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use wakescope_core::units::{MonoNs, SpanNs};

use crate::clock::NS_PER_S;
use crate::poll::{self, Ready};
use crate::{checked, ioctl};

mod configuration;

pub use configuration::{Configuration, Field, Format, PLAIN_FORMATS};

/// A stream that stopped because its buffer ran empty: `EPIPE`.
pub const OVERRUN: i32 = libc::EPIPE;
/// A stream that stopped because the machine was suspended: `ESTRPIPE`.
pub(crate) const SUSPENDED: i32 = libc::ESTRPIPE;

/// An open playback device, which nobody else can open where its card plays one stream. It is stopped
/// when it is dropped; the kernel stops it when it is closed, however that happens.
#[derive(Debug)]
pub struct Pcm {
    file: File,
}

/// Where a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Its state.
    pub state: State,
    /// Frames that were played since it was prepared, as of the last look that the kernel took.
    pub played: u64,
    /// When the kernel took that look: in the card's interrupt, unless something asked for one since.
    pub at: MonoNs,
}

/// The states of a stream that a program must tell apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It was set up, or is ready to start.
    #[default]
    Stopped,
    /// It plays.
    Running,
    /// Its buffer ran empty, or the machine was suspended.
    Interrupted,
    /// Its card is gone.
    Gone,
}

/// `struct snd_pcm_info`.
#[repr(C)]
struct Info {
    numbers: [u32; 4],
    id: [u8; 64],
    name: [u8; 80],
    subname: [u8; 32],
    classes: [i32; 2],
    subdevices: [u32; 2],
    sync: [u8; 16],
    reserved: [u8; 64],
}

/// `struct snd_pcm_sw_params`.
#[repr(C)]
struct SoftwareParameters {
    tstamp_mode: i32,
    period_step: u32,
    sleep_min: u32,
    avail_min: libc::c_ulong,
    xfer_align: libc::c_ulong,
    start_threshold: libc::c_ulong,
    stop_threshold: libc::c_ulong,
    silence_threshold: libc::c_ulong,
    silence_size: libc::c_ulong,
    boundary: libc::c_ulong,
    proto: u32,
    tstamp_type: u32,
    reserved: [u8; 56],
}

/// `struct snd_xferi`.
#[repr(C)]
struct Transfer {
    result: libc::c_long,
    buffer: *const libc::c_void,
    frames: libc::c_ulong,
}

/// `struct snd_pcm_mmap_status` with times of 64 bits, and its frame in `struct snd_pcm_sync_ptr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SyncPointer {
    flags: u32,
    pad_flags: u32,
    state: i32,
    pad_state: u32,
    hw_ptr: u64,
    seconds: i64,
    nanoseconds: i64,
    suspended_state: i32,
    pad_suspended: u32,
    audio_time: [i64; 2],
    status_rest: u64,
    control: [u64; 8],
}

const LETTER: u8 = b'A';
const INFO: libc::c_ulong = ioctl(2, LETTER, 0x01, size_of::<Info>());
const HW_REFINE: libc::c_ulong = ioctl(3, LETTER, 0x10, size_of::<Configuration>());
const HW_PARAMS: libc::c_ulong = ioctl(3, LETTER, 0x11, size_of::<Configuration>());
const SW_PARAMS: libc::c_ulong = ioctl(3, LETTER, 0x13, size_of::<SoftwareParameters>());
const SYNC_PTR: libc::c_ulong = ioctl(3, LETTER, 0x23, size_of::<SyncPointer>());
const PREPARE: libc::c_ulong = ioctl(0, LETTER, 0x40, 0);
const START: libc::c_ulong = ioctl(0, LETTER, 0x42, 0);
const DROP: libc::c_ulong = ioctl(0, LETTER, 0x43, 0);
const WRITEI: libc::c_ulong = ioctl(1, LETTER, 0x50, size_of::<Transfer>());

const TSTAMP_ENABLE: i32 = 1;
/// Stamps are of `CLOCK_MONOTONIC` where a program says so in version 2.0.12 of the protocol or later.
const PROTOCOL: u32 = 2 << 16 | 12;
const TSTAMP_MONOTONIC: u32 = 1;
const STATE_RUNNING: i32 = 3;
const STATE_XRUN: i32 = 4;
const STATE_SUSPENDED: i32 = 7;
const STATE_DISCONNECTED: i32 = 8;
/// The kernel looks where the card is, instead of telling what it knows.
const SYNC_HWSYNC: u32 = 1;
/// The kernel tells the program's own pointers, instead of taking them from it.
const SYNC_READ: u32 = 2 | 4;

impl Pcm {
    /// Opens the device at `path` for playback. Fails with `ResourceBusy` where another program has it.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Without waiting: neither for another program to close it, nor for room in the buffer.
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        Self::new(options.open(path)?)
    }

    /// Takes over a device that is open for writing. Fails with `ENOTTY` on any other file.
    pub fn new(file: File) -> io::Result<Self> {
        let pcm = Self { file };
        pcm.name().map(|_| pcm)
    }

    /// Its name, as its driver has it.
    pub fn name(&self) -> io::Result<String> {
        // SAFETY: it is made of integers, for which zero is a value.
        let mut info: Info = unsafe { std::mem::zeroed() };
        // SAFETY: the request writes a structure of this size, and `info` is live and writable.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), INFO as _, &raw mut info) })?;
        let length = info.name.iter().position(|&byte| byte == 0).unwrap_or(info.name.len());
        Ok(String::from_utf8_lossy(&info.name[..length]).into_owned())
    }

    /// Narrows `wanted` to what the device can do of it. `InvalidInput` if there is nothing.
    pub fn refine(&self, wanted: &mut Configuration) -> io::Result<()> {
        self.configure(HW_REFINE, wanted)
    }

    /// Sets the device up as `wanted`, and tells in it what came of that.
    pub fn set_up(&self, wanted: &mut Configuration) -> io::Result<()> {
        self.configure(HW_PARAMS, wanted)
    }

    fn configure(&self, request: libc::c_ulong, wanted: &mut Configuration) -> io::Result<()> {
        let wanted: *mut Configuration = wanted;
        // SAFETY: both requests read and write a structure of this size, which is live and writable.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, wanted) }).map(drop)
    }

    /// Has waits end when there is room for `fragment` frames, and the stream stop when all `buffer`
    /// frames are free.
    pub fn set_thresholds(&self, fragment: u64, buffer: u64) -> io::Result<()> {
        let frames = |count: u64| {
            libc::c_ulong::try_from(count).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
        };
        let mut parameters = SoftwareParameters {
            tstamp_mode: TSTAMP_ENABLE,
            period_step: 1,
            sleep_min: 0,
            avail_min: frames(fragment)?,
            xfer_align: 1,
            // It never starts by itself.
            start_threshold: libc::c_ulong::MAX / 2,
            stop_threshold: frames(buffer)?,
            silence_threshold: 0,
            silence_size: 0,
            boundary: 0,
            proto: PROTOCOL,
            tstamp_type: TSTAMP_MONOTONIC,
            reserved: [0; 56],
        };
        // SAFETY: the request reads and writes a structure of this size, which is live and writable.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), SW_PARAMS as _, &raw mut parameters) })
            .map(drop)
    }

    /// Makes the stream ready, with an empty buffer.
    pub fn prepare(&self) -> io::Result<()> {
        self.request(PREPARE)
    }

    /// Starts it. There must be something in its buffer.
    pub fn start(&self) -> io::Result<()> {
        self.request(START)
    }

    /// Stops it at once, and empties its buffer.
    pub fn stop(&self) -> io::Result<()> {
        self.request(DROP)
    }

    fn request(&self, request: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the requests of this kind have no argument.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), request as _) }).map(drop)
    }

    /// Writes `frames` frames of `samples`, or as many as there is room for; how many these were.
    /// Fails with [`OVERRUN`] or [`SUSPENDED`] where the stream has stopped.
    ///
    /// # Panics
    /// Where `samples` has fewer bytes than so many frames of `frame_bytes`.
    #[inline]
    pub fn write(&self, samples: &[u8], frames: u64, frame_bytes: u64) -> io::Result<u64> {
        assert!(
            frames.saturating_mul(frame_bytes) <= samples.len() as u64,
            "frames that are not there"
        );
        let frames = libc::c_ulong::try_from(frames).unwrap_or(libc::c_ulong::MAX);
        let mut transfer = Transfer { result: 0, buffer: samples.as_ptr().cast(), frames };
        // SAFETY: the request reads so many frames from the buffer, which is live and has as many bytes,
        // and writes `result`.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), WRITEI as _, &raw mut transfer) })?;
        Ok(u64::try_from(transfer.result).unwrap_or(0))
    }

    /// Where the stream is: as the kernel knows it, or, if it `asks_card`, as the card has it.
    #[inline]
    pub fn position(&self, asks_card: bool) -> io::Result<Position> {
        let flags = if asks_card { SYNC_READ | SYNC_HWSYNC } else { SYNC_READ };
        let mut got = SyncPointer { flags, ..SyncPointer::default() };
        // SAFETY: the request reads and writes a structure of this size, which is live and writable.
        let rc = unsafe { libc::ioctl(self.file.as_raw_fd(), SYNC_PTR as _, &raw mut got) };
        match checked(rc) {
            // A card cannot be asked once its stream has stopped. The kernel still knows where it stopped.
            Err(e) if asks_card && is_interruption(&e) => return self.position(false),
            other => other.map(drop)?,
        }
        let (seconds, ns) = (got.seconds.unsigned_abs(), got.nanoseconds.unsigned_abs());
        Ok(Position {
            state: match got.state {
                STATE_RUNNING => State::Running,
                STATE_XRUN | STATE_SUSPENDED => State::Interrupted,
                STATE_DISCONNECTED => State::Gone,
                _ => State::Stopped,
            },
            played: got.hw_ptr,
            at: MonoNs(seconds.saturating_mul(NS_PER_S).saturating_add(ns)),
        })
    }

    /// Waits until there is room for a fragment, or the stream has stopped, for `patience` at most; false
    /// if that time passed. Returns early, with `Interrupted`, when a signal handler ran.
    #[inline]
    pub fn wait(&self, patience: SpanNs) -> io::Result<bool> {
        poll::wait_any([(self.file.as_fd(), Ready::Write)], patience).map(|[is_ready]| is_ready)
    }
}

/// Whether a call failed because the stream has stopped, and can be prepared again.
pub fn is_interruption(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(OVERRUN | SUSPENDED))
}

impl Drop for Pcm {
    fn drop(&mut self) {
        // What is in its buffer is not played to its end. That fails where it was not set up.
        let _ = self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn requests_and_structures_are_those_of_the_kernels_header() {
        // As a C program prints the macros of sound/asound.h on x86-64.
        if size_of::<libc::c_ulong>() == 8 {
            assert_eq!([INFO, HW_REFINE, HW_PARAMS], [0x8120_4101, 0xc260_4110, 0xc260_4111]);
            assert_eq!([SW_PARAMS, SYNC_PTR, WRITEI], [0xc088_4113, 0xc088_4123, 0x4018_4150]);
            assert_eq!(offset_of!(SoftwareParameters, avail_min), 16);
            assert_eq!(offset_of!(SoftwareParameters, proto), 72);
            assert_eq!(offset_of!(Transfer, frames), 16);
        }
        assert_eq!([PREPARE, START, DROP], [0x4140, 0x4142, 0x4143]);
        assert_eq!(size_of::<SyncPointer>(), 8 + 64 + 64);
        assert_eq!(offset_of!(SyncPointer, state), 8);
        assert_eq!(offset_of!(SyncPointer, hw_ptr), 16);
        assert_eq!(offset_of!(SyncPointer, seconds), 24);
        assert_eq!(offset_of!(SyncPointer, suspended_state), 40);
        assert_eq!(offset_of!(SyncPointer, control), 72);
        assert_eq!(PROTOCOL, 0x2000c);
    }

    #[test]
    fn what_is_no_sound_card_is_refused() {
        let refusal = Pcm::open(Path::new("/dev/null")).unwrap_err();
        assert_eq!(refusal.raw_os_error(), Some(libc::ENOTTY));
        let refusal = Pcm::open(Path::new("/dev/snd/pcmC250D31p")).unwrap_err();
        assert_eq!(refusal.kind(), io::ErrorKind::NotFound);
    }
}
