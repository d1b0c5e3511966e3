//! What docs/studies*.md show holds: every command of `tamis-bench` is understood, those that need neither root nor other
//! programs run in quick form, and numbers marked as checked come out of the command beside them.
//!
//! A mark is a comment on a line of text or of a table: `<!-- checked: COMMAND | FIELD=VALUE … -->`. Its command is run
//! with `--json`, some row must have all of these fields (of the row, or of what was varied; `_` stands for a space),
//! and each number among the values must stand on the marked line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// One line of a document, and where it is.
struct Line {
    place: String,
    text: String,
}

fn lines() -> Vec<Line> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let entries = std::fs::read_dir(&docs).expect("docs");
    let entries = entries.map(|entry| entry.expect("a file").path());
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut files: Vec<_> = entries
        .filter(|path| name(path).starts_with("studies") && name(path).ends_with(".md"))
        .collect();
    files.sort();
    let of = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a page");
        let line = |(number, text): (usize, &str)| Line {
            place: format!("{}:{}", name(path), number + 1),
            text: text.to_owned(),
        };
        text.lines().enumerate().map(line).collect::<Vec<_>>()
    };
    files.iter().flat_map(of).collect()
}

/// The arguments of each command of `tamis-bench` on a line, in a block or between backticks.
fn commands(line: &str) -> Vec<Vec<String>> {
    let shown = line.split("<!--").next().unwrap_or_default();
    let parts = shown.split('`').map(|part| part.split(" #").next().unwrap_or_default());
    let of = |part: &str| -> Option<Vec<String>> {
        let mut words = part.split_whitespace().skip_while(|word| !is_program(word));
        words.next()?;
        Some(words.map(str::to_owned).collect())
    };
    parts.filter_map(of).filter(|words| words.iter().any(|word| word.starts_with("--"))).collect()
}

fn is_program(word: &str) -> bool {
    word == "tamis-bench" || word.ends_with("/tamis-bench")
}

fn bench(arguments: &[String]) -> Output {
    let ran = Command::new(env!("CARGO_BIN_EXE_tamis-bench")).args(arguments).output();
    ran.expect("tamis-bench is built beside its tests")
}

fn said(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

/// The same, short: what says how much is replaced. Figures go to `figures`.
fn quick(arguments: &[String], figures: &Path) -> Vec<String> {
    const VALUED: [&str; 4] = ["--packets", "--runs", "--preset", "--check"];
    let mut short = vec![arguments[0].clone()];
    let mut words = arguments[1..].iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--figure" => {
                short.extend([word.clone(), figures.display().to_string()]);
                words.next();
            }
            "--check" => {
                short.extend([word.clone(), "20".to_owned()]);
                words.next();
            }
            word if VALUED.contains(&word) => _ = words.next(),
            "--quick" => {}
            _ => short.push(word.clone()),
        }
    }
    if short.iter().any(|word| word == "--check") {
        return short;
    }
    let less = match short[0].as_str() {
        "access" => &["--quick", "--packets", "1000", "--runs", "1", "--preset", "1"][..],
        "workload" => &["--preset", "1"],
        _ => &["--quick"],
    };
    short.extend(less.iter().map(|word| (*word).to_owned()));
    short
}

/// Without root and other programs.
fn runs_here(arguments: &[String]) -> bool {
    matches!(arguments[0].as_str(), "access" | "workload")
}

#[test]
fn every_command_is_understood_and_runs() {
    let figures = tempfile::tempdir().unwrap();
    let mut seen = 0;
    let mut ran = Vec::new();
    for Line { place, text } in lines() {
        for arguments in commands(&text) {
            seen += 1;
            let help: Vec<_> = arguments.iter().cloned().chain(["--help".to_owned()]).collect();
            let understood = bench(&help);
            assert!(understood.status.success(), "{place}: {arguments:?}: {}", said(&understood));
            let short = quick(&arguments, figures.path());
            if runs_here(&arguments) && !ran.contains(&short) {
                let run = bench(&short);
                assert!(run.status.success(), "{place}: {short:?}: {}", said(&run));
                assert!(run.stdout.len() > 40, "{place}: {short:?} says nothing");
                ran.push(short);
            }
        }
    }
    assert!(seen >= 8 && ran.len() >= 5, "{seen} commands, {} run", ran.len());
}

type Fields = Vec<(String, String)>;

/// A mark: its command, and fields of one row.
fn mark(text: &str) -> Option<(Vec<String>, Fields)> {
    let (command, fields) = text.split_once("checked:")?.1.split_once("-->")?.0.split_once('|')?;
    let words = command.split_whitespace().filter(|word| !is_program(word)).map(str::to_owned);
    let field = |field: &str| {
        let (name, value) = field.split_once('=')?;
        Some((name.to_owned(), value.replace('_', " ")))
    };
    Some((words.collect(), fields.split_whitespace().filter_map(field).collect()))
}

/// Whether a row has a field, rounded as the value is written.
fn has(row: &Value, name: &str, value: &str) -> bool {
    let found = row.get(name).or_else(|| row.get("params")?.get(name));
    let spaced = |text: &str| text.replace('_', " ");
    match found {
        Some(Value::String(text)) => spaced(text) == value,
        Some(Value::Number(number)) => {
            let places = value.split_once('.').map_or(0, |(_, places)| places.len());
            number.as_f64().is_some_and(|number| format!("{number:.places$}") == value)
        }
        _ => false,
    }
}

/// Whether the text of a marked line, thousands set apart by commas, says a number.
fn says(text: &str, value: &str) -> bool {
    let shown = text.split("<!--").next().unwrap_or_default().replace(',', "");
    let digits = |letter: char| letter.is_ascii_digit() || letter == '.';
    let mut numbers =
        shown.split(|letter| !digits(letter)).map(|number| number.trim_end_matches('.'));
    numbers.any(|number| number == value)
}

#[test]
fn numbers_marked_as_checked_come_out() {
    let mut results: BTreeMap<Vec<String>, Vec<Value>> = BTreeMap::new();
    let mut checked = 0;
    for Line { place, text } in lines() {
        let Some((command, fields)) = mark(&text) else {
            assert!(!text.contains("checked:"), "{place}: expected COMMAND | FIELD=VALUE …");
            continue;
        };
        let rows = results.entry(command.clone()).or_insert_with(|| {
            let ran =
                bench(&command.iter().cloned().chain(["--json".to_owned()]).collect::<Vec<_>>());
            assert!(ran.status.success(), "{place}: {}", said(&ran));
            let printed = String::from_utf8_lossy(&ran.stdout);
            printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        });
        let row = |row: &&Value| fields.iter().all(|(name, value)| has(row, name, value));
        assert!(rows.iter().any(|one| row(&one)), "{place}: no row of {command:?} has {fields:?}");
        for (name, value) in &fields {
            if matches!(name.as_str(), "bytes" | "value" | "layout") {
                assert!(says(&text, value), "{place}: the line does not say {value}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 10, "{checked} numbers are checked");
}
