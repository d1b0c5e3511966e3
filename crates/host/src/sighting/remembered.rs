//! What [`Sightings`] remembers: frames ([`Entry`]), and the tables by which they are found.
//!
//! Contract: memory is bounded: [`KEPT`] frames that were taken, and [`REMEMBERED`](super::table::REMEMBERED) of what is
//! not of a frame.

use std::collections::{BTreeMap, VecDeque};

use super::devices::Devices;
use super::frame::{Copied, Left, Sighting, Way};
use super::ports::Ports;
use super::print::{Keys, Print};
use super::proxied::Proxied;
use super::queued::Queued;
use super::table::{KEPT, MOST, Table, clear_full, one_way};

/// No entry.
pub(super) const NONE: u64 = u64::MAX;

/// A frame that is remembered.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) time: u64,
    pub(super) device: u32,
    /// The device that this one feeds with the frame.
    pub(super) upper: Option<u32>,
    pub(super) way: Way,
    pub(super) sighting: Sighting,
    pub(super) left: Option<Left>,
    /// How it left is known, be it told or not.
    pub(super) paired: bool,
    /// That it went out is known from another port alone, which showed it before.
    pub(super) is_guessed: bool,
    /// See [`Seen::quotes_unseen`].
    pub(super) quotes_unseen: bool,
    /// See [`Seen::may_have_come`].
    pub(super) may_have_come: bool,
    /// See [`Frame::copied`].
    pub(super) copied: Copied,
    /// See [`Frame::is_joined`].
    pub(super) is_joined: bool,
    /// The port of a bridge on which it arrived; 0 is not known.
    pub(super) port: u32,
    /// Ports of its bridge by which it left.
    pub(super) ports: Ports,
    /// Its frame is addressed to a group.
    pub(super) is_group: bool,
    /// The port of the bridge at which its destination was heard.
    pub(super) to: Option<u32>,
    /// The bridge passed it to the host, and shows it after translation.
    pub(super) is_given: bool,
    /// The entry of the packet that it shows leaving.
    pub(super) of: u64,
    pub(super) print: Option<Print>,
    /// The next entry whose content is the same.
    pub(super) next: u64,
}

/// First and last entry with the same content, and how many they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    pub(super) first: u64,
    pub(super) last: u64,
    len: usize,
}

/// A datagram that came, or left, in fragments.
#[derive(Debug, Default)]
pub(super) struct Datagram {
    /// What its first fragment was found to be.
    pub(super) sighting: Sighting,
    /// How it left, where it came.
    pub(super) left: Option<Left>,
    /// Fragments that came.
    pub(super) members: Vec<u64>,
}

/// Where a station was heard, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    pub(super) port: u32,
    pub(super) time: u64,
}

/// Reads frames ahead and tells what each is.
#[derive(Debug)]
pub struct Sightings {
    pub(super) devices: Devices,
    pub(super) keys: Keys,
    /// Frames ahead of the first entry of which nothing can be read.
    pub(super) others: usize,
    pub(super) entries: VecDeque<Entry>,
    /// Index of the first entry, and of the next one to be taken.
    pub(super) base: u64,
    pub(super) taken: u64,
    /// By what translation leaves alone, one for each way; those that are paired, or too old, leave from the front.
    pub(super) by_content: Table<Chain>,
    /// The last that came with the same content and ends, of contents that more have than are looked at.
    pub(super) by_ends: Table<u64>,
    /// The last frame with the same bytes from the network header on, one for each way.
    pub(super) by_bytes: Table<u64>,
    /// Arrived segments by family, acknowledgement and first byte, where they may leave in parts.
    pub(super) segments: BTreeMap<(bool, u32, u32), u64>,
    /// Flows as they left, and as they came.
    pub(super) flows: Table<u64>,
    /// The last reset that came of a flow.
    pub(super) resets: Table<u64>,
    pub(super) datagrams: Table<Datagram>,
    /// Where a station was last heard at a bridge, by its address: a cooked capture does not tell the link address of
    /// whom a frame is for.
    pub(super) heard: Table<Heard>,
    /// Devices that showed frames going out.
    pub(super) sends: Vec<bool>,
    pub(super) reassembly: Families,
    pub(super) translation: Families,
    /// Connections that it opens in the place of clients, where its rules have it do so.
    pub(super) proxied: Option<Proxied>,
    /// Arrivals whose payload a program may have changed, where rules hand it packets.
    pub(super) queued: Option<Queued>,
}

/// Families of which something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Families {
    /// IPv4.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

impl Families {
    /// Both.
    pub const ALL: Self = Self { v4: true, v6: true };
}

impl Sightings {
    pub(super) fn entry(&self, index: u64) -> Option<&Entry> {
        self.entries.get(index.checked_sub(self.base)? as usize)
    }

    pub(super) fn entry_mut(&mut self, index: u64) -> Option<&mut Entry> {
        self.entries.get_mut(index.checked_sub(self.base)? as usize)
    }

    /// The last frame before this one with the same bytes, not long ago, among those that went out or the others.
    pub(super) fn twin(&self, index: u64, is_out: bool) -> Option<u64> {
        let entry = self.entry(index)?;
        let twin = *self.by_bytes.get(&one_way(entry.print.as_ref()?.bytes, is_out))?;
        let other = self.entry(twin)?;
        (entry.time.abs_diff(other.time) <= self.devices.apart()).then_some(twin)
    }

    /// Takes entries of which nothing more is to be learned from the front of a chain. False if none is left.
    pub(super) fn settled(
        &mut self,
        content: u64,
        is_out: bool,
        is_done: impl Fn(&Entry) -> bool,
    ) -> bool {
        let content = one_way(content, is_out);
        while let Some(Chain { first, .. }) = self.by_content.get(&content).copied() {
            let Some(entry) = self.entry(first).filter(|entry| is_done(entry)) else { return true };
            let next = entry.next;
            self.unchain(content, first, next);
        }
        false
    }

    /// Entries of the same content that went out, or the others, the oldest first.
    pub(super) fn alike(&self, print: &Print, is_out: bool) -> impl Iterator<Item = (u64, &Entry)> {
        let chain = self.by_content.get(&one_way(print.content, is_out));
        let mut at = chain.map_or(NONE, |chain| chain.first);
        std::iter::from_fn(move || {
            let entry = self.entry(at)?;
            let found = (at, entry);
            at = entry.next;
            Some(found)
        })
    }

    /// Enters a frame into the tables.
    pub(super) fn remember(&mut self, index: u64, print: &Print) {
        let Some(entry) = self.entry(index) else { return };
        // What a bridge that listens to everything shows of others' frames, its ports show.
        if entry.sighting == Sighting::OtherHost {
            return;
        }
        let is_out = entry.way == Way::Out;
        self.by_bytes.insert(one_way(print.bytes, is_out), index);
        if !is_out {
            self.hear(index, print);
            if let Some(queued) = &mut self.queued {
                queued.add(print, index);
            }
        }
        let chain = self.by_content.entry(one_way(print.content, is_out));
        let chain = chain.or_insert(Chain { first: index, last: index, len: 0 });
        let before = chain.last;
        chain.last = index;
        chain.len += 1;
        // Before it stand all that are looked at: only its ends lead to it.
        if !is_out && chain.len > MOST {
            self.by_ends.insert(self.keys.packet(print), index);
        }
        if before != index
            && let Some(entry) = self.entry_mut(before)
        {
            entry.next = index;
        }
    }

    /// Takes the first entry out of its chain.
    pub(super) fn unchain(&mut self, content: u64, index: u64, next: u64) {
        match self.by_content.get_mut(&content) {
            Some(chain) if chain.first == index && next == NONE => {
                self.by_content.remove(&content);
            }
            Some(chain) if chain.first == index => {
                chain.first = next;
                chain.len -= 1;
            }
            _ => {}
        }
    }

    /// Drops what is older than need be.
    pub(super) fn forget(&mut self) {
        while self.taken - self.base > KEPT as u64 {
            let index = self.base;
            self.base += 1;
            let Some(Entry { print: Some(print), way, next, .. }) = self.entries.pop_front() else {
                continue;
            };
            let is_out = way == Way::Out;
            let bytes = one_way(print.bytes, is_out);
            if self.by_bytes.get(&bytes) == Some(&index) {
                self.by_bytes.remove(&bytes);
            }
            if !is_out {
                if !self.by_ends.is_empty() {
                    let packet = self.keys.packet(&print);
                    if self.by_ends.get(&packet) == Some(&index) {
                        self.by_ends.remove(&packet);
                    }
                }
                if let Some(queued) = &mut self.queued {
                    queued.drop_while(&print, |at| at <= index);
                }
            }
            self.unchain(one_way(print.content, is_out), index, next);
            if let Some(segment) = print.segment {
                let key = segment.key(print.ends.source.is_ipv6());
                if self.segments.get(&key) == Some(&index) {
                    self.segments.remove(&key);
                }
            }
        }
        clear_full(&mut self.flows);
        clear_full(&mut self.resets);
        clear_full(&mut self.datagrams);
        clear_full(&mut self.heard);
    }
}
