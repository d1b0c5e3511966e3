//! How much of a packet that came in fragments the kernel has in one piece: the pieces that it leaves as depend on it.
//!
//! A header that is to be looked at or written in place is pulled into the first piece, out of those after it. That
//! shows only where a first fragment is too short to hold the headers. Some targets and helpers pull all of a packet.
//!
//! Source: Linux 6.18 `tcp_v4_early_demux` (`net/ipv4/tcp_ipv4.c`), `sctp_error` (`nf_conntrack_proto_sctp.c`),
//! `nf_nat_icmp_reply_translation`, `nf_nat_icmpv6_reply_translation` and what they call
//! (`net/netfilter/nf_nat_proto.c`), `help` of `net/netfilter/nf_conntrack_ftp.c`.

use conntrack::{CtState, Helper, Side, dissect};
use packet::{L4, icmpv4, icmpv6, ipv4, ipv6, sctp, tcp, udp};
use rules::model::Family;
use rules::nat::is_translated;

use super::packet_walk::Walk;

/// Header of an ICMP error, before the packet that it quotes.
const ERROR_HEADER: usize = 8;
/// A TCP header that is cut off is written up to its sequence number.
const PORTS_AND_SEQUENCE: usize = 8;

impl Walk<'_, '_, '_> {
    /// Where the bytes end that are in one piece, as an offset in the frame; 0 where no more are than came so.
    pub(crate) fn in_one_piece(&self) -> usize {
        let L4::Upper(upper) = self.transit.packet.headers().l4 else { return 0 };
        if self.transit.one_piece || self.is_read_by_helper() {
            return self.transit.packet.headers().end;
        }
        match upper.protocol {
            tcp::PROTOCOL => upper.offset + tcp::MIN_HEADER_LEN,
            sctp::PROTOCOL => upper.offset + sctp::HEADER_LEN,
            icmpv4::PROTOCOL | icmpv6::PROTOCOL if self.is_error_to_translate() => {
                self.quoted(upper.offset + ERROR_HEADER)
            }
            _ => 0,
        }
    }

    /// Where the headers end of the packet that an error quotes, as far as they are translated.
    fn quoted(&self, at: usize) -> usize {
        let packet = &*self.transit.packet;
        let is_v6 = self.transit.family == Family::Ipv6;
        let fixed = at + if is_v6 { ipv6::HEADER_LEN } else { ipv4::MIN_HEADER_LEN };
        let quoted = dissect::quoted_layer(packet, at, is_v6).ok();
        let Some(quoted) = quoted.filter(|_| self.is_translated()) else { return fixed };
        let is_whole = |len| quoted.offset + len <= packet.headers().end;
        let len = match quoted.protocol {
            tcp::PROTOCOL if is_whole(tcp::MIN_HEADER_LEN) => tcp::MIN_HEADER_LEN,
            tcp::PROTOCOL => PORTS_AND_SEQUENCE,
            sctp::PROTOCOL if is_whole(sctp::HEADER_LEN) => sctp::HEADER_LEN,
            udp::PROTOCOL | sctp::PROTOCOL | icmpv4::PROTOCOL | icmpv6::PROTOCOL => udp::HEADER_LEN,
            _ => return fixed,
        };
        quoted.offset + len
    }

    /// The helper of its connection has it linearized.
    fn is_read_by_helper(&self) -> bool {
        let ct = &self.transit.ct;
        let flow = ct.tracker.as_ref().zip(ct.view.flow).and_then(|(t, at)| t.flow(at));
        let is_read = flow.is_some_and(|flow| matches!(flow.helper(), Helper::Ftp | Helper::Sip));
        is_read && ct.view.states.only() == Some(CtState::Established)
    }

    fn is_translated(&self) -> bool {
        [Side::Source, Side::Destination].iter().any(|side| is_translated(self.transit, *side))
    }

    /// An ICMP error that the hooks of a nat table look into.
    fn is_error_to_translate(&self) -> bool {
        let is_related = self.transit.ct.view.states.only() == Some(CtState::Related);
        is_related && self.tables.has_nat()
    }
}
