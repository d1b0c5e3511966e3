//! What is recorded passes, is bounded and says what is missing.

use std::sync::atomic::{AtomicU32, Ordering};

use super::toml::defaults;
use super::*;
use crate::cases::{Cases, Given, evaluate};
use crate::{RulesFile, demo};
use conntrack::Mode;
use dataplane::Config;
use host::Network;
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
fn recorded(rules: &[RulesFile], config: Config, limit: usize, see: impl FnOnce(&Recording)) {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tamis-record-{run}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let capture = demo::write(&folder).unwrap().capture.display().to_string();
    let mut recording = record(rules, &config.into(), &[capture], limit).unwrap();
    recording.pins = true;
    see(&recording);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_demonstration_passes_as_recorded() {
    let (rules, config) = (rules(demo::RULES), office());
    recorded(&rules, config, 200, |recording| {
        let toml = recording.toml([Some("rules.v4"), None], &["office.pcap".to_owned()]);
        let cases = Cases::from_text("cases.toml", &toml).unwrap();
        assert_eq!(cases.cases.len(), recording.case_count());
        let results = evaluate(
            cases.clone(),
            &rules,
            &cases.defaults.under(crate::spec::config(), Given::default()).into(),
            "",
        );
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
    recorded(&rules, config, 3, |recording| {
        assert_eq!(recording.case_count(), 3);
        assert!(recording.cut > 0);
        assert!(recording.toml([None; 2], &[]).contains("packets beyond --limit"));
    });
}

#[test]
fn what_depends_on_a_payload_is_not_written() {
    let rules = rules(RULES);
    recorded(&rules, crate::spec::config(), 200, |recording| {
        let toml = recording.toml([None; 2], &[]);
        assert!(toml.contains("accept by filter/FORWARD/1"), "{toml}");
        let cases = Cases::from_text("c.toml", &toml).unwrap();
        let results = evaluate(cases, &rules, &crate::spec::config().into(), "");
        assert_eq!(results.failed().count(), 0, "{}", results.text());
    });
}

#[test]
fn options_of_the_command_line_become_defaults() {
    let mut config = Config {
        path: Some(dataplane::Path::Input),
        input: Some("a\"b".to_owned()),
        output: Some("eth1".to_owned()),
        ..office()
    };
    let verdicts = ["none", "7=accept"].map(|text| host::parse_verdict(text).unwrap());
    config.host.queues = host::Queues::of(&verdicts).unwrap();
    let written =
        defaults(&config) + "[[case]]\nname='n'\npacket='icmp 1.2.3.4 > 5.6.7.8'\nexpect='drop'";
    let read = Cases::from_text("c.toml", &written).unwrap().defaults;
    assert_eq!((read.path, read.input, read.output), (config.path, config.input, config.output));
    assert_eq!(read.nets, config.nets);
    assert_eq!(read.queues, config.host.queues);
}

#[test]
fn a_capture_that_is_cut_off_is_said() {
    let folder = std::env::temp_dir().join(format!("tamis-record-cut-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let capture = folder.join("cut.pcap");
    std::fs::write(&capture, &demo::CAPTURE[..demo::CAPTURE.len() - 7]).unwrap();
    let (rules, config) = (rules(demo::RULES), office());
    let recording = record(&rules, &config.into(), &[capture.display().to_string()], 9).unwrap();
    assert!(recording.toml([None; 2], &[]).contains("# Warning: "), "{:?}", recording.warnings);
    std::fs::remove_dir_all(&folder).unwrap();
}

const STATEFUL: &str = "*filter\n:INPUT ACCEPT\n:FORWARD DROP\n:OUTPUT ACCEPT\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -i lan0 -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";

#[test]
fn what_depends_on_a_connection_is_recorded_as_a_conversation() {
    for mode in [Mode::Midstream, Mode::Kernel] {
        let mut config = office();
        config.ct.mode = mode;
        let rules = rules(STATEFUL);
        recorded(&rules, config, 200, |recording| {
            let toml = recording.toml([None; 2], &[]);
            let cases = Cases::from_text("c.toml", &toml).unwrap();
            let config = cases.defaults.under(crate::spec::config(), Given::default());
            assert_eq!(config.ct.mode, mode);
            let results = evaluate(cases.clone(), &rules, &config.into(), "");
            assert_eq!(results.failed().count(), 0, "{}", results.text());
            // An answer to a question from inside needs the question.
            let answer = cases.cases.iter().find(|case| {
                case.packets.last().unwrap().text.contains("udp 198.51.100.53:53 > 10.20.0.10")
            });
            assert_eq!(answer.unwrap().packets.len(), 2, "{toml}");
            // Resets in sequence and ICMP errors about a flow depend on what a SPEC does not hold.
            assert!(recording.not_in_words * 8 < recording.case_count() as u64, "{toml}");
        });
    }
}
