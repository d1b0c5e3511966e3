//! Rulesets of nftables: which texts are such, and the rules that packets of each family walk ([`nft::lower`]).
//!
//! One listing has the rules of IPv4 and of IPv6.
//!
//! Source: nft(8), libnftables-json(5).

mod counted;
mod included;
mod lines;

pub(crate) use counted::print;

use std::sync::Arc;

use nft::lower::{Lowered, Unknown, lower};
use nft::model::Ruleset;
use nft::text::Printer;
use rules::model::{Family, TableName};
use rules::save::{LoadOptions, Warning};

use crate::error::Error;

/// A language of nftables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// What `nft list ruleset` prints, and files for `nft -f`.
    Text,
    /// What `nft -j list ruleset` prints.
    Json,
}

/// A listing as it was read, shared by the rules of all families.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Its tables; rules have their lines in the text.
    pub ruleset: Ruleset,
    /// Its text; of JSON what `nft list ruleset` prints.
    pub text: Arc<str>,
    /// Its language.
    pub language: Language,
}

impl Listing {
    /// Reads a listing.
    ///
    /// # Errors
    /// As [`read`].
    pub(crate) fn read(file: &str, text: String, language: Language) -> Result<Self, Error> {
        let mut ruleset = read(file, &text, language)?;
        let text = match language {
            Language::Text => {
                lines::forget_others(&mut ruleset);
                text
            }
            Language::Json => {
                let text = nft::text::print::ruleset(&ruleset, Printer::default());
                lines::find(&mut ruleset, &text);
                text
            }
        };
        Ok(Self { ruleset, text: text.into(), language })
    }
}

/// What of a listing is not evaluated for packets of one family.
pub(crate) type Lacking = Arc<[Unknown]>;

/// Says which language a text is, by how it begins; `None` if it is none of nftables.
#[must_use]
pub fn language_of(text: &str) -> Option<Language> {
    let words = ["table", "flush", "add", "create", "destroy", "delete", "define", "include"];
    let text = text.trim_start_matches('\u{feff}');
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    match line {
        Some(line) if line.starts_with('{') => {
            text.contains("\"nftables\"").then_some(Language::Json)
        }
        Some(line) => words.contains(&line.split_whitespace().next()?).then_some(Language::Text),
        None => text.starts_with("#!").then(|| text.lines().next()).flatten().and_then(interpreter),
    }
}

/// The language of a script whose interpreter is nft.
fn interpreter(line: &str) -> Option<Language> {
    line.contains("nft").then_some(Language::Text)
}

/// Reads a listing, or a file for `nft -f` with the files that it includes.
///
/// # Errors
/// It is refused at a line and column, or lacks the elements of its sets.
pub fn read(file: &str, text: &str, language: Language) -> Result<Ruleset, Error> {
    let refused = |what: String| Error::Read { file: file.to_owned(), what: format!(" {what}") };
    let ruleset = match language {
        Language::Json => nft::json::read::ruleset(text).map_err(refused)?,
        Language::Text => {
            let include = |pattern: &str| included::files(file, pattern);
            nft::text::parse(file, text, &include).map_err(|error| {
                let what = format!("{}:{}: {}", error.at.line, error.at.column, error.message);
                Error::Read { file: error.file, what }
            })?
        }
    };
    match ruleset.terse() {
        Some(set) => {
            Err(refused(format!("set {set} lacks its elements: expected a listing without -t")))
        }
        None => Ok(ruleset),
    }
}

/// What packets of one family walk of a listing.
pub(crate) struct OfFamily {
    /// The rules.
    pub(crate) ruleset: rules::model::Ruleset,
    /// What is not evaluated of them.
    pub(crate) lacking: Lacking,
    /// The same, cause by cause.
    pub(crate) warnings: Vec<Warning>,
}

/// The rules of one family, none if the listing has no tables for it.
pub(crate) fn of_family(listing: &Listing, family: Family) -> OfFamily {
    let Lowered { mut ruleset, unknown } = lower(&listing.ruleset, family);
    let lines = lines::of_chains(&listing.text);
    for table in &mut ruleset.tables {
        for chain in &mut table.chains {
            let name = (&*table.name, &*chain.name);
            chain.line = lines.get(&name).copied().unwrap_or(0);
        }
    }
    OfFamily { ruleset, warnings: warnings(&unknown), lacking: unknown.into() }
}

/// The rules of each family that a listing has tables for, or of the family that is asked for. With a table only that
/// table is kept.
pub(crate) fn families(
    file: &str,
    listing: &Listing,
    options: &LoadOptions<'_>,
) -> Result<Vec<OfFamily>, Error> {
    let mut all = Vec::new();
    let mut has: Vec<TableName> = Vec::new();
    for family in [Family::Ipv4, Family::Ipv6] {
        let OfFamily { mut ruleset, lacking, warnings } = of_family(listing, family);
        has.extend(ruleset.tables.iter().map(|table| table.name.clone()));
        ruleset.tables.retain(|table| options.table.is_none_or(|name| table.name == name));
        if !ruleset.tables.is_empty() && options.family.is_none_or(|asked| asked == family) {
            all.push(OfFamily { ruleset, lacking, warnings });
        }
    }
    if let (true, Some(table)) = (all.is_empty(), options.table) {
        has.sort_unstable();
        has.dedup();
        return Err(Error::NoTable { file: file.to_owned(), table: table.to_owned(), has });
    }
    if all.is_empty() {
        let what = match options.family {
            Some(family) if family.is_ip() => format!("a table of inet or {}", family.name()),
            _ => "a table of ip, ip6 or inet".to_owned(),
        };
        return Err(Error::Given(format!("{file}: expected {what}, found none")));
    }
    Ok(all)
}

/// What is not evaluated, as warnings: one for each cause, at its first line.
fn warnings(lacking: &[Unknown]) -> Vec<Warning> {
    let mut all: Vec<Warning> = Vec::new();
    for unknown in lacking {
        for cause in &unknown.causes {
            let what = format!("{} is not evaluated{}", cause, hint(cause));
            match all.iter_mut().find(|known| known.what == what) {
                Some(known) => known.count += 1,
                None => all.push(Warning { what, line: unknown.position.line, count: 1 }),
            }
        }
    }
    all
}

/// What would help, where the listing does not say all.
pub(crate) fn hint(cause: &str) -> &'static str {
    match cause.starts_with("xt ") {
        true => {
            ": iptables-nft's tables are listed without their parameters, iptables-save has them"
        }
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_by_how_texts_begin() {
        let (text, json) = (Some(Language::Text), Some(Language::Json));
        for (begins, language) in [
            ("table inet filter {\n}\n", text),
            ("#!/usr/sbin/nft -f\n\nflush ruleset\n", text),
            ("#!/usr/sbin/nft -f\n", text),
            (
                "# Warning: table ip filter is managed by iptables-nft, do not touch!\ntable ip filter {\n",
                text,
            ),
            ("\n  add table inet filter\n", text),
            ("define lan = eth0\n", text),
            ("{\"nftables\": []}", json),
            ("{\"rules\": []}", None),
            ("*filter\nCOMMIT\n", None),
            ("# Generated by iptables-save\n*filter\n", None),
            ("-P INPUT DROP\n", None),
            ("tablet\n", None),
            ("#!/bin/sh\n", None),
            ("", None),
        ] {
            assert_eq!(language_of(begins), language, "{begins}");
        }
    }
}
