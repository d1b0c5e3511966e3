//! Enrolment: one-time keys, the devices that use them, and devices that are revoked.
//!
//! A one-time key is the private key of a guest, a peer of the tunnel that may say one thing: the key that its device will
//! have. So a device is enrolled by the tunnel's own handshake, and nothing of it can be read or replayed.

use tunnel::{NoEntropy, PrivateKey, PublicKey};

use super::state::Authority;
use crate::effect::{Effect, Now};
use crate::limits;
use crate::message::{Body, Membership, Message, Refusal, Transaction};
use crate::name::Name;
use crate::network::guest_address;
use crate::record::{Device, Invitation, Record};

impl Authority {
    /// Makes a one-time key for the node of a name; an enrolled one of this name is replaced once the key is used, and
    /// keeps its addresses.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn invite(&mut self, name: Name, now: Now) -> Result<PrivateKey, NoEntropy> {
        let secret = PrivateKey::generate(&mut *self.entropy)?;
        let expires = now.unix.saturating_add(limits::INVITATION);
        let invitation = Invitation { key: secret.public(), name, expires, used: None };
        self.effects.push_back(Effect::Keep(Record::Invitation(invitation.clone())));
        self.admit_guest(invitation.key);
        self.note(format!("{} was given a one-time key", invitation.name));
        self.invitations.insert(invitation.key, invitation);
        Ok(secret)
    }

    /// A guest says the key that its device will have.
    pub(super) fn enrol(
        &mut self,
        guest: PublicKey,
        transaction: Transaction,
        key: PublicKey,
        now: Now,
    ) {
        let answer = match self.admission(&guest, key, now) {
            Ok(device) => {
                let membership = self.membership(&device, now);
                Body::Enrolled(Box::new(membership))
            }
            Err(why) => Body::Refused(why),
        };
        self.send((guest, guest_address(&guest).into()), transaction, answer);
    }

    /// Refuses a message of a guest, as nothing can be kept now; returns whether it is one's.
    pub fn declines(&mut self, from: &PublicKey, bytes: &[u8]) -> bool {
        let is_guest = self.invitations.contains_key(from);
        if let (true, Ok(Message { transaction, .. })) = (is_guest, Message::parse(bytes)) {
            let to = (*from, guest_address(from).into());
            self.send(to, transaction, Body::Refused(Refusal::Unkept));
        }
        is_guest
    }

    /// The device that a guest becomes, or became before.
    fn admission(
        &mut self,
        guest: &PublicKey,
        key: PublicKey,
        now: Now,
    ) -> Result<Device, Refusal> {
        let Some(invitation) = self.invitations.get(guest).cloned() else {
            return Err(Refusal::Expired);
        };
        let known = self.devices.get(&invitation.name).cloned();
        match (invitation.used, known) {
            // The answer was lost.
            (Some(used), Some(device)) if used == key && device.key == key && !device.revoked => {
                return Ok(device);
            }
            (Some(_), _) => {
                let name = &invitation.name;
                self.note(format!("alarm: the one-time key of {name} was used a second time"));
                return Err(Refusal::Used);
            }
            _ => {}
        }
        if invitation.expires <= now.unix {
            return Err(Refusal::Expired);
        }
        let owner = self.by_key.get(&key);
        let is_taken = owner.is_some_and(|owner| *owner != invitation.name);
        let is_server = self.servers.contains(&key);
        if is_taken || is_server || self.invitations.contains_key(&key) {
            return Err(Refusal::KeyTaken);
        }
        self.make(invitation, key)
    }

    fn make(&mut self, invitation: Invitation, key: PublicKey) -> Result<Device, Refusal> {
        let name = invitation.name.clone();
        let before = self.devices.get(&name).cloned();
        let number = match &before {
            Some(device) => device.number,
            None => self.free_number().ok_or(Refusal::Full)?,
        };
        self.numbers.insert(number);
        // The key of a revoked node may be another node's by now.
        if let Some(before) = before.filter(|before| before.key != key && !before.revoked) {
            self.leave(&before);
        }
        let device = Device { name: name.clone(), key, number, revoked: false };
        let used = Invitation { used: Some(key), ..invitation };
        self.effects.push_back(Effect::Keep(Record::Device(device.clone())));
        self.effects.push_back(Effect::Keep(Record::Invitation(used.clone())));
        self.admit(&device);
        self.note(format!("{name} was enrolled, with the key {key}"));
        self.by_key.insert(key, name.clone());
        self.devices.insert(name, device.clone());
        self.invitations.insert(used.key, used);
        self.tell(&device);
        Ok(device)
    }

    /// The first number that no name has.
    fn free_number(&self) -> Option<u32> {
        let mut taken = self.numbers.iter().copied().peekable();
        self.network.numbers().find(|number| taken.next_if_eq(number).is_none())
    }

    fn membership(&self, device: &Device, now: Now) -> Membership {
        Membership {
            identity: self.identity_of(device, now),
            domain: self.network.domain.clone(),
            bits: (self.network.v4.1, self.network.v6.1),
            directory: self.network.directory(),
            authority: self.network.authority(),
            directory_at: self.directory_at(),
        }
    }

    /// Revokes a node: it gets no other identity, and the directory makes its peers forget it. Returns whether there was one.
    pub fn revoke(&mut self, name: &Name) -> bool {
        let Some(device) = self.devices.get_mut(name).filter(|device| !device.revoked) else {
            return false;
        };
        device.revoked = true;
        let device = device.clone();
        self.effects.push_back(Effect::Keep(Record::Device(device.clone())));
        self.leave(&device);
        self.note(format!("{name} was revoked"));
        self.tell(&device);
        true
    }

    /// The key of a device is nobody's any more.
    fn leave(&mut self, device: &Device) {
        self.by_key.remove(&device.key);
        self.effects.push_back(Effect::Dismiss { key: device.key });
    }
}
