//! [`Settings`]: the configuration of a relay on a host of its own, in TOML, and how a first one is written.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use anyhow::{Context, Result, anyhow, bail};
use pktio::file::{NamedBy, read_text};
use serde::Deserialize;
use toml::Spanned;
use tunnel::{PrivateKey, PublicKey, SystemEntropy};

use crate::config::{RELAY, address, any_like, ports, secret, write_config, write_key};
use crate::directories::Nms;
use crate::policy::Wrong;

/// Most threads that forward.
const MOST_WORKERS: usize = 64;
/// The greatest rate of a path.
const MOST_MBIT: u64 = 1_000_000;

/// A configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where nodes reach this host.
    pub(crate) public: IpAddr,
    /// Where the relay receives.
    pub(crate) listen: IpAddr,
    pub(crate) ports: RangeInclusive<u16>,
    /// The TCP port of nodes whose UDP is blocked.
    pub(crate) tcp: Option<u16>,
    /// How many threads forward.
    pub(crate) workers: usize,
    /// Bytes that a path may forward each second, both ways together; 0 for any number.
    pub(crate) rate: u64,
    /// Where the directory may be, and its key.
    pub(crate) nms: (Vec<SocketAddr>, PublicKey),
    state: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    relay: Relay,
    nms: Nms,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Relay {
    public: Spanned<String>,
    listen: Option<Spanned<String>>,
    ports: Option<Spanned<String>>,
    tcp: Option<u16>,
    workers: Option<Spanned<Workers>>,
    path_mbit: Option<Spanned<u64>>,
    state: Option<PathBuf>,
}

/// A number of threads, or "auto" for as many as there are cores.
#[derive(Deserialize)]
#[serde(untagged)]
enum Workers {
    Number(i64),
    Word(String),
}

impl Settings {
    /// Reads a configuration.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let text = read_text(path, NamedBy::Configuration).with_context(|| shown.clone())?;
        Self::from_text(path, &text).map_err(|wrong| anyhow!(wrong.placed(&shown, &text)))
    }

    fn from_text(path: &Path, text: &str) -> std::result::Result<Self, Wrong> {
        let File { relay, nms } = toml::from_str(text)?;
        let public = address(&relay.public)?;
        let listen = relay.listen.as_ref().map(address).transpose()?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Ok(Self {
            public,
            listen: listen.unwrap_or(any_like(public)),
            ports: relay.ports.as_ref().map(ports).transpose()?.unwrap_or(RELAY),
            tcp: relay.tcp,
            workers: relay.workers.as_ref().map_or(Ok(1), workers)?,
            rate: relay.path_mbit.as_ref().map_or(Ok(0), rate)?,
            nms: nms.read()?,
            state: folder.join(relay.state.unwrap_or_else(|| PathBuf::from("trs"))),
        })
    }

    /// The control socket.
    pub(crate) fn control(&self) -> PathBuf {
        self.state.join("trs.sock")
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.state.join("trs.redb")
    }

    fn key_file(&self) -> PathBuf {
        self.state.join("trs.key")
    }

    /// The key of the tunnel.
    pub(crate) fn key(&self) -> Result<PrivateKey> {
        secret(&self.key_file())
    }
}

fn workers(given: &Spanned<Workers>) -> std::result::Result<usize, Wrong> {
    let read = match given.get_ref() {
        Workers::Number(number) => usize::try_from(*number).ok().filter(|it| *it <= MOST_WORKERS),
        Workers::Word(word) if word == "auto" => {
            Some(available_parallelism().map_or(1, NonZero::get).min(MOST_WORKERS))
        }
        Workers::Word(_) => None,
    };
    read.filter(|it| *it > 0).ok_or_else(|| Wrong {
        at: given.span().start,
        what: format!("expected a whole number from 1 to {MOST_WORKERS}, or \"auto\""),
    })
}

/// Mbit/s in bytes per second.
fn rate(given: &Spanned<u64>) -> std::result::Result<u64, Wrong> {
    let read = (1..=MOST_MBIT).contains(given.get_ref()).then_some(*given.get_ref() * 125_000);
    read.ok_or_else(|| Wrong {
        at: given.span().start,
        what: format!("expected Mbit/s, a whole number from 1 to {MOST_MBIT}"),
    })
}

/// Writes a first configuration, and its key, whose public half it returns.
pub(crate) fn init(
    path: &Path,
    public: IpAddr,
    (nms, nms_key): (SocketAddr, PublicKey),
) -> Result<PublicKey> {
    let state = if path.starts_with("/etc") { "/var/lib/tamis-cloud" } else { "trs" };
    let (first, last) = (RELAY.start(), RELAY.end());
    let text = format!(
        "# The relay of an overlay with names: tamis-cloud trs {shown} (docs/cloud.md)\n\
         [relay]\n\
         public = \"{public}\"           # where nodes reach this host\n\
         ports = \"{first}-{last}\"           # its UDP ports, as in `relay` of the directory's [cloud]\n\
         state = \"{state}\"                 # folder for its key and database\n\
         \n\
         # The directory.\n\
         [nms]\n\
         public = \"{nms}\"\n\
         key = \"{nms_key}\"\n",
        shown = path.display(),
    );
    let settings = match Settings::from_text(path, &text) {
        Ok(settings) => settings,
        Err(Wrong { what, .. }) => bail!("{what}"),
    };
    write_config(path, &text, &settings.state)?;
    write_key(&settings.key_file(), &mut SystemEntropy::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_configuration_is_read_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trs.toml");
        let nms = ("192.0.2.1:51900".parse().unwrap(), PublicKey::new([3; 32]));
        let public = "192.0.2.2".parse().unwrap();
        let own = init(&path, public, nms).unwrap();
        let settings = Settings::read(&path).unwrap();
        assert_eq!((settings.public, &settings.nms), (public, &(vec![nms.0], nms.1)));
        assert_eq!(settings.key().unwrap().public(), own);
        assert!(init(&path, public, nms).is_err(), "nothing is written over");
    }

    #[test]
    fn what_is_refused_is_refused_with_its_place() {
        let good = format!(
            "[relay]\npublic = \"192.0.2.2\"\n[nms]\npublic = \"192.0.2.1:51900\"\nkey = \"{}\"\n",
            PublicKey::new([3; 32])
        );
        let read = |text: &str| {
            let wrong = Settings::from_text(Path::new("trs.toml"), text);
            wrong.map_err(|wrong| wrong.placed("trs.toml", text))
        };
        assert!(read(&good).is_ok());
        let found = read(&good.replace("192.0.2.2", "host")).unwrap_err();
        let expected =
            "trs.toml:2:10: expected an address, such as \"203.0.113.2\", found \"host\"";
        assert_eq!(found, expected);
        let found = read(&good.replace("key = \"", "key = \"x")).unwrap_err();
        assert!(found.starts_with("trs.toml:5:7: expected a public key"), "{found}");
        for (line, expected) in [
            ("workers = 0", "3:11: expected a whole number from 1 to 64, or \"auto\""),
            ("workers = \"all\"", "3:11: expected a whole number from 1 to 64, or \"auto\""),
            ("path_mbit = 0", "3:13: expected Mbit/s, a whole number from 1 to 1000000"),
        ] {
            let found = read(&good.replace("[nms]", &format!("{line}\n[nms]"))).unwrap_err();
            assert_eq!(found, format!("trs.toml:{expected}"));
        }
        let settings = read(&good.replace("[nms]", "workers = \"auto\"\npath_mbit = 8\n[nms]"));
        let settings = settings.unwrap();
        assert!(settings.workers > 0 && settings.rate == 1_000_000);
        let settings = read(&good).unwrap();
        assert_eq!((settings.workers, settings.rate), (1, 0));
        let found = read(&good.replace("[nms]", "colour = 1\n[nms]")).unwrap_err();
        assert!(found.starts_with("trs.toml:3:1: unknown field `colour`"), "{found}");
    }
}
