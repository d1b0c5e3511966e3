//! [`Settings`]: the configuration of an authority on a host of its own, in TOML, and how a first one is written.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use overlay::{Network, Signer, SignerKey};
use pktio::file::{NamedBy, read_text};
use serde::Deserialize;
use toml::Spanned;
use tunnel::{PrivateKey, PublicKey, SystemEntropy};

use crate::config::{self, SIGNER, any_like, endpoint, network, secret, write_config, write_key};
use crate::directories::Nms;
use crate::policy::Wrong;

/// A configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) network: Network,
    /// Where devices and nodes reach this host.
    pub(crate) public: SocketAddr,
    /// Where the tunnel receives.
    pub(crate) listen: SocketAddr,
    /// The TCP port of devices and nodes whose UDP is blocked.
    pub(crate) tcp: Option<u16>,
    /// Where the directory may be, and its key.
    pub(crate) nms: (Vec<SocketAddr>, PublicKey),
    state: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "as")]
    authority: Authority,
    nms: Nms,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Authority {
    domain: Spanned<String>,
    public: Spanned<String>,
    listen: Option<Spanned<String>>,
    tcp: Option<u16>,
    v4: Spanned<String>,
    v6: Spanned<String>,
    state: Option<PathBuf>,
}

/// What a first configuration is made of.
#[derive(Debug)]
pub(crate) struct First {
    pub(crate) public: SocketAddr,
    pub(crate) nms: (SocketAddr, PublicKey),
    pub(crate) domain: String,
    pub(crate) v4: String,
    pub(crate) v6: String,
}

impl Settings {
    /// Reads a configuration.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let text = read_text(path, NamedBy::Configuration).with_context(|| shown.clone())?;
        Self::from_text(path, &text).map_err(|wrong| anyhow!(wrong.placed(&shown, &text)))
    }

    fn from_text(path: &Path, text: &str) -> std::result::Result<Self, Wrong> {
        let File { authority, nms } = toml::from_str(text)?;
        let public = endpoint(&authority.public)?;
        let listen = authority.listen.as_ref().map(endpoint).transpose()?;
        let any = SocketAddr::new(any_like(public.ip()), public.port());
        let folder = path.parent().unwrap_or(Path::new("."));
        Ok(Self {
            network: network([&authority.domain, &authority.v4, &authority.v6], true)?,
            public,
            listen: listen.unwrap_or(any),
            tcp: authority.tcp,
            nms: nms.read()?,
            state: folder.join(authority.state.unwrap_or_else(|| PathBuf::from("as"))),
        })
    }

    /// The control socket.
    pub(crate) fn control(&self) -> PathBuf {
        self.state.join("as.sock")
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.state.join("as.redb")
    }

    fn key_file(&self) -> PathBuf {
        self.state.join("as.key")
    }

    /// The key of the tunnel.
    pub(crate) fn key(&self) -> Result<PrivateKey> {
        secret(&self.key_file())
    }

    /// The signer of identities.
    pub(crate) fn signer(&self) -> Result<Signer> {
        config::signer(&self.state)
    }
}

/// Writes a first configuration, and its keys; returns the public halves of that of the tunnel and that of the signer.
pub(crate) fn init(path: &Path, first: &First) -> Result<(PublicKey, SignerKey)> {
    let state = if path.starts_with("/etc") { "/var/lib/tamis-cloud" } else { "as" };
    let First { public, nms: (nms, nms_key), domain, v4, v6 } = first;
    let text = format!(
        "# The authority of an overlay with names: tamis-cloud as {shown} (docs/cloud.md)\n\
         [as]\n\
         public = \"{public}\"      # where devices and nodes reach this host; a UDP port\n\
         domain = \"{domain}\"            # this and the next two as in the directory's [cloud]\n\
         v4 = \"{v4}\"\n\
         v6 = \"{v6}\"\n\
         state = \"{state}\"                  # folder for its keys, database and control socket\n\
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
    let entropy = &mut SystemEntropy::new();
    let key = write_key(&settings.key_file(), entropy)?;
    write_key(&settings.state.join(SIGNER), entropy)?;
    Ok((key, settings.signer()?.key()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> First {
        let nms = ("192.0.2.1:51900".parse().unwrap(), PublicKey::new([3; 32]));
        let [domain, v4, v6] = ["home.internal", "10.99.0.0/16", "fd00::/64"].map(str::to_owned);
        First { public: "192.0.2.3:51900".parse().unwrap(), nms, domain, v4, v6 }
    }

    #[test]
    fn the_first_configuration_is_read_with_its_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("as.toml");
        let (own, signer) = init(&path, &first()).unwrap();
        let settings = Settings::read(&path).unwrap();
        let (at, nms) = first().nms;
        assert_eq!((settings.public, &settings.nms), (first().public, &(vec![at], nms)));
        assert_eq!(settings.key().unwrap().public(), own);
        assert_eq!(settings.signer().unwrap().key(), signer);
        assert_eq!(settings.network.authority().0.to_string(), "10.99.255.254");
        assert!(init(&path, &first()).is_err(), "nothing is written over");
    }

    #[test]
    fn what_is_refused_is_refused_with_its_place() {
        let good = format!(
            "[as]\npublic = \"192.0.2.3:51900\"\ndomain = \"home.internal\"\nv4 = \"10.99.0.0/16\"\n\
             v6 = \"fd00::/64\"\n[nms]\npublic = \"192.0.2.1:51900\"\nkey = \"{}\"\n",
            PublicKey::new([3; 32])
        );
        let read = |text: &str| {
            let wrong = Settings::from_text(Path::new("as.toml"), text);
            wrong.map_err(|wrong| wrong.placed("as.toml", text))
        };
        assert!(read(&good).is_ok());
        let found = read(&good.replace("/16", "/30")).unwrap_err();
        assert!(found.starts_with("as.toml:4:6: expected an IPv4 prefix of 8 to 29"), "{found}");
        let found = read(&good.replace("key = \"", "key = \"x")).unwrap_err();
        assert!(found.starts_with("as.toml:8:7: expected a public key"), "{found}");
        let found = read(&good.replace("[nms]", "colour = 1\n[nms]")).unwrap_err();
        assert!(found.starts_with("as.toml:6:1: unknown field `colour`"), "{found}");
    }
}
