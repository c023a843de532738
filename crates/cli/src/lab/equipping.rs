//! What a lab works with: kernels, an emulator, guests. What is missing is fetched.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wakescope_core::plan::Stimulus;
use wakescope_core::units::SpanNs;
use wakescope_lab::cache::Cache;
use wakescope_lab::cell::Workshop;
use wakescope_lab::guest::root::Names;
use wakescope_lab::kernel::image::ImageError;
use wakescope_lab::kernel::own::{Files, OwnError};
use wakescope_lab::kernel::{Arch, Kernel};
use wakescope_lab::machine::parameters::Parameters;
use wakescope_lab::machine::{MEMORY_MIB, Machine};
use wakescope_lab::matrix::{Equipment, LoadModules};
use wakescope_lab::module;
use wakescope_lab::plan::{LoadSet, Plan, shell_quoted};
use wakescope_lab::qemu::{Qemu, QemuError, set_up};
use wakescope_lab::store::CellStore;
use wakescope_lab::sum::Memo;
use wakescope_probe::load::{Need, Spec, parse_list, this_program};
use wakescope_report::style::clean;

use super::debian::{self, ArchArg};
use super::image::image_of;
use super::lacking::{expect_no_nmi, needs_ports};
use super::module::module_for;
use super::waiting::Waiting;
use super::{
    failure_of_qemu, failure_of_set_up, failure_of_store, parallel, parse_positive, shown, site,
};
use crate::Failure;

/// The program that is made for guests.
const GUEST: &str = "wakescope-guest";

/// Said where it is not there.
const NO_GUEST: &str = "no wakescope-guest beside this program: guests run this one, which is larger, so their \
                        figures differ from those of other installations";

/// The kernel's NFS server, and its client.
const NFS_MODULES: [&str; 2] = ["nfsd", "nfsv4"];

/// The arguments that say what to work with.
#[derive(clap::Args)]
pub(super) struct Equipping {
    #[command(flatten)]
    arch: ArchArg,

    /// Configuration of a kernel given by file, if it is not config-RELEASE beside it. Repeat the
    /// option in the order of the kernels
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,

    /// Modules of a kernel given by file: the equivalent of /lib/modules/RELEASE, or the
    /// INSTALL_MOD_PATH
    #[arg(long, value_name = "DIR")]
    modules: Vec<PathBuf>,

    /// Modules that guests load before measuring, together with their dependencies
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    module: Vec<String>,

    /// Debian packages to give to guests with their dependencies, for loads that need programs: see
    /// `wakescope lab image`
    #[arg(long, value_name = "PACKAGE,…")]
    packages: Option<Names>,

    /// Text to append to the kernel command line, as in 'nohz=off threadirqs'
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    append: Parameters,

    /// The emulator, QEMU 8 or newer (default: the fetched one, else the installed one)
    #[arg(long, value_name = "PROGRAM")]
    qemu: Option<PathBuf>,

    /// The guest's program, a static wakescope for the kernels' architecture (default: the
    /// wakescope-guest of this wakescope)
    #[arg(long, value_name = "FILE")]
    guest_program: Option<PathBuf>,

    /// Number of guests to run in parallel (default: one per CPU)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// Host time after which a guest is stopped
    #[arg(long, value_name = "TIME", default_value = "30min", value_parser = parse_positive)]
    timeout: SpanNs,

    /// CPUs of a guest; more than one needs --experimental-smp
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=64))]
    cpus: u16,

    /// Allow more than one CPU. The emulator runs them in turns of about a millisecond, which
    /// dominates the figures
    #[arg(long)]
    experimental_smp: bool,
}

impl Equipping {
    /// Whether guests have programs beside wakescope.
    pub(super) fn has_programs(&self) -> bool {
        self.packages.is_some()
    }

    /// CPUs of a guest, as far as that makes sense.
    fn cpus(&self) -> Result<u32, Failure> {
        if self.cpus > 1 && !self.experimental_smp {
            return Err(Failure::new(format!(
                "guests with {} CPUs do not measure the kernel",
                self.cpus
            ))
            .because(
                "when counting instructions, the emulator runs one CPU at a time, in turns of \
                 about a millisecond, and each wakeup waits for its turn",
            )
            .try_this("omit --cpus; or try it: --experimental-smp"));
        }
        Ok(self.cpus.into())
    }

    /// The options that make a difference to a cell, as they were given: each after a blank, safe
    /// to paste into a shell.
    pub(super) fn repeat(&self) -> String {
        let files = |name, paths: &[PathBuf]| paths.iter().map(move |p| (name, shown(p))).collect();
        let mut options: Vec<(&str, String)> =
            self.arch.arch.iter().map(|arch| ("arch", arch.to_string())).collect();
        let lists: [Vec<_>; 2] = [files("config", &self.config), files("modules", &self.modules)];
        options.extend(lists.into_iter().flatten());
        if !self.module.is_empty() {
            options.push(("module", self.module.join(",")));
        }
        options.extend(self.packages.iter().map(|names| ("packages", names.to_string())));
        if !self.append.text().is_empty() {
            options.push(("append", self.append.text().to_owned()));
        }
        options.extend(self.qemu.iter().map(|path| ("qemu", shown(path))));
        options.extend(self.guest_program.iter().map(|path| ("guest-program", shown(path))));
        if self.cpus > 1 {
            options.push(("cpus", self.cpus.to_string()));
        }
        // With `=`, a value that begins with a dash is still a value.
        let option = |(name, value): &(&str, String)| format!(" --{name}={}", shell_quoted(value));
        let flag = if self.experimental_smp { " --experimental-smp" } else { "" };
        options.iter().map(option).chain([flag.to_string()]).collect()
    }

    /// What Debian's kernels run on.
    pub(super) fn arch(&self) -> Arch {
        self.arch.or_own()
    }

    /// The kernels of these names: files, or Debian's, which are fetched if they are not here.
    pub(super) fn kernels(
        &self,
        names: &[String],
        cache: &Cache,
        waiting: &mut Waiting,
    ) -> Result<Vec<Kernel>, Failure> {
        (0..names.len()).map(|place| self.kernel(names, place, cache, waiting)).collect()
    }

    /// The one of them that has this place among `names`.
    pub(super) fn kernel(
        &self,
        names: &[String],
        place: usize,
        cache: &Cache,
        waiting: &mut Waiting,
    ) -> Result<Kernel, Failure> {
        self.expect_files(names)?;
        let name = &names[place];
        if !is_file(name) {
            // Before it is fetched.
            self.expect_program(self.arch())?;
        }
        if is_file(name) {
            let own = names[..place].iter().filter(|name| is_file(name)).count();
            self.own_kernel(name, own, cache)
        } else {
            debian::kernel(name, self.arch(), cache, waiting)
        }
    }

    /// Fails if there are more files beside kernels than files that are kernels.
    fn expect_files(&self, names: &[String]) -> Result<(), Failure> {
        let own = names.iter().filter(|name| is_file(name)).count();
        let most = self.config.len().max(self.modules.len());
        if most <= own {
            return Ok(());
        }
        Err(Failure::new(format!(
            "--config and --modules are given for {most} kernels, but {own} of the kernels are given \
             by file"
        ))
        .try_this("repeat each option once per kernel file, in the same order"))
    }

    fn own_kernel(&self, name: &str, place: usize, cache: &Cache) -> Result<Kernel, Failure> {
        let files = Files {
            image: name.into(),
            modules: self.modules.get(place).cloned(),
            config: self.config.get(place).cloned(),
        };
        Kernel::from_files(&files, self.arch.arch, &mut Memo::open(cache))
            .map_err(|e| failure_of_own(&e))
    }

    /// Everything that `kernels` need.
    pub(super) fn equipment(
        &self,
        kernels: &[Kernel],
        plan: &Plan,
        cache: Cache,
        waiting: &mut Waiting,
    ) -> Result<Equipment, Failure> {
        let mut workshops = BTreeMap::new();
        let mut programs = BTreeMap::new();
        let mut roots = BTreeMap::new();
        let cpus = self.cpus()?;
        for arch in Arch::ALL.into_iter().filter(|a| kernels.iter().any(|k| k.arch == *a)) {
            let has_spare_ports = needs_ports(plan, arch)?;
            expect_no_nmi(specs_of(plan), arch)?;
            let qemu = Arc::new(self.emulator(arch, &cache, waiting)?);
            let (cpu, memory_mib) = (plan.cpu, MEMORY_MIB);
            let machine = Machine { arch, cpu, memory_mib, cpus, has_spare_ports };
            let (parameters, limit) = (self.append.clone(), self.timeout);
            workshops.insert(arch, Workshop { qemu, machine, parameters, limit });
            programs.insert(arch, self.program(arch, waiting)?);
            if let Some(names) = &self.packages {
                roots.insert(arch, image_of(names, arch, false, &cache, waiting)?.image);
            }
        }
        let store = CellStore::open(&cache.cells()).map_err(|e| failure_of_store(&e))?;
        let own_modules = self.own_modules(kernels, plan, &cache, waiting)?;
        let (modules, parallel) = (self.module.clone(), parallel(self.jobs));
        let load_modules = self.load_modules(plan);
        Ok(Equipment {
            cache,
            store,
            workshops,
            programs,
            modules,
            own_modules,
            load_modules,
            roots,
            parallel,
        })
    }

    /// The project's own module for each of `kernels`, if the stimulus or a load of `plan` needs it and it
    /// is not named among the modules to load.
    fn own_modules(
        &self,
        kernels: &[Kernel],
        plan: &Plan,
        cache: &Cache,
        waiting: &mut Waiting,
    ) -> Result<BTreeMap<String, PathBuf>, Failure> {
        let is_named = self.module.iter().any(|name| name == module::NAME);
        let is_needed = plan.stimulus == Stimulus::Device || injects(plan);
        let kernels = kernels.iter().filter(|_| is_needed && !is_named);
        let built = kernels.map(|kernel| {
            let built = module_for(kernel, cache, waiting)?;
            Ok((kernel.release.clone(), built.path))
        });
        built.collect()
    }

    /// The modules of the kernel that loads of `plan` need. Without a compiler a load that compiles does not
    /// start, whatever else is there.
    fn load_modules(&self, plan: &Plan) -> Option<LoadModules> {
        let needing = |spec: &Spec| self.has_programs() && spec.need() == Some(Need::NfsServer);
        let specs: Vec<Spec> = specs_of(plan).filter(needing).collect();
        let names = NFS_MODULES.map(String::from).into();
        let required = specs.iter().any(|spec| spec.group().is_none());
        (!specs.is_empty()).then_some(LoadModules { names, required })
    }

    /// The emulator. Where there is none, or one that is too old, the lab sets up its own.
    fn emulator(&self, arch: Arch, cache: &Cache, waiting: &mut Waiting) -> Result<Qemu, Failure> {
        let explicit = self.qemu.as_deref();
        let mut memo = Memo::open(cache);
        match Qemu::find(arch, explicit, cache, &mut memo) {
            Ok(qemu) => return Ok(qemu),
            Err(QemuError::Missing { .. } | QemuError::TooOld { .. })
                if explicit.is_none() && Qemu::of_environment().is_none() => {}
            Err(e) => return Err(failure_of_qemu(&e)),
        }
        set_up(cache, &site()?, false, waiting).map_err(|e| failure_of_set_up(&e))?;
        Qemu::find(arch, None, cache, &mut memo).map_err(|e| failure_of_qemu(&e))
    }

    /// The guest's program: the one that is named, the one that was built or installed with this
    /// one, or this one, which can do the same but is larger. That is said, for what a guest measures depends on it.
    fn program(&self, arch: Arch, waiting: &mut Waiting) -> Result<PathBuf, Failure> {
        self.expect_program(arch)?;
        Ok(self.named_program(arch).or_else(|| beside(&this_program())).unwrap_or_else(|| {
            waiting.tell(NO_GUEST);
            this_program()
        }))
    }

    /// The guest's program that was named.
    fn named_program(&self, arch: Arch) -> Option<PathBuf> {
        let named = std::env::var_os(variable(arch)).filter(|v| !v.is_empty()).map(PathBuf::from);
        self.guest_program.clone().or(named)
    }

    /// Fails if there is no program for guests of `arch`.
    fn expect_program(&self, arch: Arch) -> Result<(), Failure> {
        if self.named_program(arch).is_some() || Arch::of_this_program() == Some(arch) {
            return Ok(());
        }
        let variable = variable(arch);
        Err(Failure::new(format!("there is no wakescope for guests of {arch}"))
            .because("a guest runs wakescope, and this program is for another architecture")
            .try_this(format!("build one (make guest-{arch}) and name it: --guest-program FILE, or {variable}=FILE")))
    }
}

/// The variable that names the program for guests of `arch`.
fn variable(arch: Arch) -> String {
    format!("WAKESCOPE_GUEST_{}", arch.to_string().to_uppercase())
}

/// Whether a load of `plan` is made by the project's own module.
fn injects(plan: &Plan) -> bool {
    specs_of(plan).any(|spec| spec.need() == Some(Need::Injector))
}

/// All loads of `plan`, those of groups one by one.
pub(super) fn specs_of(plan: &Plan) -> impl Iterator<Item = Spec> {
    let names = plan.loads.iter().flat_map(LoadSet::names);
    names.filter_map(|name| parse_list(name).ok()).flatten()
}

/// What was built for guests together with this program, or installed with it.
fn beside(program: &Path) -> Option<PathBuf> {
    let dir = fs::canonicalize(program).ok()?.parent()?.to_path_buf();
    let places = [dir.join(GUEST), dir.join("../lib/wakescope").join(GUEST)];
    places.into_iter().find(|place| place.is_file())
}

/// Whether the kernel of this name is a file.
fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).is_file()
}

fn failure_of_own(e: &OwnError) -> Failure {
    let failure = Failure::new(clean(&e.to_string(), 400));
    match e {
        OwnError::Image { source: ImageError::Io(_), .. } | OwnError::Io { .. } => {
            failure.try_this("name a readable file; a kernel name with a slash is taken as a file")
        }
        OwnError::Image { .. } => failure.try_this(
            "a kernel is a bzImage (amd64) or an Image (arm64), as `make` leaves it in arch/*/boot",
        ),
        OwnError::Arch { is, .. } => failure.try_this(format!("set its architecture: --arch {is}")),
        OwnError::NotA { .. } => {
            failure.try_this("give --config and --modules in the order of the kernels")
        }
    }
}
