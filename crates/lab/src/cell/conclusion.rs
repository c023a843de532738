//! What came of a guest: a result, or why there is none.

use std::fs;
use std::io;
use std::path::Path;

use wakescope_core::episodes::{Entry, Head};
use wakescope_core::finding::{Severity, Verdict};
use wakescope_core::run::Run;
use wakescope_store::{is_full, write_new};

use super::emulation::{RESULTS, WORDS, lines_of};
use super::result_of;
use crate::guest::{CHECK, DISTURBANCES, EPISODES, FACTS, Facts, KERNEL_LOG, RUN};
use crate::machine::console::{last_lines, trouble};
use crate::machine::power::End;
use crate::parcel::{Item, unpack};
use crate::store::{Ending, Failed, FailureKind, Recipe};

/// What came of the guest of this recipe: its files are written to `folder`.
pub(super) fn conclude(end: &End, recipe: &Recipe, folder: &Path) -> Ending {
    let lines = lines_of(folder);
    // They served; a cell keeps what repeats, and the console.
    for name in [RESULTS, WORDS] {
        let _ = fs::remove_file(folder.join(name));
    }
    if !matches!(end, End::Restarted | End::Panicked) {
        let [log, _] = lines.unwrap_or_default();
        return of_host(end, &log).into();
    }
    let [log, parcel] = match lines {
        Ok(lines) => lines,
        Err(e) => return of_files("read what the guest sent to", folder, &e).into(),
    };
    let parcel = unpack(&parcel);
    // A panic ends a guest while it sends, or before.
    let Ok(items) = parcel else {
        return without_result(&log, &parcel.unwrap_err().to_string()).into();
    };
    match verify(&items, &log, result_of(recipe)) {
        Err(failed) => {
            let _ = keep(folder, &items, &[FACTS, KERNEL_LOG]);
            failed.into()
        }
        Ok(mut run) => {
            if let Some(run) = &mut run {
                run.id = recipe.key().as_str()[..16].to_string();
            }
            let episodes = run.as_ref().and_then(|run| episodes_of(run, &items));
            let record = run.map(|run| Item::new(RUN, run.to_json()));
            let others = keep(folder, &items, &[CHECK, FACTS, KERNEL_LOG, DISTURBANCES]);
            let both: Vec<Item> = record.into_iter().chain(episodes).collect();
            let kept = keep(folder, &both, &[RUN, EPISODES]);
            match others.and(kept) {
                Ok(()) => Ending::Measured,
                Err(e) => of_files("write the results to", folder, &e).into(),
            }
        }
    }
}

/// Whether what came out of a guest is a result; the run record, if it is one.
fn verify(items: &[Item], log: &[u8], wanted: &str) -> Result<Option<Run>, Failed> {
    let find = |name: &str| items.iter().find(|item| item.name == name).map(|item| &item.bytes[..]);
    let facts = find(FACTS).and_then(|bytes| serde_json::from_slice::<Facts>(bytes).ok());
    let facts = facts.ok_or_else(|| without_result(log, "the guest sent no result"))?;
    let kernel_log = find(KERNEL_LOG).unwrap_or_default();
    if let Some(verdict) = trouble(log).or_else(|| trouble(kernel_log)) {
        return Err(Failed::new(FailureKind::Oops, verdict.what).with_evidence(verdict.lines));
    }
    if let Some(error) = facts.error {
        let kind = if facts.time_up { FailureKind::VirtualTimeLimit } else { FailureKind::Refused };
        return Err(Failed::new(kind, error).with_evidence(last_lines(kernel_log)));
    }
    let missing = || without_result(log, &format!("the guest sent no {wanted}"));
    let bytes = find(wanted).ok_or_else(missing)?;
    if wanted != RUN {
        return Ok(None);
    }
    let run = Run::from_json(bytes)
        .map_err(|e| Failed::new(FailureKind::NoResult, format!("of the guest's record: {e}")))?;
    if run.validity.verdict == Verdict::Invalid {
        let grave = run.validity.findings.iter().filter(|f| f.severity == Severity::Error);
        let messages: Vec<&str> = grave.map(|f| f.message.as_str()).collect();
        return Err(Failed::new(FailureKind::Refused, messages.join("; ")));
    }
    Ok(Some(run))
}

/// The longest file of episodes that is kept of a guest, bytes: ours send a quarter.
const EPISODES_MOST: usize = 1 << 20;

/// The episodes that a guest sent, which does not know what its run is called. What nobody could read is
/// not kept.
fn episodes_of(run: &Run, items: &[Item]) -> Option<Item> {
    let sent = items.iter().find(|item| item.name == EPISODES)?;
    let small = Some(&sent.bytes).filter(|bytes| bytes.len() <= EPISODES_MOST)?;
    let bytes = with_head(small, |head| head.run.clone_from(&run.id))?;
    Some(Item::new(EPISODES, bytes))
}

/// Episodes with their head written anew by this version; `None` if they begin with none.
pub(crate) fn with_head(episodes: &[u8], change: impl FnOnce(&mut Head)) -> Option<Vec<u8>> {
    let end = episodes.iter().position(|&byte| byte == b'\n')?;
    let Ok(Entry::Head(mut head)) = Entry::read(&episodes[..end]) else { return None };
    change(&mut head);
    let mut bytes = Entry::Head(head).text().into_bytes();
    bytes.extend_from_slice(&episodes[end + 1..]);
    Some(bytes)
}

/// The failure of a guest that ended by itself and left nothing to read.
fn without_result(log: &[u8], why: &str) -> Failed {
    match trouble(log) {
        Some(verdict) => Failed::new(FailureKind::Panic, verdict.what).with_evidence(verdict.lines),
        None => Failed::new(FailureKind::Reboot, format!("the guest restarted; {why}"))
            .with_evidence(last_lines(log)),
    }
}

/// The failure of a guest that was ended from outside.
fn of_host(end: &End, log: &[u8]) -> Failed {
    let kind = match end {
        End::TimeUp(_) => FailureKind::HostTimeLimit,
        End::Flood => FailureKind::NoResult,
        End::Cancelled => FailureKind::Cancelled,
        End::NotStarted(e) if is_full(e) => FailureKind::DiskFull,
        End::Restarted | End::Panicked | End::Killed(_) | End::Refused(_) | End::NotStarted(_) => {
            FailureKind::Emulator
        }
    };
    // A kernel that hangs in its panic, or prints its oopses without end, is the cause.
    match trouble(log) {
        Some(verdict) => {
            Failed::new(kind, format!("{}; {end}", verdict.what)).with_evidence(verdict.lines)
        }
        None => Failed::new(kind, end.to_string()).with_evidence(last_lines(log)),
    }
}

/// The failure of the host to do something with the files in `folder`. It says nothing about the guest.
fn of_files(task: &str, folder: &Path, e: &io::Error) -> Failed {
    let kind = if is_full(e) { FailureKind::DiskFull } else { FailureKind::Lab };
    Failed::new(kind, format!("cannot {task} {}: {e}", folder.display()))
}

/// Writes those of `items` that are among `names`.
fn keep(folder: &Path, items: &[Item], names: &[&str]) -> io::Result<()> {
    let wanted = items.iter().filter(|item| names.contains(&item.name.as_str()));
    wanted.into_iter().try_for_each(|item| write_new(&folder.join(&item.name), &item.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parcel::pack;
    use crate::store::{CONSOLE, ORDER};
    use wakescope_core::episodes::Head;
    use wakescope_core::units::SpanNs;
    use wakescope_testing::Folder;

    #[test]
    fn trouble_with_the_hosts_files_is_no_full_disk_and_nothing_of_the_guest() {
        let facts = Item::new(FACTS, serde_json::to_vec(&Facts::default()).unwrap());
        let items = [facts.clone(), Item::new(CHECK, "{}")];
        let recipe = Recipe::default().with(ORDER, "--limit 1ns check");
        let ended = |parcel: &[Item], prepare: fn(&Path)| {
            let folder = Folder::new("conclusion");
            fs::write(folder.join(RESULTS), pack(parcel)).unwrap();
            prepare(folder.path());
            match conclude(&End::Restarted, &recipe, folder.path()) {
                Ending::Measured => None,
                Ending::Failed(failed) => Some((failed.kind, failed.reason)),
            }
        };
        assert_eq!(ended(&items, |_| {}), None);
        let unreadable = |folder: &Path| fs::create_dir(folder.join(CONSOLE)).unwrap();
        let taken = |folder: &Path| fs::write(folder.join(FACTS), "").unwrap();
        for (prepare, want) in [
            (unreadable as fn(&Path), "cannot read what the guest sent to "),
            (taken, "cannot write the results to "),
        ] {
            let (kind, reason) = ended(&items, prepare).unwrap();
            assert_eq!(kind, FailureKind::Lab, "{reason}");
            assert!(reason.starts_with(want), "{reason}");
        }
        // That a guest sends a file twice follows from its recipe.
        let (kind, reason) = ended(&[&items[..], &[facts]].concat(), |_| {}).unwrap();
        assert!(kind.repeats() && reason.contains("is damaged"), "{kind}: {reason}");
        for (kind, want) in [
            (io::ErrorKind::StorageFull, FailureKind::DiskFull),
            (io::ErrorKind::QuotaExceeded, FailureKind::DiskFull),
            (io::ErrorKind::OutOfMemory, FailureKind::Lab),
        ] {
            assert_eq!(of_files("read", Path::new("/c"), &kind.into()).kind, want);
        }
    }

    #[test]
    fn a_guest_that_is_ended_from_outside_has_failed_for_what_its_log_says() {
        let panic = "[    0.3] Kernel panic - not syncing: No working init found.\n";
        let time_up = || End::TimeUp(SpanNs(40_000_000_000));
        for (end, log, kind, want) in [
            (
                time_up(),
                "",
                FailureKind::HostTimeLimit,
                "the guest did not end within 40.0 s of host time",
            ),
            (
                time_up(),
                panic,
                FailureKind::HostTimeLimit,
                "the kernel panicked: not syncing: No working init found.; the guest did not end within \
                 40.0 s of host time",
            ),
            (
                End::Flood,
                "BUG: scheduling while atomic: fio/9\n",
                FailureKind::NoResult,
                "the kernel found a bug in itself: scheduling while atomic: fio/9; the guest wrote more \
                 than 64 MiB",
            ),
        ] {
            let failed = of_host(&end, log.as_bytes());
            assert_eq!((failed.kind, failed.reason.as_str()), (kind, want));
            assert_eq!(failed.evidence, log.lines().collect::<Vec<_>>());
        }
    }

    #[test]
    fn episodes_of_a_guest_are_given_the_id_of_its_run() {
        let run = Run { id: "0123456789abcdef".into(), ..Run::default() };
        let head = |run: &str| {
            let schema = wakescope_core::episodes::SCHEMA.into();
            let head = Head { schema, run: run.into(), ..Head::default() };
            Entry::Head(Box::new(head)).text()
        };
        let kept = |text: &str| {
            let kept = episodes_of(&run, &[Item::new(RUN, "{}"), Item::new(EPISODES, text)]);
            kept.map(|item| String::from_utf8(item.bytes).unwrap())
        };
        let lines = "{\"a\":1}\nnot even JSON";
        let want = Some(format!("{}{lines}", head(&run.id)));
        assert_eq!(kept(&format!("{}{lines}", head(""))), want);
        assert_eq!(kept(&head("")), Some(head(&run.id)));
        // What no reader could use.
        for text in ["", "{}\n", lines, head("").trim_end()] {
            assert_eq!(kept(text), None, "{text}");
        }
        assert_eq!(kept(&(head("") + &"x".repeat(EPISODES_MOST))), None);
        assert_eq!(episodes_of(&run, &[Item::new(RUN, "{}")]), None);
    }
}
