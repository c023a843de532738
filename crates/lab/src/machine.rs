//! The machine that a guest runs on: QEMU, counting instructions instead of time.

use crate::kernel::Arch;
use crate::plan::CpuSpeed;

pub mod boot;
pub mod confinement;
pub mod console;
pub mod monitor;
pub mod parameters;
pub mod power;
pub mod state;

/// How fast, how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What kernels it runs.
    pub arch: Arch,
    /// How fast the CPU is.
    pub cpu: CpuSpeed,
    /// Memory, in MiB.
    pub memory_mib: u32,
    /// Processors. With more than one, QEMU lets them take turns in slices of about a millisecond,
    /// which is then what a guest measures.
    pub cpus: u32,
    /// Whether it has two more serial ports, to which nothing is connected: x86 only.
    pub has_spare_ports: bool,
}

/// The spare ports, as the guest's kernel names them.
pub(crate) const SPARE_PORTS: [&str; 2] = ["ttyS2", "ttyS3"];

/// A load that copies files in memory takes an eighth of it, and wants 144 MiB.
pub const MEMORY_MIB: u32 = 1280;

impl Machine {
    /// One CPU that executes an instruction per virtual nanosecond.
    pub fn new(arch: Arch) -> Self {
        Self {
            arch,
            cpu: CpuSpeed::default(),
            memory_mib: MEMORY_MIB,
            cpus: 1,
            has_spare_ports: false,
        }
    }

    /// The arguments of the emulator that make the machine, without the files of a boot. All that
    /// could let time of the host, or chance, into the guest is taken out.
    pub fn arguments(&self) -> Vec<String> {
        let machine = match self.arch {
            // No PCI bus to walk: a third of the virtual boot time of `pc`. Interrupt controllers
            // and timers are those of every PC.
            Arch::Amd64 => "microvm,pit=on,pic=on,rtc=on,isa-serial=off,auto-kernel-cmdline=off",
            // A GIC of version 3, as newer boards have; 2 is the default and knows 8 CPUs.
            Arch::Arm64 => "virt,gic-version=3",
        };
        let cpu = match self.arch {
            // Random numbers of the host would be chance. Where a CPU claims to move and fill strings
            // fast, kernels and libraries do it by one instruction that repeats for each byte, and each
            // repetition counts: 4,096 for a cleared page, where 512 of eight bytes do. That changed the
            // order of kernels. With these steps, the median of 6.1-cloud under `find` was above that of
            // 7.2-cloud (5.7 and 4.5 µs, 4 seeds); without them it is below (4.3 and 4.5 µs).
            Arch::Amd64 => "max,-rdrand,-rdseed,-erms,-fsrm",
            // As in boards of today (ARMv8.2), known to every QEMU from 7.0 on. `max` signs each
            // return address, which takes a host 1.6 times as long and shows nothing else. Without
            // the frequency its clock would count in steps of 16 ns.
            Arch::Arm64 => "cortex-a76,cntfrq=1000000000",
        };
        let icount = self.instruction_counting();
        let cpus = self.processors();
        [
            ["-M", machine],
            ["-cpu", cpu],
            ["-accel", "tcg,thread=single"],
            ["-icount", &icount],
            ["-rtc", "base=2002-03-01T00:00:00,clock=vm"],
            // Of the random numbers that QEMU makes: `virt` hands some to the kernel, which lays
            // out memory by them. It could be told not to (dtb-randomness=off), but a kernel that
            // has to collect its own takes 0.4 virtual seconds longer to be ready.
            ["-seed", "1"],
            ["-smp", &cpus],
            ["-m", &self.memory_mib.to_string()],
        ]
        .concat()
        .into_iter()
        .chain(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        // By it a guest reports that it is ready for its order.
        .chain(if self.takes_orders() { &["-device", "pvpanic"][..] } else { &[] }.iter().copied())
        .map(String::from)
        .chain(self.spare_ports())
        .collect()
    }

    /// One to a socket: the machine's firmware lists only the first CPU of each socket in the MP table
    /// (mptable_setup() of SeaBIOS), by which a kernel without ACPI finds them. QEMU would put all of them
    /// into one socket.
    fn processors(&self) -> String {
        match self.arch {
            Arch::Amd64 if self.cpus > 1 => format!("{0},sockets={0}", self.cpus),
            _ => self.cpus.to_string(),
        }
    }

    /// Their bytes go nowhere, and none comes: an end outside of the guest would be one in the host's time.
    fn spare_ports(&self) -> Vec<String> {
        if !self.has_spare_ports || self.arch != Arch::Amd64 {
            return Vec::new();
        }
        let port = |index: u8| {
            let id = format!("spare{index}");
            let [chardev, device] =
                [format!("null,id={id}"), format!("isa-serial,chardev={id},index={index}")];
            ["-chardev".into(), chardev, "-device".into(), device]
        };
        [2, 3].into_iter().flat_map(port).collect()
    }

    /// Whether the guest reads its order from the machine; otherwise the order is on the kernel's command line.
    pub(crate) fn takes_orders(&self) -> bool {
        self.arch == Arch::Amd64
    }

    /// How the emulator counts instructions and skips idle time.
    ///
    /// The emulator's main loop skips idle time when it sees the CPU halted, up to the next timer
    /// from the time that the CPU's thread published last. That thread halts the CPU first and
    /// publishes what it has executed afterwards. If the host runs the main loop in between, those
    /// instructions, 65,535 at most, count twice. Recording makes the two threads exclude each
    /// other, so each sees only what the other has finished. The recording itself is not used.
    fn instruction_counting(&self) -> String {
        let counting = format!("shift={},sleep=off", self.cpu.shift());
        // QEMU records machines of one CPU only.
        if self.cpus == 1 { counting + ",rr=record,rrfile=/dev/null" } else { counting }
    }

    /// The console and the line of results, as the guest's kernel names them.
    pub fn lines(&self) -> (&'static str, &'static str) {
        match self.arch {
            Arch::Amd64 => ("ttyS0", "ttyS1"),
            Arch::Arm64 => ("ttyAMA0", "ttyS0"),
        }
    }

    /// The kernel's command line. `preempt` is the model to ask for, if any; `guest` are the
    /// arguments of the guest's program.
    pub fn cmdline(&self, preempt: Option<&str>, extra: &str, guest: &str) -> String {
        let (console, _) = self.lines();
        let mut all = format!("console={console} {COMMON}");
        if self.arch == Arch::Amd64 {
            // The time stamp counter counts virtual nanoseconds, at any speed of the CPU: told so,
            // the kernel need not measure it, a few in a million too slow or too fast.
            all += " tsc=reliable tsc_early_khz=1000000 no_timer_check";
            // A kernel without ACPI restarts through a keyboard controller, which is not there: it
            // tries for many virtual seconds. A triple fault always ends the machine, and at once.
            all += " reboot=t";
        }
        if let Some(model) = preempt {
            all += &format!(" preempt={model}");
        }
        if !extra.is_empty() {
            all += &format!(" {extra}");
        }
        format!("{all} -- {guest}")
    }
}

/// What every guest's kernel is told:
/// - addresses that are the same in every boot;
/// - to restart on a panic or an oops, which ends the emulator;
/// - to print nothing but what is wrong: each character costs a trap;
/// - not to test its ciphers, which takes up to a second of the boot and goes on in the background;
/// - not to look for interrupts that nobody handles: with `PREEMPT_RT` (6.1) it takes the serial line's for
///   one after 100,000 bytes, turns it off, and sends the rest of the results so slowly that it takes minutes.
/// - not to sample which memory is used (mm/damon/stat.c, 6.17), which lets the host's time in: the kernel
///   clears the mark of a page, and the processor sets it again when it next walks the page tables. The emulator
///   walks them when its own cache of translations lacks the page, and makes this cache smaller or larger each
///   100 ms of the host (accel/tcg/cputlb.c, QEMU 10.0). Which page was used then changed what a thread of the
///   kernel did: one in eight cells of 7.2-rt did not repeat on a busy host.
const COMMON: &str =
    "nokaslr panic=-1 oops=panic quiet cryptomgr.notests noirqdebug damon_stat.enabled=N";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lets_time_or_chance_of_the_host_in() {
        for arch in Arch::ALL {
            let all = Machine::new(arch).arguments().join(" ");
            for needed in
                ["shift=0,sleep=off,rr=record", "clock=vm", "-nodefaults", "-smp 1", "-seed 1"]
            {
                assert!(all.contains(needed), "{all}");
            }
            assert!(!all.contains("drive") && !all.contains("netdev"), "{all}");
        }
        // And no instruction counts once for each byte of a string.
        let all = Machine::new(Arch::Amd64).arguments().join(" ");
        for left_out in ["-rdrand", "-rdseed", "-erms", "-fsrm"] {
            assert!(all.contains(&format!(",{left_out}")), "{left_out}: {all}");
        }
        let cmdline = Machine::new(Arch::Amd64).cmdline(Some("full"), "", "lab-guest check");
        let words = ["nokaslr", "panic=-1", "noirqdebug", "damon_stat.enabled=N", "preempt=full"];
        for needed in words.into_iter().chain([" -- lab-guest check"]) {
            assert!(cmdline.contains(needed), "{cmdline}");
        }
    }

    #[test]
    fn only_machines_of_one_cpu_are_recorded() {
        for cpus in [2, 4] {
            let machine = Machine { cpus, ..Machine::new(Arch::Amd64) };
            let all = machine.arguments().join(" ");
            assert!(all.contains("-icount shift=0,sleep=off -rtc"), "{all}");
            assert!(all.contains(&format!("-smp {cpus},sockets={cpus} ")), "{all}");
        }
    }
}
