//! `tamis lint` and `tamis diff` as a user meets them.

use crate::ran::{Scratch, fed, tamis};

const RULES: &str = "*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -s 192.0.2.0/24 -j DROP
-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
-A INPUT -s 192.0.2.7/32 -p tcp -m tcp --dport 22 -j ACCEPT
COMMIT
";

#[test]
fn a_finding_has_its_line_what_covers_it_and_a_packet() {
    let ran = fed(&["lint", "-"], RULES.as_bytes());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let head = ":8: error: never matches: all of it is taken by lines 5 and 6";
    let lines: Vec<&str> = ran.out.lines().collect();
    let at = lines.iter().position(|line| line.contains("[shadowed]")).unwrap();
    assert!(lines[at].contains(head), "{}", ran.out);
    assert!(lines[at + 2].starts_with("    such as in="), "{}", ran.out);
    assert_eq!(lines.last(), Some(&"1 error, 0 warnings, 0 notes"), "{}", ran.out);
}

/// What `such as` says can be asked about: the rule that takes it is one of the named rules.
#[test]
fn a_witness_is_a_packet_spec() {
    let scratch = Scratch::new("lint-witness");
    let rules = scratch.write("rules", RULES.as_bytes());
    let json = tamis(&["lint", &rules, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["schema"], "tamis.lint/1");
    let finding = &document["findings"][0];
    assert_eq!((&finding["code"], &finding["line"]), (&"shadowed".into(), &8.into()), "{document}");
    let witness = finding["witness"].as_str().unwrap();
    let why = tamis(&["why", &rules, "--packet", witness]);
    assert_eq!(why.code, Some(0), "{witness}: {}", why.err);
    let by = finding["by"].as_array().unwrap();
    let named = by.iter().any(|line| {
        let text = RULES.lines().nth(line.as_u64().unwrap() as usize - 1).unwrap();
        why.out.contains(text)
    });
    assert!(named, "{witness}\n{}", why.out);
}

#[test]
fn codes_are_left_out_and_explained() {
    let all = ["lint", "-", "--allow", "shadowed"];
    let ran = fed(&all, RULES.as_bytes());
    assert_eq!((ran.code, &*ran.out), (Some(0), "0 errors, 0 warnings, 0 notes\n"));
    let explained = tamis(&["lint", "--explain", "redundant"]);
    assert!(explained.out.starts_with("redundant: without it"), "{}", explained.out);
    let wrong = tamis(&["lint", "--explain", "reddundant"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("expected one of shadowed"), "{}", wrong.err);
}

#[test]
fn findings_go_to_sarif_and_to_github() {
    let scratch = Scratch::new("lint-sarif");
    let rules = scratch.write("rules", RULES.as_bytes());
    let sarif = scratch.file("lint.sarif");
    let ran = tamis(&["lint", &rules, "--sarif", &sarif, "--github"]);
    assert!(ran.out.starts_with("::"), "{}", ran.out);
    assert!(ran.out.contains(",line=8,title=shadowed::never matches"), "{}", ran.out);
    let document: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&sarif).unwrap()).unwrap();
    let result = &document["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"shadowed".into(), &"error".into()));
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 8);
}

#[test]
fn what_is_known_is_not_told_again() {
    let scratch = Scratch::new("lint-baseline");
    let rules = scratch.write("rules", RULES.as_bytes());
    let known = scratch.file("known.json");
    let written = tamis(&["lint", &rules, "--write-baseline", &known]);
    assert_eq!(written.code, Some(1), "{}", written.err);
    // Lines move, and nothing is new.
    let moved = format!("# a comment\n{RULES}");
    let moved = scratch.write("moved", moved.as_bytes());
    let ran = tamis(&["lint", &moved, "--baseline", &known]);
    let none = "0 errors, 0 warnings, 0 notes; 1 left out that is known\n";
    assert_eq!((ran.code, &*ran.out), (Some(0), none), "{}", ran.err);
    let twice = RULES.replace("COMMIT", "-A INPUT -s 192.0.2.9/32 -p udp -j ACCEPT\nCOMMIT");
    let twice = scratch.write("twice", twice.as_bytes());
    for more in [["--baseline", &known], ["--vs", &rules]] {
        let ran = tamis(&[&["lint", &twice][..], &more].concat());
        assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains(":9: error: never matches"), "{}", ran.out);
        assert!(!ran.out.contains(":8: "), "{}", ran.out);
    }
    let wrong = tamis(&["lint", &rules, "--baseline", &rules]);
    assert!(wrong.refusal().contains(":1:1: expected a baseline"), "{wrong:?}");
    let same = tamis(&["lint", &rules, "--write-baseline", &rules]);
    assert!(same.refusal().contains("expected a file of its own"), "{same:?}");
}

/// Skeletons of docker, ufw and firewalld have dozens of chains that nothing uses yet.
#[test]
fn many_unused_chains_are_one_line() {
    let chains: String = (0..9).map(|at| format!(":idle{at} - [0:0]\n")).collect();
    let rules = format!("*filter\n:INPUT DROP [0:0]\n{chains}COMMIT\n");
    let ran = fed(&["lint", "-"], rules.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
    let line = "note: 9 chains that no built-in chain leads to: idle0, idle1, idle2, idle3, idle4, idle5 and 3 more [unused-chain]";
    assert!(ran.out.contains(line), "{}", ran.out);
    let json = fed(&["lint", "-", "--json"], rules.as_bytes()).json();
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(9));
}

#[test]
fn a_change_is_told_by_regions_and_by_its_exit_code() {
    let scratch = Scratch::new("diff");
    let old = scratch.write("old", RULES.as_bytes());
    let new = scratch.write("new", RULES.replace("--dport 22 -j", "--dport 22:23 -j").as_bytes());
    let same = tamis(&["diff", &old, &old]);
    assert_eq!((same.code, &*same.out), (Some(0), "same: every packet gets the same verdict\n"));
    let ran = tamis(&["diff", &old, &new, "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["schema"], "tamis.diff/1");
    let region = &document["regions"][0];
    assert_eq!((&region["from"], &region["to"]), (&"DROP".into(), &"ACCEPT".into()));
    assert_eq!(region["fields"]["dport"], serde_json::json!(["23"]));
    assert_eq!((&region["old_line"], &region["new_line"]), (&2.into(), &7.into()));
    let witness = region["witness"].as_str().unwrap();
    for (rules, verdict) in [(&old, "\nDROP by L2"), (&new, "\nACCEPT by L7")] {
        let why = tamis(&["why", rules, "--packet", witness]);
        assert!(why.out.contains(verdict), "{witness}\n{}", why.out);
    }
    let unknown = RULES
        .replace("COMMIT", "-A INPUT -m string --algo bm --string no-such-words -j ACCEPT\nCOMMIT");
    let unknown = scratch.write("unknown", unknown.as_bytes());
    let ran = tamis(&["diff", &old, &unknown]);
    assert_eq!(ran.code, Some(4), "{}", ran.out);
    assert!(ran.out.contains("unknown: filter INPUT: DROP -> ACCEPT"), "{}", ran.out);
}

/// What `--record` writes, the new rules pass and the old ones do not; `--on` finds the packets of a capture.
#[test]
fn a_change_is_recorded_as_cases_and_found_in_a_capture() {
    let scratch = Scratch::new("diff-record");
    let demo = scratch.path().join("demo");
    std::fs::create_dir_all(&demo).unwrap();
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_tamis"))
        .arg("demo")
        .current_dir(&demo)
        .output()
        .unwrap();
    assert!(ran.status.success());
    let at = |name: &str| demo.join(name).display().to_string();
    let (old, capture) = (at("demo-rules.v4"), at("demo-office.pcap"));
    let text = std::fs::read_to_string(&old).unwrap();
    let new = scratch.write("new", text.replace("--dport 25", "--dport 26").as_bytes());
    let cases = scratch.path().join("cases.toml").display().to_string();
    let nets = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];
    let given = ["diff", &old, &new, "--record", &cases, "--on", &capture];
    let ran = tamis(&[&given[..], &nets[..]].concat());
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("4 packets: drop -> accept, such as "), "{}", ran.out);
    assert!(ran.out.contains("of filter FORWARD: in lan0, out wan0"), "{}", ran.out);
    assert_eq!(tamis(&["test", &new, &cases]).code, Some(0));
    let failed = tamis(&["test", &old, &cases]);
    assert_eq!(failed.code, Some(1));
    assert!(failed.out.contains("0 passed"), "{}", failed.out);
}

#[test]
fn rules_of_bridges_are_refused() {
    let ran = fed(&["lint", "-", "--family", "bridge"], b"*filter\n:INPUT ACCEPT\n");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("expected rules of iptables or ip6tables"), "{}", ran.err);
}
