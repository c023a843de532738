#!/usr/bin/env python3
"""Attaches BPF programs that do nothing to tracepoints of the kernel, until it is told to end.

What is lost to them is what the kernel takes for calling a program, which nobody who looks on from
there can lose less than.

    nothing.py TRACEPOINT…
"""

import ctypes
import os
import platform
import signal
import struct
import sys

# The system call bpf(2), its commands, and a type of program: include/uapi/linux/bpf.h.
SYSCALL = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, RAW_TRACEPOINT_OPEN = 5, 17
RAW_TRACEPOINT = 17

# r0 = 0; exit
PROGRAM = struct.pack("<BBhi", 0xB7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0)
# All of it that kernels of 5.10 know.
SIZE_OF_ATTR = 120


def bpf(command, *fields):
    """Calls bpf(2); `fields` are formats and values, one behind the other."""
    libc = ctypes.CDLL(None, use_errno=True)
    packed = b"".join(struct.pack(form, value) for form, value in fields)
    attr = ctypes.create_string_buffer(packed, SIZE_OF_ATTR)
    result = libc.syscall(SYSCALL[platform.machine()], command, attr, SIZE_OF_ATTR)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def attach(tracepoint):
    """A program of its own at `tracepoint`: it stays as long as this process."""
    code, licence = ctypes.create_string_buffer(PROGRAM), ctypes.create_string_buffer(b"GPL")
    loaded = bpf(
        PROG_LOAD,
        ("=I", RAW_TRACEPOINT),
        ("=I", len(PROGRAM) // 8),
        ("=Q", ctypes.addressof(code)),
        ("=Q", ctypes.addressof(licence)),
    )
    name = ctypes.create_string_buffer(tracepoint.encode())
    return bpf(RAW_TRACEPOINT_OPEN, ("=Q", ctypes.addressof(name)), ("=I", loaded))


def main(tracepoints):
    for tracepoint in tracepoints:
        try:
            attach(tracepoint)
        except FileNotFoundError:
            print(f"nothing: this kernel has no tracepoint {tracepoint}", file=sys.stderr)
    signal.sigwait([signal.SIGINT, signal.SIGTERM])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    main(sys.argv[1:])
