//! `ct count`: matches up to a number of connections that the rule has seen and that are still there, or with `over` more.
//!
//! A packet that is of no connection, and has no ports, is dropped. In family inet connections of IPv4 and of IPv6 count in one list,
//! but here each family has its own: once packets of both have asked, the answer is not known. Source: kernel
//! `net/netfilter/nft_connlimit.c`; the list is that of `-m connlimit`.

use rules::ext::{ListSort, ListUse, Match, Memory, NamedLists, Printer, count_all};
use rules::model::Family;
use rules::{Outcome, Transit};

/// A bound as a rule holds it.
#[derive(Debug, Clone)]
pub(crate) struct Count {
    limit: u32,
    over: bool,
    text: Box<str>,
    /// What rules for packets of two families share.
    shared: Option<Box<str>>,
}

impl Count {
    /// What the statement is named.
    pub(crate) const NAME: &str = "ct count";

    /// Makes it of the statement; `shared` names what rules for packets of two families share.
    pub(crate) fn new(limit: u32, over: bool, text: &str, shared: Option<Box<str>>) -> Self {
        Self { limit, over, text: text.into(), shared }
    }
}

impl Match for Count {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        let count = count_all(self.limit, self.over);
        Some(match &self.shared {
            Some(name) => Box::new(OfFamily { count, name: name.clone(), asked: None }),
            None => count,
        })
    }

    fn list(&self) -> Option<ListUse<'_>> {
        self.shared.as_ref().map(|name| ListUse { name, sort: ListSort::State })
    }

    fn tracks(&self) -> bool {
        true
    }
}

/// The count of one family's packets, and which families have asked, as a state that both share.
#[derive(Debug)]
struct OfFamily {
    count: Box<dyn Memory>,
    name: Box<str>,
    asked: Option<usize>,
}

impl OfFamily {
    /// Whether all packets that asked were of this family.
    fn is_alone(&mut self, family: Family, lists: &mut NamedLists) -> bool {
        let at = *self.asked.get_or_insert_with(|| lists.join_state(&self.name));
        let ask = |asked: &mut Vec<Family>| {
            if !asked.contains(&family) {
                asked.push(family);
            }
            asked.len() == 1
        };
        lists.state(at, Vec::new, ask).unwrap_or(false)
    }
}

impl Memory for OfFamily {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, lists: &mut NamedLists) -> Outcome {
        let said = self.count.evaluate(transit, lists);
        let is_alone = self.is_alone(transit.family, lists);
        if is_alone { said } else { Outcome::MAYBE.or(Outcome::HOT_DROP) }
    }

    fn join(&mut self, lists: &mut NamedLists) {
        self.asked = Some(lists.join_state(&self.name));
    }

    fn remark(&self) -> Option<String> {
        self.count.remark()
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_counts_alone_until_packets_of_the_other_one_ask() {
        let mut lists = NamedLists::default();
        let of_one = || OfFamily { count: count_all(3, false), name: "c".into(), asked: None };
        let (mut four, mut six) = (of_one(), of_one());
        for _ in 0..2 {
            assert!(four.is_alone(Family::Ipv4, &mut lists));
        }
        assert!(!six.is_alone(Family::Ipv6, &mut lists));
        assert!(!four.is_alone(Family::Ipv4, &mut lists));
    }
}
