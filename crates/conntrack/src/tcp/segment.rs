//! [`Segment`]: what tracking reads of a TCP segment, once, and what makes one malformed.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_tcp.c` (`tcp_error`, `tcp_options`, `tcp_sack`); RFC 7323
//! (window scale), RFC 2018 (selective acknowledgements).

use crate::dissect::{Unparsable, known};
use packet::options::Options;
use packet::tcp::Flags;
use packet::{Packet, Read, tcp};

/// What a segment is to the state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Kind {
    Syn = 0,
    SynAck = 1,
    Fin = 2,
    Ack = 3,
    Rst = 4,
    /// None of these flags.
    #[default]
    Bare = 5,
}

impl Kind {
    const fn of(flags: u8) -> Self {
        if flags & Flags::RST.0 != 0 {
            Self::Rst
        } else if flags & Flags::SYN.0 != 0 {
            if flags & Flags::ACK.0 != 0 { Self::SynAck } else { Self::Syn }
        } else if flags & Flags::FIN.0 != 0 {
            Self::Fin
        } else if flags & Flags::ACK.0 != 0 {
            Self::Ack
        } else {
            Self::Bare
        }
    }

    /// FIN or RST.
    pub(super) fn ends(self) -> bool {
        matches!(self, Self::Fin | Self::Rst)
    }
}

/// Combinations of SYN, ACK, FIN, RST and URG that make sense; the other flags may always be set.
const SENSIBLE: [u8; 9] = [0x02, 0x22, 0x12, 0x04, 0x14, 0x11, 0x31, 0x10, 0x30];

/// What segments with these flags are; `None` where they make no sense together.
const KINDS: [Option<Kind>; 1 << 6] = {
    let mut kinds = [None; 1 << 6];
    let mut at = 0;
    while at < SENSIBLE.len() {
        kinds[SENSIBLE[at] as usize] = Some(Kind::of(SENSIBLE[at]));
        at += 1;
    }
    kinds
};

/// A segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'p> {
    pub(crate) kind: Kind,
    pub(super) flags: Flags,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    /// Sequence number after its last byte; SYN and FIN count one each.
    pub(super) end: u32,
    /// Not scaled.
    pub(super) window: u16,
    /// The bytes of the options; `None` where they were not all captured.
    pub(super) options: Option<&'p [u8]>,
}

/// What a SYN says of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SynOptions {
    /// Window scale (0..=14), if it has one.
    pub(super) scale: Option<u8>,
    pub(super) sack_permitted: bool,
}

impl SynOptions {
    pub(super) fn flags(self) -> u8 {
        let scale = if self.scale.is_some() { flag::WINDOW_SCALE } else { 0 };
        scale | if self.sack_permitted { flag::SACK_PERMITTED } else { 0 }
    }
}

impl<'p> Segment<'p> {
    /// The segment at `offset` in the frame.
    #[inline]
    pub(crate) fn read(packet: &'p Packet<'_>, offset: usize) -> Result<Self, Unparsable> {
        let header = known(packet.read::<{ tcp::MIN_HEADER_LEN }>(offset))?;
        let Some(view) = tcp::Header::new_checked(&header) else { return Err(Unparsable::Invalid) };
        let len = packet.headers().end.saturating_sub(offset);
        let header_len = view.header_len();
        if header_len < tcp::MIN_HEADER_LEN || header_len > len {
            return Err(Unparsable::Invalid);
        }
        let flags = view.flags();
        let checked = flags.0 & !(Flags::ECE.0 | Flags::CWR.0 | Flags::PSH.0);
        let Some(Some(kind)) = KINDS.get(usize::from(checked)) else {
            return Err(Unparsable::Invalid);
        };
        let counted = u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
        let payload = (len - header_len) as u32;
        let options_len = header_len - tcp::MIN_HEADER_LEN;
        let options = match packet.read_slice(offset + tcp::MIN_HEADER_LEN, options_len) {
            Read::Known(bytes) => Some(bytes),
            Read::Unknown | Read::Absent => None,
        };
        Ok(Self {
            kind: *kind,
            flags,
            sequence: view.sequence(),
            acknowledgement: view.acknowledgement(),
            end: view.sequence().wrapping_add(payload).wrapping_add(counted),
            window: view.window(),
            options,
        })
    }

    pub(super) fn has(&self, flag: Flags) -> bool {
        self.flags.contains(flag)
    }

    /// Window scale and permission of selective acknowledgements.
    pub(super) fn syn_options(&self) -> SynOptions {
        const SCALE: u8 = 3;
        const SACK_PERMITTED: u8 = 4;
        let mut found = SynOptions::default();
        for option in Options::new(self.options.unwrap_or_default()).map_while(Result::ok) {
            match (option.kind, option.body) {
                (SCALE, [scale]) => found.scale = Some((*scale).min(14)),
                (SACK_PERMITTED, []) => found.sack_permitted = true,
                _ => {}
            }
        }
        found
    }

    /// Returns the segment's highest acknowledgement number, including the blocks of its first SACK option.
    pub(super) fn highest_acknowledged(&self) -> u32 {
        const SACK: u8 = 5;
        let mut highest = self.acknowledgement;
        for option in Options::new(self.options.unwrap_or_default()).map_while(Result::ok) {
            let (blocks, rest) = option.body.as_chunks::<8>();
            if option.kind != SACK || blocks.is_empty() || !rest.is_empty() {
                continue;
            }
            for [_, _, _, _, a, b, c, d] in blocks {
                let right_edge = u32::from_be_bytes([*a, *b, *c, *d]);
                if after(right_edge, highest) {
                    highest = right_edge;
                }
            }
            break;
        }
        highest
    }
}

/// Bits of [`SideState::flags`](super::record::SideState::flags), numbered as in the kernel.
pub(super) mod flag {
    pub(in crate::tcp) const WINDOW_SCALE: u8 = 0x01;
    pub(in crate::tcp) const SACK_PERMITTED: u8 = 0x02;
    /// Sent the first FIN.
    pub(in crate::tcp) const CLOSE_INIT: u8 = 0x04;
    pub(in crate::tcp) const LIBERAL: u8 = 0x08;
    pub(in crate::tcp) const UNACKNOWLEDGED: u8 = 0x10;
    /// [`SideState::max_ack`](super::super::record::SideState::max_ack) holds something.
    pub(in crate::tcp) const ACKNOWLEDGED: u8 = 0x20;
    /// The last segment may be answered by a challenge.
    pub(in crate::tcp) const EXPECTS_CHALLENGE: u8 = 0x40;
    /// Both sides had sent a SYN by the last segment.
    pub(in crate::tcp) const SIMULTANEOUS_OPEN: u8 = 0x80;
}

/// Whether `a` lies before `b`.
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` comes later than `b`.
pub(crate) fn after(a: u32, b: u32) -> bool {
    before(b, a)
}
