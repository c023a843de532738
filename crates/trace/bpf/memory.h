/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's memory, for the loader: the tables that stacks are walked by. */
#pragma once

#include "bpf.h"

#define PAGE 4096

struct page {
	u8 bytes[PAGE];
};

MAP(MAP_ARRAY, u32, struct page, 1, MAP_MMAPABLE) page_read SEC(".maps");

/* Attached to nothing: the loader has it run, with where it is to read. 0 if that could be read. */
SEC("raw_tp/sched_switch") int read_page(u64 *ctx)
{
	u32 zero = 0;
	struct page *page = bpf_map_lookup_elem(&page_read, &zero);
	return page ? bpf_probe_read_kernel(page->bytes, sizeof(page->bytes), (void *)ctx[0]) : -1;
}
