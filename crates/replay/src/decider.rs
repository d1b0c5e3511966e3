//! What decided about a packet, under any of the ends it can come to, and the place of it in the rules.

use access::list::Denied;
use dataplane::{Disposition, DropReason, Either, FinalVerdict, Skip, Why};
use host::{Host, Refused};
use packet::L3Fault;
use rules::eval::By;
use rules::model::Family;

use crate::rules_file::RulesFile;

/// What the path of a packet that left depends on if it may be a packet that arrived, which one is not known.
pub(crate) const UNRECORDED: &str = "whether the host made it or passed it on";

/// Gives the rules of a family.
type Files<'a, 'f> = &'a dyn Fn(Family) -> Option<&'f RulesFile>;

/// What decided about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decider {
    /// A rule or policy.
    Rules(Family, By),
    /// One of several; which one is not known.
    Either(Family, Either),
    /// Nothing that is known: the verdict is unknown, and depends on this first.
    DependsOn(Option<Why>),
    /// The kernel's stack, before any rule.
    Stack(L3Fault),
    /// Routing.
    Route(Refused),
    /// The time to live.
    Ttl,
    /// The MTU of the output link.
    TooBig,
    /// Connection tracking.
    Conntrack,
    /// Reassembly of fragments for the host.
    Reassembly,
    /// The access list.
    Denied(Denied),
    /// A chain of another ruleset of the host, by its index.
    Foreign(u16),
    /// The packet was not evaluated.
    Skipped(Skip),
    /// The packet's way has no chain.
    NoChain,
}

impl Decider {
    /// What decided; `why` is what the verdict depends on, where it is unknown.
    #[must_use]
    pub fn of(end: &Disposition, why: Option<Why>) -> Self {
        if let Some((family, either)) = end.family.zip(end.either) {
            return Self::Either(family, either);
        }
        let by = match end.verdict {
            FinalVerdict::Accept(by) => by,
            FinalVerdict::Reject(by) => Some(by),
            FinalVerdict::Drop(reason) => return Self::of_drop(end.family, reason),
            FinalVerdict::Unknown => return Self::DependsOn(why),
            FinalVerdict::Skip(skip) => return Self::Skipped(skip),
        };
        match (end.family, by) {
            (Some(family), Some(by)) => Self::Rules(family, by),
            _ => Self::NoChain,
        }
    }

    /// What dropped a packet.
    fn of_drop(family: Option<Family>, reason: DropReason) -> Self {
        let by = match reason {
            DropReason::Rule(at) => By::Rule(at),
            DropReason::HotDrop(at) => By::HotDrop(at),
            DropReason::Policy { table, chain } => By::Policy { table, chain },
            DropReason::Stack(fault) => return Self::Stack(fault),
            DropReason::Route(why) => return Self::Route(why),
            DropReason::Ttl => return Self::Ttl,
            DropReason::TooBig => return Self::TooBig,
            DropReason::Conntrack => return Self::Conntrack,
            DropReason::Reassembly => return Self::Reassembly,
            DropReason::Denied(why) => return Self::Denied(why),
            DropReason::Foreign(chain) => return Self::Foreign(chain),
        };
        family.map_or(Self::NoChain, |family| Self::Rules(family, by))
    }

    /// The rule or policy that it is, or that it depends on.
    #[must_use]
    pub fn rules(&self) -> Option<(Family, By)> {
        match *self {
            Self::Rules(family, by) => Some((family, by)),
            Self::DependsOn(Some(Why::Rule(family, at, _))) => Some((family, By::Rule(at))),
            _ => None,
        }
    }

    /// The place in the rules of a host; `file` gives the rules of a family.
    #[must_use]
    pub fn place<'f>(
        &self,
        host: &Host,
        file: impl Fn(Family) -> Option<&'f RulesFile>,
    ) -> DeciderPlace<'f> {
        self.place_in(host, &file)
    }

    fn place_in<'f>(&self, host: &Host, file: Files<'_, 'f>) -> DeciderPlace<'f> {
        match self {
            Self::Rules(family, by) => match file(*family) {
                Some(file) => DeciderPlace::of_rules(file, *by),
                None => DeciderPlace::words("a rule"),
            },
            Self::Either(family, either) => DeciderPlace::of_either(*family, *either, host, file),
            Self::DependsOn(None) => DeciderPlace::words("unknown"),
            Self::DependsOn(Some(Why::NotCaptured)) => {
                DeciderPlace::words("depends on a header not captured")
            }
            Self::DependsOn(Some(Why::Fragment)) => {
                DeciderPlace::words("depends on reassembly of fragments")
            }
            Self::DependsOn(Some(Why::Translation)) => {
                DeciderPlace::words("depends on a translation that is not known")
            }
            Self::DependsOn(Some(Why::Room)) => {
                DeciderPlace::words("depends on room in the table of connections (--ct-max)")
            }
            Self::DependsOn(Some(Why::Tracker)) => {
                DeciderPlace::words("depends on the kernel's tracker for DCCP (--kernel)")
            }
            Self::DependsOn(Some(Why::Way)) => {
                DeciderPlace::words("depends on whether it is for the host or goes on")
            }
            Self::DependsOn(Some(Why::Unrecorded)) => {
                DeciderPlace::words(&format!("depends on {UNRECORDED}"))
            }
            Self::DependsOn(Some(Why::Host(missing))) => {
                DeciderPlace::words(&format!("depends on where it goes: {}", missing.name()))
            }
            Self::DependsOn(Some(Why::Size)) => {
                DeciderPlace::words("depends on the size of its segments")
            }
            Self::DependsOn(Some(Why::Foreign(chain))) => {
                DeciderPlace::words(&format!("depends on {}", foreign_text(host, *chain)))
            }
            Self::DependsOn(Some(Why::Rule(family, at, cause))) => match file(*family) {
                Some(file) => DeciderPlace {
                    text: format!("depends on {}", file.cause_text(*at, *cause)),
                    ..DeciderPlace::of_rules(file, By::Rule(*at))
                },
                None => DeciderPlace::words("depends on a rule"),
            },
            Self::Stack(fault) => DeciderPlace::words(&format!("the kernel's stack: {fault}")),
            Self::Conntrack => DeciderPlace::words("connection tracking"),
            Self::Reassembly => DeciderPlace::words("reassembly of fragments"),
            Self::Foreign(chain) => DeciderPlace::words(&foreign_text(host, *chain)),
            Self::Denied(why) => DeciderPlace::words(&format!("the access list: {}", why.words())),
            Self::Route(why) => DeciderPlace::words(&format!("routing: {}", why.name())),
            Self::Ttl => DeciderPlace::words("time to live ran out"),
            Self::TooBig => DeciderPlace::words("too big for the link that it would leave by"),
            Self::Skipped(Skip::Family) => DeciderPlace::words("no rules for its family"),
            Self::Skipped(Skip::Second) => DeciderPlace::words("a second sighting of a packet"),
            Self::Skipped(Skip::Lower) => {
                DeciderPlace::words("a packet that the device above it shows, too")
            }
            Self::Skipped(Skip::LinkType) => DeciderPlace::words("link type not known"),
            Self::Skipped(Skip::OtherHost) => DeciderPlace::words("addressed to another host"),
            Self::Skipped(Skip::Fragment) => {
                DeciderPlace::words("a fragment that waited for others")
            }
            Self::NoChain => DeciderPlace::words("no chain on its way"),
        }
    }
}

/// A chain of another ruleset in words.
pub(crate) fn foreign_text(host: &Host, chain: u16) -> String {
    let chain = host.foreign.chains.get(usize::from(chain));
    chain.map_or_else(|| "another ruleset".to_owned(), ToString::to_string)
}

/// A decider in words, and where it stands if it stands in the rules.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct DeciderPlace<'f> {
    /// Table.
    pub table: Option<&'f str>,
    /// Chain.
    pub chain: Option<&'f str>,
    /// Number of the rule in the chain, from 1; none for a policy.
    pub number: Option<u32>,
    /// Line of the rules file, from 1; of a policy, that of its chain.
    pub line: Option<u32>,
    /// Canonical text of the rule, or words.
    pub text: String,
}

impl<'f> DeciderPlace<'f> {
    fn words(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Describes several that may have decided: their words, and what they have in common.
    fn of_either(family: Family, either: Either, host: &Host, file: Files<'_, 'f>) -> Self {
        let Either { first, last, others } = either;
        let [first, last] =
            [first, last].map(|reason| Decider::of_drop(Some(family), reason).place_in(host, file));
        let between = if others { ", another, or " } else { " or " };
        let text = format!("{}{between}{}", first.with_line(), last.with_line());
        let table = first.table.filter(|table| last.table == Some(table));
        let chain = first.chain.filter(|chain| table.is_some() && last.chain == Some(chain));
        Self { table, chain, number: None, line: None, text }
    }

    fn of_rules(file: &'f RulesFile, by: By) -> Self {
        let (table, chain, number) = match by {
            By::Rule(at) | By::HotDrop(at) => (at.table, at.chain, Some(file.number(at))),
            By::Policy { table, chain } => (table, chain, None),
        };
        let line = file.by_line(by);
        let table = &file.ruleset.tables[table as usize];
        Self {
            table: Some(file.ruleset.title(table)),
            chain: Some(&table.chains[chain as usize].name),
            number,
            // A built-in chain that the file does not declare has none.
            line: Some(file.line(line).1).filter(|line| *line > 0),
            text: file.by_text(by),
        }
    }

    /// `L12 -A …`, or the text alone.
    #[must_use]
    pub fn with_line(&self) -> String {
        match self.line {
            Some(line) => format!("L{line} {}", self.text),
            None => self.text.clone(),
        }
    }
}
