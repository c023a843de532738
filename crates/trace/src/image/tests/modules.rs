//! The same of modules, whose code has no addresses in their files.

use super::*;

/// Each of its sections of code has functions at the same places.
const QUEUE: &str = "\
volatile int queued;
int drained(int);
static __attribute__((noinline)) void probe(void)
{
	queued++;
}
static inline __attribute__((always_inline)) void put_page(int x)
{
	queued -= x;
}
int queue_drain(int x)
{
	probe();
	put_page(x);
	return drained(x) + 1;
}
__attribute__((section(\".text.unlikely\"))) int queue_reset(int x)
{
	probe();
	return drained(x) + 2;
}
__attribute__((section(\".init.text\"))) int queue_init(int x)
{
	return queue_drain(x) + queue_reset(x);
}
";

const DRAINED: &str = "\
volatile int last;
extern int in_the_kernel(int);
static __attribute__((noinline)) int probe(int x)
{
	return in_the_kernel(x) + 1;
}
int drained(int x)
{
	last = x;
	return probe(x) * 2;
}
";

/// The module that the compiler `cc` makes with `options`, for `test`; `None` if there is no such
/// compiler.
fn module_by(cc: &str, test: &str, options: &[&str]) -> Option<Vec<u8>> {
    let dir = Folder::new(test);
    let sources = [("drivers/queue.c", QUEUE), ("drivers/drained.c", DRAINED)]
        .map(|(path, text)| dir.write(path, text));
    let ended = Command::new(cc)
        .args(["-O1", "-fno-pic", "-fno-pie", "-ffreestanding", "-nostdlib", "-r"])
        .args(["-fno-optimize-sibling-calls", &format!("-Wl,--build-id=0x{BUILD_ID}")])
        .args(options)
        .args(["-o", "queue.ko"])
        .args(sources)
        .current_dir(&dir)
        .output()
        .ok()?;
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    Some(fs::read(dir.join("queue.ko")).unwrap())
}

fn module(test: &str, options: &[&str]) -> Vec<u8> {
    module_by("cc", test, options).expect("cc, which links this test, too")
}

/// What each place in the function `name` is said to be, with the last part of files' names.
fn all_of_module(image: &Image<'_>, name: &str, depth: usize) -> Vec<String> {
    let size = image.functions(&[name])[name][0].size;
    let stacks = (0..size).map(|offset| {
        let mut stack = vec![Frame::default(); depth];
        stack.push(Frame::in_function(name, offset));
        stack
    });
    let mut all: Vec<String> = stacks
        .map(|stack| {
            let mut lines = lines(image, &stack).remove(depth);
            for line in &mut lines {
                line.file = line.file.rsplit('/').next().unwrap().to_owned();
            }
            text_of(&lines)
        })
        .collect();
    all.retain(|text| !text.is_empty());
    all.dedup();
    all
}

fn check_places(bytes: &[u8], which: &str) {
    let image = Image::parse_module(bytes).unwrap();
    assert_eq!(image.build_id().as_deref(), Some(BUILD_ID), "{which}");
    image.has_lines().unwrap();
    let drain = all_of_module(&image, "queue_drain", 0);
    assert!(has(&drain, "queue_drain queue.c:13"), "{which}: {drain:?}");
    assert!(has(&drain, "put_page queue.c:9 < queue_drain queue.c:14"), "{which}: {drain:?}");
    // Sections other than the first, which begin at the same address in the file.
    let reset = all_of_module(&image, "queue_reset", 0);
    assert!(has(&reset, "queue_reset queue.c:20"), "{which}: {reset:?}");
    assert!(reset.iter().all(|text| text.starts_with("queue_reset queue.c:")), "{which}");
    let init = all_of_module(&image, "queue_init", 0);
    assert!(has(&init, "queue_init queue.c:24"), "{which}: {init:?}");
    assert!(init.iter().all(|text| text.starts_with("queue_init queue.c:2")), "{which}: {init:?}");
    // Another file, whose lines are a program of their own.
    let drained = all_of_module(&image, "drained", 0);
    assert!(has(&drained, "drained drained.c:9"), "{which}: {drained:?}");
    // Callers are at their calls.
    assert_eq!(
        all_of_module(&image, "queue_reset", 1),
        ["queue_reset queue.c:19", "queue_reset queue.c:20",]
    );
}

#[test]
fn places_in_modules_have_the_lines_of_their_functions() {
    for (format, options) in [
        ("5", &["-g", "-gdwarf-5"][..]),
        ("4", &["-g", "-gdwarf-4"]),
        ("packed", &["-g", "-gz=zlib"]),
        ("sections", &["-g", "-ffunction-sections"]),
    ] {
        check_places(&module(format, options), format);
    }
}

#[test]
fn modules_of_arm64_are_read_too() {
    let cc = "aarch64-linux-gnu-gcc";
    let Some(bytes) = module_by(cc, "arm64", &["-g"]) else {
        wakescope_testing::skip("modules_of_arm64_are_read_too", &format!("there is no {cc}"));
        return;
    };
    check_places(&bytes, "arm64");
}

#[test]
fn of_functions_of_one_name_in_a_module_nothing_is_guessed() {
    let bytes = module("names", &["-g"]);
    let found = of_both_probes(&Image::parse_module(&bytes).unwrap());
    assert!(matches!(&found[..], [one] if one.ends_with("/drivers/drained.c:5")), "{found:?}");
}

#[test]
fn what_a_module_only_uses_is_not_in_it() {
    let bytes = module("uses", &["-g"]);
    let image = Image::parse_module(&bytes).unwrap();
    let stack = stack_of(["in_the_kernel+0x0", "queued+0x0", "queue.c+0x0"]);
    assert_eq!(lines(&image, &stack), [const { Vec::new() }; 3]);
}

#[test]
fn files_of_modules_are_told_from_where_the_sources_of_their_kernel_lay() {
    let bytes = module("root", &["-g"]);
    let image = Image::parse_module(&bytes).unwrap();
    let stack = stack_of(["drained+0x0"]);
    let file = |root: Option<&str>| {
        let found = image.lines(&[&stack], None, root).unwrap();
        assert_eq!(found.root.as_deref(), root);
        found.lines[0][0][0].file.clone()
    };
    let whole = file(None);
    let root = whole.strip_suffix("/drivers/drained.c").unwrap();
    assert!(root.starts_with('/'), "{root}");
    assert_eq!(file(Some(root)), "drivers/drained.c");
    assert_eq!(file(Some("/elsewhere")), whole);
}

#[test]
fn other_files_than_modules_are_refused() {
    let why = |bytes: &[u8]| match Image::parse_module(bytes) {
        Ok(image) => image.has_lines().unwrap_err().to_string(),
        Err(e) => e.to_string(),
    };
    assert_eq!(why(b""), "it is not a complete 64-bit ELF file");
    assert_eq!(why(&built("linked", &["-g"])), "it is a linked program, not a module");
    assert_eq!(why(&module("bare", &["-g0"])), "it has no debug information (DWARF)");
    let module = module("unlinked", &["-g"]);
    assert_eq!(why(&module[..module.len() / 2]), why(b""));
    let kernel = Image::parse(&module).err().unwrap();
    assert_eq!(kernel.to_string(), "it is not linked, like a module");
}

/// The header of each section that relocations are in.
fn headers_of_relocations(bytes: &[u8]) -> Vec<usize> {
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let table = usize::try_from(word(40)).unwrap();
    let headers = (table..bytes.len()).step_by(64).filter(|at| at + 64 <= bytes.len());
    headers.filter(|at| bytes[at + 4] == 4).collect()
}

#[test]
fn relocations_that_lie_are_borne() {
    let whole = module("lying", &["-g"]);
    let headers = headers_of_relocations(&whole);
    assert!(headers.len() > 3, "{headers:?}");
    let begin = |header: usize| {
        usize::try_from(u64::from_le_bytes(*whole[header + 24..].first_chunk().unwrap())).unwrap()
    };
    let changed = |at: usize, value: u64| {
        let mut bytes = whole.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        use_module(&bytes)
    };
    assert_eq!(use_module(&whole), None);
    let damaged = Some("its debug information is damaged".to_owned());
    for &header in &headers {
        let first = begin(header);
        let info = u64::from_le_bytes(*whole[first + 8..].first_chunk().unwrap());
        // Where it is to be put, for which symbol, and of which kind.
        let places = [u64::MAX, u64::MAX - 3, whole.len() as u64].map(|at| changed(first, at));
        let symbols = [u32::MAX, 1 << 20]
            .map(u64::from)
            .map(|symbol| changed(first + 8, symbol << 32 | info & 0xffff_ffff));
        let kinds = [2, 4, 0xff].map(|kind| changed(first + 8, info & !0xffff_ffff | kind));
        if places[0].is_none() {
            // These are of code, and nobody reads them.
            assert_eq!([places, kinds].concat(), [const { None }; 6]);
            continue;
        }
        assert_eq!([&places[..], &symbols].concat(), vec![damaged.clone(); 5]);
        let other = Some("its debug information has unsupported relocations".to_owned());
        assert_eq!(kinds, [other.clone(), other.clone(), other]);
    }
}

#[test]
fn relocations_without_end_are_not_followed() {
    let whole = module("endless", &["-g"]);
    let headers = headers_of_relocations(&whole);
    // All of them, each as long as the file.
    let mut bytes = whole.clone();
    for header in headers {
        bytes[header + 24..header + 32].copy_from_slice(&0_u64.to_le_bytes());
        let size = (whole.len() / 24 * 24) as u64;
        bytes[header + 32..header + 40].copy_from_slice(&size.to_le_bytes());
    }
    assert!(use_module(&bytes).is_some());
}

/// Does all that is ever done with a module, whatever comes of it; why it gave no lines.
fn use_module(bytes: &[u8]) -> Option<String> {
    let image = match Image::parse_module(bytes) {
        Ok(image) => image,
        Err(e) => return Some(e.to_string()),
    };
    let _ = (image.build_id(), image.has_lines());
    let stack = stack_of(["queue_drain+0x8", "queue_reset+0x9", "probe+0x4", "queue_init+0xa"]);
    let found = image.lines(&[&stack], None, Some("/tmp"));
    found.err().map(|e| e.to_string())
}

#[test]
fn damaged_modules_are_borne() {
    let packed = module("damaged-packed", &["-g", "-gz=zlib"]);
    damage(&module("damaged", &["-g"]), &packed, |bytes| drop(use_module(bytes)));
}
