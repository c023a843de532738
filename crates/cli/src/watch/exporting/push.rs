//! The figures of a watch, sent to a collector of OpenTelemetry.
//!
//! Each request has what came since the one before. One that the collector cannot take now is sent again, as
//! it is, until it can; meanwhile all that comes is added up. So however long that lasts, nothing is lost,
//! and memory holds two requests at most. What the collector refuses for good is lost, and counted.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wakescope_core::units::{SpanNs, counted};
use wakescope_core::watch::Window;
use wakescope_core::watch::counters::{Counters, Split};
use wakescope_formats::metrics::otlp::{Period, request};
use wakescope_formats::metrics::watch::{deltas, lost_waits};
use wakescope_report::style::clean;
use wakescope_sys::clock;

use crate::Failure;
use crate::http::client::{Reply, Url, post_json};

/// How long a request may take, and the last one.
const PATIENCE: SpanNs = SpanNs(10_000_000_000);
const LAST_PATIENCE: SpanNs = SpanNs(2_000_000_000);

/// How long the end may take: one request may be under way, and what came since is sent behind it.
const END_PATIENCE: SpanNs = SpanNs(5_000_000_000);

/// How often the end of the thread is looked for.
const LOOK: SpanNs = SpanNs(20_000_000);

/// The time between two attempts: this at most in the beginning, doubled each time, up to that.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is sent, where, and how often.
pub(super) struct Settings {
    pub(super) url: Url,
    pub(super) every: SpanNs,
    pub(super) split: Split,
    pub(super) series: usize,
    /// The name of this machine.
    pub(super) host: String,
}

/// Sends windows, from a thread of its own.
pub(super) struct Push {
    url: Url,
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), Failure>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// What is not in a request yet, and when its last window ended, ns since 1970.
    counters: Counters,
    end_ns: u64,
    /// Waits of the request that is not taken yet, and those that were refused so far: these are lost.
    under_way: u64,
    all_lost: u64,
    is_over: bool,
    /// What the user should know.
    notes: Vec<String>,
}

impl Push {
    pub(super) fn start(settings: Settings) -> io::Result<Self> {
        let counters = Counters::new(settings.split, settings.series);
        let (end_ns, under_way, all_lost) = (0, 0, 0);
        let (is_over, notes) = (false, Vec::new());
        let state = State { counters, end_ns, under_way, all_lost, is_over, notes };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let sender = Sender {
            shared: Arc::clone(&shared),
            settings,
            sent_until_ns: None,
            lost: 0,
            failing: false,
        };
        let url = sender.settings.url.clone();
        let thread = thread::Builder::new().name("otlp".into()).spawn(move || sender.run())?;
        Ok(Self { url, shared, thread })
    }

    /// Adds a window that ended at `end_ns`, since 1970, to the next request. What the user should know now.
    pub(super) fn add(&self, window: &Window, end_ns: u64, gone: &BTreeSet<u64>) -> Vec<String> {
        let mut state = self.shared.lock();
        state.counters.add(window, gone);
        state.end_ns = end_ns;
        std::mem::take(&mut state.notes)
    }

    /// Sends what is left; fails if something was not taken. `gives_up` waits for a time, and says whether the user
    /// does not want to wait any longer. The request that is under way then is left alone.
    pub(super) fn finish(self, mut gives_up: impl FnMut(SpanNs) -> bool) -> Result<(), Failure> {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        let deadline = clock::now().after(END_PATIENCE);
        while !self.thread.is_finished() {
            let why = match gives_up(LOOK) {
                true => "a signal ended the wait for its answer",
                false if clock::now() >= deadline => "it does not answer",
                false => continue,
            };
            return Err(self.shared.lock().left_over(&self.url, why));
        }
        self.thread.join().unwrap_or(Ok(()))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for so long, or until it is over. Whether it is.
    fn pause(&self, span: Duration) -> bool {
        let waits = |state: &mut State| !state.is_over;
        let waited = self.changed.wait_timeout_while(self.lock(), span, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }
}

impl State {
    /// Why figures were left over in the end.
    fn left_over(&self, url: &Url, why: &str) -> Failure {
        // What came since the last request is not in it.
        let rest: u64 = self.counters.cpus().map(|(_, _, counter)| counter.waits.count).sum();
        let waits = counted(self.under_way.saturating_add(rest), "wait");
        let failure = Failure::new(format!("cannot send figures to {url}: {why}"))
            .because(format!("the last {waits} are not sent"));
        let failure = match self.all_lost {
            0 => failure,
            lost => {
                let lost = counted(lost, "wait");
                failure.because(format!("requests with {lost} were refused before: these are lost"))
            }
        };
        failure
            .try_this("see whether a collector listens there, and whether it takes OTLP over HTTP")
    }
}

/// A request, how many waits are in it, and how many lost waits it reports.
struct Request {
    body: String,
    waits: u64,
    lost: u64,
}

/// What became of one.
enum Sent {
    Taken,
    /// Why not; it may be taken later.
    Later(String),
    /// Why it never will be.
    Refused(String),
}

/// What sends requests.
struct Sender {
    shared: Arc<Shared>,
    settings: Settings,
    /// When the last period ended, ns since 1970; `None` before the first.
    sent_until_ns: Option<u64>,
    /// Waits that were lost since the last request that counted them.
    lost: u64,
    /// Whether the last request was not taken.
    failing: bool,
}

impl Sender {
    fn run(mut self) -> Result<(), Failure> {
        let every = Duration::from_nanos(self.settings.every.0);
        loop {
            let mut is_over = self.shared.pause(every);
            if let Some(request) = self.next() {
                let mut pause = FIRST_PAUSE.min(every);
                while let Err(why) = self.send(&request, is_over) {
                    if is_over {
                        return Err(self.left_over(&why));
                    }
                    is_over = self.shared.pause(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            if is_over {
                break;
            }
        }
        // What came while the last one was sent again and again.
        if let Some(request) = self.next() {
            self.send(&request, true).map_err(|why| self.left_over(&why))?;
        }
        match self.shared.lock().all_lost {
            0 => Ok(()),
            lost => Err(Failure::new(format!(
                "{} refused requests with {}, wholly or in part: these are lost",
                self.settings.url,
                counted(lost, "wait")
            ))
            .try_this("see what it says of them, and whether it takes OTLP with JSON")),
        }
    }

    /// All that came since the last request; `None` if there was no window.
    fn next(&mut self) -> Option<Request> {
        let Settings { split, series, .. } = self.settings;
        let (counters, end_ns) = {
            let mut state = self.shared.lock();
            let none = Counters::new(split, series);
            (std::mem::replace(&mut state.counters, none), state.end_ns)
        };
        let watched_ns = counters.watched_ns();
        if watched_ns == 0 {
            return None;
        }
        let period = period(self.sent_until_ns, watched_ns, end_ns);
        self.sent_until_ns = Some(period.end_ns);
        let waits = counters.cpus().map(|(_, _, counter)| counter.waits.count).sum();
        self.shared.lock().under_way = waits;
        let mut families = deltas(&counters);
        let lost = std::mem::take(&mut self.lost);
        families.push(lost_waits(lost));
        let body = request(&families, period, &self.settings.host);
        Some(Request { body, waits, lost })
    }

    /// Sends a request; fails if it is to be sent again.
    fn send(&mut self, request: &Request, last: bool) -> Result<(), String> {
        let patience = if last { LAST_PATIENCE } else { PATIENCE };
        let url = &self.settings.url;
        let sent = judge(post_json(url, request.body.as_bytes(), patience));
        let mut state = self.shared.lock();
        if !matches!(sent, Sent::Later(_)) {
            state.under_way = 0;
        }
        match sent {
            Sent::Taken if self.failing => {
                self.failing = false;
                state.notes.push(format!("{url} takes figures again: all that was kept is sent"));
            }
            Sent::Taken => {}
            Sent::Later(why) => {
                if !std::mem::replace(&mut self.failing, true) && !last {
                    state.notes.push(format!(
                        "cannot send figures to {url}: {why}\n  they are kept in memory and added \
                         up until that is possible"
                    ));
                }
                return Err(why);
            }
            Sent::Refused(why) => {
                if state.all_lost == 0 {
                    state.notes.push(format!("{url} refuses figures: {why}: they are lost"));
                }
                self.failing = false;
                self.lost = request.lost.saturating_add(request.waits);
                state.all_lost = state.all_lost.saturating_add(request.waits);
            }
        }
        Ok(())
    }

    fn left_over(&self, why: &str) -> Failure {
        self.shared.lock().left_over(&self.settings.url, why)
    }
}

/// The period of windows of `watched_ns` in all, the last of which ended at `end_ns`: as long as these, behind
/// the one `before`. Only where the clock was set, or the machine was suspended, periods do not follow each
/// other.
fn period(before: Option<u64>, watched_ns: u64, end_ns: u64) -> Period {
    /// Two clocks are not read at one moment: a busy machine puts time between.
    const UNSURE_NS: u64 = 1_000_000_000;
    let start_ns = end_ns.saturating_sub(watched_ns);
    let start_ns = before.filter(|ns| ns.abs_diff(start_ns) < UNSURE_NS).unwrap_or(start_ns);
    Period { start_ns, end_ns: start_ns.saturating_add(watched_ns) }
}

/// What an answer means, by OTLP's rules.
fn judge(reply: io::Result<Reply>) -> Sent {
    let Reply { status, body } = match reply {
        Ok(reply) => reply,
        Err(e) => return Sent::Later(e.to_string()),
    };
    let text = clean(String::from_utf8_lossy(&body).trim(), 200);
    match status {
        200..=299 => match rejected(&body) {
            0 => Sent::Taken,
            points => Sent::Refused(format!("{}: {text}", counted(points, "data point"))),
        },
        429 | 502..=504 => Sent::Later(format!("it answers {status}")),
        _ if text.is_empty() => Sent::Refused(format!("it answers {status}")),
        _ => Sent::Refused(format!("it answers {status}: {text}")),
    }
}

/// How many points of an accepted request were not taken.
fn rejected(body: &[u8]) -> u64 {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let points = &body["partialSuccess"]["rejectedDataPoints"];
    let text = points.as_str().and_then(|text| text.parse().ok());
    points.as_u64().or(text).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use wakescope_core::watch::{Cpu, Waits};

    use super::*;

    #[test]
    fn a_period_is_as_long_as_its_windows() {
        const S: u64 = 1_000_000_000;
        for (before, watched_s, end_s, want) in [
            (None, 3, 100, (97, 100)),
            (Some(97 * S), 3, 100, (97, 100)),
            // Another window ended just before the clocks were read.
            (Some(97 * S), 6, 103, (97, 103)),
            // The clock was set forward, or the machine was suspended; the clock was set back.
            (Some(97 * S), 3, 500, (497, 500)),
            (Some(97 * S), 3, 50, (47, 50)),
        ] {
            let Period { start_ns, end_ns } = period(before, watched_s * S, end_s * S);
            assert_eq!((start_ns / S, end_ns / S), want, "{before:?}");
        }
        let late = period(Some(97 * S), 3 * S, 100 * S + S / 2);
        assert_eq!(late, Period { start_ns: 97 * S, end_ns: 100 * S });
    }

    #[test]
    fn answers_mean_what_the_protocol_says() {
        let sent = |status, body: &str| judge(Ok(Reply { status, body: body.into() }));
        for (status, body) in [(200, "{}"), (200, ""), (202, "{\"partialSuccess\":{}}")] {
            assert!(matches!(sent(status, body), Sent::Taken), "{status} {body}");
        }
        for status in [429, 502, 503, 504] {
            assert!(matches!(sent(status, ""), Sent::Later(_)), "{status}");
        }
        for (status, body) in [
            (400, "no"),
            (404, ""),
            (500, ""),
            (301, ""),
            (200, "{\"partialSuccess\":{\"rejectedDataPoints\":\"3\"}}"),
            (200, "{\"partialSuccess\":{\"rejectedDataPoints\":3}}"),
        ] {
            assert!(matches!(sent(status, body), Sent::Refused(_)), "{status} {body}");
        }
        for (body, want) in
            [("no\n", "it answers 500: no"), ("", "it answers 500"), ("\n", "it answers 500")]
        {
            assert!(matches!(sent(500, body), Sent::Refused(why) if why == want), "{body:?}");
        }
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(matches!(judge(Err(refused)), Sent::Later(_)));
    }

    /// A collector that takes connections and never answers.
    #[test]
    fn who_gives_up_does_not_wait_for_an_answer() {
        let collector = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", collector.local_addr().unwrap());
        let settings = Settings {
            url: url.parse().unwrap(),
            every: SpanNs(1_000_000),
            split: Split::Cgroup,
            series: 9,
            host: "a".into(),
        };
        let push = Push::start(settings).unwrap();
        let window = || Window {
            window_ns: 1_000_000_000,
            cpus: vec![Cpu { cpu: 0, switches: 9, waits: Waits { count: 7, ..Waits::default() } }],
            ..Window::default()
        };
        push.add(&window(), 1_000_000_000, &BTreeSet::new());
        let (_under_way, _) = collector.accept().unwrap();
        push.add(&window(), 2_000_000_000, &BTreeSet::new());
        let failure = push.finish(|_| true).unwrap_err().to_string();
        assert!(failure.contains("a signal ended the wait for its answer"), "{failure}");
        assert!(failure.contains("the last 14 waits are not sent"), "{failure}");
    }
}
