//! Small programs on `tamis` under loom's own atomics, which let a load see an older value wherever the orders that the code
//! names do not forbid it: `make loom`.
//!
//! What loom cannot tell: it takes `SeqCst` for acquire and release, so each program has one reader, for whom those are
//! enough. (Two readers may see two changes in two orders then, which the engine's `SeqCst` forbids.) And it goes
//! through fewer interleavings of one word than the programs of `src/interleavings.rs`.
#![cfg(all(loom, orders))]

use engines::tamis::Tamis;
use engines::{Config, Engine};
use loom::sync::Arc;
use loom::thread;

fn config(address: u32, png: bool, begin: u32, end: u32, accept: bool) -> Config<u32> {
    Config { address, persona_non_grata: png, accept, begin, end }
}

fn permits(engine: &Tamis, source: u32, destination: u32) -> bool {
    engine.decide(source, destination)
}

/// Explores a program: what came before, what each writer does, and what is asked meanwhile and afterwards.
fn explore(
    make: impl Fn() -> Tamis + Send + Sync + 'static,
    before: &[Config<u32>],
    writers: &[&[Config<u32>]],
    ask: impl Fn(&Tamis) + Send + Sync + 'static,
    at_last: impl Fn(&Tamis) + Send + Sync + 'static,
) {
    let before = before.to_vec();
    let writers: Vec<Vec<_>> = writers.iter().map(|changes| changes.to_vec()).collect();
    let mut builder = loom::model::Builder::new();
    // At most twice in a run is a thread interrupted where it did not wait.
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let engine = Arc::new(make());
        before.iter().for_each(|change| engine.update(change));
        let write = |changes: &Vec<Config<u32>>| {
            let (engine, changes) = (Arc::clone(&engine), changes.clone());
            thread::spawn(move || changes.iter().for_each(|change| engine.update(change)))
        };
        let threads: Vec<_> = writers.iter().map(write).collect();
        ask(&engine);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        at_last(&engine);
    });
}

/// Layouts of few addresses and of many.
const LAYOUTS: [fn() -> Tamis; 2] = [|| Tamis::new(4, false).unwrap(), || Tamis::tight(4, false)];

/// The source is banned, and then the destination accepts it: they are never both fine.
#[test]
fn who_sees_a_change_sees_the_one_before_it() {
    for make in LAYOUTS {
        let before = [config(0, false, 0, 1, true), config(1, false, 0, 2, false)];
        let changes = [config(0, true, 0, 0, true), config(1, false, 0, 1, true)];
        explore(make, &before, &[&changes], |engine| assert!(!permits(engine, 0, 1)), |_| ());
    }
}

/// Two writers of one address, each of a range of its own: what is there once stays.
#[test]
fn a_writer_sees_what_the_one_before_it_wrote() {
    for make in LAYOUTS {
        let accepts = |begin| [config(0, false, begin, begin + 1, true)];
        let at_last = |engine: &Tamis| assert!(permits(engine, 0, 0) && permits(engine, 1, 0));
        explore(make, &[], &[&accepts(0), &accepts(1)], |_| (), at_last);
    }
}

/// A second change takes the place of the first in the word of its address: what the first one said is in the cells.
#[test]
fn a_change_is_in_the_cells_when_the_next_one_comes() {
    for make in LAYOUTS {
        let changes = [config(0, false, 0, 1, true), config(0, false, 2, 3, true)];
        let ask = |engine: &Tamis| {
            let later = permits(engine, 2, 0);
            assert!(!later || permits(engine, 0, 0), "it was there before");
        };
        explore(make, &[], &[&changes], ask, |_| ());
    }
}

/// As many ranges as no cell has lanes for: who sees the page sees what is in it.
#[test]
fn who_sees_a_page_sees_what_its_cell_had() {
    let accepts = |source| config(0, false, source, source + 1, true);
    let before = [0, 2, 4].map(accepts);
    let ask = |engine: &Tamis| assert!(permits(engine, 0, 0), "it is there all the time");
    explore(|| Tamis::tight(32, false), &before, &[&[accepts(6)]], ask, |_| ());
}
