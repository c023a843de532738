//! HTTP/1.1: a server of one small page that other programs fetch from time to time, and a client that sends
//! one request.
//!
//! Whoever can connect is hostile: the length of a request, the time for each connection and the number of
//! connections are bounded, and each connection carries one request. Connections that say nothing keep nobody out:
//! where there is no place, the one that has waited longest for its request is closed.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use request::{Refusal, Request};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;

pub(crate) mod client;
pub(crate) mod request;

/// Connections that are served at once. A further one takes the place of one without a request, or gets status 503.
const MOST_CONNECTIONS: usize = 64;

/// Those that are closed and whose threads have not ended yet are no more than these.
const MOST_ENDING: usize = 64;

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
        silent: Mutex::default(),
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
    /// Connections that have not sent the head of their request, the oldest first.
    silent: Mutex<VecDeque<Arc<TcpStream>>>,
}

impl<A: Fn(&Request) -> Answer + Send + Sync + 'static> Server<A> {
    /// Serves a connection in a thread of its own, if there may be one more.
    fn start(server: &Arc<Self>, stream: TcpStream) {
        let others = server.connections.fetch_add(1, Ordering::Relaxed);
        let is_full = others >= MOST_CONNECTIONS;
        if is_full && (others >= MOST_CONNECTIONS + MOST_ENDING || !server.close_oldest_silent()) {
            return server.turn_away(&stream);
        }
        let stream = Arc::new(stream);
        let known = Arc::clone(&stream);
        server.silent().push_back(Arc::clone(&stream));
        let serving = Arc::clone(server);
        let serve = move || {
            let count = match serving.serve(&stream) {
                Ok(true) => &serving.served.answered,
                Ok(false) => &serving.served.refused,
                Err(_) => &serving.served.failed,
            };
            serving.forget_silent(&stream);
            count.fetch_add(1, Ordering::Relaxed);
            serving.connections.fetch_sub(1, Ordering::Relaxed);
        };
        let started = thread::Builder::new().name("http".into()).stack_size(STACK).spawn(serve);
        if started.is_err() {
            // The connection is closed with what was to serve it, once nobody else knows of it.
            server.forget_silent(&known);
            server.connections.fetch_sub(1, Ordering::Relaxed);
            server.served.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn silent(&self) -> MutexGuard<'_, VecDeque<Arc<TcpStream>>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_silent(&self, stream: &Arc<TcpStream>) {
        self.silent().retain(|silent| !Arc::ptr_eq(silent, stream));
    }

    /// Closes the connection that has waited longest for its request, if there is one. Its thread ends by that.
    fn close_oldest_silent(&self) -> bool {
        let oldest = self.silent().pop_front();
        // It fails where the client has gone: then the thread ends by that.
        oldest.inspect(|stream| drop(stream.shutdown(Shutdown::Both))).is_some()
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
    fn serve(&self, stream: &Arc<TcpStream>) -> io::Result<bool> {
        let is_for_this_machine = is_loopback(stream.local_addr()?);
        let request = read_request(stream)?;
        self.forget_silent(stream);
        let request = match request {
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

    const REQUEST: &[u8] = b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n";

    /// A server of a page of so many bytes.
    fn serving(bytes: usize) -> SocketAddr {
        let body: Arc<[u8]> = vec![b'x'; bytes].into();
        let answer = move |_: &Request| Answer { content_type: "text/plain", body: body.clone() };
        serve("127.0.0.1:0".parse().unwrap(), "/page", answer).unwrap().0
    }

    /// A client that sends this and reads nothing.
    fn client(address: SocketAddr, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        stream
    }

    /// The first line of the answer to a request.
    fn status(address: SocketAddr) -> String {
        let mut first = [0; 15];
        client(address, REQUEST).read_exact(&mut first).unwrap();
        String::from_utf8_lossy(&first).into_owned()
    }

    #[test]
    fn connections_that_say_nothing_keep_nobody_out() {
        for said in [&b""[..], b"GET /page"] {
            // Those of the last turn may not have ended yet.
            let address = serving(3);
            let silent: Vec<_> = (0..100).map(|_| client(address, said)).collect();
            assert!(silent.len() > MOST_CONNECTIONS);
            assert_eq!(status(address), "HTTP/1.1 200 OK");
        }
    }

    #[test]
    fn connections_that_have_a_request_keep_their_places() {
        // More than the kernel takes for a client that does not read.
        let address = serving(16 << 20);
        let deaf = (0..MOST_CONNECTIONS).map(|_| {
            let mut stream = client(address, REQUEST);
            stream.read_exact(&mut [0; 15]).unwrap();
            stream
        });
        let _deaf: Vec<_> = deaf.collect();
        assert_eq!(status(address), "HTTP/1.1 503 Se");
    }

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
