//! [`Answers`]: what the host sends by itself for packets that it has just refused. A reset or an ICMP error that is
//! one of them is the host's own, whatever its source, and carries the connection of the packet it answers.
//!
//! Contract: bounded by [`KEPT`] packets and [`WITHIN`] nanoseconds each. Where more wait at once the oldest is
//! given up; an answer that nothing waits for is then doubtful for as long as that one could have come.
//!
//! Source: Linux 6.18 `nf_reject_ipv4.c`, `icmp.c` (`icmp_glue_bits`): both attach the connection as they send.

use packet::Packet;
use rules::conntrack::{AnswerKind, Attachment, Tuple, answered};

/// Packets whose answers are waited for at once.
const KEPT: usize = 1024;
/// How long an answer takes at most, in nanoseconds.
const WITHIN: u64 = 1_000_000_000;

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
    /// It surely was refused.
    pub(crate) certain: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// With the time until which each is waited for.
    waiting: Vec<(u64, Answerable)>,
    /// Index of the oldest, once there are as many as are kept.
    oldest: usize,
    /// Until when one may come that is not waited for any more.
    given_up: u64,
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
}

impl Answers {
    /// Whether no answer is waited for.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The packet at a place that was found.
    pub(crate) fn at(&self, place: usize) -> Option<&Answerable> {
        self.waiting.get(place).map(|(_, refused)| refused)
    }

    /// A packet was refused at `now`.
    pub(crate) fn expect(&mut self, refused: Answerable, now: u64) {
        let until = now.saturating_add(WITHIN);
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
            None => Found::Nothing,
        }
    }
}
