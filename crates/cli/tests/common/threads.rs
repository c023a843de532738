//! Threads of a test, each with a CPU and a policy, that go on until it ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use wakescope_sys::sched::{Schedule, set_affinity, set_schedule, this_thread};

#[derive(Default)]
pub(crate) struct Threads {
    ends: Arc<AtomicBool>,
    all: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts a thread on these CPUs, and gives its number. `act` must return once its flag is set.
    pub(crate) fn start(
        &mut self,
        name: &str,
        cpus: &[u32],
        schedule: Schedule,
        act: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> u32 {
        let (ends, cpus) = (Arc::clone(&self.ends), cpus.to_vec());
        let (tell, number) = channel();
        let begin = move || {
            set_affinity(&cpus).unwrap();
            set_schedule(schedule).unwrap();
            tell.send(this_thread().number()).unwrap();
            act(&ends);
        };
        self.all.push(Builder::new().name(name.into()).spawn(begin).unwrap());
        number.recv().unwrap()
    }

    /// The same of one that does something again and again.
    pub(crate) fn repeat(
        &mut self,
        name: &str,
        cpus: &[u32],
        schedule: Schedule,
        act: impl Fn() + Send + 'static,
    ) -> u32 {
        self.start(name, cpus, schedule, move |ends| {
            while !ends.load(Ordering::Relaxed) {
                act();
            }
        })
    }

    pub(crate) fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.all.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
