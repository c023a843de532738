"""Tests of the reader of rtla's analyses."""

import unittest

import rtla

# The layout of rtla 6.12 (tools/tracing/rtla/src/timerlat_aa.c), with figures of our own.
THREAD = """\
rtla timerlat hit stop tracing
## CPU 0 hit stop tracing, analyzing it ##
  IRQ handler delay:                                  6.00 us (2.73 %)
  IRQ latency:                                        7.50 us
  Timerlat IRQ duration:                             12.00 us (5.45 %)
  Blocking thread:                                  180.00 us (81.82 %)
                          wakescope:88              180.00 us
    Blocking thread stack trace
                -> timerlat_irq
                -> wakescope_inject_preempt_off
  Softirq interference                                2.00 us (0.91 %)
------------------------------------------------------------------------
  Thread latency:                                   220.00 us (100%)
"""
IRQ = """\
rtla timerlat hit stop tracing
## CPU 0 hit stop tracing, analyzing it ##
  Previous IRQ interference:                  up to   310.00 us
  IRQ handler delay: (exit from idle)      240.00 us (98.36 %)
  IRQ latency:                                      244.00 us
  Blocking thread:
                            swapper/0:0
------------------------------------------------------------------------
     IRQ latency:                                   244.00 us (100%)
"""


def console(*texts):
    lines = ["[    1.0] kernel: something else", "rtla: load one"]
    for number, text in enumerate(texts):
        lines += [f"rtla: begin {number}", *(f"rtla: | {line}" for line in text.splitlines()), f"rtla: end {number}: exit status: 0"]
    return "\n".join([*lines, "rtla: done"])


class Hits(unittest.TestCase):
    def test_parts_and_latencies_are_read(self):
        thread, irq, none = rtla.hits(console(THREAD, IRQ, "  Timer Latency\n"))["one"]
        self.assertEqual((thread.latency_us, thread.first()), (220.0, "Blocking thread"))
        self.assertEqual([part for part, _us in thread.parts][:2], ["IRQ handler delay", "Timerlat IRQ duration"])
        self.assertEqual((irq.latency_us, irq.parts), (244.0, [("IRQ latency", 244.0)]))
        self.assertIsNone(none)
        self.assertEqual(rtla.hits("rtla: begin 0\nrtla: | x"), {})

    def test_the_cause_and_the_name_are_judged(self):
        found = rtla.hits(console(THREAD, IRQ, "nothing"))["one"]
        score = rtla.judge("preempt-off", found)
        self.assertEqual((score.hits, score.none, score.right, score.named), (2, 1, 1, 1))
        self.assertEqual(score.wrong, {"IRQ latency": 1})
        # The right cause without the name.
        score = rtla.judge("irqs-off", found)
        self.assertEqual((score.right, score.named), (1, 0))


if __name__ == "__main__":
    unittest.main()
