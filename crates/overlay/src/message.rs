//! [`Message`]: what nodes, the directory, the authority and a relay apart say to each other, in a UDP datagram inside their tunnel.
//!
//! | bytes | |
//! |---|---|
//! | 0 | the version, 1 |
//! | 1 | the type |
//! | 2–3 | bytes of the body |
//! | 4–11 | the transaction |
//! | 12– | the body |
//!
//! Contract: reading checks each length before it is used, takes no byte more or less than there is, and never panics.
//! An answer has the transaction of its question, a repeated question has the transaction of the first, and each message may
//! come twice: so state lies in caches keyed by transactions, and a lost message costs a repetition.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tunnel::PublicKey;

use crate::identity::Identity;
use crate::limits::{self, DIRECTORIES, SECOND};
use crate::members::{Certifying, Following, prefix_lengths};
use crate::name::Name;
use crate::orders::{Join, Relaying, Series};
use crate::paths::Pair;
use crate::permits::Permits;
use crate::reached::{self, Reached};
use crate::record::Device;
use crate::router::Router;
use crate::wire::{Malformed, Reader, Writer};

/// Bytes before the body.
pub const HEADER: usize = 12;
/// Bytes of the longest message: fits every path.
pub const LONGEST: usize = 1_024;

const VERSION: u8 = 1;

/// The number that a question and its answers share.
pub type Transaction = u64;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The transaction that it is of.
    pub transaction: Transaction,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A device that has a one-time key asks to be a node under this key.
    Enrol {
        /// The key that the node makes itself.
        key: PublicKey,
    },
    /// The device is a node of this network.
    Enrolled(Box<Membership>),
    /// A node says that it is there; also its keepalive.
    Register {
        /// A number that each start of the node draws: after another one, it has forgotten its peers.
        started: u64,
        /// Where it is by its own word: addresses of its own, and its tunnel's port.
        locals: Vec<SocketAddr>,
        /// The node's identity, if the directory is not known to have this one.
        identity: Option<Box<Identity>>,
    },
    /// The directory has noted it.
    Registered {
        /// The node's own identity, as others get it.
        identity: Box<Identity>,
        /// Seconds after 1970, as far as the directory knows.
        time: u64,
        /// A number that each start of the directory draws: after another one, it has forgotten who is there and
        /// what each is to forget.
        started: u64,
        /// The directory says something after that many seconds in which the node says nothing, so that the node sees whether
        /// its router remembers it for so long; 0 if it does not.
        recall: u8,
    },
    /// A node asks the way to another node.
    Direct {
        /// The other node.
        name: Name,
    },
    /// The way to a node: for the initiator the answer, for the responder an order to be ready for the initiator.
    Direction {
        /// The other node.
        identity: Box<Identity>,
        /// Where datagrams for it are sent: by each relay, that first which is to be used first.
        relays: Vec<SocketAddr>,
        /// What the two may begin with each other.
        permits: Permits,
    },
    /// A node knows the way to another one, and expects it.
    Ready {
        /// The other node.
        name: Name,
        /// The number of the node's start: what it said before it started again no longer holds.
        started: u64,
        /// The version of the policy that it holds the other one to.
        version: u64,
    },
    /// A question gets no other answer than this.
    Refused(Refusal),
    /// A node is no longer of the network: its peers forget it.
    Withdraw {
        /// The node.
        name: Name,
    },
    /// It is forgotten.
    Withdrawn {
        /// The node.
        name: Name,
    },
    /// A node tries to reach a peer without the relay; so does the peer.
    Punch {
        /// The peer.
        name: Name,
        /// Nanoseconds after which it sends, a whole number of milliseconds.
        after: u64,
        /// Where the peer may be.
        candidates: Vec<SocketAddr>,
        /// What is known of the receiver's router, and of the peer's; an older directory does not say.
        routers: Option<[Router; 2]>,
    },
    /// A node says how it reaches peers, for its owner to see.
    Reaches {
        /// The peers, at most 12.
        peers: Vec<Reached>,
    },
    /// A node sends a probe to each of these places, in this order, by its session with the directory.
    Probe {
        /// The places.
        to: Vec<SocketAddr>,
    },
    /// A node asks the authority for an identity that holds for longer.
    Renew,
    /// It is made again.
    Renewed {
        /// The node's identity.
        identity: Box<Identity>,
        /// Seconds after 1970 on the authority's clock.
        time: u64,
    },
    /// An authority apart says that it is there, and what the directory is to follow.
    Certifies(Box<Certifying>),
    /// The directory says how far it has come.
    Follows(Following),
    /// An authority apart says what a device is now.
    Member {
        /// The orders that it is of.
        series: Series,
        /// The device.
        device: Box<Device>,
    },
    /// A relay apart says that it is there, and how far it has come.
    Relays(Relaying),
    /// The directory has noted it.
    Relayed {
        /// The orders that the relay is to follow.
        series: Series,
        /// The number of the order after which all paths have been named: others end.
        whole: u64,
    },
    /// A relay apart is to forward between two nodes.
    Join(Box<Join>),
    /// A relay apart is no longer to forward between two nodes.
    Part {
        /// The orders that it is of.
        series: Series,
        /// The nodes.
        pair: Pair,
    },
}

/// What a device learns at its enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The node's identity: its name and virtual addresses.
    pub identity: Identity,
    /// The domain that names of nodes are below.
    pub domain: String,
    /// The prefix lengths of the virtual networks, IPv4 and IPv6.
    pub bits: (u8, u8),
    /// Addresses of the directory inside the tunnel.
    pub directory: (Ipv4Addr, Ipv6Addr),
    /// Addresses of the authority inside the tunnel, which are the directory's where they are one process.
    pub authority: (Ipv4Addr, Ipv6Addr),
    /// Where a directory may be that is another process, at least one place and at most [`DIRECTORIES`], and its key in the tunnel.
    pub directory_at: Option<(Vec<SocketAddr>, PublicKey)>,
}

/// Why a question is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// The directory does not know that the node is there: it registers, and asks again.
    NotRegistered = 1,
    /// There is no such name, or none that the node may know of.
    NoSuchName = 2,
    /// The other node is not there.
    Offline = 3,
    /// The one-time key was used.
    Used = 4,
    /// The one-time key has expired.
    Expired = 5,
    /// No address, or no path of a relay, is left.
    Full = 6,
    /// The node has too many questions that wait.
    Busy = 7,
    /// The key is another node's.
    KeyTaken = 8,
    /// The directory knows no identity of the node that holds: the node asks its authority, and registers again.
    Uncertified = 9,
    /// What the authority has to keep of it cannot be kept now: it may be asked later.
    Unkept = 10,
}

impl Refusal {
    const ALL: [Self; 10] = [
        Self::NotRegistered,
        Self::NoSuchName,
        Self::Offline,
        Self::Used,
        Self::Expired,
        Self::Full,
        Self::Busy,
        Self::KeyTaken,
        Self::Uncertified,
        Self::Unkept,
    ];
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotRegistered => "the directory does not know that this node is there",
            Self::NoSuchName => "there is no such name, or none that this node may reach",
            Self::Offline => "that node is not there",
            Self::Used => "the one-time key was used already",
            Self::Expired => "the one-time key has expired",
            Self::Full => "no address, or no path of a relay, is left",
            Self::Busy => "this node has too many questions that wait",
            Self::KeyTaken => "the key is another node's: make a new one",
            Self::Uncertified => "the directory has no identity of this node that holds",
            Self::Unkept => "nothing can be kept now of who joins: try again later",
        })
    }
}

const ENROL: u8 = 1;
const ENROLLED: u8 = 2;
const REGISTER: u8 = 3;
const REGISTERED: u8 = 4;
const DIRECT: u8 = 5;
const DIRECTION: u8 = 6;
const READY: u8 = 7;
const REFUSED: u8 = 8;
const WITHDRAW: u8 = 9;
const WITHDRAWN: u8 = 10;
const PUNCH: u8 = 11;
const RELAYS: u8 = 12;
const RELAYED: u8 = 13;
const JOIN: u8 = 14;
const PART: u8 = 15;
const RENEW: u8 = 16;
const RENEWED: u8 = 17;
const CERTIFIES: u8 = 18;
const FOLLOWS: u8 = 19;
const MEMBER: u8 = 20;
const PROBE: u8 = 21;
const REACHES: u8 = 22;

const MILLISECOND: u64 = SECOND / 1_000;

impl Message {
    /// Writes the message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Writer::default();
        let kind = self.body.write(&mut body);
        let mut all = Writer::default();
        all.bytes(&[VERSION, kind]).bytes(&(body.0.len() as u16).to_le_bytes());
        all.number(self.transaction).bytes(&body.0);
        all.0
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`Malformed`], with the byte.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > LONGEST {
            return Err(Malformed { at: LONGEST, expected: "the end of the message" });
        }
        let mut reader = Reader::new(bytes);
        if reader.byte("a version")? != VERSION {
            return Err(Malformed { at: 0, expected: "version 1" });
        }
        let kind = reader.byte("a type")?;
        let length = u16::from_le_bytes(reader.array("the length of the body")?);
        let transaction = reader.number("a transaction")?;
        if usize::from(length) != bytes.len() - HEADER {
            return Err(Malformed { at: 2, expected: "the length of what follows" });
        }
        let body = Body::read(kind, &mut reader)?;
        reader.end()?;
        Ok(Self { transaction, body })
    }
}

impl Body {
    fn write(&self, to: &mut Writer) -> u8 {
        match self {
            Self::Enrol { key } => {
                to.bytes(key.as_bytes());
                ENROL
            }
            Self::Enrolled(membership) => {
                membership.write(to);
                ENROLLED
            }
            Self::Register { started, locals, identity } => {
                to.number(*started).endpoints(locals).bytes(&[u8::from(identity.is_some())]);
                identity.iter().for_each(|identity| identity.write(to));
                REGISTER
            }
            Self::Registered { identity, time, started, recall } => {
                identity.write(to);
                to.number(*time).number(*started).bytes(&[*recall]);
                REGISTERED
            }
            Self::Direct { name } => named(to, name, DIRECT),
            Self::Direction { identity, relays, permits } => {
                identity.write(to);
                to.endpoints(relays);
                permits.write(to);
                DIRECTION
            }
            Self::Ready { name, started, version } => {
                to.number(*started).number(*version);
                named(to, name, READY)
            }
            Self::Refused(why) => {
                to.bytes(&[*why as u8]);
                REFUSED
            }
            Self::Withdraw { name } => named(to, name, WITHDRAW),
            Self::Withdrawn { name } => named(to, name, WITHDRAWN),
            Self::Punch { name, after, candidates, routers } => {
                let after = u16::try_from(after / MILLISECOND).unwrap_or(u16::MAX);
                to.bytes(&after.to_le_bytes()).endpoints(candidates).text(name.as_str());
                routers.iter().flatten().for_each(|router| router.write(to));
                PUNCH
            }
            Self::Probe { to: places } => {
                to.endpoints(places);
                PROBE
            }
            Self::Reaches { peers } => {
                to.bytes(&[peers.len() as u8]);
                peers.iter().for_each(|peer| peer.write(to));
                REACHES
            }
            Self::Renew => RENEW,
            Self::Renewed { identity, time } => {
                identity.write(to);
                to.number(*time);
                RENEWED
            }
            of_servers => of_servers.write_of_servers(to),
        }
    }

    /// Writes what an authority, a relay and the directory say to each other.
    fn write_of_servers(&self, to: &mut Writer) -> u8 {
        match self {
            Self::Certifies(certifying) => {
                certifying.write(to);
                CERTIFIES
            }
            Self::Follows(following) => {
                following.write(to);
                FOLLOWS
            }
            Self::Member { series, device } => {
                series.write(to);
                device.write(to);
                MEMBER
            }
            Self::Relays(relaying) => {
                relaying.write(to);
                RELAYS
            }
            Self::Relayed { series, whole } => {
                series.write(to);
                to.number(*whole);
                RELAYED
            }
            Self::Join(join) => {
                join.write(to);
                JOIN
            }
            Self::Part { series, pair } => {
                series.write(to);
                pair.write(to);
                PART
            }
            // The others are written before.
            _ => 0,
        }
    }

    fn read(kind: u8, from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            ENROL => Self::Enrol { key: PublicKey::new(from.array("a public key of 32 bytes")?) },
            ENROLLED => Self::Enrolled(Box::new(Membership::read(from)?)),
            REGISTER => Self::Register {
                started: from.number("a number of 8 bytes")?,
                locals: from.endpoints(limits::LOCALS, "at most 4 addresses and ports")?,
                identity: match from.flag("0, or 1 and an identity")? {
                    true => Some(Box::new(Identity::read(from)?)),
                    false => None,
                },
            },
            REGISTERED => Self::Registered {
                identity: Box::new(Identity::read(from)?),
                time: from.number("a time of 8 bytes")?,
                started: from.number("a number of 8 bytes")?,
                recall: from.byte("seconds")?,
            },
            DIRECT => Self::Direct { name: Name::read(from)? },
            DIRECTION => Self::Direction {
                identity: Box::new(Identity::read(from)?),
                relays: ways(from)?,
                permits: Permits::read(from)?,
            },
            READY => {
                let started = from.number("a number of 8 bytes")?;
                let version = from.number("a version of 8 bytes")?;
                Self::Ready { name: Name::read(from)?, started, version }
            }
            REFUSED => Self::Refused(refusal(from)?),
            WITHDRAW => Self::Withdraw { name: Name::read(from)? },
            WITHDRAWN => Self::Withdrawn { name: Name::read(from)? },
            PUNCH => {
                let after = u16::from_le_bytes(from.array("a time of 2 bytes")?);
                let candidates = from.endpoints(limits::CANDIDATES, "at most 5 places")?;
                let (name, after) = (Name::read(from)?, u64::from(after) * MILLISECOND);
                let routers = match from.has_more() {
                    true => Some([Router::read(from)?, Router::read(from)?]),
                    false => None,
                };
                Self::Punch { name, after, candidates, routers }
            }
            PROBE => Self::Probe { to: from.endpoints(limits::PROBES, "at most 4 places")? },
            RENEW => Self::Renew,
            REACHES => Self::Reaches { peers: reached(from)? },
            RENEWED => Self::Renewed {
                identity: Box::new(Identity::read(from)?),
                time: from.number("a time of 8 bytes")?,
            },
            of_servers => Self::read_of_servers(of_servers, from)?,
        })
    }

    fn read_of_servers(kind: u8, from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            RELAYS => Self::Relays(Relaying::read(from)?),
            RELAYED => {
                let series = Series::read(from)?;
                Self::Relayed { series, whole: from.number("a number of 8 bytes")? }
            }
            JOIN => Self::Join(Box::new(Join::read(from)?)),
            PART => Self::Part { series: Series::read(from)?, pair: Pair::read(from)? },
            CERTIFIES => Self::Certifies(Box::new(Certifying::read(from)?)),
            FOLLOWS => Self::Follows(Following::read(from)?),
            MEMBER => {
                let series = Series::read(from)?;
                Self::Member { series, device: Box::new(Device::read(from)?) }
            }
            _ => return Err(Malformed { at: 1, expected: "a type from 1 to 22" }),
        })
    }
}

impl Membership {
    fn write(&self, to: &mut Writer) {
        self.identity.write(to);
        to.text(&self.domain).bytes(&[self.bits.0, self.bits.1]);
        for (v4, v6) in [self.directory, self.authority] {
            to.bytes(&v4.octets()).bytes(&v6.octets());
        }
        to.endpoints(self.directory_at.as_ref().map(|(at, _)| &**at).unwrap_or_default());
        if let Some((_, key)) = &self.directory_at {
            to.bytes(key.as_bytes());
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let identity = Identity::read(from)?;
        let domain = from.text("a domain")?.to_owned();
        let bits = prefix_lengths(from)?;
        let mut addresses = || {
            let v4 = from.array::<4>("an IPv4 address")?.into();
            Ok::<_, Malformed>((v4, from.array::<16>("an IPv6 address")?.into()))
        };
        let (directory, authority) = (addresses()?, addresses()?);
        let places = from.endpoints(DIRECTORIES, "at most 4 places of a directory")?;
        let directory_at = match places.is_empty() {
            false => Some((places, PublicKey::new(from.array("a public key of 32 bytes")?))),
            true => None,
        };
        Ok(Self { identity, domain, bits, directory, authority, directory_at })
    }
}

fn named(to: &mut Writer, name: &Name, kind: u8) -> u8 {
    to.text(name.as_str());
    kind
}

fn reached(from: &mut Reader<'_>) -> Result<Vec<Reached>, Malformed> {
    let (at, expected) = (from.at(), "at most 12 peers");
    match usize::from(from.byte(expected)?) {
        count if count > reached::MOST => Err(Malformed { at, expected }),
        count => (0..count).map(|_| Reached::read(from)).collect(),
    }
}

/// Where the relays are: one or several.
fn ways(from: &mut Reader<'_>) -> Result<Vec<SocketAddr>, Malformed> {
    let (at, expected) = (from.at(), "1 to 4 addresses and ports");
    let ways = from.endpoints(limits::RELAYS, expected)?;
    if ways.is_empty() { Err(Malformed { at, expected }) } else { Ok(ways) }
}

fn refusal(from: &mut Reader<'_>) -> Result<Refusal, Malformed> {
    let (at, expected) = (from.at(), "a reason from 1 to 10");
    let number = from.byte(expected)?;
    let known = Refusal::ALL.into_iter().find(|why| *why as u8 == number);
    known.ok_or(Malformed { at, expected })
}
