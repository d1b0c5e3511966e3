//! [`Authority`]: what it knows, and what each part of it makes of that.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tunnel::{Entropy, NoEntropy, PublicKey};

use super::apart::Apart;
use crate::effect::{Effect, Now};
use crate::identity::{Claims, Identity, Signer};
use crate::limits;
use crate::lines::Lines;
use crate::message::{Body, Message, Transaction};
use crate::name::Name;
use crate::network::{Network, guest_address};
use crate::record::{Device, Invitation, Record};

/// The authority of one network.
pub struct Authority {
    pub(super) network: Network,
    pub(super) signer: Signer,
    /// Keys of servers in the tunnel, the authority's own included: no device has them.
    pub(super) servers: BTreeSet<PublicKey>,
    /// The number of this start.
    pub(super) started: u64,
    pub(super) entropy: Box<dyn Entropy>,
    pub(super) devices: BTreeMap<Name, Device>,
    pub(super) by_key: HashMap<PublicKey, Name>,
    /// Numbers of virtual addresses that names have.
    pub(super) numbers: BTreeSet<u32>,
    pub(super) invitations: HashMap<PublicKey, Invitation>,
    /// A directory that is another process.
    pub(super) directory: Option<Apart>,
    pub(super) effects: VecDeque<Effect>,
    pub(super) noted: Lines,
}

impl Authority {
    /// An authority that continues from what was kept.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn new(
        network: Network,
        (signer, own): (Signer, PublicKey),
        kept: Vec<Record>,
        mut entropy: Box<dyn Entropy>,
    ) -> Result<Self, NoEntropy> {
        let mut started = [0; 8];
        entropy.fill(&mut started)?;
        let mut authority = Self {
            network,
            signer,
            servers: [own].into(),
            started: u64::from_le_bytes(started),
            entropy,
            devices: BTreeMap::new(),
            by_key: HashMap::new(),
            numbers: BTreeSet::new(),
            invitations: HashMap::new(),
            directory: None,
            effects: VecDeque::new(),
            noted: Lines::default(),
        };
        kept.into_iter().for_each(|record| authority.restore(record));
        Ok(authority)
    }

    fn restore(&mut self, record: Record) {
        match record {
            Record::Device(device) => {
                self.numbers.insert(device.number);
                if !device.revoked {
                    self.by_key.insert(device.key, device.name.clone());
                    self.admit(&device);
                }
                self.devices.insert(device.name.clone(), device);
            }
            Record::Invitation(invitation) => {
                self.admit_guest(invitation.key);
                self.invitations.insert(invitation.key, invitation);
            }
            // The rest is a directory's.
            Record::Identity(_) | Record::Expired(_) | Record::Path(..) | Record::Parted(_) => {}
        }
    }

    /// A server of the network has this key in the tunnel: no device may have it.
    pub fn reserve(&mut self, key: PublicKey) {
        self.servers.insert(key);
    }

    /// The next thing to be done.
    pub fn take(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// All devices, by name, with their virtual addresses.
    pub fn list(&self) -> impl Iterator<Item = (&Device, (Ipv4Addr, Ipv6Addr))> {
        self.devices.values().map(|device| (device, self.network.addresses(device.number)))
    }

    /// Takes a message from the peer that has this key; returns whether it is for an authority.
    pub fn receive(&mut self, from: &PublicKey, bytes: &[u8], now: Now) -> bool {
        self.noted.expire(now.nanos);
        let message = Message::parse(bytes);
        if self.invitations.contains_key(from) {
            match message {
                Ok(Message { transaction, body: Body::Enrol { key } }) => {
                    self.enrol(*from, transaction, key, now);
                }
                _ => self.note(format!("the one-time key {from} was used for another message")),
            }
            return true;
        }
        if self.is_directory(from) {
            match message {
                Ok(Message { transaction, body: Body::Follows(said) }) => {
                    self.directory_says(said, transaction, now);
                }
                _ => self.note("the directory sent a message that is not a directory's".to_owned()),
            }
            return true;
        }
        match message {
            Ok(Message { transaction, body: Body::Renew }) => {
                self.renew(from, transaction, now);
                true
            }
            _ => false,
        }
    }

    /// Does what is due. Every message needs that done before, too.
    pub fn expire(&mut self, now: Now) {
        self.noted.expire(now.nanos);
        self.certify(now);
    }

    /// Forgets one-time keys that have expired: to be called each second.
    pub fn sweep(&mut self, now: Now) {
        let old = self.invitations.values().filter(|it| it.expires <= now.unix);
        let old: Vec<PublicKey> = old.map(|it| it.key).collect();
        for key in old {
            self.invitations.remove(&key);
            self.effects.push_back(Effect::Keep(Record::Expired(key)));
            self.effects.push_back(Effect::Dismiss { key });
        }
        self.miss_directory(now.nanos);
    }

    pub(super) fn admit(&mut self, device: &Device) {
        let (v4, v6) = self.network.addresses(device.number);
        let addresses = vec![v4.into(), v6.into()];
        self.effects.push_back(Effect::Admit { key: device.key, addresses });
    }

    pub(super) fn admit_guest(&mut self, key: PublicKey) {
        let addresses = vec![guest_address(&key).into()];
        self.effects.push_back(Effect::Admit { key, addresses });
    }

    pub(super) fn identity_of(&self, device: &Device, now: Now) -> Identity {
        let (v4, v6) = self.network.addresses(device.number);
        let expires = now.unix.saturating_add(limits::IDENTITY);
        self.signer.sign(Claims { key: device.key, name: device.name.clone(), v4, v6, expires })
    }

    pub(super) fn send(
        &mut self,
        (to, at): (PublicKey, IpAddr),
        transaction: Transaction,
        body: Body,
    ) {
        let message = Message { transaction, body }.to_bytes();
        self.effects.push_back(Effect::Send { to, at, message });
    }

    /// Logs a line, unless others make too many.
    pub(super) fn note(&mut self, line: String) {
        self.effects.extend(self.noted.admit(line).map(Effect::Note));
    }

    /// Where a directory may be that is another process, and its key.
    pub(super) fn directory_at(&self) -> Option<(Vec<SocketAddr>, PublicKey)> {
        self.directory.as_ref().map(Apart::places)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authority({} devices)", self.devices.len())
    }
}
