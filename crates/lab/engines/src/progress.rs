//! Progress as an experiment: a thread is stopped at each of its steps, one after the other, and others go on meanwhile,
//! or they do not. `make histories` runs it, since steps are where a thread of such a build may stumble.
//!
//! Lock-free is an engine none of whose steps holds the others up, whatever they do; what the stopped thread itself needs
//! beside them is not asked.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::catalogue::{Built, Choices, Kind};
use crate::sparse::Sparse;
use crate::sync::stop_at;
use crate::{Config, Engine};

/// What others are given who are to end, whatever else the machine does; and those who are not, which is many times what
/// they would need.
const PATIENCE: [Duration; 2] = [Duration::from_secs(30), Duration::from_millis(300)];
/// Steps that no operation here has.
const STEPS: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Decide,
    Update,
}

fn act(engine: &dyn Engine<u32>, act: Act, at: u32) {
    match act {
        Act::Decide => drop(engine.decide(0, 1)),
        Act::Update => {
            let (begin, end) = (at % 3, at % 3 + 2);
            let png = at % 2 == 0;
            engine.update(&Config {
                address: at % 2,
                persona_non_grata: png,
                accept: !png,
                begin,
                end,
            });
        }
    }
}

/// Steps of one thread's act, each of which it was stopped at, and at how many of them another one's acts did not end.
fn stopped(
    make: &dyn Fn() -> Arc<dyn Engine<u32>>,
    [one, other]: [Act; 2],
    patience: Duration,
) -> (usize, usize) {
    let mut held_up = 0;
    for step in 0..STEPS {
        let engine = make();
        (0..4).for_each(|at| act(&*engine, Act::Update, at));
        let ((says_stopped, is_stopped), (lets_go, may_go)) = (channel(), channel::<()>());
        let stops = engine.clone();
        let thread = std::thread::spawn(move || {
            stop_at(
                step,
                Box::new(move || {
                    let _ = says_stopped.send(());
                    let _ = may_go.recv();
                }),
            );
            act(&*stops, one, 5);
            // A thread that was not stopped says so by its end.
            stop_at(STEPS, Box::new(|| ()));
        });
        if is_stopped.recv().is_err() {
            thread.join().unwrap();
            return (step, held_up);
        }
        let (done, is_done) = channel();
        let goes_on = engine.clone();
        let others = std::thread::spawn(move || {
            (0..6).for_each(|at| act(&*goes_on, other, at));
            let _ = done.send(());
        });
        held_up += usize::from(is_done.recv_timeout(patience).is_err());
        drop(lets_go);
        thread.join().unwrap();
        others.join().unwrap();
    }
    panic!("an operation of more than {STEPS} steps");
}

fn engine(kind: Kind) -> Arc<dyn Engine<u32>> {
    let choices = Choices { addresses: Some(4), stripes: 2, ..Choices::default() };
    match kind.build(&choices) {
        Ok(Built::Shared(engine)) => engine.into(),
        Ok(Built::Alone(_)) | Err(_) => unreachable!("threads share it"),
    }
}

#[test]
fn progress_of_the_firewalls_is_as_they_say() {
    use Act::{Decide, Update};
    // Whether decisions and updates go on during a stopped update, and during a stopped decision.
    let expected = [
        (Kind::Coarse, [false, false, true, false]),
        (Kind::Striped, [false, false, true, false]),
        (Kind::Fine, [false, false, true, false]),
        (Kind::Optimistic, [true, true, true, true]),
        (Kind::Tamis, [true, false, true, true]),
    ];
    let pairs = [(Update, Decide), (Update, Update), (Decide, Decide), (Decide, Update)];
    let check = |name: &str, make: &dyn Fn() -> Arc<dyn Engine<u32>>, expected: [bool; 4]| {
        for ((one, other), goes_on) in pairs.into_iter().zip(expected) {
            let patience = PATIENCE[usize::from(!goes_on)];
            let (steps, held_up) = stopped(make, [one, other], patience);
            println!("{name:<16} {one:?} stopped at {steps} steps: {other:?} held up at {held_up}");
            assert!(steps > 0 && (held_up == 0) == goes_on, "{name} {one:?} {other:?}");
        }
    };
    for (kind, expected) in expected {
        check(kind.name(), &|| engine(kind), expected);
    }
    let sparse = || Arc::new(Sparse::<u32>::new(false, 4)) as Arc<dyn Engine<u32>>;
    check("tamis (sparse)", &sparse, [true, false, true, true]);
}
