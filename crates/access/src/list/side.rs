//! [`Side`]: the list of one family, and why it denies a packet ([`Denied`]).

use crate::address::Address;
use crate::ranges::RangeSet;
use std::sync::Arc;

/// Why a packet is not permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Denied {
    /// The source is banned (persona non grata).
    Banned,
    /// The destination does not accept the source.
    NotAccepted,
}

impl Denied {
    /// As reports print it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Banned => "banned source",
            Self::NotAccepted => "source not accepted",
        }
    }
}

/// Bans and accepted sources of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side<A> {
    banned: RangeSet<A>,
    /// Destinations from this address on, up to the next entry, and the sources they accept, if not all.
    accepts: Vec<(A, Option<Arc<RangeSet<A>>>)>,
}

impl<A: Address> Default for Side<A> {
    fn default() -> Self {
        Self { banned: RangeSet::new(false), accepts: vec![(A::LOWEST, None)] }
    }
}

impl<A: Address> Side<A> {
    #[inline]
    pub(super) fn decide(&self, source: A, destination: A) -> Result<(), Denied> {
        if self.banned.contains(source) {
            return Err(Denied::Banned);
        }
        // The first entry begins at the lowest address.
        let at = self.accepts.partition_point(|(first, _)| *first <= destination) - 1;
        match &self.accepts[at].1 {
            Some(sources) if !sources.contains(source) => Err(Denied::NotAccepted),
            _ => Ok(()),
        }
    }

    /// Whether nobody is banned, and everybody accepts everybody.
    #[inline]
    pub(super) fn permits_all(&self) -> bool {
        self.banned == RangeSet::new(false) && matches!(self.accepts[..], [(_, None)])
    }

    /// How many ranges of sources are banned.
    pub(super) fn banned(&self) -> usize {
        self.banned.runs().count()
    }

    /// Runs of banned sources, as [`RangeSet::runs`].
    pub(super) fn banned_runs(&self) -> impl Iterator<Item = (A, Option<A>)> + '_ {
        self.banned.runs()
    }

    /// Ranges of destinations, each with the sources that it accepts, if not all.
    pub(super) fn accepting(
        &self,
    ) -> impl Iterator<Item = ((A, Option<A>), Option<&RangeSet<A>>)> + '_ {
        let ends = self.accepts.iter().skip(1).map(|(first, _)| Some(*first)).chain([None]);
        self.accepts
            .iter()
            .zip(ends)
            .map(|((first, sources), end)| ((*first, end), sources.as_deref()))
    }

    /// Bans sources or lifts their bans, in this order.
    pub(super) fn ban(&mut self, changes: impl Iterator<Item = ((A, A), bool)>) {
        let changes: Vec<_> =
            changes.map(|((first, last), ban)| (first, last.next(), ban)).collect();
        match changes[..] {
            [] => {}
            [(first, end, ban)] => self.banned.set(first, end, ban),
            _ => self.banned.set_all(&changes),
        }
    }

    /// Makes destinations accept sources, or not.
    pub(super) fn accept(&mut self, source: (A, A), destination: Option<(A, A)>, accept: bool) {
        let (from, to) = match destination {
            Some((first, last)) => {
                let from = self.split(first);
                (from, last.next().map_or(self.accepts.len(), |end| self.split(end)))
            }
            None => (0, self.accepts.len()),
        };
        for (_, sources) in &mut self.accepts[from..to] {
            let mut new = sources.as_deref().cloned().unwrap_or_else(|| RangeSet::new(true));
            new.set(source.0, source.1.next(), accept);
            *sources = (new != RangeSet::new(true)).then(|| Arc::new(new));
        }
        self.accepts.dedup_by(|later, earlier| later.1 == earlier.1);
    }

    /// Makes an entry begin at an address; its place.
    fn split(&mut self, address: A) -> usize {
        let at = self.accepts.partition_point(|(first, _)| *first < address);
        if self.accepts.get(at).is_none_or(|(first, _)| *first != address) {
            let sources = self.accepts[at - 1].1.clone();
            self.accepts.insert(at, (address, sources));
        }
        at
    }

    /// How many ranges of destinations differ.
    #[cfg(test)]
    pub(super) fn ranges(&self) -> usize {
        self.accepts.len()
    }
}
