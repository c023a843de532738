//! `wakescope lab module`

use wakescope_lab::archive::ArchiveError;
use wakescope_lab::cache::Cache;
use wakescope_lab::kernel::Kernel;
use wakescope_lab::kernel::store::stored;
use wakescope_lab::module::{Built, ModuleError, build};
use wakescope_report::style::clean;
use wakescope_sys::file::effective_user;

use super::debian::{self, ArchArg};
use super::waiting::{Waiting, megabytes};
use super::{failure_of_archive, shown, site, without_archive};
use crate::{Failure, Outcome};

/// Build the kernel module `wakescope` for kernels of Debian's archive
///
/// The matching headers and compiler (for arm64 on amd64 a cross compiler) are fetched into the cache,
/// and used there only: signatures are checked, and the system's own packages and settings are neither
/// used nor changed. Prints where the module is. `lab run --stimulus device` builds what it needs by itself.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab module
  wakescope lab module 6.1-cloud 7.2-cloud
  wakescope lab module 7.2-cloud --arch arm64")]
pub(super) struct ModuleArgs {
    /// A kernel as listed by `wakescope lab kernels` (default: every kernel of the cache)
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    arch: ArchArg,
}

/// Runs `wakescope lab module`.
pub(super) fn run(args: &ModuleArgs) -> Result<Outcome, Failure> {
    let cache = super::cache()?;
    let arch = args.arch.or_own();
    let mut names = args.names.clone();
    if names.is_empty() {
        names = stored(&cache, arch).iter().map(|kernel| kernel.name.exact()).collect();
    }
    if names.is_empty() {
        return Err(Failure::new("there is no kernel in the cache to build the module for")
            .try_this("name one, which is then fetched: wakescope lab module 6.1-cloud"));
    }
    let mut waiting = Waiting::new()?;
    for name in &names {
        let kernel = debian::kernel(name, arch, &cache, &mut waiting)?;
        let built = module_for(&kernel, &cache, &mut waiting)?;
        waiting.tell(&format!("{name}: {}{}", shown(&built.path), how(&built)));
    }
    Ok(Outcome::Done)
}

/// The module for `kernel`, built now unless it is in the cache.
pub(super) fn module_for(
    kernel: &Kernel,
    cache: &Cache,
    waiting: &mut Waiting,
) -> Result<Built, Failure> {
    build(kernel, cache, &site()?, waiting).map_err(|e| failure_of_module(kernel, cache, &e))
}

fn how(built: &Built) -> String {
    match (built.was_there, built.bytes) {
        (true, _) => ", was here already".into(),
        (false, 0) => String::new(),
        (false, bytes) => format!(", {} fetched", megabytes(bytes)),
    }
}

fn failure_of_module(kernel: &Kernel, cache: &Cache, e: &ModuleError) -> Failure {
    let what = format!("build the module for {}", kernel.release);
    let failure = || Failure::new(clean(&format!("cannot {what}: {e}"), 400));
    let by_hand = "build it by hand, from kmod/ of the sources: make -C kmod KDIR=DIR, with the folder \
                   that the kernel was built in";
    match e {
        ModuleError::Archive(ArchiveError::NoTool(tool)) if *tool == "unshare" => failure()
            .because("the module is built among packages of its own, which unshare goes into")
            .try_this("install it, on Debian and Ubuntu: apt install util-linux"),
        ModuleError::Archive(
            e @ (ArchiveError::NoKeys(_) | ArchiveError::Site(_) | ArchiveError::Stopped),
        ) => failure_of_archive(&what, e),
        ModuleError::Archive(e) => without_archive(&what, e, by_hand)
            .because("the archive keeps the headers of recent kernels only"),
        ModuleError::Foreign(_) => failure()
            .because("only Debian's kernels have packages of headers")
            .try_this(by_hand)
            .try_this(
                "then install it beside the kernel's modules (make modules_install \
                 INSTALL_MOD_PATH=DIR), and name these: --modules DIR --module wakescope",
            ),
        ModuleError::Arch(arch) => failure()
            .because("a cross compiler is used on amd64 only, for kernels of arm64")
            .try_this(format!("run it on a machine of {arch}, or choose kernels for this one")),
        ModuleError::NoPlace(_) if effective_user() == 0 => failure()
            .because("this root may not mount, as in most containers")
            .try_this("run it outside of the container, or give that CAP_SYS_ADMIN"),
        ModuleError::NoPlace(_) => failure()
            .because("this user may not make user namespaces, which replace root's rights here")
            .try_this("run it as root")
            .try_this(
                "or allow them: sysctl kernel.unprivileged_userns_clone=1 (Debian), \
                 kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)",
            ),
        ModuleError::Package { .. } => failure().try_this(by_hand),
        ModuleError::Build { complaints, .. } => complaints
            .iter()
            .fold(failure(), |failure, line| failure.because(clean(line, 200)))
            .try_this(format!(
                "remove {}, so that the headers are fetched again",
                shown(&cache.headers().join(&kernel.release))
            ))
            .try_this(format!("or {by_hand}")),
    }
}
