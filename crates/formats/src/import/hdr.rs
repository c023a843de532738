//! HdrHistogram: interval logs and percentile distributions.
//!
//! Neither states the unit of its values, nor what they are. A comment may: `#[Unit: ns]`,
//! `#[Quantity: wakeup-latency]`.

use std::io::Read;

use flate2::bufread::ZlibDecoder;
use wakescope_core::budget::{Budget, Entry, Exceeded};
use wakescope_core::histogram::Bucket;
use wakescope_core::source::Quantity;

use super::draft::Draft;
use super::own::Own;
use super::{About, ImportError, Unit, unit};

pub(super) mod log;
pub(super) mod percentiles;

/// What steps are drawn for: zeroes pack to a thousandth of their length.
const UNPACKED: &str = "bytes of unpacked histograms";

/// What comments say of the values.
#[derive(Default)]
struct Declared {
    unit: Option<Unit>,
    quantity: Option<Quantity>,
    /// What wakescope stated of its own file, which has a histogram per CPU.
    own: Option<Own>,
}

impl Declared {
    /// Takes a comment.
    fn take(&mut self, text: &str) {
        let text = text.trim_start_matches(['#', '[', ' ']).trim_end_matches([']', ' ']);
        if let Some(own) = Own::of(text.strip_prefix("Logged by ").unwrap_or(text)) {
            self.unit = own.unit.or(self.unit);
            self.own = Some(own);
            return;
        }
        let Some((key, value)) = text.split_once([':', '=']) else { return };
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "unit" => {
                self.unit = match value {
                    "ns" => Some(Unit::Ns),
                    "us" | "µs" => Some(Unit::Us),
                    "ms" => Some(Unit::Ms),
                    _ => None,
                }
            }
            "quantity" => {
                self.quantity = serde_json::from_value(serde_json::Value::from(value)).ok();
            }
            _ => {}
        }
    }

    /// Puts what the values are into a draft.
    fn tell(&self, draft: &mut Draft) {
        match (self.quantity, &self.own) {
            (Some(quantity), _) => draft.source.quantity = quantity,
            (None, Some(own)) => draft.own(own),
            (None, None) => draft.source.quantity = Quantity::Unknown,
        }
    }

    /// The unit, as the user or the file states it.
    fn unit(&self, about: &About) -> Result<Unit, ImportError> {
        if let Some(unit) = self.unit {
            return unit::stated(about, unit, "a comment states it").map(|_| unit);
        }
        about.unit.ok_or_else(|| {
            ImportError::new("HdrHistogram's files do not state the unit of their values").try_this(
                "say which it is: wakescope import FILE --unit ns, us or ms; or add a line `#[Unit: ns]` at its beginning",
            )
        })
    }
}

/// Bytes from base64 (RFC 4648, with `=` at the end).
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() % 4 != 0 {
        return None;
    }
    let padding = bytes.iter().rev().take_while(|&&b| b == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    for four in bytes[..bytes.len() - padding].chunks(4) {
        let mut word = 0_u32;
        for &byte in four {
            word = word << 6 | u32::from(digit(byte)?);
        }
        word <<= 6 * (4 - four.len());
        out.extend_from_slice(&word.to_be_bytes()[1..four.len()]);
    }
    Some(out)
}

/// The counts of a histogram in its compressed encoding V2, ascending, in its own unit. Its buckets
/// are drawn from the budget.
fn decode(packed: &[u8], budget: &Budget) -> Result<Vec<Bucket>, Fault> {
    const COMPRESSED: u32 = 0x1c84_9304;
    const PLAIN: u32 = 0x1c84_9303;
    /// 1.0, by its bits.
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    let mut at = Bytes { bytes: packed };
    match at.u32()? & !0xf0 {
        COMPRESSED => {}
        0x1c84_9302 | 0x1c84_9309 => {
            return Err(wrong("it is in an old encoding (V0 or V1); V2 is read"));
        }
        0x0c72_124f | 0x0c72_124e => {
            return Err(wrong("it is a histogram of decimal values, which is not read"));
        }
        _ => return Err(wrong("it is not a compressed histogram of HdrHistogram")),
    }
    let length = at.u32()? as usize;
    if length != at.bytes.len() {
        return Err(wrong(format!("it states {length} bytes and has {}", at.bytes.len())));
    }
    let mut plain = Vec::new();
    // One byte more than may be shows that there is more.
    let most = budget.steps_left().saturating_add(1);
    let unpacked = ZlibDecoder::new(at.bytes).take(most).read_to_end(&mut plain);
    unpacked.map_err(|e| format!("it cannot be unpacked: {e}"))?;
    budget.take(plain.len() as u64, UNPACKED)?;
    let mut at = Bytes { bytes: &plain };
    if at.u32()? & !0xf0 != PLAIN {
        return Err(wrong("its unpacked content is not a histogram in encoding V2"));
    }
    let payload = at.u32()? as usize;
    let (offset, digits) = (at.u32()?, at.u32()?);
    let (lowest, highest, ratio) = (at.u64()?, at.u64()?, at.u64()?);
    let sensible = digits <= 5 && lowest > 0 && lowest <= highest / 2;
    // The libraries for JavaScript and, once, Go write the integer 1 as the ratio, and always 1 as
    // the offset, by which they do not move their counts.
    let plain_scale = matches!((offset, ratio), (0, ONE) | (1, 1));
    if !plain_scale || !sensible || highest >> 62 != 0 {
        return Err(wrong("its range, digits, or scale are not those of a histogram of times"));
    }
    if payload != at.bytes.len() {
        return Err(wrong(format!(
            "it states {payload} bytes of counts and has {}",
            at.bytes.len()
        )));
    }
    Scale::new(digits, lowest).counts(at, budget)
}

/// Why a histogram is not read.
#[derive(Debug)]
enum Fault {
    Wrong(String),
    Exceeded(Exceeded),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

impl From<Exceeded> for Fault {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

fn wrong(why: impl Into<String>) -> Fault {
    Fault::Wrong(why.into())
}

/// Where the buckets of a histogram lie.
struct Scale {
    half_bits: u32,
    unit_bits: u32,
}

impl Scale {
    fn new(digits: u32, lowest: u64) -> Self {
        // So many values from 0 on have a bucket of their own.
        let single = 2 * 10_u64.pow(digits);
        let bits = 64 - (single - 1).leading_zeros();
        Self { half_bits: bits.max(1) - 1, unit_bits: 63 - lowest.leading_zeros() }
    }

    fn bucket(&self, index: u64, count: u64) -> Result<Bucket, String> {
        let half = 1_u64 << self.half_bits;
        let (octave, within) = match index >> self.half_bits {
            0 => (0, index),
            octaves => (octaves - 1, (index & (half - 1)) + half),
        };
        if octave.saturating_add(u64::from(self.unit_bits + self.half_bits)) >= 62 {
            return Err("it has counts beyond 2^62".into());
        }
        let shift = octave + u64::from(self.unit_bits);
        Ok(Bucket { lower: within << shift, upper: (within + 1) << shift, count })
    }

    fn counts(&self, mut at: Bytes<'_>, budget: &Budget) -> Result<Vec<Bucket>, Fault> {
        let mut buckets = Vec::new();
        let mut index = 0_u64;
        while !at.bytes.is_empty() {
            let word = at.leb128()?;
            let (half, negative) = (word >> 1, word & 1 == 1);
            if !negative && half > 0 {
                budget.keep(1, Entry::BUCKET)?;
                buckets.push(self.bucket(index, half)?);
            }
            // Zigzag: negative numbers are so many empty buckets.
            let passed = if negative { half + 1 } else { 1 };
            index = index.checked_add(passed).ok_or_else(|| wrong("it has too many buckets"))?;
        }
        Ok(buckets)
    }
}

/// Bytes that are read from the front.
struct Bytes<'a> {
    bytes: &'a [u8],
}

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or("it is truncated")?;
        self.bytes = rest;
        Ok(*head)
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// Seven bits a byte, the lowest first; of a ninth byte all eight.
    fn leb128(&mut self) -> Result<u64, String> {
        let mut word = 0_u64;
        for place in 0..9 {
            let [byte] = self.take()?;
            if place == 8 {
                return Ok(word | u64::from(byte) << 56);
            }
            word |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        for (text, want) in [
            ("TWFu", Some(&b"Man"[..])),
            ("TWE=", Some(b"Ma")),
            ("TQ==", Some(b"M")),
            ("", None),
            ("TQ=", None),
            ("T===", None),
            ("T!==", None),
        ] {
            assert_eq!(from_base64(text).as_deref(), want, "{text}");
        }
    }

    /// A histogram of one sample of 3 and two of 5, with such a header.
    fn packed(offset: u32, digits: u32, ratio: u64) -> Vec<u8> {
        // Zigzag: three without samples, 1, one without, 2.
        with_counts(offset, digits, ratio, &[5, 2, 1, 4])
    }

    fn with_counts(offset: u32, digits: u32, ratio: u64, counts: &[u8]) -> Vec<u8> {
        let length = u32::try_from(counts.len()).unwrap();
        let words = [0x1c84_9313, length, offset, digits];
        let mut plain: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
        plain.extend([1, 1_000_000, ratio].iter().flat_map(|word: &u64| word.to_be_bytes()));
        plain.extend(counts);
        let mut zipped = flate2::read::ZlibEncoder::new(&plain[..], flate2::Compression::fast());
        let mut content = Vec::new();
        zipped.read_to_end(&mut content).unwrap();
        let length = u32::try_from(content.len()).unwrap();
        let mut packed = 0x1c84_9314_u32.to_be_bytes().to_vec();
        packed.extend(length.to_be_bytes());
        packed.extend(content);
        packed
    }

    fn decoded(packed: &[u8]) -> Result<Vec<Bucket>, String> {
        decode(packed, &Budget::default()).map_err(|fault| match fault {
            Fault::Wrong(why) => why,
            Fault::Exceeded(e) => panic!("{e}"),
        })
    }

    /// So many buckets without samples, in nine bytes.
    fn without_samples(buckets: u64) -> Vec<u8> {
        let word = (buckets - 1) << 1 | 1;
        let byte = |place: u32| u8::try_from(word >> (7 * place) & 0x7f).unwrap() | 0x80;
        (0..8).map(byte).chain([word.to_be_bytes()[0]]).collect()
    }

    #[test]
    fn counts_beyond_the_scale_are_refused() {
        let five = vec![10];
        let half = without_samples(1 << 63);
        for (digits, counts, want) in [
            // The shift and the 10 bits of 3 digits add up to more than 32 bits hold.
            (3, [without_samples(0xffff_fffe << 10), five.clone()].concat(), "counts beyond 2^62"),
            // The index is the last one of 64 bits. Without digits, the shift is nearly as large.
            (0, [&half[..], &without_samples((1 << 63) - 1), &five].concat(), "counts beyond 2^62"),
            (3, [&half[..], &without_samples((1 << 63) - 1), &[0], &five].concat(), "too many"),
            (3, [&half[..], &half[..], &five].concat(), "too many buckets"),
        ] {
            let error = decoded(&with_counts(0, digits, 1.0_f64.to_bits(), &counts)).unwrap_err();
            assert!(error.contains(want), "{digits} {counts:?}: {error}");
        }
    }

    #[test]
    fn headers_of_all_libraries_are_read() {
        let one = 1.0_f64.to_bits();
        let decode = |packed: Vec<u8>| decoded(&packed);
        let want = decode(packed(0, 3, one)).unwrap();
        assert_eq!(want.iter().map(|b| (b.lower, b.count)).collect::<Vec<_>>(), [(3, 1), (5, 2)]);
        // As the library for JavaScript writes it.
        assert_eq!(decode(packed(1, 3, 1)).unwrap(), want);
        // Without digits, a bucket holds an octave.
        let octaves = decode(packed(0, 0, one)).unwrap();
        assert_eq!(
            octaves.iter().map(|b| (b.lower, b.upper)).collect::<Vec<_>>(),
            [(4, 8), (16, 32)]
        );
        // An offset that is meant moves the counts, and a ratio scales them.
        for (offset, digits, ratio) in
            [(1, 3, one), (0, 3, 1), (0, 6, one), (0, 3, 2.0_f64.to_bits())]
        {
            let error = decode(packed(offset, digits, ratio)).unwrap_err();
            assert!(error.starts_with("its range, digits, or scale"), "{offset} {digits}: {error}");
        }
    }

    #[test]
    fn buckets_follow_each_other() {
        for (digits, lowest) in [(1, 1), (3, 1), (3, 1_000), (5, 1)] {
            let scale = Scale::new(digits, lowest);
            let mut end = 0;
            for index in 0..40_000 {
                let Ok(bucket) = scale.bucket(index, 1) else { break };
                assert_eq!(bucket.lower, end, "bucket {index} of {digits} digits");
                end = bucket.upper;
            }
        }
    }
}
