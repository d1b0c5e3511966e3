//! What docs/studies*.md show holds: every command of `tamis-bench` is understood, those that need neither root nor other
//! programs run in quick form, and numbers marked as checked come out of the command beside them.
//!
//! A mark is a comment on a line of text or of a table: `<!-- checked: COMMAND | FIELD=VALUE … -->`. Its command is run
//! with `--json`, some row must have all of these fields (of the row, or of what was varied; `_` stands for a space),
//! and each number among the values must stand on the marked line.
//!
//! A number out of a document of docs is marked `<!-- checked: FILE.json | ROW : NUMBER -->`: the one row that has these
//! fields has this value, rounded as it is written, and the line says it. ROW is `[MEMBER] FIELD=VALUE …`, without MEMBER
//! its `value`; after ` / ` stands another row, or a number, to divide by.

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

/// The marks of a line: a command or a file of docs, and what is to be found there.
fn marks(place: &str, text: &str) -> Vec<(String, String)> {
    let mark = |mark: &str| {
        let sides = mark.split_once("-->").and_then(|(mark, _)| mark.split_once('|'));
        let (source, row) = sides
            .unwrap_or_else(|| panic!("{place}: expected COMMAND or FILE.json | FIELD=VALUE …"));
        (source.trim().to_owned(), row.trim().to_owned())
    };
    text.split("checked:").skip(1).map(mark).collect()
}

fn fields(row: &str) -> Fields {
    let field = |field: &str| {
        let (name, value) = field.split_once('=')?;
        Some((name.to_owned(), value.replace('_', " ")))
    };
    row.split_whitespace().filter_map(field).collect()
}

/// The rows of a document: one a line, or all in one document (`tamis.bench/1`).
fn document(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{name}: {why}"));
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let rows = values.flat_map(|value| match value.expect("JSON") {
        Value::Object(mut whole) if whole.contains_key("results") => {
            whole["results"].take().as_array().expect("rows").clone()
        }
        row => vec![row],
    });
    rows.collect()
}

/// A member of a row, or of what was varied.
fn member<'r>(row: &'r Value, name: &str) -> Option<&'r Value> {
    row.get(name).or_else(|| row.get("params")?.get(name))
}

/// What a ROW stands for in a document.
fn found(place: &str, rows: &[Value], row: &str) -> f64 {
    let number = |part: &str| -> f64 {
        if let Ok(number) = part.trim().parse() {
            return number;
        }
        let fields = fields(part);
        let has_all = |row: &&Value| fields.iter().all(|(name, value)| has(row, name, value));
        let fitting: Vec<_> = rows.iter().filter(has_all).collect();
        let [row] = fitting[..] else {
            panic!("{place}: {} rows have {fields:?}, expected one", fitting.len());
        };
        let name = part.split_whitespace().find(|word| !word.contains('=')).unwrap_or("value");
        let value = member(row, name).and_then(Value::as_f64);
        value.unwrap_or_else(|| panic!("{place}: {fields:?} has no number {name}"))
    };
    row.split(" / ").map(number).reduce(|value, by| value / by).expect("a row")
}

/// Whether a row has a field, rounded as the value is written.
fn has(row: &Value, name: &str, value: &str) -> bool {
    let found = member(row, name);
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
    let mut results: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut checked = 0;
    for Line { place, text } in lines() {
        for (command, row) in marks(&place, &text) {
            if command.ends_with(".json") {
                continue;
            }
            let rows = results.entry(command).or_insert_with_key(|command| {
                let words = command.split_whitespace().filter(|word| !is_program(word));
                let ran = bench(&words.chain(["--json"]).map(str::to_owned).collect::<Vec<_>>());
                assert!(ran.status.success(), "{place}: {}", said(&ran));
                let printed = String::from_utf8_lossy(&ran.stdout);
                printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
            });
            let fields = fields(&row);
            let has_all = |row: &&Value| fields.iter().all(|(name, value)| has(row, name, value));
            assert!(rows.iter().any(|row| has_all(&row)), "{place}: no row has {fields:?}");
            for (name, value) in &fields {
                if matches!(name.as_str(), "bytes" | "value" | "layout") {
                    assert!(says(&text, value), "{place}: the line does not say {value}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 10, "{checked} numbers are checked");
}

#[test]
fn numbers_out_of_documents_are_those_of_the_documents() {
    let mut documents: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut checked = 0;
    for Line { place, text } in lines() {
        for (name, row) in marks(&place, &text) {
            if !name.ends_with(".json") {
                continue;
            }
            let rows = documents.entry(name).or_insert_with_key(|name| document(name));
            let (row, number) = row.rsplit_once(" : ").expect("ROW : NUMBER");
            let places = number.split_once('.').map_or(0, |(_, places)| places.len());
            let value = found(&place, rows, row);
            assert_eq!(format!("{value:.places$}"), number, "{place}: {row}");
            assert!(says(&text, number), "{place}: the line does not say {number}");
            checked += 1;
        }
    }
    assert!(checked >= 100, "{checked} numbers are checked");
}
