//! Runs random programs and notes what happened.
//!
//! The clock is one counter that all threads take numbers from, before and after each operation: if one
//! operation's last number is below another's first, it really ended before the other began.
//!
//! Operations have to overlap, or every engine passes. So threads spin until all are there: one that sleeps until then
//! wakes when the others are done. And a build with `--cfg pauses` has them stumble between two looks at what they
//! share. How many histories overlap is counted.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::yield_now;

use crate::{Config, Decide, Engine};

use super::{ADDRESSES, Act, Operation, State, check};

/// Looks at the others before a processor is left to them: there may be fewer than threads.
const PATIENCE: u32 = 50;

/// How histories are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Threads, 2 to 4.
    pub threads: usize,
    /// Operations of each.
    pub operations: usize,
    /// Default of R.
    pub default_accept: bool,
    /// Whether changes ban; those of R alone do not.
    pub bans: bool,
}

/// A random program for each thread: half changes, half decisions, on four addresses.
fn draw(program: &Program, random: &mut fastrand::Rng) -> Vec<Vec<Act>> {
    let mut act = || {
        let address = |random: &mut fastrand::Rng| random.u32(0..ADDRESSES);
        if random.bool() {
            let source = address(random);
            return Act::Decide { source, destination: address(random), permitted: false };
        }
        let begin = address(random);
        Act::Update(Config {
            address: address(random),
            persona_non_grata: random.bool() && program.bans,
            accept: random.bool(),
            begin,
            end: random.u32(begin..=ADDRESSES),
        })
    };
    (0..program.threads).map(|_| (0..program.operations).map(|_| act()).collect()).collect()
}

/// Does a thread's acts, in order.
fn run(
    worker: &mut dyn Decide<u32>,
    acts: &[Act],
    thread: usize,
    clock: &AtomicU64,
) -> Vec<Operation> {
    let mut operation = |act: &Act| {
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let act = match *act {
            Act::Update(config) => {
                worker.update(&config);
                Act::Update(config)
            }
            Act::Decide { source, destination, .. } => {
                let permitted = worker.decide(source, destination);
                Act::Decide { source, destination, permitted }
            }
        };
        let ended = clock.fetch_add(1, Ordering::SeqCst);
        Operation { thread, act, began, ended }
    };
    acts.iter().map(&mut operation).collect()
}

/// Waits until this many have come.
fn meet(arrived: &AtomicU64, all: u64) {
    arrived.fetch_add(1, Ordering::AcqRel);
    let mut looks = 0;
    while arrived.load(Ordering::Acquire) < all {
        looks += 1;
        if looks % PATIENCE == 0 { yield_now() } else { spin_loop() }
    }
}

/// Whether operations of two threads took place at a time.
fn overlaps(history: &[Operation]) -> bool {
    history.iter().any(|one| {
        let with = |other: &Operation| {
            one.thread != other.thread && one.began < other.ended && other.began < one.ended
        };
        history.iter().any(with)
    })
}

/// Records this number of histories, each on an engine of its own. In how many operations overlapped.
///
/// # Errors
/// The first history that cannot have happened one operation at a time.
pub fn campaign(
    program: &Program,
    histories: usize,
    seed: u64,
    make: &(dyn Fn() -> Box<dyn Engine<u32>> + Sync),
) -> Result<usize, Vec<Operation>> {
    let engines: Vec<_> = (0..histories).map(|_| make()).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let programs: Vec<_> = (0..histories).map(|_| draw(program, &mut random)).collect();
    let (clock, arrived) = (AtomicU64::new(0), AtomicU64::new(0));
    let recorded: Vec<Vec<Vec<Operation>>> = std::thread::scope(|scope| {
        let thread = |thread: usize| {
            let (clock, arrived, engines, programs) = (&clock, &arrived, &engines, &programs);
            scope.spawn(move || {
                let each = engines.iter().zip(programs).zip(1..);
                each.map(|((engine, acts), number)| {
                    let mut worker = engine.worker();
                    meet(arrived, number * program.threads as u64);
                    run(&mut *worker, &acts[thread], thread, clock)
                })
                .collect()
            })
        };
        let threads: Vec<_> = (0..program.threads).map(thread).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let mut overlapping = 0;
    for history in 0..histories {
        let of_thread = |thread: &Vec<Vec<Operation>>| thread[history].clone();
        let operations: Vec<_> = recorded.iter().flat_map(of_thread).collect();
        let begin = State::new(program.default_accept);
        if check::is_linearizable(&operations, begin) != Some(true) {
            return Err(operations);
        }
        overlapping += usize::from(overlaps(&operations));
    }
    Ok(overlapping)
}
