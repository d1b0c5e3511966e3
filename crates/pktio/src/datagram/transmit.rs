//! Sending in batches, and what is done where the kernel refuses.
//!
//! | the kernel says | then |
//! |---|---|
//! | a part of the batch was sent | the rest is offered again |
//! | no room (`EAGAIN`, `ENOBUFS`, `ENOMEM`) | it ends there: the rest is not taken |
//! | too long (`EMSGSIZE`), of several datagrams | each is sent alone |
//! | too long, of one | lost, and reported |
//! | no cutting (`EIO`, `EOPNOTSUPP`) | this socket sends each datagram alone from now on |
//! | invalid (`EINVAL`), of several | each alone; if all go, also from now on: kernels say it of too long ones, too |
//! | a source address that has been removed | sent again, from wherever the routes say; reported |
//! | what another datagram met on its way (`ECONNREFUSED`) | sent again, once |
//! | anything else | these datagrams are lost, and reported with the reason |

use std::io::{self, IoSlice};
use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::message::{BATCH, Message, Sent};
use super::outgoing::{Outgoing, parts};
use super::sys::Calls;

/// Room for the messages of one call, and what the last call had to tell: of a thread that sends, used again and
/// again.
#[derive(Debug, Default)]
pub struct SendBatch {
    outgoing: Vec<Outgoing>,
    pieces: Vec<IoSlice<'static>>,
    told: Told,
}

/// What a call reports besides its counts.
#[derive(Debug, Default)]
struct Told {
    unsent: Vec<Unsent>,
    astray: Vec<SocketAddr>,
}

/// Datagrams that the kernel did not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// Where they were to go.
    pub to: SocketAddr,
    /// Why they are lost.
    pub why: Refusal,
    /// How many there are.
    pub datagrams: u64,
}

/// Why the kernel does not send a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The datagram is longer than the device takes, or UDP.
    TooLong,
    /// No route leads there, or nobody answers for the address.
    NoRoute,
    /// Rules of the host forbid it.
    NotPermitted,
    /// Anything else.
    Other,
}

impl Refusal {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::TooLong, Self::NoRoute, Self::NotPermitted, Self::Other];

    /// Returns the reason's name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::NoRoute => "no_route",
            Self::NotPermitted => "not_permitted",
            Self::Other => "other",
        }
    }

    pub(super) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EMSGSIZE) => Self::TooLong,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN) => {
                Self::NoRoute
            }
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted,
            _ => Self::Other,
        }
    }
}

impl SendBatch {
    /// Datagrams of the last call that are lost, all of them, by destination and reason.
    #[must_use]
    pub fn unsent(&self) -> &[Unsent] {
        &self.told.unsent
    }

    /// Destinations that can no longer be sent to from the address that the last call was given: it sent from another,
    /// and the caller should forget the old address.
    #[must_use]
    pub fn astray(&self) -> &[SocketAddr] {
        &self.told.astray
    }

    /// Sends `messages` in order.
    pub(super) fn send<'a>(
        &mut self,
        calls: &impl Calls,
        way: Way<'_>,
        messages: impl IntoIterator<Item = Message<'a>>,
    ) -> Sent {
        self.told.unsent.clear();
        self.told.astray.clear();
        let Self { outgoing, pieces, told } = self;
        let pieces_now: Vec<IoSlice<'a>> = mem::take(pieces);
        let mut sending = Sending {
            calls,
            way,
            outgoing,
            pieces: pieces_now,
            told,
            sent: Sent::default(),
            rerouted: 0,
        };
        sending.run(messages);
        let (sent, used) = (sending.sent, sending.pieces);
        *pieces = emptied(used);
        sent
    }
}

/// Returns the same allocation for slices, which no longer borrows anything.
pub(super) fn emptied(mut pieces: Vec<IoSlice<'_>>) -> Vec<IoSlice<'static>> {
    pieces.clear();
    // Nothing is left to convert; the allocation stays, as both are laid out alike.
    pieces.into_iter().map(|_| IoSlice::new(&[])).collect()
}

/// How a socket sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'s> {
    /// Whether the kernel cuts messages to datagrams.
    pub(super) is_together: &'s AtomicBool,
    /// Whether it is a socket of both families.
    pub(super) is_both: bool,
}

/// Means that the kernel has no room for more.
struct Full;

/// One call of [`SendBatch::send`].
struct Sending<'s, 'a, C> {
    calls: &'s C,
    way: Way<'s>,
    outgoing: &'s mut Vec<Outgoing>,
    pieces: Vec<IoSlice<'a>>,
    told: &'s mut Told,
    sent: Sent,
    /// Datagrams that were sent from another address than the given one.
    rerouted: u64,
}

impl<'a, C: Calls> Sending<'_, 'a, C> {
    fn run(&mut self, messages: impl IntoIterator<Item = Message<'a>>) {
        for message in messages {
            let is_together = self.way.is_together.load(Ordering::Relaxed);
            for part in parts(&message, is_together) {
                if self.gather(&message, part, is_together).is_err() {
                    return self.forget();
                }
            }
            if let Some(last) = self.outgoing.last_mut() {
                last.end();
            }
        }
        let _ = self.flush();
        self.forget();
    }

    /// Appends a part to the last message of the batch, or begins one with it.
    fn gather(&mut self, message: &Message<'a>, part: &'a [u8], joins: bool) -> Result<(), Full> {
        match self.outgoing.last_mut() {
            Some(last) if joins && last.takes(message, part) => last.take(part),
            _ => {
                if self.outgoing.len() == BATCH {
                    self.flush()?;
                }
                self.outgoing.push(Outgoing::new(message, part, self.pieces.len()));
            }
        }
        self.pieces.push(IoSlice::new(part));
        Ok(())
    }

    /// Sends what was gathered.
    fn flush(&mut self) -> Result<(), Full> {
        let (mut outgoing, pieces) = (mem::take(self.outgoing), mem::take(&mut self.pieces));
        outgoing.iter_mut().for_each(|one| one.encode(self.way.is_both));
        let flushed = self.offer(&outgoing, &pieces);
        (*self.outgoing, self.pieces) = (outgoing, pieces);
        self.forget();
        flushed
    }

    fn forget(&mut self) {
        self.outgoing.clear();
        self.pieces.clear();
    }

    /// Offers a batch until all of it is sent or lost, or there is no room.
    fn offer(&mut self, outgoing: &[Outgoing], pieces: &[IoSlice<'_>]) -> Result<(), Full> {
        let mut rest = outgoing;
        while let Some(first) = rest.first() {
            let done = match self.calls.send(rest, pieces) {
                Ok(0) => return Err(Full),
                Ok(count) => {
                    rest.iter().take(count).for_each(|one| self.sent.count(one));
                    count
                }
                Err(error) => {
                    self.mend(first, pieces, &error, true)?;
                    1
                }
            };
            let (over, left) = rest.split_at(done.min(rest.len()));
            self.sent.taken += over.iter().map(|one| one.ended(one.pieces.len())).sum::<usize>();
            rest = left;
        }
        Ok(())
    }

    /// Does what can be done for a message that was refused: sends it in another way, or counts it. It is sent again
    /// as it is if it `may_repeat`.
    fn mend(
        &mut self,
        one: &Outgoing,
        pieces: &[IoSlice<'_>],
        error: &io::Error,
        may_repeat: bool,
    ) -> Result<(), Full> {
        let is_several = one.count() > 1;
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => return Err(Full),
            Some(libc::EMSGSIZE | libc::EIO | libc::EOPNOTSUPP | libc::EINVAL) if is_several => {
                return self.apart(one, pieces, error);
            }
            Some(libc::EMSGSIZE) => {
                self.sent.too_long += 1;
                self.told.unsent(one, error);
            }
            Some(code) if one.from.is_some() && may_be_astray(code) => {
                return self.as_routed(one, pieces);
            }
            Some(libc::EINTR | libc::ECONNREFUSED) if may_repeat => {
                return self.offer_one(one, pieces, false);
            }
            _ => {
                self.sent.refused += one.count() as u64;
                self.told.unsent(one, error);
            }
        }
        Ok(())
    }

    /// Offers a message alone.
    fn offer_one(
        &mut self,
        one: &Outgoing,
        pieces: &[IoSlice<'_>],
        may_repeat: bool,
    ) -> Result<(), Full> {
        match self.calls.send(std::slice::from_ref(one), pieces) {
            Ok(0) => Err(Full),
            Ok(_) => {
                self.sent.count(one);
                Ok(())
            }
            Err(error) => self.mend(one, pieces, &error, may_repeat),
        }
    }

    /// Sends a message from the address that the routes say.
    fn as_routed(&mut self, one: &Outgoing, pieces: &[IoSlice<'_>]) -> Result<(), Full> {
        let mut other = Outgoing { from: None, ..one.clone() };
        other.encode(self.way.is_both);
        let before = self.sent.datagrams;
        let result = self.offer_one(&other, pieces, true);
        if self.sent.datagrams > before {
            self.rerouted += self.sent.datagrams - before;
            self.told.astray(one.to);
        }
        result
    }

    /// Sends each datagram of a piece of a message alone.
    fn one_by_one(&mut self, one: &Outgoing, piece: &[u8]) -> Result<(), Full> {
        for datagram in piece.chunks(one.segment) {
            let bytes = datagram.len();
            let mut alone = Outgoing { segment: bytes, bytes, pieces: 0..1, ..one.clone() };
            alone.encode(self.way.is_both);
            self.offer_one(&alone, &[IoSlice::new(datagram)], true)?;
        }
        Ok(())
    }

    /// Sends each datagram of a message alone, and learns whether the kernel cuts any.
    fn apart(
        &mut self,
        one: &Outgoing,
        pieces: &[IoSlice<'_>],
        error: &io::Error,
    ) -> Result<(), Full> {
        let before = self.sent.datagrams - self.rerouted;
        for (at, piece) in pieces.get(one.pieces.clone()).unwrap_or_default().iter().enumerate() {
            if let Err(full) = self.one_by_one(one, piece) {
                self.sent.taken += one.ended(at);
                return Err(full);
            }
        }
        let went = self.sent.datagrams - self.rerouted - before;
        let is_refused = match error.raw_os_error() {
            Some(libc::EMSGSIZE) => false,
            Some(libc::EINVAL) => went == one.count() as u64,
            _ => true,
        };
        if is_refused {
            self.way.is_together.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Sent {
    fn count(&mut self, one: &Outgoing) {
        self.datagrams += one.count() as u64;
        self.bytes += one.bytes as u64;
    }
}

impl Told {
    fn unsent(&mut self, one: &Outgoing, error: &io::Error) {
        let (to, why, datagrams) = (one.to, Refusal::of(error), one.count() as u64);
        let known = self.unsent.iter_mut().find(|told| told.to == to && told.why == why);
        match known {
            Some(told) => told.datagrams += datagrams,
            None => self.unsent.push(Unsent { to, why, datagrams }),
        }
    }

    fn astray(&mut self, to: SocketAddr) {
        if !self.astray.contains(&to) {
            self.astray.push(to);
        }
    }
}

/// Whether the address that a message was to be sent from can be the reason.
fn may_be_astray(code: i32) -> bool {
    let gone = [libc::EINVAL, libc::ENODEV, libc::EADDRNOTAVAIL];
    gone.contains(&code) || [libc::ENETUNREACH, libc::EHOSTUNREACH].contains(&code)
}
