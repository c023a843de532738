//! The compiled programs, and what is put into them before they are loaded.

use std::io::Read;

use flate2::read::GzDecoder;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/wakeups.bpf.o.gz"));

/// The upper half of the number that stands in a program for a variable of each CPU; the lower one
/// says which (bpf/wakeups.bpf.c, `PER_CPU`).
const MARK: u32 = 0x5741_4b45;

/// `BPF_LD | BPF_IMM | BPF_DW`: loads 64 bits, and takes the place of two instructions.
const LOAD_64: u8 = 0x18;

/// For that instruction: the number is that of a type, and the address of its variable is meant
/// (include/uapi/linux/bpf.h, 5.10).
const PSEUDO_BTF_ID: u8 = 3;

const INSTRUCTION: usize = 8;

/// A variable that each CPU has one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PerCpu {
    /// `__preempt_count`: x86, but for 6.2 to 6.14.
    PreemptCount = 1,
    /// `pcpu_hot`, where it was meanwhile.
    PcpuHot = 2,
    /// `__irq_regs`
    IrqRegs = 3,
    /// `steal_time`: guests of KVM.
    StealTime = 4,
}

impl PerCpu {
    pub(crate) const ALL: [Self; 4] =
        [Self::PreemptCount, Self::PcpuHot, Self::IrqRegs, Self::StealTime];

    /// What the kernel calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PreemptCount => "__preempt_count",
            Self::PcpuHot => "pcpu_hot",
            Self::IrqRegs => "__irq_regs",
            Self::StealTime => "steal_time",
        }
    }

    /// The program's variable that says whether the kernel has it.
    pub(crate) fn switch(self) -> &'static str {
        match self {
            Self::PreemptCount => "has_preempt_count",
            Self::PcpuHot => "has_pcpu_hot",
            Self::IrqRegs => "has_irq_regs",
            Self::StealTime => "has_steal_time",
        }
    }
}

/// The programs for a kernel that knows `variables` by these ids.
pub(crate) fn for_kernel(variables: &[(PerCpu, u32)]) -> std::io::Result<Vec<u8>> {
    let mut object = Vec::new();
    GzDecoder::new(PACKED).read_to_end(&mut object)?;
    for &(variable, id) in variables {
        point_at(&mut object, variable as u32, id);
    }
    Ok(object)
}

/// Lets the loads of `number` be loads of the address of the variable with that `id`: what a loader
/// with `extern … __ksym` does.
fn point_at(object: &mut [u8], number: u32, id: u32) {
    for at in (0..object.len().saturating_sub(2 * INSTRUCTION)).step_by(INSTRUCTION) {
        let pair = &mut object[at..at + 2 * INSTRUCTION];
        let is_load = pair[0] == LOAD_64 && pair[8..12] == [0; 4];
        if is_load && pair[4..8] == number.to_le_bytes() && pair[12..16] == MARK.to_le_bytes() {
            pair[1] = pair[1] & 0x0f | PSEUDO_BTF_ID << 4;
            pair[4..8].copy_from_slice(&id.to_le_bytes());
            // Of the kernel itself, not of a module.
            pair[12..16].copy_from_slice(&[0; 4]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many loads in `object` have this number and mark.
    fn loads(object: &[u8], number: u32, mark: u32) -> usize {
        let want = [number.to_le_bytes(), [0; 4], mark.to_le_bytes()].concat();
        let pairs = object.chunks_exact(INSTRUCTION).zip(object.chunks_exact(INSTRUCTION).skip(1));
        pairs.filter(|(a, b)| a[0] == LOAD_64 && [&a[4..], b].concat() == want).count()
    }

    #[test]
    fn each_variable_is_put_in_its_places() {
        let blank = for_kernel(&[]).unwrap();
        for (variable, id) in PerCpu::ALL.into_iter().zip(7_000..) {
            let places = loads(&blank, variable as u32, MARK);
            assert!(places > 0, "{variable:?}");
            let filled = for_kernel(&[(variable, id)]).unwrap();
            assert_eq!(loads(&filled, id, 0), places, "{variable:?}");
            assert_eq!(loads(&filled, variable as u32, MARK), 0, "{variable:?}");
        }
    }
}
