//! The injector of the project's kernel module (kmod/inject.h): sections of kernel code that hold a CPU
//! up in a known way, and when each of them began and ended.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use wakescope_core::units::{MonoNs, SpanNs};

use crate::region::Region;
use crate::{checked, ioctl};

/// What of the module's interface this program knows.
const VERSION: u32 = 5;

/// What holds the CPU up. The number is the module's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Section {
    /// Interrupts are off.
    IrqsOff = 1,
    /// Preemption is off.
    PreemptOff = 2,
    /// A spin lock is held; with `PREEMPT_RT` one that can be preempted.
    SpinLock = 3,
    /// A raw spin lock is held.
    RawSpinLock = 4,
    /// Softirqs are off.
    BhOff = 5,
    /// In a read-side section of RCU.
    RcuRead = 6,
    /// A tasklet, in a softirq.
    Tasklet = 7,
    /// A timer of the timer wheel, in a softirq.
    Timer = 8,
    /// A function of an hrtimer, in the timer interrupt.
    Hrtimer = 9,
    /// In an interrupt that the CPU sends itself.
    IrqWork = 10,
    /// A work item, in a thread of the kernel.
    Work = 11,
    /// A loop without a preemption point.
    Loop = 12,
    /// A loop with a preemption point every so many turns.
    LoopResched = 13,
    /// A loop under a spin lock, which it gives up every so many turns.
    LoopLockBreak = 14,
    /// A loop under a spin lock, which it gives up every so many turns if the CPU is to be given up. It
    /// then has to make some turns again.
    LoopRestart = 15,
    /// A wait for a raw spin lock that another CPU holds.
    LockWait = 16,
    /// The same with interrupts off.
    LockWaitIrqsOff = 17,
    /// In an NMI that the CPU sends itself.
    Nmi = 18,
}

impl Section {
    /// Whether it is a loop that stops for others every so many turns.
    pub fn has_points(self) -> bool {
        matches!(self, Self::LoopResched | Self::LoopLockBreak | Self::LoopRestart)
    }

    /// Whether it waits for a lock that another CPU holds.
    pub fn needs_another_cpu(self) -> bool {
        matches!(self, Self::LockWait | Self::LockWaitIrqsOff)
    }
}

/// How two sections lie to each other. The number is the module's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Pairing {
    /// The second takes half the length, in the middle of the first.
    Nested = 1,
    /// Each takes two thirds of the length, and the second ends a third later.
    Overlapping = 2,
    /// Each takes half the length, and the second begins where the first ends.
    BackToBack = 3,
}

/// Which section to make, or which two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What holds the CPU up.
    pub section: Section,
    /// What else does, and when.
    pub second: Option<(Pairing, Section)>,
    /// For how long; both together, if there are two.
    pub length: SpanNs,
    /// Turns of a loop from one point to the next; 0 for sections that have none.
    pub every: u32,
    /// Turns that [`Section::LoopRestart`] makes again after a break; 0 for other sections.
    pub again: u32,
}

/// A section that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its number, from 1 on.
    pub number: u64,
    /// When it began.
    pub begin: MonoNs,
    /// When it ended.
    pub end: MonoNs,
    /// On which CPU it began.
    pub cpu: u32,
    /// How many turns it made; none where it waited for a lock.
    pub turns: u64,
    /// How many of them it had not made before.
    pub work: u64,
    /// Whether it ended before its length was over: the clock did not go on, the CPU that held the lock
    /// gave it up before this one had waited for so long, or the NMI did not come.
    pub cut: bool,
}

/// `struct wakescope_injection`.
#[repr(C)]
struct Injection {
    version: u32,
    kind: u32,
    length_ns: u64,
    interval_ns: u64,
    seed: u64,
    count: u32,
    every: u32,
    again: u32,
    pairing: u32,
    second: u32,
    reserved: u32,
}

/// `struct wakescope_section`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    sequence: u64,
    begin_ns: u64,
    end_ns: u64,
    length_ns: u64,
    turns: u64,
    work: u64,
    cpu: u32,
    end_cpu: u32,
    kind: u32,
    flags: u32,
}

const ENTRIES: usize = 4096;
const CUT: u32 = 1;

/// `struct wakescope_ring`.
#[repr(C)]
struct Ring {
    written: u64,
    overwritten: u64,
    reserved: [u64; 6],
    sections: [Entry; ENTRIES],
}

const INJECT: libc::c_ulong = ioctl(1, 0xbc, 16, size_of::<Injection>());

/// An open file of the injector, and its ring. All ends when it is dropped.
#[derive(Debug)]
pub struct Injector {
    file: File,
    ring: Region,
}

impl Injector {
    /// Takes over an open injector. Fails on any other file.
    pub fn new(file: File) -> io::Result<Self> {
        let (access, kind) = (libc::PROT_READ, libc::MAP_SHARED);
        let ring = Region::of_file(file.as_fd(), size_of::<Ring>(), access, kind)?;
        Ok(Self { file, ring })
    }

    /// Makes one section on this CPU, or a pair of them, and returns when it is over; it may have to wait until the CPU
    /// may be held up again. Fails with `Interrupted`, when a signal handler ran before it began,
    /// with `ENODEV`, where another CPU is needed and there is none, and with `EOPNOTSUPP`, where a CPU
    /// cannot send itself an NMI.
    pub fn inject(&self, asked: Asked) -> io::Result<()> {
        let asked = Injection {
            version: VERSION,
            kind: asked.section as u32,
            length_ns: asked.length.0,
            interval_ns: 0,
            seed: 0,
            count: 1,
            every: asked.every,
            again: asked.again,
            pairing: asked.second.map_or(0, |(pairing, _)| pairing as u32),
            second: asked.second.map_or(0, |(_, section)| section as u32),
            reserved: 0,
        };
        // SAFETY: the request reads a structure of this size, and `asked` is live.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), INJECT as _, &raw const asked) })
            .map(drop)
    }

    /// The last section that was made by this file; to be called while it makes none.
    pub fn last(&self) -> Option<Made> {
        self.made(self.written())
    }

    /// The last two sections, in order; to be called while it makes none.
    pub fn last_two(&self) -> Option<[Made; 2]> {
        let last = self.written();
        Some([self.made(last.checked_sub(1)?)?, self.made(last)?])
    }

    fn ring(&self) -> *const Ring {
        self.ring.start().as_ptr()
    }

    fn written(&self) -> u64 {
        // SAFETY: the mapping is as long as a ring, begins at a page and lives as long as `self`. Only
        // the kernel writes to it, so it is read as what may change, and any bytes are a value of it.
        unsafe { (&raw const (*self.ring()).written).read_volatile() }
    }

    /// The section of this number, if it was made and is still in the ring.
    fn made(&self, number: u64) -> Option<Made> {
        let place = usize::try_from(number.checked_sub(1)?).ok()? % ENTRIES;
        // SAFETY: as above; `place` is one of its entries.
        let entry = unsafe { (&raw const (*self.ring()).sections[place]).read_volatile() };
        (entry.sequence == number).then_some(Made {
            number: entry.sequence,
            begin: MonoNs(entry.begin_ns),
            end: MonoNs(entry.end_ns),
            cpu: entry.cpu,
            turns: entry.turns,
            work: entry.work,
            cut: entry.flags & CUT != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../../kmod/inject.h");

    /// What stands between the braces of `struct NAME` or `enum NAME`, without comments, word by word.
    fn body(what: &str) -> Vec<&'static str> {
        let body =
            HEADER.split(&format!("{what} {{\n")).nth(1).unwrap().split("};").next().unwrap();
        let mut rest = body;
        let mut words = Vec::new();
        while let Some((before, after)) = rest.split_once("/*") {
            words.extend(before.split_whitespace());
            rest = after.split_once("*/").unwrap().1;
        }
        words.extend(rest.split_whitespace());
        words
    }

    #[test]
    fn the_interface_is_that_of_the_modules_header() {
        for line in [
            format!("#define WAKESCOPE_INJECT_VERSION {VERSION}"),
            format!("#define WAKESCOPE_RING_SECTIONS {ENTRIES}U"),
            format!("#define WAKESCOPE_SECTION_CUT {CUT}U"),
            "#define WAKESCOPE_IOC_INJECT _IOW(0xBC, 16, struct wakescope_injection)".into(),
        ] {
            assert!(HEADER.lines().any(|there| there == line), "{line}");
        }
        for (name, fields) in [
            (
                "struct wakescope_injection",
                "__u32 version; __u32 kind; __u64 length_ns; __u64 interval_ns; __u64 seed; \
                 __u32 count; __u32 every; __u32 again; __u32 pairing; __u32 second; __u32 reserved;",
            ),
            (
                "struct wakescope_section",
                "__u64 sequence; __u64 begin_ns; __u64 end_ns; __u64 length_ns; __u64 turns; \
                 __u64 work; __u32 cpu; __u32 end_cpu; __u32 kind; __u32 flags;",
            ),
            (
                "struct wakescope_ring",
                "__u64 written; __u64 overwritten; __u64 reserved[6]; struct wakescope_section \
                 sections[WAKESCOPE_RING_SECTIONS];",
            ),
        ] {
            assert_eq!(body(name).join(" "), fields, "{name}");
        }
        assert_eq!((size_of::<Injection>(), size_of::<Entry>()), (56, 64));
        assert_eq!(INJECT, 0x4038_bc10);
    }

    #[test]
    fn sections_have_the_modules_numbers() {
        let kinds = [
            (Section::IrqsOff, "IRQS_OFF"),
            (Section::PreemptOff, "PREEMPT_OFF"),
            (Section::SpinLock, "SPIN_LOCK"),
            (Section::RawSpinLock, "RAW_SPIN_LOCK"),
            (Section::BhOff, "BH_OFF"),
            (Section::RcuRead, "RCU_READ"),
            (Section::Tasklet, "TASKLET"),
            (Section::Timer, "TIMER"),
            (Section::Hrtimer, "HRTIMER"),
            (Section::IrqWork, "IRQ_WORK"),
            (Section::Work, "WORK"),
            (Section::Loop, "LOOP"),
            (Section::LoopResched, "LOOP_RESCHED"),
            (Section::LoopLockBreak, "LOOP_LOCK_BREAK"),
            (Section::LoopRestart, "LOOP_RESTART"),
            (Section::LockWait, "LOCK_WAIT"),
            (Section::LockWaitIrqsOff, "LOCK_WAIT_IRQS_OFF"),
            (Section::Nmi, "NMI"),
        ];
        let there = body("enum wakescope_kind").join(" ").replace(" = 1", "");
        let mut there = there.split(", ");
        for (number, (section, name)) in (1..).zip(kinds) {
            assert_eq!(section as u32, number);
            assert_eq!(there.next(), Some(format!("WAKESCOPE_{name}").as_str()));
        }
        assert_eq!(there.next(), Some("WAKESCOPE_KINDS,"));
        let pairings = [(Pairing::Nested, 1), (Pairing::Overlapping, 2), (Pairing::BackToBack, 3)];
        assert!(pairings.iter().all(|&(pairing, number)| pairing as u32 == number));
        let there = "WAKESCOPE_ALONE, WAKESCOPE_NESTED, WAKESCOPE_OVERLAPPING, \
                     WAKESCOPE_BACK_TO_BACK, WAKESCOPE_PAIRINGS,";
        assert_eq!(body("enum wakescope_pairing").join(" "), there);
    }

    #[test]
    fn what_is_no_injector_is_refused() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(Injector::new(file).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
