use super::*;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

use wakescope_decode::Vector;
use wakescope_sys::shared::Answers;

/// A struct as the compiler of Rust sees it: its name in C, its bytes, and of each field its name,
/// its place and its bytes.
struct Layout {
    name: &'static str,
    bytes: usize,
    fields: Vec<(&'static str, usize, usize)>,
}

/// What a field has room for.
fn bytes_of<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// The layout of a struct, all of whose fields must be listed.
macro_rules! layout {
    ($name:literal, $type:ident { $($field:ident),* }) => {{
        let all = |$type { $($field: _),* }: $type| ();
        let _ = all;
        Layout {
            name: $name,
            bytes: size_of::<$type>(),
            fields: vec![$((
                stringify!($field),
                offset_of!($type, $field),
                bytes_of(|it: &$type| &it.$field),
            )),*],
        }
    }};
}

fn layouts() -> Vec<Layout> {
    vec![
        layout!("irq", Irq { vector, line, name }),
        layout!("timer", Timer { function, count, pad }),
        layout!("softirq", Softirq { number, pending }),
        layout!("nmi", Nmi { handler, duration_ns }),
        layout!("switched", Switched { pid, prio, policy }),
        layout!("cpu_switch", CpuSwitch { prev, next, comm, throttled, pad }),
        layout!("own_time", OwnTime { duration_ns }),
        layout!("task", Task { pid, prio, policy, normal_prio, comm }),
        layout!(
            "wakeup",
            Wakeup {
                due,
                irq_entry,
                woken,
                irq_exit,
                sched_entry,
                switch_in,
                response,
                faults_before,
                faults_after,
                steal_after,
                stolen,
                steal_read,
                steal_read_at,
                interrupted_ip,
                link,
                events_before,
                irqs_off,
                irqs_on,
                away_switches,
                copy,
                waits,
                preempted,
                events_elsewhere,
                moved_at,
                moved_steal,
                queue,
                queued_at,
                queue_sum,
                queue_since,
                quota,
                switches_before,
                interrupts_before,
                taken_before,
                state,
                cpu,
                stimulus_cpu,
                stimulus,
                preempt_count,
                softirq,
                idle,
                looked,
                mode,
                throttled,
                stack_bytes,
                away_bytes,
                user_bytes,
                away_user_bytes,
                away_pid,
                before_link,
                copied_on,
                is_second,
                parts,
                moved_softirq,
                code,
                task,
                interrupted,
                waker,
                runs,
                stack,
                away,
                user,
                away_user
            }
        ),
        layout!("stack_copy", StackCopy { registers, at, bytes }),
        layout!("ran", Ran { task, ns }),
        layout!(
            "counts",
            Counts {
                records,
                lost_records,
                broken,
                no_room,
                least_depth,
                wakeups,
                no_room_interrupts,
                begun,
                uncounted,
                contended,
                parts
            }
        ),
        layout!("control", Control { start, keep, keep_net, look, watched, walks }),
        layout!("source", Source { cpu, number, who }),
        layout!("window", Window { number, taken, before, most }),
        layout!(
            "interference",
            Interference { count, longest, least, arrivals, begun, before, windows, name }
        ),
        layout!(
            "section",
            Section { begin, begin_parent, end, end_parent, count, total, worst, worst_at }
        ),
        layout!("longest", Longest { section, task, stack_bytes, pad, stack }),
        layout!("edge", Edge { at, ip, parent, handlers, flags, pad }),
        layout!(
            "sections",
            Sections {
                irq,
                preempt,
                either,
                handlers,
                edges,
                unpaired,
                nmis,
                crowded,
                asleep,
                either_worst,
                last_off,
                last_on,
                longest
            }
        ),
        layout!(
            "waits_of_kind",
            WaitsOfKind {
                count,
                sum,
                stopped,
                steal,
                worst,
                worst_at,
                worst_stopped,
                worst_steal,
                worst_cpu,
                worst_unsure,
                worst_prio,
                worst_normal_prio,
                worst_ran,
                runner,
                worst_all_ran
            }
        ),
        layout!(
            "waits",
            Waits {
                since,
                began,
                clock_since,
                steal_since,
                queue,
                throttled_since,
                stopped_before,
                run_delay_since,
                run_delay_moved,
                asleep_before,
                moved_asleep,
                kind,
                cpu,
                moved,
                stopped,
                moved_at,
                given,
                ran_before,
                all_ran_before,
                held_back_before,
                task,
                thread,
                run_delay_base,
                run_delay_earlier,
                run_delay,
                by_clock,
                not_in_run_delay,
                unseen,
                asleep,
                away,
                compared,
                of
            }
        ),
        layout!(
            "wait_counts",
            WaitCounts { begun, ended, ends_missed, begins_missed, broken, no_room }
        ),
    ]
}

/// Of the values that C and Rust both name.
fn values() -> Vec<(&'static str, usize)> {
    let kinds = [
        ("NO_EVENT", kind::NO_EVENT),
        ("IRQ_ENTRY", kind::IRQ_ENTRY),
        ("IRQ_EXIT", kind::IRQ_EXIT),
        ("TIMER_ENTRY", kind::TIMER_ENTRY),
        ("TIMER_EXIT", kind::TIMER_EXIT),
        ("SOFTIRQ_ENTRY", kind::SOFTIRQ_ENTRY),
        ("SOFTIRQ_EXIT", kind::SOFTIRQ_EXIT),
        ("NMI", kind::NMI),
        ("SWITCH", kind::SWITCH),
        ("SCHED_ENTRY", kind::SCHED_ENTRY),
        ("CONTENTION_BEGIN", kind::CONTENTION_BEGIN),
        ("CONTENTION_END", kind::CONTENTION_END),
        ("TRACER", kind::TRACER),
        ("DEBOOST", kind::DEBOOST),
        ("NO_VECTOR", 0),
        ("LOCAL_TIMER", Vector::LocalTimer as u32),
        ("RESCHEDULE", Vector::Reschedule as u32),
        ("CALL_FUNCTION", Vector::CallFunction as u32),
        ("CALL_FUNCTION_SINGLE", Vector::CallFunctionSingle as u32),
        ("IRQ_WORK", Vector::IrqWork as u32),
        ("IPI", Vector::Ipi as u32),
        ("THERMAL", Vector::Thermal as u32),
        ("THRESHOLD", Vector::Threshold as u32),
        ("DEFERRED_ERROR", Vector::DeferredError as u32),
        ("ERROR", Vector::Error as u32),
        ("SPURIOUS", Vector::Spurious as u32),
        ("PLATFORM_IPI", Vector::PlatformIpi as u32),
        ("A_VECTOR", A_VECTOR),
        ("AN_NMI", AN_NMI),
        ("A_SOFTIRQ", A_SOFTIRQ),
        ("AWAKE", AWAKE),
        ("ALL_WAITS", ALL_WAITS),
        ("ALL_SECTIONS", ALL_SECTIONS),
        ("RECORDS_PER_CPU", RECORDS_PER_CPU),
    ];
    let rest = [
        ("COMPONENTS", COMPONENTS),
        ("WAKEUP_LATENCY", WAKEUP_LATENCY),
        ("NET_OF_STEAL", NET_OF_STEAL),
        ("EVENTS", EVENTS),
        ("RING", RING),
        ("FRAMES", FRAMES),
        ("USER_FRAMES", USER_FRAMES),
        ("CODE", CODE),
        ("PIECES", PIECES),
        ("PIECE", PIECE),
        ("BUCKETS", BUCKETS),
        ("ARRIVALS", ARRIVALS),
        ("WINDOWS", WINDOWS),
        ("1UL << WINDOW_SHIFT(WINDOWS - 1)", usize::try_from(window_ns(WINDOWS - 1)).unwrap()),
        ("SECTION_KINDS", SECTION_KINDS),
        ("SECTION_SLOTS", SECTION_SLOTS),
        ("RUNNERS", RUNNERS),
        ("RANKS", RANKS),
        ("ORDINARY", ORDINARY),
        ("URGENT", URGENT),
        ("WAIT_KINDS", WAIT_KINDS),
        // Of structs that Rust reads as words, or as a head and what follows it.
        ("sizeof(struct event)", size_of::<Event>()),
        ("sizeof(((struct event *)0)->at_ns)", size_of::<u64>()),
        ("__builtin_offsetof(struct event, at_ns)", offset_of!(Event, at_ns)),
        ("__builtin_offsetof(struct event, steal_ns)", offset_of!(Event, steal_ns)),
        ("__builtin_offsetof(struct event, kind)", offset_of!(Event, kind)),
        ("__builtin_offsetof(struct event, pad)", offset_of!(Event, pad)),
        ("__builtin_offsetof(struct event, irq)", offset_of!(Event, payload)),
        ("__builtin_offsetof(struct event, timer)", offset_of!(Event, payload)),
        ("__builtin_offsetof(struct event, softirq)", offset_of!(Event, payload)),
        ("__builtin_offsetof(struct event, nmi)", offset_of!(Event, payload)),
        ("__builtin_offsetof(struct event, cpu_switch)", offset_of!(Event, payload)),
        ("__builtin_offsetof(struct event, own_time)", offset_of!(Event, payload)),
        ("__builtin_offsetof(struct event, lent_to)", offset_of!(Event, payload)),
        ("sizeof(struct record_head)", size_of::<Head>()),
        ("sizeof(struct record)", RECORD_BYTES),
        ("__builtin_offsetof(struct record, event)", size_of::<Head>()),
        ("__builtin_offsetof(struct record_head, events)", offset_of!(Head, events)),
        ("__builtin_offsetof(struct record_head, events_lost)", offset_of!(Head, events_lost)),
        ("__builtin_offsetof(struct record_head, switches_from)", offset_of!(Head, switches_from)),
        ("__builtin_offsetof(struct record_head, in_interrupts)", offset_of!(Head, in_interrupts)),
        ("__builtin_offsetof(struct record_head, taken)", offset_of!(Head, taken)),
        ("__builtin_offsetof(struct taken, all)", offset_of!(Taken, all)),
        ("__builtin_offsetof(struct taken, softirqs)", offset_of!(Taken, softirqs)),
        ("__builtin_offsetof(struct taken, nmis)", offset_of!(Taken, nmis)),
        ("sizeof(struct copied_record)", COPIED_BYTES),
        ("__builtin_offsetof(struct copied_record, copy)", RECORD_BYTES),
        ("sizeof(struct long_record)", LONG_BYTES + size_of::<StackCopy>() + size_of::<RunTimes>()),
        ("__builtin_offsetof(struct long_record, ran)", LONG_BYTES + size_of::<StackCopy>()),
        (
            "__builtin_offsetof(struct long_record, all_ran)",
            LONG_BYTES + size_of::<StackCopy>() + offset_of!(RunTimes, all_ran),
        ),
        ("__builtin_offsetof(struct long_record, event)", size_of::<Head>()),
        ("__builtin_offsetof(struct long_record, copy)", LONG_BYTES),
        ("sizeof(struct figures)", FIGURES_WORDS * size_of::<u64>()),
        ("__builtin_offsetof(struct figures, buckets)", FIGURES_HEAD * size_of::<u64>()),
        ("sizeof(((struct figures *)0)->buckets[0])", size_of::<u64>()),
        ("sizeof(struct answers)", Answers::WORDS * size_of::<u64>()),
    ];
    kinds.map(|(name, value)| (name, value as usize)).into_iter().chain(rest).collect()
}

#[test]
fn layouts_are_those_of_the_programs() {
    let mut all: Vec<_> = values().into_iter().map(|(c, rust)| (c.to_string(), rust)).collect();
    for Layout { name, bytes, fields } in layouts() {
        all.push((format!("sizeof(struct {name})"), bytes));
        for (field, at, bytes) in fields {
            all.push((format!("__builtin_offsetof(struct {name}, {field})"), at));
            all.push((format!("sizeof(((struct {name} *)0)->{field})"), bytes));
        }
    }
    check_with_compiler("shared.h", all);
}

/// Asks the compiler of the programs whether these expressions have these values behind a header of theirs.
pub(crate) fn check_with_compiler(header: &str, values: impl IntoIterator<Item = (String, usize)>) {
    let mut source = format!("#include \"{header}\"\n");
    for (c, rust) in values {
        writeln!(source, "_Static_assert({c} == {rust}, \"{c}\");").unwrap();
    }
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
    let folder = wakescope_testing::Folder::new("layouts");
    let file = folder.write("layouts.c", &source);
    let clang = std::env::var_os("CLANG").unwrap_or("clang".into());
    let ended = Command::new(clang)
        .args(["-target", "bpf", "-fsyntax-only", "-I", dir])
        .arg(&file)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn too_few_bytes_are_nothing() {
    const WHOLE: usize = size_of::<Counts>();
    assert!(from_bytes::<Counts>(&[0; WHOLE - 1]).is_none());
    let counts = from_bytes::<Counts>(&[1; WHOLE + 2]).unwrap();
    assert_eq!(counts.wakeups, u64::from_ne_bytes([1; 8]));
}
