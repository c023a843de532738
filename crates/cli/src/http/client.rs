//! A client of HTTP/1.1 that sends one request to a program nearby.

use std::fmt;
use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;

use super::{is_timeout, left_until, write_all};

/// The longest answer that is read, bytes.
const LONGEST_ANSWER: usize = 64 << 10;

/// Where to send it: `http://HOST:PORT/PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// Host and port.
    host: String,
    path: String,
}

impl Url {
    /// The same, with this path if it has none.
    pub(crate) fn or_path(self, path: &str) -> Self {
        if self.path == "/" { Self { path: path.into(), ..self } } else { self }
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("https:") {
            return Err("there is no encryption: name a collector on this machine, as \
                        http://127.0.0.1:4318, which can forward it"
                .into());
        }
        let odd = || "write http://HOST:PORT, as http://127.0.0.1:4318".to_owned();
        let rest = text.strip_prefix("http://").ok_or_else(odd)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let port = host.rsplit_once(':').ok_or_else(odd)?.1;
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_host = host.len() > port.len() + 1 && !host.contains(['@', '?', '#']);
        if port.parse::<u16>().is_err() || !is_host || !is_plain(host) || !is_plain(path) {
            return Err(odd());
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { host: host.into(), path: path.into() })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host, self.path)
    }
}

/// What was answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The status, as 200.
    pub(crate) status: u16,
    /// As much of the body as is read.
    pub(crate) body: Vec<u8>,
}

/// Sends JSON, and takes what is answered within this time; the search for the host's address is not in it.
pub(crate) fn post_json(url: &Url, body: &[u8], patience: SpanNs) -> io::Result<Reply> {
    let deadline = clock::now().after(patience);
    let left = || left_until(deadline).ok_or(io::Error::from(io::ErrorKind::TimedOut));
    let mut stream = connect(&url.host, left)?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\nUser-Agent: wakescope/{}\r\n\r\n",
        url.path,
        url.host,
        body.len(),
        env!("CARGO_PKG_VERSION"),
    );
    write_all(&stream, head.as_bytes(), deadline)?;
    write_all(&stream, body, deadline)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 2_048];
    while answer.len() < LONGEST_ANSWER && !is_whole(&answer) {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => answer.extend(buffer.iter().take(length)),
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
    }
    parse(&answer).ok_or_else(|| io::Error::other("what it answers is not HTTP"))
}

fn connect(host: &str, left: impl Fn() -> io::Result<Duration>) -> io::Result<TcpStream> {
    let mut last = io::Error::other("it has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left()?) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Whether an answer is there whose end is known: some keep the connection open all the same.
fn is_whole(answer: &[u8]) -> bool {
    split(answer).is_some_and(|(head, rest)| body(head, rest).1)
}

/// The head of an answer, and what follows it. Those that announce another one (1xx) are skipped.
fn split(answer: &[u8]) -> Option<(&str, &[u8])> {
    let mut rest = answer;
    loop {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(rest.get(..end)?).ok()?;
        rest = rest.get(end + 4..)?;
        if !matches!(status(head), Some(100..=199)) {
            return Some((head, rest));
        }
    }
}

fn status(head: &str) -> Option<u16> {
    let line = head.lines().next()?.strip_prefix("HTTP/1.")?;
    line.split(' ').nth(1)?.parse().ok()
}

/// As much of the body as is in `rest`, and whether that is all of it, as far as `head` tells.
fn body(head: &str, rest: &[u8]) -> (Vec<u8>, bool) {
    let field = |wanted: &str| {
        head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    };
    if matches!(status(head), Some(204 | 304)) {
        return (Vec::new(), true);
    }
    if field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return joined(rest);
    }
    let length = field("content-length").and_then(|value| value.parse::<usize>().ok());
    let body = rest.iter().take(length.unwrap_or(usize::MAX)).copied().collect();
    (body, length.is_some_and(|length| rest.len() >= length))
}

/// What is in chunks, as far as they are there, and whether the last of them is (RFC 9112, 7.1).
fn joined(mut chunks: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = chunks.windows(2).position(|two| two == b"\r\n") {
        let (line, rest) = chunks.split_at(end);
        let size = line.split(|&byte| byte == b';').next().unwrap_or_default();
        let size =
            std::str::from_utf8(size).ok().and_then(|s| usize::from_str_radix(s.trim(), 16).ok());
        let (Some(size), Some(rest)) = (size, rest.get(2..)) else { break };
        if size == 0 {
            return (body, true);
        }
        body.extend(rest.iter().take(size));
        let Some(next) = size.checked_add(2).and_then(|length| rest.get(length..)) else { break };
        chunks = next;
    }
    (body, false)
}

fn parse(answer: &[u8]) -> Option<Reply> {
    let (head, rest) = split(answer)?;
    Some(Reply { status: status(head)?, body: body(head, rest).0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::fuzz;

    #[test]
    fn urls_are_plain_or_refused() {
        for (text, want) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/metrics"),
            ("http://collector:80/in?x=1", "http://collector:80/in?x=1"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(url.or_path("/v1/metrics").to_string(), want);
        }
        for odd in [
            "",
            "http://",
            "http://a",
            "http://:80",
            "http://a:x",
            "http://a:70000",
            "ftp://a:1",
            "http://a:1/\r\nX: y",
            "http://a b:1",
            "http://u:p@a:1",
            "https://a:1",
            "http://a:1/é",
        ] {
            assert!(odd.parse::<Url>().is_err(), "{odd:?}");
        }
    }

    #[test]
    fn answers_are_read_or_refused() {
        let reply = |status, body: &str| Some(Reply { status, body: body.into() });
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}"), reply(200, "{}"));
        assert_eq!(parse(b"HTTP/1.0 503\r\n\r\n"), reply(503, ""));
        for odd in ["", "HTTP/1.1 200 OK\r\n", "220 hello\r\n\r\n", "HTTP/1.1 x\r\n\r\n"] {
            assert_eq!(parse(odd.as_bytes()), None, "{odd:?}");
        }
        assert_eq!(
            parse(
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}more"
            ),
            reply(200, "{}")
        );
        assert_eq!(parse(b"HTTP/1.1 100 Continue\r\n\r\n"), None);
        assert!(is_whole(b"HTTP/1.1 204 No Content\r\n\r\n"));
        assert!(is_whole(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}"));
    }

    #[test]
    fn chunks_are_joined_and_end_with_the_last() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
        for (chunks, want, whole) in [
            ("0\r\n\r\n", "", true),
            ("1\r\n{\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", "{0123456789", true),
            ("2\r\n{}\r\n", "{}", false),
            ("4\r\n{}", "{}", false),
            ("ffffffffffffffff\r\n{}", "{}", false),
            ("2\r\n{}\r\nx\r\n", "{}", false),
            ("", "", false),
        ] {
            let answer = format!("{head}{chunks}");
            let body = parse(answer.as_bytes()).unwrap().body;
            assert_eq!(
                (body.as_slice(), is_whole(answer.as_bytes())),
                (want.as_bytes(), whole),
                "{chunks:?}"
            );
        }
    }

    #[test]
    fn fuzz_answers() {
        let seeds = [
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec(),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".to_vec(),
        ];
        fuzz("answer", &seeds, |bytes| {
            let _ = (is_whole(bytes), parse(bytes));
        });
    }
}
