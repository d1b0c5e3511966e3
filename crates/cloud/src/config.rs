//! [`Settings`]: the configuration of a cloud, in TOML, and how a first one is written.
//!
//! Contract: what is refused is refused with file, line and column and what was expected. Files with secrets are new and
//! of mode 0600, and are refused if others than their owner may reach them.

use std::fmt;
use std::fs::DirBuilder;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use host::Network as Prefix;
use overlay::limits::RELAYS;
use overlay::{JoinUrl, Name, Network, Signer, SignerKey};
use pktio::file::{self, NamedBy, create_anew, read_text};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use tunnel::{Entropy, PrivateKey, PublicKey, SystemEntropy};
use zeroize::Zeroizing;

use crate::directories;
use crate::policy::{Allow, Groups, Test, Written, Wrong, wrong};

/// Ports of the relay where none are given: a node has at most one path by each.
pub(crate) const RELAY: RangeInclusive<u16> = 52_000..=52_031;
/// Most ports of the relay: each is a socket.
const MOST_PORTS: usize = 512;

/// The file of the signer's seed.
pub(crate) const SIGNER: &str = "signer.key";

/// A configuration.
pub(crate) struct Settings {
    pub(crate) network: Network,
    /// Where the relay of this process receives: its address, and its ports, which relays on hosts of their own have, too.
    pub(crate) relay: (IpAddr, RangeInclusive<u16>),
    /// The groups, and what is allowed.
    pub(crate) policy: Written,
    /// Where nodes reach this host.
    pub(crate) public: SocketAddr,
    /// Where the tunnel receives.
    pub(crate) listen: SocketAddr,
    /// Where nodes reach the other directories of the network, which share the store and the keys.
    pub(crate) also: Vec<SocketAddr>,
    /// The servers of etcd, `HOST:PORT`, where the store is shared.
    pub(crate) etcd: Option<Vec<String>>,
    /// The TCP port of nodes whose UDP is blocked.
    pub(crate) tcp: Option<u16>,
    /// Where the page is served, to browsers on this host.
    pub(crate) page: Option<SocketAddr>,
    /// Addresses of relays, each with its IPv6 address for nodes that have no IPv4.
    pub(crate) others: Vec<(IpAddr, IpAddr)>,
    /// Relays on hosts of their own: where nodes reach each, and its key.
    pub(crate) relays: Vec<(IpAddr, PublicKey)>,
    /// The key of an authority on a host of its own, and that which it signs with.
    pub(crate) authority: Option<(PublicKey, SignerKey)>,
    state: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cloud: Cloud,
    #[serde(default, deserialize_with = "one_or_several")]
    relay: Vec<Apart>,
    #[serde(rename = "as")]
    authority: Option<Signing>,
    etcd: Option<directories::Etcd>,
    #[serde(default)]
    groups: Groups,
    #[serde(default)]
    allow: Vec<Allow>,
    #[serde(default)]
    test: Vec<Test>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cloud {
    domain: Spanned<String>,
    public: Spanned<String>,
    public6: Option<Spanned<String>>,
    #[serde(default)]
    also: Vec<Spanned<String>>,
    listen: Option<Spanned<String>>,
    relay: Option<Spanned<String>>,
    tcp: Option<u16>,
    page: Option<Spanned<String>>,
    v4: Spanned<String>,
    v6: Spanned<String>,
    state: Option<PathBuf>,
}

/// `[relay]`, or one of several `[[relay]]`: a relay on a host of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Apart {
    public: Spanned<String>,
    public6: Option<Spanned<String>>,
    key: Spanned<String>,
}

/// `[as]`: an authority on a host of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signing {
    key: Spanned<String>,
    signer: Spanned<String>,
}

impl Settings {
    /// Reads a configuration.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = read_text(path, NamedBy::Configuration).with_context(|| shown.to_string())?;
        Self::from_text(path, &text)
            .map_err(|wrong| anyhow!(wrong.placed(&shown.to_string(), &text)))
    }

    fn from_text(path: &Path, text: &str) -> std::result::Result<Self, Wrong> {
        let File { cloud, relay, authority, etcd, groups, allow, test } = toml::from_str(text)?;
        let public = endpoint(&cloud.public)?;
        let any = any_like(cloud.public6.as_ref().map(address).transpose()?.unwrap_or(public.ip()));
        let others = others(&cloud, &relay)?;
        let listen = cloud.listen.as_ref().map(endpoint).transpose()?;
        let listen = listen.unwrap_or(SocketAddr::new(any, public.port()));
        let ports = cloud.relay.as_ref().map(ports).transpose()?.unwrap_or(RELAY);
        let authority = authority.as_ref().map(signing).transpose()?;
        let network = network([&cloud.domain, &cloud.v4, &cloud.v6], authority.is_some())?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let state = folder.join(cloud.state.unwrap_or_else(|| PathBuf::from("cloud")));
        let policy = Written::of_tables(&groups, &allow, &test)?;
        let (relays, relay, tcp) = (relays(&relay)?, (public.ip(), ports), cloud.tcp);
        let page = cloud.page.as_ref().map(of_loopback).transpose()?;
        let also = directories::also(&cloud.also)?;
        let etcd = etcd.as_ref().map(directories::Etcd::servers).transpose()?;
        Ok(Self {
            network,
            relay,
            policy,
            public,
            listen,
            also,
            etcd,
            tcp,
            page,
            others,
            relays,
            authority,
            state,
        })
    }

    /// The control socket.
    pub(crate) fn control(&self) -> PathBuf {
        self.state.join("control.sock")
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.state.join("cloud.redb")
    }

    /// The key of the tunnel.
    pub(crate) fn key(&self) -> Result<PrivateKey> {
        secret(&self.state.join("cloud.key"))
    }

    /// The signer of identities, where the authority is of this process.
    pub(crate) fn signer(&self) -> Result<Signer> {
        signer(&self.state)
    }

    /// The URL by which devices join, where the authority is of this process.
    pub(crate) fn url(&self, key: &PrivateKey, signer: SignerKey) -> JoinUrl {
        let places = std::iter::once(&self.public).chain(&self.also);
        let endpoints = places.map(ToString::to_string).collect();
        JoinUrl { endpoints, key: key.public(), signer }
    }
}

/// Reads a table, or an array of tables. The places of what is in them stay known.
fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<Apart>, D::Error> {
    struct Tables;
    impl<'de> Visitor<'de> for Tables {
        type Value = Vec<Apart>;

        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("a table, or an array of tables")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Vec<Apart>, A::Error> {
            Apart::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, all: A) -> std::result::Result<Vec<Apart>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(all))
        }
    }
    from.deserialize_any(Tables)
}

/// What relays have besides an IPv4 address.
fn others(cloud: &Cloud, apart: &[Apart]) -> std::result::Result<Vec<(IpAddr, IpAddr)>, Wrong> {
    let own = (endpoint(&cloud.public)?.ip(), &cloud.public6);
    let mut others = Vec::new();
    for relay in apart {
        others.push((address(&relay.public)?, &relay.public6));
    }
    let given = others.into_iter().chain([own]);
    let both = given.filter_map(|(at, other)| other.as_ref().map(|other| (at, other)));
    both.map(|(at, other)| match (at, address(other)?) {
        (IpAddr::V4(_), IpAddr::V6(v6)) => Ok((at, v6.into())),
        _ => Err(wrong(other, "an IPv6 address, besides an IPv4 one in public")),
    })
    .collect()
}

/// Relays on hosts of their own: few, and no two of one address or key.
fn relays(given: &[Apart]) -> std::result::Result<Vec<(IpAddr, PublicKey)>, Wrong> {
    let mut all: Vec<(IpAddr, PublicKey)> = Vec::new();
    for relay in given {
        let (at, key) = (address(&relay.public)?, key(&relay.key)?);
        if all.len() >= RELAYS {
            return Err(wrong(&relay.public, "no more than 4 relays"));
        }
        if all.iter().any(|(other, _)| *other == at) {
            return Err(wrong(&relay.public, "an address that no other relay has"));
        }
        if all.iter().any(|(_, other)| *other == key) {
            return Err(wrong(&relay.key, "a key that no other relay has"));
        }
        all.push((at, key));
    }
    Ok(all)
}

/// The signer whose seed is in a folder.
pub(crate) fn signer(state: &Path) -> Result<Signer> {
    let seed: PrivateKey = secret(&state.join(SIGNER))?;
    Signer::of_seed(seed.as_bytes()).with_context(|| format!("{SIGNER}: expected a seed"))
}

/// The domain of a network, and its pools of addresses.
pub(crate) fn network(
    [name, v4, v6]: [&Spanned<String>; 3],
    is_apart: bool,
) -> std::result::Result<Network, Wrong> {
    let pool = pool_v4(v4)?;
    if is_apart && pool.1 > 29 {
        let expected = "an IPv4 prefix of 8 to 29 bits, as the authority has addresses of its own";
        return Err(wrong(v4, expected));
    }
    Ok(Network { domain: domain(name)?, v4: pool, v6: pool_v6(v6)?, is_apart })
}

fn signing(table: &Signing) -> std::result::Result<(PublicKey, SignerKey), Wrong> {
    let expected = "the key of a signer, 43 characters of base64 for URLs";
    let signer = table.signer.get_ref().parse().map_err(|_| wrong(&table.signer, expected))?;
    Ok((key(&table.key)?, signer))
}

/// All addresses of this host that are of the family of an address.
pub(crate) fn any_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

pub(crate) fn address(text: &Spanned<String>) -> std::result::Result<IpAddr, Wrong> {
    text.get_ref().parse().map_err(|_| wrong(text, "an address, such as \"203.0.113.2\""))
}

pub(crate) fn key(text: &Spanned<String>) -> std::result::Result<PublicKey, Wrong> {
    text.get_ref().parse().map_err(|_| wrong(text, "a public key of 44 characters"))
}

pub(crate) fn endpoint(text: &Spanned<String>) -> std::result::Result<SocketAddr, Wrong> {
    let read = text.get_ref().parse().ok().filter(|at: &SocketAddr| at.port() != 0);
    read.ok_or_else(|| wrong(text, "ADDRESS:PORT or [ADDRESS]:PORT"))
}

/// An address of this host alone: the page asks nobody who they are.
fn of_loopback(text: &Spanned<String>) -> std::result::Result<SocketAddr, Wrong> {
    let at = endpoint(text).ok().filter(|at| at.ip().is_loopback());
    at.ok_or_else(|| wrong(text, "an address of loopback with a port, such as \"127.0.0.1:8080\""))
}

fn domain(text: &Spanned<String>) -> std::result::Result<String, Wrong> {
    let name = text.get_ref();
    let is_domain = name.len() <= 180 && name.split('.').all(|it| it.parse::<Name>().is_ok());
    let domain = is_domain.then(|| name.to_ascii_lowercase());
    domain.ok_or_else(|| wrong(text, "a domain of at most 180 bytes, such as home.internal"))
}

pub(crate) fn ports(text: &Spanned<String>) -> std::result::Result<RangeInclusive<u16>, Wrong> {
    let read = text.get_ref().split_once('-').and_then(|(first, last)| {
        let range = first.parse::<u16>().ok()?..=last.parse().ok()?;
        (*range.start() != 0 && (1..=MOST_PORTS).contains(&range.len())).then_some(range)
    });
    read.ok_or_else(|| wrong(text, "1 to 512 UDP ports, such as \"52000-52031\""))
}

fn pool_v4(text: &Spanned<String>) -> std::result::Result<(Ipv4Addr, u8), Wrong> {
    let expected = "an IPv4 prefix of 8 to 30 bits, such as \"10.99.0.0/16\"";
    match Prefix::parse(text.get_ref()).map(|it| (it.addr, it.bits)) {
        Some((IpAddr::V4(address), bits @ 8..=30)) => Ok((address, bits)),
        _ => Err(wrong(text, expected)),
    }
}

fn pool_v6(text: &Spanned<String>) -> std::result::Result<(Ipv6Addr, u8), Wrong> {
    let expected = "an IPv6 prefix of 16 to 96 bits, such as \"fd12:3456:789a::/64\"";
    match Prefix::parse(text.get_ref()).map(|it| (it.addr, it.bits)) {
        Some((IpAddr::V6(address), bits @ 16..=96)) => Ok((address, bits)),
        _ => Err(wrong(text, expected)),
    }
}

/// The key that a file holds.
pub(crate) fn secret(path: &Path) -> Result<PrivateKey> {
    let shown = path.display().to_string();
    let opened = file::open(path, NamedBy::Configuration).with_context(|| shown.clone())?;
    let mode = opened.metadata().with_context(|| shown.clone())?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        bail!("{shown}: its mode is {mode:04o}: others may reach the key; chmod 600 {shown}");
    }
    let text = file::bounded(opened, 256).with_context(|| shown.clone())?;
    let text = Zeroizing::new(String::from_utf8(text).unwrap_or_default());
    text.trim().parse().with_context(|| shown)
}

/// Writes a first configuration, and its keys, that of the signer only where it `signs`; returns that of the tunnel.
pub(crate) fn init(
    path: &Path,
    public: SocketAddr,
    domain: &str,
    signs: bool,
) -> Result<PublicKey> {
    let entropy = &mut SystemEntropy::new();
    let mut id = [0; 5];
    entropy.fill(&mut id)?;
    let [a, b, c, d, e] = id;
    // What the servers write is not among what the owner writes.
    let state = if path.starts_with("/etc") { "/var/lib/tamis-cloud" } else { "cloud" };
    let text = format!(
        "# The servers of an overlay with names: tamis-cloud all {shown} (docs/cloud.md)\n\
         [cloud]\n\
         domain = \"{domain}\"            # names of nodes are below it\n\
         public = \"{public}\"      # where nodes reach this host; a UDP port\n\
         # public6 = \"2001:db8::1\"         # the same host, for nodes without IPv4\n\
         relay = \"{first}-{last}\"            # UDP ports of the relay at the same address\n\
         # tcp = 443                        # a TCP port, for nodes whose UDP is blocked\n\
         # page = \"127.0.0.1:8080\"           # a page of nodes, paths, policy and log, for browsers on this host\n\
         v4 = \"10.99.0.0/16\"               # virtual addresses of nodes\n\
         v6 = \"fd{a:02x}:{b:02x}{c:02x}:{d:02x}{e:02x}::/64\"\n\
         state = \"{state}\"                  # folder for keys, database and control socket\n\
         \n\
         # Who may resolve and reach whom; what no line allows is denied.\n\
         [groups]\n\
         # mobile = [\"laptop\", \"phone\"]\n\
         \n\
         # [[allow]]\n\
         # from = [\"mobile\"]             # groups, names of nodes, or \"*\" for all\n\
         # to = [\"nas\"]\n\
         # ports = [\"tcp/22\", \"icmp\"]    # without ports: everything\n\
         # [[allow]]\n\
         # between = [\"nas\", \"backup\"]   # both ways\n",
        shown = path.display(),
        first = RELAY.start(),
        last = RELAY.end(),
    );
    let Wrong { what, .. } = match Settings::from_text(path, &text) {
        Err(wrong) => wrong,
        Ok(settings) => {
            write_config(path, &text, &settings.state)?;
            if signs {
                write_key(&settings.state.join(SIGNER), entropy)?;
            }
            return write_key(&settings.state.join("cloud.key"), entropy);
        }
    };
    bail!("{what}")
}

/// Writes a first configuration, and makes the folder for what its servers write.
pub(crate) fn write_config(path: &Path, text: &str, state: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new()
        .recursive(true)
        .create(folder)
        .with_context(|| folder.display().to_string())?;
    // Nothing in it is secret, and the servers' own user reads it.
    write_new(path, text, 0o644)?;
    let shown = || state.display().to_string();
    DirBuilder::new().recursive(true).mode(0o700).create(state).with_context(shown)
}

/// Makes a key, and writes it to a file; returns its public half.
pub(crate) fn write_key(path: &Path, entropy: &mut dyn Entropy) -> Result<PublicKey> {
    let key = PrivateKey::generate(entropy)?;
    write_new(path, &format!("{}\n", *key.text()), 0o600)?;
    Ok(key.public())
}

fn write_new(path: &Path, text: &str, mode: u32) -> Result<()> {
    let shown = || path.display().to_string();
    let mut file = create_anew_or_refuse(path, mode).with_context(shown)?;
    file.write_all(text.as_bytes()).with_context(shown)
}

/// A new file; what is there is not written over.
fn create_anew_or_refuse(path: &Path, mode: u32) -> std::io::Result<std::fs::File> {
    match path.try_exists()? {
        true => Err(std::io::ErrorKind::AlreadyExists.into()),
        false => create_anew(path, mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[cloud]\ndomain = \"home.internal\"\npublic = \"192.0.2.1:51900\"\n\
                        v4 = \"10.99.0.0/16\"\nv6 = \"fd00::/64\"\n";

    fn read(text: &str) -> std::result::Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cloud.toml");
        std::fs::write(&path, text).unwrap();
        Settings::read(&path)
            .map_err(|error| error.to_string().replace(&format!("{}:", path.display()), ""))
    }

    #[test]
    fn the_first_configuration_is_read_with_its_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/cloud.toml");
        init(&path, "192.0.2.1:51900".parse().unwrap(), "home.internal", true).unwrap();
        let settings = Settings::read(&path).unwrap();
        assert!(settings.policy.policy.lines.is_empty());
        let (key, signer) = (settings.key().unwrap(), settings.signer().unwrap());
        let url = settings.url(&key, signer.key()).to_string();
        assert_eq!(url.parse::<JoinUrl>().unwrap().key, key.public());
        let again = init(&path, "192.0.2.1:51900".parse().unwrap(), "home.internal", true);
        assert!(again.is_err(), "nothing is written over");
    }

    #[test]
    fn what_is_refused_is_refused_with_its_place() {
        let more = |text: &str| read(&format!("{GOOD}{text}")).map(drop).unwrap_err();
        assert!(read(GOOD).is_ok());
        let found = read(&GOOD.replace("10.99.0.0/16", "10.99.0.0/31")).map(drop).unwrap_err();
        assert_eq!(
            found,
            "4:6: expected an IPv4 prefix of 8 to 30 bits, such as \"10.99.0.0/16\", \
             found \"10.99.0.0/31\""
        );
        let both = read(&format!("{GOOD}public6 = \"2001:db8::1\"\n")).unwrap();
        assert_eq!(both.others, [(both.public.ip(), "2001:db8::1".parse().unwrap())]);
        assert_eq!(both.listen.to_string(), "[::]:51900");
        assert_eq!(
            more("public6 = \"192.0.2.9\"\n"),
            "6:11: expected an IPv6 address, besides an IPv4 one in public, found \"192.0.2.9\""
        );
        assert_eq!(
            more("relay = \"1-0\"\n"),
            "6:9: expected 1 to 512 UDP ports, such as \"52000-52031\", found \"1-0\""
        );
        let relay = |key: &str| format!("[relay]\npublic = \"192.0.2.2\"\nkey = \"{key}\"\n");
        assert_eq!(
            more(&relay("AAAA")),
            "8:7: expected a public key of 44 characters, found \"AAAA\""
        );
        let apart = read(&format!("{GOOD}{}", relay(&PublicKey::new([3; 32]).to_string())));
        let place = |number: u8| (IpAddr::from([192, 0, 2, number]), PublicKey::new([number; 32]));
        assert_eq!(apart.unwrap().relays, [(place(2).0, PublicKey::new([3; 32]))]);
        let several = |numbers: &[u8]| {
            let table = |number: &u8| {
                let (at, key) = place(*number);
                format!("[[relay]]\npublic = \"{at}\"\nkey = \"{key}\"\n")
            };
            GOOD.to_owned() + &numbers.iter().map(table).collect::<String>()
        };
        assert_eq!(read(&several(&[2, 3])).unwrap().relays, [place(2), place(3)]);
        assert_eq!(
            read(&several(&[2, 3, 2])).map(drop).unwrap_err(),
            "13:10: expected an address that no other relay has, found \"192.0.2.2\""
        );
        let five = read(&several(&[2, 3, 4, 5, 6])).map(drop).unwrap_err();
        assert_eq!(five, "19:10: expected no more than 4 relays, found \"192.0.2.6\"");
        let signing = |signer: &str| {
            let key = PublicKey::new([3; 32]);
            format!("[as]\nkey = \"{key}\"\nsigner = \"{signer}\"\n")
        };
        assert_eq!(
            more(&signing("AAAA")),
            "8:10: expected the key of a signer, 43 characters of base64 for URLs, found \"AAAA\""
        );
        let signer = Signer::of_seed(&[1; 32]).unwrap().key();
        let small = GOOD.replace("10.99.0.0/16", "10.99.0.0/30") + &signing(&signer.to_string());
        let expected = "4:6: expected an IPv4 prefix of 8 to 29 bits, as the authority has addresses \
                        of its own, found \"10.99.0.0/30\"";
        assert_eq!(read(&small).map(drop).unwrap_err(), expected);
        assert!(read(&small.replace("/30", "/29")).unwrap().network.is_apart);
        let page = "expected an address of loopback with a port, such as \"127.0.0.1:8080\"";
        for at in ["192.0.2.1:80", "0.0.0.0:80", "[::]:80", "localhost:80", "127.0.0.1:0"] {
            let line = format!("page = \"{at}\"\n");
            assert_eq!(more(&line), format!("6:8: {page}, found \"{at}\""));
        }
        assert!(read(&format!("{GOOD}page = \"[::1]:80\"\n")).unwrap().page.is_some());
        assert!(more("colour = 1\n").starts_with("6:1: unknown field `colour`"));
        assert_eq!(
            more("[[allow]]\nbetween = [\"a\"]\n"),
            "7:11: expected two groups, or names of nodes, or \"*\" for all nodes"
        );
        assert_eq!(
            more("[groups]\ng = [\"a b\"]\n"),
            "7:6: expected the name of a node, found \"a b\""
        );
    }
}
