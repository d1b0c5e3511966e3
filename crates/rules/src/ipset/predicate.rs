//! What a set holds as a [`Predicate`]: its elements as values of the packet's fields.
//!
//! A search goes from the longest prefixes to the shortest, and the first element that holds the packet decides; so here
//! each prefix, from the shortest on, takes over from those before it.

use std::collections::BTreeMap;

use super::kind::Dim;
use super::look::{ICMP, ICMPV6, SCTP, TCP, UDP, UDPLITE};
use super::store::Entry;
use super::{AllSets, Key, Set, Sets};
use crate::family::Family;
use crate::predicate::{Field, Predicate, number};

/// Elements of a set that are written out.
const MOST: usize = 65_536;

impl Sets {
    /// The packets of a family that are in a set, looked up by these ends of theirs. `None` where that cannot be said: it
    /// is not known, is too large, changes by itself, or asks for what no field has.
    pub(crate) fn predicate(
        &self,
        name: &str,
        by_source: &[bool],
        return_nomatch: bool,
        family: Family,
    ) -> Option<Predicate> {
        self.look(|sets| {
            let looked = Looked { sets, by_source, return_nomatch, family };
            looked.predicate(sets.index(name)?, true)
        })
    }
}

struct Looked<'s> {
    sets: &'s AllSets,
    by_source: &'s [bool],
    return_nomatch: bool,
    family: Family,
}

/// Elements that hold packets, and elements that except them (`nomatch`).
type Group = (Vec<Predicate>, Vec<Predicate>);

impl Looked<'_> {
    fn predicate(&self, index: u32, may_be_list: bool) -> Option<Predicate> {
        let set = self.sets.sets.get(index as usize)?;
        if set.indeterminate || set.timeout.is_some() {
            return None;
        }
        if set.is_list() {
            let members = set.members.iter().map(|member| self.predicate(member.set, false));
            return may_be_list.then(|| members.collect::<Option<_>>().map(Predicate::Any))?;
        }
        let is_other = set.family.is_some_and(|family| family != self.family);
        if is_other || self.by_source.len() < set.kind.dims.len() {
            return Some(Predicate::NEVER);
        }
        self.elements(set)
    }

    fn elements(&self, set: &Set) -> Option<Predicate> {
        if set.store.len() > MOST || set.kind.fills_mac() {
            return None;
        }
        let only_exceptions = self.return_nomatch && set.kind.has(Dim::Net);
        let mut groups: BTreeMap<(u8, u8), Group> = BTreeMap::new();
        let mut all: Vec<(Key, Entry)> = set.store.iter().collect();
        all.sort_unstable_by_key(|(key, _)| key.0);
        for (key, entry) in all {
            let (holds, excepts) = groups.entry((key.prefix(0), key.prefix(1))).or_default();
            let element = self.element(set, &key)?;
            let holds = if entry.nomatch == only_exceptions { holds } else { excepts };
            holds.push(element);
        }
        let all = groups.into_values().fold(Predicate::NEVER, |before, (mut holds, excepts)| {
            if !excepts.is_empty() {
                let others = Predicate::Not(Box::new(Predicate::Any(excepts)));
                holds.push(Predicate::All(vec![before, others]));
            } else if before != Predicate::NEVER {
                holds.push(before);
            }
            Predicate::Any(holds)
        });
        Some(all)
    }

    fn element(&self, set: &Set, key: &Key) -> Option<Predicate> {
        let mut addresses = 0;
        let mut all = Vec::new();
        for (dim, source) in set.kind.dims.iter().zip(self.by_source) {
            all.push(match dim {
                Dim::Ip | Dim::Net => {
                    let prefix = (*dim == Dim::Net).then(|| key.prefix(addresses));
                    let address = self.address(set, key.addr(addresses), prefix, *source);
                    addresses += 1;
                    address
                }
                Dim::Port => self.port(key, *source),
                Dim::BarePort => {
                    let protocols =
                        [TCP, UDP].map(|one| Predicate::is(Field::Protocol, one.into()));
                    let port = Predicate::is(port_field(*source), key.port().into());
                    let protocol = Predicate::Any(protocols.into());
                    Predicate::of_header([protocol, port])
                }
                Dim::Mac if *source => {
                    let mac = number(&key.mac());
                    Predicate::All(vec![Predicate::HasMac, Predicate::is(Field::SourceMac, mac)])
                }
                Dim::Mark => {
                    let (value, mask) = (key.rest().into(), set.markmask.into());
                    Predicate::Masked { field: Field::Mark, value, mask }
                }
                Dim::Mac | Dim::Iface | Dim::Set => return None,
            });
        }
        Some(Predicate::All(all))
    }

    fn address(&self, set: &Set, address: [u8; 16], prefix: Option<u8>, source: bool) -> Predicate {
        let len = self.family.addr_len();
        let field = if source { Field::Source } else { Field::Destination };
        let bits = len as u32 * 8;
        let full = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
        let host_bits = prefix.map_or(0, |prefix| bits.saturating_sub(prefix.into()));
        let mut mask = full & u128::MAX.checked_shl(host_bits).unwrap_or(0);
        if let Some(own) = &set.mask {
            mask &= number(&own[..len]);
        }
        Predicate::Masked { field, value: number(&address[..len]), mask }
    }

    /// Protocol and port: an ICMP type and code stand for one, and other protocols have none.
    fn port(&self, key: &Key, source: bool) -> Predicate {
        let (protocol, port) = (key.protocol(), key.port());
        let same = Predicate::is(Field::Protocol, protocol.into());
        match protocol {
            TCP | UDP | UDPLITE | SCTP => {
                Predicate::of_header([same, Predicate::is(port_field(source), port.into())])
            }
            ICMP | ICMPV6 => {
                let [kind, code] = port.to_be_bytes().map(u128::from);
                let kind = Predicate::is(Field::IcmpType, kind);
                Predicate::of_header([same, kind, Predicate::is(Field::IcmpCode, code)])
            }
            _ if port != 0 => Predicate::NEVER,
            _ if self.family == Family::Ipv6 => Predicate::of_header([same]),
            _ => {
                let whole = vec![Predicate::HasHeader, Predicate::LaterFragment];
                Predicate::All(vec![same, Predicate::Any(whole)])
            }
        }
    }
}

fn port_field(source: bool) -> Field {
    if source { Field::SourcePort } else { Field::DestinationPort }
}
