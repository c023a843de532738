//! Addresses in programs, and what there is.
//!
//! Guests of the lab do without: the command hands [`Users`] to the tracer, so that they need not
//! hold the code for it.
//!
//! What a process has mapped is looked up as soon as one of its stacks comes, for it may end before
//! the run does. The files are kept open, and read in the end.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use wakescope_core::explain::Frame;

use wakescope_sys::input::open_input;

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

/// The largest file that is read for its symbols, and how much is read of all files, bytes. Files are
/// anybody's, and no signal is looked at meanwhile.
const LARGEST_FILE: u64 = 64 << 20;
const MOST_READ: u64 = 128 << 20;

/// The longest name of a file or function, in characters.
const LONGEST_NAME: usize = 80;

/// Code that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    /// Where in the file it begins.
    offset: u64,
    /// The file; empty if there is none.
    path: String,
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
        let path = words.nth(2).unwrap_or("").trim_start().to_owned();
        let (start, end) = (hex(start)?, hex(end)?);
        (mode.contains('x') && start < end).then_some(Self { start, end, offset, path })
    }

    fn has(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The last part of its file's name, or what stands in its place: `[vdso]`.
    fn name(&self) -> String {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        let name = path.rsplit('/').next().unwrap_or(path);
        name.chars().take(LONGEST_NAME).collect()
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

    /// Names all `stacks`, each with its thread.
    fn name(&self, stacks: &[(u32, &[u64])]) -> UserNames;
}

/// Places at addresses in threads; those of which not even the file is known are left out.
pub type UserNames = HashMap<(u32, u64), Frame>;

/// What processes have mapped, as far as their stacks ask for it.
pub struct Users {
    read: SymbolReader,
    processes: HashMap<u32, Process>,
    /// By their paths; `None` where one cannot be opened.
    files: HashMap<String, Option<File>>,
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
            let is_file = mapping.path.starts_with('/');
            if !is_asked || !is_file || self.files.contains_key(&mapping.path) {
                continue;
            }
            if self.files.len() < MOST_FILES {
                self.files.insert(mapping.path.clone(), open(pid, mapping));
            }
        }
    }

    fn name(&self, stacks: &[(u32, &[u64])]) -> UserNames {
        let mut places: HashMap<(u32, u64), (String, u64)> = HashMap::new();
        let mut asked: HashMap<String, Vec<u64>> = HashMap::new();
        for &(pid, stack) in stacks {
            let Some(process) = self.processes.get(&pid) else { continue };
            for &address in stack {
                let mapping = process.mappings.iter().find(|mapping| mapping.has(address));
                let Some(mapping) = mapping else { continue };
                let offset = (address - mapping.start).saturating_add(mapping.offset);
                asked.entry(mapping.path.clone()).or_default().push(offset);
                places.insert((pid, address), (mapping.path.clone(), offset));
            }
        }
        let functions = self.functions(&asked);
        let mut names = HashMap::new();
        for (key, (path, offset)) in places {
            let file = Mapping { start: 0, end: 0, offset: 0, path: path.clone() }.name();
            let found = functions.get(path.as_str()).and_then(|found| found.get(&offset));
            let module = Some(file).filter(|file| !file.is_empty());
            let frame = match found {
                Some((function, into)) => {
                    let function: String = function.chars().take(LONGEST_NAME).collect();
                    Frame { module, ..Frame::in_function(function, *into) }
                }
                None if module.is_none() => continue,
                None => Frame { module, offset, ..Frame::default() },
            };
            names.insert(key, frame);
        }
        names
    }
}

impl Users {
    /// The functions that places in files are in, file by file, as far as these are read.
    fn functions<'a>(
        &self,
        asked: &'a HashMap<String, Vec<u64>>,
    ) -> HashMap<&'a str, BTreeMap<u64, (String, u64)>> {
        let file = |path: &'a String| {
            let file = self.files.get(path)?.as_ref()?;
            Some((file.metadata().ok()?.len(), path, file))
        };
        // The smallest first: so a large file of one program takes no name from those of others.
        let mut files: Vec<_> = asked.keys().filter_map(file).collect();
        files.sort_by_key(|&(length, path, _)| (length, path));
        let mut left = MOST_READ;
        let mut functions = HashMap::new();
        for (length, path, file) in files {
            if length > left.min(LARGEST_FILE) {
                break;
            }
            left -= length;
            if let Some(bytes) = first_bytes(file, length) {
                functions.insert(path.as_str(), (self.read)(&bytes, &asked[path]));
            }
        }
        functions
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
    let Mapping { start, end, path, .. } = mapping;
    let very = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    let named = format!("/proc/{pid}/root{path}");
    let regular = |path: &String| open_input(Path::new(path)).ok();
    regular(&very).or_else(|| regular(&named))
}

fn first_bytes(mut file: &File, length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_with_code_are_read() {
        let line = "55d0c000-55d0e000 r-xp 00002000 fe:00 1234                       /usr/bin/a b";
        let mapping = Mapping::of(line).unwrap();
        let (start, end, offset) = (0x55d0_c000, 0x55d0_e000, 0x2000);
        assert_eq!(mapping, Mapping { start, end, offset, path: "/usr/bin/a b".into() });
        assert_eq!(mapping.name(), "a b");
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
        assert_eq!((nameless.path.as_str(), nameless.name().as_str()), ("", ""));
        let gone = Mapping::of("7f00-7f10 r-xp 00000000 00:00 7 /tmp/x (deleted)").unwrap();
        assert_eq!(gone.name(), "x");
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
        let names = users.name(&stacks);
        let program = Some(program);
        let main = Frame { module: program.clone(), ..Frame::in_function("main", 16) };
        assert_eq!(names[&(own, here)], main);
        assert_eq!(names.len(), 1, "{names:?}");
        let mut users = Users::read_by(|_, _| BTreeMap::new());
        users.look_up(own, &stack);
        let bare = &users.name(&stacks)[&(own, here)];
        assert_eq!((&bare.function, &bare.module), (&None, &program));
        assert!(bare.offset > 0, "{bare:?}");
    }

    #[test]
    fn the_smallest_files_are_read_until_enough_is_read() {
        let scratch = wakescope_testing::Folder::new("users-read");
        let mut users = Users::read_by(|bytes, _| [(0, (bytes.len().to_string(), 0))].into());
        let mut asked = HashMap::new();
        for megabytes in [65, 60, 59, 50, 10] {
            let path = scratch.join(megabytes.to_string());
            let file = File::create_new(&path).unwrap();
            file.set_len(megabytes << 20).unwrap();
            users.files.insert(megabytes.to_string(), File::open(path).ok());
            asked.insert(megabytes.to_string(), vec![0]);
        }
        users.files.insert("none".into(), None);
        asked.insert("none".into(), vec![0]);
        let found = users.functions(&asked);
        let mut read: Vec<&str> = found.keys().copied().collect();
        read.sort_unstable();
        assert_eq!(read, ["10", "50", "59"]);
        assert_eq!(found["10"][&0].0, (10 << 20).to_string());
        asked.retain(|path, _| ["65", "60", "10"].contains(&path.as_str()));
        assert_eq!(users.functions(&asked).len(), 2, "no file of more than 64 MiB is read");
    }
}
