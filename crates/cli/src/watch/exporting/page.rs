//! The page of figures that Prometheus fetches.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wakescope_core::watch::Window;
use wakescope_core::watch::counters::Counters;
use wakescope_formats::metrics::watch::{families, scrapes};
use wakescope_formats::metrics::{self, Family, Form};

use crate::failure::lacks_threads;
use crate::http::{self, Answer, Served};
use crate::{Failure, output};

/// The one page that there is.
const PATH: &str = "/metrics";

/// Has the figures ready for whoever asks.
pub(super) struct Page {
    counters: Counters,
    /// What is answered now. It is locked only for as long as it takes to take or replace it.
    now: Arc<Mutex<Arc<Snapshot>>>,
    served: Arc<Served>,
}

impl Page {
    pub(super) fn listen(address: SocketAddr, counters: Counters) -> Result<Self, Failure> {
        let now = Arc::new(Mutex::new(Arc::new(Snapshot::of(families(&counters)))));
        let shared = Arc::clone(&now);
        let answer = move |request: &http::request::Request| {
            let now = Arc::clone(&shared.lock().unwrap_or_else(PoisonError::into_inner));
            now.answer(Form::accepted(&request.accept))
        };
        let (bound, served) = http::serve(address, PATH, answer).map_err(|e| {
            let failure = Failure::new(format!("cannot listen on {address}: {e}"));
            if lacks_threads(&e) {
                return failure.lacking_threads(None);
            }
            failure.try_this(match e.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "another program, or another watch, listens there: name another port: --listen \
                     127.0.0.1:9465"
                }
                _ => "name an address of this machine, and a port from 1024 on: --listen 127.0.0.1:9464",
            })
        })?;
        output::tell(&format!("figures for Prometheus: http://{bound}{PATH}"));
        if !http::is_loopback(bound) {
            output::tell(
                "  other machines that can connect to it can read the names of tasks and cgroups",
            );
        }
        Ok(Self { counters, now, served })
    }

    /// Adds a window to the figures.
    pub(super) fn add(&mut self, window: &Window, gone: &BTreeSet<u64>) {
        self.counters.add(window, gone);
        let mut families = families(&self.counters);
        families.push(scrapes(self.served.counts()));
        let next = Arc::new(Snapshot::of(families));
        let last = {
            let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *now, next)
        };
        // It may be large, and nobody has to wait until it is gone.
        drop(last);
    }
}

/// The figures up to one moment, in each form that somebody asked for: however often they ask, it is written
/// once.
struct Snapshot {
    families: Vec<Family>,
    bodies: [OnceLock<Arc<[u8]>>; Form::ALL.len()],
}

impl Snapshot {
    fn of(families: Vec<Family>) -> Self {
        Self { families, bodies: Default::default() }
    }

    fn answer(&self, form: Form) -> Answer {
        let written = || {
            let mut body = Vec::new();
            // Memory takes all that is written.
            let _ = metrics::write(&self.families, form, &mut body);
            body.into()
        };
        let place = Form::ALL.iter().position(|&other| other == form).unwrap_or(0);
        let body = self
            .bodies
            .get(place)
            .map_or_else(written, |body| Arc::clone(body.get_or_init(written)));
        Answer { content_type: form.content_type(), body }
    }
}
