// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's registers and memory, as they are where an instruction is followed.
 */
#include "arch.h"

#define PAGE 4096

static struct byte_array *scratch;
static struct register_handle *handles[REGISTERS_MOST];

bool find_registers(void)
{
	struct array *all = qemu_plugin_get_registers();
	const struct register_info *info = (const void *)all->data;
	unsigned int i, j;

	scratch = g_byte_array_new();
	for (i = 0; i < all->length; i++)
		for (j = 0; arch->registers[j]; j++)
			if (!strcmp(info[i].name, arch->registers[j]))
				handles[j] = info[i].handle;
	for (j = 0; arch->registers[j]; j++)
		if (!handles[j])
			return false;
	return true;
}

uint64_t reg(unsigned int number)
{
	uint64_t value = 0;
	int length;

	g_byte_array_set_size(scratch, 0);
	length = qemu_plugin_read_register(handles[number], scratch);
	memcpy(&value, scratch->data, length > 8 ? 8 : length < 0 ? 0 : length);
	return value;
}

bool read_word(uint64_t address, uint64_t *value)
{
	if (!qemu_plugin_read_memory_vaddr(address, scratch, sizeof(*value)))
		return false;
	memcpy(value, scratch->data, sizeof(*value));
	return true;
}

uint64_t word_at(uint64_t address)
{
	uint64_t value = 0;

	if (!read_word(address, &value))
		told.failed_reads++;
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

/* Writes the kernel's memory, page by page. Returns whether it could. */
bool write_memory(void)
{
	uint64_t head[] = { MEMORY_MAGIC, FORMAT, arch->machine };
	struct image image = arch->image();
	uint64_t address;

	put(head, sizeof(head));
	for (address = image.start; address < image.end; address += PAGE) {
		if (!qemu_plugin_read_memory_vaddr(address, scratch, PAGE))
			continue;
		make_room(sizeof(address) + PAGE);
		put(&address, sizeof(address));
		put(scratch->data, PAGE);
	}
	address = 0;
	put(&address, sizeof(address));
	return flush();
}
