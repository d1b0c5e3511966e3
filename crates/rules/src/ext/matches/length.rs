//! `-m length`: the length of the IP packet, header included.
//!
//! For IPv4 it is what the length field says, and only a total length of 0 (a packet that the capturing
//! host had yet to cut to segments) gives way to the real length. For IPv6 it is what is there, jumbograms
//! included (since Linux 6.4). Source: iptables-extensions(8); kernel `net/netfilter/xt_length.c`.

use packet::{Read, ipv4};

use crate::error::What;
use crate::ext::kit::span::Span;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Family;
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "length",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("length").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Length(Span);

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("length")?;
    Ok(Box::new(Length(Span::from_given(given, u16::MAX.into())?)))
}

fn packet_len(transit: &Transit<'_, '_>) -> Read<u32> {
    match transit.family {
        // The payload length is not asked: with hop-by-hop options it may be 0.
        Family::Ipv6 if transit.packet.is_open() => Read::Unknown,
        Family::Ipv6 => Read::Known(transit.packet.len() as u32),
        _ => transit.net(ipv4::TOTAL_LEN.start).map(|len| match u16::from_be_bytes(len) {
            0 => transit.packet.len() as u32,
            len => len.into(),
        }),
    }
}

impl Match for Length {
    fn print(&self, to: &mut Printer) {
        self.0.print_always("length", to);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match packet_len(transit) {
            Read::Known(len) => Outcome::from_bool(self.0.accepts(len)),
            Read::Unknown | Read::Absent => Outcome::MAYBE,
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        Some(self.0.predicate(Field::Length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print};

    #[test]
    fn ranges_print_with_both_ends() {
        for (given, printed) in
            [(":2", "0:2"), ("4:", "4:65535"), ("0x10:16", "16"), (":", "0:65535")]
        {
            let text = print(Family::Ipv4, &format!("-m length ! --length {given}")).unwrap();
            assert_eq!(text, format!("-m length ! --length {printed}"));
        }
        for bad in ["4:3", "0:65536", "-1", "1:2:3", ""] {
            assert!(
                print(Family::Ipv4, &format!("-m length --length \"{bad}\"")).is_err(),
                "{bad}"
            );
        }
        assert!(print(Family::Ipv6, "-m length").is_err());
    }

    #[test]
    fn the_length_field_counts() {
        let mut v4 = ipv4(17, &[0; 8]);
        v4.extend_from_slice(&[0; 18]);
        assert_eq!(Frame::ip(&v4).evaluate("-m length --length 28"), Outcome::YES);
        assert_eq!(Frame::ip(&v4).evaluate("-m length ! --length 20:28"), Outcome::NO);
        let v6 = ipv6(17, &[0; 8]);
        assert_eq!(Frame::ip(&v6).evaluate("-m length --length 48"), Outcome::YES);
    }
}
