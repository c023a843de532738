"""Guests of the lab, as the benchmark handles them: the emulator's command made of a cell's recipe, taken
apart and put together again, what comes out of a guest, and guests of its own.

What is computed here is tested in test_guests.py.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

PROGRAM = "qemu-system-x86_64"

# The file by which a guest that has booted gets its order, and its length (crates/lab/src/guest/order.rs).
ORDER, ORDER_BYTES = "opt/wakescope/order", 4096

# What a cell's recipe says.


def parts(recipe, name):
    """What a recipe, the text of a cell's recipe.json, has of this name, in its order."""
    return [value for found, value in json.loads(recipe)["parts"] if found == name]


def part(recipe, name):
    return parts(recipe, name)[0]


def with_samples(order, samples):
    """A guest's order with so many samples, and with time for them."""
    words, at, plan = order.partition("{")
    plan = json.loads(at + plan)
    more_ns = (samples - plan["samples"]) * plan["interval_ns"]
    words = re.sub(r"(?<=--limit )\d+", lambda ns: str(int(ns[0]) + max(0, 4 * more_ns)), words)
    return words + json.dumps({**plan, "samples": samples}, separators=(",", ":"))


def emulator(named, cache, banner):
    """The words that start the emulator: the one that is `named` if any is, else that of a lab's folder with
    this banner, as the lab starts it, else the one that is installed."""
    if named:
        return [str(Path(named, PROGRAM) if Path(named).is_dir() else named)]
    version = re.match(r"QEMU ([0-9.]+)", banner)[1]
    root = Path(cache, "qemu", version, "usr")
    program = root / "bin" / PROGRAM
    if not program.exists():
        return [PROGRAM]
    loader = next(root.glob("lib*/**/ld-linux-x86-64.so.2"))
    data = [folder for folder in (root / "share/qemu", root / "share/seabios") if folder.is_dir()]
    words = [loader, "--library-path", root / "lib/x86_64-linux-gnu", program]
    return [*map(str, words), *(word for folder in data for word in ("-L", str(folder)))]


def file_of(cache, pattern, sha256):
    """The file of a lab's folder that has this sum."""
    for path in Path(cache).glob(pattern):
        with open(path, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == sha256:
                return path
    raise SystemExit(f"bench: no {pattern} in {cache} has the sum {sha256}")


def command_of_cell(cache, cell, file, samples=None):
    """The command that boots the guest of a cell of a lab's folder; with so many samples, if that is said. What the guest is
    to do is written to `file`."""
    recipe = Path(cell, "recipe.json").read_text()
    order = part(recipe, "order")
    Path(file).write_text((with_samples(order, samples) if samples else order).ljust(ORDER_BYTES))
    start = emulator(os.environ.get("WAKESCOPE_QEMU"), cache, part(recipe, "emulator"))
    kernel = file_of(cache, "kernels/*/*/image", part(recipe, "kernel"))
    guest = file_of(cache, "guests/*.cpio", part(recipe, "guest"))
    return command_of(recipe, start, kernel, guest, file)


def command_of(recipe, start, kernel, guest, order):
    """The command that boots the guest of a cell, by its recipe. `start` are the words that start the emulator,
    `order` is a file with what the guest is to do. Its console and results go to files: see `into`."""
    lines = [("console", 0), ("results", 1)]
    chardevs = [(f"file,id={name},path=/nowhere/{name}", f"isa-serial,chardev={name},index={index}") for name, index in lines]
    return [
        *start,
        *parts(recipe, "argument"),
        *("-kernel", str(kernel), "-initrd", str(guest), "-append", part(recipe, "command_line")),
        *(word for chardev, device in chardevs for word in ("-chardev", chardev, "-device", device)),
        *("-fw_cfg", f"name={ORDER},file={order}", "-action", "panic=none"),
    ]


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


def without_recording(command):
    """The command of an emulator that counts instructions, but records nothing of what devices do."""
    counted = value(command, "-icount").split(",")
    return with_value(command, "-icount", ",".join(word for word in counted if not word.startswith("rr")))


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
    # While it records, the firmware of `pc` comes to no end (QEMU 10.0.13).
    pc = without_recording(with_value(command, "-M", "pc"))
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


# The number that is meant for a first process is its last argument. Before that the kernel gives it what it does not
# know itself: `nokaslr`, which is for what unpacks the kernel.
LAST = "for number; do :; done"

# The first process. It waits as wakescope does, until the kernel is done with what it began while it
# booted, and a little longer by its argument, in µs: that shifts the phase. What it found leaves
# after the measurement; rows of nothing do not.
INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox sleep 3
{last}
/bin/busybox usleep $number
/bin/cyclictest {arguments} >/results 2>&1
/bin/busybox stty -F /dev/ttyS1 raw
/bin/busybox grep -vE '^[0-9]+ 0+[[:space:]]*$' /results >/dev/ttyS1
/bin/busybox reboot -f
"""


def with_cyclictest(arguments):
    """The bytes of a guest that runs cyclictest with `arguments`, and prints on the line of
    results what it says."""
    return image(INIT.format(last=LAST, arguments=" ".join(arguments)), "busybox", "cyclictest")


# The first process of a guest that works: `$number` times, `$b` being busybox. What leaves is how
# long the machine was up before and after.
WORKER = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
{last}
$b cat /proc/uptime >/times
{work}
$b cat /proc/uptime >>/times
$b stty -F /dev/ttyS1 raw
$b cat /times >/dev/ttyS1
$b reboot -f
"""


def with_busybox(work):
    """The bytes of a guest that does this work, lines of a shell."""
    return image(WORKER.format(last=LAST, work=work), "busybox")


def worked_s(said):
    """How long that took, in the guest's seconds, by what it said."""
    before, after = (float(line.split()[0]) for line in said.split("\n")[:2])
    return after - before


def image(init, *programs):
    """The bytes of a guest with this first process, these programs and their libraries."""
    entries = {path: (DIR, b"") for path in ("bin", "dev", "proc", "sys")}
    entries["dev/console"] = DEVICE, b""
    entries["init"] = FILE, init.encode()
    for name in programs:
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
