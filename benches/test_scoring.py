"""Tests of the arithmetic behind the score."""

import unittest

import scoring
from pauses import Pause


def share(cause, ns, culprit=None, **more):
    return {"cause": cause, "ns": ns, "culprit": culprit or {"kind": "none"}, **more}


def named(kind, name):
    return {"kind": kind, "name": name}


def task(comm, pid, priority):
    return {"kind": "task", "comm": comm, "pid": pid, "policy": "fifo", "priority": priority}


def episode(expiry_ns, *blame, cpu=0):
    shares = list(blame)
    late = sum(share["ns"] for share in shares) or 300_000
    return {"cpu": cpu, "expiry_ns": expiry_ns, "wakeup_latency_ns": late, "blame": shares}


def run(*worst):
    return {"origin_ns": 1_000_000, "plan": {"interval_ns": 1_000_000}, "explanation": {"above_ns": 100_000}, "worst": list(worst)}


FIFO = share("higher_priority_task", 200_000, task("disturb-fifo", 7, 95))
HYPERVISOR = {"kind": "hypervisor"}


class Bursts(unittest.TestCase):
    def test_a_wakeup_belongs_to_the_burst_that_it_falls_into(self):
        log = scoring.bursts("1 500000 800000\n0 100000 400000\n1 90000 95000\n")
        self.assertEqual(log, {0: [(100_000, 400_000)], 1: [(90_000, 95_000), (500_000, 800_000)]})
        for moment, want in [(89_999, None), (90_000, 0), (399_999, 0), (400_000, None)]:
            found = scoring.burst_at(log[0], moment)
            self.assertEqual(found, None if want is None else log[0][want], moment)
        self.assertEqual(scoring.burst_at([], 5), None)


    def test_what_is_told_late_is_told_later_by_the_usual_way_back(self):
        late = [episode(at, FIFO) for at in (0, 500_000, 900_000)]
        # The third one's took 2 µs longer, and so did the way from its response.
        for each, ns in zip(late, (3_000, 3_000, 5_000)):
            each["components"] = {"sched_duration_ns": ns}
        ends = [response + back for response, back in zip((1_200_000, 1_700_000, 2_100_000), (8_000, 700, 10_000))]
        injected = [(e, (1_000_000, end)) for e, end in zip(late, ends)]
        self.assertEqual(scoring.way_back_ns(run(), "syscall", injected), 8_000 + 3_000)
        self.assertEqual(scoring.way_back_ns(run(), "fifo", injected), 0)
        # Without the component, from the probe on; and one that told before it was over tells nothing.
        for each in late:
            del each["components"]
        self.assertEqual(scoring.way_back_ns(run(), "syscall", injected), 8_000)
        self.assertEqual(scoring.way_back_ns(run(), "syscall", [(late[0], (0, 5))]), 0)


class Tallies(unittest.TestCase):
    def test_the_culprit_must_be_the_disturbance(self):
        other = share("higher_priority_task", 200_000, task("disturb-fifo2", 7, 95))
        result = scoring.tally(run(episode(1, FIFO), episode(2, other)), "fifo", 200_000)
        self.assertEqual((result.injected, result.right, result.named), (2, 2, 1))

    def test_first_blames_are_named(self):
        for blame, want in [
            (FIFO, "higher_priority_task disturb-fifo"),
            (share("irq", 5, phase="delivery"), "irq delivery"),
            (share("scheduler", 5, phase="return_from_interrupt"), "scheduler return from interrupt"),
            (share("steal", 5, HYPERVISOR), "steal"),
        ]:
            self.assertEqual(scoring.name_of(blame), want)

    def test_only_injected_wakeups_count(self):
        log = {0: [(1_100_000, 1_400_000)]}
        other = episode(900_000, share("irq_off", 150_000, named("function", "f")))
        short = episode(100_000, share("scheduler", 50_000, phase="switch"))
        result = scoring.tally(run(episode(200_000, FIFO), other, short), "fifo", 300_000, log)
        self.assertEqual((result.injected, result.others, result.right, result.named), (1, 1, 1, 1))
        # It was due 100 µs after the burst's begin.
        self.assertEqual(result.errors_ns, [0])

    def test_a_disturbance_that_was_held_up_itself_does_not_count(self):
        begins = [1_100_000 + 1_000_000 * k for k in range(5)]
        for longer, counted in [(150_000, 5), (150_001, 4)]:
            log = {0: [(begin, begin + 300_000) for begin in begins[:4]] + [(begins[4], begins[4] + 300_000 + longer)]}
            late = [episode(begin - 1_000_000, FIFO) for begin in begins]
            result = scoring.tally(run(*late), "fifo", 300_000, log)
            self.assertEqual((result.injected, result.left_out), (counted, 5 - counted), longer)

    def test_interrupts_are_part_of_what_was_injected(self):
        log = {0: [(1_100_000, 1_400_000)]}
        # Back 10 µs after the probe: of the 300 µs that its clock says, 190 were left when it was due.
        call = share("no_preemption_point", 183_000, named("function", "do_sys_poll"))
        late = episode(200_000, call, share("irq", 7_000, named("interrupt", "local_timer")))
        result = scoring.tally(run(late), "syscall", 300_000, log)
        self.assertEqual((result.injected, result.right, result.errors_ns), (1, 1, [0]))

    def test_a_section_that_nothing_interrupts_is_compared_by_itself(self):
        log = {0: [(1_100_000, 1_400_000)]}
        section = share("irq", 200_000, named("timer", "wakescope_inject_hrtimer"))
        late = episode(200_000, section, share("irq", 7_000, named("timer", "hrtimer_wakeup")))
        result = scoring.tally(run(late), "hrtimer", 300_000, log)
        self.assertEqual((result.injected, result.right, result.named, result.errors_ns), (1, 1, 1, [0]))

    def test_a_wakeup_that_was_due_before_a_section_is_left_out(self):
        log = {0: [(1_100_000, 1_400_000)]}
        at = lambda expiry_ns, ns: episode(expiry_ns, share("irq_off", ns, named("function", "wakescope_inject_irqs_off")))
        # Just before it, inside, after it, and one that was over when it began.
        late = [at(99_000, 301_000), at(100_000, 300_000), at(400_000, 200_000), at(0, 100_000)]
        result = scoring.tally(run(*late), "irqs-off", 300_000, log)
        self.assertEqual((result.injected, result.left_out, result.others), (1, 1, 2))
        # Of the one just before it, 1 µs is too much: both edges of the section are known.
        self.assertEqual((result.errors_ns, result.whole_errors_ns), ([0], [1_000]))

    def test_interrupts_in_the_middle_of_a_whole_section_are_part_of_it(self):
        # 7.2 for arm64, in whole µs: due 1 µs before it, with its own interrupt and the watchdog's in it, of
        # which 3 µs are the tracer's. Outside of interrupts it took 2 µs; after the section there was one more.
        log = {0: [(1_100_000, 1_400_000)]}
        named_so = named("function", "wakescope_inject_preempt_off")
        late = episode(99_000, share("preempt_off", 283_000, named_so), share("scheduler", 20_000))
        late["components"] = {"irq_latency_ns": 2_000}
        step = lambda at_us, kind, **more: {"at_ns": at_us * 1_000, "event": {"kind": kind, **more}}
        late["timeline"] = [
            step(2, "interrupt"),
            step(7, "interrupt_exit"),
            step(75, "interrupt"),
            step(76, "interrupt"),
            step(78, "interrupt_exit"),
            step(80, "tracer", ns=3_000),
            step(81, "interrupt_exit"),
            step(90, "tracer", ns=2_000),
            step(300, "interrupt"),
            step(304, "interrupt_exit"),
        ]
        errors = lambda: scoring.tally(run(late), "preempt-off", 300_000, log, "full").whole_errors_ns
        # 1 µs of the wait, 5, 6, 2, and 1 of the last one were in the section.
        self.assertEqual(errors(), [283_000 + 15_000 - 300_000])
        late["timeline"][3] = step(78, "left_out", count=3)
        self.assertEqual(errors(), [])

    def test_errors_of_edges_are_shown_from_the_least_to_the_largest(self):
        result = scoring.Tally("irqs-off", 300_000, made=40, errors_ns=[-100, 2_300, 40], whole_errors_ns=[1_000])
        shown = scoring.beside_sections("here", result)
        self.assertIn("; lengths off by -0.1 to +2.3 µs; from begin to end off by +1.0 to +1.0 µs (1 wakeup)", shown)
        result = scoring.Tally("irqs-off", 300_000, made=40)
        self.assertTrue(scoring.beside_sections("here", result).endswith("40 sections; wakeups as late outside of them: 0"))

    def test_a_function_is_named_that_the_section_calls(self):
        frames = [{"function": "ktime_get"}, {"function": "wakescope_inject_loop"}]
        inside = share("no_preemption_point", 9, named("function", "ktime_get"), frames=frames)
        other = share("no_preemption_point", 9, named("function", "ktime_get"), frames=frames[:1])
        culprit = scoring.CAUSES["loop"][1]
        self.assertEqual([scoring.is_named(share, culprit) for share in (inside, other)], [True, False])

    def test_what_a_section_is_blamed_as_depends_on_the_model(self):
        log = {0: [(1_100_000, 1_400_000)]}
        for kind, model, cause, right in [
            ("preempt-off", "none", "no_preemption_point", True),
            ("preempt-off", "none", "preempt_off", False),
            ("preempt-off", "full", "no_preemption_point", False),
            ("preempt-off", "full", "preempt_off", True),
            ("preempt-off", "rt", "preempt_off", True),
            ("spin-lock", "voluntary", "no_preemption_point", True),
            ("spin-lock", "lazy", "preempt_off", True),
            ("raw-spin-lock", "none", "no_preemption_point", True),
            ("bh-off", "none", "no_preemption_point", True),
            ("irqs-off", "none", "irq_off", True),
            ("irqs-off", "none", "no_preemption_point", False),
            ("tasklet", "none", "softirq", True),
        ]:
            culprit = scoring.CAUSES[kind][1]
            frames = [{"function": culprit["name"]}]
            late = episode(200_000, share(cause, 200_000, culprit, frames=frames))
            result = scoring.tally(run(late), kind, 300_000, log, model)
            told = (result.right, result.named, result.error_ns() == 0)
            self.assertEqual(told, (right, right, right), (kind, model, cause))

    def test_sections_hold_up_whom_they_must_and_nobody_else(self):
        self.assertTrue(scoring.holds_up("irqs-off", "rt") and scoring.holds_up("loop", "none"))
        self.assertFalse(scoring.holds_up("spin-lock", "rt") or scoring.holds_up("loop", "full"))

    def test_readers_of_rcu_turn_preemption_off_without_preemptible_rcu(self):
        for model, arch, holds, cause in [
            ("lazy", "amd64", False, "no_preemption_point"),
            ("lazy", "arm64", True, "preempt_off"),
            ("rt", "arm64", False, "no_preemption_point"),
            ("voluntary", "arm64", True, "no_preemption_point"),
        ]:
            self.assertEqual(scoring.holds_up("rcu-read", model, arch), holds, (model, arch))
            self.assertEqual(scoring.expected_blame("rcu-read", model, arch)[0], cause, (model, arch))
        self.assertFalse(scoring.holds_up("loop", "lazy", "arm64"))

    def test_sections_with_an_nmi_are_known(self):
        self.assertEqual(scoring.NEED_NMI, {"nmi", "nested-preempt-off-nmi", "nested-irqs-off-nmi"})
        for harmful, injected, want in [
            (True, 1, "met"),
            (True, 0, "**missed**: held nobody up"),
            (False, 0, "met: held nobody up"),
            (False, 1, "**missed**: held wakeups up"),
        ]:
            result = scoring.Tally("irqs-off", 300_000, injected, right=injected, largest_ns=300_000, made=9, harmful=harmful)
            self.assertEqual(scoring.row("here", result)[-1], want)

    def test_stacks_taken_at_the_switch_are_no_part_of_what_was_injected(self):
        log = {0: [(1_100_000, 1_400_000)]}
        late = episode(200_000, FIFO, share("tracer", 35_000, {"kind": "tracer"}), share("scheduler", 4_000, phase="switch"))
        late["components"] = {"sched_duration_ns": 34_000}
        result = scoring.tally(run(late), "fifo", 300_000, log)
        # 5 µs of the tracer's were in the interrupt, while it span.
        self.assertEqual(result.errors_ns, [5_000])

    def test_without_a_log_the_largest_is_held_against_the_length(self):
        smaller = share("higher_priority_task", 150_000, task("disturb-fifo", 7, 95))
        result = scoring.tally(run(episode(1, FIFO), episode(2, smaller)), "fifo", 205_000)
        self.assertEqual((result.injected, result.error_ns()), (2, -5_000))
        self.assertTrue(result.is_near() and result.is_right())

    def test_wrong_blames_and_none_are_told(self):
        wrong = episode(1, share("preempt_off", 150_000, named("function", "fput")), share("unexplained", 50_000))
        result = scoring.tally(run(wrong, episode(2)), "syscall", 200_000)
        self.assertEqual((result.injected, result.right, result.unexplained), (2, 0, 1))
        self.assertFalse(result.is_right() or result.is_near())
        row = dict(zip(scoring.HEAD, scoring.row("here", result)))
        self.assertEqual((row["first blame right"], row["unexplained"]), ("0.0 %", "25.0 %"))
        self.assertIn("missed", row["aim"])
        said = scoring.wrong_blames("here", result)
        self.assertIn("1 × preempt_off fput", said[0])
        self.assertIn("not explained", said[1])

    def test_lengths_that_nobody_knows_are_not_judged(self):
        result = scoring.tally(run(episode(1, share("throttled", 5_400_000, task("wakescope", 400, 90)))), "throttle", 3_000_000)
        self.assertEqual(scoring.row("here", result)[5:], ["100.0 %", "100.0 %", "–", "0.0 %", "met"])

    def test_nothing_injected_is_no_success(self):
        result = scoring.tally(run(), "syscall", 200_000)
        self.assertEqual(scoring.row("here", result)[3:], ["0", "–", "–", "–", "–", "–", "–"])

    def test_wakeups_that_too_little_was_left_for_are_counted_apart(self):
        # Due when 150 of 300 µs were left, when 149 were, and without a disturbance.
        log = {0: [(1_100_000, 1_400_000), (2_100_000, 2_400_000)]}
        late = [episode(at, FIFO) for at in (250_000, 1_251_000, 5_000_000)]
        result = scoring.tally(run(*late), "fifo", 300_000, log)
        self.assertEqual((result.injected, result.left_out, result.others), (1, 1, 1))
        self.assertEqual(scoring.row("here", result)[3:5], ["1", "1"])
        # Nobody knows it without a log, and it is not 0.
        self.assertEqual(scoring.row("here", scoring.tally(run(*late), "fifo", 300_000))[3:5], ["3", "–"])
        nothing = scoring.tally(run(), "fifo", 300_000, log)
        self.assertEqual(scoring.row("here", nothing)[3:5], ["0", "0"])


class Pauses(unittest.TestCase):
    def test_late_wakeups_are_counted_by_what_they_have_to_do_with_pauses(self):
        ms = 1_000_000
        # This machine's clock is 7 s ahead. The third pause made nobody late, the last is not certain.
        began = [100, 350, 500, 720, 1_010, 1_200]
        pauses = [Pause(7_000 * ms + at * ms, 7_020 * ms + at * ms, ms // 10) for at in began]
        pauses[-1] = Pause(pauses[-1].begin_ns, pauses[-1].end_ns, 5 * ms)
        late = [paused_episode(at, share("steal", 19 * ms, HYPERVISOR), share("scheduler", ms, phase="switch")) for at in (100, 350, 720, 1_200)]
        late.append(paused_episode(1_010, share("idle_exit", 20 * ms, named("idle", "state 1"))))
        late.append(paused_episode(900, share("steal", 12 * ms, HYPERVISOR)))
        made = {**run(*late), "explanation": {"above_ns": 10 * ms}}
        result = scoring.tally_of_pauses(made, pauses, 20 * ms)
        self.assertEqual((result.pauses, result.harmless, result.unsure, result.others), (5, 1, 1, 1))
        self.assertEqual((result.injected, result.right, result.named), (4, 3, 3))
        # Due 1 ms after the pause's begin, of which nothing was missed.
        self.assertEqual(result.error_ns(), 0)
        self.assertIn("1 × idle_exit state 1", scoring.wrong_blames("here", result)[0])
        said = scoring.beside_pauses("here", result)
        self.assertIn("5 pauses, of which 1 made no wakeup late", said)

    def test_clocks_that_do_not_fit_give_no_figures(self):
        self.assertIsNone(scoring.tally_of_pauses({**run(), "explanation": {"above_ns": 5}}, [Pause(1, 2)], 1))


def paused_episode(at_ms, *blame):
    """Due 1 ms after a moment by the guest's clock; the interrupt came 20 ms after that moment."""
    made = episode(at_ms * 1_000_000, *blame)
    made["components"] = {"irq_latency_ns": 19_000_000}
    return made


class Idle(unittest.TestCase):
    def test_only_a_state_in_use_that_takes_long_to_leave_is_deep(self):
        poll, shallow, deep = ("POLL", 0, False), ("C1", 2_000, False), ("C6", 133_000, False)
        self.assertIsNone(scoring.deepest([]))
        self.assertIsNone(scoring.deepest([poll, shallow, ("C6", 133_000, True)]))
        self.assertEqual(scoring.deepest([poll, shallow, deep]), 133_000)
        self.assertIn("tells of no idle states", scoring.without_deep([]))
        self.assertIn("POLL 0 µs, C1 2 µs, C6 133 µs off", scoring.without_deep([poll, shallow, ("C6", 133_000, True)]))


if __name__ == "__main__":
    unittest.main()
