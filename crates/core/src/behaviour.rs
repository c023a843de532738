//! Tells the preemption model from how a kernel behaves (`check --probe`).
