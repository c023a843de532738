//! HdrHistogram's V2 encoding: counts as variable-length numbers, deflated, in base64.
//!
//! The format is that of the Java library's `encodeIntoCompressedByteBuffer`, version 2.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::Bucket;

use super::{latest_of_all, values_of};

const COOKIE: u32 = 0x1c84_9313;
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;

/// Where the buckets of a histogram lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// Significant decimal digits, 1 to 5.
    digits: u32,
    /// So many low bits of each value are left out.
    unit_bits: u32,
}

impl Scale {
    /// Ours are whole numbers of those with three digits.
    const USUAL: Self = Self { digits: 3, unit_bits: 0 };

    /// The scale whose buckets those of these distributions are, in units of `unit_ns`: that of the
    /// file that they were read from. The usual one if there is none.
    pub(super) fn of(all: &[&Distribution], unit_ns: u64) -> Self {
        let buckets = || all.iter().flat_map(|d| d.histogram.buckets());
        let scales = (0..24).flat_map(|unit_bits| {
            [3, 2, 1, 4, 5].into_iter().map(move |digits| Self { digits, unit_bits })
        });
        let mut fitting = scales.filter(|scale| buckets().all(|b| scale.has(b, unit_ns)));
        fitting.next().unwrap_or(Self::USUAL)
    }

    fn has(self, bucket: &Bucket, unit_ns: u64) -> bool {
        let whole = bucket.lower % unit_ns == 0 && bucket.upper % unit_ns == 0;
        let (lower, upper) = (bucket.lower / unit_ns, bucket.upper / unit_ns);
        let index = |value| self.index_of(value);
        // It begins and ends with a bucket of the scale, and is one.
        whole
            && lower >> self.unit_bits << self.unit_bits == lower
            && (lower == 0 || index(lower - 1) != index(lower))
            && index(lower) == index(upper - 1)
            && index(upper - 1) != index(upper)
    }

    /// Buckets of the first octaves.
    fn sub_buckets(self) -> u64 {
        (2 * 10_u64.pow(self.digits)).next_power_of_two()
    }

    /// Where `value` lies among the buckets.
    fn index_of(self, value: u64) -> u64 {
        let (value, sub_buckets) = (value >> self.unit_bits, self.sub_buckets());
        let octave = (63 - (value | (sub_buckets - 1)).leading_zeros()) - (sub_buckets.ilog2() - 1);
        u64::from(octave) * (sub_buckets / 2) + (value >> octave)
    }

    /// The lowest value that it tells from 0.
    fn lowest(self) -> i64 {
        1 << self.unit_bits
    }
}

/// `d` in units of `unit_ns`, encoded, compressed and in base64; `least` as in [`values_of`].
pub(super) fn compressed(
    d: &Distribution,
    least: Option<u64>,
    unit_ns: u64,
    scale: Scale,
) -> io::Result<String> {
    let mut deflated = ZlibEncoder::new(Vec::new(), Compression::default());
    deflated.write_all(&encoded(d, least, unit_ns, scale)?)?;
    let deflated = deflated.finish()?;
    let mut out = COMPRESSED_COOKIE.to_be_bytes().to_vec();
    out.extend(length(deflated.len())?.to_be_bytes());
    out.extend(deflated);
    Ok(base64(&out))
}

fn encoded(
    d: &Distribution,
    least: Option<u64>,
    unit_ns: u64,
    scale: Scale,
) -> io::Result<Vec<u8>> {
    let counts = counts(values_of(d, least), unit_ns, scale)?;
    // A histogram must be able to hold twice the lowest value at least.
    let highest = signed(latest_of_all(d) / unit_ns)?.max(2 * scale.lowest());
    let mut out = COOKIE.to_be_bytes().to_vec();
    out.extend(length(counts.len())?.to_be_bytes());
    out.extend(0_u32.to_be_bytes()); // Nothing is shifted.
    out.extend(scale.digits.to_be_bytes());
    out.extend(scale.lowest().to_be_bytes());
    out.extend(highest.to_be_bytes());
    out.extend(1_f64.to_be_bytes()); // Values are integers.
    out.extend(counts);
    Ok(out)
}

/// Per bucket its count; for buckets without samples, minus how many of them there are.
fn counts(
    values: impl Iterator<Item = (u64, u64)>,
    unit_ns: u64,
    scale: Scale,
) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let (mut next, mut pending) = (0_u64, 0_i64);
    for (value, count) in values {
        let (index, count) = (scale.index_of(value / unit_ns), signed(count)?);
        if index + 1 == next {
            pending = pending.checked_add(count).ok_or_else(too_large)?;
            continue;
        }
        put_count(&mut out, pending);
        if index > next {
            put(&mut out, -signed(index - next)?);
        }
        (next, pending) = (index + 1, count);
    }
    put_count(&mut out, pending);
    Ok(out)
}

fn put_count(out: &mut Vec<u8>, count: i64) {
    if count > 0 {
        put(out, count);
    }
}

/// ZigZag, then 7 bits per byte, the lowest first; a ninth byte has all 8.
fn put(out: &mut Vec<u8>, number: i64) {
    let zigzag = (number << 1) ^ (number >> 63);
    let mut rest = u64::from_ne_bytes(zigzag.to_ne_bytes());
    for _ in 0..8 {
        let [low, ..] = (rest & 0x7f).to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
    let [low, ..] = rest.to_le_bytes();
    out.push(low);
}

fn signed(number: u64) -> io::Result<i64> {
    i64::try_from(number).map_err(|_| too_large())
}

fn length(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| too_large())
}

fn too_large() -> io::Error {
    io::Error::other("a number is 2^63 or more, which .hlog cannot hold")
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = (bits >> (18 - 6 * at) & 63) as usize;
            out.push(if at <= three.len() { DIGITS[digit].into() } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::histogram::{bucket_of, edges_of};

    #[test]
    fn base64_of_the_rfc() {
        for (text, want) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), want);
        }
    }

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        for (number, want) in [
            (0, vec![0]),
            (1, vec![2]),
            (-1, vec![1]),
            (-64, vec![0x7f]),
            (64, vec![0x80, 1]),
            (i64::MIN, vec![0xff; 9]),
        ] {
            let mut out = Vec::new();
            put(&mut out, number);
            assert_eq!(out, want, "{number}");
        }
    }

    #[test]
    fn each_of_our_buckets_is_a_whole_number_of_theirs() {
        for value in (0..63).flat_map(|bit| [1_u64 << bit, (1 << bit) + 1, (3 << bit) / 2]) {
            let (lower, upper) = edges_of(bucket_of(value));
            let index = |value| Scale::USUAL.index_of(value);
            let apart = |a: u64, b: u64| index(a) != index(b);
            assert!(lower == 0 || apart(lower - 1, lower), "{value}");
            assert!(apart(upper - 1, upper), "{value}");
        }
    }
}
