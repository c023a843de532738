//! Messages of `io.prometheus.client` (Prometheus' metrics.proto), each behind its length: the only form
//! that carries native histograms.
//!
//! A native histogram of schema 4 has 16 buckets an octave, as ours, but their edges are powers of
//! 2^(1/16) of a second, and ours are a 16th of an octave of nanoseconds apart. So no edge is the same but
//! that of the zero bucket, which holds the waits below 128 ns. The waits of each of our buckets go to the
//! bucket with the longest wait that they can have been. So each is shown as at most 4.3 % shorter than it
//! was (the width of that bucket, downwards) and at most 10.9 % longer (that of both, upwards).

use std::io::{self, Write};

use super::{Family, Kind, Value, cumulative, inclusive, label, octaves, seconds};
use wakescope_core::histogram::Bucket;
use wakescope_core::watch::Waits;
use wakescope_core::watch::scale::edges_of;

/// 2^4 buckets an octave.
const SCHEMA: i32 = 4;

/// The bucket of all that is beyond the largest number that a bucket can have as its edge.
const ENDLESS: i32 = (1_024 << SCHEMA) + 1;

/// Writes a family, behind its length.
pub(super) fn write(family: &Family, out: &mut impl Write) -> io::Result<()> {
    let message = message(family);
    let mut length = Message::default();
    length.varint(message.0.len() as u64);
    out.write_all(&length.0)?;
    out.write_all(&message.0)
}

/// `MetricFamily`.
fn message(family: &Family) -> Message {
    let Family { name, kind, help, samples } = family;
    // Values of the enumeration `MetricType`.
    let (suffix, number) = match kind {
        Kind::Counter => ("_total", 0),
        Kind::Gauge => ("", 1),
        Kind::Histogram => ("", 4),
    };
    let mut out = Message::default();
    out.text(1, &format!("{name}{suffix}"));
    out.text(2, help);
    out.unsigned(3, number);
    for sample in samples {
        let mut metric = Message::default();
        for (name, value) in &sample.labels {
            let mut pair = Message::default();
            pair.text(1, name);
            pair.text(2, &label(value));
            metric.message(1, &pair);
        }
        match (&sample.value, kind) {
            (Value::Waits(waits), _) => metric.message(7, &histogram(waits)),
            (Value::Number(number), Kind::Counter) => metric.message(3, &value(*number as f64)),
            (Value::Number(number), _) => metric.message(2, &value(*number as f64)),
            (Value::Time(ns), Kind::Counter) => metric.message(3, &value(seconds(*ns))),
            (Value::Time(ns), _) => metric.message(2, &value(seconds(*ns))),
        }
        out.message(4, &metric);
    }
    out
}

/// `Counter` or `Gauge`.
fn value(value: f64) -> Message {
    let mut out = Message::default();
    out.double(1, value);
    out
}

/// `Histogram`, both classic and native.
fn histogram(waits: &Waits) -> Message {
    let buckets = waits.histogram.buckets();
    let mut out = Message::default();
    out.unsigned(1, waits.count);
    out.double(2, seconds(waits.sum_ns));
    for (edge, count) in cumulative(buckets, octaves()) {
        let mut bucket = Message::default();
        bucket.unsigned(1, count);
        bucket.double(2, seconds(inclusive(edge)));
        out.message(3, &bucket);
    }
    let (_, least) = edges_of(0);
    let split = buckets.partition_point(|bucket| bucket.upper <= least);
    let (zero, rest) = buckets.split_at(split);
    out.signed(5, SCHEMA);
    out.double(6, seconds(inclusive(least)));
    out.unsigned(7, zero.iter().map(|bucket| bucket.count).sum());
    let (spans, counts) = spans(rest);
    for (offset, length) in spans {
        let mut span = Message::default();
        span.signed(1, offset);
        span.unsigned(2, length);
        out.message(12, &span);
    }
    let mut deltas = Message::default();
    let mut before = 0;
    for count in counts {
        deltas.difference(count, before);
        before = count;
    }
    out.message(13, &deltas);
    out
}

/// Where native buckets lie, and their counts: each span begins so many buckets behind the end of the one
/// before.
fn spans(buckets: &[Bucket]) -> (Vec<(i32, u64)>, Vec<u64>) {
    let mut spans: Vec<(i32, u64)> = Vec::new();
    let mut counts: Vec<u64> = Vec::new();
    // The index behind the last one.
    let mut next = 0;
    for bucket in buckets {
        let index = index(bucket);
        match (spans.last_mut(), counts.last_mut()) {
            (Some(_), Some(count)) if index < next => *count = count.saturating_add(bucket.count),
            (Some(span), Some(_)) if index == next => {
                span.1 += 1;
                counts.push(bucket.count);
            }
            _ => {
                spans.push((index - next, 1));
                counts.push(bucket.count);
            }
        }
        next = index + 1;
    }
    if spans.is_empty() {
        // By this a histogram without waits is known as a native one.
        spans.push((0, 0));
    }
    (spans, counts)
}

/// The native bucket with the longest wait that one of ours holds.
fn index(bucket: &Bucket) -> i32 {
    if bucket.upper == u64::MAX {
        return ENDLESS;
    }
    let exponent = seconds(inclusive(bucket.upper)).log2() * f64::from(1 << SCHEMA);
    #[allow(clippy::cast_possible_truncation)] // From -2^9 to 2^7.
    let index = exponent.ceil() as i32;
    index
}

/// A message of Protocol Buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(low_byte(value) | 0x80);
            value >>= 7;
        }
        self.0.push(low_byte(value));
    }

    /// `to - from` in the form of signed numbers: 0, -1, 1, -2, …
    fn difference(&mut self, to: u64, from: u64) {
        self.varint(match to.checked_sub(from) {
            Some(up) => up << 1,
            None => ((from - to) << 1) - 1,
        });
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn unsigned(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    fn signed(&mut self, field: u64, value: i32) {
        self.key(field, 0);
        let size = value.unsigned_abs().into();
        if value < 0 { self.difference(0, size) } else { self.difference(size, 0) }
    }

    fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn message(&mut self, field: u64, value: &Self) {
        self.bytes(field, &value.0);
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }
}

fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0] & 0x7f
}
