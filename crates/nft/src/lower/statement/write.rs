//! Fields of headers that rules write: fields of the network header that change neither its form nor its addresses, and the
//! segment size that TCP announces, which is only lowered.
//!
//! Source: kernel `net/netfilter/nft_payload.c` (`nft_payload_set_eval`), `nft_exthdr.c` (`nft_exthdr_tcp_set_eval`).

use super::{Act, Next};
use crate::expr::{Expr, Field, Part, Payload, Space};
use crate::lower::load::part::{Place, tcp_option};
use crate::lower::read::Loads;
use crate::lower::word::{number, ones};
use packet::{L4, Read, checksum};
use rules::Transit;

/// The checksum of IPv4, in its header: as nft writes it, it is never 0.
const CHECKSUM_V4: usize = packet::ipv4::CHECKSUM.start;
/// The checksum of TCP, in its header.
const CHECKSUM: usize = 16;
/// The option that announces a segment size.
const MAXSEG: u32 = 2;

/// A field of the network header that is written.
#[derive(Debug)]
pub(crate) struct Write {
    /// First bit and width.
    offset: u32,
    bits: u32,
    /// The header has a checksum.
    has_checksum: bool,
    value: Loads,
}

/// The segment size that is lowered.
#[derive(Debug)]
pub(crate) struct LowerSegment(pub Loads);

impl Write {
    /// The field that an expression is, if it can be written.
    pub(crate) fn field(key: &Expr) -> Option<(u32, u32, bool)> {
        let Expr::Field(field) = key else { return None };
        let Field::Payload(Payload::Field(header, field)) = &**field else { return None };
        let writable = match header.name {
            "ip" => matches!(field.name, "dscp" | "ecn" | "ttl" | "id"),
            "ip6" => matches!(field.name, "dscp" | "ecn" | "flowlabel" | "hoplimit"),
            _ => false,
        };
        writable.then_some((field.offset, field.bits, header.name == "ip"))
    }

    /// Makes it of a field and its value.
    pub(crate) fn new((offset, bits, has_checksum): (u32, u32, bool), value: Loads) -> Self {
        Self { offset, bits, has_checksum, value }
    }
}

/// Whether an expression is the segment size that TCP announces.
pub(crate) fn is_segment_size(key: &Expr) -> bool {
    let Expr::Field(field) = key else { return false };
    matches!(&**field, Field::Part(Part::Field(Space::Tcp, header, field, _))
        if header.number == MAXSEG && field.name == "size")
}

impl Act for Write {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        let loaded = self.value.load(transit);
        if loaded.words.is_empty() {
            return Next::Ends;
        }
        let first = (self.offset / 8) as usize;
        let len = ((self.offset + self.bits).div_ceil(8)) as usize - first;
        let start = transit.packet.network_offset() + first;
        let old = match transit.packet.read_slice(start, len) {
            Read::Known(bytes) => Some(number(bytes)),
            Read::Unknown => None,
            Read::Absent => return Next::Ends,
        };
        let value = match &loaded.words[..] {
            [word] if !loaded.breaks => word.as_known(),
            _ => None,
        };
        match old.zip(value) {
            Some((old, value)) => {
                let after = (8 - (self.offset + self.bits) % 8) % 8;
                let mask = ones(self.bits) << after;
                let new = old & !mask | value << after & mask;
                transit.write_net(first, &new.to_be_bytes()[16 - len..]);
                if self.has_checksum && transit.net::<2>(CHECKSUM_V4).known() == Some([0; 2]) {
                    transit.write_net(CHECKSUM_V4, &[0xff; 2]);
                }
            }
            None => {
                transit.forget_net(first..first + len);
                if self.has_checksum {
                    transit.forget_net(packet::ipv4::CHECKSUM);
                }
            }
        }
        if loaded.breaks { Next::MayEnd } else { Next::On }
    }

    fn lacks(&self) -> Option<&str> {
        self.value.lacks()
    }

    fn tracks(&self) -> bool {
        self.value.tracks()
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        // The checksum of IPv4 is of words, which are written whole; what is read of the field is not loaded twice.
        let (first, end) = (self.offset / 8, (self.offset + self.bits).div_ceil(8));
        let (first, end) = match self.has_checksum {
            true => (first & !1, end.next_multiple_of(2)),
            false => (first, end),
        };
        if !self.bits.is_multiple_of(8) || self.has_checksum && self.bits < 16 {
            show(format!("payload load {}b @ network header + {first}", end - first));
        }
    }
}

impl LowerSegment {
    /// Makes the option, and the checksum of TCP, unknown.
    fn forget(transit: &mut Transit<'_, '_>, option: Option<usize>) {
        let L4::Upper(upper) = transit.packet.headers().l4 else { return };
        let network = transit.packet.network_offset();
        let tcp = upper.offset.saturating_sub(network);
        let (first, len) = match option {
            Some(option) => (option.saturating_sub(network) + 2, 2),
            None => (tcp + 20, 40),
        };
        transit.forget_net(first..first + len);
        transit.forget_net(tcp + CHECKSUM..tcp + CHECKSUM + 2);
    }
}

/// Whether a packet has a whole header of TCP.
fn has_header(transit: &Transit<'_, '_>) -> bool {
    let L4::Upper(upper) = transit.upper_layer() else { return false };
    let Read::Known(header) = transit.packet.upper::<20>(&upper, 0) else { return false };
    let len = usize::from(header[12] >> 4) * 4;
    upper.protocol == 6 && len >= 20 && upper.offset + len <= transit.packet.headers().end
}

impl Act for LowerSegment {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        let loaded = self.0.load(transit);
        if loaded.words.is_empty() {
            return Next::Ends;
        }
        let ending = if loaded.breaks { Next::MayEnd } else { Next::On };
        let at = match tcp_option(transit, MAXSEG) {
            Place::At(at, Some(len)) if len >= 4 => at,
            Place::At(..) => return Next::Ends,
            // A packet without a TCP header ends the rule, one without the option does not.
            Place::Missing => {
                return if has_header(transit) { ending } else { Next::Ends };
            }
            Place::Unknown => {
                Self::forget(transit, None);
                return Next::MayEnd;
            }
        };
        let old = transit.packet.read::<2>(at + 2).known().map(u16::from_be_bytes);
        let new = loaded.only().and_then(|new| u16::try_from(new).ok());
        match old.zip(new) {
            Some((old, new)) if old <= new => {}
            Some((old, new)) => Self::write(transit, at, old, new),
            None => Self::forget(transit, Some(at)),
        }
        ending
    }

    fn lacks(&self) -> Option<&str> {
        self.0.lacks()
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        self.0.bytecode(show);
    }
}

impl LowerSegment {
    fn write(transit: &mut Transit<'_, '_>, at: usize, old: u16, new: u16) {
        let L4::Upper(upper) = transit.upper_layer() else { return };
        let network = transit.packet.network_offset();
        let sum_at = upper.offset + CHECKSUM - network;
        let sum = transit.packet.upper::<2>(&upper, CHECKSUM);
        transit.write_net(at + 2 - network, &new.to_be_bytes());
        match sum {
            Read::Known(sum) => {
                let sum = checksum::update(u16::from_be_bytes(sum), old, new);
                transit.write_net(sum_at, &sum.to_be_bytes());
            }
            _ => transit.forget_net(sum_at..sum_at + 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lower::probe::{Frame, craft, only};
    use packet::checksum;
    use packet::craft::Message;
    use packet::tcp::Flags;
    use rules::eval::Verdict::{Accept, Drop};

    fn walked(frame: &Frame, rules: &str) -> Option<rules::eval::Verdict> {
        let text = format!(
            "table inet t {{\nchain f {{\ntype filter hook forward priority 0; policy drop;\n{rules}\n}}\n}}\n"
        );
        only(&frame.walk(&text))
    }

    #[test]
    fn fields_of_the_network_header_are_written() {
        let frame = Frame::syn(22);
        for rules in [
            "ip dscp set cs1; ip dscp cs1 ip ecn not-ect accept",
            "ip ttl set 5; ip ttl 5 accept",
            "ip ecn set ce; @nh,8,8 3 accept",
            "ip dscp set ip dscp or 0x8; ip dscp cs1 accept",
        ] {
            assert_eq!(walked(&frame, rules), Some(Accept), "{rules}");
        }
        // With one identification the checksum would be 0.
        let mut frame = frame;
        let header = &mut frame.bytes[14..34];
        (header[1], header[4], header[5]) = (3, 0, 0);
        header[10..12].fill(0);
        let id = !checksum::sum(header);
        header[4..6].copy_from_slice(&id.to_be_bytes());
        assert_eq!(checksum::sum(header), 0xffff);
        header[1] = 0;
        let sum = !checksum::sum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(walked(&frame, "ip ecn set ce; @nh,80,16 0xffff accept"), Some(Accept));
        let six = Frame::of(&craft("2001:db8::1", "2001:db8::2", Message::udp(1, 2)));
        let rules = "ip6 dscp set af11; ip6 hoplimit set 3; ip6 dscp af11 ip6 hoplimit 3 accept";
        assert_eq!(walked(&six, rules), Some(Accept));
    }

    #[test]
    fn the_type_of_a_packet_is_not_known_once_it_may_have_been_set() {
        let frame = Frame::syn(22);
        assert_eq!(walked(&frame, "meta pkttype host accept"), Some(Accept));
        assert_eq!(walked(&frame, "meta pkttype set other; meta pkttype host accept"), None);
    }

    #[test]
    fn what_may_be_written_may_hold_an_authentication_header() {
        let message = |header| Message::Other { protocol: 51, header };
        let after = craft("2001:db8::1", "2001:db8::2", message(vec![59, 0, 0, 0, 0, 0, 0, 0]));
        let rules = "ip6 saddr set 2001:db8::3; meta l4proto 59 accept";
        assert_eq!(walked(&Frame::of(&after), rules), None);
    }

    #[test]
    fn a_segment_size_is_only_lowered() {
        let mut craft = craft("10.0.0.1", "10.0.0.2", Message::tcp(1, 2, Flags::SYN));
        craft.options = vec![2, 4, 5, 180];
        let frame = Frame::of(&craft);
        let rules = |to: u32, then: u32| {
            format!(
                "tcp flags syn tcp option maxseg size set {to}; tcp option maxseg size {then} accept"
            )
        };
        assert_eq!(walked(&frame, &rules(1400, 1400)), Some(Accept));
        assert_eq!(walked(&frame, &rules(1500, 1460)), Some(Accept));
        assert_eq!(walked(&frame, &rules(1400, 1460)), Some(Drop));
        let open = "tcp option maxseg size set rt mtu; tcp option maxseg size 1460 accept";
        assert_eq!(walked(&frame, open), None, "nobody says what the way carries");
    }
}
