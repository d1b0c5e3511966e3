//! A rule taken apart: each of its tests with its text and its answer, for explanations.

use super::header::{self, Key};
use crate::ext::Printer;
use crate::family::Family;
use crate::header::Header;
use crate::model::Rule;
use crate::outcome::Outcome;
use crate::save::{print_header, print_match};
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
            print_header(&part, family, &mut to);
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
        print_match(used, family, &mut to);
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
    let headers = rule.header.iter().flat_map(|whole| single_tests(whole)).map(|part| {
        let mut to = Printer::default();
        print_header(&part, family, &mut to);
        to.finish()
    });
    let matches = rule.matches.iter().map(|used| {
        let mut to = Printer::default();
        print_match(used, family, &mut to);
        to.finish()
    });
    let texts = headers.chain(matches).map(|text| text.trim_start().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

/// The header split into headers with one test each.
fn single_tests(whole: &Header) -> impl Iterator<Item = Header> {
    let none = Header::default;
    let single = [
        Header { source: whole.source, ..none() },
        Header { destination: whole.destination, ..none() },
        Header { input: whole.input.clone(), ..none() },
        Header { output: whole.output.clone(), ..none() },
        Header { logical_input: whole.logical_input.clone(), ..none() },
        Header { logical_output: whole.logical_output.clone(), ..none() },
        Header { protocol: whole.protocol, ..none() },
        Header { fragment: whole.fragment, ..none() },
    ];
    let fields = whole.fields.iter().map(move |test| Header { fields: vec![*test], ..none() });
    let fields: Vec<Header> = fields.collect();
    single.into_iter().chain(fields).filter(|part| *part != Header::default())
}
