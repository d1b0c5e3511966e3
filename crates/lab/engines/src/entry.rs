//! What is known of one address: PNG and R in one place, since a config packet changes both.

use access::{Address, Config, RangeSet};

/// PNG and R of one address.
#[derive(Debug, Clone)]
pub(crate) struct Entry<A> {
    pub(crate) persona_non_grata: bool,
    pub(crate) accepts: RangeSet<A>,
}

impl<A: Address> Entry<A> {
    /// An address that no config packet named yet.
    pub(crate) fn new(default: bool) -> Self {
        Self { persona_non_grata: false, accepts: RangeSet::new(default) }
    }

    pub(crate) fn change(&mut self, config: &Config<A>) {
        self.persona_non_grata = config.persona_non_grata;
        self.accepts.set(config.begin, Some(config.end), config.accept);
    }

    /// The entry after a change of what may not be there yet.
    pub(crate) fn after(old: Option<&Self>, config: &Config<A>, default: bool) -> Self {
        let mut entry = old.cloned().unwrap_or_else(|| Self::new(default));
        entry.change(config);
        entry
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.accepts.bytes()
    }
}

/// The rule of the exercise, for entries of source and destination that may be absent.
pub(crate) fn permits<A: Address>(
    source: Option<&Entry<A>>,
    destination: Option<&Entry<A>>,
    address: A,
    default: bool,
) -> bool {
    !source.is_some_and(|entry| entry.persona_non_grata)
        && destination.map_or(default, |entry| entry.accepts.contains(address))
}
