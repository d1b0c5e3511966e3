//! Concatenations, maps and verdict maps.

use std::sync::Arc;

use super::super::draw::{Craft, Piece};
use super::field::{Field, Kind};
use super::pick::is_untyped;
use super::{Drawing, Part, Sort};

/// An element of a concatenation: its text, and the edits that give a packet its values.
pub(super) struct Tuple {
    pub(super) text: String,
    pub(super) crafts: Vec<Craft>,
    /// Of each field its text, and the least and the greatest value of a number.
    places: Vec<(String, Option<(u128, u128)>)>,
}

impl Tuple {
    /// Whether nft refuses both in one map.
    fn meets(&self, other: &Self) -> bool {
        self.places.iter().zip(&other.places).all(|((text, span), (other, beside))| {
            let over = span.zip(*beside).is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1);
            over || text == other
        })
    }
}

pub(super) fn all(crafts: Vec<Craft>) -> Craft {
    Arc::new(move |p| crafts.iter().for_each(|craft| craft(p)))
}

impl Drawing<'_> {
    /// A test for membership of several fields together.
    pub(super) fn concatenation(&mut self, fields: &[Field]) -> Part {
        let intervals = self.draw.one_in(2);
        let (tuples, chosen) = self.tuples(fields, intervals);
        let texts: Vec<&str> = tuples.iter().map(|tuple| tuple.text.as_str()).collect();
        let elements = format!("{{ {} }}", texts.join(", "));
        let keys = names(fields);
        let op = if self.draw.one_in(4) { "!= " } else { "" };
        let craft = all(tuples[chosen].crafts.clone());
        let items = if intervals { "op interval concatenation" } else { "op concatenation" };
        if self.draw.one_in(2) {
            let text = format!("{keys} {op}{elements}");
            return Part::test(&[items], Piece { text, craft });
        }
        let flags = if intervals { "flags interval ; " } else { "" };
        let set = self.declare("set", &format!("typeof {keys} ; {flags}elements = {elements} ; "));
        let text = format!("{keys} {op}@{set}");
        let mut part = Part::test(&[items], Piece { text, craft });
        part.sets.push(set);
        part
    }

    pub(super) fn tuples(&mut self, fields: &[Field], intervals: bool) -> (Vec<Tuple>, usize) {
        let count = 1 + self.draw.rng.usize(..5);
        let mut tuples: Vec<Tuple> = Vec::new();
        for _ in 0..count {
            let tuple = self.tuple(fields, intervals);
            if !tuples.iter().any(|other| tuple.meets(other)) {
                tuples.push(tuple);
            }
        }
        let chosen = self.draw.rng.usize(..tuples.len());
        (tuples, chosen)
    }

    fn tuple(&mut self, fields: &[Field], intervals: bool) -> Tuple {
        let mut tuple = Tuple { text: String::new(), crafts: Vec::new(), places: Vec::new() };
        for field in fields {
            let element = self.element(*field, intervals);
            tuple.places.push((element.text.clone(), element.span));
            let (craft, value) = (field.craft, element.value);
            tuple.crafts.push(self.in_family(field.family, Arc::new(move |p| craft(p, value))));
            if !tuple.text.is_empty() {
                tuple.text += " . ";
            }
            tuple.text += &element.text;
        }
        tuple
    }

    /// A verdict map that ends its rule, and the chain that one of its elements jumps to. A key that it has not ends the
    /// rule as well.
    pub(super) fn vmap(&mut self, fields: &[Field], chains: &[usize]) -> (Part, Option<usize>) {
        let intervals = self.draw.one_in(2);
        let (tuples, chosen) = self.tuples(fields, intervals);
        let mut to = None;
        let mut pairs = Vec::new();
        for (index, tuple) in tuples.iter().enumerate() {
            let (verdict, chain) = self.element_verdict(chains);
            if index == chosen {
                to = chain;
            }
            pairs.push(format!("{} : {verdict}", tuple.text));
        }
        let part = self.vmap_of(Sort::Statement, fields, intervals, &pairs);
        let craft = all(tuples[chosen].crafts.clone());
        (Part { piece: Piece { craft, ..part.piece }, ..part }, to)
    }

    /// A verdict map all of whose elements let the rule go on: a test.
    pub(super) fn vmap_test(&mut self, fields: &[Field]) -> Part {
        let intervals = self.draw.one_in(2);
        let (tuples, chosen) = self.tuples(fields, intervals);
        let pairs = tuples.iter().map(|tuple| format!("{} : continue", tuple.text));
        let pairs: Vec<String> = pairs.collect();
        let part = self.vmap_of(Sort::Test, fields, intervals, &pairs);
        let craft = all(tuples[chosen].crafts.clone());
        Part { piece: Piece { craft, ..part.piece }, ..part }
    }

    fn vmap_of(&mut self, sort: Sort, fields: &[Field], intervals: bool, pairs: &[String]) -> Part {
        let item = match (sort, fields.len(), intervals) {
            (Sort::Test, ..) => "vmap continue",
            (_, 1, false) => "vmap",
            (_, 1, true) => "vmap interval",
            _ => "vmap concatenated",
        };
        let elements = format!("{{ {} }}", pairs.join(", "));
        let keys = names(fields);
        if self.draw.one_in(2) {
            return Part::of(sort, &[item], Piece::plain(format!("{keys} vmap {elements}")));
        }
        let flags = if intervals { "flags interval ; " } else { "" };
        let body = format!("typeof {keys} : verdict ; {flags}elements = {elements} ; ");
        let map = self.declare("map", &body);
        let mut part = Part::of(sort, &[item], Piece::plain(format!("{keys} vmap @{map}")));
        part.sets.push(map);
        part
    }

    fn element_verdict(&mut self, chains: &[usize]) -> (String, Option<usize>) {
        match self.draw.rng.u8(..8) {
            0 => ("drop".to_owned(), None),
            1 => ("accept".to_owned(), None),
            2 => ("return".to_owned(), None),
            choice if !chains.is_empty() => {
                let chain = self.draw.pick(chains);
                let word = if choice == 3 { "goto" } else { "jump" };
                (format!("{word} c{chain}"), Some(chain))
            }
            _ => ("return".to_owned(), None),
        }
    }

    /// A mark by a map: for a key that the map has not the rule ends.
    pub(super) fn mark_by_map(&mut self, field: Field) -> Part {
        let intervals = self.draw.one_in(2) && field.kind.bits().is_some();
        let (tuples, chosen) = self.tuples(&[field], intervals);
        let pairs: Vec<String> = tuples
            .iter()
            .map(|tuple| {
                let mark = self.draw.pick(&[0_u32, 1, 2, 0x10, 0xff00]);
                format!("{} : {mark:#x}", tuple.text)
            })
            .collect();
        let elements = format!("{{ {} }}", pairs.join(", "));
        let craft = all(tuples[chosen].crafts.clone());
        let items: &[&str] = if intervals { &["interval map"] } else { &["map"] };
        let name = field.name;
        if self.draw.one_in(2)
            || is_untyped(field)
            || matches!(field.kind, Kind::Words(_) | Kind::Flags(_))
        {
            let text = format!("meta mark set {name} map {elements}");
            return self.with_protocol(field, Part::test(items, Piece { text, craft }));
        }
        let flags = if intervals { "flags interval ; " } else { "" };
        let body = format!("typeof {name} : meta mark ; {flags}elements = {elements} ; ");
        let map = self.declare("map", &body);
        let mut part =
            Part::test(items, Piece { text: format!("meta mark set {name} map @{map}"), craft });
        part.sets.push(map);
        part
    }
}

fn names(fields: &[Field]) -> String {
    fields.iter().map(|field| field.name).collect::<Vec<_>>().join(" . ")
}
