#!/usr/bin/env python3
"""Threads with names of their own that sleep and wake up, until it is told to end: each is a series of a watch.

    sleepers.py COUNT INTERVAL_MS
"""

import signal
import sys
import threading
import time
from pathlib import Path


def sleeps(number, interval_s):
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(f"sleeper-{number}")
    while True:
        time.sleep(interval_s)


def main(count, interval_ms):
    threading.stack_size(256 * 1024)
    for number in range(int(count)):
        threading.Thread(target=sleeps, args=(number, float(interval_ms) / 1000), daemon=True).start()
    signal.sigwait([signal.SIGINT, signal.SIGTERM])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    main(*sys.argv[1:])
