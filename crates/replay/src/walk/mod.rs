//! [`WalkOptions`]: how packets walk, as whoever asks says it, and what that makes of rules and configuration. The
//! command line and the bindings read it from what they are given, each value by [`words`].

mod folder;
pub mod geoip;
pub mod words;

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use conntrack::Mode;
use conntrack::config::DEFAULT_MAX;
use dataplane::{Config, Path, Wires};
use host::routes::Routes;
use host::{Fingerprints, Host, Kernel, Links, Network, QueueVerdict, Queues, Zone};
use packet::Checksums;
use rules::Backend;
use rules::ipset::Sets;
use rules::model::Family;
use rules::save::LoadOptions;

use crate::bans_file;
use crate::error::Error;
use crate::rules_file::RulesFile;
use crate::shell;

pub use folder::HostFolder;

/// How packets walk. The defaults are those of the command line.
#[derive(Debug, Clone)]
pub struct WalkOptions {
    /// Family of the rules, if their text does not tell it.
    pub family: Option<Family>,
    /// The file of IPv6 rules beside them.
    pub rules6: Option<String>,
    /// Only this table; also the table of `iptables -S` text.
    pub table: Option<String>,
    /// The way of every packet through the host; `None` finds it out.
    pub path: Option<Path>,
    /// The interface packets come in by.
    pub input: Option<String>,
    /// The interface packets go out by.
    pub output: Option<String>,
    /// Networks behind interfaces.
    pub nets: Vec<(String, Network)>,
    /// The host's own addresses.
    pub local: Vec<Network>,
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
    /// Addresses of its interfaces.
    pub addresses: Vec<(String, IpAddr)>,
    /// The file of changes of the access list.
    pub bans: Option<String>,
    /// How connections are tracked, if not as is usual there.
    pub ct: Option<Mode>,
    /// Most connections at a time.
    pub ct_max: usize,
    /// Use what frames that left tell of packets.
    pub pair: bool,
    /// Which wrong checksums count.
    pub checksums: Checksums,
    /// The backend of the rules, if their text does not tell it.
    pub semantics: Option<Backend>,
    /// The kernel whose answers are wanted.
    pub kernel: Option<Kernel>,
    /// What the programs on queues answer, by their numbers, or on all that are not named.
    pub queue_verdicts: Vec<(Option<u16>, QueueVerdict)>,
    /// The time zone that the host's kernel was told of.
    pub zone: Option<Zone>,
    /// Refuse rules text that iptables-restore would refuse.
    pub strict_input: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self {
            family: None,
            rules6: None,
            table: None,
            path: None,
            input: None,
            output: None,
            nets: Vec::new(),
            local: Vec::new(),
            routes: None,
            links: None,
            bridge: None,
            ipset: None,
            geoip: None,
            osf_file: None,
            addresses: Vec::new(),
            bans: None,
            ct: None,
            ct_max: DEFAULT_MAX,
            pair: true,
            checksums: Checksums::Arrivals,
            semantics: None,
            kernel: None,
            queue_verdicts: Vec::new(),
            zone: None,
            strict_input: false,
        }
    }
}

/// What a file holds.
fn read<T, E: Display>(file: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, Error> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| Error::File { file: file.to_owned(), source })?;
    parse(&text).map_err(|error| Error::Read { file: file.to_owned(), what: error.to_string() })
}

/// No network is behind two interfaces: which of them a packet passes would be anybody's guess.
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
pub(crate) fn queues(given: &[(Option<u16>, QueueVerdict)]) -> Result<Queues, Error> {
    Queues::of(given).map_err(|(queue, verdict)| {
        let of = queue.map_or_else(|| "all others".to_owned(), |queue| format!("queue {queue}"));
        let verdict = verdict.word();
        Error::Given(format!("--queue-verdict: expected one verdict of {of}, found {verdict}, too"))
    })
}

impl WalkOptions {
    /// The options to be typed again beside those that rules and configuration tell, each with a blank
    /// before it.
    #[must_use]
    pub fn also(&self) -> String {
        let mut options = String::new();
        let family = self.family.map(|family| family.name().to_owned());
        let kernel = self.kernel.map(|kernel| kernel.to_string());
        let zone = self.zone.as_ref().map(Zone::to_string);
        let named = [
            ("family", &family),
            ("kernel", &kernel),
            ("tz", &zone),
            ("table", &self.table),
            ("routes", &self.routes),
            ("links", &self.links),
            ("ipset", &self.ipset),
            ("geoip", &self.geoip),
            ("osf-file", &self.osf_file),
            ("bridge", &self.bridge),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                options.push_str(&shell::option(name, value));
            }
        }
        for (queue, verdict) in &self.queue_verdicts {
            let queue = queue.map_or_else(String::new, |queue| format!("{queue}="));
            let value = format!("{queue}{}", verdict.word());
            options.push_str(&shell::option("queue-verdict", &value));
        }
        options
    }

    /// The rules, and those of `rules6`, loaded as these options say.
    ///
    /// # Errors
    /// A file cannot be read, or is refused; or both are of one family.
    pub fn open(&self, rules: &str) -> Result<Vec<RulesFile>, Error> {
        self.open_both(rules, self.rules6.as_deref())
    }

    /// The rules, and IPv6 rules beside them, loaded as these options say.
    ///
    /// # Errors
    /// A file cannot be read, or is refused; or both are of one family.
    pub fn open_both(&self, rules: &str, rules6: Option<&str>) -> Result<Vec<RulesFile>, Error> {
        self.open_all(rules, rules6, self.semantics)
    }

    /// The same for the backend that `semantics` names.
    ///
    /// # Errors
    /// A file cannot be read, or is refused; or both are of one family.
    pub fn open_all(
        &self,
        rules: &str,
        rules6: Option<&str>,
        semantics: Option<Backend>,
    ) -> Result<Vec<RulesFile>, Error> {
        let evaluated = |file: RulesFile| file.evaluated_as(semantics);
        let mut files = match HostFolder::at(rules) {
            Some(folder) => folder.rules(&self.load_options())?,
            None => vec![RulesFile::open(rules, &self.load_options())?],
        };
        let Some(rules6) = rules6 else { return Ok(files.into_iter().map(evaluated).collect()) };
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
        files.insert(place, RulesFile::open(rules6, &options)?);
        Ok(files.into_iter().map(evaluated).collect())
    }

    /// How rules text is read.
    #[must_use]
    pub fn load_options(&self) -> LoadOptions<'_> {
        LoadOptions { family: self.family, table: self.table.as_deref(), strict: self.strict_input }
    }

    /// The handler's configuration for these rules, which may be a folder that says more of the host; `usual` is how
    /// connections are tracked unless that is given.
    ///
    /// # Errors
    /// A file cannot be read, or is refused; or two interfaces have one network behind them.
    pub fn config(&self, rules: &str, usual: Mode) -> Result<Config, Error> {
        refuse_equal(&self.nets)?;
        let folder = HostFolder::at(rules);
        let wires = folder.as_ref().map_or_else(|| Ok(Wires::default()), HostFolder::wires)?;
        let mut host = self.host(folder.as_ref())?;
        if host.addresses.is_empty() {
            host.addresses.clone_from(&wires.addresses);
        }
        let bans = self.bans.clone().or_else(|| folder.as_ref().and_then(HostFolder::bans));
        Ok(Config {
            path: self.path,
            input: self.input.clone(),
            output: self.output.clone(),
            nets: self.nets.clone(),
            checksums: self.checksums,
            pair: self.pair,
            bans: bans.as_deref().map(bans_file::open).transpose()?,
            ct: conntrack::Config {
                mode: self.ct.unwrap_or(usual),
                start: folder.as_ref().map_or(Ok(None), HostFolder::connections)?,
                ..self.tracking(&host)
            },
            sets: match (&self.ipset, &folder) {
                (Some(file), _) => Some(read(file, Sets::parse)?),
                (None, Some(folder)) => folder.sets()?,
                (None, None) => None,
            },
            wires,
            host,
            ..Config::default()
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
        if self.ct_max != DEFAULT_MAX {
            tracking.max = self.ct_max;
        }
        tracking
    }

    /// The host: as the folder says, and where options say otherwise, as they do.
    fn host(&self, folder: Option<&HostFolder<'_>>) -> Result<Host, Error> {
        let mut host = folder.map_or_else(|| Ok(Host::default()), HostFolder::host)?;
        if !self.local.is_empty() {
            host.local = Some(self.local.clone());
        }
        if let Some(file) = &self.routes {
            host.routes = Some(read(file, Routes::parse)?);
        }
        if let Some(file) = &self.links {
            host.links = read(file, Links::parse)?;
        }
        if let Some(file) = &self.osf_file {
            host.fingerprints = Some(Arc::new(read(file, Fingerprints::parse)?));
        }
        let own = || folder.and_then(HostFolder::geoip);
        host.geoip = self.geoip.clone().or_else(own).map(|name| geoip::open(&name)).transpose()?;
        host.bridge = self.bridge.clone().or(host.bridge);
        host.addresses = self.addresses.clone();
        host.kernel = self.kernel.or(host.kernel);
        host.queues = queues(&self.queue_verdicts)?;
        host.zone = self.zone.clone();
        Ok(host)
    }
}
