//! Statements one by one: each becomes a test, a count, something done or the end of its rule.

use super::compare::{self, Tested};
use super::constants;
use super::load::Load;
use super::load::constant::Unevaluated as Nothing;
use super::load::lookup::Lookup;
use super::read;
use super::scope::Scope;
use super::set::Span;
use super::state;
use super::state::count::Count;
use super::state::limit::Limit;
use super::state::named::Kind;
use super::state::quota::Quota;
use super::statement::Act;
use super::statement::log::Log;
use super::statement::mark::SetMark;
use super::statement::nat::Nat;
use super::statement::queue::Queue;
use super::statement::reject;
use super::statement::sequence::End;
use super::statement::track::{Notrack, SetHelper, SetLabel, SetZone};
use super::statement::unevaluated::{Harm, Unevaluated};
use super::statement::write::{self, LowerSegment, Write};
use super::width;
use crate::expr::{Element, Expr, Field, Hash};
use crate::model::{Body, Object};
use crate::stmt::{Named, Stmt, Verdict};
use crate::text::Printer;
use crate::types::{Data, Value};
use rules::ext::{Effect, Match};

/// What a statement is to the walk.
#[derive(Debug)]
pub(crate) enum Item {
    /// A comparison, under a name.
    Test(String, Box<dyn Tested>),
    /// A test that remembers packets.
    State(&'static str, Box<dyn Match>),
    /// A counter, with what it has counted.
    Count(Option<(u64, u64)>),
    /// Something that is done.
    Act(Box<dyn Act>),
    /// The end of the rule.
    End(End),
    /// A verdict map that is as many rules as it has elements: the name of its key, a comparison and what it gives.
    Choice(String, Vec<(Option<Box<dyn Tested>>, Effect)>),
}

/// Elements of a verdict map that is taken apart.
const FEW: usize = 8;
/// Elements of one by a number that is drawn.
const MANY: usize = 256;

/// Lowers a statement, whose text is given.
pub(crate) fn item(stmt: &Stmt, text: &str, scope: &Scope<'_>) -> Item {
    match stmt {
        Stmt::Compare(compare) => {
            Item::Test(of_expr(&compare.left, scope), compare::lower(compare, text, scope))
        }
        Stmt::Vmap(key, data) => vmap(key, data, scope),
        Stmt::Verdict(verdict) => match scope.effect(verdict) {
            Some(effect) => Item::End(End::Verdict(effect)),
            None => unevaluated_end("a chain that is not there"),
        },
        Stmt::Mangle(key, value) => Item::Act(mangle(key, value, scope)),
        Stmt::Counter(counted) => Item::Count(*counted),
        Stmt::Limit(limit) => match Limit::new(limit, text) {
            Some(limit) => state_of("limit", Kind::Limit(limit), text, scope),
            None => test("limit", false),
        },
        Stmt::Quota(quota) => state_of("quota", Kind::Quota(Quota::new(quota, text)), text, scope),
        Stmt::CtCount(limit, over) => {
            let count = Count::new(*limit, *over, text, scope.shared_state());
            Item::State(Count::NAME, Box::new(count))
        }
        Stmt::Named(named) => self::named(named, text, scope),
        Stmt::Log(log) => Item::Act(Box::new(Log::new(log))),
        Stmt::Reject(reject) => match reject::answer(reject, scope.family) {
            Some(answer) => Item::End(End::Reject(answer)),
            None => unevaluated_end("a reject with this code"),
        },
        Stmt::Nat(nat) => match Nat::new(nat, scope) {
            Ok(nat) => Item::End(End::Nat(Box::new(nat))),
            Err(why) => unevaluated_end(why),
        },
        Stmt::Notrack => Item::Act(Box::new(Notrack)),
        Stmt::Last(_) => act("last", Harm::Nothing),
        Stmt::Forward(forward) if forward.kind == "dup" => match forward.addr {
            Some(Expr::Value(_)) => act("dup", Harm::Nothing),
            _ => act("dup to what is computed", Harm::End),
        },
        Stmt::Forward(forward) if forward.kind == "tproxy" => act("tproxy", Harm::End),
        Stmt::Forward(forward) => unevaluated_end(forward.kind),
        Stmt::Queue(queue) => match Queue::new(queue) {
            Some(queue) => Item::End(End::Queue(queue)),
            None => unevaluated_end("queue to a number that is computed"),
        },
        Stmt::Synproxy(_) => unevaluated_end("synproxy"),
        // What is done is done to later packets: they may not come here any more.
        Stmt::Flow(_) => act("flow add", Harm::End),
        Stmt::Update(update) => act(&format!("{} @set", update.op), Harm::End),
        Stmt::Reset(_) => act("reset tcp option", Harm::Anything),
        Stmt::Xt(kind, name) if &**kind == "match" => test(&format!("xt match {name}"), true),
        Stmt::Xt(kind, name) => {
            let (tracks, name) = (true, format!("xt {kind} {name}").into());
            Item::Act(Box::new(Unevaluated { name, tracks, harm: Harm::Anything }))
        }
        Stmt::Unknown(_) => act("a statement of another release", Harm::Anything),
    }
}

/// What nft prints.
pub(crate) fn text(scope: &Scope<'_>, print: impl FnOnce(&mut Printer)) -> String {
    let mut printer = Printer { family: scope.table.family, ..Printer::default() };
    print(&mut printer);
    printer.out
}

fn of_expr(expr: &Expr, scope: &Scope<'_>) -> String {
    text(scope, |p| expr.print(p))
}

fn act(name: &str, harm: Harm) -> Item {
    Item::Act(Box::new(Unevaluated { name: name.into(), tracks: false, harm }))
}

fn test(name: &str, tracks: bool) -> Item {
    Item::Test(name.to_owned(), compare::unevaluated(name, tracks, name))
}

/// A state of a rule, in family inet one for packets of both families.
fn state_of(sort: &'static str, kind: Kind, text: &str, scope: &Scope<'_>) -> Item {
    Item::State(
        sort,
        match (scope.shared_state(), kind) {
            (Some(name), kind) => Box::new(state::named::Named::new(name, kind, text)),
            (None, Kind::Limit(limit)) => Box::new(limit),
            (None, Kind::Quota(quota)) => Box::new(quota),
        },
    )
}

fn unevaluated_end(why: &str) -> Item {
    Item::End(End::unevaluated(why))
}

/// A use of a named object: counters only watch.
fn named(named: &Named, text: &str, scope: &Scope<'_>) -> Item {
    if let Some(helper) = helper(named, scope) {
        return Item::Act(Box::new(helper));
    }
    if let Some((name, state)) = shared(named, text, scope) {
        return Item::State(name, Box::new(state));
    }
    let by_map = !matches!(named.name, Expr::Value(_));
    match named.kind.name {
        "counter" | "secmark" if !by_map => act(named.kind.name, Harm::Nothing),
        "limit" | "quota" => test(&format!("{} name", named.kind.name), false),
        "ct helper" | "ct timeout" | "ct expectation" => {
            let name = format!("{} set", named.kind.name).into();
            Item::Act(Box::new(Unevaluated { name, tracks: true, harm: Harm::Connection }))
        }
        "counter" | "secmark" => act(&format!("{} by a map", named.kind.name), Harm::End),
        name => unevaluated_end(name),
    }
}

/// The object that a statement names.
fn object<'r>(named: &Named, scope: &Scope<'r>) -> Option<&'r Object> {
    let Expr::Value(Value { data: Data::Text(name), .. }) = &named.name else { return None };
    let is = |object: &&Object| object.name == *name && object.body.kind() == named.kind.name;
    scope.table.objects.iter().find(is)
}

/// The limit or the quota that a named object is, as rules share it.
fn shared(
    named: &Named,
    text: &str,
    scope: &Scope<'_>,
) -> Option<(&'static str, state::named::Named)> {
    let object = object(named, scope)?;
    let (kind, state) = match &object.body {
        Body::Limit(limit) => ("limit", Kind::Limit(Limit::new(limit, text)?)),
        Body::Quota(quota) => ("quota", Kind::Quota(Quota::new(quota, text))),
        _ => return None,
    };
    let (family, table) = (scope.table.family.name(), &scope.table.name);
    let name = format!("{family} {table} {kind} {}", object.name).into();
    let also_elsewhere = scope.is_asked_after_acts(kind, &object.name);
    let use_of_it = state::named::Named::new(name, state, text);
    Some((kind, state::named::Named { also_elsewhere, ..use_of_it }))
}

/// The helper that a named object is.
fn helper(named: &Named, scope: &Scope<'_>) -> Option<SetHelper> {
    let object = object(named, scope)?;
    let Body::Helper(kind, protocol, family) = &object.body else { return None };
    let protocol = match &**protocol {
        "tcp" => 6,
        "udp" => 17,
        _ => return None,
    };
    let six = match &**family {
        "ip" => Some(false),
        "ip6" => Some(true),
        _ => None,
    };
    Some(SetHelper { helper: conntrack::Helper::named(kind), protocol, six })
}

fn vmap(key: &Expr, data: &Expr, scope: &Scope<'_>) -> Item {
    if let Some(choice) = choice(key, data, scope) {
        return choice;
    }
    let unevaluated = |why: &str| Item::End(End::Unevaluated(why.into(), scope.effects(data)));
    match scope.vmap(data, &width::of_parts(key)) {
        Ok(map) => {
            let key = read::parts(key, scope);
            match key.iter().find_map(|part| part.lacks()) {
                Some(why) => unevaluated(why),
                None => Item::End(End::Map(Lookup { key, map })),
            }
        }
        Err(why) => unevaluated(why),
    }
}

/// A small verdict map by what tracking knows: as comparisons, of which walks follow each that is possible.
fn choice(key: &Expr, data: &Expr, scope: &Scope<'_>) -> Option<Item> {
    let Expr::Set(elements) = data else { return None };
    let Expr::Field(field) = key else { return None };
    if let Field::Hash(hash) = &**field {
        return drawn(hash, elements, scope);
    }
    let Field::Ct(ct) = &**field else { return None };
    if ct.key.0 == "label" || elements.len() > FEW {
        return None;
    }
    let name = of_expr(key, scope);
    let mut choices = Vec::new();
    let mut other = None;
    for (at, element) in elements.iter().enumerate() {
        // nft takes an element that is there already.
        if elements[..at].iter().any(|before| before.key == element.key) {
            continue;
        }
        let Some(Expr::Verdict(verdict)) = &element.data else { return None };
        let effect = scope.effect(verdict)?;
        if element.key == Expr::Any {
            other = Some((None, effect));
            continue;
        }
        if !element.stmts.is_empty() || element.timeout.is_some() {
            return None;
        }
        let (left, right) = (key.clone(), element.key.clone());
        let compare = crate::stmt::Compare { op: crate::stmt::Op::Equal, left, right };
        let text = text(scope, |p| element.print(p));
        let test = compare::lower(&compare, &text, scope);
        test.lacks().is_none().then_some(())?;
        choices.push((Some(test), effect));
    }
    choices.extend(other);
    let lasts = !returns(&choices, scope) || !changes(ct.key.0, scope);
    lasts.then(|| Item::Choice(name, choices))
}

/// A verdict map by a number that is drawn and has an element whatever it is: each element is taken with its share of what
/// those before it leave.
fn drawn(hash: &Hash, elements: &[Element], scope: &Scope<'_>) -> Option<Item> {
    if !matches!(hash.kind, "random" | "inc") || elements.is_empty() || elements.len() > MANY {
        return None;
    }
    let mut shares = Vec::new();
    for element in elements {
        let Some(Expr::Verdict(verdict)) = &element.data else { return None };
        let span = constants::span(&element.key, 32)?;
        shares.push((span, scope.effect(verdict)?));
    }
    shares.sort_by_key(|(span, _)| span.low);
    let mut next = u128::from(hash.offset);
    let end = next + u128::from(hash.modulus);
    for (span, _) in &shares {
        if span.low != next {
            return None;
        }
        next = span.high + 1;
    }
    let last = shares.len() - 1;
    let choice = |(at, (span, effect)): (usize, (Span, Effect))| {
        let share = u64::try_from(span.high - span.low + 1).unwrap_or(u64::MAX);
        let of = u64::try_from(end - span.low).unwrap_or(u64::MAX);
        let drawn = || compare::draw(share, of, hash.kind == "inc");
        ((at < last).then(drawn), effect)
    };
    let choices: Vec<_> = shares.into_iter().enumerate().map(choice).collect();
    (next == end && !returns(&choices, scope))
        .then(|| Item::Choice(format!("numgen {}", hash.kind), choices))
}

/// Whether packets may come back from where a choice but the last sends them, to be asked for the next.
fn returns(choices: &[(Option<Box<dyn Tested>>, Effect)], scope: &Scope<'_>) -> bool {
    let comes_back = |(_, effect): &(_, Effect)| match effect {
        Effect::Jump(chain) => !decides(*chain, scope),
        _ => false,
    };
    choices.split_last().is_some_and(|(_, before)| before.iter().any(comes_back))
}

/// Whether a chain begins with a verdict for all packets.
fn decides(chain: u32, scope: &Scope<'_>) -> bool {
    let first = scope.table.chains.get(chain as usize).and_then(|chain| chain.rules.first());
    let mut stmts = first.into_iter().flat_map(|rule| &rule.stmts);
    let left = stmts.find(|stmt| !matches!(stmt, Stmt::Counter(_)));
    matches!(left, Some(Stmt::Verdict(Verdict::Accept | Verdict::Drop)))
}

/// Whether rules of the table may change what tracking knows by this key. What they translate comes back to no rule.
fn changes(key: &str, scope: &Scope<'_>) -> bool {
    let sets = |stmt: &Stmt| match stmt {
        Stmt::Notrack => key == "state",
        Stmt::Named(named) => named.kind.name == format!("ct {key}"),
        Stmt::Mangle(set, _) => read::is_key(set, "ct", if key == "state" { "zone" } else { key }),
        _ => false,
    };
    let rules = scope.table.chains.iter().flat_map(|chain| &chain.rules);
    rules.flat_map(|rule| &rule.stmts).any(sets)
}

/// `key set value`.
fn mangle(key: &Expr, value: &Expr, scope: &Scope<'_>) -> Box<dyn Act> {
    let is = |of, name| read::is_key(key, of, name);
    let of_connection = is("ct", "mark");
    if is("meta", "mark") || of_connection {
        let value = read::one(value, scope);
        if let Some(why) = value.lacks() {
            let (name, tracks) = (why.into(), value.tracks() || of_connection);
            let bits = 32;
            let value: Box<dyn Load> = Box::new(Nothing { name, bits, tracks });
            return Box::new(SetMark { value, of_connection });
        }
        return Box::new(SetMark { value, of_connection });
    }
    if let Some(done) = written(key, value, scope) {
        return done;
    }
    let name = format!("{} set", of_expr(key, scope)).into();
    let tracks = read::tracks(key) || read::tracks(value);
    let quiet = ["priority", "nftrace"].into_iter().any(|key| is("meta", key));
    let harm = match () {
        () if quiet || is("ct", "event") || is("ct", "secmark") => Harm::Nothing,
        () if is("ct", "label") => Harm::Connection,
        () => Harm::Anything,
    };
    Box::new(Unevaluated { name, tracks, harm })
}

/// What is written to a header, or asked of tracking.
fn written(key: &Expr, value: &Expr, scope: &Scope<'_>) -> Option<Box<dyn Act>> {
    let given = read::one(value, scope);
    if given.lacks().is_some() {
        return None;
    }
    if let Some(field) = Write::field(key) {
        return Some(Box::new(Write::new(field, given)));
    }
    if write::is_segment_size(key) {
        return Some(Box::new(LowerSegment(given)));
    }
    let Expr::Field(field) = key else { return None };
    let Field::Ct(ct) = &**field else { return None };
    match ct.key.0 {
        "zone" => Some(Box::new(SetZone { zone: given, direction: ct.direction })),
        "label" => Some(Box::new(SetLabel(u8::try_from(value.as_number()?).ok()?))),
        _ => None,
    }
}
