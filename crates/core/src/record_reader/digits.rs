//! Parses buckets that are written as the one before them: eight digits at once, at places that are
//! known before the text there is read.
//!
//! The edges of a histogram ascend, so nearly all have as many digits as those of the bucket before.
//! Only the end of a count has to be found, and the processor parses several buckets at the same time.

use crate::histogram::Bucket;

/// A byte of each of eight.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Parses buckets, each after a comma, for as long as they are written without blanks, with as many
/// digits in their edges as `first` has, and at most eight in any number. Returns how much of `text`
/// they take.
pub(super) fn buckets_like(first: &[u8], text: &[u8], buckets: &mut Vec<Bucket>) -> usize {
    let mut at = 0;
    let Some(edges) = Edges::of(first) else { return at };
    while let Some((bucket, length)) = text.get(at..).and_then(|text| edges.bucket(text)) {
        buckets.push(bucket);
        at += length;
    }
    at
}

/// Where the edges of a bucket are in the text `,[lower,upper,count]`.
struct Edges {
    lower: Digits,
    /// Where the first comma inside the brackets is.
    first_comma: usize,
    upper: Digits,
    second_comma: usize,
}

impl Edges {
    /// Those of the text `[lower,upper,count]`.
    fn of(bucket: &[u8]) -> Option<Self> {
        let mut commas = (0..bucket.len()).filter(|&at| bucket[at] == b',').map(|at| at + 1);
        let (first_comma, second_comma) = (commas.next()?, commas.next()?);
        let lower = Digits::of(first_comma - 2)?;
        let upper = Digits::of(second_comma - first_comma - 1)?;
        Some(Self { lower, first_comma, upper, second_comma })
    }

    /// The bucket at the begin of `text`, and the length of its text.
    #[inline]
    fn bucket(&self, text: &[u8]) -> Option<(Bucket, usize)> {
        let word = |at: usize| Some(u64::from_le_bytes(*text.get(at..)?.first_chunk()?));
        let lower = self.lower.number(word(2)?)?;
        let upper = self.upper.number(word(self.first_comma + 1)?)?;
        let (count, digits) = number(word(self.second_comma + 1)?)?;
        let end = self.second_comma + 1 + digits;
        let is_bucket = text.starts_with(b",[")
            && text[self.first_comma] == b','
            && text[self.second_comma] == b','
            && text.get(end) == Some(&b']');
        is_bucket.then_some((Bucket { lower, upper, count }, end + 1))
    }
}

/// How many digits a number has.
#[derive(Clone, Copy)]
struct Digits {
    /// By how many bits its last digit is moved to the last of eight bytes.
    shift: u32,
    /// The least number that has so many digits, without a leading zero.
    least: u64,
}

impl Digits {
    fn of(digits: usize) -> Option<Self> {
        let digits = u32::try_from(digits).ok().filter(|digits| (1..=8).contains(digits))?;
        let least = if digits == 1 { 0 } else { 10_u64.pow(digits - 1) };
        Some(Self { shift: 64 - 8 * digits, least })
    }

    /// The number at the begin of eight bytes of text.
    #[inline]
    fn number(self, text: u64) -> Option<u64> {
        let digits = (text ^ each(b'0')) << self.shift;
        let number = value(digits);
        (others(digits) == 0 && number >= self.least).then_some(number)
    }
}

/// The number at the begin of eight bytes of text, one of which is no digit; and how many digits it
/// has.
#[inline]
fn number(text: u64) -> Option<(u64, usize)> {
    let digits = text ^ each(b'0');
    let others = others(digits);
    let end = others.trailing_zeros() & !7;
    let has_leading_zero = digits & 0xff == 0 && end > 8;
    if others == 0 || end == 0 || has_leading_zero {
        return None;
    }
    Some((value(digits << (64 - end)), end as usize / 8))
}

/// A bit in each byte that is above 9, up to the first one of these; those after it may be wrong.
#[inline]
fn others(digits: u64) -> u64 {
    (digits.wrapping_add(each(0x80 - 10)) | digits) & each(0x80)
}

/// The number that eight digits make, the first of them in the lowest byte: neighbours are added up,
/// then pairs, then fours.
#[inline]
fn value(digits: u64) -> u64 {
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The buckets in `text` that are written like `first`, and the text after them.
    fn read(first: &str, text: &str) -> (Vec<(u64, u64, u64)>, String) {
        let mut buckets = Vec::new();
        let length = buckets_like(first.as_bytes(), text.as_bytes(), &mut buckets);
        let buckets = buckets.iter().map(|b| (b.lower, b.upper, b.count)).collect();
        (buckets, text[length..].into())
    }

    #[test]
    fn what_is_not_like_the_first_is_left() {
        // Eight bytes are read at once, so the last bucket of a text is left, too.
        let end = "]],\"stated\":0";
        for (first, text, wanted, left) in [
            ("[10,20,1]", ",[20,30,5],[40,50,12345678]", &[(20, 30, 5)][..], ",[40,50,12345678]"),
            ("[1,2,1]", ",[0,3,7],[3,4,10]", &[(0, 3, 7), (3, 4, 10)], ""),
            ("[80,90,1]", ",[90,100,5]", &[], ",[90,100,5]"),
            ("[80,90,1]", ",[90,99,05]", &[], ",[90,99,05]"),
            ("[80,90,1]", ",[09,99,5]", &[], ",[09,99,5]"),
            ("[80,90,1]", ",[9,199,5]", &[], ",[9,199,5]"),
            ("[80,90,1]", ",[90,99,0]", &[(90, 99, 0)], ""),
            ("[80,90,1]", ",[90,99,]", &[], ",[90,99,]"),
            ("[80,90,1]", ",[90,99,-5]", &[], ",[90,99,-5]"),
            ("[80,90,1]", ",[90,99,5.0]", &[], ",[90,99,5.0]"),
            ("[80,90,1]", ", [90,99,5]", &[], ", [90,99,5]"),
            ("[80,90,1]", ",[90,99,5,6]", &[], ",[90,99,5,6]"),
            ("[80,90,1]", ",[90,9\u{df},5]", &[], ",[90,9\u{df},5]"),
            ("[ 80 , 90 , 1 ]", ",[90,99,5]", &[], ",[90,99,5]"),
            (
                "[100000000,200000000,1]",
                ",[300000000,400000000,5]",
                &[],
                ",[300000000,400000000,5]",
            ),
        ] {
            let (buckets, rest) = read(first, &format!("{text}{end}"));
            assert_eq!((&buckets[..], rest), (wanted, format!("{left}{end}")), "{first} {text}");
        }
        assert_eq!(read("[1,2,1]", ",[2,3,1]").0, [], "no eight bytes");
    }

    proptest! {
        #[test]
        fn numbers_are_as_they_are_written(number in 0_u64..100_000_000, digits in 1_u32..9) {
            let number = number % 10_u64.pow(digits);
            let text = format!("[{number},{number},{number}]");
            let more = format!(",{text}        ");
            let read = read(&text, &more);
            let expected = (number < 10_000_000).then_some((number, number, number));
            prop_assert_eq!(read.0, Vec::from_iter(expected));
        }
    }
}
