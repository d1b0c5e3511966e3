//! Draws nftables rulesets, expression by expression, with the crafts that bring packets near them.
//!
//! A [`Part`] is a piece of a rule with the names of what it tries ([`Part::items`]); counters stand between parts,
//! so that for each item the kernel itself counts how often it was asked and how often it answered yes. Operands are
//! drawn near what packets hold. What nft refuses is taken out by whoever loads the text.
//! Source: nft(8) of 1.0.6.

mod compare;
mod concat;
pub mod field;
mod keys;
mod link;
mod nat;
mod options;
mod payload;
mod pick;
pub mod ruleset;
mod statements;

use std::fmt;

use super::Draw;
use super::draft::Draft;
use super::draw::{Craft, Piece};
use rules::model::Family;

/// Items of which tamis does not know the answer, or seldom: most rulesets have none, so that all other answers are exact.
const UNTOLD: [&str; 24] = [
    "ct count",
    "ct label",
    "fib oifname",
    "ip option",
    "meta day",
    "meta hour",
    "meta iifkind",
    "meta iiftype",
    "meta ipsec",
    "jhash",
    "meta oifkind",
    "meta oiftype",
    "meta pkttype set",
    "meta priority",
    "meta rtclassid",
    "meta sdif",
    "meta skgid",
    "meta skuid",
    "meta time",
    "numgen",
    "rt",
    "socket",
    "symhash",
    "vmap continue",
];

/// What counters say of a part of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A counter.
    Counter,
    /// Goes on if it answers yes.
    Test,
    /// Goes on always, or ends the rule.
    Statement,
}

/// A part of a rule.
#[derive(Clone)]
pub struct Part {
    /// Text and edit.
    pub piece: Piece,
    /// Names of what it tries.
    pub items: Vec<String>,
    /// What counters say of it.
    pub sort: Sort,
    /// Named sets that it reads: declared before the rules.
    pub sets: Vec<String>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.piece.text)
    }
}

impl Part {
    /// A counter.
    #[must_use]
    pub fn counter() -> Self {
        Self::of(Sort::Counter, &[], Piece::plain("counter"))
    }

    /// A part of a sort.
    #[must_use]
    pub fn of(sort: Sort, items: &[&str], piece: Piece) -> Self {
        let items = items.iter().map(|item| (*item).to_owned()).collect();
        Self { piece, items, sort, sets: Vec::new() }
    }

    /// A test.
    #[must_use]
    pub fn test(items: &[&str], piece: Piece) -> Self {
        Self::of(Sort::Test, items, piece)
    }

    /// A statement that asks nothing of a packet.
    #[must_use]
    pub fn statement(item: &str, text: impl Into<String>) -> Self {
        Self::of(Sort::Statement, &[item], Piece::plain(text))
    }
}

/// The family of the tables of a ruleset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFamily {
    /// `ip`.
    Ip,
    /// `ip6`.
    Ip6,
    /// `inet`.
    Inet,
}

impl TableFamily {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ip, Self::Ip6, Self::Inet];

    /// As nft names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Inet => "inet",
        }
    }

    /// Reads [`TableFamily::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// Whether packets of a family come by.
    #[must_use]
    pub fn sees(self, family: Family) -> bool {
        match self {
            Self::Ip => family != Family::Ipv6,
            Self::Ip6 => family == Family::Ipv6,
            Self::Inet => true,
        }
    }
}

/// The state of a ruleset being drawn.
#[derive(Debug)]
pub struct Drawing<'d> {
    /// Choices.
    pub draw: &'d mut Draw,
    /// Family of the table.
    pub family: TableFamily,
    /// Beginnings of the names of items that may be drawn; all of them if it is empty.
    pub only: &'d [String],
    /// Nothing is drawn of which tamis may not know the answer.
    pub told: bool,
    /// Declared sets of the table, by name.
    pub sets: Vec<(String, String)>,
    /// Hooks of the table's base chains.
    pub hooks: Vec<&'static str>,
    /// The header and the family that the rule being drawn is about, once a test has said so.
    pub about: About,
}

/// What a rule is about: nft refuses one about two protocols.
#[derive(Debug, Clone, Copy, Default)]
pub struct About {
    /// Item of a header after the network's.
    pub upper: Option<&'static str>,
    /// Family of the packets.
    pub family: Option<Family>,
    /// A header's field was compared with one value: nft 1.0.6 makes one test of two such, whatever stands between.
    pub plain: bool,
}

/// Whether an item is one of which tamis may not know the answer.
fn is_untold(item: &str) -> bool {
    UNTOLD.iter().any(|untold| item.starts_with(untold))
}

impl Drawing<'_> {
    /// Whether an item may be drawn.
    #[must_use]
    pub fn may(&self, item: &str) -> bool {
        if self.told && is_untold(item) {
            return false;
        }
        self.only.is_empty() || self.only.iter().any(|only| item.starts_with(only.as_str()))
    }

    /// An address of a family, whatever the packets' is.
    pub fn address(&mut self, family: Family) -> [u8; 16] {
        let kept = std::mem::replace(&mut self.draw.scene.family, family);
        let address = self.draw.address();
        self.draw.scene.family = kept;
        address
    }

    /// The edit, in a family of its own where the table sees both.
    pub fn in_family(&self, family: Option<Family>, craft: Craft) -> Craft {
        match family.filter(|_| self.family == TableFamily::Inet) {
            Some(family) => std::sync::Arc::new(move |p: &mut Draft| {
                p.scene.family = family;
                craft(p);
            }),
            None => craft,
        }
    }
}
