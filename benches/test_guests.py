"""What the benchmark does with the lab's guests, without running one."""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import guests

COMMAND = [
    "qemu", "-M", "microvm,pit=on", "-icount", "shift=0,rr=record,rrfile=/dev/null", "-nodefaults", "-no-user-config", "-initrd", "/guest.cpio",
    "-append", "console=ttyS0 nokaslr panic=-1 oops=panic quiet cryptomgr.notests tsc=reliable preempt=full -- lab-guest measure --seed 1",
    "-chardev", "file,id=console,path=/cells/a,,b/console.log", "-device", "isa-serial,chardev=console,index=0",
    "-chardev", "file,id=results,path=/cells/a,,b/results.parcel",
]  # fmt: skip

PLAN = '{"stimulus":"timer","interval_ns":500000,"samples":2000,"load":["find"]}'
ORDER = f"--limit 64400000000ns measure --seed 1 {PLAN}"
RECIPE = json.dumps({"schema": "wakescope.cell/1", "parts": [
    ["kernel", hashlib.sha256(b"a kernel").hexdigest()], ["guest", hashlib.sha256(b"a guest").hexdigest()],
    ["emulator", "QEMU 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1) f818"],
    ["argument", "-M"], ["argument", "microvm,pit=on"], ["argument", "-nodefaults"],
    ["command_line", "console=ttyS0 nokaslr preempt=full -- lab-guest --results ttyS1"], ["order", ORDER],
]})  # fmt: skip

LDD = """\tlinux-vdso.so.1 (0x00007f1ce3946000)
\tlibnuma.so.1 => /lib/x86_64-linux-gnu/libnuma.so.1 (0x00007f1ce390d000)
\tlibgone.so.1 => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f1ce3948000)
"""


class Recipes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = Path(folder.name)
        files = {"kernels/amd64/6.1/image": b"a kernel", "kernels/amd64/7.2/image": b"another", "guests/a.cpio": b"a guest", "cell/recipe.json": RECIPE.encode()}
        files |= {f"qemu/{version}/usr/{name}": b"" for version in ("9.2.0", "10.0.13") for name in ("bin/qemu-system-x86_64", "lib64/ld-linux-x86-64.so.2", "share/qemu/x")}
        for name, content in files.items():
            path = self.cache / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def test_the_command_of_a_cell_is_that_of_its_recipe(self):
        with mock.patch.dict(os.environ, {"WAKESCOPE_QEMU": ""}):
            command = guests.command_of_cell(self.cache, self.cache / "cell", self.cache / "order")
        usr = self.cache / "qemu/10.0.13/usr"
        start = [str(usr / "lib64/ld-linux-x86-64.so.2"), "--library-path", str(usr / "lib/x86_64-linux-gnu"), str(usr / "bin/qemu-system-x86_64")]
        self.assertEqual(command[:6], [*start, "-L", str(usr / "share/qemu")])
        self.assertEqual(command[6:9], ["-M", "microvm,pit=on", "-nodefaults"])
        self.assertEqual(guests.value(command, "-kernel"), str(self.cache / "kernels/amd64/6.1/image"))
        self.assertEqual(guests.value(command, "-initrd"), str(self.cache / "guests/a.cpio"))
        self.assertEqual(guests.parameters(command), (["console=ttyS0", "nokaslr", "preempt=full"], ["lab-guest", "--results", "ttyS1"]))
        self.assertEqual(guests.value(command, "-fw_cfg"), f"name=opt/wakescope/order,file={self.cache / 'order'}")
        self.assertEqual(Path(self.cache, "order").read_text(), ORDER + " " * (4096 - len(ORDER)))
        moved = guests.into(command, "/tmp/x")
        self.assertIn("file,id=results,path=/tmp/x/results", moved)
        self.assertFalse([word for word in moved if "nowhere" in word])

    def test_what_is_not_there_is_refused(self):
        Path(self.cache, "guests/a.cpio").write_bytes(b"of another version")
        with self.assertRaisesRegex(SystemExit, "no guests/"):
            guests.command_of_cell(self.cache, self.cache / "cell", self.cache / "order")

    def test_another_emulator_is_that_which_is_named_or_installed(self):
        self.assertEqual(guests.emulator("/opt/qemu", self.cache, "QEMU 10.0.13"), ["/opt/qemu"])
        self.assertEqual(guests.emulator(str(self.cache), self.cache, "QEMU 10.0.13"), [str(self.cache / "qemu-system-x86_64")])
        self.assertEqual(guests.emulator("", self.cache, "QEMU 11.0.0 (v11)"), ["qemu-system-x86_64"])

    def test_more_samples_have_more_time(self):
        more = guests.with_samples(ORDER, 12_000)
        # Ten thousand more, half a millisecond each, four times.
        self.assertEqual(more, f"--limit {64_400_000_000 + 20_000_000_000}ns measure --seed 1 {PLAN.replace('2000', '12000')}")
        self.assertEqual(guests.with_samples(ORDER, 100), f"--limit 64400000000ns measure --seed 1 {PLAN.replace('2000', '100')}")


class Commands(unittest.TestCase):
    def test_values_are_replaced_in_place(self):
        changed = guests.with_value(COMMAND, "-initrd", "/other.cpio")
        self.assertEqual(guests.value(changed, "-initrd"), "/other.cpio")
        self.assertEqual(len(changed), len(COMMAND))
        self.assertEqual(guests.value(COMMAND, "-initrd"), "/guest.cpio")
        self.assertEqual(guests.without(["a", "-x", "b"], "-x", "-y"), ["a", "b"])

    def test_parameters(self):
        kernel, process = guests.parameters(COMMAND)
        self.assertEqual((kernel[0], kernel[-1]), ("console=ttyS0", "preempt=full"))
        self.assertEqual(process, ["lab-guest", "measure", "--seed", "1"])
        self.assertEqual(guests.with_parameters(COMMAND, kernel, process), COMMAND)

    def test_output_goes_elsewhere(self):
        moved = guests.into(COMMAND, "/tmp/x,y")
        self.assertIn("file,id=console,path=/tmp/x,,y/console", moved)
        self.assertIn("file,id=results,path=/tmp/x,,y/results", moved)
        self.assertFalse([word for word in moved if "/cells/" in word])
        self.assertIn("isa-serial,chardev=console,index=0", moved)

    def test_real_time_is_told_to_the_kernel_and_the_program(self):
        kernel, process = guests.parameters(COMMAND)
        lab = guests.with_parameters(COMMAND, [*kernel, "tsc_early_khz=1000000"], process)
        real = guests.in_real_time(lab, 2_596_100)
        uncounted = guests.without_pair(COMMAND, "-icount")
        self.assertEqual(real, guests.with_parameters(uncounted, [*kernel, "tsc_early_khz=2596100"], ["lab-guest", "--time", "real", *process[1:]]))

    def test_each_step_takes_something_out_of_the_boot(self):
        commands = [command for _name, command in guests.taken_out(COMMAND)]
        self.assertEqual(commands[-1], COMMAND)
        self.assertEqual(guests.parameters(commands[0])[0], ["console=ttyS0", "panic=-1", "preempt=full"])
        self.assertNotIn("-nodefaults", commands[0])
        self.assertEqual([guests.value(command, "-M") for command in commands], ["pc"] * 4 + ["microvm,pit=on"] * 2)
        self.assertEqual([guests.value(command, "-icount") for command in commands[3:5]], ["shift=0", guests.value(COMMAND, "-icount")])
        for before, after in zip(commands, commands[1:]):
            self.assertNotEqual(before, after)
        for command in commands:
            self.assertEqual(guests.parameters(command)[1], guests.parameters(COMMAND)[1])


class Results(unittest.TestCase):
    def test_parcels(self):
        parcel = b"wakescope parcel 1\nguest.json 2\n{}\nkernel.log 4\na\nb\n\nend 0123\n"
        self.assertEqual(guests.unpacked(parcel), {"guest.json": b"{}", "kernel.log": b"a\nb\n"})
        for wrong in [b"", b"cyclictest: no\n"]:
            with self.assertRaises(ValueError):
                guests.unpacked(wrong)
        with self.assertRaises(ValueError):
            guests.unpacked(parcel[:40])

    def test_moments(self):
        run = {"origin_ns": 1_400_000_000, "plan": {"interval_ns": 1_000_000}}
        self.assertEqual(guests.moments({"began_ns": 420_000_000}, run), (0.42, 1.401))


class Image(unittest.TestCase):
    def test_libraries(self):
        self.assertEqual(guests.libraries(LDD), ["/lib/x86_64-linux-gnu/libnuma.so.1", "/lib64/ld-linux-x86-64.so.2"])
        self.assertEqual(guests.libraries("\tnot a dynamic executable\n"), [])

    def test_archive(self):
        out = guests.archive([("dev", guests.DIR, b""), ("dev/console", guests.DEVICE, b""), ("init", guests.FILE, b"abcde")])
        self.assertEqual(len(out) % 512, 0)
        found, at = [], 0
        while True:
            head = out[at : at + 110]
            self.assertEqual(head[:6], b"070701")
            mode, length, major, minor, name = (int(head[6 + 8 * field : 14 + 8 * field], 16) for field in (1, 6, 9, 10, 11))
            path = out[at + 110 : at + 110 + name - 1].decode()
            if path == "TRAILER!!!":
                break
            at += (110 + name + 3) // 4 * 4
            found.append((path, mode, out[at : at + length], (major, minor)))
            at += (length + 3) // 4 * 4
        want = [("dev", 0o40755, b"", (0, 0)), ("dev/console", 0o20600, b"", (5, 1)), ("init", 0o100755, b"abcde", (0, 0))]
        self.assertEqual(found, want)

    def test_the_first_process_runs_what_it_is_told(self):
        script = guests.INIT.format(last=guests.LAST, arguments="-m -q")
        self.assertIn("/bin/cyclictest -m -q >", script)
        # Rows of nothing stay in the guest, all others leave it.
        rows = re.search(r"grep -vE '(.*)'", script)[1].replace("[[:space:]]", r"\s")
        kept = [row for row in ["000001 000000", "000002 000010", "000003 000000\t", "# Min Latencies: 00000"] if not re.search(rows, row)]
        self.assertEqual(kept, ["000002 000010", "# Min Latencies: 00000"])

    def test_the_number_of_a_first_process_is_its_last_argument(self):
        script = guests.LAST + "; echo $number"
        done = subprocess.run(["sh", "-c", script, "init", "nokaslr", "137"], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "137\n")

    def test_how_long_work_took(self):
        self.assertEqual(guests.worked_s("0.42 0.00\n2.92 0.00\n"), 2.5)


if __name__ == "__main__":
    unittest.main()
