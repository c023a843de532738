//! The load `hackbench`: groups of senders and receivers that talk through socket pairs, as
//! hackbench(8) with threads (`hackbench -T`). The scheduler is what is busy.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use super::crew::{Crew, allowed_cpus, work_together};
use super::kinds::Job;
use super::loopback::is_wait;

/// Senders, and as many receivers, in a group.
const HALF: usize = 20;

/// Bytes of a message.
const MESSAGE: usize = 100;

/// The largest number of groups, of 40 threads each. It is hackbench's default.
const MOST_GROUPS: usize = 10;

/// How long to wait for a message, or for room for one, before looking whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Messages are counted when so many were received, so that counting them costs nothing.
const COUNTED: usize = 32;

/// What a thread does.
enum Part {
    /// Sends to each of the group's receivers in turn.
    Send(Arc<Vec<UnixStream>>),
    Receive(UnixStream),
}

/// Has one group per allowed CPU send and receive until the desk says stop. What was received is
/// counted.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let cpus = allowed_cpus()?;
    let groups = cpus.len().min(MOST_GROUPS);
    let members = (0..groups).map(|_| group()).collect::<io::Result<Vec<_>>>();
    let members = members.map_err(|e| format!("cannot make a pair of sockets: {e}"))?;
    let members = members.into_iter().flatten().collect();
    work_together("load-hackbench", members, desk, |part, crew| {
        crew.ready();
        let done = match part {
            Part::Send(receivers) => send(&receivers, crew),
            Part::Receive(socket) => receive(socket, crew),
        };
        // What breaks because others have stopped is no fault.
        done.or_else(|e| if crew.stopping() { Ok(()) } else { Err(e) })
            .map_err(|e| format!("a pair of sockets broke: {e}"))
    })
    .map(drop)
}

/// What the threads of one group do: receivers first, so that they wait when the first message comes.
fn group() -> io::Result<Vec<Part>> {
    let (mut to, mut parts) = (Vec::with_capacity(HALF), Vec::with_capacity(2 * HALF));
    for _ in 0..HALF {
        let (near, far) = UnixStream::pair()?;
        near.set_write_timeout(Some(LOOK))?;
        far.set_read_timeout(Some(LOOK))?;
        to.push(near);
        parts.push(Part::Receive(far));
    }
    let to = Arc::new(to);
    parts.extend((0..HALF).map(|_| Part::Send(Arc::clone(&to))));
    Ok(parts)
}

fn send(receivers: &[UnixStream], crew: &Crew<'_>) -> io::Result<()> {
    let message = [0; MESSAGE];
    for mut receiver in receivers.iter().cycle() {
        if crew.stopping() {
            break;
        }
        match receiver.write(&message) {
            Err(e) if !is_wait(&e) => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

fn receive(mut socket: UnixStream, crew: &Crew<'_>) -> io::Result<()> {
    let mut message = [0; MESSAGE];
    let mut received = 0;
    while !crew.stopping() {
        match socket.read(&mut message) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => received += length,
            Err(e) if is_wait(&e) => {}
            Err(e) => return Err(e),
        }
        if received >= COUNTED * MESSAGE {
            crew.done((received / MESSAGE) as u64);
            received %= MESSAGE;
        }
    }
    crew.done((received / MESSAGE) as u64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn a_receiver_counts_whole_messages() {
        let desk = test_desk();
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(&[0; 3 * MESSAGE + 50]).unwrap();
        drop(near);
        let fault = work_together("test", vec![far], &desk, |far, crew| {
            far.set_read_timeout(Some(LOOK)).unwrap();
            receive(far, crew).map_err(|e| e.to_string())
        });
        // All was read before the end, but fewer messages than are counted at a time.
        assert!(fault.is_err());
        assert_eq!(desk.work(), 0);

        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(&vec![0; (COUNTED + 1) * MESSAGE - 1]).unwrap();
        drop(near);
        let _ = work_together("test", vec![far], &desk, |far, crew| {
            receive(far, crew).map_err(|e| e.to_string())
        });
        assert_eq!(desk.work(), COUNTED as u64);
    }

    #[test]
    fn a_group_has_as_many_senders_as_receivers() {
        let parts = group().unwrap();
        let senders =
            parts.iter().filter(|part| matches!(part, Part::Send(to) if to.len() == HALF));
        assert_eq!((senders.count(), parts.len()), (HALF, 2 * HALF));
    }
}
