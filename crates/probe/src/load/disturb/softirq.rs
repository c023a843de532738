//! A packet that goes to very many sockets: all of them get it in one go, in the softirq that
//! receives it, which runs where the packet was sent.

use std::net::UdpSocket;

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::network::{bring_loopback_up, leave_for_a_new_one, shared_udp_socket};

use super::super::desk::Desk;
use super::disturber::{Burst, Disturber};
use super::{calibrate, files};

/// All of the loopback network.
const EVERYBODY: &str = "127.255.255.255";

/// So many packets fill a new socket. Those after them are all alike: they are dropped.
const FILLING: u32 = 8;

pub(super) struct Softirq {
    sender: UdpSocket,
    port: u16,
    receivers: Vec<UdpSocket>,
    /// What sending takes by itself, before the softirq begins.
    sending: SpanNs,
}

impl Softirq {
    /// In a network of its own, where no filter and nobody else is concerned.
    pub(super) fn new(length: SpanNs, cpus: usize) -> Result<Self, String> {
        leave_for_a_new_one().map_err(|e| {
            format!("cannot create a network namespace, which needs root or CAP_SYS_ADMIN: {e}")
        })?;
        let most = files::for_each_of(cpus)?;
        let mut this =
            Self::in_new_network().map_err(|e| format!("cannot set a network up: {e}"))?;
        this.sending = calibrate::usual(|| this.send_timed())?;
        let whole = SpanNs(length.0 + this.sending.0);
        let count = calibrate::amount(whole, most, |count| {
            this.resize(count)?;
            this.send_timed()
        })?;
        this.resize(count)?;
        Ok(this)
    }

    fn in_new_network() -> std::io::Result<Self> {
        let receiver = shared_udp_socket(0)?;
        bring_loopback_up(&receiver)?;
        let port = receiver.local_addr()?.port();
        let sender = UdpSocket::bind("127.0.0.1:0")?;
        sender.set_broadcast(true)?;
        Ok(Self { sender, port, receivers: vec![receiver], sending: SpanNs(0) })
    }

    fn resize(&mut self, count: usize) -> Result<(), String> {
        if self.receivers.len() == count {
            return Ok(());
        }
        self.receivers.truncate(count);
        while self.receivers.len() < count {
            let socket = shared_udp_socket(self.port);
            self.receivers.push(socket.map_err(|e| format!("cannot make a socket: {e}"))?);
        }
        (0..FILLING).try_for_each(|_| self.send().map(drop))
    }

    fn send_timed(&self) -> Result<SpanNs, String> {
        self.send().map(|Burst { begin, end, .. }| end.since(begin))
    }

    fn send(&self) -> Result<Burst, String> {
        let begin = clock::now();
        let sent = self.sender.send_to(b"x", (EVERYBODY, self.port));
        sent.map_err(|e| format!("cannot send a packet: {e}"))?;
        Ok(Burst { begin, end: clock::now(), turns: None })
    }
}

impl Disturber for Softirq {
    fn disturb(&mut self, _desk: &Desk) -> Result<Option<Burst>, String> {
        let Burst { begin, end, .. } = self.send()?;
        let begin = begin.after(self.sending);
        // Sending may have taken less than is usual: beside others' work that is not always the same.
        Ok((begin < end).then_some(Burst { begin, end, turns: None }))
    }
}
