//! The scenarios that come with wakescope.

use super::{Scenario, read::ReadError};

/// A scenario that comes with wakescope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, which is that of the scenario.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
        }),+]
    };
}

/// All scenarios that come with wakescope, by name.
pub const SHIPPED: &[Shipped] = shipped![
    "catface",
    "catface-protected",
    "late-wakeup",
    "linux-journal-file-move",
    "linux-journal-find",
    "linux-journal-launch",
    "page-free-6.1",
    "page-free-7.2",
    "priority-inversion",
    "prune-dcache",
    "prune-dcache-livelock",
    "stueckjuergen",
    "stueckjuergen-unloaded",
    "williams",
];

impl Shipped {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        SHIPPED.iter().find(|shipped| shipped.name == name).copied()
    }

    /// The scenario.
    ///
    /// # Errors
    /// None: a test reads all of them.
    pub fn read(&self) -> Result<Scenario, ReadError> {
        let no_runs = |_: &str, _: &str| Err("a scenario that is shipped names no runs".to_owned());
        Scenario::read(&format!("{}.toml", self.name), self.text, &no_runs)
    }
}

#[cfg(test)]
mod tests {
    use wakescope_core::percentile::Percentile;

    use super::*;
    use crate::simulation::{Broken, Sample, Until, Unwatched};
    use crate::{Image, Rules, Simulation};

    /// What a scenario shows under a model: wakeup latencies in order, and the work of each task.
    struct Shown {
        latencies: Vec<u64>,
        work: Vec<(String, u64)>,
    }

    impl Shown {
        fn most_us(&self) -> u64 {
            self.latencies.last().copied().unwrap_or(0) / 1_000
        }

        fn mean_us(&self) -> u64 {
            self.latencies.iter().sum::<u64>() / self.latencies.len() as u64 / 1_000
        }

        /// Of 100,000.
        fn below(&self, ns: u64) -> usize {
            self.latencies.partition_point(|latency| *latency < ns) * 100_000 / self.latencies.len()
        }

        fn work(&self, name: &str) -> u64 {
            self.work.iter().find(|(of, _)| of == name).unwrap().1
        }
    }

    fn run(name: &str, rules: &str, samples: u64, ns: u64) -> Result<Shown, Broken> {
        run_seed(name, rules, 1, Until { samples, ns })
    }

    fn run_seed(name: &str, rules: &str, seed: u64, until: Until) -> Result<Shown, Broken> {
        let scenario = Shipped::named(name).unwrap().read().unwrap();
        let image = Image::new(&scenario, Rules::named(rules).unwrap()).unwrap();
        let mut latencies = Vec::new();
        let mut keep = |sample: Sample| latencies.push(sample.latency_ns());
        let mut simulation = Simulation::new(&image, seed, Unwatched(&mut keep));
        simulation.run_until(until)?;
        let tasks = image.tasks.iter().enumerate();
        let work = tasks.map(|(task, of)| {
            let task = crate::image::TaskId(u16::try_from(task).unwrap());
            (of.name.clone(), simulation.work(task))
        });
        let work = work.collect();
        drop(simulation);
        latencies.sort_unstable();
        Ok(Shown { latencies, work })
    }

    fn samples(name: &str, rules: &str, samples: u64) -> Shown {
        run(name, rules, samples, u64::MAX).unwrap_or_else(|e| panic!("{name}, {rules}: {e}"))
    }

    fn seeded(name: &str, rules: &str, seed: u64, samples: u64) -> Shown {
        run_seed(name, rules, seed, Until { samples, ns: u64::MAX })
            .unwrap_or_else(|e| panic!("{name}, {rules}, seed {seed}: {e}"))
    }

    fn seconds(name: &str, rules: &str, seconds: u64) -> Shown {
        let ns = seconds * 1_000_000_000;
        run(name, rules, u64::MAX, ns).unwrap_or_else(|e| panic!("{name}, {rules}: {e}"))
    }

    #[test]
    fn all_keep_the_rules_of_every_kernel_but_for_the_one_that_shows_how_not_to() {
        for shipped in SHIPPED {
            for rules in Rules::ALL {
                // prune-dcache and its like iterate often.
                let broken = run(shipped.name, rules.name, 300, 300_000_000).err();
                let expected = shipped.name == "catface" && rules.interrupt_return_schedules;
                assert_eq!(
                    broken.is_some(),
                    expected,
                    "{} {}: {broken:?}",
                    shipped.name,
                    rules.name
                );
            }
        }
    }

    #[test]
    fn broken_loops_are_as_long_as_what_lies_between_two_breaks() {
        // Up to 1,000 iterations of 1.2 us, or 100 of them.
        for (rules, least, most) in [
            ("none", 900, 1_300),
            ("full", 900, 1_250),
            ("voluntary", 100, 160),
            ("both", 100, 130),
        ] {
            let found = samples("prune-dcache", rules, 2_000).most_us();
            assert!((least..most).contains(&found), "{rules}: {found} us");
        }
    }

    #[test]
    fn one_wakeup_is_late_for_what_each_model_waits_for() {
        // Of the loop 466 us are left, of its iteration 66 us, of the system call 1,012 us.
        for (rules, most) in
            [("none", 1_014), ("voluntary", 67), ("full", 468), ("lazy", 468), ("rt", 2)]
        {
            let found = samples("late-wakeup", rules, 1).most_us();
            assert!(found.abs_diff(most) < 4, "{rules}: {found} us");
        }
    }

    #[test]
    fn a_loop_that_begins_anew_makes_no_progress() {
        for (rules, least, most) in [("none", 1_000, 2_000), ("full", 1_000, 2_000), ("both", 0, 2)]
        {
            let found = seconds("prune-dcache-livelock", rules, 1).work("find");
            assert!((least..=most).contains(&found), "{rules}: {found} times");
        }
    }

    #[test]
    fn a_mutex_bounds_the_inversion() {
        let found = seconds("priority-inversion", "full", 10).work("high");
        assert!((960..=1_000).contains(&found), "{found} times");
    }

    #[test]
    fn freed_pages_delay_wakeups_as_in_the_booted_kernels() {
        // The lengths of both scenarios are of sections; no wakeup decided one. So this can fail.
        let [old, new] =
            ["page-free-6.1", "page-free-7.2"].map(|name| booted_and_simulated(name, "full"));
        for (kernel, [booted, simulated]) in [("6.1", old), ("7.2", new)] {
            let all = format!("{kernel}: booted {booted:?}, simulated {simulated:?}");
            assert!(within(booted.max, simulated.max, 1.25), "max, {all}");
            assert!(within(booted.p50, simulated.p50, 1.1), "p50, {all}");
            assert!(within(booted.p99, simulated.p99, 1.25), "p99, {all}");
            // Its rank is the fifth from the top, next to sections that come four times.
            assert!(within(booted.p999, simulated.p999, 4.0), "p99.9, {all}");
        }
        let ratio = |of: fn(Figures) -> f64, at: usize| of(old[at]) / of(new[at]);
        for (name, of, factor) in
            [("max", (|f| f.max) as fn(Figures) -> f64, 1.25), ("p99.9", |f| f.p999, 4.0)]
        {
            let [booted, simulated] = [0, 1].map(|at| ratio(of, at));
            assert!(booted > 5.0 && simulated > 5.0, "{name}: {booted} and {simulated} times");
            assert!(within(booted, simulated, factor), "{name}: {booted} and {simulated} times");
        }
    }

    #[test]
    fn other_models_do_not_shorten_what_interrupts_off_take() {
        for (name, rules) in
            [("page-free-6.1", "none"), ("page-free-6.1", "voluntary"), ("page-free-7.2", "lazy")]
        {
            let [booted, simulated] = booted_and_simulated(name, rules);
            let all = format!("{name} {rules}: booted {booted:?}, simulated {simulated:?}");
            assert!(within(booted.max, simulated.max, 1.5), "{all}");
        }
        // Its locks sleep, and interrupts stay on.
        assert!(samples("page-free-6.1", "rt", 2_000).most_us() < 10);
    }

    /// Nanoseconds.
    #[derive(Clone, Copy, Debug)]
    struct Figures {
        p50: f64,
        p99: f64,
        p999: f64,
        max: f64,
    }

    impl Figures {
        fn of(latencies: &[u64]) -> Self {
            let count = latencies.len() as u64;
            let at = |name: &str| {
                let rank = name.parse::<Percentile>().unwrap().rank(count);
                latencies[usize::try_from(rank).unwrap() - 1] as f64
            };
            let max = *latencies.last().unwrap() as f64;
            Self { p50: at("p50"), p99: at("p99"), p999: at("p99.9"), max }
        }
    }

    fn within(one: f64, other: f64, factor: f64) -> bool {
        one.max(other) <= one.min(other) * factor
    }

    /// What the booted kernel of a scenario measured, and medians of as many seeds of its model.
    fn booted_and_simulated(name: &str, rules: &str) -> [Figures; 2] {
        let scenario = Shipped::named(name).unwrap().read().unwrap();
        let measured = scenario.measured.iter().find(|one| one.preempt == rules).unwrap();
        let [p50, p99, p999] = [0, 1, 2].map(|at| measured.percentiles[at].1 as f64);
        let booted = Figures { p50, p99, p999, max: measured.max_ns.unwrap() as f64 };
        let seeds: Vec<Figures> = (1..=5)
            .map(|seed| Figures::of(&seeded(name, rules, seed, measured.samples).latencies))
            .collect();
        let median = |of: fn(&Figures) -> f64| {
            let mut all: Vec<f64> = seeds.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let [p50, p99] = [median(|f| f.p50), median(|f| f.p99)];
        [booted, Figures { p50, p99, p999: median(|f| f.p999), max: median(|f| f.max) }]
    }

    #[test]
    fn the_patches_of_2002_have_the_order_that_was_published() {
        // Williams: shares of samples below 0.1 and 0.2 ms, of 100,000.
        for (rules, below_100, below_200) in [
            ("none", 92_844, 97_084),
            ("full", 97_953, 99_557),
            ("voluntary", 96_663, 99_212),
            ("both", 98_313, 99_760),
        ] {
            let found = samples("williams", rules, 40_000);
            let (first, second) = (found.below(100_000), found.below(200_000));
            assert!(first.abs_diff(below_100) < 1_000, "{rules}: {first} below 0.1 ms");
            assert!(second.abs_diff(below_200) < 600, "{rules}: {second} below 0.2 ms");
            let most = found.most_us();
            let expected = match rules {
                "none" => 20_000..233_000,
                "full" => 400..46_000,
                _ => 300..1_300,
            };
            assert!(expected.contains(&most), "{rules}: {most} us");
        }
    }

    #[test]
    fn the_machine_of_2004_has_the_averages_that_were_published() {
        for (name, rules, mean, most) in [
            ("stueckjuergen", "full", 170, 840),
            ("stueckjuergen", "none", 232, 1_063),
            ("stueckjuergen-unloaded", "full", 50, 233),
            ("stueckjuergen-unloaded", "none", 44, 215),
        ] {
            let found = samples(name, rules, 10_000);
            let (mean_us, most_us) = (found.mean_us(), found.most_us());
            assert!(mean_us.abs_diff(mean) * 8 < mean, "{name} {rules}: {mean_us} us on average");
            assert!(most_us.abs_diff(most) * 4 < most, "{name} {rules}: {most_us} us at most");
        }
    }

    #[test]
    fn the_loads_of_the_linux_journal_have_the_maxima_that_were_published() {
        for (load, none, full) in
            [("launch", 610, 410), ("file-move", 620, 310), ("find", 78_510, 480)]
        {
            let name = format!("linux-journal-{load}");
            for (rules, published) in [("none", none), ("full", full)] {
                let found = samples(&name, rules, 20_000).most_us();
                // A million samples reach it; so few come near, but for the rare path of find.
                let least = if published > 10_000 { 300 } else { published / 2 };
                let most = published * 11 / 10;
                assert!((least..most).contains(&found), "{name} {rules}: {found} us");
            }
        }
    }
}
