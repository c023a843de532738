use expect_test::{Expect, expect};
use wakescope_core::behaviour::{Series, judge};
use wakescope_core::host::{Clock, IdleState};
use wakescope_core::limitations::host_findings;
use wakescope_core::preemption::{Evidence, Preemption, Unread};
use wakescope_core::run::TimeDomain;

use super::*;

/// A laptop whose command line asks in vain.
fn laptop() -> Check {
    let evidence = |source: &str, says: &str| Evidence { source: source.into(), says: says.into() };
    let host = Host {
        release: "6.1.0-56-cloud-arm64".into(),
        version: "#1 SMP Debian 6.1.192-2".into(),
        arch: "aarch64".into(),
        preemption: Preemption {
            model: Model::Voluntary,
            because: "/boot/config-6.1.0-56-cloud-arm64 contains no other model".into(),
            evidence: vec![
                evidence("/proc/sys/kernel/version", "no PREEMPT: built as none or voluntary"),
                evidence("/proc/cmdline", "preempt=full"),
                evidence("/boot/config-6.1.0-56-cloud-arm64", "voluntary, not changeable"),
            ],
            conflicts: vec![
                "preempt=full on the command line is ignored: this kernel is built without \
                 PREEMPT_DYNAMIC."
                    .into(),
            ],
            unread: vec![Unread {
                source: "/sys/kernel/debug/sched/preempt".into(),
                why: "permission denied".into(),
            }],
        },
        cpus_online: vec![0, 1, 2, 3],
        cpus_isolated: vec![3],
        clock: Clock { source: "arch_sys_counter".into(), resolution_ns: 1, read_cost_ns: 31 },
        idle: wakescope_core::host::Idle {
            states: vec![IdleState {
                name: "cpu-sleep".into(),
                exit_latency_ns: 1_150_000,
                disabled: false,
            }],
            ..Default::default()
        },
        governors: vec!["schedutil".into()],
        ..Host::default()
    };
    let limitations = host_findings(&host, TimeDomain::Real, &[0]);
    let instruments = vec![
        Instrument::new("btf", Some(true), "/sys/kernel/btf/vmlinux"),
        Instrument::new("tracepoint:sched_waking", Some(true), ""),
        Instrument::new("tracepoint:sched_switch", Some(true), ""),
        Instrument::new("tracepoint:irq_disable", Some(false), ""),
        Instrument::new("tracer:osnoise", None, ""),
        Instrument::new("pmu", Some(false), "counting instructions: not supported"),
    ];
    Check { host, limitations, instruments, behaviour: None }
}

/// As the laptop, with a behaviour in which a share of `waited` calls were not preempted.
fn probed(pipe_write: f64) -> Check {
    let series = |call, share| Series {
        call,
        prober: Prober::Realtime,
        shares: vec![share; 64],
        disturbed: 0,
    };
    let observations = Observations {
        cpu: 2,
        series: vec![
            series(Call::ZeroRead, 0.02),
            series(Call::PipeWrite, pipe_write),
            series(Call::PipeRead, 0.97),
        ],
        obstacles: vec!["record locks: no such file".into()],
    };
    let judgement = judge(&observations, TimeDomain::Real);
    Check { behaviour: Some((observations, judgement)), ..laptop() }
}

#[track_caller]
fn check(what: &Check, want: Expect) {
    want.assert_eq(&what.text(Style { colour: false }));
}

#[test]
fn the_answer_comes_first() {
    check(
        &laptop(),
        expect![[r#"
            This kernel runs preemption model voluntary: /boot/config-6.1.0-56-cloud-arm64 contains no other
            model.

             evidence, strongest first
             /proc/sys/kernel/version             no PREEMPT: built as none or voluntary
             /proc/cmdline                        preempt=full
             /boot/config-6.1.0-56-cloud-arm64    voluntary, not changeable
             /sys/kernel/debug/sched/preempt      permission denied (not read)
             ! conflict      preempt=full on the command line is ignored: this kernel is built without
                             PREEMPT_DYNAMIC.

             machine
             kernel                               6.1.0-56-cloud-arm64 aarch64
             CPUs                                 4 online, 1 isolated
             clock                                arch_sys_counter, resolution 1 ns, 31 ns per reading

             limitations of measurements on this machine
             · idle-states   CPU 0 may enter idle state cpu-sleep (exit latency 1.15 ms), which the tail
                             includes
                             → normal for this machine; `--idle-states shallow` keeps idle states shallow
             · governor      the frequency governor is schedutil: a CPU that wakes from idle may run slowly at
                             first
                             → normal for this machine; the governor `performance` keeps the frequency high

             instruments
             available  btf
                        tracepoints sched_waking, sched_switch
             missing    tracepoints irq_disable
                        pmu: counting instructions: not supported
             not known  tracers osnoise
        "#]],
    );
}

#[test]
fn what_could_not_be_read_is_not_known() {
    let host = Host { arch: "aarch64".into(), ..Host::default() };
    let nothing = Check { host, limitations: vec![], instruments: vec![], ..laptop() };
    let text = nothing.text(Style { colour: false });
    let machine = text.lines().skip_while(|line| *line != " machine").skip(1).take(3);
    let machine: Vec<String> =
        machine.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        machine,
        [
            "kernel of an unknown release, aarch64",
            "CPUs not known",
            "clock of an unknown source, resolution 0 ns, 0 ns per reading"
        ]
    );
}

/// The first lines and the part on behaviour.
fn parts(what: &Check) -> String {
    let text = what.text(Style::default());
    let mut parts: Vec<_> = text.lines().take_while(|line| !line.is_empty()).collect();
    let behaviour = text.lines().skip_while(|line| !line.contains("behaviour on"));
    parts.extend(behaviour.take_while(|line| !line.is_empty()));
    parts.join("\n")
}

#[test]
fn behaviour_is_compared_with_the_evidence() {
    expect![[r#"
        This kernel runs preemption model voluntary: /boot/config-6.1.0-56-cloud-arm64 contains no other
        model.
        Its behaviour agrees: it matches voluntary.
         behaviour on CPU 2
         read of /dev/zero                    preempted (2 % of the rest came first; 64 wakeups)
         write to a pipe                      preempted (3 % of the rest came first; 64 wakeups)
         read of a pipe                       waited for its end (97 % of the rest came first; 64 wakeups)
         not observed                         record locks: no such file"#]].assert_eq(&parts(&probed(0.03)));
    expect![[r#"
        This kernel runs preemption model voluntary: /boot/config-6.1.0-56-cloud-arm64 contains no other
        model.
        Its behaviour contradicts that: it matches none, not voluntary.
         behaviour on CPU 2
         read of /dev/zero                    preempted (2 % of the rest came first; 64 wakeups)
         write to a pipe                      waited for its end (99 % of the rest came first; 64 wakeups)
         read of a pipe                       waited for its end (97 % of the rest came first; 64 wakeups)
         not observed                         record locks: no such file"#]].assert_eq(&parts(&probed(0.99)));
    let mut busy = probed(0.03);
    let (observations, judgement) = busy.behaviour.as_mut().unwrap();
    for (series, left) in observations.series.iter_mut().zip([12, 64, 0]) {
        series.disturbed = 1_200;
        series.shares.truncate(left);
    }
    *judgement = judge(observations, TimeDomain::Real);
    expect![[r#"
        This kernel runs preemption model voluntary: /boot/config-6.1.0-56-cloud-arm64 contains no other
        model.
        Its behaviour is inconclusive.
         behaviour on CPU 2
         read of /dev/zero                    undecided (2 % of the rest came first; 12 wakeups, 1,200 disturbed by others)
         write to a pipe                      preempted (3 % of the rest came first; 64 wakeups, 1,200 disturbed by others)
         read of a pipe                       undecided (0 wakeups, 1,200 disturbed by others)
         not observed                         record locks: no such file
                                              too few wakeups occurred during the system call that every
                                              kernel preempts. The CPU was busy: other tasks, interrupts or
                                              the hypervisor had it during too many of the wakeups"#]].assert_eq(&parts(&busy));
    let mut unknown = probed(0.5);
    unknown.host.preemption = Preemption::default();
    expect![[r#"
        The preemption model of this kernel cannot be determined from what the kernel reports.
        Its behaviour matches none or voluntary.
         behaviour on CPU 2
         read of /dev/zero                    preempted (2 % of the rest came first; 64 wakeups)
         write to a pipe                      undecided (50 % of the rest came first; 64 wakeups)
         read of a pipe                       waited for its end (97 % of the rest came first; 64 wakeups)
         not observed                         record locks: no such file
                                              the test of one system call is inconclusive"#]].assert_eq(&parts(&unknown));
    assert_eq!(laptop().agreement(), None);
}

#[test]
fn json_is_the_host_with_more() {
    let value = probed(0.03).json().unwrap();
    let host = serde_json::to_value(laptop().host).unwrap();
    for (key, of_host) in host.as_object().unwrap() {
        assert_eq!(&value[key], of_host, "{key}");
    }
    assert_eq!(value["schema"], "wakescope.check/1");
    assert_eq!(value["instruments"][0]["name"], "btf");
    assert_eq!(value["instruments"][4]["available"], Value::Null);
    assert_eq!(value["limitations"][0]["code"], "idle-states");
    assert_eq!(value["behaviour"]["agreement"], "agree");
    assert_eq!(value["behaviour"]["models"][0], "voluntary");
    assert!(laptop().json().unwrap().get("behaviour").is_none());
}

#[test]
fn no_line_is_long_or_hostile() {
    let mut hostile = probed(0.03);
    hostile.host.preemption.evidence[0].says = "\x1b[2J".into();
    hostile.host.preemption.conflicts.push("word ".repeat(300));
    hostile.host.release = "\u{202e}release".into();
    hostile.instruments.push(Instrument::new("x\n", Some(true), ""));
    hostile.limitations[0].message = "message ".repeat(80);
    let text = hostile.text(Style { colour: false });
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
}
