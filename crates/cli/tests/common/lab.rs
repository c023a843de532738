//! A lab to test, and what is left of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use wakescope_core::lab::{Cell, Lab, Status};
use wakescope_core::run::Run;
use wakescope_sys::file::try_lock;

use super::bench::{Ended, Running, Test, kill, skip};
use super::measured::{names, record};

/// Nobody answers there: what a test has not brought with it, it must not fetch in silence.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9/debian";

/// The kernel of most tests: it offers none, voluntary and full.
pub(crate) const KERNEL: &str = "6.1-cloud";

/// For a kernel's command line: it panics, when it is done with all else.
pub(crate) const NO_INIT: &str = "rdinit=/nonexistent init=/nonexistent";

/// What the tests of a process have in common: kernels and an emulator, which stay for the next
/// time, and a cache for results, which is emptied each time.
pub(crate) struct Stock {
    root: PathBuf,
    guest_program: PathBuf,
    /// Another process with such tests waits until this one has ended.
    _lock: File,
}

impl Stock {
    /// `None`, and so said for `test` with the reason, if this machine cannot have it.
    pub(crate) fn get(test: &str) -> Option<&'static Self> {
        static STOCK: OnceLock<Result<Stock, String>> = OnceLock::new();
        match STOCK.get_or_init(Self::fill) {
            Ok(stock) => Some(stock),
            Err(why) => {
                skip(test, why);
                None
            }
        }
    }

    fn fill() -> Result<Self, String> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let guest_program = guest_program(target)?;
        let root = target.join("test-lab");
        fs::create_dir_all(root.join("pool")).unwrap();
        let lock = File::create(root.join("lock")).unwrap();
        while !try_lock(&lock).unwrap() {
            std::thread::sleep(Duration::from_millis(100));
        }
        let stock = Self { root, guest_program, _lock: lock };
        let _ = fs::remove_dir_all(stock.pool());
        stock.link_into(&stock.pool());
        stock.fetch("amd64", &["qemu", KERNEL])?;
        Ok(stock)
    }

    /// Fetches what is missing, with the command itself. A machine without the network, or without
    /// Debian's tools, is no failure of the test.
    pub(crate) fn fetch(&self, arch: &str, names: &[&str]) -> Result<(), String> {
        let missing: Vec<&str> =
            names.iter().copied().filter(|name| !self.has(arch, name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_wakescope"));
        command.args(["lab", "fetch", "--arch", arch]).args(&missing);
        let ended = Running::start(command.env("WAKESCOPE_CACHE", &self.root)).output();
        if ended.code == Some(0) {
            return Ok(());
        }
        match obstacle() {
            Some(why) => Err(format!("cannot fetch {}: {why}", missing.join(" and "))),
            None => panic!("{missing:?}: {ended:?}"),
        }
    }

    /// Builds the project's module for the kernel `name` of amd64, which must have been fetched, with the
    /// command itself; where it is. A machine that has no way to the packages, or no right to go into them, is
    /// no failure of the test.
    pub(crate) fn build_module(&self, name: &str) -> Result<PathBuf, String> {
        self.build_module_for("amd64", name)
    }

    /// The same for a kernel of `arch`.
    pub(crate) fn build_module_for(&self, arch: &str, name: &str) -> Result<PathBuf, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wakescope"));
        let command = command.args(["lab", "module", name, "--arch", arch]);
        let command = command.env("WAKESCOPE_CACHE", &self.root);
        let ended = Running::start(command).output();
        if ended.code == Some(0) {
            let told =
                ended.stderr.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            let path = told.and_then(|path| path.split(", ").next());
            return Ok(path.unwrap_or_else(|| panic!("{ended:?}")).into());
        }
        let no_place = ended.stderr.lines().find(|line| line.contains("no private place"));
        match no_place.map(str::to_owned).or_else(obstacle) {
            Some(why) => Err(format!("cannot build the module: {why}")),
            None => panic!("{name}: {ended:?}"),
        }
    }

    /// Makes the root image of these packages, with the command itself. A machine without the network is no
    /// failure of the test.
    pub(crate) fn make_image(&self, packages: &str) -> Result<(), String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wakescope"));
        let command = command.args(["lab", "image", "--arch", "amd64", packages]);
        let ended = Running::start(command.env("WAKESCOPE_CACHE", &self.root)).output();
        match (ended.code, obstacle()) {
            (Some(0), _) => Ok(()),
            (_, Some(why)) => Err(format!("cannot make an image of {packages}: {why}")),
            _ => panic!("{packages}: {ended:?}"),
        }
    }

    /// The folder of the kernel of amd64 that was fetched as `name`.
    pub(crate) fn kernel(&self, name: &str) -> PathBuf {
        self.kernel_for("amd64", name)
    }

    /// The same of a kernel of `arch`.
    pub(crate) fn kernel_for(&self, arch: &str, name: &str) -> PathBuf {
        let (series, flavour) = name.rsplit_once('-').unwrap();
        let folder = self.root.join("kernels").join(arch);
        let is_it = |n: &String| n.starts_with(&format!("{series}.")) && n.ends_with(flavour);
        folder.join(names(&folder).into_iter().find(is_it).expect("it was fetched"))
    }

    /// The program that guests run.
    pub(crate) fn guest_program(&self) -> &Path {
        &self.guest_program
    }

    fn has(&self, arch: &str, name: &str) -> bool {
        if name == "qemu" {
            return names(&self.root.join("qemu")).iter().any(|name| name.starts_with("1"));
        }
        let (series, flavour) = name.rsplit_once('-').unwrap();
        let is_it =
            |name: &String| name.starts_with(&format!("{series}.")) && name.ends_with(flavour);
        names(&self.root.join("kernels").join(arch)).iter().any(is_it)
    }

    /// Where tests keep results that others take.
    fn pool(&self) -> PathBuf {
        self.root.join("pool")
    }

    /// Gives the cache in `folder` the kernels and the emulator.
    fn link_into(&self, folder: &Path) {
        fs::create_dir(folder).unwrap();
        for name in ["kernels", "qemu", "modules", "images"] {
            let original = self.root.join(name);
            fs::create_dir_all(&original).unwrap();
            symlink(original, folder.join(name)).unwrap();
        }
    }
}

/// The static program for guests: that of the environment, or what `make build` left.
fn guest_program(target: &Path) -> Result<PathBuf, String> {
    let named = std::env::var_os("WAKESCOPE_GUEST_AMD64").filter(|v| !v.is_empty());
    let path = named.map_or_else(|| target.join("release/wakescope-guest"), PathBuf::from);
    let bytes = fs::read(&path).map_err(|e| format!("{}: {e} (make build)", path.display()))?;
    // Of the ELF header: 64 bits, x86-64; where the program headers are, and how many.
    const INTERPRETER: [u8; 4] = [3, 0, 0, 0];
    if !bytes.starts_with(b"\x7fELF\x02") || bytes[18] != 62 {
        return Err(format!("{} is not a program for amd64", path.display()));
    }
    let is_dynamic = (0..usize::from(bytes[56])).any(|i| {
        let at = usize::from(bytes[32]) + i * usize::from(bytes[54]);
        bytes[at..].starts_with(&INTERPRETER)
    });
    if is_dynamic {
        return Err(format!("{} is not linked statically", path.display()));
    }
    Ok(path)
}

/// Why nothing can be fetched here, unless it can.
fn obstacle() -> Option<String> {
    let is_there = |tool: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(tool).is_file())
    };
    if let Some(tool) = ["apt-get", "dpkg-deb"].into_iter().find(|tool| !is_there(tool)) {
        return Some(format!("there is no {tool}"));
    }
    if !Path::new("/usr/share/keyrings/debian-archive-keyring.gpg").exists() {
        return Some("there are no keys of Debian's archive".into());
    }
    let mirror = std::env::var("WAKESCOPE_MIRROR").unwrap_or("http://deb.debian.org/debian".into());
    let host = mirror.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
    let place = if host.contains(':') { host.into() } else { format!("{host}:80") };
    let reached = place.to_socket_addrs().is_ok_and(|mut places| {
        places.any(|place| TcpStream::connect_timeout(&place, Duration::from_secs(10)).is_ok())
    });
    (!reached).then(|| format!("{host} cannot be reached"))
}

/// A cache of one's own, with the kernels and the emulator of all.
pub(crate) struct Bench {
    pub(crate) test: Test,
    pub(crate) cache: PathBuf,
    guest_program: PathBuf,
}

impl Bench {
    /// An empty one.
    pub(crate) fn new(stock: &Stock, name: &str) -> Self {
        let test = Test::new(name);
        let cache = test.dir.join("cache");
        stock.link_into(&cache);
        Self { test, cache, guest_program: stock.guest_program.clone() }
    }

    /// That of all tests of the process.
    fn pool(stock: &Stock) -> Self {
        let (cache, guest_program) = (stock.pool(), stock.guest_program.clone());
        Self { test: Test::new("pool"), cache, guest_program }
    }

    /// `wakescope lab` with `args`, in the test's directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.test.command(&[&["lab"], args].concat());
        self.prepare(&mut command);
        command
    }

    /// Gives `command` this lab.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.env("WAKESCOPE_CACHE", &self.cache).env("WAKESCOPE_MIRROR", NOWHERE);
        command.env("WAKESCOPE_GUEST_AMD64", &self.guest_program).env_remove("WAKESCOPE_QEMU");
    }

    /// Starts `wakescope lab run`, for a record.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let arch: &[&str] = if args.contains(&"--arch") { &[] } else { &["--arch", "amd64"] };
        let all = [&["run", "--json"], arch, args].concat();
        Running::start(&mut self.command(&all))
    }

    /// Runs `wakescope lab run` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.start(args).output())
    }

    /// Runs `wakescope lab` to its end, as people do.
    pub(crate) fn lab(&self, args: &[&str]) -> Ended {
        Running::start(&mut self.command(args)).output()
    }

    /// What is in the folder of cells, finished or not, but for locks.
    pub(crate) fn cells(&self) -> Vec<String> {
        let mut all = names(&self.cache.join("cells"));
        all.retain(|name| !name.ends_with(".lock"));
        all
    }

    /// The finished cells that are measurements.
    pub(crate) fn measurements(&self) -> Vec<String> {
        let mut all = self.cells();
        all.retain(|name| {
            !name.contains('.') && self.cache.join("cells").join(name).join("run.json").exists()
        });
        all
    }

    /// Takes the checks of kernels and the saved machines of `other`. A lab makes both before it measures anything,
    /// which takes longer than most cells.
    pub(crate) fn take_kernels(&self, other: &Self) {
        let states = other.cache.join("states");
        if states.exists() {
            symlink(states, self.cache.join("states")).unwrap();
        }
        for name in other.cells() {
            let from = other.cache.join("cells").join(&name);
            if from.join("check.json").exists() {
                let to = self.cache.join("cells").join(&name);
                fs::create_dir_all(&to).unwrap();
                for file in names(&from) {
                    fs::copy(from.join(&file), to.join(&file)).unwrap();
                }
            }
        }
    }

    /// Each cell's files, but for those that say when and where it was run.
    pub(crate) fn bits(&self, cell: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = self.cache.join("cells").join(cell);
        let files = names(&folder).into_iter().filter(|name| name != "meta.json");
        files.map(|name| (name.clone(), fs::read(folder.join(&name)).unwrap())).collect()
    }

    /// Fails unless every cell of this lab has the bits that it has in `other`.
    #[track_caller]
    pub(crate) fn assert_same_bits(&self, other: &Self) {
        for cell in self.cells() {
            assert!(other.cells().contains(&cell), "{cell} is another cell");
            let (ours, theirs) = (self.bits(&cell), other.bits(&cell));
            assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
            for (name, bytes) in &ours {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                assert_eq!(text(bytes), text(&theirs[name]), "{name} of {cell}");
            }
        }
    }

    /// Emulators of this lab that run. They have no environment to be known by, but the files open
    /// that their guests write to.
    pub(crate) fn emulators(&self) -> Vec<i32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        let is_ours = |pid: &i32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let mut open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
            // One that is asked for its version has no guest.
            let has_guest = command.split(|&byte| byte == 0).any(|word| word == b"-kernel");
            has_guest && open.any(|path| path.starts_with(&self.cache))
        };
        pids.filter(is_ours).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let left = self.emulators();
        if !left.is_empty() {
            kill("KILL", &left);
        }
    }
}

/// A lab that has ended, and its record.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    pub(crate) lab: Lab,
    pub(crate) json: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn of(ended: Ended) -> Self {
        let lab = Lab::from_json(ended.stdout.as_bytes());
        let lab = lab.unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        Self { code: ended.code, stderr: ended.stderr, lab, json: ended.stdout }
    }

    /// The only cell.
    #[track_caller]
    pub(crate) fn cell(&self) -> &Cell {
        let [cell] = self.lab.cells.as_slice() else { panic!("not one cell: {}", self.json) };
        cell
    }

    /// What the only cell measured. Fails if it did not.
    #[track_caller]
    pub(crate) fn record(&self) -> Run {
        assert_eq!(self.cell().status, Status::Ok, "{}", self.json);
        record(Path::new(self.cell().run.as_ref().unwrap()))
    }

    /// The states of the cells, in order.
    pub(crate) fn states(&self) -> Vec<Status> {
        self.lab.cells.iter().map(|cell| cell.status).collect()
    }

    /// Which cells were there already.
    pub(crate) fn cached(&self) -> Vec<bool> {
        self.lab.cells.iter().map(|cell| cell.cached).collect()
    }

    /// The record without what may differ when it is repeated: whether a cell had been run before,
    /// and where its files are.
    pub(crate) fn result(&self) -> Lab {
        let mut lab = self.lab.clone();
        for cell in &mut lab.cells {
            (cell.cached, cell.run) = (false, None);
        }
        lab
    }

    /// The names of the folders of its cells.
    pub(crate) fn keys(&self) -> Vec<String> {
        let folders = self.lab.cells.iter().filter_map(|cell| cell.run.as_ref());
        folders.map(|run| Path::new(run).file_name().unwrap().to_str().unwrap().into()).collect()
    }
}

/// What the lab that several tests look at is asked for. Its kernel does not know lazy.
pub(crate) const FIRST: [&str; 12] = [
    "--kernel",
    KERNEL,
    "--preempt",
    "none,full,lazy",
    "--load",
    "idle,find",
    "--seeds",
    "2",
    "--samples",
    "200",
    "--jobs",
    "2",
];

/// That lab, and its cache; `None`, and so said for `test`, where guests cannot be booted.
pub(crate) fn first_lab(test: &str) -> Option<(&'static Stock, Bench, &'static Ran)> {
    static RAN: OnceLock<Ran> = OnceLock::new();
    let stock = Stock::get(test)?;
    let bench = Bench::pool(stock);
    let ran = RAN.get_or_init(|| bench.run(&FIRST));
    Some((stock, bench, ran))
}
