//! Several bytes of a record's text, looked at at once.

/// How many digits the number at the begin has: the same as the last, or else counted.
#[inline]
pub(super) fn like_last(eight: Eight, last: &mut usize) -> usize {
    if !eight.has(*last) {
        *last = eight.digits().clamp(1, 7);
    }
    *last
}

/// Eight bytes of text, looked at at once: a loop over digits takes several times as long.
#[derive(Clone, Copy)]
pub(super) struct Eight {
    /// Digits as their values, the first byte lowest.
    pub(super) values: u64,
    /// The highest bit of each byte that is no digit, up to the first of them. Bits beyond are of no use.
    others: u64,
}

impl Eight {
    #[inline]
    pub(super) fn of(text: [u8; 8]) -> Self {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let values = u64::from_le_bytes(text) ^ (ONES * 0x30);
        Self { values, others: (values.wrapping_add(ONES * 0x76) | values) & (ONES * 0x80) }
    }

    /// How many digits it begins with.
    #[inline]
    pub(super) fn digits(self) -> usize {
        (self.others.trailing_zeros() / 8) as usize
    }

    /// Whether it begins with so many digits, up to 7, and no more.
    #[inline]
    pub(super) fn has(self, digits: usize) -> bool {
        self.others << (56 - 8 * digits) == 1 << 63
    }

    /// The number that its first digits are, 1 to 7 of them.
    #[inline]
    pub(super) fn number(self, digits: usize) -> u64 {
        // Zeros before the digits, and then pairs, fours and all eight of them added up.
        let values = self.values << (64 - 8 * digits);
        let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
        let (even, odd) = (pairs & 0xff_0000_00ff, (pairs >> 16) & 0xff_0000_00ff);
        let upper = even.wrapping_mul(100 + (1_000_000 << 32));
        upper.wrapping_add(odd.wrapping_mul(1 + (10_000 << 32))) >> 32
    }
}

/// How many bytes are compared at once, which compilers do where no byte decides about the next.
const BLOCK: usize = 32;

/// Where two bytes first stand together.
pub(super) fn pair_of(text: &[u8], pair: [u8; 2]) -> Option<usize> {
    let mut at = 0;
    while let Some(block) = text[at..].first_chunk::<{ BLOCK + 1 }>() {
        let mut hits = 0;
        for i in 0..BLOCK {
            hits |= u8::from(block[i] == pair[0]) & u8::from(block[i + 1] == pair[1]);
        }
        if hits != 0 {
            break;
        }
        at += BLOCK;
    }
    text[at..].windows(2).position(|bytes| bytes == pair).map(|more| at + more)
}

/// Whether a text has only what a list of numbers and of lists of them, or of `null`, consists of.
pub(super) fn is_list(text: &[u8]) -> bool {
    let (blocks, rest) = text.split_at(text.len() / BLOCK * BLOCK);
    blocks.chunks_exact(BLOCK).all(|block| others(block) == 0) && others(rest) == 0
}

/// Not 0 if there is a byte that no such list has.
#[inline]
fn others(text: &[u8]) -> u8 {
    let mut others = 0;
    for &byte in text {
        // From comma to 9 there are but digits and what numbers may have.
        let is_number = byte.wrapping_sub(b',') <= b'9' - b',';
        let is_bracket = (byte == b'[') | (byte == b']');
        let is_null = (byte == b'n') | (byte == b'u') | (byte == b'l');
        let is_blank = (byte == b' ') | (byte == b'\n') | (byte == b'\t') | (byte == b'\r');
        others |= u8::from(!(is_number | is_bracket | is_null | is_blank));
    }
    others
}

/// How many bytes at the begin of both are the same, rounded down to a multiple of 16.
pub(super) fn common_length(a: &[u8], b: &[u8]) -> usize {
    let mut length = 0;
    while let (Some(a), Some(b)) = (a[length..].first_chunk::<16>(), b[length..].first_chunk()) {
        if a != b {
            break;
        }
        length += 16;
    }
    length
}
