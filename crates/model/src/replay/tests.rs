use proptest::prelude::*;

use super::*;

fn rules(name: &str) -> Rules {
    Rules::named(name).unwrap()
}

/// How long one waits that is due at `due_ns`: forwards, a nanosecond at a time.
fn oracle(course: &Course, rules: &Rules, cuts: &[Cut], due_ns: u64) -> Option<u64> {
    let preempts = rules.name != "none" && rules.name != "voluntary";
    let of = |now: u64| course.stretches.iter().rposition(|stretch| stretch.from_ns <= now);
    let (mut now, mut waited, mut is_handled, mut has_jumped) = (due_ns, 0, false, false);
    loop {
        if now >= course.end_ns {
            return None;
        }
        let place = of(now)?;
        let stretch = course.stretches[place];
        let has_arrived = now > due_ns || has_jumped;
        let can_ask = !stretch.preempt_off && stretch.at != At::Urgent;
        if has_arrived && now == stretch.from_ns && !has_jumped && is_handled {
            match stretch.point {
                Point::Asks if can_ask && !preempts => return Some(waited),
                Point::MightSleep if can_ask && rules.name == "voluntary" => return Some(waited),
                Point::Looks | Point::Resumed if stretch.at != At::Urgent => return Some(waited),
                Point::Preempted if preempts => return Some(waited),
                Point::Preempted => {
                    let mut later = course.stretches[place + 1..].iter();
                    let is_own = |s: &&Stretch| s.point == Point::Resumed && s.task == stretch.task;
                    now = later.find(is_own)?.from_ns;
                    has_jumped = true;
                    continue;
                }
                _ => {}
            }
        }
        for cut in cuts.iter().filter(|cut| cut.at_ns == now && has_arrived) {
            let interrupts = !stretch.irqs_off || cut.irqs;
            if stretch.at != At::Urgent && interrupts {
                is_handled = true;
                if !stretch.preempt_off || cut.preempt {
                    return Some(waited);
                }
            }
        }
        if !stretch.irqs_off {
            is_handled = true;
            match stretch.at {
                At::User | At::Idle => return Some(waited),
                At::Kernel if preempts && !stretch.preempt_off => return Some(waited),
                _ => {}
            }
        }
        (now, waited, has_jumped) = (now + 1, waited + 1, false);
    }
}

fn stretches() -> impl Strategy<Value = Vec<(u64, Stretch)>> {
    let at = prop_oneof![6 => Just(At::Kernel), 1 => Just(At::User), 1 => Just(At::Idle), 1 => Just(At::Urgent)];
    let point = prop_oneof![
        6 => Just(Point::None), 1 => Just(Point::Asks), 1 => Just(Point::MightSleep),
        1 => Just(Point::Looks),
        1 => Just(Point::Preempted), 1 => Just(Point::Resumed)
    ];
    let one = (1_u64..12, any::<bool>(), any::<bool>(), at, 0_u32..3, point, any::<bool>());
    let stretch = one.prop_map(|(length, irqs_off, preempt_off, at, task, point, counts)| {
        (length, Stretch { from_ns: 0, irqs_off, preempt_off, at, task, point, counts })
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
    let cut = (90_u64..300, any::<bool>(), any::<bool>());
    let cut = cut.prop_map(|(at_ns, irqs, preempt)| Cut { at_ns, irqs, preempt });
    prop::collection::vec(cut, 0..6).prop_map(|mut cuts| {
        cuts.sort_unstable_by_key(|cut| cut.at_ns);
        cuts
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
                part.at(due).unwrap_or(u64::MAX)
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
        waits.iter().map(|part| (part.from_ns, part.longest_ns.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(parts("full", &[]), [(0, 0), (200, 320), (520, 0)]);
    assert_eq!(parts("none", &[]), [(0, 0), (100, 600), (700, 200), (900, 0)]);
    let cut = [Cut { at_ns: 300, irqs: true, preempt: true }];
    assert_eq!(parts("full", &cut), [(0, 0), (200, 100), (300, 220), (520, 0)]);
    // Interrupts alone are let in, and the switch waits all the same.
    let cut = [Cut { at_ns: 300, irqs: true, preempt: false }];
    assert_eq!(parts("full", &cut), parts("full", &[]));
}
