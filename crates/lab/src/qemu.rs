//! The emulator: found on the machine, or set up in the cache.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wakescope_sys::file::effective_user;

use crate::archive::tool;
use crate::cache::Cache;
use crate::kernel::Arch;
use crate::machine::boot::changed;
use crate::sum::{self, Memo};

mod set_up;
mod version;

pub use set_up::{SetUp, SetUpError, set_up};
pub use version::Version;

/// The oldest emulator that runs every kernel: 7.2 lets those from 6.12 on die of a double fault.
pub(crate) const OLDEST: Version = Version(8, 0, 0);

/// What QEMU forbids itself by seccomp, where it can: other programs, other privileges, and changes
/// of its scheduling.
pub(crate) const SANDBOX: &str =
    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// Firmware that a guest's machine may run; part of what its results depend on.
const FIRMWARE: [&str; 10] = [
    "bios-256k.bin",
    "bios-microvm.bin",
    "bios.bin",
    "efi-virtio.rom",
    "kvmvapic.bin",
    "linuxboot.bin",
    "linuxboot_dma.bin",
    "multiboot_dma.bin",
    "pvh.bin",
    "qboot.rom",
];

/// Why there is no emulator.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// Neither the cache nor the machine has one.
    #[error("`{program}` is not installed")]
    Missing {
        /// What it would be called: `qemu-system-x86_64`.
        program: String,
    },
    /// It is too old.
    #[error("{} is QEMU {version}, the lab needs {OLDEST}", .program.display())]
    TooOld {
        /// The program.
        program: PathBuf,
        /// Its version.
        version: Version,
    },
    /// It emulates another architecture, as its name says.
    #[error("{} does not emulate {wanted}", .program.display())]
    Arch {
        /// The program.
        program: PathBuf,
        /// What is needed.
        wanted: Arch,
    },
    /// It could not be run or read, or does not say what it is.
    #[error("{} cannot be used: {why}", .program.display())]
    Unusable {
        /// The program.
        program: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// An emulator that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// What it emulates.
    pub arch: Arch,
    /// What to start, with its first arguments: the program itself, or a dynamic loader with the
    /// program; then the folders of firmware. The machine's arguments follow. Its environment must
    /// not hold `LD_LIBRARY_PATH` or `LD_PRELOAD`.
    pub command: Vec<OsString>,
    /// Where to start it: `/`, or its own folder, where relative paths of the command begin. Who
    /// starts it there need not have a right to the folders above.
    pub folder: PathBuf,
    /// The program.
    pub program: PathBuf,
    /// Its version.
    pub version: Version,
    /// How it calls itself: `QEMU 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)`.
    pub banner: String,
    /// SHA-256 over the program and its firmware, in hexadecimal.
    pub sha256: String,
    /// Where its firmware is.
    pub data: Vec<PathBuf>,
    /// Whether it can forbid itself by seccomp what it does not need.
    pub has_sandbox: bool,
}

impl Qemu {
    /// What the emulator of `arch` is called.
    pub fn program_name(arch: Arch) -> String {
        format!("qemu-system-{}", arch.machine())
    }

    /// The program that `$WAKESCOPE_QEMU` names; `None` if that is not set, or empty.
    pub fn of_environment() -> Option<PathBuf> {
        let variable = std::env::var_os("WAKESCOPE_QEMU").filter(|v| !v.is_empty());
        variable.map(PathBuf::from)
    }

    /// Finds an emulator for `arch`: the one that is named, else that of `$WAKESCOPE_QEMU`, else
    /// the newest of the cache, else the machine's own. None is taken that is older than
    /// [`OLDEST`].
    pub fn find(
        arch: Arch,
        explicit: Option<&Path>,
        cache: &Cache,
        memo: &mut Memo,
    ) -> Result<Self, QemuError> {
        if let Some(path) = explicit.map(Path::to_owned).or_else(Self::of_environment) {
            return Self::of(&named(&path, arch)?, arch, cache, memo);
        }
        if let Some(root) = set_up::newest(cache, arch) {
            return Self::of(&Start::private(&root, arch)?, arch, cache, memo);
        }
        let program = Self::program_name(arch);
        match tool::find(&program) {
            Some(path) => Self::of(&Start::of_machine(path), arch, cache, memo),
            None => Err(QemuError::Missing { program }),
        }
    }

    /// Asks the program what it is.
    fn of(start: &Start, arch: Arch, cache: &Cache, memo: &mut Memo) -> Result<Self, QemuError> {
        let program = &start.program;
        let unusable = |why: String| QemuError::Unusable { program: program.clone(), why };
        start.expect_reachable(effective_user() == 0).map_err(unusable)?;
        let sum = memo.sum(program).map_err(|e| unusable(e.to_string()))?;
        let answer = version::ask(start, &sum, cache).map_err(unusable)?;
        if answer.version < OLDEST {
            let (program, version) = (program.clone(), answer.version);
            return Err(QemuError::TooOld { program, version });
        }
        let data = if start.data.is_empty() { answer.data } else { start.data.clone() };
        let sha256 = with_firmware(&sum, &data, memo).map_err(|e| unusable(e.to_string()))?;
        Ok(Self {
            arch,
            command: start.relative_command(),
            folder: start.folder().into(),
            program: program.clone(),
            version: answer.version,
            banner: answer.banner,
            sha256,
            data,
            has_sandbox: answer.has_sandbox,
        })
    }

    /// Fails if the program or its firmware is no longer what it was when it was found.
    pub(crate) fn expect_unchanged(&self, memo: &mut Memo) -> io::Result<()> {
        let program = memo.sum(&self.program)?;
        let same = with_firmware(&program, &self.data, memo)? == self.sha256;
        if same { Ok(()) } else { Err(changed(&self.program)) }
    }
}

/// How to start an emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Start {
    program: PathBuf,
    /// The folder below which all of it lies, if the lab has set it up.
    root: Option<PathBuf>,
    /// The dynamic loader that starts it, and where its libraries are, if not the system's.
    loader: Option<(PathBuf, PathBuf)>,
    /// Where its firmware is, if it does not know itself.
    data: Vec<PathBuf>,
}

impl Start {
    fn of_machine(program: PathBuf) -> Self {
        Self { program, root: None, loader: None, data: Vec::new() }
    }

    /// An emulator that was unpacked below `root`.
    fn private(root: &Path, arch: Arch) -> Result<Self, QemuError> {
        let program = root.join("usr/bin").join(Qemu::program_name(arch));
        let (loader, libraries) = set_up::loader(root).ok_or_else(|| QemuError::Unusable {
            program: program.clone(),
            why: "its dynamic loader is missing".into(),
        })?;
        let data = ["qemu", "seabios"].map(|dir| root.join("usr/share").join(dir));
        let data = data.into_iter().filter(|dir| dir.is_dir()).collect();
        Ok(Self { program, root: Some(root.into()), loader: Some((loader, libraries)), data })
    }

    fn folder(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("/"))
    }

    /// The command as it is started in [`Self::folder`].
    fn relative_command(&self) -> Vec<OsString> {
        let root = self.root.as_deref();
        let below = |word: &OsString| Some(Path::new(word).strip_prefix(root?).ok()?.to_owned());
        let words = self.command().into_iter();
        words.map(|word| below(&word).map_or(word, OsString::from)).collect()
    }

    /// Fails, saying why, unless every user can start it. As root, the emulator is a user without any
    /// rights.
    fn expect_reachable(&self, is_root: bool) -> Result<(), String> {
        if !is_root {
            return Ok(());
        }
        let own = [self.program.clone()].into_iter().chain(self.data.iter().cloned());
        let loader = self.loader.iter().flat_map(|(a, b)| [a.clone(), b.clone()]);
        match own.chain(loader).find_map(|path| closed_to_others(&path, self.folder())) {
            None => Ok(()),
            Some(path) => Err(format!(
                "it must not run as root, and other users cannot reach it: {} is closed to them",
                path.display()
            )),
        }
    }

    fn command(&self) -> Vec<OsString> {
        let mut command: Vec<OsString> = Vec::new();
        if let Some((loader, libraries)) = &self.loader {
            command.extend([loader.into(), "--library-path".into(), libraries.into()]);
        }
        command.push(self.program.clone().into());
        for dir in &self.data {
            command.extend(["-L".into(), dir.into()]);
        }
        command
    }
}

/// The first folder from `root` on the way to `path`, or what is there, that others may not open.
fn closed_to_others(path: &Path, root: &Path) -> Option<PathBuf> {
    let way: Vec<&Path> = path.ancestors().take_while(|above| above.starts_with(root)).collect();
    let is_closed = |&&part: &&&Path| {
        let needed = if part == path { 0o005 } else { 0o001 };
        // A missing part is reported where it is opened.
        part.metadata().is_ok_and(|meta| meta.permissions().mode() & needed != needed)
    };
    way.iter().rev().find(is_closed).map(|&part| part.to_owned())
}

/// The emulator that a user names: a program, or a folder that holds it.
fn named(path: &Path, arch: Arch) -> Result<Start, QemuError> {
    let name = Qemu::program_name(arch);
    let program = if path.is_dir() { path.join(&name) } else { path.to_owned() };
    // A bare name is meant as a shell means it.
    let is_bare = program.parent() == Some(Path::new(""));
    let found = is_bare.then(|| program.to_str().and_then(tool::find)).flatten();
    let program = found.unwrap_or(program);
    let unusable = |why: &str| QemuError::Unusable { program: program.clone(), why: why.into() };
    if !program.exists() {
        return Err(unusable("it is not there"));
    }
    if !tool::is_program(&program) {
        return Err(unusable("it is not a program"));
    }
    let file = program.file_name().and_then(|f| f.to_str()).unwrap_or_default();
    let machine = file.strip_prefix("qemu-system-").map(|rest| rest.split('.').next());
    if machine.is_some_and(|m| Arch::ALL.iter().any(|a| *a != arch && m == Some(a.machine()))) {
        return Err(QemuError::Arch { program, wanted: arch });
    }
    Ok(Start::of_machine(program))
}

/// One sum over the program and the firmware that a guest may run.
fn with_firmware(program: &str, data: &[PathBuf], memo: &mut Memo) -> io::Result<String> {
    let mut text = format!("program {program}\n");
    for name in FIRMWARE {
        if let Some(path) = data.iter().map(|dir| dir.join(name)).find(|path| path.is_file()) {
            text.push_str(&format!("{name} {}\n", memo.sum(&path)?));
        }
    }
    Ok(sum::of_bytes(text.as_bytes()))
}

#[cfg(test)]
mod tests;
