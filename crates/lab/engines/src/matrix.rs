//! `matrix`: a bit for each pair of source and destination, a reader-writer lock for each column. The
//! second study's fastest table.
//!
//! A column belongs to a destination: its bits are R, in words of its own that no other column shares, and
//! beside them is PNG of that address, so that lifting a ban brings R back. (The study keeps PNG in the
//! bits, where lifting a ban cannot know what R was.) The address space is laid out at once, and one that
//! does not fit is refused.
//!
//! Concurrency: a reader holds the columns of source and destination for reading, by index; a writer one.
//! [`AsPublished`] reads them one after the other; the checker catches it.
//!
//! Linearization of [`Atomic`]: while the locks are held; no bit that is read can change in between.

use super::pause::between_steps;
use super::sync::RwLock;
use crate::span::{masks, within};
use crate::{Address, Config, Engine, TooLarge};

/// The most addresses: 65,536 make 512 MiB.
pub const MOST: usize = 1 << 16;

/// Bits of one destination, and whether it may not send.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) persona_non_grata: bool,
    pub(crate) bits: Box<[u64]>,
}

impl Column {
    pub(crate) fn new(addresses: usize, default: bool) -> Self {
        // Zeroed pages are not touched until they are used; set ones are.
        let word = if default { u64::MAX } else { 0 };
        Self { persona_non_grata: false, bits: vec![word; addresses.div_ceil(64)].into() }
    }

    #[inline]
    pub(crate) fn accepts(&self, source: usize) -> bool {
        self.bits[source / 64] >> (source % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn change<A: Address>(&mut self, config: &Config<A>, addresses: usize) {
        self.persona_non_grata = config.persona_non_grata;
        let (begin, end) = within(config, addresses);
        for (word, mask) in masks(begin, end) {
            let bits = &mut self.bits[word];
            *bits = if config.accept { *bits | mask } else { *bits & !mask };
        }
    }
}

/// Refuses a space that is too large.
pub(crate) fn fitting(addresses: Option<usize>, most: usize) -> Result<usize, TooLarge> {
    addresses.filter(|&found| found <= most).ok_or(TooLarge { most, found: addresses })
}

/// The columns, each under its lock; addresses beyond the space are as never configured.
#[derive(Debug)]
struct Columns {
    default: bool,
    columns: Box<[RwLock<Column>]>,
}

impl Columns {
    fn new(addresses: Option<usize>, default: bool) -> Result<Self, TooLarge> {
        let addresses = fitting(addresses, MOST)?;
        let column = |_| RwLock::new(Column::new(addresses, default));
        Ok(Self { default, columns: (0..addresses).map(column).collect() })
    }

    fn number<A: Address>(&self, address: A) -> Option<usize> {
        address.index().filter(|&index| index < self.columns.len())
    }

    fn update<A: Address>(&self, config: &Config<A>) {
        if let Some(at) = self.number(config.address) {
            self.columns[at].write().change(config, self.columns.len());
        }
    }

    fn persona_non_grata(&self, source: Option<usize>) -> bool {
        source.is_some_and(|source| self.columns[source].read().persona_non_grata)
    }

    fn accepts(&self, destination: Option<usize>, source: Option<usize>) -> bool {
        let (Some(destination), Some(source)) = (destination, source) else { return self.default };
        self.columns[destination].read().accepts(source)
    }

    fn bytes(&self) -> usize {
        let words = self.columns.len().div_ceil(64);
        self.columns.len() * (size_of::<RwLock<Column>>() + words * 8)
    }
}

/// Both columns under their locks.
#[derive(Debug)]
pub struct Atomic(Columns);

impl Atomic {
    /// A matrix of the addresses below `addresses`, accepting all sources or none.
    ///
    /// # Errors
    /// The space is not bounded, or larger than [`MOST`].
    pub fn new(addresses: Option<usize>, default: bool) -> Result<Self, TooLarge> {
        Columns::new(addresses, default).map(Self)
    }
}

impl<A: Address> Engine<A> for Atomic {
    fn decide(&self, source: A, destination: A) -> bool {
        let Columns { columns, .. } = &self.0;
        let (from, to) = (self.0.number(source), self.0.number(destination));
        match (from, to) {
            (Some(from), Some(to)) if from == to => {
                let column = columns[from].read();
                !column.persona_non_grata && column.accepts(from)
            }
            (Some(from), Some(to)) => {
                let low = columns[from.min(to)].read();
                let high = columns[from.max(to)].read();
                let (source, destination) = if from < to { (&low, &high) } else { (&high, &low) };
                !source.persona_non_grata && destination.accepts(from)
            }
            (from, to) => !self.0.persona_non_grata(from) && self.0.accepts(to, from),
        }
    }

    fn update(&self, config: &Config<A>) {
        self.0.update(config);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// One column after the other, as the study has it.
#[derive(Debug)]
pub struct AsPublished(Columns);

impl AsPublished {
    /// See [`Atomic::new`].
    ///
    /// # Errors
    /// The space is not bounded, or larger than [`MOST`].
    pub fn new(addresses: Option<usize>, default: bool) -> Result<Self, TooLarge> {
        Columns::new(addresses, default).map(Self)
    }
}

impl<A: Address> Engine<A> for AsPublished {
    fn decide(&self, source: A, destination: A) -> bool {
        let (from, to) = (self.0.number(source), self.0.number(destination));
        if self.0.persona_non_grata(from) {
            return false;
        }
        between_steps();
        self.0.accepts(to, from)
    }

    fn update(&self, config: &Config<A>) {
        self.0.update(config);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn spaces_that_do_not_fit_are_refused() {
        let error = Atomic::new(None, true).unwrap_err();
        assert_eq!(error, TooLarge { most: MOST, found: None });
        assert!(Atomic::new(Some(MOST + 1), true).is_err());
        assert_eq!(
            AsPublished::new(Some(1 << 30), true).unwrap_err().to_string(),
            "expected addresses below 65536, found addresses below 1073741824"
        );
    }

    #[test]
    fn lifting_a_ban_brings_the_range_back() {
        let matrix = Atomic::new(Some(100), false).unwrap();
        let config = |png| Config::<u32> {
            address: 7,
            persona_non_grata: png,
            accept: true,
            begin: 0,
            end: 10,
        };
        matrix.update(&config(false));
        assert!(matrix.decide(7u32, 7));
        matrix.update(&config(true));
        assert!(!matrix.decide(7u32, 7));
        matrix.update(&Config { begin: 0, end: 0, ..config(false) });
        assert!(matrix.decide(7u32, 7));
    }
}
