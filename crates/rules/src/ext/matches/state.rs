//! `-m state`: the connection's state, the older name of `-m conntrack --ctstate`.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_conntrack.c`.

use crate::error::What;
use crate::ext::kit::words;
use crate::ext::matches::conntrack::{STATES, states, states_of, within};
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::Predicate;
use crate::transit::Transit;
use conntrack::States;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "state",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("state").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct State {
    states: u8,
    invert: bool,
    /// The states that it matches, if there are any.
    matched: Option<States>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("state")?;
    let (states, invert) = (words::bits(given, &STATES)?, given.invert);
    Ok(Box::new(State { states, invert, matched: states_of(states, invert) }))
}

impl Match for State {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "state", words::text(self.states, &STATES));
    }

    fn states(&self) -> Option<States> {
        self.matched
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match self.matched {
            Some(matched) => within(transit.ct.view.states, matched),
            None => states(self.states, &transit.ct).invert(self.invert),
        }
    }

    fn tracks(&self) -> bool {
        true
    }

    fn predicate(&self) -> Option<Predicate> {
        self.states().map(Predicate::State)
    }
}
