//! What pages of the book show is what happens: their files are written, their commands run as they stand there, and what
//! those print is what the page says. `TAMIS_UPDATE=1` takes what is printed now.
//!
//! A page has, in order: `<!-- file: NAME -->` before a fence that is that file; `<!-- run: COMMAND -->`, run and not shown;
//! fences of `console`, in which a line that begins with `$ ` is typed, and the lines up to the next one are its output.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ran::Scratch;
use crate::review::typed;

/// A page of the book.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Runs the commands of a page; returns the page with what they print now, and their number.
fn run_anew(text: &str, scratch: &Scratch) -> (String, usize) {
    let (mut out, mut commands) = (String::new(), 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(&format!("{line}\n"));
        if let Some(command) = marked(line, "run") {
            assert_eq!(typed(scratch, command).code, Some(0), "{command}");
        } else if let Some(file) = marked(line, "file") {
            let fence = lines.next().expect("a fence after its name");
            assert!(fence.starts_with("```"), "{file}: expected a fence, found {fence}");
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let body: String = body.iter().map(|line| format!("{line}\n")).collect();
            fs::write(scratch.file(file), &body).unwrap();
            out.push_str(&format!("{fence}\n{body}```\n"));
        } else if line == "```console" {
            for line in lines.by_ref().take_while(|line| *line != "```") {
                if let Some(command) = line.strip_prefix("$ ") {
                    commands += 1;
                    let ran = typed(scratch, &format!("exec 2>&1; set +e; {command}"));
                    out.push_str(&format!("$ {command}\n{}", ran.out));
                }
            }
            out.push_str("```\n");
        }
    }
    (out, commands)
}

/// What a comment of this kind says.
fn marked<'l>(line: &'l str, kind: &str) -> Option<&'l str> {
    line.strip_prefix("<!-- ")?.strip_prefix(kind)?.strip_prefix(": ")?.strip_suffix(" -->")
}

/// Holds a page to what its commands print.
fn holds(name: &str, at_least: usize) {
    let scratch = Scratch::new(&format!("transcript-{name}"));
    let path = page(name);
    let text = fs::read_to_string(&path).unwrap();
    let (now, commands) = run_anew(&text, &scratch);
    assert!(commands >= at_least, "{name}: {commands} commands are run");
    if std::env::var_os("TAMIS_UPDATE").is_some() {
        fs::write(&path, &now).unwrap();
    } else {
        let differs = text.lines().zip(now.lines()).position(|(old, new)| old != new);
        let line = differs.unwrap_or(text.lines().count().min(now.lines().count())) + 1;
        assert!(text == now, "docs/{name}:{line} (TAMIS_UPDATE=1 takes it):\n{now}");
    }
}

#[test]
fn the_first_hour_goes_as_it_is_told() {
    holds("start.md", 5);
}

#[test]
fn unknowns_are_made_known_as_it_is_told() {
    holds("unknowns.md", 2);
}

#[test]
fn a_packets_way_is_told_as_the_page_has_it() {
    holds("why.md", 4);
}

#[test]
fn what_reaches_is_told_as_the_page_has_it() {
    holds("reach.md", 3);
}

#[test]
fn a_review_goes_as_it_is_told() {
    holds("reviewing.md", 4);
}

#[test]
fn cases_pass_as_the_page_has_it() {
    holds("ci.md", 1);
}
