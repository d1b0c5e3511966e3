//! A listing as text: lines as `conntrack -L -o extended` prints them, with the words of `kept` at their ends.

use std::fmt;

use super::listed::{HEADING, Listed, Listing, State};
use crate::flow::Counters;
use crate::helper::Helper;
use crate::key::{Direction, Tuple, has_ports, is_icmp};
use crate::sctp::State as SctpState;
use crate::second::SECOND;
use packet::{gre, icmpv4, icmpv6, sctp, tcp, udp};

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            writeln!(f, "{HEADING}{}.{:09}", at / SECOND, at % SECOND)?;
        }
        self.flows.iter().try_for_each(|flow| writeln!(f, "{flow}"))
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = self.original.protocol();
        let family = if self.original.is_ipv6() { "ipv6     10" } else { "ipv4     2" };
        write!(f, "{family} {:<8} {protocol} {}", name(protocol), self.left)?;
        match self.state {
            State::Plain => {}
            State::Tcp(state) => write!(f, " {state}")?,
            State::Sctp(state) => write!(f, " {}", SctpState::name(state))?,
        }
        self.side(f, Direction::Original)?;
        if !self.replied {
            f.write_str(" [UNREPLIED]")?;
        }
        self.side(f, Direction::Reply)?;
        if self.assured {
            f.write_str(" [ASSURED]")?;
        }
        write!(f, " mark={}", self.mark)?;
        let [original, reply] = [self.original.zone(), self.reply.zone()];
        match (original, reply) {
            (0, 0) => {}
            _ if original == reply => write!(f, " zone={original}")?,
            _ => write!(f, " zone-orig={original} zone-reply={reply}")?,
        }
        if self.helper != Helper::None {
            write!(f, " helper={}", self.helper.name())?;
        }
        self.kept.as_ref().map_or(Ok(()), |kept| kept.fmt(f))
    }
}

impl Listed {
    fn side(&self, f: &mut fmt::Formatter<'_>, direction: Direction) -> fmt::Result {
        let (tuple, place) = match direction {
            Direction::Original => (&self.original, 0),
            Direction::Reply => (&self.reply, 1),
        };
        write!(f, " src={} dst={}", tuple.source(), tuple.destination())?;
        parts(f, tuple)?;
        let Some(kept) = &self.kept else { return Ok(()) };
        let Counters { packets, bytes } = kept.counters[place];
        write!(f, " packets={packets} bytes={bytes}")
    }
}

/// Writes the parts of a tuple that follow its addresses.
fn parts(f: &mut fmt::Formatter<'_>, tuple: &Tuple) -> fmt::Result {
    let [source, destination] = [tuple.source_part(), tuple.destination_part()];
    match tuple.protocol() {
        protocol if is_icmp(protocol) => {
            let [kind, code] = destination.to_be_bytes();
            write!(f, " type={kind} code={code} id={source}")
        }
        gre::PROTOCOL => write!(f, " srckey={source:#x} dstkey={destination:#x}"),
        protocol if has_ports(protocol) => write!(f, " sport={source} dport={destination}"),
        _ => Ok(()),
    }
}

/// The protocol's name in the kernel's lists.
pub(crate) fn name(protocol: u8) -> &'static str {
    match protocol {
        icmpv4::PROTOCOL => "icmp",
        tcp::PROTOCOL => "tcp",
        udp::PROTOCOL => "udp",
        gre::PROTOCOL => "gre",
        icmpv6::PROTOCOL => "icmpv6",
        sctp::PROTOCOL => "sctp",
        udp::PROTOCOL_LITE => "udplite",
        _ => "unknown",
    }
}
