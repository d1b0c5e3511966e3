//! `nflog.pcap` is what `tcpdump -i nflog:5` wrote on a router under `rules.v4`: two pings through it, one to it, a
//! datagram that it rejected, a SYN that it dropped.

use conntrack::Mode;
use dataplane::Config;
use host::{Host, Links};
use rules::save::LoadOptions;

use super::*;
use crate::run::{Wanted, replay};

const RULES: &str = include_str!("rules.v4");
const LINKS: &str = include_str!("links.txt");

fn captured() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/src/logged/nflog.pcap").to_owned()
}

fn rules() -> [RulesFile; 1] {
    [RulesFile::from_text("rules.v4", RULES.to_owned(), &LoadOptions::default()).unwrap()]
}

fn config() -> Config {
    let ct = conntrack::Config { mode: Mode::Kernel, ..Default::default() };
    let host = Host { links: Links::parse(LINKS).unwrap(), ..Host::default() };
    Config { ct, host, ..Config::default() }
}

/// Verdict, line, interfaces and what recorded it, of each packet.
fn replayed(files: &[RulesFile]) -> Vec<String> {
    let mut lines = Vec::new();
    let config = config();
    let mut wanted = Wanted { packets: Some(&mut lines), ..Wanted::default() };
    replay(files, &[captured()], &config.clone().into(), &mut wanted).unwrap();
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let word = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
        let logged = line["logged_by"][0].as_str().unwrap_or("-").split(' ').next().unwrap();
        let [verdict, reason, input, out] = ["verdict", "reason", "in", "out"].map(word);
        format!("{verdict} {reason} {} {input}>{out} {logged}", line["line"])
    };
    String::from_utf8(lines).unwrap().lines().map(line).collect()
}

#[test]
fn each_packet_walks_on_from_the_hook_that_recorded_it() {
    let files = rules();
    let wanted = [
        // By its TTL, which forwarding has lowered, and by nothing before FORWARD.
        "accept rule 13 lan0>wan0 L11",
        "accept rule 12 wan0>lan0 L11",
        "accept rule 12 lan0>wan0 L11",
        "accept rule 12 wan0>lan0 L11",
        // By the mark that mangle gave it before.
        "accept rule 10 lan0>- L9",
        "accept policy 8 ->lan0 L15",
        "reject rule 14 lan0>wan0 L11",
        "accept policy 8 ->lan0 L15",
        "drop policy 7 lan0>wan0 L11",
    ];
    assert_eq!(replayed(&files), wanted);
}

#[test]
fn why_names_the_rule_that_recorded_the_packet() {
    let (files, config) = (rules(), config());
    let story =
        crate::why::of_capture(&files, &config.clone().into(), &[captured()], "1", None).unwrap();
    let text = story.text(false);
    assert!(text.contains("\nlogged by L11 -A FORWARD -j NFLOG --nflog-prefix"), "{text}");
    assert!(!text.contains("L9 "), "{text}");
    assert!(!text.contains("mangle PREROUTING"), "{text}");
}
