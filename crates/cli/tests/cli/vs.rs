//! `--vs`: the packets whose verdict another ruleset, or another implementation, changes.

use std::collections::BTreeMap;

use crate::command::{Bench, ethernet, refusal, report, stdout};
use serde_json::json;

const SSH: &str = "tcp 198.51.100.7:51200 > 10.0.0.9:22 syn";
const WEB: &str = "tcp 198.51.100.7:51201 > 10.0.0.9:443 syn";

#[test]
fn a_rule_that_opens_a_port_shows_with_its_packets() {
    let bench = Bench::new();
    let old = bench.forward("old.v4", &["-p tcp -m tcp --dport 443 -j ACCEPT"]);
    let new = bench.forward("new.v4", &["-p tcp -m multiport --dports 22,443 -j ACCEPT"]);
    let capture = bench.capture("c.pcapng", &[WEB, SSH, WEB, SSH]);

    let json = report(0, &["replay", &old, &capture, "--vs", &new]);
    assert_eq!(json["changes"]["packets"], 2);
    let by = json["changes"]["by"].as_array().unwrap();
    assert_eq!(by.len(), 1);
    assert_eq!((&by[0]["from"], &by[0]["to"]), (&json!("drop"), &json!("accept")));
    assert_eq!((&by[0]["packets"], &by[0]["example_frame"]), (&json!(2), &json!(2)));
    let old_by = json!({
        "table": "filter", "chain": "FORWARD", "number": null, "line": 2,
        "text": "policy DROP of filter/FORWARD",
    });
    let new_by = json!({
        "table": "filter", "chain": "FORWARD", "number": 1, "line": 3,
        "text": "-A FORWARD -p tcp -m multiport --dports 22,443 -j ACCEPT",
    });
    assert_eq!((&by[0]["old"], &by[0]["new"]), (&old_by, &new_by));
    assert_eq!(json["verdicts"]["drop"]["packets"], 2, "the report is that of the first rules");

    let text = stdout(0, &["replay", &old, &capture, "--vs", &new]);
    let section = text.split("CHANGES vs ").nth(1).unwrap();
    assert!(section.contains("drop -> accept"), "{text}");
    assert!(section.contains("L3     -A FORWARD -p tcp -m multiport"), "{text}");
    assert!(section.contains("#2 tcp 198.51.100.7:51200 > 10.0.0.9:22 syn"), "{text}");
    let section = section.split("never hit").next().unwrap();
    assert!(section.lines().all(|line| line.chars().count() <= 100 || line.contains(".v4")));

    let listed = stdout(0, &["replay", &old, &capture, "--vs", &new, "--list", "change"]);
    let lines: Vec<&str> = listed.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(lines[1].starts_with("#4 +3.000 s drop: tcp") && lines[1].contains("-> accept by L3"));
}

#[test]
fn the_same_file_changes_nothing_though_forwarding_rewrites_the_packet() {
    let bench = Bench::new();
    let rules = bench.forward("r.v4", &["-p tcp -m tcp --dport 443 -j ACCEPT"]);
    // Lowered twice, a time to live of 2 would run out.
    let last_hop = format!("{WEB} ttl=2");
    let capture = bench.capture("c.pcapng", &[&last_hop, SSH]);
    let args = ["replay", &rules, &capture, "--vs", &rules, "--fail-on", "change"];
    let json = report(0, &args);
    assert_eq!(json["verdicts"]["accept"]["packets"], 1);
    assert_eq!(json["changes"]["packets"], 0);
    assert_eq!(json["changes"]["by"], json!([]));
    assert!(stdout(0, &args).contains("every verdict the same"));
    assert!(report(0, &["replay", &rules, &capture]).get("changes").is_none());
}

#[test]
fn what_is_unknown_under_both_is_not_said_to_be_the_same() {
    let bench = Bench::new();
    let rules = bench
        .forward("r.v4", &["-p tcp -m tcp --dport 443 -m set --match-set known src -j ACCEPT"]);
    let said = |packets: &[&str]| {
        let capture = bench.capture("c.pcapng", packets);
        stdout(0, &["replay", &rules, &capture, "--vs", &rules, "--path", "forward"])
    };
    let all = said(&[WEB]);
    assert!(all.contains("cannot tell: 1 packet evaluated, all unknown under both"), "{all}");
    let some = said(&[WEB, SSH]);
    let what =
        "none known: 2 packets evaluated, 1 unknown under both, every other verdict the same";
    assert!(some.contains(what), "{some}");
}

#[test]
fn each_ruleset_gets_the_bytes_as_captured() {
    let bench = Bench::new();
    let rules = |name, table: &str, destination| {
        let text = format!(
            "{table}*filter\n:FORWARD DROP [0:0]\n-A FORWARD -d {destination} -j ACCEPT\nCOMMIT\n"
        );
        bench.file(name, text)
    };
    let mangle = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -d 2001:db8:a::/64 -j DNPT \
                  --src-pfx 2001:db8:a::/64 --dst-pfx 2001:db8:b::/64\nCOMMIT\n";
    let old = rules("old.v6", mangle, "2001:db8:a::/64");
    let new = rules("new.v6", "", "2001:db8:a::/64");
    let capture = bench.capture("c.pcapng", &["udp [2001:db8::1]:53 > [2001:db8:a::2]:4000"]);
    let json = report(0, &["replay", &old, &capture, "--vs", &new]);
    assert_eq!(json["verdicts"]["drop"]["packets"], 1, "rewritten to b, it is not accepted");
    assert_eq!(json["changes"]["by"][0]["to"], "accept");
}

/// A TCP segment that ends inside its header, after its ports.
fn cut_segment() -> Vec<u8> {
    let mut frame = replay::spec::parse(WEB).unwrap().frame;
    frame.truncate(14 + 20 + 8);
    frame[14 + 3] = 28;
    frame
}

#[test]
fn legacy_and_nft_differ_on_a_cut_header() {
    let bench = Bench::new();
    let rules = bench.forward("r.v4", &["-p tcp -m tcp --dport 443 -j ACCEPT"]);
    let frame = cut_segment();
    let capture = bench.frames("c.pcapng", &[ethernet("eth0")], &[(0, &frame)]);
    let args = ["replay", &rules, &capture, "--vs", &rules, "--vs-semantics", "nft"];
    let json = report(0, &args);
    assert_eq!(json["drop_reasons"]["hotdrop"], 1);
    let change = &json["changes"]["by"][0];
    assert_eq!((&change["from"], &change["to"]), (&json!("drop"), &json!("accept")));
    assert!(stdout(0, &args).contains("CHANGES, legacy to nft, vs"));

    let both = [&args[..], &["--semantics", "nft"]].concat();
    let json = report(0, &both);
    assert_eq!(
        (&json["assumed"]["semantics"], &json["changes"]["packets"]),
        (&json!("nft"), &json!(0))
    );
}

#[test]
fn a_header_that_names_nf_tables_selects_nft_and_can_be_overridden() {
    let bench = Bench::new();
    let text = "# Generated by iptables-save v1.8.9 (nf_tables) on Sat Nov 21 10:00:00 2026\n\
                *filter\n:FORWARD DROP [0:0]\n-A FORWARD -p tcp -m tcp --dport 443 -j ACCEPT\nCOMMIT\n";
    let rules = bench.file("r.v4", text);
    let frame = cut_segment();
    let capture = bench.frames("c.pcapng", &[ethernet("eth0")], &[(0, &frame)]);
    let json = report(0, &["replay", &rules, &capture]);
    assert_eq!(json["assumed"]["semantics"], "nft");
    assert_eq!(json["verdicts"]["accept"]["packets"], 1);
    assert!(stdout(0, &["replay", &rules, &capture]).contains("semantics nft"));
    let json = report(0, &["replay", &rules, &capture, "--semantics", "legacy"]);
    assert_eq!(
        (&json["assumed"]["semantics"], &json["drop_reasons"]["hotdrop"]),
        (&json!("legacy"), &json!(1))
    );
}

#[test]
fn rules_that_cannot_be_compared_are_refused() {
    let bench = Bench::new();
    let v4 = bench.forward("r.v4", &["-p tcp -j ACCEPT"]);
    let v6 = bench.forward("r.v6", &["-s 2001:db8::/32 -j ACCEPT"]);
    let capture = bench.capture("c.pcapng", &[WEB]);
    let message = refusal(&["replay", &v4, &capture, "--vs", &v6]);
    assert!(message.contains("expected iptables rules, found ip6tables rules"), "{message}");
    assert!(refusal(&["replay", &v4, &capture, "--list", "change"]).contains("--vs"));
    assert!(refusal(&["replay", &v4, &capture, "--fail-on", "change"]).contains("--vs"));
    assert!(refusal(&["replay", &v4, &capture, "--vs-semantics", "nft"]).contains("--vs"));
}

/// The word of each packet, and the rules with their counts, of a replay of the demonstration's capture.
fn replayed(bench: &Bench, rules: &str, more: &[&str]) -> (Vec<String>, serde_json::Value) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../replay/demo");
    let (capture, verdicts) = (format!("{root}/office.pcap"), bench.path("verdicts"));
    let args = ["replay", rules, &capture, "--in", "lan0", "--out", "wan0", "--path", "forward"];
    let verdicts = verdicts.to_str().unwrap();
    let json = report(0, &[&args[..], &["--verdicts", verdicts], more].concat());
    let words = std::fs::read_to_string(verdicts).unwrap();
    (words.lines().map(str::to_owned).collect(), json)
}

#[test]
fn what_changes_is_the_difference_of_two_replays() {
    let bench = Bench::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let rules = ["tests/rules/stateless.v4", "tests/rules/stateful.v4", "tests/rules/nat.v4"];
    let rules = rules.map(|name| format!("{root}/{name}"));
    let mut changed = 0;
    for old in &rules {
        for new in &rules {
            let (before, json) = replayed(&bench, old, &["--vs", new]);
            let (after, mut alone) = replayed(&bench, new, &[]);
            let mut turns = BTreeMap::new();
            for turn in before.iter().zip(&after).filter(|(before, after)| before != after) {
                *turns.entry((turn.0.as_str(), turn.1.as_str())).or_insert(0) += 1;
            }
            let mut found = BTreeMap::new();
            for group in json["changes"]["by"].as_array().unwrap() {
                let turn = (group["from"].as_str().unwrap(), group["to"].as_str().unwrap());
                *found.entry(turn).or_insert(0) += group["packets"].as_u64().unwrap();
            }
            assert_eq!(found, turns, "{old} to {new}");
            assert_eq!(json["changes"]["packets"], turns.values().sum::<u64>());
            // Of the new rules the causes are not noted.
            for hit in alone["hits"].as_array_mut().unwrap() {
                hit.as_object_mut().unwrap().remove("maybe_because");
            }
            assert_eq!(json["new_hits"], alone["hits"], "{old} to {new}");
            changed += turns.len();
        }
    }
    assert!(changed > 3, "the rules differ");
}
