// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's registers and memory, as they are where an instruction is followed.
 */
#include "scope.h"

/* Where the kernel lies if its address is not random: its image and no modules. */
#define IMAGE_START 0xffffffff80000000ULL
#define IMAGE_END 0xffffffffc0000000ULL
#define PAGE 4096

static struct byte_array *scratch;
static struct register_handle *handles[REGISTERS];

bool find_registers(void)
{
	static const char *const names[REGISTERS] = { "rsp", "rbp", "rax",
						    "rdx", "rdi", "eflags" };
	struct array *all = qemu_plugin_get_registers();
	const struct register_info *info = (const void *)all->data;
	unsigned int i, j;

	scratch = g_byte_array_new();
	for (i = 0; i < all->length; i++)
		for (j = 0; j < REGISTERS; j++)
			if (!strcmp(info[i].name, names[j]))
				handles[j] = info[i].handle;
	for (j = 0; j < REGISTERS; j++)
		if (!handles[j])
			return false;
	return true;
}

uint64_t reg(enum reg number)
{
	uint64_t value = 0;
	int length;

	g_byte_array_set_size(scratch, 0);
	length = qemu_plugin_read_register(handles[number], scratch);
	memcpy(&value, scratch->data, length > 8 ? 8 : length < 0 ? 0 : length);
	return value;
}

uint64_t word_at(uint64_t address)
{
	uint64_t value = 0;

	if (!qemu_plugin_read_memory_vaddr(address, scratch, sizeof(value))) {
		told.failed_reads++;
		return 0;
	}
	memcpy(&value, scratch->data, sizeof(value));
	return value;
}

uint32_t half_word_at(uint64_t address)
{
	uint32_t value = 0;

	if (!qemu_plugin_read_memory_vaddr(address, scratch, sizeof(value))) {
		told.failed_reads++;
		return 0;
	}
	memcpy(&value, scratch->data, sizeof(value));
	return value;
}

/* What the function at @place returns to; 0 if that is not known. */
uint64_t caller_at(const struct place *place)
{
	switch (place->base) {
	case FROM_SP:
		return word_at(reg(RSP) + place->offset - 8);
	case FROM_BP:
		return word_at(reg(RBP) + place->offset - 8);
	default:
		return 0;
	}
}

/* Writes the kernel's memory, page by page. Returns whether it could. */
bool write_memory(void)
{
	uint64_t head[] = { MEMORY_MAGIC, FORMAT };
	uint64_t address;

	scratch = g_byte_array_new();
	put(head, sizeof(head));
	for (address = IMAGE_START; address < IMAGE_END; address += PAGE) {
		if (!qemu_plugin_read_memory_vaddr(address, scratch, PAGE))
			continue;
		put(&address, sizeof(address));
		put(scratch->data, PAGE);
	}
	address = 0;
	put(&address, sizeof(address));
	return flush();
}
