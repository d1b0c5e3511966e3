//! Packets that people and programs describe: which way they are on, that their interfaces are the host's.

use conntrack::Mode;
use dataplane::{Config, FinalVerdict};
use host::Host;
use replay::RulesFile;
use replay::spec::{CT, parse};
use replay::walk::Setup;
use replay::why::{Judged, Story, of_conversation, of_lines};
use rules::save::LoadOptions;

use crate::logged::LOGS;

/// A host with two uplinks; packets with mark 2 leave through the second.
pub(crate) fn router() -> Host {
    with_rule("from all fwmark 0x2 lookup 102")
}

/// Two uplinks and this policy rule; table 102 leads out of the second.
pub(crate) fn with_rule(rule: &str) -> Host {
    let file = |name: &str| {
        let text = match name {
            "links.txt" => {
                "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536\\    link/loopback 00:00:00:00:00:00\n\
                 2: wan0: <BROADCAST,UP,LOWER_UP> mtu 1500\\    link/ether 02:00:00:00:00:01\n\
                 3: wan1: <BROADCAST,UP,LOWER_UP> mtu 1500\\    link/ether 02:00:00:00:00:02\n\
                 4: lan0: <BROADCAST,UP,LOWER_UP> mtu 1500\\    link/ether 02:00:00:00:00:03\n"
            }
            "addresses.txt" => {
                "1: lo    inet 127.0.0.1/8 scope host lo\n\
                 2: wan0    inet 198.51.100.1/24 scope global wan0\n\
                 3: wan1    inet 203.0.113.1/24 scope global wan1\n\
                 4: lan0    inet 10.0.0.1/24 scope global lan0\n"
            }
            "routes.txt" => {
                "default via 203.0.113.7 dev wan1 table 102\n\
                 default via 198.51.100.7 dev wan0\n\
                 10.0.0.0/24 dev lan0 proto kernel scope link src 10.0.0.1\n\
                 198.51.100.0/24 dev wan0 proto kernel scope link src 198.51.100.1\n\
                 203.0.113.0/24 dev wan1 proto kernel scope link src 203.0.113.1\n\
                 local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1\n\
                 local 10.0.0.1 dev lan0 table local proto kernel scope host src 10.0.0.1\n\
                 local 198.51.100.1 dev wan0 table local proto kernel scope host src 198.51.100.1\n\
                 local 203.0.113.1 dev wan1 table local proto kernel scope host src 203.0.113.1\n"
            }
            "rule.txt" => {
                return Some(format!(
                    "0:\tfrom all lookup local\n32765:\t{rule}\n\
                     32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n"
                ));
            }
            _ => return None,
        };
        Some(text.to_owned())
    };
    Host::read(file).unwrap()
}

pub(crate) fn on(host: Host) -> Setup {
    let mut config = Config { host, ..Config::default() };
    config.ct.mode = CT;
    config.into()
}

pub(crate) fn rules(text: &str) -> [RulesFile; 1] {
    [RulesFile::from_text("rules.v4", text.to_owned(), &LoadOptions::default()).unwrap()]
}

pub(crate) fn story(rules: &[RulesFile], setup: &Setup, packet: &str) -> Story {
    of_conversation(rules, setup, &[], &parse(packet).unwrap(), None)
}

pub(crate) fn judged(rules: &[RulesFile], setup: &Setup, lines: &str) -> Judged {
    of_lines(rules, setup, Mode::Midstream, lines.as_bytes()).unwrap()
}

pub(crate) const EACH_WAY: &str = "\
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -p tcp -j ACCEPT
-A FORWARD -p tcp -j ACCEPT
-A OUTPUT -p tcp -j ACCEPT
COMMIT
";

/// Kernel: a packet with an output interface alone is seen in OUTPUT only; by `lo` it comes back in.
#[test]
fn what_goes_out_and_came_in_nowhere_is_the_host_s_own() {
    let rules = rules(EACH_WAY);
    let starts = |packet: &str, setup: &Setup| {
        let text = story(&rules, setup, packet).text(false);
        text.lines().find(|line| line.starts_with("path ")).unwrap().to_owned()
    };
    let setup = on(Host::default());
    let behind = Config {
        nets: vec![("eth1".to_owned(), host::Network::parse("10.0.0.0/8").unwrap())],
        ..on(Host::default()).config
    };
    let coming_in = Config { input: Some("eth1".to_owned()), ..on(Host::default()).config };
    let (ends, local) = ("tcp 10.0.0.5:1 > 10.0.0.9:2", "tcp 127.0.0.1:1 > 127.0.0.1:2");
    for (setup, packet, way) in [
        (&setup, format!("out=eth0 {ends}"), "path    output, in none, out eth0"),
        (&setup, format!("out=lo {ends}"), "path    loopback, in lo, out lo"),
        (&setup, format!("out=lo {local}"), "path    loopback, in lo, out lo"),
        (&setup, format!("out=eth0 in=eth1 {ends}"), "path    forward, in eth1, out eth0"),
        (&setup, format!("out=eth0 {ends} path=forward"), "path    forward, in unknown, out eth0"),
        // Somebody says where it came in all the same.
        (&behind.into(), format!("out=eth0 {ends}"), "path    forward, in eth1, out eth0"),
        (&coming_in.into(), format!("out=eth0 {ends}"), "path    forward, in eth1, out eth0"),
    ] {
        assert_eq!(starts(&packet, setup), way, "{packet}");
    }
}

#[test]
fn another_s_packet_that_goes_out_needs_the_interface_that_it_came_in_by() {
    let setup = on(router());
    let fit = |packet: &str| parse(packet).unwrap().fit(packet, &setup.config);
    let error = fit("tcp 192.0.2.9:1 > 192.0.2.7:2 out=wan0").unwrap_err();
    assert_eq!((error.column, error.what.starts_with("in=IFACE beside out=wan0")), (31, true));
    for fits in [
        "out=wan0 tcp 198.51.100.1:1 > 192.0.2.7:2",
        "out=wan0 tcp 192.0.2.9:1 > 192.0.2.7:2 path=output",
        "out=wan0 in=lan0 tcp 192.0.2.9:1 > 192.0.2.7:2",
        "out=lan0 udp 0.0.0.0:68 > 255.255.255.255:67",
        "out=lo tcp 192.0.2.9:1 > 192.0.2.7:2",
        "out=wan0 arp who-has 198.51.100.7 tell 198.51.100.9",
    ] {
        assert_eq!(fit(fits), Ok(()), "{fits}");
    }
    // Without a host nobody knows whose address it is.
    let packet = "out=wan0 tcp 192.0.2.9:1 > 192.0.2.7:2";
    assert_eq!(parse(packet).unwrap().fit(packet, &on(Host::default()).config), Ok(()));
}

#[test]
fn an_interface_that_the_host_does_not_have_is_refused_with_the_nearest() {
    let setup = on(router());
    let fit = |packet: &str| parse(packet).unwrap().fit(packet, &setup.config);
    let error = fit("tcp 192.0.2.9:1 > 10.0.0.9:2 in=wna0").unwrap_err();
    assert_eq!(error.column, 30);
    assert_eq!(error.what, "an interface that the host has (the nearest is wan0), found \"wna0\"");
    let far = fit("in=ppp7 tcp 192.0.2.9:1 > 10.0.0.9:2").unwrap_err().what;
    assert!(far.contains("(lo, wan0, wan1, lan0)"), "{far}");
    // A line of the log names it in its own way, and so does tcpdump.
    for line in [
        "IN=wna0 OUT= SRC=192.0.2.9 DST=10.0.0.1 LEN=60 TOS=0x00 PREC=0x00 TTL=52 PROTO=TCP SPT=1 DPT=2 SYN",
        "12:00:00.5 wna0  In  IP 192.0.2.9.1 > 10.0.0.1.2: Flags [S], seq 1, length 0",
    ] {
        let refused = judged(&rules(EACH_WAY), &setup, line);
        assert_eq!(refused.packets(), 0, "{line}");
        assert!(refused.refusal().unwrap().1.what.contains("nearest is wan0"), "{line}");
    }
}

#[test]
fn without_a_host_an_interface_that_no_rule_names_is_worth_a_warning() {
    let named = rules(
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i eth0 -o tun+ -j ACCEPT\n\
         -A FORWARD -m physdev --physdev-in p1 -j ACCEPT\nCOMMIT\n",
    );
    let setup = on(Host::default());
    let warnings = |rules: &[RulesFile], packet: &str| {
        parse(packet).unwrap().warnings(packet, rules, &setup.config)
    };
    let packet = |input: &str| format!("in={input} out=tun7 tcp 192.0.2.9:1 > 10.0.0.9:2");
    assert_eq!(warnings(&named, &packet("eht0")), ["in=eht0: no rule names this interface"]);
    for input in ["eth0", "p1", "tun0"] {
        assert_eq!(warnings(&named, &packet(input)), [""; 0], "{input}");
    }
    // Where rules name none, a name decides nothing.
    assert_eq!(warnings(&rules(EACH_WAY), &packet("eht0")), [""; 0]);
    let known = on(router());
    let packet = "in=lan0 tcp 192.0.2.9:1 > 10.0.0.9:2";
    assert_eq!(parse(packet).unwrap().warnings(packet, &named, &known.config), [""; 0]);
    // What a program wrote is no slip of the pen.
    let line = "IN=eht0 OUT= SRC=192.0.2.9 DST=10.0.0.9 PROTO=47 ";
    assert_eq!(warnings(&named, line), [""; 0]);
}

const SPLIT: &str = "\
*mangle
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A OUTPUT -o wan0 -p udp -m udp --dport 5000 -j MARK --set-xmark 0x2/0xffffffff
-A POSTROUTING -o wan0 -p udp -m udp --dport 5000 -j DROP
COMMIT
*filter
:OUTPUT DROP [0:0]
-A OUTPUT -o wan0 -j ACCEPT
COMMIT
";

/// Kernel (42-output-mark-reroute): OUTPUT sees the interface of the first route, POSTROUTING that of the mark.
#[test]
fn an_own_packet_is_routed_by_its_mark_and_again_by_that_of_rules() {
    let (rules, setup) = (rules(SPLIT), on(router()));
    for given in ["", " path=output"] {
        let packet = format!("udp 198.51.100.1:4000 > 192.0.2.9:5000{given}");
        let told = story(&rules, &setup, &packet);
        let text = told.text(false);
        assert!(matches!(told.verdict(), FinalVerdict::Accept(_)), "{text}");
        assert!(text.contains("path    output, in none, out wan0\n"), "{text}");
        assert!(text.contains("path    output from here on, in none, out wan1\n"), "{text}");
        let marked = story(&rules, &setup, &format!("{packet} mark=2"));
        assert!(matches!(marked.verdict(), FinalVerdict::Drop(_)), "{}", marked.text(false));
        assert!(marked.text(false).contains("out wan1\n"), "{}", marked.text(false));
    }
}

const STATES: &str = "\
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW -j ACCEPT
-A OUTPUT -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -o wan0 -j ACCEPT
COMMIT
";

pub(crate) fn decisions(judged: &Judged) -> Vec<(u64, String)> {
    let packets = judged.json()["packets"].as_array().unwrap().clone();
    let decision = |packet: &serde_json::Value| {
        (packet["at"].as_u64().unwrap(), packet["decision"].as_str().unwrap().to_owned())
    };
    packets.iter().map(decision).collect()
}

#[test]
fn lines_of_a_capture_are_one_conversation() {
    let lines = "\
23:59:59.000000 wan0  In  IP 192.0.2.9.40000 > 198.51.100.1.22: Flags [S], seq 1000, win 64240, length 0
23:59:59.000100 wan0  Out IP 198.51.100.1.22 > 192.0.2.9.40000: Flags [S.], seq 5000, ack 1001, win 65160, length 0
23:59:59.500000 wan0  Out IP 198.51.100.1.5353 > 192.0.2.53.53: 1234+ A? example.org. (29)
00:00:00.500000 wan0  In  IP 192.0.2.53.53 > 198.51.100.1.5353: 1234 1/0/0 A 93.184.216.34 (45)
00:01:30.500000 wan0  In  IP 192.0.2.53.53 > 198.51.100.1.5353: 1234 1/0/0 A 93.184.216.34 (45)
";
    let judged = judged(&rules(STATES), &on(router()), lines);
    let lines: Vec<String> = decisions(&judged)
        .into_iter()
        .map(|(_, decision)| decision.split(" -A").next().unwrap().to_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "ACCEPT by L6",
            "ACCEPT by L4 policy ACCEPT of filter/OUTPUT",
            "ACCEPT by L7",
            "ACCEPT by L5",
            "DROP by L2 policy DROP of filter/INPUT",
        ]
    );
    // The story of the last packet includes what came before it, and how long before.
    let example = judged.example().unwrap();
    assert_eq!(example.matches("--packet").count(), 3, "{example}");
    assert!(example.contains("after=90'") && example.ends_with("--ct midstream"), "{example}");
    assert!(judged.text().starts_with("5 packets in 5 lines, each judged after those before it\n"));
}

#[test]
fn a_packet_that_a_capture_shows_again_is_judged_once() {
    let lines = "\
12:00:00.000000 lan0  In  IP 10.0.0.5.40000 > 192.0.2.9.443: Flags [S], seq 1000, win 64240, length 0
12:00:00.000050 wan0  Out IP 198.51.100.1.40000 > 192.0.2.9.443: Flags [S], seq 1000, win 64240, length 0
12:00:00.010000 lan0  In  IP 10.0.0.5.40000 > 192.0.2.9.443: Flags [S], seq 1000, win 64240, length 0
12:00:05.000000 wan0  Out IP 198.51.100.1.40000 > 192.0.2.9.443: Flags [S], seq 1000, win 64240, length 0
";
    let judged = judged(&rules(STATES), &on(Host::default()), lines);
    let packets = judged.json()["packets"].clone();
    let at: Vec<u64> =
        packets.as_array().unwrap().iter().map(|p| p["at"].as_u64().unwrap()).collect();
    // The second shows the first as it left; the third comes in on the same interface again; the last is long after it.
    assert_eq!((at, judged.json()["again"].as_u64()), (vec![1, 3, 4], Some(1)));
    let first = packets[0]["packet"].as_str().unwrap();
    assert!(first.contains("in=lan0") && first.ends_with("out=wan0"), "{first}");
    assert_eq!(packets[0]["verdict"], "accept");
}

/// As `tcpdump -i any` printed what a router masqueraded.
#[test]
fn what_leaves_translated_is_shown_again() {
    let lines = "\
18:41:19.747162 lan0  In  IP 10.0.0.2.49744 > 192.0.2.9.8080: Flags [.], ack 1, win 63, length 0
18:41:19.747165 wan0  Out IP 198.51.100.1.49744 > 192.0.2.9.8080: Flags [.], ack 1, win 63, length 0
18:41:19.747726 wan0  In  IP 192.0.2.9.8080 > 198.51.100.1.49744: Flags [.], ack 121, win 64, length 0
18:41:19.747728 lan0  Out IP 192.0.2.9.8080 > 10.0.0.2.49744: Flags [.], ack 121, win 64, length 0
18:41:20.000000 lan0  In  IP 10.0.0.2 > 192.0.2.9: ICMP echo request, id 7, seq 1, length 64
18:41:20.000010 wan0  Out IP 198.51.100.1 > 192.0.2.9: ICMP echo request, id 7, seq 1, length 64
18:41:20.500000 wan0  Out IP 198.51.100.1 > 192.0.2.9: ICMP echo request, id 7, seq 1, length 64
";
    let judged = judged(&rules(STATES), &on(router()), lines);
    let said: Vec<u64> = decisions(&judged).into_iter().map(|(at, _)| at).collect();
    assert_eq!(said, [1, 3, 5, 7]);
}

#[test]
fn a_trace_is_one_packet_however_many_chains_it_comes_to() {
    let chain = |id: &str, chain: &str, sides: &str, port: u16| {
        format!(
            "trace id {id} ip {chain} packet: {sides} ip saddr 10.0.0.5 ip daddr 192.0.2.9 ip ttl 64 ip protocol tcp \
             tcp sport {port} tcp dport 443 tcp flags == syn\ntrace id {id} ip {chain} policy accept\n"
        )
    };
    let (lan, both) = ("iif \"lan0\"", "iif \"lan0\" oif \"wan0\"");
    let lines = [
        chain("5dd2c64a", "raw PREROUTING", lan, 1),
        chain("77777777", "raw PREROUTING", lan, 2),
        chain("5dd2c64a", "filter FORWARD", both, 1),
        chain("88888888", "filter OUTPUT", "oif \"wan0\"", 3),
        chain("88888888", "mangle POSTROUTING", "oif \"wan0\"", 3),
        // The number is another packet's now.
        chain("5dd2c64a", "raw PREROUTING", lan, 4),
    ]
    .concat();
    let judged = judged(&rules(STATES), &on(Host::default()), &lines);
    let packets = judged.json()["packets"].clone();
    let said: Vec<(u64, String)> = packets
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["at"].as_u64().unwrap(), p["packet"].as_str().unwrap().to_owned()))
        .collect();
    let packet = |at: u64, port: u16, sides: &str| {
        (at, format!("tcp 10.0.0.5:{port} > 192.0.2.9:443 syn {sides}"))
    };
    assert_eq!(
        said,
        [
            packet(1, 1, "in=lan0 ttl=64 out=wan0"),
            packet(3, 2, "in=lan0 ttl=64"),
            packet(7, 3, "out=wan0 ttl=64"),
            packet(11, 4, "in=lan0 ttl=64"),
        ]
    );
}

/// `-j TRACE` of iptables-legacy writes a line for each rule.
#[test]
fn lines_of_the_target_trace_are_one_packet() {
    let line = |place: &str, sides: &str| {
        format!(
            "Nov 26 10:00:00 gate kernel: [1.5] TRACE: {place} {sides} SRC=10.0.0.5 DST=192.0.2.9 LEN=60 TOS=0x00 PREC=0x00 \
             TTL=64 ID=7 DF PROTO=TCP SPT=1 DPT=443 SEQ=5 ACK=0 SYN\n"
        )
    };
    let lines = [
        line("raw:PREROUTING:policy:4", "IN=lan0 OUT="),
        line("filter:FORWARD:rule:1", "IN=lan0 OUT=wan0"),
        line("mangle:POSTROUTING:policy:1", "IN=lan0 OUT=wan0"),
    ]
    .concat();
    let judged = judged(&rules(LOGS), &on(Host::default()), &lines);
    assert_eq!(judged.packets(), 1);
    let packet = judged.json()["packets"][0]["packet"].as_str().unwrap().to_owned();
    assert!(packet.contains("in=lan0") && packet.ends_with("out=wan0"), "{packet}");
    assert!(!judged.text().contains("contradicts"), "{}", judged.text());
}
