//! The JSON Schemas of `docs/schemas` describe what is printed: real documents pass, also where every member that a
//! schema does not name is an error, and documents of which a member is missing or of another kind do not.

use std::fs;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::ran::{CAPTURE, RULES, Scratch, fed, rules, skipped, tamis};

const NETS: [&str; 4] = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];

/// A schema as it is published, and as it is where it has to name every member.
pub(crate) struct Schema {
    file: String,
    published: Validator,
    closed: Validator,
    /// As 0.1 had it: readers of its documents read today's.
    before: Validator,
}

impl Schema {
    pub(crate) fn named(name: &str) -> Self {
        let read = |file: &str| -> Value {
            let text = fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR")));
            serde_json::from_str(&text.unwrap()).unwrap()
        };
        let file = format!("docs/schemas/{name}.json");
        let schema = read(&file);
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        let mut closed = schema.clone();
        close(&mut closed);
        let validator = |schema| jsonschema::validator_for(schema).unwrap();
        let before = read(&format!("tests/compat/0.1/schemas/{name}.json"));
        let before = validator(&before);
        Self { file, published: validator(&schema), closed: validator(&closed), before }
    }

    /// Of a document that was printed.
    pub(crate) fn takes(&self, document: &Value) {
        let wrong: Vec<String> = self
            .closed
            .iter_errors(document)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "not as {} has it: {wrong:#?}\nin {document:#}", self.file);
        assert!(self.published.is_valid(document));
        assert!(self.before.is_valid(document), "not as {} of 0.1 had it: {document:#}", self.file);
        let more = with(document, "another", json!(1));
        assert!(self.published.is_valid(&more) && !self.closed.is_valid(&more));
    }

    /// Of such a document with one member changed, at a JSON pointer; `Null` stands for its removal.
    fn refuses(&self, document: &Value, pointer: &str, to: Value) {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut wrong = document.clone();
        let members = wrong.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        assert!(members.remove(name).is_some(), "{pointer} is not there");
        if !to.is_null() {
            members.insert(name.to_owned(), to.clone());
        }
        assert!(!self.published.is_valid(&wrong), "{pointer}: {to} passes");
    }
}

fn with(document: &Value, name: &str, value: Value) -> Value {
    let mut members = document.as_object().unwrap().clone();
    members.insert(name.to_owned(), value);
    Value::Object(members)
}

/// Makes every object of a schema one of the members that it names.
fn close(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(close),
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("properties").is_some_and(Value::is_object) {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        _ => {}
    }
}

/// What a command prints, whatever its exit code.
fn printed(args: &[&str]) -> Value {
    let ran = tamis(args);
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", ran.err))
}

/// Rules of which one opens port 25 to the office.
fn changed_rules(scratch: &Scratch) -> String {
    let rules = fs::read_to_string(RULES).unwrap();
    scratch.write("new.v4", rules.replace("--dports 80,443", "--dports 25,80,443"))
}

#[test]
fn reports_and_lines_of_packets() {
    let (scratch, report, line) =
        (Scratch::new("schemas"), Schema::named("tamis.replay.1"), Schema::named("packets"));
    let (new, packets) = (changed_rules(&scratch), scratch.file("packets.jsonl"));
    let plain = printed(&["replay", RULES, CAPTURE, "--json"]);
    report.takes(&plain);
    assert!(plain["unknown_because"].as_array().is_some_and(|all| !all.is_empty()));
    let packets = packets.as_str();
    let more = ["--json", "--vs", &new, "--list", "change", "--packets", packets, "--count", "280"];
    let compared = printed(&[&["replay", RULES, CAPTURE][..], &NETS, &more].concat());
    report.takes(&compared);
    for member in ["changes", "listed", "selected", "new_hits"] {
        assert!(compared.get(member).is_some(), "{member}");
    }
    let both = printed(&["replay", RULES, CAPTURE, CAPTURE, "--json", "--list", "drop"]);
    report.takes(&both);
    for (pointer, to) in [
        ("/schema", json!("tamis.replay/2")),
        ("/verdicts/drop", Value::Null),
        ("/packets", json!("287")),
        ("/soundness", json!("sound")),
        ("/changes/by/0/from", json!("pass")),
        ("/changes/by/0/old/number", json!(0)),
        ("/hits/0/first", json!(12)),
        ("/policies/0/policy", json!("RETURN")),
        ("/listed/0/frame", json!(0)),
        ("/assumed/ct", Value::Null),
    ] {
        report.refuses(&compared, pointer, to);
    }
    let lines = fs::read_to_string(packets).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|document| line.takes(document));
    assert_eq!(lines.len(), 280);
    for (pointer, to) in [
        ("/frame", json!("1")),
        ("/verdict", json!("dropped")),
        ("/source_port", json!(65536)),
        ("/path", json!("auto")),
        ("/reason", Value::Null),
    ] {
        line.refuses(&lines[0], pointer, to);
    }
}

#[test]
fn stories() {
    let schema = Schema::named("tamis.why.1");
    for packet in ["1", "20", "163", "287"] {
        let args =
            [&["why", RULES, CAPTURE, "--packet", packet, "--near", "3", "--json"][..], &NETS];
        schema.takes(&printed(&args.concat()));
    }
    let (first, second) = (
        "path=forward tcp 198.51.100.7:40000 > 203.0.113.1:8080 syn",
        "path=forward tcp 198.51.100.7:40001 > 203.0.113.1:8080 syn",
    );
    let translated = rules("nat.v4");
    let story = printed(&["why", &translated, "--packet", first, "--packet", second, "--json"]);
    schema.takes(&story);
    let step = |kind: &str| {
        let steps = story["steps"].as_array().unwrap();
        let at = steps.iter().position(|step| step["step"] == kind);
        format!("/steps/{}", at.unwrap_or_else(|| panic!("no step {kind}")))
    };
    for (pointer, to) in [
        ("/schema".to_owned(), json!("tamis.why/2")),
        ("/verdict".to_owned(), json!("maybe")),
        ("/before/0/verdict".to_owned(), Value::Null),
        (step("rule") + "/matches", json!("perhaps")),
        (step("rule") + "/number", json!(0)),
        (step("path") + "/path", json!("sideways")),
        (step("ttl") + "/left", json!(256)),
        (step("conntrack") + "/flow", json!("none")),
        (step("nat") + "/what", Value::Null),
        (step("policy") + "/step", json!("politics")),
    ] {
        schema.refuses(&story, &pointer, to);
    }
}

#[test]
fn lines_of_a_log() {
    let schema = Schema::named("tamis.why_lines.1");
    let log = b"[UFW BLOCK] IN=lan0 OUT=wan0 SRC=10.20.0.10 DST=198.51.100.66 LEN=60 TTL=64 PROTO=TCP SPT=40000 DPT=443 SYN\n\
        nothing of a packet\nIN=lan0 OUT=wan0 SRC=10.20.0.10 DST=198.51.100.66 LEN=60 TTL=64 PROTO=TCP SPT=forty DPT=1\n";
    let judged = serde_json::from_str(&fed(&["why", RULES, "--json"], log).out).unwrap();
    schema.takes(&judged);
    for (pointer, to) in [
        ("/verdicts/unknown", Value::Null),
        ("/packets/0/at", json!(0)),
        ("/refused", json!({})),
        ("/lines", json!(-1)),
    ] {
        schema.refuses(&judged, pointer, to);
    }
}

#[test]
fn results_of_cases() {
    let (scratch, schema) = (Scratch::new("schemas-test"), Schema::named("tamis.test.1"));
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ci/cases.toml");
    schema.takes(&printed(&["test", RULES, cases, "--json"]));
    let failed = printed(&["test", &changed_rules(&scratch), cases, "--json"]);
    schema.takes(&failed);
    assert_ne!(failed["failed"], 0);
    for (pointer, to) in [
        ("/cases/0/passed", json!("yes")),
        ("/cases/0/packets", json!([])),
        ("/cases/0/line", json!(0)),
        ("/passed", Value::Null),
        ("/rules", json!([])),
    ] {
        schema.refuses(&failed, pointer, to);
    }
}

#[test]
fn what_differs() {
    let (scratch, schema) = (Scratch::new("schemas-diff"), Schema::named("tamis.diff.1"));
    let new = changed_rules(&scratch);
    let on = printed(&[&["diff", RULES, &new, "--json", "--on", CAPTURE], &NETS[..]].concat());
    schema.takes(&on);
    assert_eq!(on["result"], "different");
    schema.takes(&printed(&["diff", RULES, RULES, "--json"]));
    let asked = scratch
        .write("asked.v4", "*filter\n-A INPUT -m string --string a --algo bm -j DROP\nCOMMIT\n");
    let empty = scratch.write("empty.v4", "*filter\n:INPUT ACCEPT\nCOMMIT\n");
    let unknown = printed(&["diff", &empty, &asked, "--json"]);
    schema.takes(&unknown);
    assert_eq!(unknown["result"], "unknown");
    for (pointer, to) in [
        ("/result", json!("equal")),
        ("/more", json!(1)),
        ("/regions/0/place", Value::Null),
        ("/regions/0/new_line", json!(0)),
        ("/regions/0/fields/dport", json!([])),
        ("/regions/0/witness", json!(null)),
        ("/on/packets", json!("1")),
    ] {
        schema.refuses(&on, pointer, to);
    }
}

#[test]
fn what_reaches() {
    let schema = Schema::named("tamis.reach.1");
    let nat = rules("nat.v4");
    let asked = |more: &[&str]| printed(&[&["reach", &nat, "--json"], more].concat());
    let document = asked(&["--to", "203.0.113.1"]);
    schema.takes(&document);
    schema.takes(&asked(&[
        "--to",
        "10.0.0.9:80/tcp",
        "--from",
        "192.0.2.0/24",
        "--path",
        "forward",
    ]));
    schema.takes(&printed(&["reach", RULES, "--json", "--from", "10.20.0.0/16"]));
    for (pointer, to) in [
        ("/result", json!("yes")),
        ("/regions/0/way", json!("sideways")),
        ("/regions/0/certain", json!("perhaps")),
        ("/regions/0/witness/verdict", json!("pass")),
        ("/regions/0/depends", Value::Null),
        ("/to", json!(1)),
        ("/cut_off", json!(0)),
    ] {
        schema.refuses(&document, pointer, to);
    }
}

#[test]
fn rules_of_every_family() {
    let schema = Schema::named("tamis.rules.1");
    let arp = "*filter\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n-A INPUT -s 10.0.0.1 -j DROP\n";
    let bridge = "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n:own DROP\n-A FORWARD -p ARP -j own\n";
    for (family, text) in [("arptables", arp), ("ebtables", bridge)] {
        let ran = fed(&["convert", "-", "--from", family, "--to", "json"], text.as_bytes());
        schema.takes(&ran.json());
    }
    let document = printed(&["convert", RULES, "--to", "json"]);
    schema.takes(&document);
    for (pointer, to) in [
        ("/family", json!("inet")),
        ("/tables/0/name", json!("two words")),
        ("/tables/0/chains/0/policy", json!("RETURN")),
        ("/tables/0/chains/0/rules/0/text", json!("-A a\n-A b")),
        ("/tables/0/chains/0/rules/0/action", json!({ "kind": "jump" })),
    ] {
        schema.refuses(&document, pointer, to);
    }
}

#[test]
fn what_works_on_this_machine() {
    let schema = Schema::named("tamis.doctor.1");
    let report = printed(&["doctor", "--json"]);
    schema.takes(&report);
    schema.refuses(&report, "/ports/0/works", json!("yes"));
    schema.refuses(&report, "/kernel", json!(6));
}

/// A run from capture to capture, which ends by itself and says how it was.
#[test]
fn how_a_run_was() {
    let (scratch, schema) = (Scratch::new("schemas-run"), Schema::named("tamis.status.1"));
    let ports = format!(
        "[[port]]\nname = \"lan0\"\nkind = \"pcap\"\nfile = \"{CAPTURE}\"\n\
         [[port]]\nname = \"wan0\"\nkind = \"pcap\"\nout = \"out.pcap\"\n\
         [rules]\nip = \"{RULES}\"\n[[wire]]\nports = [\"lan0\", \"wan0\"]\n"
    );
    let ordered = format!("{ports}scheme = \"ordered\"\n[workers]\ncount = 2\n");
    let [plain, ordered] = [("plain", ports), ("ordered", ordered)].map(|(name, text)| {
        let config = scratch.write(&format!("{name}.toml"), text);
        let status = printed(&["run", &config, "--json"]);
        schema.takes(&status);
        status
    });
    assert!(ordered["wires"][0]["queue"].is_object(), "{ordered:#}");
    for (pointer, to) in [
        ("/wires/0/received", json!(-1)),
        ("/wires/0/verdicts/drop", Value::Null),
        ("/wires/0/dropped/rule", json!("5")),
        ("/workers/0/state", json!("idle")),
        ("/panicked", Value::Null),
        ("/revision", json!("1")),
    ] {
        schema.refuses(&plain, pointer, to);
    }
}

/// Every ruleset from the wild, as JSON and against a packet of a capture.
#[test]
fn documents_of_rulesets_from_the_wild() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/rulesets");
    let Ok(files) = fs::read_dir(data) else {
        return skipped("documents of rulesets from the wild: no ../shared/data");
    };
    let names = ["tamis.replay.1", "tamis.why.1", "tamis.rules.1"];
    let [report, story, ruleset] = names.map(Schema::named);
    let saved = files.map(|file| file.unwrap().path().display().to_string());
    let mut read = 0;
    for file in saved.filter(|file| file.ends_with(".save")) {
        // One of them is a parser's test, with options that nothing has.
        if tamis(&["convert", &file, "--to", "json"]).code == Some(2) {
            continue;
        }
        read += 1;
        ruleset.takes(&printed(&["convert", &file, "--to", "json"]));
        report.takes(&printed(&[
            "replay", &file, CAPTURE, "--json", "--vs", &file, "--list", "unknown",
        ]));
        story.takes(&printed(&["why", &file, CAPTURE, "--packet", "163", "--near", "2", "--json"]));
    }
    assert!(read > 10, "{read} rulesets were read");
}

/// A page names every schema that there is, and each is one of a page.
#[test]
fn the_page_names_each() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let page = fs::read_to_string(format!("{docs}/json.md")).unwrap();
    for file in fs::read_dir(format!("{docs}/schemas")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("(schemas/{name})")), "docs/json.md does not name {name}");
        let schema = fs::read_to_string(format!("{docs}/schemas/{name}")).unwrap();
        let schema: Map<String, Value> = serde_json::from_str(&schema).unwrap();
        let constant = schema["properties"].pointer("/schema/const").and_then(Value::as_str);
        let expected =
            constant.map_or("packets.json".to_owned(), |name| name.replace('/', ".") + ".json");
        assert_eq!(name, expected);
    }
}
