//! `[cloud]`: the network that a tunnel is a node of.

use std::net::{Ipv4Addr, SocketAddr};

use super::file::list;
use super::{CloudSettings, TunnelSettings, endpoint};
use dataplane::keys::{Section, Value, Wrong, string};

const CLOUD: [&str; 7] = ["name", "domain", "directory", "also", "authority", "signer", "tcp"];

pub(super) fn read(value: &Value<'_>, tunnel: &TunnelSettings) -> Result<CloudSettings, Wrong> {
    let section = Section::new("[cloud]", value, &CLOUD, &[])?;
    if !tunnel.addresses.iter().any(|(address, _)| address.is_ipv4()) {
        let what =
            "expected an IPv4 address in [tunnel] address, from which a node speaks to its cloud";
        return Err((section.span.0..section.span.1, what.to_owned()));
    }
    let name = section.need("name")?;
    let domain = section.need("domain")?;
    let directory = section.need("directory")?;
    let signer = section.need("signer")?;
    let wrong = |value: &Value<'_>, what: &str| {
        let found = string(value).unwrap_or_default();
        (value.span(), format!("expected {what}, found \"{found}\""))
    };
    let address = |value: &Value<'_>, what: &str| {
        string(value)?.parse::<Ipv4Addr>().map_err(|_| wrong(value, what))
    };
    let authority = section.get("authority");
    let authority =
        authority.map(|it| address(it, "the authority's IPv4 address inside the tunnel"));
    let also = list(&section, "also", "a list of ADDRESS:PORT", |value| {
        let at = string(value)?.parse().ok().filter(|at: &SocketAddr| at.port() != 0);
        at.ok_or_else(|| wrong(value, "ADDRESS:PORT or [ADDRESS]:PORT"))
    })?;
    let tcp = section.number("tcp", u16::MAX.into())?.filter(|port| *port != 0);
    Ok(CloudSettings {
        name: string(name)?.parse().map_err(|_| wrong(name, "the name of a node"))?,
        domain: match string(domain)? {
            text if endpoint::is_name(text) => text.to_ascii_lowercase(),
            _ => return Err(wrong(domain, "a domain")),
        },
        directory: address(directory, "the directory's IPv4 address inside the tunnel")?,
        also,
        authority: authority.transpose()?,
        tcp: tcp.map(|port| port as u16),
        signer: string(signer)?
            .parse()
            .map_err(|_| wrong(signer, "the key of a signer, 43 characters of base64 for URLs"))?,
    })
}
