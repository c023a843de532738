//! What guests of some architectures lack, so that a plan that needs it is refused before anything starts.

use wakescope_core::plan::Stimulus;
use wakescope_lab::kernel::Arch;
use wakescope_lab::plan::Plan;
use wakescope_probe::load::{Need, Spec};

use super::equipping::specs_of;
use crate::Failure;

/// Whether `plan` needs the spare serial ports of guests; an error where guests of `arch` have none.
pub(super) fn needs_ports(plan: &Plan, arch: Arch) -> Result<bool, Failure> {
    let has_line = plan.stimulus == Stimulus::Line;
    let writes = specs_of(plan).any(|spec| spec.need() == Some(Need::Port));
    if has_line && writes {
        return Err(Failure::new("the stimulus line and a serial load need the same port")
            .try_this("use another load, as serial-pty"));
    }
    let is_needed = has_line || writes;
    if is_needed && arch != Arch::Amd64 {
        let what = format!("guests of {arch} have no spare serial ports");
        return Err(Failure::new(what).try_this("use kernels for amd64: --arch amd64"));
    }
    Ok(is_needed)
}

/// Fails if a load needs an NMI that guests of `arch` do not have.
pub(super) fn expect_no_nmi(
    mut loads: impl Iterator<Item = Spec>,
    arch: Arch,
) -> Result<(), Failure> {
    let Some(load) = loads.find(|load| arch != Arch::Amd64 && load.needs_nmi()) else {
        return Ok(());
    };
    Err(Failure::new(format!("guests of {arch} have no NMI for {load}"))
        .because(
            "the kernel module has a CPU send itself an NMI by the local APIC, which only x86 has",
        )
        .try_this("use another disturbance, as disturb-irqs-off-300us")
        .try_this("or kernels for amd64: --arch amd64"))
}

#[cfg(test)]
mod tests {
    use wakescope_probe::load::parse_list;

    use super::*;

    #[test]
    fn nmis_of_arm64_are_refused_by_name() {
        let told = |load: &str, arch| {
            let loads = parse_list(load).unwrap();
            expect_no_nmi(loads.into_iter(), arch).map_err(|failure| format!("{failure:?}"))
        };
        for load in
            ["disturb-nmi-300us", "cpu,disturb-nmi-1ms", "disturb-nested-irqs-off-nmi-300us"]
        {
            assert_eq!(told(load, Arch::Amd64), Ok(()), "{load}");
            let e = told(load, Arch::Arm64).unwrap_err();
            let name = load.rsplit(',').next().unwrap();
            assert!(e.contains(&format!("no NMI for {name}")), "{e}");
        }
        for load in ["cpu", "disturb-fifo-300us", "disturb-nested-preempt-off-irq-work-300us"] {
            assert_eq!(told(load, Arch::Arm64), Ok(()), "{load}");
        }
    }
}
