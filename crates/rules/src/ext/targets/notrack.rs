//! `-j NOTRACK`: the older name of `-j CT --notrack`, which is printed as it was given.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_CT.c`.

use crate::connection::Request;
use crate::error::What;
use crate::ext::{Alters, Args, Course, Effect, IP, Printer, Support, Target, TargetKind};
use crate::family::TableKind;
use crate::transit::Transit;

pub(crate) static KIND: TargetKind =
    TargetKind { name: "NOTRACK", families: IP, options: &[], support: Support::Evaluated, parse };

#[derive(Debug)]
struct Notrack;

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::RAW])?;
    Ok(Box::new(Notrack))
}

impl Target for Notrack {
    fn print(&self, _to: &mut Printer) {}

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        transit.ct.request(Request::Untracked, transit.certain);
        Effect::Continue
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::State)
    }

    fn untracks(&self) -> bool {
        true
    }

    fn tracks(&self) -> bool {
        true
    }
}
