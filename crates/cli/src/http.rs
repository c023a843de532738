//! HTTP/1.1: a server of one small page that other programs fetch from time to time, and a client that sends
//! one request.
//!
//! Whoever can connect is hostile: the length of a request, the time for each connection and the number of
//! connections are bounded, and each connection carries one request.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use request::{Refusal, Request};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;

pub(crate) mod client;
pub(crate) mod request;

/// Connections that are served at once. Further ones get status 503.
const MOST_CONNECTIONS: usize = 64;

/// How long a client may take to send its request, and how long to take the answer.
const REQUEST_TIME: SpanNs = SpanNs(5_000_000_000);
const ANSWER_TIME: SpanNs = SpanNs(10_000_000_000);

/// How long what a refused client still sends is read, and how much of it: an answer behind which data is
/// left unread may never arrive.
const DRAIN_TIME: SpanNs = SpanNs(1_000_000_000);
const MOST_DRAINED: usize = 64 << 10;

/// A thread needs this much for its buffers and the answer's writer.
const STACK: usize = 256 << 10;

/// How long to wait where no connection can be accepted, as with too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is answered.
pub(crate) struct Answer {
    pub(crate) content_type: &'static str,
    pub(crate) body: Arc<[u8]>,
}

/// How requests ended so far.
#[derive(Debug, Default)]
pub(crate) struct Served {
    answered: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

impl Served {
    /// Those that were answered in full, those that were refused, and those whose client went away or was
    /// too slow.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 3] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("answered", of(&self.answered)),
            ("refused", of(&self.refused)),
            ("failed", of(&self.failed)),
        ]
    }
}

/// Serves the one page at `path` from now on, until the process ends. Never holds up the caller.
pub(crate) fn serve(
    address: SocketAddr,
    path: &'static str,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> io::Result<(SocketAddr, Arc<Served>)> {
    let listener = TcpListener::bind(address)?;
    let bound = listener.local_addr()?;
    let served = Arc::new(Served::default());
    let server = Arc::new(Server {
        path,
        answer,
        served: Arc::clone(&served),
        connections: AtomicUsize::new(0),
    });
    let accept = move || {
        loop {
            match listener.accept() {
                Ok((stream, _)) => Server::start(&server, stream),
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
    };
    thread::Builder::new().name("http".into()).stack_size(STACK).spawn(accept)?;
    Ok((bound, served))
}

struct Server<A> {
    path: &'static str,
    answer: A,
    served: Arc<Served>,
    connections: AtomicUsize,
}

impl<A: Fn(&Request) -> Answer + Send + Sync + 'static> Server<A> {
    /// Serves a connection in a thread of its own, if there may be one more.
    fn start(server: &Arc<Self>, stream: TcpStream) {
        if server.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            return server.turn_away(&stream);
        }
        let serving = Arc::clone(server);
        let serve = move || {
            let count = match serving.serve(&stream) {
                Ok(true) => &serving.served.answered,
                Ok(false) => &serving.served.refused,
                Err(_) => &serving.served.failed,
            };
            count.fetch_add(1, Ordering::Relaxed);
            serving.connections.fetch_sub(1, Ordering::Relaxed);
        };
        let started = thread::Builder::new().name("http".into()).stack_size(STACK).spawn(serve);
        if started.is_err() {
            // The connection is closed with what was to serve it.
            server.connections.fetch_sub(1, Ordering::Relaxed);
            server.served.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers with status 503. A short answer fits into the buffer of its connection.
    fn turn_away(&self, stream: &TcpStream) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
        self.served.refused.fetch_add(1, Ordering::Relaxed);
        if stream.set_nonblocking(true).is_ok() {
            let mut stream = stream;
            let _ = stream.write(&refusal(Refusal::BUSY));
        }
    }

    /// Whether the request was answered; otherwise it was refused.
    fn serve(&self, stream: &TcpStream) -> io::Result<bool> {
        let is_for_this_machine = is_loopback(stream.local_addr()?);
        let request = match read_request(stream)? {
            Ok(request) if is_for_this_machine && request.names_a_site() => {
                Err(Refusal::ANOTHER_HOST)
            }
            Ok(request) if request.path != self.path => Err(Refusal::NOT_FOUND),
            other => other,
        };
        let deadline = clock::now().after(ANSWER_TIME);
        match request {
            Ok(request) => {
                let Answer { content_type, body } = (self.answer)(&request);
                write_all(stream, &head("200 OK", content_type, body.len(), ""), deadline)?;
                write_all(stream, &body, deadline)?;
                stream.shutdown(Shutdown::Write)?;
                Ok(true)
            }
            Err(why) => {
                write_all(stream, &refusal(why), deadline)?;
                stream.shutdown(Shutdown::Write)?;
                drain(stream);
                Ok(false)
            }
        }
    }
}

/// Reads the head of a request. What is beyond it is left.
fn read_request(mut stream: &TcpStream) -> io::Result<Result<Request, Refusal>> {
    let deadline = clock::now().after(REQUEST_TIME);
    let mut head = Vec::new();
    let mut buffer = [0; 2_048];
    loop {
        match request::parse(&head) {
            Ok(None) => {}
            Ok(Some(request)) => return Ok(Ok(request)),
            Err(refusal) => return Ok(Err(refusal)),
        }
        let Some(left) = left_until(deadline) else { return Ok(Err(Refusal::TOO_SLOW)) };
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => head.extend(buffer.iter().take(length)),
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
    }
}

/// Whether nobody but this machine reaches an address. A socket of IPv6 has those of IPv4 as `::ffff:127.0.0.1`.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Writes all, or fails once it is late: a client that takes a byte now and then does not make it longer.
fn write_all(mut stream: &TcpStream, mut bytes: &[u8], deadline: MonoNs) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = left_until(deadline).ok_or(io::ErrorKind::TimedOut)?;
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => bytes = bytes.get(length..).unwrap_or_default(),
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn drain(mut stream: &TcpStream) {
    let deadline = clock::now().after(DRAIN_TIME);
    let mut buffer = [0; 2_048];
    let mut drained = 0;
    while drained < MOST_DRAINED {
        let Some(left) = left_until(deadline) else { return };
        if stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut buffer) {
            Ok(length @ 1..) => drained += length,
            _ => return,
        }
    }
}

fn left_until(deadline: MonoNs) -> Option<Duration> {
    match deadline.since(clock::now()) {
        SpanNs(0) => None,
        SpanNs(ns) => Some(Duration::from_nanos(ns)),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn refusal(Refusal { status, header }: Refusal) -> Vec<u8> {
    let body = format!("{status}\n");
    let mut answer = head(status, "text/plain; charset=utf-8", body.len(), header);
    answer.extend(body.as_bytes());
    answer
}

fn head(status: &str, content_type: &str, length: usize, header: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\nX-Content-Type-Options: nosniff\r\n{header}\r\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_by_each_of_its_addresses() {
        for (address, want) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("[::ffff:192.0.2.1]:1", false),
            ("[::]:1", false),
            ("192.0.2.1:1", false),
        ] {
            assert_eq!(is_loopback(address.parse().unwrap()), want, "{address}");
        }
    }
}
