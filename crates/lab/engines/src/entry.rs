//! What is known of one address: PNG and R in one place, since a config packet changes both.

use std::marker::PhantomData;

use crate::{Address, Config};
use access::RangeSet;

/// R of one address, in whatever form.
pub trait Accepts<A>: Clone + Send + Sync + 'static {
    /// All sources, or none.
    fn new(default: bool) -> Self;

    /// Whether it has a source.
    fn contains(&self, source: A) -> bool;

    /// Puts the sources from `begin` to before `end` in, or takes them out.
    fn set(&mut self, begin: A, end: A, member: bool);

    /// Bytes beside itself.
    fn bytes(&self) -> usize;
}

impl<A: Address> Accepts<A> for RangeSet<A> {
    fn new(default: bool) -> Self {
        Self::new(default)
    }

    #[inline]
    fn contains(&self, source: A) -> bool {
        self.contains(source)
    }

    fn set(&mut self, begin: A, end: A, member: bool) {
        self.set(begin, Some(end), member);
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

/// PNG and R of one address.
#[derive(Debug, Clone)]
pub(crate) struct Entry<A, R = RangeSet<A>> {
    pub(crate) persona_non_grata: bool,
    pub(crate) accepts: R,
    address: PhantomData<A>,
}

impl<A: Address, R: Accepts<A>> Entry<A, R> {
    /// An address that no config packet named yet.
    pub(crate) fn new(default: bool) -> Self {
        Self { persona_non_grata: false, accepts: R::new(default), address: PhantomData }
    }

    pub(crate) fn change(&mut self, config: &Config<A>) {
        self.persona_non_grata = config.persona_non_grata;
        self.accepts.set(config.begin, config.end, config.accept);
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
pub(crate) fn permits<A: Address, R: Accepts<A>>(
    source: Option<&Entry<A, R>>,
    destination: Option<&Entry<A, R>>,
    address: A,
    default: bool,
) -> bool {
    !source.is_some_and(|entry| entry.persona_non_grata)
        && destination.map_or(default, |entry| entry.accepts.contains(address))
}
