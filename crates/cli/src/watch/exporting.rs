//! The figures of a watch for other programs: fetched by Prometheus, or sent to a collector of OpenTelemetry.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use wakescope_core::units::SpanNs;
use wakescope_core::watch::Window;
use wakescope_core::watch::counters::{Counters, Split};
use wakescope_sys::clock;
use wakescope_sys::machine::host_name;
use wakescope_sys::signal::EndSignals;

use crate::Failure;
use crate::http::client::Url;
use page::Page;
use push::{Push, Settings};

mod page;
mod push;

/// Where the page is unless something else is asked for.
const ADDRESS: &str = "127.0.0.1:9464";

/// Where collectors take metrics.
const OTLP_PATH: &str = "/v1/metrics";

/// So long after the first signal another one is no second copy of it.
const TWICE: SpanNs = SpanNs(200_000_000);

/// The address to listen on, as numbers: a name may be that of several addresses.
fn address(text: &str) -> Result<SocketAddr, String> {
    let hint = || format!("write an IP address and a port, as in {ADDRESS} or [::1]:9464");
    text.parse().map_err(|_| hint())
}

/// Options of exporters.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("exporters").multiple(true))]
pub(super) struct ExportArgs {
    /// Let Prometheus fetch the figures at http://ADDRESS/metrics [default ADDRESS: 127.0.0.1:9464]. Anybody
    /// who can connect to it can read the names of tasks and cgroups
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = ADDRESS, value_parser = address, conflicts_with_all = ["replay", "once"], group = "exporters")]
    listen: Option<SocketAddr>,

    /// Send the figures to a collector of OpenTelemetry, as JSON over HTTP: http://127.0.0.1:4318. It gets
    /// the name of this machine and those of tasks and cgroups
    #[arg(long, value_name = "URL", conflicts_with_all = ["replay", "once"], group = "exporters")]
    otlp: Option<Url>,

    /// How often to send the figures
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::interval, requires = "otlp")]
    otlp_every: SpanNs,

    /// Export a histogram for each cgroup, or for the tasks of one name in one cgroup
    #[arg(long, value_name = "WHAT", value_enum, default_value = "cgroup", requires = "exporters")]
    export_by: SplitArg,

    /// The most histograms to export; all further waits share one
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=4096), requires = "exporters")]
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
    /// Whether other programs get the figures.
    pub(super) fn is_asked_for(&self) -> bool {
        self.listen.is_some() || self.otlp.is_some()
    }

    /// Listens and sends from now on, as far as that is asked for.
    pub(super) fn start(&self) -> Result<Exporter, Failure> {
        let split = match self.export_by {
            SplitArg::Cgroup => Split::Cgroup,
            SplitArg::Series => Split::Series,
        };
        let series = self.export_series.into();
        let listen = |address| Page::listen(address, Counters::new(split, series));
        let page = self.listen.map(listen).transpose()?;
        let send = |url: &Url| {
            let url = url.clone().or_path(OTLP_PATH);
            let (every, host) = (self.otlp_every, host_name());
            Push::start(Settings { url, every, split, series, host })
                .map_err(|e| Failure::new(format!("cannot start a thread that sends figures: {e}")))
        };
        let push = self.otlp.as_ref().map(send).transpose()?;
        Ok(Exporter { page, push })
    }
}

/// Tells other programs.
#[derive(Default)]
pub(super) struct Exporter {
    page: Option<Page>,
    push: Option<Push>,
}

impl Exporter {
    /// Whether other programs get the figures.
    pub(super) fn is_in_use(&self) -> bool {
        self.page.is_some() || self.push.is_some()
    }

    /// Adds a window that ended at `end_ns`, since 1970, to the figures; `gone` is as for [`Counters::add`].
    /// What the user should know now.
    pub(super) fn add(
        &mut self,
        window: &Window,
        end_ns: u64,
        gone: &BTreeSet<u64>,
    ) -> Vec<String> {
        if let Some(page) = &mut self.page {
            page.add(window, gone);
        }
        self.push.as_ref().map_or_else(Vec::new, |push| push.add(window, end_ns, gone))
    }

    /// Sends what is left; fails if something was not taken, or if a signal says to end before.
    pub(super) fn finish(self, signals: &EndSignals) -> Result<(), Failure> {
        // The first signal may come twice: timeout(1) sends it to the process, and then to its group.
        let begun = clock::now();
        let gives_up = |span| signals.wait(span).is_some() && clock::now().since(begun) > TWICE;
        self.push.map_or(Ok(()), |push| push.finish(gives_up))
    }
}
