//! `-m helper`: a conntrack helper expected the connection.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_helper.c`.

use crate::connection::KnownFlow;
use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;

const MAX_BYTES: usize = 29;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "helper",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("helper").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Helper {
    name: Box<str>,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("helper")?;
    if given.text().len() > MAX_BYTES {
        return Err(given.expected(format!("at most {MAX_BYTES} bytes")));
    }
    Ok(Box::new(Helper { name: given.text().into(), invert: given.invert }))
}

impl Match for Helper {
    fn print(&self, to: &mut Printer) {
        to.string(self.invert, "helper", &self.name);
    }

    /// Asks about the helper of the packet's master connection.
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let flow = match transit.ct.flow() {
            KnownFlow::Flow(flow) => flow,
            KnownFlow::None => return Outcome::from_bool(self.invert),
            KnownFlow::Unknown => return Outcome::MAYBE,
        };
        let name = match flow.master_helper() {
            conntrack::Helper::None => return Outcome::from_bool(self.invert),
            conntrack::Helper::Ftp => "ftp",
            conntrack::Helper::Tftp => "tftp",
            _ => return Outcome::MAYBE,
        };
        // The helper's whole name is compared, as far as it goes.
        let called = self.name.is_empty() || self.name.starts_with(name);
        Outcome::from_bool(called != self.invert)
    }

    fn tracks(&self) -> bool {
        true
    }
}
