//! Walks that are too long: nothing that they decide or change is taken for known, and they do not cost their length
//! packet after packet.

use std::fmt::Write;
use std::sync::Arc;

use dataplane::{Arrival, Config, FinalVerdict, Handler, Observer, Path, Program, Why};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use rules::Class;
use rules::Outcome;
use rules::Transit;
use rules::eval::{self, Alive, Cause, MAX_STEPS, PATIENCE, RuleRef};
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};

/// Chains that jump to the next one twice over: one jump to the first is more than a walk may be.
fn diamond(levels: usize) -> String {
    let mut text = String::new();
    for level in 0..levels {
        writeln!(text, ":d{level} - [0:0]").expect("a string");
    }
    for (level, next) in (1..levels).enumerate() {
        for _ in 0..2 {
            writeln!(text, "-A d{level} -j d{next}").expect("a string");
        }
    }
    text
}

fn ruleset(text: &str) -> Arc<Ruleset> {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    Arc::new(load(text, &options).unwrap_or_else(|error| panic!("{error}")).ruleset)
}

/// Notes what verdicts depend on and how many rules were looked at.
#[derive(Default)]
struct Notes {
    causes: Vec<Why>,
    rules: u32,
    stops: bool,
}

impl eval::Observer for Notes {
    fn rule(&mut self, _: RuleRef, _: Outcome, _: Alive, _: &Transit<'_, '_>) {
        self.rules += 1;
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.causes.push(Why::Rule(Family::Ipv4, at, cause));
    }

    fn stops(&self) -> bool {
        self.stops
    }
}

impl Observer for Notes {
    fn depends_on(&mut self, why: Why) {
        self.causes.push(why);
    }
}

struct Host {
    program: Program,
    handler: Handler,
    number: u64,
}

impl Host {
    fn new(ruleset: &Arc<Ruleset>, config: &Config) -> Self {
        let program = Program::new([Arc::clone(ruleset)], config.clone());
        Self { handler: Handler::new(&program), program, number: 0 }
    }

    fn pass(&mut self, port: u16, payload_len: usize, notes: &mut Notes) -> FinalVerdict {
        self.number += 1;
        let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
        let message = Message::udp(4000, port);
        let craft = Craft { ethernet: None, payload_len, ..Craft::new(addresses, message) };
        let mut bytes = craft.frame();
        let time = Some(self.number * 1_000_000);
        let arrival = Arrival { time, ..Arrival::new(self.number, Link::Raw, bytes.len()) };
        self.handler.handle(&self.program, &mut bytes, &arrival, notes).outcome.end.verdict
    }
}

fn on(path: Path) -> Config {
    Config { path: Some(path), ..Config::default() }
}

fn causes(notes: &Notes) -> Vec<Cause> {
    let cause = |why: &Why| match why {
        Why::Rule(_, _, cause) => Some(*cause),
        _ => None,
    };
    notes.causes.iter().filter_map(cause).collect()
}

/// The chain ends in a mark that the next table accepts.
fn marking(levels: usize) -> String {
    format!(
        "*mangle\n:OUTPUT ACCEPT [0:0]\n{}-A OUTPUT -j d0\n-A OUTPUT -j MARK --set-mark 1\nCOMMIT\n\
         *filter\n:OUTPUT DROP [0:0]\n-A OUTPUT -m mark --mark 1 -j ACCEPT\nCOMMIT\n",
        diamond(levels)
    )
}

#[test]
fn what_a_walk_that_is_given_up_would_have_marked_is_not_known() {
    let config = on(Path::Output);
    let rules = ruleset(&marking(24));
    let mut notes = Notes::default();
    let verdict = Host::new(&rules, &config).pass(53, 5, &mut notes);
    assert_eq!(verdict, FinalVerdict::Unknown);
    assert_eq!(causes(&notes).first(), Some(&Cause::Steps));
    // One that is short enough says.
    let rules = ruleset(&marking(8));
    let verdict = Host::new(&rules, &config).pass(53, 5, &mut Notes::default());
    assert!(matches!(verdict, FinalVerdict::Accept(_)), "{verdict:?}");
}

#[test]
fn a_packet_is_unknown_whatever_else_drops_it() {
    let config = on(Path::Output);
    let rules = marking(24).replace("-A OUTPUT -m mark --mark 1 -j ACCEPT\n", "");
    let rules = ruleset(&rules);
    let verdict = Host::new(&rules, &config).pass(53, 5, &mut Notes::default());
    assert_eq!(verdict, FinalVerdict::Unknown);
}

#[test]
fn what_rules_remember_is_indeterminate_after_a_walk_is_given_up() {
    let config = on(Path::Forward);
    let rules = |levels| {
        format!(
            "*filter\n:FORWARD ACCEPT [0:0]\n{}-A FORWARD -p udp --dport 1 -j d0\n\
             -A FORWARD -m statistic --mode nth --every 2 --packet 0 -j DROP\nCOMMIT\n",
            diamond(levels)
        )
    };
    let verdicts = |levels: usize| {
        let rules = ruleset(&rules(levels));
        let mut host = Host::new(&rules, &config);
        [1, 2, 2].map(|port| host.pass(port, 5, &mut Notes::default()))
    };
    let [first, second, third] = verdicts(8);
    assert!(matches!(first, FinalVerdict::Drop(_)) && matches!(third, FinalVerdict::Drop(_)));
    assert!(matches!(second, FinalVerdict::Accept(_)), "{second:?}");
    assert_eq!(verdicts(24), [FinalVerdict::Unknown; 3], "nobody knows who is the second");
}

#[test]
fn a_chain_is_given_up_at_once_after_some_packets() {
    let config = on(Path::Output);
    let rules = ruleset(&marking(24));
    let mut host = Host::new(&rules, &config);
    for _ in 0..PATIENCE {
        let mut notes = Notes::default();
        host.pass(53, 5, &mut notes);
        assert!(notes.rules >= MAX_STEPS, "{}", notes.rules);
        assert_eq!(causes(&notes).first(), Some(&Cause::Steps));
    }
    let mut notes = Notes::default();
    assert_eq!(host.pass(53, 5, &mut notes), FinalVerdict::Unknown);
    assert!(notes.rules < 10, "{}", notes.rules);
    assert_eq!(causes(&notes).first(), Some(&Cause::Patience));
}

#[test]
fn a_walk_ends_when_nobody_waits_for_it() {
    let config = on(Path::Output);
    let rules = ruleset(&marking(24));
    let mut notes = Notes { stops: true, ..Notes::default() };
    assert_eq!(Host::new(&rules, &config).pass(53, 5, &mut notes), FinalVerdict::Unknown);
    assert!(notes.rules < MAX_STEPS / 100, "{}", notes.rules);
    assert_eq!(causes(&notes).first(), Some(&Cause::Stopped));
}

#[test]
fn bytes_that_are_looked_at_are_charged() {
    const RULES: u32 = 20_000;
    let config = on(Path::Forward);
    let rules = |what: &str| {
        let rules: String = (0..RULES).map(|_| format!("-A FORWARD {what} -j DROP\n")).collect();
        ruleset(&format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n"))
    };
    let search = "-m string --string nowhere --algo kmp --icase";
    for what in [search, "-m string --string nowhere --algo bm"] {
        let rules = rules(what);
        let mut host = Host::new(&rules, &config);
        let (mut short, mut long) = (Notes::default(), Notes::default());
        assert!(matches!(host.pass(1, 20, &mut short), FinalVerdict::Accept(_)), "{what}");
        assert_eq!(short.rules, RULES);
        assert_eq!(host.pass(1, 60_000, &mut long), FinalVerdict::Unknown, "{what}");
        assert!(long.rules < RULES / 3, "{}", long.rules);
        assert_eq!(causes(&long), [Cause::Steps]);
    }
}

#[test]
fn one_thread_walks_rules_that_may_be_given_up() {
    let class = |text: &str| ruleset(text).class(false, None);
    assert_eq!(class(&marking(8)), Class::Pure);
    assert!(matches!(class(&marking(24)), Class::Global(_)));
    // A chain that nothing leads to costs nothing.
    let apart = format!("*filter\n:FORWARD ACCEPT [0:0]\n{}COMMIT\n", diamond(24));
    assert_eq!(class(&apart), Class::Pure);
}
