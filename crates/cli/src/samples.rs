//! The file of all samples, `samples.csv`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use wakescope_core::run::Run;
use wakescope_core::source::Quantity;
use wakescope_core::units::grouped;
use wakescope_formats::export::jsonl::columns;
use wakescope_probe::measurement::{SavedSample, Unsaved};
use wakescope_sys::file::room_beside;

/// Samples are written in blocks of about this size.
const BLOCK: usize = 64 << 10;
/// So much of the disk is left free for the record and for other programs, bytes; but at most a quarter of what
/// was free at the beginning, and at least room for the record.
const LEFT_FREE: u64 = 16 << 20;
/// A record is seldom longer than this for each of its CPUs, bytes: those of busy machines have 20 to 120 kB.
const RECORD_OF_CPU: u64 = 128 << 10;

/// What samples are of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SamplesOf {
    quantity: Quantity,
    /// How many CPUs are measured.
    cpus: u64,
}

impl SamplesOf {
    /// Those of a run that begins.
    pub(crate) fn run(run: &Run) -> Self {
        Self { quantity: run.quantity(), cpus: run.plan.cpus.len() as u64 }
    }

    /// What the record of the run needs beside them, bytes: the last version stays until the next is written.
    fn room_for_record(self) -> u64 {
        self.cpus.max(1).saturating_mul(2 * RECORD_OF_CPU)
    }

    /// How much to leave where so much is free, bytes.
    ///
    /// # Errors
    /// If the samples would have no room beside the record.
    fn left_free(self, free: u64) -> io::Result<u64> {
        let for_record = self.room_for_record();
        if free < for_record.saturating_add(BLOCK as u64) {
            let [free, for_record] = [free, for_record].map(|bytes| grouped(bytes / 1_000));
            let why =
                format!("{free} kB are free, and the record of the run needs {for_record} kB");
            return Err(io::Error::new(io::ErrorKind::StorageFull, why));
        }
        Ok(LEFT_FREE.min(free / 4).max(for_record))
    }
}

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
    /// Begins a file that was just made, with its head.
    ///
    /// # Errors
    /// If there is too little room beside it for the record of the run, or it cannot be written.
    pub(crate) fn begin(file: File, of: SamplesOf) -> io::Result<Self> {
        let left_free = room_beside(&file).map_or(Ok(0), |room| of.left_free(room.bytes))?;
        let mut samples = Self {
            file,
            block: [columns(of.quantity), "\n"].concat().into_bytes(),
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

    const OF: SamplesOf = SamplesOf { quantity: Quantity::WakeupLatency, cpus: 2 };

    #[test]
    fn room_for_two_records_is_left_or_no_sample_is_written() {
        const KIB: u64 = 1 << 10;
        for (cpus, free, want) in [
            // A disk of 300 kB: samples took what the record needed in the end.
            (1, 280 * KIB, None),
            (1, 320 * KIB, Some(256 * KIB)),
            (0, 320 * KIB, Some(256 * KIB)),
            (2, 320 * KIB, None),
            (2, 576 * KIB, Some(512 * KIB)),
            (2, 4096 * KIB, Some(1024 * KIB)),
            (2, 1 << 40, Some(LEFT_FREE)),
            (2, u64::MAX, Some(LEFT_FREE)),
            (128, 1 << 40, Some(2 * LEFT_FREE)),
            (u64::MAX, 1 << 40, None),
        ] {
            let got = SamplesOf { cpus, ..OF }.left_free(free);
            assert_eq!(got.as_ref().ok(), want.as_ref(), "{cpus} CPUs, {free} bytes: {got:?}");
        }
        let refused = OF.left_free(300_000).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert_eq!(refused.to_string(), "300 kB are free, and the record of the run needs 524 kB");
    }

    fn sample(cpu: u32, expiry_ns: u64) -> SavedSample {
        SavedSample { cpu, expiry_ns, wakeup_latency_ns: 7 }
    }

    #[test]
    fn every_sample_is_in_the_file_or_counted() {
        let folder = wakescope_testing::Folder::new("samples");
        let path = folder.join("samples.csv");
        let mut samples = SampleFile::begin(File::create(&path).unwrap(), OF).unwrap();
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
        assert!(SampleFile::begin(open(), OF).is_err());
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
