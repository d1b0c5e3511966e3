//! A host as one argument: a folder of what its own programs printed, as `tamis collect` writes it.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::list::Schedule;
use conntrack::Listing;
use dataplane::Wires;
use host::foreign::Foreign;
use host::{Geoip, Host};
use pktio::file::NamedBy;
use rules::ipset::Sets;
use rules::model::{Family, Ruleset};
use rules::save::LoadOptions;

use super::files::{Files, has_tables};
use super::legacy::{self, Legacy};
use super::native::Native;
use super::{foreign, geoip};
use crate::bans_file;
use crate::error::Error;
use crate::input::text_of;
use crate::nftables;
use crate::rules_file::RulesFile;

/// Rulesets by family, in the order in which they are asked for.
const RULES: [(Family, &str); 4] = [
    (Family::Ipv4, "iptables.save"),
    (Family::Ipv6, "ip6tables.save"),
    (Family::Arp, "arptables.save"),
    (Family::Bridge, "ebtables.save"),
];

/// The file of its connections.
const CONNECTIONS: &str = "conntrack.txt";

/// A folder that describes a host.
#[derive(Debug)]
pub struct HostFolder<'n> {
    /// Name of the folder, as given.
    name: &'n str,
    /// The folder that its files lie below: itself, unless a file names it.
    root: &'n Path,
}

impl<'n> HostFolder<'n> {
    /// The file that names what was collected, and when that was.
    pub const COLLECTED: &'static str = "collected.txt";
    /// What the line of that time begins with; seconds since the Unix epoch follow.
    pub const COLLECTED_AT: &'static str = "# collected at=";

    /// The folder of that name; `None` if it is none, but a file or nothing.
    pub fn at(name: &'n str) -> Option<Self> {
        Self::named(name, NamedBy::Person)
    }

    /// The same, named by somebody.
    pub(super) fn named(name: &'n str, by: NamedBy<'n>) -> Option<Self> {
        let root = match by {
            NamedBy::Folder(root) => root,
            NamedBy::Person | NamedBy::Configuration => Path::new(name),
        };
        Path::new(name).is_dir().then_some(Self { name, root })
    }

    fn path(&self, file: &str) -> PathBuf {
        Path::new(self.name).join(file)
    }

    /// Files are named by it: they lie below it.
    fn by(&self) -> NamedBy<'n> {
        NamedBy::Folder(self.root)
    }

    /// Paths of these files, as far as the folder has them.
    pub fn files(&self, names: impl Iterator<Item = &'static str>) -> impl Iterator<Item = String> {
        let there = names.map(|file| self.path(file)).filter(|at| at.exists());
        there.map(|path| path.display().to_string())
    }

    /// The error for a refused file of the folder.
    fn refused(&self, file: &str, why: &dyn Display) -> Error {
        Error::Read { file: self.path(file).display().to_string(), what: why.to_string() }
    }

    /// The text of one of its files, if it is there.
    fn text(&self, file: &str) -> Result<Option<String>, Error> {
        match text_of(&self.path(file).display().to_string(), self.by()) {
            Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            text => text.map(Some),
        }
    }

    /// The rulesets that can be asked at once: IPv4, IPv6 and ARP rules, else bridge rules; with `--family` only that
    /// family's. A file without rules or policies counts as none.
    pub fn rules(&self, options: &LoadOptions<'_>) -> Result<Vec<RulesFile>, Error> {
        let mut files: Vec<RulesFile> = Vec::new();
        for (family, name) in RULES {
            let is_asked = options.family.is_none_or(|asked| asked == family);
            let is_beside = family != Family::Bridge || files.is_empty();
            if !is_asked || !is_beside {
                continue;
            }
            let legacy = self.with_files(|files| Legacy::of(files, family, options))?;
            let alone = legacy::file(family).filter(|_| matches!(legacy, Some(Legacy::Alone)));
            let name = alone.unwrap_or(name);
            let Some(text) = self.text(name)?.filter(|text| has_tables(text)) else { continue };
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
            let native = match self.foreign(true, false)?.chains.first() {
                Some(chain) => format!(" but {chain}, which is not evaluated"),
                None => String::new(),
            };
            return Err(Error::Given(format!(
                "{}: expected a ruleset in this folder ({expected}){table}, found none{native}",
                self.name
            )));
        }
        Ok(files)
    }

    /// The rulesets of [`Self::rules`], for who knows none of nft.
    ///
    /// # Errors
    /// A file is refused, or there are rules of nft alone: what `iptables-save` prints in their place is no ruleset.
    pub fn rules_of_iptables(&self, options: &LoadOptions<'_>) -> Result<Vec<RulesFile>, Error> {
        let files = self.rules(options)?;
        let native = self.with_files(Native::of)?;
        let is_none = |native: Native| files.iter().all(|file| native.stands_for(&file.ruleset));
        match native.is_some_and(is_none) {
            true => Err(Error::Given(format!(
                "{}: expected rules of iptables, found rules of nft, which replay, why and test read",
                self.name
            ))),
            false => Ok(files),
        }
    }

    /// What it says of the host, but for its rulesets.
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

    fn with_files<T>(&self, ask: impl FnOnce(&Files<'_>) -> T) -> T {
        let path = |name: &str| self.path(name).display().to_string();
        ask(&Files { text: &|name| self.text(name), path: &path })
    }

    /// Whether it has tables of nft that packets walk.
    pub(super) fn has_native(&self) -> Result<bool, Error> {
        Ok(self.with_files(Native::of)?.is_some())
    }

    /// Adds the tables of nft, and the tables of iptables-legacy to the tables of iptables-nft, where the order of all is known.
    pub(super) fn join(
        &self,
        files: &mut Vec<RulesFile>,
        options: &LoadOptions<'_>,
    ) -> Result<(), Error> {
        self.join_legacy(files, options)?;
        if options.table.is_some() || files.iter().any(|file| file.listing.is_some()) {
            return Ok(());
        }
        let Some(native) = self.with_files(Native::of)? else { return Ok(()) };
        let families = native.families().filter(|of_family| {
            options.family.is_none_or(|asked| asked == of_family.ruleset.family)
        });
        let sort = |ruleset: &mut Ruleset| native.sort(ruleset);
        let mut doubts = nftables::doubts(&native.listing);
        for of_family in families {
            let family = of_family.ruleset.family;
            let is_empty = of_family.ruleset.tables.is_empty();
            let mut file = RulesFile::of_family(&native.file, &native.listing, of_family);
            file.warnings.extend(native.differs(family).cloned());
            // Once, not for each family.
            file.warnings.append(&mut doubts);
            match files.iter_mut().find(|own| own.ruleset.family == family) {
                Some(own) if native.stands_for(&own.ruleset) => *own = file.given_as(self.name),
                Some(_) if is_empty => {}
                Some(own) => own.join_native(file, &sort),
                None => {
                    let place = files.iter().position(|own| own.ruleset.family > family);
                    let place = place.unwrap_or(files.len());
                    files.insert(place, file.given_as(self.name));
                }
            }
        }
        Ok(())
    }

    fn join_legacy(&self, files: &mut [RulesFile], options: &LoadOptions<'_>) -> Result<(), Error> {
        for own in files {
            let family = own.ruleset.family;
            let legacy = self.with_files(|files| Legacy::of(files, family, options))?;
            if let Some(Legacy::Beside { file, is_earlier }) = legacy {
                own.join(file, is_earlier);
            }
        }
        Ok(())
    }

    /// Chains of rulesets that its packets meet and that are not evaluated; with `joins` some of iptables-legacy are. Where
    /// they are ignored, files that cannot be read are, too.
    pub fn foreign(&self, ignored: bool, joins: bool) -> Result<Foreign, Error> {
        match self.with_files(|files| foreign::chains(files, joins)) {
            Err(_) if ignored => Ok(Foreign { ignored, ..Foreign::default() }),
            chains => Ok(Foreign { chains: chains?, ignored }),
        }
    }

    /// Sets of the host.
    pub fn sets(&self) -> Result<Option<Sets>, Error> {
        let name = "ipset.save";
        let sets = self.text(name)?.map(|text| Sets::parse(&text)).transpose();
        sets.map_err(|error| self.refused(name, &error))
    }

    /// The wires whose ports its interfaces are, where a run wrote the folder.
    pub fn wires(&self) -> Result<Wires, Error> {
        let name = "wires.txt";
        let wires = self.text(name)?.map(|text| Wires::parse(&text)).transpose();
        let wires = wires.map_err(|error| self.refused(name, &error))?;
        Ok(wires.unwrap_or_default())
    }

    /// The access list, if the folder has one.
    pub fn bans(&self) -> Option<Result<Schedule, Error>> {
        let path = Some(self.path("bans.txt")).filter(|path| path.exists());
        path.map(|path| bans_file::open_by(&path.display().to_string(), self.by()))
    }

    /// The database of countries, if the folder has one.
    pub fn geoip(&self) -> Option<Result<Arc<Geoip>, Error>> {
        let path = Some(self.path("xt_geoip")).filter(|path| path.is_dir());
        path.map(|path| geoip::open(&path.display().to_string(), Some(self.root)))
    }

    /// The connections that it had when it was collected.
    pub fn connections(&self) -> Result<Option<Arc<Listing>>, Error> {
        let Some(text) = self.text(CONNECTIONS)? else { return Ok(None) };
        let listing = Listing::parse(&text).map_err(|error| self.refused(CONNECTIONS, &error))?;
        let collected = self.text(Self::COLLECTED)?.unwrap_or_default();
        let time = collected.lines().find_map(|line| line.strip_prefix(Self::COLLECTED_AT));
        Ok(Some(Arc::new(listing.printed_at(time.unwrap_or_default()))))
    }
}
