//! The blocks in which the plugin writes. Each has a checksum of all contents so far, so that nothing is made of a
//! stream that was changed since: by its words alone it could look whole.

use crc32fast::Hasher;

use super::{FORMAT, ScopeError, word};

/// Bytes before the contents of a block: their length and the checksum, of four bytes each.
const HEAD: usize = 8;

/// Reads a stream block by block.
pub(super) struct Blocks<'a> {
    bytes: &'a [u8],
    /// Where the next block begins.
    next: usize,
    /// The part of the current block that is not read yet.
    block: &'a [u8],
    sum: Hasher,
}

impl<'a> Blocks<'a> {
    /// Begins to read what starts with this mark, and with the plugin's format.
    pub(super) fn of(bytes: &'a [u8], magic: u64) -> Result<Self, ScopeError> {
        if bytes.len() < HEAD {
            return Err(ScopeError::Foreign);
        }
        let mut blocks = Self { bytes, next: 0, block: &[], sum: Hasher::new() };
        if [blocks.word()?, blocks.word()?] != [magic, FORMAT] {
            return Err(ScopeError::Foreign);
        }
        Ok(blocks)
    }

    pub(super) fn word(&mut self) -> Result<u64, ScopeError> {
        word(self.take(8)?, 0).ok_or(ScopeError::Cut)
    }

    /// The next `length` bytes, which lie in one block.
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], ScopeError> {
        if self.block.is_empty() && length > 0 {
            self.check_next()?;
        }
        let (taken, left) = self.block.split_at_checked(length).ok_or(ScopeError::Cut)?;
        self.block = left;
        Ok(taken)
    }

    /// Whether nothing is left.
    pub(super) fn are_read(&self) -> bool {
        self.block.is_empty() && self.next == self.bytes.len()
    }

    fn check_next(&mut self) -> Result<(), ScopeError> {
        let rest = self.bytes.get(self.next..).unwrap_or_default();
        let (head, rest) = rest.split_first_chunk::<HEAD>().ok_or(ScopeError::Cut)?;
        let [l0, l1, l2, l3, s0, s1, s2, s3] = *head;
        let (length, sum) = ([l0, l1, l2, l3], u32::from_le_bytes([s0, s1, s2, s3]));
        let contents = usize::try_from(u32::from_le_bytes(length)).map_err(|_| ScopeError::Cut)?;
        let contents = rest.get(..contents).ok_or(ScopeError::Cut)?;
        self.sum.update(&length);
        self.sum.update(contents);
        let at = self.next + HEAD;
        if contents.is_empty() || self.sum.clone().finalize() != sum {
            return Err(ScopeError::Damaged { at, length: contents.len() });
        }
        (self.next, self.block) = (at + contents.len(), contents);
        Ok(())
    }
}
