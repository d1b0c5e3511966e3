//! [`Index`]: finds which rules of a long chain may match a packet, without reading the others.
//!
//! Rules are looked up by what they ask of a packet's header: bits of both addresses, the protocol, ports, interfaces. What is
//! found is asked as a sweep asks it, so an index decides nothing. A chain has one only if that pays: it is made once the
//! rules that were swept are many times its own, and only if looking rules up costs less than sweeping them.
//!
//! Contract: from any rule on, the first rule that does more than not to match or to count is what a sweep finds, too, and the
//! same rules before it are counted. A packet of which something is not known that rules ask for is swept.
//! Memory and time of an index are linear in the rules.

mod form;
mod groups;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use self::groups::Groups;
use super::code::{self, Asks};
use crate::eval::Key;

/// Rules of the shortest chain that may have an index.
pub(crate) const LONG: usize = 16;
/// How many times its rules a chain is swept before it gets an index.
const PAYS: u64 = 32;
/// Rules that are swept while one is asked that was looked up.
const SWEPT: usize = 2;

/// When chains get indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indexed {
    /// Once that pays.
    #[default]
    WhenItPays,
    /// At the first sweep, whatever it costs: to compare.
    Always,
}

/// A chain's index, once it pays.
#[derive(Debug, Default)]
pub(crate) struct Lazy {
    when: Indexed,
    swept: AtomicU64,
    index: OnceLock<Option<Index>>,
}

impl Lazy {
    pub(crate) fn new(when: Indexed) -> Self {
        Self { when, ..Self::default() }
    }

    /// The index, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Index> {
        self.index.get()?.as_ref()
    }

    /// Counts rules that were swept; makes the index of a chain, given the number of its rules and their words, when they are many.
    #[cold]
    pub(crate) fn count<'w>(
        &self,
        swept: u32,
        rules: usize,
        segments: impl Fn() -> Vec<&'w [u64]>,
        is_v6: bool,
    ) {
        if self.index.get().is_some() {
            return;
        }
        let all = self.swept.fetch_add(swept.into(), Ordering::Relaxed) + u64::from(swept);
        if self.when == Indexed::Always || all >= PAYS * rules as u64 {
            self.index.get_or_init(|| {
                let index = Index::of(&segments(), is_v6);
                (self.when == Indexed::Always || index.pays()).then_some(index)
            });
        }
    }
}

/// The rules of a chain, to be looked up.
#[derive(Debug)]
pub(crate) struct Index {
    places: Box<[Place]>,
    /// The numbers of the segments' first rules.
    firsts: Box<[u32]>,
    /// Rules that do more than count, or of which the words do not say all.
    stops: Groups,
    /// Rules that only count.
    counts: Groups,
    has_interfaces: bool,
    /// A bit for each code of a protocol whose ports rules ask for.
    ports_of: u64,
}

/// Where a rule stands: its segment, and the first of its words there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) word: u32,
}

impl Index {
    /// Makes the index of a chain of these words, segment by segment.
    fn of(segments: &[&[u64]], is_v6: bool) -> Self {
        let (mut places, mut firsts) = (Vec::new(), Vec::new());
        let (mut stops, mut counts) = (Vec::new(), Vec::new());
        let (mut has_interfaces, mut ports_of) = (false, 0);
        for (segment, number) in segments.iter().zip(0..) {
            firsts.push(places.len() as u32);
            let mut word = 0;
            for words in code::each(segment) {
                let asks = Asks::of(words);
                has_interfaces |= asks.has_interfaces;
                ports_of |= if asks.has_ports { 1 << asks.protocol } else { 0 };
                let group = if asks.counts { &mut counts } else { &mut stops };
                group.push(places.len() as u32);
                places.push(Place { segment: number, word });
                word += words.len() as u32;
            }
        }
        let asks = |number: u32| {
            let place: &Place = &places[number as usize];
            Asks::of(code::rule_at(segments[place.segment as usize], place.word))
        };
        let [stops, counts] = [stops, counts].map(|rules| Groups::of(&rules, asks, is_v6));
        let (places, firsts) = (places.into(), firsts.into());
        Self { places, firsts, stops, counts, has_interfaces, ports_of }
    }

    /// Whether it costs less than a sweep.
    fn pays(&self) -> bool {
        SWEPT * (self.stops.cost() + self.counts.cost()) < self.places.len()
    }

    /// Reads what rules are looked up by; `None` if something is not known of it.
    #[inline]
    pub(crate) fn read(&self, key: &Key<'_>) -> Option<Asks> {
        Asks::answered(key, self.has_interfaces, |protocol| self.ports_of >> protocol & 1 == 1)
    }

    /// The first rule from this number on for which `ask` has an answer.
    #[inline]
    pub(crate) fn first<T>(
        &self,
        packet: &Asks,
        from: u32,
        mut ask: impl FnMut(Place) -> Option<T>,
    ) -> Option<(u32, T)> {
        self.stops.first(packet, from, |number| ask(self.place(number)?))
    }

    /// Hands over rules of these numbers that only count, and may match.
    #[inline]
    pub(crate) fn each(&self, packet: &Asks, numbers: (u32, u32), mut see: impl FnMut(Place)) {
        self.counts
            .each(packet, numbers, |number| self.place(number).into_iter().for_each(&mut see));
    }

    /// Number of rules.
    pub(crate) fn len(&self) -> u32 {
        self.places.len() as u32
    }

    /// The number of a segment's first rule.
    #[inline]
    pub(crate) fn first_of(&self, segment: u32) -> u32 {
        self.firsts.get(segment as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn place(&self, number: u32) -> Option<Place> {
        self.places.get(number as usize).copied()
    }
}
