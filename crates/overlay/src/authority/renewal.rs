//! Renewals: a node asks for an identity that holds for longer, and gets it as long as it is not revoked.

use tunnel::PublicKey;

use super::state::Authority;
use crate::effect::Now;
use crate::message::{Body, Transaction};

impl Authority {
    /// A node asks for its identity. The tunnel has proven whose key it is; nothing is kept of it, so it may ask again.
    pub(super) fn renew(&mut self, from: &PublicKey, transaction: Transaction, now: Now) {
        let device = self.by_key.get(from).and_then(|name| self.devices.get(name)).cloned();
        let Some(device) = device.filter(|device| !device.revoked) else { return };
        let identity = Box::new(self.identity_of(&device, now));
        let at = identity.claims.v4.into();
        self.send((device.key, at), transaction, Body::Renewed { identity, time: now.unix });
    }
}
