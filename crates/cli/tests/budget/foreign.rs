//! Hostile files of other programs: many threads, wide values, packed zeroes, what contradicts itself.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::{Bench, MEMORY, STEPS, Want};

const UNIT_US: &str = " --unit us";

#[test]
fn every_text_of_another_program() {
    let bench = Bench::new("budget-text");
    for (name, content, options) in [
        ("threads.txt", cyclictest(8_000, 1), ""),
        ("square.txt", cyclictest(680, 680), ""),
        ("lines.txt", lines(8_192), ""),
        ("rtla.txt", rtla(600, 600), ""),
        ("oslat.txt", oslat(470, 1_000), ""),
        ("schbench.txt", schbench(4_000), ""),
        ("stress-ng.txt", stress_ng(), ""),
        ("realfeel.txt", realfeel(40_000), UNIT_US),
        ("perf.txt", perf(29_000), ""),
        ("distribution.hgrm", hgrm(25_000), ""),
    ] {
        bench.write(name, content.as_bytes());
        bench.check_verbs(name, options, Want::Read);
    }
}

#[test]
fn every_structured_file_of_another_program() {
    let bench = Bench::new("budget-structured");
    for (name, content, want) in [
        ("cyclictest.json", cyclictest_json(330), Want::Read),
        ("jitterdebugger.json", jitterdebugger(330), Want::Read),
        ("oslat.json", oslat_json(800), Want::Read),
        ("rteval.xml", rteval(155), Want::Read),
        ("attributes.xml", attributes(80_000), Want::Any),
        ("entities.xml", entities(80_000), Want::Any),
        ("deep.json", deep(450_000), Want::Any),
    ] {
        bench.write(name, content.as_bytes());
        bench.check_verbs(name, "", want);
    }
}

#[test]
fn text_that_never_ends() {
    let bench = Bench::new("budget-lines");
    let head = "# Histogram\n";
    for (name, content) in [
        ("quotes.txt", ">".repeat(999_000) + "\n"),
        ("brackets.txt", "[".repeat(999_000) + "\n"),
        ("names.txt", head.to_owned() + &"[a]".repeat(300_000) + "\n"),
        ("escapes.txt", head.to_owned() + &"\x1b[".repeat(400_000) + "\n"),
        ("digits.txt", head.to_owned() + &"1".repeat(900_000)),
        ("words.txt", head.to_owned() + &"1 ".repeat(400_000) + "\n"),
        ("newlines.txt", head.to_owned() + &"\n".repeat(900_000)),
    ] {
        bench.write(name, content.as_bytes());
        bench.check_verbs(name, "", Want::Any);
    }
}

#[test]
fn samples_of_many_threads_and_of_any_size() {
    let bench = Bench::new("budget-samples");
    let line = |thread: u64, cycle: u64, value: u64| format!("{thread}:{cycle:8}:{value:8}\n");
    let late: String = (0..8_192).map(|t| line(t, 0, 10_u64.pow(12))).collect();
    bench.write("late.txt", late.as_bytes());
    bench.check_verbs("late.txt", " --unit us", Want::Read);
    // A row for each µs up to the latest, and a column for each thread.
    bench.check("report late.txt --format cyclictest --unit us", 300, STEPS);
    bench.check("report late.txt --format cyclictest --unit us --sparse", 300, Want::Read);
    let spread: String = (0..40_000).map(|i| line(i / 50, i % 50, 1 << (i % 50))).collect();
    bench.write("spread.txt", spread.as_bytes());
    bench.check_verbs("spread.txt", " --unit ns", Want::Read);
    // Each has a course of its own, a slot for each second of the run.
    let record = |i: u64| {
        let thread = u32::try_from(i % 8_192).unwrap();
        let (seconds, value) = (1 + i / 8_192 * 1_000_000 + i % 8_192, (1_u64 << 41) - i);
        let mut bytes = thread.to_le_bytes().to_vec();
        [seconds, 0, value].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    };
    let raw: Vec<u8> = (0..35_000).flat_map(record).collect();
    bench.write("samples.raw", &raw);
    bench.check_verbs("samples.raw", " --unit ns", MEMORY);
}

#[test]
fn packed_histograms() {
    let bench = Bench::new("budget-packed");
    for (name, intervals, want) in [
        // 5.5 KB with four million buckets.
        ("buckets.hlog", vec![interval("", 5, &[2; 4_000_000], 1)], MEMORY),
        ("zeroes.hlog", vec![interval("", 3, &[0; 60_000_000], 1)], STEPS),
        ("many-zeroes.hlog", vec![interval("", 3, &[0; 20_000_000], 1); 30], STEPS),
        ("tags.hlog", tags(250), MEMORY),
        // Each interval must not pass through all buckets before it.
        ("intervals.hlog", intervals(6_000), Want::Read),
    ] {
        let log = format!(
            "#[Histogram log format version 1.3]\n#[Unit: ns]\n\"StartTimestamp\",\"Interval_Length\",\
             \"Interval_Max\",\"HdrHistogramV2-compressed-base64\"\n{}",
            intervals.concat()
        );
        bench.write(name, log.as_bytes());
        bench.check_verbs(name, "", want);
    }
}

fn tags(count: usize) -> Vec<String> {
    (0..count).map(|i| interval(&format!("Tag=t{i},"), 3, &[2; 40_000], 1)).collect()
}

/// One with many buckets, and many with few.
fn intervals(count: usize) -> Vec<String> {
    let few = interval("", 5, &[2; 10], 1);
    [interval("", 5, &[2; 200_000], 1)].into_iter().chain(vec![few; count]).collect()
}

/// An interval of an `.hlog` whose counts are these bytes: 2 is a sample, 0 an empty bucket.
fn interval(tag: &str, digits: u32, counts: &[u8], ratio: u64) -> String {
    let mut plain = Vec::new();
    for word in [0x1c84_9313, u32::try_from(counts.len()).unwrap(), 0, digits] {
        plain.extend(word.to_be_bytes());
    }
    let highest = (1_u64 << 62) - 1;
    for word in [1, highest, (ratio as f64).to_bits()] {
        plain.extend(word.to_be_bytes());
    }
    plain.extend(counts);
    let mut zipped = ZlibEncoder::new(Vec::new(), Compression::best());
    zipped.write_all(&plain).unwrap();
    let zipped = zipped.finish().unwrap();
    let mut packed = 0x1c84_9314_u32.to_be_bytes().to_vec();
    packed.extend(u32::try_from(zipped.len()).unwrap().to_be_bytes());
    packed.extend(zipped);
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(0) as u64;
    let max = lower_edge(last, digits);
    let max_ms = format!("{}.{:03}", max / 1_000_000, max / 1_000 % 1_000);
    format!("{tag}0.000,1.000,{max_ms},{}\n", base64(&packed))
}

/// Where a bucket of HdrHistogram begins.
fn lower_edge(index: u64, digits: u32) -> u64 {
    let half = (2 * 10_u64.pow(digits)).next_power_of_two() / 2;
    match index / half {
        0 | 1 => index,
        octave => (index % half + half) << (octave - 1),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| usize::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        text.extend((0..4).map(|at| match at <= three.len() {
            true => char::from(DIGITS[bits >> (18 - 6 * at) & 63]),
            false => '=',
        }));
    }
    text
}

/// A histogram in which each thread has a sample in each row.
fn cyclictest(threads: usize, rows: usize) -> String {
    let of_each =
        |name: &str, value: usize| format!("# {name}:{}\n", format!(" {value}").repeat(threads));
    let all: String = (0..rows).map(|row| format!("{row}{}\n", " 1".repeat(threads))).collect();
    let (last, mean) = (rows - 1, (rows - 1) / 2);
    format!(
        "# Histogram\n{all}{}{}{}{}",
        of_each("Min Latencies", 0),
        of_each("Avg Latencies", mean),
        of_each("Max Latencies", last),
        of_each("Histogram Overflows", 0)
    )
}

fn lines(threads: usize) -> String {
    let line = |t| {
        format!(
            "T:{t:2} ({t}) P:80 I:9999999999 C: 9 Min: 1 Act: 1 Avg: 1111111112 Max: 9999999999\n"
        )
    };
    (0..threads).map(line).collect()
}

fn rtla(columns: usize, rows: usize) -> String {
    let head: String = (0..columns).map(|cpu| format!(" IRQ-{cpu}")).collect();
    let all: String = (0..rows).map(|row| format!("{row}{}\n", " 1".repeat(columns))).collect();
    let of_each =
        |name: &str, value: &str| format!("{name}:{}\n", format!(" {value}").repeat(columns));
    format!(
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:10\n\
         Index{head}\n{all}{}{}{}{}{}",
        of_each("over", "0"),
        of_each("count", &rows.to_string()),
        of_each("min", "0"),
        of_each("avg", &format!("{:.2}", (rows - 1) as f64 / 2.0)),
        of_each("max", &(rows - 1).to_string())
    )
}

fn oslat(cpus: usize, rows: usize) -> String {
    let numbers = (0..cpus).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(" ");
    let of_each = |name: &str, value: String| format!("{name}:\t{}\n", vec![value; cpus].join(" "));
    let row = |row| {
        let last = if row == rows { " (including overflows)" } else { "" };
        format!("{row:03} (us):\t{}{last}\n", vec!["1"; cpus].join(" "))
    };
    let max = rows as f64 - 0.5;
    format!(
        "oslat V 2.80\nCore:\t{numbers}\n{}{}{}{}{}{}",
        "Counter Freq:\t2000 (Mhz)\n",
        (1..=rows).map(row).collect::<String>(),
        of_each("Minimum", "0.0".into()),
        of_each("Average", format!("{:.3}", (rows + 1) as f64 / 2.0)),
        of_each("Maximum", format!("{max:.3}")),
        of_each("Duration", "10.000".into())
    )
}

fn schbench(tables: usize) -> String {
    "Wakeup Latencies percentiles (usec) runtime 10 (s) (1000000000000000 total samples)\n\
     \t  50.0th: 5          (500000000000001 samples)\n\
     \t* 99.0th: 1000000    (499999999999998 samples)\n\t  min=1, max=4000000000000\n"
        .repeat(tables)
}

fn stress_ng() -> String {
    let head = "stress-ng: info:  [1] cyclic: ";
    format!(
        "{head}sched SCHED_FIFO: 100000 ns delay, 9223372036854775808 samples\n\
         {head}  mean: 10.00 ns, mode: 10 ns\n{head}  min: 1 ns, max: 1000000000000000 ns, std.dev. 1.00\n{}",
        format!("{head}x\n").repeat(25_000)
    )
}

fn realfeel(rows: usize) -> String {
    (0..rows).map(|row| format!("{}.{} 18446744073\n", row / 10, row % 10)).collect()
}

fn perf(tasks: usize) -> String {
    let head = "  Task |   Runtime ms  |  Count   | Avg delay ms | Max delay ms |\n";
    let all = "t|1 ms|1| avg:9.9 ms|max:9.9 ms\n".repeat(tasks);
    format!("{head}{all}  TOTAL: |      1 ms |  {tasks} |\n")
}

fn hgrm(rows: usize) -> String {
    let count = rows as f64;
    let all: String = (1..=rows).map(|i| format!("{i} {:.9} {i} 1\n", i as f64 / count)).collect();
    format!(
        "Value Percentile TotalCount 1/(1-Percentile)\n\n{all}#[Mean = {:.3}, StdDeviation = {:.3}]\n\
         #[Max = {rows}, Total count = {rows}]\n#[Unit: us]\n",
        (count + 1.0) / 2.0,
        ((count * count - 1.0) / 12.0).sqrt()
    )
}

fn rows_of_json(rows: usize) -> String {
    (0..rows).map(|row| format!("\"{row}\":1")).collect::<Vec<_>>().join(",")
}

fn threads_of_json(threads: usize, of_each: impl Fn(usize) -> String) -> String {
    (0..threads).map(|i| format!("\"{i}\":{{{}}}", of_each(i))).collect::<Vec<_>>().join(",")
}

/// As many threads as rows.
fn cyclictest_json(threads: usize) -> String {
    let (rows, last) = (rows_of_json(threads), threads - 1);
    let all = threads_of_json(threads, |cpu| {
        format!(
            "\"histogram\":{{{rows}}},\"cycles\":{threads},\"min\":0,\"max\":{last},\"avg\":{:.2},\
             \"cpu\":{cpu}",
            last as f64 / 2.0
        )
    });
    format!(
        "{{\"cmdline:\":\"cyclictest --json\",\"rt_test_version:\":\"2.6\",\"num_threads\":{threads},\
         \"resolution_in_ns\":0,\"thread\":{{{all}}}}}"
    )
}

fn jitterdebugger(threads: usize) -> String {
    let (rows, last) = (rows_of_json(threads), threads - 1);
    let all = threads_of_json(threads, |_| {
        format!(
            "\"histogram\":{{{rows}}},\"count\":{threads},\"min\":0,\"max\":{last},\"avg\":{:.2}",
            last as f64 / 2.0
        )
    });
    format!(
        "{{\"version\":3,\"sysinfo\":{{\"cpus_online\":\"1\",\"resolution_in_ns\":1000}},\
         \"cpu\":{{{all}}}}}"
    )
}

fn oslat_json(threads: usize) -> String {
    let rows = (1..=100).map(|row| format!("\"{row}\":1")).collect::<Vec<_>>().join(",");
    let all = threads_of_json(threads, |cpu| {
        format!(
            "\"cpu\":{cpu},\"min\":0,\"avg\":50.5,\"max\":99,\"duration\":1.0,\"histogram\":{{{rows}}}"
        )
    });
    format!(
        "{{\"cmdline:\":\"oslat -b 100\",\"rt_test_version:\":\"2.8\",\"num_threads\":{threads},\
         \"thread\":{{{all}}}}}"
    )
}

/// As many cores as buckets.
fn rteval(cores: usize) -> String {
    let histogram = |count: usize| {
        let bucket = |i| format!("<bucket index=\"{i}\" value=\"{count}\"/>");
        let (samples, last) = (count * cores, cores - 1);
        format!(
            "<histogram>{}</histogram><statistics><samples>{samples}</samples>\
             <minimum unit=\"us\">0</minimum><maximum unit=\"us\">{last}</maximum>\
             <mean unit=\"us\">{}</mean></statistics>",
            (0..cores).map(bucket).collect::<String>(),
            last as f64 / 2.0
        )
    };
    let core = |cpu| format!("<core id=\"{cpu}\" priority=\"9\">{}</core>", histogram(1));
    format!(
        "<?xml version=\"1.0\"?><rteval version=\"3\"><Measurements><cyclictest \
         command_line=\"cyclictest -i100\"><system>{}</system>{}</cyclictest></Measurements></rteval>\n",
        histogram(cores),
        (0..cores).map(core).collect::<String>()
    )
}

fn attributes(count: usize) -> String {
    let all: String = (0..count).map(|i| format!(" a{i}=\"\"")).collect();
    format!("<?xml version=\"1.0\"?><rteval{all}></rteval>\n")
}

fn entities(count: usize) -> String {
    format!(
        "<?xml version=\"1.0\"?><!DOCTYPE rteval [<!ENTITY a \"{}\">]><rteval>{}</rteval>\n",
        "x".repeat(1_000),
        "&a;".repeat(count)
    )
}

fn deep(depth: usize) -> String {
    format!(
        "{{\"rt_test_version:\":\"2\",\"cmdline:\":\"cyclictest\",\"x\":{}{}}}",
        "[".repeat(depth),
        "]".repeat(depth)
    )
}
