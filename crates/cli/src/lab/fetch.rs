//! `wakescope lab fetch`

use wakescope_lab::archive::{ArchiveError, Site};
use wakescope_lab::cache::Cache;
use wakescope_lab::kernel::fetch::{Fetched, Source};
use wakescope_lab::qemu::set_up;

use super::debian::ArchArg;
use super::waiting::{Waiting, megabytes};
use super::{failure_of_archive, failure_of_fetch, failure_of_set_up};
use crate::{Failure, Outcome};

/// What stands for the emulator among the names of kernels.
const QEMU: &str = "qemu";

/// Fetch kernels from Debian's archive, and the emulator, for use by the lab only
///
/// Signatures are checked. The system's own packages and settings are neither used nor changed.
/// Files are kept in $WAKESCOPE_CACHE, or ~/.cache/wakescope.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab fetch qemu 6.1-cloud 6.1-rt 7.2-cloud
  wakescope lab fetch 6.1.0-56-cloud --arch arm64")]
pub(super) struct FetchArgs {
    /// A kernel as listed by `wakescope lab kernels`: 6.1-cloud for the newest version, or
    /// 6.1.0-56-cloud; or `qemu`
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    #[command(flatten)]
    arch: ArchArg,

    /// Update the list of kernels, even if it was updated today
    #[arg(long)]
    refresh: bool,
}

/// Runs `wakescope lab fetch`.
pub(super) fn run(args: &FetchArgs) -> Result<Outcome, Failure> {
    let cache = super::cache()?;
    let arch = args.arch.or_own();
    let site = Site::from_env()
        .map_err(|e| failure_of_archive("fetch anything", &ArchiveError::Site(e)))?;
    let mut waiting = Waiting::new()?;
    let mut refresh = args.refresh;
    for name in &args.names {
        if name == QEMU {
            fetch_qemu(&cache, &site, args.refresh, &mut waiting)?;
        } else {
            let source = Source::new(&cache, site.clone(), arch);
            match source.fetch(name, refresh, &mut waiting) {
                Ok(fetched) => tell_kernel(name, &fetched, &mut waiting),
                Err(e) => return Err(failure_of_fetch(name, &e)),
            }
            // The lists are new now.
            refresh = false;
        }
    }
    Ok(Outcome::Done)
}

fn fetch_qemu(
    cache: &Cache,
    site: &Site,
    refresh: bool,
    waiting: &mut Waiting,
) -> Result<(), Failure> {
    match set_up(cache, site, refresh, waiting) {
        Ok(done) => {
            waiting.tell(&format!("qemu: {}{}", done.qemu.banner, how(done.was_there, done.bytes)));
            Ok(())
        }
        Err(e) => Err(failure_of_set_up(&e)),
    }
}

fn tell_kernel(name: &str, fetched: &Fetched, waiting: &mut Waiting) {
    let release = &fetched.kernel.release;
    waiting.tell(&format!("{name}: {release}{}", how(fetched.was_there, fetched.bytes)));
}

fn how(was_there: bool, bytes: u64) -> String {
    if was_there { ", was here already".into() } else { format!(", {}", megabytes(bytes)) }
}
