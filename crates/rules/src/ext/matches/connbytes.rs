//! `-m connbytes`: packets, bytes or mean packet length of the connection so far.
//!
//! The kernel tells an inverted range by its ends being exchanged, so `! 5:5` is not inverted and prints
//! so. Source: iptables-extensions(8); kernel `net/netfilter/xt_connbytes.c`.

use crate::connection::KnownFlow;
use crate::error::What;
use crate::ext::kit::words;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;
use conntrack::{Direction, Flow};

pub(crate) static KIND: MatchKind = MatchKind {
    name: "connbytes",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("connbytes").invertible(),
        Opt::value("connbytes-dir"),
        Opt::value("connbytes-mode"),
    ],
    support: Support::Evaluated,
    parse,
};

const MODES: [(&str, &str); 3] = [("packets", "packets"), ("bytes", "bytes"), ("avgpkt", "avgpkt")];
const DIRECTIONS: [(&str, &str); 3] =
    [("original", "original"), ("reply", "reply"), ("both", "both")];

#[derive(Debug)]
struct Connbytes {
    low: u64,
    high: u64,
    invert: bool,
    mode: &'static str,
    direction: &'static str,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("connbytes")?;
    let (low, high) =
        range(given.text()).ok_or_else(|| given.expected("a number or a range low:high"))?;
    Ok(Box::new(Connbytes {
        low,
        high,
        invert: given.invert && low != high,
        mode: words::one_of(args.required("connbytes-mode")?, &MODES)?,
        direction: words::one_of(args.required("connbytes-dir")?, &DIRECTIONS)?,
    }))
}

/// A lone number is the lower end.
fn range(text: &str) -> Option<(u64, u64)> {
    match text.contains(':') {
        true => value::range(text, ':', u64::MAX),
        false => Some((value::number(text, u64::MAX)?, u64::MAX)),
    }
}

impl Match for Connbytes {
    fn print(&self, to: &mut Printer) {
        to.flag(self.invert, "connbytes");
        match self.high {
            0 | u64::MAX => to.word(self.low),
            high => to.word(format_args!("{}:{high}", self.low)),
        };
        to.option(false, "connbytes-mode", self.mode);
        to.option(false, "connbytes-dir", self.direction);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.ct.flow() {
            // What went before the capture began is not known.
            KnownFlow::Flow(flow) if flow.is_assumed() || flow.is_listed() => Outcome::MAYBE,
            KnownFlow::Flow(_) if self.mode != "packets" && transit.packet.is_open() => {
                Outcome::MAYBE
            }
            KnownFlow::Flow(flow) => {
                let count = self.count(flow);
                let inside = self.low <= count && count <= self.high;
                Outcome::from_bool(inside != self.invert)
            }
            KnownFlow::None => Outcome::NO,
            KnownFlow::Unknown => Outcome::MAYBE,
        }
    }

    fn tracks(&self) -> bool {
        true
    }
}

impl Connbytes {
    fn count(&self, flow: &Flow) -> u64 {
        let (original, reply) =
            (flow.counters(Direction::Original), flow.counters(Direction::Reply));
        let (packets, bytes) = match self.direction {
            "original" => (original.packets, original.bytes),
            "reply" => (reply.packets, reply.bytes),
            _ => (original.packets + reply.packets, original.bytes + reply.bytes),
        };
        match self.mode {
            "packets" => packets,
            "bytes" => bytes,
            _ => bytes.checked_div(packets).unwrap_or(0),
        }
    }
}
