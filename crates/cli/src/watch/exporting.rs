//! The figures of a watch for programs that fetch them: Prometheus, and those that read its formats.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wakescope_core::watch::Window;
use wakescope_core::watch::counters::{Counters, Split};
use wakescope_formats::metrics::watch::{families, scrapes};
use wakescope_formats::metrics::{self, Family, Form};

use crate::http::{self, Answer, Served};
use crate::{Failure, output};

/// The one page that there is.
const PAGE: &str = "/metrics";

/// Where the page is unless something else is asked for.
const ADDRESS: &str = "127.0.0.1:9464";

/// Options of exporters.
#[derive(clap::Args)]
pub(super) struct ExportArgs {
    /// Let Prometheus fetch the figures at http://ADDRESS/metrics [default ADDRESS: 127.0.0.1:9464]. Anybody
    /// who can connect to it can read the names of tasks and cgroups
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = ADDRESS, conflicts_with_all = ["replay", "once"])]
    listen: Option<SocketAddr>,

    /// What has a histogram of its own there: each cgroup, or tasks of one name in one cgroup
    #[arg(long, value_name = "WHAT", value_enum, default_value = "cgroup", requires = "listen")]
    export_by: SplitArg,

    /// The most histograms there; others are one
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=4096), requires = "listen")]
    export_series: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SplitArg {
    /// Each cgroup
    Cgroup,
    /// Tasks of one name in one cgroup
    Series,
}

impl ExportArgs {
    /// Listens from now on, if that is asked for.
    pub(super) fn start(&self) -> Result<Option<Exporter>, Failure> {
        let split = match self.export_by {
            SplitArg::Cgroup => Split::Cgroup,
            SplitArg::Series => Split::Series,
        };
        let counters = Counters::new(split, self.export_series.into());
        self.listen.map(|address| Exporter::listen(address, counters)).transpose()
    }
}

/// Has the figures ready for whoever asks.
pub(super) struct Exporter {
    counters: Counters,
    /// What is answered now. It is locked only for as long as it takes to take or replace it.
    page: Arc<Mutex<Arc<Page>>>,
    served: Arc<Served>,
}

impl Exporter {
    fn listen(address: SocketAddr, counters: Counters) -> Result<Self, Failure> {
        let page = Arc::new(Mutex::new(Arc::new(Page::of(families(&counters)))));
        let shared = Arc::clone(&page);
        let answer = move |request: &http::request::Request| {
            let page = Arc::clone(&shared.lock().unwrap_or_else(PoisonError::into_inner));
            page.answer(Form::accepted(&request.accept))
        };
        let (bound, served) = http::serve(address, PAGE, answer).map_err(|e| {
            let failure = Failure::new(format!("cannot listen on {address}: {e}"));
            failure.try_this(match e.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "another program, or another watch, listens there: name another port: --listen \
                     127.0.0.1:9465"
                }
                _ => "name an address of this machine, and a port from 1024 on: --listen 127.0.0.1:9464",
            })
        })?;
        output::tell(&format!("figures for Prometheus: http://{bound}{PAGE}"));
        if !bound.ip().is_loopback() {
            output::tell(
                "  other machines that can connect to it can read the names of tasks and cgroups",
            );
        }
        Ok(Self { counters, page, served })
    }

    /// Adds a window to the figures.
    pub(super) fn add(&mut self, window: &Window) {
        self.counters.add(window);
        let mut families = families(&self.counters);
        families.push(scrapes(self.served.counts()));
        let next = Arc::new(Page::of(families));
        let last = {
            let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *page, next)
        };
        // It may be large, and nobody has to wait until it is gone.
        drop(last);
    }
}

/// The figures up to one moment, in each form that somebody asked for: however often they ask, it is written
/// once.
struct Page {
    families: Vec<Family>,
    bodies: [OnceLock<Arc<[u8]>>; Form::ALL.len()],
}

impl Page {
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
