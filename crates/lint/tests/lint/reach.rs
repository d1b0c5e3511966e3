//! What reaches an address: the regions equal what a walk packet by packet along the whole way lets through, and
//! nothing else.

use host::{Host, Network};
use lint::{Question, Reach, Reached, Space, States, To, reach, spec};
use proptest::prelude::*;
use replay::RulesFile;
use replay::why::Singles;
use rules::model::{Hook, Ruleset};
use rules::predicate::{Field, Values};
use rules::save::LoadOptions;

/// Rules, and what walks packets through them.
struct Asked {
    file: RulesFile,
    singles: Singles,
    own: Option<Network>,
}

impl Asked {
    fn of(text: &str, own: Option<&str>) -> Self {
        let file = RulesFile::from_text("rules", text.to_owned(), &LoadOptions::default());
        let file = file.unwrap_or_else(|error| panic!("{error}:\n{text}"));
        let own = own.map(|own| Network::parse(own).expect("a network"));
        let mut config = dataplane::Config::default();
        config.ct.mode = replay::spec::CT;
        config.host.local = own.map(|own| vec![own]);
        let singles = Singles::of(std::slice::from_ref(&file), &config.clone().into());
        Self { file, singles, own }
    }

    fn verdict(&self, packet: &str) -> &'static str {
        self.singles.ask(packet).unwrap_or_else(|error| panic!("{packet}: {error}")).verdict
    }

    fn reach(&self, to: Option<&str>, from: Option<&str>) -> Reach {
        let host = Host { local: self.own.map(|own| vec![own]), ..Host::default() };
        let question = Question {
            to: to.map(|to| To::parse(to).expect("a destination")),
            from: from.map(|from| Network::parse(from).expect("a network")),
            ..Question::default()
        };
        reach(&self.file.ruleset, &question.of_host(&host), &mut |_, packet| {
            let single = self.singles.ask(packet).expect("a packet spec");
            lint::Judged {
                verdict: single.verdict.to_owned(),
                by: single.by,
                place: single.place.map(|place| place.to_string()),
                because: single.because,
                differs: false,
            }
        })
    }
}

const HEAD: &str = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n";

fn rules(nat: &str, filter: &str) -> String {
    format!(
        "{HEAD}{nat}COMMIT\n*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n{filter}COMMIT\n"
    )
}

#[test]
fn the_address_that_outsiders_use_is_told() {
    let text = rules(
        "-A PREROUTING -d 198.51.100.1/32 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.0.0.5:80\n",
        "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
         -A FORWARD ! -s 192.0.2.0/24 -d 10.0.0.5/32 -p tcp -m tcp --dport 80 -j ACCEPT\n",
    );
    let asked = Asked::of(&text, Some("198.51.100.1"));
    let found = asked.reach(Some("10.0.0.5:80/tcp"), None);
    assert_eq!(found.reached(), Reached::Yes);
    let open = |it: &&lint::Reaching| it.states == States::New && it.way == Hook::Forward;
    let mut open: Vec<_> = found.regions.iter().filter(open).collect();
    open.sort_by_key(|it| it.translated.is_some());
    let [plain, translated] = &open[..] else { panic!("{found:#?}") };
    assert_eq!(plain.piece.to_string(), "source !192.0.2.0/24");
    let to = translated.translated.as_ref().expect("a translation");
    assert_eq!((&*to.to, to.line), ("10.0.0.5:80", 4));
    let words = translated.piece.to_string();
    assert_eq!(words, "source !192.0.2.0/24, destination 198.51.100.1, protocol tcp, dport 8080");
    let (packet, judged) = translated.witness.as_ref().expect("a packet");
    assert!(packet.contains("> 198.51.100.1:8080 syn path=forward"), "{packet}");
    assert_eq!(judged.place.as_deref(), Some("filter/FORWARD/2"));
    // And the address that outsiders use leads there.
    let outside = asked.reach(Some("198.51.100.1:8080/tcp"), None);
    assert_eq!(outside.reached(), Reached::Yes);
    assert!(outside.regions.iter().any(|it| it.translated.as_ref() == Some(to)), "{outside:#?}");
    assert_eq!(asked.reach(Some("10.0.0.5:81/tcp"), None).reached(), Reached::No);
    // What was sent to another port of it is not sent on.
    assert_eq!(asked.reach(Some("198.51.100.1:8081/tcp"), None).reached(), Reached::No);
    assert_eq!(asked.reach(Some("10.0.0.5:80/tcp"), Some("192.0.2.7")).reached(), Reached::No);
}

#[test]
fn what_a_test_decides_that_can_only_be_asked_is_perhaps() {
    let text = rules("", "-A FORWARD -m recent --name known --rcheck --rsource -j ACCEPT\n");
    let found = Asked::of(&text, None).reach(Some("10.0.0.5"), None);
    assert_eq!(found.reached(), Reached::Perhaps);
    let region = &found.regions[0];
    assert!(!region.is_certain && region.depends[0].starts_with("-m recent"), "{region:#?}");
}

#[test]
fn of_several_destinations_one_is_perhaps() {
    let text = rules(
        "-A PREROUTING -d 198.51.100.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.5-10.0.0.6\n",
        "-A FORWARD -d 10.0.0.5/32 -j ACCEPT\n",
    );
    let found = Asked::of(&text, Some("198.51.100.1")).reach(Some("198.51.100.1:80/tcp"), None);
    let translated = found.regions.iter().find(|it| it.translated.is_some());
    assert!(!translated.expect("a region").is_certain, "{found:#?}");
}

#[test]
fn untracked_packets_are_taken_by_what_asks_for_them() {
    let text = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -m udp --dport 53 -j CT --notrack\nCOMMIT\n\
                *filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n\
                -A FORWARD -p udp -m conntrack --ctstate UNTRACKED -j ACCEPT\nCOMMIT\n";
    let asked = Asked::of(text, None);
    assert_eq!(asked.reach(Some("10.0.0.5:53/udp"), None).reached(), Reached::Yes);
    assert_eq!(asked.reach(Some("10.0.0.5:54/udp"), None).reached(), Reached::No);
}

const TESTS: &[&str] = &[
    "",
    "-s 10.0.0.1/32",
    "! -s 10.0.0.1/32",
    "-d 10.9.0.5/32",
    "! -d 10.9.0.5/32",
    "-d 10.9.0.0/29",
    "-i eth0",
    "-p tcp",
    "-p tcp -m tcp --dport 80",
    "-p tcp -m tcp ! --dport 80",
    "-p udp -m udp --dport 53",
    "-p tcp -m multiport --dports 22,8080",
    "-m conntrack --ctstate NEW",
    "-m conntrack ! --ctstate NEW",
];
const DESTINATIONS: &[&str] = &[
    "-j ACCEPT",
    "-j RETURN",
    "-p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.9.0.5:80",
    "-p tcp -m tcp --dport 80 -j DNAT --to-destination 10.9.0.6",
    "-d 198.51.100.1/32 -j DNAT --to-destination 10.9.0.5",
    "-p udp -m udp --dport 53 -j DNAT --to-destination :54",
];
const VERDICTS: &[&str] = &["-j ACCEPT", "-j DROP", "-j REJECT", "-j A", "-g A"];

fn line(chain: &'static str, actions: &'static [&'static str]) -> impl Strategy<Value = String> {
    let actions: Vec<&str> =
        actions.iter().filter(|it| chain != "A" || !it.ends_with('A')).copied().collect();
    let select = proptest::sample::select;
    (select(TESTS.to_vec()), select(actions)).prop_map(move |(test, action)| {
        // A rule has one destination, and one protocol.
        let twice = |word: &str| test.contains(word) && action.contains(word);
        let test = if twice("-p ") || twice("-d ") { "" } else { test };
        format!("-A {chain} {test} {action}\n")
    })
}

fn text() -> impl Strategy<Value = String> {
    let rules = |chain, actions, most| {
        prop::collection::vec(line(chain, actions), 0..most).prop_map(|lines| lines.concat())
    };
    let drops: &[&str] = &["-j DROP", "-j ACCEPT"];
    (
        rules("PREROUTING", drops, 3),
        rules("PREROUTING", DESTINATIONS, 4),
        rules("INPUT", VERDICTS, 4),
        rules("FORWARD", VERDICTS, 5),
        rules("A", VERDICTS, 3),
        prop_oneof![Just("ACCEPT"), Just("DROP")],
    )
        .prop_map(|(mangle, nat, input, forward, a, policy)| {
            format!(
                "*mangle\n:PREROUTING ACCEPT [0:0]\n{mangle}COMMIT\n{HEAD}{nat}COMMIT\n\
                 *filter\n:INPUT {policy} [0:0]\n:FORWARD {policy} [0:0]\n:A - [0:0]\n{input}{forward}{a}COMMIT\n"
            )
        })
}

/// The host's address.
const OWN: u128 = 0xc633_6401;

/// Every packet that the tests tell apart.
fn universe() -> Vec<Values> {
    let mut all = Vec::new();
    for source in [0x0a00_0001_u128, 0x0a00_0002] {
        for destination in [0x0a09_0005_u128, 0x0a09_0006, 0x0a09_0009, OWN] {
            for (protocol, port) in [(6, 80), (6, 8080), (6, 22), (6, 9), (17, 53), (17, 54)] {
                for input in ["eth0", "eth1"] {
                    let mut values = Values::default();
                    input.clone_into(&mut values.input);
                    values.output = "eth9".to_owned();
                    for (field, number) in [
                        (Field::Source, source),
                        (Field::Destination, destination),
                        (Field::Protocol, protocol),
                        (Field::SourcePort, 40_000),
                        (Field::DestinationPort, port),
                        (Field::TcpFlags, if protocol == 6 { 2 } else { 0 }),
                        (Field::SourceMac, 0x0200_0000_0001),
                    ] {
                        values.set(field, number);
                    }
                    all.push(values);
                }
            }
        }
    }
    all
}

/// Whether a packet is in one of the regions that are certain, and whether in one of any.
fn is_in(found: &Reach, ruleset: &Ruleset, way: Hook, values: &Values) -> (bool, bool) {
    let mut space = Space::of(&[ruleset]);
    let one = space.of_values(values).expect("room");
    let mut is_in = |is_certain: bool| {
        let is_own = values.number(Field::Destination) == OWN;
        // What is not sent on is listed for packets whose own destination is that way.
        let goes = |it: &lint::Reaching| it.translated.is_some() || is_own == (way == Hook::Input);
        let regions = found.regions.iter().filter(|it| goes(it)).filter(|it| {
            it.way == way && it.states != States::Established && (it.is_certain || !is_certain)
        });
        let pieces: Vec<_> = regions.map(|it| space.of_piece(&it.piece).expect("room")).collect();
        pieces.into_iter().any(|piece| space.diagrams.meet(piece, one))
    };
    (is_in(true), is_in(false))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn regions_are_those_of_walks(text in text()) {
        let asked = Asked::of(&text, Some("198.51.100.1"));
        let found = asked.reach(None, Some("10.0.0.0/29"));
        let ruleset = &asked.file.ruleset;
        for values in universe() {
            // The walk itself finds out whether the packet goes through the host or to it.
            let words = spec(ruleset.family, Hook::Forward, &values).expect("words");
            let packet = words.replace(" path=forward", "");
            let accepted = asked.verdict(&packet) == "accept";
            let mut here = values.clone();
            here.output.clear();
            let through = is_in(&found, ruleset, Hook::Forward, &values);
            let to = is_in(&found, ruleset, Hook::Input, &here);
            let reached = (through.0 || to.0, through.1 || to.1);
            prop_assert_eq!(reached, (accepted, accepted), "{}\n{}\n{:#?}", packet, text, found);
        }
    }
}
