//! [`Flow`]: one entry of the table.
//!
//! Contract: plain data of four cache lines. What a packet reads first (the tuples, the deadline, the
//! protocol's state) comes first. Only the tracker creates one.
//!
//! Source: Linux `nf_conn`, `include/uapi/linux/netfilter/nf_conntrack_common.h` (status bits).

use crate::helper::Helper;
use crate::key::{Direction, Tuple};
use crate::sctp::Sctp;
use crate::status::{Side, Status};
use crate::tcp::Tcp;

/// What cannot be known of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Doubt {
    /// Nothing: it is as the kernel has it.
    #[default]
    None,
    /// Whether it exists: the verdict of its first packet is not known.
    Existence,
    /// Whether it exists, which way round, and in what state: more packets passed since, or a packet of
    /// which not all that matters is known.
    History,
}

/// How much of a flow may have been missed by the capture ([`Mode::Midstream`](super::Mode::Midstream)). Until its
/// other direction is seen, its packets count as packets of a new flow, or, in TCP, of an established flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unseen {
    /// Nothing.
    #[default]
    Nothing,
    /// The flow may have begun, and been answered, before the capture.
    Beginning,
    /// The flow began in the capture with a SYN, and goes on as if it was answered.
    Answers,
}

/// Packets and bytes of one direction (`connbytes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
}

/// What the protocol's tracker remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proto {
    /// Nothing.
    #[default]
    Generic,
    /// TCP.
    Tcp(Tcp),
    /// UDP: from some time on an answered flow is a stream.
    Udp {
        /// From when on, in nanoseconds.
        stream_from: u64,
    },
    /// SCTP.
    Sctp(Sctp),
}

/// One entry of the table.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Flow {
    // What every packet reads.
    pub(crate) original: Tuple,
    /// Confirmed: when it dies, in nanoseconds. Before: how long it will live from its confirmation on.
    pub(crate) deadline: u64,
    pub(crate) generation: u32,
    /// How often the table may have let flows go when it was last known to be there.
    pub(crate) squeezes: u32,
    pub(crate) status: Status,
    pub(crate) doubt: Doubt,
    pub(crate) helper: Helper,
    pub(crate) master_helper: Helper,
    /// Segments out of window cannot be told: options that set its scale were not captured.
    pub(crate) vague_window: bool,
    pub(crate) assumed: bool,
    pub(crate) unseen: Unseen,
    /// The flow was listed: what it counted, and its labels, are not known.
    pub(crate) listed: bool,
    /// The flow was picked up in its middle shortly after a start, and counts as established ([`Config::grace`]).
    ///
    /// [`Config::grace`]: crate::Config::grace
    pub(crate) picked_up: bool,
    /// A verdict was taken by what its packets are taken for.
    pub(crate) was_taken: bool,
    /// Whether the mark and the labels may have been changed.
    pub(crate) vague_mark: bool,
    /// How the source, or the destination, is translated is not known.
    pub(crate) indeterminate_ends: [bool; 2],
    /// The flow may consist of answers to a flow that was not found.
    pub(crate) stand_in: bool,
    /// The source, or the destination, of its first packet may have been another one: the host made it, and it was recorded
    /// as it left.
    pub(crate) hidden_ends: [bool; 2],
    // What replies read.
    pub(crate) reply: Tuple,
    /// The connection mark (`connmark`).
    pub mark: u32,
    /// Expectations that wait for a flow of this one.
    pub(crate) expecting: u16,
    // What every packet writes.
    pub(crate) proto: Proto,
    pub(crate) counters: [Counters; 2],
    // What few packets read.
    pub(crate) born: u64,
    pub(crate) master: u64,
    pub(crate) labels: [u64; 2],
}

impl Flow {
    pub(crate) fn new(original: Tuple, reply: Tuple, born: u64) -> Self {
        Self {
            original,
            reply,
            deadline: 0,
            status: Status::default(),
            doubt: Doubt::None,
            helper: Helper::None,
            master_helper: Helper::None,
            vague_window: false,
            assumed: false,
            unseen: Unseen::Nothing,
            listed: false,
            picked_up: false,
            was_taken: false,
            vague_mark: false,
            indeterminate_ends: [false; 2],
            stand_in: false,
            hidden_ends: [false; 2],
            proto: Proto::Generic,
            counters: [Counters::default(); 2],
            born,
            master: 0,
            labels: [0; 2],
            generation: 0,
            squeezes: 0,
            mark: 0,
            expecting: 0,
        }
    }

    /// The tuple of packets of one direction, as they arrive. That of replies shows what translation
    /// does: it is the original's inverse unless addresses or ports are translated.
    #[inline]
    #[must_use]
    pub fn tuple(&self, direction: Direction) -> &Tuple {
        match direction {
            Direction::Original => &self.original,
            Direction::Reply => &self.reply,
        }
    }

    /// Which way of it a tuple goes that it has in this direction: one to oneself on one port has equal tuples, and the
    /// kernel finds the reply first.
    #[inline]
    pub(crate) fn direction_of(&self, found: Direction, tuple: &Tuple) -> Direction {
        if self.reply == *tuple { Direction::Reply } else { found }
    }

    /// Number of its zone, whatever the directions that it separates: the others have 0.
    #[must_use]
    pub fn zone(&self) -> u16 {
        self.original.zone().max(self.reply.zone())
    }

    /// Some end of it is translated.
    #[must_use]
    pub fn is_translated(&self) -> bool {
        self.status.contains(Status::SRC_NAT) || self.status.contains(Status::DST_NAT)
    }

    /// Whether it is translated, and it is known how.
    pub(crate) fn is_known_to_translate(&self) -> bool {
        self.is_translated() && self.doubt == Doubt::None && self.indeterminate_ends == [false; 2]
    }

    /// Status bits.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// The protocol tracker's state.
    #[must_use]
    pub fn proto(&self) -> &Proto {
        &self.proto
    }

    /// Packets and bytes of one direction.
    #[must_use]
    pub fn counters(&self, direction: Direction) -> Counters {
        let [original, reply] = self.counters;
        if direction == Direction::Original { original } else { reply }
    }

    /// Nanoseconds until it dies; 0 before its confirmation, as `--ctexpire` sees it on a host that has been up for a
    /// while (docs/conformance-kernels.md).
    #[must_use]
    pub fn expires_in(&self, now: u64) -> u64 {
        if self.is_confirmed() { self.deadline.saturating_sub(now) } else { 0 }
    }

    /// The helper that looks into its packets.
    #[must_use]
    pub fn helper(&self) -> Helper {
        self.helper
    }

    /// Gives the flow a helper, before its first packet has survived.
    pub fn set_helper(&mut self, helper: Helper) {
        self.helper = helper;
    }

    /// The helper of the flow that expected it; `None` where none did.
    #[must_use]
    pub fn master_helper(&self) -> Helper {
        self.master_helper
    }

    /// Number of the frame that created it.
    #[must_use]
    pub fn born(&self) -> u64 {
        self.born
    }

    /// What cannot be known of it.
    #[must_use]
    pub fn doubt(&self) -> Doubt {
        self.doubt
    }

    /// Whether the flow was taken for established because its beginning was not captured.
    #[must_use]
    pub fn is_assumed(&self) -> bool {
        self.assumed
    }

    /// What there may be of it that was not captured.
    #[must_use]
    pub fn unseen(&self) -> Unseen {
        self.unseen
    }

    /// Whether it was picked up in its middle shortly after a start, and counts as established.
    #[must_use]
    pub fn is_picked_up(&self) -> bool {
        self.picked_up
    }

    /// Whether it was there before the capture: what it counted, and its labels, are not known.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// Whether it may have been assured since, though it was not when it was listed: its age is not known.
    #[must_use]
    pub fn may_be_assured(&self) -> bool {
        let ages = matches!(self.proto, Proto::Udp { .. });
        self.listed
            && ages
            && self.status.contains(Status::SEEN_REPLY)
            && !self.status.contains(Status::ASSURED)
    }

    /// Whether its mark and labels are not known.
    #[must_use]
    pub fn is_mark_vague(&self) -> bool {
        self.vague_mark
    }

    /// Notes that a rule may have changed the mark and the labels, or not.
    pub fn blur_mark(&mut self) {
        self.vague_mark = true;
    }

    /// Whether it is not known how this end is translated.
    #[must_use]
    pub fn is_indeterminate(&self, side: Side) -> bool {
        let [source, destination] = self.indeterminate_ends;
        if side == Side::Source { source } else { destination }
    }

    /// Whether this end may have been another one when the host made its packets, which were recorded as they left.
    #[must_use]
    pub fn is_hidden(&self, side: Side) -> bool {
        self.hidden_ends[side as usize]
    }

    /// Notes that the host made the packets, perhaps with other ends than the recorded ones.
    pub fn hide(&mut self, ends: [bool; 2]) {
        self.hidden_ends = ends;
    }

    /// Whether its first packet survived.
    #[inline]
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.status.contains(Status::CONFIRMED)
    }

    /// Whether packets find it at a time.
    pub(crate) fn lives(&self, now: u64) -> bool {
        self.is_confirmed() && !self.is_expired(now) && !self.status.contains(Status::DYING)
    }

    /// A helper looks into it, or others wait for what it expects.
    pub(crate) fn has_helper(&self) -> bool {
        self.helper != Helper::None || self.expecting != 0
    }

    /// Notes that the flow may consist of answers to a flow that was not found: either end of its packets may be
    /// translated.
    pub fn stand_in(&mut self) {
        self.stand_in = true;
    }

    /// Whether it may stand for answers to a flow that was not found.
    #[must_use]
    pub fn is_stand_in(&self) -> bool {
        self.stand_in
    }

    /// Notes the decision that this end stays as it is.
    pub fn decide(&mut self, side: Side) {
        self.status.set(side.decided());
    }

    /// Whether label `bit` (0..128) is set.
    #[must_use]
    pub fn label(&self, bit: u8) -> bool {
        let word = self.labels.get(usize::from(bit / 64)).copied().unwrap_or(0);
        word >> (bit % 64) & 1 == 1
    }

    /// Sets label `bit` (0..128).
    pub fn set_label(&mut self, bit: u8) {
        if let Some(word) = self.labels.get_mut(usize::from(bit / 64)) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Reads a word of each of its cache lines.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let [original, _] = self.counters;
        self.deadline ^ u64::from(self.mark) ^ original.packets ^ self.labels[1]
    }

    #[inline]
    pub(crate) fn is_expired(&self, now: u64) -> bool {
        now >= self.deadline
    }

    /// Renews the timeout, and counts the packet (`nf_ct_refresh_acct`).
    #[inline]
    pub(crate) fn refresh(&mut self, direction: Direction, now: u64, timeout: u64, bytes: usize) {
        self.renew(now, timeout);
        self.count(direction, bytes);
    }

    /// Renews the timeout.
    #[inline]
    pub(crate) fn renew(&mut self, now: u64, timeout: u64) {
        if !self.status.contains(Status::FIXED_TIMEOUT) {
            self.deadline = if self.is_confirmed() { now.saturating_add(timeout) } else { timeout };
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, direction: Direction, bytes: usize) {
        let [original, reply] = &mut self.counters;
        let counters = if direction == Direction::Original { original } else { reply };
        counters.packets = counters.packets.wrapping_add(1);
        counters.bytes = counters.bytes.wrapping_add(bytes as u64);
    }

    pub(crate) fn raise_doubt(&mut self, doubt: Doubt) {
        self.doubt = self.doubt.max(doubt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_four_cache_lines() {
        assert_eq!(size_of::<Flow>(), 256);
    }

    #[test]
    fn labels_are_128_bits() {
        let tuple = Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, [1, 2]);
        let mut flow = Flow::new(tuple, tuple, 1);
        for bit in [0, 63, 64, 127, 200] {
            flow.set_label(bit);
        }
        let set: Vec<u8> = (0..=255).filter(|bit| flow.label(*bit)).collect();
        assert_eq!(set, [0, 63, 64, 127]);
    }
}
