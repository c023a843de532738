//! What numbers and names of the kernel are called.

use wakescope_core::explain::Interrupt;

use crate::kernel::{Irq, Vector};

/// What an interrupt is called, whose line, if it has one, is called `name`.
pub fn interrupt_name(irq: Irq, name: &[u8; 16]) -> Interrupt {
    let called = match (irq, text(name)) {
        (Irq::Line(number), name) if name.is_empty() => format!("irq {number}"),
        (Irq::Line(_) | Irq::Vector(Vector::Ipi), name) if !name.is_empty() => {
            from_another_cpu(&name).unwrap_or(&name).into()
        }
        (Irq::Line(_), name) => name,
        (Irq::Vector(vector), _) => vector_name(vector).into(),
    };
    Interrupt(called)
}

fn vector_name(vector: Vector) -> &'static str {
    match vector {
        Vector::LocalTimer => "local_timer",
        Vector::Reschedule => "reschedule",
        Vector::CallFunction => "call_function",
        Vector::CallFunctionSingle => "call_function_single",
        Vector::IrqWork => "irq_work",
        Vector::Ipi => "IPI",
        Vector::Thermal => "thermal_apic",
        Vector::Threshold => "threshold_apic",
        Vector::DeferredError => "deferred_error_apic",
        Vector::Error => "error_apic",
        Vector::Spurious => "spurious_apic",
        Vector::PlatformIpi => "x86_platform_ipi",
        Vector::Other => "vector",
    }
}

/// The interrupt from another CPU whose reason arm64 puts into words that begin with these. Where x86
/// has the same one, it is called as there.
fn from_another_cpu(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "Rescheduling in" => "reschedule",
        "Function call i" => "call_function",
        "IRQ work interr" => "irq_work",
        "Timer broadcast" => "timer_broadcast",
        "CPU wake-up int" => "cpu_wakeup",
        _ if reason.starts_with("CPU stop") => "cpu_stop",
        _ => return None,
    })
}

/// The text before the first zero byte.
pub(crate) fn text(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Whether a function is where the processor enters the kernel for an interrupt: arch/x86/entry and
/// arch/arm64/kernel/entry.S. `inside` are the functions that it called, the outermost first.
///
/// FRED of x86 has one entry for interrupts, exceptions and system calls (entry_fred.c): what it calls tells
/// which it was. A function that ends with such a call may have left no frame.
pub(crate) fn is_interrupt_entry(function: &str, inside: impl Iterator<Item = String>) -> bool {
    const ENTRIES: [&str; 6] = [
        "asm_sysvec_",
        "asm_common_interrupt",
        "asm_exc_nmi",
        "asm_fred_entry_from_kvm",
        "el1h_64_irq",
        "el0t_64_irq",
    ];
    const OF_FRED: [&str; 3] = ["fred_extint", "common_interrupt", "fred_exc_nmi"];
    let begins = |name: &str, with: &[&str]| with.iter().any(|begin| name.starts_with(begin));
    if !function.starts_with("asm_fred_entrypoint_") {
        return begins(function, &ENTRIES);
    }
    let mut called = inside.skip_while(|name| name.starts_with("fred_entry_from_"));
    called.next().is_some_and(|name| begins(&name, &OF_FRED))
}

/// Whether a function belongs to tracing itself, which is the top of each stack.
pub fn is_tracing(function: &str) -> bool {
    let own = ["bpf_", "__bpf_", "__traceiter_", "trace_", "__trace_"];
    own.iter().any(|begin| function.starts_with(begin))
}
