//! `wakescope lab` with guests that boot. What takes minutes is in `lab_long.rs`.

#[path = "lab/bisected.rs"]
mod bisected;
#[path = "lab/bits.rs"]
mod bits;
#[path = "lab/clocks.rs"]
mod clocks;
mod common;
#[path = "lab/confined.rs"]
mod confined;
#[path = "lab/device.rs"]
mod device;
#[path = "lab/disturbed.rs"]
mod disturbed;
#[path = "lab/equipment.rs"]
mod equipment;
#[path = "lab/explained.rs"]
mod explained;
#[path = "lab/guests.rs"]
mod guests;
#[path = "lab/hurt.rs"]
mod hurt;
#[path = "lab/record.rs"]
mod record;
#[path = "lab/resumed.rs"]
mod resumed;
