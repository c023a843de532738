//! Files of programs, and the functions at places in them.
//!
//! A file may be anybody's, and on a network mount whose server is gone. So a thread of its own reads
//! it, and what waits for that thread waits for a limited time.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use wakescope_core::explain::Frame;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock::{self, Clock};

use super::{LONGEST_NAME, SymbolReader};

/// The largest file that is read for its symbols, and how much is read of all files, bytes.
const LARGEST_FILE: u64 = 64 << 20;
const MOST_READ: u64 = 128 << 20;

/// Open files of programs, each with the places in it whose functions are to be found. Nothing of them
/// has been read yet.
#[derive(Debug, Default)]
pub struct ProgramFiles(pub(super) Vec<ProgramFile>);

#[derive(Debug)]
pub(super) struct ProgramFile {
    pub(super) file: File,
    /// As frames call it.
    pub(super) module: String,
    /// Places in it, bytes from its beginning.
    pub(super) offsets: Vec<u64>,
    pub(super) read: SymbolReader,
}

/// Functions at places in files of programs.
#[derive(Debug, Default)]
pub struct ProgramFunctions {
    /// By the file and the place in it: the function, and how far the place is behind its beginning.
    functions: HashMap<String, BTreeMap<u64, (String, u64)>>,
    /// Files that could not be read in time.
    pub late_files: usize,
    /// The CPU time that reading took, as far as it is known.
    pub cpu_time: SpanNs,
}

/// What the thread tells of a file.
struct Found {
    module: String,
    functions: BTreeMap<u64, (String, u64)>,
    /// The CPU time of the thread so far.
    cpu_time: SpanNs,
}

impl ProgramFiles {
    /// Whether there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the functions of all files, as far as that takes no longer than `limit`: a file of at most
    /// 64 MiB, and 128 MiB of all of them.
    pub fn functions_within(self, limit: SpanNs) -> ProgramFunctions {
        let mut result = ProgramFunctions { late_files: self.0.len(), ..Default::default() };
        if self.is_empty() {
            return result;
        }
        let end = clock::now().after(limit);
        let (sender, receiver) = channel();
        let thread = thread::Builder::new().name("functions".into());
        // Without a thread nothing is found, as if there were no time. Nobody joins it: a read from a
        // server that is gone ends with the process.
        if thread.spawn(move || self.read(&sender)).is_ok() {
            result.take(&receiver, || Duration::from_nanos(end.since(clock::now()).0));
        }
        result
    }

    fn read(self, sender: &Sender<Found>) {
        let length = |file: &File| file.metadata().map_or(u64::MAX, |metadata| metadata.len());
        let mut files: Vec<_> = self.0.into_iter().map(|file| (length(&file.file), file)).collect();
        // The smallest first: so a large file of one program takes no name from those of others.
        files.sort_by(|(a, one), (b, other)| (a, &one.module).cmp(&(b, &other.module)));
        let mut left = MOST_READ;
        for (length, ProgramFile { file, module, offsets, read }) in files {
            let bytes = if length <= left.min(LARGEST_FILE) {
                left -= length;
                first_bytes(&file, length)
            } else {
                None
            };
            let functions = bytes.map(|bytes| read(&bytes, &offsets)).unwrap_or_default();
            let cpu_time = SpanNs(clock::read(Clock::ThreadCpu));
            if sender.send(Found { module, functions, cpu_time }).is_err() {
                break;
            }
        }
    }
}

impl ProgramFunctions {
    /// Takes what is found of each file, until all are read or no time is left.
    fn take(&mut self, found: &Receiver<Found>, time_left: impl Fn() -> Duration) {
        while let Ok(Found { module, functions, cpu_time }) = found.recv_timeout(time_left()) {
            self.functions.entry(module).or_default().extend(functions);
            self.late_files -= 1;
            self.cpu_time = cpu_time;
        }
    }

    /// Names the function that `frame` of a program is in. If that is not known, it stays as it is.
    pub fn name(&self, frame: &mut Frame) {
        let Frame { function: None, module: Some(module), offset, .. } = &*frame else { return };
        let found = self.functions.get(module).and_then(|found| found.get(offset));
        if let Some((function, into)) = found {
            frame.function = Some(function.chars().take(LONGEST_NAME).collect());
            frame.offset = *into;
        }
    }
}

fn first_bytes(mut file: &File, length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::Folder;

    fn file(folder: &Folder, megabytes: u64, read: SymbolReader) -> ProgramFile {
        let module = megabytes.to_string();
        let path = folder.join(&module);
        File::create(&path).unwrap().set_len(megabytes << 20).unwrap();
        ProgramFile { file: File::open(path).unwrap(), module, offsets: vec![0], read }
    }

    #[test]
    fn the_smallest_files_are_read_until_enough_is_read() {
        let folder = Folder::new("program-files");
        let found = |megabytes: &[u64]| {
            let read: SymbolReader = |bytes, _| [(0, (bytes.len().to_string(), 0))].into();
            let files = megabytes.iter().map(|&megabytes| file(&folder, megabytes, read));
            let functions = ProgramFiles(files.collect()).functions_within(SpanNs(u64::MAX));
            assert_eq!(functions.late_files, 0, "one that is too large is not late");
            let named = |megabytes: &&u64| {
                let module = Some(megabytes.to_string());
                let mut frame = Frame { module, ..Frame::default() };
                functions.name(&mut frame);
                let bytes = (**megabytes << 20).to_string();
                frame.function.inspect(|function| assert_eq!(*function, bytes)).is_some()
            };
            megabytes.iter().filter(named).copied().collect::<Vec<u64>>()
        };
        assert_eq!(found(&[65, 60, 59, 50, 10]), [59, 50, 10]);
        assert_eq!(found(&[65, 60, 10]), [60, 10], "no file of more than 64 MiB is read");
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_read_in_time_takes_no_name_from_those_before_it() {
        let folder = Folder::new("program-files-late");
        // As a read from a server that is gone.
        let never: SymbolReader = |_, _| loop {
            thread::park();
        };
        let read: SymbolReader = |_, _| [(0, ("quick".into(), 7))].into();
        let files = vec![file(&folder, 3, read), file(&folder, 2, never), file(&folder, 1, read)];
        let functions = ProgramFiles(files).functions_within(SpanNs(0));
        assert_eq!(functions.late_files + functions.functions.len(), 3);

        let (sender, receiver) = channel();
        let files = vec![file(&folder, 3, read), file(&folder, 2, never), file(&folder, 1, read)];
        let mut functions = ProgramFunctions { late_files: 3, ..Default::default() };
        thread::spawn(move || ProgramFiles(files).read(&sender));
        // Time is over once something was found.
        let asked = std::cell::Cell::new(0);
        functions.take(&receiver, || match asked.replace(asked.get() + 1) {
            0 => Duration::MAX,
            _ => Duration::ZERO,
        });
        assert_eq!(functions.late_files, 2);
        let mut frames = [1, 2, 3].map(|megabytes: u64| {
            let module = Some(megabytes.to_string());
            Frame { module, ..Frame::default() }
        });
        frames.iter_mut().for_each(|frame| functions.name(frame));
        let names = frames.map(|frame| frame.function);
        assert_eq!(names, [Some("quick".into()), None, None]);
    }
}
