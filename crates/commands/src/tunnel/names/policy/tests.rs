//! The rules of a policy, next to an oracle that reads the policy itself.

use std::collections::BTreeSet;

use overlay::{Line, Policy};
use proptest::prelude::*;
use replay::RulesFile;
use replay::walk::Setup;
use replay::why::{self, Singles};
use rules::model::Counters;
use rules::revision::{Numbers, Revision};
use rules::save::{LoadOptions, load, print_ruleset};
use tunnel::PublicKey;

use super::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const PORTS: [u16; 4] = [21, 22, 23, 8_000];

/// Both families of a node's own table, as its run has them.
struct Held {
    numbers: Numbers,
    tables: Vec<Revision>,
}

fn options(family: Family) -> LoadOptions<'static> {
    LoadOptions { family: Some(family), ..LoadOptions::default() }
}

impl Held {
    fn new() -> Self {
        let key =
            live::config::Named { path: "k".into(), at: live::config::At { line: 1, column: 1 } };
        let mut tunnel = TunnelSettings::usual("tam", (tunnel::PrivateKey::new([1; 32]), key));
        tunnel.cloud = Some(live::config::tunnel::CloudSettings {
            name: name(0),
            domain: "home.internal".to_owned(),
            directory: [10, 99, 0, 1].into(),
            also: Vec::new(),
            authority: None,
            tcp: None,
            signer: overlay::Signer::of_seed(&[9; 32]).unwrap().key(),
        });
        let mut numbers = Numbers::default();
        let first = tables(&tunnel).into_iter().map(|own| {
            let loaded = load(&own.text, &options(own.family)).unwrap();
            Revision::first(&loaded.ruleset, &mut numbers)
        });
        let tables = first.collect();
        Self { numbers, tables }
    }

    fn change(&mut self, changes: &[(Family, String)]) {
        for (family, text) in changes {
            let table = self.tables.iter_mut().find(|table| table.family() == *family).unwrap();
            *table =
                table.changed_by(text, &mut self.numbers).unwrap_or_else(|e| panic!("{e}: {text}"));
        }
    }

    fn printed(&self) -> Vec<String> {
        let print = |table: &Revision| {
            print_ruleset(&table.in_order(), false, |_, _, _| Counters::default())
        };
        self.tables.iter().map(print).collect()
    }

    fn files(&self) -> Vec<RulesFile> {
        let texts = self.tables.iter().map(Revision::family).zip(self.printed());
        let file = |(family, text)| RulesFile::from_text("own", text, &options(family)).unwrap();
        texts.map(file).collect()
    }
}

fn name(number: usize) -> Name {
    NAMES[number].parse().unwrap()
}

fn addresses(number: usize) -> (Ipv4Addr, Ipv6Addr) {
    let last = number as u8 + 2;
    (Ipv4Addr::new(10, 99, 0, last), format!("fd00::{last}").parse().unwrap())
}

fn claims(number: usize) -> Claims {
    let (v4, v6) = addresses(number);
    Claims { key: PublicKey::new([number as u8; 32]), name: name(number), v4, v6, expires: 0 }
}

fn policed() -> Policed {
    let (v4, v6) = addresses(0);
    Policed::new(name(0), &[(v4.into(), 24), (v6.into(), 64)])
}

/// A line as the test draws it: words, words, whether both ways, and services as protocol, first and last port.
type Drawn = (Vec<usize>, Vec<usize>, bool, Vec<(usize, u16, u16)>);

/// Words by their numbers: the nodes, two groups, and all.
const WORDS: [&str; 7] = ["a", "b", "c", "d", "g", "h", "*"];
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "icmp"];

fn drawn() -> impl Strategy<Value = Drawn> {
    let words = || proptest::collection::vec(0..WORDS.len(), 1..3);
    let port = || proptest::sample::select(&PORTS[..]);
    let service = (0..3_usize, port(), port())
        .prop_map(|(kind, one, other)| (kind, one.min(other), one.max(other)));
    (words(), words(), any::<bool>(), proptest::collection::vec(service, 0..3))
}

fn line((from, to, both, services): &Drawn) -> Line {
    let words = |them: &[usize]| them.iter().map(|word| WORDS[*word].to_owned()).collect();
    let service = |(kind, first, last): &(usize, u16, u16)| match kind {
        2 => "icmp".parse().unwrap(),
        kind => format!("{}/{first}-{last}", PROTOCOLS[*kind]).parse().unwrap(),
    };
    let services = services.iter().map(service).collect();
    Line { from: words(from), to: words(to), both: *both, services }
}

/// The oracle: whether a node may send another one the first packet of something.
fn may(
    groups: &[BTreeSet<usize>; 2],
    lines: &[Drawn],
    way: [usize; 2],
    kind: usize,
    port: u16,
) -> bool {
    let holds = |words: &[usize], node: usize| {
        words.iter().any(|word| match word {
            0..=3 => *word == node,
            4 | 5 => groups[word - 4].contains(&node),
            _ => true,
        })
    };
    lines.iter().any(|(from, to, both, services)| {
        let [one, other] = way;
        let is_along = holds(from, one) && holds(to, other);
        let is_against = *both && holds(from, other) && holds(to, one);
        let is_served = |(of, first, last): &(usize, u16, u16)| {
            *of == kind && (kind == 2 || (*first <= port && port <= *last))
        };
        (is_along || is_against) && (services.is_empty() || services.iter().any(is_served))
    })
}

/// The first packet of something between this node and another one.
fn packet(way: [usize; 2], v6: bool, kind: usize, port: u16) -> String {
    let address = |node| {
        let (v4, v6_address) = addresses(node);
        if v6 { v6_address.to_string() } else { v4.to_string() }
    };
    let [from, to] = way.map(address);
    let ports = if way[1] == 0 { "in=tam out=host" } else { "in=host out=tam" };
    let at = |address: &str, port: u16| match v6 {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    };
    match kind {
        2 => format!("{ports} path=forward icmp {from} > {to} echo-request"),
        kind => {
            let flags = if kind == 0 { " syn" } else { "" };
            let (from, to) = (at(&from, 40_000), at(&to, port));
            format!("{ports} path=forward {} {from} > {to}{flags}", PROTOCOLS[kind])
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Peers come, change and go; what the rules accept is what the policy says each time.
    #[test]
    fn the_rules_accept_what_the_policy_lets_begin(
        groups in proptest::array::uniform2(proptest::collection::btree_set(0..4_usize, 0..3)),
        policies in proptest::collection::vec(proptest::collection::vec(drawn(), 0..4), 1..4),
        gone in proptest::option::of(1..4_usize),
    ) {
        let (policed, mut held, empty) = (policed(), Held::new(), Held::new().printed());
        for (version, lines) in (1..).zip(&policies) {
            let members = |group: &BTreeSet<usize>| group.iter().map(|it| name(*it)).collect();
            let named = [("g", members(&groups[0])), ("h", members(&groups[1]))];
            let policy = Policy {
                version,
                groups: named.map(|(word, members)| (word.to_owned(), members)).into(),
                lines: lines.iter().map(line).collect(),
            };
            for peer in 1..4 {
                let permits = policy.permits(&name(0), &name(peer));
                held.change(&policed.texts(&claims(peer), &permits, version == 1));
            }
            let last = version == policies.len() as u64;
            let gone = gone.filter(|_| last);
            if let Some(gone) = gone {
                held.change(&super::gone(addresses(gone)));
            }
            let files = held.files();
            let singles = Singles::of(&files, &as_live());
            for way in (1..4).flat_map(|peer| [[0, peer], [peer, 0]]) {
                for (v6, kind, port) in packets() {
                    let asked = packet(way, v6, kind, port);
                    let verdict = singles.ask(&asked).unwrap().verdict;
                    let may = may(&groups, lines, way, kind, port)
                        && gone.is_none_or(|gone| !way.contains(&gone));
                    prop_assert_eq!(verdict == "accept", may, "{}: {}", asked, verdict);
                }
            }
        }
        // Nothing stays of a peer that went.
        for peer in (1..4).filter(|peer| gone != Some(*peer)) {
            held.change(&super::gone(addresses(peer)));
        }
        prop_assert_eq!(held.printed(), empty);
    }
}

/// Families, protocols and ports of packets.
fn packets() -> impl Iterator<Item = (bool, usize, u16)> {
    let kinds = PORTS.into_iter().flat_map(|port| [(0, port), (1, port)]).chain([(2, 0)]);
    kinds.flat_map(|(kind, port)| [(false, kind, port), (true, kind, port)])
}

/// Connections as a run tracks them.
fn as_live() -> Setup {
    let ct = conntrack::Config { mode: conntrack::Mode::Kernel, ..conntrack::Config::default() };
    Setup::from(dataplane::Config { ct, ..dataplane::Config::default() })
}

fn permits(lines: &[Drawn]) -> Permits {
    let lines = lines.iter().map(line).collect();
    Policy { version: 7, lines, ..Policy::default() }.permits(&name(0), &name(1))
}

#[test]
fn answers_pass_and_what_is_denied_names_the_version() {
    let (policed, mut held) = (policed(), Held::new());
    let permits = permits(&[(vec![1], vec![0], false, vec![(0, 22, 22)])]);
    held.change(&policed.texts(&claims(1), &permits, true));
    let (files, setup) = (held.files(), as_live());
    let story = |packets: &[&str]| {
        let specs: Vec<_> = packets.iter().map(|it| replay::spec::parse(it).unwrap()).collect();
        let (last, before) = specs.split_last().unwrap();
        why::of_conversation(&files, &setup, before, last, None).json()
    };
    let (first, answer) = (
        "in=tam out=host path=forward tcp 10.99.0.3:40000 > 10.99.0.2:22 syn",
        "in=host out=tam path=forward tcp 10.99.0.2:22 > 10.99.0.3:40000 syn,ack",
    );
    let passed = story(&[first]);
    assert_eq!(passed["verdict"], "accept");
    assert!(passed.to_string().contains("policy 7: b -> a tcp/22"), "{passed}");
    assert_eq!(story(&[first, answer])["verdict"], "accept");
    let denied = story(&[answer]);
    assert_eq!(denied["verdict"], "drop");
    assert!(denied["by"].as_str().unwrap().contains("policy 7: no line for b and a"), "{denied}");
    // Somebody that no way leads to, and a packet through this node to somebody behind it.
    let stranger = story(&["in=tam out=host path=forward tcp 10.99.0.9:1 > 10.99.0.2:22 syn"]);
    assert!(stranger["by"].as_str().unwrap().contains("no node that this one has a way to"));
    let through = story(&["in=tam out=host path=forward tcp 10.99.0.3:1 > 192.168.7.1:22 syn"]);
    assert_eq!(through["verdict"], "drop");
}

/// Whatever a directory says, a comment is one word of a rule.
#[test]
fn any_text_of_a_line_makes_one_rule() {
    let (policed, mut held) = (policed(), Held::new());
    let mut permits = permits(&[(vec![1], vec![0], false, Vec::new())]);
    permits.version = u64::MAX;
    permits.lines[0].text = "-j ACCEPT ; COMMIT # *".repeat(4);
    held.change(&policed.texts(&claims(1), &permits, true));
    assert_eq!(held.files().len(), 2);
}
