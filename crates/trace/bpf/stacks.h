/* SPDX-License-Identifier: GPL-2.0 */
/* Stacks of what was interrupted: copied for the loader, who walks them, or walked here. */
#pragma once

#include "state.h"

/* The registers of what was interrupted; 0 outside of interrupts, and where that is not known. */
INLINE void *interrupted_registers(struct cpu *cpu)
{
	void *registers = 0;
	void **where = per_cpu(cpu, &irq_regs_place);
	if (where)
		bpf_probe_read_kernel(&registers, sizeof(registers), where);
	return registers;
}

/*
 * Whether user code (1) or kernel code (2) was interrupted where no registers tell; 0 if that is not known. x86 keeps
 * no registers in interrupts of irq_work and of functions that another CPU calls. On x86-64 (5.12), the handler of an
 * interrupt leaves the stack of the task only if it interrupted the kernel.
 */
INLINE u32 mode_by_stack(struct cpu *cpu)
{
	u8 is_used = 0;
	struct pcpu_hot *hot = per_cpu(cpu, &pcpu_hot_place);
	void *plain = per_cpu(cpu, &irq_stack_used_place);
	if (!cpu->irq_depth)
		/* No interrupt: a waker in its own context, which is the kernel's. */
		return 2;
	if (plain)
		bpf_probe_read_kernel(&is_used, sizeof(is_used), plain);
	else if (hot && FIELD_EXISTS(hot->hardirq_stack_inuse))
		is_used = READ(hot, hardirq_stack_inuse);
	else
		return 0;
	return is_used ? 2 : 1;
}

/* Whether a pointer is to the kernel's half of memory, whatever signs it. */
#define KERNELS (1ULL << 55)
/* What signs a return address, which are ones in a pointer to the kernel's code. */
#define SIGNATURE (0xffffULL << 48)

/*
 * arm64 calls by a register: as long as a function has not put that away, and in one that never
 * does, no frame of the stack tells who called it. The instruction before tells whether it is a call.
 */
INLINE void look_at_link(struct cpu *cpu, struct wakeup *wakeup)
{
	struct pt_regs___arm64 *arm64 = interrupted_registers(cpu);
	wakeup->link = 0;
	wakeup->before_link = 0;
	if (!arm64 || !FIELD_EXISTS(arm64->pstate))
		return;
	u64 link = READ(arm64, regs[30]);
	if (link & KERNELS)
		link |= SIGNATURE;
	wakeup->link = link;
	bpf_probe_read_kernel(&wakeup->before_link, sizeof(wakeup->before_link),
			      (void *)(link - sizeof(wakeup->before_link)));
}

/* Bytes of a stack, a task's or that of interrupts: x86-64, 5.10 to 7.2. */
#define STACK_SIZE (16 << 10)

INLINE u64 tasks_stack(void)
{
	struct task_struct *current = (void *)bpf_get_current_task();
	return (u64)READ(current, stack);
}

/* Where the stack ends that `at` is in; 0 if that is not known. */
INLINE u64 end_of_stack(struct cpu *cpu, u64 at)
{
	u64 task = tasks_stack();
	struct pcpu_hot *hot = per_cpu(cpu, &pcpu_hot_place);
	void **plain = per_cpu(cpu, &irq_stack_place);
	u64 last = 0;
	if (at - task < STACK_SIZE)
		return task + STACK_SIZE;
	if (plain)
		bpf_probe_read_kernel(&last, sizeof(last), plain);
	else if (hot && FIELD_EXISTS(hot->hardirq_stack_ptr))
		last = (u64)READ(hot, hardirq_stack_ptr);
	/* It is where the last word of the stack is; before 5.12, its end. */
	u64 end = (last + sizeof(u64)) & ~(u64)(PIECE - 1);
	return end - at <= STACK_SIZE ? end : 0;
}

/*
 * Where the stack of interrupts that ends at `end` says that it was begun from, which is the stack of
 * the task (x86's ASM_CALL_ON_STACK since 5.12); 0 if that is no such end.
 */
INLINE u64 stack_before(u64 end)
{
	u64 before = 0;
	bpf_probe_read_kernel(&before, sizeof(before), (void *)(end - sizeof(before)));
	return before - tasks_stack() < STACK_SIZE ? before : 0;
}

/*
 * Copies the stack from the registers on that lie on it. Each piece is aligned, so that it lies in one
 * page: the page behind a stack cannot be read, and to try takes long.
 */
INLINE void copy_stack(struct cpu *cpu, struct wakeup *wakeup, void *registers)
{
	struct stack_copy *copy = &cpu->copies[cpu->copied & (COPIES - 1)];
	u64 at = (u64)registers & ~(u64)(PIECE - 1);
	u64 end = end_of_stack(cpu, at);
	copy->registers = (u64)registers;
#pragma nounroll
	for (u32 i = 0; i < PIECES; i++) {
		if (at == end && at) {
			at = stack_before(end) & ~(u64)(PIECE - 1);
			end = at ? tasks_stack() + STACK_SIZE : 0;
		}
		if (!at || bpf_probe_read_kernel(copy->bytes[i], PIECE, (void *)at))
			at = end = 0;
		copy->at[i] = at;
		at += at ? PIECE : 0;
	}
	cpu->copied++;
	wakeup->copy = cpu->copied;
	wakeup->copied_on = bpf_get_smp_processor_id();
}

/*
 * The wakeup waits meanwhile. To walk a stack by tables takes 1 to 2 us per frame where caches are cold
 * (39 us for some 20 frames on a guest of KVM, 6.18), to copy it takes less than one frame.
 */
INLINE void take_stack(void *ctx, struct cpu *cpu, struct wakeup *wakeup)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	void *registers = interrupted_registers(cpu);
	/* Of an interrupt that may have come in user code, the kernel's stack tells nothing. */
	if (!registers && irq_regs_place.is_known && mode_by_stack(cpu) != 2)
		return;
	cpu->traces = 1;
	if (registers && asked && asked->walks) {
		copy_stack(cpu, wakeup, registers);
		return;
	}
	wakeup->stack_bytes = bpf_get_stack(ctx, wakeup->stack, sizeof(wakeup->stack), 0);
	look_at_link(cpu, wakeup);
}

/* What a function of a program keeps where its frame pointer points to. */
struct frame {
	u64 next;
	u64 returns_to;
};

/* The code segment of x86's programs of 64 bits. */
#define USER_CS 0x33

/*
 * Walks the stack of the program that was interrupted, as the kernel does: 9 us by its helper where
 * caches are cold (guest of KVM, 6.18), which is left to arm64 and programs of 32 bits.
 */
INLINE void take_user_stack(void *ctx, struct cpu *cpu, struct wakeup *wakeup)
{
	struct pt_regs___x86 *x86 = interrupted_registers(cpu);
	cpu->traces = 1;
	if (!x86 || !FIELD_EXISTS(x86->cs) || READ(x86, cs) != USER_CS) {
		wakeup->user_bytes = bpf_get_stack(ctx, wakeup->user, sizeof(wakeup->user), USER_STACK);
		return;
	}
	u64 at = READ(x86, bp);
	u32 count = 1;
	wakeup->user[0] = READ(x86, ip);
#pragma nounroll
	for (u32 i = 1; i < USER_FRAMES; i++) {
		struct frame frame = {};
		if (bpf_probe_read_user(&frame, sizeof(frame), (void *)at) || !frame.returns_to)
			break;
		wakeup->user[i] = frame.returns_to;
		count++;
		at = frame.next;
	}
	wakeup->user_bytes = count * sizeof(u64);
}

/* Hands over the copy of `wakeup`'s stack, if it has one and no other has taken its place. */
INLINE void hand_copy_over(struct stack_copy *to, struct wakeup *wakeup)
{
	struct cpu *on = wakeup->copy ? cpu_of(wakeup->copied_on) : 0;
	u64 number = wakeup->copy - 1;
	to->registers = 0;
	if (!on)
		return;
	bpf_probe_read_kernel(to, sizeof(*to), &on->copies[number & (COPIES - 1)]);
	/* The next one for its place counts when it is there, and may have been on its way. */
	if (READ_ONCE(on->copied) - number >= COPIES)
		to->registers = 0;
}
