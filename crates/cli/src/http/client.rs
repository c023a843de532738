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

/// Whether an answer is there whose length is known: some keep the connection open all the same.
fn is_whole(answer: &[u8]) -> bool {
    let Some((head, body)) = split(answer) else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    length.is_some_and(|length| body.len() >= length)
}

fn split(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    Some((head, answer.get(end + 4..)?))
}

fn parse(answer: &[u8]) -> Option<Reply> {
    let (head, body) = split(answer)?;
    let line = head.lines().next()?.strip_prefix("HTTP/1.")?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, body: body.to_vec() })
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
        assert!(is_whole(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}"));
    }

    #[test]
    fn fuzz_answers() {
        let seed = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        fuzz("answer", &[seed.to_vec()], |bytes| {
            let _ = (is_whole(bytes), parse(bytes));
        });
    }
}
