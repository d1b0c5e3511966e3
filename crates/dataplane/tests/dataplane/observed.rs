//! Observers together see what they see alone, and events are the calls that an observer gets.

use conntrack::Mode;
use dataplane::{Arrival, Config, Evaluator, Event, Events, Observer, Path, Program};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use rules::Transit;
use rules::eval;
use rules::model::Family;
use rules::save::{LoadOptions, load};

const RULES: &str = "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j SNAT --to-source 192.0.2.1\nCOMMIT\n\
                     *filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp\n-A FORWARD -p tcp -j ACCEPT\n\
                     -A FORWARD -p udp -m limit --limit 1/hour -m length --length 0:99 -j ACCEPT\nCOMMIT\n";

/// Counts by slot, and does not want to be told of single rules.
#[derive(Default, PartialEq, Debug)]
struct Slots(Vec<u32>, u32);

impl eval::Observer for Slots {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, certain: bool, _: &Transit<'_, '_>) {
        assert!(certain);
        self.0.push(slot);
    }

    fn policy(&mut self, _: u32, _: u32, _: bool, _: &Transit<'_, '_>) {
        self.1 += 1;
    }
}

impl Observer for Slots {}

/// One query of ten, and what an observer saw.
fn watch<O: Observer>(observer: &mut O) {
    let rules = load(RULES, &LoadOptions::default()).unwrap().ruleset;
    let ct = conntrack::Config { mode: Mode::Kernel, ..conntrack::Config::default() };
    let config = Config { ct, path: Some(Path::Forward), ..Config::default() };
    let program = Program::new([rules], config);
    let mut evaluator = Evaluator::new(&program);
    for number in 1..=10 {
        let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [203, 0, 113, 9] };
        let message = Message::udp(5000, 53);
        let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, message) }.frame();
        let time = Some(1_000_000_000 + number * 1000);
        let arrival = Arrival { time, ..Arrival::new(number, Link::Raw, bytes.len()) };
        evaluator.handle(&mut bytes, &arrival, observer);
    }
}

fn told(all: &mut Vec<String>) -> impl FnMut(Event<'_>) {
    |event| all.push(format!("{event:?}"))
}

#[test]
fn two_observers_see_what_each_sees_alone() {
    let (mut alone, mut slots) = (Vec::new(), Slots::default());
    watch(&mut Events(told(&mut alone)));
    watch(&mut slots);
    let (mut one, mut other, mut beside) = (Vec::new(), Vec::new(), Slots::default());
    watch(&mut (&mut beside, (Events(told(&mut one)), Events(told(&mut other)))));
    assert_eq!(beside, slots);
    assert_eq!((&one, &other), (&alone, &alone));
    // Ten packets counted, five of them accepted; the connection of the first is translated.
    assert_eq!((slots.0.len(), slots.1), (16, 5));
}

#[test]
fn events_are_what_an_observer_is_told() {
    let (mut kinds, mut starts, mut bytes) = (Vec::new(), 0, 0);
    watch(&mut Events(|event: Event<'_>| match event {
        Event::Starts { family: Family::Ipv4, path: Path::Forward, .. } => starts += 1,
        Event::Hit { at, certain: true, bytes: more } => {
            kinds.push(at.rule);
            bytes += more;
        }
        Event::Leaves { frame } => assert_eq!(frame[12..16], [192, 0, 2, 1]),
        _ => {}
    }));
    assert_eq!((starts, kinds.len(), bytes), (10, 16, 16 * 28));
    assert_eq!(kinds.iter().filter(|rule| **rule == 2).count(), 5);
}
