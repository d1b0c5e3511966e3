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
    let near = "near misses, each for one test:\n  \
                L4     -A FORWARD -p tcp -m tcp --dport 5432 -j ACCEPT\n         \
                but for --dport 5432, the packet has --dport 5433\n";
    assert!(ended.out.ends_with(near), "{}", ended.out);
    let ended = folder.tamis(&["why", "r", "--packet", TCP, "--near", "3", "--json"]);
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["near"][0]["packet_has"], "--dport 5433");
    let ended = folder.tamis(&["why", "r", "--packet", "icmp 10.0.0.1 > 10.0.0.2", "--near", "1"]);
    assert!(ended.out.ends_with("every rule met fails by several tests\n"), "{}", ended.out);
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
