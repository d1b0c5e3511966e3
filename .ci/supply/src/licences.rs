//! `licences.txt`: the licence of every crate in the lock files, as the crate declares it. A version's licence never
//! changes, so what was once written down needs no crate unpacked to be checked.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

use crate::deny::Deny;
use crate::lock::Locked;
use crate::tree::Node;

/// Licence and line of each `name version`.
#[derive(Debug)]
pub(crate) struct Licences(BTreeMap<String, (String, usize)>);

/// The text that [`Licences::read`] reads.
pub(crate) fn print(nodes: &BTreeSet<Node>) -> String {
    let lines = nodes.iter().map(|node| format!("{} {}\n", node.name, node.licence));
    let head = "# Name, version and licence of every crate in the lock files. Written by `make licences`; do not edit.\n";
    head.to_owned() + &lines.collect::<String>()
}

impl Licences {
    /// Reads lines `name version licence`; those that begin with # are skipped.
    pub(crate) fn read(text: &str) -> Result<Licences> {
        let mut all = BTreeMap::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let expected =
                || format!("{}:{}: expected `name version licence`", crate::LICENCES, at + 1);
            let (name, rest) = line.split_once(' ').with_context(expected)?;
            let (version, licence) = rest.split_once(' ').with_context(expected)?;
            all.insert(format!("{name} {version}"), (licence.to_owned(), at + 1));
        }
        Ok(Licences(all))
    }

    /// The licence of a crate, `name version`.
    pub(crate) fn of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|(licence, _)| licence.as_str())
    }

    /// The crates whose licence is not listed or not allowed, and what is listed or allowed though nothing needs it.
    pub(crate) fn check(&self, deny: &Deny, locked: &[Locked]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut seen = BTreeMap::new();
        for one in locked.iter().filter(|one| one.source.is_some()) {
            let name = format!("{} {}", one.name, one.version);
            let Some(licence) = self.of(&name) else {
                wrong.push(format!("{}: not in {} (make licences)", one.at, crate::LICENCES));
                continue;
            };
            match satisfied(licence, &|named| deny.allow.iter().any(|allowed| allowed == named)) {
                Ok(true) => {}
                Ok(false) => wrong
                    .push(format!("{}: deny.toml does not allow its licence, {licence}", one.at)),
                Err(why) => wrong.push(format!("{}: its licence, {licence}: {why}", one.at)),
            }
            seen.insert(name, licence);
        }
        for (name, (_, line)) in self.0.iter().filter(|(name, _)| !seen.contains_key(*name)) {
            wrong.push(format!(
                "{}:{line}: {name} is in no lock file (make licences)",
                crate::LICENCES
            ));
        }
        let spare = deny.allow.iter().filter(|spare| {
            let others =
                |named: &str| named != *spare && deny.allow.iter().any(|allowed| allowed == named);
            !seen.values().any(|licence| matches!(satisfied(licence, &others), Ok(false)))
        });
        wrong.extend(spare.map(|spare| format!("deny.toml: nothing needs the licence {spare}")));
        wrong
    }
}

/// Whether the licences that are allowed satisfy an SPDX expression (annex D of its specification; AND binds stronger
/// than OR), or one with `/` for OR, as crates.io once took it. `X WITH Y` is allowed as such only.
pub(crate) fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().rev().collect();
    let holds = either(&mut words, allowed)?;
    ensure!(words.is_empty(), "`{}` where AND, OR or the end was expected", words[words.len() - 1]);
    Ok(holds)
}

/// Words of an expression, the next one last.
type Words<'a> = Vec<&'a str>;

fn next_is(words: &mut Words<'_>, word: &str) -> bool {
    words.pop_if(|next| *next == word).is_some()
}

fn either(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Result<bool> {
    let mut holds = both(words, allowed)?;
    while next_is(words, "OR") {
        holds |= both(words, allowed)?;
    }
    Ok(holds)
}

fn both(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Result<bool> {
    let mut holds = one(words, allowed)?;
    while next_is(words, "AND") {
        holds &= one(words, allowed)?;
    }
    Ok(holds)
}

fn one(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Result<bool> {
    if next_is(words, "(") {
        let holds = either(words, allowed)?;
        ensure!(next_is(words, ")"), "expected a closing parenthesis");
        return Ok(holds);
    }
    let licence = match words.pop() {
        None | Some("AND" | "OR" | "WITH" | ")") => bail!("expected a licence"),
        Some(licence) => licence,
    };
    if !next_is(words, "WITH") {
        return Ok(allowed(licence));
    }
    let exception = words.pop().context("expected an exception after WITH")?;
    Ok(allowed(&format!("{licence} WITH {exception}")))
}
