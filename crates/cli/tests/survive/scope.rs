//! `wakescope scope` of cells that cannot be looked into. No guest is booted: the emulator is a script, and so
//! is the compiler that its plugin is built with.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wakescope_core::plan::ProbePolicy;
use wakescope_core::preemption::Model;
use wakescope_core::run::Run;
use wakescope_lab::cache::Cache;
use wakescope_lab::kernel::Arch;
use wakescope_lab::machine::Machine;
use wakescope_lab::parcel::{Item, pack};
use wakescope_lab::qemu::Qemu;
use wakescope_lab::scope::KERNEL_HEAD;
use wakescope_lab::store::{
    CellStore, Claim, Ending, Ingredients, LEAST_ROOM, Label, Meta, Recipe,
};
use wakescope_lab::sum::{Memo, of_bytes};
use wakescope_testing::{in_blocks, write_program};

use crate::common::bench::{Disk, Ended, Running, Test};
use crate::common::made_up_kernel::{End, MadeUp};
use crate::common::measured::names;

/// Finds the descriptors that the emulator is given: of results, and of what the plugin writes. All have one
/// digit, for no other files are open.
const DESCRIPTORS: &str = r#"
for word in "$@"; do
    case $word in
    file,id=results,path=/dev/fdset/*) results=${word#*/fdset/}; results=${results%%,*} ;;
    file=/proc/self/fd/*,out=*)
        seen=${word#*,out=}; seen=${seen%%,*}
        case $word in *,plan=*) has_plan=yes ;; *) has_plan= ;; esac ;;
    esac
done
"#;

/// The number of the plugin's format, as it stands in its header.
fn format() -> u64 {
    let header = include_str!("../../../../plugin/scope.h");
    let line = header.lines().find_map(|line| line.strip_prefix("#define FORMAT "));
    line.unwrap().trim().parse().unwrap()
}

/// What begins with this mark and the format, in a block with its checksum; and the command of a shell that writes it,
/// with `change` in the place of each byte that is named.
fn written(mark: &[u8; 8], words: &[u64], rest: &[u8], change: &[(usize, u8)]) -> String {
    let words = [&[format()], words].concat().into_iter().flat_map(u64::to_le_bytes);
    let contents: Vec<u8> = mark.iter().copied().chain(words).chain(rest.iter().copied()).collect();
    let mut block = in_blocks(&contents, contents.len());
    change.iter().for_each(|&(at, byte)| block[at] = byte);
    let digits: String = block.iter().map(|byte| format!(r"\{byte:03o}")).collect();
    format!("printf '{digits}' >&$seen")
}

/// A stored cell whose kernel, guest, emulator and compiler are made up.
struct MadeUpCell {
    test: Test,
    cache: PathBuf,
    qemu: PathBuf,
    /// A folder of programs that are found.
    path: PathBuf,
    kernel: PathBuf,
    key: String,
}

fn write_script(path: &Path, text: &str) {
    write_program(path, format!("#!/bin/sh\n{text}\n").as_bytes());
}

impl MadeUpCell {
    /// `body` is run in place of a guest. It has `$DIR`, the test's folder, `$results` and `$seen`, descriptors,
    /// and `$has_plan`. In each word of the emulator's arguments and of the kernel's command line, `change` is made.
    fn new(name: &str, body: &str, change: (&str, &str)) -> Self {
        let test = Test::new(name);
        let dir = test.dir.display();
        let (cache, path) = (test.dir.join("cache"), test.dir.join("bin"));
        let qemu = test.dir.join("emulator/qemu-system-x86_64");
        write_script(
            &qemu,
            &format!(
                "DIR='{dir}'\ncase \" $* \" in *' -kernel '*) ;; *) echo 'QEMU emulator version 10.0.0'; exit ;; \
                 esac\n{DESCRIPTORS}\n{body}"
            ),
        );
        write_script(&path.join("cc"), "[ \"$1\" = --version ] || echo plugin >scope.so");
        // Compilers are started through these.
        for tool in ["/usr/bin/env", "/bin/sh"] {
            symlink(tool, path.join(Path::new(tool).file_name().unwrap())).unwrap();
        }
        let kernel = MadeUp::new(End::Hang).write(&test.dir, "kernel");
        fs::create_dir_all(cache.join("guests")).unwrap();
        fs::write(cache.join("guests/guest.cpio"), "guest").unwrap();
        let mut cell = Self { test, cache, qemu, path, kernel, key: String::new() };
        cell.key = cell.store(change, 1, |_| {});
        cell
    }

    /// Stores a cell of this seed, and what its guest sent, with a change of its run. Its key.
    fn store(&self, change: (&str, &str), seed: u64, change_run: impl Fn(&mut Run)) -> String {
        let cache = Cache::at(&self.cache);
        let store = CellStore::open(&cache.cells()).unwrap();
        let mut memo = Memo::open(&cache);
        let qemu = Qemu::find(Arch::Amd64, Some(&self.qemu), &cache, &mut memo).unwrap();
        let machine = Machine::new(Arch::Amd64);
        let arguments: Vec<String> =
            machine.arguments().iter().map(|word| word.replace(change.0, change.1)).collect();
        let guest = format!("lab-guest --seed {seed}");
        let cmdline = machine.cmdline(Some("full"), "", &guest).replacen(change.0, change.1, 1);
        let recipe = Recipe::new(&Ingredients {
            kernel_sha256: &self.kernel_sum(),
            guest_sha256: &of_bytes(b"guest"),
            emulator: &format!("{} {}", qemu.banner, qemu.sha256),
            arguments: &arguments,
            command_line: &cmdline,
        });
        let Claim::Free(slot) = store.begin(&recipe).unwrap() else { panic!("it is there") };
        let key = recipe.key().to_string();
        let schema = wakescope_core::run::SCHEMA.into();
        let id = key[..16].into();
        let mut run = Run { schema, id, seed, origin_ns: 5_000, ..Run::default() };
        run.host.preemption.model = Model::Full;
        (run.plan.policy, run.plan.priority) = (ProbePolicy::Fifo, Some(95));
        change_run(&mut run);
        run.summarize();
        let facts = r#"{"error":null,"time_up":false,"began_ns":1,"ended_ns":2}"#;
        let files = [("guest.json", facts.into()), ("run.json", run.to_json())];
        for (name, text) in files.iter().chain([&("console.log", String::new())]) {
            fs::write(slot.folder().join(name), text).unwrap();
        }
        let kernel = self.kernel.display().to_string();
        let label = Label { kernel, load: "find".into(), seed: Some(seed), ..Label::default() };
        slot.commit(Ending::Measured, &Meta { label, ..Meta::default() }).unwrap();
        let items: Vec<Item> =
            files.iter().map(|(name, text)| Item::new(name, text.as_str())).collect();
        fs::write(self.test.dir.join("parcel"), pack(&items)).unwrap();
        key
    }

    fn kernel_sum(&self) -> String {
        of_bytes(&fs::read(&self.kernel).unwrap())
    }

    /// What is known of its kernel need not be asked for.
    fn know_kernel(self) -> Self {
        self.know_functions(&[])
    }

    /// The same of a kernel that has these functions.
    fn know_functions(self, names: &[&str]) -> Self {
        let maps = self.cache.join("maps");
        fs::create_dir(&maps).unwrap();
        let functions: String = names.iter().map(|name| format!("f 0 {name}\n")).collect();
        let text = format!("{KERNEL_HEAD}\n62 0 0 4\n{functions}end\n");
        let sum = of_bytes(text.as_bytes());
        fs::write(maps.join(self.kernel_sum()), format!("{text}sha256 {sum}\n")).unwrap();
        self
    }

    fn scope(&self, args: &[&str]) -> Ended {
        self.run(&[&["scope", &self.key], args].concat(), &self.qemu)
    }

    fn run(&self, args: &[&str], qemu: &Path) -> Ended {
        let mut command = self.test.command(args);
        command.args(["--qemu", qemu.to_str().unwrap()]).env("PATH", &self.path);
        command.env("WAKESCOPE_CACHE", &self.cache).env_remove("WAKESCOPE_QEMU");
        Running::start(&mut command).output()
    }

    /// Fails unless it is refused with these words, and neither an emulator nor a file is left.
    #[track_caller]
    fn assert_refused(&self, args: &[&str], words: &[&str]) {
        let ended = self.scope(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        for word in words.iter().chain(&["→"]) {
            assert!(ended.stderr.contains(word), "{word:?} is not in {}", ended.stderr);
        }
        let left: Vec<String> = names(&self.cache.join("cells"))
            .into_iter()
            .filter(|name| *name != self.key && !name.ends_with(".lock"))
            .collect();
        assert_eq!(left, [""; 0]);
        let unfinished = |name: &String| name.starts_with('.');
        assert!(!names(&self.cache.join("plugins")).iter().any(unfinished));
        assert_eq!(self.emulators(), [""; 0]);
    }

    fn emulators(&self) -> Vec<String> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let commands = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let texts = commands.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
        let mark = self.qemu.display().to_string();
        texts.filter(|text| text.contains(&mark) && text.contains(" -kernel ")).collect()
    }
}

/// In place of a guest: is named as the failure, so that what is refused for another reason was refused before. (The
/// emulator may write no file to be known by.)
const RUNS: &str = "echo 'the guest ran' >&2; exit 1";

/// A word that no argument has.
const UNCHANGED: (&str, &str) = ("\n", "");

#[test]
fn cells_of_other_machines_are_refused_by_name() {
    for (change, words) in [
        (("nokaslr", "kaslr"), ["booted without nokaslr", "--append kaslr"]),
        (("1", "2,sockets=2"), ["2 CPUs", "--experimental-smp"]),
    ] {
        let cell = MadeUpCell::new("scope-machine", "exit 1", change);
        cell.assert_refused(&[], &words);
        assert!(!cell.cache.join("plugins").exists(), "a plugin was built for nothing");
    }
}

#[test]
fn the_emulator_that_is_named_may_be_of_any_architecture() {
    let cell = MadeUpCell::new("scope-emulator", "exit 1", UNCHANGED);
    let arm64 = cell.qemu.with_file_name("qemu-system-aarch64");
    fs::copy(&cell.qemu, &arm64).unwrap();
    for (qemu, of_scope, of_verify) in [
        (arm64, "by which it was run, is not here", "by which it was run, is not here"),
        (
            "/nowhere/qemu".into(),
            "/nowhere/qemu cannot be used: it is not there",
            "it is not there",
        ),
    ] {
        let ended = cell.run(&["scope", &cell.key], &qemu);
        assert!(ended.code == Some(2) && ended.stderr.contains(of_scope), "{ended:?}");
        let ended = cell.run(&["lab", "verify", &cell.key], &qemu);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(ended.code == Some(2) && told.contains(of_verify), "{ended:?}");
    }
}

#[test]
fn traces_that_cannot_be_written_are_refused_before_the_guest_runs() {
    let cell = MadeUpCell::new("scope-trace", RUNS, UNCHANGED);
    fs::write(cell.test.dir.join("a.json"), "").unwrap();
    symlink("a.json", cell.test.dir.join("link.json")).unwrap();
    for (args, told) in [
        (["--trace", "a.json", "-o", "a.json"], "to the same place"),
        (["--trace", "./a.json", "-o", "a.json"], "to the same place"),
        (["--trace", "link.json", "-o", "a.json"], "to the same place"),
        (["--trace", "-", "-o", "-"], "to the same place"),
        (["--trace", "a.json", "--episodes", "0"], "a trace needs wakeups"),
        (["--trace", "a.zip", "--rows", "1"], "a name that ends in .zip"),
    ] {
        cell.assert_refused(&args, &[told]);
    }
    cell.assert_refused(&[], &["the guest ran"]);
}

#[test]
fn functions_that_the_kernel_lacks_are_named_before_the_guest_runs() {
    let cell = MadeUpCell::new("predict-function", RUNS, UNCHANGED);
    let cell = cell.know_functions(&["do_idle", "free_pcppages_bulk", "zap_pte_range"]);
    let similar = "similar names: free_pcppages_bulk\n";
    for (name, words) in [
        (
            "free_pcpages_bulk",
            [similar, "no function of its kernel is known as free_pcpages_bulk\n"],
        ),
        ("pcppages", [similar, "is known as pcppages\n"]),
        ("free_pcppages_bulk()", [similar, "is known as free_pcppages_bulk()\n"]),
        ("nf_hook_slow", ["of modules", "is known as nf_hook_slow\n"]),
    ] {
        let first = ["predict", &cell.key, "--break", "do_idle=100us"];
        let ended =
            cell.run(&[&first[..], &["--break", &format!("{name}=1us")]].concat(), &cell.qemu);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        for word in words.iter().chain(&["cannot look into the cell", "→ list the functions"]) {
            assert!(ended.stderr.contains(word), "{word:?} is not in {}", ended.stderr);
        }
    }
    // Whether one that it has was seen is known only afterwards.
    let ended = cell.run(&["predict", &cell.key, "--break", "do_idle=100us"], &cell.qemu);
    assert!(ended.stderr.contains("the guest ran"), "{ended:?}");
}

#[test]
fn cells_that_nothing_can_be_predicted_from_are_named_before_a_guest_runs() {
    let cell = MadeUpCell::new("predict-cells", RUNS, UNCHANGED).know_kernel();
    let first = cell.key.as_str();
    let other = cell.store(UNCHANGED, 2, |_| {});
    let longer = cell.store(UNCHANGED, 3, |run| run.plan.interval_ns = 777);
    let unprivileged = cell.store(UNCHANGED, 4, |run| {
        (run.plan.policy, run.plan.priority) = (ProbePolicy::Other, None);
    });
    let unknown = cell.store(UNCHANGED, 5, |run| run.host.preemption.model = Model::Unknown);
    for (cells, words) in [
        (&[first, &other, first][..], ["it is given twice", "→ leave it out once"]),
        (&[first, &longer], ["its plan is not that of", "→ predict from each of them by itself"]),
        (&[&unprivileged], ["the probe's policy is other", "--policy fifo"]),
        (&[first, &unknown], ["not known which preemption model", "--config FILE"]),
        (&[first, "ffff"], ["no cell has the key ffff", "→"]),
    ] {
        let ended = cell.run(&[&["predict"], cells].concat(), &cell.qemu);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        for word in words {
            assert!(ended.stderr.contains(word), "{word:?} is not in {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("the guest ran"), "{ended:?}");
    }
    let ended = cell.run(&["predict", first, &other], &cell.qemu);
    assert!(ended.stderr.contains("the guest ran"), "{ended:?}");
}

#[test]
fn files_that_cannot_be_written_are_named_before_the_guest_runs() {
    let cell = MadeUpCell::new("scope-output", RUNS, UNCHANGED);
    let path = |name: &str| cell.test.dir.join(name);
    fs::create_dir(path("folder.json")).unwrap();
    for (command, option, file, told) in [
        ("scope", "-o", "none/a.json", "No such file or directory"),
        ("scope", "--trace", "none/a.json", "No such file or directory"),
        ("scope", "-o", "folder.json", "it is a folder"),
        ("scope", "--trace", "folder.json", "it is a folder"),
        ("predict", "-o", "none/a.json", "No such file or directory"),
        ("predict", "-o", "folder.json", "it is a folder"),
    ] {
        let ended = cell.run(&[command, &cell.key, option, file], &cell.qemu);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        for word in [&format!("cannot write {file}: "), told, "→"] {
            assert!(ended.stderr.contains(word), "{word:?} is not in {}", ended.stderr);
        }
    }
    // What can be written is as it was if there is no result.
    fs::write(path("old.json"), "older").unwrap();
    let before = names(&cell.test.dir);
    for file in ["new.json", "old.json", "/dev/null", "/dev/stdout"] {
        cell.assert_refused(&["-o", file, "--trace", "trace.json"], &["the guest ran"]);
    }
    assert_eq!(names(&cell.test.dir), before);
    assert_eq!(fs::read_to_string(path("old.json")).unwrap(), "older");
}

#[test]
fn a_disk_that_is_full_already_is_named_before_the_guest_runs() {
    let cell = MadeUpCell::new("scope-full-output", RUNS, UNCHANGED);
    let place = cell.test.dir.join("disk");
    fs::create_dir(&place).unwrap();
    let name = "a_disk_that_is_full_already_is_named_before_the_guest_runs";
    let Some(_disk) = Disk::mount(&place, "size=64k", name) else { return };
    fs::write(place.join("old.json"), "older").unwrap();
    fs::write(place.join("linked.json"), "older").unwrap();
    fs::hard_link(place.join("linked.json"), place.join("other")).unwrap();
    let mut filler = fs::File::create(place.join("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    let before = names(&place);
    let run = |args: &[&str]| {
        let ended = cell.run(&[&args[..1], &[&cell.key], &args[1..]].concat(), &cell.qemu);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert_eq!(names(&place), before);
        ended.stderr
    };
    for command in [&["scope", "-o"][..], &["scope", "--trace"], &["predict", "-o"]] {
        for file in ["disk/new.json", "disk/old.json"] {
            let told = run(&[command, &[file]].concat());
            for word in [&format!("cannot write {file}: No space left"), "→ make room"] {
                assert!(told.contains(word), "{word:?} is not in {told}");
            }
        }
    }
    assert_eq!(fs::read_to_string(place.join("old.json")).unwrap(), "older");
    // It is itself written, in the room that it has.
    let told = run(&["scope", "-o", "disk/linked.json"]);
    assert!(told.contains("the guest ran"), "{told}");
    assert_eq!(fs::read_to_string(place.join("linked.json")).unwrap(), "older");
    // A block more is room enough to try.
    filler.set_len(0).unwrap();
    let told = run(&["scope", "-o", "disk/new.json"]);
    assert!(told.contains("the guest ran"), "{told}");
}

#[test]
fn a_plugin_that_cannot_be_built_is_refused() {
    let cell = MadeUpCell::new("scope-compiler", "exit 1", UNCHANGED);
    write_script(&cell.path.join("cc"), "echo 'stdint.h: No such file' >&2; exit 1");
    cell.assert_refused(&[], &["cannot build", "stdint.h: No such file", "another compiler"]);
    fs::remove_file(cell.path.join("cc")).unwrap();
    cell.assert_refused(&[], &["no C compiler", "apt install gcc"]);
}

#[test]
fn an_emulator_that_cannot_load_the_plugin_is_named_with_its_reason() {
    let body = "echo 'qemu: plugin requires API version 9' >&2; exit 1";
    let words = ["the emulator refused", "requires API version 9", "wakescope lab fetch qemu"];
    let cell = MadeUpCell::new("scope-plugin", body, UNCHANGED);
    // As it asks the kernel for its symbols, and as it runs the cell.
    cell.assert_refused(&[], &words);
    cell.know_kernel().assert_refused(&[], &words);
}

#[test]
fn kernels_without_symbols_and_memory_that_is_cut_are_refused() {
    // Of a machine for x86-64 (62), as ELF has it.
    for (end, words) in [
        (&[0; 8][..], ["no symbols", "CONFIG_KALLSYMS_ALL=y"]),
        (&[0; 3], ["cut short", "make room"]),
    ] {
        let body = written(b"kememory", &[62], end, &[]);
        MadeUpCell::new("scope-memory", &body, UNCHANGED).assert_refused(&[], &words);
    }
}

#[test]
fn a_stream_that_is_cut_damaged_or_of_another_result_is_refused() {
    let stream = written(b"akescope", &[0, 0, 0], &[], &[]);
    // In the last word.
    let damaged = written(b"akescope", &[0, 0, 0], &[], &[(8 + 39, 1)]);
    let whole = r#"cat "$DIR/parcel" >&$results"#;
    for (body, words) in [
        (format!("{stream}; {whole}"), ["cut short", "make room"]),
        (
            format!("{damaged}; {whole}"),
            ["it is damaged: the 40 bytes from byte 8 on", "run it again"],
        ),
        (format!(": >&$seen; {whole}"), ["not what the plugin writes", "another kernel"]),
        (stream, ["not the stored one", "lab verify"]),
    ] {
        let cell = MadeUpCell::new("scope-stream", &format!("PATH=/bin; {body}"), UNCHANGED);
        cell.know_kernel().assert_refused(&[], &words);
    }
}

#[test]
fn a_guest_that_does_not_end_is_ended() {
    let cell = MadeUpCell::new("scope-endless", "PATH=/bin; exec sleep 1000", UNCHANGED);
    cell.assert_refused(&["--timeout", "100ms"], &["did not end within 100 ms", "--timeout"]);
    let cell = cell.know_kernel();
    cell.assert_refused(&["--timeout", "100ms"], &["did not end within 100 ms", "--timeout"]);
}

/// A small disk in place of the folder of cells, with the cell on it; `None`, and so said for `name`, if there can be
/// none.
fn on_a_small_disk(cell: &MadeUpCell, name: &str) -> Option<Disk> {
    let cells = cell.cache.join("cells");
    let kept = cell.test.dir.join("kept");
    fs::rename(&cells, &kept).unwrap();
    fs::create_dir(&cells).unwrap();
    let disk = Disk::mount(&cells, "size=8m", name)?;
    let mut copy = std::process::Command::new("/bin/cp");
    let copied = copy.arg("-r").arg(kept.join(&cell.key)).arg(&cells).status();
    assert!(copied.unwrap().success());
    Some(disk)
}

#[test]
fn a_full_disk_is_said_to_be_full() {
    // As the plugin does when it cannot write.
    let body = "PATH=/bin; head -c 16000000 /dev/zero >&$seen; exit 1";
    for knows_kernel in [false, true] {
        let cell = MadeUpCell::new("scope-full", body, UNCHANGED);
        let cell = if knows_kernel { cell.know_kernel() } else { cell };
        let Some(_disk) = on_a_small_disk(&cell, "a_full_disk_is_said_to_be_full") else { return };
        cell.assert_refused(&[], &["no space left"]);
    }
}

#[test]
fn a_full_disk_that_keeps_cells_from_being_verified_is_named() {
    let cell = MadeUpCell::new("verify-full", RUNS, UNCHANGED);
    let name = "a_full_disk_that_keeps_cells_from_being_verified_is_named";
    let Some(_disk) = on_a_small_disk(&cell, name) else { return };
    let filler = vec![1; usize::try_from(8 * 1024 * 1024 - LEAST_ROOM).unwrap()];
    fs::write(cell.cache.join("cells/filler"), filler).unwrap();
    let ended = cell.run(&["lab", "verify", &cell.key], &cell.qemu);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stdout.contains("No cell was run again."), "{ended:?}");
    for word in ["no space left for cells in", "→ free space"] {
        assert!(ended.stderr.contains(word), "{word:?} is not in {ended:?}");
    }
}
