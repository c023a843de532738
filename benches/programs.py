"""What each program of `explain` takes of a switch, by the kernel's own account of it."""

import contextlib
import ctypes
import os
import struct
from pathlib import Path

import figures
import nothing
from figures import spread

# Commands of bpf(2), the account of run time, and where it is in what a program says of itself:
# include/uapi/linux/bpf.h, 5.8.
PROG_GET_FD_BY_ID, MAP_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD, ENABLE_STATS = 13, 14, 15, 32
RUN_TIME = 0
MAP_COUNT, NAME, RUN_TIME_NS, SIZE_OF_INFO = 52, 64, 192, 208


@contextlib.contextmanager
def accounts():
    """Within it, the kernel measures every program, which takes time of its own: that of an empty one."""
    handle = nothing.bpf(ENABLE_STATS, ("=I", RUN_TIME))
    try:
        yield
    finally:
        os.close(handle)


def account(number):
    """The name of the program of that number, how long it ran, ns, and how often."""
    handle = nothing.bpf(PROG_GET_FD_BY_ID, ("=I", number))
    try:
        info = ctypes.create_string_buffer(SIZE_OF_INFO)
        nothing.bpf(OBJ_GET_INFO_BY_FD, ("=I", handle), ("=I", SIZE_OF_INFO), ("=Q", ctypes.addressof(info)))
    finally:
        os.close(handle)
    name = info.raw[NAME : NAME + 16].split(b"\0")[0].decode(errors="replace")
    return name, *struct.unpack_from("=QQ", info.raw, RUN_TIME_NS)


def programs_of(pid):
    """The numbers of all programs that a process holds."""
    told = (handle.read_text() for handle in Path(f"/proc/{pid}/fdinfo").glob("*"))
    return {figures.program_number(text) for text in told} - {None}


def accounts_of(pid):
    """The accounts of all programs that a process holds, by their numbers."""
    return {number: account(number) for number in programs_of(pid)}


def bytes_of_maps(pid):
    """What the kernel keeps for all maps of the programs that a process holds. It need not hold the maps
    themselves."""
    maps = {number for program in programs_of(pid) for number in maps_of(program)}
    return sum(bytes_of_map(number) for number in maps)


def maps_of(program, most=64):
    """The numbers of the maps of a program."""
    handle = nothing.bpf(PROG_GET_FD_BY_ID, ("=I", program))
    try:
        numbers = (ctypes.c_uint32 * most)()
        info = ctypes.create_string_buffer(SIZE_OF_INFO)
        struct.pack_into("=IQ", info, MAP_COUNT, most, ctypes.addressof(numbers))
        nothing.bpf(OBJ_GET_INFO_BY_FD, ("=I", handle), ("=I", SIZE_OF_INFO), ("=Q", ctypes.addressof(info)))
    finally:
        os.close(handle)
    return list(numbers)[: struct.unpack_from("=I", info.raw, MAP_COUNT)[0]]


def bytes_of_map(number):
    handle = nothing.bpf(MAP_GET_FD_BY_ID, ("=I", number))
    try:
        return figures.locked_bytes(Path(f"/proc/self/fdinfo/{handle}").read_text())
    finally:
        os.close(handle)


def ns_per_run(before, after, least_runs):
    """What a run took, by program, of those that ran so often in between. Programs have names of 15
    bytes; empty ones have none."""
    taken = {}
    for number, (name, ns, runs) in after.items():
        _, ns_before, runs_before = before.get(number, (name, 0, 0))
        if runs - runs_before >= least_runs:
            taken.setdefault(name, []).append((ns - ns_before) / (runs - runs_before))
    return {name: sum(of) / len(of) for name, of in taken.items()}


def costs(taken, pairs):
    """The table of what runs take, by who looks on and by program, a list over rounds. `pairs`: who looks on,
    and who attaches empty programs in the same places."""
    rows = []
    for ours, empty in pairs.items():
        nothings = [sum(of.values()) / len(of) for of in taken[empty]]
        every = sorted(set.intersection(*(set(of) for of in taken[ours])))
        for name in every:
            runs = [of[name] for of in taken[ours]]
            rows.append([ours, f"`{name}`", spread(runs), spread([ns - least for ns, least in zip(runs, nothings)])])
        beyond = [sum(of[name] for name in every) - len(every) * least for of, least in zip(taken[ours], nothings)]
        rows.append([ours, f"all {len(every)}", "", spread(beyond)])
        rows.append([empty, "each", spread(nothings), ""])
    head = "Nanoseconds of a run by the kernel's account, which takes time itself: read the last column.\n\n"
    return head + figures.table(["", "program", "ns", "more than an empty one, ns"], rows)
