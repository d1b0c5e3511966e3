//! Keys and configurations of the three hosts, made on the fly.

use std::fs;
use std::net::Ipv4Addr;

use ::tunnel::{PrivateKey, PublicKey, SystemEntropy};
use anyhow::{Context, Result};

use super::super::keys::write_secret;
use super::world::World;

/// A host: what it is called, and its addresses on the network that all share and in the tunnel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host {
    pub(super) name: &'static str,
    pub(super) outer: Ipv4Addr,
    pub(super) inner: Ipv4Addr,
}

/// Each a peer of the others.
pub(super) const HOSTS: [Host; 3] = [host("office", 1), host("home", 2), host("laptop", 3)];

/// What the office blocks, of IPv4 and IPv6.
pub(super) const RULE: &str = "-A FORWARD -i office -p tcp --dport 22 -j DROP";

/// The UDP port that all listen at.
const PORT: u16 = 51900;

const fn host(name: &'static str, number: u8) -> Host {
    let (outer, inner) = (Ipv4Addr::new(192, 0, 2, number), Ipv4Addr::new(10, 77, 0, number));
    Host { name, outer, inner }
}

/// Writes all that they need.
pub(super) fn write(world: &World) -> Result<()> {
    let entropy = &mut SystemEntropy::new();
    let mut keys = Vec::new();
    for host in HOSTS {
        let key = PrivateKey::generate(entropy)?;
        write_secret(world.file(&format!("{}.key", host.name)).as_ref(), &key.text())?;
        keys.push((host, key.public()));
    }
    for (host, _) in &keys {
        let file = world.file(&format!("{}.toml", host.name));
        fs::write(&file, toml(*host, &keys)).context(file)?;
    }
    let chains = ":INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]";
    let rules = format!("*filter\n{chains}\n{RULE}\nCOMMIT\n");
    ["office.rules", "office.rules6"]
        .into_iter()
        .try_for_each(|name| fs::write(world.file(name), &rules).context(name))
}

fn toml(own: Host, keys: &[(Host, PublicKey)]) -> String {
    let Host { name, inner, .. } = own;
    let mut text = format!(
        "[tunnel]\nname = \"{name}\"\nkey = \"{name}.key\"\naddress = [\"{inner}/24\"]\nlisten = {PORT}\n\
         control = \"{name}.sock\"\n"
    );
    if name == "office" {
        text += "rules = \"office.rules\"\nrules6 = \"office.rules6\"\n";
    }
    for (Host { name, outer, inner }, key) in keys.iter().filter(|(host, _)| host.name != own.name)
    {
        text += &format!(
            "\n[[peer]]\nname = \"{name}\"\nkey = \"{key}\"\nendpoint = \"{outer}:{PORT}\"\n\
             allowed = [\"{inner}/32\"]\n"
        );
    }
    text
}
