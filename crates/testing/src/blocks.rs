//! Streams as the emulator's plugin writes them.

use crc32fast::Hasher;

/// Contents in blocks of at most `longest` bytes, each with its checksum, as `plugin/output.c` makes them.
///
/// # Panics
/// If a block is to have no bytes, or more than its head can say.
#[must_use]
pub fn in_blocks(contents: &[u8], longest: usize) -> Vec<u8> {
    let mut sum = Hasher::new();
    let block = |block: &[u8]| {
        let length = u32::try_from(block.len()).expect("a short block").to_le_bytes();
        sum.update(&length);
        sum.update(block);
        [&length[..], &sum.clone().finalize().to_le_bytes(), block].concat()
    };
    contents.chunks(longest).flat_map(block).collect()
}
