use super::*;

#[test]
fn this_machine_can_be_read() {
    let host = read(&[0]);
    assert!(!host.release.is_empty() && !host.version.is_empty() && !host.arch.is_empty());
    assert!(!host.cpus_online.is_empty() && !host.cpus_allowed.is_empty());
    assert!(host.clock.read_cost_ns > 0 && host.clock.resolution_ns > 0);
}
