//! Debian's kernels: of which architecture, and where one comes from.

use wakescope_lab::cache::Cache;
use wakescope_lab::kernel::fetch::Source;
use wakescope_lab::kernel::{Arch, Kernel};
use wakescope_lab::sum::Memo;

use super::waiting::Waiting;
use super::{failure_of_fetch, site};
use crate::Failure;
use crate::offering::offering;

/// The argument that says for which machines the kernels are.
#[derive(clap::Args)]
pub(super) struct ArchArg {
    /// Architecture of Debian's kernels: amd64 or arm64 (default: this machine's)
    #[arg(
        long,
        value_parser = offering(["amd64", "arm64"], |text: &str| text.parse::<Arch>()),
        hide_possible_values = true
    )]
    pub(super) arch: Option<Arch>,
}

impl ArchArg {
    /// The architecture that was named, or else this machine's.
    pub(super) fn or_own(&self) -> Arch {
        self.arch.or_else(Arch::of_this_program).unwrap_or(Arch::Amd64)
    }
}

/// The kernel that is called `name`. One that is here is taken as it is: only `lab fetch` looks for a newer one.
pub(super) fn kernel(
    name: &str,
    arch: Arch,
    cache: &Cache,
    waiting: &mut Waiting,
) -> Result<Kernel, Failure> {
    if let Ok(kernel) = Kernel::from_cache(cache, arch, name, &mut Memo::open(cache)) {
        return Ok(kernel);
    }
    let fetched = Source::new(cache, site()?, arch).fetch(name, false, waiting);
    Ok(fetched.map_err(|e| failure_of_fetch(name, &e))?.kernel)
}
