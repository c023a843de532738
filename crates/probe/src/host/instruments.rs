//! What can be seen on this machine, and with what.

use std::collections::BTreeSet;
use std::io::Read;

use wakescope_core::btf;
use wakescope_core::instruments::{Instrument, TRACEPOINTS, TRACERS};
use wakescope_core::preemption::Sources;
use wakescope_sys::counter;

use super::sources::BTF;
use super::{Files, capabilities, is_filtered};

/// Looks at every instrument, and tries those that can be tried without effect. `data` is the
/// kernel's type information, or why it could not be read.
pub(super) fn look(
    files: &Files,
    sources: &Sources,
    data: &Result<Vec<u8>, String>,
) -> Vec<Instrument> {
    let status = files.text("/proc/self/status").unwrap_or_default();
    let capabilities = capabilities(files, &status).unwrap_or(0);
    let mut all = vec![type_information(data), kernel_names(files)];
    all.extend(tracepoints(files, data));
    all.extend(tracers(files, sources));
    let rights = Rights { capabilities, is_filtered: is_filtered(&status) };
    all.push(bpf(files, &rights));
    all.push(perf_events(files, &rights));
    all.push(pmu());
    all.push(rtc(files));
    all.push(device(files, "msr", "/dev/cpu/0/msr"));
    all.push(modules(files, sources));
    all.push(lockdown(files));
    all
}

fn type_information(data: &Result<Vec<u8>, String>) -> Instrument {
    match data {
        Ok(_) => Instrument::new("btf", Some(true), BTF),
        Err(why) if why == "absent" => {
            Instrument::new("btf", Some(false), format!("{BTF}: absent"))
        }
        Err(why) => Instrument::new("btf", None, format!("{BTF}: {why}")),
    }
}

/// The list that gives addresses their functions. Whoever may not know where these are reads zeros
/// instead.
fn kernel_names(files: &Files) -> Instrument {
    const PATH: &str = "/proc/kallsyms";
    // Before functions some kernels list variables of CPUs, the first of which are at 0.
    const BEGINNING: u64 = 64 << 10;
    let mut list = Vec::new();
    let read = files.open(PATH).and_then(|file| file.take(BEGINNING).read_to_end(&mut list));
    let (available, detail) = match read {
        Err(e) => (false, format!("{PATH}: {}", files.why(PATH, &e))),
        Ok(0) => (false, format!("{PATH} lists none")),
        Ok(_) => {
            // As many digits as the kernel's pointers have.
            let lines = list.split(|&byte| byte == b'\n');
            let addresses = lines.filter_map(|line| line.split(|&byte| byte == b' ').next());
            match addresses.flatten().any(|&digit| digit != b'0') {
                true => (true, PATH.to_owned()),
                false => (false, format!("{PATH} hides addresses (kptr_restrict, CAP_SYSLOG)")),
            }
        }
    };
    Instrument::new("kernel-names", Some(available), detail)
}

/// Where the folder of events and the list of tracers are; the second is where it was before 4.1.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracepoint is there if tracefs has a folder for it, or the type information its `typedef`.
fn tracepoints(files: &Files, data: &Result<Vec<u8>, String>) -> Vec<Instrument> {
    let known = data.as_ref().ok().and_then(|data| tracepoint_typedefs(data).ok());
    let events = TRACEFS.map(|at| format!("{at}/events")).into_iter().find(|e| files.exists(e));
    let look = |&(group, name): &(&str, &str)| {
        let folder = events.as_ref().filter(|_| !group.is_empty());
        let folder = folder.map(|events| format!("{events}/{group}/{name}"));
        let (available, detail) = match (&folder, &known) {
            (Some(folder), _) if files.exists(folder) => (Some(true), folder.clone()),
            (_, Some(known)) => (Some(known.contains(name)), BTF.into()),
            (Some(folder), None) => (Some(false), folder.clone()),
            (None, None) => (None, "neither tracefs nor BTF type information is readable".into()),
        };
        Instrument::new(format!("tracepoint:{name}"), available, detail)
    };
    TRACEPOINTS.iter().map(look).collect()
}

fn tracepoint_typedefs(data: &[u8]) -> Result<BTreeSet<&str>, btf::Damaged> {
    let mut all = BTreeSet::new();
    for thing in btf::Names::of(data)? {
        let btf::Named { kind, name, .. } = thing?;
        if kind == btf::Kind::Typedef {
            all.extend(name.strip_prefix("btf_trace_"));
        }
    }
    Ok(all)
}

fn tracers(files: &Files, sources: &Sources) -> Vec<Instrument> {
    let lists = TRACEFS.map(|at| format!("{at}/available_tracers"));
    let list = lists.iter().find_map(|path| Some((path, files.word(path)?)));
    let config = sources.config.text.as_deref().ok();
    let look = |&(name, option): &(&str, &str)| {
        let (available, detail) = match (&list, config) {
            (Some((path, list)), _) => {
                (Some(list.split_whitespace().any(|tracer| tracer == name)), (*path).clone())
            }
            (None, Some(config)) => {
                let built = config.lines().any(|line| line.strip_prefix(option) == Some("=y"));
                (Some(built), format!("{option}, {}", sources.config.source))
            }
            (None, None) => {
                (None, "neither tracefs nor the kernel configuration is readable".into())
            }
        };
        Instrument::new(format!("tracer:{name}"), available, detail)
    };
    TRACERS.iter().map(look).collect()
}

/// What this process may ask the kernel for.
struct Rights {
    /// A set of bits.
    capabilities: u64,
    /// Whether a seccomp filter is in force, which can refuse any system call.
    is_filtered: bool,
}

impl Rights {
    /// Whether the capabilities have all of these younger ones, or `CAP_SYS_ADMIN`, which does for each.
    fn have(&self, all_of: &[u32]) -> bool {
        const SYS_ADMIN: u32 = 21;
        let has = |capability: &u32| self.capabilities >> capability & 1 == 1;
        has(&SYS_ADMIN) || all_of.iter().all(has)
    }

    /// The instrument `name`, which the setting at `path` and the capabilities allow or not. Nothing tells what a
    /// filter refuses.
    fn instrument(&self, name: &str, path: &str, value: i32, is_allowed: bool) -> Instrument {
        let setting = format!("{path}: {value}");
        match is_allowed && self.is_filtered {
            true => {
                let detail = format!("{setting}; a seccomp filter is in force and may refuse it");
                Instrument::new(name, None, detail)
            }
            false => Instrument::new(name, Some(is_allowed), setting),
        }
    }
}

const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

fn bpf(files: &Files, rights: &Rights) -> Instrument {
    let path = "/proc/sys/kernel/unprivileged_bpf_disabled";
    match files.number(path) {
        // Even where it is allowed to everybody, tracing with BPF is not.
        Some(value) => rights.instrument("bpf", path, value, rights.have(&[CAP_BPF, CAP_PERFMON])),
        None => Instrument::new("bpf", Some(false), format!("{path}: absent")),
    }
}

fn perf_events(files: &Files, rights: &Rights) -> Instrument {
    let path = "/proc/sys/kernel/perf_event_paranoid";
    match files.number(path) {
        // Above 1 a user may look at user space only (Documentation/admin-guide/sysctl/kernel.rst).
        Some(value) => {
            let is_allowed = value <= 1 || rights.have(&[CAP_PERFMON]);
            rights.instrument("perf-events", path, value, is_allowed)
        }
        None => Instrument::new("perf-events", Some(false), format!("{path}: absent")),
    }
}

/// Tries the counter that every hardware unit has.
fn pmu() -> Instrument {
    match counter::instructions() {
        Ok(_) => Instrument::new("pmu", Some(true), "counting instructions works"),
        Err(e) => Instrument::new("pmu", Some(false), format!("counting instructions: {e}")),
    }
}

fn rtc(files: &Files) -> Instrument {
    let clocks = files.entries("/sys/class/rtc");
    match clocks.first() {
        Some(_) => Instrument::new("rtc", Some(true), clocks.join(", ")),
        None => Instrument::new("rtc", Some(false), "no real-time clock in /sys/class/rtc"),
    }
}

fn device(files: &Files, name: &str, path: &str) -> Instrument {
    match files.open(path) {
        Ok(_) => Instrument::new(name, Some(true), path),
        Err(e) => Instrument::new(name, Some(false), format!("{path}: {}", files.why(path, &e))),
    }
}

fn modules(files: &Files, sources: &Sources) -> Instrument {
    let disabled = files.word("/proc/sys/kernel/modules_disabled");
    let cmdline = sources.cmdline.text.as_deref().unwrap_or_default();
    let (available, detail) = match disabled.as_deref() {
        None => (false, "the kernel is built without loadable modules"),
        Some("0") if cmdline.split_whitespace().any(|word| word == "nomodule") => {
            (false, "nomodule is on the command line")
        }
        Some("0") => (true, "modules can be loaded"),
        Some(_) => (false, "loading was switched off (modules_disabled)"),
    };
    Instrument::new("modules", Some(available), detail)
}

/// Whether everything that root may usually see is to be seen.
fn lockdown(files: &Files) -> Instrument {
    const PATH: &str = "/sys/kernel/security/lockdown";
    match (files.text(PATH), files.lockdown()) {
        (Ok(_), Some(level)) => {
            Instrument::new("no-lockdown", Some(false), format!("kernel lockdown: {level}"))
        }
        (Ok(_), None) => Instrument::new("no-lockdown", Some(true), PATH),
        (Err(e), _) => {
            Instrument::new("no-lockdown", None, format!("{PATH}: {}", files.why(PATH, &e)))
        }
    }
}
