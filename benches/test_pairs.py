"""Tests of which of two sections a wakeup waits for."""

import unittest

import pairs
import scoring


def us(*sections):
    return [(kind, begin * 1_000, end * 1_000) for kind, begin, end in sections]


def waits(sections, due_us):
    return [(kind, delivered, ns // 1_000) for kind, delivered, ns in pairs.waited(us(*sections), due_us * 1_000)]


class Waited(unittest.TestCase):
    def test_a_nested_section_with_interrupts_off_holds_up_only_whose_interrupt_it_keeps_out(self):
        nested = [("preempt-off", 0, 300), ("irqs-off", 75, 225)]
        self.assertEqual(waits(nested, 100), [("irqs-off", False, 125), ("preempt-off", True, 75)])
        # The interrupt came before; the wakeup then waits for the end of the outer section.
        self.assertEqual(waits(nested, 50), [("preempt-off", True, 25), ("preempt-off", True, 150), ("preempt-off", True, 75)])
        self.assertEqual(waits(nested, 250), [("preempt-off", True, 50)])

    def test_an_interrupt_has_its_own_time(self):
        for on_top in ("irq-work", "nmi"):
            nested = [("preempt-off", 0, 300), (on_top, 75, 225)]
            self.assertEqual(waits(nested, 50), [("preempt-off", True, 25), (on_top, True, 150), ("preempt-off", True, 75)])
            self.assertEqual(waits(nested, 100), [(on_top, False, 125), ("preempt-off", True, 75)])
        nested = [("irqs-off", 0, 300), ("nmi", 75, 225)]
        self.assertEqual(waits(nested, 50), [("irqs-off", False, 25), ("nmi", False, 150), ("irqs-off", False, 75)])

    def test_of_overlapping_sections_the_one_that_the_wakeup_still_waits_for_holds_it_up(self):
        overlapping = [("irqs-off", 0, 200), ("preempt-off", 100, 300)]
        self.assertEqual(waits(overlapping, 50), [("irqs-off", False, 50), ("irqs-off", False, 100), ("preempt-off", True, 100)])
        overlapping = [("preempt-off", 0, 200), ("irqs-off", 100, 300)]
        self.assertEqual(waits(overlapping, 50), [("preempt-off", True, 50), ("preempt-off", True, 100), ("irqs-off", True, 100)])
        self.assertEqual(waits(overlapping, 150), [("irqs-off", False, 50), ("irqs-off", False, 100)])

    def test_a_successor_holds_up_who_did_not_run_in_between(self):
        first = ("irqs-off", 0, 150)
        self.assertEqual(waits([first, ("preempt-off", 151, 301)], 100), [("irqs-off", False, 50), ("preempt-off", True, 150)])
        self.assertEqual(waits([first, ("preempt-off", 210, 360)], 100), [("irqs-off", False, 50)])


class Expected(unittest.TestCase):
    def expect(self, name, sections, due_us, model):
        found = pairs.expected(pairs.PAIRS[name], us(*sections), due_us * 1_000, model)
        return found and (found.cause, found.culprit["name"], found.ns // 1_000, found.total_ns // 1_000)

    def test_the_longest_cause_comes_first(self):
        name, sections = "nested-preempt-off-irqs-off", [("preempt-off", 0, 300), ("irqs-off", 75, 225)]
        function = "wakescope_inject_nested"
        self.assertEqual(self.expect(name, sections, 100, "full"), ("irq_off", function, 125, 200))
        self.assertEqual(self.expect(name, sections, 50, "full"), ("preempt_off", function, 250, 250))
        self.assertEqual(self.expect(name, sections, 50, "none"), ("no_preemption_point", function, 250, 250))
        # Both are equally long.
        self.assertEqual(self.expect(name, sections, 146, "full"), None)
        sections = [("preempt-off", 0, 300), ("nmi", 75, 225)]
        self.assertEqual(self.expect("nested-preempt-off-nmi", sections, 80, "rt"), ("nmi", "wakescope_inject_nmi", 145, 220))

    def test_models_that_preempt_no_kernel_code_wait_for_its_end(self):
        name, sections = "back-to-back-preempt-off-irqs-off", [("preempt-off", 0, 150), ("irqs-off", 151, 301)]
        found = self.expect(name, sections, 50, "none")
        self.assertEqual(found, ("no_preemption_point", "wakescope_inject_back_to_back", 250, 250))


class Tally(unittest.TestCase):
    def tally(self, *shares, due_ns=100_000, model="full"):
        late = {"cpu": 0, "expiry_ns": due_ns, "wakeup_latency_ns": sum(ns for _cause, ns, _culprit in shares)}
        frames = [{"function": "wakescope_inject_nested"}]
        late["blame"] = [{"cause": cause, "ns": ns, "culprit": culprit, "frames": frames} for cause, ns, culprit in shares]
        run = {"origin_ns": 0, "explanation": {"above_ns": 100_000}, "worst": [late]}
        log = scoring.bursts("0 0 300000 9 9\n0 75000 225000 9 9\n")
        return scoring.tally(run, "nested-preempt-off-irqs-off", 300_000, log, model)

    def test_the_length_is_that_of_the_longest_cause(self):
        function = {"kind": "function", "name": "wakescope_inject_nested"}
        timer = {"kind": "timer", "name": "hrtimer_wakeup"}
        result = self.tally(("irq_off", 126_000, function), ("preempt_off", 70_000, function), ("irq", 5_000, timer))
        self.assertEqual((result.injected, result.right, result.named, result.errors_ns), (1, 1, 1, [1_000]))
        # Of the wait for preemption the interrupt is a part.
        result = self.tally(("preempt_off", 245_000, function), ("irq", 5_000, timer), due_ns=50_000)
        self.assertEqual((result.right, result.errors_ns), (1, [0]))
        result = self.tally(("preempt_off", 200_000, function))
        self.assertEqual((result.injected, result.right, result.wrong), (1, 0, {"preempt_off wakescope_inject_nested": 1}))

    def test_wakeups_outside_of_pairs_and_before_them_do_not_count(self):
        other = ("irq_off", 120_000, {"kind": "none"})
        self.assertEqual(self.tally(other, due_ns=400_000).others, 1)
        self.assertEqual(self.tally(other, due_ns=290_000).left_out, 1)
        # A quarter of the length is enough.
        self.assertEqual(self.tally(other, due_ns=224_000).injected, 1)


if __name__ == "__main__":
    unittest.main()
