//! What reaches an address on a host whose routes are known: nothing comes in that they refuse, or by what is no link, and
//! what is said of translations is true of the example.

use host::{Host, Links, Network, Policy, Sysctl, routes::Routes};
use lint::{Judged, Question, Reach, Reached, States, To, reach};
use replay::RulesFile;
use replay::why::Singles;
use rules::model::Hook;
use rules::save::LoadOptions;

const ROUTES: &str = "default via 198.51.100.1 dev wan0
10.0.0.0/24 dev lan0 proto kernel scope link src 10.0.0.1
10.0.9.0/24 dev dmz0 proto kernel scope link src 10.0.9.1
198.51.100.0/24 dev wan0 proto kernel scope link src 198.51.100.2
local 10.0.0.1 dev lan0 table local proto kernel scope host src 10.0.0.1
broadcast 10.0.0.255 dev lan0 table local proto kernel scope link src 10.0.0.1
local 10.0.9.1 dev dmz0 table local proto kernel scope host src 10.0.9.1
local 198.51.100.2 dev wan0 table local proto kernel scope host src 198.51.100.2
local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1
";
const LINKS: &str = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN
2: wan0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
3: lan0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
4: dmz0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
5: eth9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
";
const STRICT: &str = "net.ipv4.ip_forward = 1\nnet.ipv4.conf.all.forwarding = 1\nnet.ipv4.conf.default.forwarding = 1\n\
    net.ipv4.conf.all.rp_filter = 1\n";

fn router(routes: &str, settings: &str) -> Host {
    Host {
        routes: Some(Routes::parse(routes).expect("routes")),
        links: Links::parse(LINKS).expect("links"),
        sysctl: (!settings.is_empty()).then(|| Sysctl::parse(settings).expect("settings")),
        ..Host::default()
    }
}

fn asked(text: &str, host: &Host, to: Option<&str>, from: Option<&str>) -> Reach {
    let file = RulesFile::from_text("rules", text.to_owned(), &LoadOptions::default());
    let file = file.unwrap_or_else(|error| panic!("{error}:\n{text}"));
    let mut config = dataplane::Config { host: host.clone(), ..dataplane::Config::default() };
    config.ct.mode = replay::spec::CT;
    let singles = Singles::of(std::slice::from_ref(&file), &config.clone().into());
    let question = Question {
        to: to.map(|to| To::parse(to).expect("a destination")),
        from: from.map(|from| Network::parse(from).expect("a network")),
        ..Question::default()
    };
    reach(&file.ruleset, &question.of_host(host), &mut |_, packet| {
        let single = singles.ask(packet).expect("a packet spec");
        Judged {
            verdict: single.verdict.to_owned(),
            by: single.by,
            place: single.place.map(|place| place.to_string()),
            because: single.because,
            differs: false,
        }
    })
}

fn rules(nat: &str, filter: &str) -> String {
    format!(
        "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n{nat}COMMIT\n\
         *filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n{filter}COMMIT\n"
    )
}

/// Pieces and examples of what opens a connection for certain.
fn open(found: &Reach) -> Vec<(Hook, String, String)> {
    let regions = found.regions.iter().filter(|it| it.states != States::Established);
    let told = regions.filter(|it| it.is_certain).map(|it| {
        let (packet, judged) = it.witness.as_ref().expect("an example");
        assert_eq!(judged.verdict, "accept", "{it:#?}");
        (it.way, it.piece.to_string(), packet.clone())
    });
    told.collect()
}

#[test]
fn routes_tell_the_way_and_the_interface() {
    let text = rules("", "-A FORWARD -j ACCEPT\n-A INPUT -j ACCEPT\n");
    let found = asked(&text, &router(ROUTES, STRICT), Some("10.0.9.10:80/tcp"), None);
    let [(Hook::Forward, words, packet)] = &open(&found)[..] else { panic!("{found:#?}") };
    assert_eq!(words, "every packet");
    assert!(!packet.contains("out=") && !packet.contains("path=") && !packet.contains("other"));
    // No region of INPUT is listed for what goes on.
    assert!(found.closed.iter().all(|it| it.way == Hook::Forward), "{found:#?}");
    let own = asked(&text, &router(ROUTES, STRICT), Some("10.0.9.1:80/tcp"), None);
    assert!(open(&own).iter().all(|(way, ..)| *way == Hook::Input), "{own:#?}");
}

#[test]
fn a_source_comes_in_where_the_routes_lead_back_to_it() {
    let text = rules("", "-A FORWARD -i wan0 -j ACCEPT\n");
    let strict = router(ROUTES, STRICT);
    let to = Some("10.0.9.10:80/tcp");
    assert_eq!(asked(&text, &strict, to, Some("10.0.0.0/24")).reached(), Reached::No);
    assert_eq!(asked(&text, &strict, to, Some("8.8.8.0/24")).reached(), Reached::Yes);
    // Where nobody says whether sources are looked at they are; where they are not, everything comes in.
    assert_eq!(asked(&text, &router(ROUTES, ""), to, Some("10.0.0.0/24")).reached(), Reached::No);
    let loose = STRICT.replace("rp_filter = 1", "rp_filter = 0");
    let loose = router(ROUTES, &loose);
    assert_eq!(asked(&text, &loose, to, Some("10.0.0.0/24")).reached(), Reached::Yes);
    // An own source is a martian.
    let own = asked(&text, &loose, to, Some("198.51.100.2"));
    assert!(open(&own).iter().all(|(way, ..)| *way == Hook::Output), "{own:#?}");
    // Nothing comes in on a link of which nothing is known.
    let other = rules("", "-A FORWARD -i eth9 -j ACCEPT\n");
    assert_eq!(asked(&other, &strict, to, None).reached(), Reached::No);
}

#[test]
fn marks_lead_where_policy_rules_say() {
    let routes = format!("{ROUTES}blackhole 10.9.0.0/16\n10.9.0.0/16 dev dmz0 table 5\n");
    let policy = "0:\tfrom all lookup local\n9:\tfrom all fwmark 0x1/0xff lookup 5\n\
                  32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n";
    let host = Host { policy: Policy::parse(policy).ok(), ..router(&routes, STRICT) };
    let text = format!(
        "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -i lan0 -p udp -j MARK --set-xmark 0x1/0xff\nCOMMIT\n{}",
        rules("", "-A FORWARD -o dmz0 -j ACCEPT\n")
    );
    let found = asked(&text, &host, Some("10.9.0.7"), None);
    let [(Hook::Forward, words, _)] = &open(&found)[..] else { panic!("{found:#?}") };
    assert_eq!(words, "in lan0, protocol udp");
    assert_eq!(asked(&text, &host, Some("10.9.0.7/tcp"), None).reached(), Reached::No);
}

#[test]
fn a_plain_syn_opens_a_connection_and_nothing_else_of_tcp() {
    let others =
        rules("", "-A FORWARD -p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN -j ACCEPT\n");
    let host = router(ROUTES, STRICT);
    assert_eq!(asked(&others, &host, Some("10.0.9.10/tcp"), None).reached(), Reached::No);
    let none =
        others.replace("*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\nCOMMIT\n", "");
    let found = asked(&none, &host, Some("10.0.9.10/tcp"), None);
    assert_eq!(found.reached(), Reached::No, "{found:#?}");
    let syn = rules("", "-A FORWARD -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j ACCEPT\n");
    assert_eq!(asked(&syn, &host, Some("10.0.9.10/tcp"), None).reached(), Reached::Yes);
    let errors = rules("", "-A FORWARD -p icmp -m icmp --icmp-type 3 -j ACCEPT\n");
    assert_eq!(asked(&errors, &host, Some("10.0.9.10/icmp"), None).reached(), Reached::No);
}

#[test]
fn what_leaves_with_another_source_is_told_apart() {
    let text = rules(
        "-A PREROUTING -d 198.51.100.2/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.9.10\n\
         -A POSTROUTING -s 10.0.0.0/24 -d 10.0.9.10/32 -j SNAT --to-source 10.0.9.1\n",
        "-A FORWARD -d 10.0.9.10/32 -j ACCEPT\n",
    );
    let found = asked(&text, &router(ROUTES, STRICT), Some("198.51.100.2:80/tcp"), None);
    let regions = found.regions.iter().filter(|it| it.states == States::New);
    let told: Vec<(bool, bool)> = regions
        .map(|it| {
            let (packet, _) = it.witness.as_ref().expect("an example");
            assert_eq!(it.translated.as_ref().map(|it| &*it.to), Some("10.0.9.10"), "{it:#?}");
            (!it.leaves_as.is_empty(), packet.contains("tcp 10.0.0."))
        })
        .collect();
    assert!(told.contains(&(true, true)) && told.contains(&(false, false)), "{found:#?}");
    assert!(told.iter().all(|(leaves, is_inside)| leaves == is_inside), "{found:#?}");
}

#[test]
fn the_hosts_own_packets_are_asked_for_by_its_address() {
    let text = rules("", "");
    let host = router(ROUTES, STRICT);
    let to = Some("8.8.8.8:53/udp");
    assert_eq!(asked(&text, &host, to, Some("10.0.0.0/24")).reached(), Reached::No);
    let own = asked(&text, &host, to, Some("10.0.0.1"));
    assert!(open(&own).iter().any(|(way, ..)| *way == Hook::Output), "{own:#?}");
}

#[test]
fn a_question_that_nothing_is_routed_for_has_an_example_too() {
    let text = rules("", "-A FORWARD -j ACCEPT\n");
    let routes = ROUTES.replace("default via 198.51.100.1 dev wan0\n", "");
    let found = asked(&text, &router(&routes, STRICT), Some("8.8.8.8:53/udp"), None);
    assert_eq!(found.reached(), Reached::No);
    let (_, judged) = found.stray.as_ref().expect("an example");
    assert_eq!(judged.verdict, "drop", "{found:#?}");
}
