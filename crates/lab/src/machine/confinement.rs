//! What the emulator may do: it executes what a guest wants, and a guest is hostile. So it starts with
//! as few rights as this host can enforce.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use wakescope_sys::file::effective_user;
use wakescope_sys::landlock::{self, Forbidden, Rules};
use wakescope_sys::process::confined::{Confined, Namespace, Step};
use wakescope_sys::process::{Child, Program, raise_open_files};
use wakescope_sys::sched::{Schedule, schedule_of, this_thread};

use super::boot::Boot;
use super::state::LARGEST;
use crate::qemu::Qemu;

/// Folders with what programs read that are installed for all users. All others, as of users and
/// services, are closed to an emulator that lies in one of these, or that the lab has set up.
const SYSTEM: [&str; 13] = [
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/nix", "/gnu", "/proc",
    "/sys", "/dev",
];

/// Users from here on are the emulators'. Neither Linux distributions nor containers give these
/// numbers away.
const OWN_USERS: u32 = 1 << 30;

/// The user without files of its own.
const NOBODY: u32 = 65534;

/// Something that keeps the emulator from doing harm, and that not every host permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// It is a user of its own.
    OwnUser,
    /// It is the user `nobody`.
    Nobody,
    /// It has a namespace of its own.
    Namespace(Namespace),
    /// Landlock forbids what it need not open.
    Landlock,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::OwnUser => "own-user",
            Self::Nobody => "user-nobody",
            Self::Namespace(Namespace::User) => "user-namespace",
            Self::Namespace(Namespace::Network) => "network-namespace",
            Self::Namespace(Namespace::Ipc) => "ipc-namespace",
            Self::Landlock => "landlock",
        }
    }
}

/// How emulators are confined here. What this host has refused once is not tried again.
#[derive(Debug)]
pub struct Confinement {
    refused: Mutex<BTreeSet<Measure>>,
}

impl Default for Confinement {
    /// Lets this process have more files open: it holds up to nine for each guest, so some 112 guests at a time exceed
    /// the usual limit of 1,024.
    fn default() -> Self {
        // Where it stays as it is, a guest that finds too many open is not started, and run again another time.
        let _ = raise_open_files();
        Self { refused: Mutex::default() }
    }
}

impl Confinement {
    /// Starts `qemu` as `boot` says. What it says itself goes to `words`.
    pub fn start(&self, qemu: &Qemu, boot: &Boot, words: &File) -> io::Result<Child> {
        let (program, first) = qemu.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let own = first.iter().cloned().chain(boot.arguments().iter().map(Into::into));
        let program = Program::new(Path::new(program), own)?;
        let (nothing, folder) = (File::open("/dev/null")?, File::open(&qemu.folder)?);
        loop {
            let measures = self.measures();
            let namespaces = namespaces_of(&measures);
            let rules = measures.contains(&Measure::Landlock).then(|| rules(qemu)).transpose();
            let Ok(rules) = rules else {
                self.refuse(Measure::Landlock);
                continue;
            };
            let confined = Confined {
                program: &program,
                stdio: [nothing.as_fd(), words.as_fd(), words.as_fd()],
                inherited: &boot.descriptors(),
                folder: &folder,
                namespaces: &namespaces,
                user: user_of(&measures),
                rules: rules.as_ref(),
                // What a guest writes is a flood, and is ended as such, long before this is reached.
                file_size: LARGEST,
            };
            let refused = match confined.run() {
                Ok(child) => {
                    pass_niceness_on(&child);
                    return Ok(child);
                }
                Err(refused) => refused,
            };
            match measure_of(refused.step, &measures) {
                Some(measure) => self.refuse(measure),
                None => return Err(refused.source),
            }
        }
    }

    /// What keeps `qemu` from doing harm, in words for the cell's notes. Once it was started.
    pub(crate) fn in_force(&self, qemu: &Qemu) -> Vec<String> {
        let always = ["no-new-privileges", "no-capabilities"];
        let measures = self.measures();
        let names = measures.iter().map(|measure| measure.name());
        let seccomp = qemu.has_sandbox.then_some("seccomp");
        always.into_iter().chain(names).chain(seccomp).map(String::from).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        possible(effective_user() == 0, &refused)
    }

    fn refuse(&self, measure: Measure) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(measure);
    }
}

/// Has an emulator, which has a session of its own, give way as who started it does. By default Linux schedules
/// each session as a group: five guests of nice 15 took half of two CPUs from nine compilers of nice 0 (6.18).
fn pass_niceness_on(child: &Child) {
    if let Ok(Schedule::Other { nice }) = schedule_of(this_thread()) {
        // Kernels without such groups go by the niceness that the emulator has inherited.
        let _ = child.set_autogroup_nice(nice);
    }
}

/// What to try where these were refused.
fn possible(is_root: bool, refused: &BTreeSet<Measure>) -> Vec<Measure> {
    let is_open = |measure: &Measure| !refused.contains(measure);
    let spaces = [Namespace::Network, Namespace::Ipc].map(Measure::Namespace);
    let user = if is_root {
        [Measure::OwnUser, Measure::Nobody].into_iter().find(is_open)
    } else {
        // It is for the sake of the others: without it, only root may have them.
        Some(Measure::Namespace(Namespace::User)).filter(is_open)
    };
    let spaces = spaces.into_iter().filter(|space| (is_root || user.is_some()) && is_open(space));
    user.into_iter().chain(spaces).chain(Some(Measure::Landlock).filter(is_open)).collect()
}

fn namespaces_of(measures: &[Measure]) -> Vec<Namespace> {
    let of = |measure: &Measure| match measure {
        Measure::Namespace(namespace) => Some(*namespace),
        _ => None,
    };
    measures.iter().filter_map(of).collect()
}

fn user_of(measures: &[Measure]) -> Option<u32> {
    measures.iter().find_map(|measure| match measure {
        Measure::OwnUser => Some(own_user()),
        Measure::Nobody => Some(NOBODY),
        _ => None,
    })
}

/// The measure that did not work; `None` if it is no matter of these.
fn measure_of(step: Step, measures: &[Measure]) -> Option<Measure> {
    match step {
        Step::Namespace(place) => {
            namespaces_of(measures).get(place).map(|namespace| Measure::Namespace(*namespace))
        }
        Step::User => {
            let is_user = |m: &&Measure| matches!(m, Measure::OwnUser | Measure::Nobody);
            measures.iter().find(is_user).copied()
        }
        Step::Rules => Some(Measure::Landlock),
        Step::Process | Step::Privileges | Step::Execute => None,
    }
}

/// A user that no other emulator is at this time, so that they cannot reach each other.
fn own_user() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // The kernel gives numbers of 22 bits to processes.
    let process = std::process::id() & 0x3f_ffff;
    OWN_USERS + (process << 8) + (COUNT.fetch_add(1, Ordering::Relaxed) & 0xff)
}

/// The rules for `qemu`: it opens nothing to write but /dev/null, and reads what the system's programs
/// read and its own files.
fn rules(qemu: &Qemu) -> io::Result<Rules> {
    let version = landlock::version()?;
    let since = |first: u32, rights: u64| if version >= first { rights } else { 0 };
    let read = landlock::READ_FILE | landlock::READ_FOLDER | landlock::EXECUTE;
    let truncate = since(3, landlock::TRUNCATE);
    let changes = landlock::WRITE_FILE | landlock::CHANGE_FOLDER | since(2, landlock::REFER);
    let readable = readable(qemu);
    let rules = Rules::new(&Forbidden {
        files: changes | truncate | if readable.is_some() { read } else { 0 },
        network: since(4, landlock::TCP),
        scope: since(6, landlock::REACH_OUT),
    })?;
    for folder in readable.into_iter().flatten() {
        if let Ok(folder) = File::open(folder) {
            rules.allow(&folder, read)?;
        }
    }
    // The record of its run, which nobody needs.
    let sink = landlock::WRITE_FILE | truncate;
    rules.allow(&File::open("/dev/null")?, sink)?;
    Ok(rules)
}

/// The folders that it may read; `None` for all. What one of somebody's own needs is not known.
fn readable(qemu: &Qemu) -> Option<Vec<PathBuf>> {
    let is_private = qemu.folder != Path::new("/");
    let is_system = SYSTEM.iter().any(|folder| qemu.program.starts_with(folder));
    let own = is_private.then(|| qemu.folder.clone());
    let all = SYSTEM.iter().map(PathBuf::from).chain(own).chain(qemu.data.iter().cloned());
    (is_private || is_system).then(|| all.collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wakescope_sys::process::{Apart, Environment, Start};
    use wakescope_sys::sched::set_schedule;

    use super::*;

    #[test]
    fn the_manual_has_the_size_of_the_largest_file() {
        let manual = include_str!("../../../../docs/lab.md");
        assert!(manual.contains(&format!("files of {} MiB at most", LARGEST >> 20)));
    }

    #[test]
    fn what_is_refused_is_left_out_and_nothing_else() {
        use Measure::{Landlock, Nobody, OwnUser};
        let [user, network, ipc] =
            [Namespace::User, Namespace::Network, Namespace::Ipc].map(Measure::Namespace);
        let cases: [(bool, &[Measure], &[Measure]); 8] = [
            (true, &[], &[OwnUser, network, ipc, Landlock]),
            (true, &[OwnUser], &[Nobody, network, ipc, Landlock]),
            (true, &[OwnUser, Nobody], &[network, ipc, Landlock]),
            (true, &[network, Landlock], &[OwnUser, ipc]),
            (false, &[], &[user, network, ipc, Landlock]),
            (false, &[ipc], &[user, network, Landlock]),
            (false, &[user], &[Landlock]),
            (false, &[user, Landlock], &[]),
        ];
        for (is_root, refused, want) in cases {
            let got = possible(is_root, &refused.iter().copied().collect());
            assert_eq!(got, want, "{is_root} {refused:?}");
        }
    }

    #[test]
    fn each_step_that_can_be_refused_is_a_measure() {
        let measures = possible(true, &BTreeSet::new());
        let namespace = Measure::Namespace(Namespace::Ipc);
        assert_eq!(measure_of(Step::Namespace(1), &measures), Some(namespace));
        assert_eq!(measure_of(Step::User, &measures), Some(Measure::OwnUser));
        assert_eq!(measure_of(Step::Rules, &measures), Some(Measure::Landlock));
        // The emulator does not run with the capabilities of root, whatever happens.
        assert_eq!(measure_of(Step::Privileges, &measures), None);
        assert_eq!(measure_of(Step::Execute, &measures), None);
    }

    #[test]
    fn a_session_gives_way_as_who_started_it() {
        let nothing = File::options().read(true).write(true).open("/dev/null").unwrap();
        // A thread of its own: root alone may take niceness back.
        let shown = std::thread::spawn(move || {
            set_schedule(Schedule::Other { nice: 7 }).unwrap();
            let child = Start {
                program: &Program::new(Path::new("/bin/sleep"), ["1000"]).unwrap(),
                stdio: [nothing.as_fd(), nothing.as_fd(), nothing.as_fd()],
                apart: Apart::Session,
                dies_with_thread: true,
                environment: Environment::Empty,
            };
            let child = child.run().unwrap();
            pass_niceness_on(&child);
            let shown = fs::read_to_string(format!("/proc/{}/autogroup", child.pid()));
            child.kill();
            child.wait();
            shown
        });
        match shown.join().unwrap() {
            Ok(shown) => assert!(shown.trim_end().ends_with("nice 7"), "{shown}"),
            Err(e) => {
                wakescope_testing::skip("a_session_gives_way_as_who_started_it", &e.to_string());
            }
        }
    }

    #[test]
    fn each_emulator_is_another_user() {
        let (one, other) = (own_user(), own_user());
        assert!(one != other && one >= OWN_USERS && other < 2 * OWN_USERS);
    }
}
