//! Log lines as packets: what a line proves of its packet, and of what came before it.

use dataplane::{FinalVerdict, Start};
use host::Host;
use proptest::prelude::*;
use replay::spec::parse;
use replay::walk::Setup;
use replay::why::{Singles, of_conversation};

use crate::described::{EACH_WAY, on, router, rules, story};

pub(crate) const LOGS: &str = "\
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -m set --match-set bad src -j DROP
-A PREROUTING -p tcp --dport 99 -j DROP
-A PREROUTING -p udp -j LOG --log-prefix \"early \"
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DROPPED - [0:0]
:NOTED - [0:0]
-A INPUT -p tcp --dport 22 -j ACCEPT
-A INPUT -m set --match-set good src -j ACCEPT
-A INPUT -p tcp --dport 443 -m set --match-set web src -j DROPPED
-A INPUT -p tcp --dport 25 -m set --match-set mail src -j LOG --log-prefix \"MAIL:\"
-A INPUT -p tcp --dport 80 -m set --match-set web src -j NOTED
-A INPUT -p tcp --dport 80 -m set --match-set good src -j ACCEPT
-A INPUT -p tcp --dport 80 -j NOTED
-A INPUT -p tcp -j REJECT
-A FORWARD -j LOG --log-prefix \"MAIL:\"
-A DROPPED -j LOG --log-prefix \"[DROP] \"
-A DROPPED -j DROP
-A NOTED -j LOG --log-prefix \"noted \"
COMMIT
";

/// A line of the kernel's log.
fn logged(prefix: &str, port: u16) -> String {
    format!(
        "Nov 26 10:00:00 gate kernel: [12345.678901] {prefix}IN=eth0 OUT= SRC=198.51.100.7 DST=192.0.2.1 LEN=60 \
         TOS=0x00 PREC=0x00 TTL=52 ID=1 DF PROTO=TCP SPT=51200 DPT={port} WINDOW=64240 RES=0x00 SYN URGP=0"
    )
}

#[test]
fn a_logged_packet_came_to_the_rule_that_has_the_prefix() {
    let (rules, config) = (rules(LOGS), on(Host::default()));
    let ends = |line: &str| {
        let told = story(&rules, &config, line);
        let text = told.text(false);
        let end = text.lines().find(|line| line.starts_with(char::is_uppercase)).unwrap();
        assert!(text.contains("\nlogged by L"), "{text}");
        assert!(text.contains("it logged the packet\n"), "{text}");
        end.to_owned()
    };
    // Neither the set in raw nor the one in INPUT ended its way; its own set has the packet.
    assert_eq!(
        ends(&logged("MAIL:", 25)),
        "REJECT by L20 -A INPUT -p tcp -j REJECT --reject-with icmp-port-unreachable"
    );
    // It went into the chain, and met its end there.
    assert_eq!(ends(&logged("[DROP] ", 443)), "DROP by L23 -A DROPPED -j DROP");
    // Without the line, nobody knows.
    let packet = "in=eth0 tcp 198.51.100.7:51200 > 192.0.2.1:25 syn path=input";
    assert_eq!(story(&rules, &config, packet).verdict(), FinalVerdict::Unknown);
}

/// What logs a packet often stands before what drops it, with the same tests.
#[test]
fn rules_after_it_that_ask_the_same_match_too() {
    let rules = |after: &str| {
        rules(&format!(
            "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m set --match-set bad src -p tcp -j LOG --log-prefix \"bad \"\n{after}COMMIT\n"
        ))
    };
    let config = on(Host::default());
    let verdict =
        |after: &str| story(&rules(after), &config, &logged("bad ", 22)).json()["verdict"].clone();
    assert_eq!(verdict("-A INPUT -m set --match-set bad src -j DROP\n"), "drop");
    assert_eq!(verdict("-A INPUT -p tcp --dport 22 -m set --match-set bad src -j DROP\n"), "drop");
    assert_eq!(verdict("-A INPUT -p udp -m set --match-set bad src -j DROP\n"), "accept");
    assert_eq!(verdict("-A INPUT -m set --match-set bad dst -j DROP\n"), "unknown");
    assert_eq!(
        verdict("-A INPUT -m set --match-set bad src -m set --match-set good src -j DROP\n"),
        "unknown"
    );
    // Sets change on the way, and counts with each packet.
    let removed =
        "-A INPUT -j SET --del-set bad src\n-A INPUT -m set --match-set bad src -j DROP\n";
    assert_eq!(verdict(removed), "unknown");
}

#[test]
fn a_rule_that_a_packet_may_have_come_to_twice_proves_nothing() {
    let (rules, config) = (rules(LOGS), on(Host::default()));
    let told = story(&rules, &config, &logged("noted ", 80));
    assert_eq!(told.verdict(), FinalVerdict::Unknown, "{}", told.text(false));
    assert!(told.text(false).contains("logged by L24 "), "{}", told.text(false));
}

#[test]
fn rules_that_cannot_have_written_a_line_are_said_to_contradict_it() {
    let (rules, config) = (rules(LOGS), on(Host::default()));
    for (line, why) in [
        (logged("[DROP] ", 22), "does not come to it"),
        (logged("MAIL:", 26), "does not match the packet: -m tcp --dport 25"),
        (logged("MAIL:", 99), "does not come to it"),
        (logged("[UFW BLOCK] ", 25), "has the prefix of the line, \"[UFW BLOCK]\""),
        (logged("", 25), "has the prefix of the line, \"\""),
        // It stands in FORWARD, where a packet has an interface for output, too.
        (logged("MAIL:", 25).replace("OUT=", "OUT=lo").replace("IN=eth0", "IN="), "has the prefix"),
    ] {
        let told = story(&rules, &config, &line);
        assert_eq!(told.verdict(), FinalVerdict::Unknown, "{line}");
        let end = told.text(false).lines().last().unwrap().to_owned();
        assert!(end.starts_with("UNKNOWN: the line of the log contradicts these rules"), "{end}");
        assert!(end.contains(why), "{end}");
        assert_eq!(told.json()["verdict"], "unknown");
        assert!(told.json()["contradiction"].as_str().unwrap().contains(why));
    }
    let accepted = story(&self::rules(EACH_WAY), &config, &logged("[DROP] ", 22));
    assert!(matches!(accepted.verdict(), FinalVerdict::Accept(_)), "no rule logs");
    let own = story(&rules, &config, &logged("nf_ct_proto_6: invalid packet ", 22));
    assert!(!own.text(false).contains("contradicts"), "tracking wrote the line");
}

/// What a line of the log from these rules of INPUT says of its packet.
fn of_log(rules_of_input: &[&str], line: &str) -> serde_json::Value {
    let rules: String = rules_of_input.iter().map(|rule| format!("-A {rule}\n")).collect();
    let text = format!("*filter\n:INPUT ACCEPT [0:0]\n:BAD - [0:0]\n{rules}COMMIT\n");
    story(&self::rules(&text), &on(Host::default()), line).json()
}

/// A packet in the log has a past that nobody knows: where a rule asks for it, the line is its proof.
#[test]
fn a_line_proves_what_came_before_its_packet() {
    let log = |tests: &str| format!("INPUT {tests} -j LOG --log-prefix \"x \"");
    for (tests, drops, verdict) in [
        ("-m conntrack --ctstate INVALID", "-m conntrack --ctstate INVALID", "drop"),
        ("-m state --state ESTABLISHED", "-m conntrack --ctstate ESTABLISHED", "drop"),
        ("-m state --state ESTABLISHED", "-m conntrack --ctstate NEW", "accept"),
        ("-m conntrack --ctstate ESTABLISHED,RELATED", "-m conntrack --ctstate NEW", "unknown"),
        ("-m recent --name r --update --hitcount 4", "-p tcp", "drop"),
        (
            "-m recent --name r --update --hitcount 4",
            "-m recent --name r --rcheck --hitcount 4",
            "unknown",
        ),
        ("-m connmark --mark 7", "-m conntrack --ctstate NEW", "unknown"),
        ("-m connmark --mark 7", "-m conntrack --ctstate UNTRACKED -p udp", "accept"),
        ("-m mark --mark 7", "-p tcp", "drop"),
        (
            "-m hashlimit --hashlimit-above 1/sec --hashlimit-burst 5 --hashlimit-mode srcip --hashlimit-name h",
            "-p tcp",
            "drop",
        ),
        ("-m connlimit --connlimit-above 5 --connlimit-mask 32", "-p tcp", "drop"),
        ("-m quota ! --quota 100000", "-p tcp", "drop"),
        ("-m statistic --mode nth --every 3 --packet 1", "-p tcp", "drop"),
    ] {
        let told = of_log(&[&log(tests), &format!("INPUT {drops} -j DROP")], &logged("x ", 22));
        assert_eq!(told["verdict"], verdict, "{tests}: {told:#}");
        assert!(told["contradiction"].is_null(), "{tests}");
        if verdict == "unknown" {
            let because = &told["unknown_because"][0];
            assert!(because["what"].as_str().unwrap().contains("what came before"), "{told:#}");
            assert!(because["how"].as_str().unwrap().contains("ctstate="), "{told:#}");
        }
    }
    // Its own bytes are as the line says, whatever came before.
    let own = format!("{} -p udp", "-m recent --name r --update --hitcount 4");
    let told = of_log(&[&log(&own)], &logged("x ", 22));
    assert!(told["contradiction"].as_str().unwrap().ends_with("does not match the packet: -p udp"));
}

#[test]
fn what_kept_a_logged_packet_away_may_be_what_came_before() {
    let log = "BAD -j LOG --log-prefix \"x \"";
    for (rule, verdict, contradicts) in [
        // One state leads there.
        ("INPUT -m conntrack --ctstate INVALID -j BAD", "drop", false),
        ("INPUT -m conntrack --ctstate INVALID,UNTRACKED -j BAD", "drop", false),
        ("INPUT -m recent --name r --rcheck -j BAD", "drop", false),
        ("INPUT -m mark --mark 0x9 -j BAD", "drop", false),
        ("INPUT -m limit --limit 1/hour --limit-burst 1 -j ACCEPT\n-A INPUT -j BAD", "drop", false),
        ("INPUT -m limit --limit 1/hour --limit-burst 1 -j RETURN", "unknown", true),
        ("INPUT -p udp -m recent --name r --rcheck -j BAD", "unknown", true),
        ("INPUT -s 203.0.113.0/24 -j BAD", "unknown", true),
        ("INPUT -i eth1 -m conntrack --ctstate INVALID -j BAD", "unknown", true),
    ] {
        let told = of_log(&[rule, log, "BAD -j DROP"], &logged("x ", 22));
        assert_eq!(told["verdict"], verdict, "{rule}: {told:#}");
        assert_eq!(told["contradiction"].is_string(), contradicts, "{rule}: {told:#}");
    }
}

/// Questions by the batch are answered as `why` answers them.
#[test]
fn singles_hold_lines_to_the_log_and_interfaces_to_the_host() {
    let input = "INPUT -m conntrack --ctstate INVALID -j LOG --log-prefix \"x \"";
    let text = format!(
        "*filter\n:INPUT ACCEPT [0:0]\n-A {input}\n-A INPUT -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n"
    );
    let singles = Singles::of(&rules(&text), &on(router()));
    let logged = |prefix: &str| logged(prefix, 22).replace("IN=eth0", "IN=wan0");
    assert_eq!(singles.ask(&logged("x ")).unwrap().verdict, "drop");
    let other = singles.ask(&logged("y ")).unwrap();
    assert_eq!((other.verdict, other.by, other.because.len()), ("unknown", None, 1));
    let line = logged("x ").replace("IN=wan0", "IN=wan7");
    let error = singles.ask(&line).unwrap_err();
    assert_eq!(line.get(error.column - 1..error.column + 6), Some("IN=wan7"));
    let error = singles.ask("udp 198.51.100.7 > 192.0.2.1:5 in=wan7").unwrap_err();
    assert_eq!(error.column, 32);
}

/// A rule of the chain INPUT, A or B, with the sets that it asks for and what it does.
fn any_rule() -> impl Strategy<Value = String> {
    let chain = prop::sample::select(vec!["INPUT", "INPUT", "A", "B"]);
    let sets = prop::collection::vec(prop::sample::select(vec!["s0", "! s1", "s2", "! s3"]), 0..3);
    let action = prop::sample::select(vec![
        "-j ACCEPT",
        "-j DROP",
        "-j REJECT",
        "-j RETURN",
        "-j A",
        "-g A",
        "-j B",
        "-g B",
        "-j LOG --log-prefix \"x \"",
        "-j LOG --log-prefix \"y \"",
        "-j MARK --set-mark 1",
    ]);
    (chain, sets, action).prop_map(|(chain, sets, action)| {
        // Jumps lead on only, so that there is no loop.
        let action = match (chain, action) {
            ("A", "-j A" | "-g A") | ("B", "-j A" | "-j B" | "-g A" | "-g B") => "-j RETURN",
            (_, action) => action,
        };
        let sets: String = sets
            .iter()
            .map(|set| match set.strip_prefix("! ") {
                Some(set) => format!(" -m set ! --match-set {set} src"),
                None => format!(" -m set --match-set {set} src"),
            })
            .collect();
        format!("-A {chain}{sets} {action}\n")
    })
}

proptest! {
    /// Whatever sets hold the packet: where a rule logs it, the line that it writes is not contradicted, and what is
    /// certain by that line without the sets is what becomes of the packet with them.
    #[test]
    fn what_a_line_proves_is_so(
        all in prop::collection::vec(any_rule(), 1..14),
        held in prop::array::uniform4(any::<bool>()),
    ) {
        let text = format!(
            "*filter\n:INPUT DROP [0:0]\n:A - [0:0]\n:B - [0:0]\n{}COMMIT\n",
            all.concat()
        );
        let rules = rules(&text);
        let mut sets = String::new();
        for (set, held) in held.iter().enumerate() {
            sets.push_str(&format!("create s{set} hash:ip\n"));
            if *held {
                sets.push_str(&format!("add s{set} 198.51.100.7\n"));
            }
        }
        let sets = Some(rules::ipset::Sets::parse(&sets).unwrap());
        let start = Start { sets, ..Start::default() };
        let known = Setup { start, ..on(Host::default()) };
        let packet = "in=eth0 tcp 198.51.100.7:51200 > 192.0.2.1:22 syn path=input";
        let truth = story(&rules, &known, packet);
        let told = truth.json();
        for prefix in ["x ", "y "] {
            let logs = |step: &&serde_json::Value| {
                step["matches"] == "yes"
                    && step["text"].as_str().is_some_and(|text| text.contains(&format!("\"{prefix}\"")))
            };
            if !told["steps"].as_array().unwrap().iter().any(|step| logs(&step)) {
                continue;
            }
            let line = story(&rules, &on(Host::default()), &logged(prefix, 22));
            let text = format!("{text}{held:?}\n{}\n{}", truth.text(false), line.text(false));
            prop_assert!(line.json()["contradiction"].is_null(), "{text}");
            let is_open = line.verdict() == FinalVerdict::Unknown;
            prop_assert!(is_open || line.json()["verdict"] == told["verdict"], "{text}");
        }
    }
}

/// What rules ask of the past of a packet.
const OF_PAST: [&str; 12] = [
    "",
    "-p udp",
    "-m conntrack --ctstate NEW",
    "-m conntrack --ctstate ESTABLISHED",
    "-m conntrack --ctstate INVALID",
    "-m conntrack ! --ctstate NEW,INVALID",
    "-m recent --name r --set",
    "-m recent --name r --rcheck",
    "-m recent --name r --update --hitcount 3",
    "-m limit --limit 1/hour --limit-burst 2",
    "-m connmark --mark 1",
    "-m statistic --mode nth --every 2 --packet 1",
];

fn rule_of_past() -> impl Strategy<Value = String> {
    const ACTIONS: [&str; 6] =
        ["ACCEPT", "DROP", "RETURN", "A", "LOG --log-prefix \"x \"", "CONNMARK --set-mark 1"];
    let parts =
        (any::<bool>(), prop::sample::select(&OF_PAST[..]), prop::sample::select(&ACTIONS[..]));
    parts.prop_map(|(is_inner, test, action)| match (is_inner, action) {
        (true, "A") => format!("-A A {test} -j RETURN\n"),
        (true, action) => format!("-A A {test} -j {action}\n"),
        (false, action) => format!("-A INPUT {test} -j {action}\n"),
    })
}

proptest! {
    /// Whatever came before the packet: the line of the rule that logged it is not contradicted, and what is certain by
    /// it, where something must have come before, is what became of the packet.
    #[test]
    fn what_a_line_proves_of_the_past_is_so(
        all in prop::collection::vec(rule_of_past(), 1..8),
        before in prop::collection::vec(prop::sample::select(vec!["syn", "ack", "answer"]), 0..5),
        flags in prop::sample::select(vec!["syn", "ack"]),
    ) {
        let text = format!("*filter\n:INPUT DROP [0:0]\n:A - [0:0]\n{}COMMIT\n", all.concat());
        let (rules, config) = (rules(&text), on(Host::default()));
        let end = "ttl=52 len=60 id=1 df=yes win=64240";
        let packet = |flags: &str| {
            let ends = match flags {
                "answer" => "out=eth0 tcp 192.0.2.1:22 > 198.51.100.7:51200 syn,ack path=output".to_owned(),
                _ => format!("in=eth0 tcp 198.51.100.7:51200 > 192.0.2.1:22 {flags} path=input"),
            };
            parse(&format!("{ends} {end}")).unwrap()
        };
        let before: Vec<_> = before.into_iter().map(packet).collect();
        let truth = of_conversation(&rules, &config, &before, &packet(flags), None);
        let told = truth.json();
        let logs = |step: &serde_json::Value| {
            step["matches"] == "yes" && step["text"].as_str().is_some_and(|text| text.contains("LOG"))
        };
        if told["steps"].as_array().unwrap().iter().any(logs) {
            let line = logged("x ", 22).replace("SYN", &flags.to_uppercase());
            let line = story(&rules, &config, &line);
            let text = format!("{text}\n{}\n{}", truth.text(false), line.text(false));
            prop_assert!(line.json()["contradiction"].is_null(), "{text}");
            let is_first = line.text(false).contains("nothing else came before it");
            let is_open = line.verdict() == FinalVerdict::Unknown;
            prop_assert!(is_first || is_open || line.json()["verdict"] == told["verdict"], "{text}");
        }
    }
}

/// A line from PREROUTING has an interface for input alone, wherever its packet goes.
#[test]
fn a_line_from_before_routing_leaves_the_way_open() {
    let (rules, config) = (rules(LOGS), on(router()));
    let line = logged("early ", 53).replace("PROTO=TCP", "PROTO=UDP").replace("eth0", "wan0");
    let told = story(&rules, &config, &line.replace("192.0.2.1", "10.0.0.9"));
    assert!(
        told.text(false).contains("path    forward, in wan0, out lan0"),
        "{}",
        told.text(false)
    );
    let told = story(&rules, &config, &line.replace("192.0.2.1", "198.51.100.1"));
    assert!(told.text(false).contains("path    input, in wan0"), "{}", told.text(false));
}
