//! What the programs make of a switch while a softirq goes on, in the kernel, of which the test says whether it has
//! real-time preemption.

use std::error::Error;
use std::os::fd::AsFd;

use aya::maps::Map;
use aya::programs::{BtfTracePoint, ProgramFd, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use wakescope_core::units::SpanNs;
use wakescope_sys::bpf::run_once;
use wakescope_sys::clock;
use wakescope_sys::sched::{affinity, set_affinity};
use wakescope_sys::shared::Words;
use wakescope_testing::skip;

use compiled::compiled;

mod compiled;

/// With this the programs look at each switch: `ALL_SECTIONS` of bpf/shared.h.
const ALL_SECTIONS: u32 = 2;

struct Switches {
    make_up: ProgramFd,
    look: ProgramFd,
    words: Words,
    // Its maps and what is attached live as long as this.
    _programs: Ebpf,
}

impl Switches {
    /// Programs that see this CPU, and take a kernel for one with real-time preemption if its threads have this
    /// `field`.
    fn follow(cpu: u32, field: &str, types: &Btf) -> Result<Self, Box<dyn Error>> {
        let object = compiled("softirq", &[&format!("-Dsoftirq_disable_cnt={field}")]);
        let mut loader = EbpfLoader::new();
        loader.btf(Some(types)).set_max_entries("cpus", cpu + 1);
        let mut programs = loader.set_global("also_followed", &ALL_SECTIONS, true).load(&object)?;
        let mut once = |name: &str| -> Result<ProgramFd, Box<dyn Error>> {
            let program: &mut RawTracePoint =
                programs.program_mut(name).unwrap().try_into().unwrap();
            program.load()?;
            Ok(program.fd()?.try_clone()?)
        };
        let (make_up, look) = (once("make_up_softirq")?, once("look_at_softirq")?);
        let switch: &mut BtfTracePoint =
            programs.program_mut("on_switch").unwrap().try_into().unwrap();
        switch.load("sched_switch", types)?;
        switch.attach()?;
        let words = match programs.map("words") {
            Some(Map::Array(data)) => Words::map(data.fd().as_fd(), 1)?,
            other => panic!("{other:?}"),
        };
        Ok(Self { make_up, look, words, _programs: programs })
    }

    /// Whether a softirq still goes on for the programs after this CPU was switched to other threads and back.
    fn leave_a_softirq(&self) -> bool {
        assert_eq!(run_once(self.make_up.as_fd(), &[0]).unwrap(), 0);
        clock::sleep_until(clock::now().after(SpanNs(1_000_000))).unwrap();
        assert_eq!(run_once(self.look.as_fd(), &[0]).unwrap(), 0);
        self.words.load(0) != 0
    }
}

/// With real-time preemption a softirq can be switched away from. Its time would be that of all who run until it goes
/// on; elsewhere nobody does.
#[test]
fn a_softirq_that_is_switched_away_from_has_no_time_with_real_time_preemption() {
    const NAME: &str = "a_softirq_that_is_switched_away_from_has_no_time_with_real_time_preemption";
    let cpu = affinity().unwrap()[0];
    set_affinity(&[cpu]).unwrap();
    let types = match Btf::from_sys_fs() {
        Ok(types) => types,
        Err(why) => return skip(NAME, &why.to_string()),
    };
    // Each kernel's threads have the first one of these, and no kernel's the other one.
    for (field, goes_on) in [("exit_signal", false), ("no_such_field", true)] {
        match Switches::follow(cpu, field, &types) {
            Ok(switches) => assert_eq!(switches.leave_a_softirq(), goes_on, "{field}"),
            Err(why) => return skip(NAME, &why.to_string()),
        }
    }
}
