//! `tamis convert` of nftables: its text to its JSON, and back.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use nft::model::{Rule, Ruleset, Table};
use nft::stmt::Stmt;
use nft::text::Printer;
use pktio::file::{self, NamedBy};

/// A language of nftables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// What `nft list ruleset` prints, and files for `nft -f`.
    Text,
    /// What `nft -j list ruleset` prints.
    Json,
}

/// A converted ruleset.
pub(crate) struct Converted {
    /// It, in the other language.
    pub text: String,
    /// What is lost, a line each.
    pub losses: Vec<String>,
}

/// Converts a ruleset; without `from` the text says what it is.
pub(crate) fn convert(file: &str, from: Option<Language>, to: Language) -> Result<Converted> {
    let text = replay::read_text(file)?;
    let Some(from) = from.or_else(|| told(&text)) else {
        bail!("{file}:1: expected what nft list ruleset or nft -j list ruleset prints, or --from");
    };
    let ruleset = match from {
        Language::Json => {
            nft::json::read::ruleset(&text).map_err(|what| anyhow!("{file}: {what}"))?
        }
        Language::Text => nft::text::parse(file, &text, &|pattern| included(file, pattern))?,
    };
    if let Some(set) = ruleset.terse() {
        bail!("{file}: set {set} lacks its elements: expected a listing without -t");
    }
    let mut p = Printer { handles: from == Language::Json, ..Printer::default() };
    Ok(match to {
        Language::Text => Converted {
            text: nft::text::print::ruleset(&ruleset, p),
            losses: losses(file, &ruleset),
        },
        Language::Json => Converted {
            text: nft::json::write::ruleset(&ruleset, &mut p) + "\n",
            losses: Vec::new(),
        },
    })
}

/// Says which language a text is, by how it begins.
fn told(text: &str) -> Option<Language> {
    let words = ["table", "flush", "add", "create", "destroy", "delete", "define", "include"];
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    match line {
        Some(line) if line.starts_with('{') => {
            text.contains("\"nftables\"").then_some(Language::Json)
        }
        Some(line) => words.contains(&line.split_whitespace().next()?).then_some(Language::Text),
        None => None,
    }
}

/// Reads the files of an `include`: below the folder of the file that has it, a pattern's in their order.
fn included(file: &str, pattern: &str) -> Result<Vec<(String, String)>, String> {
    if file == "-" {
        return Err(format!("cannot include {pattern}: standard input lies in no folder"));
    }
    let folder = Path::new(file)
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let path = folder.join(pattern);
    let last = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned();
    let paths = if last.contains(['*', '?']) { matching(&path, &last) } else { vec![path] };
    let read = |path: &PathBuf| {
        let text = file::read_text(path, NamedBy::Folder(folder))
            .map_err(|why| format!("{}: {why}", path.display()))?;
        Ok((path.display().to_string(), text))
    };
    paths.iter().map(read).collect()
}

fn matching(path: &Path, pattern: &str) -> Vec<PathBuf> {
    let entries =
        path.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        path.is_file() && !name.starts_with('.') && glob(pattern.as_bytes(), name.as_bytes())
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(fits).collect();
    paths.sort();
    paths
}

/// Says whether a name fits a pattern of `*` and `?`.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p).is_some_and(|c| *c == b'?' || *c == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Names what text cannot say: statements and objects that this release does not know.
fn losses(file: &str, ruleset: &Ruleset) -> Vec<String> {
    let mut lost: Vec<String> = Vec::new();
    for json in &ruleset.unknown {
        lost.push(format!("{file}: lost an unknown object: {}", json.to_text()));
    }
    for table in &ruleset.tables {
        for chain in &table.chains {
            lost.extend(chain.rules.iter().filter_map(|rule| loss(file, table, &chain.name, rule)));
        }
    }
    lost
}

fn loss(file: &str, table: &Table, chain: &str, rule: &Rule) -> Option<String> {
    let unknown = rule.stmts.iter().find_map(|stmt| match stmt {
        Stmt::Unknown(json) => Some(json),
        _ => None,
    })?;
    let handle = rule.handle.map_or_else(String::new, |handle| format!(" handle {handle}"));
    let place = format!("{} {} {chain}{handle}", table.family.name(), table.name);
    Some(format!(
        "{file}: lost a rule for a statement that is not known: {place}: {}",
        unknown.to_text()
    ))
}
