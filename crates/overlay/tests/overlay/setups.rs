//! 100 set-ups at once on one node: with their state in a cache keyed by transaction, so that any worker takes up any answer, and
//! with their state inside the function that waits for the answer, where the study began (its first objective). A
//! measurement: `cargo test --release -p tamis-overlay setups -- --ignored --nocapture`.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use overlay::limits::SECOND;
use overlay::{Action, Body, Message, Name, Node};
use tunnel::PublicKey;

use crate::world::{Flying, World, name, policy, seeded, signer};

const SETUPS: u64 = 100;
/// Time from a question to its answer, most of which is the way to the cloud and back.
const ROUND_TRIP: Duration = Duration::from_millis(20);
const ROUNDS: usize = 5;

/// A directory with the nodes that are asked for, far away: what it says arrives a round trip after the question.
struct Cloud {
    world: World,
    asking: PublicKey,
}

impl Cloud {
    fn new() -> Self {
        let mut world = World::new(policy(&[["*", "*"]]), 1);
        world.enrolled("a", 1_000_000);
        (0..SETUPS).for_each(|number| world.enrolled(&asked(number).to_string(), number + 1));
        world.settle(2);
        let (asking, _) = world.nodes.remove(&name("a")).unwrap();
        Self { world, asking }
    }

    /// Answers until nobody asks any more.
    fn serve(mut self, questions: &Receiver<Vec<u8>>, answers: &Sender<Vec<u8>>) -> Self {
        let mut due: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
        loop {
            let pause = due
                .front()
                .map_or(ROUND_TRIP, |(at, _)| at.saturating_duration_since(Instant::now()));
            match questions.recv_timeout(pause) {
                Ok(question) => {
                    let at = Instant::now() + ROUND_TRIP;
                    let said = self.answers(question);
                    due.extend(said.into_iter().map(|message| (at, message)));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self,
            }
            while due.front().is_some_and(|(at, _)| *at <= Instant::now()) {
                let Some((_, message)) = due.pop_front() else { break };
                // Who asked may have ended.
                let _ = answers.send(message);
            }
        }
    }

    /// What the directory says to who asks, once the node that is asked for has said that it is ready.
    fn answers(&mut self, question: Vec<u8>) -> Vec<Vec<u8>> {
        let mut said = Vec::new();
        let is_renewal = Message::parse(&question).is_ok_and(|it| it.body == Body::Renew);
        self.world.deliver(match is_renewal {
            true => Flying::ToAuthority(self.asking, question),
            false => Flying::ToDirectory(self.asking, question),
        });
        while let Some(message) = self.world.flying.pop() {
            match message {
                Flying::ToPeer(to, bytes) if to == self.asking => said.push(bytes),
                message => self.world.deliver(message),
            }
        }
        said
    }
}

fn asked(number: u64) -> Name {
    name(&format!("n{number}"))
}

/// The node that asks, which has registered.
fn node(questions: &Sender<Vec<u8>>, answers: &Receiver<Vec<u8>>) -> Node {
    let mut node = Node::new(name("a"), signer().key(), Box::new(seeded(1))).unwrap();
    node.tick(SECOND);
    send(&mut node, questions);
    while !node.is_registered() {
        node.receive(&answers.recv().unwrap(), SECOND);
        send(&mut node, questions);
    }
    node
}

/// Sends what a node has to say; returns the number of answers that it has for programs.
fn send(node: &mut Node, questions: &Sender<Vec<u8>>) -> u64 {
    let mut answered = 0;
    while let Some(action) = node.take() {
        match action {
            Action::Send(message) | Action::Ask(message) => questions.send(message).unwrap(),
            Action::Answer { found, .. } => {
                found.unwrap();
                answered += 1;
            }
            Action::Note(line) => panic!("{line}"),
            _ => {}
        }
    }
    answered
}

/// State in a cache: workers take what comes.
fn cached(workers: usize, questions: &Sender<Vec<u8>>, answers: &Mutex<Receiver<Vec<u8>>>) {
    let node = Mutex::new(node(questions, &answers.lock().unwrap()));
    let left = Mutex::new(SETUPS);
    {
        let mut node = node.lock().unwrap();
        (0..SETUPS).for_each(|number| node.resolve(&asked(number), SECOND));
        send(&mut node, questions);
    }
    let work = || {
        while *left.lock().unwrap() > 0 {
            let came = answers.lock().unwrap().recv_timeout(Duration::from_millis(1));
            let Ok(message) = came else { continue };
            let mut node = node.lock().unwrap();
            node.receive(&message, SECOND);
            *left.lock().unwrap() -= send(&mut node, questions);
        }
    };
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
}

/// State in the function that waits: `workers` of them take names.
fn blocked(workers: usize, questions: &Sender<Vec<u8>>, answers: &Mutex<Receiver<Vec<u8>>>) {
    drop(node(questions, &answers.lock().unwrap()));
    let names: Mutex<Vec<Name>> = Mutex::new((0..SETUPS).map(asked).collect());
    let waiting: Mutex<HashMap<u64, Sender<Vec<u8>>>> = Mutex::default();
    let left = Mutex::new(SETUPS);
    let set_up = |name: Name, transaction: u64| {
        let (tell, told) = mpsc::channel();
        waiting.lock().unwrap().insert(transaction, tell);
        let body = Body::Direct { name: name.clone() };
        questions.send(Message { transaction, body }.to_bytes()).unwrap();
        let Body::Direction { identity, .. } = Message::parse(&told.recv().unwrap()).unwrap().body
        else {
            panic!("no direction to {name}")
        };
        identity.verify(&signer().key(), 1_800_000_000).unwrap();
        let body = Body::Ready { name, started: 1, version: 1 };
        questions.send(Message { transaction, body }.to_bytes()).unwrap();
        *left.lock().unwrap() -= 1;
    };
    let work = || {
        while let Some((name, transaction)) = {
            let mut names = names.lock().unwrap();
            let number = names.len() as u64;
            names.pop().map(|name| (name, number))
        } {
            set_up(name, transaction);
        }
    };
    let receive = || {
        while *left.lock().unwrap() > 0 {
            let came = answers.lock().unwrap().recv_timeout(Duration::from_millis(1));
            let Ok(message) = came else { continue };
            let transaction = Message::parse(&message).unwrap().transaction;
            let told = waiting.lock().unwrap().remove(&transaction);
            if let Some(told) = told {
                told.send(message).unwrap();
            }
        }
    };
    thread::scope(|scope| {
        (0..workers).for_each(|_| drop(scope.spawn(work)));
        scope.spawn(receive);
    });
}

#[test]
#[ignore = "a measurement"]
fn a_hundred_setups_at_once() {
    type Form = fn(usize, &Sender<Vec<u8>>, &Mutex<Receiver<Vec<u8>>>);
    let forms: [(&str, usize, usize, Form); 5] = [
        ("state in a cache", 1, 1, cached),
        ("state in a cache", 2, 2, cached),
        ("state in the function, a worker waits", 1, 2, blocked),
        ("state in the function, a worker waits", 2, 3, blocked),
        ("state in the function, a thread for each", SETUPS as usize, SETUPS as usize + 1, blocked),
    ];
    let mut cloud = Cloud::new();
    for (what, workers, threads, form) in forms {
        let mut took = Vec::new();
        for _ in 0..ROUNDS {
            let ((ask, questions), (tell, answers)) = (mpsc::channel(), mpsc::channel());
            let serving = thread::spawn(move || cloud.serve(&questions, &tell));
            let answers = Mutex::new(answers);
            let start = Instant::now();
            form(workers, &ask, &answers);
            took.push(start.elapsed().saturating_sub(ROUND_TRIP));
            drop(ask);
            cloud = serving.join().unwrap();
        }
        took.sort_unstable();
        let (median, longest) = (took[ROUNDS / 2], took[ROUNDS - 1]);
        println!(
            "{SETUPS} set-ups, {what}, {workers} workers, {threads} threads: {median:.1?} (to {longest:.1?})"
        );
    }
}
