//! What a collector of OpenTelemetry gets from `wakescope watch --otlp`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::common::bench::{Test, eventually, kill};
use crate::common::following::can_follow;
use serde_json::{Value, json};
use wakescope_core::watch::{Waits, Window, packed};

/// Answers requests with these statuses, and all further ones with the last. Keeps what it was sent.
struct Collector {
    url: String,
    got: Arc<Mutex<Vec<(u16, Value)>>>,
}

impl Collector {
    fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&got);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let status = statuses[number.min(statuses.len() - 1)];
                let mut stream = stream.unwrap();
                let body = request(&mut stream);
                into.lock().unwrap().push((status, body));
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\n{{}}");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { url, got }
    }

    /// All requests with this status.
    fn got(&self, status: u16) -> Vec<Value> {
        let got = self.got.lock().unwrap();
        got.iter().filter(|got| got.0 == status).map(|got| got.1.clone()).collect()
    }
}

/// The body of a request, which must be one that a collector takes.
fn request(stream: &mut TcpStream) -> Value {
    let mut text = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let length = stream.read(&mut buffer).unwrap();
        text.extend(&buffer[..length]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = whole.split_once("\r\n\r\n") else { continue };
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/json\r\n"), "{head}");
        let length = head.split("Content-Length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if body.len() == length {
            return serde_json::from_str(body).unwrap();
        }
    }
}

/// The points of a metric in a request.
fn points<'a>(request: &'a Value, name: &str, kind: &str) -> &'a [Value] {
    let metrics = request.pointer("/resourceMetrics/0/scopeMetrics/0/metrics").unwrap();
    let metric = metrics.as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap();
    if kind != "gauge" {
        assert_eq!(metric[kind]["aggregationTemporality"], 1, "{metric}");
    }
    metric[kind]["dataPoints"].as_array().unwrap()
}

/// The only point of a sum.
fn sum_of<'a>(request: &'a Value, name: &str) -> &'a Value {
    &points(request, name, "sum")[0]
}

fn number(value: &Value) -> u64 {
    value.as_str().unwrap_or_else(|| panic!("{value}")).parse().unwrap()
}

fn start(test: &Test, url: &str) -> crate::common::bench::Running {
    let always = ["watch", "--json", "--interval", "100ms", "--otlp-every", "100ms", "--otlp"];
    test.start_command(&[&always[..], &[url]].concat())
}

#[test]
fn a_collector_gets_every_wait_once() {
    if !can_follow("a_collector_gets_every_wait_once") {
        return;
    }
    let test = Test::new("watch-pushed");
    // It cannot take the second one until it is asked the third time.
    let collector = Collector::start(&[200, 503, 429, 200]);
    let running = start(&test, &collector.url);
    eventually("some are taken", || collector.got(200).len() >= 3);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for told in ["it answers 503", "takes figures again: all that was kept is sent"] {
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
    let taken = collector.got(200);
    // The same request again, byte for byte.
    assert_eq!([&collector.got(503)[0], &collector.got(429)[0]], [&taken[1]; 2]);
    let windows = ended.stdout.lines().map(|line| packed::read(line.as_bytes()).unwrap());
    let cpus = windows.flat_map(|window: Window| window.cpus);
    let all = cpus.fold(Waits::default(), |sum, cpu| sum.merged(&cpu.waits));
    for name in ["wakescope_wait_seconds", "wakescope_cpu_wait_seconds"] {
        let (mut count, mut sum, mut max, mut min, mut end) = (0, 0.0, 0.0_f64, f64::INFINITY, 0);
        for request in &taken {
            let points = points(request, name, "histogram");
            for point in points {
                let counts = point["bucketCounts"].as_array().unwrap();
                let bounds = point["explicitBounds"].as_array().unwrap();
                assert_eq!(counts.len(), bounds.len() + 1);
                assert_eq!(counts.iter().map(number).sum::<u64>(), number(&point["count"]));
                count += number(&point["count"]);
                sum += point["sum"].as_f64().unwrap();
                max = max.max(point["max"].as_f64().unwrap_or(0.0));
                min = min.min(point["min"].as_f64().unwrap_or(f64::INFINITY));
            }
            let (start, stop) =
                (number(&points[0]["startTimeUnixNano"]), number(&points[0]["timeUnixNano"]));
            assert!((end == 0 || start == end) && start < stop, "{start} {stop} after {end}");
            end = stop;
            // It is the time that its figures cover.
            let watched = &sum_of(request, "wakescope_watched_seconds")["asDouble"];
            assert_eq!(watched.as_f64().unwrap(), (stop - start) as f64 / 1e9, "{name}");
        }
        assert_eq!(count, all.count, "{name}");
        assert!((sum - all.sum_ns as f64 / 1e9).abs() < 1e-6, "{name}");
        if all.max_is_exact {
            assert_eq!(max, all.max_ns.unwrap() as f64 / 1e9, "{name}");
        }
        if all.min_is_exact {
            assert_eq!(min, all.min_ns.unwrap() as f64 / 1e9, "{name}");
        }
    }
    let attributes = taken[0].pointer("/resourceMetrics/0/resource/attributes").unwrap();
    assert_eq!(
        attributes[0],
        json!({"key": "service.name", "value": {"stringValue": "wakescope"}})
    );
}

#[test]
fn what_no_collector_takes_is_told() {
    if !can_follow("what_no_collector_takes_is_told") {
        return;
    }
    let test = Test::new("watch-unsent");
    let collector = Collector::start(&[400]);
    let running = start(&test, &collector.url);
    eventually("two are refused", || collector.got(400).len() >= 2);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("refuses figures: it answers 400"), "{}", ended.stderr);
    assert!(ended.stderr.contains("wholly or in part: these are lost\n  → "), "{}", ended.stderr);
    let refused = collector.got(400);
    let lost = &sum_of(&refused[1], "wakescope_refused_waits")["asInt"];
    let of = |request: &Value| -> u64 {
        let points = points(request, "wakescope_cpu_wait_seconds", "histogram").iter();
        points.map(|point| number(&point["count"])).sum()
    };
    assert_eq!(number(lost), of(&refused[0]));

    // The last one is not taken, and one before was refused.
    let collector = Collector::start(&[400, 503]);
    let running = start(&test, &collector.url);
    eventually("one is refused, and one is not taken", || !collector.got(503).is_empty());
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let points = points(&collector.got(400)[0], "wakescope_cpu_wait_seconds", "histogram").to_vec();
    let lost: u64 = points.iter().map(|point| number(&point["count"])).sum();
    let lost = wakescope_core::units::counted(lost, "wait");
    let told = [" are not sent\n", &format!("  requests with {lost} were refused before")];
    assert!(told.iter().all(|told| ended.stderr.contains(told)), "{told:?}: {}", ended.stderr);

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ended = test.ended(&["watch", "--duration", "300ms", "--otlp", &format!("http://{free}")]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let told =
        format!("wakescope: cannot send figures to http://{free}/v1/metrics: Connection refused");
    assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    assert!(ended.stderr.contains(" are not sent\n  → "), "{}", ended.stderr);
}

#[test]
fn odd_collectors_are_refused() {
    let test = Test::new("watch-otlp");
    for (args, told) in [
        (&["--otlp", "https://127.0.0.1:4318"][..], "there is no encryption"),
        (&["--otlp", "127.0.0.1:4318"], "write http://HOST:PORT"),
        (&["--otlp", "http://a:1", "--otlp-every", "1ms"], "the shortest interval is 100 ms"),
        (&["--otlp-every", "1s"], "--otlp"),
    ] {
        let ended = test.ended(&[&["watch"], args].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
    }
}
