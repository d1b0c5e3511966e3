//! A rule taken apart: each of its tests with its text and its answer, for explanations.

use super::header::{self, Key};
use crate::ext::{MatchUse, Printer};
use crate::family::Family;
use crate::header::{Header, HeaderTests};
use crate::model::Rule;
use crate::outcome::Outcome;
use crate::save::{print_header, print_listed_header, print_match};
use crate::transit::Transit;

/// One test of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Its canonical text, such as `-s 10.0.0.0/8` or `-m tcp --dport 80`.
    pub text: String,
    /// What it says about the packet; `None` for a match that remembers packets, and must not be asked
    /// twice.
    pub outcome: Option<Outcome>,
}

/// Every test of a rule, in the order of evaluation, whether or not an earlier one decided.
#[must_use]
pub fn tests_of(family: Family, rule: &Rule, transit: &Transit<'_, '_>) -> Vec<Test> {
    let mut tests = Vec::new();
    let key = Key::of(transit);
    if let Some(whole) = &rule.header {
        for part in single_tests(whole) {
            let mut to = Printer::default();
            print_part(rule, &part, family, &mut to);
            let text = to.finish().trim_start().to_owned();
            if text.is_empty() {
                // What every rule of the family tests, nobody writes.
                continue;
            }
            tests.push(Test { text, outcome: Some(header::evaluate(&part, &key, transit).0) });
        }
    }
    for used in &rule.matches {
        let mut to = Printer::default();
        print_of(rule, used, family, &mut to);
        let outcome = match used.memory {
            None => Some(used.body.evaluate(transit)),
            Some(_) => used.body.peek(transit),
        };
        tests.push(Test { text: to.finish().trim_start().to_owned(), outcome });
    }
    tests
}

/// The text of every test of a rule, in order.
#[must_use]
pub fn tests_of_text(family: Family, rule: &Rule) -> Vec<String> {
    let headers = rule.header.iter().flat_map(single_tests).map(|part| {
        let mut to = Printer::default();
        print_part(rule, &part, family, &mut to);
        to.finish()
    });
    let matches = rule.matches.iter().map(|used| {
        let mut to = Printer::default();
        print_of(rule, used, family, &mut to);
        to.finish()
    });
    let texts = headers.chain(matches).map(|text| text.trim_start().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

/// A test of a rule's own, as the rule's language has it.
fn print_part(rule: &Rule, part: &Header, family: Family, to: &mut Printer) {
    match rule.listed {
        Some(_) => print_listed_header(part, family, to),
        None => print_header(part, family, to),
    }
}

/// A match of a rule, as the rule's language has it.
fn print_of(rule: &Rule, used: &MatchUse, family: Family, to: &mut Printer) {
    match rule.listed {
        Some(_) => used.body.print(to),
        None => print_match(used, family, to),
    }
}

/// The header split into headers with one test each.
fn single_tests(header: &Header) -> impl Iterator<Item = Header> {
    let whole = header.tests();
    let none = HeaderTests::default;
    let single = [
        HeaderTests { source: whole.source, ..none() },
        HeaderTests { destination: whole.destination, ..none() },
        HeaderTests { input: whole.input, ..none() },
        HeaderTests { output: whole.output, ..none() },
        HeaderTests { logical_input: whole.logical_input, ..none() },
        HeaderTests { logical_output: whole.logical_output, ..none() },
        HeaderTests { protocol: whole.protocol, ..none() },
        HeaderTests { fragment: whole.fragment, ..none() },
    ];
    let fields =
        whole.fields.into_iter().map(move |test| HeaderTests { fields: vec![test], ..none() });
    let parts = single.into_iter().chain(fields).map(Header::from);
    parts.filter(|part| *part != Header::default())
}
