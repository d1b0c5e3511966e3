//! How packets walk: the arguments of every command that evaluates packets, and what they make of rules and
//! configuration.

use std::fmt::Display;
use std::net::IpAddr;

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use conntrack::{Mode, config::DEFAULT_MAX};
use dataplane::{Config, Path, Wires};
use host::routes::Routes;
use host::{Host, Links, Network};
use packet::Checksums;
use replay::RulesFile;
use rules::Backend;
use rules::ipset::Sets;
use rules::model::Family;
use rules::save::LoadOptions;

use crate::host_folder::HostFolder;

/// How packets walk.
#[derive(Debug, Args)]
#[command(next_help_heading = "How packets walk")]
pub(crate) struct WalkArgs {
    /// Family of the rules [default: told from the text, else ip]
    #[arg(long, value_parser = family)]
    pub family: Option<Family>,
    /// IPv6 rules beside the IPv4 ones, for captures of both
    #[arg(long, value_name = "FILE")]
    pub rules6: Option<String>,
    /// Only this table; also the table of `iptables -S` text
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// The way of every packet through the host [default: auto]
    #[arg(long)]
    pub path: Option<PathChoice>,
    /// The interface packets come in by
    #[arg(long = "in", value_name = "IFACE")]
    pub input: Option<String>,
    /// The interface packets go out by
    #[arg(long = "out", value_name = "IFACE")]
    pub output: Option<String>,
    /// A network behind an interface; may be repeated, the longest prefix counts
    #[arg(long = "net", value_name = "IFACE=CIDR", value_parser = net)]
    pub nets: Vec<(String, Network)>,
    /// The host's own addresses, comma separated; may be repeated
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub local: Vec<Network>,
    /// The host's routes, as `ip route show table all` prints them (IPv4, IPv6 or both)
    #[arg(long, value_name = "FILE")]
    pub routes: Option<String>,
    /// The host's links, as `ip -o link` or `ip -d -o link` prints them
    #[arg(long, value_name = "FILE")]
    pub links: Option<String>,
    /// The bridge that bridge rules stand on, for --logical-in and --logical-out
    #[arg(long, value_name = "NAME")]
    pub bridge: Option<String>,
    /// The host's sets, as `ipset save` prints them, for -m set and -j SET
    #[arg(long, value_name = "FILE")]
    pub ipset: Option<String>,
    /// The address of an interface, for -j MASQUERADE and REDIRECT; may be repeated [default: by --routes]
    #[arg(long = "addr", value_name = "IFACE=ADDRESS", value_parser = addr)]
    pub addresses: Vec<(String, IpAddr)>,
    /// Changes of the access list, one a line: TIME ban|unban|accept|deny SOURCE and a DESTINATION or none; TIME is
    /// RFC 3339, +SECONDS after the first packet, or -; what it denies no rule sees
    #[arg(long, value_name = "FILE")]
    pub bans: Option<String>,
    /// How connections are tracked, where the rules need it [default: midstream for captures, kernel for
    /// packet specs]
    #[arg(long, value_name = "MODE")]
    pub ct: Option<CtChoice>,
    /// Most connections held at a time
    #[arg(long, default_value_t = DEFAULT_MAX, value_name = "N", value_parser = ct_max)]
    pub ct_max: usize,
    /// Do without what frames that left tell of packets: drawn ports, and that no rule dropped them
    #[arg(long)]
    pub no_pair: bool,
    /// Whether a wrong checksum counts: of an IPv4 header it is a drop, further up it makes a packet INVALID
    #[arg(long, default_value = "arrivals")]
    pub checksums: ChecksumChoice,
    /// The backend of the rules, which decides what cut headers do: legacy reads a whole header or drops
    /// the packet, nft reads field by field [default: told from the text, else legacy]
    #[arg(long, value_name = "WHICH")]
    pub semantics: Option<SemanticsChoice>,
    /// Refuse rules text that iptables-restore would refuse
    #[arg(long)]
    pub strict_input: bool,
}

/// `--path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathChoice {
    /// From one interface to another
    Forward,
    /// To the host
    Input,
    /// From the host
    Output,
    /// By --local, else by which chains have rules
    Auto,
}

/// `--semantics`, `--vs-semantics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SemanticsChoice {
    /// xtables, as iptables-legacy loads rules
    Legacy,
    /// nf_tables, as iptables-nft loads rules
    Nft,
}

impl From<SemanticsChoice> for Backend {
    fn from(choice: SemanticsChoice) -> Self {
        match choice {
            SemanticsChoice::Legacy => Self::Legacy,
            SemanticsChoice::Nft => Self::Nft,
        }
    }
}

/// `--ct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CtChoice {
    /// The table was empty at the start, and every packet was captured
    Kernel,
    /// Connections may have begun before the capture: new or established until they are answered
    Midstream,
    /// Not at all: what depends on connections is unknown
    Off,
}

/// `--checksums`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksumChoice {
    /// Take them as right: captures made on the sending host hold unfinished ones
    Ignore,
    /// Those of what the capture says came in
    Arrivals,
    /// All of them
    Verify,
}

fn family(text: &str) -> Result<Family, String> {
    match Family::from_name(text) {
        Some(family) => Ok(family),
        None => Err("expected ip, ip6, arp or bridge".to_owned()),
    }
}

fn net(text: &str) -> Result<(String, Network), String> {
    let wrong = || "expected IFACE=ADDRESS/BITS".to_owned();
    let (name, cidr) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    Ok((name.to_owned(), network(cidr)?))
}

fn addr(text: &str) -> Result<(String, IpAddr), String> {
    let wrong = || "expected IFACE=ADDRESS".to_owned();
    let (name, address) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    Ok((name.to_owned(), address.parse().map_err(|_| wrong())?))
}

fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| "expected ADDRESS or ADDRESS/BITS".to_owned())
}

/// At least one connection, and no more than the table can index.
fn ct_max(text: &str) -> Result<usize, String> {
    let max: usize = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (1..=1 << 24).contains(&max) { Ok(max) } else { Err("expected 1 to 16777216".to_owned()) }
}

/// What a file holds.
fn read<T, E: Display>(file: &str, parse: impl Fn(&str) -> Result<T, E>) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
    parse(&text).map_err(|error| anyhow!("{file}:{error}"))
}

/// No network is behind two interfaces: which of them a packet passes would be anybody's guess.
fn refuse_equal(nets: &[(String, Network)]) -> anyhow::Result<()> {
    for (index, (name, net)) in nets.iter().enumerate() {
        let same = |(other, of_other): &&(String, Network)| of_other == net && other != name;
        if let Some((other, _)) = nets[..index].iter().find(same) {
            bail!(
                "--net {other}={net} and --net {name}={net}: expected a network behind one interface"
            );
        }
    }
    Ok(())
}

impl WalkArgs {
    /// The options to be typed again beside those that rules and configuration tell, each with a blank
    /// before it.
    pub(crate) fn also(&self) -> String {
        let mut options = String::new();
        let family = self.family.map(|family| family.name().to_owned());
        let named = [
            ("family", &family),
            ("table", &self.table),
            ("routes", &self.routes),
            ("links", &self.links),
            ("ipset", &self.ipset),
            ("bridge", &self.bridge),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                options.push_str(&replay::shell::option(name, value));
            }
        }
        options
    }

    /// The files that are read: rules, which may be folders, and those of these arguments.
    pub(crate) fn inputs<'a>(&self, rules: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let options = [&self.rules6, &self.routes, &self.links, &self.ipset, &self.bans];
        let options = options.into_iter().flatten().cloned();
        let rules = rules.into_iter().flat_map(|name| match HostFolder::at(name) {
            Some(folder) => folder.files().collect(),
            None => vec![name.to_owned()],
        });
        rules.chain(options).collect()
    }

    /// The rules, and those of `--rules6`, loaded as these arguments say.
    pub(crate) fn open(&self, rules: &str) -> anyhow::Result<Vec<RulesFile>> {
        self.open_both(rules, self.rules6.as_deref())
    }

    /// The rules, and IPv6 rules beside them, loaded as these arguments say.
    pub(crate) fn open_both(
        &self,
        rules: &str,
        rules6: Option<&str>,
    ) -> anyhow::Result<Vec<RulesFile>> {
        self.open_all(rules, rules6, self.semantics.map(Backend::from))
    }

    /// The same for the backend that `semantics` names.
    pub(crate) fn open_all(
        &self,
        rules: &str,
        rules6: Option<&str>,
        semantics: Option<Backend>,
    ) -> anyhow::Result<Vec<RulesFile>> {
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
            bail!("{rules}: expected IPv4 rules beside IPv6 ones, found IPv6 rules");
        }
        let options = LoadOptions { family: Some(Family::Ipv6), ..self.load_options() };
        let place = files.len().min(1);
        files.insert(place, RulesFile::open(rules6, &options)?);
        Ok(files.into_iter().map(evaluated).collect())
    }

    /// How rules text is read.
    pub(crate) fn load_options(&self) -> LoadOptions<'_> {
        LoadOptions { family: self.family, table: self.table.as_deref(), strict: self.strict_input }
    }

    /// The handler's configuration for these rules, which may be a folder that says more of the host; `usual` is how
    /// connections are tracked unless that is given.
    pub(crate) fn config(&self, rules: &str, usual: Mode) -> anyhow::Result<Config> {
        refuse_equal(&self.nets)?;
        let folder = HostFolder::at(rules);
        let wires = folder.as_ref().map_or_else(|| Ok(Wires::default()), HostFolder::wires)?;
        let mut host = self.host(folder.as_ref())?;
        if host.addresses.is_empty() {
            host.addresses.clone_from(&wires.addresses);
        }
        let bans = self.bans.clone().or_else(|| folder.as_ref().and_then(HostFolder::bans));
        let checksums = match self.checksums {
            ChecksumChoice::Ignore => Checksums::Ignore,
            ChecksumChoice::Arrivals => Checksums::Arrivals,
            ChecksumChoice::Verify => Checksums::Verify,
        };
        Ok(Config {
            path: match self.path {
                Some(PathChoice::Forward) => Some(Path::Forward),
                Some(PathChoice::Input) => Some(Path::Input),
                Some(PathChoice::Output) => Some(Path::Output),
                Some(PathChoice::Auto) | None => None,
            },
            input: self.input.clone(),
            output: self.output.clone(),
            nets: self.nets.clone(),
            checksums,
            pair: !self.no_pair,
            bans: bans.as_deref().map(replay::bans_file::open).transpose()?,
            ct: conntrack::Config {
                mode: match self.ct {
                    Some(CtChoice::Kernel) => Mode::Kernel,
                    Some(CtChoice::Midstream) => Mode::Midstream,
                    None => usual,
                    Some(CtChoice::Off) => Mode::Off,
                },
                start: folder.as_ref().map_or(Ok(None), HostFolder::connections)?,
                max: self.ct_max,
                checksums,
                ..conntrack::Config::default()
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

    /// The host: as the folder says, and where options say otherwise, as they do.
    fn host(&self, folder: Option<&HostFolder<'_>>) -> anyhow::Result<Host> {
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
        host.bridge = self.bridge.clone().or(host.bridge);
        host.addresses = self.addresses.clone();
        Ok(host)
    }
}
