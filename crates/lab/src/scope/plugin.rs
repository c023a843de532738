//! The emulator's plugin, built by the compiler of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use wakescope_store::write_new;

use super::ScopeFailure;
use crate::archive::ArchiveError;
use crate::archive::tool::{self, Tool};
use crate::cache::{Cache, CacheError};
use crate::sum;
use crate::watch::{Unwatched, Watch};

/// Its sources, which are part of the program: what is built fits what reads it.
const SOURCES: [(&str, &str); 24] = [
    ("arch.h", include_str!("../../../../plugin/arch.h")),
    ("arm64.h", include_str!("../../../../plugin/arm64.h")),
    ("qemu.h", include_str!("../../../../plugin/qemu.h")),
    ("scope.h", include_str!("../../../../plugin/scope.h")),
    ("x86.h", include_str!("../../../../plugin/x86.h")),
    ("arm64.c", include_str!("../../../../plugin/arm64.c")),
    ("arm64_instructions.c", include_str!("../../../../plugin/arm64_instructions.c")),
    ("arm64_timer.c", include_str!("../../../../plugin/arm64_timer.c")),
    ("blocks.c", include_str!("../../../../plugin/blocks.c")),
    ("clock.c", include_str!("../../../../plugin/clock.c")),
    ("edges.c", include_str!("../../../../plugin/edges.c")),
    ("functions.c", include_str!("../../../../plugin/functions.c")),
    ("guest.c", include_str!("../../../../plugin/guest.c")),
    ("kept.c", include_str!("../../../../plugin/kept.c")),
    ("locks.c", include_str!("../../../../plugin/locks.c")),
    ("output.c", include_str!("../../../../plugin/output.c")),
    ("plan.c", include_str!("../../../../plugin/plan.c")),
    ("scope.c", include_str!("../../../../plugin/scope.c")),
    ("sections.c", include_str!("../../../../plugin/sections.c")),
    ("state.c", include_str!("../../../../plugin/state.c")),
    ("translate.c", include_str!("../../../../plugin/translate.c")),
    ("x86.c", include_str!("../../../../plugin/x86.c")),
    ("x86_instructions.c", include_str!("../../../../plugin/x86_instructions.c")),
    ("x86_timer.c", include_str!("../../../../plugin/x86_timer.c")),
];

/// Compilers, by the names that they have on most machines.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// It needs no library and no header but the compiler's: the emulator has all that it calls, and may be
/// of another system than this one.
const FLAGS: [&str; 9] = [
    "-O2",
    "-std=gnu11",
    "-shared",
    "-fPIC",
    "-nostdlib",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fvisibility=hidden",
    "-U_FORTIFY_SOURCE",
];

const FILE: &str = "scope.so";

/// The checksum of that file. A disk can damage it, and what the emulator then loads is not known.
const FILE_SUM: &str = "scope.sum";

/// Characters of the name of its folder.
const KEY_LENGTH: usize = 16;

/// It has some 30 kB.
const LARGEST: u64 = 1 << 20;

/// How many lines of a failed build are shown.
const LINES: usize = 12;

/// The compiler of this machine, and the folder for what it makes of these sources.
fn place(cache: &Cache, watch: &mut dyn Watch) -> Result<(PathBuf, PathBuf), ScopeFailure> {
    let compiler = COMPILERS.into_iter().find_map(tool::find).ok_or(ScopeFailure::NoCompiler)?;
    let version = Tool::new(&compiler).arg("--version");
    let version = tool::run(&version, tool::text(4096), watch, |_| Ok(())).map_err(of_tool)?;
    let sources: Vec<String> =
        SOURCES.map(|(name, text)| format!("{name} {}\n", sum::of_bytes(text.as_bytes()))).into();
    let made_of = format!("{}{}\n{}", sources.concat(), FLAGS.join(" "), version.output);
    let place = cache.plugins().join(&sum::of_bytes(made_of.as_bytes())[..KEY_LENGTH]);
    Ok((compiler, place))
}

/// The folder of the plugin that this build would use; `None` without a compiler.
pub(crate) fn current(cache: &Cache) -> Option<PathBuf> {
    Some(place(cache, &mut Unwatched).ok()?.1)
}

/// Whether a folder has the name and the files of a plugin.
pub(crate) fn is_plugin(name: &str, folder: &Path) -> bool {
    let is_named = name.len() == KEY_LENGTH && name.bytes().all(|b| b.is_ascii_hexdigit());
    let is_own = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_source = ending.is_some_and(|ending| ["c", "h"].contains(&ending));
        is_source || path.ends_with(FILE) || path.ends_with(FILE_SUM)
    };
    let mut entries = fs::read_dir(folder).into_iter().flatten();
    let only_own = entries.all(|entry| entry.is_ok_and(|entry| is_own(&entry.path())));
    is_named && only_own && folder.join(FILE).is_file()
}

/// Whether the plugin in `place` is what was built.
fn is_whole(place: &Path) -> bool {
    let sum = sum::of_file(&place.join(FILE)).ok();
    sum.is_some() && fs::read_to_string(place.join(FILE_SUM)).ok() == sum
}

/// Where the plugin is: in the cache, built now unless the same compiler has built it before.
pub(super) fn build(cache: &Cache, watch: &mut dyn Watch) -> Result<PathBuf, ScopeFailure> {
    let (compiler, place) = place(cache, watch)?;
    let path = place.join(FILE);
    if is_whole(&place) {
        return Ok(path);
    }
    let stage = cache.stage(&place)?;
    for (name, text) in SOURCES {
        let file = stage.path().join(name);
        write_new(&file, text.as_bytes()).map_err(CacheError::io("write", &file))?;
    }
    let parts = SOURCES.map(|(name, _)| name).into_iter().filter(|name| name.ends_with(".c"));
    let compile = Tool::new(&compiler).current_dir(stage.path()).args(FLAGS);
    let compile = compile.args(["-o", FILE]).args(parts);
    let ended = tool::run(&compile, tool::text(0), watch, |_| Ok(())).map_err(of_tool)?;
    let built = std::fs::metadata(stage.path().join(FILE)).is_ok_and(|meta| meta.len() < LARGEST);
    if !ended.success() || !built {
        let mut lines: Vec<String> = ended.complaints.lines().map(str::to_owned).collect();
        let complaints = lines.split_off(lines.len().saturating_sub(LINES));
        return Err(ScopeFailure::Compiler { compiler, complaints });
    }
    let sum = sum::of_file(&stage.path().join(FILE)).map_err(CacheError::io("read", &path))?;
    let file = stage.path().join(FILE_SUM);
    write_new(&file, sum.as_bytes()).map_err(CacheError::io("write", &file))?;
    stage.commit()?;
    Ok(path)
}

fn of_tool(e: ArchiveError) -> ScopeFailure {
    match e {
        ArchiveError::Stopped => ScopeFailure::Stopped,
        other => ScopeFailure::Host(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn every_file_of_the_plugin_is_part_of_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin");
        let entries = fs::read_dir(folder).unwrap();
        let mut files: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        files.sort_unstable();
        let mut known = SOURCES.map(|(name, _)| name.to_owned());
        known.sort_unstable();
        assert_eq!(files, known);
    }

    #[test]
    fn the_plugin_is_built_once_by_the_compiler_of_this_machine() {
        let folder = Folder::new("plugin");
        let cache = Cache::at(folder.path());
        let path = match build(&cache, &mut Unwatched) {
            Err(ScopeFailure::NoCompiler) => {
                let name = "the_plugin_is_built_once_by_the_compiler_of_this_machine";
                return wakescope_testing::skip(name, "there is no C compiler");
            }
            built => built.unwrap(),
        };
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(b"\x7fELF"));
        // It names what the emulator is to call, and no library.
        let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(has("qemu_plugin_install") && has("qemu_plugin_version") && !has("libc.so"));
        let folder = path.parent().unwrap();
        let notes = folder.join("scope.c");
        std::fs::write(&notes, "kept").unwrap();
        assert_eq!(build(&cache, &mut Unwatched).unwrap(), path);
        assert_eq!(std::fs::read(&notes).unwrap(), b"kept");
        // What was damaged is built anew.
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(build(&cache, &mut Unwatched).unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert_eq!(current(&cache).as_deref(), Some(folder));
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(is_plugin(name, folder) && !is_plugin("plugin", folder));
        std::fs::write(folder.join("notes.txt"), "mine").unwrap();
        assert!(!is_plugin(name, folder));
    }
}
