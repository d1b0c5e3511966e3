//! `-j CT`: says how the packet is to be tracked, and goes on.
//!
//! Nothing happens to the packet itself; what later rules see of its connection is theirs to tell.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_CT.c`.

use crate::connection::Request;
use crate::error::What;
use crate::ext::{
    Alters, Args, Course, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind,
};
use crate::family::TableKind;
use crate::ipset::Sets;
use crate::transit::Transit;
use crate::value;
use conntrack::{self, Template};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "CT",
    families: IP,
    options: &[
        Opt::flag("notrack"),
        Opt::value("helper"),
        Opt::value("timeout"),
        Opt::value("ctevents"),
        Opt::value("expevents"),
        Opt::value("zone-orig"),
        Opt::value("zone-reply"),
        Opt::value("zone"),
    ],
    support: Support::Evaluated,
    parse,
};

const MAX_HELPER: usize = 15;
const MAX_TIMEOUT: usize = 31;

/// Connection events in printing order.
const CT_EVENTS: &[&str] = &[
    "new",
    "related",
    "destroy",
    "reply",
    "assured",
    "protoinfo",
    "helper",
    "mark",
    "natseqinfo",
    "secmark",
];

/// Expectation events.
const EXP_EVENTS: &[&str] = &["new"];

#[derive(Debug, Default)]
struct Ct {
    notrack: bool,
    helper: Box<str>,
    timeout: Box<str>,
    /// A bit for each of [`CT_EVENTS`].
    ct_events: u16,
    /// A bit for each of [`EXP_EVENTS`].
    exp_events: u16,
    zone: Zone,
}

/// The kernel holds one zone: a later option sets its number and adds to its flags.
#[derive(Debug, Default)]
struct Zone {
    id: u16,
    from_mark: bool,
    original: bool,
    reply: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::RAW])?;
    let mut ct = Ct { notrack: args.has("notrack"), ..Ct::default() };
    for given in args.given {
        match given.name {
            "helper" => ct.helper = policy_name(args, given, MAX_HELPER)?,
            "timeout" => ct.timeout = policy_name(args, given, MAX_TIMEOUT)?,
            "ctevents" => ct.ct_events = events(given, CT_EVENTS)?,
            "expevents" => ct.exp_events = events(given, EXP_EVENTS)?,
            "notrack" => {}
            _ => ct.zone.take(given)?,
        }
    }
    Ok(Box::new(ct))
}

/// The name of a helper or timeout policy, which the kernel looks up for one protocol.
fn policy_name(args: &Args<'_>, given: &Given<'_>, max: usize) -> Result<Box<str>, What> {
    if args.protocol.is_none_or(|test| test.invert || test.number == 0) {
        return Err(args.expected(format!("-p PROTOCOL for --{}", given.name)));
    }
    if given.text().is_empty() {
        return Err(given.expected("a name"));
    }
    Ok(value::cut(given.text(), max).into())
}

fn events(given: &Given<'_>, names: &[&str]) -> Result<u16, What> {
    given.text().split(',').try_fold(0, |bits, event| {
        let index = names.iter().position(|name| *name == event);
        let index =
            index.ok_or_else(|| given.expected(format!("a comma-list of {}", names.join(" "))))?;
        Ok(bits | 1 << index)
    })
}

impl Zone {
    fn take(&mut self, given: &Given<'_>) -> Result<(), What> {
        self.original |= given.name == "zone-orig";
        self.reply |= given.name == "zone-reply";
        self.id = 0;
        if given.text().eq_ignore_ascii_case("mark") {
            self.from_mark = true;
            return Ok(());
        }
        self.id = value::u16(given.text())
            .ok_or_else(|| given.expected("a zone number 0-65535 or mark"))?;
        Ok(())
    }

    fn print(&self, to: &mut Printer) {
        let name = match (self.original, self.reply) {
            (true, false) => "zone-orig",
            (false, true) => "zone-reply",
            _ => "zone",
        };
        if self.from_mark {
            to.option(false, name, "mark");
        } else if self.id != 0 {
            to.option(false, name, self.id);
        }
    }
}

fn print_events(name: &str, names: &[&str], bits: u16, to: &mut Printer) {
    if bits != 0 {
        let set = names.iter().enumerate().filter(|(index, _)| bits & (1 << index) != 0);
        to.option(false, name, set.map(|(_, event)| *event).collect::<Vec<_>>().join(","));
    }
}

impl Ct {
    fn request(&self, transit: &Transit<'_, '_>) -> Request {
        if self.notrack {
            return Request::Untracked;
        }
        // How long flows of a timeout policy live is not part of the rules.
        if !self.timeout.is_empty() {
            return Request::Unknown;
        }
        let id = match (self.zone.from_mark, transit.mark.unknown & 0xffff) {
            (false, _) => self.zone.id,
            (true, 0) => transit.mark.value as u16,
            (true, _) => return Request::Unknown,
        };
        let both = self.zone.original == self.zone.reply;
        let zone = conntrack::Zone {
            id,
            original: both || self.zone.original,
            reply: both || self.zone.reply,
        };
        Request::Template(Template { zone, helper: conntrack::Helper::named(&self.helper) })
    }
}

impl Target for Ct {
    fn print(&self, to: &mut Printer) {
        if self.notrack {
            to.flag(false, "notrack");
        }
        for (name, text) in [("helper", &self.helper), ("timeout", &self.timeout)] {
            if !text.is_empty() {
                to.name(name, text);
            }
        }
        print_events("ctevents", CT_EVENTS, self.ct_events, to);
        print_events("expevents", EXP_EVENTS, self.exp_events, to);
        self.zone.print(to);
    }

    /// A helper expects connections of other addresses, and a zone of one direction alone lets tuples
    /// of different connections meet.
    fn couples_flows(&self, _sets: Option<&Sets>) -> bool {
        !self.helper.is_empty() || self.zone.original || self.zone.reply
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let request = self.request(transit);
        transit.ct.request(request, transit.certain);
        Effect::Continue
    }

    fn untracks(&self) -> bool {
        self.notrack
    }

    fn retracks(&self) -> bool {
        !self.timeout.is_empty() || self.zone.from_mark || self.zone.id != 0
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::State)
    }

    fn tracks(&self) -> bool {
        true
    }
}
