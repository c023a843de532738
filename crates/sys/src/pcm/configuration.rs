//! What a playback device can do, and what it is to do (`struct snd_pcm_hw_params`).

use wakescope_core::sound_card::SampleFormat;

/// A set of configurations. The program fills in what it asks for, and the device narrows that to what it can do.
/// Once the device is set up, each field has one value.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Configuration {
    flags: u32,
    /// Access, format, subformat, and five that are reserved.
    masks: [Mask; 8],
    /// From [`FIRST_INTERVAL`] on, and nine that are reserved.
    intervals: [Interval; 21],
    /// A bit for each field that was narrowed.
    rmask: u32,
    cmask: u32,
    info: u32,
    msbits: u32,
    rate_num: u32,
    rate_den: u32,
    fifo_size: libc::c_ulong,
    reserved: [u8; 64],
}

/// `struct snd_mask`.
type Mask = [u32; 8];

/// `struct snd_interval`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Interval {
    min: u32,
    max: u32,
    /// Of lowest bits first: `min` is none of the values, `max` is none, all are whole, there are none.
    flags: u32,
}

const OPEN_MIN: u32 = 1;
const OPEN_MAX: u32 = 2;
const INTEGER: u32 = 4;
const FIRST_INTERVAL: usize = 8;
const ACCESS: usize = 0;
const FORMAT: usize = 1;
/// Channels beside each other, written by a call: `SNDRV_PCM_ACCESS_RW_INTERLEAVED`.
const WRITES: u32 = 3;

/// A field of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// How many channels there are.
    Channels = 10,
    /// Frames per second.
    Rate = 11,
    /// Frames of a fragment, which ALSA calls a period.
    FragmentFrames = 13,
    /// How many fragments the buffer has.
    Fragments = 15,
    /// Frames of the buffer.
    BufferFrames = 17,
}

/// A format of samples in which silence is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Which it is.
    pub format: SampleFormat,
    /// The kernel's number for it.
    pub number: u32,
    /// Bytes of a sample.
    pub bytes: u32,
}

/// The formats that cards play, those that most do first.
pub const PLAIN_FORMATS: [Format; 9] = [
    Format { format: SampleFormat::S16Le, number: 2, bytes: 2 },
    Format { format: SampleFormat::S32Le, number: 10, bytes: 4 },
    Format { format: SampleFormat::S24Le, number: 6, bytes: 4 },
    Format { format: SampleFormat::S24In3Le, number: 32, bytes: 3 },
    Format { format: SampleFormat::S16Be, number: 3, bytes: 2 },
    Format { format: SampleFormat::S32Be, number: 11, bytes: 4 },
    Format { format: SampleFormat::S24In3Be, number: 33, bytes: 3 },
    Format { format: SampleFormat::S8, number: 0, bytes: 1 },
    Format { format: SampleFormat::FloatLe, number: 14, bytes: 4 },
];

impl Configuration {
    /// All that there are.
    pub fn all() -> Self {
        let interval = Interval { min: 0, max: u32::MAX, flags: 0 };
        Self {
            flags: 0,
            masks: [[u32::MAX; 8]; 8],
            intervals: [interval; 21],
            rmask: u32::MAX,
            cmask: 0,
            info: 0,
            msbits: 0,
            rate_num: 0,
            rate_den: 0,
            fifo_size: 0,
            reserved: [0; 64],
        }
    }

    /// The least and the largest value of a field that are left.
    pub fn range(&self, field: Field) -> (u32, u32) {
        let Interval { min, max, flags } = self.intervals[field as usize - FIRST_INTERVAL];
        let (is_above, is_below) = (flags & OPEN_MIN != 0, flags & OPEN_MAX != 0);
        (min.saturating_add(is_above.into()), max.saturating_sub(is_below.into()))
    }

    /// Leaves these values of a field, both included.
    pub fn limit(&mut self, field: Field, (min, max): (u32, u32)) {
        let place = field as usize;
        self.intervals[place - FIRST_INTERVAL] = Interval { min, max, flags: INTEGER };
        self.rmask |= 1 << place;
    }

    /// Whether samples of this format are left.
    pub fn has_format(&self, format: Format) -> bool {
        has(&self.masks[FORMAT], format.number)
    }

    /// Leaves samples of this format.
    pub fn limit_format(&mut self, format: Format) {
        self.masks[FORMAT] = only(format.number);
        self.rmask |= 1 << FORMAT;
    }

    /// Whether it is left that frames are written by calls.
    pub fn has_writes(&self) -> bool {
        has(&self.masks[ACCESS], WRITES)
    }

    /// Leaves that frames are written by calls.
    pub fn limit_to_writes(&mut self) {
        self.masks[ACCESS] = only(WRITES);
        self.rmask |= 1 << ACCESS;
    }

    /// Frames per second of a device that was set up so, as a fraction.
    pub fn rate(&self) -> (u32, u32) {
        match (self.rate_num, self.rate_den) {
            (0, _) | (_, 0) => (self.range(Field::Rate).0, 1),
            rate => rate,
        }
    }
}

fn has(mask: &Mask, number: u32) -> bool {
    mask[(number / 32) as usize] & 1 << (number % 32) != 0
}

fn only(number: u32) -> Mask {
    let mut mask = [0; 8];
    mask[(number / 32) as usize] = 1 << (number % 32);
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn it_lies_in_memory_as_the_kernel_has_it() {
        if size_of::<libc::c_ulong>() == 8 {
            assert_eq!(size_of::<Configuration>(), 608);
            assert_eq!(offset_of!(Configuration, fifo_size), 536);
        }
        assert_eq!(offset_of!(Configuration, intervals), 260);
        assert_eq!(offset_of!(Configuration, rmask), 512);
    }

    #[test]
    fn fields_are_narrowed_one_by_one() {
        let mut wanted = Configuration::all();
        assert_eq!(wanted.range(Field::Rate), (0, u32::MAX));
        wanted.limit(Field::Rate, (44_100, 48_000));
        assert_eq!(wanted.range(Field::Rate), (44_100, 48_000));
        // Bounds that are none of the values, as drivers of cards with a ratio of clocks leave them.
        wanted.intervals[Field::Rate as usize - FIRST_INTERVAL].flags = OPEN_MIN | OPEN_MAX;
        assert_eq!(wanted.range(Field::Rate), (44_101, 47_999));
        assert!(PLAIN_FORMATS.iter().all(|&format| wanted.has_format(format)));
        wanted.limit_format(PLAIN_FORMATS[3]);
        let left: Vec<_> = PLAIN_FORMATS.iter().filter(|&&f| wanted.has_format(f)).collect();
        assert_eq!(left, [&PLAIN_FORMATS[3]]);
        assert!(wanted.has_writes());
        wanted.limit_to_writes();
        assert_eq!(wanted.masks[ACCESS], [8, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(wanted.rate(), (44_101, 1));
        (wanted.rate_num, wanted.rate_den) = (48_000_000, 1_001);
        assert_eq!(wanted.rate(), (48_000_000, 1_001));
    }
}
