//! Whether a packet is in a set, and what that changes.

use smallvec::SmallVec;

use super::look::{Looked, Miss};
use super::store::{Entry, Extra};
use super::{AllSets, Ifaces, Key, Set};
use crate::transit::Transit;

/// Deepest nesting of lists: a list holds sets, but never lists.
const MAX_NESTING: u32 = 1;

/// A test of an element's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CounterTest {
    /// Any value.
    Any,
    /// This one.
    Equal(u64),
    /// Any but this one.
    NotEqual(u64),
    /// Less.
    Less(u64),
    /// More.
    More(u64),
}

impl CounterTest {
    fn accepts(self, value: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Equal(wanted) => value == wanted,
            Self::NotEqual(wanted) => value != wanted,
            Self::Less(wanted) => value < wanted,
            Self::More(wanted) => value > wanted,
        }
    }
}

/// How a rule looks packets up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'q> {
    /// For each dimension: the source side of the packet, not the destination.
    pub(crate) by_source: &'q [bool],
    /// Exceptions match, and nothing else.
    pub(crate) return_nomatch: bool,
    /// Counters of elements found move.
    pub(crate) counts: bool,
    /// Counters in the members of a list move, too.
    pub(crate) counts_members: bool,
    /// Tests of packets and bytes.
    pub(crate) tests: [CounterTest; 2],
}

/// What a search found, and what will change by it.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Elements that count the packet.
    counted: SmallVec<[CounterOf; 4]>,
    /// An element without a MAC address, which the packet gives it.
    filled: Option<(u32, Key, [u8; 6])>,
    /// Mark and mask of the element found.
    pub(crate) mark: Option<(u32, u32)>,
}

impl Touched {
    /// Whether nothing changes.
    pub(super) fn is_nothing(&self) -> bool {
        self.counted.is_empty() && self.filled.is_none()
    }
}

/// Where an [`Extra`] is.
#[derive(Debug, Clone, Copy)]
enum CounterOf {
    Element { set: u32, extra: u32 },
    Member { set: u32, index: u32 },
}

/// The kernel's answer for one set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    No,
    Yes,
    /// An exception was found.
    Exception,
    Unknown,
}

impl AllSets {
    /// Whether the packet is in the set of this name; `None` if that is not known. What that changes goes
    /// to `touched`.
    pub(super) fn search(
        &self,
        name: &str,
        query: &Query<'_>,
        transit: &Transit<'_, '_>,
        touched: &mut Touched,
    ) -> Option<bool> {
        self.test(self.index(name)?, query, transit, touched, 0)
    }

    fn test(
        &self,
        index: u32,
        query: &Query<'_>,
        transit: &Transit<'_, '_>,
        touched: &mut Touched,
        depth: u32,
    ) -> Option<bool> {
        let set = &self.sets[index as usize];
        if set.indeterminate {
            return None;
        }
        let answer = match set.is_list() {
            true if depth < MAX_NESTING => self.test_list(index, query, transit, touched)?,
            true => return None,
            false => match set.look(transit, query.by_source) {
                Ok(looked) => {
                    Search { set, index, now: self.now(transit.time), query, transit, touched }
                        .run(&looked)
                }
                Err(Miss::No) => Answer::No,
                Err(Miss::Unknown) => Answer::Unknown,
            },
        };
        let only_exceptions = query.return_nomatch && set.kind.has(super::kind::Dim::Net);
        match answer {
            Answer::Unknown => None,
            Answer::No => Some(false),
            Answer::Yes => Some(!only_exceptions),
            Answer::Exception => Some(only_exceptions),
        }
    }

    /// The members in their order, up to the first that has the packet.
    fn test_list(
        &self,
        index: u32,
        query: &Query<'_>,
        transit: &Transit<'_, '_>,
        touched: &mut Touched,
    ) -> Option<Answer> {
        let list = &self.sets[index as usize];
        let inner = Query {
            counts: query.counts && query.counts_members,
            tests: [CounterTest::Any; 2],
            ..*query
        };
        let now = self.now(transit.time);
        for (number, member) in list.members.iter().enumerate() {
            if !self.test(member.set, &inner, transit, touched, 1)? {
                continue;
            }
            let place = CounterOf::Member { set: index, index: number as u32 };
            let mut search = Search { set: list, index, now, query, transit, touched };
            match search.carries(&member.extra, place) {
                Some(true) => return Some(Answer::Yes),
                Some(false) => {}
                None => return None,
            }
        }
        Some(Answer::No)
    }

    /// Does what a search found will change.
    pub(super) fn touch(&mut self, touched: &Touched, certain: bool, packet_len: u64) {
        for place in &touched.counted {
            let (CounterOf::Element { set, .. } | CounterOf::Member { set, .. }) = *place;
            let set = &mut self.sets[set as usize];
            set.indeterminate |= !certain;
            let extra = match *place {
                CounterOf::Element { extra, .. } => set.store.extra_mut(extra),
                CounterOf::Member { index, .. } => {
                    set.members.get_mut(index as usize).map(|member| &mut member.extra)
                }
            };
            if let Some(extra) = extra {
                extra.packets = extra.packets.wrapping_add(1);
                extra.bytes = extra.bytes.wrapping_add(packet_len);
            }
        }
        if let Some((set, key, mac)) = touched.filled {
            let set = &mut self.sets[set as usize];
            set.indeterminate |= !certain;
            set.macs.insert(key.first_word(), mac);
            // Its time begins now, and so do its counters.
            let entry = set.store.get(&key).map(|entry| entry.extra);
            if let Some(extra) = entry.and_then(|place| set.store.extra_mut(place)) {
                (extra.packets, extra.bytes) = (1, packet_len);
            }
        }
    }
}

/// A search of one set.
struct Search<'s, 't, 'p, 'b> {
    set: &'s Set,
    index: u32,
    now: Option<u64>,
    query: &'s Query<'s>,
    transit: &'t Transit<'p, 'b>,
    touched: &'t mut Touched,
}

impl Search<'_, '_, '_, '_> {
    fn run(&mut self, looked: &Looked<'_>) -> Answer {
        if self.set.kind.fills_mac() {
            return self.run_filling(looked);
        }
        let [first, second] = Set::nets(self.set.kind);
        match (first, second) {
            (false, false) => self.at(looked.key, looked).unwrap_or(Answer::No),
            (true, false) => self.networks(0, looked.key, looked).unwrap_or(Answer::No),
            (false, true) => self.networks(1, looked.key, looked).unwrap_or(Answer::No),
            (true, true) => self.pairs(looked).unwrap_or(Answer::No),
        }
    }

    /// Networks that hold an address, the smallest first.
    fn networks(&mut self, addr: usize, whole: Key, looked: &Looked<'_>) -> Option<Answer> {
        self.set.store.prefixes[addr].iter().find_map(|(bits, _)| {
            let mut key = whole;
            key.set_prefix(addr, *bits);
            self.at(key, looked)
        })
    }

    fn pairs(&mut self, looked: &Looked<'_>) -> Option<Answer> {
        self.set.store.prefixes[0].iter().find_map(|(bits, _)| {
            let mut key = looked.key;
            key.set_prefix(0, *bits);
            self.networks(1, key, looked)
        })
    }

    /// What the element of this key says; `None` to go on searching.
    fn at(&mut self, key: Key, looked: &Looked<'_>) -> Option<Answer> {
        match looked.iface {
            Some(name) => self.at_iface(key, name),
            None => self.entry(self.set.store.get(&key)?),
        }
    }

    fn entry(&mut self, entry: Entry) -> Option<Answer> {
        let extra = self.set.store.extra(entry);
        let place = CounterOf::Element { set: self.index, extra: entry.extra };
        match self.carries(&extra, place) {
            None => Some(Answer::Unknown),
            Some(false) => None,
            Some(true) if entry.nomatch => Some(Answer::Exception),
            Some(true) => Some(Answer::Yes),
        }
    }

    /// Elements of one network, each with an interface. Where there are some but none for this interface the
    /// kernel looks no further.
    fn at_iface(&mut self, key: Key, name: &str) -> Option<Answer> {
        let set = self.set;
        let all = *set.ifaces.networks.get(&key.without_rest())?;
        let shortest = if set.ifaces.has_wildcards { 1 } else { name.len() };
        let ends = (shortest..=name.len()).filter(|end| name.is_char_boundary(*end));
        let found: SmallVec<[Entry; 4]> = ends
            .flat_map(|end| {
                let number = set.ifaces.numbers.get(&name[..end]).copied();
                let whole =
                    number.filter(|_| end == name.len()).map(|n| Ifaces::word(n, false, false));
                let part = number.map(|n| Ifaces::word(n, false, true));
                whole.into_iter().chain(part)
            })
            .filter_map(|word| {
                let mut key = key;
                key.set_rest(word);
                set.store.get(&key)
            })
            .collect();
        match found.as_slice() {
            [] => Some(Answer::No),
            [one] => match self.entry(*one) {
                // Whether the kernel goes on then depends on the order of its buckets.
                None if all > 1 => Some(Answer::Unknown),
                answer => answer,
            },
            [one, others @ ..] => {
                let same = others.iter().all(|other| other.nomatch == one.nomatch);
                let plain = !set.has_extras() && same;
                if plain { self.entry(*one) } else { Some(Answer::Unknown) }
            }
        }
    }

    /// An address with or without a MAC address; one without takes the packet's.
    fn run_filling(&mut self, looked: &Looked<'_>) -> Answer {
        let Some(entry) = self.set.store.get(&looked.key) else { return Answer::No };
        match self.set.macs.get(&looked.key.first_word()) {
            Some(mac) if *mac == looked.mac => self.entry(entry).unwrap_or(Answer::No),
            Some(_) => Answer::No,
            None => {
                self.touched.filled = Some((self.index, looked.key, looked.mac));
                Answer::Yes
            }
        }
    }

    /// Whether what an element carries lets it match; `None` if that is not known.
    fn carries(&mut self, extra: &Extra, place: CounterOf) -> Option<bool> {
        if extra.expires != u64::MAX && self.now? > extra.expires {
            return Some(false);
        }
        if self.set.has_counters {
            let counts = u64::from(self.query.counts);
            let len = self.transit.packet.len() as u64;
            let packets = extra.packets.wrapping_add(counts);
            let bytes = extra.bytes.wrapping_add(len * counts);
            if self.query.counts {
                self.touched.counted.push(place);
            }
            let [of_packets, of_bytes] = self.query.tests;
            if !(of_packets.accepts(packets) && of_bytes.accepts(bytes)) {
                return Some(false);
            }
        }
        if self.set.has_marks {
            self.touched.mark = Some(extra.mark);
        }
        Some(true)
    }
}
