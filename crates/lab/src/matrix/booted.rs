//! What the kernels of a lab are booted with: the guests' images, with the modules that they load.

use std::path::{Path, PathBuf};

use super::{Equipment, LabError, LoadModules};
use crate::cache::Cache;
use crate::cell::{Guest, Workshop};
use crate::guest::modules::{Module, resolve};
use crate::guest::{self, GuestError};
use crate::kernel::Kernel;
use crate::machine::boot::Image;
use crate::store::note_use;
use crate::sum::{self, Memo};

/// A kernel with what it is booted with.
pub(super) struct Booted<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) guest: Guest,
    /// For the check of its model: without the project's own module and a root image, so that a check holds
    /// for every stimulus and load.
    pub(super) checker: Guest,
    pub(super) workshop: &'a Workshop,
}

/// The guests' images of all `kernels`, from the cache where they were made before.
pub(super) fn make_guests<'a>(
    kernels: &'a [Kernel],
    equipment: &'a Equipment,
) -> Result<Vec<Booted<'a>>, LabError> {
    let mut memo = Memo::open(&equipment.cache);
    let booted = kernels.iter().map(|kernel| {
        let workshop = equipment.workshops.get(&kernel.arch);
        let workshop = workshop.ok_or(LabError::NoMachine(kernel.arch))?;
        let own = equipment.own_modules.get(&kernel.release).map(PathBuf::as_path);
        let base = modules(kernel, &equipment.modules, &equipment.cache)?;
        let checker = make_guest(kernel, &base, equipment, &mut memo)?;
        let mut all = modules_for_loads(kernel, equipment)?.unwrap_or(base);
        if let Some(path) = own {
            all.push(Module::own(path).map_err(LabError::Modules)?);
        }
        let mut guest = make_guest(kernel, &all, equipment, &mut memo)?;
        let root = equipment.roots.get(&kernel.arch);
        guest.root =
            root.map(|root| Image { path: root.path.clone(), sha256: root.sha256.clone() });
        Ok(Booted { kernel, guest, checker, workshop })
    });
    booted.collect()
}

/// The guest's image for `kernel` with `modules` in it, from the cache if it was made before of the same files.
fn make_guest(
    kernel: &Kernel,
    modules: &[Module],
    equipment: &Equipment,
    memo: &mut Memo,
) -> Result<Guest, LabError> {
    let program = equipment.programs.get(&kernel.arch).ok_or(LabError::NoMachine(kernel.arch))?;
    let config = kernel.config.as_deref();
    let mut sum =
        |path: &Path| memo.sum(path).map_err(|e| LabError::Guest(GuestError::Read(path.into(), e)));
    let mut parts = vec![guest::FORMAT.to_string(), kernel.release.clone(), sum(program)?];
    parts.push(config.map(&mut sum).transpose()?.unwrap_or_default());
    parts.extend(modules.iter().map(|m| format!("{} {}", m.name, sum::of_bytes(&m.bytes))));
    let key = sum::of_bytes(parts.join("\n").as_bytes());
    let image = equipment.cache.guests().join(format!("{key}.cpio"));
    if image.is_file() {
        // No cell names it yet, perhaps, and it may have been made long ago.
        note_use(&image);
    } else {
        let config = config.map(|config| (kernel.release.as_str(), config));
        let bytes = guest::image(program, kernel.arch, config, modules).map_err(LabError::Guest)?;
        equipment.cache.write(&image, &bytes).map_err(LabError::Cache)?;
    }
    let sha256 = sum(&image)?;
    let modules = modules.iter().map(Module::file_name).collect();
    Ok(Guest { image: Image { path: image, sha256 }, modules, root: None })
}

/// The modules of [`Equipment::modules`] and those that loads need; `None` if loads need none, or can do without.
fn modules_for_loads(
    kernel: &Kernel,
    equipment: &Equipment,
) -> Result<Option<Vec<Module>>, LabError> {
    let Some(LoadModules { names, required }) = &equipment.load_modules else { return Ok(None) };
    let names: Vec<String> = equipment.modules.iter().chain(names).cloned().collect();
    match modules(kernel, &names, &equipment.cache) {
        Ok(modules) => Ok(Some(modules)),
        Err(e) if *required || matches!(e, LabError::Cache(_)) => Err(e),
        Err(_) => Ok(None),
    }
}

/// The modules of these names, and what they need.
fn modules(kernel: &Kernel, names: &[String], cache: &Cache) -> Result<Vec<Module>, LabError> {
    match &kernel.modules {
        _ if names.is_empty() => Ok(Vec::new()),
        Some(folder) => {
            cache.check_used(folder).map_err(LabError::Cache)?;
            resolve(folder, names).map_err(LabError::Modules)
        }
        None => Err(LabError::NoModules(kernel.name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, UNIX_EPOCH};

    use wakescope_testing::Folder;

    use super::*;
    use crate::cache::CacheError;
    use crate::guest::modules::ModulesError;
    use crate::kernel::Arch;
    use crate::store::CellStore;

    /// A kernel with one module, `loop`, in the folder `modules`.
    fn kernel(folder: &Folder, modules: &str) -> Kernel {
        let file = folder.write(format!("{modules}/kernel/loop.ko"), "no module");
        fs::set_permissions(file, Permissions::from_mode(0o666)).unwrap();
        Kernel {
            name: "6.1-cloud".into(),
            arch: Arch::Amd64,
            release: "6.1.0-56-cloud-amd64".into(),
            version: String::new(),
            image: PathBuf::new(),
            sha256: String::new(),
            config: None,
            modules: Some(folder.join(modules)),
            package: None,
        }
    }

    #[test]
    fn modules_of_the_cache_that_others_may_write_are_not_loaded() {
        let folder = Folder::new("open-modules");
        let cache = Cache::at(folder.join("cache"));
        let wanted = ["loop".to_owned()];
        let stored = kernel(&folder, "cache/kernels/amd64/6.1.0-56-cloud/modules");
        let found = modules(&stored, &wanted, &cache);
        assert!(matches!(found, Err(LabError::Cache(CacheError::Untrusted { .. }))), "{found:?}");
        // They are as safe as who names them says.
        let own = modules(&kernel(&folder, "own"), &wanted, &cache);
        assert!(matches!(own, Err(LabError::Modules(ModulesError::NoModule(..)))), "{own:?}");
        // Nobody loads them.
        assert!(modules(&stored, &[], &cache).is_ok_and(|none| none.is_empty()));
    }

    fn equipment(cache: Cache) -> Equipment {
        Equipment {
            store: CellStore::open(&cache.cells()).unwrap(),
            cache,
            workshops: BTreeMap::new(),
            programs: BTreeMap::new(),
            modules: Vec::new(),
            own_modules: BTreeMap::new(),
            load_modules: None,
            roots: BTreeMap::new(),
            parallel: 1,
        }
    }

    #[test]
    fn an_image_that_is_there_is_used() {
        let folder = Folder::new("used-image");
        let mut equipment = equipment(Cache::at(folder.join("cache")));
        equipment
            .programs
            .insert(Arch::Amd64, folder.write("program", crate::testing::program(62, false)));
        let kernel = kernel(&folder, "own");
        let make = || make_guest(&kernel, &[], &equipment, &mut Memo::open(&equipment.cache));
        let first = make().unwrap();
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000);
        fs::File::open(&first.image.path).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(make().unwrap().image, first.image);
        assert!(fs::metadata(&first.image.path).unwrap().modified().unwrap() > long_ago);
    }

    #[test]
    fn a_load_is_left_out_where_its_modules_are_not_here_and_not_where_others_may_write_them() {
        let folder = Folder::new("load-modules");
        let cache = Cache::at(folder.join("cache"));
        let stored = kernel(&folder, "cache/kernels/amd64/6.1.0-56-cloud/modules");
        let without = Kernel { modules: None, ..stored.clone() };
        let load_modules = Some(LoadModules { names: vec!["loop".into()], required: false });
        let equipment = Equipment { load_modules, ..equipment(cache) };
        assert!(matches!(modules_for_loads(&without, &equipment), Ok(None)));
        let refused = modules_for_loads(&stored, &equipment);
        assert!(matches!(refused, Err(LabError::Cache(_))), "{refused:?}");
    }
}
