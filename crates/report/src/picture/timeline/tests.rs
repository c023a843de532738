use expect_test::expect;
use wakescope_model::scenario::{SHIPPED, Scenario};
use wakescope_model::simulation::{Sample, Simulation, Until, Unwatched};
use wakescope_model::{Image, Rules};

use super::super::tests::{check_scene, check_svg};
use super::super::{Room, svg};
use super::*;

/// Two CPUs on which all happens that a picture shows, under names of all lengths.
const BUSY: &str = r#"
schema = "wakescope.scenario/1"
name = "busy"
machine = { cpus = 2 }
task = [
  { name = "probe", policy = "fifo:80", period = "1ms", cpu = 0 },
  { name = "<reader>&\"", path = "read" },
  { name = "fifteen letters", path = "read" },
  { name = "w", policy = "fifo:10", path = "write" },
  { name = "x", path = "write" },
  { name = "y", path = "write" },
]
interrupt = [
  { name = "an interrupt with the longest name of sixty-four letters, or so", arrives = { poisson = "300us" }, path = "irq" },
  { name = "rx", kind = "softirq:net_rx", path = "softirq" },
  { name = "hypervisor", kind = "steal", arrives = { poisson = "700us" }, path = "stolen" },
]
[path]
stolen = [{ compute = "30us" }]
irq = [{ compute = "5us" }, { raise_softirq = "net_rx" }]
softirq = [{ raw_spin_lock = "queue" }, { compute = "20us" }, { raw_spin_unlock = "queue" }]
read = [
  { user = { exponential = "50us" } },
  { call = "a_function_with_a_long_name_as_kernels_have_them", do = [
    "local_bh_disable", { raw_spin_lock = "queue" }, { compute = "100us" }, { raw_spin_unlock = "queue" }, "local_bh_enable",
  ] },
]
write = [
  { block = { exponential = "300us" } },
  { call = "sys", do = [{ mutex_lock = "a mutex with a name of many letters" }, { compute = "60us" }, { block = "50us" }, { mutex_unlock = "a mutex with a name of many letters" }] },
]
"#;

fn scenario(text: &str) -> Scenario {
    let no_runs = |_: &str, _: &str| Err(String::new());
    Scenario::read("x.toml", text, &no_runs).unwrap()
}

/// The latest of the first wakeups under a model; `None` where the scenario breaks a rule before.
fn latest(image: &Image, samples: u64) -> Option<Timeline> {
    let mut all: Vec<Sample> = Vec::new();
    let mut keep = |sample| all.push(sample);
    let mut simulation = Simulation::new(image, 1, Unwatched(&mut keep));
    simulation.run_until(Until { samples, ns: 300_000_000 }).ok()?;
    let worst = all.into_iter().max_by_key(Sample::latency_ns)?;
    Timeline::of(image, 1, worst.expiry_ns, worst.latency_ns()).ok()
}

fn texts(scene: &Scene) -> Vec<&str> {
    let mut texts = Vec::new();
    for mark in &scene.marks {
        if let Mark::Text { text, .. } = mark {
            texts.push(text.as_str());
        }
    }
    texts
}

#[test]
fn every_wakeup_is_drawn_in_order() {
    let shipped = SHIPPED.iter().map(|shipped| shipped.read().unwrap());
    let mut drawn = 0;
    for scenario in shipped.chain([scenario(BUSY)]) {
        for rules in Rules::ALL {
            let image = Image::new(&scenario, rules).unwrap();
            let Some(timeline) = latest(&image, 200) else { continue };
            for room in
                [Room::ALONE, Room { width: 880.0, bare: true }, Room { width: 400.0, bare: true }]
            {
                let scene = scene(&image, &timeline, room);
                check_scene(&scene);
                check_svg(&svg::document(&scene));
                check_svg(&svg::draw(&scene, "x", false));
                let all = texts(&scene).join("\n");
                for part in ["CPU 0", "interrupts off", "timer due", "response +", "simulated time"]
                {
                    assert!(all.contains(part), "{} {}: {all}", scenario.name, rules.name);
                }
                assert!(scene.description.contains("Meanwhile CPU "), "{}", scene.description);
                drawn += 1;
            }
        }
    }
    assert!(drawn > 200, "{drawn}");
}

#[test]
fn pictures_stand_below_each_other() {
    let scenario = scenario(BUSY);
    let image = Image::new(&scenario, Rules::named("full").unwrap()).unwrap();
    let one = scene(&image, &latest(&image, 100).unwrap(), Room::ALONE);
    let both = below_each_other(vec![one.clone(), one.clone()]);
    check_scene(&both);
    assert_eq!((both.width, both.height), (one.width, 2.0 * one.height));
    assert_eq!(texts(&both).len(), 2 * texts(&one).len());
}

#[test]
fn many_short_spans_are_few_bars() {
    let span = |at: f64| (at, at + 0.001, ());
    let kept = visible((0..100_000).map(|at| span(f64::from(at) / 1_000.0)).collect());
    assert!(kept.len() <= 201, "{}", kept.len());
    assert!(kept.windows(2).all(|pair| pair[0].1 <= pair[1].0));
}

#[test]
fn kinds_differ_without_colour() {
    let all = [
        Kind::User,
        Kind::Kernel,
        Kind::Spins,
        Kind::Interrupt,
        Kind::Softirq,
        Kind::Scheduler,
        Kind::Stolen,
        Kind::Holds,
    ];
    // Of those of one row, plain ones differ by lightness, and hatched ones by hatching or lightness.
    let look = |kind: Kind| {
        let number = kind.number();
        let colour = Ink::Series(number).colour();
        let [_, red, green, blue] = colour.to_be_bytes().map(f64::from);
        (number / super::super::scene::COLOURS.len(), 0.2126 * red + 0.7152 * green + 0.0722 * blue)
    };
    for (at, one) in all.iter().enumerate() {
        // Locks have rows of their own.
        for other in all[at + 1..].iter().filter(|other| **other != Kind::Holds) {
            let ((hatch, light), (other_hatch, other_light)) = (look(*one), look(*other));
            assert!(
                hatch != other_hatch || (light - other_light).abs() > 40.0,
                "{one:?} {other:?}"
            );
        }
    }
}

#[test]
fn a_picture_of_a_wakeup() {
    let scenario = scenario(
        r#"
        schema = "wakescope.scenario/1"
        name = "x"
        machine = { tick = "off" }
        task = [{ name = "probe", policy = "fifo:80", period = "1ms" }, { name = "find", path = "find" }]
        path = { find = [{ user = "3ms" }, { call = "prune_dcache", do = [
          { spin_lock = "dcache_lock" }, { compute = "2500us" }, { spin_unlock = "dcache_lock" },
        ] }] }
        "#,
    );
    let image = Image::new(&scenario, Rules::named("full").unwrap()).unwrap();
    let scene = scene(&image, &latest(&image, 20).unwrap(), Room::ALONE);
    let drawn = svg::document(&scene);
    let lines =
        drawn.replace("<text", "\n<text").replace("<rect", "\n<rect").replace("<path", "\n<path");
    expect![[r##"
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 274.8" role="img" aria-labelledby="t d" width="880" height="274.8" font-family="'Noto Sans','Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif" style="font-variant-numeric:tabular-nums"><title id="t">A wakeup under full: 2.49 simulated ms late</title><desc id="d">The timer was due at 0, need_resched was set after 1.00 µs, the scheduler was entered after 2.49 ms, the probe responded after 2.49 simulated ms. Meanwhile CPU 0 was at: kernel mode of find 2.49 ms, interrupt 1.20 µs, scheduler 1.20 µs, kernel mode of probe 300 ns.</desc>
        <rect width="100%" height="100%" fill="#fff"/>
        <text fill="#1f2328" x="12" y="28" font-size="17" font-weight="600">A wakeup under full: 2.49 simulated ms late</text>
        <text fill="#1f2328" x="198.4" y="52.8" font-size="12">timer due</text>
        <text fill="#1f2328" x="198.6" y="68.8" font-size="12">need_resched set +1.00 µs</text>
        <text fill="#1f2328" x="624.2" y="52.8" font-size="12">scheduler entered +2.49 ms</text>
        <text fill="#1f2328" x="681" y="68.8" font-size="12">response +2.49 ms</text>
        <path stroke="#1f2328" fill="none" stroke-width="1.25" stroke-linejoin="round" d="M193.4 42.8v142"/>
        <path stroke="#1f2328" fill="none" stroke-width="1.25" stroke-linejoin="round" stroke-dasharray="7 3" d="M193.6 58.8v126"/>
        <path stroke="#1f2328" fill="none" stroke-width="1.25" stroke-linejoin="round" stroke-dasharray="2 2.5" d="M806.3 42.8v142"/>
        <path stroke="#1f2328" fill="none" stroke-width="1.25" stroke-linejoin="round" stroke-dasharray="9 3 2 3" d="M806.6 58.8v126"/>
        <text fill="#1f2328" x="12" y="93.3" font-size="12">CPU 0</text>
        <rect fill="#56b4e9" x="132" y="78.8" width="59" height="20"/>
        <text fill="#111111" x="136" y="93.3" font-size="12">find</text>
        <rect fill="#0072b2" x="191" y="78.8" width="2" height="20"/>
        <rect fill="#d55e00" x="193" y="78.8" width="1" height="20"/>
        <path stroke="#ffffff" fill="none" stroke-width="1.5" stroke-linejoin="round" d="M193 81.8l1 -1M193 87.8l1 -1M193 93.8l1 -1"/>
        <rect fill="#0072b2" x="194" y="78.8" width="612" height="20"/>
        <text fill="#ffffff" x="198" y="93.3" font-size="12">find: prune_dcache</text>
        <rect fill="#cc79a7" x="806" y="78.8" width="1" height="20"/>
        <rect fill="#56b4e9" x="807" y="78.8" width="61" height="20"/>
        <text fill="#111111" x="811" y="93.3" font-size="12">find</text>
        <text fill="#5c646d" x="12" y="111.8" font-size="12">preemption off</text>
        <rect fill="#1f2328" x="191" y="103.8" width="615" height="7"/>
        <text fill="#5c646d" x="12" y="127.8" font-size="12">interrupts off</text>
        <rect fill="#1f2328" x="193" y="119.8" width="1" height="7"/>
        <rect fill="#1f2328" x="806" y="119.8" width="1" height="7"/>
        <text fill="#5c646d" x="12" y="143.8" font-size="12">need_resched</text>
        <rect fill="#1f2328" x="193.6" y="135.8" width="612.97" height="7"/>
        <text fill="#1f2328" x="12" y="174.3" font-size="12">dcache_lock</text>
        <rect fill="#009e73" x="191" y="159.8" width="615.28" height="20"/>
        <text fill="#ffffff" x="195" y="174.3" font-size="12">find</text>
        <path stroke="#1f2328" fill="none" stroke-width="1" stroke-linejoin="round" d="M132 184.8h736"/>
        <path stroke="#1f2328" fill="none" stroke-width="1" stroke-linejoin="round" d="M193.4 184.8v4"/>
        <text fill="#5c646d" x="193.4" y="201.8" font-size="12" text-anchor="middle">0</text>
        <path stroke="#1f2328" fill="none" stroke-width="1" stroke-linejoin="round" d="M316.3 184.8v4"/>
        <text fill="#5c646d" x="316.3" y="201.8" font-size="12" text-anchor="middle">0.5 ms</text>
        <path stroke="#1f2328" fill="none" stroke-width="1" stroke-linejoin="round" d="M439.3 184.8v4"/>
        <text fill="#5c646d" x="439.3" y="201.8" font-size="12" text-anchor="middle">1 ms</text>
        <path stroke="#1f2328" fill="none" stroke-width="1" stroke-linejoin="round" d="M562.3 184.8v4"/>
        <text fill="#5c646d" x="562.3" y="201.8" font-size="12" text-anchor="middle">1.5 ms</text>
        <path stroke="#1f2328" fill="none" stroke-width="1" stroke-linejoin="round" d="M685.3 184.8v4"/>
        <text fill="#5c646d" x="685.3" y="201.8" font-size="12" text-anchor="middle">2 ms</text>
        <text fill="#1f2328" x="868" y="219.8" font-size="12" text-anchor="end">simulated time since the wakeup was due</text>
        <rect fill="#56b4e9" x="20" y="231.8" width="24" height="13"/>
        <text fill="#1f2328" x="54" y="242.8" font-size="13">user mode: find</text>
        <rect fill="#0072b2" x="20" y="251.8" width="24" height="13"/>
        <text fill="#1f2328" x="54" y="262.8" font-size="13">kernel mode: find</text>
        <rect fill="#d55e00" x="221.4" y="231.8" width="24" height="13"/>
        <path stroke="#ffffff" fill="none" stroke-width="1.5" stroke-linejoin="round" d="M221.4 234.8l3 -3M221.4 240.8l9 -9M223.4 244.8l13 -13M229.4 244.8l13 -13M235.4 244.8l10 -10M241.4 244.8l4 -4"/>
        <text fill="#1f2328" x="255.4" y="242.8" font-size="13">interrupt: local_timer</text>
        <rect fill="#cc79a7" x="221.4" y="251.8" width="24" height="13"/>
        <path stroke="#111111" fill="none" stroke-width="1.5" stroke-linejoin="round" d="M224.4 251.8v13M230.4 251.8v13M236.4 251.8v13M242.4 251.8v13"/>
        <text fill="#1f2328" x="255.4" y="262.8" font-size="13">scheduler</text>
        <rect fill="#009e73" x="422.7" y="231.8" width="24" height="13"/>
        <text fill="#1f2328" x="456.7" y="242.8" font-size="13">holds the lock</text></svg>
    "##]].assert_eq(&lines);
}
