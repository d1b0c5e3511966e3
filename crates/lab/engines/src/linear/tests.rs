//! The checker on histories known to be good or bad, then on every engine.

use crate::Config;

use super::check::is_linearizable;
use super::subject::{Subject, check as recorded};
use super::*;
use crate::catalogue::Kind;

fn operation(thread: usize, span: (u64, u64), act: Act) -> Operation {
    Operation { thread, act, began: span.0, ended: span.1 }
}

fn update(address: u32, png: bool, accept: bool, begin: u32, end: u32) -> Act {
    Act::Update(Config { address, persona_non_grata: png, accept, begin, end })
}

fn decide(source: u32, destination: u32, permitted: bool) -> Act {
    Act::Decide { source, destination, permitted }
}

fn check(history: &[Operation], default_accept: bool) -> bool {
    is_linearizable(history, State::new(default_accept)).unwrap()
}

#[test]
fn known_good_histories() {
    assert!(check(&[], true));
    // A decision beside a change may see it or not.
    for permitted in [true, false] {
        let history = [
            operation(0, (0, 3), update(0, true, true, 0, 0)),
            operation(1, (1, 2), decide(0, 1, permitted)),
        ];
        assert!(check(&history, true));
    }
    // Two decisions beside a change may see it in either order of the threads.
    let history = [
        operation(0, (0, 9), update(0, true, true, 0, 0)),
        operation(1, (1, 2), decide(0, 1, true)),
        operation(2, (3, 4), decide(0, 1, false)),
    ];
    assert!(check(&history, true));
}

#[test]
fn known_bad_histories() {
    // A change that ended is in force.
    let stale = [
        operation(0, (0, 1), update(0, true, true, 0, 0)),
        operation(1, (2, 3), decide(0, 1, true)),
    ];
    assert!(!check(&stale, true));
    // What was seen once is not unseen.
    let back = [
        operation(0, (0, 9), update(0, true, true, 0, 0)),
        operation(1, (1, 2), decide(0, 1, false)),
        operation(1, (3, 4), decide(0, 1, true)),
    ];
    assert!(!check(&back, true));
    // Half of a change: address 1 accepts 0 already, and is not banned yet.
    let half = |banned_yet: bool| {
        [
            operation(0, (0, 1), update(0, false, true, 1, 2)),
            operation(0, (2, 9), update(1, true, true, 0, 1)),
            operation(1, (3, 4), decide(0, 1, true)),
            operation(1, (5, 6), decide(1, 0, !banned_yet)),
        ]
    };
    assert!(check(&half(true), false));
    assert!(!check(&half(false), false));
    // Never both fine: the source is banned, and only then does the destination accept.
    let mixed = [
        operation(0, (0, 1), update(0, true, true, 0, 0)),
        operation(0, (2, 3), update(1, false, true, 0, 1)),
        operation(1, (0, 4), decide(0, 1, true)),
    ];
    assert!(!check(&mixed, false));
}

#[test]
fn histories_that_are_too_long_are_not_searched() {
    let history = vec![operation(0, (0, 1), decide(0, 0, true)); 65];
    assert_eq!(is_linearizable(&history, State::new(true)), None);
}

/// Engines that threads share, and the layouts of ours.
fn subjects() -> impl Iterator<Item = Subject> {
    Kind::ALL.into_iter().flat_map(Subject::of)
}

/// A short slice; `make histories` runs the long campaign.
#[test]
fn atomic_engines_pass() {
    for subject in subjects().filter(|subject| subject.is_atomic()) {
        for threads in 2..=4 {
            let found = recorded(subject, threads, 300);
            assert!(found.is_ok(), "{} {threads}: {found:?}", subject.name());
        }
    }
}

/// Histories within which a race shows that is there: most of the time within some hundreds.
const ENOUGH: usize = 50_000;

/// The race is there to be found.
#[test]
fn published_designs_are_caught() {
    for subject in subjects().filter(|subject| !subject.is_atomic()) {
        assert!(recorded(subject, 3, ENOUGH).is_err(), "{}", subject.name());
    }
}

/// Rounds of histories, at most, until enough of them overlap: beside other programs that keep all processors busy, threads of one
/// history run in turn rather than at once.
#[cfg(pauses)]
const ROUNDS: usize = 20;

/// Histories of which too few overlap would pass whatever the engine does.
#[cfg(pauses)]
#[test]
fn histories_overlap_and_are_in_order() {
    let asked = std::env::var("TAMIS_HISTORIES").ok().map(|number| number.parse());
    let histories = asked.transpose().expect("TAMIS_HISTORIES: expected a number").unwrap_or(500);
    let mut wrong = Vec::new();
    for subject in subjects() {
        for threads in 2..=4 {
            let (what, is_right) = match subject.is_atomic() {
                true => overlapping_in_order(subject, threads, histories),
                false => match recorded(subject, threads, ENOUGH) {
                    Err(_) => ("caught, as it must be".to_owned(), true),
                    Ok(_) => (format!("NOT CAUGHT in {ENOUGH} histories"), false),
                },
            };
            let name = subject.name();
            println!("{name:<28} {threads} threads: {what}");
            wrong.extend((!is_right).then(|| format!("{name} {threads}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Records rounds of histories until 30 % of a round overlap; says what was found, and whether all are in order and enough overlap.
#[cfg(pauses)]
fn overlapping_in_order(subject: Subject, threads: usize, histories: usize) -> (String, bool) {
    let (mut overlapping, mut of) = (0, 0);
    while 10 * overlapping < 3 * histories && of < ROUNDS * histories {
        match recorded(subject, threads, histories) {
            Ok(found) => overlapping += found,
            Err(history) => return (format!("NOT IN ORDER: {history:#?}"), false),
        }
        of += histories;
    }
    let share = 100.0 * overlapping as f64 / of as f64;
    let what = format!("{of} histories, all in order, {share:.1} % overlap");
    (what, 10 * overlapping >= 3 * histories)
}
