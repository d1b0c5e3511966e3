//! `-m connmark`: the connection's mark under a mask.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_connmark.c`.

use crate::connection::KnownFlow;
use crate::error::What;
use crate::ext::kit::number;
use crate::ext::matches::mark::masked_text;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "connmark",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("mark").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Connmark {
    value: u32,
    mask: u32,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("mark")?;
    let (value, mask) = number::named_masked(given, &[])?;
    Ok(Box::new(Connmark { value, mask, invert: given.invert }))
}

impl Match for Connmark {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "mark", masked_text(self.value, self.mask));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.ct.marked() {
            KnownFlow::Flow(flow) => {
                Outcome::from_bool((flow.mark & self.mask == self.value) != self.invert)
            }
            KnownFlow::None => Outcome::NO,
            KnownFlow::Unknown => Outcome::MAYBE,
        }
    }

    fn tracks(&self) -> bool {
        true
    }

    fn predicate(&self) -> Option<Predicate> {
        let (value, mask) = (self.value.into(), self.mask.into());
        let same = Predicate::Masked { field: Field::ConnMark, value, mask };
        Some(Predicate::All(vec![Predicate::has_connection(), same.inverted(self.invert)]))
    }
}
