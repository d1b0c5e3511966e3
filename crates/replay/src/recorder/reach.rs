//! [`Ends`]: off the end of which chains packets fell.
//!
//! A chain is walked from its first rule on, so what was reached of it is known by the last rule that hit, and by
//! this: no rule needs to be told of packets that passed it.

use rules::model::Ruleset;

/// How surely packets fell off the ends of the chains of a ruleset.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    /// For each table, the place of its first chain.
    tables: Vec<usize>,
    chains: Vec<End>,
}

/// Whether packets fell off one end: for certain, and maybe.
#[derive(Debug, Clone, Copy, Default)]
struct End {
    certain: bool,
    maybe: bool,
}

impl Ends {
    pub(super) fn of(ruleset: &Ruleset) -> Self {
        let mut chains = 0;
        let tables = ruleset.tables.iter().map(|table| {
            let first = chains;
            chains += table.chains.len();
            first
        });
        let tables = tables.collect();
        Self { tables, chains: vec![End::default(); chains] }
    }

    /// A packet fell off.
    #[inline]
    pub(super) fn note(&mut self, table: u32, chain: u32, certain: bool) {
        let Some(first) = self.tables.get(table as usize) else { return };
        if let Some(end) = self.chains.get_mut(first + chain as usize) {
            end.certain |= certain;
            end.maybe |= !certain;
        }
    }

    /// Whether some packet fell off the end of a chain for certain, and whether one may have.
    pub(crate) fn at(&self, table: usize, chain: usize) -> (bool, bool) {
        let end = self.tables.get(table).and_then(|first| self.chains.get(first + chain));
        end.map_or((false, false), |end| (end.certain, end.certain || end.maybe))
    }

    /// What others saw, too.
    pub(super) fn merge(&mut self, other: &Self) {
        let Self { chains, tables: _ } = other;
        for (ours, theirs) in self.chains.iter_mut().zip(chains) {
            ours.certain |= theirs.certain;
            ours.maybe |= theirs.maybe;
        }
    }
}
