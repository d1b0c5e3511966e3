//! `tamis why`: packets by number and in words, and the exit code that scripts read.

use std::fs;

use crate::ran::{CAPTURE, RULES, Scratch, rules, tamis};

const NETS: [&str; 4] = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];

#[test]
fn a_packet_by_number_has_the_verdict_of_the_replay() {
    let scratch = Scratch::new("why-number");
    let file = scratch.file("verdicts.txt");
    tamis(&[&["replay", RULES, CAPTURE, "--verdicts", &file][..], &NETS].concat());
    let words = fs::read_to_string(file).unwrap();
    for (word, code) in [("accept", 0), ("drop", 1), ("reject", 1), ("unknown", 4)] {
        let index = words.lines().position(|line| line == word).unwrap();
        let number = (index + 1).to_string();
        let ran = tamis(&[&["why", RULES, CAPTURE, "--packet", &number][..], &NETS].concat());
        assert_eq!(ran.code, Some(code), "packet {number} is {word}: {}{}", ran.out, ran.err);
        let last = ran.out.trim_end().lines().any(|line| line.starts_with(&word.to_uppercase()));
        assert!(last, "{}", ran.out);
    }
}

#[test]
fn a_packet_in_words_ends_in_its_exit_code() {
    let cases = [
        ("in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:443 syn", 0, "L22"),
        ("in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:25 syn", 1, "L24"),
        ("in=lan0 out=wan0 tcp 10.20.0.9:1025 > 198.51.100.66:80 syn", 1, "L20"),
        ("in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:5432 syn", 4, "-m set"),
        ("in=wan0 out=lan0 udp 203.0.113.1:9 > 10.20.0.9:9", 1, "policy DROP"),
    ];
    for (spec, code, reason) in cases {
        let ran = tamis(&["why", RULES, "--packet", spec]);
        assert_eq!(ran.code, Some(code), "{spec}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(reason), "{spec}: no {reason} in {}", ran.out);
    }
}

#[test]
fn both_families_and_their_rules_meet() {
    let spec = "in=a out=b icmp [2001:db8::1] > [2001:db8::2] echo-request";
    for (file, spec, code) in [
        ("plain.v6", spec.replace(['[', ']'], ""), 0),
        ("plain.v6", "tcp [2001:db8::1]:1 > [2001:db8::2]:1023".to_owned(), 1),
        ("stateless.v4", "icmp 10.20.0.1 > 192.0.2.1 echo-request".to_owned(), 0),
        ("plain.v6", "udp 10.20.0.1:1 > 192.0.2.1:2".to_owned(), 4),
    ] {
        let ran = tamis(&["why", &rules(file), "--packet", &spec]);
        assert_eq!(ran.code, Some(code), "{spec}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn the_document_tells_the_same_story() {
    let spec = "in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:25 syn";
    let ran = tamis(&["why", RULES, "--packet", spec, "--json"]);
    assert_eq!(ran.code, Some(1));
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["schema"], "tamis.why/1");
    assert_eq!(document["verdict"], "drop");
}

#[test]
fn all_shows_the_rules_that_did_not_match() {
    let spec = "in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:25 syn";
    let few = tamis(&["why", RULES, "--packet", spec]).out;
    let all = tamis(&["why", RULES, "--packet", spec, "--all"]).out;
    assert!(all.lines().count() > few.lines().count());
    assert!(all.contains("--icmp-type 8") && !few.contains("--icmp-type 8"), "{few}");
}
