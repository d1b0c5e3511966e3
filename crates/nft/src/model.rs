//! A ruleset as nf_tables holds it: tables, with their chains, rules, sets and named objects, in their order.

pub use crate::family::{Family, Position};

use crate::expr::{Element, Expr};
use crate::json::Json;
use crate::stmt::{Limit, Quota, Stmt, Synproxy};
use crate::types::Ty;

/// A ruleset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ruleset {
    /// Tables in the order of the listing.
    pub tables: Vec<Table>,
    /// Top-level objects of JSON that this release does not know.
    pub unknown: Vec<Json>,
}

impl Ruleset {
    /// Finds a set whose elements a terse listing (`-t`) left out: a constant set that a rule reads, but empty.
    pub fn terse(&self) -> Option<&str> {
        self.empty_sets().find(|set| set.flags & 1 == 1).map(|set| &*set.name)
    }

    /// Iterates over sets that rules read, and that have no elements.
    pub fn empty_sets(&self) -> impl Iterator<Item = &Set> {
        let read = |table: &Table, name: &str| {
            let stmts =
                table.chains.iter().flat_map(|chain| &chain.rules).flat_map(|rule| &rule.stmts);
            stmts.into_iter().any(|stmt| match stmt {
                Stmt::Compare(compare) => {
                    matches!(&compare.right, Expr::Named(set) if **set == *name)
                }
                Stmt::Vmap(_, Expr::Named(set)) => **set == *name,
                _ => false,
            })
        };
        let sets =
            self.tables.iter().flat_map(|table| table.sets.iter().map(move |set| (table, set)));
        let empty = sets.filter(|(_, set)| set.elements.is_empty());
        empty.filter(move |(table, set)| read(table, &set.name)).map(|(_, set)| set)
    }

    /// Finds a table.
    pub fn table(&self, family: Family, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.family == family && &*table.name == name)
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Family.
    pub family: Family,
    /// Name.
    pub name: Box<str>,
    /// Handle, if the listing has it.
    pub handle: Option<u64>,
    /// `dormant`, `owner`, `persist`.
    pub flags: Vec<Box<str>>,
    /// Comment.
    pub comment: Option<Box<str>>,
    /// Named objects.
    pub objects: Vec<Object>,
    /// Sets and maps.
    pub sets: Vec<Set>,
    /// Flowtables.
    pub flowtables: Vec<Flowtable>,
    /// Chains.
    pub chains: Vec<Chain>,
}

impl Table {
    /// Makes an empty table.
    pub fn new(family: Family, name: &str) -> Self {
        Self {
            family,
            name: name.into(),
            handle: None,
            flags: Vec::new(),
            comment: None,
            objects: Vec::new(),
            sets: Vec::new(),
            flowtables: Vec::new(),
            chains: Vec::new(),
        }
    }
}

/// What a base chain is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// `filter`, `nat` or `route`.
    pub kind: Box<str>,
    /// `prerouting`, `input`, …
    pub hook: Box<str>,
    /// Priority.
    pub priority: i32,
    /// Whether a packet that no rule decides is dropped.
    pub drop: bool,
    /// Devices of `ingress` and `egress`.
    pub devices: Vec<Box<str>>,
}

/// A chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// Name.
    pub name: Box<str>,
    /// Handle, if the listing has it.
    pub handle: Option<u64>,
    /// Comment.
    pub comment: Option<Box<str>>,
    /// What a base chain is attached to.
    pub attached: Option<Attached>,
    /// Rules.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Handle, if the listing has it.
    pub handle: Option<u64>,
    /// Comment.
    pub comment: Option<Box<str>>,
    /// What it does, in order.
    pub stmts: Vec<Stmt>,
    /// Where its text began.
    pub position: Position,
}

/// Rules are equal if they do the same, wherever they stand.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        (self.handle, &self.comment, &self.stmts) == (other.handle, &other.comment, &other.stmts)
    }
}

/// What the elements of a set are.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyType {
    /// Types by name, several of a concatenation.
    Types(Vec<Ty>),
    /// The type that an expression has.
    Of(Expr),
}

impl KeyType {
    /// Returns the types, of a concatenation all of them.
    pub fn types(&self) -> Vec<Ty> {
        match self {
            Self::Types(types) => types.clone(),
            Self::Of(expr) => expr.types(),
        }
    }
}

/// A named set, map or verdict map.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// Name.
    pub name: Box<str>,
    /// Handle, if the listing has it.
    pub handle: Option<u64>,
    /// Comment.
    pub comment: Option<Box<str>>,
    /// Type of its keys.
    pub key: KeyType,
    /// Type of what a map gives; `interval` data with `interval` before it.
    pub data: Option<KeyType>,
    /// Flags: a bit for each of [`SET_FLAGS`].
    pub flags: u8,
    /// Life of elements in milliseconds.
    pub timeout: Option<u128>,
    /// Time between two collections of expired elements, in milliseconds.
    pub gc_interval: Option<u128>,
    /// Most elements.
    pub size: Option<u32>,
    /// Whether it is kept small rather than fast.
    pub memory: bool,
    /// Whether neighbouring intervals become one.
    pub auto_merge: bool,
    /// What every element counts or limits.
    pub stmts: Vec<Stmt>,
    /// Elements.
    pub elements: Vec<Element>,
}

/// Flags of sets.
pub const SET_FLAGS: [&str; 4] = ["constant", "interval", "timeout", "dynamic"];

/// The order in which text lists a set's flags.
pub const SET_FLAGS_IN_TEXT: [usize; 4] = [0, 3, 1, 2];

/// A flowtable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flowtable {
    /// Name.
    pub name: Box<str>,
    /// Handle, if the listing has it.
    pub handle: Option<u64>,
    /// `ingress`.
    pub hook: Box<str>,
    /// Priority.
    pub priority: i32,
    /// Devices.
    pub devices: Vec<Box<str>>,
    /// Whether devices do the work.
    pub offload: bool,
    /// Whether packets and bytes are counted.
    pub counter: bool,
}

/// A named object.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Name.
    pub name: Box<str>,
    /// Handle, if the listing has it.
    pub handle: Option<u64>,
    /// Comment.
    pub comment: Option<Box<str>>,
    /// What it is.
    pub body: Body,
}

/// What a named object is.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Packets and bytes.
    Counter(Option<(u64, u64)>),
    /// A quota.
    Quota(Quota),
    /// A limit.
    Limit(Limit),
    /// `ct helper`: the helper, its protocol, its family.
    Helper(Box<str>, Box<str>, Box<str>),
    /// `ct timeout`: protocol, family, states with their seconds.
    Timeout(Box<str>, Box<str>, Vec<(Box<str>, u32)>),
    /// `ct expectation`: protocol, port, milliseconds, most, family.
    Expectation(Box<str>, u32, u64, u32, Box<str>),
    /// A synproxy.
    Synproxy(Synproxy),
    /// A label of SELinux.
    Secmark(Box<str>),
    /// A tunnel: its options, as JSON has them.
    Tunnel(Json),
}

impl Body {
    /// Whether the kernel tracks connections from when it is there on, used or not.
    #[must_use]
    pub fn tracks(&self) -> bool {
        match self {
            Self::Helper(..) | Self::Timeout(..) | Self::Expectation(..) | Self::Synproxy(_) => {
                true
            }
            Self::Counter(_)
            | Self::Quota(_)
            | Self::Limit(_)
            | Self::Secmark(_)
            | Self::Tunnel(_) => false,
        }
    }

    /// Returns the kind's name, as JSON has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Counter(_) => "counter",
            Self::Quota(_) => "quota",
            Self::Limit(_) => "limit",
            Self::Helper(..) => "ct helper",
            Self::Timeout(..) => "ct timeout",
            Self::Expectation(..) => "ct expectation",
            Self::Synproxy(_) => "synproxy",
            Self::Secmark(_) => "secmark",
            Self::Tunnel(_) => "tunnel",
        }
    }
}

/// Priorities with names: the name, its number, its number in family bridge.
const PRIORITIES: [(&str, i32, Option<i32>); 7] = [
    ("raw", -300, None),
    ("mangle", -150, None),
    ("dstnat", -100, Some(-300)),
    ("filter", 0, Some(-200)),
    ("security", 50, None),
    ("srcnat", 100, Some(300)),
    ("out", i32::MAX, Some(100)),
];

/// Reads the name of a priority.
pub fn priority(name: &str, family: Family) -> Option<i32> {
    let found = PRIORITIES.iter().find(|priority| priority.0 == name)?;
    if family == Family::Bridge { found.2 } else { Some(found.1).filter(|of| *of != i32::MAX) }
}

/// Spells a priority: by the name that is at most 10 away.
pub fn print_priority(value: i32, family: Family, hook: &str) -> String {
    for (name, _, _) in &PRIORITIES {
        let usable = match *name {
            "dstnat" => matches!(hook, "prerouting" | "output"),
            "srcnat" => matches!(hook, "postrouting" | "input"),
            "out" => hook == "output",
            "filter" => true,
            _ => !matches!(family, Family::Netdev | Family::Arp) && family != Family::Bridge,
        };
        let Some(base) = priority(name, family).filter(|_| usable) else { continue };
        let apart = i64::from(value) - i64::from(base);
        if (-10..=10).contains(&apart) {
            return match apart {
                0 => (*name).to_owned(),
                _ if apart > 0 => format!("{name} + {apart}"),
                _ => format!("{name} - {}", -apart),
            };
        }
    }
    value.to_string()
}
