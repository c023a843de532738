/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Does nothing. What a machine loses to it is what the kernel takes to call a program: tracers at the
 * same place cannot lose less. Only the example tracer_guest has it.
 */
#include "bpf.h"

SEC("tp_btf/sched_switch") int nothing(u64 *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
