//! `tamis why`: conversations and near misses on the command line.

use crate::ran::Scratch;
use serde_json::Value;

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n\
                     -A FORWARD -p udp -m statistic --mode nth --every 2 --packet 0 -j ACCEPT\n\
                     -A FORWARD -p tcp -m tcp --dport 5432 -j ACCEPT\nCOMMIT\n";
const UDP: &str = "udp 10.0.0.9:4000 > 192.0.2.53:53";
const TCP: &str = "tcp 198.51.100.7:51200 > 10.0.0.9:5433 syn";

fn folder(name: &str) -> Scratch {
    let folder = Scratch::new(name);
    folder.write("r", RULES);
    folder
}

#[test]
fn packets_are_a_conversation_and_the_story_is_that_of_the_last() {
    let folder = folder("why-conversation");
    assert_eq!(folder.tamis(&["why", "r", "--packet", UDP]).code, Some(0));
    let ended = folder.tamis(&["why", "r", "--packet", UDP, "--packet", UDP]);
    assert_eq!(ended.code, Some(1));
    let before = format!("before  1. {UDP}: ACCEPT by L3 -A FORWARD -p udp");
    assert!(ended.out.starts_with(&before), "{}", ended.out);
    assert!(ended.out.contains("\nDROP by L2 policy DROP of filter/FORWARD"), "{}", ended.out);
    let ended = folder.tamis(&["why", "r", "--packet", UDP, "--packet", UDP, "--json"]);
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&json["verdict"], &json["before"][0]["verdict"]),
        (&"drop".into(), &"accept".into())
    );
    assert_eq!(json["near"], Value::Null);
}

#[test]
fn near_misses_name_the_test_and_what_the_packet_has() {
    let folder = folder("why-near");
    let ended = folder.tamis(&["why", "r", "--packet", TCP, "--near", "3"]);
    let near = "near misses, each for one test, those to another verdict first (a rule before one may decide otherwise):\n  \
                L4     -A FORWARD -p tcp -m tcp --dport 5432 -j ACCEPT\n         \
                would accept it, were it --dport 5432, not --dport 5433\n";
    assert!(ended.out.ends_with(near), "{}", ended.out);
    let ended = folder.tamis(&["why", "r", "--packet", TCP, "--near", "3", "--json"]);
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    let near = &json["near"][0];
    assert_eq!((&near["packet_has"], &near["gives"]), (&"--dport 5433".into(), &"accept".into()));
    let ended = folder.tamis(&["why", "r", "--packet", "icmp 10.0.0.1 > 10.0.0.2", "--near", "1"]);
    assert!(
        ended.out.ends_with("no rule that did not match fails by one test alone\n"),
        "{}",
        ended.out
    );
}

/// Chains in chains: the story steps in, and the diagrams go from one to the other.
const CHAINS: &str = "*filter\n:FORWARD ACCEPT [0:0]\n:one - [0:0]\n:two - [0:0]\n\
                      -A FORWARD -p tcp -j one\n-A one -j two\n-A one -p tcp -m comment --comment \"a \\\"b\\\" <c>\" -j DROP\n\
                      -A two -p udp -j ACCEPT\nCOMMIT\n";

#[test]
fn chains_are_indented_by_depth() {
    let folder = folder("why-depth");
    folder.write("r", CHAINS);
    let out = folder.tamis(&["why", "r", "--packet", TCP]).out;
    let lines = "\n  L5     -p tcp -j one   MATCH -> one\n    L6     one -j two   MATCH -> two\n      \
                 L8     two -p udp -j ACCEPT   no: -p udp\n    L7     one -p tcp";
    assert!(out.contains(lines), "{out}");
}

#[test]
fn the_chains_walked_are_a_diagram() {
    let folder = folder("why-diagram");
    folder.write("r", CHAINS);
    let ended = folder.tamis(&["why", "r", "--packet", TCP, "--dot", "-", "--svg", "walk.svg"]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.out.starts_with("digraph walk {\n"), "{}", ended.out);
    for part in [
        "c0 [label=\"filter/FORWARD\\lL5 MATCH -> one: -p tcp -j one\\l\"];",
        "c1 [label=\"filter/one\\lL6 MATCH -> two: -j two\\lL7 MATCH: -p tcp -m comment --comment \\\"a \\\\\\\"b",
        "c2 [label=\"filter/two\\l… 1 rule did not match\\l\"];",
        "packet -> c0;\n  c0 -> c1;\n  c1 -> c2;\n  c2 -> end;\n}\n",
    ] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let svg = std::fs::read_to_string(folder.file("walk.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!((svg.matches("<rect x=").count(), svg.matches("class=\"jump\"").count()), (3, 2));
    assert!(svg.contains("&lt;c&gt;") && svg.contains(">DROP by L7 "), "{svg}");
    let twice = folder.tamis(&["why", "r", "--packet", TCP, "--dot", "r"]);
    assert!(twice.refusal().contains("--dot r: expected a file of its own"), "{}", twice.err);
}

#[test]
fn an_entry_that_expired_before_is_said() {
    let folder = folder("why-expired");
    folder.write(
        "r",
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -s 203.0.113.0/24 -j DROP\n\
         -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
         -A FORWARD -s 10.0.0.0/8 -j ACCEPT\n-A FORWARD -i lan0 -j DROP\nCOMMIT\n",
    );
    let reply = |after: u32| format!("udp 192.0.2.53:53 > 10.0.0.9:4000 after={after}");
    let late = ["why", "r", "--packet", UDP, "--packet", &reply(60), "--near", "2"];
    let out = folder.tamis(&late).out;
    assert!(out.contains("\nconntrack: NEW, a new connection, "), "{out}");
    assert!(out.contains("\n  its entry expired 30.0 s ago, after packet 1\n"), "{out}");
    // What it lacked comes before who else might have been dropped.
    let near = out.split("may decide otherwise):\n").nth(1).unwrap();
    assert!(
        near.starts_with("  L4     -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED"),
        "{out}"
    );
    assert!(near.contains("were it --ctstate RELATED,ESTABLISHED, not --ctstate NEW"), "{out}");
    let early = folder.tamis(&["why", "r", "--packet", UDP, "--packet", &reply(20)]);
    assert_eq!(early.code, Some(0), "{}", early.out);
    assert!(early.out.contains("against the connection of packet 1"), "{}", early.out);
}

#[test]
fn what_is_not_known_says_how_to_make_it_known() {
    let folder = folder("why-how");
    for (rule, how) in [
        ("-i wan0 -j ACCEPT", "\n  to know it, give --in, in= in the packet"),
        (
            "-m set --match-set a src -j ACCEPT",
            "\n  to know it, give the sets with --ipset FILE (ipset save)\n",
        ),
        (
            "-m geoip --source-country XX -j ACCEPT",
            "\n  to know it, give the database with --geoip DIR",
        ),
        ("-m nfacct --nfacct-name x -j ACCEPT", "\n  nothing that tamis reads tells it\n"),
    ] {
        folder.write("r", format!("*filter\n:FORWARD DROP [0:0]\n-A FORWARD {rule}\nCOMMIT\n"));
        let ended = folder.tamis(&["why", "r", "--packet", TCP]);
        assert_eq!(ended.code, Some(4), "{rule}: {}", ended.out);
        assert!(ended.out.contains(how), "{rule}: {}", ended.out);
    }
    let json = folder.tamis(&["why", "r", "--packet", TCP, "--json"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["unknown_because"][0]["how"], Value::Null);
}

#[test]
fn refusals_are_one_line_with_exit_code_2() {
    let folder = folder("why-refusals");
    for (args, message) in [
        (&["--packet", "3"][..], "expected a CAPTURE in which --packet NUMBER counts"),
        (&["--packet", UDP, "--packet", "3"], "expected a CAPTURE"),
        (&["c.pcap", "--packet", UDP], "expected one --packet NUMBER with a capture"),
        (&["c.pcap", "--packet", "1", "--packet", "2"], "expected one --packet NUMBER"),
        (&["--packet", "tpc 1.2.3.4:5 > 6.7.8.9:10"], "--packet:1: expected a protocol"),
        (&["--packet", UDP, "--near", "0"], "invalid value '0'"),
        (&[], "--packet"),
    ] {
        let ended = folder.tamis(&[&["why", "r"], args].concat());
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{args:?}: {}", ended.err);
        assert!(ended.err.contains(message), "{args:?}: {}", ended.err);
        // A packet spec that is misspelt is shown, with a mark.
        let lines = if message.starts_with("--packet:") { 3 } else { 1 };
        assert_eq!(ended.err.lines().count(), lines, "{args:?}: {}", ended.err);
    }
}
