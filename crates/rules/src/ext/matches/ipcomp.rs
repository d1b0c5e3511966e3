//! `-m ipcomp`: the CPI of IPComp.
//!
//! Without `--ipcompspi` the tool asks for CPI 0, and yet it prints a range of all CPIs as nothing at
//! all; both are kept. `--compres` is passed to the kernel, which does not look at it.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_ipcomp.c`; RFC 3173.

use crate::error::What;
use crate::ext::kit::ports::upper_start;
use crate::ext::kit::span::Span;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;

const PROTOCOL: u8 = 108;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "ipcomp",
    aliases: &[],
    families: IP,
    protocol: Some(PROTOCOL),
    options: &[Opt::value("ipcompspi").invertible(), Opt::flag("compres")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Ipcomp {
    cpi: Span,
    reserved: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[PROTOCOL])?;
    let cpi = match args.get("ipcompspi") {
        Some(given) => Span::from_given(given, u32::MAX)?,
        None => Span::one(0, u32::MAX),
    };
    Ok(Box::new(Ipcomp { cpi, reserved: args.has("compres") }))
}

impl Match for Ipcomp {
    fn print(&self, to: &mut Printer) {
        self.cpi.print("ipcompspi", to);
        if self.reserved {
            to.flag(false, "compres");
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let header = upper_start::<4>(transit, 4);
        self.cpi.evaluate(header.map(|(_, [.., high, low])| u16::from_be_bytes([high, low]).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, print};
    use crate::family::Family;

    #[test]
    fn no_option_is_cpi_zero() {
        let text = |rule: &str| print(Family::Ipv4, rule).unwrap();
        assert_eq!(text("-p ipcomp -m ipcomp"), "-p ipcomp -m ipcomp --ipcompspi 0");
        assert_eq!(text("-p ipcomp -m ipcomp --ipcompspi :"), "-p ipcomp -m ipcomp");
        assert_eq!(
            text("-p 108 --compres --ipcompspi 1:"),
            "-p ipcomp -m ipcomp --ipcompspi 1:4294967295 --compres"
        );
        assert!(print(Family::Ipv4, "-m ipcomp --ipcompspi 1").is_err());
    }

    #[test]
    fn the_cpi_is_compared() {
        let packet = ipv4(108, &[6, 0, 1, 2]);
        assert_eq!(Frame::ip(&packet).evaluate("-p ipcomp --ipcompspi 258"), Outcome::YES);
        assert_eq!(Frame::ip(&packet).evaluate("-p ipcomp -m ipcomp"), Outcome::NO);
        assert_eq!(Frame::ip(&packet).evaluate("-p ipcomp ! --ipcompspi :"), Outcome::NO);
        let short = ipv4(108, &[6, 0, 1]);
        assert_eq!(Frame::ip(&short).evaluate("-p ipcomp -m ipcomp"), Outcome::HOT_DROP);
    }
}
