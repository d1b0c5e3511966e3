//! `-m connlabel`: a label bit of the connection, tested and maybe set.
//!
//! Labels are numbers here: their names stand in a file of the host. Source: iptables-extensions(8);
//! kernel `net/netfilter/xt_connlabel.c`, which has 128 labels.

use crate::connection::KnownFlow;
use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, IP, Match, MatchKind, Memory, NamedLists, Opt, Printer, Support};
use crate::ipset::Sets;
use crate::outcome::Outcome;
use crate::transit::Transit;

const MAX_LABEL: u64 = 127;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "connlabel",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("label").invertible(), Opt::flag("set")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Connlabel {
    label: u8,
    invert: bool,
    set: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("label")?;
    let label = number::between(given, 0, MAX_LABEL)? as u8;
    Ok(Box::new(Connlabel { label, invert: given.invert, set: args.has("set") }))
}

impl Match for Connlabel {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "label", format_args!("\"{}\"", self.label));
        if self.set {
            to.flag(false, "set");
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.ct.marked() {
            KnownFlow::None => Outcome::from_bool(self.invert),
            KnownFlow::Flow(flow) if flow.is_listed() && !flow.label(self.label) => Outcome::MAYBE,
            KnownFlow::Flow(flow) => Outcome::from_bool(flow.label(self.label) != self.invert),
            KnownFlow::Unknown => Outcome::MAYBE,
        }
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        let Self { label, invert, .. } = *self;
        self.set.then(|| Box::new(Setter { label, invert }) as Box<dyn Memory>)
    }

    fn tracks(&self) -> bool {
        true
    }
}

/// `--set`: labels the connection, which then has the label.
#[derive(Debug)]
struct Setter {
    label: u8,
    invert: bool,
}

impl Memory for Setter {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, _lists: &mut NamedLists) -> Outcome {
        if let KnownFlow::None = transit.ct.flow() {
            return Outcome::from_bool(self.invert);
        }
        transit.ct.change(transit.certain, |flow| flow.set_label(self.label));
        match transit.ct.marked() {
            KnownFlow::Flow(_) => Outcome::from_bool(!self.invert),
            _ => Outcome::MAYBE,
        }
    }

    fn couples_flows(&self, _sets: Option<&Sets>) -> bool {
        false
    }

    fn is_one(&self) -> bool {
        false
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}
