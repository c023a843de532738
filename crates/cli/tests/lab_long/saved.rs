//! Machines that were saved, and guests that go on from them.

use wakescope_core::lab::Status;

use crate::common::lab::{Bench, KERNEL};
use crate::common::measured::names;
use crate::stock;

#[test]
fn a_guest_that_goes_on_from_a_saved_machine_gives_the_bits_of_one_that_boots() {
    let name = "a_guest_that_goes_on_from_a_saved_machine_gives_the_bits_of_one_that_boots";
    let Some(stock) = stock(name, &[]) else { return };
    let one = |seed| {
        let cell = ["--kernel", KERNEL, "--preempt", "full", "--load", "find", "--samples", "100"];
        [&cell[..], &["--seeds", seed]].concat()
    };
    let state_of = |bench: &Bench, cell: &str| {
        let meta = std::fs::read(bench.cache.join("cells").join(cell).join("meta.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&meta).unwrap()["state"].clone()
    };
    // On a busy host the machine may be halted too late to be saved.
    let bench = (0..5).find_map(|_| {
        let bench = Bench::new(stock, "saved");
        let ran = bench.run(&one("1"));
        assert_eq!((ran.code, ran.states()), (Some(0), vec![Status::Ok]), "{}", ran.json);
        bench.cache.join("states").exists().then_some(bench)
    });
    let bench = bench.expect("a machine is saved");
    let first = bench.measurements().remove(0);
    let states = names(&bench.cache.join("states"));
    let [state] = &states[..] else { panic!("{states:?}") };
    let state = bench.cache.join("states").join(state);
    let mut stored = std::fs::read(&state).unwrap();
    let sum = std::str::from_utf8(&stored).err().map(|e| &stored[..e.valid_up_to()]).unwrap();
    let sum = String::from_utf8_lossy(sum).lines().nth(1).unwrap().to_owned();
    assert_eq!(state_of(&bench, &first), sum);
    // What verifies them boots.
    let verified = bench.lab(&["verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    assert!(
        verified.stdout.contains("2 cells were run again and repeated to the bit"),
        "{verified:?}"
    );
    // From a damaged one, nobody goes on.
    let middle = stored.len() / 2;
    stored[middle] ^= 1;
    std::fs::write(&state, stored).unwrap();
    let ran = bench.run(&one("1,2"));
    assert_eq!((ran.code, ran.states()), (Some(0), vec![Status::Ok; 2]), "{}", ran.json);
    let second = bench.measurements().into_iter().find(|cell| *cell != first).unwrap();
    assert!(state_of(&bench, &second).is_null() && !state.exists());
}
