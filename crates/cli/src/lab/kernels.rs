//! `wakescope lab kernels`

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wakescope_core::preemption::Model;
use wakescope_lab::archive::{ArchiveError, Site};
use wakescope_lab::cache::Cache;
use wakescope_lab::kernel::Arch;
use wakescope_lab::kernel::catalogue::{Catalogue, Offer};
use wakescope_lab::kernel::fetch::Source;
use wakescope_lab::kernel::name::Name;
use wakescope_lab::kernel::order::compare;
use wakescope_lab::kernel::store::{Stored, stored};
use wakescope_report::style::clean;

use super::debian::ArchArg;
use super::failure_of_archive;
use super::waiting::{Waiting, megabytes};
use crate::{Failure, Outcome, output};

/// List the kernels that can be fetched, and the fetched ones
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab kernels
  wakescope lab kernels --all --arch arm64
  wakescope lab kernels --json | jq '.kernels[] | select(.cached)'")]
pub(super) struct KernelsArgs {
    /// List every version, not just the newest of each series and flavour
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    arch: ArchArg,

    /// Update the list of kernels, even if it was updated today
    #[arg(long)]
    refresh: bool,

    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `wakescope lab kernels`.
pub(super) fn run(args: &KernelsArgs) -> Result<Outcome, Failure> {
    let cache = super::cache()?;
    let arch = args.arch.or_own();
    let catalogue = catalogue(&cache, arch, args.refresh)?;
    let rows = rows(&catalogue, &stored(&cache, arch), args.all);
    output::print(&if args.json { json(&rows, arch) } else { table(&rows, args.all) })?;
    Ok(Outcome::Done)
}

/// What the archive has. Where it cannot be asked, what is cached is worth a list too.
fn catalogue(cache: &Cache, arch: Arch, refresh: bool) -> Result<Catalogue, Failure> {
    let mut waiting = Waiting::new()?;
    let site = Site::from_env().map_err(ArchiveError::Site);
    let got = site.and_then(|s| Source::new(cache, s, arch).catalogue(refresh, &mut waiting));
    drop(waiting);
    match got {
        Ok(catalogue) => Ok(catalogue),
        Err(e) => {
            let failure = failure_of_archive("list the archive's kernels", &e);
            let helpless = refresh || matches!(e, ArchiveError::Stopped);
            if helpless || stored(cache, arch).is_empty() {
                return Err(failure);
            }
            output::complain(&failure);
            Ok(Catalogue::default())
        }
    }
}

/// A kernel of the list.
struct Row {
    name: Name,
    /// What the archive has, if it does.
    offer: Option<Offer>,
    /// What the cache has, if it does.
    stored: Option<Stored>,
}

impl Row {
    fn package_version(&self) -> &str {
        let cached = || self.stored.as_ref().map(|s| s.card.package_version.as_str());
        self.offer.as_ref().map(|o| o.version.as_str()).or_else(cached).unwrap_or("")
    }

    fn size(&self) -> u64 {
        let cached = || self.stored.as_ref().map(|s| s.card.fetched_bytes);
        self.offer.as_ref().map(Offer::size).or_else(cached).unwrap_or(0)
    }
}

/// The kernels of archive and cache together; of the archive, only the newest of each series and
/// flavour, unless all are asked for.
fn rows(catalogue: &Catalogue, stored: &[Stored], all: bool) -> Vec<Row> {
    let offers: Vec<&Offer> =
        if all { catalogue.offers.iter().collect() } else { catalogue.newest().collect() };
    let mut rows: BTreeMap<Name, Row> = BTreeMap::new();
    for offer in offers {
        let (name, offer) = (offer.name.clone(), Some(offer.clone()));
        rows.insert(name.clone(), Row { name, offer, stored: None });
    }
    for kernel in stored {
        let offer = || catalogue.offers.iter().find(|o| o.name == kernel.name).cloned();
        let row = rows.entry(kernel.name.clone());
        let row =
            row.or_insert_with(|| Row { name: kernel.name.clone(), offer: offer(), stored: None });
        row.stored = Some(kernel.clone());
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by(|a, b| {
        compare(a.name.series(), b.name.series())
            .then_with(|| a.name.flavour.cmp(&b.name.flavour))
            .then_with(|| compare(a.package_version(), b.package_version()))
            .then_with(|| compare(&a.name.version, &b.name.version))
    });
    rows
}

/// ```text
///  kernel         release                cached   size  preemption
///  6.1-cloud      6.1.0-56-cloud-amd64   yes     27 MB  voluntary by default, changeable at boot
///  6.1-rt         6.1.0-56-rt-amd64              70 MB
/// ```
fn table(rows: &[Row], all: bool) -> String {
    let mut lines = vec![["kernel", "release", "cached", "size", "preemption"].map(String::from)];
    for (i, row) in rows.iter().enumerate() {
        // The short name means the newest.
        let newer = rows.get(i + 1).is_some_and(|next| next.name.short() == row.name.short());
        let name = if all || newer { row.name.exact() } else { row.name.short() };
        let cached = if row.stored.is_some() { "yes" } else { "" };
        let preemption = match (&row.stored, &row.offer) {
            (Some(stored), _) => preemption(stored),
            (None, Some(offer)) if !offer.complete => "(image only)".into(),
            _ => String::new(),
        };
        let size = megabytes(row.size());
        lines.push([name, row.name.release(), cached.into(), size, preemption]);
    }
    let width = |i: usize| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0);
    let [w0, w1, w2, w3] = [0, 1, 2, 3].map(width);
    let mut out = String::new();
    for [name, release, cached, size, preemption] in &lines {
        let line = format!(" {name:w0$}  {release:w1$}  {cached:w2$}  {size:>w3$}  {preemption}");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// What the configuration of a kernel says, in a few words.
fn preemption(kernel: &Stored) -> String {
    match kernel.preemption().model {
        Model::Unknown => "not known".into(),
        Model::Rt => "RT".into(),
        model if kernel.is_dynamic() => format!("{model} by default, changeable at boot"),
        model => format!("{model}, built in"),
    }
}

fn json(rows: &[Row], arch: Arch) -> String {
    let kernels: Vec<Value> = rows
        .iter()
        .map(|row| {
            let card = row.stored.as_ref().map(|s| &s.card);
            json!({
                "name": row.name.exact(),
                "short_name": row.name.short(),
                "series": row.name.series(),
                "flavour": row.name.flavour,
                "release": row.name.release(),
                "package_version": clean(row.package_version(), 80),
                "fetched_bytes": row.size(),
                "can_be_fetched": row.offer.is_some(),
                "complete": row.offer.as_ref().map(|o| o.complete),
                "cached": row.stored.is_some(),
                "version": card.map(|c| &c.version),
                "sha256": card.map(|c| &c.sha256),
                "model": row.stored.as_ref().map(|s| s.preemption().model),
                "dynamic": row.stored.as_ref().map(Stored::is_dynamic),
            })
        })
        .collect();
    let all = json!({"schema": "wakescope.kernels/1", "arch": arch, "kernels": kernels});
    format!("{all}\n")
}
