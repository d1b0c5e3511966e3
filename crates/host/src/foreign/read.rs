//! Reads listings of rulesets, in JSON or text, into [`ForeignChain`]s.

use std::collections::HashMap;

use super::chain::{ForeignChain, ForeignHook};
use super::listing::{Listing, Name};
use super::{json, text};
use crate::text::TextError;

impl ForeignChain {
    /// The base chains of what `nft -j list ruleset` or `nft list ruleset` prints that may do anything, in its order.
    ///
    /// # Errors
    /// The text is neither, with the place.
    pub fn parse(text: &str) -> Result<Vec<Self>, TextError> {
        let mut listing = Listing::default();
        if text.trim_start().starts_with('{') {
            json::read(text, &mut listing)?;
        } else {
            text::read(text, &mut listing)?;
        }
        Ok(listing.base_chains())
    }

    /// Gives chains of devices the devices that another listing of the same ruleset names: nft 1.0 leaves them out of
    /// JSON.
    ///
    /// # Errors
    /// The text is no listing, with the place.
    pub fn take_devices(chains: &mut [Self], text: &str) -> Result<(), TextError> {
        let of_device =
            |chain: &Self| matches!(chain.hook, ForeignHook::Ingress | ForeignHook::Egress);
        if !chains.iter().any(|chain| of_device(chain) && chain.devices.is_empty()) {
            return Ok(());
        }
        let named = Self::parse(text)?.into_iter();
        let mut devices: HashMap<Name, Vec<Box<str>>> =
            named.map(|chain| ((chain.family, chain.table, chain.name), chain.devices)).collect();
        for chain in chains.iter_mut().filter(|chain| of_device(chain)) {
            let name = (chain.family, chain.table.clone(), chain.name.clone());
            chain.devices = devices.remove(&name).unwrap_or_default();
        }
        Ok(())
    }
}
