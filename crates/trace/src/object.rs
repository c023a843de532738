//! The compiled programs.

use std::io::{self, Read};

use aya::{Ebpf, EbpfLoader};
use flate2::read::GzDecoder;
use wakescope_sys::memory::lift_lock_limit;

use crate::error::{TraceError, denied};

/// The programs that follow wakeups: bpf/wakeups.bpf.c.
pub(crate) static WAKEUPS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/wakeups.bpf.o.gz"));

/// The program that counts all waits: bpf/watch.bpf.c.
pub(crate) static WATCH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.bpf.o.gz"));

/// Loads the programs of `packed` with what `loader` has to tell them.
pub(crate) fn load(packed: &[u8], loader: &mut EbpfLoader<'_>) -> Result<Ebpf, TraceError> {
    let object = unpacked(packed).map_err(|e| TraceError::Refused("object", e.to_string()))?;
    let loaded = loader.load(&object).or_else(|e| {
        // Before 5.11, what BPF takes counted as locked memory, of which even root has little.
        if denied(&e) && lift_lock_limit().is_ok() { loader.load(&object) } else { Err(e) }
    });
    loaded.map_err(|e| TraceError::of_maps(&e))
}

/// The object file as the compiler wrote it.
pub(crate) fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut object = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut object)?;
    Ok(object)
}
