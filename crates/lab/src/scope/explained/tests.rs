//! Made-up wakeups and sections.

use wakescope_core::explain::{Context, Event, Frame, Mode, Policy, Task, WokenBy};
use wakescope_core::scope::explained::Spread;
use wakescope_core::scope::{Place, SCHEMA, Scope};
use wakescope_core::units::MonoNs;

use super::*;

/// The distance between the guest's clock and the emulator's.
const DISTANCE: u64 = 5_000_007;
/// When the first process began, on the guest's clock; on the emulator's it did 300 ns before it read that.
const BEGAN: u64 = 1_000_000;
const DUE: u64 = 9_000_000;

fn task(pid: u32, policy: Policy, prio: i32) -> Task {
    Task { pid, comm: format!("task{pid}"), policy, prio }
}

/// A wakeup that a section with interrupts off held up for some 2 µs, and one with preemption off for some
/// 5 µs: its interrupt came in `function` of a task, which had preemption off so many times.
fn wakeup(function: &str, preempt_depth: u32) -> Wakeup {
    let at = |ns: u64| MonoNs(DUE + ns);
    let own = task(9, Policy::Fifo, 9);
    let other = task(7, Policy::Other, 120);
    let frame = Frame { function: Some(function.into()), offset: 8, ..Frame::default() };
    Wakeup {
        task: own.clone(),
        woken_by: WokenBy::Timer { on: 0 },
        marks: Marks {
            due: at(0),
            irq_entry: Some(at(2_100)),
            irq_exit: Some(at(3_000)),
            sched_entry: Some(at(8_000)),
            switch_in: Some(at(8_400)),
            response: at(9_000),
        },
        interrupted: Some(Context {
            task: other.clone(),
            mode: Mode::Kernel,
            preempt_depth: Some(preempt_depth),
            preemptible: Some(true),
            stack: vec![frame],
            ..Context::default()
        }),
        events: vec![Event { at: at(8_400), what: What::Switch { from: other, to: own } }],
        ..Wakeup::default()
    }
}

/// From and to, since [`DUE`].
fn section(kind: Kind, (from, to): (i64, i64), began: &str) -> Section {
    let place = |name: &str| Place { function: Some(name.into()), caller: None };
    Section {
        kind,
        began: place(began),
        ended: place("restore"),
        begin_ns: (DUE + DISTANCE).checked_add_signed(from).unwrap(),
        length_ns: u64::try_from(to - from).unwrap(),
    }
}

/// The section that held the interrupt up, that of the interrupt, that which held the scheduler up, and
/// that of the scheduler.
fn sections() -> Vec<Section> {
    vec![
        section(Kind::IrqsOff, (-1_000, 2_050), "hold"),
        section(Kind::IrqsOff, (2_050, 3_100), "entry"),
        section(Kind::PreemptOff, (-500, 7_900), "hold"),
        section(Kind::PreemptOff, (7_950, 8_700), "schedule"),
    ]
}

fn late(wakeups: Vec<Wakeup>) -> Late {
    let known = |wakeup| (wakeup, Known::default());
    Late {
        origin_ns: 0,
        began_ns: BEGAN,
        count: wakeups.len() as u64 + 2,
        wakeups: wakeups.into_iter().map(known).collect(),
    }
}

/// What the emulator saw: these sections, and the readings of the clock of these wakeups among others.
fn looked(late: &Late, sections: Vec<Section>) -> Looked {
    let own = late.wakeups.iter().flat_map(|(wakeup, _)| times_of(wakeup));
    let mut readings: Vec<u64> = own.map(|at| at + DISTANCE).collect();
    readings.extend((0..100).map(|n| DUE + DISTANCE - 7_000 + n * 137));
    readings.sort_unstable();
    Looked { process_ns: BEGAN + DISTANCE - 300, sections, readings, lost: 0 }
}

/// What is said of these sections, which a record holds in a way that can be read.
fn compared(late: &Late, sections: Vec<Section>) -> Explained {
    let got = late.compare(&looked(late, sections), &[]).unwrap();
    let explained = Some(got.clone());
    let scope = Scope { schema: SCHEMA.into(), explained, ..Scope::default() };
    assert_eq!(Scope::from_json(scope.to_json().as_bytes()), Ok(scope));
    got
}

#[test]
fn shares_are_compared_with_the_sections_that_they_are_in() {
    let late = late(vec![wakeup("hold", 1)]);
    let got = compared(&late, sections());
    assert_eq!((got.late, got.compared, got.matched_times), (3, 1, 4));
    let [irqs, preempt] = &got.kinds[..] else { panic!("{got:#?}") };
    // Held up until 2,050 ns; said until the interrupt's entry.
    let spread = |ns| Some(Spread { min: ns, p50: ns, max: ns });
    assert_eq!((irqs.shares, irqs.in_section, irqs.named, irqs.longer_ns), (1, 1, 1, spread(50)));
    // From the end of the interrupt until 7,900 ns; said until the scheduler began.
    assert_eq!((preempt.shares, preempt.in_section, preempt.named), (1, 1, 1));
    assert_eq!(preempt.longer_ns, spread(100));
    assert_eq!((got.section_not_first, got.first_not_section), (0, 0));
    let first = got.shares.iter().find(|share| share.first).unwrap();
    assert_eq!((first.kind, first.expiry_ns, first.ns), (Kind::PreemptOff, DUE, 5_000));
    let held = first.section.as_ref().unwrap();
    assert_eq!((held.ns, held.length_ns), (4_900, 8_400));
}

#[test]
fn the_way_to_the_scheduler_is_added_to_what_is_said_of_a_section() {
    let with = |known: Known| {
        let mut late = late(vec![wakeup("hold", 1)]);
        late.wakeups[0].1 = known;
        compared(&late, sections())
    };
    let unknown = Known { scheduling_ns: Some(1_000), ..Known::default() };
    // 700 ns of 5,000 are the scheduler's then.
    let known = Known { least_sched_latency_ns: Some(500), ..unknown };
    assert_eq!(with(known), with(unknown));
    assert_eq!(with(known).kinds[1].longer_ns.unwrap().p50, 100);
}

#[test]
fn the_latest_wakeups_are_blamed_by_todays_rules() {
    let late = late(vec![wakeup("hold", 1)]);
    let stored = Episode { expiry_ns: DUE, wakeup_latency_ns: 9_000, ..Episode::default() };
    let other = Episode { wakeup_latency_ns: 9_001, ..stored.clone() };
    let mut worst = [other.clone(), stored];
    late.blame_anew(&mut worst);
    assert_eq!(worst[0], other);
    assert_eq!(worst[1].blame.iter().map(|share| share.ns).sum::<u64>(), 9_000);
    assert_eq!(worst[1].blame[0].cause, Cause::PreemptOff);
}

#[test]
fn interrupts_in_a_section_are_not_its_time() {
    let mut wakeup = wakeup("hold", 1);
    let [entry, exit] = [(4_000, true), (4_600, false)].map(|(ns, begins)| {
        let interrupt = wakescope_core::explain::Interrupt("eth0".into());
        let what = if begins { What::IrqEntry(interrupt) } else { What::IrqExit(interrupt) };
        Event { at: MonoNs(DUE + ns), what }
    });
    wakeup.events.splice(0..0, [entry, exit]);
    let late = late(vec![wakeup]);
    let got = compared(&late, sections());
    let held = got.shares.iter().find(|share| share.first).unwrap().section.as_ref().unwrap();
    assert_eq!(held.ns, 4_300);
    assert_eq!(got.kinds[1].longer_ns, Some(Spread { min: 100, p50: 100, max: 100 }));
}

#[test]
fn a_share_beside_every_section_is_counted_apart() {
    let late = late(vec![wakeup("hold", 1)]);
    let own = vec![section(Kind::IrqsOff, (2_050, 3_100), "entry")];
    let got = compared(&late, own);
    for (kind, longest) in got.kinds.iter().zip([2_100, 5_000]) {
        assert_eq!((kind.shares, kind.in_section, kind.longest_beside_ns), (1, 0, Some(longest)));
        assert_eq!((kind.named, kind.longer_ns), (0, None));
    }
    // It was blamed first, and was not there.
    assert_eq!((got.section_not_first, got.first_not_section), (0, 1));
}

#[test]
fn an_interrupt_can_come_right_behind_the_beginning_of_a_section() {
    // Seen on 7.2-rt: a share of 780 ns of get_page_from_freelist was beside every section.
    let late = late(vec![wakeup("hold", 1)]);
    let begins_at = |at| {
        let own = vec![
            section(Kind::IrqsOff, (2_050, 3_100), "entry"),
            section(Kind::PreemptOff, (at, 7_900), "hold"),
        ];
        compared(&late, own).kinds[1].in_section
    };
    assert_eq!((begins_at(2_050), begins_at(2_051)), (1, 0));
}

#[test]
fn a_section_that_explain_does_not_see_is_counted() {
    // Without preemption off, kernel code of a preemptible kernel is left at once: what then runs is unknown.
    let late = late(vec![wakeup("other", 0)]);
    let got = compared(&late, sections());
    assert_eq!((got.section_not_first, got.first_not_section), (1, 0), "{got:#?}");
    assert_eq!((got.kinds[0].in_section, got.kinds[0].named), (1, 0));
    assert_eq!(got.kinds[1].shares, 0);
}

#[test]
fn clocks_that_do_not_match_are_refused() {
    let late = late(vec![wakeup("hold", 1)]);
    let whole = looked(&late, sections());
    let refused = |change: &dyn Fn(&mut Looked)| {
        let mut looked = whole.clone();
        change(&mut looked);
        late.compare(&looked, &[]).unwrap_err()
    };
    // One time of four is 1 ns beside every reading.
    let other = refused(&|looked| {
        looked.readings.retain(|now| *now != DUE + DISTANCE + 3_000);
        looked.readings.push(DUE + DISTANCE + 3_001);
        looked.readings.sort_unstable();
    });
    assert!(other.contains("at most 3 of its 4 times"), "{other}");
    // The first process did not begin then.
    let far = refused(&|looked| looked.process_ns += 400);
    assert!(far.contains("fits the emulator's in no way"), "{far}");
    let none = refused(&|looked| looked.readings.clear());
    assert!(none.contains("at most 0 of its 4 times"), "{none}");
    let twice = refused(&|looked| {
        looked.readings.extend(whole.readings.iter().map(|now| now + 1));
        looked.readings.sort_unstable();
    });
    assert!(twice.contains("more than one way"), "{twice}");
    let lost = refused(&|looked| looked.lost = 1_234);
    assert!(lost.contains("1,234 sections and readings"), "{lost}");
    let silent = self::late(Vec::new()).compare(&whole, &[]).unwrap_err();
    assert!(silent.contains("no events"), "{silent}");
}

#[test]
fn the_first_process_may_take_long_until_it_reads_the_clock() {
    let late = late(vec![wakeup("hold", 1)]);
    let whole = looked(&late, sections());
    let after = |ns: u64| {
        let looked = Looked { process_ns: BEGAN + DISTANCE - ns, ..whole.clone() };
        late.compare(&looked, &[]).map(|explained| explained.matched_times)
    };
    // As in a guest of 7.3.
    assert_eq!(after(1_016_716), Ok(4));
    // The plugin saw that reading itself.
    assert_eq!(after(0), Ok(4));
    assert_eq!(after(FIRST_READING_NS), Ok(4));
    assert!(after(FIRST_READING_NS + 1).unwrap_err().contains("fits the emulator's in no way"));
    // What is then seen of the wakeup is looked at, by the time since the process began.
    let (from, to) = late.looks()[0];
    for since in [0, FIRST_READING_NS] {
        assert!(from + BEHIND_NS <= DUE - BEGAN + since && DUE + 9_000 - BEGAN + since < to);
    }
}

#[test]
fn looks_have_room_around_each_wakeup_and_do_not_overlap() {
    let at = |due: u64| {
        let mut wakeup = wakeup("hold", 1);
        wakeup.marks =
            Marks { due: MonoNs(due), response: MonoNs(due + 9_000), ..Marks::default() };
        wakeup
    };
    let looks = late(vec![at(20_000_000), at(DUE), at(DUE + 2_000_000), at(BEGAN + 10)]).looks();
    assert_eq!(
        looks,
        [(0, 4_009_010), (7_000_000, 14_009_000), (18_000_000, 23_009_000)],
        "{looks:?}"
    );
}

#[test]
fn sections_hold_up_from_when_the_timer_fired() {
    let late = late(vec![wakeup("hold", 1)]);
    // Interrupts go off just after the wakeup is due, before its timer fires 65 ns after that.
    let mut all = sections();
    all[0] = section(Kind::IrqsOff, (30, 2_050), "hold");
    let taken = |from: u64, to: u64| DUE + DISTANCE + from..DUE + DISTANCE + to;
    let held = |interrupts: &[Range<u64>]| {
        let explained = late.compare(&looked(&late, all.clone()), interrupts).unwrap();
        let own = explained.shares.into_iter().find(|share| share.kind == Kind::IrqsOff).unwrap();
        own.section.map(|section| section.ns)
    };
    assert_eq!(held(&[taken(65, 2_050)]), Some(2_050 - 65));
    // Of several it is the one that the tracer saw last before the handler.
    let earlier = DUE + DISTANCE - 9_000..DUE + DISTANCE - 8_990;
    assert_eq!(held(&[earlier.clone(), taken(65, 2_050), taken(7_000, 7_001)]), Some(1_985));
    // It was not seen, or an interrupt of something else woke the task.
    assert_eq!(held(&[]), None);
    assert_eq!(held(&[earlier]), None);
    // It had fired before.
    all[0] = section(Kind::IrqsOff, (-1_000, 2_050), "hold");
    let before = DUE + DISTANCE - 400..DUE + DISTANCE + 2_050;
    let explained = late.compare(&looked(&late, all), &[before]).unwrap();
    let own = explained.shares.into_iter().find(|share| share.kind == Kind::IrqsOff).unwrap();
    assert_eq!(own.section.unwrap().ns, 2_050);
}
