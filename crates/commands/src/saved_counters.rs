//! `--save-counters` and `--save-counters6`: which file gets which rules of a replay.
//!
//! Contract: one file holds the rules of one text. A folder (which is there, or whose name ends with `/`) gets each
//! file of the rules by its name, and what it had under other names stays: together with the rest of a host's folder it is
//! a host again.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use replay::report::{Report, SavedFile, saved_files};
use replay::{Room, RulesFile, Target};
use rules::model::Family;

use crate::outputs::Files;

/// Rules to be written with their counters.
pub(crate) enum Saved<'f> {
    /// Rules by their index.
    Rules(usize),
    /// One of the files that they stand in.
    File(SavedFile<'f>),
}

impl Saved<'_> {
    /// The rules with the counters of a replay.
    pub(crate) fn text(&self, report: &Report) -> Result<String> {
        Ok(match self {
            Self::Rules(index) => report.saved_counters(*index),
            Self::File(file) => report.saved_file(*file)?,
        })
    }
}

/// Whether a name is a folder's.
pub(crate) fn is_folder(name: &str) -> bool {
    name.ends_with('/') || Path::new(name).is_dir()
}

/// Opens what the two options name, each file with what it gets; `apart` are the files that are read or written already.
pub(crate) fn targets<'f>(
    [counters, counters6]: [Option<&str>; 2],
    files: &'f [RulesFile],
    room: &Room,
    apart: &mut Files,
) -> Result<Vec<(Saved<'f>, Target)>> {
    let mut targets = Vec::new();
    match counters {
        Some(folder) if is_folder(folder) => {
            let saved = saved_files(files);
            if saved.iter().any(|file| file.name == "-") {
                bail!(
                    "--save-counters {folder}: expected a file: rules of standard input have no name"
                );
            }
            fs::create_dir_all(folder).map_err(|why| anyhow::anyhow!("{folder}: {why}"))?;
            for file in saved {
                let path = Path::new(folder).join(file.name).display().to_string();
                apart.writes(&[("--save-counters", Some(&path))])?;
                targets.push((Saved::File(file), Target::open(&path, room)?));
            }
        }
        Some(name) => {
            refuse_several("--save-counters", files)?;
            targets.push((Saved::Rules(0), Target::open(name, room)?));
        }
        None => {}
    }
    if let Some(name) = counters6 {
        // Those of --rules6 or a folder's ip6tables.save stand after the others.
        let Some(v6) = files.iter().position(|file| file.ruleset.family == Family::Ipv6) else {
            bail!("--save-counters6: expected IPv6 rules (--rules6 FILE), found none");
        };
        refuse_several("--save-counters6", files)?;
        targets.push((Saved::Rules(v6), Target::open(name, room)?));
    }
    Ok(targets)
}

/// Refuses one file for rules of several.
fn refuse_several(option: &str, files: &[RulesFile]) -> Result<()> {
    let Some(file) = files.iter().find(|file| !file.others.is_empty()) else { return Ok(()) };
    bail!(
        "{option}: expected --save-counters DIR/, which gets each file by its name, as these rules are of several: {}",
        file.names()
    )
}
