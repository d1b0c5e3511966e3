//! `ct`: what connection tracking knows of a packet.
//!
//! The state is there for every packet; all else only of one with a connection. Source: kernel
//! `net/netfilter/nft_ct.c` (`nft_ct_get_eval`).

use super::Load;
use crate::lower::word::{Loaded, Word, number};
use conntrack::{CtState, Direction, Flow, Helper, Side};
use rules::{KnownFlow, Transit};
use std::net::IpAddr;

/// A key of `ct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// State.
    State,
    /// Which way the packet goes.
    Direction,
    /// Status bits.
    Status,
    /// Mark.
    Mark,
    /// Labels.
    Label,
    /// Milliseconds until it ends.
    Expiration,
    /// Name of the helper of the connection that expected this one.
    Helper,
    /// Family of its addresses.
    Family,
    /// Protocol of the upper layer.
    Protocol,
    /// Source address.
    Source,
    /// Destination address.
    Destination,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
    /// Zone.
    Zone,
    /// Bytes that it counted.
    Bytes,
    /// Packets that it counted.
    Packets,
    /// Bytes of a packet, on average.
    Average,
}

/// A key with its direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    pub key: Key,
    /// Of tuples, the direction; of a zone, whether one is named.
    pub direction: Option<Direction>,
    /// The addresses are of IPv6; `None` where the rule does not say.
    pub six: Option<bool>,
    /// What the bytecode calls it.
    pub name: &'static str,
}

/// Keys by name: in rules, in the bytecode.
const KEYS: [(&str, &str, Key); 17] = [
    ("state", "state", Key::State),
    ("direction", "direction", Key::Direction),
    ("status", "status", Key::Status),
    ("mark", "mark", Key::Mark),
    ("label", "label", Key::Label),
    ("expiration", "expiration", Key::Expiration),
    ("helper", "helper", Key::Helper),
    ("l3proto", "l3protocol", Key::Family),
    ("protocol", "protocol", Key::Protocol),
    ("saddr", "src", Key::Source),
    ("daddr", "dst", Key::Destination),
    ("proto-src", "proto_src", Key::SourcePort),
    ("proto-dst", "proto_dst", Key::DestinationPort),
    ("zone", "zone", Key::Zone),
    ("bytes", "bytes", Key::Bytes),
    ("packets", "packets", Key::Packets),
    ("avgpkt", "avgpkt", Key::Average),
];

/// The number of a state as rules compare it.
pub(crate) fn state_number(state: CtState) -> u128 {
    match state {
        CtState::Invalid => 1,
        CtState::Established => 2,
        CtState::Related => 4,
        CtState::New => 8,
        CtState::Untracked => 64,
    }
}

/// A tick of the slowest clock in milliseconds: by what an expiration may be off.
const TICK: u64 = 10;

impl Connection {
    /// Makes a key that is evaluated.
    pub(crate) fn find(name: &str, direction: Option<&str>, six: Option<bool>) -> Option<Self> {
        let (_, bytecode, key) = KEYS.iter().find(|key| key.0 == name)?;
        let direction = match direction {
            Some("reply") => Some(Direction::Reply),
            Some(_) => Some(Direction::Original),
            None => None,
        };
        Some(Self { key: *key, direction, six, name: bytecode })
    }

    /// Width of the value in bits.
    fn bits(&self) -> u32 {
        match self.key {
            Key::Direction | Key::Family | Key::Protocol => 8,
            Key::SourcePort | Key::DestinationPort | Key::Zone => 16,
            Key::State | Key::Status | Key::Mark | Key::Expiration => 32,
            Key::Source | Key::Destination if self.six != Some(true) => 32,
            Key::Bytes | Key::Packets | Key::Average => 64,
            Key::Source | Key::Destination | Key::Label | Key::Helper => 128,
        }
    }

    fn of(&self, flow: &Flow, transit: &Transit<'_, '_>) -> Loaded {
        let tuple = flow.tuple(self.direction.unwrap_or(Direction::Original));
        match self.key {
            Key::State => Loaded::anything(32),
            Key::Direction => Loaded::known((transit.ct.view.direction == Direction::Reply).into()),
            Key::Status => status(flow),
            Key::Mark if flow.is_mark_vague() => Loaded::unknown(32),
            Key::Mark => Loaded::known(flow.mark.into()),
            Key::Label => label(flow),
            Key::Expiration => expiration(flow, transit),
            Key::Helper => helper(flow),
            Key::Family => Loaded::known(if tuple.is_ipv6() { 10 } else { 2 }),
            Key::Protocol => Loaded::known(tuple.protocol().into()),
            Key::Zone => self.zone(flow),
            Key::Bytes | Key::Packets | Key::Average => self.counted(flow, transit),
            _ if !self.has_sure_end(flow) => Loaded::unknown(self.bits()),
            Key::Source => self.address(tuple.source()),
            Key::Destination => self.address(tuple.destination()),
            Key::SourcePort => Loaded::known(tuple.source_part().into()),
            Key::DestinationPort => Loaded::known(tuple.destination_part().into()),
        }
    }

    /// Whether the tuples do not depend on something that is not known.
    fn has_sure_end(&self, flow: &Flow) -> bool {
        let sides = [Side::Source, Side::Destination];
        !sides.into_iter().any(|side| flow.is_indeterminate(side) || flow.is_hidden(side))
    }

    fn address(&self, address: IpAddr) -> Loaded {
        match (address, self.six) {
            (IpAddr::V4(address), Some(false) | None) => Loaded::known(number(&address.octets())),
            (IpAddr::V6(address), Some(true) | None) => Loaded::known(number(&address.octets())),
            _ => Loaded::nothing(),
        }
    }

    /// The number of the zone; of a direction that is named, that of the other is none.
    fn zone(&self, flow: &Flow) -> Loaded {
        match self.direction {
            Some(direction) => Loaded::known(flow.tuple(direction).zone().into()),
            None => Loaded::known(flow.zone().into()),
        }
    }
}

impl Connection {
    /// What was counted; before the capture began nobody did.
    fn counted(&self, flow: &Flow, transit: &Transit<'_, '_>) -> Loaded {
        let of_bytes = self.key != Key::Packets;
        if flow.is_assumed() || flow.is_listed() || of_bytes && transit.packet.is_open() {
            return Loaded::unknown(64);
        }
        let directions = match self.direction {
            Some(direction) => &[direction][..],
            None => &[Direction::Original, Direction::Reply],
        };
        let counters = directions.iter().map(|direction| flow.counters(*direction));
        let (packets, bytes) =
            counters.fold((0, 0), |(packets, bytes), of| (packets + of.packets, bytes + of.bytes));
        Loaded::known(match self.key {
            Key::Packets => packets.into(),
            Key::Bytes => bytes.into(),
            _ => bytes.checked_div(packets).unwrap_or(0).into(),
        })
    }
}

fn status(flow: &Flow) -> Loaded {
    let bits = u128::from(flow.status().bits());
    let mut unknown = 0;
    if flow.may_be_assured() {
        unknown |= 4;
    }
    for (side, bit) in [(Side::Source, 16), (Side::Destination, 32)] {
        if flow.is_indeterminate(side) {
            unknown |= bit;
        }
    }
    Loaded::word(Word { value: bits & !unknown, unknown })
}

/// Labels as the number that a rule compares: bit n of the kernel's words.
fn label(flow: &Flow) -> Loaded {
    if flow.is_mark_vague() || flow.is_listed() {
        return Loaded::unknown(128);
    }
    let bit = |bit: u8| u128::from(flow.label(bit)) << bit;
    Loaded::known((0..128).map(bit).fold(0, |all, one| all | one))
}

fn expiration(flow: &Flow, transit: &Transit<'_, '_>) -> Loaded {
    let Some(now) = transit.time else { return Loaded::unknown(32) };
    let left = flow.expires_in(now) / 1_000_000;
    Loaded::word(Word::between(left.saturating_sub(TICK).into(), (left + TICK).into()))
}

fn helper(flow: &Flow) -> Loaded {
    match flow.master_helper() {
        Helper::None => Loaded::nothing(),
        Helper::Ftp => Loaded::known(super::meta::name_number("ftp")),
        Helper::Tftp => Loaded::known(super::meta::name_number("tftp")),
        Helper::Amanda => Loaded::known(super::meta::name_number("amanda")),
        Helper::Irc => Loaded::known(super::meta::name_number("irc")),
        Helper::Pptp => Loaded::known(super::meta::name_number("pptp")),
        Helper::Sane => Loaded::known(super::meta::name_number("sane")),
        Helper::Sip => Loaded::known(super::meta::name_number("sip")),
        _ => Loaded::anything(128),
    }
}

impl Load for Connection {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        if self.key == Key::State {
            let states = transit.ct.states();
            let possible = CtState::ALL.into_iter().filter(|state| states.may_be(*state));
            let words = possible.map(|state| Word::known(state_number(state))).collect();
            return Loaded { words, breaks: false };
        }
        match transit.ct.flow() {
            KnownFlow::Flow(flow) => self.of(flow, transit),
            KnownFlow::None => Loaded::nothing(),
            KnownFlow::Unknown => Loaded::anything(self.bits()),
        }
    }

    fn tracks(&self) -> bool {
        true
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        let direction = match self.direction {
            Some(Direction::Reply) => " , dir reply",
            Some(Direction::Original) => " , dir original",
            None => "",
        };
        let ip = match (self.key, self.six) {
            (Key::Source | Key::Destination, Some(false)) => "_ip",
            (Key::Source | Key::Destination, Some(true)) => "_ip6",
            _ => "",
        };
        show(format!("ct load {}{ip}{direction}", self.name));
    }
}
