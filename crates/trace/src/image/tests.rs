//! Against a small image that a compiler makes, with known sources.

use std::fs;
use std::process::Command;

use proptest::prelude::*;

use object::ObjectSegment;
use wakescope_core::explain::{Frame, SourceLine};
use wakescope_testing::{Folder, fuzz_fewer};

use super::*;

mod costs;
mod modules;
mod programs;

const MAIN: &str = "\
int removed(int);
int twice(int);
int start_kernel(void)
{
	return removed(3) + twice(4);
}
static __attribute__((noinline)) int probe(int x)
{
	return removed(x) + 1;
}
int twice(int x)
{
	return probe(x) * probe(x + 1);
}
const char linux_banner[] = \"Linux version 6.1.0-test (me@here) (cc 14) #1 SMP 2026\\n\";
";

const SHMEM: &str = "\
volatile int pages;
static __attribute__((noinline)) void probe(void)
{
	pages++;
}
static inline __attribute__((always_inline)) void put_page(int x)
{
	pages -= x;
}
static inline __attribute__((always_inline)) void put_all(int x)
{
	put_page(x / 2);
}
int removed(int x)
{
	probe();
	put_all(x);
	return pages;
}
";

const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// The image as `options` make it, for `test`.
fn built(test: &str, options: &[&str]) -> Vec<u8> {
    let dir = Folder::new(test);
    dir.write("init/main.c", MAIN);
    dir.write("mm/shmem.c", SHMEM);
    let ended = Command::new("cc")
        .args(["-O1", "-fno-omit-frame-pointer", "-ffreestanding", "-nostdlib", "-static"])
        .args(["-Wl,-e,start_kernel", &format!("-Wl,--build-id=0x{BUILD_ID}")])
        .args(options)
        .args(["-o", "vmlinux"])
        // As absolute paths, for a kernel's are such too.
        .args([dir.join("init/main.c"), dir.join("mm/../mm/shmem.c")])
        .current_dir(&dir)
        .output()
        .expect("cc, which links this test, too");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    fs::read(dir.join("vmlinux")).unwrap()
}

/// The frames of the kernel itself at these places, `function+0x10`; of an empty one nothing is known.
fn stack_of<const COUNT: usize>(places: [&str; COUNT]) -> [Frame; COUNT] {
    places.map(|place| {
        let Some((function, offset)) = place.split_once("+0x") else { return Frame::default() };
        Frame::in_function(function, u64::from_str_radix(offset, 16).unwrap())
    })
}

/// The lines of each entry of one stack.
fn lines(image: &Image<'_>, stack: &[Frame]) -> Vec<Vec<SourceLine>> {
    image.lines(&[stack], None, None).unwrap().lines.remove(0)
}

fn text_of(lines: &[SourceLine]) -> String {
    let text = lines.iter().map(|l| format!("{} {}:{}", l.function, l.file, l.line));
    text.collect::<Vec<_>>().join(" < ")
}

/// What each place in the function `name` is said to be, without repetition. `depth`: how many
/// entries are before it in its stack.
fn all_of(image: &Image<'_>, name: &str, depth: usize) -> Vec<String> {
    let size = image.functions(&[name])[name][0].size;
    let mut all = Vec::new();
    for offset in 0..size {
        let mut stack = vec![Frame::default(); depth];
        stack.push(Frame::in_function(name, offset));
        let lines = lines(image, &stack);
        all.push(text_of(&lines[depth]));
    }
    all.retain(|text| !text.is_empty());
    all.dedup();
    all
}

fn has(all: &[String], wanted: &str) -> bool {
    all.iter().any(|text| text == wanted)
}

#[test]
fn places_have_the_lines_of_their_functions() {
    for (format, options) in [
        ("5", &["-g", "-gdwarf-5"][..]),
        ("4", &["-g", "-gdwarf-4"]),
        ("packed", &["-g", "-gz=zlib"]),
    ] {
        let bytes = built(format, options);
        let image = Image::parse(&bytes).unwrap();
        image.has_lines().unwrap();
        let removed = all_of(&image, "removed", 0);
        assert!(has(&removed, "removed mm/shmem.c:15"), "{format}: {removed:?}");
        let inlined = "put_page mm/shmem.c:8 < put_all mm/shmem.c:12 < removed mm/shmem.c:17";
        assert!(has(&removed, inlined), "{format}: {removed:?}");
        let main = all_of(&image, "start_kernel", 0);
        assert!(has(&main, "start_kernel init/main.c:5"), "{format}: {main:?}");
    }
}

#[test]
fn callers_are_at_their_calls() {
    let bytes = built("calls", &["-g"]);
    let image = Image::parse(&bytes).unwrap();
    // Behind each of the two calls there is one place that one can return to.
    let returns = all_of(&image, "start_kernel", 1);
    assert_eq!(returns, ["start_kernel init/main.c:5"]);
    assert_eq!(all_of(&image, "removed", 1), ["removed mm/shmem.c:16"]);
    assert_eq!(all_of(&image, "twice", 3), ["twice init/main.c:13"]);
}

#[test]
fn of_functions_of_one_name_nothing_is_guessed() {
    let bytes = built("names", &["-g"]);
    assert_eq!(of_both_probes(&Image::parse(&bytes).unwrap()), ["probe init/main.c:9"]);
}

/// All lines of `probe`, of which there are two, and only one of them calls anybody.
fn of_both_probes(image: &Image<'_>) -> Vec<String> {
    let all = &image.functions(&["probe"])["probe"];
    assert_eq!(all.len(), 2);
    assert_eq!(text_of(&lines(image, &stack_of(["probe+0x0"]))[0]), "");
    let larger = all.iter().map(|function| function.size).max().unwrap();
    let stacks = (0..larger).map(|at| [Frame::default(), Frame::in_function("probe", at)]);
    let mut found: Vec<_> = stacks.map(|stack| text_of(&lines(image, &stack)[1])).collect();
    found.retain(|text| !text.is_empty());
    found
}

#[test]
fn what_is_not_there_has_no_lines() {
    let bytes = built("nothing", &["-g"]);
    let image = Image::parse(&bytes).unwrap();
    assert_eq!(
        lines(&image, &stack_of(["unknown+0x1", "twice+0x10000", ""])),
        [const { Vec::new() }; 3]
    );
    // A function of the same name in a module is another one.
    let [there] = stack_of(["twice+0x0"]);
    let in_module = Frame { module: Some("module".into()), ..there.clone() };
    let both: [&[Frame]; 2] = [&[there], &[in_module]];
    let found = |module| {
        let found = image.lines(&both, module, None).unwrap().lines;
        found.iter().map(|stack| !stack[0].is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(found(None), [true, false]);
    assert_eq!(found(Some("module")), [false, true]);
    assert_eq!(found(Some("other")), [false, false]);
    assert!(image.lines(&[], None, None).unwrap().lines.is_empty());
}

#[test]
fn images_tell_what_they_are() {
    let bytes = built("id", &["-g"]);
    let image = Image::parse(&bytes).unwrap();
    assert_eq!(image.build_id().as_deref(), Some(BUILD_ID));
    let banner = "Linux version 6.1.0-test (me@here) (cc 14) #1 SMP 2026";
    assert_eq!(image.banner().as_deref(), Some(banner));
}

#[test]
fn other_files_are_refused() {
    let why = |bytes: &[u8]| match Image::parse(bytes) {
        Ok(image) => image.has_lines().unwrap_err().to_string(),
        Err(e) => e.to_string(),
    };
    assert_eq!(why(b""), "it is not a complete 64-bit ELF file");
    assert_eq!(why(b"MZ\0\0not an ELF file"), why(b""));
    assert_eq!(why(&built("stripped", &["-s"])), "it has no symbol table");
    assert_eq!(why(&built("bare", &["-g0"])), "it has no debug information (DWARF)");
    let whole = built("cut", &["-g"]);
    assert_eq!(why(&whole[..whole.len() / 2]), why(b""));
    let mut unlinked = whole;
    unlinked[16] = 1;
    assert_eq!(why(&unlinked), "it is not linked, like a module");
}

#[test]
fn functions_of_programs_are_found_by_their_places_in_the_file() {
    let bytes = built("program", &["-g0"]);
    let elf = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let Function { start, size } = image.functions(&["removed"])["removed"][0];
    let offset = elf.segments().find_map(|segment| {
        let into = start.checked_sub(segment.address()).filter(|&into| into < segment.size())?;
        Some(segment.file_range().0 + into)
    });
    let offset = offset.unwrap();
    let found = functions_of_program(&bytes, &[offset, offset + size - 1, u64::MAX, 0]);
    assert_eq!(found[&offset], ("removed".into(), 0));
    assert_eq!(found[&(offset + size - 1)], ("removed".into(), size - 1));
    assert_eq!(found.len(), 2, "{found:?}");
    let stripped = built("program-stripped", &["-s"]);
    assert!(functions_of_program(&stripped, &[offset]).is_empty());
    assert!(functions_of_program(b"#!/bin/sh", &[0, 1]).is_empty());
}

/// Does all that is ever done with an image, whatever comes of it.
fn use_all(bytes: &[u8]) {
    let _ = functions_of_program(bytes, &[0, 0x1000, 0x1008, u64::MAX]);
    let Ok(image) = Image::parse(bytes) else { return };
    let _ = (image.build_id(), image.banner(), image.has_lines());
    let stack = stack_of(["removed+0x8", "twice+0x9", "probe+0x4", "start_kernel+0xa"]);
    if let Ok(found) = image.lines(&[&stack], None, None) {
        let lengths =
            found.lines.iter().flatten().flatten().map(|l| l.file.len() + l.function.len());
        assert!(lengths.max().unwrap_or(0) <= 4 * (LONGEST_OF_A_LINE));
    }
}

const LONGEST_OF_A_LINE: usize = 128 + 256;

#[test]
fn fuzz_damaged_images() {
    damage(&built("damaged", &["-g"]), &built("damaged-packed", &["-g", "-gz=zlib"]), use_all);
}

/// Hands what is left of two files to `use_it` when they are cut short, when some bytes of them are
/// others, and when their tables of sections lie.
fn damage(whole: &[u8], packed: &[u8], use_it: impl Fn(&[u8])) {
    for length in (0..whole.len()).step_by(97) {
        use_it(&whole[..length]);
    }
    fuzz_fewer("image", 2, &[whole.to_vec(), packed.to_vec()], &use_it);
    // Where sections are and how long.
    let headers = whole.len() - 40 * 64..whole.len();
    proptest!(|(at in headers, word in any::<u64>())| {
        let mut bytes = whole.to_vec();
        let at = at.min(bytes.len() - 8);
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        use_it(&bytes);
    });
}

#[test]
fn an_image_that_is_cut_short_while_it_is_read_is_told_as_such() {
    let whole = built("cut", &["-g"]);
    let folder = Folder::new("cut-image");
    let path = folder.join("image");
    let stack = stack_of(["twice+0x4"]);
    for (when, kept) in [("parsed", 100), ("asked", 100), ("never", whole.len() as u64)] {
        fs::write(&path, &whole).unwrap();
        let mapped = MappedImage::open(&path).unwrap();
        let cut = || fs::File::options().write(true).open(&path).unwrap().set_len(kept).unwrap();
        if when == "parsed" {
            // All of one page stays, in memory if not in the file.
            fs::write(&path, "").unwrap();
            assert!(matches!(mapped.image(), Err(NoImage::Cut)), "{when}");
            continue;
        }
        let image = mapped.image().unwrap();
        let first = image.lines(&[&stack], None, None);
        assert!(first.is_ok_and(|found| !found.lines[0][0].is_empty()));
        cut();
        let found = image.lines(&[&stack], None, None);
        assert_eq!(matches!(found, Err(NoImage::Cut)), when == "asked", "{when}");
    }
}
