//! The checker on histories known to be good or bad, then on every engine.

use access::{Config, Engine};
use engines::catalogue::{Built, Choices, Kind};

use super::check::is_linearizable;
use super::record::{Program, campaign};
use super::*;

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

fn make(kind: Kind, default_accept: bool) -> impl Fn() -> Box<dyn Engine<u32>> + Sync {
    move || {
        let addresses = Some(ADDRESSES as usize);
        let settings = engines::striped_map::Settings { initial: 2, longest: 1, full_percent: 10 };
        let choices = Choices { addresses, default_accept, stripes: 2, striped_map: settings };
        match kind.build(&choices) {
            Ok(Built::Shared(engine)) => engine,
            _ => unreachable!("threads share it"),
        }
    }
}

/// A short slice; `tamis-bench access --check` runs the long campaign.
#[test]
fn atomic_engines_pass() {
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_shared() && kind.is_atomic()) {
        for threads in 2..=4 {
            let default_accept = threads == 3;
            let program = Program { threads, operations: 24 / threads, default_accept };
            let found = campaign(&program, 300, threads as u64, &make(kind, default_accept));
            assert_eq!(found, Ok(()), "{} {threads}", kind.name());
        }
    }
}

/// The race is there to be found; stumbling threads find it within a few histories.
#[test]
fn published_designs_are_caught() {
    engines::jitter(true);
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.is_atomic()) {
        let program = Program { threads: 3, operations: 10, default_accept: false };
        let found = (0..20).any(|seed| campaign(&program, 500, seed, &make(kind, false)).is_err());
        assert!(found, "{}", kind.name());
    }
    engines::jitter(false);
}
