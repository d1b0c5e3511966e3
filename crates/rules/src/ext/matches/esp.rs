//! `-m esp`: the SPI of ESP.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_esp.c`; RFC 4303.

use crate::error::What;
use crate::ext::kit::ports::upper_start;
use crate::ext::kit::span::Span;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;

const PROTOCOL: u8 = 50;
/// Bytes that the kernel wants to be there: SPI and sequence number.
const HEADER: usize = 8;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "esp",
    aliases: &[],
    families: IP,
    protocol: Some(PROTOCOL),
    options: &[Opt::value("espspi").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Esp(Span);

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[PROTOCOL])?;
    Ok(Box::new(Esp(Span::parse(args, "espspi", u32::MAX)?)))
}

impl Match for Esp {
    fn print(&self, to: &mut Printer) {
        self.0.print("espspi", to);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        self.0.evaluate(upper_start(transit, HEADER).map(|(_, spi)| u32::from_be_bytes(spi)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print};
    use crate::family::Family;

    #[test]
    fn a_full_range_is_not_printed_unless_inverted() {
        let text = |rule: &str| print(Family::Ipv4, &format!("-p esp {rule}")).unwrap();
        assert_eq!(text("--espspi :"), "-p esp -m esp");
        assert_eq!(text("! --espspi 0:0xffffffff"), "-p esp -m esp ! --espspi 0:4294967295");
        assert!(print(Family::Ipv4, "-m esp").is_err());
        assert!(print(Family::Ipv6, "! -p esp -m esp").is_err());
    }

    #[test]
    fn eight_bytes_must_be_there() {
        let esp = [0, 0, 1, 0, 0, 0, 0, 1];
        for packet in [ipv4(50, &esp), ipv6(50, &esp)] {
            assert_eq!(Frame::ip(&packet).evaluate("-p esp -m esp --espspi 256"), Outcome::YES);
            assert_eq!(Frame::ip(&packet).evaluate("-p esp -m esp ! --espspi 1:300"), Outcome::NO);
            let cut = Frame::ip(&packet).cut(packet.len() - 4);
            assert_eq!(cut.evaluate("-p esp -m esp --espspi 256"), Outcome::YES);
            let cut = Frame::ip(&packet).cut(packet.len() - 5);
            assert_eq!(cut.evaluate("-p esp -m esp --espspi 256"), Outcome::MAYBE);
            assert_eq!(cut.evaluate("-p esp -m esp"), Outcome::YES);
        }
        let short = ipv4(50, &esp[..7]);
        assert_eq!(Frame::ip(&short).evaluate("-p esp -m esp"), Outcome::HOT_DROP);
    }
}
