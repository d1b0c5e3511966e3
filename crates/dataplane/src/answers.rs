//! [`Answers`]: what the host sends by itself for packets that it has just refused. A reset or an ICMP error that is
//! one of them is the host's own, whatever its source, and carries the connection of the packet it answers.
//!
//! Contract: bounded by [`KEPT`] packets and [`WITHIN`] nanoseconds each. Where more wait at once the oldest is
//! given up; an answer that nothing waits for is then doubtful for as long as that one could have come.
//!
//! Source: Linux 6.18 `nf_reject_ipv4.c`, `icmp.c` (`icmp_glue_bits`): both attach the connection as they send.

use std::collections::VecDeque;
use std::net::IpAddr;

use conntrack::{AnswerKind, Attachment, Tuple, answered};
use packet::Packet;

/// Packets whose answers are waited for at once.
pub const KEPT: usize = 1024;
/// How long an answer takes at most, in nanoseconds.
const WITHIN: u64 = 1_000_000_000;
/// The same for packets that rules logged: they have the time at which they were read, and the kernel hands them out
/// once a second (`NFULNL_TIMEOUT_DEFAULT`).
const WITHIN_LOGGED: u64 = 2_500_000_000;
/// How long it asks for a neighbour before it says that there is none, in nanoseconds, and some.
const STRAYS_WITHIN: u64 = 5_000_000_000;
/// How long what is kept may be asked for, in nanoseconds.
pub const LONGEST: u64 = WITHIN_LOGGED + STRAYS_WITHIN;

/// A packet that the host answers.
#[derive(Debug, Clone)]
pub(crate) struct Answerable {
    /// What it is answered by; `None` where that is not known.
    pub(crate) kind: Option<AnswerKind>,
    /// Its tuple as its sender sent it: what the answer goes back to.
    pub(crate) sent: Tuple,
    /// Its tuple where it was refused.
    pub(crate) here: Tuple,
    /// Its connection, if it had one.
    pub(crate) connection: Option<Attachment>,
    /// It was on its way to the host itself.
    pub(crate) to_host: bool,
    /// The host's IPv6 address at the device by which it came, which an error about it comes from (`icmp6_send`).
    pub(crate) came_to: Option<IpAddr>,
    /// It surely was refused.
    pub(crate) certain: bool,
}

impl Answerable {
    /// Whether its destination was translated.
    pub(crate) fn is_moved(&self) -> bool {
        let destination = |tuple: &Tuple| (tuple.destination(), tuple.destination_part());
        destination(&self.here) != destination(&self.sent)
    }
}

/// Packets whose answers are expected, a bounded number of them.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// With the time until which each is waited for.
    waiting: Vec<(u64, Answerable)>,
    /// Index of the oldest, once there are as many as are kept.
    oldest: usize,
    /// Until when one may come that is not waited for any more.
    given_up: u64,
    /// Packets that were let go, with connections that are in no table, the oldest first.
    strays: VecDeque<(u64, Answerable)>,
    /// How many packets were kept so far: refused ones, and those that were let go.
    pub(crate) kept: [u64; 2],
    /// How often one was looked for.
    pub(crate) asked: u64,
}

/// What a packet answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing that was refused.
    Nothing,
    /// Perhaps something.
    Maybe,
    /// What waits at this place.
    Refused(usize),
    /// The packet at this place of those that were let go.
    Stray(usize),
    /// The reset for what waits at this place, which found no neighbour and so was not seen.
    AboutReset(usize),
}

impl Answers {
    /// Whether no answer is waited for.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.strays.is_empty()
    }

    /// The packet that was found.
    pub(crate) fn at(&self, found: Found) -> Option<&Answerable> {
        let (_, packet) = match found {
            Found::Refused(place) | Found::AboutReset(place) => self.waiting.get(place),
            Found::Stray(place) => self.strays.get(place),
            Found::Nothing | Found::Maybe => None,
        }?;
        Some(packet)
    }

    /// A packet was refused at `now`, which is when its log was read if it is a logged one.
    pub(crate) fn expect(&mut self, refused: Answerable, now: u64, is_logged: bool) {
        self.kept[0] += 1;
        let until = now.saturating_add(if is_logged { WITHIN_LOGGED } else { WITHIN });
        if self.waiting.len() < KEPT {
            self.waiting.push((until, refused));
            return;
        }
        if let Some(place) = self.waiting.get_mut(self.oldest) {
            if place.0 > now {
                self.given_up = self.given_up.max(place.0);
            }
            *place = (until, refused);
        }
        self.oldest = (self.oldest + 1) % KEPT;
    }

    /// An error may yet be sent about a packet that was let go. The oldest gives way to it.
    pub(crate) fn remember(&mut self, stray: Answerable, now: u64) {
        self.kept[1] += 1;
        if self.strays.len() == KEPT {
            self.strays.pop_front();
        }
        self.strays.push_back((now.saturating_add(STRAYS_WITHIN), stray));
    }

    /// What a packet of the host's own answers, if it does; it is waited for no longer.
    pub(crate) fn take(&mut self, packet: &Packet<'_>, now: u64) -> Found {
        let Some((kind, sent)) = answered(packet) else { return Found::Nothing };
        let found = self.waiting.iter_mut().zip(0..).find(|((until, refused), _)| {
            *until > now && refused.sent == sent && refused.kind.is_none_or(|of| of == kind)
        });
        match found {
            Some(((until, refused), place)) => {
                *until = 0;
                // Nothing else on this host answers what was to go on.
                refused.kind = Some(kind);
                match refused.certain || !refused.to_host {
                    true => Found::Refused(place),
                    false => Found::Maybe,
                }
            }
            None if now < self.given_up => Found::Maybe,
            None => self.stray(kind, &sent, now),
        }
    }

    /// What else an error is about: a packet that was let go, or a reset that was sent and not seen.
    fn stray(&self, kind: AnswerKind, sent: &Tuple, now: u64) -> Found {
        if kind != AnswerKind::Error {
            return Found::Nothing;
        }
        let is_it = |(until, stray): &(u64, Answerable)| *until > now && stray.sent == *sent;
        if let Some(place) = self.strays.iter().rposition(is_it) {
            return Found::Stray(place);
        }
        let reset = sent.inverse();
        let is_of = |(until, refused): &(u64, Answerable)| {
            *until > 0
                && until.saturating_add(STRAYS_WITHIN) > now
                && refused.kind == Some(AnswerKind::Reset)
                && Some(refused.sent) == reset
        };
        self.waiting.iter().rposition(is_of).map_or(Found::Nothing, Found::AboutReset)
    }
}
