//! What OpenTelemetry's collectors take: `ExportMetricsServiceRequest` as JSON, of OTLP 1.0.
//!
//! Each request has what came since the one before (delta temporality). So maximum and minimum are
//! those of this time, which no other format has a place for. Either is left out unless it is exact.

use serde_json::{Value as Json, json};
use wakescope_core::watch::Waits;

use super::{Family, Kind, Sample, Value, cumulative, inclusive, label, octaves, seconds};

/// `AGGREGATION_TEMPORALITY_DELTA`.
const DELTA: u32 = 1;

/// From when to when the values are, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// A request with these families, which are of one period, of the machine named `host`.
pub fn request(families: &[Family], period: Period, host: &str) -> String {
    let metrics = families.iter().map(|family| metric(family, period));
    let resource = [("service.name", "wakescope"), ("host.name", host)];
    let scope = json!({"name": "wakescope", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(resource)},
        "scopeMetrics": [{"scope": scope, "metrics": metrics.collect::<Vec<Json>>()}],
    }]})
    .to_string()
}

fn metric(family: &Family, period: Period) -> Json {
    let Family { name, kind, help, samples } = family;
    let points: Vec<Json> = samples.iter().map(|sample| point(sample, period)).collect();
    let unit = if name.ends_with("_seconds") { "s" } else { "1" };
    let (field, data) = match kind {
        Kind::Counter => (
            "sum",
            json!({"aggregationTemporality": DELTA, "isMonotonic": true, "dataPoints": points}),
        ),
        Kind::Gauge => ("gauge", json!({"dataPoints": points})),
        Kind::Histogram => {
            ("histogram", json!({"aggregationTemporality": DELTA, "dataPoints": points}))
        }
    };
    json!({"name": name, "description": help, "unit": unit, field: data})
}

/// 64-bit integers are texts in this form of JSON.
fn point(sample: &Sample, Period { start_ns, end_ns }: Period) -> Json {
    let labels = sample.labels.iter().map(|(name, value)| (*name, value.as_str()));
    let mut point = json!({
        "attributes": attributes(labels),
        "startTimeUnixNano": start_ns.to_string(),
        "timeUnixNano": end_ns.to_string(),
    });
    match &sample.value {
        Value::Number(number) => point["asInt"] = number.to_string().into(),
        Value::Time(ns) => point["asDouble"] = seconds(*ns).into(),
        Value::Waits(waits) => add_histogram(&mut point, waits),
    }
    point
}

/// Buckets include their upper bound, as those of Prometheus do, and are not cumulative.
fn add_histogram(point: &mut Json, waits: &Waits) {
    let mut before = 0;
    let mut counts: Vec<Json> = Vec::new();
    for (_, count) in cumulative(waits.histogram.buckets(), octaves()) {
        counts.push((count - before).to_string().into());
        before = count;
    }
    counts.push((waits.count - before).to_string().into());
    let bounds = octaves().map(|edge| seconds(inclusive(edge)));
    point["count"] = waits.count.to_string().into();
    point["sum"] = seconds(waits.sum_ns).into();
    point["bucketCounts"] = counts.into();
    point["explicitBounds"] = bounds.collect::<Vec<f64>>().into();
    if let Some(max_ns) = waits.max_ns.filter(|_| waits.max_is_exact) {
        point["max"] = seconds(max_ns).into();
    }
    if let Some(min_ns) = waits.min_ns.filter(|_| waits.min_is_exact) {
        point["min"] = seconds(min_ns).into();
    }
}

fn attributes<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Json {
    let attribute = |(key, value)| json!({"key": key, "value": {"stringValue": label(value)}});
    all.into_iter().map(attribute).collect()
}
