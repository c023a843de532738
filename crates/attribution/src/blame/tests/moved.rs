//! Which cases of these tests bound which threshold of the rules.
//!
//! Each threshold is moved by 30 %, and all cases run again, in a process of their own: those that fail are
//! what proves it. The others would pass with any value near by.

use crate::tuning::Tuning;
use crate::tuning::tests::{documented, moved, thresholds};
use expect_test::expect;
use wakescope_testing::{change, failing_with};

/// What cases run with.
pub(super) fn tuning() -> Tuning {
    change().map_or_else(Tuning::default, |text| moved(&text))
}

/// The cases that fail with a threshold moved to so many percent of what it is.
fn flipped(name: &str, percent: u64) -> Vec<String> {
    // Random ones check what holds with any threshold.
    let others = ["blame::tests::random", "blame::tests::moved"];
    failing_with(&format!("{name}={percent}"), "blame::tests::", &others)
}

/// The page for users says whether a change of a threshold is `shown`.
#[track_caller]
fn check_documentation(name: &str, shown: &[bool]) {
    let words: Vec<&str> = shown.iter().map(|&is| if is { "shown" } else { "not shown" }).collect();
    assert_eq!(documented(name)[3..5], words, "docs/explain.md, {name}");
}

#[test]
fn moved_thresholds_change_the_cases_that_prove_them() {
    assert_eq!(flipped("tick_ns", 100), [""; 0], "nothing was moved");
    let mut all = String::new();
    for (name, _) in thresholds() {
        let mut shown = Vec::new();
        for percent in [70, 130] {
            let cases = flipped(name, percent);
            shown.push(!cases.is_empty());
            let cases = if cases.is_empty() { vec!["nothing".into()] } else { cases };
            all.push_str(&format!("{name} {percent} %\n  {}\n", cases.join("\n  ")));
        }
        check_documentation(name, &shown);
    }
    expect![[r#"
        return_path_ns 70 %
          a_softirq_that_was_interrupted_goes_on_to_its_end
          a_waker_goes_on_or_is_in_an_interrupt
          disturbed::another_interrupt_takes_its_time_to_arrive_too
          disturbed::stolen_time_is_taken_from_where_it_fits
          disturbed::the_tracers_own_time_is_nobody_elses
          full_preemption_leaves_the_way_back_only
          guests::a_guest_that_does_not_leave_what_must_be_left_at_once_was_not_run
          guests::a_guest_that_stalls_on_the_way_to_the_task_was_not_run
          guests::a_timer_that_was_not_there_yet_was_kept_out_by_nobody
          remote::a_call_for_another_task_is_not_waited_for
          remote::a_real_time_task_that_is_moved_is_not_throttled_by_that
          softirqs::a_softirq_that_another_one_follows_has_ended
          softirqs::a_softirq_that_began_before_the_interrupt_is_the_one_that_was_interrupted
          softirqs::a_wakers_softirq_ends_and_the_waker_goes_on
          softirqs::what_a_softirq_broke_into_goes_on_after_it
          softirqs::what_a_softirq_broke_into_had_preemption_off_if_it_goes_on
          softirqs::what_a_softirq_broke_into_is_not_blamed_for_the_end_of_softirqs
          switched::a_cpu_that_was_not_told_yet_chooses_whom_it_likes
          switched::the_scheduler_that_has_just_switched_has_preemption_off_itself
          switched::the_task_that_ran_before_its_time_need_not_have_got_far
          switched::the_way_back_is_counted_once
          way_out::a_section_held_up_only_what_is_beyond_the_way_to_the_scheduler
          way_out::without_the_schedulers_entry_the_way_goes_on_to_the_task
          what_every_wakeup_takes_holds_nobody_up
        return_path_ns 130 %
          a_softirq_that_was_interrupted_goes_on_to_its_end
          a_waker_goes_on_or_is_in_an_interrupt
          disturbed::another_interrupt_takes_its_time_to_arrive_too
          disturbed::stolen_time_is_taken_from_where_it_fits
          disturbed::the_tracers_own_time_is_nobody_elses
          full_preemption_leaves_the_way_back_only
          guests::a_guest_that_does_not_leave_what_must_be_left_at_once_was_not_run
          guests::a_guest_that_stalls_on_the_way_to_the_task_was_not_run
          guests::a_timer_that_was_not_there_yet_was_kept_out_by_nobody
          remote::a_call_for_another_task_is_not_waited_for
          remote::a_real_time_task_that_is_moved_is_not_throttled_by_that
          softirqs::a_softirq_that_another_one_follows_has_ended
          softirqs::a_softirq_that_began_before_the_interrupt_is_the_one_that_was_interrupted
          softirqs::a_wakers_softirq_ends_and_the_waker_goes_on
          softirqs::what_a_softirq_broke_into_goes_on_after_it
          softirqs::what_a_softirq_broke_into_had_preemption_off_if_it_goes_on
          switched::a_cpu_that_was_not_told_yet_chooses_whom_it_likes
          switched::the_scheduler_that_has_just_switched_has_preemption_off_itself
          switched::the_task_that_ran_before_its_time_need_not_have_got_far
          switched::the_way_back_is_counted_once
          way_out::a_section_held_up_only_what_is_beyond_the_way_to_the_scheduler
          way_out::without_the_schedulers_entry_the_way_goes_on_to_the_task
          what_every_wakeup_takes_holds_nobody_up
        next_softirq_ns 70 %
          softirqs::softirqs_have_what_lies_between_them
        next_softirq_ns 130 %
          softirqs::softirqs_have_what_lies_between_them
        to_ksoftirqd_ns 70 %
          softirqs::softirqs_have_the_time_in_which_their_thread_is_made_ready
          softirqs::what_a_softirq_broke_into_is_not_blamed_for_the_end_of_softirqs
        to_ksoftirqd_ns 130 %
          softirqs::softirqs_have_the_time_in_which_their_thread_is_made_ready
          softirqs::what_a_softirq_broke_into_is_not_blamed_for_the_end_of_softirqs
        way_out_percent 70 %
          softirqs::what_a_softirq_broke_into_is_not_blamed_for_the_end_of_softirqs
          way_out::a_section_held_up_only_what_is_beyond_the_way_to_the_scheduler
          way_out::code_without_a_preemption_point_is_left_by_the_same_way
        way_out_percent 130 %
          softirqs::what_a_softirq_broke_into_is_not_blamed_for_the_end_of_softirqs
          way_out::a_section_held_up_only_what_is_beyond_the_way_to_the_scheduler
          way_out::code_without_a_preemption_point_is_left_by_the_same_way
        slow_way_ns 70 %
          guests::a_guest_that_does_not_leave_what_must_be_left_at_once_was_not_run
          guests::a_guest_that_is_awake_and_does_not_go_on_was_not_run
          guests::a_guest_that_stalls_on_the_way_to_the_task_was_not_run
        slow_way_ns 130 %
          guests::a_guest_that_does_not_leave_what_must_be_left_at_once_was_not_run
          guests::a_guest_that_is_awake_and_does_not_go_on_was_not_run
          guests::a_guest_that_stalls_on_the_way_to_the_task_was_not_run
        slow_handler_ns 70 %
          guests::a_guest_stood_still_if_its_timers_interrupt_is_long_but_for_timers
        slow_handler_ns 130 %
          guests::a_guest_stood_still_if_its_timers_interrupt_is_long_but_for_timers
        slow_to_wake_ns 70 %
          guests::a_guest_that_sleeps_longer_than_ever_was_not_run
        slow_to_wake_ns 130 %
          guests::a_guest_that_sleeps_longer_than_ever_was_not_run
        slow_to_wake_percent 70 %
          guests::a_guest_that_sleeps_longer_than_ever_was_not_run
        slow_to_wake_percent 130 %
          guests::a_guest_that_sleeps_longer_than_ever_was_not_run
        slow_probe_ns 70 %
          guests::a_guest_whose_probe_takes_long_to_sleep_was_not_run
        slow_probe_ns 130 %
          guests::a_guest_whose_probe_takes_long_to_sleep_was_not_run
        long_function_ns 70 %
          guests::a_guest_stood_still_if_its_timers_interrupt_is_long_but_for_timers
        long_function_ns 130 %
          nothing
        long_short_way_ns 70 %
          guests::a_short_way_with_interrupts_off_that_seems_long_stood_still
        long_short_way_ns 130 %
          guests::a_short_way_with_interrupts_off_that_seems_long_stood_still
        long_tracer_ns 70 %
          guests::a_tracer_that_takes_longer_than_a_stack_does_stood_still
        long_tracer_ns 130 %
          nothing
        tickless_ns 70 %
          nothing
        tickless_ns 130 %
          nothing
        tick_ns 70 %
          guests::what_runs_for_long_without_a_tick_stood_still
        tick_ns 130 %
          guests::what_runs_for_long_without_a_tick_stood_still
        scheduling_percent 70 %
          guests::a_guest_that_stalls_on_the_way_to_the_task_was_not_run
          what_every_wakeup_takes_holds_nobody_up
        scheduling_percent 130 %
          guests::a_guest_that_stalls_on_the_way_to_the_task_was_not_run
          what_every_wakeup_takes_holds_nobody_up
        delivery_percent 70 %
          remote::a_call_is_a_bound_beyond_what_an_interrupt_takes_to_arrive
        delivery_percent 130 %
          remote::a_call_is_a_bound_beyond_what_an_interrupt_takes_to_arrive
    "#]]
    .assert_eq(&all);
}
