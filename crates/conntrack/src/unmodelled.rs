//! Helpers of which tamis knows only which packets they pass over, and how long they keep their flow.
//!
//! A packet that they may act on is let through or dropped, may have its payload rewritten where the flow is
//! translated, and may announce any flow with one of its flow's hosts.
//!
//! Source: Linux 6.18 `nf_conntrack_amanda.c`, `nf_conntrack_irc.c`, `nf_conntrack_pptp.c`, `nf_conntrack_sane.c`,
//! `nf_conntrack_sip.c`, `nf_conntrack_h323_main.c`; ITU-T H.225.0 (RasMessage), RFC 1006 (TPKT).

use crate::dissect;
use crate::dissect::{Unparsable, known, rest, segment};
use crate::flow::Flow;
use crate::helper::Helper;
use crate::key::Direction;
use crate::second::SECOND;
use packet::{Packet, tcp, udp};

/// `master_timeout` of the Amanda helper.
const AMANDA: u64 = 300 * SECOND;
/// `sip_timeout` of the SIP helper.
const SIP: u64 = 3600 * SECOND;

/// Requests that the SIP helper acts on, and what answers begin with.
const SIP_STARTS: [&[u8]; 7] =
    [b"SIP/2.0 ", b"INVITE", b"UPDATE", b"ACK", b"PRACK", b"BYE", b"REGISTER"];
/// Shorter ones it passes over.
const SIP_LEAST: usize = "SIP/2.0 200".len();
const PPTP_COOKIE: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

/// Version 3, and what is reserved.
const TPKT: [u8; 2] = [3, 0];

/// A packet of a flow with a helper.
pub(crate) struct Payload<'p, 'b, 'f> {
    pub(crate) packet: &'p Packet<'b>,
    pub(crate) flow: &'f Flow,
    pub(crate) direction: Direction,
    pub(crate) is_established: bool,
}

impl<'p> Payload<'p, '_, '_> {
    /// Whether its helper may act on it.
    pub(crate) fn may_act(&self) -> bool {
        match self.payload() {
            Ok([]) | Err(Unparsable::Invalid) => false,
            Ok(payload) => self.acts_on(payload),
            Err(Unparsable::Unknown) => true,
        }
    }

    fn acts_on(&self, payload: &[u8]) -> bool {
        let (back, settled) = (self.direction == Direction::Reply, self.is_established);
        match self.flow.helper {
            Helper::Amanda => back && holds(payload, b"CONNECT "),
            Helper::Irc => !back && settled && holds(payload, b"\x01DCC "),
            Helper::Pptp => settled && payload.get(4..8) == Some(&PPTP_COOKIE),
            // The answer to NET_START: success, nothing, and a port.
            Helper::Sane => back && settled && payload.starts_with(&[0; 6]) && payload.len() >= 8,
            Helper::Sip if payload.len() < SIP_LEAST => false,
            Helper::Sip if self.is_tcp() => settled,
            // Where it is translated any message is written to.
            Helper::Sip => self.flow.is_translated() || starts_sip(payload),
            Helper::Ras => acts_on_ras(payload, self.flow.is_translated()),
            Helper::Q931 => settled && payload.starts_with(&TPKT),
            Helper::Other => true,
            Helper::None | Helper::Ftp | Helper::Tftp | Helper::Broadcast => false,
        }
    }

    /// How long the flow lives from now on, in nanoseconds, where its helper says so.
    pub(crate) fn lifetime(&self) -> Option<u64> {
        match self.flow.helper {
            Helper::Amanda if self.direction == Direction::Reply => Some(AMANDA),
            Helper::Sip if self.is_tcp() && !self.is_established => None,
            Helper::Sip => {
                (!matches!(self.payload(), Ok([]) | Err(Unparsable::Invalid))).then_some(SIP)
            }
            _ => None,
        }
    }

    fn is_tcp(&self) -> bool {
        self.flow.original.protocol() == tcp::PROTOCOL
    }

    fn payload(&self) -> Result<&'p [u8], Unparsable> {
        let layer = dissect::layer(self.packet)?;
        match layer.protocol {
            tcp::PROTOCOL => Ok(segment(self.packet, layer.offset)?.1),
            udp::PROTOCOL => known(rest(self.packet, layer.offset + udp::HEADER_LEN)),
            _ => Err(Unparsable::Invalid),
        }
    }
}

/// The number of a message stands after the bit of extensions.
fn acts_on_ras(payload: &[u8], is_translated: bool) -> bool {
    let Some(first) = payload.first().filter(|first| **first < 0x80) else { return false };
    match first >> 2 {
        // Gatekeeper, admission and location confirmed: calls are expected; registration: it says how long it lives.
        1 | 4 | 10 | 19 => true,
        // Requests for a gatekeeper, registration, its end, admission; information: addresses are translated.
        0 | 3 | 6 | 9 | 22 => is_translated,
        _ => false,
    }
}

fn starts_sip(payload: &[u8]) -> bool {
    let begins = |start: &&[u8]| {
        payload.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
    };
    SIP_STARTS.iter().any(begins)
}

fn holds(payload: &[u8], text: &[u8]) -> bool {
    payload.windows(text.len()).any(|window| window == text)
}
