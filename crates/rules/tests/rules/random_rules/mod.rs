//! Random small rulesets and random packets: the walk is compared with a naive one, its answers for packets that are
//! partly unknown with every way to complete them, and the text of the rules with itself.
//!
//! `made` has rules and packets as plain values with their text and bytes, `naive` evaluates them without the code
//! under test, `sound` and `printed` compare; `laid` compares layouts with the walk: here that of tamis.

mod laid;
mod made;
mod naive;
mod printed;
mod sound;

mod layouts {
    //! The layout that tamis walks, as the lab has all of them.

    use std::sync::Arc;

    use rules::Transit;
    use rules::eval::{Alive, Memories, Observer, Verdicts, run};
    use rules::layout::{Corrupt, Indexed, PackedChains, has_wide_addresses};
    use rules::model::{Family, Rule, Table};

    #[derive(Clone, Copy)]
    pub(super) struct Kind;

    pub(super) trait Layout {
        fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]);
        fn verify(&self) -> Result<(), Corrupt>;
    }

    #[derive(Debug)]
    pub(super) struct Laid(PackedChains);

    impl Kind {
        pub(super) const ALL: [Self; 1] = [Self];

        pub(super) fn name(self) -> &'static str {
            "packed_chain"
        }
    }

    impl Layout for Laid {
        fn splice(&mut self, chain: u32, at: usize, delete: usize, insert: &[Arc<Rule>]) {
            self.0.splice(chain, at, delete, insert);
        }

        fn verify(&self) -> Result<(), Corrupt> {
            self.0.verify()
        }
    }

    impl Laid {
        pub(super) fn encode(_: Kind, table: &Table, family: Family) -> Self {
            Self(PackedChains::encode(table, has_wide_addresses(family)))
        }

        /// Long chains have indexes from the first sweep on.
        pub(super) fn indexed(mut self) -> Self {
            self.0.index(Indexed::Always);
            self
        }

        pub(super) fn walk(
            &self,
            number: usize,
            transit: &mut Transit<'_, '_>,
            entry: Alive,
            memories: &mut Memories,
            observer: &mut impl Observer,
        ) -> Verdicts {
            run(Some(&&self.0), number as u32, transit, entry, memories, observer)
        }
    }
}
