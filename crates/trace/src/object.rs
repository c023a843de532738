//! The compiled programs.

use std::io::{self, Read};

use flate2::read::GzDecoder;

/// The programs that follow wakeups: bpf/wakeups.bpf.c.
pub(crate) static WAKEUPS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/wakeups.bpf.o.gz"));

/// The program that counts all waits: bpf/watch.bpf.c.
pub(crate) static WATCH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.bpf.o.gz"));

/// The object file as the compiler wrote it.
pub(crate) fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut object = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut object)?;
    Ok(object)
}
