//! The command that repeats a lab.

use wakescope_core::explain::Above;
use wakescope_core::units::SpanNs;

use super::Overrides;
use super::words::margin_as_argument;

/// The command that repeats a lab: `plan` is the word after `--plan`, if there was one, and
/// `overrides` are the other options. Safe to paste into a shell.
pub fn repeat(plan: Option<&str>, overrides: &Overrides) -> String {
    let Overrides {
        kernels,
        preempt,
        loads,
        seeds,
        samples,
        stimulus,
        between,
        interval,
        rtc_hz,
        warmup,
        cpu,
        policy,
        priority,
        compare,
        margin,
        fail_above,
        explain,
        above,
        sections,
        bound,
        worst,
    } = overrides;
    let joined = |list: &[String]| list.join(",");
    let options = [
        ("plan", plan.map(String::from)),
        ("kernel", kernels.as_deref().map(joined)),
        ("preempt", preempt.as_deref().map(|list| joined(&texts(list)))),
        ("load", loads.as_deref().map(|list| joined(&texts(list)))),
        ("seeds", seeds.as_ref().map(ToString::to_string)),
        ("samples", samples.map(|n| n.to_string())),
        ("stimulus", stimulus.map(|stimulus| stimulus.to_string())),
        ("between", between.map(|between| between.to_string())),
        ("interval", interval.map(SpanNs::as_argument)),
        ("rtc-hz", rtc_hz.map(|rate| rate.hz().to_string())),
        ("warmup", warmup.map(SpanNs::as_argument)),
        ("cpu-mips", cpu.map(|cpu| cpu.to_string())),
        ("policy", policy.map(|policy| policy.to_string())),
        ("priority", priority.map(|n| n.to_string())),
        ("above", above.map(Above::as_argument)),
        ("worst", worst.map(|n| n.to_string())),
        ("margin", margin.map(margin_as_argument)),
    ];
    let once = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let compare = compare.iter().flatten().map(|pair| ("compare", pair.clone()));
    let limits = fail_above.iter().flatten().map(|limit| ("fail-above", limit.as_argument()));
    let mut command = String::from("wakescope lab run");
    for (name, value) in once.chain(compare).chain(limits) {
        // With `=`, a value that begins with a dash is still a value.
        let sign = if value.starts_with('-') { '=' } else { ' ' };
        command.push_str(&format!(" --{name}{sign}{}", shell_quoted(&value)));
    }
    if *explain == Some(true) {
        command.push_str(" --explain");
    }
    if *sections == Some(true) {
        command.push_str(" --sections");
    }
    if *bound == Some(true) {
        command.push_str(" --bound");
    }
    command
}

fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// A word of a shell's command that stands for `text` and nothing else.
pub fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{CpuSpeed, Seeds};
    use wakescope_core::lab::Asked;
    use wakescope_core::plan::{Between, ProbePolicy, Rate, Stimulus};
    use wakescope_stats::cells::parse_limit;

    #[test]
    fn a_plan_alone_is_short() {
        let none = Overrides::default();
        assert_eq!(repeat(Some("williams"), &none), "wakescope lab run --plan williams");
        assert_eq!(repeat(Some("my plan.toml"), &none), "wakescope lab run --plan 'my plan.toml'");
    }

    #[test]
    fn every_option_is_repeated() {
        let all = Overrides {
            kernels: Some(vec!["6.1-cloud".into(), "it's/bzImage".into()]),
            preempt: Some(vec![Asked::None, Asked::Rt]),
            loads: Some(vec!["idle".parse().unwrap(), "find+launch".parse().unwrap()]),
            seeds: Some(Seeds::List(vec![7])),
            samples: Some(2_000),
            stimulus: Some(Stimulus::Futex),
            between: Some(Between::Processes),
            interval: Some(SpanNs(1_500_000)),
            rtc_hz: Some(Rate::REALFEEL),
            warmup: Some(SpanNs(0)),
            cpu: CpuSpeed::of_mips(125),
            policy: Some(ProbePolicy::Rr),
            priority: Some(50),
            compare: Some(vec!["none:full".into(), "-a:$b".into()]),
            margin: Some(0.05),
            fail_above: Some(vec![parse_limit("p99.9=1ms").unwrap()]),
            explain: Some(true),
            above: Some("p99".parse().unwrap()),
            sections: Some(true),
            bound: Some(true),
            worst: Some(5),
        };
        assert_eq!(
            repeat(None, &all),
            r"wakescope lab run --kernel '6.1-cloud,it'\''s/bzImage' --preempt none,rt \
              --load idle,find+launch --seeds 7, --samples 2000 --stimulus futex --between processes --interval 1500us --rtc-hz 2048 --warmup 0s \
              --cpu-mips 125 --policy rr --priority 50 --above p99 --worst 5 --margin 0.05 --compare none:full \
              --compare='-a:$b' --fail-above p99.9=1ms --explain --sections --bound"
                .replace(" \\\n             ", "")
        );
    }

    #[test]
    fn words_for_a_shell() {
        for (text, want) in [
            ("plain-1.0/x", "plain-1.0/x"),
            ("", "''"),
            ("a b", "'a b'"),
            ("*", "'*'"),
            ("~x", "'~x'"),
            ("$(x)`;", "'$(x)`;'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(shell_quoted(text), want);
        }
    }
}
