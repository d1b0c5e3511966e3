//! [`WalkOptions`]: what a caller says, read from files where it names any.

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use conntrack::Mode;
use dataplane::{Config, Path, Start, Wires};
use host::routes::Routes;
use host::{Fingerprints, Host, Kernel, Links, Network, QueueVerdict, Queues, Zone};
use packet::Checksums;
use pktio::file::NamedBy;
use rules::Backend;
use rules::ipset::Sets;
use rules::model::Family;
use rules::save::LoadOptions;

use super::folder::HostFolder;
use super::{geoip, names};
use crate::error::Error;
use crate::input::text_of;
use crate::named_file::NamedFile;
use crate::rules_file::RulesFile;
use crate::setup::Setup;
use crate::{bans_file, shell};

/// What is known of the host, besides what its folder says.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    /// Networks behind its interfaces.
    pub nets: Vec<(String, Network)>,
    /// Its own addresses.
    pub local: Vec<Network>,
    /// Addresses of its interfaces.
    pub addresses: Vec<(String, IpAddr)>,
    /// The file of its routes.
    pub routes: Option<String>,
    /// The file of its links.
    pub links: Option<String>,
    /// The bridge that bridge rules stand on.
    pub bridge: Option<String>,
    /// The file of its sets.
    pub ipset: Option<String>,
    /// The folder of its database of countries.
    pub geoip: Option<String>,
    /// The file of its fingerprints.
    pub osf_file: Option<String>,
    /// The kernel whose answers are wanted.
    pub kernel: Option<Kernel>,
    /// What the programs on queues answer, by their numbers, or on all that are not named.
    pub queue_verdicts: Vec<(Option<u16>, QueueVerdict)>,
    /// The time zone that its kernel was given.
    pub zone: Option<Zone>,
    /// Ignore the chains of nft and iptables-legacy that packets pass in addition to the rules.
    pub ignore_nft: bool,
}

/// How packets walk. The defaults are the command line's.
#[derive(Debug, Clone, Default)]
pub struct WalkOptions {
    /// What is known of the host.
    pub host: HostFacts,
    /// Family of the rules, if their text does not tell it.
    pub family: Option<Family>,
    /// The file of IPv6 rules that goes with the rules.
    pub rules6: Option<String>,
    /// Only this table; also the table of `iptables -S` text.
    pub table: Option<String>,
    /// The way of every packet through the host; `None` finds it out.
    pub path: Option<Path>,
    /// The input interface of packets.
    pub input: Option<String>,
    /// The output interface of packets.
    pub output: Option<String>,
    /// The file of changes of the access list.
    pub bans: Option<String>,
    /// How connections are tracked, if not as is usual there.
    pub ct: Option<Mode>,
    /// Most connections at a time, if not as many as the host's settings say.
    pub ct_max: Option<usize>,
    /// Do without what frames that left tell of packets.
    pub no_pair: bool,
    /// Which wrong checksums count.
    pub checksums: Checksums,
    /// The backend of the rules, if their text does not tell it.
    pub semantics: Option<Backend>,
    /// Refuse rules text that iptables-restore would refuse.
    pub strict_input: bool,
    /// Leave the tables of iptables-legacy that a folder has in addition to iptables-nft's unevaluated.
    pub legacy_apart: bool,
    /// Rules that a cases file names: they lie below its folder.
    pub named: Vec<NamedFile>,
}

/// What a file holds.
fn read<T, E: Display>(file: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, Error> {
    let text = text_of(file, NamedBy::Person)?;
    parse(&text).map_err(|error| Error::Read { file: file.to_owned(), what: error.to_string() })
}

/// Refuses a network behind two interfaces: nothing would say which of them a packet passes.
fn refuse_equal(nets: &[(String, Network)]) -> Result<(), Error> {
    for (index, (name, net)) in nets.iter().enumerate() {
        let same = |(other, of_other): &&(String, Network)| of_other == net && other != name;
        if let Some((other, _)) = nets[..index].iter().find(same) {
            return Err(Error::Given(format!(
                "--net {other}={net} and --net {name}={net}: expected a network behind one interface"
            )));
        }
    }
    Ok(())
}

/// What programs on queues answer.
///
/// # Errors
/// Two of these differ about the same queue.
fn queues(given: &[(Option<u16>, QueueVerdict)]) -> Result<Queues, Error> {
    Queues::of(given).map_err(|(queue, verdict)| {
        let of = queue.map_or_else(|| "all others".to_owned(), |queue| format!("queue {queue}"));
        let verdict = verdict.word();
        Error::Given(format!("--queue-verdict: expected one verdict of {of}, found {verdict}, too"))
    })
}

impl WalkOptions {
    /// The options to be typed again besides the options that follow from rules and configuration, each with a blank
    /// before it.
    #[must_use]
    pub fn also(&self) -> String {
        let mut options = String::new();
        let family = self.family.map(|family| family.name().to_owned());
        let kernel = self.host.kernel.map(|kernel| kernel.to_string());
        let zone = self.host.zone.as_ref().map(Zone::to_string);
        let named = [
            ("family", &family),
            ("kernel", &kernel),
            ("tz", &zone),
            ("table", &self.table),
            ("routes", &self.host.routes),
            ("links", &self.host.links),
            ("ipset", &self.host.ipset),
            ("geoip", &self.host.geoip),
            ("osf-file", &self.host.osf_file),
            ("bridge", &self.host.bridge),
            ("bans", &self.bans),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                options.push_str(&shell::option(name, value));
            }
        }
        for (queue, verdict) in &self.host.queue_verdicts {
            let queue = queue.map_or_else(String::new, |queue| format!("{queue}="));
            let value = format!("{queue}{}", verdict.word());
            options.push_str(&shell::option("queue-verdict", &value));
        }
        if self.host.ignore_nft {
            options.push_str(" --ignore-nft");
        }
        options
    }

    /// Loads the rules, and the rules of `rules6`, as these options say.
    ///
    /// # Errors
    /// A file cannot be read, or is refused; or both are of one family.
    pub fn open(&self, rules: &str) -> Result<Vec<RulesFile>, Error> {
        self.open_both(rules, self.rules6.as_deref())
    }

    /// Loads the rules, and a file of IPv6 rules, as these options say.
    ///
    /// # Errors
    /// A file cannot be read, or is refused; or both are of one family.
    pub fn open_both(&self, rules: &str, rules6: Option<&str>) -> Result<Vec<RulesFile>, Error> {
        self.open_on(rules, rules, rules6, self.semantics)
    }

    /// Loads the rules, and a file of IPv6 rules, for the backend that `semantics` names, on the host that `host` is the
    /// folder of, if it is one.
    ///
    /// # Errors
    /// A file cannot be read, or is refused; or both are of one family.
    pub fn open_on(
        &self,
        host: &str,
        rules: &str,
        rules6: Option<&str>,
        semantics: Option<Backend>,
    ) -> Result<Vec<RulesFile>, Error> {
        let mut files = self.open_all(rules, rules6, semantics)?;
        let named = if HostFolder::at(rules).is_some() { rules } else { host };
        if let Some(folder) = HostFolder::named(named, self.named_by(named))
            && self.joins()
            && semantics.is_none()
        {
            folder.join(&mut files, &self.load_options())?;
        }
        Ok(files)
    }

    /// Whether tables of iptables-legacy are walked along with others: not as foreign ones, and not as if they were none.
    fn joins(&self) -> bool {
        !self.legacy_apart && !self.host.ignore_nft && self.semantics.is_none()
    }

    /// Whether tables of nft are walked where a folder has no others.
    fn may_walk_native(&self) -> bool {
        let is_ip = self.family.is_none_or(Family::is_ip);
        self.joins() && self.table.is_none() && is_ip
    }

    fn open_all(
        &self,
        rules: &str,
        rules6: Option<&str>,
        semantics: Option<Backend>,
    ) -> Result<Vec<RulesFile>, Error> {
        let evaluated = |file: RulesFile| file.evaluated_as(semantics);
        let by = |name| self.named_by(name);
        let mut files = match HostFolder::named(rules, by(rules)) {
            Some(folder) if self.legacy_apart => folder.rules_of_iptables(&self.load_options())?,
            Some(folder) => match folder.rules(&self.load_options()) {
                Err(Error::Given(_)) if self.may_walk_native() && folder.has_native()? => {
                    Vec::new()
                }
                rules => rules?,
            },
            None => RulesFile::open_all(rules, by(rules), &self.load_options())?,
        };
        let Some(rules6) = rules6 else { return Ok(files.into_iter().map(evaluated).collect()) };
        let is_empty = |file: &RulesFile| file.listing.is_some() && file.ruleset.tables.is_empty();
        files.retain(|file| !is_empty(file));
        if HostFolder::at(rules).is_some() {
            // It stands for the file of the folder.
            files.retain(|file| file.ruleset.family != Family::Ipv6);
        } else if files.iter().any(|file| file.ruleset.family == Family::Ipv6) {
            return Err(Error::Given(format!(
                "{rules}: expected IPv4 rules beside IPv6 ones, found IPv6 rules"
            )));
        }
        let options = LoadOptions { family: Some(Family::Ipv6), ..self.load_options() };
        let place = files.len().min(1);
        files.insert(place, RulesFile::open_by(rules6, by(rules6), &options)?);
        Ok(files.into_iter().map(evaluated).collect())
    }

    /// Who names rules, or the folder of a host.
    fn named_by(&self, name: &str) -> NamedBy<'_> {
        let named = self.named.iter().find(|file| file.path() == name);
        named.map_or(NamedBy::Person, NamedFile::by)
    }

    /// How rules text is read.
    #[must_use]
    pub fn load_options(&self) -> LoadOptions<'_> {
        LoadOptions { family: self.family, table: self.table.as_deref(), strict: self.strict_input }
    }

    /// The handler's configuration and initial state for these rules, which may be a folder that says more of the host; `usual` is how
    /// connections are tracked unless that is given.
    ///
    /// # Errors
    /// A file cannot be read, or is refused; or two interfaces have one network behind them.
    pub fn setup(&self, rules: &str, usual: Mode) -> Result<Setup, Error> {
        refuse_equal(&self.host.nets)?;
        let folder = HostFolder::named(rules, self.named_by(rules));
        let wires = folder.as_ref().map_or_else(|| Ok(Wires::default()), HostFolder::wires)?;
        let mut host = self.host_with(folder.as_ref())?;
        if host.addresses.is_empty() {
            host.addresses.clone_from(&wires.addresses);
        }
        if let Some(folder) = &folder {
            host.foreign = folder.foreign(self.host.ignore_nft, self.joins())?;
        }
        self.fit(&host.links, &wires)?;
        let named = self.bans.as_deref().map(bans_file::open);
        let start = Start {
            bans: named.or_else(|| folder.as_ref().and_then(HostFolder::bans)).transpose()?,
            sets: match (&self.host.ipset, &folder) {
                (Some(file), _) => Some(read(file, Sets::parse)?),
                (None, Some(folder)) => folder.sets()?,
                (None, None) => None,
            },
            connections: folder.as_ref().map_or(Ok(None), HostFolder::connections)?,
        };
        let config = Config {
            path: self.path,
            input: self.input.clone(),
            output: self.output.clone(),
            nets: self.host.nets.clone(),
            checksums: self.checksums,
            pair: !self.no_pair,
            ct: conntrack::Config { mode: self.ct.unwrap_or(usual), ..self.tracking(&host) },
            wires,
            host,
            ..Config::default()
        };
        Ok(Setup { config, start })
    }

    /// Refuses names of interfaces that the host does not have; a run's interfaces include the ports of its wires.
    fn fit(&self, links: &Links, wires: &Wires) -> Result<(), Error> {
        let named = self.input.iter().map(|name| ("--in", name));
        let named = named.chain(self.output.iter().map(|name| ("--out", name)));
        let named = named.chain(self.host.nets.iter().map(|(name, _)| ("--net", name)));
        let named = named.chain(self.host.bridge.iter().map(|name| ("--bridge", name)));
        let mut named = named.chain(self.host.addresses.iter().map(|(name, _)| ("--addr", name)));
        named.try_for_each(|(option, name)| {
            if wires.has_port(name) {
                return Ok(());
            }
            names::fit(name, links)
                .map_err(|what| Error::Given(format!("{option}: expected {what}")))
        })
    }

    /// How the host tracks connections: as its settings say, and where options say otherwise, as they do.
    fn tracking(&self, host: &Host) -> conntrack::Config {
        let checksums = self.checksums;
        let mut tracking = conntrack::Config { checksums, ..conntrack::Config::default() };
        let settings = host.sysctl.iter().flat_map(|all| all.under("net.netfilter.nf_conntrack_"));
        for (name, value) in settings {
            if let Ok(value) = value.parse() {
                tracking.set(name, value);
            }
        }
        tracking.max = self.ct_max.unwrap_or(tracking.max);
        tracking
    }

    /// The host: as the folder says, and where options say otherwise, as they do.
    fn host_with(&self, folder: Option<&HostFolder<'_>>) -> Result<Host, Error> {
        let mut host = folder.map_or_else(|| Ok(Host::default()), HostFolder::host)?;
        if !self.host.local.is_empty() {
            host.local = Some(self.host.local.clone());
        }
        if let Some(file) = &self.host.routes {
            host.routes = Some(read(file, Routes::parse)?);
        }
        if let Some(file) = &self.host.links {
            host.links = read(file, Links::parse)?;
        }
        if let Some(file) = &self.host.osf_file {
            host.fingerprints = Some(Arc::new(read(file, Fingerprints::parse)?));
        }
        let named = self.host.geoip.as_ref().map(|name| geoip::open(name, None));
        host.geoip = named.or_else(|| folder.and_then(HostFolder::geoip)).transpose()?;
        host.bridge = self.host.bridge.clone().or(host.bridge);
        host.addresses = self.host.addresses.clone();
        host.kernel = self.host.kernel.or(host.kernel);
        host.queues = queues(&self.host.queue_verdicts)?;
        host.zone = self.host.zone.clone();
        Ok(host)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// What was a file when it was looked at, and is a link by the time it is opened.
    #[test]
    fn what_changes_meanwhile_leads_nowhere_else() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        let rules = "*filter\nCOMMIT\n";
        for folder in ["cases", "cases/fw", "elsewhere"] {
            fs::create_dir(at(folder)).unwrap();
        }
        for file in ["cases/r.v4", "cases/fw/iptables.save", "elsewhere/iptables.save"] {
            fs::write(at(file), rules).unwrap();
        }
        let opened = |name: &str| {
            let cases = at("cases/c.toml").display().to_string();
            let file = NamedFile { cases, at: (3, 9), name: name.to_owned() };
            let walk = WalkOptions { named: vec![file.clone()], ..WalkOptions::default() };
            let files = walk.open(&file.inside().unwrap_or_else(|_| file.path()));
            let setup = walk.setup(&file.path(), Mode::Kernel);
            files.map(drop).and(setup.map(drop)).map_err(|error| error.to_string())
        };
        assert_eq!((opened("r.v4"), opened("fw")), (Ok(()), Ok(())));
        fs::rename(at("cases/r.v4"), at("r.v4")).unwrap();
        fs::rename(at("cases/fw"), at("fw")).unwrap();
        symlink("../r.v4", at("cases/r.v4")).unwrap();
        symlink("../elsewhere", at("cases/fw")).unwrap();
        for name in ["r.v4", "fw"] {
            let refused = opened(name).unwrap_err();
            assert!(refused.contains("found a link that leads elsewhere"), "{name}: {refused}");
        }
    }
}
