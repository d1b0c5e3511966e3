//! Ports that fail, disturb and panic, and rules that change meanwhile.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use live::config::OnPanic;
use live::{Reason, RunError};
use pktio::{Burst, FaultPort, FaultRates, FrameMeta, LinkType, Port, PortError, Readiness, Stats};
use rules::model::Family;

use super::{Left, Rig, filter, finish, ruleset, send, syn};

/// A port that panics so often over frames that it is to transmit.
struct Panics {
    inner: Box<dyn Port + Send>,
    left: u32,
}

impl Port for Panics {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.inner.rx_burst(burst)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        if self.left > 0 {
            self.left -= 1;
            panic!("injected");
        }
        self.inner.tx_burst(burst)
    }

    fn readiness(&self) -> Readiness<'_> {
        self.inner.readiness()
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

/// Frames that come in at once, as [`Rig`] hands them over.
const BURST: u16 = 32;

/// What is left of a rig that panics so often over what leaves, and has more than a burst of frames: the first are accepted. It
/// is stopped once `received` frames have come: to print a panic takes a busy machine longer than a run has to end.
fn panicking(times: u32, on_panic: OnPanic, received: u64) -> Left {
    let rules = format!("-A FORWARD -p tcp --dport 0:{} -j ACCEPT\n", BURST - 1);
    let rig = Rig { on_panic, ..Rig::new(&filter("DROP", &rules)) };
    let Rig { near: [left, right], .. } = rig;
    let right: Box<dyn Port + Send> = Box::new(Panics { inner: right, left: times });
    let frames: Vec<_> = (0..100).map(syn).collect();
    let (run, far) = Rig { near: [left, right], ..rig }.sends(0, &frames).start();
    let start = Instant::now();
    while run.status().directions[0].frames.received < received {
        assert!(start.elapsed() < PATIENCE, "{}", run.status().text());
        std::thread::sleep(Duration::from_millis(1));
    }
    finish(run, far)
}

#[test]
fn after_a_panic_nothing_leaves_or_all_does() {
    let left = panicking(1, OnPanic::Closed, 100);
    assert_eq!((left.frames[1].len(), left.status.panicked), (0, true));
    assert_eq!(left.direction(0).of(Reason::Panic), 100);
    assert!(left.ended.is_ok());
    let left = panicking(1, OnPanic::Open, 100);
    // The burst that it panicked over is lost, and no rule sees the others.
    let later: Vec<_> = (BURST..100).map(syn).collect();
    assert_eq!(left.frames[1], later);
    let counted = left.direction(0);
    assert_eq!((counted.of(Reason::Panic), counted.unevaluated), (32, 68));
}

#[test]
fn a_second_panic_ends_the_worker() {
    let left = panicking(2, OnPanic::Open, 64);
    assert!(matches!(left.ended, Err(RunError::Panicked(0))), "{:?}", left.ended);
    assert_eq!(left.frames[1].len(), 0);
}

/// A port whose medium fails.
struct Fails;

impl Port for Fails {
    fn rx_burst(&mut self, _: &mut Burst) -> Result<usize, PortError> {
        Ok(0)
    }

    fn tx_burst(&mut self, _: &mut Burst) -> Result<usize, PortError> {
        Err(PortError::ReceiveOnly { name: "right".to_owned() })
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Never
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

#[test]
fn a_port_that_fails_ends_the_run_and_is_named() {
    let rig = Rig::new(&filter("ACCEPT", "-A FORWARD -p tcp --dport 5 -j DROP\n"));
    let Rig { near: [left, _], .. } = rig;
    let frames: Vec<_> = (0..10).map(syn).collect();
    let left = Rig { near: [left, Box::new(Fails)], ..rig }.sends(0, &frames).run();
    assert!(
        matches!(&left.ended, Err(RunError::Port(error)) if error.to_string().contains("right"))
    );
    assert_eq!((left.direction(0).of(Reason::Rule), left.direction(0).of(Reason::Device)), (1, 9));
}

#[test]
fn every_frame_is_accounted_for_under_faults() {
    const OFTEN: u32 = 200_000;
    let rates = FaultRates {
        drop: OFTEN,
        duplicate: OFTEN,
        truncate: OFTEN,
        corrupt: OFTEN,
        delay: OFTEN,
        reorder: OFTEN,
    };
    let rules = filter(
        "ACCEPT",
        "-A FORWARD -m conntrack --ctstate INVALID -j DROP\n-A FORWARD -p tcp --dport 80:90 -j REJECT\n",
    );
    for seed in 0..8 {
        let rig = Rig::new(&rules);
        let Rig { near: [left, right], .. } = rig;
        let left: Box<dyn Port + Send> = Box::new(FaultPort::new(left, seed, rates));
        let frames: Vec<_> = (0..1000).map(|at| syn(at % 120)).collect();
        let left = Rig { near: [left, right], ..rig }.sends(0, &frames).sends(1, &frames).run();
        let counted = left.direction(0);
        assert!(counted.of(Reason::Truncated) > 100, "{counted:?}");
        let came = left.frames.each_ref().map(Vec::len);
        let sent = counted.sent + left.direction(1).sent;
        assert_eq!(sent as usize, came[0] + came[1]);
    }
}

/// Whether the next burst is evaluated under rules that are new: none of those frames is lost, or let through by
/// both.
#[test]
fn rules_are_replaced_while_frames_pass() {
    let rules = |port: u16| {
        let text = filter("DROP", &format!("-A FORWARD -p tcp --dport {port} -j ACCEPT\n"));
        ruleset(Family::Ipv4, &text)
    };
    let (run, mut far) = Rig::of([rules(80)]).start();
    let (mut passed, mut burst) = (Vec::new(), Burst::new());
    for round in 0..50_u16 {
        let port = 80 + round;
        if round > 0 {
            let current = run.published().program().number();
            let next = std::sync::Arc::into_inner(rules(port)).expect("nobody else has it");
            run.published().replace(current, next).expect("published");
        }
        send(&mut far[0], &[syn(port), syn(port - 1)]);
        let expected = passed.len() + 1;
        let start = std::time::Instant::now();
        while passed.len() < expected {
            assert!(start.elapsed() < Duration::from_secs(20), "round {round}");
            far[1].rx_burst(&mut burst).unwrap();
            passed.extend(burst.iter().map(|frame| frame.bytes.to_vec()));
        }
        assert_eq!(passed.last(), Some(&syn(port)));
    }
    let left = finish(run, far);
    assert_eq!((left.direction(0).sent, left.direction(0).of(Reason::Policy)), (50, 50));
    assert_eq!(left.frames[1].len(), 0);
}

/// A port that always has one more frame.
struct Endless;

impl Port for Endless {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let meta = FrameMeta { link_type: LinkType::ETHERNET, ..FrameMeta::default() };
        burst.push(&syn(80), meta);
        Ok(1)
    }

    fn tx_burst(&mut self, _: &mut Burst) -> Result<usize, PortError> {
        Ok(0)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Always
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

#[test]
fn frames_without_end_do_not_keep_it_from_stopping() {
    let rig = Rig::new(&filter("DROP", ""));
    let Rig { near: [_, right], .. } = rig;
    let (run, far) = Rig { near: [Box::new(Endless), right], ..rig }.start();
    while run.status().directions[0].frames.received < 1000 {
        std::thread::yield_now();
    }
    let start = std::time::Instant::now();
    let left = finish(run, far);
    assert!(left.direction(0).received > 1000);
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_comes_before_the_end_is_handled() {
    let frames: Vec<_> = (0..2000).map(|at| syn(at % 100)).collect();
    let left = Rig::new(&filter("ACCEPT", "")).sends(0, &frames).run();
    assert_eq!(left.frames[1], frames);
}

/// A port that has looked for frames, found none, and takes its time to say so, once.
struct Slow {
    inner: Box<dyn Port + Send>,
    /// Told that it has looked, and what it waits for then.
    looked: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

impl Port for Slow {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let frames = self.inner.rx_burst(burst)?;
        if frames == 0
            && let Some((looked, go_on)) = self.looked.take()
        {
            looked.send(()).expect("the test waits");
            go_on.recv().expect("the test goes on");
        }
        Ok(frames)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.inner.tx_burst(burst)
    }

    fn readiness(&self) -> Readiness<'_> {
        self.inner.readiness()
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

#[test]
fn what_comes_between_the_last_look_and_the_end_is_handled() {
    let rig = Rig::new(&filter("ACCEPT", ""));
    let Rig { near: [left, right], .. } = rig;
    let ((looks, looked), (go, goes_on)) = (mpsc::channel(), mpsc::channel());
    let left = Slow { inner: left, looked: Some((looks, goes_on)) };
    let (run, mut far) = Rig { near: [Box::new(left), right], ..rig }.start();
    looked.recv().expect("it looks");
    let frames: Vec<_> = (0..100).map(syn).collect();
    send(&mut far[0], &frames);
    run.running().stop();
    go.send(()).expect("it waits");
    let left = finish(run, far);
    assert_eq!(left.frames[1].len(), frames.len());
    assert!(left.frames[1] == frames);
}
