use super::*;
use wakescope_core::plan::Family;

#[test]
fn every_stimulus_by_a_waker_has_a_channel_and_no_other() {
    #[derive(Clone, Copy)]
    struct Exists;
    impl ForChannel for Exists {
        type Output = ();
        fn with<C: Channel>(self) {}
    }
    for &stimulus in Stimulus::OF_PROBES {
        let has_channel = for_channel(stimulus, Exists).is_some();
        assert_eq!(has_channel, stimulus.family() == Family::Waker, "{stimulus}");
    }
}

#[test]
fn a_channel_that_this_kernel_has_not_is_refused() {
    assert!(check(Stimulus::Timer, Between::Threads, 2).is_ok());
    for between in [Between::Threads, Between::Processes] {
        assert!(check(Stimulus::Pipe, between, 2).is_ok());
    }
}
