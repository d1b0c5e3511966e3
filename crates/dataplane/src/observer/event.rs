//! [`Event`]: an observer's calls as values, for bindings and callers that want one function instead of many.

use conntrack::{Edit, Side, States};
use packet::Packet;
use rules::eval::{self, Alive, Cause, RuleRef};
use rules::ext::Memory;
use rules::model::{Family, Hook};
use rules::nat::Translated;
use rules::{Iface, KnownFlow, Outcome, Transit};

use super::Observer;
use crate::disposition::Why;
use crate::routing::path::Path;

/// What a packet passes, in its order. Borrowed values are valid for the call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'e> {
    /// [`Observer::starts`].
    Starts {
        /// The family of the rules that the packet walks.
        family: Family,
        /// The packet's path through the host.
        path: Path,
        /// The packet's input interface.
        input: Iface<'e>,
        /// The packet's output interface.
        output: Iface<'e>,
    },
    /// [`Observer::enters`].
    Enters {
        /// Index of the table.
        table: u32,
        /// Index of its base chain, if it has one there.
        chain: Option<u32>,
        /// The hook.
        hook: Hook,
    },
    /// [`eval::Observer::asked`].
    Asked {
        /// The rule.
        at: RuleRef,
        /// Number of the match in the rule, from 0.
        index: usize,
        /// The match's answer.
        outcome: Outcome,
    },
    /// [`eval::Observer::remembered`].
    Remembered {
        /// The rule.
        at: RuleRef,
        /// The state of the match that was asked.
        memory: &'e dyn Memory,
    },
    /// [`eval::Observer::rule`].
    Rule {
        /// The rule.
        at: RuleRef,
        /// The rule's answer.
        outcome: Outcome,
        /// How surely the packet reached the rule.
        alive: Alive,
    },
    /// [`eval::Observer::hit`].
    Hit {
        /// The rule.
        at: RuleRef,
        /// Whether its counters move.
        certain: bool,
        /// The bytes that they move by, from the network header on.
        bytes: usize,
    },
    /// [`eval::Observer::policy`].
    Policy {
        /// Index of the table.
        table: u32,
        /// Index of the chain.
        chain: u32,
        /// Whether its counters move.
        certain: bool,
        /// The bytes that they move by, from the network header on.
        bytes: usize,
    },
    /// [`eval::Observer::unknown`].
    Unknown {
        /// The rule.
        at: RuleRef,
        /// Why it is not known whether it matched.
        cause: Cause,
    },
    /// [`Observer::ttl`].
    Ttl(Option<u8>),
    /// [`Observer::tracked`].
    Tracked {
        /// The states that the packet's connection may be in.
        states: States,
        /// The connection.
        flow: KnownFlow<'e>,
    },
    /// [`Observer::translated`].
    Translated {
        /// The end that is translated.
        side: Side,
        /// The new address and port.
        to: Translated,
    },
    /// [`Observer::edited`].
    Edited {
        /// The frame before the edit.
        frame: &'e [u8],
        /// The bytes written.
        edit: &'e Edit,
    },
    /// [`Observer::rerouted`].
    Rerouted {
        /// The packet's path before.
        from: Path,
        /// The packet's path now.
        to: Path,
        /// The packet's input interface.
        input: Iface<'e>,
        /// The packet's output interface now.
        output: Iface<'e>,
    },
    /// [`Observer::leaves`].
    Leaves {
        /// The frame, as captured and rewritten.
        frame: &'e [u8],
    },
    /// [`Observer::settled`].
    Settled {
        /// The packet's connection.
        flow: KnownFlow<'e>,
    },
    /// [`Observer::taken`].
    Taken(States),
    /// [`Observer::depends_on`].
    DependsOn(Why),
}

/// The observer that gives a function every event.
#[derive(Debug, Clone, Copy)]
pub struct Events<F>(pub F);

impl<F: FnMut(Event<'_>)> eval::Observer for Events<F> {
    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, _: &Transit<'_, '_>) {
        (self.0)(Event::Rule { at, outcome, alive });
    }

    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        (self.0)(Event::Asked { at, index, outcome });
    }

    fn remembered(&mut self, at: RuleRef, memory: &dyn Memory) {
        (self.0)(Event::Remembered { at, memory });
    }

    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        (self.0)(Event::Hit { at, certain, bytes: transit.packet.len() });
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        (self.0)(Event::Policy { table, chain, certain, bytes: transit.packet.len() });
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        (self.0)(Event::Unknown { at, cause });
    }
}

impl<F: FnMut(Event<'_>)> Observer for Events<F> {
    fn starts(&mut self, family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        (self.0)(Event::Starts { family, path, input, output });
    }

    fn enters(&mut self, table: u32, chain: Option<u32>, hook: Hook) {
        (self.0)(Event::Enters { table, chain, hook });
    }

    fn ttl(&mut self, left: Option<u8>) {
        (self.0)(Event::Ttl(left));
    }

    fn tracked(&mut self, view: &conntrack::CtView, flow: KnownFlow<'_>) {
        (self.0)(Event::Tracked { states: view.states, flow });
    }

    fn translated(&mut self, side: Side, to: Translated) {
        (self.0)(Event::Translated { side, to });
    }

    fn edited(&mut self, packet: &Packet<'_>, edit: &Edit) {
        (self.0)(Event::Edited { frame: packet.frame(), edit });
    }

    fn rerouted(&mut self, from: Path, to: Path, input: Iface<'_>, output: Iface<'_>) {
        (self.0)(Event::Rerouted { from, to, input, output });
    }

    fn leaves(&mut self, packet: &Packet<'_>) {
        (self.0)(Event::Leaves { frame: packet.frame() });
    }

    fn settled(&mut self, flow: KnownFlow<'_>) {
        (self.0)(Event::Settled { flow });
    }

    fn taken(&mut self, states: States) {
        (self.0)(Event::Taken(states));
    }

    fn depends_on(&mut self, why: Why) {
        (self.0)(Event::DependsOn(why));
    }
}
