//! Extensions: one file per match and per target, with all there is to it: options, checks, canonical
//! text, evaluation, tests. To add one, write its file in `matches/` or `targets/` and name its kind in [`MATCHES`] or
//! [`TARGETS`]; what several are made of is in `kit/`.

mod catalogue;
pub(crate) mod kit;
mod matches;
mod targets;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use catalogue::{
    MATCHES, Supported, TARGETS, find_implied, find_match, find_match_with, find_target,
    is_foreign_target, supported,
};
pub(crate) use matches::address_types;

pub use kit::args::{Args, Given, Opt};
pub use kit::buckets::TableConfig;
pub(crate) use kit::named_lists::Sort;
pub use kit::named_lists::{ListSort, ListUse, NamedLists, SharedLists};
pub use kit::opaque::{Opaque, OpaqueWord};
pub use kit::ports::PortRanges;
pub use kit::printer::Printer;

use self::kit::work::LONGEST;
use crate::error::What;
use crate::family::Family;
use crate::ipset::Sets;
use crate::nat::{Gives, Mapping, Translation};
use crate::outcome::Outcome;
use crate::predicate::{Change, Predicate};
use crate::transit::Transit;
use conntrack::States;

/// A parsed match: immutable, shared by every packet and thread.
pub trait Match: fmt::Debug + Send + Sync {
    /// Writes its options in canonical form.
    fn print(&self, to: &mut Printer);

    /// What it says about a packet. Kinds that are not evaluated keep this default.
    fn evaluate(&self, _transit: &Transit<'_, '_>) -> Outcome {
        Outcome::MAYBE
    }

    /// What a match that has a state says of a packet that the walk has asked it about, without a trace;
    /// `None` if nobody can tell any more.
    fn peek(&self, _transit: &Transit<'_, '_>) -> Option<Outcome> {
        None
    }

    /// A fresh state for a match that remembers earlier packets, such as `statistic --mode nth`.
    /// When there is one it is asked instead of [`Match::evaluate`].
    fn memory(&self) -> Option<Box<dyn Memory>> {
        None
    }

    /// Steps that asking it may take beyond that of its rule, for a packet of this length: the more bytes the more,
    /// one for every 64 that it looks at, or more where it is slow. A kind that looks at headers takes none.
    fn work(&self, _bytes: usize) -> u32 {
        0
    }

    /// The states that the connections of the packets have that it matches, if it tests nothing else.
    fn states(&self) -> Option<States> {
        None
    }

    /// A rule with it, anywhere, makes the kernel track connections.
    fn tracks(&self) -> bool {
        false
    }

    /// It asks by which ports of a bridge a packet comes and goes.
    fn asks_for_ports(&self) -> bool {
        false
    }

    /// What is not known where it cannot tell, if its name does not say that.
    fn asks_for(&self) -> Option<&'static str> {
        None
    }

    /// The names of the sets that it asks.
    fn sets(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The list that it shares with other rules.
    fn list(&self) -> Option<ListUse<'_>> {
        None
    }

    /// What it asks, as data, where that says all of it.
    fn predicate(&self) -> Option<Predicate> {
        None
    }

    /// The same where the host's sets are given.
    fn predicate_in(&self, _family: Family, _sets: &Sets) -> Option<Predicate> {
        self.predicate()
    }

    /// It asks for a set, which rules and time may change.
    fn asks_for_set(&self) -> bool {
        false
    }

    /// Asked twice about a packet that nothing changed in between, it says the same.
    fn repeats(&self) -> bool {
        self.memory().is_none()
    }

    /// The ports that it matches, if it tests nothing else of a header that is known in full.
    fn port_ranges(&self) -> Option<PortRanges> {
        None
    }

    /// The destination ports of all packets that it lets pass, as ranges with both ends, if it tests them.
    fn destinations(&self) -> Option<Vec<(u16, u16)>> {
        self.port_ranges().map(|ranges| vec![ranges.destination])
    }
}

/// State of one match in one rule, of whoever walks, or of all workers; or a match that changes what it looks at.
pub trait Memory: fmt::Debug + Send {
    /// What the match says about the next packet that reaches it; [`Transit::certain`] tells whether it
    /// certainly does. `lists` are those that rules share by name.
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, lists: &mut NamedLists) -> Outcome;

    /// Takes its place in the lists before the first packet, in the order of the rules.
    fn join(&mut self, _lists: &mut NamedLists) {}

    /// What it went by the last time, as text for explanations.
    fn remark(&self) -> Option<String> {
        None
    }

    /// What it says of a packet depends on those of other connections, with these sets if any.
    fn couples_flows(&self, _sets: Option<&Sets>) -> bool {
        true
    }

    /// The kernel has it once, so workers share it. Where it keeps nothing of packets itself, each has its own.
    fn is_one(&self) -> bool {
        true
    }

    /// It remembers nothing of its own: a packet that may not have reached it leaves no doubt behind.
    fn outlives_doubt(&self) -> bool {
        false
    }
}

/// A parsed target.
pub trait Target: fmt::Debug + Send + Sync {
    /// Writes its options in canonical form.
    fn print(&self, to: &mut Printer);

    /// Does what the target does to the packet and says how the walk goes on. Kinds that are not
    /// evaluated keep this default.
    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Unknown
    }

    /// It only logs or counts: nothing that happens to the packet depends on it.
    fn only_watches(&self) -> bool {
        false
    }

    /// What becomes of every packet that it is applied to, if that can be told without one.
    fn course(&self) -> Course {
        match (self.only_watches(), self.translates()) {
            (true, _) => Course::Passes(Alters::Nothing),
            (false, true) => Course::Ends(Effect::Translate),
            (false, false) => Course::Depends,
        }
    }

    /// What it changes of the fields that a [`Predicate`] names, where [`Course::Passes`] says that packets go on.
    fn changes(&self) -> Vec<Change> {
        Vec::new()
    }

    /// Packets that it is applied to are not tracked.
    fn untracks(&self) -> bool {
        false
    }

    /// Packets that it is applied to may be of other connections than they would be without it.
    fn retracks(&self) -> bool {
        false
    }

    /// What it gives the flows that it translates, where that is the same for all of them.
    fn mapping(&self) -> Option<Mapping> {
        None
    }

    /// It changes sets.
    fn changes_sets(&self) -> bool {
        false
    }

    /// Whether the host opens connections in the place of clients.
    fn proxies(&self) -> bool {
        false
    }

    /// A rule with it, anywhere, makes the kernel track connections.
    fn tracks(&self) -> bool {
        false
    }

    /// It gives flows other addresses or ports.
    fn translates(&self) -> bool {
        false
    }

    /// What it makes of the flow that the packet begins, where it answered [`Effect::Translate`].
    fn translation(&self, _transit: &Transit<'_, '_>) -> Option<Translation> {
        None
    }

    /// Which ports flows have that it translates.
    fn gives(&self) -> Gives {
        Gives::Own
    }

    /// The names of the sets that it changes or asks.
    fn sets(&self) -> Vec<&str> {
        Vec::new()
    }

    /// What the sender of a packet that it rejects is sent.
    fn answer(&self) -> Option<Answer> {
        None
    }

    /// The verdict on one connection's packets depends on those of others, once it was applied, with these sets if
    /// any.
    fn couples_flows(&self, _sets: Option<&Sets>) -> bool {
        false
    }
}

/// What the host sends back for a packet that it does not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// A TCP reset.
    Reset,
    /// An ICMP or ICMPv6 error, by its type and code.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
}

/// How a walk goes on after a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// With the next rule (`XT_CONTINUE`).
    Continue,
    /// Behind the rule that jumped to this chain; in a built-in chain, with its policy.
    Return,
    /// The packet leaves the table accepted.
    Accept,
    /// Likewise, and its flow is translated as [`Target::translation`] says.
    Translate,
    /// The packet is dropped.
    Drop,
    /// The packet is dropped and its sender told.
    Reject,
    /// The packet is accepted or dropped, nobody knows which. It does not go on in this table.
    Either,
    /// Nothing is known: it may go on, be accepted or be dropped, with its bytes changed.
    Unknown,
}

/// What becomes of packets under a target, whatever they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// All go on with the next rule.
    Passes(Alters),
    /// For all of them the walk ends, with this effect.
    Ends(Effect),
    /// It depends on the packet, or is not known.
    Depends,
}

/// What a target alters of packets that go on, as far as later tests may ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alters {
    /// Nothing.
    Nothing,
    /// Of what a [`Predicate`] names, only what [`Target::changes`] says.
    Unnamed,
    /// The state of their connection, and nothing else that a [`Predicate`] names.
    State,
}

/// What tamis does with an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Evaluated as the kernel does.
    Evaluated,
    /// Parsed and printed; what depends on it is unknown.
    Parsed,
}

/// A set of families, for the tables below.
pub type Families = &'static [Family];

/// IPv4 and IPv6.
pub const IP: Families = &[Family::Ipv4, Family::Ipv6];
/// IPv4 alone.
pub const V4: Families = &[Family::Ipv4];
/// IPv6 alone.
pub const V6: Families = &[Family::Ipv6];
/// ARP alone.
pub const ARP: Families = &[Family::Arp];
/// Bridges alone.
pub const BRIDGE: Families = &[Family::Bridge];

/// A kind of match: its name, its options and how to read it.
pub struct MatchKind {
    /// Name after `-m`, as printed.
    pub name: &'static str,
    /// Other names after `-m`.
    pub aliases: &'static [&'static str],
    /// Families that have it.
    pub families: Families,
    /// Protocol number whose `-p` loads it without `-m`.
    pub protocol: Option<u8>,
    /// Its options.
    pub options: &'static [Opt],
    /// Evaluated or only parsed.
    pub support: Support,
    /// Makes the match from its options.
    pub parse: fn(&Args<'_>) -> Result<Box<dyn Match>, What>,
}

impl fmt::Debug for MatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A kind of target.
pub struct TargetKind {
    /// Name after `-j`.
    pub name: &'static str,
    /// Families that have it.
    pub families: Families,
    /// Its options.
    pub options: &'static [Opt],
    /// Evaluated or only parsed.
    pub support: Support,
    /// Makes the target from its options.
    pub parse: fn(&Args<'_>) -> Result<Box<dyn Target>, What>,
}

impl fmt::Debug for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

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
    /// A match under a name; [`Self::memory`] is for whoever numbers the states.
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
