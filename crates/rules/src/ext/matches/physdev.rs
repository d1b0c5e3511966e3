//! `-m physdev`: the bridge ports that a bridged packet enters and leaves through.
//!
//! The kernel knows a packet's input port wherever a bridge hands packets to the rules, but its output port only where
//! the bridge passes it on, in FORWARD and POSTROUTING. For a packet without a note every test fails, and every
//! inverted one holds. For a packet with one, `--physdev-out` fails where there is no such port, inverted or not.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_physdev.c` (`physdev_mt`, `physdev_mt_check`),
//! `net/bridge/br_netfilter_hooks.c` (`setup_pre_routing`, `br_nf_forward_ip`).

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Hook;
use crate::header::IfaceTest;
use crate::outcome::Outcome;
use crate::transit::{BridgeNote, Iface, Transit};

const MAX_NAME: usize = 15;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "physdev",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("physdev-in").invertible(),
        Opt::value("physdev-out").invertible(),
        Opt::flag("physdev-is-in").invertible(),
        Opt::flag("physdev-is-out").invertible(),
        Opt::flag("physdev-is-bridged").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

/// Options in printing order.
const ORDER: [(&str, Asked); 5] = [
    ("physdev-is-in", Asked::HasInput),
    ("physdev-in", Asked::Input),
    ("physdev-is-out", Asked::HasOutput),
    ("physdev-out", Asked::Output),
    ("physdev-is-bridged", Asked::Bridged),
];

/// What an option asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    HasInput,
    Input,
    HasOutput,
    Output,
    Bridged,
}

#[derive(Debug)]
struct Physdev {
    tests: Box<[Test]>,
}

#[derive(Debug)]
struct Test {
    option: &'static str,
    asks: Asked,
    /// The name of an option that takes one; of others it is empty. `!` is that of the option.
    iface: IfaceTest,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&ORDER.map(|(name, _)| name))?;
    let bridged = args.get("physdev-is-bridged").is_some_and(|given| !given.invert);
    if !bridged && (args.has("physdev-out") || args.has("physdev-is-out")) {
        refuse_output(args)?;
    }
    let given = ORDER.into_iter().filter_map(|(name, asks)| Some((args.get(name)?, asks)));
    let tests: Result<_, What> = given.map(|(given, asks)| parse_test(given, asks)).collect();
    Ok(Box::new(Physdev { tests: tests? }))
}

/// Refuses OUTPUT: a local packet has no output port there yet.
fn refuse_output(args: &Args<'_>) -> Result<(), What> {
    use Hook::{Forward, Input, Postrouting, Prerouting};
    args.needs_hook(&[Prerouting, Input, Forward, Postrouting])
}

fn parse_test(given: &Given<'_>, asks: Asked) -> Result<Test, What> {
    if given.text().len() > MAX_NAME {
        return Err(given.expected(format!("an interface name of at most {MAX_NAME} bytes")));
    }
    let (name, prefix) = match given.text().strip_suffix('+') {
        Some(name) => (name, true),
        None => (given.text(), false),
    };
    let iface = IfaceTest { name: name.into(), prefix, invert: given.invert };
    Ok(Test { option: given.name, asks, iface })
}

impl Physdev {
    /// What it says of a packet with a note.
    fn of_ports(&self, input: Iface<'_>, output: Iface<'_>) -> Outcome {
        let ask = |all: Outcome, test: &Test| all.and_then(|| test.of_ports(input, output));
        self.tests.iter().fold(Outcome::YES, ask)
    }

    /// What it says of a packet without one.
    fn of_nothing(&self) -> Outcome {
        Outcome::from_bool(self.tests.iter().all(|test| test.iface.invert))
    }
}

impl Test {
    fn of_ports(&self, input: Iface<'_>, output: Iface<'_>) -> Outcome {
        let is_there = |port| Outcome::from_bool((port != Iface::Absent) != self.iface.invert);
        match self.asks {
            Asked::HasInput => is_there(input),
            Asked::HasOutput | Asked::Bridged => is_there(output),
            // Without a port the kernel leaves this test out, and gives up at that one.
            Asked::Input if input == Iface::Absent => Outcome::YES,
            Asked::Output if output == Iface::Absent => Outcome::NO,
            Asked::Input => self.named(input),
            Asked::Output => self.named(output),
        }
    }

    /// Whether the port has the name; `+` alone is that of any.
    fn named(&self, port: Iface<'_>) -> Outcome {
        match port {
            Iface::Named(name) => Outcome::from_bool(self.iface.accepts(name)),
            _ if self.iface.prefix && self.iface.name.is_empty() => {
                Outcome::from_bool(!self.iface.invert)
            }
            _ => Outcome::MAYBE,
        }
    }
}

impl Match for Physdev {
    fn print(&self, to: &mut Printer) {
        for Test { option, asks, iface } in &self.tests {
            to.flag(iface.invert, option);
            if matches!(asks, Asked::Input | Asked::Output) {
                let plus = if iface.prefix { "+" } else { "" };
                to.plain(&format!("{}{plus}", iface.name));
            }
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.bridge {
            BridgeNote::Nothing => self.of_nothing(),
            BridgeNote::Ports { input, output } => self.of_ports(input, output),
            BridgeNote::Unknown => {
                let routed = self.of_ports(Iface::Unknown, Iface::Absent);
                let passed_on = match transit.hook {
                    Hook::Forward | Hook::Postrouting => {
                        self.of_ports(Iface::Unknown, Iface::Unknown)
                    }
                    _ => routed,
                };
                self.of_nothing().or(routed).or(passed_on)
            }
        }
    }

    fn asks_for_ports(&self) -> bool {
        true
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("the ports of the bridge are not known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{ipv4, print, read_in};
    use crate::family::Family;
    use host::Host;
    use packet::{Checksums, Link, Packet};

    /// What a rule of mangle FORWARD says of a packet with this note at a hook.
    fn ask(rule: &str, hook: Hook, bridge: BridgeNote<'_>) -> Outcome {
        let mut bytes = ipv4(17, &[0; 8]);
        let chain = if hook == Hook::Prerouting { "PREROUTING" } else { "FORWARD" };
        let rule = format!("-m physdev {rule}");
        let ruleset = read_in(Family::Ipv4, "mangle", chain, &rule).unwrap();
        let (len, host) = (bytes.len(), Host::default());
        let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
        let transit = Transit { bridge, ..Transit::new(&mut packet, Family::Ipv4, hook, &host) };
        ruleset.tables[0].chains[0].rules[0].matches[0].body.evaluate(&transit)
    }

    /// Passed on from pa to pb; routed from pa; no note; nothing known.
    const BRIDGED: BridgeNote<'_> =
        BridgeNote::Ports { input: Iface::Named("pa"), output: Iface::Named("pb") };
    const ROUTED: BridgeNote<'_> =
        BridgeNote::Ports { input: Iface::Named("pa"), output: Iface::Absent };

    #[test]
    fn ports_and_notes_in_forward() {
        use Outcome as O;
        let unnamed = BridgeNote::Ports { input: Iface::Unknown, output: Iface::Unknown };
        for (rule, bridged, routed, nothing, without_names) in [
            ("--physdev-in pa", O::YES, O::YES, O::NO, O::MAYBE),
            ("! --physdev-in pa", O::NO, O::NO, O::YES, O::MAYBE),
            ("--physdev-in pb", O::NO, O::NO, O::NO, O::MAYBE),
            ("--physdev-in p+", O::YES, O::YES, O::NO, O::MAYBE),
            ("--physdev-in +", O::YES, O::YES, O::NO, O::YES),
            ("--physdev-out pb --physdev-is-bridged", O::YES, O::NO, O::NO, O::MAYBE),
            ("--physdev-out pc", O::NO, O::NO, O::NO, O::MAYBE),
            ("! --physdev-out pc", O::YES, O::NO, O::YES, O::MAYBE),
            ("--physdev-is-in", O::YES, O::YES, O::NO, O::YES),
            ("! --physdev-is-in", O::NO, O::NO, O::YES, O::NO),
            ("--physdev-is-out", O::YES, O::NO, O::NO, O::YES),
            ("--physdev-is-bridged", O::YES, O::NO, O::NO, O::YES),
            ("! --physdev-is-bridged", O::NO, O::YES, O::YES, O::NO),
            ("--physdev-in pa ! --physdev-is-bridged", O::NO, O::YES, O::NO, O::NO),
        ] {
            let notes = [BRIDGED, ROUTED, BridgeNote::Nothing, unnamed];
            let found = notes.map(|note| ask(rule, Hook::Forward, note));
            assert_eq!(found, [bridged, routed, nothing, without_names], "{rule}");
        }
    }

    #[test]
    fn where_no_port_to_leave_by_can_be_known_nothing_is_left_open() {
        let ask = |rule, hook| ask(rule, hook, BridgeNote::Unknown);
        assert_eq!(ask("--physdev-is-bridged", Hook::Prerouting), Outcome::NO);
        assert_eq!(ask("! --physdev-is-bridged", Hook::Prerouting), Outcome::YES);
        assert_eq!(ask("--physdev-is-bridged", Hook::Forward), Outcome::MAYBE);
        assert_eq!(ask("--physdev-in pa", Hook::Prerouting), Outcome::MAYBE);
    }

    #[test]
    fn output_has_no_port_to_leave_by() {
        let read =
            |rule: &str| read_in(Family::Ipv4, "mangle", "OUTPUT", &format!("-m physdev {rule}"));
        for (rule, is_taken) in [
            ("--physdev-in pa", true),
            ("--physdev-out pa", false),
            ("--physdev-is-out", false),
            ("--physdev-out pa ! --physdev-is-bridged", false),
            ("--physdev-out pa --physdev-is-bridged", true),
        ] {
            assert_eq!(read(rule).is_ok(), is_taken, "{rule}");
        }
        let text = print(Family::Ipv4, "-m physdev ! --physdev-out p+ --physdev-is-bridged");
        assert_eq!(text.unwrap(), "-m physdev ! --physdev-out p+ --physdev-is-bridged");
    }
}
