//! `-m ipvs`: the IPVS connection that the packet belongs to.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_ipvs.c`.

use crate::error::What;
use crate::ext::kit::host::HostMask;
use crate::ext::kit::{number, words};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Family;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "ipvs",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::flag("ipvs").invertible(),
        Opt::value("vproto").invertible(),
        Opt::value("vaddr").invertible(),
        Opt::value("vport").invertible(),
        Opt::value("vdir"),
        Opt::value("vmethod").invertible(),
        Opt::value("vportctl").invertible(),
    ],
    support: Support::Parsed,
    parse,
};

/// Options that imply `--ipvs`, in printing order.
const ORDER: [&str; 6] = ["vproto", "vaddr", "vport", "vdir", "vmethod", "vportctl"];
const DIRECTIONS: [(&str, &str); 2] = [("ORIGINAL", "ORIGINAL"), ("REPLY", "REPLY")];
const METHODS: [(&str, &str); 3] = [("GATE", "GATE"), ("IPIP", "IPIP"), ("MASQ", "MASQ")];

#[derive(Debug)]
struct Ipvs {
    /// `! --ipvs`, which stands alone.
    invert: bool,
    tests: Box<[Test]>,
}

#[derive(Debug)]
struct Test {
    name: &'static str,
    invert: bool,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Protocol(u8),
    Host(HostMask),
    Port(u16),
    Word(&'static str),
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given: Vec<_> = ORDER.into_iter().filter_map(|name| args.get(name)).collect();
    let invert = match args.get("ipvs") {
        None if given.is_empty() => return Err(args.expected("an option")),
        Some(ipvs) if ipvs.invert && !given.is_empty() => {
            return Err(args.expected("no other option beside ! --ipvs"));
        }
        ipvs => ipvs.is_some_and(|ipvs| ipvs.invert),
    };
    let tests: Result<_, What> = given
        .into_iter()
        .map(|given| {
            let value = parse_value(given, args.family)?;
            Ok(Test { name: given.name, invert: given.invert, value })
        })
        .collect();
    Ok(Box::new(Ipvs { invert, tests: tests? }))
}

fn parse_value(given: &Given<'_>, family: Family) -> Result<Value, What> {
    Ok(match given.name {
        "vproto" => Value::Protocol(number::protocol(given)?),
        "vaddr" => Value::Host(HostMask::parse(given, family)?),
        "vdir" => Value::Word(words::one_in_any_case(given, &DIRECTIONS)?),
        "vmethod" => Value::Word(words::one_in_any_case(given, &METHODS)?),
        _ => {
            Value::Port(value::port(given.text()).ok_or_else(|| given.expected("a port 0-65535"))?)
        }
    })
}

impl Match for Ipvs {
    fn asks_for(&self) -> Option<&'static str> {
        Some("the connections of IPVS are neither in the rules nor in a capture")
    }

    fn print(&self, to: &mut Printer) {
        if self.tests.is_empty() {
            to.flag(self.invert, "ipvs");
        }
        for Test { name, invert, value } in &self.tests {
            to.flag(*invert, name);
            match value {
                Value::Protocol(number) => to.word(number),
                Value::Host(host) => to.word(host),
                Value::Port(port) => to.word(port),
                Value::Word(word) => to.word(word),
            };
        }
    }
}
