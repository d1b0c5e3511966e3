//! `tamis convert` of nftables: its text to its JSON, and back.

use anyhow::{Result, bail};
use nft::model::{Rule, Ruleset, Table};
use nft::stmt::Stmt;
use nft::text::Printer;
use replay::nftables::{self, Language};

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
    let Some(from) = from.or_else(|| nftables::language_of(&text)) else {
        bail!("{file}:1: expected what nft list ruleset or nft -j list ruleset prints, or --from");
    };
    let ruleset = nftables::read(file, &text, from)?;
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
