//! What leads further on the page: from a packet to its path, from a rule to its packets, from an address to the
//! prefixes that hold it, from ten rows to all; and a text so long that it is packed.

use std::collections::BTreeMap;

use dataplane::Config;
use host::Network;
use replay::run::{self, Wanted};
use replay::{RulesFile, why};
use rules::save::LoadOptions;
use serde_json::{Value, json};

use super::{NETS, browser, demonstration, opened};

fn config() -> Config {
    let nets = NETS.map(|(name, net)| (name.to_owned(), Network::parse(net).unwrap()));
    Config { nets: nets.to_vec(), ..Config::default() }
}

#[test]
fn packets_open_to_the_paths_that_why_tells() {
    let (dir, files, capture) = demonstration("paths");
    let Some((found, document)) = opened(&files, &capture, &dir, 1280, &NETS) else { return };
    let mut paths = 0;
    for row in found["drops"].as_array().unwrap() {
        let examples = row["examples"].as_array().unwrap().iter().filter_map(Value::as_str);
        for (example, path) in examples.zip(row["paths"].as_array().unwrap()) {
            let number = example.trim_start_matches('#').replace(',', "");
            let captures = [capture.clone()];
            let story =
                why::of_capture(&files, &config().into(), &captures, &number, None).unwrap();
            let text = story.text(false);
            let (_, told) = text.split_once('\n').unwrap();
            assert_eq!(path, told, "packet {number}");
            paths += 1;
        }
        for links in row["led"].as_array().unwrap() {
            let links = links.as_array().unwrap();
            assert!(links.iter().all(|link| link[0] == link[1]), "{links:?}");
        }
    }
    assert!(paths >= 8, "{paths} paths");
    assert_rows_of_rules(&found, &document);
}

/// Every rule that decided leads to its row, and no other one.
fn assert_rows_of_rules(found: &Value, document: &Value) {
    let accepts = found["accepts"].as_array().unwrap();
    let sum: u64 = accepts.iter().map(|row| row["packets"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), document["verdicts"]["accept"]["packets"].as_u64());
    let drops = found["drops"].as_array().unwrap().iter();
    let decided: BTreeMap<&str, String> = drops
        .chain(accepts)
        .filter_map(|row| row["line"].as_str())
        .map(|line| (line, format!("by-{line}")))
        .collect();
    assert_eq!(found["rows_of"], json!(decided));
}

#[test]
fn what_decided_is_folded_after_the_tenth() {
    let (dir, _, capture) = demonstration("folded");
    let rule = |length| format!("-A FORWARD -m length --length {length} -j DROP\n");
    let rules = (28..200).map(rule).collect::<String>();
    let chains = ":INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT DROP [0:0]\n";
    let text = format!("*filter\n{chains}{rules}COMMIT\n");
    let file = RulesFile::from_text("lengths.v4", text, &LoadOptions::default()).unwrap();
    let Some((found, _)) = opened(&[file], &capture, &dir, 1280, &NETS) else { return };
    let all = found["drops"].as_array().unwrap().len();
    assert!(all > 10, "{all} rows");
    assert_eq!(found["unfolds"], json!([10, all]));
}

#[test]
fn addresses_find_the_prefixes_that_hold_them() {
    let (dir, files, capture) = demonstration("addresses");
    let Some((found, _)) = opened(&files, &capture, &dir, 1280, &NETS) else { return };
    // 1 where a line has the words, 2 where a prefix of it holds the address. Masks with gaps say nothing.
    let marks = json!({
        "10.1.2.5": [2, 2, 2, 0, 0, 3, 0, 0, 3, 2],
        "10.1.2.0/24": [2, 2, 0, 0, 1, 0, 0, 0, 0, 2],
        "2001:db8:1::7": [0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        "80:443": [0, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        "drop": [1, 1, 1, 1, 1, 0, 1, 0, 1, 1],
        "2001:db8::/16": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    });
    assert_eq!(found["marks"], marks);
}

/// As many rules, each with an address and a comment of its own that would be markup.
fn long(rules: u32) -> String {
    let rule = |at: u32| {
        let comment = format!("ticket &lt;{at}><script>tamisRan=7</script>");
        let source = format!("131.159.{}.{}/32", at / 250, at % 250);
        format!("-A FORWARD -s {source} -m comment --comment \"{comment}\" -j DROP\n")
    };
    let rules = (0..rules).map(rule).collect::<String>();
    format!(
        "*filter\n:FORWARD ACCEPT [0:0]\n{rules}-A FORWARD -d 131.159.20.0/24 -j DROP\nCOMMIT\n"
    )
}

#[test]
fn texts_beyond_ten_thousand_lines_are_packed_and_lose_nothing() {
    let Some(program) = browser::find() else {
        eprintln!("SKIPPED: the page was not opened, for want of Chromium (Debian: chromium)");
        return;
    };
    let (dir, _, capture) = demonstration("packed");
    let text = long(11_000);
    let lines = text.lines().count();
    let files = [RulesFile::from_text("long.v4", text, &LoadOptions::default()).unwrap()];
    let mut wanted = Wanted { page: true, ..Wanted::default() };
    let report = run::replay(&files, &[capture], &config().into(), &mut wanted).unwrap();
    let page = report.html("tamis replay");
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let script = include_str!("packed.js");
    let found = browser::run(&program, script, &page, 1280, &dir.0.join("browser"));
    assert_eq!((&found["errors"], &found["ran"]), (&json!([]), &Value::Null));
    assert_eq!((&found["all"], &found["first"][0]), (&json!(lines), &json!(["L1", "*filter"])));
    let address = &found["address"];
    assert_eq!(address["told"], "2 lines, 2 with a prefix that holds it");
    let anchors = [&address["lines"][0][0], &address["lines"][1][0]];
    assert_eq!(anchors, [&json!("L5010"), &json!(format!("L{}", lines - 1))]);
    assert_eq!((&found["words"]["told"], &found["words"]["all"]), (&json!("1 line"), &json!(1)));
    let shown = found["link"].as_str().unwrap();
    assert!(shown.contains("\"ticket &lt;8997><script>tamisRan=7</script>\""), "{shown}");
    assert_eq!(found["cleared"], json!(["", lines]));
    // The rules, and the line of their table.
    assert_eq!(found["never"], json!(11_002));
    assert_eq!(found["printed"], found["never"]);
}
