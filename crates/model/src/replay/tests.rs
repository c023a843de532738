use proptest::prelude::*;

use super::*;

fn rules(name: &str) -> Rules {
    Rules::named(name).unwrap()
}

/// One who waits: when it was due, when it is now, how long it has waited, and whether its interrupt was handled.
#[derive(Clone, Copy)]
struct Waiting {
    due_ns: u64,
    now: u64,
    waited: u64,
    /// When its interrupt was handled, ns.
    handled_ns: Option<u64>,
    /// Whether it came here without what lies between.
    has_jumped: bool,
}

impl Waiting {
    fn ends(&self) -> Option<Waited> {
        let is_handled = self.handled_ns.is_some_and(|at| at < self.now);
        Some(Waited { ns: self.waited, ends_ns: self.now, is_handled })
    }
}

/// How one waits that is due at `due_ns`: forwards, a nanosecond at a time.
fn oracle(course: &Course, rules: &Rules, cuts: &[Cut], due_ns: u64) -> Option<Waited> {
    let begin = Waiting { due_ns, now: due_ns, waited: 0, handled_ns: None, has_jumped: false };
    let waited = goes_on(course, rules, cuts, begin)?;
    // The interrupt of one that is due in a handler of the probe's is that one.
    let stretch = course.stretches.iter().rfind(|stretch| stretch.from_ns <= due_ns)?;
    Some(Waited { is_handled: waited.is_handled || stretch.is_own, ..waited })
}

fn goes_on(course: &Course, rules: &Rules, cuts: &[Cut], mut one: Waiting) -> Option<Waited> {
    let preempts = rules.name != "none" && rules.name != "voluntary";
    let of = |now: u64| course.stretches.iter().rposition(|stretch| stretch.from_ns <= now);
    // How long it takes where what came into a section goes back to it.
    let mut back = Vec::new();
    let stays = loop {
        if one.now >= course.end_ns {
            break None;
        }
        let place = of(one.now)?;
        let stretch = course.stretches[place];
        let has_arrived = one.now > one.due_ns || one.has_jumped;
        let can_ask = !stretch.preempt_off && stretch.at != At::Urgent;
        if has_arrived && one.now == stretch.from_ns && !one.has_jumped && one.handled_ns.is_some()
        {
            match stretch.point {
                Point::Asks if can_ask && !preempts => break one.ends(),
                Point::MightSleep if can_ask && rules.name == "voluntary" => {
                    break one.ends();
                }
                Point::Looks | Point::Resumed if stretch.at != At::Urgent => {
                    break one.ends();
                }
                Point::Preempted if preempts => break one.ends(),
                Point::Preempted => {
                    let mut later = course.stretches[place + 1..].iter();
                    let is_own = |s: &&Stretch| s.point == Point::Resumed && s.task == stretch.task;
                    let Some(resumed) = later.find(is_own) else { break None };
                    (one.now, one.has_jumped) = (resumed.from_ns, true);
                    continue;
                }
                Point::EndsEarly(function) if stretch.preempt_off && stretch.at != At::Urgent => {
                    let jumped = Waiting { has_jumped: true, ..one };
                    let to_last = last_look(course, place, function)
                        .map(|now| goes_on(course, rules, cuts, Waiting { now, ..jumped }));
                    let stays = goes_on(course, rules, cuts, jumped);
                    let both = [to_last.flatten(), stays];
                    break both.into_iter().flatten().min();
                }
                _ => {}
            }
        }
        let lets_in = |cut: &&Cut| {
            let interrupts = !stretch.irqs_off || cut.irqs;
            cut.at_ns == one.now && has_arrived && stretch.at != At::Urgent && interrupts
        };
        let mut is_given_up = false;
        for cut in cuts.iter().filter(|cut| cut.back_ns != Some(cut.at_ns)).filter(lets_in) {
            one.handled_ns = one.handled_ns.or(Some(one.now));
            is_given_up |= !stretch.preempt_off || cut.preempt;
            if let Some(now) = cut.back_ns {
                let jumped = Waiting { now, has_jumped: true, ..one };
                back.extend(goes_on(course, rules, cuts, jumped));
            }
        }
        if is_given_up {
            break one.ends();
        }
        if stretch.is_own {
            // A handler that others do not have.
            one = Waiting { now: one.now + 1, has_jumped: false, ..one };
            continue;
        }
        if !stretch.irqs_off {
            one.handled_ns = one.handled_ns.or(Some(one.now));
            match stretch.at {
                At::User | At::Idle => break one.ends(),
                At::Kernel if preempts && !stretch.preempt_off => {
                    break one.ends();
                }
                _ => {}
            }
        }
        one = Waiting { now: one.now + 1, waited: one.waited + 1, has_jumped: false, ..one };
    };
    stays.into_iter().chain(back).min()
}

/// Where the loop of a function looks for the last time in the section that the stretch at `place` is in.
fn last_look(course: &Course, place: usize, function: u32) -> Option<u64> {
    let is_of_section =
        |s: &&Stretch| s.preempt_off && matches!(s.point, Point::None | Point::EndsEarly(_));
    let section = course.stretches[place + 1..].iter().take_while(is_of_section);
    let looks = section.filter(|s| s.point == Point::EndsEarly(function) && s.at != At::Urgent);
    looks.last().map(|s| s.from_ns)
}

fn stretches() -> impl Strategy<Value = Vec<(u64, Stretch)>> {
    let at = prop_oneof![6 => Just(At::Kernel), 1 => Just(At::User), 1 => Just(At::Idle), 1 => Just(At::Urgent)];
    let point = prop_oneof![
        6 => Just(Point::None), 1 => Just(Point::Asks), 1 => Just(Point::MightSleep),
        1 => Just(Point::Looks), 3 => (0_u32..2).prop_map(Point::EndsEarly),
        1 => Just(Point::Preempted), 1 => Just(Point::Resumed)
    ];
    let is_own = prop::bool::weighted(0.1);
    let one = (1_u64..12, any::<bool>(), any::<bool>(), at, 0_u32..3, point, any::<bool>(), is_own);
    let stretch =
        one.prop_map(|(length, irqs_off, preempt_off, at, task, point, counts, is_own)| {
            (length, Stretch { from_ns: 0, irqs_off, preempt_off, at, task, point, counts, is_own })
        });
    prop::collection::vec(stretch, 1..24)
}

fn course(parts: Vec<(u64, Stretch)>) -> Course {
    let mut course = Course { stretches: Vec::new(), end_ns: 100 };
    for (length, stretch) in parts {
        course.stretches.push(Stretch { from_ns: course.end_ns, ..stretch });
        course.end_ns += length;
    }
    course
}

fn some_cuts() -> impl Strategy<Value = Vec<Cut>> {
    let back = prop::option::weighted(0.3, 1_u64..60);
    let cut = (90_u64..300, any::<bool>(), any::<bool>(), back);
    let cut = cut.prop_map(|(at_ns, irqs, preempt, until_ns)| {
        let back_ns = until_ns.map(|until_ns| at_ns + until_ns);
        Cut { at_ns, irqs, preempt, back_ns }
    });
    prop::collection::vec(cut, 0..6).prop_map(|cuts| {
        let backs = cuts.iter().filter_map(|cut| cut.back_ns).map(Cut::back);
        let mut all: Vec<Cut> = backs.chain(cuts.iter().copied()).collect();
        all.sort_by_key(|cut| cut.at_ns);
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn waits_are_those_of_each_moment_by_itself(parts in stretches(), cuts in some_cuts()) {
        let course = course(parts);
        for name in ["none", "voluntary", "full"] {
            let rules = rules(name);
            let waits = waits(&course, &rules, &cuts);
            let mut end_ns = 100;
            for part in &waits {
                prop_assert_eq!(part.from_ns, end_ns, "no gap");
                end_ns = part.to_ns;
                for due_ns in part.from_ns..part.to_ns {
                    let want = oracle(&course, &rules, &cuts, due_ns);
                    prop_assert_eq!(part.at(due_ns), want, "{} at {}: {:?}", name, due_ns, waits);
                    let stretch = course.stretches.iter().rfind(|s| s.from_ns <= due_ns).unwrap();
                    prop_assert_eq!(part.counts, stretch.counts);
                }
            }
            prop_assert_eq!(end_ns, course.end_ns);
        }
    }

    /// Each stretch in two pieces, of which one may have no length, and joined again where nothing changes.
    #[test]
    fn stretches_that_are_joined_hold_up_as_before(parts in stretches(), cuts in some_cuts(), place in 0_u64..12) {
        let pieces = parts.into_iter().flat_map(|(length, stretch)| {
            let first = place.min(length);
            [(first, stretch), (length - first, Stretch { point: Point::None, ..stretch })]
        });
        let divided = course(pieces.collect());
        let mut joined = Course { stretches: Vec::new(), ..divided };
        for stretch in &divided.stretches {
            joined.stretches.extend((!joined.goes_on_in(stretch)).then_some(*stretch));
        }
        prop_assert!(joined.stretches.len() * 2 <= divided.stretches.len());
        for name in ["none", "voluntary", "full"] {
            let [joined, divided] = [&joined, &divided].map(|of| waits(of, &rules(name), &cuts));
            let at = |waits: &[Wait], due_ns: u64| {
                let part = waits.iter().find(|part| due_ns < part.to_ns)?;
                Some((part.at(due_ns), part.counts, part.is_own))
            };
            for due_ns in 100..300 {
                prop_assert_eq!(at(&joined, due_ns), at(&divided, due_ns), "{} at {}", name, due_ns);
            }
        }
    }

    /// More places at which the CPU can be given up make no wakeup later.
    #[test]
    fn rules_that_preempt_are_never_later(parts in stretches(), cuts in some_cuts()) {
        let mut course = course(parts);
        // Without what was preempted, for its time is left out where rules do not preempt.
        for stretch in &mut course.stretches {
            if stretch.point == Point::Preempted {
                stretch.point = Point::None;
            }
        }
        let longest = |rules: &Rules, cuts: &[Cut]| {
            let waits = waits(&course, rules, cuts);
            (100..course.end_ns).map(move |due| {
                let part = waits.iter().find(|part| due < part.to_ns).unwrap();
                part.at(due).map_or(u64::MAX, |wait| wait.ns)
            }).collect::<Vec<_>>()
        };
        let with_points = Rules { cond_resched_schedules: true, ..rules("full") };
        let none = longest(&rules("none"), &[]);
        let both = longest(&with_points, &[]);
        let cut = longest(&rules("none"), &cuts);
        prop_assert!(none.iter().zip(&both).all(|(none, both)| both <= none));
        prop_assert!(none.iter().zip(&cut).all(|(none, cut)| cut <= none));
    }
}

#[test]
fn a_section_holds_up_full_and_the_whole_call_holds_up_none() {
    let kernel = |from_ns, irqs_off, preempt_off, point| Stretch {
        from_ns,
        irqs_off,
        preempt_off,
        at: At::Kernel,
        task: 1,
        point,
        counts: true,
        is_own: false,
    };
    let user = |from_ns| Stretch { at: At::User, ..kernel(from_ns, false, false, Point::Looks) };
    // A system call with a lock that turns interrupts off, and a cond_resched after it.
    let course = Course {
        stretches: vec![
            user(0),
            kernel(100, false, false, Point::None),
            kernel(200, true, true, Point::None),
            kernel(500, false, true, Point::None),
            kernel(520, false, false, Point::None),
            kernel(700, false, false, Point::Asks),
            user(900),
        ],
        end_ns: 1_000,
    };
    let parts = |name: &str, cuts: &[Cut]| {
        let waits = waits(&course, &rules(name), cuts);
        waits.iter().map(|part| (part.from_ns, part.longest.unwrap().ns)).collect::<Vec<_>>()
    };
    assert_eq!(parts("full", &[]), [(0, 0), (200, 320), (520, 0)]);
    assert_eq!(parts("none", &[]), [(0, 0), (100, 600), (700, 200), (900, 0)]);
    let cut = [Cut { at_ns: 300, irqs: true, preempt: true, back_ns: None }];
    assert_eq!(parts("full", &cut), [(0, 0), (200, 100), (300, 220), (520, 0)]);
    // Interrupts alone are let in, and the switch waits all the same.
    let cut = [Cut { at_ns: 300, irqs: true, preempt: false, back_ns: None }];
    assert_eq!(parts("full", &cut), parts("full", &[]));
}

/// As in the kernel's loops over page tables: with a lock held, every 32 entries.
#[test]
fn a_loop_that_looks_by_itself_goes_the_way_out_that_it_went_at_its_end() {
    let locked = |from_ns, point| Stretch {
        from_ns,
        irqs_off: false,
        preempt_off: true,
        at: At::Kernel,
        task: 1,
        point,
        counts: true,
        is_own: false,
    };
    let free = |from_ns, point| Stretch { preempt_off: false, ..locked(from_ns, point) };
    let course = Course {
        stretches: vec![
            locked(0, Point::None),
            locked(100, Point::EndsEarly(7)),
            locked(200, Point::EndsEarly(7)),
            // Another loop, in between.
            locked(250, Point::EndsEarly(8)),
            locked(300, Point::EndsEarly(7)),
            // The rest of the loop, and the way out of the lock.
            free(350, Point::None),
            // The next lock has a way out of its own.
            locked(400, Point::EndsEarly(7)),
            free(420, Point::None),
            free(500, Point::Asks),
        ],
        end_ns: 501,
    };
    let wait = |name: &str, due_ns: u64| {
        let waits = waits(&course, &rules(name), &[]);
        waits.iter().find(|part| due_ns < part.to_ns).unwrap().at(due_ns).unwrap().ns
    };
    // From each look on it takes 50 ns, as from the last one; none asks only behind all.
    for (due, full, none) in [
        (10, 140, 290),
        (99, 51, 201),
        (150, 100, 250),
        (310, 40, 190),
        (350, 0, 150),
        (399, 0, 101),
    ] {
        assert_eq!([wait("full", due), wait("none", due)], [full, none], "due at {due}");
    }
    assert_eq!(wait("full", 400), 20);
}
