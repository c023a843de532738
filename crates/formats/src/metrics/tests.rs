use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use wakescope_core::watch::counters::{Counters, Split};
use wakescope_core::watch::meter::{Meter, Reading};
use wakescope_core::watch::scale::{BUCKETS, edges_of};

use super::*;
use crate::export::prometheus::Format;

/// Waits in these buckets of the scale.
fn waits(counts: &[(usize, u64)]) -> Waits {
    let sum_ns = counts.iter().map(|&(index, count)| edges_of(index).0 * count).sum();
    let max_ns = counts.last().map_or(0, |&(index, _)| edges_of(index).0);
    let min_ns = counts.first().map_or(u64::MAX, |&(index, _)| edges_of(index).0);
    Meter::default().read(Reading { sum_ns, max_ns, min_ns, buckets: counts.to_vec() })
}

fn families() -> Vec<Family> {
    let sample = |cgroup: &str, waits| Sample {
        labels: vec![("cgroup", cgroup.to_owned()), ("from", "queued".into())],
        value: Value::Waits(waits),
    };
    let hostile = "/a\"} 1\nb{c=\"\\\u{202e}";
    vec![
        Family {
            name: "wakescope_wait_seconds",
            kind: Kind::Histogram,
            help: "Waits.",
            samples: vec![
                sample(hostile, waits(&[(0, 4), (60, 3), (61, 1), (200, 2), (BUCKETS - 1, 1)])),
                sample("(others)", Waits::default()),
            ],
        },
        Family::of("wakescope_missed_seconds", Kind::Counter, "Time.", Value::Time(1_000_000_007)),
        Family::of("wakescope_series", Kind::Gauge, "Series.", Value::Number(7)),
    ]
}

#[track_caller]
fn check(form: Form, want: &Expect) {
    let mut out = Vec::new();
    write(&families(), form, &mut out).unwrap();
    want.assert_eq(&match form {
        Form::Text(_) => String::from_utf8(out).unwrap(),
        Form::Protobuf => hex(&out),
    });
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(40).map(|line| line.iter().map(|b| format!("{b:02x}")).collect());
    lines.collect::<Vec<String>>().join("\n") + "\n"
}

/// Within a bucket Prometheus guesses where waits lie: an alert would state a wait that nobody had.
#[test]
fn alerts_count_waits_at_edges_of_buckets() {
    let alerts = include_str!("../../../../contrib/wakescope-alerts.yml");
    let rules = alerts.lines().filter(|line| !line.trim_start().starts_with('#'));
    let rules = rules.collect::<Vec<_>>().join("\n");
    assert!(!rules.contains("histogram_quantile"), "{rules}");
    let mut page = Vec::new();
    write(&families(), Form::Text(Format::Prometheus), &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let asked: Vec<&str> = rules.split("le=\"").skip(1).collect();
    assert!(!asked.is_empty(), "{rules}");
    for rest in asked {
        let (edge, _) = rest.split_once('"').unwrap();
        assert!(page.contains(&format!("le=\"{edge}\"")), "{edge}");
    }
}

#[test]
fn prometheus_text() {
    check(
        Form::Text(Format::Prometheus),
        &expect![[r##"
        # TYPE wakescope_wait_seconds histogram
        # HELP wakescope_wait_seconds Waits.
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="1.023e-06"} 4
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="2.047e-06"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="4.095e-06"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="8.191e-06"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="1.6383e-05"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="3.2767e-05"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="6.5535e-05"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.000131071"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.000262143"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.000524287"} 8
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.001048575"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.002097151"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.004194303"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.008388607"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.016777215"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.033554431"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.067108863"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.134217727"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.268435455"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="0.536870911"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="1.073741823"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="2.147483647"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="4.294967295"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="8.589934591"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="17.179869183"} 10
        wakescope_wait_seconds_bucket{cgroup="/a\"} 1�b{c=\"\\�",from="queued",le="+Inf"} 11
        wakescope_wait_seconds_sum{cgroup="/a\"} 1�b{c=\"\\�",from="queued"} 17.181383488
        wakescope_wait_seconds_count{cgroup="/a\"} 1�b{c=\"\\�",from="queued"} 11
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="1.023e-06"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="2.047e-06"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="4.095e-06"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="8.191e-06"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="1.6383e-05"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="3.2767e-05"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="6.5535e-05"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.000131071"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.000262143"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.000524287"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.001048575"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.002097151"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.004194303"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.008388607"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.016777215"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.033554431"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.067108863"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.134217727"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.268435455"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="0.536870911"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="1.073741823"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="2.147483647"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="4.294967295"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="8.589934591"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="17.179869183"} 0
        wakescope_wait_seconds_bucket{cgroup="(others)",from="queued",le="+Inf"} 0
        wakescope_wait_seconds_sum{cgroup="(others)",from="queued"} 0.000000000
        wakescope_wait_seconds_count{cgroup="(others)",from="queued"} 0
        # TYPE wakescope_missed_seconds_total counter
        # HELP wakescope_missed_seconds_total Time.
        wakescope_missed_seconds_total 1.000000007
        # TYPE wakescope_series gauge
        # HELP wakescope_series Series.
        wakescope_series 7
    "##]],
    );
}

/// It differs in its comments alone.
#[test]
fn openmetrics_text() {
    let [prometheus, openmetrics] = [Format::Prometheus, Format::OpenMetrics].map(|format| {
        let mut out = Vec::new();
        write(&families(), Form::Text(format), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    });
    let lines = |text: &str, leave_out: &str| {
        let kept = text.lines().filter(|line| !line.contains(leave_out));
        kept.map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(lines(&openmetrics, "# "), lines(&prometheus, "# "));
    expect![[r##"
        # TYPE wakescope_wait_seconds histogram
        # UNIT wakescope_wait_seconds seconds
        # HELP wakescope_wait_seconds Waits.
        wakescope_wait_seconds_sum{cgroup="/a\"} 1�b{c=\"\\�",from="queued"} 17.181383488
        wakescope_wait_seconds_count{cgroup="/a\"} 1�b{c=\"\\�",from="queued"} 11
        wakescope_wait_seconds_sum{cgroup="(others)",from="queued"} 0.000000000
        wakescope_wait_seconds_count{cgroup="(others)",from="queued"} 0
        # TYPE wakescope_missed_seconds counter
        # UNIT wakescope_missed_seconds seconds
        # HELP wakescope_missed_seconds Time.
        wakescope_missed_seconds_total 1.000000007
        # TYPE wakescope_series gauge
        # HELP wakescope_series Series.
        wakescope_series 7
        # EOF
    "##]]
    .assert_eq(&lines(&openmetrics, "_bucket{"));
}

#[test]
fn protobuf_messages() {
    check(
        Form::Protobuf,
        &expect![[r#"
        de060a1677616b6573636f70655f776169745f7365636f6e6473120657616974732e180422aa030a
        1c0a066367726f757012122f61227d2031efbfbd627b633d225cefbfbd0a0e0a0466726f6d120671
        75657565643af902080b1192fef4256f2e31401a0b080411dfcc2c65c029b13e1a0b080811bad1a9
        26e62bc13e1a0b08081127546807f92cd13e1a0b0808115e95c777822de13e1a0b080811f935f72f
        c72df13e1a0b08081147060f8ce92d013f1a0b0808116eee1abafa2d113f1a0b08081181e2205103
        2e213f1a0b0808118bdca39c072e313f1a0b080811905965c2092e413f1a0b080a11121846d50a2e
        513f1a0b080a115377b65e0b2e613f1a0b080a11f4a66ea30b2e713f1a0b080a11c4becac50b2e81
        3f1a0b080a11adcaf8d60b2e913f1a0b080a11a1d08fdf0b2ea13f1a0b080a119b53dbe30b2eb13f
        1a0b080a11181501e60b2ec13f1a0b080a11d6f513e70b2ed13f1a0b080a1135669de70b2ee13f1a
        0b080a11651ee2e70b2ef13f1a0b080a117d7a04e80b2e01401a0b080a1189a815e80b2e11401a0b
        080a118f3f1ee80b2e21401a0b080a11128b22e80b2e3140280831e88856d0af0b813e3804620508
        e104100262050896021001620608c8820210016a0406030201228c030a120a066367726f75701208
        286f7468657273290a0e0a0466726f6d12067175657565643ae50208001100000000000000001a0b
        080011dfcc2c65c029b13e1a0b080011bad1a926e62bc13e1a0b08001127546807f92cd13e1a0b08
        00115e95c777822de13e1a0b080011f935f72fc72df13e1a0b08001147060f8ce92d013f1a0b0800
        116eee1abafa2d113f1a0b08001181e22051032e213f1a0b0800118bdca39c072e313f1a0b080011
        905965c2092e413f1a0b080011121846d50a2e513f1a0b0800115377b65e0b2e613f1a0b080011f4
        a66ea30b2e713f1a0b080011c4becac50b2e813f1a0b080011adcaf8d60b2e913f1a0b080011a1d0
        8fdf0b2ea13f1a0b0800119b53dbe30b2eb13f1a0b080011181501e60b2ec13f1a0b080011d6f513
        e70b2ed13f1a0b08001135669de70b2ee13f1a0b080011651ee2e70b2ef13f1a0b0800117d7a04e8
        0b2e01401a0b08001189a815e80b2e11401a0b0800118f3f1ee80b2e21401a0b080011128b22e80b
        2e3140280831e88856d0af0b813e38006204080010006a00360a1e77616b6573636f70655f6d6973
        7365645f7365636f6e64735f746f74616c120554696d652e1800220b1a09094d09e1010000f03f2a
        0a1077616b6573636f70655f73657269657312075365726965732e1801220b120909000000000000
        1c40
    "#]],
    );
}

#[test]
fn a_request_of_otlp() {
    let [histograms, counter, gauge]: [Family; 3] = families().try_into().unwrap();
    let short = Family { samples: histograms.samples[..1].to_vec(), ..histograms };
    let period = otlp::Period { start_ns: 5, end_ns: 1_763_856_000_000_000_007 };
    expect![[r#"{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"wakescope"}},{"key":"host.name","value":{"stringValue":"a\"b"}}]},"scopeMetrics":[{"metrics":[{"description":"Waits.","histogram":{"aggregationTemporality":1,"dataPoints":[{"attributes":[{"key":"cgroup","value":{"stringValue":"/a\"} 1�b{c=\"\\�"}},{"key":"from","value":{"stringValue":"queued"}}],"bucketCounts":["4","4","0","0","0","0","0","0","0","0","2","0","0","0","0","0","0","0","0","0","0","0","0","0","0","1"],"count":"11","explicitBounds":[1.023e-6,2.047e-6,4.095e-6,8.191e-6,0.000016383,0.000032767,0.000065535,0.000131071,0.000262143,0.000524287,0.001048575,0.002097151,0.004194303,0.008388607,0.016777215,0.033554431,0.067108863,0.134217727,0.268435455,0.536870911,1.073741823,2.147483647,4.294967295,8.589934591,17.179869183],"max":17.179869184,"min":0.0,"startTimeUnixNano":"5","sum":17.181383488,"timeUnixNano":"1763856000000000007"}]},"name":"wakescope_wait_seconds","unit":"s"},{"description":"Time.","name":"wakescope_missed_seconds","sum":{"aggregationTemporality":1,"dataPoints":[{"asDouble":1.000000007,"attributes":[],"startTimeUnixNano":"5","timeUnixNano":"1763856000000000007"}],"isMonotonic":true},"unit":"s"},{"description":"Series.","gauge":{"dataPoints":[{"asInt":"7","attributes":[],"startTimeUnixNano":"5","timeUnixNano":"1763856000000000007"}]},"name":"wakescope_series","unit":"1"}],"scope":{"name":"wakescope","version":"0.1.0"}}]}]}"#]].assert_eq(&otlp::request(&[short, counter, gauge], period, "a\"b"));
}

/// Fields of a message: numbers of a field, in their order.
#[derive(Debug, Default)]
struct Decoded(BTreeMap<u64, Vec<Field>>);

#[derive(Clone, Debug)]
enum Field {
    Varint(u64),
    Double(f64),
    Bytes(Vec<u8>),
}

impl Decoded {
    fn of(mut bytes: &[u8]) -> Self {
        let mut out = Self::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Varint(varint(&mut bytes)),
                1 => {
                    let (value, rest) = bytes.split_at(8);
                    bytes = rest;
                    Field::Double(f64::from_le_bytes(value.try_into().unwrap()))
                }
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(value.to_vec())
                }
                other => panic!("wire type {other}"),
            };
            out.0.entry(key >> 3).or_default().push(field);
        }
        out
    }

    fn each(&self, field: u64) -> &[Field] {
        self.0.get(&field).map_or(&[], |fields| fields)
    }

    fn varint(&self, field: u64) -> u64 {
        let [Field::Varint(value)] = self.each(field) else { panic!("{field} of {self:?}") };
        *value
    }

    fn double(&self, field: u64) -> f64 {
        let [Field::Double(value)] = self.each(field) else { panic!("{field} of {self:?}") };
        *value
    }

    fn text(&self, field: u64) -> String {
        let [Field::Bytes(value)] = self.each(field) else { panic!("{field} of {self:?}") };
        String::from_utf8(value.clone()).unwrap()
    }

    fn messages(&self, field: u64) -> Vec<Self> {
        let of = |field: &Field| match field {
            Field::Bytes(bytes) => Self::of(bytes),
            other => panic!("{other:?}"),
        };
        self.each(field).iter().map(of).collect()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn signed(value: u64) -> i64 {
    let half = i64::try_from(value >> 1).unwrap();
    if value & 1 == 0 { half } else { -half - 1 }
}

/// Native buckets: their lower and upper edges and counts, the zero bucket first.
fn native(histogram: &Decoded) -> Vec<(f64, f64, u64)> {
    assert_eq!(signed(histogram.varint(5)), 4);
    let mut all = vec![(-1.0, histogram.double(6), histogram.varint(7))];
    let [Field::Bytes(deltas)] = histogram.each(13) else { panic!("{histogram:?}") };
    let mut deltas = deltas.as_slice();
    let (mut index, mut count) = (0, 0);
    for span in histogram.messages(12) {
        index += signed(span.varint(1));
        for _ in 0..span.varint(2) {
            count += signed(varint(&mut deltas));
            let edge = |index: i64| 2_f64.powf(index as f64 / 16.0);
            all.push((edge(index - 1), edge(index), u64::try_from(count).unwrap()));
            index += 1;
        }
    }
    assert!(deltas.is_empty(), "{histogram:?}");
    all
}

fn decoded(family: &Family) -> Decoded {
    let mut out = Vec::new();
    write(std::slice::from_ref(family), Form::Protobuf, &mut out).unwrap();
    let mut bytes = out.as_slice();
    let length = varint(&mut bytes);
    assert_eq!(bytes.len() as u64, length);
    Decoded::of(bytes)
}

#[test]
fn messages_are_read_as_they_were_written() {
    let [histograms, counter, gauge]: [Family; 3] = families().try_into().unwrap();
    let message = decoded(&histograms);
    assert_eq!((message.text(1), message.varint(3)), (histograms.name.into(), 4));
    let metrics = message.messages(4);
    let labels = metrics[0].messages(1);
    let pairs: Vec<_> = labels.iter().map(|pair| (pair.text(1), pair.text(2))).collect();
    assert_eq!(pairs[0], ("cgroup".into(), "/a\"} 1\u{fffd}b{c=\"\\\u{fffd}".into()));
    assert_eq!(pairs[1], ("from".into(), "queued".into()));
    let message = decoded(&counter);
    assert_eq!((message.text(1), message.varint(3)), ("wakescope_missed_seconds_total".into(), 0));
    assert_eq!(message.messages(4)[0].messages(3)[0].double(1), 1.000_000_007);
    let message = decoded(&gauge);
    assert_eq!((message.text(1), message.varint(3)), ("wakescope_series".into(), 1));
    assert_eq!(message.messages(4)[0].messages(2)[0].double(1), 7.0);
}

#[test]
fn what_is_beyond_the_scale_is_beyond_all_native_buckets() {
    let [histograms, ..]: [Family; 3] = families().try_into().unwrap();
    let metrics = decoded(&histograms).messages(4);
    let all = native(&metrics[0].messages(7)[0]);
    assert_eq!(all.last().unwrap().1, f64::INFINITY);
    // One without waits is a native one all the same.
    let none = native(&metrics[1].messages(7)[0]);
    assert_eq!(none, [(-1.0, 127e-9, 0)]);
}

proptest! {
    /// What HELP says: count, sum and classic buckets are exact; native ones tell a wait as up to 4.3 %
    /// shorter or 10.9 % longer than it was.
    #[test]
    fn native_buckets_are_as_near_as_their_help_says(
        counts in prop::collection::btree_map(0..BUCKETS - 1, 1_u64..1 << 20, 0..80),
    ) {
        let counts: Vec<(usize, u64)> = counts.into_iter().collect();
        let waits = waits(&counts);
        let sample = Sample { labels: Vec::new(), value: Value::Waits(waits.clone()) };
        let family = Family { name: "x", kind: Kind::Histogram, help: "", samples: vec![sample] };
        let histogram = decoded(&family).messages(4)[0].messages(7).remove(0);
        prop_assert_eq!(histogram.varint(1), waits.count);
        prop_assert_eq!(histogram.double(2), waits.sum_ns as f64 / 1e9);
        for bucket in histogram.messages(3) {
            let below = (bucket.double(2) * 1e9).round() + 1.0;
            let exact = counts.iter().filter(|&&(index, _)| edges_of(index).1 as f64 <= below);
            prop_assert_eq!(bucket.varint(1), exact.map(|&(_, count)| count).sum::<u64>());
        }
        let all = native(&histogram);
        prop_assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0 * 1.000_000_001));
        prop_assert_eq!(all.iter().map(|bucket| bucket.2).sum::<u64>(), waits.count);
        // Both in ascending order: the same ranks.
        let mut all = all.into_iter().filter(|bucket| bucket.2 > 0);
        let mut left = (0.0, 0.0, 0);
        for &(index, mut count) in &counts {
            let (lower, upper) = edges_of(index);
            let longest = (upper - 1) as f64 / 1e9;
            while count > 0 {
                if left.2 == 0 {
                    left = all.next().unwrap();
                }
                let common = left.2.min(count);
                (left.2, count) = (left.2 - common, count - common);
                if index == 0 {
                    prop_assert_eq!(left.1, longest);
                    continue;
                }
                prop_assert!(left.0 < longest && longest <= left.1, "{} in {:?}", longest, left);
                let shortest = lower as f64 / 1e9;
                prop_assert!(left.0 >= longest / 1.0443 && left.1 <= shortest * 1.109, "{:?}", left);
            }
        }
    }
}

#[test]
fn all_parts_of_the_own_cost_are_there() {
    use wakescope_core::watch::{OwnCost, Window};
    let cost = |program_ns, tracer_ns| OwnCost {
        agent_ns: 5,
        program_ns,
        tracer_ns,
        ..OwnCost::default()
    };
    let mut counters = Counters::new(Split::Cgroup, 9);
    for own_cost in [cost(Some(7), 11), cost(None, 13)] {
        let window = Window { window_ns: 1_000, own_cost, ..Window::default() };
        counters.add(&window, &std::collections::BTreeSet::new());
    }
    let parts = [("agent", 10), ("program", 7), ("tracer", 24)];
    let parts = parts.map(|(part, ns)| (vec![("part", part.to_owned())], Value::Time(ns)));
    assert_eq!(samples_of(&counters, "wakescope_own_cpu_seconds"), parts);
    let unknown = samples_of(&counters, "wakescope_own_cpu_unknown_seconds");
    assert_eq!(unknown, [(Vec::new(), Value::Time(1_000))]);
}

/// The samples of a family, with their labels.
fn samples_of(counters: &Counters, name: &str) -> Vec<(Vec<(&'static str, String)>, Value)> {
    let families = super::watch::families(counters);
    let family = families.into_iter().find(|family| family.name == name);
    let samples = family.map(|family| family.samples).unwrap_or_default();
    samples.into_iter().map(|sample| (sample.labels, sample.value)).collect()
}

#[test]
fn causes_of_long_waits_and_what_was_not_followed_are_counted() {
    use wakescope_core::explain::Cause;
    use wakescope_core::watch::Window;
    use wakescope_core::watch::episode::{Episode, Episodes};
    use wakescope_core::watch::explained::{Explained, Explanations, Suppressed};
    let mut counters = Counters::new(Split::Cgroup, 9);
    let causes = [Cause::Throttled, Cause::HigherPriorityTask, Cause::Throttled];
    let longest = causes.map(|cause| Episode { cause, ..Episode::default() });
    let episodes = Episodes { long_waits: 5, longest: longest.into(), ..Episodes::default() };
    let window = Window { window_ns: 1_000, episodes: Some(episodes), ..Window::default() };
    counters.add(&window, &std::collections::BTreeSet::new());
    assert!(samples_of(&counters, "wakescope_explain_suppressed").is_empty());
    let explanations = Explanations {
        explained: vec![Explained::default()],
        suppressed: Suppressed { budget: 1, cooling: 2, busy: 3, failed: 4 },
        ..Explanations::default()
    };
    let window = Window { explanations: Some(explanations), ..window };
    counters.add(&window, &std::collections::BTreeSet::new());
    for (name, label, want) in [
        ("wakescope_long_waits", "", &[("", 10)][..]),
        ("wakescope_episodes", "cause", &[("throttled", 4), ("higher_priority_task", 2)]),
        ("wakescope_explained_series", "", &[("", 1)]),
        (
            "wakescope_explain_suppressed",
            "why",
            &[("budget", 1), ("cooling", 2), ("busy", 3), ("failed", 4)],
        ),
    ] {
        let mut found = samples_of(&counters, name);
        let mut want: Vec<_> = want
            .iter()
            .map(|&(value, count)| {
                let labels = [(label, value.to_owned())];
                let labels = labels.into_iter().filter(|(label, _)| !label.is_empty()).collect();
                (labels, Value::Number(count))
            })
            .collect();
        found.sort_by(|a: &(Vec<_>, Value), b| a.0.cmp(&b.0));
        want.sort_by(|a: &(Vec<_>, Value), b| a.0.cmp(&b.0));
        assert_eq!(found, want, "{name}");
    }
}

/// A request of OTLP has explicit bounds only, and nothing in it is approximate.
#[test]
fn what_is_sent_is_not_described_by_another_format() {
    let deltas = super::watch::deltas(&Counters::new(Split::Series, 9));
    assert!(deltas.iter().all(|family| !family.help.contains("ative buckets")));
    assert!(deltas.iter().any(|family| family.name == "wakescope_wait_seconds"));
}
