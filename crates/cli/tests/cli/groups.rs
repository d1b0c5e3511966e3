//! Lists and groups of packets, and rules that none hit: `--list`, `--by`, `--limit`, `--top`.

use serde_json::{Value, json};

use crate::ran::Scratch;

/// Two ways lead to the rule that drops, and one chain to another.
const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\n:guard - [0:0]\n:LOG_DROP - [0:0]\n:unused - [0:0]\n\
    -A FORWARD -p tcp -m tcp --dport 23 -j LOG_DROP\n\
    -A FORWARD -s 10.0.0.8/32 -j guard\n\
    -A FORWARD -p tcp -m tcp --dport 79 -j ACCEPT\n\
    -A FORWARD -p udp -m geoip --source-country XX -j ACCEPT\n\
    -A guard -p udp -j RETURN\n\
    -A guard -j LOG_DROP\n\
    -A guard -p icmp -j ACCEPT\n\
    -A LOG_DROP -m limit --limit 1/min -j LOG\n\
    -A LOG_DROP -j DROP\n\
    -A unused -j DROP\nCOMMIT\n";
const SPECS: [&str; 6] = [
    "tcp 10.0.0.7:4000 > 10.0.1.9:23 syn",
    "tcp 10.0.0.8:4000 > 10.0.1.9:22 syn",
    "tcp 10.0.1.9:22 > 10.0.0.8:4000 syn,ack",
    "tcp 10.0.0.8:4001 > 10.0.1.9:80 syn",
    "tcp 10.0.0.7:4000 > 10.0.1.9:23 syn",
    "tcp 10.0.0.7:4001 > 10.0.1.9:23 syn",
];

fn folder(name: &str) -> Scratch {
    let folder = Scratch::new(name);
    folder.write("r", RULES);
    folder.capture("c", "eth0", &SPECS);
    folder
}

fn replayed(folder: &Scratch, flags: &[&str]) -> String {
    let ran = folder.tamis(&[&["replay", "r", "c"], flags].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.out
}

/// What stands between a heading and the next blank line.
fn part<'t>(text: &'t str, heading: &str) -> &'t str {
    let from = text.split_once(heading).unwrap_or_else(|| panic!("no {heading} in {text}")).1;
    from.split("\n\n").next().unwrap()
}

#[test]
fn a_path_names_the_jumps_that_led_to_what_decided() {
    let folder = folder("groups-path");
    let text = replayed(&folder, &["--by", "path"]);
    let expected = " drop or reject: 2 of 2 groups, 5 packets\n           \
        3  +0.000 s for 0 ms #1\n              \
        L6 -A FORWARD -p tcp -m tcp --dport 23 -j LOG_DROP\n                \
        L14 -A LOG_DROP -j DROP\n           \
        2  +0.000 s for 0 ms #2\n              \
        L7 -A FORWARD -s 10.0.0.8/32 -j guard\n                \
        L11 -A guard -j LOG_DROP\n                  \
        L14 -A LOG_DROP -j DROP\nnext: tamis why r c --packet 1\n";
    assert_eq!(
        part(&text, "\nBY PATH,").replace(" for 0 ms", "").trim_end(),
        expected.replace(" for 0 ms", "").trim_end()
    );
}

#[test]
fn groups_in_json_have_what_they_have_in_common_and_their_verdicts() {
    let folder = folder("groups-json");
    let args = ["replay", "r", "c", "--by", "path,flow,source,destination,port", "--json"];
    let json = folder.tamis(&args).json();
    let groupings = json["groups"].as_array().unwrap();
    let first = |by: &str| -> Value {
        let one = groupings.iter().find(|one| one["by"] == by).unwrap();
        assert_eq!((&one["packets"], &one["left_out"]), (&json!(5), &json!(0)));
        assert_eq!(one["lists"], json!(["drop", "reject"]));
        assert_eq!(one["total"], json!(one["groups"].as_array().unwrap().len()));
        one["groups"][0].clone()
    };
    let path = first("path");
    let lines: Vec<&Value> = path["jumps"].as_array().unwrap().iter().map(|j| &j["line"]).collect();
    assert_eq!(
        (lines, &path["by"]["line"], &path["sure"]),
        (vec![&json!(6)], &json!(14), &json!(true))
    );
    assert_eq!(
        (&path["packets"], &path["bytes"], &path["example"]),
        (&json!(3), &json!(120), &json!(1))
    );
    let flow = first("flow");
    let ends = ["source", "source_port", "destination", "destination_port"].map(|end| &flow[end]);
    assert_eq!(ends, [&json!("10.0.0.7"), &json!(4000), &json!("10.0.1.9"), &json!(23)]);
    assert_eq!((&flow["packets"], &flow["protocol"]), (&json!(2), &json!("tcp")));
    assert_eq!(first("source")["address"], "10.0.0.7");
    assert_eq!(first("destination")["verdicts"]["drop"]["packets"], 5);
    assert_eq!((&first("port")["port"], &first("port")["packets"]), (&json!(23), &json!(3)));
}

#[test]
fn a_connection_is_a_line_with_the_verdicts_of_both_directions() {
    let folder = folder("groups-flow");
    let text = replayed(&folder, &["--by", "flow", "--limit", "2"]);
    let flows = part(&text, "\nBY FLOW,");
    assert!(flows.starts_with(" drop or reject: 2 of 4 groups, 5 packets\n"), "{text}");
    assert!(flows.contains("  tcp 10.0.0.8:4000 > 10.0.1.9:22  1 accept, 1 drop  "), "{text}");
    assert!(flows.contains("\n  and 2 more (--limit 4 shows all)\n"), "{text}");
    // Other packets than dropped ones, where they are asked for.
    let text = replayed(&folder, &["--by", "source", "--list", "accept"]);
    assert!(
        text.contains("\nBY SOURCE, accept: 1 of 1 group, 1 packet\n  10.0.1.9  1 accept"),
        "{text}"
    );
}

#[test]
fn a_jump_that_may_not_have_been_taken_leaves_the_path_open() {
    let folder = Scratch::new("groups-open");
    folder.write(
        "r",
        "*filter\n:FORWARD ACCEPT [0:0]\n:end - [0:0]\n\
         -A FORWARD -m geoip --source-country XX -j end\n-A FORWARD -j end\n-A end -j DROP\nCOMMIT\n",
    );
    folder.capture("c", "eth0", &SPECS[..1]);
    let args = ["replay", "r", "c", "--by", "path", "--json"];
    let path = folder.tamis(&args).json()["groups"][0]["groups"][0].clone();
    assert_eq!(
        (&path["sure"], &path["jumps"], &path["by"]["line"]),
        (&json!(false), &json!([]), &json!(6))
    );
    assert!(replayed(&folder, &["--by", "path"]).contains("by one of several jumps\n"));
}

#[test]
fn of_several_jumps_the_last_one_led_there() {
    let folder = Scratch::new("groups-twice");
    folder.write(
        "r",
        "*mangle\n:FORWARD ACCEPT [0:0]\n:end - [0:0]\n-A FORWARD -j end\n\
         -A FORWARD -j MARK --set-xmark 0x1/0xffffffff\n-A FORWARD -j end\n\
         -A end -m mark --mark 0x1 -j DROP\nCOMMIT\n",
    );
    folder.capture("c", "eth0", &SPECS[..1]);
    let args = ["replay", "r", "c", "--by", "path", "--json"];
    let path = folder.tamis(&args).json()["groups"][0]["groups"][0].clone();
    assert_eq!((&path["jumps"][0]["line"], &path["by"]["line"]), (&json!(6), &json!(7)));
    assert_eq!((path["jumps"].as_array().unwrap().len(), &path["sure"]), (1, &json!(true)));
}

#[test]
fn a_list_says_how_many_there_are_when_and_why() {
    let folder = folder("list");
    let text = replayed(&folder, &["--list", "drop,reject", "--limit", "2"]);
    let list = part(&text, "\nLIST drop,reject: ");
    assert!(
        list.starts_with("2 of 5 packets (--limit 5 shows all)\n#1 +0.000 s drop: tcp "),
        "{text}"
    );
    assert_eq!(list.matches("\n#").count(), 2, "{text}");
    assert!(list.contains("  by L14 -A LOG_DROP -j DROP\n"), "{text}");
    let json =
        folder.tamis(&["replay", "r", "c", "--list", "drop", "--limit", "2", "--json"]).json();
    assert_eq!(json["list"], json!({ "lists": ["drop"], "limit": 2, "packets": 5 }));
    assert_eq!(json["listed"].as_array().unwrap().len(), 2);
    assert_eq!(replayed(&folder, &["--list", "all"]).matches("\n#").count(), 6);
    assert_eq!(replayed(&folder, &["--list", "accept"]).matches("\n#").count(), 1);
    assert!(replayed(&folder, &["--list", "unknown"]).contains("\nLIST unknown: 0 of 0 packets\n"));
    folder.capture("c", "eth0", &["udp 10.0.0.7:53 > 10.0.1.9:53"]);
    folder.write("r", RULES.replace("FORWARD ACCEPT", "FORWARD DROP"));
    let text = replayed(&folder, &["--list", "unknown"]);
    assert!(
        text.contains("unknown: udp 10.0.0.7:53 > 10.0.1.9:53  L9 depends on -m geoip"),
        "{text}"
    );
}

#[test]
fn rules_that_no_packet_hit_say_whether_one_reached_them() {
    let folder = folder("never");
    folder.capture("c", "eth0", &[&SPECS[..], &["udp 10.0.0.8:1 > 10.0.1.9:2"]].concat());
    let text = replayed(&folder, &["--list", "never"]);
    let never =
        "\nnever hit 3 of 10 rules: 2 not reached, 1 reached and not matched; maybe hit: 1\n";
    assert!(text.contains(never), "{text}");
    let list = "\nLIST never: 4 of 4 rules\n  \
        L8     reached, not matched: -A FORWARD -p tcp -m tcp --dport 79 -j ACCEPT\n  \
        L9     maybe hit by 1 packet: -A FORWARD -p udp -m geoip --source-country XX -j ACCEPT\n  \
        L12    not reached: -A guard -p icmp -j ACCEPT\n  \
        L15    not reached: -A unused -j DROP\n";
    assert!(text.contains(list), "{text}");
    let hits = folder.tamis(&["replay", "r", "c", "--json"]).json()["hits"].clone();
    let reached = |line: u32| {
        let hit = hits.as_array().unwrap().iter().find(|hit| hit["line"] == line).unwrap();
        hit["reached"].as_str().unwrap().to_owned()
    };
    assert_eq!([8, 9, 12, 14, 15].map(reached), ["yes", "yes", "no", "yes", "no"]);
}

#[test]
fn tables_have_as_many_rows_as_are_asked_for() {
    let folder = Scratch::new("top");
    let rules: String =
        (1..=7).map(|port| format!("-A FORWARD -p udp -m udp --dport {port} -j DROP\n")).collect();
    folder.write("r", format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n"));
    let specs: Vec<String> =
        (1..=7).map(|port| format!("udp 10.0.0.7:9 > 10.0.1.9:{port}")).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    folder.capture("c", "eth0", &specs);
    let rows = |flags: &[&str]| replayed(&folder, flags).matches("  L").count();
    assert_eq!([rows(&[]), rows(&["--top", "7"]), rows(&["--top", "1"])], [5, 7, 1]);
    assert!(replayed(&folder, &[]).contains("\n  and 2 more (--top 7 shows all)\n"));
}

#[test]
fn what_asks_for_nothing_is_refused() {
    let folder = folder("groups-refused");
    for (flags, message) in [
        (&["--limit", "3"][..], "--list"),
        (&["--by", "rule"], "invalid value 'rule'"),
        (&["--list", "change"], "--vs"),
        (&["--top", "3", "--json"], "cannot be used with"),
    ] {
        let ran = folder.tamis(&[&["replay", "r", "c"], flags].concat());
        assert!(ran.refusal().contains(message), "{flags:?}: {}", ran.err);
    }
}
