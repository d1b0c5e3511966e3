//! A cloud and nodes of it, each behind routers: what is said, sealed, relayed and sent directly, over a network in which
//! each datagram takes its time, and which loses, repeats and reorders by its weather. Nothing is decided here but which way a
//! datagram takes, and every packet that a node sends for another one is counted until it is there or dropped.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use overlay::limits::SECOND;
use overlay::{Came, PORT};
use tunnel::Path;

use crate::clouded::{Apart, CLOUD, CLOUD6, Cloud, time};
use crate::home::{Counted, Home, Routers, name_of};
use crate::world::{network, policy};

pub(crate) const MILLISECOND: u64 = SECOND / 1_000;
/// Nobody does anything sooner than that after the last time.
const STEP: u64 = 5 * MILLISECOND;
/// Time between two looks of the cloud for what is due.
const SWEEP: u64 = SECOND / 10;
/// Bytes of a packet of a program, which no message has.
const PACKET: usize = 1_200;

/// How long a datagram takes from each node to the cloud, and from one to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distances {
    pub(crate) cloud: [u64; 2],
    pub(crate) between: u64,
}

/// How bad the network is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    /// Datagrams of a thousand that are lost, and that arrive twice.
    pub(crate) lost: u32,
    pub(crate) twice: u32,
    /// By how much datagrams are late, at most.
    pub(crate) late: u64,
}

/// What became of the packets of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    /// Datagrams that the network made twice of.
    pub(crate) twice: u64,
    pub(crate) arrived: u64,
    /// Dropped, by whom and why.
    pub(crate) dropped: BTreeMap<String, u64>,
}

impl Counts {
    fn drop(&mut self, why: impl Into<String>, packets: u64) {
        if packets > 0 {
            *self.dropped.entry(why.into()).or_default() += packets;
        }
    }
}

fn is_cloud(at: SocketAddr) -> bool {
    at.ip() == IpAddr::from(CLOUD.0) || at.ip() == IpAddr::from(CLOUD6.0)
}

/// A place at that one of two addresses that has the family of what is sent to.
fn of_family((v4, v6): (IpAddr, IpAddr), port: u16, to: SocketAddr) -> SocketAddr {
    SocketAddr::new(if to.is_ipv4() { v4 } else { v6 }, port)
}

type Flight = Reverse<(u64, u64, SocketAddr, SocketAddr, Vec<u8>)>;

/// All of it.
pub(crate) struct Town {
    pub(crate) cloud: Cloud,
    pub(crate) relays: Vec<Apart>,
    /// The nodes; nothing of a node that is away.
    pub(crate) homes: Vec<Option<Home>>,
    /// The nodes by their addresses outside.
    places: HashMap<IpAddr, usize>,
    /// How long a datagram takes from each node to the cloud, and from one node to another one.
    distances: (Vec<u64>, u64),
    pub(crate) now: u64,
    sweep_at: u64,
    /// Nothing passes between the nodes without the relay: none of them, or these.
    pub(crate) is_cut: bool,
    pub(crate) cuts: HashSet<[usize; 2]>,
    pub(crate) weather: Weather,
    random: fastrand::Rng,
    flights: BinaryHeap<Flight>,
    launched: u64,
    sent: u64,
    pub(crate) arrived: HashSet<u64>,
    pub(crate) counts: Counts,
    /// What tunnels have counted that are there no more; messages that their nodes sent, and packets that were never sealed.
    gone: Counted,
    gone_said: u64,
    gone_unsealed: u64,
    /// Datagrams that relays dropped by the town's count, and what relays counted that were killed.
    relay_drops: (u64, u64),
    /// Datagrams that went from one node to the other without the relay.
    pub(crate) direct: u64,
    /// How often a node had something to do again at once.
    pub(crate) spins: u64,
}

impl Town {
    pub(crate) fn new(routers: [Routers; 2], distances: Distances) -> Self {
        Self::apart(routers, distances, &[])
    }

    /// One with relays on hosts of their own, to which datagrams take so long.
    pub(crate) fn apart(routers: [Routers; 2], distances: Distances, relays: &[u64]) -> Self {
        let Distances { cloud, between } = distances;
        Self::of(&routers, (cloud.to_vec(), between), relays, &[[0, 1]], 0)
    }

    /// One with many nodes, of which these pairs may reach each other.
    pub(crate) fn of(
        routers: &[Routers],
        distances: (Vec<u64>, u64),
        relays: &[u64],
        pairs: &[[usize; 2]],
        seed: u64,
    ) -> Self {
        let names: Vec<_> = (0..routers.len()).map(name_of).collect();
        let pairs = pairs.iter().map(|pair| pair.map(|side| names[side].as_str()));
        let policy = policy(&pairs.collect::<Vec<_>>());
        let homes =
            routers.iter().enumerate().map(|(side, kinds)| Home::new(side, kinds, 0, SECOND));
        let mut town = Self {
            cloud: Cloud::new(&names, policy, SECOND),
            relays: relays.iter().enumerate().map(|(at, takes)| Apart::new(at, *takes)).collect(),
            homes: homes.map(Some).collect(),
            places: HashMap::new(),
            distances,
            now: SECOND,
            sweep_at: 0,
            is_cut: false,
            cuts: HashSet::new(),
            weather: Weather::default(),
            random: fastrand::Rng::with_seed(seed),
            flights: BinaryHeap::new(),
            launched: 0,
            sent: 0,
            arrived: HashSet::new(),
            counts: Counts::default(),
            gone: Counted::default(),
            gone_said: 0,
            gone_unsealed: 0,
            relay_drops: (0, 0),
            direct: 0,
            spins: 0,
        };
        town.cloud.name_relays(&town.relays);
        town.cloud.settle(&mut town.relays, SECOND);
        (0..town.homes.len()).for_each(|side| town.find_places(side));
        town
    }

    fn find_places(&mut self, side: usize) {
        self.places.retain(|_, of| *of != side);
        let outside = self.homes[side].iter().flat_map(Home::outside);
        self.places.extend(outside.map(|at| (at, side)));
    }

    /// A node ends.
    pub(crate) fn leave(&mut self, side: usize) {
        let Some(home) = self.homes[side].take() else { return };
        self.gone.add(home.counted());
        self.gone_said += home.said;
        self.gone_unsealed += home.carrier.unsent() + home.carrier.waiting() as u64;
        self.find_places(side);
    }

    /// A node begins, behind these routers.
    pub(crate) fn join(&mut self, side: usize, kinds: Routers, moves: u16) {
        self.leave(side);
        self.homes[side] = Some(Home::new(side, kinds, moves, self.now));
        self.find_places(side);
    }

    /// A node is behind other routers from now on.
    pub(crate) fn move_to(&mut self, side: usize, kinds: Routers, moves: u16) {
        self.homes[side].iter_mut().for_each(|home| home.move_to(kinds, moves));
        self.find_places(side);
    }

    /// A host falls asleep, or wakes.
    pub(crate) fn sleep(&mut self, side: usize, is_asleep: bool) {
        if let Some(home) = &mut self.homes[side] {
            home.is_asleep = is_asleep;
            home.look();
        }
    }

    /// A relay is killed.
    pub(crate) fn kill_relay(&mut self, number: usize) {
        if let Some(outpost) = &self.relays[number].outpost {
            self.relay_drops.1 += outpost.forwarding().counts().1;
        }
        self.relays[number].kill();
    }

    /// A relay begins again, with what is on its disk.
    pub(crate) fn restart_relay(&mut self, number: usize) {
        self.relays[number].restart(self.now);
    }

    /// A killed cloud begins again.
    pub(crate) fn restart_cloud(&mut self) {
        self.relay_drops.1 += self.cloud.relay.counts().1;
        self.cloud.restart(&mut self.relays, self.now);
    }

    pub(crate) fn home(&self, side: usize) -> &Home {
        self.homes[side].as_ref().unwrap()
    }

    /// The relay to which a node sends what is for the other one, if it does not send directly.
    pub(crate) fn relay(&self, side: usize) -> Option<usize> {
        let home = self.home(side);
        let endpoint = home.carrier.tunnel().status(home.peer(1 - side)?)?.endpoint?;
        self.relays.iter().position(|relay| relay.is_at(endpoint))
    }

    /// A node asks for the other one.
    pub(crate) fn ask(&mut self, side: usize) {
        self.ask_for(side, 1 - side);
    }

    /// A node asks for another one.
    pub(crate) fn ask_for(&mut self, side: usize, other: usize) {
        let now = self.now;
        let Some(home) = &mut self.homes[side] else { return };
        home.node.resolve(&name_of(other), now);
        self.flush(side);
    }

    /// After how many nanoseconds of silence a node sends keepalives.
    pub(crate) fn keep(&self, side: usize) -> u64 {
        self.home(side).keep
    }

    /// How a node reaches the other one, if it knows it.
    pub(crate) fn path(&self, side: usize) -> Option<Path> {
        self.path_to(side, 1 - side)
    }

    /// How a node reaches another one, if it knows it.
    pub(crate) fn path_to(&self, side: usize, other: usize) -> Option<Path> {
        let home = self.homes[side].as_ref()?;
        home.carrier.tunnel().status(home.peer(other)?)?.path
    }

    fn launch(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let is_packet = u64::from(bytes.len() > PACKET);
        let of = |at: SocketAddr| self.relays.iter().find(|relay| relay.is_at(at));
        let relay = of(from).or(of(to)).map(|relay| relay.takes);
        let is_direct = !is_cloud(from) && !is_cloud(to) && relay.is_none();
        self.direct += u64::from(is_direct);
        let sides = [from, to].map(|at| self.places.get(&at.ip()).copied());
        let is_between = |cut: &[usize; 2]| cut.iter().all(|side| sides.contains(&Some(*side)));
        if is_direct && (self.is_cut || self.cuts.iter().any(is_between)) {
            return self.counts.drop("path cut", is_packet);
        }
        let far = if is_cloud(from) { sides[1] } else { sides[0] };
        let takes = match (relay, is_direct, far) {
            (Some(takes), ..) => takes,
            (_, true, _) | (_, _, None) => self.distances.1,
            (_, false, Some(side)) => self.distances.0[side],
        };
        let Weather { lost, twice, late } = self.weather;
        let copies = 1 + u64::from(self.random.u32(..1_000) < twice);
        self.counts.twice += is_packet * (copies - 1);
        for _ in 0..copies {
            if self.random.u32(..1_000) < lost {
                self.counts.drop("lost", is_packet);
                continue;
            }
            let at = self.now + takes + self.random.u64(..=late);
            self.launched += 1;
            self.flights.push(Reverse((at, self.launched, from, to, bytes.clone())));
        }
    }

    fn flush(&mut self, side: usize) {
        let now = self.now;
        let Some(home) = &mut self.homes[side] else { return };
        home.act(now);
        let mut launched = Vec::new();
        while let Some((to, bytes)) = home.carrier.take() {
            match home.out(to, now) {
                Some(from) => launched.push((from, to, bytes)),
                None => self.counts.drop("no such family", u64::from(bytes.len() > PACKET)),
            }
        }
        home.look();
        launched.into_iter().for_each(|(from, to, bytes)| self.launch(from, to, bytes));
    }

    fn flush_cloud(&mut self) {
        self.cloud.settle(&mut self.relays, self.now);
        for (port, to) in std::mem::take(&mut self.cloud.strays) {
            self.launch(of_family((CLOUD.0.into(), CLOUD6.0.into()), port, to), to, vec![0]);
        }
        while let Some((to, bytes)) = self.cloud.carrier.take() {
            let from = of_family((CLOUD.0.into(), CLOUD6.0.into()), CLOUD.1, to);
            self.launch(from, to, bytes);
        }
    }

    /// A relay has forwarded a datagram, or dropped it.
    fn relayed(&mut self, at: SocketAddr, next: Option<SocketAddr>, bytes: Vec<u8>) {
        match next {
            Some(next) => {
                let apart = self.relays.iter().find(|relay| relay.is_at(at));
                let both = (CLOUD.0.into(), CLOUD6.0.into());
                let both = apart.map_or(both, |relay| (relay.at, relay.at6));
                self.launch(of_family(both, at.port(), next), next, bytes);
            }
            None => {
                self.relay_drops.0 += 1;
                self.counts.drop("relay", u64::from(bytes.len() > PACKET));
            }
        }
    }

    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, mut bytes: Vec<u8>) {
        let (now, is_packet) = (self.now, u64::from(bytes.len() > PACKET));
        if is_cloud(to) {
            if self.cloud.is_down {
                return self.counts.drop("cloud down", is_packet);
            }
            let before = self.cloud.relay.counts();
            let next = self.cloud.arrived(to.port(), from, &mut bytes, now);
            if self.cloud.relay.counts() != before {
                self.relayed(to, next, bytes);
            }
            return self.flush_cloud();
        }
        if let Some(relay) = self.relays.iter_mut().find(|relay| relay.is_at(to)) {
            let Some(outpost) = &mut relay.outpost else {
                return self.counts.drop("relay down", is_packet);
            };
            let next = outpost.forward(to.port(), from, &bytes, now);
            return self.relayed(to, next, bytes);
        }
        let Some(side) = self.places.get(&to.ip()).copied() else {
            return self.counts.drop("nobody there", is_packet);
        };
        let Some(home) = self.homes[side].as_mut() else {
            return self.counts.drop("nobody there", is_packet);
        };
        if home.is_asleep {
            return self.counts.drop("asleep", is_packet);
        }
        if !home.lets_in(from, to, now) {
            return self.counts.drop("router", is_packet);
        }
        match home.carrier.receive(&mut bytes, from, now) {
            Came::Message(carried) => {
                let payload = &bytes[carried.payload];
                if carried.to.port() == PORT {
                    home.node.receive(payload, now);
                } else {
                    let number = u64::from_le_bytes(payload[..8].try_into().unwrap());
                    self.counts.arrived += 1;
                    assert!(self.arrived.insert(number), "a packet came out twice");
                }
            }
            Came::Dropped(why) => {
                let why = format!("{why:?}");
                let why = why.split('(').next().unwrap_or_default();
                self.counts.drop(format!("tunnel: {why}"), is_packet);
            }
            Came::Nothing | Came::Session(_) => {}
        }
        self.flush(side);
    }

    /// Machines do what is due at this time.
    fn turn(&mut self) {
        let now = self.now;
        for side in 0..self.homes.len() {
            let Some(home) = self.homes[side].as_mut().filter(|home| home.due <= now) else {
                continue;
            };
            home.node.tick(now);
            home.carrier.tick(now);
            self.flush(side);
            self.spins += u64::from(self.homes[side].as_ref().is_some_and(|home| home.due <= now));
        }
        if self.cloud.is_down {
            return;
        }
        self.cloud.carrier.tick(now);
        self.cloud.has_ordered = false;
        for number in 0..self.relays.len() {
            let Apart { key, outpost, .. } = &mut self.relays[number];
            let (key, said) = (*key, outpost.as_mut().and_then(|outpost| outpost.take(now)));
            said.iter().for_each(|said| self.cloud.directory.receive(&key, said, time(now)));
        }
        if self.sweep_at <= now {
            self.sweep_at = now + SWEEP;
            self.cloud.sweep(now);
        }
        self.flush_cloud();
    }

    /// When anybody has something to do next.
    fn due(&self) -> u64 {
        let homes = self.homes.iter().flatten().map(|home| home.due);
        let cloud = match self.cloud.is_down {
            true => u64::MAX,
            // What an order brought about is said at once.
            false if self.cloud.has_ordered => self.now,
            false => self.cloud.carrier.tunnel().next_due().unwrap_or(u64::MAX).min(self.sweep_at),
        };
        homes.chain([cloud]).min().unwrap_or(u64::MAX).max(self.now)
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, nanos: u64) {
        let end = self.now + nanos;
        while self.now < end {
            self.turn();
            // What comes meanwhile may make something due.
            let mut next = (self.now + STEP).max(self.due()).min(end);
            while let Some(Reverse((at, ..))) = self.flights.peek()
                && *at <= next
            {
                let Some(Reverse((at, _, from, to, bytes))) = self.flights.pop() else { break };
                self.now = self.now.max(at);
                self.arrive(from, to, bytes);
                next = next.min(self.now + STEP);
            }
            self.now = next;
        }
    }

    /// A node sends a packet for another one; returns its number.
    pub(crate) fn say(&mut self, side: usize, other: usize) -> u64 {
        let of = |side: usize| SocketAddr::new(network().addresses(side as u32 + 2).0.into(), 7);
        let (now, number) = (self.now, self.sent);
        self.sent += 1;
        self.counts.sent += 1;
        let mut packet = vec![0; PACKET];
        packet[..8].copy_from_slice(&number.to_le_bytes());
        match &mut self.homes[side] {
            Some(home) if !home.is_asleep => {
                home.carrier.send(of(side), of(other), &packet, now);
                self.flush(side);
            }
            // Nobody says it.
            _ => self.counts.sent -= 1,
        }
        number
    }

    /// Sends something from these sides, fifty times a second, for that many hundredths; returns how many packets did not arrive
    /// within a second after that.
    pub(crate) fn speak(&mut self, sides: &[usize], hundredths: u64) -> usize {
        let first = self.sent;
        self.speak_on(sides, hundredths);
        self.wait(SECOND);
        (first..self.sent).filter(|it| !self.arrived.contains(it)).count()
    }

    /// Sends as [`Self::speak`] does, and waits for nothing.
    pub(crate) fn speak_on(&mut self, sides: &[usize], hundredths: u64) {
        for _ in 0..hundredths / 2 {
            for side in sides.iter().copied() {
                self.say(side, 1 - side);
            }
            self.wait(20 * MILLISECOND);
        }
    }

    /// What is not as it should be if every packet is on its way, there, or dropped by somebody who says so.
    pub(crate) fn wrong_counts(&self) -> Vec<String> {
        let homes = || self.homes.iter().flatten();
        let unsealed = homes().map(|it| it.carrier.unsent() + it.carrier.waiting() as u64);
        let unsealed = self.gone_unsealed + unsealed.sum::<u64>();
        let said = self.gone_said + homes().map(|home| home.said).sum::<u64>();
        let flying = self.flights.iter().filter(|flight| flight.0.4.len() > PACKET).count() as u64;
        let mut all = self.gone;
        homes().for_each(|home| all.add(home.counted()));
        let Counts { sent, twice, arrived, dropped } = &self.counts;
        let dropped: u64 = dropped.values().sum();
        let is_up = |relay: &Apart| relay.outpost.as_ref().map(|it| it.forwarding().counts().1);
        let relays =
            self.relays.iter().filter_map(is_up).sum::<u64>() + self.cloud.relay.counts().1;
        let sums = [
            ("packets and messages", sent + said, all.sealed + all.signals + unsealed),
            ("datagrams", all.sealed + twice, arrived + dropped + flying),
            ("opened", *arrived, all.opened),
            ("dropped by relays", self.relay_drops.0, self.relay_drops.1 + relays),
        ];
        let wrong = sums.into_iter().filter(|(_, one, other)| one != other);
        wrong.map(|(what, one, other)| format!("{what}: {one} are not {other}")).collect()
    }
}
