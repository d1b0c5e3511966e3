//! What an extension does: [`Match`] and [`Target`], as the walk asks them, and [`Memory`], the state of a match.

use std::fmt;
use std::net::IpAddr;

use super::kit::named_lists::{ListUse, NamedLists};
use super::kit::printer::Printer;
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

    /// Whether the match asks for the bridge ports that a packet enters and leaves through.
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

    /// Returns [`Self::predicate`] with the host's sets at hand.
    fn predicate_in(&self, _family: Family, _sets: &Sets) -> Option<Predicate> {
        self.predicate()
    }

    /// Whether the match asks for a set, which rules and time may change.
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

/// State of one match in one rule, private to a walker or shared by all workers; or a match that changes what it looks
/// at.
pub trait Memory: fmt::Debug + Send {
    /// What the match says about the next packet that reaches it; [`Transit::certain`] says whether it certainly does.
    /// `lists` are shared by rules that name them.
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, lists: &mut NamedLists) -> Outcome;

    /// Takes its place in the lists before the first packet, in the order of the rules.
    fn join(&mut self, _lists: &mut NamedLists) {}

    /// The state that its last answer rested on, as text for explanations.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Whether its answer for a packet depends on packets of other connections, with these sets if any.
    fn couples_flows(&self, _sets: Option<&Sets>) -> bool {
        true
    }

    /// Whether the kernel has it once, so that workers share it. Where it keeps nothing of packets itself, each has its
    /// own.
    fn is_one(&self) -> bool {
        true
    }

    /// Whether it remembers nothing of its own: a packet that may not have reached it leaves no doubt behind.
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

    /// Whether the target only logs or counts: nothing that happens to the packet depends on it.
    fn only_watches(&self) -> bool {
        false
    }

    /// The chains that [`Effect::Jump`] and [`Effect::Goto`] may name, each once.
    fn leads_to(&self) -> &[u32] {
        &[]
    }

    /// What may become of a packet whose effect is unknown, where it is one of these, each once, and the packet and its
    /// connection are as the target left them; `None` where it may be anything.
    fn possible(&self, _transit: &Transit<'_, '_>) -> Option<Vec<Effect>> {
        None
    }

    /// The prefix of the lines that it writes to a log, if it does.
    fn log_prefix(&self) -> Option<&str> {
        None
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

    /// Whether the target changes sets.
    fn changes_sets(&self) -> bool {
        false
    }

    /// Whether the host opens connections in the place of clients.
    fn proxies(&self) -> bool {
        false
    }

    /// Whether a program gets packets, which may change them.
    fn queues(&self) -> bool {
        false
    }

    /// The next hop that copies of packets go to, and the interface where the rule names it.
    fn copies_to(&self) -> Option<(IpAddr, &str)> {
        None
    }

    /// A rule with it, anywhere, makes the kernel track connections.
    fn tracks(&self) -> bool {
        false
    }

    /// Whether the target gives flows other addresses or ports.
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

    /// Whether the verdict on one connection's packets depends on other connections once it was applied, with these
    /// sets if any.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// With the next rule (`XT_CONTINUE`).
    Continue,
    /// Behind the rule that jumped to this chain; in a built-in chain, with its policy.
    Return,
    /// Into the chain of this index in the table, and back from its end.
    Jump(u32),
    /// Into the chain of this index in the table, whose end is this one's.
    Goto(u32),
    /// The packet leaves the table accepted.
    Accept,
    /// The packet leaves the table accepted, and its flow is translated as [`Target::translation`] says.
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
    /// The effect depends on the packet, or is not known.
    Depends,
}

/// What a target alters of packets that go on, as far as later tests may ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alters {
    /// Nothing.
    Nothing,
    /// Of the fields that a [`Predicate`] names, only what [`Target::changes`] says.
    Unnamed,
    /// The state of their connection, and nothing else that a [`Predicate`] names.
    State,
}

/// All that a match tests: that both ports of a header are in these ranges, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRanges {
    /// Protocol that the rule's own `-p` has to ask for.
    pub protocol: u8,
    /// Lowest and highest source port.
    pub source: (u16, u16),
    /// The destination ports, first and last.
    pub destination: (u16, u16),
}
