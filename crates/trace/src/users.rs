//! Addresses in programs, and what there is.
//!
//! Guests of the lab do without: the command hands [`Users`] to the tracer, so that they need not
//! hold the code for it.
//!
//! What a process has mapped is looked up as soon as one of its stacks comes, for it may end before
//! the run does. Its files are opened then, for they may be replaced or unmounted. They are read once
//! the run is stored ([`ProgramFiles`]): that may take long.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use wakescope_core::explain::Frame;

use wakescope_sys::input::open_input;

mod files;

use files::ProgramFile;
pub use files::{ProgramFiles, ProgramFunctions};

/// Finds the functions that places in a program's file are in: for each place, counted from the
/// beginning of the file, the function's name and how far it is behind its beginning.
pub type SymbolReader = fn(&[u8], &[u64]) -> BTreeMap<u64, (String, u64)>;

/// Processes and files that are looked at, and how often each process is: what it maps may change.
const MOST_PROCESSES: usize = 64;
const MOST_FILES: usize = 32;
const MOST_LOOKS: u32 = 4;

/// The longest list of mappings that is read, bytes, and the most mappings with code that are kept.
const LONGEST_LIST: u64 = 1 << 20;
const MOST_MAPPINGS: usize = 512;

/// The longest name of a file or function, in characters.
const LONGEST_NAME: usize = 80;

/// A file that a process has mapped. In two containers, two files can have one path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct MappedFile {
    /// Empty if there is none.
    path: String,
    device: String,
    inode: String,
}

impl MappedFile {
    /// The last part of its path, or what stands in its place: `[vdso]`.
    fn name(&self) -> String {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        let name = path.rsplit('/').next().unwrap_or(path);
        name.chars().take(LONGEST_NAME).collect()
    }
}

/// Code that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    /// Where in the file it begins.
    offset: u64,
    file: MappedFile,
}

impl Mapping {
    /// Of a line of /proc/PID/maps: `55d0-55e0 r-xp 00002000 fe:00 1234  /usr/bin/logger`. `None` if
    /// there is no code in it.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let mode = words.next()?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let offset = hex(words.next()?)?;
        let mut next = || words.next().unwrap_or("").trim_start().to_owned();
        let (device, inode, path) = (next(), next(), next());
        let file = MappedFile { path, device, inode };
        let (start, end) = (hex(start)?, hex(end)?);
        (mode.contains('x') && start < end).then_some(Self { start, end, offset, file })
    }

    fn has(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

#[derive(Default)]
struct Process {
    looks: u32,
    mappings: Vec<Mapping>,
}

/// Who can name addresses in programs.
pub trait NamePrograms {
    /// Looks up what is mapped at these addresses of the thread `pid`.
    fn look_up(&mut self, pid: u32, addresses: &[u64]);

    /// Tells where in which files all `stacks` are, each with its thread, and hands over the files, to
    /// find the functions there. Reads nothing.
    fn place(self: Box<Self>, stacks: &[(u32, &[u64])]) -> (UserPlaces, ProgramFiles);
}

/// Places at addresses in threads; those of which not even the file is known are left out.
pub type UserPlaces = HashMap<(u32, u64), Frame>;

/// What processes have mapped, as far as their stacks ask for it.
pub struct Users {
    read: SymbolReader,
    processes: HashMap<u32, Process>,
    /// `None` where one cannot be opened.
    files: HashMap<MappedFile, Option<File>>,
}

impl Users {
    /// Nothing is known yet. `read` is to find functions in files.
    pub fn read_by(read: SymbolReader) -> Self {
        Self { read, processes: HashMap::new(), files: HashMap::new() }
    }
}

impl NamePrograms for Users {
    fn look_up(&mut self, pid: u32, addresses: &[u64]) {
        let full = self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid);
        if addresses.is_empty() || pid == 0 || full {
            return;
        }
        let process = self.processes.entry(pid).or_default();
        let known = |address| process.mappings.iter().any(|mapping| mapping.has(address));
        // The caller of a stack without frame pointers may be anything.
        let innermost_known = known(addresses[0]);
        if process.looks < MOST_LOOKS && !innermost_known {
            process.looks += 1;
            process.mappings = mappings(pid);
        }
        for mapping in &process.mappings {
            let is_asked = addresses.iter().any(|&address| mapping.has(address));
            let is_file = mapping.file.path.starts_with('/');
            if !is_asked || !is_file || self.files.contains_key(&mapping.file) {
                continue;
            }
            if self.files.len() < MOST_FILES {
                self.files.insert(mapping.file.clone(), open(pid, mapping));
            }
        }
    }

    fn place(self: Box<Self>, stacks: &[(u32, &[u64])]) -> (UserPlaces, ProgramFiles) {
        let Self { read, processes, mut files } = *self;
        let mut places = HashMap::new();
        // Which files have each place, by what a frame holds of it.
        let mut asked: BTreeMap<(String, u64), Vec<&MappedFile>> = BTreeMap::new();
        for &(pid, stack) in stacks {
            let Some(process) = processes.get(&pid) else { continue };
            for &address in stack {
                let mapping = process.mappings.iter().find(|mapping| mapping.has(address));
                let Some(mapping) = mapping.filter(|m| !m.file.path.is_empty()) else { continue };
                let offset = (address - mapping.start).saturating_add(mapping.offset);
                let name = mapping.file.name();
                let module = Some(name.clone());
                places.insert((pid, address), Frame { module, offset, ..Frame::default() });
                let of_place = asked.entry((name, offset)).or_default();
                if !of_place.contains(&&mapping.file) {
                    of_place.push(&mapping.file);
                }
            }
        }
        let mut wanted: HashMap<&MappedFile, BTreeSet<u64>> = HashMap::new();
        for ((_, offset), of_place) in asked {
            // Of several files of one name nobody could tell which a frame is in.
            if let [file] = of_place[..] {
                wanted.entry(file).or_default().insert(offset);
            }
        }
        let opened = wanted.into_iter().filter_map(|(mapped, offsets)| {
            let (module, offsets) = (mapped.name(), offsets.into_iter().collect());
            Some(ProgramFile { file: files.remove(mapped)??, module, offsets, read })
        });
        (places, ProgramFiles(opened.collect()))
    }
}

fn mappings(pid: u32) -> Vec<Mapping> {
    let mut text = Vec::new();
    let read = File::open(format!("/proc/{pid}/maps"))
        .and_then(|file| file.take(LONGEST_LIST).read_to_end(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(Mapping::of).take(MOST_MAPPINGS).collect()
}

/// Opens the file of a mapping: that very one, whatever has its name now; without the privilege for
/// that the one that has its name, seen as the process does.
fn open(pid: u32, mapping: &Mapping) -> Option<File> {
    let Mapping { start, end, offset: _, file: MappedFile { path, .. } } = mapping;
    let very = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    let named = format!("/proc/{pid}/root{path}");
    let regular = |path: &String| open_input(Path::new(path)).ok();
    regular(&very).or_else(|| regular(&named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::units::SpanNs;

    #[test]
    fn mappings_with_code_are_read() {
        let line = "55d0c000-55d0e000 r-xp 00002000 fe:00 1234                       /usr/bin/a b";
        let mapping = Mapping::of(line).unwrap();
        let (start, end, offset) = (0x55d0_c000, 0x55d0_e000, 0x2000);
        let [path, device, inode] = ["/usr/bin/a b", "fe:00", "1234"].map(str::to_owned);
        let file = MappedFile { path, device, inode };
        assert_eq!(mapping, Mapping { start, end, offset, file });
        assert_eq!(mapping.file.name(), "a b");
        for line in [
            "55d0c000-55d0e000 r--p 00002000 fe:00 1234 /usr/bin/logger",
            "55d0e000-55d0c000 r-xp 00002000 fe:00 1234 /usr/bin/logger",
            "55d0e000-x r-xp 00002000 fe:00 1234 /usr/bin/logger",
            "55d0e000 r-xp",
            "",
        ] {
            assert_eq!(Mapping::of(line), None, "{line}");
        }
        let nameless = Mapping::of("7f00-7f10 r-xp 00000000 00:00 0 ").unwrap();
        assert_eq!((nameless.file.path.as_str(), nameless.file.name().as_str()), ("", ""));
        let gone = Mapping::of("7f00-7f10 r-xp 00000000 00:00 7 /tmp/x (deleted)").unwrap();
        assert_eq!(gone.file.name(), "x");
    }

    /// A place in the code of a library that this process has mapped, and the library's name: its own
    /// program may be larger than what is read.
    fn in_a_library() -> (u64, String) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let library = maps.lines().find_map(|line| {
            let (head, path) = line.split_at(line.find('/')?);
            let is_code = head.contains(" r-xp ") && path != own;
            let begin = u64::from_str_radix(head.split('-').next()?, 16).ok()?;
            is_code.then(|| (begin + 16, path.rsplit('/').next().unwrap_or_default().to_owned()))
        });
        library.expect("tests are linked with the C library")
    }

    #[test]
    fn places_in_programs_have_names() {
        let own = std::process::id();
        let (here, program) = in_a_library();
        let read: SymbolReader = |bytes, offsets| {
            assert_eq!(&bytes[..4], b"\x7fELF");
            offsets.iter().map(|&offset| (offset, ("main".into(), 16))).collect()
        };
        let mut users = Users::read_by(read);
        users.look_up(own, &[here, 1]);
        users.look_up(own, &[]);
        users.look_up(u32::MAX, &[here]);
        let stack = [here, 1];
        let stacks = [(own, &stack[..]), (u32::MAX, &stack[..]), (7, &stack[..])];
        let (places, files) = Box::new(users).place(&stacks);
        assert_eq!(places.len(), 1, "{places:?}");
        let mut frame = places[&(own, here)].clone();
        let offset = frame.offset;
        assert!(offset > 0, "{frame:?}");
        assert_eq!(frame, Frame { module: Some(program.clone()), offset, ..Frame::default() });
        let functions = files.functions_within(SpanNs(u64::MAX));
        functions.name(&mut frame);
        assert_eq!(frame, Frame { module: Some(program), ..Frame::in_function("main", 16) });
        assert_eq!(functions.late_files, 0);
    }

    /// In two containers, two files can have one path; and a frame holds no more than the last part.
    #[test]
    fn places_in_several_files_of_one_name_have_no_function() {
        let scratch = wakescope_testing::Folder::new("users-alike");
        let mut users = Users::read_by(|bytes, offsets| {
            let name = String::from_utf8_lossy(bytes);
            offsets.iter().map(|&offset| (offset, (name.clone().into_owned(), 0))).collect()
        });
        for (pid, inode, path) in [(1, "7", "/bin/a"), (2, "8", "/bin/a"), (3, "9", "/lib/a")] {
            scratch.write(inode, format!("of_{inode}").as_bytes());
            let [path, device, inode] = [path, "fe:00", inode].map(str::to_owned);
            let opened = File::open(scratch.join(&inode)).ok();
            let file = MappedFile { path, device, inode };
            users.files.insert(file.clone(), opened);
            let mappings = vec![Mapping { start: 0, end: 100, offset: 0, file }];
            users.processes.insert(pid, Process { looks: 1, mappings });
        }
        let stacks = [(1, &[10, 11][..]), (2, &[10, 12][..]), (3, &[10, 13][..])];
        let (places, files) = Box::new(users).place(&stacks);
        let functions = files.functions_within(SpanNs(u64::MAX));
        for (pid, address, want) in [
            (1, 10, None),
            (2, 10, None),
            (3, 10, None),
            (1, 11, Some("of_7")),
            (2, 12, Some("of_8")),
            (3, 13, Some("of_9")),
        ] {
            let mut frame = places[&(pid, address)].clone();
            functions.name(&mut frame);
            assert_eq!(frame.function.as_deref(), want, "{pid} {address}");
        }
    }
}
