//! What is recorded passes, is bounded and says what is missing.

use super::*;
use crate::cases::{Cases, judge};
use crate::demo;
use rules::Network;
use rules::save::LoadOptions;

const RULES: &str = "*filter\n:INPUT ACCEPT\n:FORWARD DROP\n:OUTPUT ACCEPT\n-A FORWARD -p tcp -j ACCEPT\n\
                     -A FORWARD -m string --string virus --algo bm -j REJECT\nCOMMIT\n";

fn rules(text: &str) -> [RulesFile; 1] {
    [RulesFile::from_text("rules.v4", text.to_owned(), &LoadOptions::default()).unwrap()]
}

fn office() -> Config {
    let net = |name: &str, cidr| (name.to_owned(), Network::parse(cidr).unwrap());
    Config {
        nets: vec![net("lan0", "10.20.0.0/24"), net("wan0", "0.0.0.0/0")],
        ..Config::default()
    }
}

/// Records the demonstration's capture.
fn recorded(rules: &[RulesFile], config: &Config, limit: usize, see: impl FnOnce(&Recording<'_>)) {
    let folder = std::env::temp_dir().join(format!("tamis-record-{limit}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let capture = demo::write(&folder).unwrap().capture.display().to_string();
    see(&record(rules, config, &[capture], limit).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_demonstration_passes_as_recorded() {
    let (rules, config) = (rules(demo::RULES), office());
    recorded(&rules, &config, 200, |recording| {
        let toml = recording.toml([Some("rules.v4"), None], &["office.pcap".to_owned()]);
        let cases = Cases::from_text("cases.toml", &toml).unwrap();
        assert_eq!(cases.cases.len(), recording.case_count());
        let results = judge(&cases, &rules, &cases.defaults.under(Config::default()), "");
        assert_eq!(results.failed().count(), 0, "{}", results.text());
        // Every end that a packet of the demonstration meets is there.
        for end in ["drop by ttl", "reject by filter/from-office/1", "drop by filter/to-office/6"] {
            assert!(toml.contains(end), "{end}: {toml}");
        }
        assert!(toml.contains("# Left out: 2 packets whose verdict is unknown."), "{toml}");
        assert!(toml.contains("by = \"filter/FORWARD/policy\""), "{toml}");
        assert!(toml.contains("net = [\"lan0=10.20.0.0/24\", \"wan0=0.0.0.0/0\"]"), "{toml}");
    });
}

#[test]
fn a_bounded_recording_says_that_it_was_cut() {
    let (rules, config) = (rules(demo::RULES), office());
    recorded(&rules, &config, 3, |recording| {
        assert_eq!(recording.case_count(), 3);
        assert!(recording.cut > 0);
        assert!(recording.toml([None; 2], &[]).contains("packets beyond --limit"));
    });
}

#[test]
fn what_hangs_on_a_payload_is_not_written() {
    let rules = rules(RULES);
    recorded(&rules, &Config::default(), 199, |recording| {
        let toml = recording.toml([None; 2], &[]);
        assert!(toml.contains("accept by filter/FORWARD/1"), "{toml}");
        let cases = Cases::from_text("c.toml", &toml).unwrap();
        let results = judge(&cases, &rules, &Config::default(), "");
        assert_eq!(results.failed().count(), 0, "{}", results.text());
    });
}

#[test]
fn options_of_the_command_line_become_defaults() {
    let config = Config {
        path: Some(Path::Input),
        input: Some("a\"b".to_owned()),
        output: Some("eth1".to_owned()),
        ..office()
    };
    let written =
        defaults(&config) + "[[case]]\nname='n'\npacket='icmp 1.2.3.4 > 5.6.7.8'\nexpect='drop'";
    let read = Cases::from_text("c.toml", &written).unwrap().defaults;
    assert_eq!((read.path, read.input, read.output), (config.path, config.input, config.output));
    assert_eq!(read.nets, config.nets);
}

#[test]
fn a_capture_that_is_cut_off_is_said() {
    let folder = std::env::temp_dir().join(format!("tamis-record-cut-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let capture = folder.join("cut.pcap");
    std::fs::write(&capture, &demo::CAPTURE[..demo::CAPTURE.len() - 7]).unwrap();
    let (rules, config) = (rules(demo::RULES), office());
    let recording = record(&rules, &config, &[capture.display().to_string()], 9).unwrap();
    assert!(recording.toml([None; 2], &[]).contains("# Warning: "), "{:?}", recording.warnings);
    std::fs::remove_dir_all(&folder).unwrap();
}
