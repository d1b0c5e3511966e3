//! Calls of the Java library compared with the command line: the same documents, the same refusals.

use std::path::Path;

use java_native::offline;
use serde_json::{Map, Value, json};

use crate::ran::{CAPTURE, RULES, Ran, Scratch, rules, tamis};

const NETS: Options<'_> = &[("net", "lan0=10.20.0.0/24"), ("net", "wan0=0.0.0.0/0")];

/// Long names of options, each with its value, or none.
type Options<'o> = &'o [(&'o str, &'o str)];

/// The options as a call has them: options without a value are `true`, repeated ones lists.
fn object(options: Options<'_>) -> String {
    let mut all = Map::new();
    for (name, value) in options {
        let value = if value.is_empty() { Value::Bool(true) } else { json!(value) };
        match all.get_mut(*name) {
            None => drop(all.insert((*name).to_owned(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(other) => *other = json!([other.clone(), value]),
        }
    }
    Value::Object(all).to_string()
}

/// The options as the command line has them.
fn words(options: Options<'_>) -> Vec<String> {
    let one = |(name, value): &(&str, &str)| match value.is_empty() {
        true => format!("--{name}"),
        false => format!("--{name}={value}"),
    };
    options.iter().map(one).collect()
}

fn ran(command: &[&str], options: Options<'_>) -> Ran {
    let words = words(options);
    let words = words.iter().map(String::as_str);
    tamis(&command.iter().copied().chain(["--json"]).chain(words).collect::<Vec<_>>())
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A report but for the time that it took.
fn timeless(text: &str) -> Value {
    let mut report: Value = serde_json::from_str(text).unwrap();
    for key in ["elapsed_s", "packets_per_s"] {
        assert!(report.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    // Calls have no command line to repeat.
    for hit in report["hits"].as_array_mut().into_iter().flatten() {
        if let Some(because) = hit.get_mut("maybe_because") {
            because["command"] = Value::Null;
        }
    }
    report
}

fn same_replay(rules: &str, captures: &[&str], options: Options<'_>) -> Value {
    let called = offline::replay(&owned(&[rules]), &owned(captures), &object(options)).unwrap();
    let typed = ran(&[&["replay", rules], captures].concat(), options);
    assert_eq!(timeless(&called), timeless(&typed.out), "{options:?}: {}", typed.err);
    timeless(&called)
}

#[test]
fn a_replay_is_that_of_the_command_line() {
    let scratch = Scratch::new("java-replay");
    let bans = scratch.file("bans.txt");
    std::fs::write(&bans, "- ban 10.20.0.0/28\n").unwrap();
    let (new, v6) = (rules("stateful.v4"), rules("plain.v6"));
    let plain = same_replay(RULES, &[CAPTURE], &[]);
    let more: [Options<'_>; 9] = [
        NETS,
        &[("list", "drop"), ("limit", "3"), NETS[0], NETS[1]],
        &[("vs", &new), ("list", "change"), ("vs-semantics", "nft"), NETS[0], NETS[1]],
        &[("in", "lan0"), ("out", "wan0"), ("path", "forward"), ("jobs", "2")],
        &[("from", "+1"), ("to", "+60"), ("count", "17"), ("checksums", "verify")],
        &[("bans", &bans), NETS[0], NETS[1]],
        &[("rules6", &v6), ("ct", "off"), ("no-pair", ""), ("strict-input", "")],
        &[("local", "10.20.0.1,192.0.2.1/32"), ("local", "192.0.2.2"), ("addr", "wan0=192.0.2.1")],
        &[("table", "filter"), ("semantics", "nft"), ("ct", "kernel"), ("ct-max", "9")],
    ];
    for options in more {
        assert_ne!(same_replay(RULES, &[CAPTURE], options), plain, "{options:?}");
    }
}

#[test]
fn a_folder_of_a_host_and_ipv6_rules_are_rules_too() {
    let scratch = Scratch::new("java-host");
    let folder = scratch.file("host");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(RULES, format!("{folder}/iptables.save")).unwrap();
    std::fs::write(format!("{folder}/bans.txt"), "- ban 10.20.0.0/28\n").unwrap();
    let with = same_replay(&folder, &[CAPTURE], NETS);
    assert_ne!(with["verdicts"], same_replay(RULES, &[CAPTURE], NETS)["verdicts"]);
    let v6 = rules("plain.v6");
    let second = offline::replay(&owned(&[RULES, &v6]), &owned(&[CAPTURE]), "").unwrap();
    assert_eq!(timeless(&second), same_replay(RULES, &[CAPTURE], &[("rules6", &v6)]));
}

/// A host whose packets show twice, under rules that send them elsewhere than the frames that left say.
#[test]
fn pairs_of_frames_are_used_unless_an_option_says_otherwise() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/fixtures/programs/docker");
    let scratch = Scratch::new("java-pairs");
    let (folder, capture) = (scratch.file("host"), format!("{kept}/any.pcap.gz"));
    std::fs::create_dir(&folder).unwrap();
    for entry in std::fs::read_dir(format!("{kept}/host")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, Path::new(&folder).join(path.file_name().unwrap())).unwrap();
    }
    let rules = format!("{folder}/iptables.save");
    let text = std::fs::read_to_string(&rules).unwrap();
    let changed = text.replace("--to-destination 172.17.0.2:80", "--to-destination 172.17.0.3:80");
    std::fs::write(&rules, changed).unwrap();
    let paired = same_replay(&folder, &[&capture], &[]);
    let single = same_replay(&folder, &[&capture], &[("no-pair", "")]);
    assert!(paired["contradictions"]["packets"].as_u64() > Some(0));
    assert_eq!(single["contradictions"]["packets"].as_u64(), Some(0));
}

#[test]
fn a_story_is_that_of_the_command_line() {
    for number in [1, 7, 40] {
        let options = [NETS, &[("near", "3")]].concat();
        let called =
            offline::why(&owned(&[RULES]), Some(CAPTURE), number, &object(&options)).unwrap();
        let number = number.to_string();
        assert_eq!(called, ran(&["why", RULES, CAPTURE, "--packet", &number], &options).out);
    }
    let specs = [
        ("packet", "in=lan0 out=wan0 tcp 10.20.0.9:1025 > 203.0.113.1:443 syn"),
        ("packet", "in=wan0 out=lan0 tcp 203.0.113.1:443 > 10.20.0.9:1025 syn,ack"),
    ];
    for specs in [&specs[..1], &specs] {
        let called = offline::why(&owned(&[RULES]), None, 0, &object(specs)).unwrap();
        assert_eq!(called, ran(&["why", RULES], specs).out);
    }
}

#[test]
fn what_the_command_line_refuses_a_call_refuses_in_its_words() {
    let scratch = Scratch::new("java-refused");
    let broken = scratch.file("broken.v4");
    std::fs::write(&broken, "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j nowhere\nCOMMIT\n").unwrap();
    let nets = [("net", "lan0=10.0.0.0/8"), ("net", "wan0=10.0.0.0/8")];
    let cases: [(&str, &str, Options<'_>); 9] = [
        ("nowhere.v4", CAPTURE, &[]),
        (RULES, "nowhere.pcap", &[]),
        (CAPTURE, RULES, &[]),
        (RULES, RULES, &[]),
        (&broken, CAPTURE, &[]),
        (RULES, CAPTURE, &nets),
        (RULES, CAPTURE, &[("table", "nat6")]),
        (RULES, CAPTURE, &[("rules6", "nowhere.v6")]),
        (RULES, CAPTURE, &[("routes", RULES)]),
    ];
    for (rules, capture, options) in cases {
        let called =
            offline::replay(&owned(&[rules]), &owned(&[capture]), &object(options)).unwrap_err();
        assert_eq!(called.0, ran(&["replay", rules, capture], options).refusal());
    }
    let none = offline::why(&owned(&[RULES]), Some(CAPTURE), 1 << 40, "").unwrap_err();
    let number = (1_u64 << 40).to_string();
    assert_eq!(none.0, ran(&["why", RULES, CAPTURE, "--packet", &number], &[]).refusal());
}

#[test]
fn options_that_a_call_does_not_have_are_refused() {
    let cases = [
        (r#"{"lst": "drop"}"#, "--lst: expected an option of this call"),
        (r#"{"verdicts": "x"}"#, "--verdicts: expected an option of this call"),
        (r#"{"net": "lan0"}"#, "--net lan0: expected IFACE=ADDRESS/BITS"),
        (r#"{"limit": 3}"#, "--limit: expected --list, too"),
        (r#"{"list": "change"}"#, "--list change: expected --vs, too"),
        (r#"{"path": "both"}"#, "--path both: expected one of forward input output auto"),
        (r#"{"in": ["a", "b"]}"#, "--in: expected one value, found 2"),
        (r#"{"in": true}"#, "--in: expected a value, found true"),
        (r#"{"no-pair": "x"}"#, "--no-pair: expected no value, found \"x\""),
        ("[]", "options: expected an object"),
    ];
    for (options, what) in cases {
        let refused = offline::replay(&owned(&[RULES]), &owned(&[CAPTURE]), options).unwrap_err();
        assert_eq!(refused.0, what);
    }
    for (rules, captures) in [(&["-"][..], CAPTURE), (&[RULES], "-"), (&[RULES], "eth0=-")] {
        let refused = offline::replay(&owned(rules), &owned(&[captures]), "").unwrap_err();
        assert_eq!(refused.0, "expected a file, found - (standard input)");
    }
    assert!(offline::replay(&[], &owned(&[CAPTURE]), "").is_err());
    assert!(offline::replay(&owned(&[RULES]), &[], "").is_err());
}
