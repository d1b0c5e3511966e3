//! `-j CLASSIFY`: sets the packet's traffic control class and goes on. No match reads the class.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_CLASSIFY.c`.

use crate::error::What;
use crate::ext::{ARP, Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::Hook;
use crate::transit::Transit;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "CLASSIFY",
    families: IP,
    options: &[Opt::value("set-class")],
    support: Support::Evaluated,
    parse,
};

/// The target for ARP, whose tool prints numbers without leading zeros.
pub(crate) static ARP_KIND: TargetKind = TargetKind { families: ARP, ..KIND };

#[derive(Debug)]
struct Classify {
    major: u16,
    minor: u16,
    /// Digits that print at least.
    width: usize,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_hook(&[Hook::Forward, Hook::Output, Hook::Postrouting])?;
    let given = args.required("set-class")?;
    let width = if args.family.is_ip() { 4 } else { 0 };
    let class = given.text().split_once(':').and_then(|(major, minor)| {
        Some(Classify { major: hex(major)?, minor: hex(minor)?, width })
    });
    let class = class.ok_or_else(|| given.expected("MAJOR:MINOR, each hexadecimal 0-ffff"))?;
    Ok(Box::new(class))
}

/// Hexadecimal with or without `0x`.
fn hex(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // `from_str_radix` would take a sign.
    let plain = !digits.starts_with('+');
    plain.then(|| u16::from_str_radix(digits, 16).ok())?
}

impl Target for Classify {
    fn print(&self, to: &mut Printer) {
        let Self { major, minor, width } = self;
        to.option(false, "set-class", format_args!("{major:0width$x}:{minor:0width$x}"));
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }
}
