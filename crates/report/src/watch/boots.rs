//! On which machine, and under which kernel, windows were counted.

use std::collections::BTreeSet;

use wakescope_core::preemption::Model;
use wakescope_core::units::counted;
use wakescope_core::watch::boot::Boot;

use crate::style::clean;

/// Of several kernels so many are named.
const MOST_NAMED: usize = 4;

/// `Kernel 6.12.95-amd64, preemption full · tsc · KVM guest`, or how many kernels and machines there are;
/// `None` if windows do not say.
pub(super) fn line(boots: &[Boot]) -> Option<String> {
    let mut known = boots.iter().filter(|boot| boot.is_known());
    let first = known.next()?;
    let machines: BTreeSet<_> = boots.iter().map(|boot| &boot.machine).collect();
    let is_one = boots.iter().all(|boot| boot.kernel() == first.kernel()) && machines.len() == 1;
    if !is_one {
        return Some(several(boots));
    }
    let mut parts = vec![format!("Kernel {}", kernel(first))];
    parts.extend(first.cpu_model.as_ref().map(|model| clean(model, 60)));
    parts.extend(first.clock.as_ref().map(|clock| clean(clock, 20)));
    parts.extend(first.hypervisor.as_ref().map(|name| format!("{} guest", clean(name, 30))));
    parts.extend(schedulers(boots));
    parts.extend((boots.len() > 1).then(|| counted(boots.len() as u64, "boot")));
    Some(parts.join(" · "))
}

/// The kernel of a window that is shown among others.
pub(super) fn kernel_of(boots: &[Boot]) -> Option<String> {
    match boots {
        [only] if only.is_known() => Some(clean(&only.release, 40)),
        _ => None,
    }
}

/// `! 3 boots, 2 machines, 2 kernels: 6.12.95, 6.18.5`
fn several(boots: &[Boot]) -> String {
    let known = || boots.iter().filter(|boot| boot.is_known());
    let mut kernels: Vec<String> = Vec::new();
    for boot in known() {
        let name = kernel(boot);
        if !kernels.contains(&name) {
            kernels.push(name);
        }
    }
    let machines: BTreeSet<_> = known().filter_map(|boot| boot.machine.as_ref()).collect();
    let mut parts = vec![counted(known().count() as u64, "boot")];
    if machines.len() > 1 {
        parts.push(counted(machines.len() as u64, "machine"));
    }
    parts.push(counted(kernels.len() as u64, "kernel"));
    let more = kernels.len().saturating_sub(MOST_NAMED);
    kernels.truncate(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let unknown = match boots.iter().all(Boot::is_known) {
        true => "",
        false => "; of some windows machine and kernel are not known",
    };
    let scheduled = schedulers(boots).map_or_else(String::new, |names| format!("; {names}"));
    let parts = parts.join(", ");
    format!("! Windows of {parts}: {}{more}{scheduled}{unknown}", kernels.join(", "))
}

/// `sched_ext simple`, or `sched_ext none, simple` where not all boots have the same one; `None` if none has any.
fn schedulers(boots: &[Boot]) -> Option<String> {
    let known = || boots.iter().filter(|boot| boot.is_known());
    known().find(|boot| boot.sched_ext.is_some())?;
    let names: BTreeSet<String> = known().map(|boot| clean(boot.scheduler(), 40)).collect();
    Some(format!("sched_ext {}", names.into_iter().collect::<Vec<_>>().join(", ")))
}

fn kernel(boot: &Boot) -> String {
    let release = clean(&boot.release, 60);
    match boot.preemption {
        Model::Unknown => release,
        model => format!("{release}, preemption {model}"),
    }
}
