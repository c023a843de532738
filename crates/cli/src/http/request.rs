//! The head of a request of HTTP/1.1.

use std::net::Ipv4Addr;

/// The longest head, and the longest line with its method and path, bytes.
const LONGEST_HEAD: usize = 8 << 10;
const LONGEST_LINE: usize = 1 << 10;

/// A request for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Without a query.
    pub(crate) path: String,
    /// What the client takes; empty where it does not say.
    pub(crate) accept: String,
    /// The machine that it was sent to, with a port or without; empty where it does not say.
    pub(crate) host: String,
}

impl Request {
    /// Whether it may come from a page of the web whose name was given the address of this machine (DNS
    /// rebinding): such a page can read what only this machine can. An address is no name, and nobody on the web
    /// has one without a dot.
    pub(crate) fn names_a_site(&self) -> bool {
        let host = self.host.as_str();
        if host.starts_with('[') {
            return false;
        }
        let name = host.split_once(':').map_or(host, |(name, _)| name);
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_here = name.to_ascii_lowercase().ends_with(".localhost");
        name.contains('.') && !is_here && name.parse::<Ipv4Addr>().is_err()
    }
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status, as a number and words.
    pub(crate) status: &'static str,
    /// A line of the answer's head, with its end; may be empty.
    pub(crate) header: &'static str,
}

impl Refusal {
    pub(crate) const NOT_FOUND: Self = Self::of("404 Not Found");
    pub(crate) const TOO_SLOW: Self = Self::of("408 Request Timeout");
    pub(crate) const BUSY: Self =
        Self { status: "503 Service Unavailable", header: "Retry-After: 1\r\n" };
    pub(crate) const ANOTHER_HOST: Self = Self::of("421 Misdirected Request");
    const ODD: Self = Self::of("400 Bad Request");
    const NO_GET: Self = Self { status: "405 Method Not Allowed", header: "Allow: GET\r\n" };
    const BODY: Self = Self::of("413 Content Too Large");
    const LONG_LINE: Self = Self::of("414 URI Too Long");
    const LONG_HEAD: Self = Self::of("431 Request Header Fields Too Large");
    const VERSION: Self = Self::of("505 HTTP Version Not Supported");

    const fn of(status: &'static str) -> Self {
        Self { status, header: "" }
    }
}

/// The request that `bytes` begin with; `None` if its head goes on.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Request>, Refusal> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let head = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    let line_end = head.windows(2).position(|two| two == b"\r\n");
    let line = head.get(..line_end.unwrap_or(head.len())).unwrap_or_default();
    if line.len() > LONGEST_LINE {
        return Err(Refusal::LONG_LINE);
    }
    if head.len() > LONGEST_HEAD {
        return Err(Refusal::LONG_HEAD);
    }
    if end.is_none() {
        // No method begins so: it is another protocol, as TLS, whose end may never come.
        let is_odd = bytes.first().is_some_and(|byte| !byte.is_ascii_uppercase());
        return if is_odd { Err(Refusal::ODD) } else { Ok(None) };
    }
    let head = std::str::from_utf8(head).map_err(|_| Refusal::ODD)?;
    if head.chars().any(|c| c.is_control() && !matches!(c, '\r' | '\n' | '\t')) {
        return Err(Refusal::ODD);
    }
    let mut lines = head.split("\r\n");
    let (target, is_1_1) = parse_line(lines.next().unwrap_or_default())?;
    let (accept, host) = parse_headers(lines, is_1_1)?;
    let (named, path) = parse_target(&target);
    let host = named.map_or(host, str::to_owned);
    Ok(Some(Request { path: path.into(), accept, host }))
}

/// The machine, where a target names one as proxies may, and the path without a query (RFC 9112, 3.2).
fn parse_target(target: &str) -> (Option<&str>, &str) {
    let target = target.split_once('?').map_or(target, |(target, _)| target);
    let Some(rest) = target.strip_prefix("http://") else { return (None, target) };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (Some(host), if path.is_empty() { "/" } else { path })
}

/// The target, and whether the version is 1.1.
fn parse_line(line: &str) -> Result<(String, bool), Refusal> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::ODD);
    };
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Err(Refusal::ODD);
    }
    let is_1_1 = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ if version.starts_with("HTTP/") => return Err(Refusal::VERSION),
        _ => return Err(Refusal::ODD),
    };
    if method != "GET" {
        return Err(Refusal::NO_GET);
    }
    Ok((target.to_owned(), is_1_1))
}

/// What the client takes, and whom it asks. Refuses what could be understood in two ways.
fn parse_headers<'a>(
    lines: impl Iterator<Item = &'a str>,
    is_1_1: bool,
) -> Result<(String, String), Refusal> {
    let mut accept: Vec<&str> = Vec::new();
    let mut host = None;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(Refusal::ODD)?;
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) || value.contains(['\r', '\n']) {
            return Err(Refusal::ODD);
        }
        match name.to_ascii_lowercase().as_str() {
            "accept" => accept.push(value.trim()),
            "host" if host.is_some() => return Err(Refusal::ODD),
            "host" => host = Some(value.trim()),
            "content-length" if value.trim() != "0" => return Err(Refusal::BODY),
            "transfer-encoding" => return Err(Refusal::BODY),
            _ => {}
        }
    }
    match host {
        None if is_1_1 => Err(Refusal::ODD),
        host => Ok((accept.join(","), host.unwrap_or_default().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::fuzz;

    #[track_caller]
    fn check(text: &str, want: Result<Option<(&str, &str)>, Refusal>) {
        let of = |request: Request| (request.path, request.accept);
        let want = want.map(|some| some.map(|(path, accept)| (path.into(), accept.into())));
        assert_eq!(parse(text.as_bytes()).map(|some| some.map(of)), want, "{text:?}");
    }

    #[test]
    fn requests_are_read_or_refused() {
        let rest = "HTTP/1.1\r\nHost: a\r\n";
        check(&format!("GET /metrics {rest}\r\n"), Ok(Some(("/metrics", ""))));
        check(
            &format!("GET / {rest}ACCEPT:  a/b;q=1 \r\nAccept: c\r\n\r\nmore"),
            Ok(Some(("/", "a/b;q=1,c"))),
        );
        check("GET /metrics HTTP/1.0\r\n\r\n", Ok(Some(("/metrics", ""))));
        for target in
            ["/metrics?", "/metrics?a=b&c=/d?e", "http://b:1/metrics", "http://b/metrics?x"]
        {
            check(&format!("GET {target} {rest}\r\n"), Ok(Some(("/metrics", ""))));
        }
        check(&format!("GET http://b {rest}\r\n"), Ok(Some(("/", ""))));
        check(&format!("GET https://b/metrics {rest}\r\n"), Ok(Some(("https://b/metrics", ""))));
        check(&format!("GET / {rest}Content-Length: 0\r\n\r\n"), Ok(Some(("/", ""))));
        for open in ["", "G", "GET /", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"] {
            check(open, Ok(None));
        }
        for (text, why) in [
            (format!("POST / {rest}\r\n"), Refusal::NO_GET),
            (format!("HEAD / {rest}\r\n"), Refusal::NO_GET),
            (format!("GET / {rest}Content-Length: 1\r\n\r\n"), Refusal::BODY),
            (format!("GET / {rest}Transfer-Encoding: chunked\r\n\r\n"), Refusal::BODY),
            ("GET / HTTP/2.0\r\n\r\n".into(), Refusal::VERSION),
            ("PRI * HTTP/2.0\r\n\r\n".into(), Refusal::VERSION),
            (format!("GET /{} ", "x".repeat(LONGEST_LINE)), Refusal::LONG_LINE),
            (format!("GET / {rest}X: {}", "x".repeat(LONGEST_HEAD)), Refusal::LONG_HEAD),
        ] {
            check(&text, Err(why));
        }
        for odd in [
            "\x16\x03\x01\x02",
            "get",
            "GET / \r\n\r\n",
            "GET /metrics\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
            "G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: \0\r\n\r\n",
        ] {
            check(odd, Err(Refusal::ODD));
        }
    }

    #[test]
    fn names_of_the_web_are_told_from_those_of_machines_nearby() {
        for (host, want) in [
            ("", false),
            ("127.0.0.1", false),
            ("127.0.0.1:9464", false),
            ("10.1.2.3:9464", false),
            ("[::1]:9464", false),
            ("localhost:9464", false),
            ("LOCALHOST.", false),
            ("a.LocalHost:9464", false),
            ("node7:9464", false),
            ("rebound.example", true),
            ("rebound.example:9464", true),
            ("rebound.example.", true),
            ("127.0.0.1.example", true),
            ("localhost.example", true),
            ("notlocalhost.x", true),
        ] {
            let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let request = parse(text.as_bytes()).unwrap().unwrap();
            assert_eq!((request.names_a_site(), request.host.as_str()), (want, host));
        }
    }

    /// The machine in a target counts, not that of the header (RFC 9112, 3.2.2).
    #[test]
    fn a_target_that_names_a_site_is_one_of_it() {
        for (target, want) in [
            ("http://rebound.example/metrics", true),
            ("http://localhost:9464/metrics", false),
            ("/metrics", false),
        ] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            assert_eq!(parse(text.as_bytes()).unwrap().unwrap().names_a_site(), want, "{target}");
        }
    }

    #[test]
    fn fuzz_requests() {
        let seed =
            b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain;q=0.5,*/*;q=0.1\r\n\r\n";
        fuzz("request", &[seed.to_vec()], |bytes| {
            if let Ok(Some(request)) = parse(bytes) {
                let _ = wakescope_formats::metrics::Form::accepted(&request.accept);
                let _ = request.names_a_site();
            }
        });
    }
}
