//! The rules of a replay with its counters, as the tools that list them print them.
//!
//! Contract: a text holds the tables of one file. Where packets walked tables of several files, each has its own: of
//! save text all tables of the file, of a listing of nftables the tables of iptables-nft, too. What is not counted, because the
//! tables of the file were not walked there, is named in a comment and printed as 0.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use dataplane::Counters;
use rules::eval::RuleRef;
use rules::model::{self, Chain, Family, Ruleset, Table};
use rules::save::{LoadOptions, load, print_ruleset};

use super::Report;
use crate::error::Error;
use crate::nftables::{self, Listing, Walked};
use crate::rules_file::RulesFile;

/// A rules file whose tables were walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedFile<'f> {
    /// The name of the file, without its folder.
    pub name: &'f str,
    /// The index of the rules that its tables are walked with.
    of: usize,
    /// The place of the file among the files of these rules, from 0.
    place: usize,
}

/// The files whose tables these rules have, each once.
#[must_use]
pub fn saved_files(files: &[RulesFile]) -> Vec<SavedFile<'_>> {
    let mut met = BTreeSet::new();
    let all = files.iter().enumerate().flat_map(|(of, file)| {
        let others = file.others.iter().map(|other| &other.file);
        let names = [&file.file].into_iter().chain(others).enumerate();
        names.map(move |(place, name)| (&**name, of, place))
    });
    // Rules of both families have one listing.
    let new = all.filter(|(path, ..)| met.insert(*path));
    new.map(|(path, of, place)| {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        SavedFile { name: name.unwrap_or(path), of, place }
    })
    .collect()
}

impl Report {
    /// The rules of a file with the counters of this replay, as `iptables-save -c` prints them.
    ///
    /// Of rules of several files the text has the tables of a listing; [`Self::saved_file`] has each.
    #[must_use]
    pub fn saved_counters(&self, file: usize) -> String {
        let of = &self.files[file];
        if let Some(listing) = &of.listing {
            return self.saved_listing(listing);
        }
        let text = print_ruleset(&of.ruleset, true, |table, chain, rule| {
            values(&self.counters[file], table as u32, chain as u32, rule)
        });
        format!("{}{text}", self.comments(header(&of.text)))
    }

    /// A file with the counters of this replay.
    ///
    /// # Errors
    /// The text of the file is refused, which it was not before.
    pub fn saved_file(&self, saved: SavedFile<'_>) -> Result<String, Error> {
        let of = &self.files[saved.of];
        match saved.place.checked_sub(1) {
            None if of.others.is_empty() => Ok(self.saved_counters(saved.of)),
            Some(other) if of.others[other].is_listing => Ok(self.saved_counters(saved.of)),
            _ => self.saved_part(saved),
        }
    }

    /// Save text of one file among several.
    fn saved_part(&self, saved: SavedFile<'_>) -> Result<String, Error> {
        let of = &self.files[saved.of];
        let text = of.part(saved.place);
        let options = LoadOptions { family: Some(of.ruleset.family), ..LoadOptions::default() };
        let loaded = load(text, &options)
            .map_err(|source| Error::Rules { file: saved.name.to_owned(), source })?;
        let mut ruleset = loaded.ruleset;
        let is_second = saved.place > 0;
        let walked = |table: &Table| walked(&of.ruleset, is_second, table);
        // Of a file with one table asked for the others are left out.
        let idle = |table: &Table| is_second && !table.chains.iter().any(Chain::acts);
        ruleset.tables.retain(|table| walked(table).is_some() || idle(table));
        let place = |table: &Table, chain: &Chain| {
            let (at, walked) = walked(table)?;
            let same = |other: &Chain| {
                other.name == chain.name && other.base.is_some() == chain.base.is_some()
            };
            Some((at, walked.chains.iter().position(same)? as u32))
        };
        let counters = &self.counters[saved.of];
        let printed = print_ruleset(&ruleset, true, |t, c, rule| {
            let table = &ruleset.tables[t];
            let place = place(table, &table.chains[c]);
            place.map_or_else(Default::default, |(at, chain)| values(counters, at, chain, rule))
        });
        let mut apart = String::new();
        for table in &ruleset.tables {
            let bases = table.chains.iter().filter(|chain| chain.base.is_some());
            for chain in bases.filter(|chain| place(table, chain).is_none()) {
                apart += &format!(" {}/{}", table.name, chain.name);
            }
        }
        let apart = match apart.is_empty() {
            true => apart,
            false => format!("# Policies not counted, as others may come first:{apart}\n"),
        };
        Ok(format!("{}{apart}{printed}", self.comments(header(text))))
    }

    /// The lines before the rules, which the restore commands skip.
    fn comments(&self, header: Option<&str>) -> String {
        let header = header.map_or_else(String::new, |line| format!("{line}\n"));
        let partial = match self.interrupted {
            true => "# Of a part of the captures: the replay was stopped.\n",
            false => "",
        };
        header + partial
    }

    /// A listing of nftables with the counters that packets of its families moved.
    fn saved_listing(&self, listing: &Arc<Listing>) -> String {
        let counted: Vec<_> = self
            .counters
            .iter()
            .map(|counters| {
                move |at: RuleRef| values(counters, at.table, at.chain, Some(at.rule as usize))
            })
            .collect();
        let mut tables = Vec::new();
        for (file, counters) in self.files.iter().zip(&counted) {
            let is_its = file.listing.as_ref().is_some_and(|other| Arc::ptr_eq(other, listing));
            for (number, table) in (0..).zip(&file.ruleset.tables) {
                let name = match listed_name(&file.ruleset, table) {
                    Some(name) => name,
                    None if is_its => table.name.to_string(),
                    None => continue,
                };
                tables.push(Walked { name, number, table, counters });
            }
        }
        nftables::print(listing, &tables)
    }
}

/// The name that a listing has for a table of iptables-nft; `None` if it is none.
fn listed_name(ruleset: &Ruleset, table: &Table) -> Option<String> {
    let family = match ruleset.family {
        Family::Ipv6 => "ip6",
        Family::Ipv4 => "ip",
        Family::Arp | Family::Bridge => return None,
    };
    let is_its =
        table.backend == rules::Backend::Nft && ruleset.family.table(&table.name).is_some();
    is_its.then(|| format!("{family} {}", table.name))
}

/// Finds the walked table that stands for a table of a file, and the number that it has.
fn walked<'r>(ruleset: &'r Ruleset, is_second: bool, table: &Table) -> Option<(u32, &'r Table)> {
    let is_it = |other: &&Table| {
        other.name == table.name && (other.backend != ruleset.backend) == is_second
    };
    (0..).zip(&ruleset.tables).find(|(_, other)| is_it(other))
}

fn values(counters: &Counters, table: u32, chain: u32, rule: Option<usize>) -> model::Counters {
    let tally = match rule {
        None => counters.policy(table, chain),
        Some(rule) => counters.rule(RuleRef { table, chain, rule: rule as u32 }),
    };
    model::Counters { packets: tally.packets, bytes: tally.bytes }
}

/// The line by which a save tool says who it is, and so who holds the tables.
fn header(text: &str) -> Option<&str> {
    text.lines()
        .take_while(|line| line.starts_with('#'))
        .find(|line| line.starts_with("# Generated by "))
}
