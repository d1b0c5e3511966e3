//! Every interleaving of small programs, by loom: `make loom`.
//!
//! What loom replaces: atomics and locks of the engines, and the table below `fine`, `optimistic` and the
//! sparse layout of `tamis` by one whose calls are single steps (papaya's own tests answer for it).

use std::sync::Mutex;

use crate::tamis::Tamis;
use crate::{Address, Config, Engine};
use loom::sync::Arc;
use loom::thread;

use super::cached::{Cached, Invalidation};
use super::coarse::Coarse;
use super::concurrent_map::Atomic as ConcurrentMap;
use super::fine::Fine;
use super::hopscotch::{Hops, Hopscotch};
use super::matrix::Atomic as Matrix;
use super::optimistic::Optimistic;
use super::sparse::Sparse;
use super::striped::Striped;
use super::striped_map::{Atomic as StripedMap, Settings};
use super::table::Index;

fn config(address: u32, png: bool, begin: u32, end: u32, accept: bool) -> Config<u32> {
    Config { address, persona_non_grata: png, accept, begin, end }
}

/// A program: changes that came before, what a writer does, and the pairs that a reader asks for.
struct Program {
    default: bool,
    before: Vec<Config<u32>>,
    writers: Vec<Vec<Config<u32>>>,
    reader: Vec<(u32, u32)>,
}

/// Answers that some order of whole operations gives: each writer's changes in its order, the reader's
/// questions in theirs.
fn orders(program: &Program) -> Vec<Vec<bool>> {
    let mut found = Vec::new();
    let mut done = vec![0; program.writers.len()];
    let mut model = crate::model::Model::new(program.default);
    program.before.iter().for_each(|change| crate::Decide::update(&mut model, change));
    merge(program, &model, &mut done, &mut Vec::new(), &mut found);
    found
}

fn merge(
    program: &Program,
    model: &crate::model::Model<u32>,
    done: &mut Vec<usize>,
    answers: &mut Vec<bool>,
    found: &mut Vec<Vec<bool>>,
) {
    match program.reader.get(answers.len()) {
        None => found.push(answers.clone()),
        Some(&(source, destination)) => {
            answers.push(model.permits(source, destination));
            merge(program, model, done, answers, found);
            answers.pop();
        }
    }
    for writer in 0..done.len() {
        if let Some(change) = program.writers[writer].get(done[writer]) {
            let mut model = model.clone();
            crate::Decide::update(&mut model, change);
            done[writer] += 1;
            merge(program, &model, done, answers, found);
            done[writer] -= 1;
        }
    }
}

/// At most three times in a run is a thread interrupted where it did not wait.
fn explore<E: Engine<u32> + 'static>(
    make: impl Fn(bool) -> E + Send + Sync + 'static,
    program: Program,
) {
    explore_to(3, make, program);
}

/// Or more often.
fn explore_to<E: Engine<u32> + 'static>(
    interruptions: usize,
    make: impl Fn(bool) -> E + Send + Sync + 'static,
    program: Program,
) {
    let allowed = orders(&program);
    let seen = std::sync::Arc::new(Mutex::new(std::collections::HashSet::new()));
    let (kept, expected) = (seen.clone(), allowed.clone());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(move || {
        let engine = Arc::new(make(program.default));
        program.before.iter().for_each(|change| engine.update(change));
        let writers: Vec<_> = program
            .writers
            .iter()
            .map(|changes| {
                let (engine, changes) = (engine.clone(), changes.clone());
                thread::spawn(move || changes.iter().for_each(|change| engine.update(change)))
            })
            .collect();
        let mut worker = engine.worker();
        let ask = |&(source, destination): &(u32, u32)| worker.decide(source, destination);
        let answers: Vec<bool> = program.reader.iter().map(ask).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(expected.contains(&answers), "{answers:?} is none of {expected:?}");
        seen.lock().unwrap().insert(answers);
    });
    assert!(kept.lock().unwrap().len() > 1, "the program has a race at all");
}

/// One change makes the source free and the destination deaf, or the other way round: half of it would
/// permit what no moment permits.
fn one_change() -> Program {
    Program {
        default: false,
        before: vec![config(0, false, 0, 1, true)],
        writers: vec![vec![config(0, true, 0, 1, false), config(0, false, 0, 2, true)]],
        reader: vec![(0, 0), (1, 0)],
    }
}

/// First the source is banned, then the destination accepts: never both fine at a time.
fn two_addresses() -> Program {
    Program {
        default: false,
        before: vec![config(1, false, 0, 2, false), config(0, false, 0, 1, true)],
        writers: vec![vec![config(0, true, 0, 0, true), config(1, false, 0, 1, true)]],
        reader: vec![(0, 1), (0, 0)],
    }
}

/// One change lifts a ban and accepts a source: who saw the first sees the second.
fn half_a_change() -> Program {
    Program {
        default: false,
        before: vec![config(1, false, 0, 1, true), config(0, true, 0, 2, false)],
        writers: vec![vec![config(0, false, 0, 2, true)]],
        reader: vec![(0, 1), (1, 0)],
    }
}

/// The same change, of which the acceptance is asked for first: who sees it sees the ban lifted.
fn the_other_half() -> Program {
    Program { reader: vec![(1, 0), (0, 1)], ..half_a_change() }
}

/// A range across two words of a bit table.
fn two_words() -> Program {
    Program {
        default: false,
        before: vec![],
        writers: vec![vec![config(2, false, 63, 65, true)]],
        reader: vec![(63, 2), (64, 2)],
    }
}

#[test]
fn tamis_words_two_words() {
    explore(|_| Tamis::new(65, false).unwrap(), two_words());
}

/// Two writers of one address.
fn two_writers() -> Program {
    Program {
        default: false,
        before: vec![],
        writers: vec![vec![config(0, false, 0, 2, true)], vec![config(0, true, 1, 3, false)]],
        reader: vec![(0, 0), (1, 0)],
    }
}

/// Two writers of one address, each of a range of its own: what is there once stays.
fn two_ranges() -> Program {
    let accepts = |begin| vec![config(0, false, begin, begin + 1, true)];
    Program {
        default: false,
        before: vec![],
        writers: vec![accepts(0), accepts(1)],
        reader: vec![(0, 0), (0, 0)],
    }
}

/// Who has seen the second change has seen the first, whatever it remembers.
fn asked_again() -> Program {
    Program {
        default: false,
        before: vec![config(1, false, 0, 1, true)],
        writers: vec![vec![config(1, false, 0, 1, false), config(2, false, 0, 1, true)]],
        reader: vec![(0, 1), (0, 2), (0, 1)],
    }
}

/// While a change is under way, nothing is remembered: who has seen one half of it sees the other one.
fn asked_while_it_changes() -> Program {
    Program {
        default: false,
        before: vec![config(1, false, 0, 2, true)],
        writers: vec![vec![config(1, false, 0, 2, false)]],
        reader: vec![(0, 1), (1, 1), (0, 1)],
    }
}

/// The source is banned while the destination accepts it, and at no other time.
fn a_ban_that_came_and_went() -> Program {
    let bans = |png| config(0, png, 0, 0, true);
    let accepts = |accept| config(1, false, 0, 1, accept);
    Program {
        default: false,
        before: vec![config(2, false, 0, 1, true)],
        writers: vec![vec![bans(true), accepts(true), accepts(false), bans(false)]],
        reader: vec![(0, 1), (0, 2)],
    }
}

/// Two that decide on the same two addresses, the other way round, while both addresses change.
fn there_and_back(engine: impl Engine<u32> + 'static) {
    let engine = Arc::new(engine);
    let change = |address| {
        let engine = engine.clone();
        thread::spawn(move || engine.update(&config(address, false, 0, 2, true)))
    };
    let back = engine.clone();
    let others = [change(0), change(1), thread::spawn(move || drop(back.decide(1, 0)))];
    engine.decide(0, 1);
    others.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn nobody_waits_in_a_circle() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| there_and_back(Matrix::new(Some(2), true).unwrap()));
    builder.check(|| there_and_back(Striped::<u32>::new(true, 2)));
    builder.check(|| there_and_back(StripedMap::new(true, SMALL)));
}

/// As many ranges as no cell has lanes for, so that the change makes a page of them.
#[test]
fn a_page_of_tamis_has_all_that_its_cell_had() {
    let accepts = |source| config(0, false, source, source + 1, true);
    // A cell has lanes for six changes of its members; the fourth range makes seven.
    let before = [0, 2, 4].map(accepts).to_vec();
    let program = Program {
        default: false,
        before,
        writers: vec![vec![accepts(6)]],
        reader: vec![(0, 0), (6, 0)],
    };
    explore(|_| Tamis::tight(32, false), program);
}

/// Addresses appear while a reader looks for them; the source is free again only after all.
fn new_addresses() -> Program {
    let accepts = config(1, false, 0, 1, true);
    let changes = vec![config(0, true, 0, 0, true), accepts, config(0, false, 0, 0, true)];
    Program { default: false, before: vec![], writers: vec![changes], reader: vec![(0, 1), (0, 1)] }
}

/// The four cases of a decision by which of its two addresses have an entry: while it is looked at, both may appear. The
/// pair is never fine but before the changes or after them.
mod null_cases {
    use super::*;

    fn program(default: bool, before: Vec<Config<u32>>, changes: Vec<Config<u32>>) -> Program {
        Program { default, before, writers: vec![changes], reader: vec![(0, 1), (0, 1)] }
    }

    fn bans(png: bool) -> Config<u32> {
        config(0, png, 0, 0, true)
    }

    fn accepts(accept: bool) -> Config<u32> {
        config(1, false, 0, 1, accept)
    }

    /// The destination refuses, then the source is banned.
    pub(super) fn neither() -> Program {
        program(true, vec![], vec![accepts(false), bans(true), accepts(true)])
    }

    /// The source appears banned before the destination accepts it.
    pub(super) fn destination_alone() -> Program {
        program(false, vec![accepts(false)], vec![bans(true), accepts(true), bans(false)])
    }

    /// The destination appears, refusing, before the source is free.
    pub(super) fn source_alone() -> Program {
        program(true, vec![bans(true)], vec![accepts(false), bans(false), accepts(true)])
    }

    /// The source is banned before the destination accepts it.
    pub(super) fn both() -> Program {
        let before = vec![bans(false), accepts(false)];
        program(false, before, vec![bans(true), accepts(true), bans(false)])
    }
}

macro_rules! null_cases {
    ($($engine:ident: $make:expr;)*) => {$(
        mod $engine {
            use super::*;

            #[test]
            fn neither_has_an_entry() {
                explore($make, null_cases::neither());
            }

            #[test]
            fn the_destination_alone_has_one() {
                explore($make, null_cases::destination_alone());
            }

            #[test]
            fn the_source_alone_has_one() {
                explore($make, null_cases::source_alone());
            }

            #[test]
            fn both_have_one() {
                explore($make, null_cases::both());
            }
        }
    )*};
}

null_cases! {
    null_cases_fine: |default| Fine::<u32>::new(default, 4);
    null_cases_hopscotch: |default| Hopscotch::<u32>::new(default, 1);
    null_cases_optimistic: |default| Optimistic::<u32>::new(default, 4);
    null_cases_tamis_sparse: |default| Sparse::new(default, 1);
}

/// An entry is found while another one is put in, which moves it, and what is not there is not found.
#[test]
fn hopscotch_finds_what_moves() {
    let of_home = |home| (0..).filter(move |address: &u32| address.spread() & 3 == home);
    let (moved, other) = (of_home(1).next().unwrap(), of_home(0).next().unwrap());
    let (moves, absent) = (of_home(0).nth(1).unwrap(), of_home(1).nth(1).unwrap());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        // Four buckets, of which an entry is in its home or in the next one.
        let hops = Arc::new(Hops::<u32, u32>::with_room(2));
        [other, moved].map(|address| hops.get_or_insert(address, || address, &()));
        let writes = hops.clone();
        let writer = thread::spawn(move || {
            writes.get_or_insert(moves, || moves, &());
        });
        assert_eq!(hops.get(moved, &()), Some(&moved));
        assert_eq!(hops.get(absent, &()), None);
        writer.join().unwrap();
        assert!(
            [other, moved, moves].iter().all(|address| hops.get(*address, &()) == Some(address))
        );
    });
}

/// Two writers change ranges of one address that overlap, one putting in and one taking out, while a reader looks: R is
/// replaced as a whole, so each change is there with all of it or not at all.
fn range_updates() -> Program {
    Program {
        default: false,
        before: vec![config(0, false, 0, 3, true)],
        writers: vec![vec![config(0, false, 1, 3, false)], vec![config(0, false, 2, 4, true)]],
        reader: vec![(1, 0), (2, 0)],
    }
}

#[test]
fn non_blocking_range_updates_of_optimistic() {
    explore(|default| Optimistic::<u32>::new(default, 4), range_updates());
}

#[test]
fn non_blocking_range_updates_of_tamis_sparse() {
    explore(|default| Sparse::new(default, 1), range_updates());
}

macro_rules! models {
    ($($engine:ident: $make:expr;)*) => {$(
        mod $engine {
            use super::*;

            #[test]
            fn one_change() {
                explore(|_| $make, super::one_change());
            }

            #[test]
            fn two_addresses() {
                explore(|_| $make, super::two_addresses());
            }

            #[test]
            fn two_writers() {
                explore(|_| $make, super::two_writers());
            }

            #[test]
            fn half_a_change() {
                explore(|_| $make, super::half_a_change());
            }

            #[test]
            fn the_other_half() {
                explore(|_| $make, super::the_other_half());
            }

            #[test]
            fn two_ranges() {
                explore(|_| $make, super::two_ranges());
            }

            #[test]
            fn asked_again() {
                explore(|_| $make, super::asked_again());
            }

            #[test]
            fn asked_while_it_changes() {
                // To the writer and back, twice.
                explore_to(4, |_| $make, super::asked_while_it_changes());
            }

            #[test]
            fn a_ban_that_came_and_went() {
                explore(|_| $make, super::a_ban_that_came_and_went());
            }

            #[test]
            fn new_addresses() {
                explore(|_| $make, super::new_addresses());
            }
        }
    )*};
}

/// Small enough that it grows within a program.
const SMALL: Settings = Settings { initial: 2, longest: 1, full_percent: 10 };

models! {
    coarse: Coarse::<u32>::new(false);
    matrix: Matrix::new(Some(4), false).unwrap();
    concurrent_map: ConcurrentMap::new(false, 4);
    striped_map: StripedMap::new(false, SMALL);
    cached: Cached::new(Tamis::new(4, false).unwrap(), Invalidation::Epoch);
    striped: Striped::<u32>::new(false, 2);
    fine: Fine::<u32>::new(false, 4);
    hopscotch: Hopscotch::<u32>::new(false, 2);
    optimistic: Optimistic::<u32>::new(false, 4);
    tamis_words: Tamis::new(4, false).unwrap();
    tamis_lanes: Tamis::tight(4, false);
    tamis_sparse: Sparse::new(false, 1);
}
