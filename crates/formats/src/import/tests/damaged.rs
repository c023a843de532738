//! Files that were damaged at random: an error or a whole run, never a panic, and never long.

use std::io::{BufReader, Read};

use proptest::prelude::*;
use wakescope_core::run::Run;
use wakescope_testing::fuzz;

use super::super::*;
use super::{files, read_as};

/// Reads a copy of a file of any format in every way in which a run is shown.
fn read_and_show(format: Format, bytes: &[u8]) {
    let _ = detect(bytes);
    match read_as(format, bytes) {
        Ok(runs) => {
            assert!(!runs.is_empty());
            for Imported { run, .. } in runs {
                assert!(Run::from_json(run.to_json().as_bytes()).is_ok());
                let _ =
                    wakescope_report::text::report(&run, wakescope_report::style::Style::default());
            }
        }
        Err(e) => assert!(!e.why.is_empty()),
    }
}

#[test]
fn fuzz_files_of_other_programs() {
    for (name, format) in Format::ALL {
        let (own, others): (Vec<_>, Vec<_>) =
            files::all().into_iter().partition(|(f, _)| *f == format);
        // Of a format that is only recognised there are none.
        let seeds = if own.is_empty() { others } else { own };
        let seeds: Vec<_> = seeds.into_iter().map(|(_, bytes)| bytes).collect();
        fuzz(name, &seeds, |bytes| read_and_show(format, bytes));
    }
}

proptest! {
    /// A histogram that is written and read again is the same.
    #[test]
    fn histograms_of_cyclictest_keep_every_sample(
        counts in prop::collection::vec((0_u64..50, 0_u64..50), 1..60),
        omit in any::<bool>(),
    ) {
        let mut text = String::from("# Histogram\n");
        let columns: [Vec<u64>; 2] = [
            counts.iter().map(|c| c.0).collect(),
            counts.iter().map(|c| c.1).collect(),
        ];
        for (row, (a, b)) in counts.iter().enumerate() {
            if !omit || a + b > 0 {
                text.push_str(&format!("{row:06} {a:06}\t{b:06}\n"));
            }
        }
        let of = |f: &dyn Fn(&[u64]) -> u64| format!("{:05} {:05}", f(&columns[0]), f(&columns[1]));
        let min = |c: &[u64]| c.iter().position(|&n| n > 0).unwrap_or(0) as u64;
        let max = |c: &[u64]| c.iter().rposition(|&n| n > 0).unwrap_or(0) as u64;
        let total = |c: &[u64]| c.iter().sum::<u64>();
        let mean = |c: &[u64]| {
            let sum: u64 = c.iter().zip(0..).map(|(&n, row)| n * row).sum();
            sum.checked_div(total(c)).unwrap_or(0)
        };
        if !omit {
            text.push_str(&format!("# Total: {}\n", of(&total)));
        }
        text.push_str(&format!("# Min Latencies: {}\n", of(&min)));
        text.push_str(&format!("# Avg Latencies: {}\n", of(&mean)));
        text.push_str(&format!("# Max Latencies: {}\n", of(&max)));
        text.push_str("# Histogram Overflows: 00000 00000\n");
        let run = read_as(Format::CyclictestText, text.as_bytes()).unwrap().remove(0).run;
        for (column, thread) in columns.iter().zip(&run.threads) {
            prop_assert_eq!(thread.woken.count, total(column));
            let read: Vec<(u64, u64)> =
                thread.woken.histogram.buckets().iter().map(|b| (b.lower / 1_000, b.count)).collect();
            let written: Vec<(u64, u64)> =
                (0..).zip(column.iter().copied()).filter(|&(_, n)| n > 0).collect();
            prop_assert_eq!(read, written);
        }
    }
}

/// JSON that was cut off after any of its lines is said to be, with what to do.
#[test]
fn json_that_breaks_off_is_said_to_be_truncated() {
    for (format, text) in
        [(Format::CyclictestJson, files::CYCLICTEST_JSON), (Format::OslatJson, files::OSLAT_JSON)]
    {
        for (kept, _) in text.trim_end().match_indices('\n') {
            let e = read_as(format, &text.as_bytes()[..kept]).unwrap_err();
            assert!(e.why.contains("the file is truncated"), "{format}, {kept} bytes: {e}");
            assert!(e.remedy.contains("copy it again"), "{format}, {kept} bytes: {}", e.remedy);
        }
    }
}

/// Files without end, of which none is held in memory.
#[test]
fn endless_files_are_given_up() {
    for (format, byte) in [
        (Format::CyclictestText, b'1'),
        (Format::CyclictestVerbose, b'1'),
        (Format::JitterdebuggerRaw, 0),
        (Format::HdrLog, b'A'),
        (Format::Timerlat, 0),
    ] {
        let mut from = BufReader::new(std::io::repeat(byte).take(1 << 40));
        let about = About { unit: Some(Unit::Us), ..About::default() };
        assert!(read(format, &mut from, &about).is_err(), "{format}");
    }
}
