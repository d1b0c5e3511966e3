//! The list of docs/studies-claims.md: every sentence of the five works has its row, with a verdict and what shows it.
//!
//! A row is `| 000-1 | the study | verdict | here | shown by | when |`. What is shown by a test, a target of the Makefile
//! or a file names one that is there; arguments of `tamis-bench` and numbers are for [`super::documents`] to hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rows of each work, as the audit of them counts.
const ROWS: [(&str, usize); 5] = [("000", 59), ("001", 40), ("002", 41), ("003", 55), ("004", 45)];
/// Rows without a verdict: this may only fall.
const OPEN: usize = 18;
/// What a row may lack, and how many rows may.
const MACHINES: [&str; 6] = ["32 cores", "8 cores", "macOS", "SPARC", "two sockets", "a NIC"];
const UNDECIDED: usize = 12;
/// What a row may be shown by.
const PROGRAMS: [&str; 5] = ["cargo test ", "tamis-bench ", "make ", "mvn ", "wc "];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// A row of the list.
struct Claim {
    number: String,
    says: String,
    verdict: String,
    here: String,
    shown: Vec<String>,
    when: String,
}

impl Claim {
    /// Reads a line of a table; other lines are none.
    fn of(line: &str) -> Option<Self> {
        let row = line.split("<!--").next()?.trim();
        let cells = row.strip_prefix('|')?.strip_suffix('|')?.split(" |").map(str::trim);
        let cells: Vec<_> = cells.collect();
        let number = cells.first().filter(|number| number.starts_with("00"))?;
        let [_, says, verdict, here, shown, when] = cells[..] else {
            panic!("{number}: {} cells", cells.len());
        };
        let shown = shown.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let [number, says, verdict, here, when] =
            [number, says, verdict, here, when].map(str::to_owned);
        Some(Self { number, says, verdict, here, shown, when })
    }

    /// The machine that an undecided row lacks.
    fn lacks(&self) -> Option<&str> {
        self.verdict.strip_prefix("undecided: ")
    }

    fn is_open(&self) -> bool {
        self.verdict.starts_with("open: ")
    }
}

fn claims() -> Vec<Claim> {
    read(&root().join("docs/studies-claims.md")).lines().filter_map(Claim::of).collect()
}

#[test]
fn every_sentence_has_its_row_in_order() {
    let expected =
        ROWS.iter().flat_map(|(work, rows)| (1..=*rows).map(move |row| format!("{work}-{row}")));
    let found: Vec<_> = claims().into_iter().map(|claim| claim.number).collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn every_row_has_a_verdict_and_what_shows_it() {
    for Claim { number, says, verdict, here, shown, when } in claims() {
        assert!(!says.is_empty(), "{number} says nothing");
        if let Some(missing) = verdict.strip_prefix("open: ") {
            let words = missing.split_whitespace().count();
            assert!((1..=5).contains(&words), "{number}: {missing}");
            continue;
        }
        let runs = |command: &String| PROGRAMS.iter().any(|program| command.starts_with(program));
        assert!(!here.is_empty() && shown.iter().any(runs), "{number}: by what?");
        if let Some(machine) = verdict.strip_prefix("undecided: ") {
            assert!(MACHINES.contains(&machine), "{number}: {machine}");
            continue;
        }
        assert!(matches!(&*verdict, "holds" | "does not hold"), "{number}: {verdict}");
        let dated = when.split_once(", 2026-").is_some_and(|(machine, day)| {
            ["any machine", "EPYC", "Xeon"].contains(&machine) && day.len() == "11-28".len()
        });
        assert!(dated, "{number}: {when}");
    }
}

#[test]
fn few_rows_are_undecided_and_no_more_are_open_than_were() {
    let claims = claims();
    let undecided = claims.iter().filter(|claim| claim.lacks().is_some()).count();
    assert!(undecided <= UNDECIDED, "{undecided} rows lack a machine");
    let open = claims.iter().filter(|claim| claim.is_open()).count();
    assert!(open <= OPEN, "{open} rows are open, {OPEN} before");
    assert_eq!(open, OPEN, "fewer rows are open: lower OPEN");
}

/// All sources of a folder, by path.
fn sources(dir: &Path, into: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(dir).unwrap_or_else(|why| panic!("{}: {why}", dir.display())) {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules"].contains(&&*name) {
            sources(&path, into);
        } else if [".rs", ".java", "Cargo.toml"].iter().any(|ending| name.ends_with(ending)) {
            let text = std::fs::read(&path).expect("a source");
            into.insert(path, String::from_utf8_lossy(&text).into_owned());
        }
    }
}

/// What can be named.
struct Tree {
    files: BTreeMap<PathBuf, String>,
    targets: BTreeSet<String>,
    pages: String,
}

impl Tree {
    fn read() -> Self {
        let mut files = BTreeMap::new();
        for dir in ["crates", "bindings"] {
            sources(&root().join(dir), &mut files);
        }
        let makefile = read(&root().join("Makefile"));
        let target = |line: &str| Some(line.split_once(':')?.0.to_owned());
        let targets = makefile.lines().filter(|line| line.contains(" ## ")).filter_map(target);
        let pages = ["docs/commands.md", "docs/cloud.md"].map(|page| read(&root().join(page)));
        Self { files, targets: targets.collect(), pages: pages.concat() }
    }

    /// Whether a package has a test, or a module of tests, of this name.
    fn has_test(&self, package: &str, name: &str) -> bool {
        let named = format!("name = \"{package}\"");
        let manifest = self.files.iter().find(|(path, text)| {
            path.ends_with("Cargo.toml") && text.lines().take(4).any(|line| line == named)
        });
        let Some(dir) = manifest.and_then(|(path, _)| path.parent()) else { return false };
        let mut own = self.files.iter().filter(|(path, _)| path.starts_with(dir));
        let [function, module] = [format!("fn {name}"), format!("{name}.rs")];
        own.any(|(path, text)| text.contains(&function) || path.ends_with(&module))
    }

    /// Why a command cannot be run, if so.
    fn refuses(&self, command: &str) -> Option<String> {
        let words: Vec<_> = command.split_whitespace().collect();
        let option = |name: &str| words.iter().skip_while(|word| **word != name).nth(1).copied();
        let is_there = match words[..] {
            ["tamis-bench", ..] => true,
            ["make", target, ..] => self.targets.contains(target),
            ["cargo", "test", ..] => {
                let package = option("-p").unwrap_or_default();
                words.last().is_some_and(|name| self.has_test(package, name))
            }
            ["mvn", "-f", dir, "test", class] => {
                let class = class.strip_prefix("-Dtest=").map(|class| format!("{class}.java"));
                let dir = root().join(dir);
                class.is_some_and(|class| {
                    self.files.keys().any(|path| path.starts_with(&dir) && path.ends_with(&class))
                })
            }
            ["wc", "-l", ref files @ ..] => files.iter().all(|file| root().join(file).is_file()),
            ["tamis" | "tamis-cloud", command, ..] => self.pages.contains(command),
            // What a row says besides: an option, or the value of one.
            _ => words.len() == 1,
        };
        (!is_there).then(|| format!("{command} is not there"))
    }
}

#[test]
fn what_shows_a_row_is_there() {
    let tree = Tree::read();
    let mut seen = 0;
    for claim in claims() {
        for command in &claim.shown {
            assert_eq!(tree.refuses(command), None, "{}", claim.number);
            seen += 1;
        }
    }
    assert!(seen >= 150, "{seen} commands");
}

#[test]
fn what_is_not_there_is_told() {
    let tree = Tree::read();
    for command in [
        "make histories-of-nobody",
        "cargo test -p tamis-lab-engines a_test_that_nobody_wrote",
        "cargo test -p tamis-nobody atomic_engines_pass",
        "mvn -f bindings/java test -Dtest=NobodyTest",
        "wc -l crates/nobody.rs",
        "sh run-me.sh",
    ] {
        assert!(tree.refuses(command).is_some(), "{command}");
    }
}
