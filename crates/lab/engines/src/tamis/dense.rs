//! Addresses below a bound: a header word for each address, and cells that hold R.
//!
//! # Concurrency
//! `update` of an address is a critical section of its header: the compare-and-swap that enters it *also*
//! publishes the change (PNG, range, accept) and counts a ban. Then the cells are written with plain
//! stores, for no other thread writes them, and the header is released. A second writer of the same address
//! waits; writers of different addresses share no word.
//!
//! `decide` is wait-free: header of the source, header of the destination, the cell, the header of the
//! source again. Where the destination's header has the source in its latest range, it is the header that
//! counts, whether the cells have it already or not.
//!
//! # Linearization
//! `update`: its compare-and-swap. A change that would change nothing is not written: the header was the
//! same before and after the one cell of its range was found to hold it, PNG equal and no ban counted in
//! between, so there is a moment at which both held.
//!
//! `decide`: the value of `R[D]` for S was right at some moment *t* between the reading of D's header and that
//! of the cell. When the header was read, every earlier change was in the cells (its writer had left before
//! the next could enter), and the latest counts by the header itself. A cell read later is either as it was
//! then, or was written by a change that was published in between. With `R[D]` `false` at *t* the answer is
//! `false` at *t*. With `true`: if S was free in both readings and no ban was counted between them, S was
//! free at *t*; else S was banned at some moment between them, where the answer `false` is right.
//!
//! The count of bans has 28 bits: an answer could be wrong if, between two loads of one reader, the same
//! source were banned exactly 2^28 times (at 10 ns for each ban and each lifting, over five seconds).
//!
//! Memory order: headers are read and published sequentially consistent, so all threads agree on the order
//! of changes; cells are stored with release after the publication, so a cell's value implies its header's.

use std::fmt;

use super::header::Header;
use super::sys;
use crate::address::Address;
use crate::config::{Config, Packet, Permits};
use crate::engine::Engine;
use crate::span::within;
use crate::sync::{AtomicU64, Ordering, yield_now};

/// How R is laid out.
pub(crate) trait Cells: Send + Sync + fmt::Debug {
    /// For N addresses.
    fn new(addresses: usize, default: bool) -> Self;

    /// Whether the destination accepts the source.
    fn has(&self, destination: usize, source: usize) -> bool;

    /// Makes the destination accept the sources, or not. One writer per destination at a time.
    fn set(&self, destination: usize, begin: usize, end: usize, accept: bool);

    /// Whether `set` would change nothing, where one load can tell.
    fn holds(&self, destination: usize, begin: usize, end: usize, accept: bool) -> bool;

    /// Asks for what `has` will read.
    fn soon_has(&self, destination: usize, source: usize);

    /// Asks for what `set` will write.
    fn soon_set(&self, destination: usize, begin: usize, end: usize);

    fn bytes(&self) -> usize;
}

/// A header for each address, and a cell for each pair of destination and source.
#[derive(Debug)]
pub(crate) struct Dense<C> {
    default: bool,
    headers: Box<[AtomicU64]>,
    cells: C,
    /// A burst's lines are asked for before it is evaluated.
    prefetch: bool,
}

/// From this many bytes of cells on, most are not in a core's own cache, and asking for a burst's lines at once
/// pays (1.2 to 1.6 times the rate with 2^14 addresses and more); below, it costs a tenth.
const PREFETCH: usize = 4 << 20;

impl<C: Cells> Dense<C> {
    /// For the addresses below `addresses`, at most 2^16; others are as never configured.
    pub(crate) fn new(addresses: usize, default: bool) -> Self {
        let headers = (0..addresses).map(|_| AtomicU64::new(Header::NEW.0)).collect();
        let cells = C::new(addresses, default);
        let prefetch = cells.bytes() >= PREFETCH;
        Self { default, headers, cells, prefetch }
    }

    #[inline]
    fn number<A: Address>(&self, address: A) -> Option<usize> {
        address.index().filter(|&index| index < self.headers.len())
    }

    #[inline]
    fn header(&self, at: usize) -> Header {
        Header(self.headers[at].load(Ordering::SeqCst))
    }

    /// Asks for the lines of a packet.
    #[inline]
    fn soon<A: Address>(&self, packet: &Packet<A>) {
        match packet {
            Packet::Data(data) => {
                let ends = (self.number(data.source), self.number(data.destination));
                if let (Some(from), Some(to)) = ends {
                    sys::soon_read(&self.headers[from]);
                    sys::soon_read(&self.headers[to]);
                    self.cells.soon_has(to, from);
                }
            }
            Packet::Config(config) => {
                if let Some(at) = self.number(config.address) {
                    let (begin, end) = within(config, self.headers.len());
                    sys::soon_write(&self.headers[at]);
                    self.cells.soon_set(at, begin, end);
                }
            }
        }
    }

    #[inline]
    fn accepts(&self, destination: usize, source: usize) -> bool {
        match self.header(destination).latest(source as u32) {
            Some(accept) => accept,
            None => self.cells.has(destination, source),
        }
    }

    /// Enters the critical section of an address and publishes the change; `None` if it changes nothing.
    fn publish(&self, at: usize, change: Change) -> Option<Header> {
        let Change { png, accept, begin, end } = change;
        let mut tries = 0;
        loop {
            let old = self.header(at);
            if old.is_busy() {
                wait(&mut tries);
                continue;
            }
            if old.persona_non_grata() == png
                && self.cells.holds(at, begin, end, accept)
                && self.header(at) == old
            {
                return None;
            }
            let new = old.after(png, accept, begin, end);
            let swap = (Ordering::SeqCst, Ordering::Relaxed);
            if self.headers[at].compare_exchange(old.0, new.0, swap.0, swap.1).is_ok() {
                return Some(new);
            }
        }
    }
}

/// A change of one address, its range cut to the space.
#[derive(Debug, Clone, Copy)]
struct Change {
    png: bool,
    accept: bool,
    begin: usize,
    end: usize,
}

/// Another writer of the address is at work, for some nanoseconds unless it was interrupted.
pub(crate) fn wait(tries: &mut u32) {
    *tries += 1;
    if *tries < 64 && cfg!(not(loom)) {
        std::hint::spin_loop();
    } else {
        yield_now();
    }
}

impl<A: Address, C: Cells> Engine<A> for Dense<C> {
    #[inline]
    fn decide(&self, source: A, destination: A) -> bool {
        let Some(from) = self.number(source) else { return self.default };
        let before = self.header(from);
        let accepts = match self.number(destination) {
            Some(to) => self.accepts(to, from),
            None => self.default,
        };
        let after = self.header(from);
        // No branch on what the packet decides: it could not be predicted.
        accepts & !before.persona_non_grata() & (before.bans() == after.bans())
    }

    #[inline]
    fn update(&self, config: &Config<A>) {
        let Some(at) = self.number(config.address) else { return };
        let (begin, end) = within(config, self.headers.len());
        let change = Change { png: config.persona_non_grata, accept: config.accept, begin, end };
        if let Some(new) = self.publish(at, change) {
            self.cells.set(at, begin, end, config.accept);
            self.headers[at].store(new.done().0, Ordering::Release);
        }
    }

    fn burst(&self, packets: &[Packet<A>], permits: &mut Permits) {
        if self.prefetch {
            packets.iter().for_each(|packet| self.soon(packet));
        }
        for (at, packet) in packets.iter().enumerate() {
            match packet {
                Packet::Data(data) => {
                    permits.say(at, self.decide(data.source, data.destination));
                }
                Packet::Config(config) => self.update(config),
            }
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.headers) + self.cells.bytes()
    }
}
