//! Members: what the directory learns of devices from the authority, and of their identities from the nodes themselves.

use tunnel::PublicKey;

use super::state::Directory;
use crate::effect::{Effect, Now};
use crate::identity::{Claims, Identity, NotGenuine};
use crate::name::Name;
use crate::record::{Device, Record};

impl Directory {
    /// Learns from the authority what a device is now. A node that is no longer, or has another key, is no peer of the directory,
    /// which makes its peers forget it.
    pub fn learn(&mut self, device: Device) {
        let before = self.devices.get(&device.name).cloned();
        if before.as_ref() == Some(&device) {
            return;
        }
        if !device.revoked && self.is_server(&device.key) {
            let name = &device.name;
            return self.note(format!("alarm: {name} has the key of a server, and is no node"));
        }
        self.effects.push_back(Effect::Keep(Record::Device(device.clone())));
        if self.authority.is_some() {
            let Device { name, key, revoked, .. } = &device;
            let is = if *revoked { "is revoked" } else { "is a node" };
            self.note(format!("{name}, with the key {key}, {is} by the authority's word"));
        }
        if let Some(before) = before.filter(|before| !before.revoked) {
            self.leave(&before);
        }
        let owner = self.by_key.get(&device.key).and_then(|owner| self.devices.get(owner)).cloned();
        if let Some(owner) = owner.filter(|_| !device.revoked) {
            // It had the key before, as the authority is about to say.
            self.leave(&owner);
            self.devices.remove(&owner.name);
        }
        if !device.revoked {
            self.by_key.insert(device.key, device.name.clone());
            self.admit(&device);
        }
        self.devices.insert(device.name.clone(), device);
    }

    /// Whether a key is that of a server.
    fn is_server(&self, key: &PublicKey) -> bool {
        *key == self.own || self.relay_of(key).is_some() || self.is_authority(key)
    }

    /// Takes a node's key out of the network.
    fn leave(&mut self, device: &Device) {
        self.by_key.remove(&device.key);
        self.identities.remove(&device.name);
        self.present.remove(&device.name);
        self.effects.push_back(Effect::Dismiss { key: device.key });
        for pair in self.paths.of(&device.name) {
            if let Some(other) = pair.other(&device.name).cloned() {
                self.withdraw(&other, &device.name);
            }
            self.part(&pair);
        }
    }

    /// Takes up an identity that was kept, unless another signer signed it, or it is of an earlier key of the node.
    pub(super) fn restore_identity(&mut self, identity: Identity) {
        let is_signed = identity.verify(&self.signer, 0).is_ok();
        if is_signed && self.is_own(&identity.claims) {
            self.identities.insert(identity.claims.name.clone(), identity);
        }
    }

    /// The identity of a node that holds, if there is one: that which it offers, if it is another one, or that which is known.
    pub(super) fn certified(
        &mut self,
        name: &Name,
        offered: Option<Box<Identity>>,
        now: Now,
    ) -> Option<Identity> {
        let unix = self.unix(now);
        if let Some(offered) = offered {
            match offered.verify(&self.signer, unix) {
                Ok(claims) if claims.name != *name || !self.is_own(claims) => {
                    self.note(format!("alarm: {name} offers an identity that is not its own"));
                }
                Ok(_) => self.take_up(*offered),
                Err(NotGenuine::Expired) => {}
                Err(NotGenuine::Forged) => {
                    let what = "that its network's signer has not signed";
                    self.note(format!("alarm: {name} offers an identity {what}"));
                }
            }
        }
        self.identities.get(name).filter(|it| it.claims.expires > unix).cloned()
    }

    /// Takes a genuine identity, if it holds for longer than what is known.
    fn take_up(&mut self, identity: Identity) {
        let Claims { name, expires, .. } = &identity.claims;
        if self.identities.get(name).is_none_or(|held| held.claims.expires < *expires) {
            let record = Record::Identity(Box::new(identity.clone()));
            self.effects.push_back(Effect::Keep(record));
            self.identities.insert(name.clone(), identity);
        }
    }

    /// Whether claims are what is known of a node.
    fn is_own(&self, claims: &Claims) -> bool {
        self.devices.get(&claims.name).is_some_and(|device| {
            let addresses = self.network.addresses(device.number);
            !device.revoked && device.key == claims.key && addresses == (claims.v4, claims.v6)
        })
    }
}
