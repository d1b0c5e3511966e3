//! Comparisons as matches: [`Compare`] of one number, [`Member`] of a set.
//!
//! What ends the rule is no match, with `!=` as without.

use std::sync::Arc;

use super::constants;
use super::load::time::{self, Time};
use super::load::{Load, lookup};
use super::read::{self, Loads};
use super::scope::Scope;
use super::set::{Search, Span};
use super::shape::{self, HeaderTest, Shape};
use super::test::Test;
use super::width;
use crate::expr::{Expr, Field, Operator};
use crate::stmt;
use crate::stmt::Op;
use conntrack::States;
use rules::ext::{Match, PortRanges, Printer};
use rules::predicate::Predicate;
use rules::{Outcome, Transit};

/// A number that is compared.
#[derive(Debug)]
pub(crate) struct Compare {
    left: Loads,
    test: Test,
    invert: bool,
    text: Box<str>,
    states: Option<States>,
    shape: Shape,
}

/// Numbers that are looked up in a set.
#[derive(Debug)]
pub(crate) struct Member {
    left: Box<[Loads]>,
    search: Arc<Search>,
    invert: bool,
    text: Box<str>,
    predicate: Option<Predicate>,
}

/// A comparison that is not evaluated.
#[derive(Debug)]
pub(crate) struct Unevaluated {
    why: Box<str>,
    tracks: bool,
    text: Box<str>,
}

/// A number that is drawn, and taken with a share of all that it may be.
#[derive(Debug)]
pub(crate) struct Draw {
    /// The number is counted, not drawn.
    counted: bool,
    share: u64,
    of: u64,
}

/// An hour that the packet's is above or below: the kernel compares both in UTC.
#[derive(Debug)]
pub(crate) struct Hour {
    op: Op,
    hour: u128,
    text: Box<str>,
}

/// A comparison that became a match.
pub(crate) trait Tested: Match {
    /// What is not evaluated of it.
    fn lacks(&self) -> Option<&str>;

    /// What the bytecode loads for it.
    fn bytecode(&self, show: &mut dyn FnMut(String));

    /// The test that a rule can hold itself in its place.
    fn header(&self) -> Option<HeaderTest> {
        None
    }

    /// Whether it holds for every packet of the family.
    fn is_always(&self) -> bool {
        false
    }
}

/// Makes a match that is not evaluated.
pub(crate) fn unevaluated(why: &str, tracks: bool, text: &str) -> Box<dyn Tested> {
    Box::new(Unevaluated { why: why.into(), tracks, text: text.into() })
}

/// Makes a match that holds with a share of a chance.
pub(crate) fn draw(share: u64, of: u64, counted: bool) -> Box<dyn Tested> {
    Box::new(Draw { counted, share, of })
}

/// Makes a comparison of some bits of what is read with a constant number.
pub(crate) fn masked(left: Loads, value: u128, mask: u128, text: &str) -> Box<dyn Tested> {
    Box::new(Compare {
        left,
        test: Test::Masked { value, mask },
        invert: false,
        text: text.into(),
        states: None,
        shape: Shape::default(),
    })
}

/// Makes a comparison of what is read with a constant number.
pub(crate) fn equal(left: Loads, value: u128, text: &str, shape: Shape) -> Box<dyn Tested> {
    Box::new(Compare {
        left,
        test: Test::is(value),
        invert: false,
        text: text.into(),
        states: None,
        shape,
    })
}

/// Makes a match of a comparison, whose text is given.
pub(crate) fn lower(of: &stmt::Compare, text: &str, scope: &Scope<'_>) -> Box<dyn Tested> {
    let invert = matches!(of.op, Op::Differs | Op::None);
    let bits = width::of_parts(&of.left);
    let members = matches!(of.right, Expr::Set(_) | Expr::Named(_));
    if members || bits.len() > 1 {
        return member(of, &bits, invert, text, scope);
    }
    let width = bits.first().copied().unwrap_or(32);
    if let (Expr::Prefix(value, len), Op::Equal | Op::Differs) = (&of.right, of.op)
        && let Some(loaded) = read::prefix(&of.left, *len)
        && let Some(number) = value.as_number()
    {
        let test = Test::is(read::leading(number, width, *len));
        let span = constants::span(&of.right, width).unwrap_or(Span::one(number));
        let shape = Shape::of(&of.left, Test::Within(span.low, span.high), invert, scope);
        return made(Box::new(loaded), test, invert, text, shape);
    }
    let tracks = read::tracks(&of.left);
    let Some(span) = constants::span(&of.right, width) else {
        let left = read::one(&of.left, scope);
        let why = left.lacks().unwrap_or("a comparison with this");
        return unevaluated(why, tracks, text);
    };
    if read::is_key(&of.left, "meta", "hour") && ordered(of.op) {
        return Box::new(Hour { op: of.op, hour: span.low, text: text.into() });
    }
    if read::is_key(&of.left, "ct", "label")
        && let Some(left) = read::labels()
    {
        let bit = u32::try_from(span.low).ok().and_then(|bit| 1_u128.checked_shl(bit));
        return match (bit, of.op) {
            (Some(bit), Op::Any | Op::Equal) => {
                made(left, Test::Any(bit), false, text, Shape::default())
            }
            (Some(bit), Op::Differs) => made(left, Test::is(bit), true, text, Shape::default()),
            _ => unevaluated("ct label", tracks, text),
        };
    }
    if is_operation_on_bits(&of.left) {
        return unevaluated("an operation on bits of a byte", tracks, text);
    }
    let test = test(of.op, span);
    let is_state = read::is_key(&of.left, "ct", "state");
    let states = if is_state { shape::states(test, invert) } else { None };
    let shape = Shape::of(&of.left, test, invert, scope);
    let left = read::one(&of.left, scope);
    Box::new(Compare { left, test, invert, text: text.into(), states, shape })
}

fn made(left: Loads, test: Test, invert: bool, text: &str, shape: Shape) -> Box<dyn Tested> {
    Box::new(Compare { left, test, invert, text: text.into(), states: None, shape })
}

fn member(
    of: &stmt::Compare,
    bits: &[u32],
    invert: bool,
    text: &str,
    scope: &Scope<'_>,
) -> Box<dyn Tested> {
    let tracks = read::tracks(&of.left);
    if read::is_key(&of.left, "ct", "label") {
        return unevaluated("ct label in a set", tracks, text);
    }
    if !matches!(of.op, Op::Equal | Op::Differs) {
        return unevaluated("an order of several numbers", tracks, text);
    }
    let one;
    let right = match &of.right {
        // Several numbers that are compared with as many are a set of one.
        Expr::Concat(_) => {
            one = Expr::Set(vec![crate::expr::Element::new(of.right.clone())]);
            &one
        }
        right => right,
    };
    match scope.search(right, bits) {
        Ok(search) => {
            let spans = search.spans();
            let predicate = spans.and_then(|spans| shape::member(&of.left, &spans, invert));
            let left = read::parts(&of.left, scope);
            Box::new(Member { left, search, invert, text: text.into(), predicate })
        }
        Err(why) => unevaluated(why, tracks, text),
    }
}

/// Whether something is set, toggled or moved in a field that is not whole bytes: what releases of nft make of it differs.
fn is_operation_on_bits(left: &Expr) -> bool {
    let Expr::Binary(operator, pair) = left else { return false };
    let Expr::Field(field) = &pair.0 else { return is_operation_on_bits(&pair.0) };
    let Field::Payload(payload) = &**field else { return false };
    let payload = read::of_payload(payload);
    let whole = payload.offset.is_multiple_of(8) && payload.bits.is_multiple_of(8);
    *operator != Operator::And && !whole
}

fn ordered(op: Op) -> bool {
    matches!(op, Op::Less | Op::Greater | Op::AtMost | Op::AtLeast)
}

fn test(op: Op, Span { low, high }: Span) -> Test {
    match op {
        Op::Any | Op::None => Test::Any(low),
        Op::Equal | Op::Differs => Test::Within(low, high),
        Op::Less => low.checked_sub(1).map_or(Test::Within(1, 0), |most| Test::Within(0, most)),
        Op::AtMost => Test::Within(0, high),
        Op::Greater => {
            high.checked_add(1).map_or(Test::Within(1, 0), |least| Test::Within(least, u128::MAX))
        }
        Op::AtLeast => Test::Within(low, u128::MAX),
    }
}

impl Match for Compare {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        if let Some(states) = self.states {
            let possible = transit.ct.states();
            return match (possible.meets(states), possible.without(states)) {
                (true, Some(_)) => Outcome::MAYBE,
                (inside, _) => Outcome::from_bool(inside),
            };
        }
        self.left.load(transit).test(|word| self.test.of(word).invert(self.invert))
    }

    fn states(&self) -> Option<States> {
        self.states
    }

    fn port_ranges(&self) -> Option<PortRanges> {
        self.shape.ports
    }

    fn predicate(&self) -> Option<Predicate> {
        self.shape.predicate.clone()
    }

    fn tracks(&self) -> bool {
        self.left.tracks()
    }

    fn asks_for(&self) -> Option<&'static str> {
        self.left.asks_for()
    }

    fn repeats(&self) -> bool {
        self.left.repeats()
    }
}

impl Tested for Compare {
    fn lacks(&self) -> Option<&str> {
        self.left.lacks()
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        self.left.bytecode(show);
    }

    fn header(&self) -> Option<HeaderTest> {
        self.shape.header.clone()
    }

    fn is_always(&self) -> bool {
        self.shape.always
    }
}

impl Match for Member {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let parts = lookup::parts(&self.left, transit);
        if parts.iter().any(|part| part.words.is_empty()) {
            return Outcome::NO;
        }
        let outcome = self.search.find(&parts).outcome().invert(self.invert);
        if parts.iter().any(|part| part.breaks) { outcome.or(Outcome::NO) } else { outcome }
    }

    fn predicate(&self) -> Option<Predicate> {
        self.predicate.clone()
    }

    fn tracks(&self) -> bool {
        self.left.iter().any(|part| part.tracks())
    }

    fn asks_for(&self) -> Option<&'static str> {
        self.left.iter().find_map(|part| part.asks_for())
    }

    fn repeats(&self) -> bool {
        self.left.iter().all(|part| part.repeats())
    }
}

impl Tested for Member {
    fn lacks(&self) -> Option<&str> {
        self.left.iter().find_map(|part| part.lacks())
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        self.left.iter().for_each(|part| part.bytecode(show));
    }
}

impl Match for Unevaluated {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn evaluate(&self, _transit: &Transit<'_, '_>) -> Outcome {
        Outcome::MAYBE
    }

    fn tracks(&self) -> bool {
        self.tracks
    }
}

impl Tested for Unevaluated {
    fn lacks(&self) -> Option<&str> {
        Some(&self.why)
    }

    fn bytecode(&self, _show: &mut dyn FnMut(String)) {}
}

impl Match for Draw {
    fn print(&self, to: &mut Printer) {
        to.word(format_args!("numgen, {} of {}", self.share, self.of));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.chance {
            Some(chance) if self.of > 0 && !self.counted => {
                Outcome::from_bool(chance.draw() % self.of < self.share)
            }
            _ => Outcome::MAYBE,
        }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("which number the kernel drew or counted is not known")
    }

    fn repeats(&self) -> bool {
        false
    }
}

impl Tested for Draw {
    fn lacks(&self) -> Option<&str> {
        None
    }

    fn bytecode(&self, _show: &mut dyn FnMut(String)) {}
}

impl Match for Hour {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let Some((now, zone)) = time::universal_hour(transit) else { return Outcome::MAYBE };
        let hour = time::to_universal(self.hour, zone);
        now.test(|word| test(self.op, Span::one(hour)).of(word))
    }

    fn asks_for(&self) -> Option<&'static str> {
        Time::Hour.asks_for()
    }
}

impl Tested for Hour {
    fn lacks(&self) -> Option<&str> {
        None
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        Time::Hour.bytecode(show);
    }
}
