//! Extensions: one file per match and per target, with all there is to it: options, checks, canonical
//! text, evaluation, tests. To add one, write its file in `matches/` or `targets/` and name its kind in [`MATCHES`] or
//! [`TARGETS`]; what several are made of is in `kit/`.

mod catalogue;
mod extension;
pub(crate) mod kit;
mod matches;
mod misspelt;
mod targets;

use std::borrow::Cow;
use std::sync::Arc;

pub use catalogue::{
    MATCHES, Supported, TARGETS, find_implied, find_match, find_match_with, find_target, supported,
};
pub(crate) use matches::address_types;
pub(crate) use misspelt::{misspelt_match, misspelt_target};

pub use extension::{Alters, Answer, Course, Effect, Match, Memory, PortRanges, Target};
pub use kit::args::{
    ARP, Args, BRIDGE, Families, Given, IP, MatchKind, Opt, Support, TargetKind, V4, V6,
};
pub use kit::buckets::TableConfig;
pub(crate) use kit::named_lists::Sort;
pub use kit::named_lists::{ListSort, ListUse, NamedLists, SharedLists};
pub use kit::opaque::{Opaque, OpaqueWord};
pub use kit::printer::Printer;
pub use matches::connlimit::count_all;

use kit::work::LONGEST;

/// A match as a rule holds it; copies share what evaluates it.
#[derive(Debug, Clone)]
pub struct MatchUse {
    /// Name after `-m`, as printed.
    pub name: Cow<'static, str>,
    /// Evaluated or only parsed.
    pub support: Support,
    /// Index of its state in [`crate::eval::Memories`], if it has one.
    pub memory: Option<u32>,
    /// Asking it takes more than the step of its rule: [`Match::work`].
    pub works: bool,
    /// What evaluates and prints it.
    pub body: Arc<dyn Match>,
}

impl MatchUse {
    /// Returns a match under a name; [`Self::memory`] is set when the states are numbered.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, support: Support, body: Box<dyn Match>) -> Self {
        let works = body.work(LONGEST) > 0;
        Self { name: name.into(), support, memory: None, works, body: body.into() }
    }
}

/// A target as a rule holds it; copies share what applies it.
#[derive(Debug, Clone)]
pub struct TargetUse {
    /// Name after `-j`, as printed.
    pub name: Cow<'static, str>,
    /// Evaluated or only parsed.
    pub support: Support,
    /// What applies and prints it.
    pub body: Arc<dyn Target>,
}
