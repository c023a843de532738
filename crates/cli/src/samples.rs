//! The file of all samples, `samples.csv`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use wakescope_core::source::Quantity;
use wakescope_formats::export::jsonl::columns;
use wakescope_probe::measurement::{SavedSample, Unsaved};
use wakescope_sys::file::room_beside;

/// Samples are written in blocks of about this size.
const BLOCK: usize = 64 << 10;
/// So much of the disk is left free for the record and for other programs, bytes; but at most a quarter of what
/// was free at the beginning.
const LEFT_FREE: u64 = 16 << 20;

/// A file of samples, a line each. Once it cannot be written, further samples are counted as lost,
/// and what was written ends with a whole line.
pub(crate) struct SampleFile {
    file: File,
    /// Whole lines that are not written yet.
    block: Vec<u8>,
    /// How many of them are of which CPU.
    in_block: BTreeMap<u32, u64>,
    written_bytes: u64,
    /// What it leaves free on the disk, bytes.
    left_free: u64,
    fault: Option<io::Error>,
    lost: BTreeMap<u32, u64>,
}

impl SampleFile {
    /// Begins a file that was just made, with its head: they are samples `of` that kind.
    pub(crate) fn begin(file: File, of: Quantity) -> io::Result<Self> {
        let left_free = room_beside(&file).map_or(0, |room| LEFT_FREE.min(room.bytes / 4));
        let mut samples = Self {
            file,
            block: [columns(of), "\n"].concat().into_bytes(),
            in_block: BTreeMap::new(),
            written_bytes: 0,
            left_free,
            fault: None,
            lost: BTreeMap::new(),
        };
        samples.write_block();
        match samples.fault {
            Some(fault) => Err(fault),
            None => Ok(samples),
        }
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, sample: SavedSample) {
        if self.fault.is_some() {
            *self.lost.entry(sample.cpu).or_default() += 1;
            return;
        }
        let SavedSample { cpu, expiry_ns, wakeup_latency_ns } = sample;
        // Writing to memory cannot fail.
        let _ = writeln!(self.block, "{cpu},{expiry_ns},{wakeup_latency_ns}");
        *self.in_block.entry(cpu).or_default() += 1;
        if self.block.len() >= BLOCK {
            self.write_block();
        }
    }

    /// Completes the file; what is not in it, and why.
    pub(crate) fn close(mut self) -> Unsaved {
        self.write_block();
        Unsaved { cause: self.fault.map(|e| format!("samples.csv: {e}")), lost: self.lost }
    }

    fn write_block(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let written = self.check_room().and_then(|()| self.file.write_all(&self.block));
        match written {
            Ok(()) => self.written_bytes += self.block.len() as u64,
            Err(fault) => {
                // Of a block that did not fit some part may be there, down to half a line.
                let _ = self.file.set_len(self.written_bytes);
                for (cpu, count) in &self.in_block {
                    *self.lost.entry(*cpu).or_default() += count;
                }
                self.fault.get_or_insert(fault);
            }
        }
        self.block.clear();
        self.in_block.clear();
    }

    /// Fails if the block would take what is to be left free.
    fn check_room(&self) -> io::Result<()> {
        let needed = self.left_free.saturating_add(self.block.len() as u64);
        // A file system that does not tell its room tells when there is none.
        if room_beside(&self.file).is_ok_and(|room| room.bytes < needed) {
            return Err(io::Error::other("the rest would have filled the disk"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sample(cpu: u32, expiry_ns: u64) -> SavedSample {
        SavedSample { cpu, expiry_ns, wakeup_latency_ns: 7 }
    }

    #[test]
    fn every_sample_is_in_the_file_or_counted() {
        let folder = wakescope_testing::Folder::new("samples");
        let path = folder.join("samples.csv");
        let mut samples =
            SampleFile::begin(File::create(&path).unwrap(), Quantity::WakeupLatency).unwrap();
        for i in 0..10_000 {
            samples.add(sample(0, i));
        }
        let unsaved = samples.close();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 10_001);
        assert_eq!(text.lines().last(), Some("0,9999,7"));
        assert!(unsaved.cause.is_none() && unsaved.lost.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_counted_by_cpu() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            wakescope_testing::skip("what_does_not_fit_is_counted_by_cpu", "there is no /dev/full");
            return;
        }
        // It takes nothing from the very first write on.
        let open = || File::options().write(true).open(full).unwrap();
        assert!(SampleFile::begin(open(), Quantity::WakeupLatency).is_err());
        let mut samples = SampleFile {
            file: open(),
            block: Vec::new(),
            in_block: BTreeMap::new(),
            written_bytes: 0,
            left_free: 0,
            fault: None,
            lost: BTreeMap::new(),
        };
        for i in 0..20_000 {
            samples.add(sample(u32::from(i % 4 == 0), i));
        }
        let unsaved = samples.close();
        assert_eq!(unsaved.lost, BTreeMap::from([(0, 15_000), (1, 5_000)]));
        assert!(unsaved.cause.unwrap().starts_with("samples.csv: "));
    }
}
