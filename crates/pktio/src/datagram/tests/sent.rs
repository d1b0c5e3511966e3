//! Sending, held to a sender that gives the kernel one datagram after the other.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::super::arrived::Slot;
use super::super::message::BATCH;
use super::super::outgoing::{MOST_BYTES, MOST_DATAGRAMS, Outgoing};
use super::super::sys::Calls;
use super::super::transmit::{Way, emptied};
use super::super::{Message, Refusal, SendBatch, Sent, Source, Unsent};

/// A datagram as it leaves.
#[derive(Clone, Debug, PartialEq)]
struct Datagram {
    to: SocketAddr,
    from: Option<Source>,
    tos: u8,
    bytes: Vec<u8>,
}

/// A kernel with a mind of its own.
#[derive(Clone, Debug)]
struct Kernel {
    /// The longest datagram that each path takes.
    longest: [usize; 3],
    /// What it says of too long ones that it is to cut.
    too_long: i32,
    /// What it says of a destination.
    refused: Option<(u16, i32)>,
    /// What it says of messages from an address.
    gone: Option<(IpAddr, i32)>,
    /// What it says of messages that it is to cut.
    uncut: Option<i32>,
    /// Messages that it takes at once.
    at_once: usize,
    /// One call in this many gets the error of another datagram; 0: none does.
    nudges: u32,
    calls: Cell<u32>,
    /// Messages that there is room for.
    room: Cell<usize>,
    taken: RefCell<Vec<Datagram>>,
}

impl Kernel {
    fn kind() -> Self {
        Self {
            longest: [65_507; 3],
            too_long: libc::EMSGSIZE,
            refused: None,
            gone: None,
            uncut: None,
            at_once: BATCH,
            nudges: 0,
            calls: Cell::new(0),
            room: Cell::new(usize::MAX),
            taken: RefCell::default(),
        }
    }

    fn longest(&self, to: SocketAddr) -> usize {
        self.longest[usize::from(to.port() - PORT)]
    }

    /// What it says of a message of `count` datagrams, the longest of `bytes`.
    fn judge(&self, one: &Datagram, count: usize, bytes: usize) -> Result<(), i32> {
        match (self.gone, self.refused, self.uncut) {
            (Some((address, code)), ..) if one.from.is_some_and(|at| at.address == address) => {
                Err(code)
            }
            (_, Some((port, code)), _) if port == one.to.port() => Err(code),
            (.., Some(code)) if count > 1 => Err(code),
            _ if bytes <= self.longest(one.to) => Ok(()),
            _ => Err(if count > 1 { self.too_long } else { libc::EMSGSIZE }),
        }
    }

    fn take(&self, one: &Outgoing, pieces: &[IoSlice<'_>]) -> Result<(), i32> {
        let bytes: Vec<u8> =
            pieces[one.pieces.clone()].iter().flat_map(|piece| piece.to_vec()).collect();
        let segment = one.control.entries().find_map(|(level, kind, value)| {
            let is_it = (level, kind) == (libc::SOL_UDP, libc::UDP_SEGMENT);
            is_it.then(|| usize::from(u16::from_ne_bytes(value.try_into().unwrap())))
        });
        let with = one.control.read();
        let to = one.address.read().unwrap();
        let datagram =
            |bytes: &[u8]| Datagram { to, from: with.at, tos: with.tos, bytes: bytes.to_vec() };
        let cut: Vec<_> = match segment {
            Some(segment) => bytes.chunks(segment).map(datagram).collect(),
            None => vec![datagram(&bytes)],
        };
        assert!(segment.is_none() || cut.len() > 1, "one is not to be cut");
        assert!(cut.len() <= MOST_DATAGRAMS && (cut.len() == 1 || bytes.len() <= MOST_BYTES));
        self.judge(&cut[0], cut.len(), cut[0].bytes.len())?;
        let left = self.room.get().checked_sub(1).ok_or(libc::EAGAIN)?;
        self.room.set(left);
        self.taken.borrow_mut().extend(cut);
        Ok(())
    }
}

impl Calls for Kernel {
    fn receive(&self, _: &mut [IoSliceMut<'_>], _: &mut [Slot]) -> io::Result<usize> {
        Ok(0)
    }

    fn send(&self, outgoing: &[Outgoing], pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        assert!((1..=BATCH).contains(&outgoing.len()));
        self.calls.set(self.calls.get() + 1);
        if self.nudges > 0 && self.calls.get().is_multiple_of(self.nudges) {
            return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
        }
        for (count, one) in outgoing.iter().take(self.at_once).enumerate() {
            if let Err(code) = self.take(one, pieces) {
                return if count > 0 { Ok(count) } else { Err(io::Error::from_raw_os_error(code)) };
            }
        }
        Ok(outgoing.len().min(self.at_once))
    }
}

const PORT: u16 = 1000;

/// What is to be sent, with bytes of its own.
#[derive(Clone, Debug)]
struct Given {
    bytes: Vec<u8>,
    segment: u16,
    to: SocketAddr,
    from: Option<Source>,
    tos: u8,
}

impl Given {
    fn message(&self) -> Message<'_> {
        let Self { segment, to, from, tos, .. } = *self;
        Message { bytes: &self.bytes, segment, to, from, tos }
    }

    /// Returns the message's datagrams, as they would leave one by one.
    fn datagrams(&self) -> Vec<Datagram> {
        let from = self.from.filter(|from| from.address.is_ipv4() == self.to.is_ipv4());
        let datagram =
            |bytes: &[u8]| Datagram { to: self.to, from, tos: self.tos, bytes: bytes.to_vec() };
        match usize::from(self.segment) {
            0 => vec![datagram(&self.bytes)],
            _ if self.bytes.is_empty() => vec![datagram(&[])],
            segment => self.bytes.chunks(segment).map(datagram).collect(),
        }
    }
}

/// What a sender does that knows nothing but single datagrams.
#[derive(Debug, Default, PartialEq)]
struct Plain {
    sent: Sent,
    taken: Vec<Datagram>,
    unsent: Vec<Unsent>,
    astray: Vec<SocketAddr>,
}

impl Plain {
    fn send(kernel: &Kernel, given: &[Given]) -> Self {
        let mut plain = Self::default();
        for one in given {
            one.datagrams().into_iter().for_each(|datagram| plain.send_one(kernel, datagram));
            plain.sent.taken += 1;
        }
        plain
    }

    fn send_one(&mut self, kernel: &Kernel, datagram: Datagram) {
        let bytes = datagram.bytes.len();
        let Datagram { to, from, .. } = datagram;
        let routed = Datagram { from: None, ..datagram.clone() };
        let ask = |one: &Datagram| kernel.judge(one, 1, bytes);
        let is_gone = kernel.gone.is_some_and(|(address, code)| {
            from.is_some_and(|from| from.address == address) && ask(&datagram) == Err(code)
        });
        let leaves = if is_gone { routed } else { datagram };
        match ask(&leaves) {
            Ok(()) => {
                self.sent.datagrams += 1;
                self.sent.bytes += bytes as u64;
                self.taken.push(leaves);
                if is_gone && !self.astray.contains(&to) {
                    self.astray.push(to);
                }
            }
            Err(code) => {
                let why = Refusal::of(&io::Error::from_raw_os_error(code));
                match why {
                    Refusal::TooLong => self.sent.too_long += 1,
                    _ => self.sent.refused += 1,
                }
                match self.unsent.iter_mut().find(|told| (told.to, told.why) == (to, why)) {
                    Some(told) => told.datagrams += 1,
                    None => self.unsent.push(Unsent { to, why, datagrams: 1 }),
                }
            }
        }
    }
}

/// What ours does, and whether it still sends together afterwards.
fn send(kernel: &Kernel, given: &[Given]) -> (Plain, bool) {
    let is_together = AtomicBool::new(true);
    let way = Way { is_together: &is_together, is_both: true };
    let mut batch = SendBatch::default();
    let sent = batch.send(kernel, way, given.iter().map(Given::message));
    let ours = Plain {
        sent,
        taken: kernel.taken.take(),
        unsent: batch.unsent().to_vec(),
        astray: batch.astray().to_vec(),
    };
    (ours, is_together.load(Ordering::Relaxed))
}

fn destination(at: u16) -> SocketAddr {
    let ip = if at == 2 { "fd77::1" } else { "192.0.2.1" };
    SocketAddr::new(ip.parse().unwrap(), PORT + at)
}

fn sources() -> [Option<Source>; 4] {
    let source = |ip: &str| Some(Source { address: ip.parse().unwrap(), interface: None });
    [None, source("10.0.0.1"), source("10.0.0.2"), source("fd77::2")]
}

fn given() -> impl Strategy<Value = Vec<Given>> {
    let bytes = prop_oneof![
        6 => Just(1000_usize),
        3 => Just(1200),
        2 => 0..1500_usize,
        1 => Just(0),
        1 => Just(5000),
        1 => 60_000..70_000_usize,
    ];
    let segment = prop_oneof![4 => Just(0), 1 => Just(1000), 1 => 300..1500_u16, 1 => Just(1)];
    let one = (bytes, segment, 0..3_u16, 0..4_usize, prop_oneof![9 => Just(0), 1 => Just(3)]);
    let runs = (one, 1..40_usize, any::<u8>()).prop_map(|(of, count, seed)| {
        let (length, segment, to, from, tos) = of;
        // Many datagrams of a byte, not too many.
        let length = if segment == 1 { length.min(200) } else { length };
        let count = if length > 10_000 { count.min(3) } else { count };
        let bytes = |at: usize| (0..length).map(|byte| (byte + at * 7) as u8 ^ seed).collect();
        let given = |at| Given {
            bytes: bytes(at),
            segment,
            to: destination(to),
            from: sources()[from],
            tos,
        };
        (0..count).map(given).collect::<Vec<_>>()
    });
    proptest::collection::vec(runs, 0..6).prop_map(|runs| runs.concat())
}

fn kernels() -> impl Strategy<Value = Kernel> {
    let longest = || prop_oneof![Just(65_507_usize), Just(1000), Just(1199), Just(500), Just(0)];
    let too_long = prop_oneof![Just(libc::EMSGSIZE), Just(libc::EINVAL)];
    let refused = (PORT..PORT + 3, prop_oneof![Just(libc::ENETUNREACH), Just(libc::EPERM)]);
    let codes = [libc::EINVAL, libc::ENODEV, libc::ENETUNREACH, libc::EADDRNOTAVAIL];
    let address = (1..4_usize).prop_map(|at| sources()[at].unwrap().address);
    let gone = (address, proptest::sample::select(codes.to_vec()));
    let uncut = proptest::sample::select(vec![libc::EIO, libc::EINVAL, libc::EOPNOTSUPP]);
    (
        [longest(), longest(), longest()],
        too_long,
        proptest::option::weighted(0.3, refused),
        proptest::option::weighted(0.3, gone),
        proptest::option::weighted(0.3, uncut),
        prop_oneof![Just(BATCH), 1..BATCH],
        prop_oneof![Just(0), 2..9_u32],
    )
        .prop_map(|(longest, too_long, refused, gone, uncut, at_once, nudges)| Kernel {
            longest,
            too_long,
            refused,
            gone,
            uncut,
            at_once,
            nudges,
            ..Kernel::kind()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_a_kernel_refuses_what_can_leave_does(kernel in kernels(), given in given()) {
        let plain = Plain::send(&kernel, &given);
        let (ours, is_together) = send(&kernel, &given);
        prop_assert_eq!(ours, plain);
        prop_assert!(is_together || kernel.uncut.is_some());
    }

    /// What is not taken was not sent, but for datagrams of the first such message: offering the others again sends
    /// nothing twice.
    #[test]
    fn where_there_is_no_room_it_ends(
        kernel in kernels(), given in given(), room in 0..40_usize,
    ) {
        let whole = Plain::send(&kernel, &given);
        kernel.room.set(room);
        let (ours, _) = send(&kernel, &given);
        let taken = ours.sent.taken;
        let least = Plain::send(&kernel, &given[..taken]);
        let most = Plain::send(&kernel, &given[..given.len().min(taken + 1)]);
        prop_assert!(whole.taken.starts_with(&ours.taken));
        prop_assert!(ours.taken.starts_with(&least.taken) && most.taken.starts_with(&ours.taken));
        prop_assert!(taken == given.len() || kernel.room.get() == 0);
    }
}

fn many(count: usize, length: usize) -> Vec<Given> {
    let (to, from) = (destination(0), None);
    let one = |at| Given { bytes: vec![at as u8; length], segment: 0, to, from, tos: 0 };
    (0..count).map(one).collect()
}

/// A call allocates nothing that the last one had.
#[test]
fn room_for_slices_is_used_again() {
    let bytes = [1; 9];
    let mut pieces: Vec<IoSlice<'_>> = Vec::with_capacity(100);
    let at = pieces.as_ptr().addr();
    pieces.extend(bytes.chunks(2).map(IoSlice::new));
    let pieces = emptied(pieces);
    assert_eq!((pieces.as_ptr().addr(), pieces.capacity(), pieces.len()), (at, 100, 0));
}

/// 64 datagrams are one message, and a batch is one call.
#[test]
fn calls_are_few() {
    let kernel = Kernel::kind();
    let (ours, _) = send(&kernel, &many(64 * BATCH, 1000));
    assert_eq!((ours.sent.taken, kernel.calls.get()), (64 * BATCH, 1));
    send(&kernel, &many(64 * BATCH + 1, 1000));
    assert_eq!(kernel.calls.get(), 3);
}

/// Once it was refused, nobody asks again: one datagram each, a batch to a call.
#[test]
fn what_is_refused_once_is_not_tried_again() {
    for code in [libc::EIO, libc::EOPNOTSUPP, libc::EINVAL] {
        let kernel = Kernel { uncut: Some(code), ..Kernel::kind() };
        let is_together = AtomicBool::new(true);
        let way = Way { is_together: &is_together, is_both: true };
        let mut batch = SendBatch::default();
        let given = many(BATCH, 1000);
        let mut send = || batch.send(&kernel, way, given.iter().map(Given::message)).datagrams;
        assert_eq!(send(), BATCH as u64);
        let calls = kernel.calls.get();
        assert_eq!(send(), BATCH as u64);
        assert_eq!(kernel.calls.get() - calls, 1);
    }
}

/// One that takes nothing, and says nothing of it, is full.
#[test]
fn a_call_that_takes_nothing_ends_it() {
    let kernel = Kernel { at_once: 0, ..Kernel::kind() };
    let (ours, is_together) = send(&kernel, &many(3, 1000));
    assert_eq!((ours, is_together, kernel.calls.get()), (Plain::default(), true, 1));
}

/// An error of another message does not end this one; an error that stays does.
#[test]
fn an_error_of_another_is_met_once() {
    let kernel = Kernel { nudges: 2, ..Kernel::kind() };
    assert_eq!(send(&kernel, &many(200 * BATCH, 1000)).0.sent.refused, 0);
    let stays = Kernel { refused: Some((PORT, libc::ECONNREFUSED)), ..Kernel::kind() };
    let (ours, _) = send(&stays, &many(3, 1000));
    assert_eq!((ours.sent.taken, ours.sent.refused, stays.calls.get()), (3, 3, 2));
}
