//! What a host is, as far as its packets depend on it: addresses, routes, and what its own tools print of them.
//!
//! Contract: text becomes a model, a model decides; no files, no clock, no panic whatever the text. What nobody gave
//! is not known, and decides nothing.
#![forbid(unsafe_code)]

mod network;
pub mod routes;
pub mod sighting;

pub use network::Network;

use std::net::IpAddr;

use crate::routes::{Route, Routes};

/// The host as the command line describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// The host's own addresses and networks, as `--local` gives them; `None` when nothing was said.
    pub local: Option<Vec<Network>>,
    /// The host's routes; `None` when nothing was said.
    pub routes: Option<Routes>,
    /// The bridge that the rules stand on, as `--bridge` names it.
    pub bridge: Option<String>,
    /// Addresses of interfaces, as `--addr` gives them.
    pub addresses: Vec<(String, IpAddr)>,
}

impl Host {
    /// Whether an address is one of those that `--local` gives; `None` when nothing was said.
    #[must_use]
    pub fn is_local(&self, addr: IpAddr) -> Option<bool> {
        self.local.as_ref().map(|local| local.iter().any(|network| network.holds(addr)))
    }

    /// The address of an interface: the only one that is given for it, else the only one that the routes name.
    #[must_use]
    pub fn address_of(&self, interface: &str, is_v6: bool) -> Option<IpAddr> {
        let named = self.addresses.iter().filter(|(name, _)| name == interface);
        let given = only(named.map(|(_, addr)| *addr).filter(|addr| addr.is_ipv6() == is_v6));
        let routes = self.routes.iter().flat_map(Routes::all);
        given.unwrap_or_else(|| {
            let own = routes.filter(|route| route.device.as_deref() == Some(interface));
            let addresses = own.filter_map(Route::own_address);
            only(addresses.filter(|addr| addr.is_ipv6() == is_v6)).flatten()
        })
    }
}

/// The only one of several addresses: `None` where there is none at all, `Some(None)` where they differ.
fn only(mut addresses: impl Iterator<Item = IpAddr>) -> Option<Option<IpAddr>> {
    let first = addresses.next()?;
    Some(addresses.all(|other| other == first).then_some(first))
}
