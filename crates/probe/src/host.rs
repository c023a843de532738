//! Reads what there is to know about the machine and its kernel.

use std::path::Path;

use wakescope_core::command_line::masked;
use wakescope_core::host::{Clock, Host, Idle, IdleState, KernelFiles};
use wakescope_core::instruments::Instrument;
use wakescope_core::preemption::{self, Sources};
use wakescope_core::units::SpanNs;
use wakescope_core::watch::boot::Boot;
use wakescope_sys::proc_files::status_line;
use wakescope_sys::{clock, sched};

pub(crate) mod cgroups;
mod files;
mod instruments;
mod machine_name;
mod rt_limits;
mod sources;

pub use files::Files;

use crate::mark;

/// Facts about this machine, where `cpus` are to be measured. Never fails: what cannot be read is
/// left out.
pub fn read(cpus: &[u32]) -> Host {
    read_from(&Files::of_this_machine(), cpus)
}

/// What distinguishes this boot of this machine, which is `host`, from others.
pub fn boot(host: &Host) -> Boot {
    Boot::of(host, mark::of_machine(), mark::of_boot())
}

/// Whether the cgroups that share out this machine's CPUs are of version 1, and not of the unified hierarchy.
pub fn shares_cpus_by_older_cgroups() -> bool {
    cgroups::is_older(&Files::of_this_machine(), "cpu")
}

/// As [`read`], from the files of another machine, or made-up ones. The clock and the limits of
/// the process are this machine's: they are in no file.
pub(crate) fn read_from(files: &Files, cpus: &[u32]) -> Host {
    let mut sources = sources::read(files);
    let mut preemption = preemption::judge(&sources);
    // The type information is 5 MB and the weakest evidence: look only where nothing else decided.
    if preemption.model == preemption::Model::Unknown {
        sources.btf = Some(sources::btf_evidence(&sources::btf(files)));
        preemption = preemption::judge(&sources);
    }
    from_sources(files, cpus, &sources, preemption)
}

/// Everything about a machine: as [`read`], with the weakest evidence too, and with what can be
/// seen there. Takes some 40 ms longer.
pub fn examine(files: &Files, cpus: &[u32]) -> (Host, Vec<Instrument>) {
    let mut sources = sources::read(files);
    let btf = sources::btf(files);
    sources.btf = Some(sources::btf_evidence(&btf));
    let preemption = preemption::judge(&sources);
    let instruments = instruments::look(files, &sources, &btf);
    (from_sources(files, cpus, &sources, preemption), instruments)
}

fn from_sources(
    files: &Files,
    cpus: &[u32],
    sources: &Sources,
    preemption: preemption::Preemption,
) -> Host {
    const CPU: &str = "/sys/devices/system/cpu";
    let status = files.text("/proc/self/status").unwrap_or_default();
    let cpus_online = files.cpus(&format!("{CPU}/online"));
    let measured = if cpus.is_empty() { &cpus_online } else { cpus };
    Host {
        release: sources.release.clone(),
        version: sources.version.clone(),
        arch: sources.arch.clone(),
        preemption,
        cpu_model: machine_name::cpu_model(files),
        cpus_allowed: status_line(&status, "Cpus_allowed_list:")
            .map(wakescope_core::host::cpu_list)
            .unwrap_or_default(),
        cpus_isolated: files.cpus(&format!("{CPU}/isolated")),
        // Unset, the file holds `(null)`, which is no list.
        cpus_nohz_full: files.cpus(&format!("{CPU}/nohz_full")),
        clock: clock(files),
        cmdline: sources.cmdline.text.as_deref().map(masked).unwrap_or_default(),
        idle: idle(files, measured.first().copied().unwrap_or(0)),
        governors: governors(files, measured),
        sched_ext: sched_ext(files),
        rt: rt_limits::read(files, sources, &status),
        hypervisor: machine_name::hypervisor(files),
        microcode: machine_name::microcode(files),
        cpus_online,
        unreadable: unreadable(files),
    }
}

/// Where a file that every kernel has cannot be read.
fn unreadable(files: &Files) -> Vec<KernelFiles> {
    let lacks = |path: &str| files.word(path).is_none();
    let lacks_proc_sys = lacks("/proc/sys/kernel/osrelease");
    let of_proc = lacks_proc_sys.then(|| match lacks("/proc/stat") {
        true => KernelFiles::Proc,
        false => KernelFiles::ProcSys,
    });
    let of_sys = lacks(CLOCK_SOURCE).then_some(KernelFiles::Sys);
    of_proc.into_iter().chain(of_sys).collect()
}

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The scheduler that is loaded through sched_ext (6.12 and later), if one is.
fn sched_ext(files: &Files) -> Option<String> {
    const FOLDER: &str = "/sys/kernel/sched_ext";
    files.word(&format!("{FOLDER}/state")).filter(|state| state == "enabled")?;
    // Without a name it is there all the same.
    Some(files.word(&format!("{FOLDER}/root/ops")).unwrap_or_default())
}

fn clock(files: &Files) -> Clock {
    Clock {
        source: files.word(CLOCK_SOURCE).unwrap_or_default(),
        resolution_ns: clock::resolution().0,
        read_cost_ns: read_cost().0,
    }
}

/// What one reading of the clock costs: the median of many short series, so that neither the
/// clock's own resolution nor an interruption shows.
fn read_cost() -> SpanNs {
    const SERIES: usize = 101;
    const READINGS: u64 = 20;
    let mut costs = [0; SERIES];
    for cost in &mut costs {
        let begin = clock::now();
        for _ in 0..READINGS {
            std::hint::black_box(clock::now());
        }
        *cost = clock::now().since(begin).0 / (READINGS + 1);
    }
    costs.sort_unstable();
    SpanNs(costs[SERIES / 2])
}

fn idle(files: &Files, cpu: u32) -> Idle {
    const CPUIDLE: &str = "/sys/devices/system/cpu/cpuidle";
    // The kernel has ten states at most (CPUIDLE_STATE_MAX).
    let states = (0..10).map_while(|number| {
        let path = |file| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}/{file}");
        let exit_latency_us: u64 = files.number(&path("latency"))?;
        Some(IdleState {
            name: files.word(&path("name"))?,
            exit_latency_ns: exit_latency_us.saturating_mul(1000),
            disabled: files.number::<u64>(&path("disable")).is_some_and(|d| d != 0),
        })
    });
    let governor = files
        .word(&format!("{CPUIDLE}/current_governor"))
        .or_else(|| files.word(&format!("{CPUIDLE}/current_governor_ro")));
    Idle {
        driver: files.word(&format!("{CPUIDLE}/current_driver")).filter(|d| d != "none"),
        governor,
        states: states.collect(),
    }
}

fn governors(files: &Files, cpus: &[u32]) -> Vec<String> {
    let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let mut all: Vec<_> = cpus.iter().filter_map(|cpu| files.word(&path(cpu))).collect();
    all.sort();
    all.dedup();
    all
}

/// The capabilities that count for the whole machine, a bit each: none where this process is in a user namespace
/// of its own, over which alone it then has them. `status` is /proc/self/status.
fn capabilities(files: &Files, status: &str) -> Option<u64> {
    // The inode is that of the first user namespace (include/linux/proc_ns.h).
    let namespace = files.link("/proc/self/ns/user");
    let is_first = namespace.is_none_or(|name| name == Path::new("user:[4026531837]"));
    let effective = u64::from_str_radix(status_line(status, "CapEff:")?, 16).ok()?;
    Some(if is_first { effective } else { 0 })
}

/// Whether this process has a seccomp filter, which can refuse any system call, also to root. `false` where that
/// cannot be read.
pub fn has_seccomp_filter(files: &Files) -> bool {
    files.text("/proc/self/status").is_ok_and(|status| is_filtered(&status))
}

/// The same of the process with this /proc/PID/status.
fn is_filtered(status: &str) -> bool {
    const FILTER: &str = "2";
    status_line(status, "Seccomp:") == Some(FILTER)
}

#[cfg(test)]
mod tests;
