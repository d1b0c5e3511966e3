//! The page in a real browser: its counts equal the JSON's of the same replay, its filters, search and
//! links do what they promise, nothing runs that came from rules or captures, and it fits a phone.

// Clippy allows it in test functions only; here all are part of tests.

mod browser;
mod walks;

use std::collections::BTreeMap;
use std::path::PathBuf;

use dataplane::Config;
use host::Network;
use replay::groups::GroupBy;
use replay::report::Report;
use replay::run::{self, Wanted};
use replay::{RulesFile, demo};
use rules::save::LoadOptions;
use serde_json::{Value, json};

/// Rules that try to become markup, in every place that the page shows words of them.
const HOSTILE: &str = "*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 8080
COMMIT
*filter
:FORWARD DROP [0:0]
:a'><b>&amp; - [0:0]
-A FORWARD -p tcp -m comment --comment \"</code><script>window.tamisRan=1</script>\" -j DROP
-A FORWARD -m comment --comment \"<img src=x onerror='tamisRan=2'>\" -j a'><b>&amp;
COMMIT
";
const HOSTILE6: &str = "*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -m comment --comment \"<svg onload=tamisRan=3>\" -j ACCEPT
COMMIT
";

/// A directory of one test, removed when it ends.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tamis-page-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // What cannot be removed stays in the system's temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Replays the demonstration's capture and opens the page; `None`, with a line that says so, without a browser.
fn opened(
    files: &[RulesFile],
    capture: &str,
    dir: &Dir,
    width: u32,
    nets: &[(&str, &str)],
) -> Option<(Value, Value)> {
    opened_against(files, None, capture, dir, width, nets)
}

/// Opens the page of a replay as [`opened`] does, with rules to compare with.
fn opened_against(
    files: &[RulesFile],
    versus: Option<Vec<RulesFile>>,
    capture: &str,
    dir: &Dir,
    width: u32,
    nets: &[(&str, &str)],
) -> Option<(Value, Value)> {
    let Some(program) = browser::find() else {
        eprintln!("SKIPPED: the page was not opened, for want of Chromium (Debian: chromium)");
        return None;
    };
    let nets = nets.iter().map(|(name, net)| ((*name).to_owned(), Network::parse(net).unwrap()));
    let config = Config { nets: nets.collect(), ..Config::default() };
    let mut wanted = Wanted { page: true, versus, ..Wanted::default() };
    let report =
        run::replay(files, &[capture.to_owned()], &config.clone().into(), &mut wanted).unwrap();
    let page = report.html("tamis replay <i>rules</i> 'a capture'");
    let found = browser::probe(&program, &page, width, &dir.0.join("browser"));
    assert_well_behaved(&found, &report);
    assert_bars(&found, &report);
    let mut json = Vec::new();
    report.write_json(&mut json).ok()?;
    Some((found, serde_json::from_slice(&json).ok()?))
}

/// What holds for every page.
fn assert_well_behaved(found: &Value, report: &Report) {
    assert_eq!(found["errors"], json!([]), "errors in the page");
    assert_eq!(found["loaded"], json!([]), "the page loaded something");
    assert_eq!(found["ran"], Value::Null, "words of rules or captures ran");
    assert_eq!(found["dangling"], json!([]), "links that lead nowhere");
    assert!(found["page_width"].as_u64() <= found["width"].as_u64(), "the page is too wide");
    let new = report.changes.iter().flat_map(|changes| &changes.files);
    let new = new.filter(|new| report.files.iter().all(|old| old.text != new.text));
    let lines = report.files.iter().chain(new).map(|file| file.text.lines().count()).sum::<usize>();
    assert_eq!(found["lines"].as_object().unwrap().len(), lines);
}

/// Whose packets were dropped: the ten groups of each kind that have most.
fn assert_bars(found: &Value, report: &Report) {
    let kinds = [GroupBy::Source, GroupBy::Destination, GroupBy::Port];
    for grouping in report.groups.iter().filter(|grouping| kinds.contains(&grouping.by)) {
        let groups = grouping.groups.iter().take(10);
        let bars: Vec<Value> =
            groups.map(|group| json!([group.key.to_string(), group.listed.packets])).collect();
        let shown = found["who"].get(grouping.by.name()).cloned().unwrap_or_else(|| json!([]));
        assert_eq!(shown, json!(bars), "bars by {}", grouping.by.name());
    }
}

/// The demonstration's rules and capture.
fn demonstration(name: &str) -> (Dir, Vec<RulesFile>, String) {
    let dir = Dir::new(name);
    let written = demo::write(&dir.0).unwrap();
    let rules = written.rules.display().to_string();
    let files = vec![RulesFile::open(&rules, &LoadOptions::default()).unwrap()];
    let capture = written.capture.display().to_string();
    (dir, files, capture)
}

const NETS: [(&str, &str); 2] = [("lan0", "10.20.0.0/24"), ("wan0", "0.0.0.0/0")];

/// Hits of the JSON by the page's anchors.
fn hits_by_anchor(document: &Value, families: &[&str]) -> BTreeMap<String, [u64; 3]> {
    let mut sums: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for hit in document["hits"].as_array().unwrap() {
        let file = families.iter().position(|family| hit["family"] == *family).unwrap();
        let line = &hit["line"];
        let anchor = if file == 0 { format!("L{line}") } else { format!("r{}-L{line}", file + 1) };
        let sum = sums.entry(anchor).or_default();
        for (sum, key) in sum.iter_mut().zip(["packets", "bytes", "maybe"]) {
            *sum += hit[key].as_u64().unwrap_or(0);
        }
    }
    sums
}

#[test]
fn counts_are_those_of_the_json() {
    let (dir, files, capture) = demonstration("counts");
    let Some((found, document)) = opened(&files, &capture, &dir, 1440, &NETS) else { return };
    assert_eq!(found["verdicts"], document["verdicts"]);
    for (anchor, [packets, bytes, maybe]) in hits_by_anchor(&document, &["ip"]) {
        let line = &found["lines"][&anchor];
        let counted = [&line["packets"], &line["bytes"], &line["maybe"]];
        assert_eq!(counted, [&json!(packets), &json!(bytes), &json!(maybe)], "{anchor}");
    }
    for policy in document["policies"].as_array().unwrap() {
        let declared =
            format!(":{} {}", policy["chain"].as_str().unwrap(), policy["policy"]).replace('"', "");
        let table = format!("*{}", policy["table"].as_str().unwrap());
        let anchor = declaration(&files[0].text, &table, &declared);
        let margin = found["lines"][&anchor]["packets"].as_u64().unwrap_or(0);
        assert_eq!(Some(margin), policy["packets"].as_u64(), "{declared} of {table}");
    }
    assert_chart(&found, &document);
    assert_drops(&found, &document);
}

/// The anchor of a chain's declaration.
fn declaration(text: &str, table: &str, declared: &str) -> String {
    let lines = text.lines().enumerate().skip_while(|(_, line)| *line != table);
    let (index, _) = { lines }.find(|(_, line)| line.starts_with(declared)).unwrap();
    format!("L{}", index + 1)
}

fn assert_chart(found: &Value, document: &Value) {
    assert!(found["bars"].as_u64().unwrap() > 5);
    for (verdict, count) in document["verdicts"].as_object().unwrap() {
        let bars = found["chart"][verdict].as_u64().unwrap_or(0);
        assert_eq!(Some(bars), count["packets"].as_u64(), "bars of {verdict}");
    }
    assert_eq!(found["drawings"], json!([false, true]), "the choice shows the other drawing");
    assert!(found["reading"].as_str().unwrap().contains(" UTC: accept "), "{}", found["reading"]);
}

fn assert_drops(found: &Value, document: &Value) {
    let rows = found["drops"].as_array().unwrap();
    let verdicts = &document["verdicts"];
    for word in ["drop", "reject"] {
        let rows = rows.iter().filter(|row| row["verdict"] == word);
        let packets: u64 = rows.map(|row| row["packets"].as_u64().unwrap()).sum();
        assert_eq!(Some(packets), verdicts[word]["packets"].as_u64(), "rows of {word}");
    }
    for row in rows {
        let packets = row["packets"].as_u64().unwrap();
        let examples = row["examples"].as_array().unwrap().len() as u64;
        assert_eq!(examples, packets.min(3), "{row}");
    }
    let mut descending: Vec<u64> =
        rows.iter().map(|row| row["packets"].as_u64().unwrap()).collect();
    descending.sort_unstable_by(|a, b| b.cmp(a));
    let ascending: Vec<u64> = descending.iter().rev().copied().collect();
    assert_eq!(found["sorted"], json!([descending, ascending]));
    let reasons: Vec<Value> = document["unknown_because"].as_array().unwrap().iter().map(|reason| {
        json!({ "packets": reason["packets"], "line": format!("L{}", reason["line"]) })
    }).collect();
    assert_eq!(found["unknown"], json!(reasons));
}

/// The demonstration's rules with mail let out by its web rule, one host forgiven, and calls let out.
fn relaxed(old: &RulesFile) -> RulesFile {
    let kept = old.text.lines().filter(|line| !line.contains("phishing"));
    let mut text: Vec<String> =
        kept.map(|line| line.replace("--dports 80,443", "--dports 25,80,443")).collect();
    let end = text.iter().rposition(|line| line == "COMMIT").unwrap();
    text.insert(end, "-A from-office -p udp -m udp --dport 5060 -j ACCEPT".to_owned());
    let text = text.join("\n") + "\n";
    RulesFile::from_text("<b>new</b>.v4", text, &LoadOptions::default()).unwrap()
}

/// The anchor of a decider of the JSON, of the text that stands at `index` on the page.
fn anchor_of(place: &Value, index: usize) -> Value {
    match (&place["line"], index) {
        (Value::Null, _) => Value::Null,
        (line, 0) => json!(format!("L{line}")),
        (line, index) => json!(format!("r{}-L{line}", index + 1)),
    }
}

#[test]
fn changes_are_those_of_the_json_and_lead_to_both_rules() {
    let (dir, files, capture) = demonstration("changes");
    let new = relaxed(&files[0]);
    let (lines, old_lines) = (new.text.lines().count(), files[0].text.lines().count());
    let Some((found, document)) =
        opened_against(&files, Some(vec![new]), &capture, &dir, 390, &NETS)
    else {
        return;
    };
    let changes = &document["changes"];
    let by = changes["by"].as_array().unwrap();
    assert!(by.len() >= 2, "{changes}");
    assert_eq!(found["changed"], changes["packets"]);
    let rows = found["changes"].as_array().unwrap();
    assert_eq!(rows.len(), by.len());
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let group = &by[id.strip_prefix("change-").unwrap().parse::<usize>().unwrap()];
        for key in ["from", "to", "packets", "bytes"] {
            assert_eq!(row[key], group[key], "{key} of {id}");
        }
        assert_eq!(row["lines"], json!([anchor_of(&group["old"], 0), anchor_of(&group["new"], 1)]));
        assert_eq!(row["texts"], json!([group["old"]["text"], group["new"]["text"]]));
        assert_eq!(row["examples"][0][1], group["example"]);
        let frames: Vec<String> = group["example_frames"]
            .as_array()
            .unwrap()
            .iter()
            .map(|frame| format!("#{frame}"))
            .collect();
        let shown = row["examples"].as_array().unwrap().iter().map(|example| &example[0]);
        assert!(shown.eq(frames.iter()), "{row}");
    }
    let turns: u64 =
        found["turns"].as_array().unwrap().iter().map(|t| t["packets"].as_u64().unwrap()).sum();
    assert_eq!(Some(turns), changes["packets"].as_u64());
    assert_edits(&found, old_lines, lines);
    assert_new_hits(&found, &document);
}

fn assert_edits(found: &Value, old_lines: usize, lines: usize) {
    let edited = |class: &str| found["edited"][class].as_array().unwrap().len();
    assert_eq!((edited("gone"), edited("came")), (2, 2));
    assert_eq!(old_lines - 2, lines - 2, "what is left is the same");
    let filter = &found["filters"]["edited"];
    assert_eq!((&filter["lines"], &filter["promised"]), (&found["edited"]["gone"], &json!(2)));
    let rows = found["changes"].as_array().unwrap();
    for (line, effect) in found["effects"].as_object().unwrap() {
        let by_line =
            rows.iter().filter(|row| row["lines"].as_array().unwrap().contains(&json!(line)));
        let packets: u64 = by_line.map(|row| row["packets"].as_u64().unwrap()).sum();
        assert_eq!(effect[0], json!(packets), "{line}");
    }
    for row in rows {
        for line in row["lines"].as_array().unwrap().iter().filter_map(Value::as_str) {
            assert!(found["effects"].get(line).is_some(), "{line} says that it changes something");
        }
    }
}

fn assert_new_hits(found: &Value, document: &Value) {
    for hit in document["new_hits"].as_array().unwrap() {
        let line = &found["lines"][format!("r2-L{}", hit["line"])];
        for key in ["packets", "bytes", "maybe"] {
            assert_eq!(line[key], hit[key], "{key} of {}", hit["text"]);
        }
    }
}

#[test]
fn the_same_text_under_another_implementation_stands_once() {
    let (dir, files, capture) = demonstration("same-text");
    let options = LoadOptions::default();
    let new = RulesFile::from_text("again.v4", files[0].text.to_string(), &options).unwrap();
    let new = new.evaluated_as(Some(rules::Backend::Nft));
    let Some((found, document)) =
        opened_against(&files, Some(vec![new]), &capture, &dir, 1280, &NETS)
    else {
        return;
    };
    assert_eq!((&found["changed"], &document["changes"]["packets"]), (&Value::Null, &json!(0)));
    assert_eq!(found["edited"], json!({ "gone": [], "came": [] }));
}

#[test]
fn filters_and_search_show_what_they_promise() {
    let (dir, files, capture) = demonstration("filters");
    let Some((found, document)) = opened(&files, &capture, &dir, 375, &NETS) else { return };
    assert_eq!(found["width"], 375, "a phone");
    let hits = hits_by_anchor(&document, &["ip"]);
    let lines = |wanted: &dyn Fn(&[u64; 3]) -> bool| -> Vec<&String> {
        let mut lines: Vec<_> =
            hits.iter().filter(|(_, hit)| wanted(hit)).map(|(line, _)| line).collect();
        lines.sort_by_key(|line| line[1..].parse::<u32>().unwrap());
        lines
    };
    let never = lines(&|hit| hit[0] == 0 && hit[2] == 0);
    for (filter, expected) in [
        ("all", lines(&|_| true)),
        ("hit", lines(&|hit| hit[0] > 0)),
        ("never", never),
        ("unknown", lines(&|hit| hit[2] > 0)),
    ] {
        let shown = &found["filters"][filter];
        assert_eq!(shown["lines"], json!(expected), "{filter}");
        assert_eq!(shown["promised"], json!(expected.len()), "{filter}");
        assert!(!expected.is_empty(), "the demonstration has no line for {filter}");
    }
    let holding: Vec<String> = (1..)
        .zip(files[0].text.lines())
        .filter(|(_, line)| line.contains("from-office"))
        .map(|(number, _): (u32, _)| format!("L{number}"))
        .collect();
    assert_eq!(found["search"]["office"], json!(holding));
    assert_eq!(found["search"]["none"], json!([]));
    assert_eq!(found["search"]["output"], "0 lines");
    assert_eq!(found["search"]["cleared"], json!(files[0].text.lines().count()));
    let themes = found["themes"].as_array().unwrap();
    assert_ne!(themes[0][1], themes[1][1], "light and dark look the same");
}

#[test]
fn words_of_rules_and_captures_stay_words() {
    let (dir, mut files, capture) = demonstration("hostile");
    files.clear();
    for (name, text) in [("<b>4</b>.rules", HOSTILE), ("'\"><script>tamisRan=4</script>", HOSTILE6)]
    {
        let options = LoadOptions {
            family: rules::model::Family::from_name(if files.is_empty() { "ip" } else { "ip6" }),
            ..LoadOptions::default()
        };
        files.push(RulesFile::from_text(name, text.to_owned(), &options).unwrap());
    }
    let renamed = dir.0.join("<img src=x onerror=tamisRan=5>.pcap").display().to_string();
    std::fs::rename(&capture, &renamed).unwrap();
    let Some((found, document)) = opened(&files, &renamed, &dir, 1440, &[]) else { return };
    assert_eq!(found["verdicts"], document["verdicts"]);
    let line = |number: usize| HOSTILE.lines().nth(number - 1).unwrap();
    for number in [3, 8, 9] {
        assert_eq!(found["lines"][format!("L{number}")]["text"], line(number));
    }
    assert_eq!(found["lines"]["L9"]["links"], json!(["L7"]), "a jump to an empty chain");
    assert_eq!(found["lines"]["r2-L3"]["text"], HOSTILE6.lines().nth(2).unwrap());
    for (anchor, [packets, ..]) in hits_by_anchor(&document, &["ip", "ip6"]) {
        if anchor != "L3" {
            assert_eq!(found["lines"][&anchor]["packets"], json!(packets), "{anchor}");
        }
    }
}
