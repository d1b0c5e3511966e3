//! Middleboxes behind a ring: a slow one costs the frames that there is no room for and no others, and each is counted.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use live::config::{OnPanic, Side, Slot};
use live::{
    BoxedPort, DRAIN, Descriptor, Driver, Hosted, Next, Polled, Reason, Run, RunError, Status,
    Verdict, WorkerState,
};
use pktio::{MemoryPort, Pool};

use super::super::workers::{Recording, TRACKED, Trouble, Troubled, conversations};
use super::super::{filter, send, syn};
use super::{Job, Leaving, Ports, poll};

const SIDES: [Side; 2] = [Side::After, Side::Before];

fn frames(count: u16) -> Vec<Vec<u8>> {
    (0..count).map(syn).collect()
}

/// A run that has one worker, and who polls it.
fn started(job: &Job, burst: usize, room: usize) -> (Run, Hosted, Leaving) {
    let (ports, leaving) = job.ports();
    let (run, mut hosted) = job.start(ports, Driver::Ringed { slot: job.slot, burst, room });
    (run, hosted.pop().expect("a worker"), leaving)
}

/// Waits until the first direction of a run is as it is to be.
fn wait_until(run: &Run, is_so: impl Fn(&Status) -> bool) {
    while !is_so(&run.status()) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn passes(_: &mut [Descriptor]) {}

/// Frames of 100 ms at 50,000 frames a second, while a collector of garbage has the handler's thread.
#[test]
fn a_pause_costs_nothing_where_the_ring_has_room_for_it_and_what_it_costs_is_counted() {
    for side in SIDES {
        for (room, lost) in [(8192, 0), (5000, 0), (4999, 1), (64, 4936)] {
            let slot = Slot { side, ..Slot::default() };
            let job = Job {
                ports: Ports::OpenWire,
                slot,
                ..Job::new(&filter("ACCEPT", ""), frames(5000))
            };
            let (run, hosted, leaving) = started(&job, 32, room);
            let is_over = |status: &Status| {
                let direction = &status.directions[0].frames;
                let ring = status.workers[0].ring.expect("a ring");
                direction.received == 5000 && ring.frames + direction.dropped() as usize == 5000
            };
            wait_until(&run, is_over);
            let ring = run.status().workers[0].ring.expect("a ring");
            assert_eq!((ring.room, ring.frames, ring.most), (room, 5000 - lost, 5000 - lost));
            let polling = thread::spawn(move || poll(hosted, passes));
            let left = job.finish(run, leaving);
            polling.join().expect("it polls to the end");
            let counted = left.counted(0);
            assert_eq!(counted.of(Reason::MiddleboxRing), lost as u64, "{side:?} {room}");
            assert_eq!(counted.sent, 5000 - lost as u64);
            // Those that came first.
            assert!(left.frames[1] == job.frames[0][..5000 - lost]);
            assert_eq!(left.status.workers[0].ring.map(|ring| ring.frames), Some(0));
        }
    }
}

/// The worker goes on while its middlebox does not: what no middlebox is to see leaves, and nobody takes it for stuck.
#[test]
fn a_middlebox_that_is_blocked_holds_nobody_else_up() {
    let text = filter("DROP", "-A FORWARD -p tcp --dport 0:1499 -j ACCEPT\n");
    let job = Job { ports: Ports::OpenWire, ..Job::new(&text, frames(3000)) };
    let (run, hosted, leaving) = started(&job, 32, 8);
    wait_until(&run, |status| {
        let counted = &status.directions[0].frames;
        counted.of(Reason::Policy) == 1500 && counted.of(Reason::MiddleboxRing) == 1492
    });
    assert_ne!(run.status().workers[0].state, WorkerState::Stuck);
    let polling = thread::spawn(move || poll(hosted, passes));
    let left = job.finish(run, leaving);
    polling.join().expect("it polls to the end");
    assert!(left.ended.is_ok() && left.counted(0).sent == 8);
}

/// Any verdict, by the number of its frame.
fn verdict(number: u64) -> Verdict {
    match number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 {
        0 => Verdict::Pass,
        1 => Verdict::Drop,
        2 => Verdict::Back,
        _ => Verdict::Error,
    }
}

#[test]
fn each_frame_goes_where_its_verdict_says() {
    let frames = frames(700);
    for side in SIDES {
        for (room, burst) in [(1, 1), (13, 256), (256, 13), (1000, 64)] {
            let slot = Slot { side, ..Slot::default() };
            let job = Job { slot, ..Job::new(&filter("ACCEPT", ""), frames.clone()) };
            let mut number = 0;
            let left = job.ringed(room, burst, move |shown: &mut [Descriptor]| {
                for descriptor in shown {
                    number += 1;
                    descriptor.verdict = verdict(number) as u8;
                }
            });
            let of = |wanted| -> Vec<_> {
                let all = (1..).zip(&frames).filter(|(number, _)| verdict(*number) == wanted);
                all.map(|(_, frame)| frame.clone()).collect()
            };
            assert!(left.frames == [of(Verdict::Back), of(Verdict::Pass)], "{side:?} {room}");
            let counted = [Reason::Middlebox, Reason::Handler].map(|r| left.counted(0).of(r));
            let expected = [Verdict::Drop, Verdict::Error].map(|v| of(v).len() as u64);
            assert_eq!(counted, expected);
        }
    }
}

/// A frame of a capture is copied for this, and has room around it.
#[test]
fn frames_become_longer_and_shorter() {
    let frames = frames(100);
    for ports in [Ports::Recorded, Ports::OpenWire] {
        let job = Job { ports, ..Job::new(&filter("ACCEPT", ""), frames.clone()) };
        let mut number = 0;
        let left = job.ringed(500, 16, move |shown: &mut [Descriptor]| {
            for one in shown {
                number += 1;
                assert!(one.headroom >= 64 && one.tailroom >= 64, "{one:?}");
                match number % 3 {
                    0 => (one.address, one.length) = (one.address + 4, one.length - 4),
                    1 => one.length -= 10,
                    _ => one.length += u32::from(one.tailroom) + 1,
                }
            }
        });
        let expected: Vec<_> = (1..)
            .zip(&frames)
            .filter_map(|(number, frame)| match number % 3 {
                0 => Some(frame[4..].to_vec()),
                1 => Some(frame[..frame.len() - 10].to_vec()),
                _ => None,
            })
            .collect();
        assert!(left.frames[1] == expected, "{ports:?}");
        assert_eq!(left.counted(0).of(Reason::Handler), 33);
    }
}

/// The poller is dropped, or panics, with frames that it was shown, gave back, and never saw.
#[test]
fn who_polls_no_more_ends_the_run_and_every_frame_is_accounted_for() {
    for side in SIDES {
        for (polls, workers, room) in [(0, 1, 64), (1, 1, 64), (3, 2, 64), (3, 1, 4096), (2, 2, 7)]
        {
            let slot = Slot { side, ..Slot::default() };
            let frames = conversations(9, None);
            let job = Job { workers, slot, ..Job::new(&filter("DROP", TRACKED), frames) };
            let (ports, leaving) = job.ports();
            let (run, hosted) = job.start(ports, Driver::Ringed { slot, burst: 16, room });
            let mut hosted = hosted.into_iter();
            let mut gone = hosted.next().expect("a worker");
            let others: Vec<_> =
                hosted.map(|hosted| thread::spawn(move || poll(hosted, passes))).collect();
            let first = thread::spawn(move || {
                for _ in 0..polls {
                    gone.poll(Duration::from_secs(9));
                }
                panic!("injected");
            });
            let (status, ended) = run.wait(&AtomicBool::new(false), |_| {});
            assert!(first.join().is_err());
            others.into_iter().for_each(|thread| thread.join().expect("it polls to the end"));
            assert!(matches!(ended, Err(RunError::Abandoned(0))) && status.panicked, "{ended:?}");
            for direction in &status.directions {
                assert!(direction.frames.balances(), "{:?}", direction.frames);
            }
            assert_eq!(leaving()[1].len() as u64, status.directions[0].frames.sent);
        }
    }
}

#[test]
fn who_goes_before_a_frame_comes_ends_the_run() {
    let job = Job { ports: Ports::OpenWire, ..Job::new(&filter("ACCEPT", ""), Vec::new()) };
    let (run, hosted, leaving) = started(&job, 8, 4);
    drop(hosted);
    let (_, ended) = run.wait(&AtomicBool::new(false), |_| {});
    assert!(matches!(ended, Err(RunError::Abandoned(0))), "{ended:?}");
    drop(leaving);
}

/// The output port fails, or panics, over the first burst that comes back: frames that are still at the middlebox then
/// are dropped when they come, or leave, and are counted once.
#[test]
fn trouble_with_what_comes_back_loses_no_frame_that_is_still_away() {
    for side in SIDES {
        for (trouble, on_panic) in [
            (Trouble::Panic, OnPanic::Closed),
            (Trouble::Panic, OnPanic::Open),
            (Trouble::Failure, OnPanic::Closed),
        ] {
            let slot = Slot { side, ..Slot::default() };
            let job = Job { slot, on_panic, ..Job::new(&filter("ACCEPT", ""), frames(200)) };
            let recording = |frames| Recording { frames, at: 0, left: Arc::default() };
            let right = Troubled(recording(Vec::new()), Some(trouble));
            let ports: [BoxedPort; 2] =
                [Box::new(recording(job.frames[0].clone())), Box::new(right)];
            let (run, mut hosted) = job.start(ports, Driver::Ringed { slot, burst: 8, room: 300 });
            let mut hosted = hosted.pop().expect("a worker");
            wait_until(&run, |status| {
                status.workers[0].ring.is_some_and(|ring| ring.frames == 200)
            });
            let shown = [(); 2].map(|()| hosted.poll(Duration::from_secs(9)));
            assert_eq!(shown, [Polled::Frames(8); 2]);
            wait_until(&run, |status| status.directions[0].frames.dropped() >= 8);
            let polling = thread::spawn(move || poll(hosted, passes));
            let (status, ended) = run.wait(&AtomicBool::new(false), |_| {});
            polling.join().expect("it polls to the end");
            let counted = status.directions[0].frames;
            assert!(counted.balances() && counted.received == 200, "{counted:?}");
            match (trouble, on_panic) {
                (Trouble::Panic, OnPanic::Closed) => {
                    assert!(ended.is_ok() && status.panicked);
                    assert_eq!((counted.sent, counted.of(Reason::Panic)), (0, 200));
                }
                (Trouble::Panic, OnPanic::Open) => {
                    assert!(ended.is_ok() && status.panicked);
                    assert_eq!((counted.sent, counted.of(Reason::Panic)), (192, 8));
                }
                (Trouble::Failure, _) => {
                    assert!(matches!(ended, Err(RunError::Port(_))), "{ended:?}");
                    assert_eq!((counted.sent, counted.of(Reason::Device)), (0, 200));
                }
            }
        }
    }
}

/// Once the time to receive is over nothing more is received, and what is at the middlebox still leaves.
#[test]
fn frames_that_are_away_when_it_is_told_to_stop_still_leave() {
    for side in SIDES {
        let slot = Slot { side, ..Slot::default() };
        let job =
            Job { ports: Ports::OpenWire, slot, ..Job::new(&filter("ACCEPT", ""), frames(100)) };
        let (run, mut hosted, leaving) = started(&job, 8, 1000);
        wait_until(&run, |status| status.workers[0].ring.is_some_and(|ring| ring.frames == 100));
        let looked = Arc::new(Barrier::new(2));
        let both = Arc::clone(&looked);
        let polling = thread::spawn(move || {
            assert_eq!(hosted.poll(Duration::from_secs(9)), Polled::Frames(8));
            hosted.stop();
            thread::sleep(DRAIN * 2);
            both.wait();
            both.wait();
            poll(hosted, passes);
        });
        looked.wait();
        assert_ne!(run.status().workers[0].state, WorkerState::Ended);
        looked.wait();
        let left = job.finish(run, leaving);
        polling.join().expect("it polls to the end");
        assert!(left.frames[1] == job.frames[0] && left.ended.is_ok());
    }
}

#[test]
fn what_there_is_no_room_for_is_told() {
    for side in SIDES {
        let slot = Slot { side, ..Slot::default() };
        let job =
            Job { ports: Ports::OpenWire, slot, ..Job::new(&filter("ACCEPT", ""), frames(9)) };
        let pool = Pool::new(100, 2048, 64);
        let [[mut far, near], [_, other]] = [0, 1].map(|_| MemoryPort::pair(&pool, 64, 32));
        let driver = Driver::Ringed { slot: job.slot, burst: 8, room: 4 };
        let (run, mut hosted) = job.start([Box::new(near), Box::new(other)], driver);
        let listening = run.listen("reason middlebox_ring").expect("a filter");
        send(&mut far, &job.frames[0]);
        wait_until(&run, |status| status.directions[0].frames.of(Reason::MiddleboxRing) == 5);
        let hosted = hosted.pop().expect("a worker");
        let polling = thread::spawn(move || poll(hosted, passes));
        assert!(run.wait(&AtomicBool::new(true), |_| {}).1.is_ok());
        polling.join().expect("it polls to the end");
        let mut told = Vec::new();
        while let Next::Frame(frame) = listening.next(Duration::from_secs(60)) {
            told.push(frame.bytes.clone());
        }
        assert!(told == job.frames[0][4..], "{}", told.len());
    }
}

/// Where no frame comes, a poll waits no longer than asked.
#[test]
fn a_poll_that_nothing_comes_for_is_idle() {
    let job = Job { ports: Ports::OpenWire, ..Job::new(&filter("ACCEPT", ""), Vec::new()) };
    let (run, mut hosted, leaving) = started(&job, 8, 4);
    assert_eq!([(); 3].map(|()| hosted.poll(Duration::ZERO)), [Polled::Idle; 3]);
    assert_eq!(hosted.poll(Duration::from_millis(1)), Polled::Idle);
    let polling = thread::spawn(move || poll(hosted, passes));
    assert!(job.finish(run, leaving).ended.is_ok());
    polling.join().expect("it polls to the end");
}
