//! `tamis replay`: the fixed part of the JSON document, and files and lists that agree with it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::ran::{CAPTURE, RULES, Scratch, rules, tamis};

const NETS: [&str; 4] = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];
const VERDICTS: [&str; 5] = ["accept", "drop", "reject", "unknown", "skip"];

fn replay(args: &[&str]) -> Value {
    tamis(&[&["replay", "--json"], args, &NETS].concat()).json()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Each key of `schema` with the types that it may have: s string, u whole number, f number, n null.
const SCHEMA: &[(&str, &str)] = &[
    ("/schema", "s"),
    ("/rules/file", "s"),
    ("/rules/family", "s"),
    ("/rules/tables", "u"),
    ("/rules/chains", "u"),
    ("/rules/rules", "u"),
    ("/captures/0/file", "s"),
    ("/captures/0/packets", "u"),
    ("/captures/0/bytes", "u"),
    ("/captures/0/first", "s"),
    ("/captures/0/last", "s"),
    ("/assumed/family", "s"),
    ("/assumed/path", "s"),
    ("/assumed/in", "sn"),
    ("/assumed/out", "sn"),
    ("/assumed/ct", "s"),
    ("/assumed/midstream_flows", "u"),
    ("/assumed/offload", "u"),
    ("/packets", "u"),
    ("/unknown_because/0/line", "u"),
    ("/unknown_because/0/what", "s"),
    ("/unknown_because/0/packets", "u"),
    ("/hits/0/table", "s"),
    ("/hits/0/chain", "s"),
    ("/hits/0/number", "u"),
    ("/hits/0/line", "u"),
    ("/hits/0/text", "s"),
    ("/hits/0/packets", "un"),
    ("/hits/0/bytes", "un"),
    ("/hits/0/maybe", "u"),
    ("/hits/0/first", "sn"),
    ("/hits/0/last", "sn"),
    ("/policies/0/table", "s"),
    ("/policies/0/chain", "s"),
    ("/policies/0/policy", "s"),
    ("/policies/0/packets", "un"),
    ("/policies/0/bytes", "un"),
    ("/drop_reasons/rule", "u"),
    ("/drop_reasons/policy", "u"),
    ("/drop_reasons/hotdrop", "u"),
    ("/drop_reasons/stack", "u"),
    ("/drop_reasons/ttl", "u"),
    ("/drop_reasons/denied", "u"),
    ("/drop_reasons/either", "u"),
    ("/skipped/family", "u"),
    ("/skipped/second", "u"),
    ("/skipped/lower", "u"),
    ("/skipped/link_type", "u"),
    ("/elapsed_s", "f"),
    ("/packets_per_s", "f"),
];

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "n",
        Value::String(_) => "s",
        Value::Number(number) if number.is_u64() => "u",
        Value::Number(_) => "f",
        _ => "?",
    }
}

#[test]
fn the_document_has_every_key_of_the_schema() {
    let document = replay(&[RULES, CAPTURE]);
    assert_eq!(document["schema"], "tamis.replay/1");
    for (key, kinds) in SCHEMA {
        let value = document.pointer(key).unwrap_or_else(|| panic!("no {key}"));
        assert!(kinds.contains(kind(value)), "{key} is {value}");
    }
    for verdict in VERDICTS {
        for count in ["packets", "bytes"] {
            number(&document["verdicts"][verdict][count]);
        }
    }
    assert!(document.get("changes").is_none(), "changes stand there with --vs only");
}

#[test]
fn the_counts_agree_with_each_other() {
    let document = replay(&[RULES, CAPTURE]);
    let verdicts = &document["verdicts"];
    let sum: u64 = VERDICTS.iter().map(|verdict| number(&verdicts[verdict]["packets"])).sum();
    assert_eq!(sum, number(&document["packets"]));
    assert_eq!(sum, number(&document["captures"][0]["packets"]));
    let reasons = ["rule", "policy", "hotdrop", "stack", "ttl", "conntrack", "denied", "either"];
    let dropped: u64 = reasons.iter().map(|why| number(&document["drop_reasons"][why])).sum();
    assert_eq!(dropped, number(&verdicts["drop"]["packets"]));
    let rules = document["hits"].as_array().unwrap();
    assert_eq!(rules.len() as u64, number(&document["rules"]["rules"]));
    let text = fs::read_to_string(RULES).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for rule in rules {
        assert_eq!(lines[number(&rule["line"]) as usize - 1], rule["text"].as_str().unwrap());
    }
}

#[test]
fn the_verdicts_file_has_a_word_for_each_packet() {
    let scratch = Scratch::new("verdicts");
    let file = scratch.file("verdicts.txt");
    let document = replay(&[RULES, CAPTURE, "--verdicts", &file]);
    let words = fs::read_to_string(file).unwrap();
    let mut counts = BTreeMap::new();
    for word in words.lines() {
        *counts.entry(word).or_insert(0) += 1;
    }
    assert_eq!(words.lines().count() as u64, number(&document["packets"]));
    for verdict in VERDICTS {
        let expected = number(&document["verdicts"][verdict]["packets"]);
        assert_eq!(counts.remove(verdict).unwrap_or(0), expected, "{verdict}");
    }
    assert!(counts.is_empty(), "words of no verdict: {counts:?}");
}

#[test]
fn several_captures_are_one_stream() {
    let one = replay(&[RULES, CAPTURE]);
    let two = replay(&[RULES, CAPTURE, CAPTURE]);
    assert_eq!(number(&two["packets"]), 2 * number(&one["packets"]));
    assert_eq!(two["captures"].as_array().unwrap().len(), 2);
    assert_eq!(number(&two["assumed"]["time_went_back"]), 0, "they are merged by time");
}

#[test]
fn packets_of_several_captures_are_named_by_file_and_number() {
    let scratch = Scratch::new("several");
    let copy = scratch.file("copy.pcap");
    fs::copy(CAPTURE, &copy).unwrap();
    let named = format!("lan0={copy}");
    let document = replay(&[RULES, CAPTURE, &named, "--list", "drop", "--limit", "2"]);
    assert_eq!(document["captures"][1]["file"], copy.as_str());
    assert_eq!(document["captures"][1]["interface"], "lan0");
    let listed = document["listed"].as_array().unwrap();
    assert_eq!(listed[0]["frame"], listed[1]["frame"], "the same packet of both captures");
    assert_eq!([&listed[0]["capture"], &listed[1]["capture"]], [CAPTURE, &copy]);
    let packet = format!("{copy}:{}", listed[1]["frame"]);
    let ran = tamis(&["why", RULES, CAPTURE, &named, "--packet", &packet]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let ran = tamis(&["why", RULES, CAPTURE, &named, "--packet", "1"]);
    assert!(ran.refusal().contains("FILE:N"), "{}", ran.err);
}

#[test]
fn lists_hold_packets_of_one_verdict_and_what_decided() {
    for (verdict, limit) in [("drop", 3), ("reject", 100), ("unknown", 100)] {
        let text = limit.to_string();
        let document = replay(&[RULES, CAPTURE, "--list", verdict, "--limit", &text]);
        let listed = document["listed"].as_array().unwrap();
        let expected = number(&document["verdicts"][verdict]["packets"]).min(limit);
        assert_eq!(listed.len() as u64, expected, "{verdict}");
        for packet in listed {
            assert_eq!(packet["verdict"], verdict);
            // The verdict of that very packet alone is the same.
            let frame = number(&packet["frame"]).to_string();
            let alone = tamis(&[&["why", RULES, CAPTURE, "--packet", &frame][..], &NETS].concat());
            assert_eq!(alone.code, Some(if verdict == "unknown" { 4 } else { 1 }), "{packet}");
        }
    }
}

#[test]
fn a_list_on_the_screen_names_lines_of_rules() {
    let args = ["replay", RULES, CAPTURE, "--list", "reject", "--limit", "2"];
    let text = tamis(&[&args[..], &NETS].concat()).out;
    let listed: Vec<&str> = text.lines().filter(|line| line.contains("198.51.100.66")).collect();
    assert!(listed.iter().any(|line| line.contains("tcp 10.20.0.")), "{text}");
    assert!(text.contains("L20"), "{text}");
}

#[test]
fn one_table_alone_and_given_paths_are_obeyed() {
    let document = replay(&[RULES, CAPTURE, "--table", "mangle"]);
    assert_eq!(number(&document["rules"]["tables"]), 1);
    assert_eq!(number(&document["verdicts"]["reject"]["packets"]), 0);
    let document = replay(&[RULES, CAPTURE, "--path", "input"]);
    assert_eq!(document["assumed"]["path"], "input");
    let forward: u64 = document["hits"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["chain"] == "FORWARD")
        .map(|rule| number(&rule["packets"]))
        .sum();
    assert_eq!(forward, 0);
}

#[test]
fn packets_of_another_family_are_skipped() {
    let document = replay(&[&rules("plain.v6"), CAPTURE]);
    assert_eq!(document["assumed"]["family"], "ip6");
    assert_eq!(document["verdicts"]["skip"]["packets"], document["packets"]);
    assert_eq!(document["skipped"]["family"], document["packets"]);
}
