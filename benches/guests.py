"""Guests of the lab, as the benchmark handles them: the emulator's command taken apart and put
together again, what comes out of a guest, and a guest of its own with cyclictest in it.

What is computed here is tested in test_guests.py.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

# The emulator's command, as a list of arguments.


def value(command, flag):
    """What follows `flag`."""
    return command[command.index(flag) + 1]


def with_value(command, flag, text):
    """The command with `text` after `flag`."""
    at = command.index(flag) + 1
    return [*command[:at], text, *command[at + 1 :]]


def without(command, *flags):
    """The command without `flags` that have no value."""
    return [word for word in command if word not in flags]


def parameters(command):
    """What the kernel is told, and what is for the first process, as lists of words."""
    words = value(command, "-append").split()
    at = words.index("--")
    return words[:at], words[at + 1 :]


def with_parameters(command, kernel, process):
    return with_value(command, "-append", " ".join([*kernel, "--", *process]))


def into(command, folder):
    """The command with the guest's console and results in files of `folder`."""
    # In QEMU's options a comma ends a value; two are one.
    folder = str(folder).replace(",", ",,")
    place = r"(file,id=(console|results),path=).*"
    return [re.sub(place, lambda found: f"{found[1]}{folder}/{found[2]}", word) for word in command]


def without_pair(command, flag):
    """The command without `flag` and what follows it."""
    at = command.index(flag)
    return command[:at] + command[at + 2 :]


def in_real_time(command, khz):
    """The command of a guest whose clock counts time, `khz` thousands in a second. Its kernel is told
    how fast, for on a busy machine it does not find out; its program that this is real time, which it
    cannot know."""
    kernel, process = parameters(command)
    told = "tsc_early_khz="
    kernel = [f"{told}{khz}" if word.startswith(told) else word for word in kernel]
    at = process.index("lab-guest") + 1
    process = [*process[:at], "--time", "real", *process[at:]]
    return with_parameters(without_pair(command, "-icount"), kernel, process)


def is_measuring(command):
    """Whether these are the arguments of an emulator whose guest measures, or explains."""
    return "-append" in command[:-1] and not {"measure", "explain"}.isdisjoint(value(command, "-append").split())


def needed(word):
    """What a guest's kernel must be told in any case: where its console is, which model to run, to
    end the emulator if it dies."""
    return word.startswith(("console=", "preempt=")) or word == "panic=-1"


def taken_out(command):
    """The commands of a boot, from the emulator's default machine to the lab's, which is
    `command`; each with what was taken out last."""
    kernel, process = parameters(command)
    least = [word for word in kernel if needed(word)]
    quiet = [*least, "quiet"]
    untested = [*quiet, "cryptomgr.notests"]
    pc = with_value(command, "-M", "pc")
    # Graphics and a network card would want firmware that not every emulator comes with.
    full = [*without(pc, "-nodefaults", "-no-user-config"), "-vga", "none", "-net", "none"]
    return [
        ("nothing: `pc` with its devices", with_parameters(full, least, process)),
        ("the kernel's messages: `quiet`", with_parameters(full, quiet, process)),
        ("tests of ciphers: `cryptomgr.notests`", with_parameters(full, untested, process)),
        ("devices that `pc` has by default", with_parameters(pc, untested, process)),
        ("the PCI bus, ACPI and the BIOS: `microvm`", with_parameters(command, untested, process)),
        ("measuring the clock's rate: the lab's", command),
    ]


# What comes out of a guest.


def unpacked(parcel):
    """The files of a guest's parcel (crates/lab/src/parcel.rs), bytes by name."""
    files, rest = {}, parcel
    head, _, rest = rest.partition(b"\n")
    if head != b"wakescope parcel 1":
        raise ValueError("no parcel came out of the guest")
    while True:
        line, _, rest = rest.partition(b"\n")
        name, _, size = line.decode().partition(" ")
        if name == "end":
            return files
        files[name], rest = rest[: int(size)], rest[int(size) + 1 :]


def moments(facts, run):
    """When, in virtual seconds from the start of the kernel's clock, the guest's program began and
    its first sample was due. `facts` and `run` are its guest.json and run.json."""
    first_ns = run["origin_ns"] + run["plan"]["interval_ns"]
    return facts["began_ns"] / 1e9, first_ns / 1e9


# A guest with cyclictest in it: an initramfs with the program, its libraries and a shell.

DIR, FILE, DEVICE = 0o040755, 0o100755, 0o020600


def archive(entries):
    """An initramfs (cpio, `newc`) of `(path, mode, content)`; the one device is the console."""
    out = bytearray()
    for number, (path, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")]):
        major, minor = (5, 1) if mode == DEVICE else (0, 0)
        size = len(path) + 1
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, size, 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields)
        out += path.encode() + b"\0"
        out += bytes(-len(out) % 4) + content
        out += bytes(-len(out) % 4)
    return bytes(out + bytes(-len(out) % 512))


def libraries(said):
    """The files that a program loads, of what `ldd` says about it."""
    return sorted(set(re.findall(r"(?:=> |^\s*)(/\S+) \(0x", said, re.MULTILINE)))


# The first process. It waits as wakescope does, until the kernel is done with what it began while it
# booted, and a little longer by its argument, in µs: that shifts the phase. What it found leaves
# after the measurement; rows of nothing do not.
INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox sleep 3
/bin/busybox usleep $1
/bin/cyclictest {arguments} >/results 2>&1
/bin/busybox stty -F /dev/ttyS1 raw
/bin/busybox grep -vE '^[0-9]+ 0+[[:space:]]*$' /results >/dev/ttyS1
/bin/busybox reboot -f
"""


def with_cyclictest(arguments):
    """The bytes of a guest that runs cyclictest with `arguments`, and prints on the line of
    results what it says."""
    entries = {path: (DIR, b"") for path in ("bin", "dev", "proc", "sys")}
    entries["dev/console"] = DEVICE, b""
    entries["init"] = FILE, INIT.format(arguments=" ".join(arguments)).encode()
    for name in ("busybox", "cyclictest"):
        program = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if program is None:
            raise SystemExit(f"bench: there is no {name} for the guest\n  → scripts/setup bench")
        entries[f"bin/{name}"] = FILE, Path(program).read_bytes()
        # Of a static program it says that it is none of its business.
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        for library in libraries(said):
            # The kernel makes no directories on its way.
            for folder in reversed(Path(library).parents):
                entries.setdefault(str(folder).lstrip("/"), (DIR, b""))
            entries[library.lstrip("/")] = FILE, Path(library).read_bytes()
    return archive((path, *entry) for path, entry in entries.items() if path)
