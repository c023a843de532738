//! What a file is, by how it begins.

use super::Format;
use super::frame::unframed_text;
use super::rt_tests;

/// What the first bytes of a file say about the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A format that is read.
    Known(Format),
    /// Something that is known not to be readable as it is: what, and what to do.
    Refused(&'static str, &'static str),
    /// Not known.
    Unknown,
}

/// How many bytes [`detect`] wants to see, unless the file is shorter.
pub const HEAD_BYTES: usize = 64 << 10;

/// Files that are packed, or of other kinds, by their first bytes.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (b"\x1f\x8b", "it is compressed with gzip", "unpack it first: gunzip FILE"),
    (b"\xfd7zXZ\0", "it is compressed with xz", "unpack it first: unxz FILE"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd", "unpack it first: unzstd FILE"),
    (
        b"BZh",
        "it is compressed with bzip2",
        "unpack it first: bunzip2 FILE; for an archive of rteval: tar xjf FILE, then import its summary.xml",
    ),
    (b"\x04\x22\x4d\x18", "it is compressed with lz4", "unpack it first: unlz4 FILE"),
    (b"PK\x03\x04", "it is a zip archive", "unpack it first: unzip FILE"),
    (b"\xff\xfe", "its text is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\xfe\xff", "its text is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
    (
        b"\x89HDF",
        "it is HDF5, in which jitterdebugger omits the last samples",
        "import the samples.raw that it was made from",
    ),
    (
        b"PERFILE2",
        "it is perf's recording, not its table",
        "import what this prints: perf sched latency -i FILE",
    ),
];

/// What a file that begins with `head` is.
pub fn detect(head: &[u8]) -> Head {
    if let Some((_, what, remedy)) = MAGIC.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Head::Refused(what, remedy);
    }
    if is_raw(head) {
        return Head::Known(Format::JitterdebuggerRaw);
    }
    let pairs = head.chunks_exact(2).take(64);
    if head.len() >= 4
        && (pairs.clone().all(|p| p[0] == 0 && p[1] != 0)
            || pairs.clone().all(|p| p[1] == 0 && p[0] != 0))
    {
        return Head::Refused(
            "its text is UTF-16 without a mark",
            "convert it: iconv -f UTF-16LE -t UTF-8 FILE",
        );
    }
    // A tarball has its mark behind the first name.
    if head.get(257..262) == Some(b"ustar") {
        return Head::Refused("it is a tar archive", "unpack it first: tar xf FILE");
    }
    if head.contains(&0) {
        return Head::Unknown;
    }
    // A head may end in the middle of a character.
    let text = String::from_utf8_lossy(head);
    if let Some(refused) =
        rt_tests::of_command(command(&text)).or_else(|| rt_tests::of_lines(&text))
    {
        return Head::Refused(refused.why, refused.remedy);
    }
    of_text(&text).map_or(Head::Unknown, Head::Known)
}

/// The command line that the JSON of rt-tests states.
fn command(head: &str) -> &str {
    if !head.contains("\"rt_test_version") {
        return "";
    }
    let after = head.split_once("\"cmdline").map_or("", |(_, after)| after);
    after.split('\n').next().unwrap_or_default().split('"').nth(2).unwrap_or_default()
}

/// Records of 28 bytes: a thread, a time with its nanoseconds, a value. In zeroes is no time.
fn is_raw(head: &[u8]) -> bool {
    let mut records = head.chunks_exact(28);
    let ok = |r: &[u8]| super::jitterdebugger::is_record(r);
    records.len() > 0 && records.by_ref().take(1_000).all(ok)
}

fn of_text(head: &str) -> Option<Format> {
    let head = head.trim_start_matches('\u{feff}');
    let start = head.trim_start();
    if start.starts_with('{') {
        return of_json(start);
    }
    if start.starts_with("<?xml") || start.starts_with("<rteval") {
        return head.contains("<rteval").then_some(Format::Rteval);
    }
    let head = unframed_text(head);
    json_in(&head).or_else(|| of_lines(&head))
}

/// JSON that something else stands before, as when it was copied from a terminal.
fn json_in(head: &str) -> Option<Format> {
    let lines = head.lines().map(|line| line.as_ptr() as usize - head.as_ptr() as usize);
    let mut starts = lines.filter(|&at| head[at..].starts_with('{'));
    of_json(&head[starts.next()?..])
}

/// By lines without their frames.
fn of_lines(head: &str) -> Option<Format> {
    let has_line = |is: &dyn Fn(&str) -> bool| head.lines().any(is);
    let begins = |with: &str| has_line(&|line| line.starts_with(with));
    if begins("# RTLA timerlat histogram") {
        Some(Format::Timerlat)
    } else if begins("# RTLA osnoise histogram") {
        Some(Format::Osnoise)
    } else if begins("# Histogram") && !begins("#[Histogram") {
        Some(Format::CyclictestText)
    } else if begins("#[Histogram log format version") || has_line(&is_interval) {
        Some(Format::HdrLog)
    } else if has_line(&is_percentile_head) {
        Some(Format::HdrPercentiles)
    } else if begins("oslat V") || has_line(&is_oslat_frequency) {
        Some(Format::OslatText)
    } else if has_line(&|l| l.contains("percentiles (usec) runtime")) {
        Some(Format::SchbenchText)
    } else if has_line(&|l| l.contains("stress-ng") && l.contains(" cyclic:")) {
        Some(Format::StressNg)
    } else if has_line(&|l| l.contains("| Switches |") || l.contains("|  Count   |")) {
        Some(Format::PerfSched)
    } else if has_line(&is_sample) {
        Some(Format::CyclictestVerbose)
    } else if has_line(&|l| l.starts_with("T:") && l.contains(" C:")) {
        Some(Format::CyclictestText)
    } else if head.lines().find(|line| !line.is_empty()).is_some_and(is_tenth) {
        Some(Format::Realfeel)
    } else {
        None
    }
}

fn of_json(head: &str) -> Option<Format> {
    // A run record may hold anybody's words.
    if head.contains("\"wakescope.") {
        return None;
    }
    if head.contains("\"rt_test_version:\"") || head.contains("\"rt_test_version\"") {
        let program = command(head).split_ascii_whitespace().next().unwrap_or_default();
        return match program.rsplit('/').next() {
            Some("oslat") => Some(Format::OslatJson),
            // wakescope's own files begin with the same word.
            Some("cyclictest") => Some(Format::CyclictestJson),
            _ => None,
        };
    }
    if head.contains("\"wakeup_latency_pct") {
        Some(Format::SchbenchJson)
    } else if is_jitterdebugger(head) {
        Some(Format::JitterdebuggerJson)
    } else {
        None
    }
}

/// With facts about the machine, or, of older versions, results of CPUs alone.
fn is_jitterdebugger(head: &str) -> bool {
    let facts = head.contains("\"cpus_online\"") && head.contains("\"resolution_in_ns\"");
    let bare: String = head.chars().filter(|c| !c.is_ascii_whitespace()).take(40).collect();
    let results = bare.strip_prefix("{\"cpu\":{\"").and_then(|rest| rest.split_once('"'));
    facts
        || results.is_some_and(|(cpu, rest)| {
            super::lines::number(cpu).is_some() && rest.starts_with(":{\"histogram\":{")
        })
}

/// A line of `cyclictest -v`: the second and third number are at least eight characters wide.
fn is_sample(line: &str) -> bool {
    let parts: Vec<&str> = line.split(':').collect();
    let number = |text: &&str| super::lines::number(text.trim()).is_some();
    parts.len() == 3 && parts[1..].iter().all(|p| p.len() >= 8) && parts[..2].iter().all(number)
}

/// A line of HdrHistogram's interval log: three times and a histogram, whose encoding begins alike.
fn is_interval(line: &str) -> bool {
    let mut fields = line.rsplit(',');
    let packed = fields.next().is_some_and(|text| text.starts_with("HISTF"));
    let times: Vec<&str> = fields.by_ref().take(3).collect();
    packed && times.len() == 3 && times.iter().all(|t| super::lines::thousandths(t).is_some())
}

/// oslat's line of frequencies, which are of the CPUs up to version 1.10.
fn is_oslat_frequency(line: &str) -> bool {
    (line.starts_with("Counter Freq:") || line.starts_with("CPU Freq:")) && line.ends_with("(Mhz)")
}

/// The head of HdrHistogram's percentile distribution; implementations differ in the blanks.
pub(super) fn is_percentile_head(line: &str) -> bool {
    let words = line.split_ascii_whitespace();
    words.eq(["Value", "Percentile", "TotalCount", "1/(1-Percentile)"])
}

/// A line of realfeel: a bucket with one decimal, and a count.
fn is_tenth(line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [bucket, count] = words.as_slice() else { return false };
    let parts = bucket.split_once('.');
    let whole = |text: &str| super::lines::number(text).is_some();
    whole(count) && parts.is_some_and(|(a, b)| whole(a) && whole(b) && b.len() == 1)
}
