//! Reading in large blocks what is taken piece by piece.

use std::io::BufRead;

use super::ImportError;

/// Reads all of `from`, at most `size` bytes at once. `take` takes whole pieces from the begin of a block, and
/// returns how many bytes these have; the rest comes again with the next one. Returns what was left in the end.
pub(super) fn read_blocks(
    from: &mut dyn BufRead,
    size: usize,
    mut take: impl FnMut(&[u8]) -> Result<usize, ImportError>,
) -> Result<Vec<u8>, ImportError> {
    let mut block = vec![0_u8; size];
    let mut held = 0;
    loop {
        let read = from.read(&mut block[held..])?;
        if read == 0 {
            block.truncate(held);
            return Ok(block);
        }
        let filled = held + read;
        let used = take(&block[..filled])?;
        block.copy_within(used..filled, 0);
        held = filled - used;
    }
}
