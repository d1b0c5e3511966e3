//! `-j REJECT`: drops and tells the sender.
//!
//! Source: iptables-extensions(8); kernel `net/ipv4/netfilter/ipt_REJECT.c`, `ip6t_REJECT.c`.

use crate::error::What;
use crate::ext::{Answer, Args, Course, Effect, Opt, Printer, Support, Target, TargetKind, V4, V6};
use crate::family::{Family, Hook, TableKind};
use crate::transit::Transit;
use packet::{L4, Read, tcp};

/// IPv4.
pub(crate) static V4_KIND: TargetKind = TargetKind {
    name: "REJECT",
    families: V4,
    options: &[Opt::value("reject-with")],
    support: Support::Evaluated,
    parse,
};

/// IPv6.
pub(crate) static V6_KIND: TargetKind = TargetKind { families: V6, ..V4_KIND };

/// Printed names with their other spellings, and what is sent; the first of a family is its default.
type Name = (&'static str, &'static [&'static str], Answer);

const fn icmp(kind: u8, code: u8) -> Answer {
    Answer::Icmp { kind, code }
}

const WITH_V4: &[Name] = &[
    ("icmp-port-unreachable", &["port-unreach"], icmp(3, 3)),
    ("icmp-net-unreachable", &["net-unreach"], icmp(3, 0)),
    ("icmp-host-unreachable", &["host-unreach"], icmp(3, 1)),
    ("icmp-proto-unreachable", &["proto-unreach"], icmp(3, 2)),
    ("icmp-net-prohibited", &["net-prohib"], icmp(3, 9)),
    ("icmp-host-prohibited", &["host-prohib"], icmp(3, 10)),
    ("icmp-admin-prohibited", &["admin-prohib"], icmp(3, 13)),
    ("tcp-reset", &["tcp-rst"], Answer::Reset),
];

const WITH_V6: &[Name] = &[
    ("icmp6-port-unreachable", &["port-unreach"], icmp(1, 4)),
    ("icmp6-no-route", &["no-route"], icmp(1, 0)),
    ("icmp6-adm-prohibited", &["adm-prohibited"], icmp(1, 1)),
    ("icmp6-addr-unreachable", &["addr-unreach"], icmp(1, 3)),
    ("icmp6-policy-fail", &["policy-fail"], icmp(1, 5)),
    ("icmp6-reject-route", &["reject-route"], icmp(1, 6)),
    ("tcp-reset", &["tcp-reset"], Answer::Reset),
];

#[derive(Debug)]
struct Reject {
    with: &'static str,
    answer: Answer,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::FILTER])?;
    args.needs_hook(&[Hook::Input, Hook::Forward, Hook::Output])?;
    let names = if args.family == Family::Ipv6 { WITH_V6 } else { WITH_V4 };
    let (with, _, answer) = match args.get("reject-with") {
        Some(given) => find(given.text(), names)
            .ok_or_else(|| given.expected(format!("one of {}", list(names))))?,
        None => &names[0],
    };
    if *answer == Answer::Reset {
        args.needs_protocol(&[6])?;
    }
    Ok(Box::new(Reject { with, answer: *answer }))
}

/// A name or a prefix of one, in any case of letters.
fn find(text: &str, names: &'static [Name]) -> Option<&'static Name> {
    let starts = |name: &str| name.get(..text.len()).is_some_and(|s| s.eq_ignore_ascii_case(text));
    let called =
        |(name, others, _): &&Name| starts(name) || others.iter().any(|other| starts(other));
    if text.is_empty() { None } else { names.iter().find(called) }
}

fn list(names: &[Name]) -> String {
    names.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(" ")
}

impl Target for Reject {
    fn print(&self, to: &mut Printer) {
        to.option(false, "reject-with", self.with);
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        if self.answer == Answer::Reset && !is_reset(transit) {
            transit.ct.reset(transit.time.unwrap_or(0), transit.certain);
        }
        Effect::Reject
    }

    fn course(&self) -> Course {
        Course::Ends(Effect::Reject)
    }

    fn answer(&self) -> Option<Answer> {
        Some(self.answer)
    }
}

/// A reset is not answered by one, and so ends no connection either.
fn is_reset(transit: &Transit<'_, '_>) -> bool {
    let L4::Upper(upper) = transit.packet.headers().l4 else { return false };
    match transit.packet.upper::<1>(&upper, 13) {
        Read::Known([flags]) => tcp::Flags(flags).contains(tcp::Flags::RST),
        Read::Absent | Read::Unknown => false,
    }
}
