//! `-m policy`: the IPsec transforms that a packet went through, or will.
//!
//! The host's policies (`ip xfrm policy`) say what is done to packets that leave, and which received packets may have
//! come through IPsec; the packet itself does not show it. Without policies `--pol none` matches, and whether any other
//! test would have is unknown.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_policy.c`, and `xfrm_bundle_create` and `__xfrm_policy_check` of
//! `net/xfrm/xfrm_policy.c`: the transforms of a packet stand in the order of its policy's templates, both ways.

use conntrack::Side;
use host::{Xfrm, XfrmDirection, XfrmFlow, XfrmTemplate};
use packet::FlowKey;

use crate::error::What;
use crate::ext::kit::host::HostMask;
use crate::ext::kit::{number, words};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::{Family, Hook};
use crate::names::protocol_name;
use crate::nat;
use crate::outcome::Outcome;
use crate::transit::{Iface, Transit};

const MAX_ELEMENTS: usize = 4;
/// ESP, AH and IPComp.
const PROTOCOLS: [u8; 3] = [50, 51, 108];

pub(crate) static KIND: MatchKind = MatchKind {
    name: "policy",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("dir"),
        Opt::value("pol"),
        Opt::flag("strict"),
        Opt::value("reqid").invertible().repeatable(),
        Opt::value("spi").invertible().repeatable(),
        Opt::value("proto").invertible().repeatable(),
        Opt::value("mode").invertible().repeatable(),
        Opt::value("tunnel-dst").invertible().repeatable(),
        Opt::value("tunnel-src").invertible().repeatable(),
        Opt::flag("next").repeatable(),
    ],
    support: Support::Evaluated,
    parse,
};

/// Tests of one element, in printing order.
const ORDER: [&str; 6] = ["reqid", "spi", "proto", "mode", "tunnel-dst", "tunnel-src"];

#[derive(Debug)]
struct Policy {
    output: bool,
    none: bool,
    strict: bool,
    elements: Box<[Element]>,
}

/// Tests of one transform, in printing order.
type Element = Vec<Test>;

#[derive(Debug)]
struct Test {
    name: &'static str,
    invert: bool,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Reqid(u32),
    Spi(u32),
    Protocol(u8),
    Tunnel(bool),
    Host(HostMask),
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let output = words::one_of(args.required("dir")?, &[("in", false), ("out", true)])?;
    args.needs_hook(match output {
        true => &[Hook::Forward, Hook::Output, Hook::Postrouting],
        false => &[Hook::Prerouting, Hook::Input, Hook::Forward],
    })?;
    let none = match args.get("pol") {
        Some(given) => words::one_of(given, &[("none", true), ("ipsec", false)])?,
        None => false,
    };
    let strict = args.has("strict");
    if args.has("next") && !strict {
        return Err(args.expected("--strict beside --next"));
    }
    if none && strict {
        return Err(args.expected("no --strict beside --pol none"));
    }
    let elements = parse_elements(args)?;
    if strict && elements.iter().any(Vec::is_empty) {
        return Err(args.expected("a test in each element of --strict"));
    }
    let elements = if none { Vec::new() } else { elements };
    Ok(Box::new(Policy { output, none, strict, elements: elements.into() }))
}

fn parse_elements(args: &Args<'_>) -> Result<Vec<Element>, What> {
    let mut elements = vec![Element::new()];
    for given in args.given {
        if given.name == "next" {
            elements.push(Element::new());
        } else if let (true, Some(element)) = (ORDER.contains(&given.name), elements.last_mut()) {
            if element.iter().any(|test| test.name == given.name) {
                let what = format!("--{} only once in an element", given.name);
                return Err(What::new(given.column, what));
            }
            let value = parse_value(given, args.family)?;
            element.push(Test { name: given.name, invert: given.invert, value });
        }
    }
    if elements.len() > MAX_ELEMENTS {
        return Err(args.expected(format!("at most {MAX_ELEMENTS} elements")));
    }
    for element in &mut elements {
        element.sort_by_key(|test| ORDER.iter().position(|name| *name == test.name));
        if args.get("pol").is_none_or(|given| given.text() != "none") {
            check_tunnel(args, element)?;
        }
    }
    Ok(elements)
}

/// Tunnel ends make sense in tunnel mode only, which has to be given.
fn check_tunnel(args: &Args<'_>, element: &Element) -> Result<(), What> {
    let is_tunnel =
        |test: &Test| matches!(test.value, Value::Tunnel(tunnel) if tunnel != test.invert);
    let has_ends = element.iter().any(|test| matches!(test.value, Value::Host(_)));
    if has_ends && !element.iter().any(is_tunnel) {
        return Err(args.expected("--mode tunnel beside --tunnel-src and --tunnel-dst"));
    }
    Ok(())
}

fn parse_value(given: &Given<'_>, family: Family) -> Result<Value, What> {
    Ok(match given.name {
        "reqid" => Value::Reqid(number::u32(given)?),
        "spi" => Value::Spi(number::u32(given)?),
        "mode" => Value::Tunnel(words::one_of(given, &[("transport", false), ("tunnel", true)])?),
        "proto" => match number::protocol(given)? {
            number if PROTOCOLS.contains(&number) => Value::Protocol(number),
            _ => return Err(given.expected("esp, ah or ipcomp")),
        },
        _ => Value::Host(HostMask::parse(given, family)?),
    })
}

impl Match for Policy {
    fn print(&self, to: &mut Printer) {
        to.option(false, "dir", if self.output { "out" } else { "in" });
        to.option(false, "pol", if self.none { "none" } else { "ipsec" });
        if self.strict {
            to.flag(false, "strict");
        }
        for (index, element) in self.elements.iter().enumerate() {
            if index > 0 {
                to.flag(false, "next");
            }
            for Test { name, invert, value } in element {
                to.flag(*invert, name);
                match value {
                    Value::Reqid(reqid) => to.word(reqid),
                    Value::Spi(spi) => to.word(format_args!("{spi:#x}")),
                    Value::Protocol(number) => to.word(protocol_name(*number).unwrap_or("")),
                    Value::Tunnel(tunnel) => to.word(if *tunnel { "tunnel" } else { "transport" }),
                    Value::Host(host) => to.word(host),
                };
            }
        }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some(match self.output {
            true => {
                "which transforms of IPsec are its own is not known (xfrm.txt of a HOST folder)"
            }
            false => {
                "whether it came by IPsec is not captured (xfrm.txt of a HOST folder tells of some)"
            }
        })
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let Some(xfrm) = &transit.host.xfrm else {
            return if self.none { Outcome::YES } else { Outcome::MAYBE };
        };
        let flow = flow_of(transit);
        match self.output {
            true => self.leaves(xfrm, flow.as_ref(), transit),
            false => {
                // It is asked about as it was before its translation.
                let is_as_it_came = ![Side::Source, Side::Destination]
                    .into_iter()
                    .any(|side| nat::is_translated(transit, side));
                self.came(xfrm, flow.as_ref().filter(|_| is_as_it_came), transit)
            }
        }
    }
}

impl Policy {
    /// A packet that leaves: its policy says what becomes of it.
    fn leaves(&self, xfrm: &Xfrm, flow: Option<&XfrmFlow>, transit: &Transit<'_, '_>) -> Outcome {
        let is_own = transit.input == Iface::Absent;
        match flow.map(|flow| flow.protocol) {
            // The packet around one of its own, which no policy is asked about again.
            Some(protocol) if is_own && PROTOCOLS.contains(&protocol) => return self.plain(),
            _ => {}
        }
        // Routes by lo carry no transforms; IPv6's were not asked.
        let is_v6 = transit.family == Family::Ipv6;
        if !is_v6 && transit.output == Iface::Named("lo") {
            return self.plain();
        }
        let templates = match xfrm.find(XfrmDirection::Out, is_v6, flow) {
            None => return Outcome::MAYBE,
            Some(None) => return self.plain(),
            Some(Some(policy)) if policy.blocks => return Outcome::MAYBE,
            Some(Some(policy)) => &policy.templates,
        };
        let in_udp = is_own && flow.is_none_or(|flow| flow.protocol == 17 && is_around(flow));
        match in_udp || templates.iter().any(|template| template.is_optional) {
            true => Outcome::MAYBE,
            false => self.transformed(templates),
        }
    }

    /// A packet that came in: by IPsec, where its policy asks for that, or it is dropped further on.
    fn came(&self, xfrm: &Xfrm, flow: Option<&XfrmFlow>, transit: &Transit<'_, '_>) -> Outcome {
        let directions: &[XfrmDirection] = match transit.hook {
            Hook::Input => &[XfrmDirection::In],
            Hook::Forward => &[XfrmDirection::Forward],
            _ => &[XfrmDirection::In, XfrmDirection::Forward],
        };
        let is_v6 = transit.family == Family::Ipv6;
        let mut outcome = self.plain();
        for direction in directions {
            let transformed = match xfrm.find(*direction, is_v6, flow) {
                None => Outcome::MAYBE,
                Some(Some(policy)) if policy.templates.iter().any(|all| all.is_optional) => {
                    Outcome::MAYBE
                }
                Some(Some(policy)) if !policy.blocks => self.transformed(&policy.templates),
                Some(_) => continue,
            };
            if transformed != outcome {
                outcome = Outcome::MAYBE;
            }
        }
        outcome
    }

    /// What it says of a packet without a transform.
    fn plain(&self) -> Outcome {
        if self.none { Outcome::YES } else { Outcome::NO }
    }

    /// Returns the answer for a packet with these transforms.
    fn transformed(&self, templates: &[XfrmTemplate]) -> Outcome {
        if self.none {
            return Outcome::NO;
        }
        let is = |place: usize, template: &XfrmTemplate| match self.elements.get(place) {
            Some(element) => has(element, template),
            None => Some(false),
        };
        let known = match self.strict {
            true if templates.len() != self.elements.len() => Some(false),
            true => all((0..).zip(templates).map(|(place, template)| is(place, template))),
            false => {
                let none = all(templates.iter().map(|template| is(0, template).map(|is| !is)));
                none.map(|none| !none)
            }
        };
        match known {
            Some(true) => Outcome::YES,
            Some(false) => Outcome::NO,
            None => Outcome::MAYBE,
        }
    }
}

/// Whether a transform passes all tests of an element; `None` where its template does not tell.
fn has(element: &Element, template: &XfrmTemplate) -> Option<bool> {
    let one = |test: &Test| {
        let end = if test.name == "tunnel-src" { template.source } else { template.destination };
        let is_it = match &test.value {
            Value::Reqid(reqid) => template.reqid? == *reqid,
            Value::Spi(spi) => template.spi? == *spi,
            Value::Protocol(protocol) => template.protocol? == *protocol,
            Value::Tunnel(tunnel) => template.tunnel? == *tunnel,
            Value::Host(host) => host.holds(end?),
        };
        Some(is_it != test.invert)
    };
    all(element.iter().map(one))
}

/// Whether all of these hold; `None` where that is not known.
fn all(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(true);
    for answer in answers {
        match answer {
            Some(true) => {}
            Some(false) => return Some(false),
            None => known = None,
        }
    }
    known
}

/// Whether UDP of these ports may hold a packet of IPsec.
fn is_around(flow: &XfrmFlow) -> bool {
    let ports = [500, 4500];
    flow.ports
        .is_none_or(|(source, destination)| ports.contains(&source) || ports.contains(&destination))
}

/// The packet as policies see it, if all of that is known.
fn flow_of(transit: &Transit<'_, '_>) -> Option<XfrmFlow> {
    let key = FlowKey::of(transit.packet).known()?;
    let FlowKey { source, destination, protocol, source_port, destination_port } = key;
    let has_ports = !matches!(protocol, 1 | 58);
    let ports = has_ports.then_some((source_port, destination_port));
    Some(XfrmFlow { source, destination, protocol, ports })
}

#[cfg(test)]
mod tests {
    use packet::{Checksums, Link, Packet};

    use super::*;
    use crate::model::Action;
    use crate::save::{LoadOptions, load};

    const POLICIES: &str = "\
src 10.0.0.0/24 dst 10.1.0.0/24 \n\tdir out priority 5 ptype main \n\
\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto esp reqid 7 mode tunnel\n\
src 10.1.0.0/24 dst 10.0.0.0/24 \n\tdir fwd priority 5 ptype main \n\
\ttmpl src 192.0.2.2 dst 192.0.2.1\n\t\tproto esp reqid 7 mode tunnel\n";

    /// What `-m policy` with these options says of a packet of UDP from and to these last bytes of 10.
    fn says(options: &str, hook: Hook, ends: [[u8; 3]; 2], policies: Option<&str>) -> Outcome {
        let text = format!("*filter\n-A FORWARD -m policy {options} -j DROP\nCOMMIT\n");
        let loaded = load(&text, &LoadOptions::default()).expect(options);
        let table = &loaded.ruleset.tables[0];
        let chain = table.chains.iter().find(|chain| !chain.rules.is_empty()).unwrap();
        let rule = &chain.rules[0];
        assert!(matches!(rule.action, Action::Drop));
        let mut bytes = [
            0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 10, 0, 0, 0, 0, 9, 0, 9, 0, 8,
            0, 0,
        ];
        bytes[13..16].copy_from_slice(&ends[0]);
        bytes[17..20].copy_from_slice(&ends[1]);
        let mut packet = Packet::parse(&mut bytes, 28, Link::Raw, Checksums::Ignore);
        let xfrm = policies.map(|text| Xfrm::parse(text).unwrap());
        let host = host::Host { xfrm, ..host::Host::default() };
        let transit = Transit::new(&mut packet, Family::Ipv4, hook, &host);
        rule.matches[0].body.evaluate(&transit)
    }

    /// By `match_policy_out`. Linux 6.18 counted the packets that no policy is for as it says here, and none that one is for
    /// and no association: those never come to FORWARD.
    #[test]
    fn policies_tell_of_packets_that_leave() {
        let (inner, other) = ([[0, 0, 7], [1, 0, 9]], [[0, 0, 7], [2, 0, 9]]);
        let out = |options: &str, ends| says(options, Hook::Forward, ends, Some(POLICIES));
        for (options, of_inner, of_other) in [
            ("--dir out --pol none", Outcome::NO, Outcome::YES),
            ("--dir out --pol ipsec", Outcome::YES, Outcome::NO),
            ("--dir out --pol ipsec --reqid 7", Outcome::YES, Outcome::NO),
            ("--dir out --pol ipsec --reqid 8", Outcome::NO, Outcome::NO),
            ("--dir out --pol ipsec ! --reqid 8", Outcome::YES, Outcome::NO),
            ("--dir out --pol ipsec --proto ah", Outcome::NO, Outcome::NO),
            ("--dir out --pol ipsec --spi 5", Outcome::MAYBE, Outcome::NO),
            (
                "--dir out --pol ipsec --strict --mode tunnel --tunnel-dst 192.0.2.0/24",
                Outcome::YES,
                Outcome::NO,
            ),
            (
                "--dir out --pol ipsec --strict --proto esp --next --proto esp",
                Outcome::NO,
                Outcome::NO,
            ),
        ] {
            assert_eq!(out(options, inner), of_inner, "{options}");
            assert_eq!(out(options, other), of_other, "{options}");
        }
    }

    #[test]
    fn whether_a_packet_came_by_ipsec_is_known_where_no_policy_asks_for_it() {
        let (inner, other) = ([[1, 0, 9], [0, 0, 7]], [[2, 0, 9], [0, 0, 7]]);
        for (options, of_inner, of_other) in [
            ("--dir in --pol none", Outcome::MAYBE, Outcome::YES),
            ("--dir in --pol ipsec", Outcome::MAYBE, Outcome::NO),
            ("--dir in --pol ipsec --reqid 8", Outcome::NO, Outcome::NO),
        ] {
            let came = |ends| says(options, Hook::Forward, ends, Some(POLICIES));
            assert_eq!([came(inner), came(other)], [of_inner, of_other], "{options}");
            let none = says(options, Hook::Forward, inner, Some(""));
            assert_eq!(none, of_other, "{options}: no policy at all");
        }
        let ungiven = says("--dir in --pol ipsec", Hook::Forward, inner, None);
        assert_eq!(ungiven, Outcome::MAYBE);
    }
}
