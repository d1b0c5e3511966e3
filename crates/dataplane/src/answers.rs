//! [`Answers`]: resets and ICMP errors that the host sends for packets that it has just refused. Such an answer is the
//! host's own, whatever its source, and carries the connection of the packet that it answers.
//!
//! Contract: bounded by [`KEPT`] packets and [`WITHIN`] nanoseconds each. Where more wait at once the oldest is given
//! up; an answer that nothing waits for is then doubtful for as long as the abandoned one could have come.
//!
//! Source: Linux 6.18 `nf_reject_ipv4.c`, `icmp.c` (`icmp_glue_bits`): both attach the connection as they send.

use std::collections::VecDeque;
use std::net::IpAddr;

use conntrack::{AnswerKind, Attachment, SECOND, Tuple, answered};
use packet::Packet;

/// Packets whose answers are waited for at once, at most.
pub const KEPT: usize = 1024;
/// How long an answer takes at most, in nanoseconds.
const WITHIN: u64 = SECOND;
/// How long an answer to a packet that rules logged takes at most, in nanoseconds: such a packet has the time at which
/// it was read, and the kernel hands logged packets out once a second (`NFULNL_TIMEOUT_DEFAULT`).
const WITHIN_LOGGED: u64 = 2_500_000_000;
/// How long the host asks for a neighbour before it says that there is none, in nanoseconds, and some.
const STRAYS_WITHIN: u64 = 5_000_000_000;
/// How long a kept packet may be asked for, in nanoseconds.
pub const LONGEST: u64 = WITHIN_LOGGED + STRAYS_WITHIN;

/// A packet that the host answers.
#[derive(Debug, Clone)]
pub(crate) struct Answerable {
    /// The kind of answer; `None` where that is not known.
    pub(crate) kind: Option<AnswerKind>,
    /// The packet's tuple as its sender sent it: the answer's destination.
    pub(crate) sent: Tuple,
    /// The packet's tuple where it was refused.
    pub(crate) here: Tuple,
    /// The packet's connection, if it had one.
    pub(crate) connection: Option<Attachment>,
    /// The packet was on its way to the host itself.
    pub(crate) to_host: bool,
    /// The host's IPv6 address at the input device, which is the source of an error about the packet (`icmp6_send`).
    pub(crate) came_to: Option<IpAddr>,
    /// The packet certainly was refused.
    pub(crate) certain: bool,
}

impl Answerable {
    /// Whether the packet's destination was translated.
    pub(crate) fn is_moved(&self) -> bool {
        let destination = |tuple: &Tuple| (tuple.destination(), tuple.destination_part());
        destination(&self.here) != destination(&self.sent)
    }
}

/// Packets whose answers are expected, in a bounded number.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Each packet with the time until which its answer is waited for.
    waiting: Vec<(u64, Answerable)>,
    /// Index of the oldest, once [`KEPT`] packets wait.
    oldest: usize,
    /// The time until which an answer may come that is no longer waited for.
    given_up: u64,
    /// Packets that left, with connections that are in no table, the oldest first.
    strays: VecDeque<(u64, Answerable)>,
    /// Numbers of packets kept so far: refused ones, and ones that left.
    pub(crate) kept: [u64; 2],
    /// How often an answer's packet was looked for.
    pub(crate) asked: u64,
}

/// The refused packet that a packet answers, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// No packet that was refused.
    Nothing,
    /// Perhaps one.
    Maybe,
    /// The packet that waits at this place.
    Refused(usize),
    /// The packet at this place among the packets that left.
    Stray(usize),
    /// The reset for the packet that waits at this place: the reset found no neighbour and so was not seen.
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

    /// Keeps a packet that was refused at `now`, which for a logged packet is the time when its log was read.
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

    /// Keeps a packet that left and about which an error may still be sent. It takes the place of the oldest.
    pub(crate) fn remember(&mut self, stray: Answerable, now: u64) {
        self.kept[1] += 1;
        if self.strays.len() == KEPT {
            self.strays.pop_front();
        }
        self.strays.push_back((now.saturating_add(STRAYS_WITHIN), stray));
    }

    /// The packet that one of the host's own answers, if it answers any; its answer is no longer waited for.
    pub(crate) fn take(&mut self, packet: &Packet<'_>, now: u64) -> Found {
        let Some((kind, sent)) = answered(packet) else { return Found::Nothing };
        let found = self.waiting.iter_mut().zip(0..).find(|((until, refused), _)| {
            *until > now && refused.sent == sent && refused.kind.is_none_or(|of| of == kind)
        });
        match found {
            Some(((until, refused), place)) => {
                *until = 0;
                // Nothing else on this host answers packets that were to be forwarded.
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

    /// The other packet that an error may be about: a packet that left, or a reset that was sent and not seen.
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
