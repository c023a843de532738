//! Files that were damaged at random: an error or a whole run, never a panic, and never long.
//!
//! `FUZZ_CASES` sets how many; the seed of a failure is printed and kept.

use std::io::{BufReader, Read};

use proptest::prelude::*;
use proptest::sample::Index;
use wakescope_core::run::Run;

use super::super::*;
use super::{files, read_as};

/// What can become of a file.
#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Cut(Index),
    Drop(Index),
    Double(Index),
    Swap(Index, Index),
    Number(Index, String),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(i, b)| Damage::Flip(i, b)),
        at().prop_map(Damage::Cut),
        at().prop_map(Damage::Drop),
        at().prop_map(Damage::Double),
        (at(), at()).prop_map(|(i, j)| Damage::Swap(i, j)),
        (at(), "(0|1|-1|nan|999999|1000000|4294967296|9223372036854775807|18446744073709551615|1e999|9{40})")
            .prop_map(|(i, n)| Damage::Number(i, n)),
    ]
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let mut lines: Vec<Vec<u8>> =
            bytes.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        match self {
            Self::Flip(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] ^= byte;
                return;
            }
            Self::Cut(at) => {
                bytes.truncate(at.index(bytes.len()));
                return;
            }
            Self::Drop(at) => {
                lines.remove(at.index(lines.len()));
            }
            Self::Double(at) => {
                let at = at.index(lines.len());
                lines.insert(at, lines[at].clone());
            }
            Self::Swap(a, b) => {
                let (a, b) = (a.index(lines.len()), b.index(lines.len()));
                lines.swap(a, b);
            }
            Self::Number(at, number) => {
                let starts: Vec<usize> = (0..bytes.len())
                    .filter(|&i| {
                        bytes[i].is_ascii_digit() && (i == 0 || !bytes[i - 1].is_ascii_digit())
                    })
                    .collect();
                if starts.is_empty() {
                    return;
                }
                let start = starts[at.index(starts.len())];
                let length = bytes[start..].iter().take_while(|b| b.is_ascii_digit()).count();
                bytes.splice(start..start + length, number.bytes());
                return;
            }
        }
        *bytes = lines.concat();
    }
}

fn cases() -> u32 {
    // Read when the tests are built: nothing in this crate looks at its environment.
    option_env!("FUZZ_CASES").and_then(|n| n.parse().ok()).unwrap_or(500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn damaged_files_are_whole_runs_or_errors(
        which in any::<Index>(),
        damages in prop::collection::vec(damage(), 1..5),
    ) {
        let all = files::all();
        let (format, mut bytes) = all[which.index(all.len())].clone();
        for damage in &damages {
            damage.to(&mut bytes);
        }
        let _ = detect(&bytes);
        match read_as(format, &bytes) {
            Ok(runs) => {
                prop_assert!(!runs.is_empty());
                for Imported { run, .. } in runs {
                    prop_assert!(Run::from_json(run.to_json().as_bytes()).is_ok());
                    let _ = crate::text::report(&run, crate::style::Style::default());
                }
            }
            Err(e) => prop_assert!(!e.why.is_empty()),
        }
    }

    #[test]
    fn any_bytes_are_whole_runs_or_errors(
        which in any::<Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let (_, format) = Format::ALL[which.index(Format::ALL.len())];
        let _ = (detect(&bytes), read_as(format, &bytes));
    }

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
