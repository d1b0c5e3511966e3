//! `-m conntrack`: state, tuples, status and lifetime of the packet's connection.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_conntrack.c`.

use crate::connection::{Connection, KnownFlow};
use crate::error::What;
use crate::ext::kit::host::HostMask;
use crate::ext::kit::ports::range_text;
use crate::ext::kit::{number, words};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Family;
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;
use conntrack::{CtState, Direction, Flow, SECOND, States, Status};

pub(crate) static KIND: MatchKind = MatchKind {
    name: "conntrack",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("ctstate").invertible(),
        Opt::value("ctproto").invertible(),
        Opt::value("ctorigsrc").invertible(),
        Opt::value("ctorigdst").invertible(),
        Opt::value("ctreplsrc").invertible(),
        Opt::value("ctrepldst").invertible(),
        Opt::value("ctorigsrcport").invertible(),
        Opt::value("ctorigdstport").invertible(),
        Opt::value("ctreplsrcport").invertible(),
        Opt::value("ctrepldstport").invertible(),
        Opt::value("ctstatus").invertible(),
        Opt::value("ctexpire").invertible(),
        Opt::value("ctdir"),
    ],
    support: Support::Evaluated,
    parse,
};

/// Options in printing order.
const ORDER: [&str; 13] = [
    "ctstate",
    "ctproto",
    "ctorigsrc",
    "ctorigdst",
    "ctreplsrc",
    "ctrepldst",
    "ctorigsrcport",
    "ctorigdstport",
    "ctreplsrcport",
    "ctrepldstport",
    "ctstatus",
    "ctexpire",
    "ctdir",
];

/// States that `-m state` knows too, in printing order.
pub(crate) const STATES: [(&str, u8); 5] =
    [("INVALID", 1), ("NEW", 2), ("RELATED", 4), ("ESTABLISHED", 8), ("UNTRACKED", 16)];

/// All states, in printing order.
const ALL_STATES: [(&str, u8); 7] = {
    let [a, b, c, d, e] = STATES;
    [a, b, c, d, e, ("SNAT", 32), ("DNAT", 64)]
};

const ASSURED: u8 = 4;
const SNAT: u8 = 32;
const DNAT: u8 = 64;

const STATUSES: [(&str, u8); 5] =
    [("NONE", 0), ("EXPECTED", 1), ("SEEN_REPLY", 2), ("ASSURED", 4), ("CONFIRMED", 8)];

#[derive(Debug)]
struct Conntrack {
    tests: Box<[Test]>,
    /// The states that it matches, if it tests nothing else.
    states: Option<States>,
}

#[derive(Debug)]
struct Test {
    name: &'static str,
    invert: bool,
    value: Value,
}

#[derive(Debug)]
enum Value {
    State(u8),
    Protocol(u8),
    Host(HostMask),
    Ports(u16, u16),
    Status(u8),
    Expire(u32, u32),
    Direction(&'static str),
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&ORDER)?;
    let given = ORDER.into_iter().filter_map(|name| args.get(name));
    let tests: Result<Box<[Test]>, What> = given
        .map(|given| {
            let value = parse_value(given, args.family)?;
            Ok(Test { name: given.name, invert: given.invert, value })
        })
        .collect();
    let tests: Box<[Test]> = tests?;
    let states = match &*tests {
        [Test { invert, value: Value::State(bits), .. }] => states_of(*bits, *invert),
        _ => None,
    };
    Ok(Box::new(Conntrack { tests, states }))
}

fn parse_value(given: &Given<'_>, family: Family) -> Result<Value, What> {
    Ok(match given.name {
        "ctstate" => Value::State(words::bits(given, &ALL_STATES)?),
        "ctproto" => match number::protocol(given)? {
            0 => return Err(given.expected("a protocol other than 0")),
            protocol => Value::Protocol(protocol),
        },
        "ctorigsrc" | "ctorigdst" | "ctreplsrc" | "ctrepldst" => {
            Value::Host(HostMask::parse(given, family)?)
        }
        "ctstatus" => Value::Status(words::bits(given, &STATUSES)?),
        "ctexpire" => {
            let (low, high) = value::range(given.text(), ':', u32::MAX.into())
                .ok_or_else(|| given.expected("seconds or a range low:high of 32 bits"))?;
            Value::Expire(low as u32, high as u32)
        }
        "ctdir" => {
            let directions = [("ORIGINAL", "ORIGINAL"), ("REPLY", "REPLY")];
            Value::Direction(words::one_in_any_case(given, &directions)?)
        }
        _ => {
            let (low, high) = value::port_range(given.text())
                .ok_or_else(|| given.expected("a port 0-65535 or a range low:high"))?;
            Value::Ports(low, high)
        }
    })
}

impl Match for Conntrack {
    fn print(&self, to: &mut Printer) {
        for Test { name, invert, value } in &self.tests {
            to.flag(*invert, name);
            match value {
                Value::State(bits) => to.word(words::text(*bits, &ALL_STATES)),
                Value::Protocol(number) => to.word(number),
                Value::Host(host) => to.word(host),
                Value::Ports(low, high) => to.word(range_text(*low, *high)),
                Value::Status(0) => to.word("NONE"),
                Value::Status(bits) => to.word(words::text(*bits, &STATUSES)),
                Value::Expire(low, high) if low == high => to.word(low),
                Value::Expire(low, high) => to.word(format_args!("{low}:{high}")),
                Value::Direction(word) => to.word(word),
            };
        }
    }

    fn states(&self) -> Option<States> {
        self.states
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        if let Some(states) = self.states {
            return within(transit.ct.view.states, states);
        }
        let now = transit.time.unwrap_or(0);
        let state = |test: &&Test| matches!(test.value, Value::State(_));
        let outcome = self.tests.iter().filter(state).fold(Outcome::YES, |all, test| {
            all.and_then(|| {
                let Value::State(bits) = test.value else { return Outcome::YES };
                states(bits, &transit.ct).invert(test.invert)
            })
        });
        let mut others = self.tests.iter().filter(|test| !state(test)).peekable();
        if others.peek().is_none() {
            return outcome;
        }
        outcome.and_then(|| match transit.ct.flow() {
            KnownFlow::Flow(flow) if flow.may_be_assured() && self.asks_if_assured() => {
                Outcome::MAYBE
            }
            KnownFlow::Flow(flow) if !flow.has_sure_tuples() && self.asks_for_replies() => {
                Outcome::MAYBE
            }
            KnownFlow::Flow(flow) => {
                let direction = transit.ct.view.direction;
                Outcome::from_bool(
                    others.all(|test| test.holds(flow, direction, now) != test.invert),
                )
            }
            // Without a connection only the state is asked about, if it is asked about at all.
            KnownFlow::None => Outcome::from_bool(self.tests.iter().any(|test| state(&test))),
            KnownFlow::Unknown => Outcome::MAYBE,
        })
    }

    fn tracks(&self) -> bool {
        true
    }

    fn predicate(&self) -> Option<Predicate> {
        let tests: Option<Vec<Predicate>> = self.tests.iter().map(Test::predicate).collect();
        tests.map(Predicate::All)
    }
}

impl Conntrack {
    /// How replies look depends on a translation.
    fn asks_for_replies(&self) -> bool {
        self.tests.iter().any(|test| test.name.starts_with("ctrepl"))
    }

    fn asks_if_assured(&self) -> bool {
        let asks = |test: &Test| matches!(test.value, Value::Status(bits) if bits & ASSURED != 0);
        self.tests.iter().any(asks)
    }
}

/// The states of these bits, if they are nothing but states.
pub(crate) fn states_of(bits: u8, invert: bool) -> Option<States> {
    if bits & (SNAT | DNAT) != 0 {
        return None;
    }
    let all = CtState::ALL.into_iter().filter(|state| (bits & bit(*state) != 0) != invert);
    all.map(States::of).reduce(States::or)
}

fn bit(state: CtState) -> u8 {
    match state {
        CtState::Invalid => 1,
        CtState::New => 2,
        CtState::Related => 4,
        CtState::Established => 8,
        CtState::Untracked => 16,
    }
}

/// Whether the packet's state is one of `these`.
#[inline]
pub(crate) fn within(possible: States, these: States) -> Outcome {
    match (possible.meets(these), possible.without(these)) {
        (true, Some(_)) => Outcome::MAYBE,
        (inside, _) => Outcome::from_bool(inside),
    }
}

/// Whether the packet's state is one of `bits`.
pub(crate) fn states(bits: u8, ct: &Connection<'_>) -> Outcome {
    let possible = |inside: bool| {
        let states: States = ct.states();
        CtState::ALL
            .into_iter()
            .any(|state| states.may_be(state) && (bits & bit(state) != 0) == inside)
    };
    let state = match (possible(true), possible(false)) {
        (true, true) => Outcome::MAYBE,
        (inside, _) => Outcome::from_bool(inside),
    };
    if state == Outcome::YES || bits & (SNAT | DNAT) == 0 {
        return state;
    }
    let translated = match ct.flow() {
        KnownFlow::None => Outcome::NO,
        KnownFlow::Unknown => Outcome::MAYBE,
        KnownFlow::Flow(flow) => {
            let source = bits & SNAT != 0 && flow.status().contains(Status::SRC_NAT);
            let destination = bits & DNAT != 0 && flow.status().contains(Status::DST_NAT);
            Outcome::from_bool(source || destination)
        }
    };
    match (state, translated) {
        (_, Outcome::YES) => Outcome::YES,
        (Outcome::NO, other) | (other, Outcome::NO) => other,
        _ => Outcome::MAYBE,
    }
}

impl Test {
    /// Returns the test as a predicate, where it asks for states and what was translated.
    fn predicate(&self) -> Option<Predicate> {
        let Value::State(bits) = self.value else { return None };
        let states = states_of(bits & !(SNAT | DNAT), false).map(Predicate::State);
        let translated = [(SNAT, 1), (DNAT, 2)].map(|(bit, mask)| {
            let test = || Predicate::Masked { field: Field::Translated, value: mask, mask };
            let of_connection = || Predicate::All(vec![Predicate::has_connection(), test()]);
            (bits & bit != 0).then(of_connection)
        });
        let any = states.into_iter().chain(translated.into_iter().flatten()).collect();
        Some(Predicate::Any(any).inverted(self.invert))
    }

    /// Whether the test holds for a flow, before `!`.
    fn holds(&self, flow: &Flow, direction: Direction, now: u64) -> bool {
        let (original, reply) = (flow.tuple(Direction::Original), flow.tuple(Direction::Reply));
        match &self.value {
            Value::State(_) => true,
            Value::Protocol(number) => original.protocol() == *number,
            Value::Host(host) => host.holds(match self.name {
                "ctorigsrc" => original.source(),
                "ctorigdst" => original.destination(),
                "ctreplsrc" => reply.source(),
                _ => reply.destination(),
            }),
            Value::Ports(low, high) => (*low..=*high).contains(&match self.name {
                "ctorigsrcport" => original.source_part(),
                "ctorigdstport" => original.destination_part(),
                "ctreplsrcport" => reply.source_part(),
                _ => reply.destination_part(),
            }),
            Value::Status(bits) => {
                // Printed order: EXPECTED, SEEN_REPLY, ASSURED, CONFIRMED are the kernel's first bits.
                flow.status().bits() & u32::from(*bits) != 0
            }
            Value::Expire(low, high) => {
                let seconds = flow.expires_in(now) / SECOND;
                (u64::from(*low)..=u64::from(*high)).contains(&seconds)
            }
            Value::Direction(word) => (*word == "ORIGINAL") == (direction == Direction::Original),
        }
    }
}
