//! [`Forwarding`]: the paths of a relay as its workers see them: which source at which port belongs to a path, and where what it
//! sends goes.
//!
//! Contract: one [`Relay`](crate::Relay) writes, any number of workers read. A worker holds the lock while it looks up a batch
//! ([`Forwarding::read`]), and over no system call. A datagram has one destination or none, so nothing is amplified. Workers count
//! without a lock; what a path may send each second is bounded, if a rate is set, over all workers. A source is found by a
//! secret hash of 64 bits and compared in full.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::limits::{LOOK_SHARES, LOOKS, RATE_BURST, SECOND};

/// Where the two nodes of a path send from.
pub type Sources = [Option<SocketAddr>; 2];

/// Bits of a share's word that count looks; the others are the second.
const LOOK_BITS: u32 = 16;

/// The paths of a relay, shared by its workers.
#[derive(Default)]
pub struct Forwarding {
    slots: RwLock<Slots>,
    /// Bytes that a path may forward each second; 0 for any number.
    rate: AtomicU64,
    /// The looks of the present second for the sources of each share, by a secret hash of an address: a flood from one
    /// address keeps few others out.
    looks: [AtomicU64; LOOK_SHARES as usize],
    shares: RandomState,
    forwarded: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Slots {
    paths: Vec<Slot>,
    /// The path and the side that a source at a port belongs to, by the hash of both: twice the slot, and the side.
    sources: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    state: RandomState,
}

/// A path as workers see it; 0 is the port of none.
#[derive(Default)]
struct Slot {
    port: u16,
    bound: Sources,
    /// When the path's rate has room again.
    free_at: AtomicU64,
    datagrams: AtomicU64,
    bytes: AtomicU64,
}

/// A hasher of what is a hash.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// What becomes of the datagrams of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// They go there, from the port that they arrived at.
    To(SocketAddr),
    /// Their source belongs to no path so far.
    Unknown,
    /// They are dropped: the other node of the path has not sent yet, or the path's rate is used up.
    Dropped,
}

impl Forwarded {
    /// Where they go.
    #[must_use]
    pub fn to(self) -> Option<SocketAddr> {
        match self {
            Self::To(to) => Some(to),
            Self::Unknown | Self::Dropped => None,
        }
    }
}

/// The paths while a batch is looked up.
pub struct Reading<'a> {
    slots: RwLockReadGuard<'a, Slots>,
    of: &'a Forwarding,
    forwarded: u64,
    dropped: u64,
}

impl Forwarding {
    /// Sets the bytes that each path may forward in a second, both ways together; 0 for any number.
    pub fn limit(&self, rate: u64) {
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// Begins to look up a batch.
    pub fn read(&self) -> Reading<'_> {
        // A panic leaves the slots whole.
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        Reading { slots, of: self, forwarded: 0, dropped: 0 }
    }

    /// Whether an unknown source at this address may be looked for now; counts it.
    pub fn may_look(&self, from: IpAddr, now: u64) -> bool {
        let share = self.shares.hash_one(from) % LOOK_SHARES;
        let Some(looks) = self.looks.get(share as usize) else { return false };
        let second = now / SECOND;
        let counted = looks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let is_now = word >> LOOK_BITS == second;
            let count = if is_now { word & ((1 << LOOK_BITS) - 1) } else { 0 };
            (count < LOOKS / LOOK_SHARES).then_some(second << LOOK_BITS | (count + 1))
        });
        counted.is_ok()
    }

    /// Counts datagrams that were dropped.
    pub fn count_dropped(&self, datagrams: u64) {
        self.dropped.fetch_add(datagrams, Ordering::Relaxed);
    }

    /// Counts datagrams as dropped that were to be forwarded, and that the system did not send.
    pub fn count_unsent(&self, datagrams: u64) {
        self.forwarded.fetch_sub(datagrams, Ordering::Relaxed);
        self.count_dropped(datagrams);
    }

    /// Datagrams that were forwarded, and datagrams that were dropped.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.forwarded.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }

    /// Makes a path of this slot, without sources.
    pub(crate) fn join(&self, slot: u32, port: u16) {
        let mut slots = self.write();
        let at = slot as usize;
        if slots.paths.len() <= at {
            slots.paths.resize_with(at + 1, Slot::default);
        }
        slots.paths[at] = Slot { port, ..Slot::default() };
    }

    /// Ends the path of a slot.
    pub(crate) fn part(&self, slot: u32) {
        let mut slots = self.write();
        for side in 0..2 {
            slots.release(slot, side);
        }
        if let Some(path) = slots.paths.get_mut(slot as usize) {
            *path = Slot::default();
        }
    }

    /// Makes this the source of one side of a path, in place of the one before.
    pub(crate) fn bind(&self, slot: u32, side: usize, from: SocketAddr) {
        let mut slots = self.write();
        slots.release(slot, side);
        let Some(path) = slots.paths.get_mut(slot as usize) else { return };
        path.bound[side] = Some(from);
        let port = path.port;
        let hash = slots.hash(port, from);
        // A source that was of another path is not any more.
        if let Some(before) = slots.sources.insert(hash, slot << 1 | side as u32)
            && let Some(path) = slots.paths.get_mut((before >> 1) as usize)
            && before != (slot << 1 | side as u32)
        {
            path.bound[(before & 1) as usize] = None;
        }
    }

    /// The sources of a path, and the datagrams and bytes that it has forwarded.
    pub(crate) fn path(&self, slot: u32) -> (Sources, u64, u64) {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.paths.get(slot as usize).map_or(([None; 2], 0, 0), |path| {
            let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
            (path.bound, count(&path.datagrams), count(&path.bytes))
        })
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slots> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// The secret hash of a source at a port: of as few writes as can be.
    fn hash(&self, port: u16, from: SocketAddr) -> u64 {
        let mut hasher = self.state.build_hasher();
        let ports = u64::from(port) << 48 | u64::from(from.port()) << 32;
        match from {
            SocketAddr::V4(from) => hasher.write_u64(ports | u64::from(from.ip().to_bits())),
            SocketAddr::V6(from) => {
                hasher.write_u64(ports | u64::from(from.scope_id()));
                hasher.write_u128(from.ip().to_bits());
            }
        }
        hasher.finish()
    }

    /// Forgets the source of one side of a path.
    fn release(&mut self, slot: u32, side: usize) {
        let Some(path) = self.paths.get_mut(slot as usize) else { return };
        let Some(before) = path.bound[side].take() else { return };
        let port = path.port;
        let hash = self.hash(port, before);
        if self.sources.get(&hash) == Some(&(slot << 1 | side as u32)) {
            self.sources.remove(&hash);
        }
    }
}

impl Reading<'_> {
    /// Where the datagrams of a message go that arrived at a port from this source; counts them, with their bytes.
    pub fn forward(
        &mut self,
        port: u16,
        from: SocketAddr,
        (datagrams, bytes): (u64, u64),
        now: u64,
    ) -> Forwarded {
        let slots = &*self.slots;
        let found = slots.sources.get(&slots.hash(port, from)).and_then(|found| {
            let (path, side) = (slots.paths.get((found >> 1) as usize)?, (found & 1) as usize);
            (path.port == port && path.bound[side] == Some(from)).then_some((path, side))
        });
        let Some((path, side)) = found else { return Forwarded::Unknown };
        match path.bound[1 - side].filter(|_| path.may_send(&self.of.rate, bytes, now)) {
            Some(to) => {
                path.datagrams.fetch_add(datagrams, Ordering::Relaxed);
                path.bytes.fetch_add(bytes, Ordering::Relaxed);
                self.forwarded += datagrams;
                Forwarded::To(to)
            }
            None => {
                self.dropped += datagrams;
                Forwarded::Dropped
            }
        }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        for (count, all) in [(self.forwarded, &self.of.forwarded), (self.dropped, &self.of.dropped)]
        {
            if count > 0 {
                all.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}

impl Slot {
    /// Whether the path's rate has room for a message; takes it. Whatever the rate is, one message passes after a pause.
    fn may_send(&self, rate: &AtomicU64, bytes: u64, now: u64) -> bool {
        let rate = rate.load(Ordering::Relaxed);
        if rate == 0 {
            return true;
        }
        let cost = bytes.saturating_mul(SECOND) / rate;
        let taken = self.free_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free_at| {
            let free_at = free_at.max(now);
            (free_at - now <= RATE_BURST).then(|| free_at.saturating_add(cost))
        });
        taken.is_ok()
    }
}

impl std::fmt::Debug for Forwarding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (forwarded, dropped) = self.counts();
        write!(f, "Forwarding({forwarded} datagrams forwarded, {dropped} dropped)")
    }
}
