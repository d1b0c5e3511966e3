//! The servers of a town: a cloud whose directory, authority and relay are one process, and relays on hosts of their own; what is
//! on their disks, and what becomes of both when they are killed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use overlay::limits::SECOND;
use overlay::{
    Authority, Carrier, Device, Directory, Effect, Name, Now, Outpost, PORT, Pair, Policy, Record,
    Relay, Sources,
};
use tunnel::{Config, Offer, PeerConfig, Prefix, PublicKey, Tunnel};

use crate::world::{directory_key, network, relay, relay_of, secret, seeded, signer};

/// Where the cloud is: by IPv4, as nodes know it.
pub(crate) const CLOUD: ([u8; 4], u16) = ([203, 0, 113, 1], 51_900);
/// Where it is by IPv6.
pub(crate) const CLOUD6: ([u16; 8], u16) = ([0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1], 51_900);
/// Seconds after 1970 when a town begins.
pub(crate) const BEGAN: u64 = 1_800_000_000;

/// What time it is.
pub(crate) fn time(now: u64) -> Now {
    Now { nanos: now, unix: BEGAN + now / SECOND }
}

/// An end without peers, which begins at that time.
pub(crate) fn end(key: u64, now: u64) -> Tunnel {
    let config = Config {
        key: secret(key),
        offer: Offer::CHACHA,
        started: now,
        started_unix: BEGAN * SECOND + now,
        mtu: 1_420,
    };
    Tunnel::new(config, Box::new(seeded(key ^ 5 ^ now << 12))).unwrap()
}

pub(crate) fn whole(address: IpAddr) -> Prefix {
    Prefix::new(address, if address.is_ipv4() { 32 } else { 128 }).unwrap()
}

/// A device of a town: its number among the keys, and its name.
pub(crate) fn device((number, name): (u64, Name)) -> Device {
    let key = secret(number).public();
    Device { name, key, number: number as u32 + 1, revoked: false }
}

/// The directory, the authority and the relay of one process.
pub(crate) struct Cloud {
    pub(crate) carrier: Carrier,
    pub(crate) directory: Directory,
    pub(crate) authority: Authority,
    pub(crate) relay: Relay,
    /// What is to go from a port of the relay, though nobody asked for it.
    pub(crate) strays: Vec<(u16, SocketAddr)>,
    /// What is on its disk, besides the devices.
    identities: BTreeMap<Name, Record>,
    paths: BTreeMap<Pair, u16>,
    /// It has ordered something of a relay apart, which was not asked since.
    pub(crate) has_ordered: bool,
    /// It was killed.
    pub(crate) is_down: bool,
    pub(crate) notes: Vec<String>,
    policy: Policy,
    names: Vec<Name>,
}

impl Cloud {
    pub(crate) fn new(names: &[Name], policy: Policy, now: u64) -> Self {
        Self::started((names.to_vec(), policy), BTreeMap::new(), BTreeMap::new(), now)
    }

    fn started(
        (names, policy): (Vec<Name>, Policy),
        identities: BTreeMap<Name, Record>,
        paths: BTreeMap<Pair, u16>,
        now: u64,
    ) -> Self {
        let devices: Vec<Record> =
            (1..).zip(names.clone()).map(device).map(Record::Device).collect();
        let of_paths = paths.iter().map(|(pair, port)| Record::Path(pair.clone(), *port));
        let kept = devices.iter().chain(identities.values()).cloned().chain(of_paths).collect();
        let (keys, entropy) = ((signer().key(), directory_key()), &mut seeded(3 ^ now << 12));
        let directory =
            Directory::new(network(), relay(), policy.clone(), keys, kept, entropy).unwrap();
        let (keys, entropy) = ((signer(), directory_key()), Box::new(seeded(4 ^ now << 12)));
        let authority = Authority::new(network(), keys, devices, entropy).unwrap();
        Self {
            carrier: Carrier::new(end(1_000, now)),
            directory,
            authority,
            relay: Relay::default(),
            strays: Vec::new(),
            identities,
            paths,
            has_ordered: false,
            is_down: false,
            notes: Vec::new(),
            policy,
            names,
        }
    }

    /// Begins again with what is on its disk: calls nodes where they were, and forwards from where they sent.
    pub(crate) fn restart(&mut self, relays: &mut [Apart], now: u64) {
        let tunnel = self.carrier.tunnel();
        let status = tunnel.peers().filter_map(|peer| tunnel.status(peer));
        let places: Vec<_> = status.filter_map(|it| it.endpoint.map(|at| (it.key, at))).collect();
        let sources: Vec<_> = self.relay.paths().map(|path| (path.pair, path.sources)).collect();
        let (identities, paths) = (self.identities.clone(), self.paths.clone());
        let notes = std::mem::take(&mut self.notes);
        *self = Self::started((self.names.clone(), self.policy.clone()), identities, paths, now);
        self.notes = notes;
        self.name_relays(relays);
        self.settle(relays, now);
        let tunnel = self.carrier.tunnel_mut();
        for (key, place) in places {
            let Some(peer) = tunnel.find(&key) else { continue };
            tunnel.set_endpoint(peer, place);
            tunnel.call(peer, now);
        }
        sources.iter().for_each(|(pair, bound)| self.relay.restore(pair, *bound));
    }

    /// Tells the directory where relays are.
    pub(crate) fn name_relays(&mut self, relays: &[Apart]) {
        for relay in relays {
            self.directory.relay_apart(relay.at, relay.key);
            self.directory.relay_also_at(relay.at, relay.at6);
        }
        self.directory.relay_also_at(CLOUD.0.into(), CLOUD6.0.into());
    }

    /// Carries out what is wanted.
    pub(crate) fn settle(&mut self, relays: &mut [Apart], now: u64) {
        let own = SocketAddr::new(network().directory().0.into(), PORT);
        while let Some(effect) = self.authority.take().or_else(|| self.directory.take()) {
            match effect {
                Effect::Admit { key, addresses } => {
                    let allowed = addresses.into_iter().map(whole).collect();
                    let peer = PeerConfig { allowed, ..PeerConfig::new(key) };
                    let _ = self.carrier.tunnel_mut().add_peer(&peer);
                }
                Effect::Send { to, message, .. } if relays.iter().any(|it| it.key == to) => {
                    let relay = relays.iter_mut().find(|it| it.key == to);
                    let outpost = relay.and_then(|relay| relay.outpost.as_mut());
                    outpost.into_iter().for_each(|outpost| outpost.receive(&message, now));
                    self.has_ordered = true;
                }
                Effect::Send { at, message, .. } => {
                    self.carrier.send(own, SocketAddr::new(at, PORT), &message, now);
                }
                Effect::Join { pair, keys, port } => {
                    self.relay.join(&pair, keys, port);
                    self.paths.insert(pair, port);
                }
                Effect::Part { pair } => {
                    self.relay.part(&pair);
                    self.paths.remove(&pair);
                }
                Effect::Tell(device) => self.directory.learn(device),
                Effect::Stray { port, to } => self.strays.push((port, to)),
                Effect::Keep(record) => {
                    let Record::Identity(identity) = &record else { continue };
                    self.identities.insert(identity.claims.name.clone(), record);
                }
                Effect::Note(line) => self.notes.push(line),
                Effect::Dismiss { .. } => unreachable!(),
            }
        }
    }

    /// Takes a datagram, as `tamis-cloud` does; returns where the relay sends it on, if that is whose it is.
    pub(crate) fn arrived(
        &mut self,
        port: u16,
        from: SocketAddr,
        bytes: &mut [u8],
        now: u64,
    ) -> Option<SocketAddr> {
        let time = time(now);
        if port != CLOUD.1 {
            if let Some(peer) = self.carrier.tunnel_mut().probed_aside(bytes, from, now) {
                let key = self.carrier.tunnel().status(peer)?.key;
                self.directory.probed(&key, port, from, time);
                return None;
            }
            let tunnel = self.carrier.tunnel();
            return self
                .relay
                .forward(port, from, bytes, now, |key| tunnel.status(tunnel.find(key)?)?.endpoint);
        }
        let came = self.carrier.receive(bytes, from, now);
        if let overlay::Came::Session(peer) = came {
            let key = self.carrier.tunnel().status(peer)?.key;
            self.directory.met(&key, time);
            self.directory.heard(&key, from, time);
        }
        let it = came.message()?;
        let key = self.carrier.tunnel().status(it.peer)?.key;
        let payload = &bytes[it.payload];
        if !self.authority.receive(&key, payload, time) {
            self.directory.receive(&key, payload, time);
        }
        self.directory.heard(&key, from, time);
        None
    }

    /// Does what is done each second.
    pub(crate) fn sweep(&mut self, now: u64) {
        self.directory.expire(time(now));
        self.directory.sweep(time(now));
        self.directory.recall(time(now));
    }
}

/// A relay on a host of its own.
pub(crate) struct Apart {
    pub(crate) at: IpAddr,
    pub(crate) at6: IpAddr,
    pub(crate) key: PublicKey,
    /// Nothing while it is killed.
    pub(crate) outpost: Option<Outpost>,
    /// What is on its disk.
    kept: Vec<(Pair, Sources)>,
    /// How long a datagram takes from a node to it.
    pub(crate) takes: u64,
}

impl Apart {
    pub(crate) fn new(number: usize, takes: u64) -> Self {
        let ((at, key), entropy) = (relay_of(number), &mut seeded(number as u64 ^ 77));
        let outpost = Outpost::new(relay().1, Vec::new(), entropy).unwrap();
        let at6 = [0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 2 + number as u16].into();
        Self { at, at6, key, outpost: Some(outpost), kept: Vec::new(), takes }
    }

    pub(crate) fn is_at(&self, place: SocketAddr) -> bool {
        place.ip() == self.at || place.ip() == self.at6
    }

    /// It is killed.
    pub(crate) fn kill(&mut self) {
        let outpost = self.outpost.take();
        let paths = outpost.iter().flat_map(Outpost::paths);
        self.kept = paths.map(|path| (path.pair, path.sources)).collect();
    }

    /// It begins again, with what is on its disk.
    pub(crate) fn restart(&mut self, now: u64) {
        let (kept, entropy) = (self.kept.clone(), &mut seeded(now));
        self.outpost = Some(Outpost::new(relay().1, kept, entropy).unwrap());
    }
}
