//! A host that takes the CPU from the emulator does not change a bit.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wakescope_core::lab::Status;
use wakescope_core::random::Random;
use wakescope_core::units::SpanNs;
use wakescope_lab::cache::Cache;
use wakescope_lab::kernel::Arch;
use wakescope_lab::qemu::Qemu;
use wakescope_lab::sum::Memo;
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule};
use wakescope_testing::write_program;

use crate::common::bench::skip;
use crate::common::lab::{Bench, KERNEL, first_lab};
use crate::common::measured::allowed_cpus;

/// What is loaded into an emulator tells at its end how often it did something.
const TELLS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

static unsigned done;

/* The emulator may not open files to write, but a socket of the test is no file. */
__attribute__((destructor)) static void tell(void)
{
	struct sockaddr_un place = { .sun_family = AF_UNIX };
	int line = socket(AF_UNIX, SOCK_DGRAM, 0);
	char text[20];
	int length = snprintf(text, sizeof text, "%u", done);

	strncpy(place.sun_path, getenv("TELLS"), sizeof place.sun_path - 1);
	sendto(line, text, length, 0, (void *)&place, sizeof place);
}
"#;

/// Loaded into the emulator, it stops its threads where they share the guest's clock.
///
/// A CPU that halts leaves the translated code by a jump. What it executed is not published yet, but
/// it counts as halted: `halted` is 1 and `exception_index` beside it is 0x10001, somewhere behind
/// the jump buffer. The main loop, meanwhile, comes out of ppoll(2).
const DELAYS: &str = r#"
static unsigned halts, polls;

static void wait_us(long us)
{
	struct timespec pause = { 0, us * 1000 };
	nanosleep(&pause, 0);
}

static void before_jump(const void *buffer)
{
	const uint32_t *word = buffer;
	for (int i = 0; i < 512; i++)
		if (word[i] == 1 && word[i + 1] == 0x10001) {
			if (++halts % 4 == 0) {
				done++;
				wait_us(300);
			}
			return;
		}
}

void __longjmp_chk(jmp_buf buffer, int value)
{
	void (*jump)(jmp_buf, int) = dlsym(RTLD_NEXT, "__longjmp_chk");
	before_jump(buffer);
	jump(buffer, value);
	abort();
}

void siglongjmp(sigjmp_buf buffer, int value)
{
	void (*jump)(sigjmp_buf, int) = dlsym(RTLD_NEXT, "siglongjmp");
	before_jump(buffer);
	jump(buffer, value);
	abort();
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	int (*poll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *) =
		dlsym(RTLD_NEXT, "ppoll");
	int ready = poll(files, count, timeout, mask);
	if (++polls % 8 == 0)
		wait_us(100);
	return ready;
}
"#;

/// Loaded into the emulator, it makes an hour pass between two looks at the host's clock.
const HOURS: &str = r#"
int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	*time = (struct timeval){ 1000000000L + 3600L * ++done, 0 };
	return 0;
}
"#;

/// An emulator into which a library is loaded when a test says so.
struct Disturbed {
    program: String,
    /// Where the library tells how often it did something.
    tells: PathBuf,
}

/// What disturbed emulators tell.
struct Counts(UnixDatagram);

impl Disturbed {
    /// `None` if there is no compiler.
    fn build(bench: &Bench, by: &str) -> Option<Self> {
        let dir = &bench.test.dir;
        let (source, library) = (dir.join("disturb.c"), dir.join("disturb.so"));
        fs::write(&source, [TELLS, by].concat()).unwrap();
        Command::new("cc").arg("--version").output().ok()?;
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        let built = cc.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let cache = Cache::at(&bench.cache);
        let qemu = Qemu::find(Arch::Amd64, None, &cache, &mut Memo::open(&cache)).unwrap();
        let tells = dir.join("tells");
        // Where the lab has its own, the user that an emulator is need not be able to go.
        let own = dir.join("emulator");
        let copied = Command::new("cp").arg("-rL").arg(&qemu.folder).arg(&own).status();
        assert!(copied.is_ok_and(|status| status.success()));
        let mut script = format!(
            "#!/bin/sh\nif [ -e '{0}' ]; then export TELLS='{0}' LD_PRELOAD='{1}'; fi\n\
             cd '{2}' && exec",
            tells.display(),
            library.display(),
            own.display()
        );
        for word in &qemu.command {
            let _ = write!(script, " '{}'", word.to_str().unwrap());
        }
        script.push_str(" \"$@\"\n");
        let program = dir.join(Qemu::program_name(Arch::Amd64));
        write_program(&program, script.as_bytes());
        Some(Self { program: program.to_str().unwrap().into(), tells })
    }

    fn begin(&self) -> Counts {
        let counts = UnixDatagram::bind(&self.tells).unwrap();
        counts.set_nonblocking(true).unwrap();
        fs::set_permissions(&self.tells, fs::Permissions::from_mode(0o777)).unwrap();
        Counts(counts)
    }
}

impl Counts {
    /// How often it did something, of each emulator.
    fn read(&self) -> Vec<u32> {
        let mut text = [0; 20];
        let texts = std::iter::from_fn(|| {
            let length = self.0.recv(&mut text).ok()?;
            Some(String::from_utf8(text[..length].to_vec()).unwrap())
        });
        texts.map(|text| text.parse().unwrap()).collect()
    }
}

#[test]
fn an_emulator_that_is_stopped_where_it_halts_repeats_to_the_bit() {
    let name = "an_emulator_that_is_stopped_where_it_halts_repeats_to_the_bit";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "stopped");
    let Some(delayed) = Disturbed::build(&bench, DELAYS) else {
        return skip(name, "there is no cc");
    };
    let emulator = ["--qemu", &delayed.program];
    let cell = ["--kernel", KERNEL, "--preempt", "full", "--load", "idle", "--seeds", "1"];
    let ran = bench.run(&[&emulator[..], &cell, &["--samples", "200"]].concat());
    assert_eq!((ran.code, ran.states()), (Some(0), vec![Status::Ok]), "{}", ran.json);
    let counts = delayed.begin();
    let key = &ran.keys()[0];
    // However often it is named, it is run once.
    let verified = bench.lab(&[&["verify", key, &key[..12], key], &emulator[..]].concat());
    let counts = counts.read();
    assert!(counts.iter().filter(|&&count| count >= 50).count() == 1, "{counts:?}");
    assert_eq!(verified.stdout, "1 cell was run again and repeated to the bit.\n");
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// The emulator makes its cache of translations larger or smaller by the host's time. A kernel that clears the
/// marks of used pages sees which of them it still held: newer kernels are told not to.
#[test]
fn an_emulator_whose_host_leaps_in_time_repeats_to_the_bit() {
    let name = "an_emulator_whose_host_leaps_in_time_repeats_to_the_bit";
    const NEW: &str = "7.2-rt";
    let Some(stock) = crate::stock(name, &[NEW]) else { return };
    let bench = Bench::new(stock, "leaps");
    let Some(leaping) = Disturbed::build(&bench, HOURS) else {
        return skip(name, "there is no cc");
    };
    let emulator = ["--qemu", &leaping.program];
    let cell = ["--kernel", NEW, "--load", "launch", "--seeds", "1", "--samples", "100"];
    let ran = bench.run(&[&emulator[..], &cell, &["--explain", "--above", "p98"]].concat());
    assert_eq!((ran.code, ran.states()), (Some(0), vec![Status::Ok]), "{}", ran.json);
    let counts = leaping.begin();
    let verified = bench.lab(&[&["verify", &ran.keys()[0]], &emulator[..]].concat());
    let counts = counts.read();
    // The cache is looked at for each kind of page when it is emptied, which is often.
    assert!(counts.iter().filter(|&&count| count >= 1_000).count() == 1, "{counts:?}");
    assert_eq!(verified.stdout, "1 cell was run again and repeated to the bit.\n");
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// Real-time threads, one on each CPU, that leave little of it to others: in turns, 90 % of 100 ms,
/// and half of the next, in bursts of up to 0.4 ms.
struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    /// Whatever happens, they end by themselves.
    const LONGEST: SpanNs = SpanNs(30_000_000_000);
    const TURN: u64 = 100_000_000;

    /// `None` if no real-time thread is permitted.
    fn start() -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let try_it = || set_schedule(Schedule::Fifo { priority: 50 }).is_ok();
        if !std::thread::scope(|scope| scope.spawn(try_it).join().unwrap()) {
            return None;
        }
        let hog = |(place, cpu): (usize, u32)| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || Self::hog(place as u64, cpu, &stop))
        };
        let threads = allowed_cpus().into_iter().enumerate().map(hog).collect();
        Some(Self { stop, threads })
    }

    fn hog(place: u64, cpu: u32, stop: &AtomicBool) {
        set_affinity(&[cpu]).unwrap();
        set_schedule(Schedule::Fifo { priority: 50 }).unwrap();
        let mut random = Random::new(place);
        let began = clock::now();
        while !stop.load(Ordering::Relaxed) && clock::now().since(began) < Self::LONGEST {
            let burst = 50_000 + random.below(350_000) as u64;
            let start = clock::now();
            while clock::now().since(start).0 < burst {
                std::hint::spin_loop();
            }
            let turn = start.since(began).0 / Self::TURN;
            let share_left = if (turn + place) % 2 == 0 { 9 } else { 1 };
            std::thread::sleep(Duration::from_nanos(burst / share_left));
        }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[test]
fn cells_repeat_to_the_bit_under_real_time_threads_on_every_cpu() {
    let name = "cells_repeat_to_the_bit_under_real_time_threads_on_every_cpu";
    if crate::stock(name, &[KERNEL]).is_none() {
        return;
    }
    let Some((stock, pool, first)) = first_lab(name) else { return };
    let bench = Bench::new(stock, "hogs");
    bench.take_kernels(&pool);
    let Some(hogs) = Hogs::start() else {
        return skip(name, "SCHED_FIFO is not permitted");
    };
    let cells = ["--kernel", KERNEL, "--preempt", "full", "--load", "idle,find", "--seeds", "1"];
    let again = bench.run(&[&cells[..], &["--samples", "200", "--jobs", "2"]].concat());
    drop(hogs);
    assert_eq!((again.code, again.states()), (Some(0), vec![Status::Ok; 2]), "{}", again.json);
    assert_eq!(again.cached(), [false; 2]);
    bench.assert_same_bits(&pool);
    let known: Vec<_> = first.result().cells;
    assert!(again.result().cells.iter().all(|cell| known.contains(cell)), "{}", again.json);
}
