//! `tamis test --record`: what it writes passes as written, for the demonstration and for the captures of
//! tcpdump's own test suite.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::ran::Scratch;

const ARCHIVE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/captures/tcpdump-tests-pcaps.tar.xz"
);

const NETS: [&str; 4] = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];

/// A folder with the files of the demonstration.
fn demo(name: &str) -> Scratch {
    let folder = Scratch::new(name);
    assert_eq!(folder.tamis(&["demo"]).code, Some(0));
    folder
}

fn record<'a>(capture: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["test", "--record", capture], rest].concat()
}

#[test]
fn the_demonstration_passes_as_recorded() {
    let folder = demo("record-demo");
    let rest = [&["--pin", "-o", "cases.toml", "demo-rules.v4"], &NETS[..]].concat();
    let ended = folder.tamis(&record("demo-office.pcap", &rest));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let next = ended.out.lines().last().unwrap();
    assert_eq!(next, "next: tamis test cases.toml");
    let ended = folder.tamis(&["test", "cases.toml"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert!(!ended.out.starts_with("0 passed"), "{}", ended.out);
    // A rule that goes is noticed.
    let rules = fs::read_to_string(folder.path().join("demo-rules.v4")).unwrap();
    folder.write("demo-rules.v4", rules.replace("--dport 25 ", "--dport 26 "));
    let ended = folder.tamis(&["test", "cases.toml"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.out.contains("(no rule reads so)"), "{}", ended.out);
}

#[test]
fn rules_that_lie_elsewhere_are_named_beside_the_cases() {
    let folder = demo("record-elsewhere");
    fs::create_dir(folder.file("t")).unwrap();
    let rest = [&["-o", "t/cases.toml", "demo-rules.v4"], &NETS[..]].concat();
    let ended = folder.tamis(&record("demo-office.pcap", &rest));
    assert_eq!(ended.out.lines().last(), Some("next: tamis test demo-rules.v4 t/cases.toml"));
    assert_eq!(folder.tamis(&["test", "demo-rules.v4", "t/cases.toml"]).code, Some(0));
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let folder = demo("record-there");
    folder.write("cases.toml", "mine");
    let rest = ["-o", "cases.toml", "--path", "forward", "demo-rules.v4"];
    let ended = folder.tamis(&record("demo-office.pcap", &rest));
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("cases.toml: File exists"), "{}", ended.err);
    assert_eq!(fs::read_to_string(folder.path().join("cases.toml")).unwrap(), "mine");
}

#[test]
fn standard_output_is_the_default_and_the_limit_is_told() {
    let folder = demo("record-limit");
    let rest = [&["--limit", "2", "demo-rules.v4"], &NETS[..]].concat();
    let ended = folder.tamis(&record("demo-office.pcap", &rest));
    assert_eq!(ended.out.matches("[[case]]").count(), 2);
    assert!(ended.out.contains("packets beyond --limit"), "{}", ended.out);
}

#[test]
fn a_capture_of_which_nothing_is_known_is_refused() {
    let folder = demo("record-nothing");
    folder.write(
        "v6.rules",
        "*filter\n:FORWARD DROP\n-A FORWARD -s 2001:db8::/32 -j ACCEPT\nCOMMIT\n",
    );
    let ended = folder.tamis(&record("demo-office.pcap", &["v6.rules"]));
    assert_eq!(ended.code, Some(2));
    let message =
        "expected a packet whose verdict is known to record, found 287 packets: 0 unknown, 287";
    assert!(ended.err.contains(message), "{}", ended.err);
}

/// Rules that many kinds of packets meet, with tests that no SPEC can carry.
const RULES: &str = "*filter\n:INPUT ACCEPT\n:FORWARD DROP\n:OUTPUT ACCEPT\n\
    -A FORWARD -m ttl --ttl-lt 3 -j DROP\n\
    -A FORWARD -m u32 --u32 \"6&0xFF=0x11&&28&0xFFFF=0x0001\" -j REJECT\n\
    -A FORWARD -p udp -m udp --dport 53 -j ACCEPT\n\
    -A FORWARD -p udp -m length --length 0:200 -j ACCEPT\n\
    -A FORWARD -p tcp -m tcp --tcp-flags SYN,ACK SYN -j ACCEPT\n\
    -A FORWARD -p tcp -m tcp --tcp-option 8 -j ACCEPT\n\
    -A FORWARD -p icmp -j REJECT\n\
    -A FORWARD -p esp -j ACCEPT\n\
    -A FORWARD -f -j DROP\nCOMMIT\n";

#[test]
fn captures_of_tcpdump_pass_as_recorded() {
    if !Path::new(ARCHIVE).exists() {
        eprintln!("SKIPPED: no {ARCHIVE}");
        return;
    }
    let folder = Scratch::new("record-tcpdump");
    let unpacked =
        Command::new("tar").arg("-xJf").arg(ARCHIVE).arg("-C").arg(folder.path()).status();
    if !unpacked.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: tar cannot unpack {ARCHIVE}");
        return;
    }
    folder.write("v4.rules", RULES);
    let v6 = RULES.replace("-p icmp", "-p ipv6-icmp").replace("-m ttl --ttl-lt", "-m hl --hl-lt");
    let v6 =
        v6.replace("-A FORWARD -f -j DROP\n", "").replace("*filter", "# ip6tables-save\n*filter");
    folder.write("v6.rules", &v6);
    let mut recorded = 0;
    for (number, entry) in fs::read_dir(folder.path().join("tests")).unwrap().enumerate() {
        let capture = entry.unwrap().path().display().to_string();
        for (rules, family) in [("v4.rules", "ip"), ("v6.rules", "ip6")] {
            let output = format!("{family}-{number}.toml");
            let rest = ["-o", &output, rules, "--family", family];
            let ended = folder.tamis(&record(&capture, &rest));
            // Captures without such a packet, or that are no captures, say so.
            if ended.code == Some(2) {
                assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
                continue;
            }
            assert_eq!(ended.code, Some(0), "{capture}: {}", ended.err);
            let ended = folder.tamis(&["test", &output, "--family", family]);
            assert_eq!(ended.code, Some(0), "{capture}: {}{}", ended.out, ended.err);
            recorded += 1;
        }
    }
    assert!(recorded > 200, "only {recorded} captures held a case");
}
