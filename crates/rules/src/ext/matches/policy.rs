//! `-m policy`: the IPsec transforms that a packet went through, or will.
//!
//! A captured packet carries no transform state, so `--pol none` matches it; whether any other policy
//! would have is unknown. Source: iptables-extensions(8); kernel `net/netfilter/xt_policy.c`.

use crate::error::What;
use crate::ext::kit::host::HostMask;
use crate::ext::kit::{number, words};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::{Family, Hook};
use crate::names::protocol_name;
use crate::outcome::Outcome;
use crate::transit::Transit;

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

    fn evaluate(&self, _transit: &Transit<'_, '_>) -> Outcome {
        if self.none { Outcome::YES } else { Outcome::MAYBE }
    }
}
