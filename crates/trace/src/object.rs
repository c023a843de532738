//! The compiled programs.

use std::io::{self, Read};

use flate2::read::GzDecoder;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/wakeups.bpf.o.gz"));

/// The object file as the compiler wrote it.
pub(crate) fn unpacked() -> io::Result<Vec<u8>> {
    let mut object = Vec::new();
    GzDecoder::new(PACKED).read_to_end(&mut object)?;
    Ok(object)
}
