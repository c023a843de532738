//! The system calls that are long on purpose.

use std::fs::File;
use std::io::{self, Read, Write};

use wakescope_core::behaviour::Call;
use wakescope_core::units::SpanNs;
use wakescope_sys::{clock, file, machine, pipe, record_lock, repeat};

/// Makes one call, and its times are noted.
pub(super) type Note<'a> =
    dyn FnMut(Call, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> + 'a;

/// Calls that belong together because one prepares the next.
pub(super) trait Work {
    /// What it is about.
    const NAME: &'static str;
    /// The calls of a round.
    const CALLS: &'static [Call];

    /// Makes each call once.
    fn round(&mut self, note: &mut Note<'_>) -> io::Result<()>;
}

/// A pipe that is filled and emptied, and /dev/zero.
pub(super) struct Pipes {
    read: File,
    write: File,
    zero: File,
    bytes: Vec<u8>,
    /// How many times zeroes are read over `bytes` in one call.
    times: usize,
}

/// What a pipe has without asking.
const SHORTEST_BYTES: usize = 64 << 10;

/// That much is copied in about a millisecond.
const LONGEST_BYTES: usize = 8 << 20;

impl Pipes {
    /// With calls of at most `limit`, yet so short that a tick seldom falls into one: at the tick, a
    /// lazy kernel preempts what it has let run on.
    pub(super) fn new(limit: SpanNs) -> io::Result<Self> {
        let limit = SpanNs(machine::tick().0 / 2).min(limit);
        let mut pipes = Self::of(SHORTEST_BYTES)?;
        while pipes.bytes.len() < LONGEST_BYTES {
            // Without privileges a pipe may hold what /proc/sys/fs/pipe-max-size says.
            let Ok(mut longer) = Self::of(2 * pipes.bytes.len()) else { break };
            if longer.shortest_read()? > limit {
                break;
            }
            pipes = longer;
        }
        // Clearing memory is faster than copying it, by how much depends on the machine. The control
        // is made the longest call, so that it is the last to be undecided.
        let (read, clear) = (pipes.shortest_read()?, pipes.shortest_clear()?);
        pipes.times = usize::try_from(2 * read.0 / clear.0.max(1)).unwrap_or(1).clamp(1, 64);
        Ok(pipes)
    }

    /// How long reading the pipe takes when nobody interferes. The first time has to map new pages.
    fn shortest_read(&mut self) -> io::Result<SpanNs> {
        shortest(|| {
            self.write.write_all(&self.bytes)?;
            let begin = clock::now();
            self.read.read_exact(&mut self.bytes)?;
            Ok(clock::now().since(begin))
        })
    }

    /// How long clearing the memory takes.
    fn shortest_clear(&mut self) -> io::Result<SpanNs> {
        shortest(|| {
            let begin = clock::now();
            repeat::read_over(&self.zero, &mut self.bytes, 1)?;
            Ok(clock::now().since(begin))
        })
    }

    fn of(bytes: usize) -> io::Result<Self> {
        let (read, write) = pipe::pipe()?;
        let size = pipe::set_size(&write, bytes)?;
        // Written here, so that no page is missing later.
        let bytes = vec![1; size];
        Ok(Self { read, write, zero: File::open("/dev/zero")?, bytes, times: 1 })
    }
}

impl Work for Pipes {
    const NAME: &'static str = "a pipe and /dev/zero";
    const CALLS: &'static [Call] = &[Call::ZeroRead, Call::PipeWrite, Call::PipeRead];

    fn round(&mut self, note: &mut Note<'_>) -> io::Result<()> {
        let Self { read, write, zero, bytes, times } = self;
        note(Call::PipeWrite, &mut || write.write_all(bytes))?;
        note(Call::PipeRead, &mut || read.read_exact(bytes))?;
        note(Call::ZeroRead, &mut || repeat::read_over(zero, bytes, *times).map(drop))
    }
}

/// The shortest of some times that `act` takes.
fn shortest(mut act: impl FnMut() -> io::Result<SpanNs>) -> io::Result<SpanNs> {
    let mut shortest = act()?;
    for _ in 0..4 {
        shortest = shortest.min(act()?);
    }
    Ok(shortest)
}

/// Many locks on one file, all to be looked at.
pub(super) struct Locks {
    file: File,
}

/// Locks enough for a scan that is long against a wakeup: 0.4 ms, for about 10 MB of the kernel's
/// memory.
const LOCKS: record_lock::Offset = 40_000;

impl Locks {
    pub(super) fn new() -> io::Result<Self> {
        let file = file::file_in_memory()?;
        record_lock::lock(&file, 0..2 * LOCKS)?;
        // Every second byte is unlocked, from the end on: then the lock to split is always the
        // first that the kernel finds. Setting the locks one by one takes time with their square.
        for byte in (0..LOCKS).rev() {
            record_lock::unlock(&file, 2 * byte + 1..2 * byte + 2)?;
        }
        Ok(Self { file })
    }
}

impl Work for Locks {
    const NAME: &'static str = "record locks";
    const CALLS: &'static [Call] = &[Call::LockScan];

    fn round(&mut self, note: &mut Note<'_>) -> io::Result<()> {
        let behind_all = 4 * LOCKS..4 * LOCKS + 1;
        note(Call::LockScan, &mut || {
            record_lock::could_lock(&self.file, behind_all.clone()).map(drop)
        })
    }
}
