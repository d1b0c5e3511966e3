//! Wires that keep the order of all their frames: what several workers send is what one sends, frame by frame.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use dataplane::Unresolved;
use live::config::{Cores, OnPanic, Order, Other, Workers};
use live::{BoxedPort, Reason, Run, Status, WireSpec, WorkerState};
use pktio::{FaultPort, FaultRates};
use rules::model::Family;

use super::workers::{Recording, STATELESS, TRACKED, Trouble, Troubled, conversations};
use super::{config, filter, ruleset};

const REJECTING: &str = "-A FORWARD -p udp --dport 53 -j REJECT\n\
    -A FORWARD -p tcp --dport 80 -j REJECT --reject-with tcp-reset\n-A FORWARD -p icmp -j ACCEPT\n";

/// The frames that left through each port, in order, and the counters.
struct Left {
    there: Vec<Vec<u8>>,
    back: Vec<Vec<u8>>,
    status: Status,
    told: Vec<String>,
    is_well: bool,
}

/// The frames that a port transmitted.
type Transmitted = Arc<Mutex<Vec<Vec<u8>>>>;

/// Ports of a wire, and what is transmitted by each.
type Rig = ([BoxedPort; 2], [Transmitted; 2]);

/// Ports that receive these recordings.
fn recorded(frames: [Vec<Vec<u8>>; 2]) -> ([Recording; 2], [Transmitted; 2]) {
    let left = [Arc::default(), Arc::default()];
    let ends = frames.into_iter().zip(&left);
    let mut ports = ends.map(|(frames, left)| Recording { frames, at: 0, left: Arc::clone(left) });
    let ports = [0, 1].map(|_| ports.next().unwrap());
    (ports, left)
}

/// Runs the rig with this number of workers.
fn through(workers: usize, text: &str, (ports, left): Rig) -> Left {
    let [near, far] = ports;
    let ports = [("left".to_owned(), near), ("right".to_owned(), far)];
    let order = Order::Wire;
    let ends = vec![WireSpec { ports, crossings: Default::default(), other: Other::Pass, order }];
    let wanted = Workers { cores: Cores::Any, count: Some(workers) };
    let rules = [ruleset(Family::Ipv4, text)];
    let config = config(Unresolved::Drop, Vec::new());
    let run = Run::start_on(ends, (&rules, config), OnPanic::Closed, &wanted).unwrap();
    let mut told = Vec::new();
    let (status, ended) = run.wait(&AtomicBool::new(false), |what| told.push(what.to_owned()));
    for direction in &status.directions {
        assert!(direction.frames.balances(), "{:?}", direction.frames);
    }
    let [back, there] = left.map(|left| std::mem::take(&mut *left.lock().unwrap()));
    Left { there, back, status, told, is_well: ended.is_ok() }
}

/// Compares one worker with two to four; `rig` makes a new rig for each.
#[track_caller]
fn agree(text: &str, rig: impl Fn() -> Rig) {
    let one = through(1, text, rig());
    assert!(one.there.len() > 50 && one.is_well, "something passes: {}", one.there.len());
    for workers in 2..=4 {
        let all = through(workers, text, rig());
        assert_eq!(all.status.workers.len(), workers);
        assert!(all.is_well && all.told.is_empty(), "{:?}", all.told);
        for (found, expected) in [(&all.there, &one.there), (&all.back, &one.back)] {
            let differs = found.iter().zip(expected).position(|(one, other)| one != other);
            assert_eq!((found.len(), differs), (expected.len(), None), "{workers} workers");
        }
        for (found, expected) in all.status.directions.iter().zip(&one.status.directions) {
            assert_eq!(found.frames, expected.frames, "{workers} workers");
            let queue = found.queue.expect("a queue");
            assert_eq!((queue.bursts, queue.overdue), (0, 0));
        }
    }
}

/// Ports that receive these.
fn plain(frames: [Vec<Vec<u8>>; 2]) -> Rig {
    let (ports, left) = recorded(frames);
    (ports.map(|port| Box::new(port) as BoxedPort), left)
}

#[test]
fn without_connections() {
    let frames = [conversations(11, None), conversations(12, None)];
    agree(&filter("DROP", STATELESS), || plain(frames.clone()));
}

#[test]
fn with_connections_and_fragments() {
    let frames = conversations(13, None);
    agree(&filter("DROP", TRACKED), || plain([frames.clone(), Vec::new()]));
}

#[test]
fn with_replies() {
    // Fewer than a worker's part of the rate of replies: it is no matter whose they are.
    let mut frames = conversations(14, None);
    frames.truncate(400);
    agree(&filter("DROP", REJECTING), || plain([frames.clone(), Vec::new()]));
}

#[test]
fn under_faults() {
    let often = 50_000;
    let rates = FaultRates {
        drop: often,
        duplicate: often,
        truncate: often,
        corrupt: often,
        delay: often,
        reorder: often,
    };
    let frames = conversations(15, None);
    for rules in [STATELESS, TRACKED] {
        agree(&filter("DROP", rules), || {
            let ([near, far], left) = recorded([frames.clone(), Vec::new()]);
            let near: BoxedPort = Box::new(FaultPort::new(near, 1, rates));
            ([near, Box::new(far)], left)
        });
    }
}

const TRANSLATED: &str = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
    -A POSTROUTING -j SNAT --to-source 192.0.2.1\nCOMMIT\n";

/// All packets meet one table of connections, so ports and fragments are no matter.
#[test]
fn with_translation() {
    let frames = [conversations(16, None), Vec::new()];
    agree(TRANSLATED, || plain(frames.clone()));
}

fn through_trouble(trouble: Trouble) -> Left {
    let ([near, far], left) = recorded([conversations(17, None), Vec::new()]);
    let far: BoxedPort = Box::new(Troubled(far, Some(trouble)));
    through(3, &filter("DROP", TRACKED), ([Box::new(near), far], left))
}

#[test]
fn after_a_panic_nothing_leaves_and_every_frame_is_accounted_for() {
    let left = through_trouble(Trouble::Panic);
    assert!(left.is_well && left.status.panicked);
    let counted = left.status.directions[0].frames;
    assert_eq!(counted.received, conversations(17, None).len() as u64);
    assert!(counted.of(Reason::Panic) > 0, "{counted:?}");
    assert!(left.there.len() as u64 == counted.sent);
}

#[test]
fn a_port_that_fails_ends_all_workers() {
    let left = through_trouble(Trouble::Failure);
    assert!(!left.is_well && !left.status.panicked);
    let counted = left.status.directions[0].frames;
    assert!(counted.of(Reason::Device) > 0, "{counted:?}");
    assert!(left.status.workers.iter().all(|worker| worker.state == WorkerState::Ended));
}
