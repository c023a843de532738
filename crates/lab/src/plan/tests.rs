use expect_test::{Expect, expect};
use wakescope_core::audio::AudioPlan;
use wakescope_testing::fuzz;

use super::*;

/// Every key, with a value other than the default.
const FULL: &str = r#"
name = "mine"
description = "what I want to know"
kernels = ["6.1-cloud", "old/bzImage", "6.1-rt"]
preempt = ["none", "full"]
loads = ["idle", "find+launch"]
seeds = [3, 5]
samples = 1000
stimulus = "futex"
between = "processes"
interval = "1ms"
warmup = "10ms"
cpu_mips = 125
policy = "rr"
priority = 50
compare = ["none:full", "6.1-cloud/full:6.1-rt/rt"]
margin = 0.05
published = ["somebody, 2002: 5 ms"]
fail_above = ["100us", "p99.9=50us"]
explain = true
scope = true

[preempt_of]
"6.1-rt" = ["rt"]
"#;

/// The keys that belong to one stimulus or policy, which no plan can have all of.
#[test]
fn keys_of_one_stimulus() {
    let plan = |text: &str| Plan::parse(text).unwrap();
    let audio = plan("stimulus = \"audio\"\nfragments = 4\nshare = \"50%\"");
    let card = audio.own.audio(audio.interval);
    assert_eq!((card.fragment_ns, card.fragments, card.share_ppm), (500_000, 4, 500_000));
    let real = plan("stimulus = \"audio\"\npcm = \"hw:1\"");
    assert_eq!(real.own.audio(real.interval).pcm, Some("hw:1,0".parse().unwrap()));
    let usual = plan("stimulus = \"audio\"");
    assert_eq!(usual.own.audio(usual.interval), AudioPlan::usual(500_000));
    let deadline = plan("stimulus = \"deadline\"\nruntime = \"100us\"");
    assert_eq!((deadline.policy, deadline.priority), (ProbePolicy::Deadline, None));
    assert_eq!(deadline.own.runtime, Some(SpanNs(100_000)));
    for (text, interval) in [
        ("stimulus = \"rtc\"", 488_281),
        ("stimulus = \"rtc-grid\"\nrtc_hz = 8192", 122_070),
        ("stimulus = \"rtc-grid\"\ninterval = \"122070ns\"", 122_070),
        ("stimulus = \"timer\"", 500_000),
    ] {
        assert_eq!(plan(text).interval, SpanNs(interval), "{text}");
    }
    // The command line says another stimulus than the plan, or another rate.
    let with = |text: &str, overrides: Overrides| plan(text).with(&overrides);
    let stimulus = |stimulus| Overrides { stimulus: Some(stimulus), ..Overrides::default() };
    let changed = with("", stimulus(Stimulus::Deadline)).unwrap();
    assert_eq!((changed.policy, changed.priority), (ProbePolicy::Deadline, None));
    assert_eq!(with("", stimulus(Stimulus::Rtc)).unwrap().interval, SpanNs(488_281));
    let rate = || Overrides { rtc_hz: Some("64".parse().unwrap()), ..Overrides::default() };
    let kept = with("stimulus = \"rtc\"\nrtc_hz = 8192", Overrides::default()).unwrap();
    assert_eq!(kept.interval, SpanNs(122_070));
    assert_eq!(with("stimulus = \"rtc\"", rate()).unwrap().interval, SpanNs(15_625_000));
    let refused = with("", rate()).unwrap_err().to_string();
    assert!(refused.contains("does not apply to the stimulus timer"), "{refused}");
}

#[test]
fn a_plan_with_every_key() {
    let plan = Plan::parse(FULL).unwrap();
    let want = Plan {
        name: "mine".into(),
        description: "what I want to know".into(),
        kernels: Kernels::Named(["6.1-cloud", "old/bzImage", "6.1-rt"].map(String::from).into()),
        preempt: vec![Asked::None, Asked::Full],
        preempt_of: [("6.1-rt".to_owned(), vec![Asked::Rt])].into(),
        loads: vec!["idle".parse().unwrap(), "find+launch".parse().unwrap()],
        seeds: Seeds::List(vec![3, 5]),
        samples: 1_000,
        stimulus: Stimulus::Futex,
        between: Between::Processes,
        interval: SpanNs(1_000_000),
        warmup: SpanNs(10_000_000),
        cpu: CpuSpeed::of_mips(125).unwrap(),
        policy: ProbePolicy::Rr,
        priority: Some(50),
        own: OwnKeys::default(),
        compare: vec!["none:full".into(), "6.1-cloud/full:6.1-rt/rt".into()],
        margin: 0.05,
        published: vec!["somebody, 2002: 5 ms".into()],
        fail_above: vec!["100us".parse().unwrap(), "p99.9=50us".parse().unwrap()],
        explain: true,
        scope: true,
        above: None,
        sections: false,
        bound: false,
        worst: None,
    };
    assert_eq!(plan, want);
    assert_eq!(plan.pairs().unwrap().len(), 3);
}

#[test]
fn cells_come_kernel_by_kernel_model_by_model_load_by_load_seed_by_seed() {
    let cells = Plan::parse(FULL).unwrap().cells();
    assert_eq!(cells.len(), 20);
    let text: Vec<String> = cells
        .iter()
        .step_by(2)
        .map(|c| format!("{} {} {} {}", c.kernel, c.asked, c.load, c.seed))
        .collect();
    expect![[r#"
        6.1-cloud none idle 3
        6.1-cloud none find+launch 3
        6.1-cloud full idle 3
        6.1-cloud full find+launch 3
        old/bzImage none idle 3
        old/bzImage none find+launch 3
        old/bzImage full idle 3
        old/bzImage full find+launch 3
        6.1-rt rt idle 3
        6.1-rt rt find+launch 3"#]]
    .assert_eq(&text.join("\n"));
}

#[test]
fn an_empty_plan_has_defaults_and_waits_for_kernels() {
    let plan = Plan::parse("").unwrap();
    assert_eq!(plan, Plan::default());
    assert!(plan.cells().is_empty());
    let e = plan.expand(&[]).unwrap_err();
    assert!(e.to_string().contains("no kernel to boot"), "{e}");
}

/// Says what is wrong with a plan of one kernel and these lines.
#[track_caller]
fn check(lines: &str, want: Expect) {
    let e = Plan::parse(format!("kernels = [\"k\"]\n{lines}")).unwrap_err();
    want.assert_eq(&format!("{e} → {}", e.remedy()));
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    check(
        "load = [\"find\"]",
        expect![
            "line 2: unknown field `load`, expected one of `name`, `description`, `kernels`, `preempt`, `preempt_of`, `loads`, `seeds`, `samples`, `stimulus`, `between`, `interval`, `rtc_hz`, `fragments`, `share`, `pcm`, `runtime`, `warmup`, `cpu_mips`, `policy`, `priority`, `compare`, `margin`, `published`, `fail_above`, `explain`, `scope` → docs/reference/plan.md lists the keys of a plan"
        ],
    );
    check(
        "seeds = \"ten\"",
        expect![[
            r#"line 2: invalid type: string "ten", expected a number of seeds, as in 10, or a list of them, as in [3, 5] → docs/reference/plan.md lists the keys of a plan"#
        ]],
    );
    check(
        "seeds = -1",
        expect![
            "line 2: invalid value: integer `-1`, expected a number of seeds, as in 10, or a list of them, as in [3, 5] → docs/reference/plan.md lists the keys of a plan"
        ],
    );
    check(
        "seeds = 0",
        expect![
            "line 2: seeds: 0 is not from 1 to 1000 → write a number of seeds, as in 10, or a \
             list, as in [3, 5]"
        ],
    );
    check(
        "seeds = 1001",
        expect![
            "line 2: seeds: 1001 is not from 1 to 1000 → write a number of seeds, as in 10, or a \
             list, as in [3, 5]"
        ],
    );
    check(
        "seeds = [1, 2, 1]",
        expect![
            "line 2: seeds: seed 1 is listed twice → write a number of seeds, as in 10, or a \
             list, as in [3, 5]"
        ],
    );
    check(
        "seeds = [1, \"2\"]",
        expect![[
            r#"line 2: invalid type: string "2", expected u64 → docs/reference/plan.md lists the keys of a plan"#
        ]],
    );
    check(
        "samples = 99",
        expect![
            "line 2: samples: 99 wakeups per cell → write a number from 100 to 10000000; p99.9 takes 2000"
        ],
    );
    check(
        "samples = 10000001",
        expect![
            "line 2: samples: 10000001 wakeups per cell → write a number from 100 to 10000000; p99.9 takes 2000"
        ],
    );
    check(
        "samples = 10000000\ninterval = \"1s\"",
        expect![
            "line 2: samples: emulating 10,000,000 at 1.00 s takes days → ask for fewer, or use more seeds"
        ],
    );
    check(
        "interval = \"500\"",
        expect!["line 2: interval: `500` has no unit → write 500us, 500ms or 500s"],
    );
    check(
        "interval = \"1us\"",
        expect!["line 2: interval: a wakeup every 1.00 µs → write a time from 10.0 µs to 1.00 s"],
    );
    check(
        "interval = 500",
        expect![
            "line 2: invalid type: integer `500`, expected a string → docs/reference/plan.md lists the keys of a plan"
        ],
    );
    check(
        "stimulus = \"any\"",
        expect![
            "line 2: stimulus: nothing wakes the probe by itself → omit it, or use the stimulus timer"
        ],
    );
    check(
        "stimulus = \"futex\"\npolicy = \"deadline\"",
        expect![
            "line 3: policy: the policy deadline does not apply to the stimulus futex → use fifo, rr or other"
        ],
    );
    check(
        "between = \"processes\"",
        expect![
            "line 2: between: no other process wakes the probe by timer → omit it, or use a stimulus with a waker, such as futex"
        ],
    );
    check(
        "stimulus = \"rtc-grid\"\ninterval = \"500us\"",
        expect![
            "line 3: interval: 500us is not the interval of a real-time clock's rate → name the rate in its place: rtc_hz = 2048, or --rtc-hz 2048"
        ],
    );
    check(
        "rtc_hz = 2048",
        expect![
            "line 2: rtc_hz: it does not apply to the stimulus timer → omit it, or use the stimulus rtc or rtc-grid"
        ],
    );
    check(
        "stimulus = \"rtc\"\nrtc_hz = 1000",
        expect![
            "line 3: rtc_hz: a clock's rate is a power of two from 2 to 8192, as in 2048 → write one of these"
        ],
    );
    check(
        "stimulus = \"rtc-grid\"\ninterval = \"1ms\"\nrtc_hz = 1024",
        expect!["line 4: rtc_hz: the interval is set, too → omit one of them"],
    );
    check(
        "stimulus = \"deadline\"\npolicy = \"fifo\"",
        expect![
            "line 3: policy: the stimulus deadline is one of another policy → omit it, or use the stimulus timer"
        ],
    );
    check(
        "runtime = \"100us\"",
        expect![
            "line 2: runtime: it does not apply to the policy fifo → omit it, or use the policy deadline"
        ],
    );
    check(
        "stimulus = \"deadline\"\nruntime = \"1ms\"",
        expect![
            "line 3: runtime: 1ms of each 500us → write a time from 1024ns to the interval of 500us"
        ],
    );
    check(
        "fragments = 4",
        expect![
            "line 2: fragments: it does not apply to the stimulus timer → omit it, or use the stimulus audio"
        ],
    );
    check(
        "stimulus = \"audio\"\npcm = \"hw:PCH\"",
        expect![
            "line 3: pcm: write a card and a device of it, as in hw:0,0 → see docs/reference/plan.md"
        ],
    );
    check(
        "stimulus = \"audio\"\npcm = \"hw:0,0\"\nexplain = true",
        expect![
            "line 4: explain: wakeups by a sound card of the guest cannot be explained → omit it, or omit pcm"
        ],
    );
    check(
        "stimulus = \"audio\"\nfragments = 1",
        expect![
            "line 3: fragments: at least 2 are needed: one plays while the other is written → see docs/reference/plan.md"
        ],
    );
    check(
        "stimulus = \"audio\"\nshare = \"96%\"",
        expect![
            "line 3: share: a share from 1% to 95% is possible: waking and writing take time, too → see docs/reference/plan.md"
        ],
    );
    check(
        "stimulus = \"spin\"",
        expect![
            "line 2: stimulus: under the policy fifo, a loop that never sleeps takes the guest's CPU from everything else → use the policy other"
        ],
    );
    check(
        "stimulus = \"spin\"\npolicy = \"other\"\nexplain = true",
        expect![
            "line 4: explain: a probe that never sleeps has no wakeups to explain → omit it, or use the stimulus timer"
        ],
    );
    check(
        "warmup = \"2min\"",
        expect![
            "line 2: warmup: 2.00 min before each measurement → write at most 1.00 min; a virtual second takes several"
        ],
    );
    check(
        "cpu_mips = 100",
        expect![
            "line 2: cpu_mips: 100 million instructions per second → write 1000, 500, 250 or 125"
        ],
    );
    check(
        "policy = \"FIFO\"",
        expect![
            "line 2: unknown variant `FIFO`, expected one of `other`, `fifo`, `rr`, `deadline` → docs/reference/plan.md lists the keys of a plan"
        ],
    );
    check(
        "policy = \"other\"\npriority = 1",
        expect!["line 3: priority: the policy other has no priority → omit it, or use fifo or rr"],
    );
    check(
        "priority = 100",
        expect!["line 2: priority: 100 is not a real-time priority → write a number from 1 to 99"],
    );
    check(
        "margin = -0.1",
        expect![
            "line 2: margin: -0.1 is not from 0 to 10 → write the smallest relative difference \
             that counts: 0.1 is 10 %"
        ],
    );
    check(
        "margin = nan",
        expect![
            "line 2: margin: NaN is not from 0 to 10 → write the smallest relative difference \
             that counts: 0.1 is 10 %"
        ],
    );
    check(
        "margin = \"10%\"",
        expect![[
            r#"line 2: invalid type: string "10%", expected a share, as in 0.1 for 10 % → docs/reference/plan.md lists the keys of a plan"#
        ]],
    );
    check(
        "loads = []",
        expect![[r#"line 2: loads: no load is listed → write ["idle"] to measure without a load"#]],
    );
    check(
        "loads = [\n  \"find\",\n  \"exec:make\",\n]",
        expect![
            "line 4: loads: `exec:make` needs a shell, which a guest does not have → name find, launch or file-move"
        ],
    );
    check(
        "loads = [\"find\", \"find\"]",
        expect!["line 2: loads: `find` is listed twice → list each load once"],
    );
    check(
        "preempt = []",
        expect![[
            r#"line 2: preempt: no model is listed → write ["default"] for the kernel's own default"#
        ]],
    );
    check(
        "preempt = [\"ful\"]",
        expect![
            "line 2: preempt: `ful` is not a preemption model → write none, voluntary, full, lazy, rt or default"
        ],
    );
    check(
        "preempt = [\"full\", \"full\"]",
        expect!["line 2: preempt: `full` is listed twice → list each model once"],
    );
    check(
        "[preempt_of]\nother = [\"rt\"]",
        expect![
            "line 2: preempt_of: `other` is not among the kernels → list it in `kernels`, written \
             the same way, or omit it here"
        ],
    );
    check(
        "[preempt_of]\nk = [\"RT\"]",
        expect![
            "line 2: preempt_of: `RT` is not a preemption model → write none, voluntary, full, lazy, rt or default"
        ],
    );
    check(
        "compare = [\"none:full\"]",
        expect![
            "line 2: compare: no kernel has both models of `none:full` → add the missing model to \
             `preempt`, or name kernel/model on both sides"
        ],
    );
    check(
        "fail_above = [\"1ms\", \"p99.99=1ms\"]",
        expect!["line 2: fail_above: a lab's cells have no p99.99 → write max, p99.9, p99 or p50"],
    );
    check(
        "fail_above = [\"p50\"]",
        expect!["line 2: fail_above: `p50` needs a time → write p50=100us"],
    );
    check(
        "published = [1]",
        expect![
            "line 2: invalid type: integer `1`, expected a string → docs/reference/plan.md lists the keys of a plan"
        ],
    );
    check(
        "kernels = []",
        expect![
            "line 2: duplicate key `kernels` in document root → docs/reference/plan.md lists the keys of a plan"
        ],
    );
    check(
        "seeds = 1 2",
        expect!["line 2: expected newline, `#` → docs/reference/plan.md lists the keys of a plan"],
    );
}

#[test]
fn kernels_are_checked() {
    for (list, want) in [
        (r#"["a", "a"]"#, "`a` is listed twice"),
        (r#"["a", "*"]"#, "`*` means every kernel"),
        (r#"[""]"#, "is not the name of a kernel"),
        (r#"["a,b"]"#, "holds a comma"),
        (r#"["a\u001b[31m"]"#, "control character"),
    ] {
        let e = Plan::parse(format!("kernels = {list}")).unwrap_err().to_string();
        assert!(e.starts_with("line 1: kernels: ") && e.contains(want), "{list}: {e}");
    }
}

#[test]
fn sizes_have_bounds() {
    let long = format!("# {}", "x".repeat(LARGEST_FILE));
    assert_eq!(Plan::parse(long), Err(PlanError::TooLarge));
    assert_eq!(Plan::parse([0xff]), Err(PlanError::NotText));
    let many: Vec<String> = (0..201).map(|i| format!("\"k{i}\"")).collect();
    let too_many = |n: usize, rest: &str| format!("kernels = [{}]\n{rest}", many[..n].join(","));
    for (text, want) in [
        (too_many(201, ""), "201 entries"),
        // Before anything is searched for duplicates, which takes long in a long list.
        (format!("kernels = [{}]", ["\"a\""; 201].join(",")), "201 entries"),
        (format!("loads = [{}]", ["\"find\""; 201].join(",")), "201 entries"),
        (too_many(200, "seeds = 1000"), "800,000 cells"),
        (format!("description = \"{}\"", "x".repeat(501)), "501 characters"),
        (format!("x = {}", "[".repeat(100_000)), "recursion limit"),
    ] {
        let e = Plan::parse(&text).unwrap_err().to_string();
        assert!(e.contains(want), "{e}");
    }
}

#[test]
fn shipped_plans_can_be_followed() {
    for (name, description) in Plan::names() {
        let plan = Plan::shipped(&name).unwrap();
        assert_eq!(plan.name, name);
        assert!(description.len() > 20 && description == plan.description);
        let offers = [Offer { name: "6.1-cloud".into(), preempt: vec![Asked::None, Asked::Full] }];
        let plan = plan.expand(&offers).unwrap();
        assert!(!plan.cells().is_empty());
        assert!(plan.published.iter().all(|line| line.chars().count() <= 98), "{name}");
        assert!(
            plan.published.iter().all(|line| Plan::shipped_published().contains(line)),
            "{name}"
        );
        // As many seeds as it takes to decide all that is compared.
        let figures = plan.pairs().unwrap().len() * plan.loads.len() * 2;
        let needed = wakescope_stats::paired::pairs_needed(figures, 0.05) as usize;
        assert!(figures == 0 || plan.seeds.len() >= needed, "{name} needs {needed} seeds");
    }
    let e = Plan::shipped("nobodys").unwrap_err();
    assert!(e.to_string().contains("`nobodys`") && e.remedy().contains("linux-journal"));
}

#[test]
fn every_kernel_is_asked_for_its_models() {
    let plan = Plan::parse(
        "kernels = [\"*\"]\npreempt = [\"none\", \"full\", \"rt\"]\nseeds = 1\nloads = [\"find\"]",
    );
    let plan = plan.unwrap();
    assert_eq!(plan.kernels, Kernels::Every);
    let offer =
        |name: &str, preempt: &[Asked]| Offer { name: name.into(), preempt: preempt.into() };
    let plan = plan
        .expand(&[
            offer("cloud", &[Asked::Full, Asked::Voluntary, Asked::None]),
            offer("rt", &[Asked::Rt]),
            offer("arm", &[Asked::Default]),
        ])
        .unwrap();
    let cells: Vec<String> =
        plan.cells().iter().map(|c| format!("{}/{}", c.kernel, c.asked)).collect();
    assert_eq!(cells, ["cloud/none", "cloud/full", "rt/rt", "arm/default"]);
    assert!(Plan::parse("kernels = [\"*\"]\n[preempt_of]\na = [\"rt\"]").is_err());
}

#[test]
fn the_command_line_has_the_last_word() {
    let plan = Plan::parse(FULL).unwrap();
    assert_eq!(plan.clone().with(&Overrides::default()).unwrap(), plan);
    let said = Overrides {
        kernels: Some(vec!["a".into(), "6.1-rt".into()]),
        loads: Some(vec!["find".parse().unwrap()]),
        seeds: Some(Seeds::Count(2)),
        samples: Some(500),
        compare: Some(vec!["a/none:6.1-rt/rt".into()]),
        fail_above: Some(vec![]),
        ..Overrides::default()
    };
    let got = plan.clone().with(&said).unwrap();
    assert_eq!((got.samples, got.cell_count(), got.fail_above.len()), (500, 6, 0));
    assert_eq!((got.margin, got.name), (0.05, "mine".into()), "the rest stays");
    let models = Overrides { preempt: Some(vec![Asked::Full]), compare: Some(vec![]), ..said };
    let got = plan.with(&models).unwrap();
    assert_eq!(got.preempt_of("6.1-rt"), [Asked::Full], "the word is for every kernel");
}

#[test]
fn a_comparison_that_lost_a_side_is_no_silent_success() {
    let said = Overrides { preempt: Some(vec![Asked::None]), ..Overrides::default() };
    let e = Plan::shipped("linux-journal").unwrap().with(&said).unwrap_err();
    assert_eq!(e.to_string(), "compare: no kernel has both models of `none:full`");
}

#[test]
fn policy_and_priority_go_together() {
    let with = |policy, priority| {
        let said = Overrides { policy, priority, ..Overrides::default() };
        Plan::default().with(&said).map(|p| (p.policy, p.priority))
    };
    assert_eq!(with(None, None), Ok((ProbePolicy::Fifo, Some(90))));
    assert_eq!(with(Some(ProbePolicy::Other), None), Ok((ProbePolicy::Other, None)));
    assert_eq!(with(Some(ProbePolicy::Rr), Some(5)), Ok((ProbePolicy::Rr, Some(5))));
    assert_eq!(with(None, Some(5)), Ok((ProbePolicy::Fifo, Some(5))));
    assert!(with(Some(ProbePolicy::Other), Some(5)).is_err());
}

#[test]
fn fuzz_plans() {
    fuzz("plan", &[FULL.into()], |bytes| {
        if let Ok(plan) = Plan::parse(bytes) {
            // The kernels may be named on the command line instead.
            assert!(plan.cell_count() <= 100_000);
            assert!(plan.kernel_names().is_empty() || plan.pairs().is_ok());
        }
    });
}

/// docs/reference/plan.md
const PAGE: &str = include_str!("../../../../docs/reference/plan.md");

#[test]
fn the_page_documents_every_key() {
    let e = Plan::parse("unheard_of = 1").unwrap_err().to_string();
    let (_, keys) = e.split_once("expected one of ").unwrap();
    let keys: Vec<&str> = keys.split(", ").map(|key| key.trim_matches('`')).collect();
    assert!(keys.len() > 10, "{keys:?}");
    let rows = PAGE.split("| key |").nth(1).unwrap().lines().skip(2);
    let documented: Vec<&str> =
        rows.map_while(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(documented, keys);
    let plans: Vec<String> = Plan::names().into_iter().map(|(name, _)| name).collect();
    for name in plans {
        assert!(PAGE.contains(&format!("| `{name}` |")), "the page does not list {name}");
    }
}

#[test]
fn the_example_of_the_page_is_a_plan_with_every_key() {
    let example = PAGE.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let plan = Plan::parse(example).unwrap();
    assert_eq!(plan.pairs().unwrap().len(), 5);
    let keys = FULL.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    for key in keys {
        let has = example.lines().any(|line| line.starts_with(&format!("{key} = ")));
        assert!(has, "the example does not show {key}");
    }
}

#[test]
fn the_defaults_of_the_page_are_the_plans() {
    let rows = PAGE.split("| key |").nth(1).unwrap().lines().skip(2);
    let defaults: Vec<String> = rows
        .map_while(|line| {
            let cells: Vec<&str> =
                line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            (cells.len() > 3).then(|| format!("{} = {}", cells[1], cells[2]))
        })
        .filter(|line| !line.ends_with("= "))
        .collect();
    assert!(defaults.len() >= 9, "{defaults:?}");
    assert_eq!(Plan::parse(defaults.join("\n")).unwrap(), Plan::default());
}
