//! The system calls that are long on purpose.

use std::fs::File;
use std::io::{self, Read, Write};

use wakescope_core::behaviour::Call;
use wakescope_core::units::SpanNs;
use wakescope_sys::{clock, pipe, record_lock, repeat};

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
}

/// About a millisecond's worth of copying; a wakeup takes a tenth of that on a slow machine.
const LONG_BYTES: i32 = 8 << 20;

/// Clearing memory is that much faster than copying it.
const ZEROES_TIMES: usize = 8;

/// What every user may have a pipe hold (/proc/sys/fs/pipe-max-size).
const ALLOWED_BYTES: i32 = 1 << 20;

/// What a pipe has without asking.
const SHORTEST_BYTES: usize = 64 << 10;

/// Half of the shortest tick, which is 1 ms (`CONFIG_HZ=1000`).
const HALF_A_TICK: SpanNs = SpanNs(500_000);

impl Pipes {
    /// With calls as long as this user's pipes allow.
    pub(super) fn long() -> io::Result<Self> {
        Self::of(LONG_BYTES).or_else(|_| Self::of(ALLOWED_BYTES))
    }

    /// With calls so short that a tick seldom falls into one: at the tick, a lazy kernel preempts
    /// what it has let run on.
    pub(super) fn shorter_than_a_tick() -> io::Result<Self> {
        let mut pipes = Self::long()?;
        let mut size = pipes.bytes.len();
        while size > SHORTEST_BYTES && pipes.shortest_read()? > HALF_A_TICK {
            size /= 2;
            pipes = Self::of(i32::try_from(size).unwrap_or(ALLOWED_BYTES))?;
        }
        Ok(pipes)
    }

    /// How long reading the pipe takes when nobody interferes: the shortest of some times. The
    /// first has to map new pages.
    fn shortest_read(&mut self) -> io::Result<SpanNs> {
        let mut shortest = SpanNs(u64::MAX);
        for _ in 0..5 {
            self.write.write_all(&self.bytes)?;
            let begin = clock::now();
            self.read.read_exact(&mut self.bytes)?;
            shortest = shortest.min(clock::now().since(begin));
        }
        Ok(shortest)
    }

    fn of(bytes: i32) -> io::Result<Self> {
        let (read, write) = pipe::pipe()?;
        let size = pipe::set_size(&write, bytes)?;
        // Written here, so that no page is missing later.
        let bytes = vec![1; size];
        Ok(Self { read, write, zero: File::open("/dev/zero")?, bytes })
    }
}

impl Work for Pipes {
    const NAME: &'static str = "a pipe and /dev/zero";
    const CALLS: &'static [Call] = &[Call::ZeroRead, Call::PipeWrite, Call::PipeRead];

    fn round(&mut self, note: &mut Note<'_>) -> io::Result<()> {
        let Self { read, write, zero, bytes } = self;
        note(Call::PipeWrite, &mut || write.write_all(bytes))?;
        note(Call::PipeRead, &mut || read.read_exact(bytes))?;
        note(Call::ZeroRead, &mut || repeat::read_over(zero, bytes, ZEROES_TIMES).map(drop))
    }
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
        let file = record_lock::nameless_file()?;
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
