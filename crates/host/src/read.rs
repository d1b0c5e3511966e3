//! [`Host::read`]: the host out of the files of a folder, each what a program printed on it.

use std::fmt;
use std::sync::Arc;

use crate::routes::Routes;
use crate::text::TextError;
use crate::{
    Addresses, Fingerprints, Groups, Host, Kernel, Links, Policy, Sysctl, Xfrm, neighbours,
};

/// Why a file of a host cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    /// The file's name.
    pub file: &'static str,
    /// The place, and what should have been there.
    pub source: TextError,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.source)
    }
}

impl std::error::Error for HostError {}

impl Host {
    /// Returns the host that files of these names describe; `file` gives the text of an existing file: `routes.txt`
    /// (`ip -4 route show table all; ip -6 route show table all`), `rule.txt` (`ip -4 rule; ip -6 rule`), `links.txt`
    /// (`ip -d -o link`), `addresses.txt` (`ip -o addr`), `neigh.txt` (`ip neigh`), `maddr.txt` (`ip maddr`),
    /// `bridge.txt` (`bridge -o link`), `sysctl.txt` (`sysctl net.ipv4 net.ipv6 net.bridge net.netfilter`), `uname.txt`
    /// (`uname -srv`), `xfrm.txt` (`ip xfrm policy`), `pf.os` (what `nfnl_osf -f` loads).
    /// # Errors
    /// A file that is not what its program prints, with the place.
    pub fn read(mut file: impl FnMut(&str) -> Option<String>) -> Result<Self, HostError> {
        // One without a policy is blank.
        let xfrm = parsed("xfrm.txt", &mut file, Xfrm::parse)?;
        let mut text = |name: &str| file(name).filter(|text| !text.trim().is_empty());
        let mut host = Self {
            routes: parsed("routes.txt", &mut text, Routes::parse)?,
            policy: parsed("rule.txt", &mut text, Policy::parse)?,
            links: parsed("links.txt", &mut text, Links::parse)?.unwrap_or_default(),
            assigned: parsed("addresses.txt", &mut text, Addresses::parse)?,
            neighbours: parsed("neigh.txt", &mut text, neighbours::parse_neighbours)?
                .unwrap_or_default(),
            groups: parsed("maddr.txt", &mut text, Groups::parse)?,
            ports: parsed("bridge.txt", &mut text, neighbours::parse_ports)?.unwrap_or_default(),
            sysctl: parsed("sysctl.txt", &mut text, Sysctl::parse)?,
            kernel: parsed("uname.txt", &mut text, Kernel::parse_uname)?,
            fingerprints: parsed("pf.os", &mut text, Fingerprints::parse)?.map(Arc::new),
            xfrm,
            ..Self::default()
        };
        host.bridge = host.only_bridge();
        Ok(host)
    }

    /// The bridge, if there is one and no other.
    fn only_bridge(&self) -> Option<String> {
        let is_bridge = |link: &&crate::Link| link.kind == crate::LinkKind::Bridge;
        let links = self.links.all().iter().filter(is_bridge).map(|link| &*link.name);
        let ports = self.ports.iter().filter_map(|port| port.bridge.as_deref());
        crate::addresses::only(links.chain(ports)).flatten().map(str::to_owned)
    }
}

fn parsed<T>(
    name: &'static str,
    text: &mut impl FnMut(&str) -> Option<String>,
    parse: impl Fn(&str) -> Result<T, TextError>,
) -> Result<Option<T>, HostError> {
    let read = text(name).map(|text| parse(&text)).transpose();
    read.map_err(|source| HostError { file: name, source })
}
