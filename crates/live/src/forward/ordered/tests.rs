//! Two workers of a wire, turn by turn, of whom one keeps what it has.

use std::sync::Arc;
use std::time::Duration;

use packet::craft::{Addresses, Craft, Message};
use pktio::{Burst, FrameMeta, LinkType, MemoryPort, Pool, Port};
use rules::model::Ruleset;
use rules::save::{LoadOptions, load};

use super::hand::Hand;
use super::*;
use crate::config::{Order, Other};
use crate::forward::account::Accounted;
use crate::forward::causes::Causes;
use crate::forward::evaluator::EvaluatorHandle;
use crate::forward::handover;
use crate::forward::parker::Parker;
use crate::forward::reorder::{Claim, Stage, Way};
use crate::forward::shadow::ShadowWorker;
use crate::forward::talkers::{Sampler, Talkers};
use crate::forward::taps::Taps;
use crate::forward::wire::{Driven, Mode, Turn};
use crate::ports::shared_port::SharedPort;
use dataplane::config::Config;
use dataplane::publish::Published;
use pktio::BoxedPort;

/// Frames that a port hands over at once.
const BURST: usize = 4;
const DROPPED: u16 = 9;

struct Rig {
    /// Where frames go in, and where they come out.
    far: [MemoryPort; 2],
    workers: Vec<(Ordered, EvaluatorHandle)>,
    steering: Steering,
}

impl Rig {
    fn new(rules: &str) -> Self {
        let rules: Arc<Ruleset> = Arc::new(load(rules, &LoadOptions::default()).unwrap().ruleset);
        let published = Published::new([&*rules], Config::default());
        let steering = Steering::in_order(&[rules], 2);
        let pool = Pool::new(4096, 2048, 0);
        let [[far, near], [far_right, near_right]] =
            [(); 2].map(|()| MemoryPort::pair(&pool, 2048, BURST));
        let parts =
            [near, near_right].map(|port| SharedPort::of(Box::new(port), 2, Order::Wire).unwrap());
        let [left, right] = parts.map(Vec::into_iter);
        // What was claimed when its clock was 0 is overdue now.
        let mut lanes = Lanes::new(&steering, false);
        lanes.start -= PATIENCE;
        let lanes = Arc::new(lanes);
        let taps = Arc::<Taps>::default();
        let evaluators: Vec<EvaluatorHandle> = (0..steering.evaluators())
            .map(|_| {
                let shade = ShadowWorker::new(Arc::default(), None);
                EvaluatorHandle::new(published.worker().sending(), shade)
            })
            .collect();
        let workers = left.zip(right).enumerate().map(|(number, (left, right))| {
            let driven = |name, port| Driven {
                name: Arc::from(name),
                port: Box::new(port) as BoxedPort,
                steers: false,
                keeps: false,
            };
            let ends = [driven("left", left), driven("right", right)];
            let tap = taps.tap(ends.each_ref().map(|end| Arc::clone(&end.name)));
            let wire = Wire::new(0, ends, Other::Pass, Default::default(), 2, tap);
            let evaluator = &evaluators[number.min(evaluators.len() - 1)];
            (Ordered::new(wire, &lanes), evaluator.clone())
        });
        let workers = workers.collect();
        Self { far: [far, far_right], workers, steering }
    }

    fn lane(&self) -> &Lane<Frames> {
        &self.workers[0].0.lanes.directions[0]
    }

    /// Datagrams to these ports come in.
    fn send(&mut self, ports: impl Iterator<Item = u16>) {
        let mut burst = Burst::new();
        for port in ports {
            let ends = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
            let addresses = Addresses::new(ends[0], ends[1]).unwrap();
            let bytes = Craft::new(addresses, Message::udp(4000, port)).frame();
            let wire_length = bytes.len() as u32;
            let link_type = LinkType::ETHERNET;
            burst.push(&bytes, FrameMeta { link_type, wire_length, ..FrameMeta::default() });
        }
        self.far[0].tx_burst(&mut burst).unwrap();
        assert!(burst.is_empty());
    }

    /// The ports that the datagrams were to which have left.
    fn left(&mut self) -> Vec<u16> {
        let (mut left, mut burst) = (Vec::new(), Burst::new());
        while self.far[1].rx_burst(&mut burst).unwrap() > 0 {
            left.extend(burst.iter().map(|f| u16::from_be_bytes([f.bytes[36], f.bytes[37]])));
        }
        left
    }

    /// Makes a worker do something.
    fn hand<T>(&mut self, worker: usize, does: impl FnOnce(&mut Hand<'_, '_>) -> T) -> T {
        let parkers = (0..2).map(|_| Arc::new(Parker::new().unwrap()).into());
        let wakers: Vec<std::task::Waker> = parkers.collect();
        let mut handover = handover::among(&wakers, &self.steering).remove(worker);
        let (ordered, evaluator) = &mut self.workers[worker];
        let (causes, mode) = (Causes::default(), Mode::Evaluated);
        let handover = &mut handover;
        let sampler = &mut Sampler::of(&Arc::new(Talkers::of(1)), 0);
        let (causes, holds) = (&causes, false);
        let mut means = Turn { evaluator, causes, handover, sampler, mode, holds, now: 0 };
        does(&mut Hand { ordered, from: 0, means: &mut means, wake: &|| () })
    }

    /// A worker's turns until it finds nothing to do.
    fn turns(&mut self, worker: usize) {
        let lanes = Arc::clone(&self.workers[0].0.lanes);
        let mut turn = || self.hand(worker, |hand| lanes.directions[0].turn(true, hand).unwrap());
        while turn() {}
    }

    /// The sum of what both workers have counted.
    fn counted(&self) -> Accounted {
        let all = self.workers.iter().map(|(ordered, _)| ordered.wire.account(0).read());
        all.fold(Accounted::default(), Accounted::and)
    }
}

const STATELESS: &str = "*filter\n:FORWARD ACCEPT [0:0]\n\
    -A FORWARD -p udp --dport 9 -j DROP\nCOMMIT\n";
const TRACKED: &str = "*filter\n:FORWARD ACCEPT [0:0]\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -p udp --dport 9 -j DROP\nCOMMIT\n";

/// What comes, as a burst that a worker takes at `now`.
fn taken<'l>(lane: &'l Lane<Frames>, hand: &mut Hand<'_, '_>, now: Duration) -> Claim<'l, Frames> {
    let Stage::Room(mut stager) = lane.stage() else { panic!() };
    hand.stage(stager.batch()).unwrap();
    stager.take(now)
}

#[test]
fn what_a_stuck_worker_brings_late_is_dropped_and_the_others_go_on() {
    let mut rig = Rig::new(STATELESS);
    rig.send([DROPPED, 1, 2, 3, 4, 5].into_iter());
    let lanes = Arc::clone(&rig.workers[0].0.lanes);
    let lane = &lanes.directions[0];
    let mut stuck = rig.hand(1, |hand| taken(lane, hand, Duration::ZERO));
    rig.turns(0);
    assert_eq!((rig.left(), rig.lane().backlog().overdue, rig.lane().len()), (vec![4, 5], 1, 0));
    assert_eq!(rig.counted().received - rig.counted().sent, 4, "on their way");
    rig.hand(1, |hand| {
        hand.work(&mut stuck);
        let late = stuck.finish().expect("it is too late");
        hand.late(late);
    });
    let counted = rig.counted();
    assert_eq!((counted.of(Reason::Rule), counted.of(Reason::Overdue)), (1, 3));
    assert!(counted.balances(), "{counted:?}");
}

#[test]
fn what_finds_no_room_is_dropped_by_name() {
    let mut rig = Rig::new(STATELESS);
    let lanes = Arc::clone(&rig.workers[0].0.lanes);
    let lane = &lanes.directions[0];
    let mut bursts = (100_u16..).step_by(BURST).map(|first| first..first + BURST as u16);
    rig.send(bursts.next().unwrap());
    // Not too long ago, whatever the time.
    let mut held = rig.hand(1, |hand| taken(lane, hand, Duration::from_secs(3600)));
    for _ in 1..ROOM + 3 {
        rig.send(bursts.next().unwrap());
        rig.turns(0);
    }
    assert!(rig.left().is_empty(), "all wait for the first");
    assert_eq!((rig.lane().len(), rig.counted().of(Reason::Queue)), (ROOM, 3 * BURST as u64));
    rig.hand(1, |hand| hand.work(&mut held));
    assert!(held.finish().is_none());
    rig.turns(0);
    let all: Vec<u16> = (100..100 + (ROOM * BURST) as u16).collect();
    assert_eq!(rig.left(), all);
    assert!(rig.counted().balances(), "{:?}", rig.counted());
}

/// A panic leaves frames in a worker's hand, some of which have found their fate.
#[test]
fn frames_in_hand_are_dropped_once() {
    let mut rig = Rig::new(STATELESS);
    rig.send([DROPPED, 1, 2].into_iter());
    let lanes = Arc::clone(&rig.workers[0].0.lanes);
    let lane = &lanes.directions[0];
    rig.hand(0, |hand| {
        let mut claim = taken(lane, hand, Duration::ZERO);
        let before = hand.ordered.wire.account(0).on_its_way();
        let frames = claim.len();
        hand.work(&mut claim);
        hand.ordered.in_hand = Some(InHand::new(0, frames, before));
    });
    rig.workers[0].0.abandon(Reason::Panic);
    let counted = rig.counted();
    assert_eq!((counted.of(Reason::Rule), counted.of(Reason::Panic)), (1, 2));
    assert!(counted.balances(), "{counted:?}");
    rig.turns(1);
    assert!(rig.lane().is_empty() && rig.left().is_empty(), "what was lost goes by");
}

/// Of two workers that track connections, one keeps the first packet of a connection: the answer of the other one's burst
/// has met it all the same, and leaves after it.
#[test]
fn bursts_meet_rules_that_track_in_the_order_of_their_arrival() {
    let mut rig = Rig::new(TRACKED);
    assert_eq!(rig.steering.evaluators(), 1);
    rig.send([1, 2, 3, 4].into_iter());
    let lanes = Arc::clone(&rig.workers[0].0.lanes);
    let lane = &lanes.directions[0];
    let mut kept = rig.hand(1, |hand| taken(lane, hand, Duration::from_secs(3600)));
    let flows = |rig: &Rig| rig.workers[0].1.lock().rules.state().flows();
    assert_eq!(flows(&rig), 4, "they met the rules as they came");
    rig.send([1, 2, 3, 4, DROPPED].into_iter());
    rig.turns(0);
    assert_eq!(
        (flows(&rig), rig.left()),
        (4, vec![]),
        "of those that are there, and one was dropped"
    );
    rig.hand(1, |hand| hand.work(&mut kept));
    assert!(kept.finish().is_none());
    rig.turns(0);
    assert_eq!(rig.left(), [1, 2, 3, 4, 1, 2, 3, 4]);
    let counted = rig.counted();
    assert_eq!((counted.of(Reason::Rule), counted.balances()), (1, true), "{counted:?}");
}
