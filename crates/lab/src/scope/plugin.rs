//! The emulator's plugin, built by the compiler of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use wakescope_core::hex::is_hex;
use wakescope_store::write_new;

use super::ScopeFailure;
use crate::archive::ArchiveError;
use crate::archive::tool::{self, Tool};
use crate::cache::{Cache, CacheError};
use crate::sources::{Sources, last_lines};
use crate::sum;
use crate::watch::{Unwatched, Watch};

/// Its sources, which are part of the program: what is built fits what reads it.
const SOURCES: Sources<'_> = Sources(&[
    ("arch.h", include_str!("../../../../plugin/arch.h")),
    ("arm64.h", include_str!("../../../../plugin/arm64.h")),
    ("qemu.h", include_str!("../../../../plugin/qemu.h")),
    ("scope.h", include_str!("../../../../plugin/scope.h")),
    ("x86.h", include_str!("../../../../plugin/x86.h")),
    ("arm64.c", include_str!("../../../../plugin/arm64.c")),
    ("arm64_instructions.c", include_str!("../../../../plugin/arm64_instructions.c")),
    ("arm64_timer.c", include_str!("../../../../plugin/arm64_timer.c")),
    ("blocks.c", include_str!("../../../../plugin/blocks.c")),
    ("checksum.c", include_str!("../../../../plugin/checksum.c")),
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
]);

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

/// The compiler of this machine, and the folder for what it makes of these sources.
fn place(cache: &Cache, watch: &mut dyn Watch) -> Result<(PathBuf, PathBuf), ScopeFailure> {
    let compiler = COMPILERS.into_iter().find_map(tool::find).ok_or(ScopeFailure::NoCompiler)?;
    let version = Tool::new(&compiler).arg("--version");
    let version = tool::run(&version, tool::text(4096), watch, |_| Ok(())).map_err(of_tool)?;
    let made_of = format!("{}{}\n{}", SOURCES.sums(), FLAGS.join(" "), version.output);
    let place = cache.plugins().join(&sum::of_bytes(made_of.as_bytes())[..KEY_LENGTH]);
    Ok((compiler, place))
}

/// The folder of the plugin that this build would use; `None` without a compiler.
pub(crate) fn current(cache: &Cache) -> Option<PathBuf> {
    Some(place(cache, &mut Unwatched).ok()?.1)
}

/// Whether a folder has the name and the files of a plugin.
pub(crate) fn is_plugin(name: &str, folder: &Path) -> bool {
    let is_own = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_source = ending.is_some_and(|ending| ["c", "h"].contains(&ending));
        is_source || path.ends_with(FILE) || path.ends_with(FILE_SUM)
    };
    let mut entries = fs::read_dir(folder).into_iter().flatten();
    let only_own = entries.all(|entry| entry.is_ok_and(|entry| is_own(&entry.path())));
    is_hex(name, KEY_LENGTH) && only_own && folder.join(FILE).is_file()
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
    SOURCES.write_into(stage.path())?;
    let parts = SOURCES.names().filter(|name| name.ends_with(".c"));
    let compile = Tool::new(&compiler).current_dir(stage.path()).args(FLAGS);
    let compile = compile.args(["-o", FILE]).args(parts);
    let ended = tool::run(&compile, tool::text(0), watch, |_| Ok(())).map_err(of_tool)?;
    let built = std::fs::metadata(stage.path().join(FILE)).is_ok_and(|meta| meta.len() < LARGEST);
    if !ended.success() || !built {
        let complaints = last_lines(&ended.complaints);
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
    use std::process::Command;

    use wakescope_core::hex::to_hex;
    use wakescope_decode::scope::{KERNEL_HEAD, Kernel, ScopeError, decode};

    use super::*;
    use wakescope_testing::Folder;

    #[test]
    fn every_file_of_the_plugin_is_part_of_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin");
        let entries = fs::read_dir(folder).unwrap();
        let mut files: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        files.sort_unstable();
        let mut known: Vec<_> = SOURCES.names().map(str::to_owned).collect();
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

    /// Prints what instructions of x86-64 at this address change, which it is given as words of hexadecimal digits.
    const MEANINGS: &str = r#"
#include "x86_instructions.c"
int printf(const char *format, ...);
struct plan plan = { .preempt_count = 0x35e08, .current_task = 0x35e00 };

static unsigned int digit(char of)
{
	return of <= '9' ? of - '0' : of - 'a' + 10;
}

int main(int count, char **words)
{
	static const char *const names[] = {
		[NOTHING] = "nothing", [TURN_IRQS_OFF] = "irqs off", [CURRENT_TASK] = "task",
		[PREEMPT_COUNT] = "count", [BESIDE_COUNT] = "beside", [BY_REGISTER] = "register",
	};
	int i;

	for (i = 1; i < count; i++) {
		uint8_t bytes[LONGEST + 2] = { 0 };
		size_t size = 0;
		uint32_t how;

		for (; words[i][2 * size]; size++)
			bytes[size] = digit(words[i][2 * size]) << 4 | digit(words[i][2 * size + 1]);
		printf("%s\n", names[x86_meaning_of(bytes, size, 0xffffffff81000000, &how)]);
	}
	return 0;
}
"#;

    /// A program of the plugin's own code and of `text`, in a folder of its own.
    fn program(compiler: &Path, text: &str) -> (Folder, PathBuf) {
        let folder = Folder::new("plugin-program");
        let at = |name: &str| folder.path().join(name);
        for &(name, text) in SOURCES.0 {
            fs::write(at(name), text).unwrap();
        }
        fs::write(at("main.c"), text).unwrap();
        let mut compile = Command::new(compiler);
        let compile = compile.args(["-std=gnu11", "-o"]).args([at("program"), at("main.c")]);
        assert!(compile.status().unwrap().success());
        let program = at("program");
        (folder, program)
    }

    /// What the plugin takes instructions for, by its own code.
    fn meanings(compiler: &Path, instructions: &[String]) -> Vec<String> {
        let (_folder, program) = program(compiler, MEANINGS);
        let said = Command::new(program).args(instructions).output().unwrap();
        String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Writes a stream of a guest without a process, with so many records of a word.
    const STREAM: &str = r#"
#include "checksum.c"
#include "output.c"
struct told told;
int atoi(const char *text);

int main(int count, char **words)
{
	const uint64_t head[] = { SCOPE_MAGIC, FORMAT, 0, 0, 0 };
	const uint64_t end[21] = { 0 };
	uint64_t i;

	write_to(1);
	put(head, sizeof(head));
	for (i = 0; i < atoi(words[1]); i++)
		put_record(IDLE, &i, 1);
	put_record(END, end, 21);
	return !flush();
}
"#;

    /// Its reader is another program's code, so that both are compared.
    #[test]
    fn the_blocks_that_the_plugin_writes_are_read_and_not_if_a_bit_is_flipped() {
        let Some(compiler) = COMPILERS.into_iter().find_map(tool::find) else {
            let name = "the_blocks_that_the_plugin_writes_are_read_and_not_if_a_bit_is_flipped";
            return wakescope_testing::skip(name, "there is no C compiler");
        };
        let (_folder, program) = program(&compiler, STREAM);
        let kernel = Kernel::unpack(&format!("{KERNEL_HEAD}\n62 0 0 4\nend\n")).unwrap();
        let read = |bytes: &[u8]| decode(bytes, &kernel).unwrap_err();
        // One block; and several, which need not be full.
        for records in [3_usize, 20_000] {
            let stream = Command::new(&program).arg(records.to_string()).output().unwrap();
            let stream = stream.stdout;
            let blocks = 1 + records * 16 / (1 << 16);
            assert_eq!(stream.len(), 8 * (5 + 22 + blocks) + 16 * records);
            assert_eq!(read(&stream), ScopeError::NoProcess);
            // Each bit of the short one, and of the long one some in every block, at each place in a word.
            let step = if records < 100 { 1 } else { 20_011 };
            for bit in (0..8 * stream.len()).step_by(step) {
                let mut damaged = stream.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let refused = read(&damaged);
                let is_named = matches!(refused, ScopeError::Damaged { .. } | ScopeError::Cut);
                assert!(is_named, "bit {bit}: {refused}");
            }
        }
    }

    /// GCC has the address of a variable of each CPU also in a register, as in Debian's 6.12: the instruction then
    /// does not say which one it writes.
    #[test]
    fn accesses_to_what_a_cpu_has_of_its_own_are_told_apart_or_looked_at() {
        let Some(compiler) = COMPILERS.into_iter().find_map(tool::find) else {
            let name = "accesses_to_what_a_cpu_has_of_its_own_are_told_apart_or_looked_at";
            return wakescope_testing::skip(name, "there is no C compiler");
        };
        // An operand relative to the next instruction.
        let near = |before: &str, address: u32, after: &str| {
            let size = (before.len() + after.len()) / 2 + 4;
            let next = 0x8100_0000_u32 + u32::try_from(size).unwrap();
            let distance = address.wrapping_sub(next).to_le_bytes();
            let digits = to_hex(&distance);
            format!("{before}{digits}{after}")
        };
        let (count, task) = (0x35e08, 0x35e00);
        let table = [
            // incl, addl, cmpxchg and andl of the count; the last two by an absolute address.
            (near("65ff05", count, ""), "count"),
            (near("658105", count, "00000100"), "count"),
            (near("650fb115", count, ""), "count"),
            ("65ff0425085e0300".into(), "count"),
            ("65812425085e0300ffffff7f".into(), "count"),
            (near("65488b05", task, ""), "task"),
            ("6548890425005e0300".into(), "task"),
            // A byte of the count, eight bytes that begin in it, and its neighbours.
            (near("65f605", count + 2, "ff"), "beside"),
            (near("65488905", count - 4, ""), "beside"),
            (near("658b05", count + 4, ""), "beside"),
            (near("658b05", count + 8, ""), "nothing"),
            (near("658b05", count - 16, ""), "nothing"),
            // decl %gs:0x0(%r13), incl %gs:(%rbx), mov %gs:0x35e08(,%rax,8),%rax, mov %gs:0x35e08(%rax),%eax
            ("6541ff4d00".into(), "register"),
            ("65ff03".into(), "register"),
            ("65488b04c5085e0300".into(), "register"),
            ("658b80085e0300".into(), "register"),
            // mov with 64 bits of address, one with 32, and crc32, whose opcode has three bytes.
            ("65a1085e030000000000".into(), "register"),
            ("65678b0425085e0300".into(), "register"),
            ("65f20f38f103".into(), "register"),
            // Without memory, and without GS.
            ("6589c8".into(), "nothing"),
            ("ff4308".into(), "nothing"),
            ("fa".into(), "irqs off"),
        ];
        let (instructions, wanted): (Vec<String>, Vec<&str>) = table.into_iter().unzip();
        let said = meanings(&compiler, &instructions);
        let said = instructions.iter().zip(said.iter().map(String::as_str));
        assert_eq!(said.collect::<Vec<_>>(), instructions.iter().zip(wanted).collect::<Vec<_>>());
    }
}
