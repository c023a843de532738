//! `wakescope lab` with guests that boot. What takes minutes is in `lab_long`.

mod bisected;
mod by_hand;
mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod confined;
mod confinement;
mod disturbed;
mod equipment;
mod explained;
mod guests;
mod hurt;
mod kernels;
mod own_kernel;
mod record;
mod resumed;
mod schema;
mod trust;
