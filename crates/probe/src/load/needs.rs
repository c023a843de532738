//! What loads need that not every machine has, and that a guest of the lab is given or not.

use super::{Disturbance, Spec};

/// What a load needs of the machine beside CPU, memory and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A loopback interface that is up.
    Loopback,
    /// Pseudo-terminals: a mounted devpts.
    PseudoTerminals,
    /// An NFS server of the machine's own, and a compiler.
    NfsServer,
    /// The permission to write to the kernel's log without a limit.
    KernelLog,
    /// The injector of the project's kernel module.
    Injector,
    /// A program, which guests have only with a root image.
    Program,
    /// A serial port.
    Port,
    /// A device of the machine's, or a command of the user's: guests have neither.
    Machine,
}

/// Loads that need anything, by the first part of their names.
const NEEDS: [(&str, Need); 9] = [
    ("ttcp", Need::Loopback),
    ("network", Need::Loopback),
    ("nfs-compile", Need::NfsServer),
    ("serial-pty", Need::PseudoTerminals),
    ("printk", Need::KernelLog),
    ("dbench", Need::Program),
    ("serial:", Need::Port),
    ("stress-ng:", Need::Machine),
    ("exec:", Need::Machine),
];

impl Spec {
    /// Whether it needs an NMI that a CPU can send itself, as x86 with a local APIC has.
    pub fn needs_nmi(&self) -> bool {
        self.name().parse().is_ok_and(|disturbance: Disturbance| disturbance.has_nmi())
    }

    /// What it needs of the machine.
    pub fn need(&self) -> Option<Need> {
        let disturbance = self.name().parse::<Disturbance>();
        if disturbance.is_ok_and(|disturbance| disturbance.is_injected()) {
            return Some(Need::Injector);
        }
        let listed = self.kind().name;
        let part = listed.split_inclusive(':').next().unwrap_or(listed);
        NEEDS.iter().find(|(name, _)| *name == part).map(|(_, need)| *need)
    }
}
