//! Extension headers of IPv6, options of TCP and chunks of SCTP: whether they are there, or a field of them.
//!
//! A field of a part that is not there ends the rule; whether it is there is always known to the kernel: what is no TCP,
//! or has no whole header, has no option. What is no IPv6 ends the rule, whatever it asks of extension headers.
//! Source: kernel `net/netfilter/nft_exthdr.c` (from 5.13 on: "nft_exthdr: check for IPv6 packet before further processing").

use super::{Load, bytes};
use crate::expr::Space;
use crate::lower::word::{Loaded, Word, number, ones};
use packet::ipv6_ext::{self, Find};
use packet::{L4, Read};
use rules::Transit;
use rules::model::Family;

const TCP: u8 = 6;
const SCTP: u8 = 132;
/// Bytes of the fixed headers.
const TCP_LEN: usize = 20;
const SCTP_LEN: usize = 12;
/// Bytes of an SCTP chunk's header.
const CHUNK_LEN: usize = 4;
/// No packet has more chunks than this that are looked at.
const CHUNKS: usize = 64;

/// A part of a packet that may be missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub space: Space,
    /// Number of the header, option or chunk.
    pub kind: u32,
    /// First bit and width of the field; `None` for whether it is there.
    pub field: Option<(u32, u32)>,
}

/// Where a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// From this byte of the frame on; of options and chunks, with its length.
    At(usize, Option<usize>),
    /// Nowhere.
    Missing,
    /// What would show it is not known.
    Unknown,
}

/// The TCP header of a packet, as the kernel asks for it: where it is, and its length.
fn tcp_header(transit: &Transit<'_, '_>) -> Read<(usize, usize)> {
    let upper = match transit.upper_layer() {
        L4::Upper(upper) if upper.protocol == TCP => upper,
        L4::Unknown => return Read::Unknown,
        _ => return Read::Absent,
    };
    let available = transit.packet.headers().end.saturating_sub(upper.offset);
    if available < TCP_LEN && !transit.packet.is_open() {
        return Read::Absent;
    }
    match transit.packet.upper::<1>(&upper, 12) {
        Read::Known([words]) => {
            let len = usize::from(words >> 4) * 4;
            if len < TCP_LEN || len > available && !transit.packet.is_open() {
                return Read::Absent;
            }
            Read::Known((upper.offset, len))
        }
        Read::Unknown => Read::Unknown,
        Read::Absent => Read::Absent,
    }
}

/// Finds an option of TCP by its number.
pub(crate) fn tcp_option(transit: &Transit<'_, '_>, kind: u32) -> Place {
    let (start, len) = match tcp_header(transit) {
        Read::Known(header) => header,
        Read::Unknown => return Place::Unknown,
        Read::Absent => return Place::Missing,
    };
    let mut at = TCP_LEN;
    while at + 1 < len {
        let Read::Known([own, next]) = transit.packet.read::<2>(start + at) else {
            return Place::Unknown;
        };
        let option = if own <= 1 || next == 0 { 1 } else { usize::from(next) };
        if u32::from(own) == kind {
            let whole = at + option <= len;
            return if whole {
                Place::At(start + at, Some(option))
            } else {
                Place::At(start + at, Some(0))
            };
        }
        at += option;
    }
    Place::Missing
}

fn chunk(transit: &Transit<'_, '_>, kind: u32) -> Place {
    let upper = match transit.upper_layer() {
        L4::Upper(upper) if upper.protocol == SCTP => upper,
        L4::Unknown => return Place::Unknown,
        // The kernel does not ask whether a fragment is a later one.
        L4::Fragment { protocol: SCTP, .. } => return Place::Unknown,
        _ => return Place::Missing,
    };
    let end = transit.packet.headers().end;
    let mut at = upper.offset + SCTP_LEN;
    for _ in 0..CHUNKS {
        let [own, _, high, low] = match transit.packet.read::<CHUNK_LEN>(at) {
            Read::Known(header) => header,
            Read::Unknown => return Place::Unknown,
            Read::Absent => return Place::Missing,
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if len == 0 {
            return Place::Missing;
        }
        if u32::from(own) == kind {
            let whole = at + len <= end;
            return Place::At(at, Some(if whole { len } else { 0 }));
        }
        at += len.next_multiple_of(4);
        if at >= end {
            return Place::Missing;
        }
    }
    Place::Unknown
}

fn extension(transit: &Transit<'_, '_>, kind: u32) -> Place {
    let Ok(kind) = u8::try_from(kind) else { return Place::Missing };
    match ipv6_ext::find(&*transit.packet, transit.packet.network_offset(), Some(kind)) {
        Find::Found { offset, .. } => Place::At(offset, None),
        Find::Missing | Find::Truncated => Place::Missing,
        Find::Unknown => Place::Unknown,
    }
}

impl Part {
    fn place(&self, transit: &Transit<'_, '_>) -> Place {
        match self.space {
            Space::Extension => extension(transit, self.kind),
            Space::Tcp => tcp_option(transit, self.kind),
            Space::Sctp => chunk(transit, self.kind),
            Space::Ip => Place::Unknown,
        }
    }

    /// First byte of what the kernel loads of a field, and how many.
    fn span((offset, bits): (u32, u32)) -> (usize, usize) {
        let first = offset / 8;
        (first as usize, (bytes(offset + bits) - first) as usize)
    }
}

impl Load for Part {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        if self.space == Space::Extension && transit.family != Family::Ipv6 {
            return Loaded::nothing();
        }
        let Some((offset, bits)) = self.field else {
            return match self.place(transit) {
                // An option that goes beyond its header is not there; an extension header is, wherever it ends.
                Place::At(_, Some(0)) | Place::Missing => Loaded::known(0),
                Place::At(..) => Loaded::known(1),
                Place::Unknown => Loaded::word(Word::between(0, 1)),
            };
        };
        let (first, len) = Self::span((offset, bits));
        let start = match self.place(transit) {
            Place::At(_, Some(whole)) if first + len > whole => return Loaded::nothing(),
            Place::At(start, _) => start + first,
            Place::Missing => return Loaded::nothing(),
            Place::Unknown => return Loaded::anything(bits),
        };
        match transit.packet.read_slice(start, len) {
            Read::Known(bytes) => {
                let after = (8 - (offset + bits) % 8) % 8;
                Loaded::known(number(bytes) >> after & ones(bits))
            }
            Read::Unknown => Loaded::unknown(bits),
            Read::Absent => Loaded::nothing(),
        }
    }

    fn lacks(&self) -> Option<&str> {
        match self.space {
            Space::Ip => Some("ip option"),
            _ if self.field.is_some_and(|(_, bits)| bits > 120)
                && self.space != Space::Extension =>
            {
                Some("a long field of an option")
            }
            _ => None,
        }
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        let space = match self.space {
            Space::Extension => "ipv6 ",
            Space::Tcp => "tcpopt ",
            Space::Ip => "ipv4 ",
            Space::Sctp => "",
        };
        let (first, len) = self.field.map_or((0, 1), Self::span);
        let present = if self.field.is_none() { " present" } else { "" };
        show(format!("exthdr load {space}{len}b @ {} + {first}{present}", self.kind));
    }
}

#[cfg(test)]
mod tests {
    use crate::lower::probe::{Frame, craft};
    use packet::craft::Message;
    use packet::tcp::Flags;
    use rules::Outcome as O;

    fn with_options(options: &[u8]) -> Frame {
        let mut craft = craft("10.0.0.1", "10.0.0.2", Message::tcp(1, 2, Flags::SYN));
        craft.options = options.to_vec();
        Frame::of(&craft)
    }

    #[test]
    fn options_of_tcp_are_found_behind_others() {
        let frame = with_options(&[1, 1, 2, 4, 5, 180, 3, 3, 7, 0]);
        for (rule, says) in [
            ("tcp option maxseg size 1460", O::YES),
            ("tcp option maxseg size > 1460", O::NO),
            ("tcp option window count 7", O::YES),
            ("tcp option maxseg exists", O::YES),
            ("tcp option maxseg missing", O::NO),
            ("tcp option timestamp missing", O::YES),
            ("tcp option timestamp tsval != 0", O::NO),
            ("tcp option @2,16,16 1460", O::YES),
            ("tcp option nop exists", O::YES),
        ] {
            assert_eq!(frame.says(rule), says, "{rule}");
            let cut = frame.clone().cut(54).says(rule);
            assert_eq!(cut, O::MAYBE, "{rule}, cut");
        }
        let datagram = Frame::of(&craft("10.0.0.1", "10.0.0.2", Message::udp(1, 2)));
        assert_eq!(datagram.says("tcp option maxseg missing"), O::YES, "whatever is no TCP");
        assert_eq!(with_options(&[2, 9, 0, 0]).says("tcp option maxseg exists"), O::NO, "too long");
    }

    #[test]
    fn extension_headers_are_there_or_not() {
        let mut craft = craft("2001:db8::1", "2001:db8::2", Message::udp(1, 2));
        craft.fragment = Some(packet::craft::Fragment { offset: 64, more: true });
        craft.payload_len = 16;
        let six = Frame::of(&craft);
        for (rule, says) in [
            ("exthdr frag exists", O::YES),
            ("exthdr hbh exists", O::NO),
            ("exthdr hbh missing", O::YES),
            ("frag more-fragments 1", O::YES),
            ("frag frag-off 8", O::YES),
            ("frag nexthdr 17", O::YES),
            ("hbh nexthdr 17", O::NO),
        ] {
            assert_eq!(six.says(rule), says, "{rule}");
        }
    }

    /// Measured on Linux 6.18.
    #[test]
    fn no_packet_of_ipv4_has_or_lacks_an_extension_header() {
        let frame = Frame::of(&craft("10.0.0.1", "10.0.0.2", Message::udp(1, 2)));
        for rule in ["exthdr rt missing", "exthdr rt exists", "rt hdrlength >= 0"] {
            let rule = format!("meta nfproto {{ ipv4, ipv6 }} {rule}");
            assert_eq!(frame.says_in("inet", "", &rule), O::NO, "{rule}");
        }
    }

    #[test]
    fn chunks_of_sctp_are_found_in_turn() {
        let mut header = vec![0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
        header.extend([10, 0, 0, 5, 9, 0, 0, 0]);
        header.extend([1, 0, 0, 20, 0, 0, 0, 7, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0]);
        let frame =
            Frame::of(&craft("10.0.0.1", "10.0.0.2", Message::Other { protocol: 132, header }));
        for (rule, says) in [
            ("sctp chunk init exists", O::YES),
            ("sctp chunk init init-tag 7", O::YES),
            ("sctp chunk init num-outbound-streams 3", O::YES),
            ("sctp chunk cookie-echo exists", O::YES),
            ("sctp chunk data missing", O::YES),
            ("sctp chunk data tsn 1", O::NO),
        ] {
            assert_eq!(frame.says(rule), says, "{rule}");
        }
    }
}
