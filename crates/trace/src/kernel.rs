//! What the running kernel has of what programs need, by its type information.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};

use wakescope_core::btf::{Damaged, Kind, Named, Names};

use crate::object::PerCpu;

/// Where the kernel shows its type information.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// More than any kernel has: 6.18's are 6 MB.
const LARGEST: u64 = 256 << 20;

/// What a kernel has.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    tracepoints: BTreeSet<String>,
    /// Variables of each CPU, with the ids of their types.
    pub(crate) variables: Vec<(PerCpu, u32)>,
}

impl Kernel {
    /// What the running kernel has.
    pub(crate) fn read() -> io::Result<(Self, Vec<u8>)> {
        let mut data = Vec::new();
        File::open(BTF)?.take(LARGEST).read_to_end(&mut data)?;
        let kernel = Self::of(&data).map_err(|e| io::Error::other(format!("{BTF} is {e}")))?;
        Ok((kernel, data))
    }

    fn of(data: &[u8]) -> Result<Self, Damaged> {
        let mut kernel = Self::default();
        for thing in Names::of(data)? {
            let Named { kind, name, id } = thing?;
            match kind {
                Kind::Typedef => {
                    let tracepoint = name.strip_prefix("btf_trace_");
                    kernel.tracepoints.extend(tracepoint.map(str::to_string));
                }
                Kind::Variable => {
                    let known = PerCpu::ALL.into_iter().find(|v| v.name() == name);
                    kernel.variables.extend(known.map(|variable| (variable, id)));
                }
                _ => {}
            }
        }
        Ok(kernel)
    }

    /// Whether it has the tracepoint of that name.
    pub(crate) fn has(&self, tracepoint: &str) -> bool {
        self.tracepoints.contains(tracepoint)
    }
}
