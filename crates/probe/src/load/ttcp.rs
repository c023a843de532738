//! The load `ttcp`: bulk TCP over the loopback interface, as the TTCP of the stress-kernel package,
//! which follows ttcp(1). One connection, both ways at once.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::crew::{Crew, work_together};
use super::kinds::Job;
use super::loopback::{is_wait, no_connection, tcp_pair};

/// What ttcp(1) reads and writes at a time.
const BUFFER: usize = 8 << 10;

/// What a thread does with its end of the connection.
#[derive(Clone, Copy)]
enum Part {
    Send,
    Receive,
}

/// Sends and receives until the desk says stop. What was received is counted.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let mut members = Vec::new();
    for end in tcp_pair().map_err(|e| no_connection(&e, desk))? {
        let other = end.try_clone().map_err(|e| format!("cannot use a connection: {e}"))?;
        members.extend([(end, Part::Send), (other, Part::Receive)]);
    }
    work_together("load-ttcp", members, desk, |(end, part), crew| {
        crew.ready();
        let done = match part {
            Part::Send => send(&end, crew),
            Part::Receive => receive(&end, crew),
        };
        // What breaks because others have stopped is no fault.
        done.or_else(|e| if crew.stopping() { Ok(()) } else { Err(e) })
            .map_err(|e| format!("the TCP connection over the loopback interface broke: {e}"))
    })
    .map(drop)
}

fn send(mut end: &TcpStream, crew: &Crew<'_>) -> io::Result<()> {
    let buffer = [0; BUFFER];
    while !crew.stopping() {
        match end.write(&buffer) {
            Err(e) if !is_wait(&e) => return Err(e),
            // No pause of its own: while it waits for the receiver's, that would count as work, and make its own
            // pauses as many times longer. ttcp@25% then did 2 % of the work of ttcp (docs/loads.md, Intensity).
            _ => {}
        }
    }
    Ok(())
}

fn receive(mut end: &TcpStream, crew: &Crew<'_>) -> io::Result<()> {
    let mut buffer = [0; BUFFER];
    while !crew.stopping() {
        match end.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => crew.done(length as u64),
            Err(e) if is_wait(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::*;
    use crate::load::desk::test_desk;

    /// What comes of one thread that works on `end` while the other end is `other`.
    fn alone(
        part: fn(&TcpStream, &Crew<'_>) -> io::Result<()>,
        end: TcpStream,
    ) -> Result<(), String> {
        let desk = test_desk();
        work_together("test", vec![end], &desk, |end, crew| {
            part(&end, crew).map_err(|e| e.to_string())
        })
        .map(drop)
    }

    #[test]
    fn a_connection_that_ends_is_a_fault() {
        for part in [send as fn(&TcpStream, &Crew<'_>) -> io::Result<()>, receive] {
            let [near, far] = tcp_pair().unwrap();
            far.shutdown(Shutdown::Both).unwrap();
            drop(far);
            alone(part, near).unwrap_err();
        }
    }
}
