/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the plugin uses of QEMU's plugin interface (version 4, QEMU 9.2 and
 * later), of GLib and of the C library.
 *
 * It is declared here because distributions package no header for plugins, and
 * so that a compiler without any headers of a C library suffices. The emulator
 * resolves all of it when it loads the plugin.
 */
#ifndef WAKESCOPE_QEMU_H
#define WAKESCOPE_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#define PLUGIN_VERSION 4

typedef uint64_t plugin_id;

struct tb;
struct insn;
struct scoreboard;
struct register_handle;
struct physical_address;

/* A counter for each CPU. */
struct counter {
	struct scoreboard *score;
	size_t offset;
};

struct machine_info {
	const char *target;
	struct {
		int least;
		int current;
	} version;
	bool is_system;
	struct {
		int initial;
		int most;
	} cpus;
};

struct register_info {
	struct register_handle *handle;
	const char *name;
	const char *feature;
};

struct byte_array {
	uint8_t *data;
	unsigned int length;
};

struct array {
	char *data;
	unsigned int length;
};

struct memory_value {
	int type;
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		struct {
			uint64_t low, high;
		} u128;
	};
};

enum { NO_REGISTERS, READS_REGISTERS };
enum { LOADS = 1, STORES = 2 };
enum { ADD_U64, STORE_U64 };
/* When a callback with a condition is called: if the counter is another number. */
enum { IF_OTHER = 3 };
enum { MEMORY_U32 = 2, MEMORY_U64 = 3 };

typedef void (*on_plugin)(plugin_id id);
typedef void (*on_exit)(plugin_id id, void *data);
typedef void (*on_vcpu)(plugin_id id, unsigned int cpu);
typedef void (*on_translation)(plugin_id id, struct tb *tb);
typedef void (*on_execution)(unsigned int cpu, void *data);
typedef void (*on_memory)(unsigned int cpu, uint32_t access, uint64_t address, void *data);

void qemu_plugin_register_vcpu_init_cb(plugin_id id, on_vcpu call);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, on_translation call);
void qemu_plugin_register_flush_cb(plugin_id id, on_plugin call);
void qemu_plugin_register_atexit_cb(plugin_id id, on_exit call, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct tb *tb, on_execution call, int registers,
					  void *data);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct tb *tb, on_execution call, int registers,
					       int condition, struct counter counter,
					       uint64_t number, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct tb *tb, int operation,
						       struct counter counter, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *insn, on_execution call, int registers,
					    void *data);
void qemu_plugin_register_vcpu_mem_cb(struct insn *insn, on_memory call, int registers,
				      int accesses, void *data);
size_t qemu_plugin_tb_n_insns(const struct tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct tb *tb);
struct insn *qemu_plugin_tb_get_insn(const struct tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct insn *insn, void *bytes, size_t length);
size_t qemu_plugin_insn_size(const struct insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct insn *insn);
struct memory_value qemu_plugin_mem_get_value(uint32_t access);
struct physical_address *qemu_plugin_get_hwaddr(uint32_t access, uint64_t address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct physical_address *address);
struct scoreboard *qemu_plugin_scoreboard_new(size_t size);
void *qemu_plugin_scoreboard_find(struct scoreboard *score, unsigned int cpu);
struct array *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct register_handle *handle, struct byte_array *into);
bool qemu_plugin_read_memory_vaddr(uint64_t address, struct byte_array *into, size_t length);

struct byte_array *g_byte_array_new(void);
struct byte_array *g_byte_array_set_size(struct byte_array *array, unsigned int length);

void *calloc(size_t count, size_t size);
void *memcpy(void *to, const void *from, size_t length);
int memcmp(const void *a, const void *b, size_t length);
int strcmp(const char *a, const char *b);
long pread(int fd, void *into, size_t length, long offset);
long write(int fd, const void *from, size_t length);
#define STDERR 2
void _exit(int status) __attribute__((noreturn));

#endif /* WAKESCOPE_QEMU_H */
