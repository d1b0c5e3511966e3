//! The walk itself, over whatever holds the rules: see [`super::Source`].

mod chains;
mod limits;
mod taken;
mod unknown;
mod walk;

use self::chains::{Entry, Frame, Stack, verdict};
use self::limits::ASK_EVERY;
use self::walk::{Place, Walk};
use super::header::Key;
use super::source::{Source, Step, Stored, Test};
use super::{Alive, By, Cause, Memories, Observer, Proof, RuleRef, Verdict, Verdicts, header};
use crate::ext::Effect;
use crate::model::{Action, Policy, Rule};
use crate::nat::{self, Translation};
use crate::outcome::Outcome;
use crate::transit::Transit;
use conntrack::Side;
use smallvec::SmallVec;

/// Walks the built-in chain at the packet's hook; a source without one accepts.
///
/// Most walks meet no rule that does more than count, accept or drop, and so need no stack of chains: the built-in chain
/// is swept here, and what else it comes to is walked on from there.
pub fn run<'r, S: Source<'r>, O: Observer>(
    source: Option<&S>,
    number: u32,
    transit: &mut Transit<'_, '_>,
    entry: Alive,
    memories: &mut Memories,
    observer: &mut O,
) -> Verdicts {
    let base = source.and_then(|source| source.base(transit.hook));
    from(source.zip(base), number, transit, entry, memories, observer)
}

/// Walks a base chain of the table of this number, given by its index and its policy, as [`run`] does.
#[inline]
pub fn run_from<'r, S: Source<'r>, O: Observer>(
    source: Option<&S>,
    (number, base): (u32, Option<(u32, Policy)>),
    transit: &mut Transit<'_, '_>,
    entry: Alive,
    memories: &mut Memories,
    observer: &mut O,
) -> Verdicts {
    let base = source.zip(base).map(|(source, (chain, policy))| (source.chain_at(chain), policy));
    from(source.zip(base), number, transit, entry, memories, observer)
}

/// A base chain as it is held: its index with its start, and its policy.
type BaseChain<C> = ((u32, C), Policy);

/// Walks from the start of a base chain.
#[inline(always)]
fn from<'r, S: Source<'r>, O: Observer>(
    source: Option<(&S, BaseChain<S::Cursor>)>,
    number: u32,
    transit: &mut Transit<'_, '_>,
    entry: Alive,
    memories: &mut Memories,
    observer: &mut O,
) -> Verdicts {
    if entry == Alive::Gone {
        return Verdicts::default();
    }
    let Some((source, base)) = source else {
        return Verdicts::one(Verdict::Accept, None);
    };
    let ((chain, mut cursor), policy) = base;
    if O::SEES_RULES || memories.given_up.at_once(number, chain) {
        let mut key = key::<O>(transit);
        let start = Start { number, entry, base, read: 0, first: None };
        return walk_on(source, start, &mut key, transit, memories, observer);
    }
    let certain = entry == Alive::Certain;
    if source.is_over(&cursor) {
        return off_end((number, chain), policy, certain, observer, transit);
    }
    let mut key = key::<O>(transit);
    let mut read = 0;
    let first = loop {
        let count = |slot| observer.counted(slot, certain, transit);
        let (more, reached) = source.sweep(&mut cursor, &key, count);
        read += more;
        if read >= ASK_EVERY {
            break reached;
        }
        let Some((stored, test)) = reached else {
            return off_end((number, chain), policy, certain, observer, transit);
        };
        // Most packets meet a rule of which nothing is open, and their verdict with it.
        let verdict = match (said(&stored, test, transit), stored.step()) {
            (Some(false), _) => continue,
            (Some(true), Step::Accept) => Verdict::Accept,
            (Some(true), Step::Drop) => Verdict::Drop,
            // It is not asked again.
            (Some(true), _) => break Some((stored, Test::Yes)),
            (None, _) => break reached,
        };
        transit.certain = certain;
        observer.counted(stored.slot(), certain, transit);
        let at = RuleRef { table: number, chain, rule: read - 1 };
        return met(verdict, By::Rule(at), transit);
    };
    let start = Start { number, entry, base: ((chain, cursor), policy), read, first };
    walk_on(source, start, &mut key, transit, memories, observer)
}

/// What a rule says that is known to match or not, and asks nothing that remembers packets.
#[inline(always)]
fn said<'r>(stored: &impl Stored<'r>, test: Test, transit: &Transit<'_, '_>) -> Option<bool> {
    match test {
        Test::No => Some(false),
        Test::Yes => Some(true),
        Test::Ask => None,
        Test::AskMatches => {
            let matches = &stored.rule().matches;
            if matches.iter().any(|used| used.memory.is_some() || used.works) {
                return None;
            }
            for used in matches {
                match used.body.evaluate(transit) {
                    Outcome::YES => {}
                    Outcome::NO => return Some(false),
                    _ => return None,
                }
            }
            Some(true)
        }
    }
}

/// The packet meets this verdict, in whichever state.
#[inline]
fn met(verdict: Verdict, by: By, transit: &Transit<'_, '_>) -> Verdicts {
    let mut met = Verdicts::one(verdict, Some(by));
    if transit.ct.walks_as.is_some() {
        met.meet_as_taken(verdict, by);
    }
    met
}

/// Nothing kept the packet in a built-in chain, named by its table and its index: its policy has its say.
#[inline]
fn off_end<O: Observer>(
    (table, chain): (u32, u32),
    policy: Policy,
    certain: bool,
    observer: &mut O,
    transit: &Transit<'_, '_>,
) -> Verdicts {
    observer.off_end(table, chain, certain);
    observer.policy(table, chain, certain, transit);
    met(verdict(policy), By::Policy { table, chain }, transit)
}

/// Where a walk starts.
struct Start<C, R> {
    /// The table's number.
    number: u32,
    entry: Alive,
    /// The built-in chain, where it goes on, and its policy.
    base: ((u32, C), Policy),
    /// Its rules that were swept before, and the last of them, if it does more than count.
    read: u32,
    first: Option<(R, Test)>,
}

/// Walks from there on.
#[inline(never)]
fn walk_on<'r, 'p, S: Source<'r>, O: Observer>(
    source: &S,
    start: Start<S::Cursor, S::Rule>,
    key: &mut Key<'p>,
    transit: &mut Transit<'p, '_>,
    memories: &mut Memories,
    observer: &mut O,
) -> Verdicts {
    let Start { number, entry, base: (base, policy), read, first } = start;
    let mut verdicts = Verdicts::default();
    let innermost = Frame::new(base, (entry, transit.ct.view.states), Entry::Base);
    let mut stack = Stack { innermost, callers: SmallVec::new() };
    stack.innermost.next = read;
    let mut walk = Walk {
        source,
        number,
        policy,
        verdicts: &mut verdicts,
        memories,
        observer,
        here: entry,
        key,
        steps: read,
        ask_at: ASK_EVERY,
        over: None,
        open: None,
        full: None,
        taken: Place::of(transit),
        takes: false,
        depth: 0,
    };
    walk.run(&mut stack, first, transit);
    if let Some(full) = walk.full {
        transit.ct.view.states = full;
    }
    verdicts
}

/// What rules are told of the packet. Ports are answered at sight only where nobody wants to see matches asked.
#[inline]
fn key<'p, O: Observer>(transit: &Transit<'p, '_>) -> Key<'p> {
    if O::SEES_RULES { Key::of(transit) } else { Key::with_ports(transit) }
}

impl<'r, 'p, S: Source<'r>, O: Observer> Walk<'_, '_, 'p, S, O> {
    /// Walks from the built-in chain on, which may have been swept before to the rule `first`.
    fn run(
        &mut self,
        stack: &mut Stack<S::Cursor>,
        mut first: Option<(S::Rule, Test)>,
        transit: &mut Transit<'p, '_>,
    ) {
        let base = stack.innermost.index;
        if self.memories.given_up.at_once(self.number, base) {
            return self.give_up(base, 0, Cause::Patience, transit);
        }
        loop {
            let frame = &mut stack.innermost;
            let found = match self.here {
                Alive::Gone => None,
                _ => self.next_match(frame, first.take(), transit),
            };
            self.look_up();
            if let Some(cause) = self.over {
                let (chain, rule) = (frame.index, frame.next.saturating_sub(1));
                if cause == Cause::Steps {
                    self.memories.given_up.count(self.number, base);
                }
                return self.give_up(chain, rule, cause, transit);
            }
            match found {
                Some((stored, at, mut outcome)) => {
                    if O::SEES_RULES && outcome.may_match() {
                        outcome = self.proved(at, outcome, stack);
                    }
                    self.reached(stored, at, outcome, stack, transit);
                }
                None if self.leave(stack, transit) => {}
                None => return,
            }
        }
    }

    /// What a rule says by what is proved of it.
    fn proved(&mut self, at: RuleRef, outcome: Outcome, stack: &mut Stack<S::Cursor>) -> Outcome {
        match self.observer.proof(at) {
            Proof::Nothing => return outcome,
            Proof::Matches => self.open = None,
            Proof::Came => self.settle(stack),
        }
        Outcome::YES
    }

    /// The packet is at a rule: it went into each chain on the way, and met no verdict there.
    fn settle(&mut self, stack: &mut Stack<S::Cursor>) {
        *self.verdicts = Verdicts::default();
        (self.here, self.open, self.taken) = (Alive::Certain, None, Place::Open);
        for frame in stack.callers.iter_mut().chain([&mut stack.innermost]) {
            (frame.before, frame.returned, frame.ended) = (Alive::Certain, false, false);
            if let Entry::Jump { sure } | Entry::Goto { sure } = &mut frame.entry {
                *sure = true;
            }
        }
    }

    /// The next rule of a chain that may match and does more than count, and what it says. To `first` the chain was
    /// swept before.
    #[inline]
    fn next_match(
        &mut self,
        frame: &mut Frame<S::Cursor>,
        mut first: Option<(S::Rule, Test)>,
        transit: &mut Transit<'p, '_>,
    ) -> Option<(S::Rule, RuleRef, Outcome)> {
        let (before, here) = (frame.next, self.here);
        let mut found = None;
        loop {
            let reached = if O::SEES_RULES {
                let stored = self.source.next(&mut frame.cursor);
                frame.next += u32::from(stored.is_some());
                stored.map(|stored| (stored, stored.test(self.key)))
            } else if first.is_some() {
                first.take()
            } else {
                let certain = here == Alive::Certain;
                let count = |slot| self.observer.counted(slot, certain, transit);
                let (read, reached) = self.source.sweep(&mut frame.cursor, self.key, count);
                frame.next += read;
                reached
            };
            let Some((stored, test)) = reached else { break };
            let at = RuleRef { table: self.number, chain: frame.index, rule: frame.next - 1 };
            let outcome = match test {
                Test::No => {
                    self.observer.rule(at, Outcome::NO, here, transit);
                    continue;
                }
                Test::Yes => {
                    self.observer.rule(at, Outcome::YES, here, transit);
                    Outcome::YES
                }
                Test::AskMatches => self.evaluate(stored.rule(), at, Outcome::YES, None, transit),
                Test::Ask => {
                    let rule = stored.rule();
                    let header = rule.header.as_ref();
                    let start = header.map(|header| header::evaluate(header, self.key, transit));
                    let (outcome, cause) = start.unwrap_or((Outcome::YES, None));
                    self.evaluate(rule, at, outcome, cause, transit)
                }
            };
            if outcome == Outcome::YES && stored.only_counts() {
                self.hit(stored, at, here == Alive::Certain, transit);
            } else if outcome != Outcome::NO {
                found = Some((stored, at, outcome));
                break;
            }
            self.look_up();
            if self.over.is_some() {
                break;
            }
        }
        self.steps = self.steps.saturating_add(frame.next - before);
        found
    }

    /// A rule matched.
    #[inline]
    fn hit(&mut self, stored: S::Rule, at: RuleRef, certain: bool, transit: &mut Transit<'p, '_>) {
        transit.certain = certain;
        self.observer.hit(at, certain, transit);
        self.observer.counted(stored.slot(), certain, transit);
    }

    /// What a rule says about the packet, given what its own tests say and, where that is not known, why.
    #[inline]
    fn evaluate(
        &mut self,
        rule: &Rule,
        at: RuleRef,
        mut outcome: Outcome,
        mut cause: Option<Cause>,
        transit: &mut Transit<'p, '_>,
    ) -> Outcome {
        self.open = None;
        let mut opens = u32::from(!outcome.is_known());
        for (index, used) in rule.matches.iter().enumerate() {
            if !outcome.goes_on() {
                break;
            }
            let answer = match used.memory {
                None => used.body.evaluate(transit),
                Some(slot) => {
                    self.lose_taken();
                    // A match that matches and drops at once ends the walk only after those of its rule.
                    let certain = self.here == Alive::Certain && outcome.is_known();
                    let body = &*used.body;
                    let Self { memories, observer, .. } = self;
                    memories.evaluate(slot, rule.id, body, certain, transit, |memory| {
                        if O::SEES_RULES {
                            observer.remembered(at, memory);
                        }
                    })
                }
            };
            if used.works {
                let work = used.body.work(transit.packet.len());
                self.steps = self.steps.saturating_add(work);
            }
            self.observer.asked(at, index, answer);
            if !answer.is_known() {
                opens += 1;
                self.open = used.body.states();
                cause = cause.or(Some(Cause::Match(index as u16)));
            }
            outcome = if outcome == Outcome::YES { answer } else { outcome.and_then(|| answer) };
        }
        self.open = self.open.filter(|_| opens == 1);
        self.observer.rule(at, outcome, self.here, transit);
        if O::SEES_RULES && self.observer.opens(at) {
            (outcome, cause, self.open) = (Outcome::MAYBE, Some(Cause::Past), None);
        }
        match (cause, outcome.is_known()) {
            (Some(cause), false) if decides(&rule.action) || outcome.may_hot_drop() => {
                self.observer.unknown(at, cause);
            }
            (Some(cause), false) => self.observer.may_count(at, cause),
            _ => {}
        }
        outcome
    }

    /// A rule that may match: does what it says.
    fn reached(
        &mut self,
        stored: S::Rule,
        at: RuleRef,
        outcome: Outcome,
        stack: &mut Stack<S::Cursor>,
        transit: &mut Transit<'p, '_>,
    ) {
        if outcome.may_hot_drop() {
            self.lose_taken();
            self.takes = false;
            self.hot_drop(stored, at, outcome, stack, transit);
        }
        if outcome.may_match() {
            let sure = outcome == Outcome::YES;
            self.hit(stored, at, sure && self.here == Alive::Certain, transit);
            self.act(stored, at, sure, stack, transit);
        }
    }

    /// A match drops the packet. Where it matches at that, the rule counts it and a REJECT still tells
    /// the sender.
    fn hot_drop(
        &mut self,
        stored: S::Rule,
        at: RuleRef,
        outcome: Outcome,
        stack: &mut Stack<S::Cursor>,
        transit: &mut Transit<'p, '_>,
    ) {
        let mut rejects = false;
        if outcome.may_hit_drop() {
            self.hit(stored, at, outcome.is_known() && self.here == Alive::Certain, transit);
            if let Step::Target(target) = stored.step() {
                rejects = target.body.apply(transit) == Effect::Reject;
                *self.key = key::<O>(transit);
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
        stored: S::Rule,
        at: RuleRef,
        sure: bool,
        stack: &mut Stack<S::Cursor>,
        transit: &mut Transit<'p, '_>,
    ) {
        let by = Some(By::Rule(at));
        let open = self.open.take().filter(|_| !sure);
        let step = stored.step();
        self.takes = !matches!(step, Step::Count) && self.is_taken_by(sure, open);
        match step {
            Step::Count => return,
            Step::Accept => self.end(Verdict::Accept, by, sure, stack),
            Step::Drop => self.end(Verdict::Drop, by, sure, stack),
            Step::Return => self.go_back(sure, stack),
            Step::Jump(to) => {
                let to = self.source.enter(to);
                return self.enter(to, Entry::Jump { sure }, sure, open, stack, transit);
            }
            Step::Goto(to) => {
                let to = self.source.enter(to);
                return self.enter(to, Entry::Goto { sure }, sure, open, stack, transit);
            }
            Step::Target(target) => {
                let effect = target.body.apply(transit);
                match effect {
                    Effect::Continue => {
                        *self.key = key::<O>(transit);
                        return;
                    }
                    Effect::Return => self.go_back(sure, stack),
                    Effect::Jump(chain) => {
                        *self.key = key::<O>(transit);
                        let to = self.source.chain_at(chain);
                        return self.enter(to, Entry::Jump { sure }, sure, open, stack, transit);
                    }
                    Effect::Goto(chain) => {
                        *self.key = key::<O>(transit);
                        let to = self.source.chain_at(chain);
                        return self.enter(to, Entry::Goto { sure }, sure, open, stack, transit);
                    }
                    Effect::Accept => self.end(Verdict::Accept, by, sure, stack),
                    Effect::Translate => {
                        if let Some(translation) = target.body.translation(transit) {
                            self.claim(at, &translation, transit);
                        }
                        self.end(Verdict::Accept, by, sure, stack);
                    }
                    Effect::Drop => self.end(Verdict::Drop, by, sure, stack),
                    Effect::Reject => {
                        // A reset may end the connection, which only a walk in that state alone does.
                        self.doubt_taken();
                        self.end(Verdict::Reject, by, sure, stack);
                    }
                    Effect::Either => self.either(at, sure, stack),
                    Effect::Unknown => {
                        self.doubt_taken();
                        match target.body.possible(transit) {
                            Some(effects) => self.some_of(&effects, at, stack, transit),
                            None => self.anything(at, stack, transit),
                        }
                        *self.key = key::<O>(transit);
                        return;
                    }
                }
                *self.key = key::<O>(transit);
            }
        }
        // Who is still here has another state.
        self.narrow(open.and_then(|open| transit.ct.view.states.without(open)), transit);
    }

    /// A target translates the packet's flow, or may.
    fn claim(&mut self, at: RuleRef, translation: &Translation, transit: &mut Transit<'p, '_>) {
        if transit.certain {
            return self.verdicts.claim(at, translation);
        }
        let moves_source = translation.side == Side::Destination
            && nat::may_move_source(transit, Some(translation));
        self.verdicts.may_claim(translation, moves_source);
    }

    /// A verdict that ends the packet's walk through this table.
    fn end(&mut self, verdict: Verdict, by: Option<By>, sure: bool, stack: &mut Stack<S::Cursor>) {
        self.verdicts.add(verdict, by);
        if self.takes
            && let Some(by) = by
        {
            self.meet_taken(verdict, by);
        }
        stack.innermost.ended = true;
        self.here = if sure { Alive::Gone } else { Alive::Maybe };
    }
}

/// Whether what a rule does can change the packet's verdict.
fn decides(action: &Action) -> bool {
    match action {
        Action::None => false,
        Action::Target(target) => !target.body.only_watches(),
        _ => true,
    }
}
