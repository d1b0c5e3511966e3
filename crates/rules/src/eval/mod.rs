//! The reference walk: one packet through one built-in chain of one table, rule by rule.
//!
//! It is an abstract walk over what is possible. At each rule the packet is certainly there, maybe there,
//! or gone. A rule that terminates and matches maybe adds its verdict to the set, and the walk goes on;
//! a jump that is maybe taken is walked as well. So the result can only err towards unknown. Without
//! anything unknown it is the kernel's walk.
//!
//! Contract: no allocation while chains nest no deeper than usual; the stack of chains is bounded by their
//! number because loops are refused on load; a walk of more than [`MAX_STEPS`] rules is given up as unknown.
//!
//! Source: kernel `ipt_do_table`, `ip6t_do_table`.

mod header;
mod memories;
mod tests_of;
mod verdicts;

pub use memories::Memories;
pub use tests_of::{Test, tests_of};
pub use verdicts::{By, Verdict, Verdicts};

use header::Key;
use smallvec::SmallVec;

use crate::ext::Effect;
use crate::model::{Action, Chain, Hook, Policy, Rule, Ruleset, Table};
use crate::outcome::Outcome;
use crate::transit::{Mark, Transit};

/// Rules that one walk may evaluate. Chains that jump to each other twice over make walks exponential in
/// the text; the kernel would spin for them.
pub const MAX_STEPS: u32 = 1 << 22;

/// A rule by its place in [`Ruleset::tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleRef {
    /// Index of the table.
    pub table: u32,
    /// Index of the chain in the table.
    pub chain: u32,
    /// Index of the rule in the chain.
    pub rule: u32,
}

/// Why the answer of a rule is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The input interface is not known.
    Input,
    /// The output interface is not known.
    Output,
    /// Header bytes are not known: not captured, or rewritten by a target that is not evaluated.
    Bytes,
    /// The match of this index.
    Match(u16),
    /// The target.
    Target,
    /// The walk was given up after [`MAX_STEPS`] rules.
    Steps,
}

/// How surely a packet is at a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alive {
    /// It is.
    Certain,
    /// It may be.
    Maybe,
    /// It is not.
    Gone,
}

/// Sees a walk. Every method does nothing by default, so that a live walk pays for none.
pub trait Observer {
    /// A rule was evaluated, with the packet as its matches saw it.
    #[inline]
    fn rule(&mut self, _at: RuleRef, _outcome: Outcome, _alive: Alive, _transit: &Transit<'_, '_>) {
    }

    /// The match of this index in the rule was asked; those behind a plain no are not.
    #[inline]
    fn asked(&mut self, _at: RuleRef, _index: usize, _outcome: Outcome) {}

    /// A rule matched: for certain, or maybe. `packets` counters move by the certain ones.
    #[inline]
    fn hit(&mut self, _at: RuleRef, _certain: bool, _transit: &Transit<'_, '_>) {}

    /// The packet fell off a built-in chain, for certain or maybe.
    #[inline]
    fn policy(&mut self, _table: u32, _chain: u32, _certain: bool, _transit: &Transit<'_, '_>) {}

    /// A rule that can change what becomes of the packet could not tell.
    #[inline]
    fn unknown(&mut self, _at: RuleRef, _cause: Cause) {}
}

/// Walks the built-in chain at the packet's hook. `entry` says how surely the packet gets there. The
/// returned verdicts are those of this table alone; a table without a chain at the hook accepts.
pub fn walk(
    ruleset: &Ruleset,
    table: usize,
    transit: &mut Transit<'_, '_>,
    entry: Alive,
    memories: &mut Memories,
    observer: &mut impl Observer,
) -> Verdicts {
    let mut verdicts = Verdicts::default();
    let chain = ruleset.tables.get(table).and_then(|t| Some((t, t.base_chain(transit.hook)?)));
    let (Some((rules, chain)), true) = (chain, entry != Alive::Gone) else {
        if entry != Alive::Gone {
            verdicts.add(Verdict::Accept, None);
        }
        return verdicts;
    };
    let number = table as u32;
    let key = Key::of(transit);
    let mut walk =
        Walk { table: rules, number, verdicts, memories, observer, here: entry, key, steps: 0 };
    walk.run(chain, entry, transit);
    walk.verdicts
}

struct Walk<'r, 'o, O> {
    table: &'r Table,
    number: u32,
    verdicts: Verdicts,
    memories: &'o mut Memories,
    observer: &'o mut O,
    /// How surely the packet is at the next rule.
    here: Alive,
    key: Key,
    /// Rules evaluated so far.
    steps: u32,
}

/// The chains from the built-in one to the one being walked. Few rulesets nest deeper than what is kept in
/// place.
type Stack<'r> = SmallVec<[Frame<'r>; 8]>;

/// A chain being walked.
struct Frame<'r> {
    chain: &'r Chain,
    index: u32,
    next: u32,
    /// How surely the packet was at the rule that came here.
    before: Alive,
    entry: Entry,
    /// Some packet may have returned.
    returned: bool,
    /// Some packet may have met its end in here.
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Base,
    Jump { sure: bool },
    Goto { sure: bool },
}

impl<'r, O: Observer> Walk<'r, '_, O> {
    fn run(&mut self, base: usize, entry: Alive, transit: &mut Transit<'_, '_>) {
        let mut stack = Stack::new();
        stack.push(self.frame(base, entry, Entry::Base));
        while let Some(frame) = stack.last_mut() {
            let found = match self.here {
                Alive::Gone => None,
                _ => self.next_match(frame, transit),
            };
            match found {
                Some((rule, at, outcome)) => self.reached(rule, at, outcome, &mut stack, transit),
                None => self.leave(&mut stack, transit),
            }
            if self.steps > MAX_STEPS {
                return self.give_up(&stack);
            }
        }
    }

    /// The next rule of a chain that may match, and what it says.
    #[inline]
    fn next_match(
        &mut self,
        frame: &mut Frame<'r>,
        transit: &mut Transit<'_, '_>,
    ) -> Option<(&'r Rule, RuleRef, Outcome)> {
        let rules = &frame.chain.rules;
        while let Some(rule) = rules.get(frame.next as usize) {
            let at = RuleRef { table: self.number, chain: frame.index, rule: frame.next };
            frame.next += 1;
            self.steps += 1;
            if rule.header.as_ref().is_some_and(|header| header::refuses(header, &self.key)) {
                self.observer.rule(at, Outcome::NO, self.here, transit);
                continue;
            }
            let outcome = self.judge(rule, at, transit);
            if outcome != Outcome::NO {
                return Some((rule, at, outcome));
            }
        }
        None
    }

    /// What a rule says about the packet.
    fn judge(&mut self, rule: &Rule, at: RuleRef, transit: &mut Transit<'_, '_>) -> Outcome {
        let (mut outcome, mut cause) = match &rule.header {
            Some(header) => header::judge(header, &self.key, transit),
            None => (Outcome::YES, None),
        };
        for (index, used) in rule.matches.iter().enumerate() {
            if !outcome.goes_on() {
                break;
            }
            let answer = match used.memory {
                None => used.body.evaluate(transit),
                Some(slot) => {
                    let certain = self.here == Alive::Certain && outcome == Outcome::YES;
                    self.memories.evaluate(slot, certain, transit)
                }
            };
            self.observer.asked(at, index, answer);
            if !answer.is_known() && cause.is_none() {
                cause = Some(Cause::Match(index as u16));
            }
            outcome = outcome.and_then(|| answer);
        }
        self.observer.rule(at, outcome, self.here, transit);
        if let (Some(cause), false) = (cause, outcome.is_known())
            && (decides(&rule.action) || outcome.may_hot_drop())
        {
            self.observer.unknown(at, cause);
        }
        outcome
    }

    fn frame(&self, index: usize, before: Alive, entry: Entry) -> Frame<'r> {
        let chain = &self.table.chains[index];
        Frame { chain, index: index as u32, next: 0, before, entry, returned: false, ended: false }
    }

    /// A rule that may match: does what it says.
    fn reached(
        &mut self,
        rule: &'r Rule,
        at: RuleRef,
        outcome: Outcome,
        stack: &mut Stack<'r>,
        transit: &mut Transit<'_, '_>,
    ) {
        if outcome.may_hot_drop() {
            self.hot_drop(rule, at, outcome, stack, transit);
        }
        if outcome.may_match() {
            let sure = outcome == Outcome::YES;
            transit.certain = sure && self.here == Alive::Certain;
            self.observer.hit(at, transit.certain, transit);
            self.act(rule, at, sure, stack, transit);
        }
    }

    /// A match drops the packet. Where it matches at that, the rule counts it and a REJECT still tells
    /// the sender.
    fn hot_drop(
        &mut self,
        rule: &Rule,
        at: RuleRef,
        outcome: Outcome,
        stack: &mut Stack<'r>,
        transit: &mut Transit<'_, '_>,
    ) {
        let mut rejects = false;
        if outcome.may_hit_drop() {
            transit.certain = outcome.is_known() && self.here == Alive::Certain;
            self.observer.hit(at, transit.certain, transit);
            if let Action::Target(target) = &rule.action {
                rejects = target.body.apply(transit) == Effect::Reject;
                self.key = Key::of(transit);
            }
        }
        let sure = outcome.only_drops();
        if rejects {
            self.end(Verdict::Reject, Some(By::Rule(at)), sure, stack);
        }
        if !rejects || outcome != Outcome::HIT_DROP {
            self.end(Verdict::Drop, Some(By::HotDrop(at)), sure, stack);
        }
    }

    fn act(
        &mut self,
        rule: &'r Rule,
        at: RuleRef,
        sure: bool,
        stack: &mut Stack<'r>,
        transit: &mut Transit<'_, '_>,
    ) {
        let by = Some(By::Rule(at));
        match &rule.action {
            Action::None => {}
            Action::Accept => self.end(Verdict::Accept, by, sure, stack),
            Action::Drop => self.end(Verdict::Drop, by, sure, stack),
            Action::Return => {
                if let Some(frame) = stack.last_mut() {
                    frame.returned = true;
                }
                self.here = if sure { Alive::Gone } else { Alive::Maybe };
            }
            Action::Jump(to) => self.enter(*to, Entry::Jump { sure }, sure, stack),
            Action::Goto(to) => self.enter(*to, Entry::Goto { sure }, sure, stack),
            Action::Target(target) => {
                let effect = target.body.apply(transit);
                match effect {
                    Effect::Continue => {}
                    Effect::Accept => self.end(Verdict::Accept, by, sure, stack),
                    Effect::Drop => self.end(Verdict::Drop, by, sure, stack),
                    Effect::Reject => self.end(Verdict::Reject, by, sure, stack),
                    Effect::Unknown => self.anything(at, stack, transit),
                }
                self.key = Key::of(transit);
            }
        }
    }

    /// A verdict that ends the packet's walk through this table.
    fn end(&mut self, verdict: Verdict, by: Option<By>, sure: bool, stack: &mut [Frame<'r>]) {
        self.verdicts.add(verdict, by);
        if let Some(frame) = stack.last_mut() {
            frame.ended = true;
        }
        self.here = if sure { Alive::Gone } else { Alive::Maybe };
    }

    /// A target of which nothing is known.
    fn anything(&mut self, at: RuleRef, stack: &mut [Frame<'r>], transit: &mut Transit<'_, '_>) {
        self.observer.unknown(at, Cause::Target);
        self.end(Verdict::Accept, Some(By::Rule(at)), false, stack);
        self.end(Verdict::Drop, Some(By::Rule(at)), false, stack);
        transit.mark = Mark { value: 0, unknown: u32::MAX };
        transit.forget_net(0..transit.packet.len());
    }

    fn enter(&mut self, to: u32, entry: Entry, sure: bool, stack: &mut Stack<'r>) {
        stack.push(self.frame(to as usize, self.here, entry));
        if !sure {
            self.here = Alive::Maybe;
        }
    }

    /// Leaves the innermost chain: at its end, or because no packet is left in it.
    fn leave(&mut self, stack: &mut Stack<'r>, transit: &mut Transit<'_, '_>) {
        let Some(frame) = stack.pop() else { return };
        let leaves = frame.returned || self.here != Alive::Gone;
        let Some(caller) = stack.last_mut() else {
            return self.fall_off(&frame, leaves, transit);
        };
        caller.ended |= frame.ended;
        self.here = match frame.entry {
            Entry::Goto { sure } => {
                caller.returned |= leaves;
                if sure { Alive::Gone } else { Alive::Maybe }
            }
            // Whoever went in came out again.
            _ if leaves && !frame.ended => frame.before,
            Entry::Jump { sure: true } if !leaves => Alive::Gone,
            _ => Alive::Maybe,
        };
    }

    /// The policy of the built-in chain.
    fn fall_off(&mut self, frame: &Frame<'_>, leaves: bool, transit: &mut Transit<'_, '_>) {
        let Some(base) = frame.chain.base.filter(|_| leaves) else { return };
        let certain = !frame.ended && frame.before == Alive::Certain;
        self.observer.policy(self.number, frame.index, certain, transit);
        let verdict = match base.policy {
            Policy::Accept => Verdict::Accept,
            Policy::Drop => Verdict::Drop,
        };
        self.verdicts.add(verdict, Some(By::Policy { table: self.number, chain: frame.index }));
    }

    /// Too many rules: nothing is known of what is left of the walk.
    fn give_up(&mut self, stack: &[Frame<'r>]) {
        let Some(frame) = stack.last() else { return };
        let last = frame.next.saturating_sub(1);
        let at = RuleRef { table: self.number, chain: frame.index, rule: last };
        self.observer.unknown(at, Cause::Steps);
        self.verdicts.add(Verdict::Accept, Some(By::Rule(at)));
        self.verdicts.add(Verdict::Drop, Some(By::Rule(at)));
    }
}

/// Whether what a rule does can change what becomes of the packet.
fn decides(action: &Action) -> bool {
    match action {
        Action::None => false,
        Action::Target(target) => !target.body.only_watches(),
        _ => true,
    }
}

/// The tables of a ruleset that have something to do at `hook`, in the order in which the hook walks them: those
/// with a chain there, and nat, which translates also where the rules do not name its chain.
pub fn tables_at(ruleset: &Ruleset, hook: Hook) -> impl Iterator<Item = usize> + '_ {
    ruleset.family.tables().iter().filter_map(move |kind| {
        let index = ruleset.tables.iter().position(|table| table.name == kind.name)?;
        let translates = kind.name == "nat" && kind.hooks.contains(&hook);
        (translates || ruleset.tables[index].base_chain(hook).is_some()).then_some(index)
    })
}
