//! [`Sequence`]: what a rule does after its first comparisons, as a target: its statements one after the other, and what
//! it ends with.

use super::nat::{Nat, Resolved};
use super::queue::Queue;
use super::{Act, Next, reject, verdict};
use crate::lower::load::lookup::Lookup;
use rules::Transit;
use rules::ext::{Alters, Answer, Course, Effect, Printer, Target};
use rules::ipset::Sets;
use rules::model::Family;
use rules::nat::{Gives, Mapping, Translation};

/// How a rule ends.
#[derive(Debug)]
pub(crate) enum End {
    /// With a verdict, or with the next rule.
    Verdict(Effect),
    /// With what a map gives.
    Map(Lookup<Effect>),
    /// The packet is dropped, and its sender sent this.
    Reject(Answer),
    /// The packet's flow is translated.
    Nat(Box<Nat>),
    /// A program gets the packet.
    Queue(Queue),
    /// With something that is not evaluated, of which these may come, or anything.
    Unevaluated(Box<str>, Option<Box<[Effect]>>),
}

/// The statements of a rule.
#[derive(Debug)]
pub(crate) struct Sequence {
    acts: Box<[Box<dyn Act>]>,
    end: End,
    /// Family of the packets.
    family: Family,
    /// Chains that it may lead to.
    chains: Box<[u32]>,
}

impl Sequence {
    /// Makes it of statements and the end of a rule.
    pub(crate) fn new(acts: Vec<Box<dyn Act>>, end: End, family: Family) -> Self {
        let chains = match &end {
            End::Verdict(effect) => verdict::chains([*effect]),
            End::Map(lookup) => verdict::chains(lookup.map.data.iter().copied()),
            End::Unevaluated(_, effects) => verdict::chains(effects.iter().flatten().copied()),
            End::Reject(_) | End::Nat(_) | End::Queue(_) => Box::default(),
        };
        Self { acts: acts.into(), end, family, chains }
    }

    fn finish(&self, transit: &mut Transit<'_, '_>) -> Effect {
        match &self.end {
            End::Verdict(effect) => *effect,
            End::Map(lookup) => verdict::of_map(lookup, transit),
            End::Reject(answer) => {
                if *answer == Answer::Reset {
                    reject::reset(transit);
                }
                Effect::Reject
            }
            End::Nat(nat) => match nat.resolve(transit) {
                Resolved::To(_) | Resolved::Nothing => Effect::Translate,
                Resolved::Ends => Effect::Continue,
                Resolved::Unknown => Effect::Unknown,
            },
            End::Queue(queue) => queue.apply(transit),
            End::Unevaluated(..) => Effect::Unknown,
        }
    }
}

impl End {
    /// Makes it of something that is not evaluated, of which anything may come.
    pub(crate) fn unevaluated(why: &str) -> Self {
        Self::Unevaluated(why.into(), None)
    }

    /// What the bytecode loads for it.
    pub(crate) fn bytecode(&self, show: &mut dyn FnMut(String)) {
        match self {
            Self::Map(lookup) => lookup.key.iter().for_each(|part| part.bytecode(show)),
            Self::Nat(nat) => nat.bytecode(show),
            _ => {}
        }
    }
}

impl Target for Sequence {
    /// The rule's own text says all.
    fn print(&self, _to: &mut Printer) {}

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let mut may_end = false;
        for act in &self.acts {
            match act.act(transit) {
                Next::On => {}
                Next::Ends => return Effect::Continue,
                Next::MayEnd => {
                    may_end = true;
                    transit.certain = false;
                }
            }
        }
        match self.finish(transit) {
            Effect::Continue => Effect::Continue,
            _ if may_end => Effect::Unknown,
            effect => effect,
        }
    }

    fn only_watches(&self) -> bool {
        matches!(self.end, End::Verdict(Effect::Continue)) && self.acts.iter().all(|a| a.watches())
    }

    fn couples_flows(&self, _sets: Option<&Sets>) -> bool {
        self.acts.iter().any(|act| act.couples())
    }

    fn leads_to(&self) -> &[u32] {
        &self.chains
    }

    fn possible(&self, transit: &Transit<'_, '_>) -> Option<Vec<Effect>> {
        let may_end = self.acts.iter().any(|act| act.may_end());
        let end = match &self.end {
            End::Verdict(effect) => vec![*effect],
            End::Map(lookup) => verdict::possible(lookup, transit),
            End::Unevaluated(_, effects) => effects.as_ref()?.to_vec(),
            End::Reject(_) | End::Nat(_) | End::Queue(_) => return None,
        };
        Some(end.into_iter().chain(may_end.then_some(Effect::Continue)).collect())
    }

    fn log_prefix(&self) -> Option<&str> {
        self.acts.iter().find_map(|act| act.log_prefix())
    }

    fn course(&self) -> Course {
        if !self.acts.iter().all(|act| act.watches()) {
            return Course::Depends;
        }
        match &self.end {
            End::Verdict(Effect::Continue) => Course::Passes(Alters::Nothing),
            End::Verdict(effect @ (Effect::Accept | Effect::Drop)) => Course::Ends(*effect),
            End::Reject(_) => Course::Ends(Effect::Reject),
            End::Nat(nat) if nat.mapping(self.family).is_some() => Course::Ends(Effect::Translate),
            _ => Course::Depends,
        }
    }

    fn untracks(&self) -> bool {
        self.acts.iter().any(|act| act.untracks())
    }

    fn retracks(&self) -> bool {
        self.acts.iter().any(|act| act.retracks())
    }

    fn tracks(&self) -> bool {
        let ends = match &self.end {
            // Of the other family's connections only their own rules have the kernel track them (`nft_nat_init`).
            End::Nat(nat) => !nat.passes_by(self.family),
            End::Map(lookup) => lookup.key.iter().any(|part| part.tracks()),
            _ => false,
        };
        ends || self.acts.iter().any(|act| act.tracks())
    }

    fn translates(&self) -> bool {
        matches!(&self.end, End::Nat(nat) if !nat.passes_by(self.family))
    }

    fn translation(&self, transit: &Transit<'_, '_>) -> Option<Translation> {
        match &self.end {
            End::Nat(nat) => match nat.resolve(transit) {
                Resolved::To(translation) => Some(translation),
                // What a map gives, if it has the key.
                Resolved::Unknown => Some(nat.somewhere()),
                Resolved::Nothing | Resolved::Ends => None,
            },
            _ => None,
        }
    }

    fn mapping(&self) -> Option<Mapping> {
        match &self.end {
            End::Nat(nat) => nat.mapping(self.family),
            _ => None,
        }
    }

    fn gives(&self) -> Gives {
        match &self.end {
            End::Nat(nat) => nat.gives(self.family),
            _ => Gives::Own,
        }
    }

    fn queues(&self) -> bool {
        matches!(self.end, End::Queue(_))
    }

    fn answer(&self) -> Option<Answer> {
        match &self.end {
            End::Reject(answer) => Some(*answer),
            _ => None,
        }
    }
}
