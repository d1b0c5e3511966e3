//! A host as one argument: a folder of what its own programs printed, as `tamis collect` writes it.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conntrack::Listing;
use dataplane::Wires;
use host::Host;
use rules::ipset::Sets;
use rules::model::Family;
use rules::save::LoadOptions;

use crate::error::Error;
use crate::input::read_text;
use crate::rules_file::RulesFile;

/// Rulesets by family, in the order in which they are asked for.
const RULES: [(Family, &str); 4] = [
    (Family::Ipv4, "iptables.save"),
    (Family::Ipv6, "ip6tables.save"),
    (Family::Arp, "arptables.save"),
    (Family::Bridge, "ebtables.save"),
];

/// A folder that describes a host.
#[derive(Debug)]
pub struct HostFolder<'n> {
    /// Its name, as given.
    name: &'n str,
}

impl<'n> HostFolder<'n> {
    /// The folder of that name; `None` if it is none, but a file or nothing.
    pub fn at(name: &'n str) -> Option<Self> {
        Path::new(name).is_dir().then_some(Self { name })
    }

    fn path(&self, file: &str) -> PathBuf {
        Path::new(self.name).join(file)
    }

    /// Those of these files of it that are there.
    pub fn files(&self, names: impl Iterator<Item = &'static str>) -> impl Iterator<Item = String> {
        let there = names.map(|file| self.path(file)).filter(|at| at.exists());
        there.map(|path| path.display().to_string())
    }

    /// One of its files is refused.
    fn refused(&self, file: &str, why: &dyn Display) -> Error {
        Error::Read { file: self.path(file).display().to_string(), what: why.to_string() }
    }

    /// The text of one of its files, if it is there.
    fn text(&self, file: &str) -> Result<Option<String>, Error> {
        let path = self.path(file);
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(read_text(&path.display().to_string())?))
    }

    /// Its rulesets that can be asked at once: those of IPv4, IPv6 and ARP, else those of bridges; with `--family` only
    /// that one. A file without rules or policies counts as none.
    pub fn rules(&self, options: &LoadOptions<'_>) -> Result<Vec<RulesFile>, Error> {
        let mut files: Vec<RulesFile> = Vec::new();
        for (family, name) in RULES {
            let is_asked = options.family.is_none_or(|asked| asked == family);
            let is_beside = family != Family::Bridge || files.is_empty();
            if !is_asked || !is_beside {
                continue;
            }
            let Some(text) = self.text(name)? else { continue };
            if !text.lines().any(|line| line.trim_start().starts_with('*')) {
                continue;
            }
            let options = LoadOptions { family: Some(family), ..*options };
            let path = self.path(name).display().to_string();
            match RulesFile::from_text(&path, text, &options) {
                Ok(file) => files.push(file.given_as(self.name)),
                // --table names a table of one family; the others need not have it.
                Err(Error::NoTable { .. }) if options.table.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        if files.is_empty() {
            let asked =
                options.family.and_then(|asked| RULES.iter().find(|(family, _)| *family == asked));
            let expected = asked.map_or_else(
                || RULES.map(|(_, name)| name).join(", "),
                |(_, name)| (*name).to_owned(),
            );
            let table = options
                .table
                .map_or_else(String::new, |table| format!(" with a table \"{table}\""));
            return Err(Error::Given(format!(
                "{}: expected a ruleset in this folder ({expected}){table}, found none",
                self.name
            )));
        }
        Ok(files)
    }

    /// What it says of the host.
    pub fn host(&self) -> Result<Host, Error> {
        let mut unread = None;
        let host = Host::read(|name| match self.text(name) {
            Ok(text) => text,
            Err(error) => {
                unread.get_or_insert(error);
                None
            }
        });
        match unread {
            Some(error) => Err(error),
            None => host.map_err(|error| self.refused(error.file, &error.source)),
        }
    }

    /// Its sets.
    pub fn sets(&self) -> Result<Option<Sets>, Error> {
        let name = "ipset.save";
        let sets = self.text(name)?.map(|text| Sets::parse(&text)).transpose();
        sets.map_err(|error| self.refused(name, &error))
    }

    /// The wires that its interfaces are the ports of, where it is that of a run.
    pub fn wires(&self) -> Result<Wires, Error> {
        let name = "wires.txt";
        let wires = self.text(name)?.map(|text| Wires::parse(&text)).transpose();
        let wires = wires.map_err(|error| self.refused(name, &error))?;
        Ok(wires.unwrap_or_default())
    }

    /// The file of its access list, if it is there.
    pub fn bans(&self) -> Option<String> {
        Some(self.path("bans.txt"))
            .filter(|path| path.exists())
            .map(|path| path.display().to_string())
    }

    /// Its folder of countries, if it is there.
    pub fn geoip(&self) -> Option<String> {
        let path = Some(self.path("xt_geoip")).filter(|path| path.is_dir());
        path.map(|path| path.display().to_string())
    }

    /// The connections that it had.
    pub fn connections(&self) -> Result<Option<Arc<Listing>>, Error> {
        let name = "conntrack.txt";
        let listing = self.text(name)?.map(|text| Listing::parse(&text)).transpose();
        listing.map(|listing| listing.map(Arc::new)).map_err(|error| self.refused(name, &error))
    }
}
