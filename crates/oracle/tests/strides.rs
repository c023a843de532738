//! What a simulation does must not depend on how far it is asked to go at a time.

use wakescope_model::image::CpuId;
use wakescope_model::kernel::Running;
use wakescope_model::simulation::{Sample, Until, Watch};
use wakescope_model::trace::Transition;
use wakescope_model::{Image, Rules, Simulation};
use wakescope_oracle::random::scenario;

/// Everything that a watch is shown, a line each.
#[derive(Default)]
struct Log(Vec<String>);

impl Watch for Log {
    const FOLLOWS: bool = true;

    fn sample(&mut self, sample: Sample) {
        self.0.push(format!("{sample:?}"));
    }

    fn ran(&mut self, cpu: CpuId, from_ns: u64, to_ns: u64, at: Running) {
        self.0.push(format!("{from_ns} to {to_ns} {cpu:?} {at:?}"));
    }

    fn happened(&mut self, cpu: CpuId, at_ns: u64, what: Transition) {
        self.0.push(format!("{at_ns} {cpu:?} {what:?}"));
    }
}

/// An operation that ends before anything else happens is passed without a place among what is to come;
/// not so where a stride ends before. With strides of 1 ns none is passed.
#[test]
fn strides_of_any_length_show_the_same() {
    const END_NS: u64 = 3_000_000;
    let (mut events, mut strides) = (0, 0);
    for seed in 1..=24 {
        for rules in Rules::ALL {
            let image = Image::new(&scenario(seed), rules).unwrap();
            let mut run = |stride_ns: u64| {
                let mut simulation = Simulation::new(&image, seed, Log::default());
                let mut ending = Ok(());
                while simulation.now_ns() < END_NS && ending.is_ok() {
                    let ns = simulation.now_ns().saturating_add(stride_ns).min(END_NS);
                    strides += 1;
                    ending = simulation.run_until(Until { samples: u64::MAX, ns });
                }
                let (now, events) = (simulation.now_ns(), simulation.events());
                (now, events, ending, simulation.into_watch().0)
            };
            let (whole, steps) = (run(u64::MAX), run(1));
            let at = whole.3.iter().zip(&steps.3).position(|(one, other)| one != other);
            if let Some(at) = at {
                panic!("seed {seed}, {}: {}, not {}", rules.name, whole.3[at], steps.3[at]);
            }
            assert!(whole == steps, "seed {seed}, {}", rules.name);
            events += whole.1;
        }
    }
    // An event of three comes at a time of its own, and ends a stride.
    assert!(events > 400_000 && strides > events / 4, "{strides} strides, {events} events");
}
