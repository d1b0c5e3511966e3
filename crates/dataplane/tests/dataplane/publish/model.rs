//! Random programs of commits, reloads, bursts that stay open and snapshots, against plain sums.
//!
//! The oracle keeps a list of rules for every revision, each with a number of its own, and adds one to each rule of
//! the list when a packet walks it.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use dataplane::publish::{Published, Worker};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rules::model::{Family, Hook};

use super::{change, published, rules, ruleset, walk};

const WORKERS: usize = 3;

#[derive(Debug, Clone)]
enum Op {
    Insert(usize, u64),
    Delete(usize),
    Replace(usize, u64),
    /// Rules in their order, but the one of this number, which comes last as a new one.
    Reload(usize),
    /// Starts or ends a burst of this worker.
    Turn(usize),
    /// A packet, where the worker's burst is open.
    Packet(usize),
    /// Ends all bursts and compares.
    Snapshot,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let worker = || 0..WORKERS;
    let op = prop_oneof![
        3 => (any::<usize>(), 0..4u64).prop_map(|(at, start)| Op::Insert(at, start)),
        3 => any::<usize>().prop_map(Op::Delete),
        2 => (any::<usize>(), 0..4u64).prop_map(|(at, start)| Op::Replace(at, start)),
        1 => any::<usize>().prop_map(Op::Reload),
        6 => worker().prop_map(Op::Turn),
        10 => worker().prop_map(Op::Packet),
        1 => Just(Op::Snapshot),
    ];
    prop::collection::vec(op, 1..120)
}

/// Commands to a worker; it answers every line, with the revision when it starts a burst.
enum Told {
    Turn,
    Packet,
}

fn work(mut worker: Worker, told: &Receiver<Told>, answer: &Sender<u64>) {
    while told.recv().is_ok() {
        let mut burst = worker.burst();
        answer.send(burst.program().number()).unwrap();
        while let Ok(Told::Packet) = told.recv() {
            walk(&mut burst);
            answer.send(0).unwrap();
        }
        drop(burst);
        let _ = answer.send(0);
    }
}

/// A rule of the oracle: its number, and text that differs from others'.
type Id = u64;

struct Model {
    lists: HashMap<u64, Vec<Id>>,
    current: u64,
    next: Id,
    counts: HashMap<Id, u64>,
    packets: u64,
    /// The revision that each worker's burst has.
    open: [Option<u64>; WORKERS],
}

impl Model {
    fn list(&self) -> Vec<Id> {
        self.lists[&self.current].clone()
    }

    fn made(&mut self, start: u64) -> Id {
        self.next += 1;
        self.counts.insert(self.next, start);
        self.next
    }

    fn publish(&mut self, list: Vec<Id>) {
        self.current += 1;
        self.lists.insert(self.current, list);
    }
}

fn rule(id: Id, start: u64) -> String {
    format!("-m comment --comment r{id} -c {start} {start}")
}

fn apply(published: &Published, model: &mut Model, op: &Op) {
    let mut list = model.list();
    let lines = match *op {
        Op::Insert(at, start) => {
            let (at, id) = (at % (list.len() + 1), model.made(start));
            list.insert(at, id);
            format!("-I PREROUTING {} {}", at + 1, rule(id, start))
        }
        Op::Delete(at) if !list.is_empty() => {
            let at = at % list.len();
            list.remove(at);
            format!("-D PREROUTING {}", at + 1)
        }
        Op::Replace(at, start) if !list.is_empty() => {
            let (at, id) = (at % list.len(), model.made(start));
            list[at] = id;
            format!("-R PREROUTING {} {}", at + 1, rule(id, start))
        }
        Op::Reload(at) => {
            if !list.is_empty() {
                list.remove(at % list.len());
            }
            list.push(model.made(0));
            let rules = list.iter().map(|id| format!("-A PREROUTING -m comment --comment r{id}\n"));
            let rules: String = rules.collect();
            let text = format!("*mangle\n:PREROUTING ACCEPT [0:0]\n{rules}COMMIT\n");
            published.replace(model.current, ruleset(&text)).unwrap();
            return model.publish(list);
        }
        _ => return,
    };
    assert_eq!(change(published, &lines), model.current + 1);
    model.publish(list);
}

fn compare(published: &Published, model: &Model) -> Result<(), TestCaseError> {
    let snapshot = published.snapshot().unwrap();
    let rules = (0..).map_while(|at| rules(&snapshot.program).rule("mangle", "PREROUTING", at));
    let found: Vec<u64> = rules.map(|rule| snapshot.rule(rule).packets).collect();
    let expected: Vec<u64> = model.list().iter().map(|id| model.counts[id]).collect();
    prop_assert_eq!(found, expected);
    prop_assert_eq!(
        snapshot.policy(Family::Ipv4, "mangle", Hook::Prerouting).packets,
        model.packets
    );
    Ok(())
}

fn run(ops: &[Op]) -> Result<(), TestCaseError> {
    let published = &published("*mangle\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n");
    let mut model = Model {
        lists: HashMap::from([(1, Vec::new())]),
        current: 1,
        next: 0,
        counts: HashMap::new(),
        packets: 0,
        open: [None; WORKERS],
    };
    thread::scope(|scope| {
        let workers: Vec<(Sender<Told>, Receiver<u64>)> = (0..WORKERS)
            .map(|_| {
                let ((tell, told), (answer, answered)) = (channel(), channel());
                let worker = published.worker();
                scope.spawn(move || work(worker, &told, &answer));
                (tell, answered)
            })
            .collect();
        let told = |worker: usize, what| {
            let (tell, answered) = &workers[worker];
            tell.send(what).unwrap();
            answered.recv().unwrap()
        };
        for op in ops.iter().chain([&Op::Snapshot]) {
            match *op {
                Op::Turn(worker) => {
                    let number = told(worker, Told::Turn);
                    let open = model.open[worker].is_some();
                    model.open[worker] = (!open).then_some(number);
                    prop_assert!(open || number == model.current, "{number} is not the newest");
                }
                Op::Packet(worker) => {
                    let Some(number) = model.open[worker] else { continue };
                    told(worker, Told::Packet);
                    model.packets += 1;
                    for id in model.lists[&number].clone() {
                        *model.counts.entry(id).or_default() += 1;
                    }
                }
                Op::Snapshot => {
                    for worker in 0..WORKERS {
                        if model.open[worker].take().is_some() {
                            told(worker, Told::Turn);
                        }
                    }
                    compare(published, &model)?;
                }
                _ => apply(published, &mut model, op),
            }
        }
        Ok(())
    })
}

#[test]
fn counters_are_the_plain_sums() {
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&ops(), |ops| run(&ops)).unwrap();
}
