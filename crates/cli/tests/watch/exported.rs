//! What programs get that fetch the figures of `wakescope watch --listen`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::bench::{Running, Test, eventually, eventually_some, kill};
use crate::common::exported::{counters, fetch, fetched, listening};
use crate::common::following::can_follow;
use crate::common::read;
use wakescope_core::watch::{Window, packed};

fn start(test: &Test, args: &[&str]) -> (Running, SocketAddr) {
    let always = ["watch", "--listen", "127.0.0.1:0", "--json", "--interval", "100ms"];
    let mut running = test.start_command(&[&always, args].concat());
    let address = listening(&mut running);
    (running, address)
}

/// What `status` a request gets that is sent as it is.
fn status(address: SocketAddr, request: &str) -> String {
    let answer = fetched(address, request.as_bytes());
    answer.split("\r\n").next().unwrap_or_default().to_owned()
}

#[test]
fn figures_are_those_of_the_windows_and_never_decrease() {
    if !can_follow("figures_are_those_of_the_windows_and_never_decrease") {
        return;
    }
    let test = Test::new("watch-exported");
    // With so few rows, each is given to others again and again.
    let (running, address) = start(&test, &["--series", "8"]);
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    let mut page = String::new();
    eventually("some intervals are over", || {
        page = fetch(address, "text/plain");
        let now = counters(&page);
        for (name, value) in &now {
            assert!(last.get(name).is_none_or(|before| before <= value), "{name}: {page}");
        }
        last = now;
        last["wakescope_watched_seconds_total"] >= 0.5
    });
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The windows that were over then.
    let (mut sum, mut count, mut ns) = (0, 0, 0);
    let mut cpus: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for line in ended.stdout.lines() {
        let window: Window = packed::read(line.as_bytes()).unwrap();
        ns += window.window_ns;
        if ns as f64 / 1e9 > last["wakescope_watched_seconds_total"] + 1e-9 {
            break;
        }
        for waits in window.series.iter().map(|series| &series.waits).chain([&window.others]) {
            (sum, count) = (sum + waits.sum_ns, count + waits.count);
        }
        for cpu in window.cpus {
            let all = cpus.entry(cpu.cpu).or_default();
            *all = (all.0 + cpu.waits.count, all.1 + cpu.waits.sum_ns);
        }
    }
    let of = |what: &str| -> f64 {
        let name = format!("wakescope_wait_seconds_{what}{{");
        last.iter().filter(|(key, _)| key.starts_with(&name)).map(|(_, value)| value).sum()
    };
    assert_eq!(of("count"), count as f64, "{page}");
    assert!((of("sum") - sum as f64 / 1e9).abs() < 1e-9, "{page}");
    for (cpu, (count, sum_ns)) in cpus {
        let labels = format!("{{cpu=\"{cpu}\",from=\"queued\"}}");
        assert_eq!(last[&format!("wakescope_cpu_wait_seconds_count{labels}")], count as f64);
        let seconds = format!("{}.{:09}", sum_ns / 1_000_000_000, sum_ns % 1_000_000_000);
        assert!(page.contains(&format!("wakescope_cpu_wait_seconds_sum{labels} {seconds}\n")));
    }
}

/// Names that would end a label and begin a line of their own.
#[test]
fn names_cannot_add_figures() {
    if !can_follow("names_cannot_add_figures") {
        return;
    }
    let test = Test::new("watch-injected");
    let (running, address) = start(&test, &["--export-by", "series", "--export-series", "4096"]);
    let is_over = Arc::new(AtomicBool::new(false));
    let thread = std::thread::Builder::new().name("a\"} 1\nb{c=\"\\".into());
    let ends = Arc::clone(&is_over);
    let nap = move || {
        while !ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let thread = thread.spawn(nap).unwrap();
    let want = "comm=\"a\\\"} 1\u{fffd}b{c=\\\"\\\\\",";
    let page = eventually_some("its waits are there", || {
        let page = fetch(address, "text/plain");
        page.contains(want).then_some(page)
    });
    assert!(page.lines().all(|line| line.starts_with("# ") || line.starts_with("wakescope_")));
    let open = fetch(address, "application/openmetrics-text;version=1.0.0");
    assert!(open.contains(want) && open.ends_with("\n# EOF\n"), "{open}");
    is_over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    kill("INT", &[running.pid()]);
    assert_eq!(running.output().code, Some(0));
}

#[test]
fn odd_and_idle_clients_hold_nobody_up() {
    if !can_follow("odd_and_idle_clients_hold_nobody_up") {
        return;
    }
    let test = Test::new("watch-odd");
    let (running, address) = start(&test, &[]);
    let rest = "HTTP/1.1\r\nHost: a\r\n";
    for (request, want) in [
        (format!("GET /metrics {rest}\r\n"), "200 OK"),
        (format!("GET / {rest}\r\n"), "404 Not Found"),
        (format!("GET /metrics/../etc/passwd {rest}\r\n"), "404 Not Found"),
        ("GET /metrics HTTP/1.1\r\nHost: a.example:80\r\n\r\n".into(), "421 Misdirected Request"),
        (format!("POST /metrics {rest}Content-Length: 3\r\n\r\nabc"), "405 Method Not Allowed"),
        (format!("GET /metrics {rest}Content-Length: 3\r\n\r\nabc"), "413 Content Too Large"),
        ("\x16\x03\x01".into(), "400 Bad Request"),
        (format!("GET /{} {rest}\r\n", "x".repeat(60_000)), "414 URI Too Long"),
        (
            format!("GET /metrics {rest}X: {}\r\n\r\n", "x".repeat(60_000)),
            "431 Request Header Fields Too Large",
        ),
    ] {
        let got = status(address, &request);
        assert_eq!(got, format!("HTTP/1.1 {want}"), "{request:.80}");
    }
    // They say nothing, and are more than there are places. The next one is answered all the same.
    let idle: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    let request = format!("GET /metrics {rest}\r\n");
    assert_eq!(status(address, &request), "HTTP/1.1 200 OK");
    drop(idle);
    let watched = || counters(&fetch(address, ""))["wakescope_watched_seconds_total"];
    let before = watched();
    eventually("intervals go on", || watched() > before);
    // One that does not take its answer. It is not waited for in the end.
    let mut deaf = TcpStream::connect(address).unwrap();
    deaf.write_all(request.as_bytes()).unwrap();
    kill("INT", &[running.pid()]);
    assert_eq!(running.output().code, Some(0));
    let mut rest = Vec::new();
    let _ = deaf.read_to_end(&mut rest);
}

#[test]
fn what_cannot_be_listened_on_is_refused_with_a_remedy() {
    let test = Test::new("watch-listen");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (args, told) in [
        (
            &["--listen", &address][..],
            "in use (os error 98)\n  → another program, or another watch",
        ),
        (&["--listen", "192.0.2.1:9464"], "\n  → name an address of this machine"),
        (&["--listen", "9464"], "write an IP address and a port, as in 127.0.0.1:9464"),
        (&["--listen", "localhost:9464"], "write an IP address and a port"),
        (&["--listen", "--once"], "cannot be used with"),
        (&["--export-by", "series"], "--listen"),
        (&["--listen", "--export-series", "0"], "0 is not in 1..="),
    ] {
        let ended = test.ended(&[&["watch"], args].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
    }
}

/// What the unit for systemd starts can be started.
#[test]
fn the_unit_starts_a_watch_that_there_is() {
    let unit = read("contrib/wakescope-watch.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let matches = wakescope_cli::command().try_get_matches_from(line.split(' ')).unwrap();
    let (name, args) = matches.subcommand().unwrap();
    assert_eq!((name, args.contains_id("listen")), ("watch", true), "{line}");
}
