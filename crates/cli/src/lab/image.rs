//! `wakescope lab image`

use wakescope_lab::cache::Cache;
use wakescope_lab::guest::root::{Fetched, Names, fetch};
use wakescope_lab::kernel::Arch;

use super::debian::ArchArg;
use super::waiting::{Waiting, megabytes};
use super::{shown, site, without_archive};
use crate::{Failure, Outcome, output};

/// Make an image of Debian packages, which gives guests programs beside wakescope
///
/// The packages and their dependencies come from Debian 13. Signatures are checked. The system's own
/// packages and settings are neither used nor changed. Prints where the image is, its SHA-256, and the
/// packages. `lab run --packages` takes the same names, and makes the image by itself if it is missing.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab image gcc,libc6-dev
  wakescope lab run --kernel 6.1-cloud --load dbench --packages dbench")]
pub(super) struct ImageArgs {
    /// The packages, separated by commas
    #[arg(value_name = "PACKAGE,…")]
    names: Names,

    #[command(flatten)]
    arch: ArchArg,

    /// Look for newer packages. Cells that were run with the old image are then no longer repeatable
    #[arg(long)]
    refresh: bool,
}

/// Runs `wakescope lab image`.
pub(super) fn run(args: &ImageArgs) -> Result<Outcome, Failure> {
    let cache = super::cache()?;
    let arch = args.arch.or_own();
    let mut waiting = Waiting::new()?;
    let fetched = image_of(&args.names, arch, args.refresh, &cache, &mut waiting)?;
    drop(waiting);
    output::print(&text(&fetched))?;
    Ok(Outcome::Done)
}

fn text(fetched: &Fetched) -> String {
    let Fetched { image, was_there, bytes } = fetched;
    let how = if *was_there {
        "was here already".into()
    } else {
        format!("{} fetched", megabytes(*bytes))
    };
    let mut text = format!(
        "{}\n  {}, {how}\n  sha256 {}\n",
        shown(&image.path),
        megabytes(image.bytes),
        image.sha256
    );
    for package in &image.packages {
        text += &format!("  {} {}\n", package.name, package.version);
    }
    text
}

/// The image of these packages, made now unless it is in the cache.
pub(super) fn image_of(
    names: &Names,
    arch: Arch,
    refresh: bool,
    cache: &Cache,
    waiting: &mut Waiting,
) -> Result<Fetched, Failure> {
    fetch(cache, &site()?, arch, names, refresh, waiting).map_err(|e| {
        let own = "or omit --packages and the loads that need programs";
        without_archive(&format!("make an image of {names}"), &e, own)
    })
}
