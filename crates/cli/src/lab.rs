//! `wakescope lab`

use std::path::Path;

use clap::Subcommand;
use wakescope_core::units::SpanNs;
use wakescope_lab::archive::{ArchiveError, Site};
use wakescope_lab::cache::{Cache, CacheError};
use wakescope_lab::kernel::fetch::FetchError;
use wakescope_lab::qemu::{QemuError, SetUpError};
use wakescope_lab::store::StoreError;
use wakescope_report::style::clean;
use wakescope_store::Refused;
use wakescope_sys::file::effective_user;

use crate::{Failure, Outcome};

mod asking;
mod bisect;
mod building;
mod chosen;
mod debian;
mod emulators;
mod equipping;
mod fetch;
mod image;
mod kernels;
mod lacking;
mod module;
pub(crate) mod predict;
mod prune;
mod run;
pub(crate) mod scope;
mod showing;
mod verify;
mod waiting;

/// Boot kernels in virtual time, where the same kernel gives the same figures on any machine
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  wakescope lab kernels
  wakescope lab fetch qemu 6.1-cloud 6.1-rt
  wakescope lab run --plan linux-journal"
)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Kernels(kernels::KernelsArgs),
    Fetch(fetch::FetchArgs),
    Image(image::ImageArgs),
    Module(module::ModuleArgs),
    Run(Box<run::RunArgs>),
    Verify(verify::VerifyArgs),
    Bisect(Box<bisect::BisectArgs>),
    Prune(prune::PruneArgs),
}

/// Runs `wakescope lab`.
pub(crate) fn run(args: &LabArgs) -> Result<Outcome, Failure> {
    match &args.verb {
        Verb::Kernels(args) => kernels::run(args),
        Verb::Fetch(args) => fetch::run(args),
        Verb::Image(args) => image::run(args),
        Verb::Module(args) => module::run(args),
        Verb::Run(args) => run::run(args),
        Verb::Verify(args) => verify::run(args),
        Verb::Bisect(args) => bisect::run(args),
        Verb::Prune(args) => prune::run(args),
    }
}

/// How many guests, or simulations, run at a time: `asked`, or one per CPU that this process may use.
pub(crate) fn parallel(asked: Option<u16>) -> usize {
    let all = || wakescope_sys::sched::affinity().map_or(1, |cpus| cpus.len());
    asked.map_or_else(all, usize::from)
}

/// The lab's folder. Refused, before anything in it is used, if another user controls it.
fn cache() -> Result<Cache, Failure> {
    let cache = Cache::locate().map_err(|e| failure_of_cache(&e))?;
    cache.check().map_err(|e| failure_of_cache(&e))?;
    Ok(cache)
}

/// Where packages come from.
fn site() -> Result<Site, Failure> {
    Site::from_env().map_err(|e| failure_of_archive("fetch anything", &ArchiveError::Site(e)))
}

/// What to do without the archive.
const OWN_KERNEL: &str = "or boot your own kernel, which needs no archive: --kernel bzImage";

/// A path on one line, whatever it is made of.
fn shown(path: &Path) -> String {
    clean(&path.display().to_string(), 200)
}

fn failure_of_cache(e: &CacheError) -> Failure {
    let failure = Failure::new(clean(&e.to_string(), 400));
    match e {
        CacheError::NoHome => failure.try_this("name a folder for the cache: WAKESCOPE_CACHE=DIR"),
        CacheError::Stopped => failure,
        CacheError::Untrusted { path, why } => untrusted(failure, path, *why),
        CacheError::Io { .. } if e.is_full() => make_room(failure),
        CacheError::Io { .. } => failure.try_this("use another cache folder: WAKESCOPE_CACHE=DIR"),
    }
}

/// What to do about a cache that another user controls.
fn untrusted(failure: Failure, path: &Path, why: Refused) -> Failure {
    let failure =
        failure.because("the lab runs programs and kernels of its cache with your privileges");
    let failure = match why {
        Refused::OpenFolder(_) | Refused::OpenFile(_) => {
            failure.try_this(format!("let only its owner write: chmod go-w {}", shown(path)))
        }
        _ => failure,
    };
    if effective_user() == 0 {
        failure.try_this("use root's own cache: sudo -H wakescope lab …").try_this(
            "or name a folder of root's own: sudo WAKESCOPE_CACHE=/root/.cache/wakescope \
             wakescope lab …",
        )
    } else {
        failure.try_this("name a folder of your own for the cache: WAKESCOPE_CACHE=DIR")
    }
}

fn failure_of_store(e: &StoreError) -> Failure {
    Failure::new(clean(&e.to_string(), 400)).try_this(e.remedy())
}

fn make_room(failure: Failure) -> Failure {
    let failure = failure
        .because("there is no space left for the lab's cache")
        .try_this("remove what the lab can make again: wakescope lab prune --keep 0");
    let failure = match Cache::locate() {
        Ok(cache) => failure.try_this(format!(
            "remove kernels that you do not need from {}",
            shown(&cache.root().join("kernels"))
        )),
        Err(_) => failure,
    };
    failure.try_this("or use another cache folder: WAKESCOPE_CACHE=DIR")
}

/// What could not be done, and why the archive was of no help: `what` is `fetch 6.1-cloud`.
fn failure_of_archive(what: &str, e: &ArchiveError) -> Failure {
    without_archive(what, e, OWN_KERNEL)
}

/// The same, with what is to be had without the archive: `own`.
fn without_archive(what: &str, e: &ArchiveError, own: &str) -> Failure {
    let mut failure = Failure::new(clean(&format!("cannot {what}: {e}"), 400));
    if e.is_full() {
        return make_room(failure);
    }
    match e {
        ArchiveError::NoTool(_) => failure
            .because("the lab fetches Debian packages with apt and unpacks them with dpkg")
            .try_this("install them, on Debian and Ubuntu: apt install apt dpkg")
            .try_this(own),
        ArchiveError::NoKeys(_) => failure
            .because("without them the signatures of Debian's packages cannot be checked")
            .try_this("install them, on Debian and Ubuntu: apt install debian-archive-keyring")
            .try_this("or name their file: WAKESCOPE_KEYRING=FILE")
            .try_this(own),
        ArchiveError::Site(_) => {
            failure.try_this("as in WAKESCOPE_MIRROR=http://mirror.example/debian")
        }
        ArchiveError::Failed { complaints, .. } => {
            for line in complaints {
                failure = failure.because(clean(line, 200));
            }
            failure
                .try_this("another mirror may help: WAKESCOPE_MIRROR=http://mirror.example/debian")
                .try_this(own)
        }
        ArchiveError::Cache(e) => failure_of_cache(e),
        ArchiveError::Package { .. } => failure
            .because("it holds what no package of Debian's does, so nothing of it was kept")
            .try_this("another mirror may help: WAKESCOPE_MIRROR=http://mirror.example/debian")
            .try_this(own),
        ArchiveError::Start { .. } => failure.try_this(own),
        ArchiveError::Stopped => failure
            .because("complete downloads are kept; an incomplete one is removed")
            .try_this("run the same command again to resume"),
    }
}

/// Adds the names that may have been meant.
fn with_similar(failure: Failure, names: &[String]) -> Failure {
    if names.is_empty() {
        return failure;
    }
    let names: Vec<String> = names.iter().map(|name| clean(name, 80)).collect();
    failure.because(format!("similar names: {}", names.join(", ")))
}

fn failure_of_fetch(name: &str, e: &FetchError) -> Failure {
    let name = clean(name, 80);
    match e {
        FetchError::Archive(e) => failure_of_archive(&format!("fetch {name}"), e),
        FetchError::NoSuchKernel(e) => {
            let failure = Failure::new(clean(&e.to_string(), 200));
            with_similar(failure, &e.nearest)
                .try_this("list the kernels: wakescope lab kernels --all")
        }
        FetchError::Package { .. } => {
            Failure::new(clean(&format!("cannot fetch {name}: {e}"), 400)).try_this(OWN_KERNEL)
        }
    }
}

fn failure_of_set_up(e: &SetUpError) -> Failure {
    let own = "or use an installed QEMU of version 8 or newer: WAKESCOPE_QEMU=PROGRAM";
    match e {
        SetUpError::Archive(e) => without_archive("set up QEMU", e, own),
        SetUpError::Qemu(e) => failure_of_qemu(e),
        other => Failure::new(clean(&format!("cannot set up QEMU: {other}"), 400)).try_this(own),
    }
}

/// Why there is no emulator to be had.
fn failure_of_qemu(e: &QemuError) -> Failure {
    let failure = Failure::new(clean(&e.to_string(), 400));
    let set_up = "fetch a suitable QEMU, for use by the lab only: wakescope lab fetch qemu";
    match e {
        QemuError::TooOld { .. } => failure
            .because("under QEMU 7.2, kernels from 6.12 on die of a double fault while booting")
            .try_this(set_up),
        QemuError::Arch { wanted, .. } => failure
            .try_this(format!("name a QEMU for {wanted}, or none, so that the lab finds one")),
        QemuError::Missing { .. } | QemuError::Unusable { .. } => failure.try_this(set_up),
    }
}

/// Reads a time that is not zero.
fn parse_positive(text: &str) -> Result<SpanNs, String> {
    match text.parse::<SpanNs>() {
        Ok(SpanNs(0)) => Err("it must be above zero".into()),
        Ok(span) => Ok(span),
        Err(e) => Err(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_says_what_makes_room() {
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = CacheError::Io { action: "write", path: "/c/states".into(), source };
        assert!(failure_of_cache(&error).to_string().contains("wakescope lab prune --keep 0"));
    }
}
