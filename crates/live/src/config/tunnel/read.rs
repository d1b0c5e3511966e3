//! From TOML to [`TunnelSettings`]: `[tunnel]`.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;

use ::tunnel::{PresharedKey, PrivateKey};
use host::Network;
use rules::model::Family;
use toml::de::DeTable;

use super::super::{At, ConfigError, Kind, MetricsSettings, Privileges, RulesSettings, Settings};
use super::super::{metrics, work};
use super::file::{Reader, list};
use super::{Ciphers, Dscp, HOST, Hooks, MARK, MTU, PeerSettings, Table, TunnelSettings};
use super::{cloud, endpoint, peer, secret};
use dataplane::keys::{LineStarts, Section, Value, Wrong, document, found, only, string};

const TOP: [&str; 3] = ["tunnel", "peer", "cloud"];
const TUNNEL: [&str; 26] = [
    "name",
    "key",
    "address",
    "listen",
    "mtu",
    "ciphers",
    "mark",
    "device",
    "dscp",
    "dns",
    "search",
    "table",
    "pre_up",
    "post_up",
    "pre_down",
    "post_down",
    "rules",
    "rules6",
    "ipset",
    "bans",
    "workers",
    "speed",
    "privileges",
    "control",
    "metrics",
    "metrics_names",
];

/// Peers that a file may have.
const MOST_PEERS: usize = 65_536;

/// Inner packets: what every host takes (RFC 791), every link of IPv6 carries (RFC 8200), and one sealed datagram holds.
const LEAST_MTU: u64 = 576;
const LEAST_MTU_V6: u16 = 1280;
const MOST_MTU: u64 = 65_440;

impl TunnelSettings {
    /// Reads a configuration, and the files with keys that it names.
    ///
    /// # Errors
    /// The text is refused at a line and column; a file that cannot be read, at its beginning.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let name = file.display().to_string();
        let text = secret::bounded(file).map_err(|error| ConfigError {
            file: name.clone(),
            at: At { line: 1, column: 1 },
            what: error.to_string(),
        })?;
        Self::from_text(&name, &text)
    }

    /// Reads a configuration that came from `file`, and the files with keys that it names.
    ///
    /// # Errors
    /// The text is refused at a line and column.
    pub fn from_text(file: &str, text: &str) -> Result<Self, ConfigError> {
        let reader = Reader { file, text, lines: LineStarts::of(text.as_bytes()) };
        reader.settings().map_err(|(span, what)| {
            let at = reader.at(span.start);
            ConfigError { file: file.to_owned(), at, what }
        })
    }
}

/// Reads the preshared key of a pair from a file that only its owner may read.
///
/// # Errors
/// In one line, with the file: it holds no key, or others may read it.
pub fn preshared_key(file: &Path) -> Result<PresharedKey, String> {
    secret::key(file)
}

/// Reads a private key from a file that only its owner may read.
///
/// # Errors
/// In one line, with the file: it holds no key, or others may read it.
pub fn private_key(file: &Path) -> Result<PrivateKey, String> {
    secret::key(file)
}

impl Settings {
    /// Whether names are looked up during the run: the names of a tunnel's peers.
    #[must_use]
    pub fn looks_names_up(&self) -> bool {
        self.ports.iter().any(|port| match &port.kind {
            Kind::Tunnel { file } => {
                TunnelSettings::read(&file.path).is_ok_and(|tunnel| tunnel.has_names())
            }
            _ => false,
        })
    }
}

impl<'t> Reader<'t> {
    fn settings(&self) -> Result<TunnelSettings, Wrong> {
        let document = document(self.text)?;
        let top = document.get_ref();
        only(top, &TOP, &[])?;
        let end = self.text.len();
        let value = top.get("tunnel").ok_or_else(|| (end..end, "expected [tunnel]".to_owned()))?;
        let section = Section::new("[tunnel]", value, &TUNNEL, &[])?;
        let mut settings = self.tunnel(&section)?;
        settings.peers = self.peers(top, &settings)?;
        let cloud = top.get("cloud").map(|value| cloud::read(value, &settings));
        settings.cloud = cloud.transpose()?;
        if settings.mark.is_none() && settings.catches_itself() {
            settings.mark = Some(MARK);
        }
        Ok(settings)
    }

    fn tunnel(&self, section: &Section<'_, 't>) -> Result<TunnelSettings, Wrong> {
        let name = self.name(section)?;
        let (key_file, key) = self.secret(section.need("key")?)?;
        let addresses = addresses(section)?;
        let named = |key| section.get(key).map(|value| self.named(value)).transpose();
        let control = named("control")?.map(|named| named.path);
        let listen = section.get("metrics").map(metrics::listen).transpose()?;
        let names =
            section.get("metrics_names").map(metrics::names).transpose()?.unwrap_or_default();
        Ok(TunnelSettings {
            file: self.file.to_owned(),
            key,
            key_file,
            listen: section.number("listen", u16::MAX.into())?.unwrap_or(0) as u16,
            mtu: mtu(section, &addresses)?,
            addresses,
            ciphers: ciphers(section)?,
            mark: above_zero(section, "mark")?,
            device: section.get("device").map(device).transpose()?,
            dscp: dscp(section)?,
            answers_speed: section
                .choice("speed", &[("answer", true), ("off", false)], &[])?
                .unwrap_or(true),
            dns: list(section, "dns", "a list of addresses", server)?,
            search: list(section, "search", "a list of domains", domain)?,
            table: table(section)?,
            hooks: Hooks {
                pre_up: commands(section, "pre_up")?,
                post_up: commands(section, "post_up")?,
                pre_down: commands(section, "pre_down")?,
                post_down: commands(section, "post_down")?,
            },
            rules: self.rules(section)?,
            ipset: named("ipset")?,
            bans: named("bans")?,
            workers: work::one_or_more(section, "workers", work::MOST_WORKERS)?.unwrap_or(1),
            privileges: privileges(section)?,
            control: control.unwrap_or_else(|| TunnelSettings::control_of(&name)),
            metrics: listen.map(|listen| MetricsSettings { listen, rules: false, names }),
            cloud: None,
            peers: Vec::new(),
            name,
        })
    }

    /// The given name, or else the name of the file without its ending.
    fn name(&self, section: &Section<'_, 't>) -> Result<String, Wrong> {
        let what = "expected 1 to 15 letters, digits and _ = + . -, not beginning with . or -";
        let Some(value) = section.get("name") else {
            let stem = Path::new(self.file).file_stem().and_then(|stem| stem.to_str());
            let (start, end) = section.span;
            return stem
                .filter(|stem| is_name(stem) && *stem != HOST)
                .map(str::to_owned)
                .ok_or_else(|| {
                    let found = stem.unwrap_or_default();
                    let what =
                        format!("name = … is missing, and the file's is none: {what}, found");
                    (start..end, format!("{what} \"{}\"", packet::visible::word(found)))
                });
        };
        match string(value)? {
            HOST => Err((value.span(), format!("{what}, and \"{HOST}\" is the port of this host"))),
            name if is_name(name) => Ok(name.to_owned()),
            name => Err((value.span(), format!("{what}, found \"{name}\""))),
        }
    }

    fn rules(&self, section: &Section<'_, 't>) -> Result<Vec<RulesSettings>, Wrong> {
        let files = [("rules", Family::Ipv4), ("rules6", Family::Ipv6)];
        let named = files.into_iter().filter_map(|(key, family)| Some((section.get(key)?, family)));
        named
            .map(|(value, family)| Ok(RulesSettings { family, file: self.named(value)? }))
            .collect()
    }

    /// The peers, each unlike the ones before it and unlike this end.
    fn peers(
        &self,
        top: &DeTable<'t>,
        settings: &TunnelSettings,
    ) -> Result<Vec<PeerSettings>, Wrong> {
        let Some(value) = top.get("peer") else { return Ok(Vec::new()) };
        let what = "[[peer]], a table for each";
        let tables = value.get_ref().as_array().ok_or_else(|| found(value, what))?;
        if tables.len() > MOST_PEERS {
            let many = tables.len();
            return Err((value.span(), format!("expected at most {MOST_PEERS}, found {many}")));
        }
        let mut before = peer::Before::none(settings.key.public());
        tables.iter().map(|table| peer::read(self, table, &mut before)).collect()
    }
}

/// Whether a text can be the name of a device, of a file, and of a unit of systemd: wg-quick's rule, without options
/// and hidden files.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_good = |c: u8| c.is_ascii_alphanumeric() || b"_=+.-".contains(&c);
    (1..=15).contains(&name.len()) && name.bytes().all(is_good) && !name.starts_with(['.', '-'])
}

fn addresses(section: &Section<'_, '_>) -> Result<Vec<(IpAddr, u8)>, Wrong> {
    let what = "a list of addresses such as \"10.77.0.1/24\"";
    let addresses = list(section, "address", what, |value| Ok((value.span(), address(value)?)))?;
    let mut had = HashSet::new();
    for (span, (address, _)) in &addresses {
        if !had.insert(*address) {
            return Err((
                span.clone(),
                format!("expected each address once, found {address} again"),
            ));
        }
    }
    Ok(addresses.into_iter().map(|(_, address)| address).collect())
}

/// The address of a host, and the prefix length of its link: all bits by default.
fn address(value: &Value<'_>) -> Result<(IpAddr, u8), Wrong> {
    let text = string(value)?;
    let address = text.split('/').next().and_then(|address| address.parse().ok());
    let is_hosts = |address: &IpAddr| !address.is_unspecified() && !address.is_multicast();
    match (Network::parse(text), address.filter(is_hosts)) {
        (Some(network), Some(address)) => Ok((address, network.bits)),
        _ => {
            let what = "expected the address of a host, such as 10.77.0.1/24 or fd77::1/64";
            Err((value.span(), format!("{what}, found \"{text}\"")))
        }
    }
}

fn mtu(section: &Section<'_, '_>, addresses: &[(IpAddr, u8)]) -> Result<u16, Wrong> {
    let (Some(mtu), Some(value)) = (section.number("mtu", MOST_MTU)?, section.get("mtu")) else {
        return Ok(MTU);
    };
    let mtu = mtu as u16;
    let has_v6 = addresses.iter().any(|(address, _)| address.is_ipv6());
    if u64::from(mtu) < LEAST_MTU {
        return Err((value.span(), format!("expected at least {LEAST_MTU}, found {mtu}")));
    }
    if has_v6 && mtu < LEAST_MTU_V6 {
        let what = format!("expected at least {LEAST_MTU_V6} beside an IPv6 address, found {mtu}");
        return Err((value.span(), what));
    }
    Ok(mtu)
}

fn ciphers(section: &Section<'_, '_>) -> Result<Ciphers, Wrong> {
    let words = [
        ("auto", Ciphers::Auto),
        ("aes-256-gcm", Ciphers::Aes256Gcm),
        ("chacha20-poly1305", Ciphers::ChaCha20Poly1305),
    ];
    Ok(section.choice("ciphers", &words, &[])?.unwrap_or_default())
}

fn privileges(section: &Section<'_, '_>) -> Result<Privileges, Wrong> {
    let words =
        [("auto", Privileges::Auto), ("required", Privileges::Required), ("off", Privileges::Off)];
    Ok(section.choice("privileges", &words, &[])?.unwrap_or_default())
}

fn above_zero(section: &Section<'_, '_>, key: &str) -> Result<Option<u32>, Wrong> {
    let most = u32::MAX.into();
    Ok(work::one_or_more(section, key, most)?.map(|number| number as u32))
}

fn table(section: &Section<'_, '_>) -> Result<Table, Wrong> {
    match section.get("table") {
        Some(value) if value.get_ref().is_str() => {
            let words = [("auto", Table::Auto), ("off", Table::Off)];
            Ok(section.choice("table", &words, &[])?.unwrap_or_default())
        }
        Some(value) if !value.get_ref().is_integer() => {
            Err(found(value, "\"auto\", \"off\" or the number of a table"))
        }
        _ => Ok(above_zero(section, "table")?.map_or(Table::Auto, Table::Number)),
    }
}

fn dscp(section: &Section<'_, '_>) -> Result<Dscp, Wrong> {
    match section.get("dscp") {
        Some(value) if value.get_ref().is_str() => {
            Ok(section.choice("dscp", &[("copy", Dscp::Copy)], &[])?.unwrap_or_default())
        }
        Some(value) if !value.get_ref().is_integer() => {
            Err(found(value, "\"copy\" or a number from 0 to 63"))
        }
        _ => Ok(section
            .number("dscp", 63)?
            .map_or_else(Dscp::default, |dscp| Dscp::Fixed(dscp as u8))),
    }
}

fn device(value: &Value<'_>) -> Result<String, Wrong> {
    match string(value)? {
        name if (1..=15).contains(&name.len()) && !name.contains(['/', '\0']) => {
            Ok(name.to_owned())
        }
        name => {
            let what = "expected the name of an interface, 1 to 15 bytes";
            Err((value.span(), format!("{what}, found \"{name}\"")))
        }
    }
}

fn server(value: &Value<'_>) -> Result<IpAddr, Wrong> {
    let text = string(value)?;
    let wrong = |_| (value.span(), format!("expected the address of a server, found \"{text}\""));
    text.parse().map_err(wrong)
}

fn domain(value: &Value<'_>) -> Result<String, Wrong> {
    match string(value)? {
        name if endpoint::is_name(name) => Ok(name.to_owned()),
        name => Err((value.span(), format!("expected a domain, found \"{name}\""))),
    }
}

fn commands(section: &Section<'_, '_>, key: &str) -> Result<Vec<String>, Wrong> {
    list(section, key, "a list of commands", |value| match string(value)? {
        command if command.trim().is_empty() || command.contains('\0') => {
            Err((value.span(), format!("expected a command, found {command:?}")))
        }
        command => Ok(command.to_owned()),
    })
}
