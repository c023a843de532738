//! Limitations of a measurement on a host, known before it is made.

use crate::finding::{Finding, Severity};
use crate::host::{FairServerShare, Host, KernelFiles, RtLimits};
use crate::run::TimeDomain;
use crate::units::SpanNs;
use crate::validity::RtLimit;

/// What is to be known about every measurement of `cpus` on `host`, the gravest first.
pub fn host_findings(host: &Host, time: TimeDomain, cpus: &[u32]) -> Vec<Finding> {
    let mut findings: Vec<_> = [
        low_resolution(host),
        not_checked(host),
        match time {
            TimeDomain::Virtual => Some(virtual_time()),
            TimeDomain::Real | TimeDomain::Simulated => hypervisor(host),
        },
        clocksource(host),
        unprivileged(&host.rt),
        rt_group(&host.rt),
        rt_throttling(&host.rt),
        sched_ext(host),
        idle_states(host, cpus),
        governor(host),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

fn low_resolution(host: &Host) -> Option<Finding> {
    // Without high-resolution timers the kernel states the length of its tick, which is 1 ms or
    // more; with them 1 ns.
    let tick = SpanNs(host.clock.resolution_ns);
    (tick >= SpanNs(500_000)).then(|| {
        Finding::new(
            "low-resolution",
            Severity::Error,
            format!(
                "this kernel has no high-resolution timers: timers expire only at ticks, every \
                 {tick}"
            ),
            "boot without highres=off, with a kernel that has CONFIG_HIGH_RES_TIMERS",
        )
    })
}

/// Without the files of the kernel most of what findings follow from is not known, and a run without findings
/// would look better than one with them.
fn not_checked(host: &Host) -> Option<Finding> {
    let not_known = |files: &KernelFiles| match files {
        KernelFiles::Proc => (
            "/proc",
            "a hypervisor took the CPU, a quota stopped the probe, or real-time tasks are throttled",
        ),
        KernelFiles::ProcSys => ("/proc/sys", "real-time tasks are throttled"),
        KernelFiles::Sys => (
            "/sys",
            "the clock is a slow one, or CPUs go to deep idle states or change their frequency",
        ),
    };
    let (places, what): (Vec<&str>, Vec<&str>) = host.unreadable.iter().map(not_known).unzip();
    (!places.is_empty()).then(|| {
        Finding::new(
            "not-checked",
            Severity::Warning,
            format!(
                "{} cannot be read here, so it is not known whether {}",
                places.join(" and "),
                what.join("; nor whether ")
            ),
            "mount what is missing: mount -t proc proc /proc; mount -t sysfs sysfs /sys",
        )
    })
}

/// An emulator that counts instructions takes no time that the guest could see.
fn virtual_time() -> Finding {
    Finding::new(
        "virtual-time",
        Severity::Note,
        "time is counted in instructions: the order of kernels and the differences between them are \
         meaningful, absolute times are not; caches, idle states and firmware are not modelled"
            .into(),
        "for absolute times, measure on the target machine",
    )
}

fn hypervisor(host: &Host) -> Option<Finding> {
    let name = match host.hypervisor.as_deref()? {
        "unknown" => "an unknown hypervisor",
        name => name,
    };
    Some(Finding::new(
        "hypervisor",
        Severity::Warning,
        format!("this machine is a guest of {name}: maxima include delays by the hypervisor"),
        "measure on the bare machine, or compare kernels with `wakescope lab`",
    ))
}

/// Clocks that are read without leaving the CPU, one per architecture or hypervisor.
const FAST_CLOCKS: [&str; 13] = [
    "tsc",
    "tsc-early",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "xen",
    "riscv_clocksource",
    "timebase",
    "tod",
    "stp",
    "Constant",
    "MIPS",
    "stick",
];

/// Slower readings than this are seen in what is measured.
const SLOW_READING: SpanNs = SpanNs(1_000);

fn clocksource(host: &Host) -> Option<Finding> {
    let (source, cost) = (host.clock.source.as_str(), SpanNs(host.clock.read_cost_ns));
    let message = if cost > SLOW_READING {
        format!("reading the clock ({source}) takes {cost}, which every figure includes")
    } else if !source.is_empty() && !FAST_CLOCKS.contains(&source) {
        format!(
            "the clocksource is {source}, a fallback: it may be coarse, or slow when many CPUs \
             read it"
        )
    } else {
        return None;
    };
    let hint = "see why the kernel rejected the better clock: dmesg | grep -i clocksource";
    Some(Finding::new("clocksource", Severity::Warning, message, hint))
}

fn unprivileged(rt: &RtLimits) -> Option<Finding> {
    (rt.priority_limit == Some(0) && rt.nice_capability == Some(false)).then(|| {
        Finding::new(
            "unprivileged",
            Severity::Warning,
            "this user may not use real-time priorities (RLIMIT_RTPRIO is 0): the probe runs as \
             an ordinary task and waits for other tasks"
                .into(),
            "run as root, or: setcap cap_sys_nice,cap_ipc_lock+ep …/wakescope",
        )
    })
}

fn rt_group(rt: &RtLimits) -> Option<Finding> {
    (rt.group_scheduling == Some(true) && rt.group_runtime_ns == Some(0)).then(|| {
        Finding::new(
            "rt-group",
            Severity::Warning,
            "this process's cgroup has no real-time runtime (cpu.rt_runtime_us is 0): the kernel \
             refuses real-time policies in it"
                .into(),
            "run in the root cgroup, or write a runtime to this cgroup's cpu.rt_runtime_us",
        )
    })
}

fn rt_throttling(rt: &RtLimits) -> Option<Finding> {
    let known: Vec<String> = [throttled(rt), served(rt)].into_iter().flatten().collect();
    // A real-time load at any priority is enough: the kernel throttles all real-time tasks of the CPU together
    // (`sched_rt_runtime_exceeded`), and the fair server runs before all of them.
    let hint =
        "nothing, unless real-time tasks fill a CPU; then the probe on that CPU waits as well";
    (!known.is_empty())
        .then(|| Finding::new("rt-throttling", Severity::Note, known.join("; "), hint))
}

fn sched_ext(host: &Host) -> Option<Finding> {
    let name = match host.sched_ext.as_deref()? {
        "" => "a scheduler of sched_ext without a name".into(),
        name => format!("the sched_ext scheduler {name}"),
    };
    let message = format!("{name} decides which ordinary tasks run, not the kernel's own");
    let hint = "nothing, if it runs in use, too; else end the program that loaded it";
    Some(Finding::new("sched-ext", Severity::Note, message, hint))
}

/// What the kernel takes from real-time tasks, if it throttles them.
fn throttled(rt: &RtLimits) -> Option<String> {
    let RtLimit { runtime_ns, period_ns } = rt.throttling()?;
    let [runtime, period, rest] = [runtime_ns, period_ns, period_ns - runtime_ns].map(SpanNs);
    Some(format!(
        "the kernel throttles real-time tasks that use {runtime} of a CPU within {period}, for the \
         remaining {rest}"
    ))
}

/// What the fair server takes from real-time tasks, if there is one. `sched_rt_runtime_us` does not limit it.
fn served(rt: &RtLimits) -> Option<String> {
    if rt.fair_server != Some(true) {
        return None;
    }
    let (share, source) = match rt.fair_server_share {
        Some(share) => (share, ""),
        None => (
            FairServerShare::DEFAULT,
            " (the kernel's default; debugfs, which has this machine's figures, cannot be read)",
        ),
    };
    let FairServerShare { runtime_ns, period_ns } = share;
    (runtime_ns > 0).then(|| {
        format!(
            "when real-time tasks leave no time for ordinary tasks, the fair server runs ordinary \
             tasks for up to {} in each {}{source}",
            SpanNs(runtime_ns),
            SpanNs(period_ns)
        )
    })
}

fn idle_states(host: &Host, cpus: &[u32]) -> Option<Finding> {
    let deepest = host.idle.deepest()?;
    let exit = SpanNs(deepest.exit_latency_ns);
    let cpu = match cpus.first() {
        Some(cpu) => format!("CPU {cpu}"),
        None => "the CPU".into(),
    };
    (exit > SpanNs(2_000)).then(|| {
        Finding::new(
            "idle-states",
            Severity::Note,
            format!(
                "{cpu} may enter idle state {} (exit latency {exit}), which the tail includes",
                deepest.name
            ),
            "normal for this machine; `--idle-states shallow` keeps idle states shallow",
        )
    })
}

fn governor(host: &Host) -> Option<Finding> {
    let others: Vec<_> =
        host.governors.iter().filter(|g| *g != "performance").map(String::as_str).collect();
    (!others.is_empty()).then(|| {
        Finding::new(
            "governor",
            Severity::Note,
            format!(
                "the frequency governor is {}: a CPU that wakes from idle may run slowly at first",
                others.join(", ")
            ),
            "normal for this machine; the governor `performance` keeps the frequency high",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::IdleState;

    /// A bare machine on which nothing stands in the way.
    fn sound() -> Host {
        let mut host = Host { release: "6.12.1".into(), ..Host::default() };
        host.clock.source = "tsc".into();
        host.clock.resolution_ns = 1;
        host.clock.read_cost_ns = 25;
        host.governors = vec!["performance".into()];
        host.rt.priority_limit = Some(0);
        host.rt.nice_capability = Some(true);
        host.rt.fair_server = Some(false);
        host
    }

    /// `want` is a finding's code, its severity and a part of its sentence.
    #[track_caller]
    fn check(change: impl Fn(&mut Host), want: &[(&str, Severity, &str)]) {
        let mut host = sound();
        change(&mut host);
        let got = host_findings(&host, TimeDomain::Real, &[3]);
        assert_eq!(got.len(), want.len(), "{got:#?}");
        for (got, (code, severity, part)) in got.iter().zip(want) {
            assert_eq!((got.code.as_str(), got.severity), (*code, *severity), "{got:#?}");
            assert!(got.message.contains(part), "{got:#?} lacks {part}");
        }
    }

    fn state(name: &str, exit_latency_ns: u64, disabled: bool) -> IdleState {
        IdleState { name: name.into(), exit_latency_ns, disabled }
    }

    #[test]
    fn findings_have_figures() {
        use Severity::{Error, Note, Warning};
        check(|_| {}, &[]);
        // An empty record is no machine that could not be read.
        check(|h| *h = Host::default(), &[]);
        check(|h| h.clock.resolution_ns = 4_000_000, &[("low-resolution", Error, "4.00 ms")]);
        check(|h| h.hypervisor = Some("KVM".into()), &[("hypervisor", Warning, "guest of KVM")]);
        check(
            |h| h.hypervisor = Some("unknown".into()),
            &[("hypervisor", Warning, "an unknown hypervisor")],
        );
        check(|h| h.clock.source = "hpet".into(), &[("clocksource", Warning, "hpet")]);
        check(|h| h.clock.read_cost_ns = 1_500, &[("clocksource", Warning, "takes 1.50 µs")]);
        check(
            |h| h.rt.nice_capability = Some(false),
            &[("unprivileged", Warning, "RLIMIT_RTPRIO is 0")],
        );
        check(|h| (h.rt.nice_capability, h.rt.priority_limit) = (Some(false), Some(99)), &[]);
        check(
            |h| (h.rt.group_scheduling, h.rt.group_runtime_ns) = (Some(true), Some(0)),
            &[("rt-group", Warning, "no real-time runtime")],
        );
        check(
            |h| h.governors = vec!["powersave".into(), "performance".into(), "schedutil".into()],
            &[("governor", Note, "powersave, schedutil")],
        );
        check(
            |h| h.sched_ext = Some("simple".into()),
            &[("sched-ext", Note, "the sched_ext scheduler simple decides")],
        );
        check(
            |h| h.sched_ext = Some(String::new()),
            &[("sched-ext", Note, "a scheduler of sched_ext without a name decides")],
        );
    }

    #[test]
    fn each_folder_that_is_missing_takes_its_own_checks() {
        use KernelFiles::{Proc, ProcSys, Sys};
        for (unreadable, part) in [
            (
                &[Proc, Sys][..],
                "/proc and /sys cannot be read here, so it is not known whether a h",
            ),
            (&[Proc, Sys], "are throttled; nor whether the clock is a slow one"),
            (&[Proc], "/proc cannot be read here, so it is not known whether a hypervisor took"),
            (&[ProcSys], "/proc/sys cannot be read here, so it is not known whether real-time"),
            (&[ProcSys, Sys], "real-time tasks are throttled; nor whether the clock is a slow one"),
            (&[Sys], "/sys cannot be read here, so it is not known whether the clock is a slow"),
        ] {
            let want = [("not-checked", Severity::Warning, part)];
            check(|h| h.unreadable = unreadable.to_vec(), &want);
        }
    }

    #[test]
    fn a_guest_is_sent_to_the_bare_machine_or_to_the_lab() {
        let mut host = sound();
        host.hypervisor = Some("KVM".into());
        let [found] = &host_findings(&host, TimeDomain::Real, &[])[..] else { panic!() };
        assert!(found.hint.contains("bare machine") && found.hint.contains("`wakescope lab`"));
        // In the lab itself nobody is sent there.
        let in_lab = host_findings(&host, TimeDomain::Virtual, &[]);
        assert!(in_lab.iter().all(|f| !f.hint.contains("wakescope lab")), "{in_lab:?}");
    }

    #[test]
    fn only_idle_states_that_are_on_and_slow_count() {
        let with = |states: &[IdleState]| {
            let states = states.to_vec();
            move |h: &mut Host| h.idle.states.clone_from(&states)
        };
        check(with(&[state("POLL", 0, false), state("C1", 2_000, false)]), &[]);
        let c6 = state("C6", 133_000, false);
        let want =
            [("idle-states", Severity::Note, "CPU 3 may enter idle state C6 (exit latency 133 µs")];
        check(with(&[state("C1", 1_000, false), c6.clone()]), &want);
        check(with(&[state("C1", 1_000, false), IdleState { disabled: true, ..c6 }]), &[]);
    }

    #[test]
    fn throttling_depends_on_the_kernel() {
        let with = |runtime_ns, fair_server, group_scheduling| {
            move |h: &mut Host| {
                h.rt.period_ns = Some(1_000_000_000);
                (h.rt.runtime_ns, h.rt.fair_server) = (runtime_ns, fair_server);
                h.rt.group_scheduling = group_scheduling;
            }
        };
        let note = |part| [("rt-throttling", Severity::Note, part)];
        let limit = Some(950_000_000);
        check(with(None, None, None), &[]);
        check(with(Some(1_000_000_000), None, None), &[]);
        check(with(limit, Some(false), None), &note("for the remaining 50.0 ms"));
        check(with(limit, None, None), &note("the kernel throttles"));
        check(
            with(limit, Some(true), Some(false)),
            &note("the fair server runs ordinary tasks for up to"),
        );
        let throttles = "for the remaining 50.0 ms";
        let served =
            "; when real-time tasks leave no time for ordinary tasks, the fair server runs";
        let both = format!("{throttles}{served}");
        check(with(limit, Some(true), Some(true)), &note(&both));
    }

    /// `sched_rt_runtime_us` says nothing of the fair server.
    #[test]
    fn the_fair_server_takes_its_own_share() {
        let told = |runtime_ns, share: Option<(u64, u64)>| {
            let mut host = sound();
            host.rt.period_ns = Some(1_000_000_000);
            (host.rt.runtime_ns, host.rt.fair_server) = (runtime_ns, Some(true));
            host.rt.fair_server_share =
                share.map(|(runtime_ns, period_ns)| FairServerShare { runtime_ns, period_ns });
            let found = host_findings(&host, TimeDomain::Real, &[]).pop()?;
            Some(found.message.split_once(" for up to ")?.1.to_owned())
        };
        for runtime_ns in [None, Some(950_000_000), Some(980_000_000), Some(1_000_000_000)] {
            let default = told(runtime_ns, None).unwrap();
            assert!(
                default.starts_with("50.0 ms in each 1.00 s (the kernel's default;"),
                "{default}"
            );
            let own = told(runtime_ns, Some((20_000_000, 500_000_000)));
            assert_eq!(own.as_deref(), Some("20.0 ms in each 500 ms"));
            // Switched off.
            assert_eq!(told(runtime_ns, Some((0, 1_000_000_000))), None);
        }
    }

    #[test]
    fn a_probe_that_sleeps_waits_as_well_where_real_time_tasks_fill_its_cpu() {
        for fair_server in [Some(false), Some(true)] {
            let mut host = sound();
            (host.rt.runtime_ns, host.rt.period_ns) = (Some(950_000_000), Some(1_000_000_000));
            host.rt.fair_server = fair_server;
            let [found] = &host_findings(&host, TimeDomain::Real, &[])[..] else { panic!() };
            assert!(found.hint.ends_with("the probe on that CPU waits as well"), "{found:?}");
        }
    }

    #[test]
    fn the_gravest_come_first() {
        let mut host = sound();
        host.governors = vec!["ondemand".into()];
        host.hypervisor = Some("Xen".into());
        host.clock.resolution_ns = 10_000_000;
        let codes: Vec<_> =
            host_findings(&host, TimeDomain::Real, &[]).into_iter().map(|f| f.code).collect();
        assert_eq!(codes, ["low-resolution", "hypervisor", "governor"]);
    }
}
