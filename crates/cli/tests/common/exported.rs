//! A client of `wakescope watch --listen`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::common::bench::Running;

/// Where a watch listens, once it does.
#[track_caller]
pub(crate) fn listening(running: &mut Running) -> SocketAddr {
    let start = "figures for Prometheus: http://";
    running.await_line(start);
    let line = running.awaited().lines().last().unwrap();
    line[start.len()..].trim_end_matches("/metrics").parse().unwrap()
}

/// All of the answer to a request that is sent as it is.
pub(crate) fn fetched(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // It may be refused before all of it is sent.
    let _ = stream.write_all(request);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// The page, in the form that `accept` names.
#[track_caller]
pub(crate) fn fetch(address: SocketAddr, accept: &str) -> String {
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n");
    let answer = fetched(address, request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    body.to_owned()
}

/// All figures that must never decrease, by name and labels.
pub(crate) fn counters(page: &str) -> BTreeMap<String, f64> {
    let figures = page.lines().filter(|line| !line.starts_with('#'));
    let figures = figures.filter_map(|line| line.rsplit_once(' '));
    let grows = |name: &str| {
        let name = name.split('{').next().unwrap_or_default();
        ["_total", "_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end))
    };
    let figures = figures.filter(|(name, _)| grows(name));
    figures.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}
