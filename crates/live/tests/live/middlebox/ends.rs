//! How runs with middleboxes end: after panics, when their poller ends, and when they are asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use live::config::{OnPanic, Side, Slot};
use live::{BoxedPort, DRAIN, Descriptor, Driver, Next, Polled, Reason, RunError, Verdict};

use super::super::workers::{Recording, TRACKED, Trouble, Troubled, conversations};
use super::super::{filter, syn};
use super::{Each, Job, Left, Ports, poll};

/// Panics so often, once it has seen a burst of either kind of ports.
fn panicking(job: &Job, times: usize) -> Left {
    let left = Arc::new(AtomicUsize::new(times));
    job.with(|| {
        let (left, mut seen) = (Arc::clone(&left), 0);
        Each(move |_: &mut [u8], _| {
            seen += 1;
            let is_time = seen > 50
                && left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                    .is_ok();
            assert!(!is_time, "injected");
            Verdict::Pass
        })
    })
}

#[test]
fn a_middlebox_that_panics_is_a_worker_that_panics() {
    let frames: Vec<_> = (0..200).map(syn).collect();
    for side in [Side::After, Side::Before] {
        for ports in [Ports::Recorded, Ports::OpenWire] {
            let slot = Slot { side, ..Slot::default() };
            let job = Job { ports, slot, ..Job::new(&filter("ACCEPT", ""), frames.clone()) };
            let left = panicking(&job, 1);
            assert!(left.status.panicked && left.ended.is_ok());
            let (sent, lost) = (left.counted(0).sent, left.counted(0).of(Reason::Panic));
            assert!([32, 48].contains(&sent) && sent + lost == 200, "{sent} {lost}");
            // No middlebox sees a frame any more, and so no second panic follows.
            let left = panicking(&Job { on_panic: OnPanic::Open, ..job }, 2);
            let counted = left.counted(0);
            assert!(left.ended.is_ok() && counted.unevaluated > 0);
            assert!((32..=48).contains(&counted.of(Reason::Panic)), "{counted:?}");
        }
    }
}

/// The poller is dropped while frames wait for it, or before it polled at all.
#[test]
fn a_hosted_worker_that_is_dropped_ends_the_run_and_every_frame_is_accounted_for() {
    for (side, polls, workers) in [Side::After, Side::Before]
        .iter()
        .flat_map(|side| [(side, 0, 1), (side, 1, 1), (side, 3, 2)])
    {
        let frames = conversations(9, None);
        let slot = Slot { side: *side, ..Slot::default() };
        let job = Job { workers, slot, ..Job::new(&filter("DROP", TRACKED), frames) };
        let (ports, leaving) = job.ports();
        let (run, hosted) = job.start(ports, Driver::Hosted(slot, 16));
        let mut hosted = hosted.into_iter();
        let mut gone = hosted.next().expect("a worker");
        let others: Vec<_> =
            hosted.map(|hosted| thread::spawn(move || poll(hosted, |_: &mut [_]| {}))).collect();
        let first = thread::spawn(move || {
            for _ in 0..polls {
                gone.poll(Duration::from_millis(10));
            }
        });
        first.join().expect("it polls");
        let left = job.finish_lossy(run, leaving);
        others.into_iter().for_each(|thread| thread.join().expect("it polls to the end"));
        assert!(matches!(left.ended, Err(RunError::Abandoned(0))), "{:?}", left.ended);
        let counted = left.counted(0);
        assert!(counted.balances(), "{counted:?}");
        assert!(left.status.panicked);
    }
}

/// The output port fails, or panics, over the first burst that a middlebox passed.
#[test]
fn trouble_with_what_was_let_go_costs_a_burst_or_ends_the_run() {
    for side in [Side::After, Side::Before] {
        for trouble in [Trouble::Panic, Trouble::Failure] {
            let slot = Slot { side, ..Slot::default() };
            let frames: Vec<_> = (0..200).map(syn).collect();
            let job = Job { slot, ..Job::new(&filter("ACCEPT", ""), frames.clone()) };
            let recording = |frames| Recording { frames, at: 0, left: Arc::default() };
            let right = Troubled(recording(Vec::new()), Some(trouble));
            let ports: [BoxedPort; 2] = [Box::new(recording(frames)), Box::new(right)];
            let (run, hosted) = job.start(ports, Driver::Hosted(slot, 30));
            let polling = hosted
                .into_iter()
                .map(|hosted| thread::spawn(move || poll(hosted, |_: &mut [_]| {})));
            let polling: Vec<_> = polling.collect();
            let (status, ended) = run.wait(&AtomicBool::new(false), |_| {});
            polling.into_iter().for_each(|thread| thread.join().expect("it polls to the end"));
            let counted = status.directions[0].frames;
            assert!(counted.balances() && counted.sent == 0, "{counted:?}");
            match trouble {
                Trouble::Panic => {
                    assert!(ended.is_ok() && status.panicked);
                    assert_eq!(counted.of(Reason::Panic), 200);
                }
                Trouble::Failure => {
                    assert!(matches!(ended, Err(RunError::Port(_))), "{ended:?}");
                    // A burst of the recording, of which all had waited.
                    assert_eq!((counted.received, counted.of(Reason::Device)), (48, 48));
                }
            }
        }
    }
}

#[test]
fn frames_that_wait_when_it_is_told_to_stop_still_leave() {
    for side in [Side::After, Side::Before] {
        let frames: Vec<_> = (0..100).map(syn).collect();
        let slot = Slot { side, ..Slot::default() };
        let job = Job { ports: Ports::OpenWire, slot, ..Job::new(&filter("ACCEPT", ""), frames) };
        let (ports, leaving) = job.ports();
        let (run, mut hosted) = job.start(ports, Driver::Hosted(slot, 8));
        let mut hosted = hosted.pop().expect("a worker");
        let polling = thread::spawn(move || {
            assert_eq!(hosted.poll(Duration::from_secs(9)), Polled::Frames(8));
            hosted.stop();
            // It knows by the next burst, and then has no time left.
            let polled = [(); 5].map(|()| hosted.poll(Duration::ZERO));
            assert_eq!(polled, [Polled::Frames(8); 5]);
            thread::sleep(DRAIN * 2);
            poll(hosted, |_: &mut [_]| {});
        });
        let left = job.finish_lossy(run, leaving);
        polling.join().expect("it polls to the end");
        // The burst before the request to stop, the burst in which it was noticed, and one more.
        assert_eq!((left.frames[1].len(), left.counted(0).sent), (96, 96));
        assert!(left.ended.is_ok() && left.counted(0).balances());
    }
}

/// Watchers see what a middlebox drops, and what dropped it.
#[test]
fn what_is_dropped_is_told() {
    let frames: Vec<_> = (0..9).map(syn).collect();
    let job = Job::new(&filter("ACCEPT", ""), frames.clone());
    let (ports, leaving) = job.ports();
    let (run, mut hosted) = job.start(ports, Driver::Hosted(Slot::default(), 16));
    let listening = run.listen("").expect("a filter");
    let hosted = hosted.pop().expect("a worker");
    let polling = thread::spawn(move || {
        poll(hosted, |shown: &mut [Descriptor]| {
            let verdicts = [Verdict::Drop, Verdict::Pass, Verdict::Error].into_iter().cycle();
            shown.iter_mut().zip(verdicts).for_each(|(one, verdict)| one.verdict = verdict as u8);
        });
    });
    assert!(job.finish(run, leaving).ended.is_ok());
    polling.join().expect("it polls to the end");
    let mut told = Vec::new();
    while let Next::Frame(frame) = listening.next(Duration::from_secs(60)) {
        told.push(frame.bytes.clone());
    }
    let dropped: Vec<_> = (0..9).filter(|at| at % 3 != 1).map(|at| frames[at].clone()).collect();
    assert!(told == dropped, "{}", told.len());
}

/// Where no frame comes, a poll waits no longer than asked.
#[test]
fn a_poll_that_nothing_comes_for_is_idle() {
    let job = Job { ports: Ports::OpenWire, ..Job::new(&filter("ACCEPT", ""), Vec::new()) };
    let (ports, leaving) = job.ports();
    let (run, mut hosted) = job.start(ports, Driver::Hosted(Slot::default(), 8));
    let mut hosted = hosted.pop().expect("a worker");
    assert_eq!([(); 3].map(|()| hosted.poll(Duration::ZERO)), [Polled::Idle; 3]);
    assert_eq!(hosted.poll(Duration::from_millis(1)), Polled::Idle);
    let polling = thread::spawn(move || poll(hosted, |_: &mut [_]| {}));
    assert!(job.finish(run, leaving).ended.is_ok());
    polling.join().expect("it polls to the end");
}

impl Job {
    /// Finishes like [`Job::finish`], where not all frames may have been received.
    fn finish_lossy(&self, run: live::Run, leaving: super::Leaving) -> Left {
        let (status, ended) = run.wait(&AtomicBool::new(false), |_| {});
        Left { frames: leaving(), status, ended }
    }
}
