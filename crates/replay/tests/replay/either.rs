//! A verdict that is certain where what gave it is not: a rule of which nobody knows whether it matched, and the policy
//! after it. Both are named, and neither is blamed.

use dataplane::Config;
use host::{QueueVerdict, Queues};
use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, Interface, LinkType, Timestamp};
use replay::report::Style;
use replay::run::{self, List, Wanted};
use replay::{RulesFile, cases, spec, why};
use rules::save::LoadOptions;

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p tcp -j ACCEPT\n\
    -A FORWARD -m geoip --source-country DE -j DROP\n\
    -A FORWARD -p icmp -j DROP\n-A FORWARD -p icmp -j DROP\nCOMMIT\n";
const SPEC: &str = "udp 10.0.0.1:4000 > 192.0.2.1:53";
const EITHER: &str = "L4 -A FORWARD -m geoip --source-country DE -j DROP \
    or L2 policy DROP of filter/FORWARD";

fn rules() -> [RulesFile; 1] {
    [RulesFile::from_text("rules.v4", RULES.to_owned(), &LoadOptions::default()).unwrap()]
}

/// A capture of one packet, in a directory that goes with it.
fn capture() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.pcapng");
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    let link_type = LinkType::ETHERNET;
    writer.add_interface(&Interface { name: None, link_type, snaplen: 0 }).unwrap();
    let bytes = spec::parse(SPEC).unwrap().frame;
    let timestamp = Some(Timestamp::from_nanos(1_795_255_200_000_000_000));
    let wire_length = bytes.len() as u32;
    let meta = FrameMeta { timestamp, wire_length, ..FrameMeta::default() };
    writer.write(0, Frame { bytes: &bytes, meta: &meta }, None).unwrap();
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    let name = path.display().to_string();
    (dir, name)
}

#[test]
fn a_replay_names_both_and_counts_for_neither() {
    let (rules, config) = (rules(), Config::default());
    let (_dir, capture) = capture();
    let mut packets = Vec::new();
    let list = Some((List::Drop.into(), 5));
    let mut wanted = Wanted { packets: Some(&mut packets), list, page: true, ..Wanted::default() };
    let report = run::replay(&rules, &[capture], &config.clone().into(), &mut wanted).unwrap();
    drop(wanted);
    assert_eq!(report.verdicts.drop.packets, 1);
    assert!(report.accepted_by.is_empty(), "{:?}", report.accepted_by);
    assert!(report.refused_by.is_empty(), "{:?}", report.refused_by);
    let reasons = &report.drop_reasons;
    assert_eq!((reasons.either, reasons.rule, reasons.policy), (1, 0, 0));
    let text = report.text(Style::default());
    let top = text.split("TOP DROPPING RULES").nth(1).unwrap();
    assert!(top.contains("L4 -A FORWARD -m geoip"), "{text}");
    assert!(!top.contains("  L4    -A"), "no rule alone: {text}");
    assert!(text.contains(&format!("by {EITHER}")), "{text}");
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["drop_reasons"]["either"], 1);
    assert_eq!(json["listed"][0]["by"], EITHER);
    assert!(report.html("replay").contains("policy DROP of filter/FORWARD"));
    let line: serde_json::Value = serde_json::from_slice(&packets).unwrap();
    assert_eq!((&line["reason"], &line["text"]), (&"either".into(), &EITHER.into()));
    assert_eq!((&line["chain"], &line["line"]), (&"FORWARD".into(), &serde_json::Value::Null));
}

#[test]
fn a_story_ends_with_both() {
    let (rules, config) = (rules(), Config::default());
    let end = |text: &str| {
        let spec = spec::parse(text).unwrap();
        let story = why::of_conversation(&rules, &config.clone().into(), &[], &spec, None);
        (story.text(false), story.json()["by"].clone())
    };
    let (text, by) = end(SPEC);
    assert!(text.contains(&format!("DROP by {EITHER}")), "{text}");
    assert_eq!(by, EITHER);
    // The first of two rules that drop for certain ends the walk.
    let (text, _) = end("icmp 10.0.0.1 > 192.0.2.1 echo-request");
    assert!(text.contains("DROP by L4 -A FORWARD -m geoip"), "{text}");
    assert!(text.contains("or L5 -A FORWARD -p icmp -j DROP") && !text.contains("or L6"), "{text}");
}

#[test]
fn a_recorded_case_expects_no_rule() {
    let (rules, config) = (rules(), Config::default());
    let (_dir, capture) = capture();
    let mut recording =
        cases::record::record(&rules, &config.clone().into(), std::slice::from_ref(&capture), 10)
            .unwrap();
    recording.pins = true;
    let toml = recording.toml([Some("rules.v4"), None], &[capture]);
    assert!(toml.contains("expect = \"drop\"") && !toml.contains("by = \""), "{toml}");
}

/// A rule that hands packets to a program has no verdict of its own.
#[test]
fn what_a_program_on_a_queue_lets_through_no_rule_drops() {
    let text = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -j NFQUEUE --queue-num 1\nCOMMIT\n";
    let rules = [RulesFile::from_text("q.v4", text.to_owned(), &LoadOptions::default()).unwrap()];
    let (_dir, capture) = capture();
    let of = |verdict| {
        let mut config = Config::default();
        config.host.queues = Queues::of(&[(None, verdict)]).unwrap();
        let report = run::replay(
            &rules,
            std::slice::from_ref(&capture),
            &config.clone().into(),
            &mut Wanted::default(),
        );
        let report = report.unwrap();
        (report.accepted_by.len(), report.refused_by.len(), report.text(Style::default()))
    };
    let (accepted_by, refused_by, text) = of(QueueVerdict::Accept);
    assert_eq!((accepted_by, refused_by), (1, 0));
    assert!(!text.contains("TOP DROPPING RULES"), "{text}");
    let (accepted_by, refused_by, text) = of(QueueVerdict::Drop);
    assert_eq!((accepted_by, refused_by), (0, 1));
    assert!(text.contains("L3     -A FORWARD -j NFQUEUE"), "{text}");
}
