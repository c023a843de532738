//! Which modules a guest loads, and in which order.
